//! The one thread of a process that writes to a log: it drains what has queued into one commit.
//!
//! Each append of a batch is judged alone, in order, against the database and the accepted part of its batch, so
//! that a refusal never fails a neighbour. There is no timer: the previous commit is the time in which the next
//! batch queues. While idle, the thread looks whether another process has committed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{ConnectOptions, Connection as _};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use super::location::Location;
use super::lock::AppendLock;
use super::tables::{self, End, Row, end_of, tags_as_json};
use crate::clock::{LogTime, Timestamp};
use crate::error::{Error, Result};
use crate::position::{Expected, Place, Position};
use crate::record::Metadata;
use crate::record::{Append, Appended, NewEvent, Write};

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");

/// The version of the log's form that this code writes.
pub(super) const FORMAT: i64 = 1;
/// The most appends of one commit.
const BATCH_APPENDS_MAX: usize = 512;
/// About the most bytes of one commit.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// How often an idle writer looks whether another process has committed.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Interned aggregates that are kept in memory.
pub(super) const KNOWN_AGGREGATES_MAX: usize = 65_536;

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
    pub(super) grown: watch::Sender<Position>,
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
    aggregates: HashMap<(String, String), i64>,
    grown: watch::Sender<Position>,
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
        let mut writer = Self {
            location,
            lock,
            connection,
            log_time: Arc::clone(&start.log_time),
            aggregates: HashMap::new(),
            grown: start.grown.clone(),
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
        self.grown.send_if_modified(|head| {
            let grew = end.head > *head;
            *head = end.head.max(*head);
            grew
        });
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
        let mut batch = Batch {
            transaction: &transaction,
            aggregates: &self.aggregates,
            interned: HashMap::new(),
            head: start.head,
            now: reading.now,
        };
        if let Some(step) = reading.stepped_back {
            batch.record_step(step).map_err(fault)?;
        }
        let outcomes = appends.iter().map(|append| batch.judge(append).map_err(fault)).collect::<Result<Vec<_>>>()?;
        let Batch { interned, head, now, .. } = batch;
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::Before, start.head, head);
        transaction.commit().map_err(fault)?;
        #[cfg(feature = "faults")]
        crate::faults::reach(crate::faults::Point::After, start.head, head);
        drop(held);
        if reading.stepped_back.is_some() {
            self.log_time.step_is_recorded();
        }
        if self.aggregates.len() + interned.len() > KNOWN_AGGREGATES_MAX {
            self.aggregates.clear();
        }
        self.aggregates.extend(interned);
        if head > start.head {
            self.publish(End { head, created_at: now });
        } else {
            self.publish(start);
        }
        Ok(outcomes)
    }

    /// After a failed commit nothing that the connection holds is trusted.
    fn reopen(&mut self) {
        self.aggregates.clear();
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
    let fault = |error| location.read_fault("migrating the log", error);
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

/// One commit in the making.
struct Batch<'a> {
    transaction: &'a Transaction<'a>,
    aggregates: &'a HashMap<(String, String), i64>,
    /// Interned by this batch; known to the writer only once they are committed.
    interned: HashMap<(String, String), i64>,
    head: Position,
    now: Timestamp,
}

/// An event with the id of an event to be appended.
struct Known {
    place: Place,
    created_at: Timestamp,
    is_equal: bool,
}

