//! Deciding: pure handlers, and why they are asked. Nothing here reads a log.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::ids::{derived_event_id, new_event_id};
use crate::position::Position;
use crate::recorded::{Metadata, Recorded};

/// A pure decider: commands into events, events into state.
///
/// It does no I/O and reads no clock, id or random source: its commands bring them. Two laws hold for every handler:
///
/// 1. after `Ok(new)`, the state equals `fold(history ++ new)`;
/// 2. after `Err`, the state is unchanged.
///
/// A runner clones it when others write to its aggregate at the same time.
pub trait Handler: Clone + Default {
    /// What is asked for.
    type Command;
    /// What happened.
    type Event;
    /// Why something is refused.
    type Error;

    /// Decides, and applies what it decided. A command that changes nothing gives no events.
    ///
    /// # Errors
    /// The refusal; nothing has changed.
    fn process(&mut self, command: Self::Command) -> Result<Vec<Self::Event>, Self::Error>;

    /// Takes one event into the state.
    fn apply(&mut self, event: &Self::Event);

    /// Where in the log the earliest applied event stands that was not yet told. Called once for each event, in their order,
    /// for states that use positions as ids or fencing tokens. Commands that share an append are decided before it is called.
    fn placed(&mut self, _position: Position) {}

    /// The state after these events; of none, the default.
    fn fold(events: &[Self::Event]) -> Self {
        let mut handler = Self::default();
        for event in events {
            handler.apply(event);
        }
        handler
    }
}

/// Why a command is given, from which the metadata and ids of its events follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    metadata: Metadata,
    pub(crate) derived: Option<Derived>,
    /// Kept with the first event.
    command: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Derived {
    process: &'static str,
    caused_at: Timestamp,
    cause: Uuid,
}

impl Cause {
    /// A new request from outside: it begins a correlation of its own.
    #[must_use]
    pub fn request() -> Self {
        let metadata = Metadata { correlation_id: Some(new_event_id()), ..Metadata::default() };
        Self { metadata, derived: None, command: None }
    }

    /// Follows from an event: its correlation is inherited and the event is the cause.
    #[must_use]
    pub fn event(cause: &Recorded) -> Self {
        let inherited = cause.metadata().ok().and_then(|metadata| metadata.correlation_id);
        let metadata = Metadata {
            correlation_id: Some(inherited.unwrap_or(cause.event_id)),
            causation_id: Some(cause.event_id),
            extra: None,
        };
        Self { metadata, derived: None, command: None }
    }

    /// Is the reaction of a process to an event. The ids of the new events are derived from it, so that a process
    /// which reacts again after a crash, or in two places, appends nothing twice.
    #[must_use]
    pub fn reaction(process: &'static str, cause: &Recorded) -> Self {
        let derived = Derived { process, caused_at: cause.created_at, cause: cause.event_id };
        Self { derived: Some(derived), ..Self::event(cause) }
    }

    /// The same, with the command kept in `extra.command` of the first event's metadata, so that it can be decided
    /// again. A command that is a pure function of its causing event need not be kept.
    #[must_use]
    pub fn keeping(self, command: Value) -> Self {
        Self { command: Some(command), ..self }
    }

    /// The metadata of the event at this place among those that follow.
    pub(crate) fn metadata_of(&self, index: usize) -> Metadata {
        match &self.command {
            Some(command) if index == 0 => {
                Metadata { extra: Some(json!({ "command": command })), ..self.metadata.clone() }
            }
            Some(_) | None => self.metadata.clone(),
        }
    }

    /// The metadata of the events that follow, but for a command that is kept with the first.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub(crate) fn event_id(&self, index: usize) -> Uuid {
        match &self.derived {
            Some(derived) => derived_event_id(derived.process, derived.caused_at, derived.cause, index),
            None => new_event_id(),
        }
    }
}
