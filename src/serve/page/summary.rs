//! The head of a plan's page: its state in a sentence, what waits for a person, and the commands for the whole plan.

use askama::Template;
use crewlog_planner::lifecycle::State;

use super::asked::Tab;
use super::forms::Form;
use super::look::{Chosen, Look};
use super::needs::{NeedItem, is_of_plan};
use super::words::{self, Markup, cut, escaped, lasting, pill_of, progress, rich, telling_line};
use crate::ui::failure::Failure;
use crate::ui::text::{count, rfc3339};
use crate::views::{TaskShown, Track, counts_of};

/// The longest sentence and line of an error, in characters.
const TEXT_CHARS_MAX: usize = 400;
/// The most lines of an error; the panel of the task has all of it.
const ERROR_LINES_MAX: usize = 8;

#[derive(Template)]
#[template(path = "summary.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct PlanHead<'a> {
    look: &'a Look<'a>,
    plan: &'a Chosen,
    title: Markup,
    pill: Markup,
    progress: Markup,
    why: Markup,
    /// The lines of the error that ended or stopped it, and true for the most informative one.
    error: Vec<(String, bool)>,
    retry: Option<Form>,
    needs: Vec<NeedItem<'a>>,
    facts: Vec<Markup>,
    fork: Form,
    changes: Vec<Form>,
}

/// The head of the page.
pub async fn summary(look: &Look<'_>) -> Result<Markup, Failure> {
    let Some(plan) = &look.plan else { return Ok(Markup::default()) };
    let mut needs = Vec::new();
    for need in look.needs.iter().filter(|need| is_of_plan(need, &plan.id)) {
        needs.push(NeedItem::of(look, need));
    }
    let failed = failed_task(plan);
    let is_offered = failed.is_some() && !plan.is_open();
    let retry = failed.filter(|_| is_offered).map(|task| {
        let target = vec![("target", format!("{}/{}", plan.id, task.id))];
        look.form("retry", target).button(&format!("Retry {}", cut(&task.id, 40))).primary()
    });
    let error = failed.and_then(|task| task.error.as_deref()).unwrap_or_default();
    let telling = telling_line(error);
    let lines = error.lines().filter(|line| !line.trim().is_empty()).take(ERROR_LINES_MAX);
    let fork = look.form("fork", vec![("plan", plan.id.clone()), ("at", look.shown.at.to_string())]);
    Ok(Markup::of(&PlanHead {
        look,
        plan,
        title: title_of(look, &plan.id, &plan.track),
        pill: pill_of(plan.states.plan.state),
        progress: progress(&counts_of(&plan.states)),
        why: match failed {
            Some(task) => of_failure(look, plan, task),
            None => rich(&look.shown.why_plan(&plan.id).await?.why, TEXT_CHARS_MAX),
        },
        error: lines.map(|line| (cut(line, TEXT_CHARS_MAX), line.trim() == telling)).collect(),
        retry,
        needs,
        facts: facts(look, plan),
        fork: fork.also_in_the_past().required("reason", "why").button("Fork").primary(),
        changes: changes(look, plan),
    }))
}

/// The task whose failure ended the plan or stopped it.
fn failed_task(plan: &Chosen) -> Option<&TaskShown> {
    let state = plan.track.view.state();
    let first = || plan.states.tasks.iter().find(|(_, task)| task.state == State::Failed).map(|(id, _)| *id);
    let ended = first().filter(|_| plan.states.plan.state == State::Failed);
    let name = state.task(state.stopped_by.or(ended)?)?.plan.name();
    plan.shown.tasks.iter().find(|task| task.id == name)
}

/// `It failed at Z08: exit code 1.`
fn of_failure(look: &Look<'_>, plan: &Chosen, task: &TaskShown) -> Markup {
    let what = rich(&format!("{} {}", task.id, task.description), 120);
    let link = format!("<a href=\"{}\"><bdi>{what}</bdi></a>", escaped(&look.link_task(&task.id)));
    let tries =
        if task.attempts > 1 { format!(", after {}", count(task.attempts as usize, "attempt")) } else { String::new() };
    let first = task.error.as_deref().and_then(|error| error.lines().next()).unwrap_or("it gave no reason");
    let how = rich(first, TEXT_CHARS_MAX);
    let n_failed = counts_of(&plan.states)[State::Failed as usize];
    let others =
        if n_failed > 1 { format!(" {} failed in all.", count(n_failed as usize, "task")) } else { String::new() };
    let verb = if plan.is_open() { "stopped" } else { "failed" };
    Markup(format!("It {verb} at {link}: {how}{tries}.{others}"))
}

