//! Reads and writes the rows of a log's tables, without judging their contents.

use std::collections::HashMap;

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use super::log::Log;
use super::server::answered;
use crate::cell::{CellChange, Held};
use crate::clock::Timestamp;
use crate::judge::Entry;
use crate::position::Position;
use crate::recorded::{Causes, Recorded, tags_as_json, tags_of_json};

/// The approximate maximum size of one statement, in bytes.
const STATEMENT_BYTES_MAX: usize = 8 << 20;

/// The columns that [`recorded`] reads, of events `e` and their aggregates `a`.
macro_rules! recorded_columns {
    () => {
        "e.position, e.event_id, a.stream_id, a.aggregate_id, e.sequence, e.event_type, e.event_version, e.data, \
         e.metadata, e.tags, e.created_at, e.append_start"
    };
}
pub(super) use recorded_columns;

/// An event of the log.
pub(super) fn recorded(row: &PgRow) -> sqlx::Result<Recorded> {
    let tags = tags_of_json(row.try_get(9)?)
        .map_err(|error| sqlx::Error::ColumnDecode { index: "tags".to_owned(), source: error.into() })?;
    Ok(Recorded {
        position: Position(row.try_get(0)?),
        event_id: row.try_get(1)?,
        stream_id: row.try_get(2)?,
        aggregate_id: row.try_get(3)?,
        sequence: row.try_get(4)?,
        event_type: row.try_get(5)?,
        event_version: row.try_get(6)?,
        data: row.try_get(7)?,
        metadata: row.try_get(8)?,
        tags,
        created_at: Timestamp(row.try_get(10)?),
        append_start: Position(row.try_get(11)?),
    })
}

/// The rows that one transaction writes, gathered before it is written.
#[derive(Default)]
pub(super) struct Rows {
    aggregates: Vec<(i64, String, String)>,
    kinds: Vec<(i64, String, String)>,
    events: Vec<EventRow>,
    /// Each cell once, after its last change.
    cells: Vec<CellRow>,
    /// The index of each cell in `cells`, by space and key.
    cell_indexes: HashMap<(String, String), usize>,
}

struct EventRow {
    event: Recorded,
    causes: Causes,
    aggregate: i64,
    kind: i64,
}

struct CellRow {
    space: String,
    key: String,
    /// `None` deletes the cell.
    value: Option<String>,
    held: Held,
}

impl Rows {
    pub(super) fn aggregate(&mut self, number: i64, stream_id: &str, aggregate_id: &str) {
        self.aggregates.push((number, stream_id.to_owned(), aggregate_id.to_owned()));
    }

    pub(super) fn kind(&mut self, number: i64, stream_id: &str, event_type: &str) {
        self.kinds.push((number, stream_id.to_owned(), event_type.to_owned()));
    }

    pub(super) fn entry(&mut self, entry: &Entry<'_>, aggregate: i64, kind: i64) {
        self.events.push(EventRow { event: entry.recorded(), causes: entry.event.causes, aggregate, kind });
    }

    pub(super) fn event_row(&mut self, event: Recorded, aggregate: i64, kind: i64) {
        let causes = event.causes();
        self.events.push(EventRow { event, causes, aggregate, kind });
    }

    pub(super) fn cell(&mut self, change: &CellChange, held: Held) {
        let (space, key, value) = (change.space.clone(), change.key.clone(), change.value.clone());
        let n_cells = self.cells.len();
        let index = *self.cell_indexes.entry((space.clone(), key.clone())).or_insert(n_cells);
        let row = CellRow { space, key, value, held };
        match self.cells.get_mut(index) {
            Some(earlier) => *earlier = row,
            None => self.cells.push(row),
        }
    }

    pub(super) fn n_events(&self) -> usize {
        self.events.len()
    }

