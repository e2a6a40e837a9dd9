//! The one thread of a process that writes to a log: it drains what has queued into one commit.
//!
//! Each append of a batch is judged alone, in order, against the database and the accepted part of its batch, so
//! that a refusal never fails a neighbour. There is no timer: the previous commit is the time in which the next
//! batch queues. While idle, the thread looks whether another process has committed.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior, params};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{ConnectOptions, Connection as _};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::ledger::{Interned, Writing};
use super::location::Location;
use super::lock::AppendLock;
use super::readers::STATEMENTS_MAX;
use super::tables::{End, end_of};
use crate::clock::{LogTime, Timestamp};
use crate::error::{Error, Result};
use crate::judge::Judge;
use crate::law::FORMAT;
use crate::record::{Append, Appended};
use crate::tail::Tail;

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// The most appends of one commit.
const BATCH_APPENDS_MAX: usize = 512;
/// About the most bytes of one commit.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// How often an idle writer looks whether another process has committed.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// An append on its way to the writer.
pub(super) struct Request {
    pub(super) append: Append,
    pub(super) reply: oneshot::Sender<Result<Appended>>,
}

/// What a writer begins with.
pub(super) struct Start {
    pub(super) location: Location,
    /// Whether a log may be made where there is none.
    pub(super) create: bool,
    pub(super) queue: mpsc::Receiver<Request>,
    pub(super) tail: Arc<Tail>,
    pub(super) log_time: Arc<LogTime>,
}

/// Starts the thread, and returns when the log is open and its schema up to date. It ends when the queue closes.
pub(super) async fn start(start: Start) -> Result<()> {
    let (ready, opened) = oneshot::channel();
    let spawned = std::thread::Builder::new().name("crewlog-writer".into()).spawn(move || run(start, ready));
    spawned.map_err(|error| Error::storage("starting the writer", error))?;
    opened.await.map_err(|_| Error::Closed)?
}

fn run(start: Start, ready: oneshot::Sender<Result<()>>) {
    let opened = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Error::storage("starting the writer", error))
        .and_then(|runtime| Ok((Writer::open(&start, &runtime)?, runtime)));
    match opened {
        Ok((writer, runtime)) => {
            // The opener may have gone; its clones of the queue then close too.
            let _ = ready.send(Ok(()));
            writer.serve(start.queue, &runtime);
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

struct Writer {
    location: Location,
    lock: Option<AppendLock>,
    connection: Connection,
    log_time: Arc<LogTime>,
    interned: Interned,
    tail: Arc<Tail>,
    data_version: i64,
}

impl Writer {
    fn open(start: &Start, runtime: &tokio::runtime::Runtime) -> Result<Self> {
        let location = start.location.clone();
        // What may be another program's is judged before a lock file is put beside it.
        let judged = location.exists().then(|| location.connect()).transpose()?;
        let lock = location.open_lock()?;
        let connection = match judged {
            // What is made already is opened without waiting for anybody who writes.
            Some(connection) if is_made(&connection, &location)? => connection,
            judged => {
                // Two processes that make one log must do it one after the other.
                let _held = location.hold(lock.as_ref())?;
                let connection = judged.map_or_else(|| location.connect(), Ok)?;
                check_that_nothing_is_lost(&connection, &location, start.create)?;
                location.make_durable(&connection)?;
                if !is_migrated(&connection, &location)? {
                    runtime.block_on(migrate(&location))?;
                }
                identify(&connection, start.log_time.now())
                    .map_err(|error| location.fault("opening the log", error))?;
                connection
            }
        };
        location.make_durable(&connection)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        let mut writer = Self {
            location,
            lock,
            connection,
            log_time: Arc::clone(&start.log_time),
            interned: Interned::default(),
            tail: Arc::clone(&start.tail),
            data_version: 0,
        };
        writer.look()?;
        Ok(writer)
    }

    fn serve(mut self, mut queue: mpsc::Receiver<Request>, runtime: &tokio::runtime::Runtime) {
        loop {
            match runtime.block_on(async { tokio::time::timeout(LOOK_INTERVAL, queue.recv()).await }) {
                Ok(Some(first)) => self.commit(drain(first, &mut queue)),
                Ok(None) => return,
                Err(_) => {
                    if let Err(error) = self.look() {
                        tracing::warn!(%error, "looking for the commits of other processes failed");
                        self.tail.failed(error);
                    }
                }
            }
        }
    }

    /// Learns of commits that others made: SQLite counts them in `data_version`.
    fn look(&mut self) -> Result<()> {
        let fault = |error| self.location.fault("looking for new events", error);
        let version = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(fault)?;
        if version != self.data_version {
            let end = end_of(&self.connection).map_err(fault)?;
            self.data_version = version;
            self.publish(end);
        }
        Ok(())
    }

    fn publish(&self, end: End) {
        self.log_time.learn(end.created_at);
        self.tail.grew(end.head);
    }

    /// Commits a batch and answers each of its callers.
    fn commit(&mut self, batch: Vec<Request>) {
        let (appends, replies): (Vec<Append>, Vec<_>) =
            batch.into_iter().map(|request| (request.append, request.reply)).unzip();
        match self.try_commit(&appends) {
            Ok(outcomes) => {
                for (reply, outcome) in replies.into_iter().zip(outcomes) {
                    // A caller that went away does not undo its append.
                    let _ = reply.send(outcome);
                }
            }
            Err(error) => {
                tracing::warn!(%error, appends = appends.len(), "a commit failed");
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
                // A lock that was not to be had says nothing against the connection.
                if !matches!(error, Error::Locked { .. }) {
                    self.reopen();
                }
            }
        }
    }

    /// `Err` when nothing of the batch is known to be in the log.
    fn try_commit(&mut self, appends: &[Append]) -> Result<Vec<Result<Appended>>> {
        let location = self.location.clone();
        let fault = |error| location.fault("appending", error);
        let held = location.hold(self.lock.as_ref())?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
        let start = end_of(&transaction).map_err(fault)?;
        let reading = self.log_time.after(start.created_at);
        let mut judge = Judge::new(Writing::new(&transaction, &self.interned), start.head, reading.now);
        if let Some(step) = reading.stepped_back {
            judge.record_step(step).map_err(fault)?;
        }
        let outcomes = appends.iter().map(|append| judge.judge(append).map_err(fault)).collect::<Result<Vec<_>>>()?;
        let (head, interned) = (judge.head(), judge.ledger.into_interned());
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::Before, start.head, head);
        transaction.commit().map_err(fault)?;
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::After, start.head, head);
        drop(held);
        if reading.stepped_back.is_some() {
            self.log_time.step_is_recorded();
        }
        self.interned.learn(interned);
        if head > start.head {
            self.publish(End { head, created_at: reading.now });
        } else {
            self.publish(start);
        }
        Ok(outcomes)
    }

    /// After a failed commit nothing that the connection holds is trusted.
    fn reopen(&mut self) {
        self.interned = Interned::default();
        let connected = self.location.connect();
        match connected.and_then(|connection| self.location.make_durable(&connection).map(|()| connection)) {
            Ok(connection) => {
                self.connection = connection;
                self.data_version = 0;
            }
            Err(error) => tracing::warn!(%error, "reopening the log failed; the next append tries again"),
        }
    }
}

