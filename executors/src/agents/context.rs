//! What agents share: the plans of a project as the log has them, read and never written. Texts that are sealed are read as
//! such unless the store has their keys.

use std::collections::BTreeMap;

use crewlog_mq::{Error, EventStore, Handler, Position, Query, Range};
use crewlog_planner::brevity::shorten;
use crewlog_planner::event::{self, Event, TaskStatus};
use crewlog_planner::planner::Planner;
use crewlog_planner::sealed::is_withheld;
use crewlog_planner::view::PlanStatus;

/// The most plans that an agent is told of: the newest.
pub const PLANS_TOLD_MAX: usize = 20;
/// The most characters that are told of one result.
const RESULT_CHARS_MAX: usize = 600;
/// How many events are read at a time.
const PAGE: usize = 1000;

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
    /// What the log says of the plans that bear a tag, of a project for one. A plan that cannot be read is left out.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn read(store: &EventStore, tag: &str) -> Result<Self, Error> {
        let at = store.head().await?;
        let query = Query { tags: vec![tag.to_owned()], ..Query::stream(event::STREAM) };
        let (mut planners, mut order) = (BTreeMap::<String, Planner>::new(), Vec::new());
        let mut range = Range::up_to(at);
        loop {
            let page = store.read(&query, range, PAGE).await?;
            for recorded in page.events {
                let Ok(event) = recorded.decode::<Event>() else { continue };
                let planner = planners.entry(recorded.aggregate_id.clone()).or_insert_with(|| {
                    order.push(recorded.aggregate_id.clone());
                    Planner::new()
                });
                planner.apply(&event);
            }
            if !page.more {
                break;
            }
            range.after = page.next;
        }
        let newest = order.split_off(order.len().saturating_sub(PLANS_TOLD_MAX));
        let plans = newest.into_iter().filter_map(|plan| planners.get(&plan).map(|planner| glance(plan, planner)));
        Ok(Self { at, plans: plans.collect() })
    }

    /// True when something in it is sealed, and its key is not here.
    #[must_use]
    pub fn is_withheld(&self) -> bool {
        self.plans.iter().any(|glance| {
            let results = glance.results.iter().flat_map(|(text, result)| [text, result]);
            glance.title.iter().chain(&glance.open).chain(results).any(|text| is_withheld(text))
        })
    }

    /// The same in words. Where the log has been read to is no part of them, so what is not news tells the same.
    #[must_use]
    pub fn told(&self) -> String {
        let mut lines = Vec::new();
        for PlanGlance { plan, title, status, open, results } in &self.plans {
            lines.push(format!("{plan} ({}): {}", status.as_str(), title.as_deref().unwrap_or("no title")));
            lines.extend(open.iter().map(|task| format!("- open: {task}")));
            lines.extend(results.iter().map(|(task, result)| format!("- done: {task}: {result}")));
        }
        lines.join("\n")
    }
}

fn glance(plan: String, planner: &Planner) -> PlanGlance {
    let state = planner.state();
    let open = state.tasks().iter().filter(|task| !task.status.is_end());
    let done = state.tasks().iter().filter(|task| task.status == TaskStatus::Completed);
    let results = done.filter_map(|task| {
        let result = task.result.as_deref().filter(|result| !result.trim().is_empty())?;
        Some((task.plan.description.clone(), shorten(result, RESULT_CHARS_MAX)))
    });
    PlanGlance {
        title: state.title().map(str::to_owned),
        status: PlanStatus::of(state),
        open: open.map(|task| task.plan.description.clone()).collect(),
        results: results.collect(),
        plan,
    }
}