    pub(super) fn event(&self, index: usize) -> &Recorded {
        &self.events[index].event
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Recorded> {
        self.events.iter().map(|row| &row.event)
    }

    pub(super) fn into_events(self) -> Vec<Recorded> {
        self.events.into_iter().map(|row| row.event).collect()
    }

    /// Writes all rows.
    pub(super) async fn insert(&self, log: &Log, connection: &mut PgConnection) -> sqlx::Result<()> {
        if !self.aggregates.is_empty() {
            let sql = "INSERT INTO aggregates (aggregate, stream_id, aggregate_id) \
                 SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])";
            named(log, connection, sql, &self.aggregates).await?;
        }
        if !self.kinds.is_empty() {
            let sql = "INSERT INTO kinds (kind, stream_id, event_type) \
                 SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])";
            named(log, connection, sql, &self.kinds).await?;
        }
        for part in parts(&self.events, |row| row.event.data.len() + row.event.metadata.len()) {
            insert_events(log, connection, part).await?;
        }
        self.insert_cells(log, connection).await
    }

    async fn insert_cells(&self, log: &Log, connection: &mut PgConnection) -> sqlx::Result<()> {
        let deleted = self.cells.iter().filter(|cell| cell.value.is_none());
        let (spaces, keys): (Vec<_>, Vec<_>) = deleted.map(|cell| (cell.space.clone(), cell.key.clone())).unzip();
        if !spaces.is_empty() {
            let sql = "DELETE FROM cells AS c USING unnest($1::text[], $2::text[]) AS i (space, key) \
                 WHERE c.space = i.space AND c.key = i.key";
            answered(log.statement(sql).bind(spaces).bind(keys).execute(&mut *connection)).await?;
        }
        let set: Vec<_> = self.cells.iter().filter(|cell| cell.value.is_some()).collect();
        for part in parts(&set, |cell| cell.value.as_ref().map_or(0, String::len)) {
            let sql = "INSERT INTO cells (space, key, version, held_until, value) \
                 SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[]) \
                 ON CONFLICT (space, key) DO UPDATE \
                 SET version = EXCLUDED.version, held_until = EXCLUDED.held_until, value = EXCLUDED.value";
            let column = |of: fn(&CellRow) -> &str| part.iter().map(|cell| of(cell)).collect::<Vec<&str>>();
            let statement = log
                .statement(sql)
                .bind(column(|cell| &cell.space))
                .bind(column(|cell| &cell.key))
                .bind(part.iter().map(|cell| cell.held.version).collect::<Vec<_>>())
                .bind(part.iter().map(|cell| cell.held.until.map(|until| until.0)).collect::<Vec<_>>())
                .bind(column(|cell| cell.value.as_deref().unwrap_or_default()));
            answered(statement.execute(&mut *connection)).await?;
        }
        Ok(())
    }
}

/// Consecutive parts, each about as large as fits into one statement.
fn parts<T>(rows: &[T], size: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let mut n_bytes = 0;
        let n_fit = rest.iter().take_while(|row| {
            let is_first = n_bytes == 0;
            n_bytes += size(row) + 256;
            is_first || n_bytes <= STATEMENT_BYTES_MAX
        });
        let (part, behind) = rest.split_at(n_fit.count());
        rest = behind;
        (!part.is_empty()).then_some(part)
    })
}

async fn named(
    log: &Log,
    connection: &mut PgConnection,
    sql: &'static str,
    rows: &[(i64, String, String)],
) -> sqlx::Result<()> {
    let numbers: Vec<i64> = rows.iter().map(|(number, ..)| *number).collect();
    let (firsts, seconds): (Vec<_>, Vec<_>) = rows.iter().map(|(_, a, b)| (a.as_str(), b.as_str())).unzip();
    answered(log.statement(sql).bind(numbers).bind(firsts).bind(seconds).execute(connection)).await.map(|_| ())
}

/// The events and their tags, in one statement.
async fn insert_events(log: &Log, connection: &mut PgConnection, rows: &[EventRow]) -> sqlx::Result<()> {
    let sql = "WITH written AS (INSERT INTO events (position, event_id, aggregate, kind, sequence, created_at, append_start, \
         correlation_id, causation_id, event_type, event_version, tags, metadata, data) \
         SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
         $7::bigint[], $8::uuid[], $9::uuid[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[])) \
         INSERT INTO tags (tag, position) SELECT * FROM unnest($15::text[], $16::bigint[])";
    let all = rows.iter().flat_map(|row| row.event.tags.iter().map(|tag| (tag.as_str(), row.event.position.0)));
    let (tags, positions): (Vec<&str>, Vec<i64>) = all.unzip();
    let numbers = |of: fn(&EventRow) -> i64| rows.iter().map(of).collect::<Vec<i64>>();
    let ids = |of: fn(&EventRow) -> Option<Uuid>| rows.iter().map(of).collect::<Vec<Option<Uuid>>>();
    let statement = log
        .statement(sql)
        .bind(numbers(|row| row.event.position.0))
        .bind(ids(|row| Some(row.event.event_id)))
        .bind(numbers(|row| row.aggregate))
        .bind(numbers(|row| row.kind))
        .bind(numbers(|row| row.event.sequence))
        .bind(numbers(|row| row.event.created_at.0))
        .bind(numbers(|row| row.event.append_start.0))
        .bind(ids(|row| row.causes.correlation_id))
        .bind(ids(|row| row.causes.causation_id))
        .bind(texts(rows, |row| &row.event.event_type))
        .bind(texts(rows, |row| &row.event.event_version))
        .bind(rows.iter().map(|row| tags_as_json(&row.event.tags)).collect::<Vec<_>>())
        .bind(texts(rows, |row| &row.event.metadata))
        .bind(texts(rows, |row| &row.event.data))
        .bind(tags)
        .bind(positions);
    answered(statement.execute(connection)).await.map(|_| ())
}

fn texts(rows: &[EventRow], of: fn(&EventRow) -> &str) -> Vec<&str> {
    rows.iter().map(of).collect()
}