/// All that has queued behind `first`, up to the size of a batch.
fn drain(first: Request, queue: &mut mpsc::Receiver<Request>) -> Vec<Request> {
    let size = |request: &Request| -> usize {
        let events = request.append.writes.iter().flat_map(|write| &write.events);
        events.map(|event| event.data.len() + event.metadata.len()).sum()
    };
    let mut n_bytes = size(&first);
    let mut batch = vec![first];
    while batch.len() < BATCH_APPENDS_MAX && n_bytes < BATCH_BYTES_MAX {
        let Ok(request) = queue.try_recv() else { break };
        n_bytes += size(&request);
        batch.push(request);
    }
    batch
}

/// Refuses to make a log out of what is left of one, or where none was to be made.
fn check_that_nothing_is_lost(connection: &Connection, location: &Location, create: bool) -> Result<()> {
    let fault = |error| location.fault("opening the log", error);
    let has_table = |name: &str| -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = ?1)";
        connection.query_row(sql, [name], |row| row.get(0)).map_err(fault)
    };
    if !create && !has_table("_sqlx_migrations")? {
        return Err(
            location.no_log_in("it has none of a log's tables; what is newest stands in the -wal file beside it")
        );
    }
    if !has_table("events")? || !has_table("log")? || is_identified(connection).map_err(fault)? {
        return Ok(());
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM events)";
    if connection.query_row(sql, [], |row| row.get(0)).map_err(fault)? {
        return Err(location.no_log_in("it has events, and the log's identity is gone"));
    }
    Ok(())
}

/// Whether the log has its newest schema and its identity.
fn is_made(connection: &Connection, location: &Location) -> Result<bool> {
    Ok(is_migrated(connection, location)?
        && is_identified(connection).map_err(|error| location.fault("opening the log", error))?)
}

fn is_migrated(connection: &Connection, location: &Location) -> Result<bool> {
    let fault = |error| location.fault("reading the schema's version", error);
    let exists: bool = connection
        .query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations')", [], |row| row.get(0))
        .map_err(fault)?;
    if !exists {
        return Ok(false);
    }
    let sql = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success";
    let found: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(fault)?;
    let supported = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0);
    if found > supported {
        return Err(location.newer_format(found, supported));
    }
    Ok(found == supported)
}

async fn migrate(location: &Location) -> Result<()> {
    let fault = |error| location.migration_fault("migrating the log", error);
    let mut connection = location.options().connect().await.map_err(fault)?;
    MIGRATIONS.run(&mut connection).await.map_err(|error| match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => fault(error),
        other => Error::storage("migrating the log", other),
    })?;
    connection.close().await.map_err(fault)
}

/// Gives a new log its identity.
fn identify(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    if !is_identified(connection)? {
        let sql = "INSERT INTO log (one, id, format, created_at) VALUES (1, ?1, ?2, ?3)";
        connection.execute(sql, params![Uuid::now_v7().to_string(), FORMAT, now.0])?;
    }
    Ok(())
}

fn is_identified(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT EXISTS (SELECT 1 FROM log)", [], |row| row.get(0))
}
