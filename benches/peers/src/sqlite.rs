//! Bare SQLite on the tables of the log: the least that an event store on them must do. Nothing is judged, positions
//! and sequences are counted in memory, and its replay decodes the data but not metadata or tags.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::data::Data;
use crate::subject::{Batch, Failure, Result, Store};
use crate::workload::{N_AGGREGATES, TAG, aggregate_id, metadata};

const SCHEMA: &str = include_str!("../../../mq/migrations/sqlite/0001_log.sql");
const INSERT: &str = "INSERT INTO events (position, event_id, aggregate, sequence, event_type, event_version, data, \
                      metadata, tags, created_at, append_start, kind, correlation_id, causation_id) \
                      VALUES (?1, ?2, ?3, ?4, 'Measured', '1.0', ?5, ?6, ?7, ?8, ?9, 1, ?10, ?11)";
const SELECT: &str = "SELECT data, stream_id, aggregate_id, event_type, event_version, metadata, tags \
                      FROM recorded_events ORDER BY position LIMIT ?1";

struct Raw {
    connection: Connection,
    position: i64,
    sequences: HashMap<u64, i64>,
}

impl Raw {
    fn create(folder: &Path) -> Result<Self> {
        let connection = Connection::open(folder.join("log.db"))?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.execute_batch("PRAGMA synchronous = FULL")?;
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch("INSERT INTO kinds (kind, stream_id, event_type) VALUES (1, 'bench', 'Measured')")?;
        for n in 0..N_AGGREGATES {
            let sql = "INSERT INTO aggregates (aggregate, stream_id, aggregate_id) VALUES (?1, 'bench', ?2)";
            connection.execute(sql, params![n as i64 + 1, aggregate_id(n)])?;
        }
        Ok(Self { connection, position: 0, sequences: HashMap::new() })
    }

    /// One transaction, with one prepared `INSERT` per row and one for its tag.
    fn insert(&mut self, batches: &[Batch]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut events = transaction.prepare_cached(INSERT)?;
            let mut tags = transaction.prepare_cached("INSERT INTO tags VALUES (?1, ?2)")?;
            for batch in batches {
                let aggregate = batch.aggregate % N_AGGREGATES;
                let sequence = self.sequences.entry(aggregate).or_default();
                let append_start = self.position + 1;
                for n in batch.numbers() {
                    self.position += 1;
                    *sequence += 1;
                    let metadata = metadata();
                    events.execute(params![
                        self.position,
                        &Uuid::now_v7().as_bytes()[..],
                        aggregate as i64 + 1,
                        *sequence,
                        serde_json::to_string(&Data::nth(n))?,
                        serde_json::to_string(&metadata)?,
                        "[\"project:bench\"]",
                        self.position,
                        append_start,
                        metadata.correlation_id.as_ref().map(|id| &id.as_bytes()[..]),
                        metadata.causation_id.as_ref().map(|id| &id.as_bytes()[..]),
                    ])?;
                    tags.execute(params![TAG, self.position])?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn replay(&self, n_events: u64) -> Result<()> {
        let mut statement = self.connection.prepare_cached(SELECT)?;
        let mut rows = statement.query([n_events as i64])?;
        let (mut n_read, mut total) = (0, 0);
        while let Some(row) = rows.next()? {
            let data: Data = serde_json::from_str(row.get_ref(0)?.as_str()?)?;
            for column in 1..7 {
                total += row.get_ref(column)?.as_str()?.to_owned().len() as u64;
            }
            total += data.n;
            n_read += 1;
        }
        std::hint::black_box(total);
        if n_read == n_events { Ok(()) } else { Err(format!("only {n_read} events are there").into()) }
    }
}

/// Transactions on the caller's thread.
pub struct Direct {
    raw: Mutex<Raw>,
}

impl Direct {
    pub fn create(folder: &Path) -> Result<Self> {
        Ok(Self { raw: Mutex::new(Raw::create(folder)?) })
    }
}

impl Store for Direct {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.raw.lock().map_err(|_| "a writer has panicked")?.insert(&[batch]) })
    }

    fn replay(&self, n_events: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.raw.lock().map_err(|_| "a writer has panicked")?.replay(n_events) })
    }

    fn follow(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<u64>>>> {
        Box::pin(async { Err("a table has no live end".into()) })
    }
}

type Request = (Batch, oneshot::Sender<std::result::Result<(), String>>);

/// A thread that commits all queued events together.
pub struct GroupCommit {
    queue: mpsc::Sender<Request>,
}

impl GroupCommit {
    pub fn start(folder: &Path) -> Result<Self> {
        let mut raw = Raw::create(folder)?;
        let (queue, mut requests) = mpsc::channel::<Request>(1024);
        std::thread::spawn(move || {
            while let Some(first) = requests.blocking_recv() {
                let mut queued = vec![first];
                while let Ok(next) = requests.try_recv() {
                    queued.push(next);
                }
                let (batches, replies): (Vec<_>, Vec<_>) = queued.into_iter().unzip();
                let done = raw.insert(&batches).map_err(|failure| failure.to_string());
                for reply in replies {
                    let _ = reply.send(done.clone());
                }
            }
        });
        Ok(Self { queue })
    }
}

impl Store for GroupCommit {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.queue.send((batch, reply)).await.map_err(|_| "the thread has ended")?;
            answer.await?.map_err(Failure::from)
        })
    }

    fn replay(&self, _n_events: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Err("it only writes".into()) })
    }

    fn follow(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<u64>>>> {
        Box::pin(async { Err("it only writes".into()) })
    }
}
