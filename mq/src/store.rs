//! The typed face of a log: append, load, follow.

use std::sync::Arc;

use crate::append::{Append, Appended, NewEvent};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::backend::Options;
use crate::backend::{Backend, LogIdentity};
use crate::cell::Cell;
use crate::clock::Timestamp;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::event::{Envelope, Event};
use crate::expected::Expected;
use crate::layer::Layered;
use crate::limits::{self, PAGE_EVENTS_MAX};
use crate::pages::Pages;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::{Metadata, Page, Recorded};
use crate::report::{Checked, Imported, Stats};
use crate::sharing::{SharedFields, Sharing};
use crate::veil::Veil;

impl std::fmt::Debug for EventStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventStore")
    }
}

/// How many events [`EventStore::load`] asks for at a time.
const LOAD_PAGE: usize = 1000;

/// Gives another event to append in place of one, or none to append it as it is. It must give equal events for equal ones.
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
    /// Opens the log at a path, a `sqlite:` URL or a `postgres:` URL. It creates a missing log and updates the schema.
    ///
    /// # Errors
    /// A variant for each way in which the place is not usable: not a database, another program's, newer, locked,
    /// read-only, not to be reached.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_with(url, Options::default()).await
    }

    /// [`EventStore::open`] with a clock of the caller's, or without making a log.
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

    /// A log on a backend of the caller's.
    pub fn on(backend: impl Backend) -> Self {
        Self { backend: Arc::new(backend), rewrite: None, below: None, generation: None }
    }

    /// The same log under a veil: what is appended is sealed, and what is read is opened.
    #[must_use]
    pub fn veiled(self, veil: Arc<dyn Veil>) -> Self {
        let below = self.clone().as_stored().backend;
        Self { backend: Arc::new(Layered::new(Arc::clone(&below), veil)), below: Some(below), ..self }
    }

    /// The same log, where these fields of events refer to the texts of their causes in place of a copy.
    #[must_use]
    pub fn sharing(self, fields: SharedFields) -> Self {
        let backend: Arc<dyn Backend> = Arc::new(Layered::new(Arc::clone(&self.backend), Sharing(fields)));
        Self { backend, below: Some(self.clone().as_stored().backend), ..self }
    }

    /// The same log, where events are changed before each append, for example to redact secrets. A [`crate::Runner`] then
    /// folds what the log has.
    #[must_use]
    pub fn rewriting(self, rewrite: Rewrite) -> Self {
        Self { rewrite: Some(rewrite), ..self }
    }

    /// The same log without its layers: events as they stand in the database.
    #[must_use]
    pub fn as_stored(self) -> Self {
        Self { backend: self.below.unwrap_or(self.backend), below: None, ..self }
    }

    /// The same log until it goes back. After that, every read and append fails with [`crate::Error::WentBack`], and
    /// streams end with it. So a program that keeps state never mixes lost events with the events that replaced them.
    #[must_use]
    pub fn pinned(&self) -> Self {
        Self { generation: Some(self.generation()), ..self.clone() }
    }

    /// The generation that it is pinned to, or the current one.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.unwrap_or_else(|| self.backend.tail().generation())
    }

    /// Returns a result, or the error if the log has left the generation that this store is pinned to.
    pub(crate) fn still<T>(&self, found: T) -> Result<T> {
        self.backend.tail().check(self.generation).map(|()| found)
    }

    /// The backend: for one that wraps another, and for features of a single backend.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Appends one event, whatever its aggregate holds.
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

    /// Appends all or nothing; on `Ok` it is on disk.
    ///
    /// Repeating an append with the same ids and content is safe at any time and returns the first places.
    /// Dropping the future does not take the append back.
    ///
    /// # Errors
    /// A refusal ([`Error::SequenceMismatch`], [`Error::IdReused`], [`Error::PartlyKnown`],
    /// [`Error::MatchFound`], [`Error::CellMismatch`], [`Error::InvalidAppend`],
    /// [`Error::LimitPassed`]) or a fault of the database.
    pub async fn append(&self, append: Append) -> Result<Appended> {
        self.append_rewritten(append).await.map(|(appended, _)| appended)
    }

    /// The same; true if the log has other events than were given.
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
        Ok((self.backend.append(Append { generation, ..append }).await?, is_rewritten))
    }

    /// All matching events after a position, in the order of the log; `None` for all.
    ///
    /// # Errors
    /// [`Error::Decode`] with the position of the first that is not a `T`, or a fault of the database. Where the others are
    /// wanted all the same, [`EventStore::load_items`] gives them.
    pub async fn load_events<T: Event>(&self, query: &Query, after: Option<Position>) -> Result<Vec<T>> {
        let range = Range::after(after.unwrap_or_default());
        Ok(self.load(query, range).await?.into_iter().map(|envelope| envelope.event).collect())
    }

    /// All matching events of a range with their records.
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

    /// All matching events of a range, each by itself: one that cannot be decoded is an [`Error::Decode`] in its place.
    pub async fn load_items<T: Event>(&self, query: &Query, range: Range) -> Result<Vec<Result<Envelope<T>>>> {
        let mut loaded = Vec::new();
        let mut pages = self.pages(query, range, LOAD_PAGE)?;
        while let Some(page) = pages.next().await? {
            loaded.extend(page.events.into_iter().map(Envelope::of));
        }
        Ok(loaded)
    }

    /// All of a range of the log as it is now, page by page, each read while the one before it is worked on.
    pub(crate) fn pages(&self, query: &Query, range: Range, limit: usize) -> Result<Pages> {
        query.check()?;
        Ok(Pages::new(Arc::clone(&self.backend), query.clone(), range, limit, self.generation))
    }

    /// One page of records. It may be empty even if more follow.
    ///
    /// # Errors
    /// [`Error::LimitPassed`] for more than [`PAGE_EVENTS_MAX`] or a query of too many tags, or a database fault.
    pub async fn read(&self, query: &Query, range: Range, limit: usize) -> Result<Page> {
        limits::check("page_events_max", "the events of the page", limit, PAGE_EVENTS_MAX)?;
        query.check()?;
        self.still(self.backend.read(query, range, limit).await?)
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
        self.still(self.backend.log().await?)
    }

    /// Takes in the events of another copy of a log: all of them, from the first on, as they stand there with their
    /// positions, ids, times and bytes. An empty log becomes a copy under the other's identity; a log of the same identity
    /// keeps what it has, which must be equal, and gets what it has not. So importing twice changes nothing.
    ///
    /// It is one transaction under the append lock: all or nothing, and other writers wait for it, as long as they
    /// wait for any lock. Records are taken one by one, from a thread that may block. Dropping the future does not end it.
    ///
    /// # Errors
    /// [`Error::OtherLog`], [`Error::Forked`], [`Error::ImportGap`], [`Error::InvalidImport`], [`Error::OlderFormat`] or
    /// [`Error::NewerFormat`] when it is refused, the first error of `records`, or a fault of the database. The log is then as it was.
    pub async fn import(
        &self,
        identity: LogIdentity,
        records: impl Iterator<Item = Result<Recorded>> + Send + 'static,
    ) -> Result<Imported> {
        self.backend.import(identity, Box::new(records)).await
    }

    /// Looks whether the log keeps what logs promise: the database's own soundness, places, times, JSON, tags, causes. It
    /// reads all of the log and changes nothing.
    ///
    /// # Errors
    /// A fault that kept it from looking; what is wrong with the log is a finding.
    pub async fn check(&self) -> Result<Checked> {
        self.backend.check().await
    }

    /// Up to `limit` cells of a space in the order of their keys, from the first that is `from` or after it.
    pub async fn cells(&self, space: &str, from: &str, limit: usize) -> Result<Vec<Cell>> {
        // A space has a name; what has none is the backend's own.
        if space.is_empty() {
            return Ok(Vec::new());
        }
        self.still(self.backend.cells(space, from, limit).await?)
    }

    /// One cell, if it is there.
    pub async fn cell(&self, space: &str, key: &str) -> Result<Option<Cell>> {
        let first = self.cells(space, key, 1).await?.pop();
        Ok(first.filter(|cell| cell.key == key))
    }

    /// What the log holds. It counts, so it costs more on a large log.
    pub async fn stats(&self) -> Result<Stats> {
        self.still(self.backend.stats().await?)
    }

    /// Closes the log for this store and all its clones: what was begun is done, what comes later is refused. A log in a
    /// file that nobody else has open is then one file. Dropping all clones does the same, a little later.
    pub async fn close(&self) {
        self.backend.close().await;
    }

    /// Log time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.backend.now()
    }
}
