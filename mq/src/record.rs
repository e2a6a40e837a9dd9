//! The plain records that cross the line between a store and its backend, without types of the user's.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::cell::CellChange;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::ids::new_event_id;
use crate::position::{Expected, Place, Position};
use crate::query::{Causes, NoneMatching, Query};
use crate::{
    APPEND_CELLS_MAX, APPEND_EVENTS_MAX, METADATA_BYTES_MAX, NAME_BYTES_MAX, PAGE_BYTES_MAX, PAYLOAD_BYTES_MAX,
    TAGS_MAX,
};

/// What is known about an event beside itself. [`crate::Runner`] fills it; callers seldom need to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Metadata {
    /// The same for everything that follows from one request.
    pub correlation_id: Option<Uuid>,
    /// The `event_id` of the event that caused this one.
    pub causation_id: Option<Uuid>,
    /// Anything else, kept unchanged.
    pub extra: Option<Value>,
}

impl Metadata {
    pub(crate) fn encode(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|source| Error::encode("metadata", source))
    }
}

/// An event that is not in the log yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    pub(crate) event_id: Uuid,
    pub(crate) event_type: String,
    pub(crate) event_version: String,
    pub(crate) data: String,
    pub(crate) metadata: String,
    pub(crate) tags: Vec<String>,
    /// As in its metadata.
    pub(crate) causes: Causes,
}

impl NewEvent {
    /// An event from its parts; `data` must be JSON, and is kept byte for byte.
    ///
    /// # Errors
    /// [`Error::Encode`] when `data` is not JSON.
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

    /// The same event with this id. Appending an id again with equal content changes nothing.
    #[must_use]
    pub fn with_id(mut self, event_id: Uuid) -> Self {
        self.event_id = event_id;
        self
    }

    /// The same event with these tags; they are a set and are kept sorted.
    #[must_use]
    pub fn with_tags<I: IntoIterator<Item = S>, S: Into<String>>(mut self, tags: I) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self.tags.sort_unstable();
        self.tags.dedup();
        self
    }

    /// Its id.
    #[must_use]
    pub fn event_id(&self) -> Uuid {
        self.event_id
    }

    /// The name of its variant.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// Its fields, as JSON.
    #[must_use]
    pub fn data(&self) -> &str {
        &self.data
    }

    /// Its metadata, as JSON.
    #[must_use]
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// Its tags, sorted.
    #[must_use]
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// The same event with other JSON. The ids in its metadata must stay as they are, since it is found by them.
    ///
    /// # Errors
    /// [`Error::Encode`] when one of the two is not JSON.
    pub fn with_json(mut self, data: String, metadata: String) -> Result<Self> {
        for json in [&data, &metadata] {
            if let Err(source) = serde_json::from_str::<&RawValue>(json) {
                return Err(Error::encode(&self.event_type, source));
            }
        }
        (self.data, self.metadata) = (data, metadata);
        Ok(self)
    }

    fn check_limits(&self) -> Result<()> {
        check_sizes(&self.data, &self.metadata, &self.tags)?;
        check_name("event type", &self.event_type)?;
        check_name("event version", &self.event_version)
    }
}

/// The limits of what an event carries beside its names.
pub(crate) fn check_sizes(data: &str, metadata: &str, tags: &[String]) -> Result<()> {
    Error::check_limit("payload_bytes_max", data.len(), PAYLOAD_BYTES_MAX)?;
    Error::check_limit("metadata_bytes_max", metadata.len(), METADATA_BYTES_MAX)?;
    Error::check_limit("tags_max", tags.len(), TAGS_MAX)?;
    tags.iter().try_for_each(|tag| check_name("tag", tag))
}

/// The limits of a name.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::InvalidAppend { reason: format!("the {what} is empty") });
    }
    if name.contains('\0') {
        return Err(Error::InvalidAppend { reason: format!("the {what} {name:?} has a zero byte") });
    }
    Error::check_limit("name_bytes_max", name.len(), NAME_BYTES_MAX)
}

/// Events for one aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The stream of the aggregate.
    pub stream_id: String,
    /// The aggregate in the stream.
    pub aggregate_id: String,
    /// What must hold of the aggregate.
    pub expected: Expected,
    /// In order; they get consecutive sequences and positions.
    pub events: Vec<NewEvent>,
}

/// Writes that are made all together or not at all; at most one for each aggregate. With them go at most one condition and
/// the changes of cells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Append {
    pub(crate) writes: Vec<Write>,
    pub(crate) none_matching: Option<NoneMatching>,
    pub(crate) cells: Vec<CellChange>,
}

impl Append {
    /// An append of one write.
    #[must_use]
    pub fn to(stream_id: &str, aggregate_id: &str, expected: Expected, events: Vec<NewEvent>) -> Self {
        Self::default().and(stream_id, aggregate_id, expected, events)
    }

    /// The same append with one more write.
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

    /// The same append, refused when an event that matches stands after a position.
    #[must_use]
    pub fn none_matching(mut self, query: Query, after: Position) -> Self {
        self.none_matching = Some(NoneMatching { query, after });
        self
    }

    /// The same append, changing a cell too. An append may be of changes of cells alone.
    #[must_use]
    pub fn cell(mut self, change: CellChange) -> Self {
        self.cells.push(change);
        self
    }

    /// The writes, in order.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The same append with each event replaced by the result of `change`, which gets the stream and the aggregate.
    ///
    /// # Errors
    /// The first of `change`.
    pub fn map_events(mut self, mut change: impl FnMut(&str, &str, NewEvent) -> Result<NewEvent>) -> Result<Self> {
        for Write { stream_id, aggregate_id, events, .. } in &mut self.writes {
            let changed = std::mem::take(events).into_iter().map(|event| change(stream_id, aggregate_id, event));
            *events = changed.collect::<Result<_>>()?;
        }
        Ok(self)
    }

