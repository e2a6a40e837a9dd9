//! Deciding: pure handlers, and the short loop that runs one against a log.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::event::Event;
use crate::ids::{derived_event_id, new_event_id};
use crate::position::{Expected, Position};
use crate::query::{Query, Range};
use crate::record::{Append, Appended, Metadata, NewEvent, Recorded};
use crate::store::EventStore;

/// How often a decision is made anew because others wrote to the aggregate meanwhile.
const ATTEMPTS_MAX: usize = 16;
/// How many events of an aggregate are read at a time.
const CATCH_UP_PAGE: usize = 1000;

/// A pure decider: commands into events, events into state.
///
/// It does no I/O and reads no clock, id or random source; what it needs of them comes in its commands. Two laws
/// hold for every handler:
///
/// 1. after `Ok(new)`, the state equals `fold(history ++ new)`;
/// 2. after `Err`, the state is unchanged.
pub trait Handler: Default {
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
    derived: Option<Derived>,
    /// Kept with the first event.
    command: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Derived {
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
    fn metadata_of(&self, index: usize) -> Metadata {
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

    fn event_id(&self, index: usize) -> Uuid {
        match &self.derived {
            Some(derived) => derived_event_id(derived.process, derived.caused_at, derived.cause, index),
            None => new_event_id(),
        }
    }
}

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError<E> {
    /// The handler refused it.
    #[error(transparent)]
    Refused(E),
    /// Others wrote to the aggregate each time. Nothing was appended; try again later.
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
    /// Where the last of them stands. When there is none: where the aggregate was read to, or where the log has the
    /// reaction that was repeated.
    pub position: Position,
}

/// A handler on one aggregate of a log, kept warm: it reads only what is new to it.
pub struct Runner<H> {
    store: EventStore,
    query: Query,
    tags: Vec<String>,
    state: State<H>,
}

/// What is known of the aggregate.
#[derive(Default)]
struct State<H> {
    handler: H,
    sequence: i64,
    read_to: Position,
}

impl<H: Handler> Runner<H>
where
    H::Command: Clone,
    H::Event: Event,
{
    /// A handler on `stream_id/aggregate_id`. Its events will bear `tags`.
    #[must_use]
    pub fn new(store: EventStore, stream_id: &str, aggregate_id: &str, tags: Vec<String>) -> Self {
        let query = Query::aggregate(stream_id, aggregate_id);
        Self { store, query, tags, state: State::default() }
    }

    /// The state as last read; after an append that failed it is the default until the aggregate is read again.
    #[must_use]
    pub fn handler(&self) -> &H {
        &self.state.handler
    }

    /// The sequence of the last event in the state; 0 for an aggregate without events.
    #[must_use]
    pub fn sequence(&self) -> i64 {
        self.state.sequence
    }

    /// How far the aggregate has been read.
    #[must_use]
    pub fn position(&self) -> Position {
        self.state.read_to
    }

    /// Reads what is new in the aggregate.
    ///
    /// # Errors
    /// An event that cannot be decoded, or a fault of the database.
    pub async fn catch_up(&mut self) -> Result<(), Error> {
        loop {
            let page = self.store.read(&self.query, Range::after(self.state.read_to), CATCH_UP_PAGE).await?;
            for recorded in &page.events {
                self.state.handler.apply(&recorded.decode()?);
                self.state.sequence = recorded.sequence;
                self.state.read_to = recorded.position;
            }
            self.state.read_to = page.next;
            if !page.more {
                return Ok(());
            }
        }
    }

    /// Decides a command on the newest state and appends what it decided, in one append.
    ///
    /// When others wrote meanwhile it reads on and decides again, a bounded number of times. A reaction that is in
    /// the log already gives no events.
    ///
    /// # Errors
    /// [`ExecuteError::Refused`] by the handler, [`ExecuteError::Contended`], or a fault of the store.
    pub async fn execute(
        &mut self,
        command: H::Command,
        cause: &Cause,
    ) -> Result<Executed<H::Event>, ExecuteError<H::Error>> {
        for _ in 0..ATTEMPTS_MAX {
            self.catch_up().await?;
            // Decided events are in the state before they are in the log. So the state is put back only when both
            // agree: a failed append, or a caller that drops this future, leaves one that is read anew.
            let mut state = std::mem::take(&mut self.state);
            let decided = state.handler.process(command.clone());
            let events = match decided {
                Ok(events) if !events.is_empty() => events,
                unchanged => {
                    let position = state.read_to;
                    self.state = state;
                    return unchanged.map(|events| Executed { events, position }).map_err(ExecuteError::Refused);
                }
            };
            match self.append(&events, state.sequence, cause).await {
                Ok(appended) if !appended.repeated => {
                    let position = appended.last();
                    state.sequence = appended.places.last().map_or(state.sequence, |place| place.sequence);
                    state.read_to = position;
                    self.state = state;
                    return Ok(Executed { events, position });
                }
                // Another host decided the same on the same state, so this is the state after it.
                Ok(repeated) if follows(&repeated, state.sequence) => {
                    let position = repeated.last();
                    state.sequence += i64::try_from(repeated.places.len()).unwrap_or(0);
                    state.read_to = position;
                    self.state = state;
                    return Ok(Executed { events: Vec::new(), position });
                }
                Ok(repeated) => return self.repeated(repeated.last()).await,
                Err(Error::SequenceMismatch { .. }) => {}
                Err(error @ (Error::IdReused { position, .. } | Error::PartlyKnown { position, .. }))
                    if cause.derived.is_some() =>
                {
                    tracing::warn!(%error, "this reaction is in the log with other content; it is left as it is");
                    return self.repeated(position).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(ExecuteError::Contended {
            stream_id: self.query.stream_id.clone(),
            aggregate_id: self.query.aggregate_id.clone().unwrap_or_default(),
            attempts: ATTEMPTS_MAX,
        })
    }

    /// The reaction is in the log at `position`: the state is what the log says.
    async fn repeated(&mut self, position: Position) -> Result<Executed<H::Event>, ExecuteError<H::Error>> {
        self.catch_up().await?;
        Ok(Executed { events: Vec::new(), position })
    }

    async fn append(&self, events: &[H::Event], sequence: i64, cause: &Cause) -> Result<Appended, Error> {
        let events = events.iter().enumerate().map(|(index, event)| {
            let event = NewEvent::of(event, &cause.metadata_of(index))?.with_id(cause.event_id(index));
            Ok(event.with_tags(self.tags.iter().cloned()))
        });
        let events = events.collect::<Result<Vec<_>, Error>>()?;
        let aggregate_id = self.query.aggregate_id.as_deref().unwrap_or_default();
        let expected = Expected::Sequence(sequence);
        self.store.append(Append::to(&self.query.stream_id, aggregate_id, expected, events)).await
    }
}

/// True when an append stands right behind this sequence of its aggregate.
fn follows(appended: &Appended, sequence: i64) -> bool {
    appended.places.iter().zip(sequence + 1..).all(|(place, expected)| place.sequence == expected)
}
