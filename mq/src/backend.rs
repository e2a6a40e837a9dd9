//! What a database must do to carry a log, and how one is opened. A new backend is one type that implements this.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::append::{Append, Appended};
use crate::cell::Cell;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::error::Result;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::{Page, Recorded};
use crate::report::{Checked, Imported, Stats};
use crate::tail::Tail;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Where log time comes from.
    pub clock: Arc<dyn Clock>,
    /// Whether a log is made where there is none.
    pub create: bool,
    /// On PostgreSQL: the URL by which a log is made and its schema brought up to date, where that cannot be done by the
    /// URL of the log, such as a connection beside a pooler, or a role that may do more.
    pub migrate_url: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock::default()), create: true, migrate_url: None }
    }
}

/// A log's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogIdentity {
    /// Made once with the log.
    pub id: uuid::Uuid,
    /// The version of the log's form.
    pub format: i64,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Events to import, one after another. An error among them ends the import and is returned by it.
pub type Records = Box<dyn Iterator<Item = Result<Recorded>> + Send>;

/// Storage for a log: plain records in, plain records out.
///
/// The prefix property: a reader that sees position p sees every position below p that will ever exist.
pub trait Backend: Send + Sync + 'static {
    /// Makes all of `append` durable, or nothing of it. The caller has checked it with [`Append::check`].
    /// Dropping the future does not undo it.
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>>;

    /// Up to `limit` events of the range that match, in the order of the log or backwards. The page is of one moment.
    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>>;

    /// The position of the last event.
    fn head(&self) -> BoxFuture<'_, Result<Position>>;

    /// The last position at or before `at` at which an append ends, so that a view as of it shows no half append.
    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>>;

    /// The log's identity.
    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>>;

    /// Imports the events of the log `identity`, all or nothing, and refuses what no log could have written. An empty log
    /// becomes that log; the same log is continued; any other is refused. Dropping the future does not end it.
    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>>;

    /// Looks whether the log keeps what logs promise; changes nothing.
    fn check(&self) -> BoxFuture<'_, Result<Checked>>;

    /// Up to `limit` cells of a space in the order of their keys, byte by byte, from the first that is `from` or after it.
    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>>;

    /// What the log holds.
    fn stats(&self) -> BoxFuture<'_, Result<Stats>>;

    /// Ends this process's work on the log: what was begun is done, what comes later is refused with
    /// [`crate::Error::Closed`], and nothing is held open.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Log time now: never before the last event that this process knows of.
    fn now(&self) -> Timestamp;

    /// The end of the log as this process knows it. The backend tells it of every commit that it makes or learns of, looks
    /// for commits of others by itself, at the latest after [`crate::limits::POLL_INTERVAL`], goes on looking whatever happens,
    /// and reports what kept it from looking.
    fn tail(&self) -> &Arc<Tail>;

    /// An event of the tail in the form for readers: as stored, unless a [`crate::Veil`] changes it.
    ///
    /// # Errors
    /// As for [`crate::Veil::open`].
    fn opened(&self, event: Arc<Recorded>) -> BoxFuture<'_, Result<Arc<Recorded>>> {
        std::future::ready(Ok(event)).boxed()
    }

    /// Whether the state of a fold over these events may be kept beside the log: not where a [`crate::Veil`] forbids it.
    fn keeps_snapshots<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<bool>> {
        let _ = query;
        futures::future::ready(Ok(true)).boxed()
    }
}
