//! A log in one SQLite file, which several processes may use at once, or in memory.
//!
//! One thread of each process writes; a small pool reads. Readers never block writers, nor writers readers (WAL).

mod bell;
mod check;
mod import;
mod ledger;
mod location;
mod lock;
mod migrations;
mod read;
mod readers;
mod sources;
mod tables;
mod writer;

use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::backend::{Backend, LogIdentity, Options, Records};
use crate::cell::Cell;
use crate::clock::{LogTime, Timestamp};
use crate::error::{Error, Result};
use crate::ids::new_event_id;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::record::{Append, Appended, Checked, Imported, Page, Stats};
use crate::tail::Tail;
use bell::{Bell, LOOK_ANYWAY};
use location::Location;
use readers::Readers;
use writer::Request;

/// Appends that may wait for the writer; more wait in their callers.
const QUEUE_APPENDS_MAX: usize = 1024;

/// A log on SQLite.
pub(crate) struct Sqlite {
    location: Location,
    requests: mpsc::Sender<Request>,
    closing: mpsc::Sender<oneshot::Sender<()>>,
    tail: Arc<Tail>,
    log_time: Arc<LogTime>,
    readers: Readers,
}

impl Sqlite {
    pub(crate) async fn open(path: &Path, options: Options) -> Result<Self> {
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

    pub(crate) async fn in_memory(options: Options) -> Result<Self> {
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
        Ok(Self { location, requests, closing, tail, log_time, readers })
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
            let work = tokio::task::spawn_blocking(move || {
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
            let work = tokio::task::spawn_blocking(move || check::run(&location));
            work.await.map_err(|error| Error::storage("checking the log", error))?
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            let (done, is_closed) = oneshot::channel();
            // Where nobody takes it, the writer has ended before.
            if self.closing.send(done).await.is_ok() {
                let _ = is_closed.await;
            }
            self.readers.close().await;
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
        self.readers.read("counting the events", read::stats).boxed()
    }

    fn tail(&self) -> &Arc<Tail> {
        &self.tail
    }
}
