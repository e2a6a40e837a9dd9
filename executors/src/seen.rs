//! The dispatches and claims that a worker has seen. After the log went back, the tasks of those that are lost may have run:
//! they are interrupted in the log as it is now, and none runs again unasked.

use std::collections::VecDeque;

use crewlog_mq::{
    Backoff, Cause, Error, EventStore, ExecuteError, Expected, NewEvent, Position, Recorded, new_event_id,
};
use crewlog_planner::claim::{self, Executor, TaskCommand, TaskEvent};
use crewlog_planner::crew::losses::{self, LossEvent};
use crewlog_planner::event::{self, Event};
use crewlog_planner::plan::TaskId;

use crate::claiming::claim_of;

/// The most that are kept: a fail-over loses the last seconds of a log.
const SEEN_MAX: usize = 20_000;

/// A dispatch, or a claim.
#[derive(Debug, Clone)]
struct Run {
    position: Position,
    plan: String,
    task: TaskId,
    tags: Vec<String>,
    attempt: u32,
    /// 1 for a dispatch: an executor may have claimed it before that was seen.
    epoch: u64,
    executor: Executor,
}

/// Those that were seen last.
#[derive(Debug, Default)]
pub(crate) struct Seen(VecDeque<Run>);

impl Seen {
    pub(crate) fn take(&mut self, recorded: &Recorded) {
        let Some((plan, task, attempt, epoch, executor)) = run_of(recorded) else { return };
        if self.0.len() == SEEN_MAX {
            self.0.pop_front();
        }
        let (position, tags) = (recorded.position, recorded.tags.clone());
        self.0.push_back(Run { position, plan, task, tags, attempt, epoch, executor });
    }

    /// Records that the log went back, and interrupts the tasks whose dispatch or claim is lost.
    pub(crate) async fn interrupt(self, store: &EventStore, host: &str, (known, head): (Position, Position)) {
        let mut backoff = Backoff::new();
        while let Err(error) = self.try_to_interrupt(store, host, (known, head)).await {
            if !backoff.wait_to_retry(&error).await {
                tracing::error!(%error, "tasks that ran in the lost part of the log may run again");
                return;
            }
        }
    }

    async fn try_to_interrupt(
        &self,
        store: &EventStore,
        host: &str,
        (known, head): (Position, Position),
    ) -> Result<(), Error> {
        let mut n_tasks = 0;
        // The newest first: a claim says more than its dispatch.
        for Run { plan, task, tags, attempt, epoch, executor, .. } in
            self.0.iter().rev().filter(|run| run.position > head)
        {
            let mut claim = claim_of(store, plan, *task, tags.clone());
            let command = TaskCommand::Interrupt { attempt: *attempt, epoch: *epoch, executor: executor.clone() };
            let cause = Cause::request().keeping(command.recorded());
            loop {
                match claim.execute(command.clone(), &cause).await {
                    Ok(executed) => n_tasks += u64::from(!executed.events.is_empty()),
                    Err(ExecuteError::Contended { .. }) => continue,
                    Err(ExecuteError::Refused(_)) => {}
                    Err(ExecuteError::Store(error)) => return Err(error),
                }
                break;
            }
        }
        tracing::warn!(
            "the log went back from position {known} to {head}: {n_tasks} tasks may have run and are interrupted"
        );
        let lost = LossEvent::LogWentBack { known, head, n_tasks, at: store.now() };
        let lost = NewEvent::of(&lost, Cause::request().metadata())?.with_id(new_event_id());
        store.append(crewlog_mq::Append::to(losses::STREAM, host, Expected::Any, vec![lost])).await.map(drop)
    }
}

/// The plan, the task, the dispatch, the epoch and the executor of an event that lets a task run.
fn run_of(recorded: &Recorded) -> Option<(String, TaskId, u32, u64, Executor)> {
    match recorded.stream_id.as_str() {
        event::STREAM if recorded.event_type == "TaskDispatched" => match recorded.decode().ok()? {
            Event::TaskDispatched { task_id, attempt, .. } => {
                let unknown = || "unknown".to_owned();
                let executor = Executor { name: unknown(), host: unknown(), worker: String::new() };
                Some((recorded.aggregate_id.clone(), task_id, attempt, 1, executor))
            }
            _another => None,
        },
        claim::STREAM if recorded.event_type == "TaskClaimed" => match recorded.decode().ok()? {
            TaskEvent::TaskClaimed { attempt, executor, epoch, only_reports: false, .. } => {
                let (plan, task) = claim::split_aggregate_id(&recorded.aggregate_id)?;
                Some((plan.to_owned(), task, attempt, epoch, executor))
            }
            _another => None,
        },
        _another => None,
    }
}
