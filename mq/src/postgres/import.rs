//! Imports the events of another copy of a log: one transaction under the append lock, on its own connection. It
//! never changes an existing event.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::postgres::PgConnection;
use tokio::sync::mpsc;

use super::batch::{Asked, Facts, Interned, Writing};
use super::log::Log;
use super::read::{identity, whole};
use super::rows::{recorded, recorded_columns};
use super::server::answered;
use super::writer::{Fault, commit};
use crate::backend::Records;
use crate::error::{Error, Result};
use crate::identity::LogIdentity;
use crate::import::{Import, Taken};
use crate::judge::Ledger;
use crate::position::Position;
use crate::recorded::Recorded;
use crate::report::Imported;

/// Records that are looked up and written together.
const PART_RECORDS_MAX: usize = 1000;
/// Their approximate maximum size in bytes.
const PART_BYTES_MAX: usize = 8 << 20;

const DOING: &str = "importing";

/// Imports all of the records, or none.
pub(super) async fn run(log: Arc<Log>, identity: LogIdentity, records: Records) -> Result<Imported> {
    let _permit = log.imports.acquire().await.map_err(|_| Error::Closed)?;
    if log.tail.is_closed() {
        return Err(Error::Closed);
    }
    let (sender, parts) = mpsc::channel(1);
    // Reading records may block; it stops when the import ends and nobody takes the next part.
    let reading = tokio::task::spawn_blocking(move || read(records, &sender));
    let imported = transact(&log, &identity, parts).await.map_err(|fault| fault.into_error(&log, DOING));
    reading.await.map_err(|error| Error::storage(DOING, error))?;
    imported
}

fn read(records: Records, sender: &mpsc::Sender<Result<Vec<Recorded>>>) {
    let (mut part, mut n_bytes) = (Vec::new(), 0);
    for record in records {
        match record {
            Ok(record) => {
                n_bytes += record.data.len() + record.metadata.len();
                part.push(record);
            }
            Err(error) => {
                // The records before it are judged first: they may be invalid too.
                if sender.blocking_send(Ok(part)).is_ok() {
                    let _ = sender.blocking_send(Err(error));
                }
                return;
            }
        }
        if part.len() >= PART_RECORDS_MAX || n_bytes >= PART_BYTES_MAX {
            n_bytes = 0;
            if sender.blocking_send(Ok(std::mem::take(&mut part))).is_err() {
                return;
            }
        }
    }
    // The receiver is gone only if the import has failed already.
    let _ = sender.blocking_send(Ok(part));
}

async fn transact(
    log: &Log,
    import: &LogIdentity,
    mut parts: mpsc::Receiver<Result<Vec<Recorded>>>,
) -> Result<Imported, Fault> {
    let mut connection = log.connect().await.map_err(Fault::Told)?;
    let connection = &mut connection;
    let start = log.begin(connection).await?;
    // The next part may take long to arrive.
    let patience = "SELECT set_config('idle_in_transaction_session_timeout', '10min', true)";
    answered(log.statement(patience).execute(&mut *connection)).await?;
    let identity = identity(log, connection).await?;
    let mut judge = Import::begin(&identity, start.end.head, import).map_err(Fault::Told)?;
    if judge.adopts {
        let sql = "UPDATE log SET id = $1, created_at = $2";
        let adopt = log.statement(sql).bind(import.id).bind(import.created_at.0);
        answered(adopt.execute(&mut *connection)).await?;
    }
    while let Some(part) = parts.recv().await {
        take(log, connection, &mut judge, part.map_err(Fault::Told)?).await?;
    }
    let whole = whole(log, connection, judge.position()).await?;
    let imported = judge.end(whole).map_err(Fault::Told)?;
    let (end, time) = log.uncommitted_end(connection).await?;
    commit(log, connection, (end.head > start.end.head).then_some(end.head)).await?;
    log.log_time.learn(time);
    log.tail.grew(start.generation, end);
    Ok(imported)
}

/// Imports one part: compares known records, and adds new ones.
async fn take(log: &Log, connection: &mut PgConnection, judge: &mut Import, part: Vec<Recorded>) -> Result<(), Fault> {
    // A malformed record is not looked up. The records before it are judged first.
    let mut taken = Vec::with_capacity(part.len());
    let mut broken = None;
    for record in part {
        match judge.take(&record) {
            Ok(take) => taken.push((take, record)),
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    let (facts, mut known) = look_up(log, connection, &taken).await?;
    let nothing = Interned::default();
    let mut writing = Writing::new(facts, &nothing);
    for (take, record) in taken {
        match take {
            Taken::Known => {
                let known = known.remove(&record.position).ok_or(sqlx::Error::RowNotFound)?;
                Import::compare(&known, &record).map_err(Fault::Told)?;
            }
            Taken::New => {
                let Ok(sequence) = writing.sequence(&record.stream_id, &record.aggregate_id);
                let same_id = writing.position_of(record.event_id);
                judge.add(&record, sequence, same_id).map_err(Fault::Told)?;
                writing.record(record);
            }
        }
    }
    if let Some(error) = broken {
        return Err(Fault::Told(error));
    }
    writing.rows.insert(log, connection).await?;
    Ok(())
}

/// Reads the facts needed to import these records, and the log's events at their positions.
async fn look_up(
    log: &Log,
    connection: &mut PgConnection,
    taken: &[(Taken, Recorded)],
) -> sqlx::Result<(Facts<'static>, HashMap<Position, Recorded>)> {
    let new = taken.iter().filter(|(take, _)| *take == Taken::New).map(|(_, record)| record);
    let facts = Facts::ask(log, connection, Asked::of_records(new), (&[], Position(0))).await?;
    let known = taken.iter().filter(|(take, _)| *take == Taken::Known);
    let positions: Vec<i64> = known.map(|(_, record)| record.position.0).collect();
    if positions.is_empty() {
        return Ok((facts, HashMap::new()));
    }
    let sql = concat!(
        "SELECT ",
        recorded_columns!(),
        " FROM unnest($1::bigint[]) AS i (position) JOIN events AS e ON e.position = i.position \
          JOIN aggregates AS a ON a.aggregate = e.aggregate"
    );
    let rows = answered(log.statement(sql).bind(positions).fetch_all(connection)).await?;
    let known = rows.iter().map(recorded).map(|event| event.map(|event| (event.position, event)));
    Ok((facts, known.collect::<sqlx::Result<_>>()?))
}
