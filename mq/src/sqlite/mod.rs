//! A log in one SQLite file, which several processes may use at once, or in memory.
//!
//! Each process has one writer thread and a few reader threads. In a file, readers and writers never block each other
//! (WAL). Only appends joined with a caller's own statements use a separate connection.

mod bell;
mod check;
mod checkpoint;
mod import;
mod joined;
mod ledger;
mod location;
mod lock;
mod migrations;
#[cfg(test)]
mod plans;
mod read;
mod readers;
mod sources;
mod tables;
mod writer;

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinError;

use crate::append::{Append, Appended};
use crate::backend::{Backend, Options, Records};
use crate::cell::Cell;
use crate::clock::{LogTime, Timestamp};
use crate::error::{Error, Result};
use crate::identity::LogIdentity;
use crate::ids::new_event_id;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::queue::{QUEUE_APPENDS_MAX, Request, request};
use crate::recorded::Page;
use crate::report::{Checked, Imported, Stats};
use crate::tail::Tail;
use bell::{Bell, LOOK_ANYWAY};
use joined::Joined;
pub use joined::JoinedError;
use location::Location;
use read::Snapshot;
use readers::Readers;

/// A log on SQLite with SQLite-specific operations; [`crate::EventStore::on`] makes a store of it. Clones are the same
/// log.
#[derive(Clone)]
pub struct Sqlite {
    location: Location,
    requests: mpsc::Sender<Request>,
    /// Tells the writer that all other connections are closed.
    is_alone: Arc<watch::Sender<bool>>,
    /// Closed once the writer has ended.
    written: watch::Receiver<()>,
    tail: Arc<Tail>,
    log_time: Arc<LogTime>,
    readers: Readers,
    joined: Joined,
    /// Permits for work on separate connections.
    beside: Arc<Semaphore>,
}

/// The most imports, checks and joined appends that run at once; more wait.
const BESIDE_MAX: usize = 8;

impl Sqlite {
    /// Opens the log in a file.
    ///
    /// # Errors
    /// As for [`crate::EventStore::open`].
    pub async fn open(path: &Path, options: Options) -> Result<Self> {
        // A canonical path gives one log one name, and so one lock. It also stays valid for later connections if the
        // process changes its folder.
        let path = std::fs::canonicalize(path)
            .or_else(|_| std::path::absolute(path))
            .map_err(|source| Error::CannotOpen { place: path.display().to_string(), source: Arc::new(source) })?;
        let location = Location::file(path)?;
        if !options.create && !location.exists() {
            return Err(Error::NoLog { place: location.place() });
        }
        Self::start(location, options).await
    }

    /// A log in memory, which lives as long as this and its clones.
    ///
    /// # Errors
    /// [`Error::Storage`] when SQLite fails.
    pub async fn in_memory(options: Options) -> Result<Self> {
        Self::start(Location::Memory(format!("/crewlog-{}", new_event_id().simple())), options).await
    }

    async fn start(location: Location, options: Options) -> Result<Self> {
        let (requests, queue) = mpsc::channel(QUEUE_APPENDS_MAX);
        let (done, written) = watch::channel(());
        let is_alone = Arc::new(watch::Sender::new(false));
        let tail = Arc::new(Tail::default());
        let log_time = Arc::new(LogTime::new(options.clock));
        writer::start(writer::Start {
            location: location.clone(),
            create: options.create,
            queue,
            is_alone: is_alone.subscribe(),
            done,
            tail: Arc::clone(&tail),
            log_time: Arc::clone(&log_time),
        })
        .await?;
        let readers = Readers::new(location.clone(), Arc::clone(&tail));
        let joined = Joined::new(location.clone(), Arc::clone(&log_time), Arc::clone(&tail));
        let beside = Arc::new(Semaphore::new(BESIDE_MAX));
        Ok(Self { location, requests, is_alone, written, tail, log_time, readers, joined, beside })
    }

