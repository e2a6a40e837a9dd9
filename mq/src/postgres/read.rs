//! Reads pages of events, the head, the identity and cells. Each read sees one snapshot.

use futures::TryStreamExt;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query as Statement;
use sqlx::{Postgres, Row};

use super::log::Log;
use super::rows::recorded;
use super::server::answered;
use super::sources::{self, Wanted};
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
    pub(super) log: &'a Log,
    pub(super) connection: &'a mut PgConnection,
    pub(super) end: End,
    /// True if rows are left on the connection, which then cannot be used again.
    pub(super) is_spent: bool,
}

impl Snapshot<'_> {
    pub(super) async fn rows(&mut self, statement: Statement<'_, Postgres, PgArguments>) -> sqlx::Result<Vec<PgRow>> {
        answered(statement.fetch_all(&mut *self.connection)).await
    }

    async fn row(&mut self, statement: Statement<'_, Postgres, PgArguments>) -> sqlx::Result<PgRow> {
        answered(statement.fetch_one(&mut *self.connection)).await
    }
}

/// The request for a page.
pub(super) struct Asked {
    pub(super) query: Query,
    pub(super) range: Range,
    pub(super) limit: usize,
}

impl Asked {
    /// The requested part of the log.
    async fn wanted(&self, snapshot: &mut Snapshot<'_>) -> sqlx::Result<Wanted> {
        let Self { range, limit, .. } = *self;
        let head = snapshot.end.head;
        let mut low = range.after.max(Position(0));
        let mut high = range.up_to.map_or(head, |up_to| up_to.min(head));
        if let Some(since) = range.since {
            low = low.max(last_before(snapshot, since, (low, head)).await?);
        }
        if let Some(after) = range.until.and_then(|until| until.0.checked_add(1)) {
            high = high.min(last_before(snapshot, Timestamp(after), (Position(0), high)).await?);
        }
        Ok(Wanted { low, high: high.max(low), backwards: range.backwards, limit })
    }
}

async fn last_before(
    snapshot: &mut Snapshot<'_>,
    moment: Timestamp,
    (low, high): (Position, Position),
) -> sqlx::Result<Position> {
    let statement = snapshot.log.statement("SELECT last_before($1, $2, $3)").bind(moment.0).bind(low.0).bind(high.0);
    snapshot.row(statement).await?.try_get(0).map(Position)
}

/// The matching events of a range.
pub(super) async fn page(snapshot: &mut Snapshot<'_>, asked: &Asked) -> sqlx::Result<Page> {
    let wanted = asked.wanted(snapshot).await?;
    let Wanted { low, high, backwards, limit } = wanted;
    let mut events = Vec::new();
    let (log, connection) = (snapshot.log, &mut *snapshot.connection);
    let select =
        if low < high && limit > 0 { sources::select(log, connection, &asked.query, "", wanted).await? } else { None };
    if let Some(mut select) = select {
        let mut n_bytes = 0;
        let mut found = select.build().persistent(!log.server.is_pooled).fetch(connection);
        while let Some(row) = answered(found.try_next()).await? {
            let event = recorded(&row)?;
            n_bytes += event.data.len() + event.metadata.len();
            events.push(event);
            if n_bytes >= PAGE_BYTES_MAX {
                snapshot.is_spent = true;
                break;
            }
        }
    }
    Ok(Page::of(events, limit, (low, high), backwards))
}

/// The server's query plan for a page.
pub(super) async fn plan(snapshot: &mut Snapshot<'_>, asked: &Asked) -> sqlx::Result<Vec<String>> {
    let wanted = asked.wanted(snapshot).await?;
    let (log, connection) = (snapshot.log, &mut *snapshot.connection);
    match sources::select(log, connection, &asked.query, "EXPLAIN (COSTS OFF) ", wanted).await? {
        Some(mut select) => {
            let rows = snapshot.rows(select.build().persistent(false)).await?;
            rows.iter().map(|row| row.try_get(0)).collect()
        }
        None => Ok(Vec::new()),
    }
}

/// The last position at or before `at` at which an append ends. Only the event after `at` shows whether one ends there.
pub(super) async fn whole(log: &Log, connection: &mut PgConnection, at: Position) -> sqlx::Result<Position> {
    let statement = log.statement("SELECT append_start FROM events WHERE position = $1").bind(at.0 + 1);
    let Some(next) = answered(statement.fetch_optional(connection)).await? else { return Ok(at) };
    let append_start: i64 = next.try_get(0)?;
    Ok(Position(if append_start <= at.0 { append_start - 1 } else { at.0 }))
}

/// The log's identity.
pub(super) async fn identity(log: &Log, connection: &mut PgConnection) -> sqlx::Result<LogIdentity> {
    let row = answered(log.statement("SELECT id, format, created_at FROM log").fetch_one(connection)).await?;
    Ok(LogIdentity { id: row.try_get(0)?, format: row.try_get(1)?, created_at: Timestamp(row.try_get(2)?) })
}

/// Cells of a space in key order, starting at `from`.
pub(super) async fn cells(
    snapshot: &mut Snapshot<'_>,
    (space, from, limit): &(String, String, usize),
) -> sqlx::Result<Vec<Cell>> {
    if space.contains('\0') {
        return Ok(Vec::new());
    }
    // PostgreSQL accepts no zero byte, and no key contains one. The keys from "a\0b" on are those after "a".
    let (from, is_behind) = from.split_once('\0').map_or((&**from, false), |(from, _)| (from, true));
    let sql = "SELECT key, version, value, held_until FROM cells \
         WHERE space = $1 AND key >= $2 AND NOT ($3 AND key = $2) ORDER BY key LIMIT $4";
    let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
    let statement = snapshot.log.statement(sql).bind(space).bind(from).bind(is_behind).bind(limit);
    let rows = snapshot.rows(statement).await?;
    let cells = rows.iter().map(|row| {
        Ok(Cell {
            space: space.clone(),
            key: row.try_get(0)?,
            version: row.try_get(1)?,
            value: row.try_get(2)?,
            held_until: row.try_get::<Option<i64>, _>(3)?.map(Timestamp),
        })
    });
    cells.collect()
}

/// Counts the contents of the log.
pub(super) async fn stats(snapshot: &mut Snapshot<'_>) -> sqlx::Result<Stats> {
    let sql = "SELECT (SELECT count(*) FROM aggregates), (SELECT count(*) FROM cells WHERE space != ''), \
         (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
          WHERE n.nspname = current_schema() AND c.relkind = 'r'), \
         (SELECT created_at FROM events WHERE position = 1), \
         (SELECT created_at FROM events ORDER BY position DESC LIMIT 1)";
    let counts = snapshot.row(snapshot.log.statement(sql)).await?;
    let sql = "SELECT k.stream_id, k.event_type, \
         (SELECT count(*) FROM events AS e WHERE e.kind = k.kind) FROM kinds AS k ORDER BY 1, 2";
    let kinds = snapshot.rows(snapshot.log.statement(sql)).await?;
    let kinds = kinds.iter().map(|row| {
        Ok(KindStats { stream_id: row.try_get(0)?, event_type: row.try_get(1)?, n_events: row.try_get(2)? })
    });
    let (first, last): (Option<i64>, Option<i64>) = (counts.try_get(3)?, counts.try_get(4)?);
    Ok(Stats {
        head: snapshot.end.head,
        n_aggregates: counts.try_get(0)?,
        n_cells: counts.try_get(1)?,
        n_bytes: counts.try_get(2)?,
        span: first.map(Timestamp).zip(last.map(Timestamp)),
        kinds: kinds.collect::<sqlx::Result<_>>()?,
    })
}
