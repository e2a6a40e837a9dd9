//! Reading a log: pages of events, its head, its identity, its cells. Each read sees one moment.

use futures::TryStreamExt;
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::log::{Log, Reading, end_transaction};
use super::rows::recorded;
use super::server::answered;
use super::sources::{self, Wanted};
use crate::backend::LogIdentity;
use crate::cell::Cell;
use crate::clock::Timestamp;
use crate::limits::PAGE_BYTES_MAX;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::Page;
use crate::report::{KindStats, Stats};
use crate::tail::{End, Look};

/// The matching events of a range.
pub(super) struct PageOf {
    pub(super) query: Query,
    pub(super) range: Range,
    pub(super) limit: usize,
}

impl Reading for PageOf {
    type Found = Page;

    async fn read(&self, log: &Log, connection: &mut PgConnection) -> sqlx::Result<(Page, bool)> {
        let end = log.begin_to_read(connection).await?.end;
        let (page, is_whole) = self.page(log, connection, end).await?;
        if is_whole {
            end_transaction(connection, "COMMIT").await?;
        }
        Ok((page, is_whole))
    }
}

impl PageOf {
    async fn page(&self, log: &Log, connection: &mut PgConnection, end: End) -> sqlx::Result<(Page, bool)> {
        let Self { range, limit, .. } = *self;
        let (low, high) = bounds(log, connection, range, end.head).await?;
        let wanted = Wanted { low, high, backwards: range.backwards, limit };
        let mut events = Vec::new();
        let (mut n_bytes, mut is_whole) = (0, true);
        let select = if low < high && limit > 0 {
            sources::select(log, connection, &self.query, "", wanted).await?
        } else {
            None
        };
        if let Some(mut select) = select {
            let mut found = select.build().persistent(!log.server.is_pooled).fetch(connection);
            while let Some(row) = answered(found.try_next()).await? {
                let event = recorded(&row)?;
                n_bytes += event.data.len() + event.metadata.len();
                events.push(event);
                if n_bytes >= PAGE_BYTES_MAX {
                    is_whole = false;
                    break;
                }
            }
        }
        Ok((Page::of(events, limit, (low, high), range.backwards), is_whole))
    }
}

/// How the server would read a page.
pub(super) struct PlanOf(pub(super) PageOf);

impl Reading for PlanOf {
    type Found = Vec<String>;

    async fn read(&self, log: &Log, connection: &mut PgConnection) -> sqlx::Result<(Vec<String>, bool)> {
        let PageOf { ref query, range, limit } = self.0;
        let end = log.begin_to_read(connection).await?.end;
        let (low, high) = bounds(log, connection, range, end.head).await?;
        let wanted = Wanted { low, high, backwards: range.backwards, limit };
        let mut plan = Vec::new();
        if let Some(mut select) = sources::select(log, connection, query, "EXPLAIN (COSTS OFF) ", wanted).await? {
            for row in answered(select.build().persistent(false).fetch_all(&mut *connection)).await? {
                plan.push(row.try_get(0)?);
            }
        }
        end_transaction(connection, "COMMIT").await?;
        Ok((plan, true))
    }
}

/// The positions of a range: after the first, up to and including the second, which is never before the first.
async fn bounds(
    log: &Log,
    connection: &mut PgConnection,
    range: Range,
    head: Position,
) -> sqlx::Result<(Position, Position)> {
    let mut low = range.after.max(Position(0));
    let mut high = range.up_to.map_or(head, |up_to| up_to.min(head));
    if let Some(since) = range.since {
        low = low.max(last_before(log, connection, since, (low, head)).await?);
    }
    if let Some(until) = range.until {
        let after = until.0.checked_add(1).map(Timestamp);
        if let Some(after) = after {
            high = high.min(last_before(log, connection, after, (Position(0), high)).await?);
        }
    }
    Ok((low, high.max(low)))
}

async fn last_before(
    log: &Log,
    connection: &mut PgConnection,
    moment: Timestamp,
    (low, high): (Position, Position),
) -> sqlx::Result<Position> {
    let statement = log.statement("SELECT last_before($1, $2, $3)").bind(moment.0).bind(low.0).bind(high.0);
    answered(statement.fetch_one(connection)).await?.try_get(0).map(Position)
}

/// The position of the last event.
pub(super) struct Head;

impl Reading for Head {
    type Found = Look;

    async fn read(&self, log: &Log, connection: &mut PgConnection) -> sqlx::Result<(Look, bool)> {
        Ok((log.end(connection).await?, true))
    }
}

/// The last position at or before this at which an append ends: the event after it tells whether it is one.
pub(super) struct Whole(pub(super) Position);

impl Reading for Whole {
    type Found = Position;

