//! The typed API of a log: append, load, follow.

use std::sync::Arc;

use crate::append::{Append, Appended, NewEvent};
use crate::backend::Backend;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::backend::Options;
use crate::cell::Cell;
use crate::clock::Timestamp;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::event::{Envelope, Event};
use crate::expected::Expected;
use crate::identity::LogIdentity;
use crate::limits::{self, PAGE_EVENTS_MAX};
use crate::pages::Pages;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::{Metadata, Page, Recorded};
use crate::report::{Checked, Imported, Stats};
use crate::tail::Deed;
use crate::veil::{Veil, Veiled};

impl std::fmt::Debug for EventStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventStore")
    }
}

/// The page size of [`EventStore::load`].
const LOAD_PAGE: usize = 1000;

/// Returns a replacement for an event, or `None` to append it unchanged. Equal events must give equal results.
pub type Rewrite = Arc<dyn Fn(&NewEvent) -> Result<Option<NewEvent>> + Send + Sync>;

/// A log. A clone is the same log, usable from any task.
///
/// Any operation can also fail with a database fault, [`Error::Closed`], or on a pinned store [`Error::WentBack`].
#[derive(Clone)]
pub struct EventStore {
    backend: Arc<dyn Backend>,
    rewrite: Option<Rewrite>,
    /// The backend below the layers, if there are any.
    below: Option<Arc<dyn Backend>>,
    /// Set in a pinned store: the only generation of the log that it accepts.
    pub(crate) generation: Option<u64>,
}

