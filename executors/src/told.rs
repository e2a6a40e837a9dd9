//! What an agent is told of its plan, where that stands apart from the dispatch. It is read by who carries the task out, and
//! only where it came with that dispatch: whatever else the log has of it is another's word.

use crewlog_mq::{Error, EventStore, Position, Query, Range};
use crewlog_planner::claim;
use crewlog_planner::event::{Parameters, TOLD_STREAM, told_tag};
use crewlog_planner::plan::TaskId;

use crate::backoff::Backoff;
use crate::planning::wait_out;

/// What has become of what an agent is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is with the dispatch.
    Whole,
    /// It did not come with the dispatch, and never will.
    Lost,
    /// It can never be read.
    Unreadable,
}

/// Puts back what stands apart of the dispatch at a position. Where it stands in the log, it stands behind the dispatch in the
/// same append, so it is there as soon as the dispatch is; what it does not put back is lost.
///
/// # Errors
/// A fault of the log, or [`Error::Decode`] when it cannot be read.
pub async fn join(
    store: &EventStore,
    (plan, task, attempt): (&str, TaskId, u32),
    dispatched: Position,
    parameters: &mut Parameters,
) -> Result<(), Error> {
    if !parameters.told_apart {
        return Ok(());
    }
    let query = Query::aggregate(TOLD_STREAM, &claim::aggregate_id(plan, task)).and_tag(told_tag(plan));
    let next = store.read(&query, Range::after(dispatched), 1).await?.events;
    if let Some(told) = next.first().filter(|told| told.append_start <= dispatched) {
        parameters.join(attempt, told.decode()?);
    }
    Ok(())
}

/// The same, however long the log takes.
pub(crate) async fn join_until_read(
    store: &EventStore,
    dispatch: (&str, TaskId, u32),
    dispatched: Position,
    parameters: &mut Parameters,
) -> Told {
    let mut backoff = Backoff::new();
    loop {
        match join(store, dispatch, dispatched, parameters).await {
            Ok(()) if parameters.told_apart => return Told::Lost,
            Ok(()) => return Told::Whole,
            Err(error) if !wait_out(&error, &mut backoff).await => return Told::Unreadable,
            Err(_) => {}
        }
    }
}
