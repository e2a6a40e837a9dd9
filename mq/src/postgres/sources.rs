//! Finds the events that match a query: each alternative by its best index, merged in position order. Nothing is
//! scanned that an index can find.

use sqlx::postgres::PgConnection;
use sqlx::{Postgres, QueryBuilder, Row};

use super::log::Log;
use super::rows::recorded_columns;
use super::server::answered;
use crate::position::Position;
use crate::query::Query;
use crate::source::{Driver, MERGED_MAX, SHORT_RANGE, Source};

/// Part of the log as positions: after the first, up to and including the second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) low: Position,
    pub(super) high: Position,
    pub(super) backwards: bool,
    pub(super) limit: usize,
}

impl Wanted {
    fn direction(&self) -> &'static str {
        if self.backwards { " DESC" } else { "" }
    }

    fn limit(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX)
    }
}

/// The statement that reads whole events, with a prefix such as `EXPLAIN`; `None` if nothing can match.
pub(super) async fn select(
    log: &Log,
    connection: &mut PgConnection,
    query: &Query,
    verb: &str,
    wanted: Wanted,
) -> sqlx::Result<Option<QueryBuilder<Postgres>>> {
    Ok(branches(log, connection, query, wanted).await?.map(|branches| {
        let mut sql = QueryBuilder::new(verb);
        match &branches[..] {
            [branch] => branch.push(&mut sql, concat!("SELECT ", recorded_columns!()), wanted, true),
            branches => {
                sql.push(concat!("SELECT ", recorded_columns!(), " FROM ("));
                push_positions(&mut sql, branches, wanted);
                sql.push(") AS p JOIN events AS e ON e.position = p.position");
                sql.push(" JOIN aggregates AS a ON a.aggregate = e.aggregate ORDER BY p.position");
                sql.push(wanted.direction());
            }
        }
        sql
    }))
}

/// The first matching event of `(after, head]`.
pub(super) async fn first_match(
    log: &Log,
    connection: &mut PgConnection,
    query: &Query,
    (after, head): (Position, Position),
) -> sqlx::Result<Option<Position>> {
    let after = after.max(Position(0));
    if head <= after {
        return Ok(None);
    }
    let wanted = Wanted { low: after, high: head, backwards: false, limit: 1 };
    let Some(branches) = branches(log, connection, query, wanted).await? else { return Ok(None) };
    let mut sql = QueryBuilder::new("");
    push_positions(&mut sql, &branches, wanted);
    let found = answered(sql.build().persistent(!log.server.is_pooled).fetch_optional(connection)).await?;
    found.map(|row| row.try_get(0).map(Position)).transpose()
}

fn push_positions(sql: &mut QueryBuilder<Postgres>, branches: &[Branch], wanted: Wanted) {
    let direction = wanted.direction();
    if let [branch] = branches {
        return branch.push(sql, "SELECT e.position", wanted, false);
    }
    sql.push("SELECT DISTINCT ON (u.position) u.position FROM (");
    for (index, branch) in branches.iter().enumerate() {
        sql.push(if index == 0 { "(" } else { ") UNION ALL (" });
        branch.push(sql, "SELECT e.position", wanted, false);
    }
    sql.push(format!(")) AS u ORDER BY u.position{direction} LIMIT ")).push_bind(wanted.limit());
}

/// A source, and one of the queries that its events must match.
struct Branch {
    source: Source,
    rests: Vec<Query>,
}

impl Branch {
    fn of(source: Source, queries: &[&Query]) -> Self {
        let rests = queries.iter().map(|query| source.rest(query)).collect();
        Self { source, rests }
    }

    fn push(&self, sql: &mut QueryBuilder<Postgres>, columns: &str, wanted: Wanted, with_names: bool) {
        sql.push(columns);
        let is_of_tag = matches!(self.source, Source::Tag(_));
        sql.push(if is_of_tag {
            " FROM tags AS d JOIN events AS e ON e.position = d.position"
        } else {
            " FROM events AS e"
        });
        if with_names || self.rests.iter().any(|rest| !rest.stream_id.is_empty() || rest.aggregate_id.is_some()) {
            sql.push(" JOIN aggregates AS a ON a.aggregate = e.aggregate");
        }
        sql.push(" WHERE ");
        let order = self.push_source(sql, wanted);
        if !self.rests.contains(&Query::all()) {
            for (index, rest) in self.rests.iter().enumerate() {
                sql.push(if index == 0 { " AND ((true" } else { ") OR (true" });
                push_filter(sql, rest);
            }
            sql.push("))");
        }
        if let Some(order) = order {
            sql.push(format!(" ORDER BY {order}{}", wanted.direction()));
        }
        sql.push(" LIMIT ").push_bind(wanted.limit());
    }

