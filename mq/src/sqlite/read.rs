//! Reading a log: pages of events, its head, its identity.

use futures::TryStreamExt;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Row, SqlitePool};
use uuid::Uuid;

use crate::PAGE_BYTES_MAX;
use crate::backend::LogIdentity;
use crate::clock::Timestamp;
use crate::position::Position;
use crate::record::{Page, Query, Range, Recorded};

type Result<T> = std::result::Result<T, sqlx::Error>;

/// The matching events of a range. `known` is a position that is surely in the log, so that a read bounded by it
/// need not ask for the head.
pub(super) async fn page(
    readers: &SqlitePool,
    query: &Query,
    range: Range,
    limit: usize,
    known: Position,
) -> Result<Page> {
    // The bound is read before the events: by the prefix property all below it is then visible.
    let bound = match range.up_to {
        Some(up_to) if up_to <= known => up_to,
        up_to => {
            let head = head(readers).await?;
            up_to.map_or(head, |up_to| up_to.min(head))
        }
    };
    if bound <= range.after || limit == 0 {
        return Ok(Page { events: Vec::new(), next: range.after, more: limit == 0 && bound > range.after });
    }
    let (sql, arguments) = select(query, range.after, bound, limit).map_err(sqlx::Error::Encode)?;
    let mut rows = sqlx::query_with(AssertSqlSafe(sql), arguments).fetch(readers);
    let mut events = Vec::new();
    let mut n_bytes = 0;
    while n_bytes < PAGE_BYTES_MAX
        && let Some(row) = rows.try_next().await?
    {
        let event = recorded(&row)?;
        n_bytes += event.data.len() + event.metadata.len();
        events.push(event);
    }
    match events.last() {
        Some(last) if events.len() == limit || n_bytes >= PAGE_BYTES_MAX => {
            let next = last.position;
            Ok(Page { events, next, more: next < bound })
        }
        _ => Ok(Page { events, next: bound, more: false }),
    }
}

/// Up to so many positions are looked through one by one rather than found by an index.
const SHORT_RANGE: i64 = 256;

const COLUMNS: &str = "e.position, e.event_id, a.stream_id, a.aggregate_id, e.sequence, e.event_type, \
     e.event_version, e.data, e.metadata, e.tags, e.created_at, e.append_start";

/// The statement of a page. What narrows the most drives it: the range when it is short, as it is for a reader that keeps
/// up, else one aggregate or the first tag, else the range. `CROSS JOIN` and unary plus keep SQLite from another order.
fn select(
    query: &Query,
    after: Position,
    bound: Position,
    limit: usize,
) -> std::result::Result<(String, SqliteArguments), sqlx::error::BoxDynError> {
    let mut arguments = SqliteArguments::default();
    arguments.add(after.0)?;
    arguments.add(bound.0)?;
    let is_long = bound.0.saturating_sub(after.0) > SHORT_RANGE;
    let of_aggregate = query.aggregate_id.as_ref().filter(|_| is_long && !query.stream_id.is_empty());
    let (mut sql, order) = if let Some(aggregate_id) = of_aggregate {
        arguments.add(query.stream_id.clone())?;
        arguments.add(aggregate_id.clone())?;
        let from = "FROM aggregates AS a CROSS JOIN events AS e ON e.aggregate = a.aggregate \
             WHERE +e.position > ?1 AND +e.position <= ?2 AND a.stream_id = ?3 AND a.aggregate_id = ?4";
        (format!("SELECT {COLUMNS} {from}"), "e.sequence")
    } else {
        let (from, order) = match query.tags.first() {
            Some(tag) => {
                arguments.add(tag.clone())?;
                let from = "tags AS t CROSS JOIN events AS e ON e.position = t.position \
                     CROSS JOIN aggregates AS a ON a.aggregate = e.aggregate \
                     WHERE t.position > ?1 AND t.position <= ?2 AND t.tag = ?3";
                (from, "t.position")
            }
            None => {
                let from = "events AS e CROSS JOIN aggregates AS a ON a.aggregate = e.aggregate \
                     WHERE e.position > ?1 AND e.position <= ?2";
                (from, "e.position")
            }
        };
        let mut sql = format!("SELECT {COLUMNS} FROM {from}");
        if !query.stream_id.is_empty() {
            arguments.add(query.stream_id.clone())?;
            sql.push_str(&format!(" AND a.stream_id = ?{}", arguments.len()));
        }
        if let Some(aggregate_id) = &query.aggregate_id {
            arguments.add(aggregate_id.clone())?;
            sql.push_str(&format!(" AND a.aggregate_id = ?{}", arguments.len()));
        }
        (sql, order)
    };
    if let Some(event_type) = &query.event_type {
        arguments.add(event_type.clone())?;
        sql.push_str(&format!(" AND e.event_type = ?{}", arguments.len()));
    }
    for tag in &query.tags {
        arguments.add(tag.clone())?;
        let n = arguments.len();
        sql.push_str(&format!(" AND EXISTS (SELECT 1 FROM tags WHERE tag = ?{n} AND position = e.position)"));
    }
    arguments.add(i64::try_from(limit).unwrap_or(i64::MAX))?;
    sql.push_str(&format!(" ORDER BY {order} LIMIT ?{}", arguments.len()));
    Ok((sql, arguments))
}

fn recorded(row: &SqliteRow) -> Result<Recorded> {
    let malformed =
        |index: usize, source: sqlx::error::BoxDynError| sqlx::Error::ColumnDecode { index: index.to_string(), source };
    let event_id: &[u8] = row.try_get(1)?;
    let tags: &str = row.try_get(9)?;
    Ok(Recorded {
        position: Position(row.try_get(0)?),
        event_id: Uuid::from_slice(event_id).map_err(|error| malformed(1, error.into()))?,
        stream_id: row.try_get(2)?,
        aggregate_id: row.try_get(3)?,
        sequence: row.try_get(4)?,
        event_type: row.try_get(5)?,
        event_version: row.try_get(6)?,
        data: row.try_get(7)?,
        metadata: row.try_get(8)?,
        tags: serde_json::from_str(tags).map_err(|error| malformed(9, error.into()))?,
        created_at: Timestamp(row.try_get(10)?),
        append_start: Position(row.try_get(11)?),
    })
}

pub(super) async fn head(readers: &SqlitePool) -> Result<Position> {
    let head: Option<i64> = sqlx::query_scalar("SELECT max(position) FROM events").fetch_one(readers).await?;
    Ok(Position(head.unwrap_or(0)))
}

/// The last position at or before `at` at which an append ends: the event after it tells whether it is one. The head is
/// read first, since it is an end also when the log grows meanwhile.
pub(super) async fn whole(readers: &SqlitePool, at: Position) -> Result<Position> {
    let head = head(readers).await?;
    if at >= head {
        return Ok(head);
    }
    let append_start: i64 = sqlx::query_scalar("SELECT append_start FROM events WHERE position = ?")
        .bind(at.0.max(0) + 1)
        .fetch_one(readers)
        .await?;
    Ok(Position(if append_start <= at.0 { append_start - 1 } else { at.0 }))
}

pub(super) async fn log(readers: &SqlitePool) -> Result<LogIdentity> {
    let row = sqlx::query("SELECT id, format, created_at FROM log").fetch_one(readers).await?;
    let id: &str = row.try_get(0)?;
    Ok(LogIdentity {
        id: id.parse().map_err(|error: uuid::Error| sqlx::Error::Decode(error.into()))?,
        format: row.try_get(1)?,
        created_at: Timestamp(row.try_get(2)?),
    })
}
