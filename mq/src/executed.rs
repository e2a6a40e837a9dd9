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
    /// The position of the last event. Without any: how far the log was read, the end of the append that other commands or writes
    /// led to, or the position of the repeated reaction.
    pub position: Position,
}

/// What several commands led to, in their order.
pub type Executions<H> = Vec<Result<Executed<<H as Handler>::Event>, <H as Handler>::Error>>;

/// The events of each of several commands, or its refusal.
pub(crate) type Decided<V, E> = Vec<Result<Vec<V>, E>>;

/// What each command led to; `appended` are the places of the events of all of them, one after another.
pub(crate) fn executed<V, E>(decided: Decided<V, E>, appended: &Appended) -> Vec<Result<Executed<V>, E>> {
    let mut n_events = 0;
    let executed = decided.into_iter().map(|decided| {
        let events = decided?;
        n_events += events.len();
        let last = if events.is_empty() { None } else { appended.places.get(n_events - 1) };
        let position = last.map_or(appended.last(), |place| place.position);
        Ok(Executed { events, position })
    });
    executed.collect()
}

/// What commands led to that changed nothing, or whose events the log has already.
pub(crate) fn nothing<V, E>(decided: Decided<V, E>, position: Position) -> Vec<Result<Executed<V>, E>> {
    let unchanged = |_| Executed { events: Vec::new(), position };
    decided.into_iter().map(|decided| decided.map(unchanged)).collect()
}

/// What the only command led to.
pub(crate) fn one<V, E>(mut executed: Vec<Result<Executed<V>, E>>) -> Result<Executed<V>, ExecuteError<E>> {
    executed.pop().expect("each command has a result").map_err(ExecuteError::Refused)
}
