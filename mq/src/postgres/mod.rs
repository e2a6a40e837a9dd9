//! A log on a PostgreSQL server, which any number of machines may use at once, also behind a transaction pooler.
//!
//! In each process one task writes, another polls for commits of others, and a few connections read. Positions are
//! assigned under the append lock, a row that is locked but never changed, so no reader ever finds a gap.

mod batch;
mod check;
mod import;
mod listen;
mod log;
mod read;
mod rows;
mod schema;
mod server;
mod sources;
mod time;
mod work;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Mutex, mpsc};
use tokio::task::{AbortHandle, JoinHandle};

use crate::append::{Append, Appended};
use crate::backend::{Backend, Options, Records};
use crate::cell::Cell;
use crate::clock::{Clock, LogTime, Timestamp};
use crate::error::{Error, Result};
use crate::identity::LogIdentity;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::queue::{QUEUE_APPENDS_MAX, Request, request};
use crate::recorded::Page;
use crate::report::{Checked, Imported, Stats};
use crate::tail::{Look, Tail};
use log::{LOOKING, Log, READING, Reading};
use read::Asked;
use server::Server;

/// How long an append waits for the append lock.
pub(crate) const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);

/// A log on PostgreSQL. A clone is the same log.
#[derive(Clone)]
pub struct Postgres {
    inner: Arc<Inner>,
}

struct Inner {
    log: Arc<Log>,
    requests: mpsc::Sender<Request>,
    /// Tasks that run until the log is closed.
    tasks: Mutex<Vec<JoinHandle<()>>>,
    looking: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer ends by itself once its queue is empty.
        self.looking.abort();
    }
}

impl Postgres {
    /// Opens the log at a URL. Creates a missing log and migrates the schema.
    ///
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with libpq parameters such as `sslmode=require`, and two of its
    /// own: `schema=NAME`, by default the first schema of the search path; and `pooler=transaction` for a pooler that
    /// may give each transaction another connection. Then nothing is prepared, there are no notifications, and commits
    /// of other processes are found by polling every [`crate::limits::POLL_INTERVAL`].
    ///
    /// # Errors
    /// A variant for each way in which the location is unusable: unreachable, no such database, no such user,
    /// read-only, another program's, newer.
    pub async fn open(url: &str, options: Options) -> Result<Self> {
        let server = Server::parse(url)?;
        let migrate = options.migrate_url.as_deref().map_or_else(|| Ok(server.clone()), Server::parse)?;
        let (time, clock) = if options.clock.is_of_machine() {
            let clock = Arc::new(time::ServerClock::default());
            (LogTime::new(Arc::clone(&clock) as Arc<dyn Clock>), Some(clock))
        } else {
            (LogTime::new(options.clock), None)
        };
        let now = clock.is_none().then(|| time.now());
        let (found, connection) = schema::open(&server, &migrate, options.create, now).await?;
        let log = Arc::new(Log::new(server.in_schema(&found), &found, Arc::default(), (time, clock)));
        log.keep(connection).await?;
        let Look { end, generation, .. } = log.head(("opening the log", LOOKING)).await?;
        log.tail.grew(generation, end);
        let (requests, queue) = mpsc::channel(QUEUE_APPENDS_MAX);
        let writer = tokio::spawn(writer::serve(Arc::clone(&log), queue));
        let looker = tokio::spawn(listen::look(Arc::downgrade(&log), Arc::clone(&log.tail)));
        let looking = looker.abort_handle();
        Ok(Self { inner: Arc::new(Inner { log, requests, tasks: Mutex::new(vec![looker, writer]), looking }) })
    }

    /// The server's query plan for a page of matching events, line by line.
    ///
    /// # Errors
    /// A fault of the database.
    pub async fn explain(&self, query: &Query, range: Range, limit: usize) -> Result<Vec<String>> {
        query.check()?;
        let asked = Asked { query: query.clone(), range, limit };
        self.reading("asking for a plan", asked, |snapshot, asked| read::plan(snapshot, asked).boxed()).await
    }

    fn reading<A, T>(&self, doing: &'static str, asked: A, reading: Reading<A, T>) -> BoxFuture<'_, Result<T>>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        async move { self.open_log()?.read((doing, READING), asked, reading).await }.boxed()
    }

    fn open_log(&self) -> Result<&Arc<Log>> {
        if self.inner.log.tail.is_closed() { Err(Error::Closed) } else { Ok(&self.inner.log) }
    }
}

impl Backend for Postgres {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        request(&self.inner.requests, append).boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        let asked = Asked { query: query.clone(), range, limit };
        self.reading("reading the log", asked, |snapshot, asked| read::page(snapshot, asked).boxed())
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        async { Ok(self.open_log()?.head(("reading the head of the log", READING)).await?.end.head) }.boxed()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        self.reading("reading the log", at, |snapshot, at| {
            // No event follows the head.
            let at = (*at).clamp(Position(0), snapshot.end.head);
            read::whole(snapshot.log, snapshot.connection, at).boxed()
        })
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        self.reading("reading the log's identity", (), |snapshot, ()| {
            read::identity(snapshot.log, snapshot.connection).boxed()
        })
    }

    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>> {
        async move {
            let work = tokio::spawn(import::run(Arc::clone(self.open_log()?), identity, records));
            work.await.map_err(|error| Error::storage("importing", error))?
        }
        .boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<Checked>> {
        self.reading("checking the log", (), |snapshot, ()| check::run(snapshot).boxed())
    }

    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>> {
        let asked = (space.to_owned(), from.to_owned(), limit);
        self.reading("reading cells", asked, |snapshot, asked| read::cells(snapshot, asked).boxed())
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        self.reading("counting the events", (), |snapshot, ()| read::stats(snapshot).boxed())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let inner = Arc::clone(&self.inner);
        let closing = async move {
            inner.log.tail.close();
            inner.looking.abort();
            inner.log.close().await;
            // A second call waits as well.
            for task in inner.tasks.lock().await.drain(..) {
                // An aborted task has ended too.
                let _ = task.await;
            }
        };
        // In a separate task: others wait for permits that it holds, even if the caller stops polling.
        async { drop(tokio::spawn(closing).await) }.boxed()
    }

    fn now(&self) -> Timestamp {
        self.inner.log.log_time.now()
    }

    fn is_local(&self) -> bool {
        false
    }

    fn tail(&self) -> &Arc<Tail> {
        &self.inner.log.tail
    }
}
