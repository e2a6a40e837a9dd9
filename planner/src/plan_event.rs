//! The events of plans: their own, and those of their tasks.

use crewlog_mq::{Error, FromRecorded, Recorded};

use crate::claim::{self, TaskEvent};
use crate::event::{self, Event};
use crate::plan::TaskId;

/// An event that may concern a plan, decoded by its stream.
#[derive(Debug, Clone)]
pub enum PlanEvent {
    /// Of a plan.
    Plan(Event),
    /// Of a task of a plan.
    Task(TaskId, TaskEvent),
    /// Of another stream.
    Other,
}

impl FromRecorded for PlanEvent {
    fn from_recorded(recorded: &Recorded) -> Result<Self, Error> {
        Ok(match recorded.stream_id.as_str() {
            event::STREAM => Self::Plan(recorded.decode()?),
            claim::STREAM => match claim::split_aggregate_id(&recorded.aggregate_id) {
                Some((_, task)) => Self::Task(task, recorded.decode()?),
                None => Self::Other,
            },
            _another_stream => Self::Other,
        })
    }
}

/// The plan of an event of a plan or of a task.
pub fn plan_of(recorded: &Recorded) -> Option<&str> {
    match recorded.stream_id.as_str() {
        event::STREAM => Some(&recorded.aggregate_id),
        claim::STREAM => claim::split_aggregate_id(&recorded.aggregate_id).map(|(plan, _)| plan),
        _another_stream => None,
    }
}
