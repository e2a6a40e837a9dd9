//! What an agent is told of its plan, where that stands apart from the dispatch. It is read by who carries the task out.

use crewlog_mq::{Envelope, Error, EventStore, Query, Range};
use crewlog_planner::claim;
use crewlog_planner::event::{Parameters, TOLD_STREAM, ToldEvent};
use crewlog_planner::plan::TaskId;

use crate::backoff::Backoff;
use crate::planning::wait_out;

/// Puts back what stands apart of a dispatch. Where it stands in the log, it is there as soon as the dispatch is.
///
/// # Errors
/// A fault of the log, or [`Error::Decode`] when it cannot be read.
pub async fn join(
    store: &EventStore,
    (plan, task, attempt): (&str, TaskId, u32),
    parameters: &mut Parameters,
) -> Result<(), Error> {
    if parameters.told_apart {
        let told = Query::aggregate(TOLD_STREAM, &claim::aggregate_id(plan, task));
        for Envelope { event, .. } in store.load::<ToldEvent>(&told, Range::default()).await? {
            parameters.join(attempt, event);
        }
    }
    Ok(())
}

/// The same, however long the log takes; false when it can never be read.
pub(crate) async fn join_until_read(
    store: &EventStore,
    (plan, task, attempt): (&str, TaskId, u32),
    parameters: &mut Parameters,
) -> bool {
    let mut backoff = Backoff::new();
    loop {
        match join(store, (plan, task, attempt), parameters).await {
            Ok(()) if parameters.told_apart => {
                tracing::warn!(plan, %task, "what the task is told is not in the log; it is left to others");
                return false;
            }
            Ok(()) => return true,
            Err(error) if !wait_out(&error, &mut backoff).await => return false,
            Err(_) => {}
        }
    }
}
