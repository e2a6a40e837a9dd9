//! The trait that a database implements to store a log, and the options for opening one.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::append::{Append, Appended};
use crate::cell::Cell;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::error::Result;
use crate::identity::LogIdentity;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::{Page, Recorded};
use crate::report::{Checked, Imported, Stats};
use crate::tail::Tail;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// The source of log time.
    pub clock: Arc<dyn Clock>,
    /// True if a missing log is created.
    pub create: bool,
    /// PostgreSQL only: the URL for creating the log and migrating its schema, if the log's own URL cannot do that.
    /// Examples are a direct connection that bypasses a pooler, or a role with more rights.
    pub migrate_url: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock::default()), create: true, migrate_url: None }
    }
}

/// Events to import, one after another. The first error ends the import and is returned.
pub type Records = Box<dyn Iterator<Item = Result<Recorded>> + Send>;

/// Storage for a log: plain records in, plain records out.
///
/// The prefix property: a reader that sees position p sees every position below p that will ever exist.
pub trait Backend: Send + Sync + 'static {
    /// Appends atomically and durably. The caller has checked `append` with [`Append::check`]. Dropping the future
    /// does not undo it.
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>>;

    /// Up to `limit` matching events of the range, in log order or backwards. The page is a consistent snapshot.
    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>>;

    /// The position of the last event.
    fn head(&self) -> BoxFuture<'_, Result<Position>>;

    /// The last position at or before `at` at which an append ends. A view as of that position shows no partial append.
    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>>;

    /// The log's identity.
    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>>;

    /// Imports the events of the log `identity` atomically, and refuses events that no log could have written. An empty
    /// log becomes that log; the same log is continued; any other is refused. Dropping the future does not stop it.
    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>>;

    /// Checks the log's invariants; changes nothing.
    fn check(&self) -> BoxFuture<'_, Result<Checked>>;

    /// Up to `limit` cells of a space in byte order of their keys, starting at `from`.
    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>>;

    /// Statistics of the log.
    fn stats(&self) -> BoxFuture<'_, Result<Stats>>;

    /// Closes the log in this process: finishes pending operations, refuses later ones with [`crate::Error::Closed`],
    /// and releases all resources.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Log time now: never before the last event known to this process.
    fn now(&self) -> Timestamp;

    /// True if all processes that use the log are on this host, where a lock proves whether one lives.
    fn is_local(&self) -> bool {
        true
    }

    /// The end of the log as this process knows it. The backend reports to it every commit that it makes or learns
    /// of, and every failure to look. It looks for commits of others at least every [`crate::limits::POLL_INTERVAL`],
    /// and keeps looking after failures.
    fn tail(&self) -> &Arc<Tail>;

    /// Converts an event of the tail to its form for readers: as stored, unless a [`crate::Veil`] changes it.
    ///
    /// # Errors
    /// As for [`crate::Veil::open`].
    fn opened(&self, event: Arc<Recorded>) -> BoxFuture<'_, Result<Arc<Recorded>>> {
        std::future::ready(Ok(event)).boxed()
    }

    /// True if the state of a fold over these events may be stored next to the log. A [`crate::Veil`] can forbid it.
    fn keeps_snapshots<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<bool>> {
        let _ = query;
        futures::future::ready(Ok(true)).boxed()
    }
}