/// The first heading of a plan's text, or its name.
pub fn title_of(look: &Look<'_>, plan: &str, track: &Track) -> Markup {
    rich(track.view.state().title.as_deref().unwrap_or(look.short(plan)), 140)
}

/// The time when the last task of a plan ended.
pub fn ended_at(track: &Track) -> Option<i64> {
    let ends = track.view.state().tasks.iter().filter_map(|task| track.view.times(task.plan.id).ended_at);
    ends.map(|end| end.0).max()
}

fn facts(look: &Look<'_>, plan: &Chosen) -> Vec<Markup> {
    let (view, counts) = (&plan.track.view, counts_of(&plan.states));
    let Some(begun) = view.created_at else { return Vec::new() };
    let n_done = counts[State::Done as usize];
    let end = ended_at(&plan.track).filter(|_| !plan.is_open()).unwrap_or(look.shown.now.0);
    let mut facts = vec![
        format!("<b>{n_done}</b> of {} done", plan.shown.tasks.len()),
        format!("began {}, {}", words::at_clock(&rfc3339(begun)), lasting(end - begun.0)),
    ];
    let spent = &plan.shown.spent;
    let unknown = match spent.n_without_cost {
        0 => String::new(),
        n => format!(", unknown for {n} of their runs"),
    };
    facts.extend((spent.cost_micros > 0 || spent.n_without_cost > 0).then(|| match spent.cost_micros {
        0 => format!("cost{}", unknown.trim_start_matches(',')),
        cost => format!("<b>${:.2}</b>, as the agents report it{unknown}", cost as f64 / 1e6),
    }));
    facts.extend(plan.shown.parent.as_ref().map(|parent| {
        let at = words::grouped(parent.at);
        format!("a fork of {} at {at}", words::link(&look.link_plan(&parent.plan, ""), look.short(&parent.plan)))
    }));
    facts.into_iter().map(Markup).collect()
}

/// The forms for commands to the whole plan.
fn changes(look: &Look<'_>, plan: &Chosen) -> Vec<Form> {
    let form = |command, field| look.form(command, vec![(field, plan.id.clone())]);
    let mut forms = Vec::new();
    if plan.is_open() {
        forms.push(form("task-add", "plan").required("text", "a task to add").button("Add"));
        forms.push(match plan.states.plan.state {
            State::Paused => form("resume", "target").button("Resume the plan"),
            _not_paused => form("pause", "target").optional("reason", "why").button("Pause"),
        });
        forms.push(form("cancel", "target").optional("reason", "why").button("Cancel the plan"));
    }
    forms.push(form("plan-checkpoint", "plan").required("name", "a name for this moment").button("Checkpoint"));
    forms
}

impl PlanHead<'_> {
    /// The views of the plan: address, name, and true for the one shown.
    fn tabs(&self) -> impl Iterator<Item = (String, String, bool)> {
        Tab::OF_PLAN.into_iter().map(|tab| {
            let n_tasks = if tab == Tab::Tasks { format!(" {}", self.plan.shown.tasks.len()) } else { String::new() };
            let page = self.look.asked.page(&self.plan.id, tab);
            (page.link(&[]), tab.title() + &n_tasks, self.look.asked.tab() == tab)
        })
    }

    /// The position to compare with, and its name: now in the past; else the point of the fork, or the beginning.
    fn comparison(&self) -> (String, &'static str) {
        let begins = || self.plan.track.begins().map_or(1, |begins| begins.position.0);
        match (&self.plan.shown.parent, self.look.is_past()) {
            (_, true) => (self.look.head.at.to_string(), "Compare with now"),
            (Some(parent), false) => (parent.at.to_string(), "Compare with the fork"),
            (None, false) => (begins().to_string(), "Compare with the beginning"),
        }
    }
}
