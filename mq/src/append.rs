//! Events for the log, and the result of an append.

use serde_json::value::RawValue;
use uuid::Uuid;

use crate::cell::CellChange;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::expected::Expected;
use crate::ids::new_event_id;
use crate::limits::{self, APPEND_CELLS_MAX, APPEND_EVENTS_MAX, check_name, check_sizes};
use crate::position::{Place, Position};
use crate::query::{Parts, Query};
use crate::recorded::{Causes, Metadata, Recorded};

/// An event that is not in the log yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub(crate) event_id: Uuid,
    pub(crate) event_type: String,
    pub(crate) event_version: String,
    pub(crate) data: String,
    pub(crate) metadata: String,
    pub(crate) tags: Vec<String>,
    /// Taken from its metadata.
    pub(crate) causes: Causes,
}

impl NewEvent {
    /// Creates an event from its parts. `data` must be JSON and is kept byte for byte.
    ///
    /// # Errors
    /// [`Error::Encode`] if `data` is not JSON, or if the metadata is nested too deeply to be read back.
    pub fn from_json(event_type: &str, event_version: &str, data: String, metadata: &Metadata) -> Result<Self> {
        if let Err(source) = serde_json::from_str::<&RawValue>(&data) {
            return Err(Error::encode(event_type, source));
        }
        Ok(Self {
            event_id: new_event_id(),
            event_type: event_type.to_owned(),
            event_version: event_version.to_owned(),
            data,
            metadata: metadata.encode()?,
            tags: Vec::new(),
            causes: Causes::of(metadata),
        })
    }

    /// The event as stored. Its aggregate is the stream and the id of `write`.
    pub(crate) fn recorded(
        self,
        (stream_id, aggregate_id): (String, String),
        Place { position, sequence }: Place,
        append_start: Position,
        created_at: Timestamp,
    ) -> Recorded {
        let Self { event_id, event_type, event_version, data, metadata, tags, causes: _ } = self;
        Recorded {
            position,
            event_id,
            stream_id,
            aggregate_id,
            sequence,
            event_type,
            event_version,
            data,
            metadata,
            tags,
            created_at,
            append_start,
        }
    }

    /// Sets the id. Appending an id again with equal content changes nothing.
    #[must_use]
    pub fn with_id(mut self, event_id: Uuid) -> Self {
        self.event_id = event_id;
        self
    }

    /// Sets the tags, a set that is kept sorted.
    #[must_use]
    pub fn with_tags<I: IntoIterator<Item = S>, S: Into<String>>(mut self, tags: I) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self.tags.sort_unstable();
        self.tags.dedup();
        self
    }

    /// The event id.
    #[must_use]
    pub fn event_id(&self) -> Uuid {
        self.event_id
    }

    /// The name of the event's variant.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// The event's fields as JSON.
    #[must_use]
    pub fn data(&self) -> &str {
        &self.data
    }

    /// The metadata as JSON.
    #[must_use]
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The tags, sorted.
    #[must_use]
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// Replaces the JSON, which is kept byte for byte.
    ///
    /// # Errors
    /// [`Error::Encode`] if `data` is not JSON, or `metadata` does not parse as [`Metadata`].
    pub fn with_json(mut self, data: String, metadata: String) -> Result<Self> {
        let parsed = serde_json::from_str::<&RawValue>(&data).and_then(|_| serde_json::from_str::<Metadata>(&metadata));
        let parsed = parsed.map_err(|source| Error::encode(&self.event_type, source))?;
        (self.data, self.metadata, self.causes) = (data, metadata, Causes::of(&parsed));
        Ok(self)
    }

    fn check_limits(&self) -> Result<()> {
        check_name("event type", &self.event_type)?;
        check_name("event version", &self.event_version)?;
        check_sizes(&self.event_type, &self.data, &self.metadata, &self.tags)
    }

    /// True if the event would match the query once `write` is appended.
    pub(crate) fn matches(&self, write: &Write, query: &Query) -> bool {
        query.matches_parts(&Parts {
            stream_id: &write.stream_id,
            aggregate_id: &write.aggregate_id,
            event_type: &self.event_type,
            tags: &self.tags,
            event_id: self.event_id,
            causes: &|| self.causes,
        })
    }

    /// True if a recorded event with the same id equals this one, which makes the append a repetition. Metadata may
    /// differ: each attempt creates its own.
    pub(crate) fn is_same(&self, write: &Write, recorded: &Recorded) -> bool {
        recorded.stream_id == write.stream_id
            && recorded.aggregate_id == write.aggregate_id
            && recorded.event_type == self.event_type
            && recorded.event_version == self.event_version
            && recorded.data == self.data
            && recorded.tags == self.tags
    }
}

/// Events for one aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The stream of the aggregate.
    pub stream_id: String,
    /// The aggregate in the stream.
    pub aggregate_id: String,
    /// The required state of the aggregate.
    pub expected: Expected,
    /// In order; they get consecutive sequences and positions.
    pub events: Vec<NewEvent>,
}

