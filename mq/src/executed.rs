//! Results of commands.

use crate::append::Appended;
use crate::error::Error;
use crate::handler::Handler;
use crate::position::Position;

/// The error of a command that was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError<E> {
    /// The handler refused it.
    #[error("{0}")]
    Refused(E),
    /// Concurrent writers changed the basis of the decision on every attempt. Nothing was appended; try again later.
    #[error("{stream_id}/{aggregate_id} was written by others {attempts} times in a row: try again")]
    Contended {
        /// The stream.
        stream_id: String,
        /// The aggregate.
        aggregate_id: String,
        /// The number of attempts.
        attempts: usize,
    },
    /// The log refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed<E> {
    /// The events, in order; empty if nothing changed.
    pub events: Vec<E>,
    /// The position of the last event. Without events: how far the log was read, the end of the append made by other
    /// commands or writes, or the position of the repeated reaction.
    pub position: Position,
}

/// The results of several commands, in order.
pub type Executions<H> = Vec<Result<Executed<<H as Handler>::Event>, <H as Handler>::Error>>;

/// The events or the refusal of each of several commands.
pub(crate) type Decided<V, E> = Vec<Result<Vec<V>, E>>;

/// The result of each command; `appended` has the places of all their events, one after another.
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

/// The results of commands that changed nothing, or whose events are already in the log.
pub(crate) fn nothing<V, E>(decided: Decided<V, E>, position: Position) -> Vec<Result<Executed<V>, E>> {
    let unchanged = |_| Executed { events: Vec::new(), position };
    decided.into_iter().map(|decided| decided.map(unchanged)).collect()
}

/// The result of the only command.
pub(crate) fn one<V, E>(mut executed: Vec<Result<Executed<V>, E>>) -> Result<Executed<V>, ExecuteError<E>> {
    executed.pop().expect("each command has a result").map_err(ExecuteError::Refused)
}
