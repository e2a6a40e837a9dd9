//! The errors of a log: one variant for each case that a caller handles differently.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::expected::{CellExpected, Expected};
use crate::position::Position;

/// The result of an operation on a log.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A cause that several callers of one commit may share.
pub type Source = Arc<dyn std::error::Error + Send + Sync>;

/// A refusal or a fault. It is cheap to clone, since one failed commit answers many callers.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The aggregate is not at the expected sequence. Read it again and decide again.
    #[error("aggregate {stream_id}/{aggregate_id} is at sequence {actual}, and {expected} was expected")]
    SequenceMismatch {
        /// The stream.
        stream_id: String,
        /// The aggregate.
        aggregate_id: String,
        /// The writer's expectation.
        expected: Expected,
        /// The sequence of its last event; 0 if it has none.
        actual: i64,
    },
    /// The id is already in the log, with other content.
    #[error("event id {event_id} is in the log at position {position} with other content")]
    IdReused {
        /// The id.
        event_id: Uuid,
        /// The position of the event with this id.
        position: Position,
    },
    /// Some ids of the append are in the log and some are not, so it is neither new nor a repetition.
    #[error("event id {known} is in the log at position {position}, but {unknown} of the same append is not")]
    PartlyKnown {
        /// An id that is in the log.
        known: Uuid,
        /// The position of that event.
        position: Position,
        /// An id that is not in the log.
        unknown: Uuid,
    },
    /// An event that must be absent is in the log. Read it, and decide again.
    #[error("an event that matches the condition is at position {position}, after {after}")]
    MatchFound {
        /// The first one.
        position: Position,
        /// The position where the condition begins.
        after: Position,
    },
    /// The cell is not as expected: the lease was lost, or another writer was faster.
    #[error(
        "cell {space}/{key} {}, and {expected} was expected",
        actual.map_or_else(|| "is not there".to_owned(), |actual| format!("has version {actual}"))
    )]
    CellMismatch {
        /// The cell's type.
        space: String,
        /// Identifies the cell within its space.
        key: String,
        /// The writer's expectation.
        expected: CellExpected,
        /// Its actual version; unset if the cell does not exist.
        actual: Option<i64>,
    },
    /// The append is malformed.
    #[error("the append is invalid: {reason}")]
    InvalidAppend {
        /// Why.
        reason: String,
    },
    /// A limit is exceeded.
    #[error("{what}: {value}, and {limit} is {max}: make it smaller or split it")]
    LimitPassed {
        /// The name of the limit.
        limit: &'static str,
        /// The value that exceeds it, with its name or its beginning.
        what: String,
        /// The given value.
        value: usize,
        /// The allowed value.
        max: usize,
    },
    /// The import comes from a different log.
    #[error(
        "the import is of log {import}, and this is log {log} with {head} events: import it into a new log, or into a copy \
         of its own"
    )]
    OtherLog {
        /// The id of this log.
        log: Uuid,
        /// Its head.
        head: Position,
        /// The id of the imported log.
        import: Uuid,
    },
    /// The import and the log share a history, and have diverged.
    #[error(
        "the log and the import differ at position {position}, in {differs}: they were written apart, and one cannot carry \
         the other further; import it into a new log"
    )]
    Forked {
        /// The first position that differs.
        position: Position,
        /// The field that differs.
        differs: &'static str,
    },
    /// The import lacks events of its log.
    #[error("the import has position {position} where {expected} should be: it is a part of a log, export the whole")]
    ImportGap {
        /// The position of the next event in the import.
        position: Position,
        /// The position that should come next.
        expected: Position,
    },
    /// The import contains data that no log could have written.
    #[error("the import is no log's{}: {reason}", at(*position))]
    InvalidImport {
        /// The position of the event, if the error concerns one.
        position: Option<Position>,
        /// Describes the error.
        reason: String,
    },
    /// An event could not be encoded as JSON.
    #[error("an event {event_type} cannot be written: {source}")]
    Encode {
        /// Its type.
        event_type: String,
        /// Why.
        source: Source,
    },
    /// An event in the log is not of the requested type.
    #[error(
        "the event at position {position} ({event_type}, version {event_version}) cannot be read: {source}; a newer program \
         may read it, or an upcaster for its version"
    )]
    Decode {
        /// Its position.
        position: Position,
        /// Its type.
        event_type: String,
        /// Its version.
        event_version: String,
        /// Why.
        source: Source,
    },
    /// This build cannot open the given location.
    #[error("{url} names no log that can be opened: {reason}")]
    Unsupported {
        /// The given location.
        url: String,
        /// The reason, and an alternative.
        reason: String,
    },
    /// The log does not exist, and creating it was not requested.
    #[error("there is no log at {place}")]
    NoLog {
        /// The location: a path, or the server, the database and the schema, without the password.
        place: String,
    },
    /// The file exists, but is not a log.
    #[error("{place} holds no log: {reason}")]
    NoLogIn {
        /// The file.
        place: String,
        /// The missing part.
        reason: &'static str,
    },
    /// The file or its folder cannot be opened.
    #[error("{place} cannot be opened as a log: {source}")]
    CannotOpen {
        /// The file.
        place: String,
        /// Why.
        source: Source,
    },
    /// The file is not an SQLite database, or is damaged.
    #[error("{place} is not a usable database: {source}")]
    NotADatabase {
        /// The file.
        place: String,
        /// SQLite's message.
        source: Source,
    },
    /// The file or the schema has tables of another program, or is damaged.
    #[error("{place} is a database of another program: {reason}")]
    ForeignDatabase {
        /// The file or the schema.
        place: String,
        /// The problem, and the remedy.
        reason: String,
    },
    /// The log, or an export of one, was written by a newer version.
    #[error("{place} has log format {found}, and this version reads up to {supported}: install a newer one")]
    NewerFormat {
        /// The file, the schema or the export.
        place: String,
        /// Its format, or the version of its tables.
        found: i64,
        /// The newest version that this build supports.
        supported: i64,
    },
    /// The log, or an export of one, was written by an older version.
    #[error(
        "{place} has log format {found}, and this version reads {supported} only: begin a new log, or use the version that \
         wrote this one"
    )]
    OlderFormat {
        /// The file, the schema or the export.
        place: String,
        /// The log's format.
        found: i64,
        /// The format that this build supports.
        supported: i64,
    },
    /// Another program holds the database or the append lock.
    #[error("{place} was locked by another program for {} s: end that program or try again", waited.as_secs())]
    Locked {
        /// The file or the schema.
        place: String,
        /// The time spent waiting.
        waited: Duration,
    },
    /// The database is not writable.
    #[error("{place} cannot be written: {reason}")]
    ReadOnly {
        /// The file or the schema.
        place: String,
        /// The server's message, and the remedy.
        reason: String,
    },
    /// The log was deleted, moved or replaced while it was open. Acknowledged appends are in the old file.
    #[error(
        "{place} was deleted or replaced while it was in use: put the file back, or end what uses it and open it again"
    )]
    Replaced {
        /// The file.
        place: String,
    },
    /// The disk is full; nothing of the append was kept.
    #[error("no space is left for {place}: make room and try again")]
    DiskFull {
        /// The file or the schema.
        place: String,
    },
    /// The database server does not answer.
    #[error("{place} cannot be reached: {source}: is the server running, and is the address right?")]
    Unreachable {
        /// The server and the database, without the password.
        place: String,
        /// Why.
        source: Source,
    },
    /// The server refuses this user.
    #[error("{place} refuses the user: {source}: give the right user and password")]
    AccessRefused {
        /// The server and the database, without the password.
        place: String,
        /// The server's message.
        source: Source,
    },
    /// The server does not have this database.
    #[error("{place} is not there: make the database with createdb, or name another")]
    NoDatabase {
        /// The server and the database, without the password.
        place: String,
    },
    /// The work to be committed with an append took too long, and was rolled back.
    #[error("the work beside the append took longer than {} s and was taken back: do less in it", limit.as_secs())]
    TookTooLong {
        /// The time limit.
        limit: Duration,
    },
    /// The reply to a commit was lost, so the append may or may not be in the log. Append again with the same ids.
    #[error("the answer to the commit was lost ({source}): append again with the same event ids")]
    NotAcknowledged {
        /// The cause of the loss.
        source: Source,
    },
    /// The database or its disk failed.
    #[error("{doing} failed: {source}")]
    Storage {
        /// The operation that failed.
        doing: &'static str,
        /// The cause.
        source: Source,
    },
    /// The encryption layer ([`crate::Veil`]) lacks something, such as a key. Nothing was written.
    #[error("{0}")]
    Veil(Source),
    /// The log now ends before an event that this process has read or appended, or has another event in its place: a
    /// lagging standby was promoted, or a backup restored. Nothing was appended. Writers append lost events again;
    /// readers rebuild state that they folded from lost events. A stream yields this error once and continues
    /// ([`crate::EventStream`]), unless its store is pinned.
    /// and continues by itself ([`crate::EventStream`]), unless its store is pinned.
    #[error(
        "the log went back to an older state, by a restore or a fail-over: position {known} was known, and now it ends at \
         {head}. Nothing else is lost, and nothing was appended: read the log again, then try again"
    )]
    WentBack {
        /// The highest position known before.
        known: Position,
        /// The end of the log when the loss was detected.
        head: Position,
    },
    /// The store is closed. Nothing of the append is in the log.
    #[error("the store is closed: open it again")]
    Closed,
}

impl Error {
    pub(crate) fn encode(event_type: &str, source: serde_json::Error) -> Self {
        Self::Encode { event_type: event_type.to_owned(), source: Arc::new(source) }
    }

    /// True if a program that keeps state should exit or start over: the log was closed, was replaced or went back.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Closed | Self::Replaced { .. } | Self::WentBack { .. })
    }

    /// True for a fault of the database or of the way to it that can pass.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Locked { .. }
                | Self::ReadOnly { .. }
                | Self::DiskFull { .. }
                | Self::Unreachable { .. }
                | Self::AccessRefused { .. }
                | Self::NoDatabase { .. }
                | Self::TookTooLong { .. }
                | Self::NotAcknowledged { .. }
                | Self::Storage { .. }
        )
    }

    /// Wraps an error of a backend, with the operation that failed.
    pub fn storage(doing: &'static str, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Storage { doing, source: Arc::new(source) }
    }
}

fn at(position: Option<Position>) -> String {
    position.map_or_else(String::new, |position| format!(", at position {position}"))
}
