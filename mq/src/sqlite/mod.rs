//! A log in one SQLite file, which several processes may use at once, or in memory.
//!
//! One thread of each process writes; a small pool reads. Readers never block writers, nor writers readers (WAL). Only an
//! append that is joined with a caller's own statements goes by a connection of its own.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::append::{Append, Appended};
use crate::backend::{Backend, LogIdentity, Options, Records};
use crate::cell::Cell;
use crate::clock::{LogTime, Timestamp};
use crate::error::{Error, Result};
use crate::ids::new_event_id;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::queue::{QUEUE_APPENDS_MAX, Request};
use crate::recorded::Page;
use crate::report::{Checked, Imported, Stats};
use crate::tail::Tail;
use bell::{Bell, LOOK_ANYWAY};
use joined::Joined;
pub use joined::JoinedError;
use location::Location;
use readers::Readers;

/// A log on SQLite, for what only SQLite can do; [`crate::EventStore::on`] makes a store of it. A clone is the same log.
#[derive(Clone)]
pub struct Sqlite {
    location: Location,
    requests: mpsc::Sender<Request>,
    closing: mpsc::Sender<oneshot::Sender<()>>,
    tail: Arc<Tail>,
    log_time: Arc<LogTime>,
    readers: Readers,
    joined: Joined,
    /// What works on connections of its own, beside the writer and the readers.
    beside: Arc<Semaphore>,
}

/// Imports, checks and joined appends that are at work at the same time; more wait.
const BESIDE_MAX: usize = 8;

impl Sqlite {
    /// Opens the log in a file.
    ///
    /// # Errors
    /// As for [`crate::EventStore::open`].
    pub async fn open(path: &Path, options: Options) -> Result<Self> {
        // One log has one name, so that its lock is one too. And readers connect when they are needed: the process may
        // have changed its folder by then.
        let path = std::fs::canonicalize(path)
            .or_else(|_| std::path::absolute(path))
            .map_err(|source| Error::CannotOpen { path: path.to_owned(), source: Arc::new(source) })?;
        let location = Location::file(path.clone())?;
        if !options.create && !location.exists() {
            return Err(Error::NoLog { path });
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
        let (closing, close) = mpsc::channel(1);
        let tail = Arc::new(Tail::default());
        let log_time = Arc::new(LogTime::new(options.clock));
        writer::start(writer::Start {
            location: location.clone(),
            create: options.create,
            queue,
            close,
            tail: Arc::clone(&tail),
            log_time: Arc::clone(&log_time),
        })
        .await?;
        let readers = Readers::new(location.clone());
        let joined = Joined::new(location.clone(), Arc::clone(&log_time));
        let beside = Arc::new(Semaphore::new(BESIDE_MAX));
        Ok(Self { location, requests, closing, tail, log_time, readers, joined, beside })
    }

    /// Makes an append together with a caller's own statements: both are in the database, or neither is.
    ///
    /// `work` runs on a thread that may block, in the transaction of the append and before it is judged. It may read all,
    /// and write tables of its own; the tables of the log are refused to it, and so are temporary tables, settings and
    /// ends of the transaction. Meanwhile nobody else appends, so it has [`crate::limits::JOINED_TIME_MAX`]: then its statements
    /// are cut off. Such an append has a commit for itself; where speed matters, append by the store.
    ///
    /// When `work` fails, takes too long or panics, or the append is refused, nothing is kept. When the append is a
    /// repetition, what `work` wrote now is taken back: it was kept the first time. Dropping the future does not take it
    /// back.
    ///
    /// # Errors
    /// [`JoinedError::Work`] with what `work` says, else a refusal or fault as for [`crate::EventStore::append`].
    ///
    /// # Panics
    /// When `work` does.
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
        let (joined, permit) = (self.joined.clone(), self.permit().await?);
        let appending = move || {
            let _permit = permit;
            joined.append(&append, work)
        };
        let done = tokio::task::spawn_blocking(appending).await;
        let done = match done {
            Ok(done) => done?,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is ending.
                Err(_) => return Err(Error::Closed.into()),
            },
        };
        self.tail.ask();
        Ok(done)
    }

    /// Leave to work on a connection of one's own, for as long as this is held. Who waits for the work may go; the work
    /// keeps it.
    async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.beside).acquire_owned().await.map_err(|_| Error::Closed)
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request { append, reply }).await.map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }
}

impl Backend for Sqlite {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        self.append(append).boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        let query = query.clone();
        let page = move |log: &_, names: &mut _| read::page(log, names, &query, range, limit);
        self.readers.read_events("reading the log", page).boxed()
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        self.readers.read("reading the head of the log", read::head).boxed()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        self.readers.read("reading the log", move |log| read::whole(log, at)).boxed()
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        self.readers.read("reading the log's identity", read::log).boxed()
    }

    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>> {
        let location = self.location.clone();
        async move {
            let permit = self.permit().await?;
            let work = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                let imported = import::run(&location, &identity, records)?;
                if let Some(mut bell) = Bell::beside(&location) {
                    bell.ring(LOOK_ANYWAY);
                }
                Ok::<_, Error>(imported)
            });
            let (imported, end) = work.await.map_err(|error| Error::storage("importing", error))??;
            // The writer learns of it soon; who asks for the time at once must not be told an earlier one.
            self.log_time.learn(end);
            self.tail.ask();
            Ok(imported)
        }
        .boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<Checked>> {
        let location = self.location.clone();
        async move {
            let permit = self.permit().await?;
            let work = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                check::run(&location)
            });
            work.await.map_err(|error| Error::storage("checking the log", error))?
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            let all = u32::try_from(BESIDE_MAX).unwrap_or(u32::MAX);
            let is_first = self.beside.acquire_many(all).await;
            self.beside.close();
            drop(is_first);
            self.joined.close();
            // Before the writer: a log in memory is gone with its last connection, and a read that began meanwhile would find none.
            self.readers.close().await;
            let (done, is_closed) = oneshot::channel();
            // Where nobody takes it, the writer has ended before.
            if self.closing.send(done).await.is_ok() {
                let _ = is_closed.await;
            }
        }
        .boxed()
    }

    fn now(&self) -> Timestamp {
        self.log_time.now()
    }

    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>> {
        let (space, from) = (space.to_owned(), from.to_owned());
        self.readers.read("reading cells", move |log| read::cells(log, &space, &from, limit)).boxed()
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        let location = self.location.clone();
        self.readers.read("counting the events", move |log| read::stats(log, &location)).boxed()
    }

    fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }
}