    /// The source's own condition, and the sort order of its index.
    fn push_source(&self, sql: &mut QueryBuilder<Postgres>, wanted: Wanted) -> Option<&'static str> {
        let between = |sql: &mut QueryBuilder<Postgres>, column: &str, low: i64, high: i64| {
            sql.push(format!("{column} > ")).push_bind(low);
            sql.push(format!(" AND {column} <= ")).push_bind(high);
        };
        let mut order = "e.position";
        match &self.source {
            Source::Range => {}
            Source::Aggregate(aggregate, first, last) => {
                sql.push("e.aggregate = ").push_bind(*aggregate).push(" AND ");
                between(sql, "e.sequence", *first, *last);
                return Some("e.sequence");
            }
            Source::Kind(kind) => {
                sql.push("e.kind = ").push_bind(*kind).push(" AND ");
            }
            Source::Tag(tag) => {
                sql.push("d.tag = ").push_bind(tag.clone()).push(" AND ");
                order = "d.position";
            }
            Source::Event(id) => {
                // At most one event, so the order is right; the sum keeps the planner from scanning the range for it.
                sql.push("e.event_id = ").push_bind(*id).push(" AND ");
                between(sql, "e.position + 0", wanted.low.0, wanted.high.0);
                return None;
            }
            Source::Correlation(id) => {
                sql.push("e.correlation_id = ").push_bind(*id).push(" AND ");
            }
            Source::Causation(id) => {
                sql.push("e.causation_id = ").push_bind(*id).push(" AND ");
            }
        }
        between(sql, order, wanted.low.0, wanted.high.0);
        Some(order)
    }
}

fn push_filter(sql: &mut QueryBuilder<Postgres>, rest: &Query) {
    if !rest.stream_id.is_empty() {
        sql.push(" AND a.stream_id = ").push_bind(rest.stream_id.clone());
    }
    for (column, name) in [("a.aggregate_id", &rest.aggregate_id), ("e.event_type", &rest.event_type)] {
        if let Some(name) = name.clone() {
            sql.push(format!(" AND {column} = ")).push_bind(name);
        }
    }
    let ids = [rest.event_id, rest.correlation_id, rest.causation_id];
    for (column, id) in ["event_id", "correlation_id", "causation_id"].into_iter().zip(ids) {
        if let Some(id) = id {
            sql.push(format!(" AND e.{column} = ")).push_bind(id);
        }
    }
    for tag in &rest.tags {
        sql.push(" AND EXISTS (SELECT 1 FROM tags AS t WHERE t.tag = ").push_bind(tag.clone());
        sql.push(" AND t.position = e.position)");
    }
}

/// The sources of a query; the range alone if another choice would read all of it anyway. `None` if nothing can match.
async fn branches(
    log: &Log,
    connection: &mut PgConnection,
    query: &Query,
    wanted: Wanted,
) -> sqlx::Result<Option<Vec<Branch>>> {
    // No event has a zero byte in a name, and PostgreSQL cannot search for one.
    let queries: Vec<_> = query.alternatives().into_iter().filter(|query| !has_zero_byte(query)).collect();
    if queries.is_empty() {
        return Ok(None);
    }
    let range = || Ok(Some(vec![Branch::of(Source::Range, &queries)]));
    // A reader that keeps up has only a few events to check, whatever its query.
    if wanted.high.0 - wanted.low.0 <= SHORT_RANGE {
        return range();
    }
    let mut branches = Vec::new();
    for query in &queries {
        let sources = match Driver::of(query) {
            Driver::Source(Source::Range) => return range(),
            Driver::Source(source) => vec![source],
            Driver::Aggregates(aggregate_id) => {
                of_aggregates(log, connection, (&query.stream_id, aggregate_id), wanted).await?
            }
            Driver::Kinds => of_kinds(log, connection, query).await?,
        };
        branches.extend(sources.into_iter().map(|source| Branch::of(source, &[query])));
        if branches.len() > MERGED_MAX {
            return range();
        }
    }
    Ok((!branches.is_empty()).then_some(branches))
}

fn has_zero_byte(query: &Query) -> bool {
    let named = [Some(&query.stream_id), query.event_type.as_ref(), query.aggregate_id.as_ref()];
    named.into_iter().flatten().chain(&query.tags).any(|name| name.contains('\0'))
}

async fn of_kinds(log: &Log, connection: &mut PgConnection, query: &Query) -> sqlx::Result<Vec<Source>> {
    let sql = "SELECT kind FROM kinds WHERE ($1 = '' OR stream_id = $1) AND ($2::text IS NULL OR event_type = $2)";
    let kinds =
        answered(log.statement(sql).bind(&query.stream_id).bind(&query.event_type).fetch_all(connection)).await?;
    kinds.iter().map(|row| row.try_get(0).map(Source::Kind)).collect()
}

/// The parts of the aggregates with this name within the bounds, in one stream or in any.
async fn of_aggregates(
    log: &Log,
    connection: &mut PgConnection,
    (stream_id, aggregate_id): (&str, &str),
    wanted: Wanted,
) -> sqlx::Result<Vec<Source>> {
    let sql = if stream_id.is_empty() {
        "SELECT a.aggregate, last_sequence(a.aggregate, $3), last_sequence(a.aggregate, $4) \
         FROM (SELECT DISTINCT stream_id FROM kinds WHERE $1 = '') AS s \
         JOIN aggregates AS a ON a.stream_id = s.stream_id AND a.aggregate_id = $2"
    } else {
        "SELECT a.aggregate, last_sequence(a.aggregate, $3), last_sequence(a.aggregate, $4) \
         FROM aggregates AS a WHERE a.stream_id = $1 AND a.aggregate_id = $2"
    };
    let statement = log.statement(sql).bind(stream_id.to_owned()).bind(aggregate_id.to_owned());
    let found = answered(statement.bind(wanted.low.0).bind(wanted.high.0).fetch_all(connection)).await?;
    found.iter().map(|row| Ok(Source::Aggregate(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
}