    /// Refuses what no log could take: nothing to write, an aggregate, an id or a cell twice, a limit passed.
    ///
    /// # Errors
    /// [`Error::InvalidAppend`] or [`Error::LimitPassed`].
    pub fn check(&self) -> Result<()> {
        let n_events: usize = self.writes.iter().map(|write| write.events.len()).sum();
        if n_events == 0 && self.cells.is_empty() {
            return Err(Error::InvalidAppend { reason: "it has no events".into() });
        }
        Error::check_limit("append_events_max", n_events, APPEND_EVENTS_MAX)?;
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
        Error::check_limit("append_cells_max", self.cells.len(), APPEND_CELLS_MAX)?;
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
    /// The new versions of the cells, in the order of the changes; none when it is a repetition, which changes no cell.
    pub cells: Vec<i64>,
    /// The log time of the append.
    pub created_at: Timestamp,
    /// True when all the ids were in the log already with equal content, and nothing was written now.
    pub repeated: bool,
}

impl Appended {
    /// The position of its last event.
    #[must_use]
    pub fn last(&self) -> Position {
        self.places.last().map_or(Position(0), |place| place.position)
    }
}

/// One page of a read; [`crate::Range::rest`] tells what is left to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// In the order of the log, or backwards when that was asked for.
    pub events: Vec<Recorded>,
    /// Up to here the page is complete: the next page begins after it. Backwards, the next page ends with it.
    pub next: Position,
    /// True when more may follow below the bound that was asked for.
    pub more: bool,
}

impl Page {
    /// A page of what was found in `(low, high]`, which is all unless `limit` or the bytes of a page cut it short.
    pub(crate) fn of(events: Vec<Recorded>, limit: usize, (low, high): (Position, Position), backwards: bool) -> Self {
        let n_bytes: usize = events.iter().map(|event| event.data.len() + event.metadata.len()).sum();
        let is_full = events.len() == limit || n_bytes >= PAGE_BYTES_MAX;
        let last = events.last().filter(|_| is_full).map(|event| event.position);
        let next = match (backwards, is_full) {
            (false, true) => last.unwrap_or(low),
            (false, false) => high,
            (true, true) => last.map_or(high, |last| Position(last.0 - 1)),
            (true, false) => low,
        };
        let more = if backwards { low < next } else { next < high };
        Self { events, next, more }
    }
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Place in the log.
    pub position: Position,
    /// Unique in the log.
    pub event_id: Uuid,
    /// The stream.
    pub stream_id: String,
    /// The aggregate in the stream.
    pub aggregate_id: String,
    /// Place in the aggregate: 1, 2, 3 ...
    pub sequence: i64,
    /// The name of the variant.
    pub event_type: String,
    /// The version under which it was written.
    pub event_version: String,
    /// JSON, as the writer's bytes.
    pub data: String,
    /// JSON: correlation, causation, extra.
    pub metadata: String,
    /// Sorted.
    pub tags: Vec<String>,
    /// Log time; it never runs backwards.
    pub created_at: Timestamp,
    /// The first position of the append that it came with.
    pub append_start: Position,
}

impl Recorded {
    /// Whether a new event with the same id equals this one: then the append is a repetition. The metadata
    /// may differ, since each attempt creates its own.
    pub(crate) fn is_same(&self, write: &Write, event: &NewEvent) -> bool {
        self.stream_id == write.stream_id
            && self.aggregate_id == write.aggregate_id
            && self.event_type == event.event_type
            && self.event_version == event.event_version
            && self.data == event.data
            && self.tags == event.tags
    }
}

/// How an event without tags has them in its row.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
const NO_TAGS: &str = "[]";

/// Tags as a row of a database has them.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn tags_as_json(tags: &[String]) -> Cow<'static, str> {
    if tags.is_empty() { NO_TAGS.into() } else { serde_json::to_string(tags).expect("strings are JSON").into() }
}

/// Tags from a row of a database.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn tags_of_json(json: &str) -> serde_json::Result<Vec<String>> {
    if json == NO_TAGS { Ok(Vec::new()) } else { serde_json::from_str(json) }
}

/// What an import came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// Events that the log did not have.
    pub n_added: usize,
    /// Events that it had already, equal in every field.
    pub n_known: usize,
    /// The position of the log's last event.
    pub head: Position,
}

/// What a log holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// The position of the last event.
    pub head: Position,
    /// How many aggregates there are.
    pub n_aggregates: i64,
    /// How many cells there are.
    pub n_cells: i64,
    /// What the database takes on its disk, in bytes, with its write-ahead log where that is the log's alone.
    pub n_bytes: i64,
    /// When the first event and the last were made.
    pub span: Option<(Timestamp, Timestamp)>,
    /// How many events there are of each stream and type, sorted.
    pub kinds: Vec<KindStats>,
}

/// How many events there are of one type in one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindStats {
    /// The stream.
    pub stream_id: String,
    /// The event type.
    pub event_type: String,
    /// How many.
    pub n_events: i64,
}

/// Something in a log that no crewlog could have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The event, where it is of one.
    pub position: Option<Position>,
    /// What is wrong.
    pub what: String,
}

/// What a check found; sound when there are no findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// How many events were looked at.
    pub n_events: usize,
    /// In the order of positions, those of no event first; at most [`crate::FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Whether there are more than these.
    pub more: bool,
}
