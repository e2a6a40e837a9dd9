//! Opens, reads and commands a plan on the log, with retries.

use std::collections::BTreeSet;

use crewlog_mq::{Backoff, Cause, Error, EventStore, ExecuteError, Recorded, Runner, retrying};
use crewlog_planner::claim;
use crewlog_planner::event::{self, Command};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::{Planner, PlannerError};
use serde_json::Value;

use crate::history::{ForkPoint, History};

/// The planner of a plan on a log. A fork's planner begins with the history it shares with its parent.
///
/// # Errors
/// A fault of the log while the plan's ancestors are read.
pub async fn planner_of(store: &EventStore, plan: &str, tags: Vec<String>) -> Result<Runner<Planner>, Error> {
    let history = History::of(store, plan).await?;
    Ok(Runner::new(store.clone(), event::STREAM, plan, tags).behind(history.prefix()).with_snapshots())
}

/// The planner of a fork that is not in the log yet: its first command is [`Command::Fork`] with the parent and position
/// of the point.
pub fn planner_of_fork(store: &EventStore, point: &ForkPoint, plan: &str, tags: Vec<String>) -> Runner<Planner> {
    Runner::new(store.clone(), event::STREAM, plan, tags).behind(point.prefix.clone())
}

/// Warns of an item of a stream that is no event. The stream continues.
pub(crate) fn warn_of_item(error: &Error) {
    let is_unreadable = matches!(error, Error::Decode { .. });
    error.warn(if is_unreadable { "skipped an unreadable event of a plan" } else { "an event cannot be read yet" });
}

/// The tasks that an event can change; `None` means all.
pub fn tasks_of(recorded: &Recorded) -> Option<BTreeSet<TaskId>> {
    if recorded.stream_id != event::STREAM {
        let task = claim::split_aggregate_id(&recorded.aggregate_id).filter(|_| recorded.stream_id == claim::STREAM);
        return Some(task.map(|(_, task)| task).into_iter().collect());
    }
    match recorded.event_type.as_str() {
        "TasksPlanned" | "TasksAmended" | "PlanForked" => None,
        _of_named_tasks => {
            let data: Value = serde_json::from_str(&recorded.data).unwrap_or_default();
            let many = data["task_ids"].as_array().into_iter().flatten();
            Some(many.chain([&data["task_id"]]).filter_map(Value::as_u64).map(TaskId).collect())
        }
    }
}

/// Reads a plan, retrying until the log works.
pub(crate) async fn read_plan(store: &EventStore, plan: &str, tags: Vec<String>) -> Result<Runner<Planner>, Error> {
    let read = || async {
        let mut planner = planner_of(store, plan, tags.clone()).await?;
        planner.catch_up().await.map(|()| planner)
    };
    retrying(read).await
}

/// Sends a command to a plan, retrying until the log works, and returns the refusal if there is one.
pub(crate) async fn execute_retrying(
    planner: &mut Runner<Planner>,
    command: Command,
    cause: &Cause,
) -> Result<Option<PlannerError>, Error> {
    let cause = cause.clone().keeping(command.recorded());
    let mut backoff = Backoff::new();
    loop {
        match planner.execute(command.clone(), &cause).await {
            Ok(_) => return Ok(None),
            Err(ExecuteError::Refused(refusal)) => return Ok(Some(refusal)),
            Err(ExecuteError::Contended { .. }) => {}
            Err(ExecuteError::Store(error)) => {
                if !backoff.wait_to_retry(&error).await {
                    return Err(error);
                }
            }
        }
    }
}
