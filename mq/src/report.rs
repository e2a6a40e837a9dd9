//! Reports on a whole log: statistics, the findings of a check, the result of an import.

use crate::clock::Timestamp;
use crate::position::Position;

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
    /// Bytes that the log takes on the database's disk: on SQLite with its write-ahead log, which is the log's alone.
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
    /// In the order of positions, those of no event first; at most [`crate::limits::FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Whether there are more than these.
    pub more: bool,
    /// How many events name a cause that is not in the log. That is no fault: it may be in another.
    pub n_foreign_causes: usize,
    /// The first of these events, at most [`crate::limits::FINDINGS_MAX`].
    pub foreign_causes: Vec<Position>,
}
