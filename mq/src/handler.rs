//! Pure handlers, and the causes of their commands. Nothing here reads a log.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::ids::{derived_event_id, new_event_id};
use crate::position::Position;
use crate::recorded::{Metadata, Recorded};

/// A pure decider: commands into events, events into state.
///
/// It does no I/O and reads no clock, id or random source: its commands carry such values. It writes [`Handler::decide`] and
/// [`Handler::apply`]; the rest is provided, so that the state always is the fold of the events.
///
/// A runner clones it when there are concurrent writers to its aggregate.
pub trait Handler: Clone + Default {
    /// The type of commands.
    type Command;
    /// The type of events.
    type Event;
    /// The type of refusals.
    type Error;

    /// The events that a command leads to in this state. A command that changes nothing gives none.
    ///
    /// # Errors
    /// The refusal.
    fn decide(&self, command: Self::Command) -> Result<Vec<Self::Event>, Self::Error>;

    /// Takes one event into the state.
    fn apply(&mut self, event: &Self::Event);

    /// Tells the handler the log position of the first applied event that has none yet. Called once per event, in
    /// order, for states that use positions as ids or fencing tokens. Commands that share an append are decided
    /// before it is called.
    fn placed(&mut self, _position: Position) {}

    /// The events that follow from a decision, in the state with the events so far, of which `last` are the newest. It is
    /// called until it gives none. All of them are one append.
    fn follow(&self, _last: &[Self::Event]) -> Vec<Self::Event> {
        Vec::new()
    }

    /// Decides on a command, and applies the resulting events.
    ///
    /// # Errors
    /// The refusal; nothing has changed.
    fn process(&mut self, command: Self::Command) -> Result<Vec<Self::Event>, Self::Error> {
        let (mut events, mut n_applied) = (self.decide(command)?, 0);
        loop {
            events[n_applied..].iter().for_each(|event| self.apply(event));
            let following = self.follow(&events[n_applied..]);
            n_applied = events.len();
            if following.is_empty() {
                return Ok(events);
            }
            events.extend(following);
        }
    }

    /// The state after these events; the default if there are none.
    fn fold(events: &[Self::Event]) -> Self {
        let mut handler = Self::default();
        for event in events {
            handler.apply(event);
        }
        handler
    }
}

/// The cause of a command; the metadata and ids of its events derive from it.
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
    /// A new request from outside: it starts its own correlation.
    #[must_use]
    pub fn request() -> Self {
        let metadata = Metadata { correlation_id: Some(new_event_id()), ..Metadata::default() };
        Self { metadata, derived: None, command: None }
    }

    /// The command follows from an event: it inherits its correlation and has it as its cause.
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

    /// The command is the reaction of a process to an event. The ids of the new events derive from that event, so a
    /// process that reacts again after a crash, or in two places, appends nothing twice.
    #[must_use]
    pub fn reaction(process: &'static str, cause: &Recorded) -> Self {
        let derived = Derived { process, caused_at: cause.created_at, cause: cause.event_id };
        Self { derived: Some(derived), ..Self::event(cause) }
    }

    /// Stores the command in `extra.command` of the first event's metadata, so that it can be decided again. A
    /// command that is a pure function of its causing event need not be stored.
    #[must_use]
    pub fn keeping(self, command: Value) -> Self {
        Self { command: Some(command), ..self }
    }

    /// Gives its events this correlation, by which a later call finds them.
    #[must_use]
    pub fn correlated(mut self, id: Uuid) -> Self {
        self.metadata.correlation_id = Some(id);
        self
    }

    /// Stores its author in `extra.by` of the metadata of each event.
    #[must_use]
    pub fn by(mut self, by: &Value) -> Self {
        self.metadata.extra = Some(json!({ "by": by }));
        self
    }

    /// The metadata of the resulting event at this index.
    #[must_use]
    pub fn metadata_of(&self, index: usize) -> Metadata {
        let mut metadata = self.metadata.clone();
        if let Some(command) = self.command.as_ref().filter(|_| index == 0) {
            metadata.extra.get_or_insert_with(|| json!({}))["command"] = command.clone();
        }
        metadata
    }

    /// The metadata of the resulting events, except the command stored with the first.
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