impl Batch<'_> {
    /// Writes an append, or refuses it and leaves no trace. The outer error is a fault of the database.
    fn judge(&mut self, append: &Append) -> rusqlite::Result<Result<Appended>> {
        match self.repetition(append)? {
            Ok(None) => {}
            Ok(Some(repeated)) => return Ok(Ok(repeated)),
            Err(refusal) => return Ok(Err(refusal)),
        }
        let mut targets = Vec::with_capacity(append.writes.len());
        for write in &append.writes {
            let aggregate = self.aggregate(&write.stream_id, &write.aggregate_id)?;
            let actual = match aggregate {
                Some(aggregate) => tables::sequence(self.transaction, aggregate)?,
                None => 0,
            };
            if let Some(refusal) = refusal(write, actual) {
                return Ok(Err(refusal));
            }
            targets.push((write, aggregate, actual));
        }
        let append_start = Position(self.head.0 + 1);
        let mut places = Vec::new();
        for (write, aggregate, actual) in targets {
            if write.events.is_empty() {
                continue;
            }
            let aggregate = match aggregate {
                Some(aggregate) => aggregate,
                None => self.intern(&write.stream_id, &write.aggregate_id)?,
            };
            for (event, sequence) in write.events.iter().zip(actual + 1..) {
                places.push(self.insert(aggregate, sequence, append_start, event)?);
            }
        }
        Ok(Ok(Appended { places, created_at: self.now, repeated: false }))
    }

    /// Judges the ids, before all else: `None` when none is known.
    fn repetition(&self, append: &Append) -> rusqlite::Result<Result<Option<Appended>>> {
        let mut known = Vec::new();
        let mut unknown = None;
        for write in &append.writes {
            for event in &write.events {
                match self.find(write, event)? {
                    Some(found) if !found.is_equal => {
                        let (event_id, position) = (event.event_id, found.place.position);
                        return Ok(Err(Error::IdReused { event_id, position }));
                    }
                    Some(found) => known.push((event.event_id, found)),
                    None => unknown = Some(event.event_id),
                }
            }
        }
        Ok(match (known.first(), unknown) {
            (None, _) => Ok(None),
            (Some((known, found)), Some(unknown)) => {
                Err(Error::PartlyKnown { known: *known, position: found.place.position, unknown })
            }
            (Some((_, first)), None) => Ok(Some(Appended {
                created_at: first.created_at,
                places: known.iter().map(|(_, found)| found.place).collect(),
                repeated: true,
            })),
        })
    }

    fn find(&self, write: &Write, event: &NewEvent) -> rusqlite::Result<Option<Known>> {
        let sql = "SELECT e.position, e.sequence, e.created_at, a.stream_id = ?2 AND a.aggregate_id = ?3 \
             AND e.event_type = ?4 AND e.event_version = ?5 AND e.data = ?6 AND e.tags = ?7 \
             FROM events AS e CROSS JOIN aggregates AS a ON a.aggregate = e.aggregate WHERE e.event_id = ?1";
        self.transaction
            .prepare_cached(sql)?
            .query_row(
                params![
                    &event.event_id.as_bytes()[..],
                    write.stream_id,
                    write.aggregate_id,
                    event.event_type,
                    event.event_version,
                    event.data,
                    tags_as_json(&event.tags)
                ],
                |row| {
                    Ok(Known {
                        place: Place { position: Position(row.get(0)?), sequence: row.get(1)? },
                        created_at: Timestamp(row.get(2)?),
                        is_equal: row.get(3)?,
                    })
                },
            )
            .optional()
    }

    fn aggregate(&self, stream_id: &str, aggregate_id: &str) -> rusqlite::Result<Option<i64>> {
        let key = (stream_id.to_owned(), aggregate_id.to_owned());
        if let Some(aggregate) = self.aggregates.get(&key).or_else(|| self.interned.get(&key)) {
            return Ok(Some(*aggregate));
        }
        tables::aggregate(self.transaction, stream_id, aggregate_id)
    }

    fn intern(&mut self, stream_id: &str, aggregate_id: &str) -> rusqlite::Result<i64> {
        let aggregate = tables::intern(self.transaction, stream_id, aggregate_id)?;
        self.interned.insert((stream_id.to_owned(), aggregate_id.to_owned()), aggregate);
        Ok(aggregate)
    }

    fn insert(
        &mut self,
        aggregate: i64,
        sequence: i64,
        append_start: Position,
        event: &NewEvent,
    ) -> rusqlite::Result<Place> {
        let position = Position(self.head.0 + 1);
        let row = Row {
            position,
            event_id: event.event_id,
            aggregate,
            sequence,
            event_type: &event.event_type,
            event_version: &event.event_version,
            data: &event.data,
            metadata: &event.metadata,
            tags: &event.tags,
            created_at: self.now,
            append_start,
        };
        row.insert(self.transaction)?;
        self.head = position;
        Ok(Place { position, sequence })
    }

    /// Notes in the log that the wall clock was found behind it.
    fn record_step(&mut self, step: Duration) -> rusqlite::Result<()> {
        let micros = step.as_micros();
        tracing::warn!(behind_us = micros, "the wall clock stepped back; log time runs on");
        let (data, metadata) = (format!("{{\"behind_us\":{micros}}}"), Metadata::default());
        let event = NewEvent::from_json("ClockStepped", "1.0", data, &metadata).expect("both are JSON");
        let aggregate = match self.aggregate("log", "clock")? {
            Some(aggregate) => aggregate,
            None => self.intern("log", "clock")?,
        };
        let sequence = tables::sequence(self.transaction, aggregate)? + 1;
        self.insert(aggregate, sequence, Position(self.head.0 + 1), &event)?;
        Ok(())
    }
}

fn refusal(write: &Write, actual: i64) -> Option<Error> {
    let holds = match write.expected {
        Expected::Any => true,
        Expected::NoStream => actual == 0,
        Expected::Sequence(sequence) => actual == sequence,
    };
    (!holds).then(|| Error::SequenceMismatch {
        stream_id: write.stream_id.clone(),
        aggregate_id: write.aggregate_id.clone(),
        expected: write.expected,
        actual,
    })
}
