//! Ends of tasks and plans since a position, in numbers.

use std::collections::BTreeMap;

use crewlog_mq::{Error, PAGE_EVENTS_MAX, Position, Query, Range, Timestamp};
use crewlog_planner::event::{self, Event};
use crewlog_planner::lifecycle::State;
use serde::Serialize;

use super::AsOf;

/// The tasks and plans that ended after a position, by their state.
#[derive(Debug, Default, Serialize)]
pub struct Since {
    pub after: Position,
    /// The time of the first event after the position.
    #[serde(skip)]
    pub begins: Option<Timestamp>,
    pub tasks: BTreeMap<State, usize>,
    pub plans: BTreeMap<State, usize>,
}

impl AsOf {
    /// The ends of the project's tasks and plans after a position: the newest that fit in one page.
    pub async fn since(&self, after: Position) -> Result<Since, Error> {
        let ended = Query::stream(event::STREAM).of_types(["TaskStatusUpdated", "PlanningCompleted"]);
        let query = ended.and_tag(format!("project:{}", self.project()));
        let page = self.store().read(&query, Range::between(after, self.at).backwards(), PAGE_EVENTS_MAX).await?;
        let mut since = Since { after, begins: page.events.last().map(|first| first.created_at), ..Since::default() };
        for recorded in &page.events {
            match recorded.decode() {
                Ok(Event::TaskStatusUpdated { status, .. }) => {
                    State::of_end(status).into_iter().for_each(|state| *since.tasks.entry(state).or_default() += 1);
                }
                Ok(Event::PlanningCompleted { outcome, .. }) => {
                    *since.plans.entry(State::of_outcome(outcome)).or_default() += 1;
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(since)
    }
}