    async fn read(&self, log: &Log, connection: &mut PgConnection) -> sqlx::Result<(Position, bool)> {
        let end = log.begin_to_read(connection).await?.end;
        let at = self.0.max(Position(0));
        let mut whole = end.head;
        if at < end.head {
            let statement = log.statement("SELECT append_start FROM events WHERE position = $1").bind(at.0 + 1);
            let append_start: i64 = answered(statement.fetch_one(&mut *connection)).await?.try_get(0)?;
            whole = Position(if append_start <= at.0 { append_start - 1 } else { at.0 });
        }
        end_transaction(connection, "COMMIT").await?;
        Ok((whole, true))
    }
}

/// The log's identity.
pub(super) struct Identity;

impl Reading for Identity {
    type Found = LogIdentity;

    async fn read(&self, log: &Log, connection: &mut PgConnection) -> sqlx::Result<(LogIdentity, bool)> {
        log.begin_to_read(connection).await?;
        let identity = identity(log, connection).await?;
        end_transaction(connection, "COMMIT").await?;
        Ok((identity, true))
    }
}

/// The log's identity, within a transaction.
pub(super) async fn identity(log: &Log, connection: &mut PgConnection) -> sqlx::Result<LogIdentity> {
    let row = answered(log.statement("SELECT id, format, created_at FROM log").fetch_one(connection)).await?;
    Ok(LogIdentity { id: row.try_get(0)?, format: row.try_get(1)?, created_at: Timestamp(row.try_get(2)?) })
}

/// Cells of a space in the order of their keys.
pub(super) struct Cells {
    pub(super) space: String,
    pub(super) from: String,
    pub(super) limit: usize,
}

impl Reading for Cells {
    type Found = Vec<Cell>;

    async fn read(&self, log: &Log, connection: &mut PgConnection) -> sqlx::Result<(Vec<Cell>, bool)> {
        if self.space.contains('\0') {
            return Ok((Vec::new(), true));
        }
        // No key has a zero byte, and none is sent: behind one, all keys come that are longer than what stands before it.
        let (from, is_behind) = self.from.split_once('\0').map_or((&*self.from, false), |(from, _)| (from, true));
        let sql = if is_behind {
            "SELECT key, version, value, held_until FROM cells WHERE space = $1 AND key > $2 ORDER BY key LIMIT $3"
        } else {
            "SELECT key, version, value, held_until FROM cells WHERE space = $1 AND key >= $2 ORDER BY key LIMIT $3"
        };
        log.begin_to_read(connection).await?;
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let statement = log.statement(sql).bind(&self.space).bind(from).bind(limit);
        let rows = answered(statement.fetch_all(&mut *connection)).await?;
        end_transaction(connection, "COMMIT").await?;
        let cells = rows.iter().map(|row| {
            Ok(Cell {
                space: self.space.to_owned(),
                key: row.try_get(0)?,
                version: row.try_get(1)?,
                value: row.try_get(2)?,
                held_until: row.try_get::<Option<i64>, _>(3)?.map(Timestamp),
            })
        });
        Ok((cells.collect::<sqlx::Result<_>>()?, true))
    }
}

/// What the log holds.
pub(super) struct Counts;

impl Reading for Counts {
    type Found = Stats;

    async fn read(&self, log: &Log, connection: &mut PgConnection) -> sqlx::Result<(Stats, bool)> {
        let end = log.begin_to_read(connection).await?.end;
        let sql = "SELECT (SELECT count(*) FROM aggregates), (SELECT count(*) FROM cells WHERE space != ''), \
             (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
              WHERE n.nspname = current_schema() AND c.relkind = 'r'), \
             (SELECT created_at FROM events WHERE position = 1), \
             (SELECT created_at FROM events ORDER BY position DESC LIMIT 1)";
        let counts = answered(log.statement(sql).fetch_one(&mut *connection)).await?;
        let sql = "SELECT k.stream_id, k.event_type, \
             (SELECT count(*) FROM events AS e WHERE e.kind = k.kind) FROM kinds AS k ORDER BY 1, 2";
        let kinds = answered(log.statement(sql).fetch_all(&mut *connection)).await?;
        end_transaction(connection, "COMMIT").await?;
        let kinds = kinds.iter().map(|row| {
            Ok(KindStats { stream_id: row.try_get(0)?, event_type: row.try_get(1)?, n_events: row.try_get(2)? })
        });
        let (first, last): (Option<i64>, Option<i64>) = (counts.try_get(3)?, counts.try_get(4)?);
        let stats = Stats {
            head: end.head,
            n_aggregates: counts.try_get(0)?,
            n_cells: counts.try_get(1)?,
            n_bytes: counts.try_get(2)?,
            span: first.map(Timestamp).zip(last.map(Timestamp)),
            kinds: kinds.collect::<sqlx::Result<_>>()?,
        };
        Ok((stats, true))
    }
}
