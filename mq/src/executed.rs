//! What commands led to.

use crate::append::Appended;
use crate::error::Error;
use crate::handler::Handler;
use crate::position::Position;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError<E> {
    /// The handler refused it.
    #[error("{0}")]
    Refused(E),
    /// Others wrote what the decision depends on each time. Nothing was appended; try again later.
    #[error("{stream_id}/{aggregate_id} was written by others {attempts} times in a row: try again")]
    Contended {
        /// The stream.
        stream_id: String,
        /// The aggregate.
        aggregate_id: String,
        /// How often it was tried.
        attempts: usize,
    },
    /// The log refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
}

/// What a command led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed<E> {
    /// The events, in order; none when nothing changed.
    pub events: Vec<E>,
    /// The position of the last event. Without any: how far the log was read, or where the repeated reaction stands.
    pub position: Position,
}

/// What several commands led to, in their order.
pub type Executions<H> = Vec<Result<Executed<<H as Handler>::Event>, <H as Handler>::Error>>;

/// The events of each of several commands, or its refusal.
pub(crate) type Decided<V, E> = Vec<Result<Vec<V>, E>>;

/// The position of the n-th event of an append that has so many own events.
pub(crate) fn placed(appended: &Appended, n: usize, n_events: usize) -> Position {
    let earlier = n.checked_sub(1).filter(|_| n < n_events).and_then(|index| appended.places.get(index));
    earlier.map_or(appended.last(), |place| place.position)
}

/// What each command led to. `position_of` gives the position of the last of so many events of the append.
pub(crate) fn executed<V, E>(
    decided: Decided<V, E>,
    position_of: impl Fn(usize) -> Position,
) -> Vec<Result<Executed<V>, E>> {
    let mut n_events = 0;
    let executed = decided.into_iter().map(|decided| {
        let events = decided?;
        n_events += events.len();
        let upto = if events.is_empty() { 0 } else { n_events };
        Ok(Executed { events, position: position_of(upto) })
    });
    executed.collect()
}

/// The same without events, since the log has them already.
pub(crate) fn nothing<V, E>(decided: Decided<V, E>) -> Decided<V, E> {
    decided.into_iter().map(|decided| decided.map(|_| Vec::new())).collect()
}

/// What the only command led to.
pub(crate) fn one<V, E>(mut executed: Vec<Result<Executed<V>, E>>) -> Result<Executed<V>, ExecuteError<E>> {
    let executed = executed.pop().expect("each command has a result");
    executed.map_err(ExecuteError::Refused)
}
