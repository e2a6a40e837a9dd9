//! What agents share: the plans of a project as the log has them, read and never written. Texts that are sealed are read as
//! such unless the store has their keys.

use crewlog_mq::{Error, EventStore, Position, Query, Range, Recorded};
use crewlog_planner::event::{self, TaskStatus};
use crewlog_planner::sealed::is_withheld;
use crewlog_planner::state::{PlannerState, Task};
use crewlog_planner::text::truncate;
use crewlog_planner::view::PlanStatus;

use crate::planning::{is_for_ever, planner_of};

/// The most plans that an agent is told of: the newest.
pub const PLANS_TOLD_MAX: usize = 20;
/// The most tasks of one plan that it is told of: of the open ones the first, of the others the last.
pub const TASKS_TOLD_MAX: usize = 100;
/// The most characters that it is told in all.
pub const TOLD_CHARS_MAX: usize = 60_000;
/// The most characters that are told of one task, and of one result.
const RESULT_CHARS_MAX: usize = 600;
/// How a plan begins.
const BEGINNINGS: [&str; 2] = ["TasksPlanned", "PlanForked"];

/// A plan in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanGlance {
    /// Its id.
    pub plan: String,
    /// What it is called.
    pub title: Option<String>,
    /// Where it stands.
    pub status: PlanStatus,
    /// What is open: the texts of its tasks.
    pub open: Vec<String>,
    /// What was found: the texts of tasks that completed, and their results.
    pub results: Vec<(String, String)>,
}

/// What agents see of a project as of a position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedContext {
    /// What was read of the log.
    pub at: Position,
    /// The newest plans, the oldest of them first.
    pub plans: Vec<PlanGlance>,
}

impl SharedContext {
    /// What the log says of the newest plans that bear a tag, of a project for one; of a fork with the history that it
    /// goes on from. A plan that cannot be read is left out.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn read(store: &EventStore, tag: &str) -> Result<Self, Error> {
        let at = store.head().await?;
        let begun = Query { tags: vec![tag.to_owned()], ..Query::stream(event::STREAM) }.of_types(BEGINNINGS);
        let newest = store.read(&begun, Range::up_to(at).backwards(), PLANS_TOLD_MAX).await?.events;
        let mut plans = Vec::<PlanGlance>::new();
        for Recorded { aggregate_id: plan, .. } in newest.into_iter().rev() {
            let read = async {
                let mut planner = planner_of(store, &plan, Vec::new()).await?;
                planner.catch_up().await.map(|()| planner)
            };
            match read.await {
                Ok(planner) if plans.iter().all(|known| known.plan != plan) => {
                    plans.push(glance(plan, planner.handler().state()));
                }
                Ok(_) => {}
                Err(error) if is_for_ever(&error) => tracing::warn!(%error, plan, "agents are told nothing of a plan"),
                Err(error) => return Err(error),
            }
        }
        Ok(Self { at, plans })
    }

    /// True when something in it is sealed, and its key is not here.
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        self.plans.iter().any(|glance| {
            let results = glance.results.iter().flat_map(|(text, result)| [text, result]);
            glance.title.iter().chain(&glance.open).chain(results).any(|text| is_withheld(text))
        })
    }

    /// The same in words, at most [`TOLD_CHARS_MAX`] characters: what does not fit is of the oldest plans. Where the log has
    /// been read to is no part of them, so what is not news tells the same.
    #[must_use]
    pub fn told(&self) -> String {
        let (mut sections, mut room) = (Vec::new(), TOLD_CHARS_MAX);
        for glance in self.plans.iter().rev() {
            let section = truncate(&section(glance), room);
            if section.is_empty() {
                break;
            }
            room = room.saturating_sub(section.chars().count() + 1);
            sections.push(section);
        }
        sections.reverse();
        sections.join("\n")
    }
}

fn section(PlanGlance { plan, title, status, open, results }: &PlanGlance) -> String {
    let head = format!("{plan} ({}): {}", status.as_str(), title.as_deref().unwrap_or("no title"));
    let open = open.iter().map(|task| format!("- open: {task}"));
    let results = results.iter().map(|(task, result)| format!("- done: {task}: {result}"));
    std::iter::once(head).chain(open).chain(results).collect::<Vec<_>>().join("\n")
}

fn glance(plan: String, state: &PlannerState) -> PlanGlance {
    let text = |task: &Task| truncate(&task.plan.description, RESULT_CHARS_MAX);
    let open = state.tasks().iter().filter(|task| !task.status.is_end()).take(TASKS_TOLD_MAX);
    let done = state.tasks().iter().filter(|task| task.status == TaskStatus::Completed);
    let results = done.filter_map(|task| {
        let result = task.result.as_deref().filter(|result| !result.trim().is_empty())?;
        Some((text(task), truncate(result, RESULT_CHARS_MAX)))
    });
    let mut results = results.rev().take(TASKS_TOLD_MAX).collect::<Vec<_>>();
    results.reverse();
    let (title, status) = (state.title().map(str::to_owned), PlanStatus::of(state));
    PlanGlance { title, status, open: open.map(text).collect(), results, plan }
}
