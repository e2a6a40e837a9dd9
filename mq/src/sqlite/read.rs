//! Reads pages of events, the head, the identity and cells. Each read sees one snapshot.

use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::location::Location;
use super::sources;
use super::tables::{Names, end_of};
use crate::cell::Cell;
use crate::clock::Timestamp;
use crate::identity::LogIdentity;
use crate::limits::PAGE_BYTES_MAX;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::Page;
use crate::report::{KindStats, Stats};
use crate::tail::End;

/// A reading transaction, and the end of the log in it.
pub(super) struct Snapshot<'a> {
    pub(super) connection: &'a Connection,
    pub(super) end: End,
}

/// The matching events of a range.
pub(super) fn page(
    snapshot: &Snapshot<'_>,
    names: &mut Names,
    query: &Query,
    range: Range,
    limit: usize,
) -> rusqlite::Result<Page> {
    let (low, high) = bounds(snapshot, range)?;
    let mut events = Vec::new();
    let mut n_bytes = 0;
    if low < high && limit > 0 {
        sources::each(snapshot.connection, names, query, (low, high), range.backwards, |event| {
            n_bytes += event.data.len() + event.metadata.len();
            events.push(event);
            events.len() < limit && n_bytes < PAGE_BYTES_MAX
        })?;
    }
    Ok(Page::of(events, limit, (low, high), range.backwards))
}

/// The first event after a position that matches.
pub(super) fn first_match(
    connection: &Connection,
    query: &Query,
    after: Position,
) -> rusqlite::Result<Option<Position>> {
    let mut first = None;
    let bounds = (after.max(Position(0)), end_of(connection)?.0.head);
    if bounds.0 < bounds.1 {
        sources::each(connection, &mut Names::default(), query, bounds, false, |event| {
            first = Some(event.position);
            false
        })?;
    }
    Ok(first)
}

/// The positions of a range: after the first, up to and including the second, which is never before the first.
fn bounds(snapshot: &Snapshot<'_>, range: Range) -> rusqlite::Result<(Position, Position)> {
    let Snapshot { connection, end: End { head, .. } } = *snapshot;
    let mut low = range.after.max(Position(0));
    let mut high = range.up_to.map_or(head, |up_to| up_to.min(head));
    if let Some(since) = range.since {
        low = low.max(last_made(connection, low, head, |made| made < since)?);
    }
    if let Some(until) = range.until {
        high = high.min(last_made(connection, Position(0), high, |made| made <= until)?);
    }
    Ok((low, high.max(low)))
}

/// The last position in `(low, high]` whose time satisfies the condition, or `low`. Time never runs backwards in a log.
fn last_made(
    connection: &Connection,
    low: Position,
    high: Position,
    holds: impl Fn(Timestamp) -> bool,
) -> rusqlite::Result<Position> {
    let mut select = connection.prepare_cached("SELECT created_at FROM events WHERE position = ?1")?;
    let last = sources::last_where(low.0, high.0, |position| {
        select.query_row([position], |row| row.get(0)).map(|made| holds(Timestamp(made)))
    })?;
    Ok(Position(last))
}

/// The last position at or before `at` at which an append ends: the event after it shows whether one does.
pub(super) fn whole(snapshot: &Snapshot<'_>, at: Position) -> rusqlite::Result<Position> {
    let (at, head) = (at.max(Position(0)), snapshot.end.head);
    if at >= head {
        return Ok(head);
    }
    let append_start: i64 = snapshot
        .connection
        .prepare_cached("SELECT append_start FROM events WHERE position = ?1")?
        .query_row([at.0 + 1], |row| row.get(0))?;
    Ok(Position(if append_start <= at.0 { append_start - 1 } else { at.0 }))
}

pub(super) fn log(connection: &Connection) -> rusqlite::Result<LogIdentity> {
    connection.query_row("SELECT id, format, created_at FROM log", [], |row| {
        let id: String = row.get(0)?;
        let malformed = |error: uuid::Error| {
            rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
        };
        Ok(LogIdentity {
            id: Uuid::parse_str(&id).map_err(malformed)?,
            format: row.get(1)?,
            created_at: Timestamp(row.get(2)?),
        })
    })
}

pub(super) fn cells(connection: &Connection, space: &str, from: &str, limit: usize) -> rusqlite::Result<Vec<Cell>> {
    let sql = "SELECT key, version, value, held_until FROM cells WHERE space = ?1 AND key >= ?2 ORDER BY key LIMIT ?3";
    let mut select = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let cells = select.query_map(params![space, from, limit], |row| {
        Ok(Cell {
            space: space.to_owned(),
            key: row.get(0)?,
            version: row.get(1)?,
            value: row.get(2)?,
            held_until: row.get::<_, Option<i64>>(3)?.map(Timestamp),
        })
    })?;
    cells.collect()
}

pub(super) fn stats(snapshot: &Snapshot<'_>, location: &Location) -> rusqlite::Result<Stats> {
    let connection = snapshot.connection;
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let time_at = |order: &str| -> rusqlite::Result<Option<Timestamp>> {
        let sql = format!("SELECT created_at FROM events ORDER BY position {order} LIMIT 1");
        connection.query_row(&sql, [], |row| row.get(0).map(Timestamp)).optional()
    };
    let sql = "SELECT k.stream_id, k.event_type, count(*) FROM kinds AS k CROSS JOIN events AS e ON e.kind = k.kind \
         GROUP BY k.stream_id, k.event_type ORDER BY k.stream_id, k.event_type";
    let kinds = connection
        .prepare(sql)?
        .query_map([], |row| Ok(KindStats { stream_id: row.get(0)?, event_type: row.get(1)?, n_events: row.get(2)? }))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Stats {
        head: snapshot.end.head,
        n_aggregates: count("SELECT count(*) FROM aggregates")?,
        n_cells: count("SELECT count(*) FROM cells WHERE space != ''")?,
        n_bytes: match location.n_bytes() {
            Some(n_bytes) => n_bytes,
            None => count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?,
        },
        span: time_at("ASC")?.zip(time_at("DESC")?),
        kinds,
    })
}
