//! The tasks of a plan as a list: the graph in words.

use askama::Template;

use super::look::Look;
use super::words::{Markup, at_clock, cut};
use crate::views::Stage;

/// With more tasks the list has names and states only.
const ROWS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "tasks.html", whitespace = "minimize")]
struct Card {
    is_long: bool,
    tasks: Vec<Row>,
}

struct Row {
    name: String,
    shown: String,
    status: &'static str,
    stage: &'static str,
    href: String,
    title: String,
    executor: String,
    ended: Option<Markup>,
    is_open: bool,
}

/// The card of all tasks.
pub fn tasks(look: &Look<'_>) -> Markup {
    let Some(plan) = look.existing() else { return Markup::default() };
    let tasks = &plan.shown.tasks;
    let (is_long, at) = (tasks.len() > ROWS_MAX, look.asked.get("at").unwrap_or_default());
    let stages = plan.track.view.state().tasks.iter().map(|task| plan.track.stage(task.plan.id));
    let row = |(task, stage): (&crate::views::TaskShown, Stage)| {
        let executor = task.executor.as_deref().unwrap_or_default();
        Row {
            name: task.id.clone(),
            shown: cut(&task.id, 60),
            status: task.status,
            stage: stage.as_str(),
            // In a long list a short address: the rest of the page's state is given up.
            href: match is_long {
                true => super::asked::Asked::default().link(&[("plan", &plan.id), ("at", at), ("task", &task.id)]),
                false => look.link_task(&task.id),
            },
            title: if is_long { String::new() } else { cut(&task.description, 160) },
            executor: cut(executor.rsplit_once('@').map_or(executor, |(name, _)| name), 40),
            ended: task.ended_at.as_deref().map(at_clock),
            is_open: look.asked.is("task", &task.id),
        }
    };
    if tasks.is_empty() {
        return Markup::default();
    }
    Markup::of(&Card { is_long, tasks: tasks.iter().zip(stages).map(row).collect() })
}
