//! Whether a task, or its plan, is paused as the log stands. It waits for nothing, and appends nothing.

use std::pin::pin;

use crewlog_mq::{Envelope, Error, EventStore, Query, Range};
use crewlog_planner::event::{self, Event};
use crewlog_planner::plan::TaskId;
use futures::StreamExt;

/// What tells whether a plan is paused: the newest of them counts.
const OF_PLANS: [&str; 4] = ["PlanPaused", "PlanResumed", "PlanCancelled", "PlanningCompleted"];
/// What tells it of a task.
const OF_TASKS: [&str; 2] = ["TaskPaused", "TaskResumed"];

/// True while nothing of the plan, or not this task, is to be begun.
pub(crate) async fn is_paused(store: &EventStore, plan: &str, task: TaskId) -> Result<bool, Error> {
    let of_plan = Query::aggregate(event::STREAM, plan);
    let newest = store.read(&of_plan.clone().of_types(OF_PLANS), Range::default().backwards(), 1).await?;
    if newest.events.first().is_some_and(|newest| newest.event_type == OF_PLANS[0]) {
        return Ok(true);
    }
    let mut told = pin!(store.records(&of_plan.of_types(OF_TASKS), Range::default().backwards()));
    while let Some(told) = told.next().await {
        match Envelope::of(told?).map(|envelope| envelope.event) {
            Ok(Event::TaskPaused { task_id, .. }) if task_id == task => return Ok(true),
            Ok(Event::TaskResumed { task_id }) if task_id == task => return Ok(false),
            Ok(_of_another) => {}
            Err(error) => tracing::warn!(%error, "an event of a plan is passed over"),
        }
    }
    Ok(false)
}
