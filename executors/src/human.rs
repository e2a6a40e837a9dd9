//! The `human` executor: a person says how a task ended, or answers a question, from any terminal.

use crewlog_mq::{Cause, EventStore, ExecuteError, Runner};
use crewlog_planner::claim::{self, Ending, TaskClaim, TaskCommand, TaskError};
use crewlog_planner::event::QuestionId;
use crewlog_planner::plan::TaskId;

use crate::liveness::SignOfLife;

/// The name under which people act.
pub const NAME: &str = "human";

/// A task's aggregate on a log.
#[must_use]
pub fn claim_of(store: &EventStore, plan: &str, task: TaskId, tags: Vec<String>) -> Runner<TaskClaim> {
    Runner::new(store.clone(), claim::STREAM, &claim::aggregate_id(plan, task), tags)
}

/// Claims a task for a person and says how it ended, in one append. A holder that is proven dead does not stand in the
/// way.
///
/// # Errors
/// [`TaskError::Held`] while somebody else is at it, [`TaskError::AttemptEnded`] when it has ended, or a fault of the
/// log.
pub async fn report(
    claim: &mut Runner<TaskClaim>,
    attempt: u32,
    life: &SignOfLife,
    now: crewlog_mq::Timestamp,
    ending: Ending,
) -> Result<(), ExecuteError<TaskError>> {
    let mut dead_epoch = None;
    loop {
        let (executor, ending) = (life.executor(NAME), ending.clone());
        let command = TaskCommand::Report { attempt, executor, now, dead_epoch, ending };
        let cause = Cause::request().keeping(command.recorded());
        match claim.execute(command, &cause).await {
            Err(ExecuteError::Refused(TaskError::Held { executor, epoch, .. }))
                if dead_epoch != Some(epoch) && life.is_dead(&executor) =>
            {
                dead_epoch = Some(epoch);
            }
            other => return other.map(drop),
        }
    }
}

/// Answers a question of a task.
///
/// # Errors
/// A fault of the log.
pub async fn answer(
    claim: &mut Runner<TaskClaim>,
    question_id: QuestionId,
    answer: String,
) -> Result<(), ExecuteError<TaskError>> {
    let command = TaskCommand::Answer { question_id, answer };
    let cause = Cause::request().keeping(command.recorded());
    claim.execute(command, &cause).await.map(drop)
}
