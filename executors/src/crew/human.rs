//! The `human` executor: a person reports from any terminal how a task ended.

use crewlog_mq::{EventStore, ExecuteError, Runner};
use crewlog_planner::claim::{Claim, Ending, TaskCommand, TaskError, TaskLease};

use crate::caller::request;
use crate::claiming::execute_unless_proven;
use crate::liveness::LivenessLock;

/// The name under which people act.
pub const NAME: &str = "human";

/// Claims a task for a person and reports its end, in one append. A holder that is proven dead is ignored.
///
/// # Errors
/// [`TaskError::Held`] while another executor holds it, [`TaskError::AttemptEnded`] after its end, or a fault of the
/// log.
pub async fn report(
    claim: &mut Runner<TaskLease>,
    attempt: u32,
    store: &EventStore,
    life: &LivenessLock,
    ending: Ending,
) -> Result<(), ExecuteError<TaskError>> {
    let mut dead_epoch = None;
    loop {
        let (executor, ending, now) = (life.executor(NAME), ending.clone(), store.now());
        let by = Claim { attempt, executor, now, dead_epoch, ..Claim::default() };
        let command = |_: &TaskLease| TaskCommand::Report { claim: by, ending };
        match execute_unless_proven(store, claim, life, command, None, &request()).await {
            Err(ExecuteError::Refused(TaskError::Held { executor, epoch, .. }))
                if dead_epoch != Some(epoch) && life.is_dead(&executor) =>
            {
                dead_epoch = Some(epoch);
            }
            other => return other,
        }
    }
}
