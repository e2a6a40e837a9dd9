//! What can go wrong with a log, one variant for each thing that a caller would do differently.

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
    /// The aggregate is not where the writer believed. Read it again and decide again.
    #[error("aggregate {stream_id}/{aggregate_id} is at sequence {actual}, and {expected} was expected")]
    SequenceMismatch {
        /// The stream.
        stream_id: String,
        /// The aggregate.
        aggregate_id: String,
        /// What the writer believed.
        expected: Expected,
        /// The sequence of its last event; 0 when it has none.
        actual: i64,
    },
    /// The id is in the log already, with other content.
    #[error("event id {event_id} is in the log at position {position} with other content")]
    IdReused {
        /// The id.
        event_id: Uuid,
        /// Where it stands.
        position: Position,
    },
    /// Some ids of the append are in the log and some are not, so it is neither new nor a repetition.
    #[error("event id {known} is in the log at position {position}, but {unknown} of the same append is not")]
    PartlyKnown {
        /// One that is there.
        known: Uuid,
        /// Where it stands.
        position: Position,
        /// One that is not.
        unknown: Uuid,
    },
    /// An event that must not be there is. Read it, and decide again.
    #[error("an event that matches the condition stands at position {position}, after {after}")]
    MatchFound {
        /// The first one.
        position: Position,
        /// Where the condition begins.
        after: Position,
    },
    /// The cell is not what the writer believed. Who held it holds it no longer, or another was faster.
    #[error(
        "cell {space}/{key} {}, and {expected} was expected",
        actual.map_or_else(|| "is not there".to_owned(), |actual| format!("has version {actual}"))
    )]
    CellMismatch {
        /// What sort of cell it is.
        space: String,
        /// Which one of its sort.
        key: String,
        /// What the writer believed.
        expected: CellExpected,
        /// The version that it has; unset when it is not there.
        actual: Option<i64>,
    },
    /// The append makes no sense in any log.
    #[error("the append is invalid: {reason}")]
    InvalidAppend {
        /// Why.
        reason: String,
    },
    /// A limit is passed.
    #[error("{what}: {value}, and {limit} is {max}: make it smaller or split it")]
    LimitPassed {
        /// The name of the limit.
        limit: &'static str,
        /// What exceeds it, with its name or the beginning of it.
        what: String,
        /// What was given.
        value: usize,
        /// What is allowed.
        max: usize,
    },
    /// The import is of one log, and this is another.
    #[error(
        "the import is of log {import}, and this is log {log} with {head} events: import it into a new log, or into a copy \
         of its own"
    )]
    OtherLog {
        /// This log.
        log: Uuid,
        /// Its head.
        head: Position,
        /// The log that the import is of.
        import: Uuid,
    },
    /// The import and the log were one, and have gone different ways.
    #[error(
        "the log and the import differ at position {position}, in {differs}: they were written apart, and one cannot carry \
         the other further; import it into a new log"
    )]
    Forked {
        /// The first that differs.
        position: Position,
        /// The field that does.
        differs: &'static str,
    },
    /// The import has not all events of its log.
    #[error("the import has position {position} where {expected} should be: it is a part of a log, export the whole")]
    ImportGap {
        /// The position of the event.
        position: Position,
        /// What should.
        expected: Position,
    },
    /// The import is not what a log could have written.
    #[error("the import is no log's{}: {reason}", at(*position))]
    InvalidImport {
        /// The event, where it is of one.
        position: Option<Position>,
        /// What is wrong.
        reason: String,
    },
    /// An event could not be written as JSON.
    #[error("an event {event_type} cannot be written: {source}")]
    Encode {
        /// Its type.
        event_type: String,
        /// Why.
        source: Source,
    },
    /// An event in the log is not of the type that was asked for.
    #[error(
        "the event at position {position} ({event_type}, version {event_version}) cannot be read: {source}; a newer program \
         may read it, or an upcaster for its version"
    )]
    Decode {
        /// Where it stands.
        position: Position,
        /// Its type.
        event_type: String,
        /// Its version.
        event_version: String,
        /// Why.
        source: Source,
    },
    /// The place named is not one that this build can open.
    #[error("{url} names no log that can be opened: {reason}")]
    Unsupported {
        /// What was given.
        url: String,
        /// Why, and what to give instead.
        reason: String,
    },
    /// There is no log, and none was to be made.
    #[error("there is no log at {place}")]
    NoLog {
        /// Where one was looked for: a path, or the server, the database and the schema, without the password.
        place: String,
    },
    /// The file is there, and what it holds is no log.
    #[error("{place} holds no log: {reason}")]
    NoLogIn {
        /// The file.
        place: String,
        /// What is missing.
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
    /// The file is no SQLite database, or is damaged.
    #[error("{place} is not a usable database: {source}")]
    NotADatabase {
        /// The file.
        place: String,
        /// What SQLite says.
        source: Source,
    },
    /// The file or the schema has tables of another program, or is damaged.
    #[error("{place} is a database of another program: {reason}")]
    ForeignDatabase {
        /// The file or the schema.
        place: String,
        /// What was found, and what to do.
        reason: String,
    },
    /// The log, or an export of one, was written by a newer version.
    #[error("{place} has log format {found}, and this version reads up to {supported}: install a newer one")]
    NewerFormat {
        /// The file, the schema or the export.
        place: String,
        /// Its format, or the version of its tables.
        found: i64,
        /// The newest known here.
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
        /// The format known here.
        supported: i64,
    },
    /// Another program holds the database or the append lock.
    #[error("{place} was locked by another program for {} s: end that program or try again", waited.as_secs())]
    Locked {
        /// The file or the schema.
        place: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The database may not be written.
    #[error("{place} cannot be written: {reason}")]
    ReadOnly {
        /// The file or the schema.
        place: String,
        /// What the server says, and what to do.
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
    /// No space is left on the disk; nothing of the append was kept.
    #[error("no space is left for {place}: make room and try again")]
    DiskFull {
        /// The file or the schema.
        place: String,
    },
    /// The server of the database does not answer.
    #[error("{place} cannot be reached: {source}: is the server running, and is the address right?")]
    Unreachable {
        /// The server and the database, without the password.
        place: String,
        /// Why.
        source: Source,
    },
    /// The server does not let this user in.
    #[error("{place} refuses the user: {source}: give the right user and password")]
    AccessRefused {
        /// The server and the database, without the password.
        place: String,
        /// What the server says.
        source: Source,
    },
    /// The server has no database of this name.
    #[error("{place} is not there: make the database with createdb, or name another")]
    NoDatabase {
        /// The server and the database, without the password.
        place: String,
    },
    /// The work that was to be committed with an append took too long, and was taken back.
    #[error("the work beside the append took longer than {} s and was taken back: do less in it", limit.as_secs())]
    TookTooLong {
        /// How long it may take.
        limit: Duration,
    },
    /// The answer to a commit was lost: whether the append is in the log is not known. Append again with the same ids.
    #[error("the answer to the commit was lost ({source}): append again with the same event ids")]
    NotAcknowledged {
        /// How it was lost.
        source: Source,
    },
    /// The database or its disk failed.
    #[error("{doing} failed: {source}")]
    Storage {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: Source,
    },
    /// The encryption layer ([`crate::Veil`]) lacks something, such as a key. Nothing was written.
    #[error("{0}")]
    Veil(Source),
    /// The log ends before an event that this process has read or appended, or has another event in its place: a standby
    /// that lagged behind was promoted, or a backup restored. Nothing was appended. Writers append again what they had
    /// appended and the log has lost; readers rebuild what they had folded from lost events. A stream yields this error once
    /// and continues by itself ([`crate::EventStream`]), unless its store is pinned.
    #[error(
        "the log went back to an older state, by a restore or a fail-over: position {known} was known, and now it ends at \
         {head}. Nothing else is lost, and nothing was appended: read the log again, then try again"
    )]
    WentBack {
        /// The farthest position that was known.
        known: Position,
        /// Where the log ended when that was found out.
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

    /// True if a program that keeps state should end or start over: the log was closed, was replaced or went back.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Closed | Self::Replaced { .. } | Self::WentBack { .. })
    }

    /// A fault of a backend, with what it was doing.
    pub fn storage(doing: &'static str, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Storage { doing, source: Arc::new(source) }
    }
}

fn at(position: Option<Position>) -> String {
    position.map_or_else(String::new, |position| format!(", at position {position}"))
}