/// Writes (at most one per aggregate), cell changes and at most one condition, appended atomically.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Append {
    pub(crate) writes: Vec<Write>,
    pub(crate) none_matching: Option<NoneMatching>,
    pub(crate) cells: Vec<CellChange>,
    /// The generation of the log that the decision is based on, if it is based on one.
    pub(crate) generation: Option<u64>,
}

impl Append {
    /// Creates an append of one write.
    #[must_use]
    pub fn to(stream_id: &str, aggregate_id: &str, expected: Expected, events: Vec<NewEvent>) -> Self {
        Self::default().and(stream_id, aggregate_id, expected, events)
    }

    /// Adds a write.
    #[must_use]
    pub fn and(mut self, stream_id: &str, aggregate_id: &str, expected: Expected, events: Vec<NewEvent>) -> Self {
        self.writes.push(Write {
            stream_id: stream_id.to_owned(),
            aggregate_id: aggregate_id.to_owned(),
            expected,
            events,
        });
        self
    }

    /// Adds a condition: the append is refused if a matching event comes after this position.
    #[must_use]
    pub fn none_matching(mut self, query: Query, after: Position) -> Self {
        self.none_matching = Some(NoneMatching { query, after });
        self
    }

    /// Adds a change of a cell. An append may consist of cell changes alone.
    #[must_use]
    pub fn cell(mut self, change: CellChange) -> Self {
        self.cells.push(change);
        self
    }

    /// The log refuses the append with [`Error::WentBack`] in any later generation.
    pub(crate) fn decided_in(self, generation: u64) -> Self {
        Self { generation: Some(generation), ..self }
    }

    /// The writes, in order.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The writes, to change them.
    pub fn writes_mut(&mut self) -> &mut [Write] {
        &mut self.writes
    }

    /// Replaces each event by the result of `change`, which gets the stream and the aggregate.
    ///
    /// # Errors
    /// The first error of `change`.
    pub fn map_events(mut self, mut change: impl FnMut(&str, &str, NewEvent) -> Result<NewEvent>) -> Result<Self> {
        for Write { stream_id, aggregate_id, events, .. } in &mut self.writes {
            let changed = std::mem::take(events).into_iter().map(|event| change(stream_id, aggregate_id, event));
            *events = changed.collect::<Result<_>>()?;
        }
        Ok(self)
    }

    /// Refuses an append that is invalid in any log: empty, with a duplicate aggregate, id or cell, or beyond a limit.
    ///
    /// # Errors
    /// [`Error::InvalidAppend`] or [`Error::LimitPassed`].
    pub fn check(&self) -> Result<()> {
        let n_events: usize = self.writes.iter().map(|write| write.events.len()).sum();
        if n_events == 0 && self.cells.is_empty() {
            return Err(Error::InvalidAppend { reason: "it has no events".into() });
        }
        limits::check("append_events_max", "the events of the append", n_events, APPEND_EVENTS_MAX)?;
        let mut aggregates = std::collections::HashSet::new();
        let mut ids = std::collections::HashSet::new();
        for write in &self.writes {
            check_name("stream id", &write.stream_id)?;
            check_name("aggregate id", &write.aggregate_id)?;
            if !aggregates.insert((&write.stream_id, &write.aggregate_id)) {
                let reason = format!("aggregate {}/{} is written twice", write.stream_id, write.aggregate_id);
                return Err(Error::InvalidAppend { reason });
            }
            for event in &write.events {
                event.check_limits()?;
                // A single event cannot be a duplicate.
                if n_events > 1 && !ids.insert(event.event_id) {
                    let reason = format!("event id {} occurs twice", event.event_id);
                    return Err(Error::InvalidAppend { reason });
                }
            }
        }
        if let Some(condition) = &self.none_matching {
            condition.query.check()?;
        }
        self.check_cells()
    }

    fn check_cells(&self) -> Result<()> {
        limits::check("append_cells_max", "the cells of the append", self.cells.len(), APPEND_CELLS_MAX)?;
        let mut names = std::collections::HashSet::new();
        for change in &self.cells {
            change.check()?;
            if !names.insert((&change.space, &change.key)) {
                let reason = format!("cell {}/{} is changed twice", change.space, change.key);
                return Err(Error::InvalidAppend { reason });
            }
        }
        Ok(())
    }
}

/// An acknowledged append: it is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// One for each event, in the order of the writes and of their events.
    pub places: Vec<Place>,
    /// The new versions of the cells, in the order of the changes; empty for a repetition, which changes no cell.
    pub cells: Vec<i64>,
    /// The log time of the append.
    pub created_at: Timestamp,
    /// True if all ids were already in the log with equal content, and nothing was written.
    pub repeated: bool,
}

impl Appended {
    /// The position of its last event.
    #[must_use]
    pub fn last(&self) -> Position {
        self.places.last().map_or(Position(0), |place| place.position)
    }
}

/// A condition on an append: it is refused if a matching event comes after a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoneMatching {
    /// Matches the events that must be absent.
    pub query: Query,
    /// The position up to which the writer has read.
    pub after: Position,
}
