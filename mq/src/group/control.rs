//! The current state of a group from its own events: commands are decided on it, and workers watch it. It changes
//! only those cells that change together with a decision.

use std::sync::Arc;

use futures::StreamExt;
use tokio::sync::watch;

use super::event::{GROUPS_STREAM, GroupEvent};
use super::state::{GROUP_NAME_BYTES_MAX, GroupCommand, GroupError, GroupState};
use crate::error::{Error, Result};
use crate::executed::ExecuteError;
use crate::handler::Handler;
use crate::position::Position;
use crate::query::Query;
use crate::runner::Runner;
use crate::store::EventStore;
use crate::stream::Start;

/// A group's state, and the position it is read up to.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) group: GroupState,
    /// The sequence of the last event.
    pub(super) sequence: i64,
    pub(super) position: Position,
}

impl Known {
    /// The state of a group now.
    pub(super) async fn read(store: &EventStore, name: &str) -> Result<Self> {
        let mut runner = runner(store, name);
        runner.catch_up().await?;
        Ok(Self { group: runner.handler().clone(), sequence: runner.sequence(), position: runner.position() })
    }
}

/// A group's handler on its aggregate.
pub(super) fn runner(store: &EventStore, name: &str) -> Runner<GroupState> {
    Runner::new(store.clone(), GROUPS_STREAM, name, Vec::new())
}

/// Decides a command and appends the resulting events.
pub(super) async fn execute(
    store: &EventStore,
    name: &str,
    command: GroupCommand,
) -> Result<Vec<GroupEvent>, ExecuteError<GroupError>> {
    check_name(name).map_err(ExecuteError::Refused)?;
    Ok(runner(store, name).execute(command, &crate::handler::Cause::request()).await?.events)
}

/// Keeps `known` up to date until an event cannot be decoded: a newer program has written it, and this one must not
/// act on the group any more.
pub(super) async fn follow(store: &EventStore, name: &str, known: &watch::Sender<Arc<Known>>) -> Error {
    let after = known.borrow().position;
    let mut events = std::pin::pin!(store.follow(&Query::aggregate(GROUPS_STREAM, name), Start::After(after)));
    let mut last = Error::Closed;
    // The stream retries after errors; its last item is the reason why it ended.
    while let Some(item) = events.next().await {
        let recorded = match item {
            Ok(recorded) => recorded,
            Err(error) => {
                last = error;
                continue;
            }
        };
        let event = match recorded.decode() {
            Ok(event) => event,
            Err(error) => return error,
        };
        known.send_modify(|known| {
            let known = Arc::make_mut(known);
            known.group.apply(&event);
            (known.sequence, known.position) = (recorded.sequence, recorded.position);
        });
    }
    last
}

/// A name must be easy to type, and fit into the names of cells.
pub(super) fn check_name(name: &str) -> Result<(), GroupError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    if name.is_empty() || name.len() > GROUP_NAME_BYTES_MAX || !name.chars().all(is_allowed) {
        let reason =
            format!("a group's name is of 1 to {GROUP_NAME_BYTES_MAX} letters, digits and -_.: and {name:?} is not");
        return Err(GroupError::Invalid { reason });
    }
    Ok(())
}
