//! Bare SQLite on all tables and indexes of the log: the least that any event store on it must do.
//!
//! Positions and sequences are counted in memory and nothing is judged, so this is a bound and not a log.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crewlog_mq::Metadata;

use crate::workload::{self, N_AGGREGATES, Sample, TAG, aggregate_id};

const SCHEMA: &str = include_str!("../mq/migrations/sqlite/0001_log.sql");

pub struct Raw {
    pub connection: Connection,
    position: i64,
    sequences: HashMap<u64, i64>,
}

/// A future row: its number and its metadata as JSON.
pub type Row = (u64, String);

impl Raw {
    pub fn create(path: &Path) -> Self {
        let connection = Connection::open(path).expect("it opens");
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).expect("it is a file");
        connection.execute_batch("PRAGMA synchronous = FULL").expect("it is a setting");
        connection.execute_batch(SCHEMA).expect("it is a schema");
        let sql = "INSERT INTO kinds (kind, stream_id, event_type) VALUES (1, 'bench', 'Measured')";
        connection.execute(sql, []).expect("it is new");
        for n in 0..N_AGGREGATES {
            let sql = "INSERT INTO aggregates (aggregate, stream_id, aggregate_id) VALUES (?1, 'bench', ?2)";
            connection.execute(sql, params![n as i64 + 1, aggregate_id(n)]).expect("it is new");
        }
        Self { connection, position: 0, sequences: HashMap::new() }
    }

    /// One transaction, with one prepared `INSERT` per row and one for its tag.
    pub fn insert(&mut self, rows: &[Row], aggregate_of: impl Fn(u64) -> u64) {
        let transaction = self.connection.transaction().expect("it begins");
        {
            let sql = "INSERT INTO events (position, event_id, aggregate, sequence, event_type, event_version, data, \
                       metadata, tags, created_at, append_start, kind, correlation_id, causation_id) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
            let Metadata { correlation_id, causation_id, .. } = workload::metadata();
            let bytes = |id: Option<Uuid>| id.map(Uuid::into_bytes);
            let (correlation_id, causation_id) = (bytes(correlation_id), bytes(causation_id));
            let mut events = transaction.prepare_cached(sql).expect("it is SQL");
            let mut tags = transaction.prepare_cached("INSERT INTO tags VALUES (?1, ?2)").expect("it is SQL");
            for (n, metadata) in rows {
                self.position += 1;
                let aggregate = aggregate_of(*n) % N_AGGREGATES;
                let sequence = self.sequences.entry(aggregate).or_default();
                *sequence += 1;
                let Sample::Measured { n, unit, note } = Sample::nth(*n);
                let data = serde_json::to_string(&Data { n, unit, note }).expect("a sample is JSON");
                let event_id = Uuid::now_v7();
                let row = params![
                    self.position,
                    &event_id.as_bytes()[..],
                    aggregate as i64 + 1,
                    *sequence,
                    "Measured",
                    "1.0",
                    data,
                    metadata,
                    "[\"project:bench\"]",
                    self.position,
                    self.position,
                    1,
                    correlation_id,
                    causation_id
                ];
                events.execute(row).expect("the row is taken");
                tags.execute(params![TAG, self.position]).expect("the row is taken");
            }
        }
        transaction.commit().expect("it commits");
    }

    /// Reads every row with all of its columns, and decodes the data and the metadata.
    pub fn replay(&self) -> u64 {
        let sql = "SELECT position, event_id, stream_id, aggregate_id, sequence, event_type, event_version, data, \
                   metadata, tags, created_at, append_start FROM recorded_events ORDER BY position";
        let mut statement = self.connection.prepare_cached(sql).expect("it is SQL");
        let mut rows = statement.query([]).expect("it runs");
        let mut total = 0;
        while let Some(row) = rows.next().expect("it reads") {
            let text = |index| row.get_ref(index).expect("it is a column").as_str().expect("it is a text");
            let data: Data = serde_json::from_str(text(7)).expect("it is a sample");
            let metadata: Metadata = serde_json::from_str(text(8)).expect("it is metadata");
            std::hint::black_box(metadata);
            let sizes = [2, 3, 5, 6, 8, 9].map(|index| text(index).to_owned().len() as u64);
            total += data.n + sizes.iter().sum::<u64>();
        }
        total
    }
}

/// The fields of a sample, as stored in the log.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Data {
    pub n: u64,
    pub unit: String,
    pub note: String,
}

/// A thread that commits all queued rows together, like the log's writer.
pub fn group_commit(mut raw: Raw) -> mpsc::Sender<(Row, oneshot::Sender<()>)> {
    let (sender, mut queue) = mpsc::channel::<(Row, oneshot::Sender<()>)>(1024);
    std::thread::spawn(move || {
        while let Some(first) = queue.blocking_recv() {
            let mut batch = vec![first];
            while let Ok(next) = queue.try_recv() {
                batch.push(next);
            }
            let (rows, replies): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            raw.insert(&rows, |n| n);
            for reply in replies {
                let _ = reply.send(());
            }
        }
    });
    sender
}
