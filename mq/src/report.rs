//! Reports on a whole log: statistics, the findings of a check, the result of an import.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::position::Position;

/// The result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// New events.
    pub n_added: usize,
    /// Events that were already there, equal in every field.
    pub n_known: usize,
    /// The position of the log's last event.
    pub head: Position,
}

/// Statistics of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// The position of the last event.
    pub head: Position,
    /// The number of aggregates.
    pub n_aggregates: i64,
    /// The number of cells.
    pub n_cells: i64,
    /// The log's size on the database's disk, in bytes; on SQLite including its write-ahead log.
    pub n_bytes: i64,
    /// The times of the first and the last event.
    pub span: Option<(Timestamp, Timestamp)>,
    /// The number of events of each stream and type, sorted.
    pub kinds: Vec<KindStats>,
}

/// The number of events of one type in one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KindStats {
    /// The stream.
    pub stream_id: String,
    /// The event type.
    pub event_type: String,
    /// The number of events.
    #[serde(rename = "events")]
    pub n_events: i64,
}

/// An inconsistency in a log that no crewlog could have written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The position of the event, if the finding concerns one.
    pub position: Option<Position>,
    /// Describes the inconsistency.
    pub what: String,
}

/// The result of a check; the log is sound if there are no findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The number of events checked.
    pub n_events: usize,
    /// In position order, after those that concern no event; at most [`crate::limits::FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// True if there are more than these.
    pub more: bool,
    /// The number of events with a cause outside the log. That is no inconsistency: the cause may be in another log.
    pub n_foreign_causes: usize,
    /// The first of these events, at most [`crate::limits::FINDINGS_MAX`].
    pub foreign_causes: Vec<Position>,
}
