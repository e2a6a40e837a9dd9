//! The lists: the tasks of a plan, all conflicts, all plans; and the statistics of the project.

use askama::Template;
use crewlog_planner::lifecycle::State;

use super::asked::{Asked, Tab};
use super::look::{Chosen, Look};
use super::words::{self, Markup, cut, grouped, lasting};
use crate::ui::failure::Failure;
use crate::views::{ConflictView, TaskShown};

/// The most conflicts and plans that are listed, the newest. A longer list of tasks is a tab with names and states.
const ROWS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "tasks.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Tasks<'a> {
    look: &'a Look<'a>,
    plan: &'a Chosen,
    tasks: Vec<(&'a TaskShown, State)>,
}

/// The tasks of the plan as a list.
pub fn tasks(look: &Look<'_>) -> Markup {
    let Some(plan) = look.existing().filter(|plan| !plan.shown.tasks.is_empty()) else { return Markup::default() };
    let states = plan.states.tasks.iter().map(|(_, task)| task.state);
    Markup::of(&Tasks { look, plan, tasks: plan.shown.tasks.iter().zip(states).collect() })
}

impl Tasks<'_> {
    /// The address of a task in a long list, without the other state of the page.
    fn short_link(&self, task: &TaskShown) -> String {
        let at = self.look.asked.get("at").unwrap_or_default();
        Asked::default().link(&[("plan", &self.plan.id), ("at", at), ("task", &task.id)])
    }
}

#[derive(Template)]
#[template(path = "figures.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Figures {
    /// A label, a value, and details.
    tiles: Vec<(&'static str, String, String)>,
}

/// The statistics of the project, and the usage of the plan.
pub async fn figures(look: &Look<'_>) -> Result<Markup, Failure> {
    let all = look.shown.statistics(Some(look.shown.project().to_owned())).await?;
    let mut tiles = Vec::new();
    for figures in all.iter().map(|all| &all.figures) {
        let rate = format!("{} failed, {} % succeed", grouped(figures.failed), figures.success_rate);
        let mean = i64::try_from(figures.mean_duration_ms).unwrap_or(i64::MAX).saturating_mul(1_000);
        let tries = format!("{} dispatches for a task", figures.mean_iterations);
        tiles.push(("Tasks done", grouped(figures.completed), rate));
        tiles.push(("Running now", grouped(figures.active), String::new()));
        tiles.push(("A task takes", lasting(mean), tries));
        tiles.push(("Most active", cut(&figures.most_active_executor, 40), String::new()));
    }
    if let Some(spent) = look.existing().map(|plan| &plan.shown.spent) {
        let tokens = spent.input_tokens + spent.output_tokens;
        let cost = format!("{:.2} in the agents' unit of cost", spent.cost_micros as f64 / 1e6);
        tiles.extend((tokens > 0).then(|| ("Tokens of this plan", grouped(tokens), cost)));
    }
    Ok(Markup::of(&Figures { tiles }))
}

#[derive(Template)]
#[template(path = "conflicts.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Conflicts<'a> {
    look: &'a Look<'a>,
    all: Vec<ConflictView>,
}

/// All conflicts, the newest first, with how they ended.
pub async fn conflicts(look: &Look<'_>) -> Result<Markup, Failure> {
    Ok(Markup::of(&Conflicts { look, all: look.shown.conflicts(None, true).await? }))
}

#[derive(Template)]
#[template(path = "plans.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Plans<'a> {
    look: &'a Look<'a>,
}

/// All plans, the newest first.
pub fn plans(look: &Look<'_>) -> Markup {
    Markup::of(&Plans { look })
}