impl EventStore {
    /// Opens the log at a path, a `sqlite:` URL or a `postgres:` URL. Creates a missing log and migrates the schema.
    ///
    /// # Errors
    /// A variant for each way in which the location is unusable: not a database, another program's, newer, locked,
    /// read-only, unreachable.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_with(url, Options::default()).await
    }

    /// [`EventStore::open`] with the caller's clock, or without creating a log.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub async fn open_with(url: &str, options: Options) -> Result<Self> {
        #[cfg(feature = "postgres")]
        if crate::address::is_postgres_url(url) {
            return Ok(Self::on(crate::postgres::Postgres::open(url, options).await?));
        }
        #[cfg(feature = "sqlite")]
        return Ok(Self::on(crate::sqlite::Sqlite::open(crate::address::sqlite_path(url)?, options).await?));
        #[cfg(not(feature = "sqlite"))]
        Err(crate::address::unsupported(url, "this build has no backend but PostgreSQL, give postgres://HOST/DATABASE"))
    }

    /// A log in memory: one database that lives as long as the store and its clones.
    ///
    /// # Errors
    /// [`Error::Storage`] when SQLite fails.
    #[cfg(feature = "sqlite")]
    pub async fn in_memory() -> Result<Self> {
        Ok(Self::on(crate::sqlite::Sqlite::in_memory(Options::default()).await?))
    }

    /// A log on the caller's backend.
    pub fn on(backend: impl Backend) -> Self {
        Self { backend: Arc::new(backend), rewrite: None, below: None, generation: None }
    }

    /// Puts a veil over the log: it encodes appended events, and decodes events for readers.
    #[must_use]
    pub fn veiled(self, veil: Arc<dyn Veil>) -> Self {
        let below = self.clone().as_stored().backend;
        Self { backend: Arc::new(Veiled::new(Arc::clone(&below), veil)), below: Some(below), ..self }
    }

    /// Changes events before each append, for example to redact secrets. A [`crate::Runner`] then folds the new ones.
    #[must_use]
    pub fn rewriting(self, rewrite: Rewrite) -> Self {
        Self { rewrite: Some(rewrite), ..self }
    }

    /// The log without its layers: events as stored in the database.
    #[must_use]
    pub fn as_stored(self) -> Self {
        Self { backend: self.below.unwrap_or(self.backend), below: None, ..self }
    }

    /// Pins the store to the current generation of the log. Once the log goes back, every read and append fails with
    /// [`crate::Error::WentBack`], and streams end with it. So a program that keeps state never mixes lost events with
    /// their replacements.
    #[must_use]
    pub fn pinned(&self) -> Self {
        Self { generation: Some(self.generation()), ..self.clone() }
    }

    /// The store, pinned to the log as it is now: for a program that starts over.
    #[must_use]
    pub fn current(&self) -> Self {
        Self { generation: Some(self.backend.tail().generation()), ..self.clone() }
    }

    /// The pinned generation, or the current one.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.unwrap_or_else(|| self.backend.tail().generation())
    }

    /// Returns a result, or an error if the log has left the pinned generation.
    pub(crate) fn still<T>(&self, found: T) -> Result<T> {
        self.backend.tail().check(self.generation).map(|()| found)
    }

    /// The backend, for wrappers and for features of a single backend.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Appends one event, without an expectation.
    ///
    /// # Errors
    /// As for [`EventStore::append`].
    pub async fn push_event<T: Event>(
        &self,
        stream_id: &str,
        aggregate_id: &str,
        event: &T,
        metadata: &Metadata,
    ) -> Result<Appended> {
        let event = NewEvent::of(event, metadata)?;
        self.append(Append::to(stream_id, aggregate_id, Expected::Any, vec![event])).await
    }

    /// Appends atomically; on `Ok` the append is on disk.
    ///
    /// Repeating an append with the same ids and content is safe at any time and returns the first places. Dropping the
    /// future does not undo the append.
    ///
    /// # Errors
    /// A refusal ([`Error::SequenceMismatch`], [`Error::IdReused`], [`Error::PartlyKnown`], [`Error::MatchFound`],
    /// [`Error::CellMismatch`], [`Error::InvalidAppend`], [`Error::LimitPassed`]) or a fault of the database.
    pub async fn append(&self, append: Append) -> Result<Appended> {
        self.append_rewritten(append).await.map(|(appended, _)| appended)
    }

    /// [`EventStore::append`] that also returns true if the log has other events than given.
    pub(crate) async fn append_rewritten(&self, append: Append) -> Result<(Appended, bool)> {
        let (mut append, mut is_rewritten) = (append, false);
        if let Some(rewrite) = &self.rewrite {
            append = append.map_events(|_, _, event| {
                let rewritten = rewrite(&event)?;
                is_rewritten |= rewritten.is_some();
                Ok(rewritten.unwrap_or(event))
            })?;
        }
        append.check()?;
        let generation = append.generation.or(self.generation);
        let appended = self.backend.append(Append { generation, ..append }).await;
        self.backend.tail().tried(Deed::Append, &appended);
        Ok((appended?, is_rewritten))
    }

    /// All matching events after a position, in log order; from the beginning if `None`.
    ///
    /// # Errors
    /// [`Error::Decode`] with the position of the first event that is not a `T`, or a fault of the database.
    /// [`EventStore::load_items`] returns the other events nevertheless.
    pub async fn load_events<T: Event>(&self, query: &Query, after: Option<Position>) -> Result<Vec<T>> {
        let range = Range::after(after.unwrap_or_default());
        Ok(self.load(query, range).await?.into_iter().map(|envelope| envelope.event).collect())
    }

    /// All matching events of a range, with their records.
    ///
    /// # Errors
    /// As for [`EventStore::load_events`].
    pub async fn load<T: Event>(&self, query: &Query, range: Range) -> Result<Vec<Envelope<T>>> {
        let (mut loaded, mut pages) = (Vec::new(), self.pages(query, range, LOAD_PAGE)?);
        while let Some(page) = pages.next().await? {
            for recorded in page.events {
                loaded.push(Envelope::of(recorded)?);
            }
        }
        Ok(loaded)
    }

    /// All matching events of a range as separate results: an undecodable event is an [`Error::Decode`] item.
    pub async fn load_items<T: Event>(&self, query: &Query, range: Range) -> Result<Vec<Result<Envelope<T>>>> {
        let mut loaded = Vec::new();
        let mut pages = self.pages(query, range, LOAD_PAGE)?;
        while let Some(page) = pages.next().await? {
            loaded.extend(page.events.into_iter().map(Envelope::of));
        }
        Ok(loaded)
    }

    /// A range of the current log, page by page with prefetching.
    pub(crate) fn pages(&self, query: &Query, range: Range, limit: usize) -> Result<Pages> {
        query.check()?;
        Ok(Pages::new(Arc::clone(&self.backend), query.clone(), range, limit, self.generation))
    }

    /// One page of records. It may be empty even if more follow.
    ///
    /// # Errors
    /// [`Error::LimitPassed`] for more than [`PAGE_EVENTS_MAX`] or a query with too many tags, or a database fault.
    pub async fn read(&self, query: &Query, range: Range, limit: usize) -> Result<Page> {
        limits::check("page_events_max", "the events of the page", limit, PAGE_EVENTS_MAX)?;
        query.check()?;
        let page = self.backend.read(query, range, limit).await;
        self.backend.tail().tried(Deed::Read, &page);
        self.still(page?)
    }

    /// The position of the last event; 0 in an empty log.
    pub async fn head(&self) -> Result<Position> {
        self.still(self.backend.head().await?)
    }

    /// The last position at or before `at` at which an append ends.
    pub async fn whole(&self, at: Position) -> Result<Position> {
        self.still(self.backend.whole(at).await?)
    }

    /// The log's identity.
    pub async fn log(&self) -> Result<LogIdentity> {
        let (tail, generation) = (self.backend.tail(), self.generation());
        if let Some(known) = tail.identity(generation) {
            return self.still(known);
        }
        let identity = self.backend.log().await?;
        tail.keep_identity(generation, identity.clone());
        self.still(identity)
    }

    /// Imports all events of another copy of a log, from the first on, with their positions, ids, times and bytes. An
    /// empty log becomes a copy with the same identity. A log of the same identity must equal the import as far as both
    /// go, and gets the missing events. So importing twice changes nothing.
    ///
    /// It is one transaction under the append lock, so other writers wait for it, up to their usual time limit. Records
    /// are read one by one, on a blocking thread. Dropping the future does not stop it.
    ///
    /// # Errors
    /// [`Error::OtherLog`], [`Error::Forked`], [`Error::ImportGap`], [`Error::InvalidImport`], [`Error::OlderFormat`]
    /// or [`Error::NewerFormat`] for a refusal, the first error of `records`, or a fault of the database. The log is
    /// then unchanged.
    pub async fn import(
        &self,
        identity: LogIdentity,
        records: impl Iterator<Item = Result<Recorded>> + Send + 'static,
    ) -> Result<Imported> {
        self.backend.import(identity, Box::new(records)).await
    }

    /// Checks the log's invariants: the database's own consistency, places, times, JSON, tags, causes. It reads the
    /// whole log and changes nothing.
    ///
    /// # Errors
    /// A fault that prevents the check; violations are findings.
    pub async fn check(&self) -> Result<Checked> {
        self.backend.check().await
    }

    /// Up to `limit` cells of a space in key order, starting at `from`.
    pub async fn cells(&self, space: &str, from: &str, limit: usize) -> Result<Vec<Cell>> {
        // The space without a name belongs to the backend.
        if space.is_empty() {
            return Ok(Vec::new());
        }
        self.still(self.backend.cells(space, from, limit).await?)
    }

    /// One cell, if it exists.
    pub async fn cell(&self, space: &str, key: &str) -> Result<Option<Cell>> {
        let first = self.cells(space, key, 1).await?.pop();
        Ok(first.filter(|cell| cell.key == key))
    }

    /// Statistics of the log. They take longer on a large log.
    pub async fn stats(&self) -> Result<Stats> {
        self.still(self.backend.stats().await?)
    }

    /// Closes the log for this store and all its clones: pending operations finish, later ones are refused. If nobody
    /// else has the log open, it is then a single file. Dropping all clones does the same, a little later.
    pub async fn close(&self) {
        self.backend.close().await;
    }

    /// Log time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.backend.now()
    }
}