    /// Appends together with a caller's own statements, atomically.
    ///
    /// `work` runs on a blocking thread, in the transaction of the append, before the append is judged. It may read
    /// everything and write tables of its own; the log's tables, temporary tables, settings and transaction control are
    /// refused. Nobody else can append meanwhile, so its statements are cut off after
    /// [`crate::limits::JOINED_TIME_MAX`]. Such an append has its own commit; for speed, append through the store.
    ///
    /// If `work` fails, takes too long or panics, or the append is refused, everything is rolled back. If the append is
    /// a repetition, the writes of `work` are rolled back: they were committed the first time. Dropping the future does
    /// not undo it.
    ///
    /// # Errors
    /// [`JoinedError::Work`] with the error of `work`, else a refusal or fault as for [`crate::EventStore::append`].
    ///
    /// # Panics
    /// If `work` panics.
    pub async fn append_with<T, E>(
        &self,
        append: Append,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<(Appended, T), JoinedError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        append.check()?;
        let joined = self.joined.clone();
        let done = match self.beside(move || joined.append(&append, work)).await? {
            Ok(done) => done?,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => return Err(Error::NotAcknowledged { source: Arc::new(error) }.into()),
            },
        };
        self.tail.ask();
        Ok(done)
    }

    /// Runs work on a separate connection and a blocking thread. A separate task waits for the permit: an unpolled
    /// future that holds a permit would block others and the closing of the log.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<std::result::Result<T, JoinError>> {
        let (beside, tail) = (Arc::clone(&self.beside), Arc::clone(&self.tail));
        let working = tokio::spawn(async move {
            let _permit = beside.acquire_owned().await.map_err(|_| Error::Closed)?;
            if tail.is_closed() {
                return Err(Error::Closed);
            }
            Ok(tokio::task::spawn_blocking(work).await)
        });
        match working.await {
            Ok(done) => done,
            Err(error) => Ok(Err(error)),
        }
    }
}

impl Backend for Sqlite {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        request(&self.requests, append).boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        let query = query.clone();
        let page = move |snapshot: &Snapshot<'_>, names: &mut _| read::page(snapshot, names, &query, range, limit);
        self.readers.read("reading the log", page).boxed()
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        self.readers.read("reading the head of the log", |snapshot, _| Ok(snapshot.end.head)).boxed()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        self.readers.read("reading the log", move |snapshot, _| read::whole(snapshot, at)).boxed()
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        self.readers.read("reading the log's identity", |snapshot, _| read::log(snapshot.connection)).boxed()
    }

    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>> {
        let location = self.location.clone();
        async move {
            let work = move || {
                let imported = import::run(&location, &identity, records)?;
                Bell::ring_beside(&location, LOOK_ANYWAY);
                Ok::<_, Error>(imported)
            };
            let done = self.beside(work).await?;
            let (imported, end) = done.map_err(|error| Error::storage("importing", error))??;
            // The writer learns of it soon; a caller that asks for the time at once must not get an earlier one.
            self.log_time.learn(end);
            self.tail.ask();
            Ok(imported)
        }
        .boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<Checked>> {
        let location = self.location.clone();
        let tail = Arc::clone(&self.tail);
        async move {
            let done = self.beside(move || check::run(&location, &tail)).await?;
            done.map_err(|error| Error::storage("checking the log", error))?
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let log = self.clone();
        let closing = async move {
            log.tail.close();
            let all = u32::try_from(BESIDE_MAX).unwrap_or(u32::MAX);
            let is_first = log.beside.acquire_many(all).await;
            log.beside.close();
            drop(is_first);
            log.joined.close();
            log.readers.close().await;
            log.is_alone.send_replace(true);
            // Waits for the writer to end.
            let _ = log.written.clone().wait_for(|()| false).await;
        };
        // In a separate task: others wait for permits that it holds, even if the caller stops polling.
        async { drop(tokio::spawn(closing).await) }.boxed()
    }

    fn now(&self) -> Timestamp {
        self.log_time.now()
    }

    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>> {
        let (space, from) = (space.to_owned(), from.to_owned());
        self.readers
            .read("reading cells", move |snapshot, _| read::cells(snapshot.connection, &space, &from, limit))
            .boxed()
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        let location = self.location.clone();
        self.readers.read("counting the events", move |log, _| read::stats(log, &location)).boxed()
    }

    fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }
}
