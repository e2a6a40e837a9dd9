//! The same rows through sqlx in its fastest form: one connection, and one statement for all rows of a commit.

use std::collections::HashMap;
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, QueryBuilder, Sqlite};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::raw::{Data, Raw, Row};
use crate::workload::{self, N_AGGREGATES, Sample, TAG};

pub struct BySqlx {
    connection: SqliteConnection,
    position: i64,
    sequences: HashMap<u64, i64>,
}

impl BySqlx {
    pub async fn create(path: &Path) -> Self {
        drop(Raw::create(path));
        let options = SqliteConnectOptions::new().filename(path);
        let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
        let connection = SqliteConnection::connect_with(&options).await.expect("it opens");
        Self { connection, position: 0, sequences: HashMap::new() }
    }

    /// One transaction of two statements, one for the events and one for their tags.
    pub async fn insert(&mut self, rows: &[Row], aggregate_of: impl Fn(u64) -> u64) {
        let first = self.position;
        let metadata = workload::metadata();
        let bytes = |id: Option<Uuid>| id.map(|id| id.as_bytes().to_vec());
        let mut events = QueryBuilder::<Sqlite>::new(
            "INSERT INTO events (position, event_id, aggregate, sequence, event_type, event_version, data, metadata, \
             tags, created_at, append_start, kind, correlation_id, causation_id) ",
        );
        events.push_values(rows, |mut row, (n, json)| {
            self.position += 1;
            let aggregate = aggregate_of(*n) % N_AGGREGATES;
            let sequence = self.sequences.entry(aggregate).or_default();
            *sequence += 1;
            let Sample::Measured { n, unit, note } = Sample::nth(*n);
            let data = serde_json::to_string(&Data { n, unit, note }).expect("a sample is JSON");
            row.push_bind(self.position).push_bind(Uuid::now_v7().as_bytes().to_vec()).push_bind(aggregate as i64 + 1);
            row.push_bind(*sequence).push_bind("Measured").push_bind("1.0").push_bind(data).push_bind(json.clone());
            row.push_bind("[\"project:bench\"]").push_bind(self.position).push_bind(self.position).push_bind(1);
            row.push_bind(bytes(metadata.correlation_id)).push_bind(bytes(metadata.causation_id));
        });
        let mut tags = QueryBuilder::<Sqlite>::new("INSERT INTO tags (tag, position) ");
        tags.push_values(first + 1..=self.position, |mut row, position| {
            row.push_bind(TAG).push_bind(position);
        });
        let mut transaction = self.connection.begin().await.expect("it begins");
        events.build().execute(&mut *transaction).await.expect("the rows are taken");
        tags.build().execute(&mut *transaction).await.expect("the rows are taken");
        transaction.commit().await.expect("it commits");
    }
}

/// A task that commits together what has queued.
pub fn group_commit(mut by_sqlx: BySqlx) -> mpsc::Sender<(Row, oneshot::Sender<()>)> {
    let (sender, mut queue) = mpsc::channel::<(Row, oneshot::Sender<()>)>(1024);
    tokio::spawn(async move {
        while let Some(first) = queue.recv().await {
            let mut batch = vec![first];
            while let Ok(next) = queue.try_recv() {
                batch.push(next);
            }
            let (rows, replies): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            by_sqlx.insert(&rows, |n| n).await;
            for reply in replies {
                let _ = reply.send(());
            }
        }
    });
    sender
}
