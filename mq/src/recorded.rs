//! Events as a log holds them.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::limits::PAGE_BYTES_MAX;
use crate::position::Position;

/// Metadata stored with an event. [`crate::Runner`] fills it; callers seldom need to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Metadata {
    /// Shared by all events that follow from one request.
    pub correlation_id: Option<Uuid>,
    /// The `event_id` of the event that caused this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<Uuid>,
    /// Anything else, kept unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

impl Metadata {
    /// JSON that can be read back: serde reads at most 127 levels of nesting, which a short text cannot exceed.
    pub(crate) fn encode(&self) -> Result<String> {
        let fault = |source| Error::encode("metadata", source);
        let json = serde_json::to_string(self).map_err(fault)?;
        if json.len() > 2 * 127 {
            serde_json::from_str::<Self>(&json).map_err(fault)?;
        }
        Ok(json)
    }
}

/// The indexed ids of an event's metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Causes {
    pub(crate) correlation_id: Option<Uuid>,
    pub(crate) causation_id: Option<Uuid>,
}

impl Causes {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { correlation_id: metadata.correlation_id, causation_id: metadata.causation_id }
    }

    /// As stored in the columns of an event.
    #[cfg(feature = "sqlite")]
    pub(crate) fn as_bytes(&self) -> [Option<Vec<u8>>; 2] {
        [self.correlation_id, self.causation_id].map(|id| id.map(|id| id.as_bytes().to_vec()))
    }
}

/// One page of a read; [`crate::Range::rest`] returns the range that is left to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// In log order, or backwards if requested.
    pub events: Vec<Recorded>,
    /// The page is complete up to here: the next page begins after it. Backwards, the next page ends with it.
    pub next: Position,
    /// True if more may follow within the range.
    pub more: bool,
}

impl Page {
    /// A page from the events found in `(low, high]`, complete unless cut short by `limit` or by the size of a page.
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
    /// The version of the event type when it was written.
    pub event_version: String,
    /// JSON, byte for byte as written.
    pub data: String,
    /// JSON: correlation, causation, extra.
    pub metadata: String,
    /// Sorted.
    pub tags: Vec<String>,
    /// Log time; it never runs backwards.
    pub created_at: Timestamp,
    /// The first position of its append.
    pub append_start: Position,
}

/// The stored form of an empty list of tags.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
const NO_TAGS: &str = "[]";

/// Encodes tags for a row of a database.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn tags_as_json(tags: &[String]) -> Cow<'static, str> {
    if tags.is_empty() { NO_TAGS.into() } else { serde_json::to_string(tags).expect("strings are JSON").into() }
}

/// Decodes tags from a row of a database.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn tags_of_json(json: &str) -> serde_json::Result<Vec<String>> {
    if json == NO_TAGS { Ok(Vec::new()) } else { serde_json::from_str(json) }
}
