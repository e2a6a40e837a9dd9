//! The lists: the tasks of a plan, all conflicts, all plans; and the statistics of the project.

use std::collections::BTreeSet;

use askama::Template;
use crewlog_mq::Timestamp;
use crewlog_planner::lifecycle::State;

use super::asked::Tab;
use super::look::{Chosen, Look};
use super::needs::is_of_plan;
use super::summary::{ended_at, title_of};
use super::words::{self, Markup, cut, grouped, lasting, pill_of, some_of};
use crate::ui::failure::Failure;
use crate::ui::text::{moment_of, rfc3339};
use crate::views::{ConflictView, Counts, ListedPlan, TaskShown, counts_of};

/// The most conflicts and plans that are listed, the newest. A longer list of tasks is a tab with names and states.
const ROWS_MAX: usize = 200;
/// The most plans on the home page, and the most tasks on the overview of a plan.
const HOME_ROWS_MAX: usize = 20;
const OVERVIEW_ROWS_MAX: usize = 12;
/// A plan that ended this recently is listed before older ones.
const JUST_ENDED_US: i64 = 3_600_000_000;

#[derive(Template)]
#[template(path = "tasks.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Tasks<'a> {
    look: &'a Look<'a>,
    plan: &'a Chosen,
    n_tasks: usize,
    rows: Vec<(&'a TaskShown, State)>,
}

/// The tasks of the plan as a list: on its overview the first few, those that are not done first.
pub fn tasks(look: &Look<'_>) -> Markup {
    let Some(plan) = look.existing().filter(|plan| !plan.shown.tasks.is_empty()) else { return Markup::default() };
    let states = plan.states.tasks.iter().map(|(_, task)| task.state);
    let mut rows: Vec<_> = plan.shown.tasks.iter().zip(states).collect();
    let n_tasks = rows.len();
    if look.asked.tab() == Tab::Overview && n_tasks > OVERVIEW_ROWS_MAX {
        // Failures first, then open tasks, then planned ones.
        let is_over = |state: State| state.is_end() && state != State::Failed;
        rows.sort_by_key(|(_, state)| (is_over(*state), *state == State::Planned, *state != State::Failed));
        rows.truncate(OVERVIEW_ROWS_MAX);
    }
    Markup::of(&Tasks { look, plan, n_tasks, rows })
}

impl Tasks<'_> {
    /// The address of a task in a long list, without the other state of the page.
    fn short_link(&self, task: &TaskShown) -> String {
        self.look.asked.page(&self.plan.id, Tab::Tasks).link(&[("task", &task.id)])
    }

    fn took(&self, task: &TaskShown, state: State) -> String {
        let moment = |time: &Option<String>| time.as_deref().and_then(moment_of).map(|moment| moment.0);
        let end = moment(&task.ended_at).or((state == State::Running).then_some(self.look.shown.now.0));
        moment(&task.started_at).zip(end).map(|(begin, end)| lasting(end - begin)).unwrap_or_default()
    }

    fn all(&self) -> String {
        self.look.asked.page(&self.plan.id, Tab::Tasks).link(&[])
    }
}

#[derive(Template)]
#[template(path = "figures.html", config = "src/serve/page/askama.toml", whitespace = "minimize")]
struct Figures {
    /// A label, a value, and details.
    tiles: Vec<(&'static str, String, String)>,
}

/// The statistics of the project.
pub async fn figures(look: &Look<'_>) -> Result<Markup, Failure> {
    let all = look.shown.statistics(Some(look.shown.project().to_owned())).await?;
    let mut tiles = Vec::new();
    for figures in all.iter().map(|all| &all.figures) {
        let rate = format!("{} failed, {:.0} % succeed", grouped(figures.failed), figures.success_rate);
        let mean = i64::try_from(figures.mean_duration_ms).unwrap_or(i64::MAX).saturating_mul(1_000);
        let tries = format!("{} attempts for a task", figures.mean_iterations);
        tiles.push(("Tasks done", grouped(figures.completed), rate));
        tiles.push(("Running now", grouped(figures.active), String::new()));
        tiles.push(("A task takes", lasting(mean), tries));
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
    rows: Vec<PlanRow<'a>>,
    all: String,
}

struct PlanRow<'a> {
    plan: &'a ListedPlan,
    title: Markup,
    pill: Markup,
    counts: Counts,
    /// The executors that work on it.
    who: String,
    next: Markup,
    /// The end of an ended plan.
    ended: Option<String>,
    /// Those that need the person first, then open ones, then those that have just ended.
    rank: u8,
}

impl PlanRow<'_> {
    fn done(&self) -> String {
        format!("{} of {}", self.counts[State::Done as usize], self.counts.iter().sum::<u32>())
    }
}

/// The plans: on the home page those that matter now, on their own page all.
pub async fn plans(look: &Look<'_>) -> Result<Markup, Failure> {
    let mut rows = Vec::new();
    for plan in look.plans.iter().rev().take(ROWS_MAX) {
        let Ok(track) = look.shown.track(&plan.plan).await else { continue };
        let needs_you = look.needs.iter().any(|need| is_of_plan(need, &plan.plan));
        let is_open = !plan.status.is_end();
        let end = ended_at(&track).unwrap_or(track.view.created_at.unwrap_or_default().0);
        let is_just_ended = look.shown.now.0 - end < JUST_ENDED_US;
        let states = look.shown.states(&plan.plan).await?;
        let running = states.tasks.iter().filter(|(_, task)| task.state == State::Running);
        let holders = running.filter_map(|(task, _)| track.view.holder(*task));
        let who: BTreeSet<_> = holders.map(|holder| holder.executor.name.clone()).collect();
        rows.push(PlanRow {
            plan,
            title: title_of(look, &plan.plan, &track),
            pill: pill_of(plan.status),
            counts: counts_of(&states),
            who: some_of(&who.into_iter().collect::<Vec<_>>(), 3, |name| cut(name, 40)),
            next: words::rich(&look.shown.why_plan(&plan.plan).await?.why, 160),
            ended: (!is_open).then(|| rfc3339(Timestamp(end))),
            rank: match (needs_you, is_open, is_just_ended) {
                (true, _, _) => 0,
                (false, true, _) if !plan.waits_for_work => 1,
                (false, false, true) => 2,
                (false, _, _) => 3,
            },
        });
    }
    rows.sort_by_key(|row| row.rank);
    let is_home = look.asked.tab() == Tab::Overview;
    if is_home {
        rows.truncate(HOME_ROWS_MAX);
    }
    let all = if rows.len() < look.plans.len() && is_home {
        look.asked.page("", Tab::Plans).link(&[])
    } else {
        String::new()
    };
    Ok(if look.plans.is_empty() { Markup::default() } else { Markup::of(&Plans { look, rows, all }) })
}
