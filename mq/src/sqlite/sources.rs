//! Finds the events that match a query: each alternative by its best index, merged in position order. Nothing is
//! sorted, and nothing is scanned that an index can find.

use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Rows};

use super::tables::{NUMBERED, Names};
use crate::position::Position;
use crate::query::Query;
use crate::recorded::Recorded;
use crate::source::{Driver, MERGED_MAX, SHORT_RANGE, Source};

/// Passes the matching events of `(low, high]` to `take` in position order, or backwards, until it returns false.
pub(super) fn each(
    connection: &Connection,
    names: &mut Names,
    query: &Query,
    (low, high): (Position, Position),
    backwards: bool,
    mut take: impl FnMut(Recorded) -> bool,
) -> rusqlite::Result<()> {
    let bounds = Bounds { low, high };
    let sources = sources(connection, query, bounds)?;
    let wanted = query.alternatives();
    let is_exact = matches!(&sources[..], [source] if query.or.is_empty() && source.rest(query) == Query::all());
    let mut statements = Vec::with_capacity(sources.len());
    for source in &sources {
        statements.push(connection.prepare_cached(&sql(source, backwards))?);
    }
    let mut cursors = Vec::with_capacity(sources.len());
    for (statement, source) in statements.iter_mut().zip(sources) {
        cursors.extend(Cursor::open(statement, source, bounds)?);
    }
    while let Some(next) = next_of(&cursors, backwards) {
        let (position, row) = (cursors[next].position, cursors[next].row()?);
        // For rows of another stream or type nothing more is read.
        if is_exact || names.may_match(connection, row, &wanted)? {
            let event = names.recorded(connection, row)?;
            if (is_exact || query.matches(&event)) && !take(event) {
                return Ok(());
            }
        }
        // An event may be found through several sources, but comes once.
        for index in (0..cursors.len()).rev() {
            if cursors[index].position == position && !cursors[index].advance()? {
                cursors.swap_remove(index);
            }
        }
    }
    Ok(())
}

/// The greatest `n` in `(low, high]` for which `holds`, or `low`. If it holds for one it holds for all below.
pub(super) fn last_where(
    mut low: i64,
    mut high: i64,
    mut holds: impl FnMut(i64) -> rusqlite::Result<bool>,
) -> rusqlite::Result<i64> {
    while low < high {
        let middle = low + (high - low + 1) / 2;
        if holds(middle)? {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(low)
}

#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) low: Position,
    pub(super) high: Position,
}

/// The statement of a source. The bounds are `?1` and `?2`; the searched value is `?3`. `CROSS JOIN` and unary plus
/// force the order of the index.
pub(super) fn sql(source: &Source, backwards: bool) -> String {
    let within = "e.position > ?1 AND e.position <= ?2";
    let (from, order) = match source {
        Source::Range => (format!("events AS e WHERE {within}"), "e.position"),
        Source::Aggregate(..) => {
            let from = "events AS e WHERE e.aggregate = ?3 AND e.sequence > ?1 AND e.sequence <= ?2";
            (from.to_owned(), "e.sequence")
        }
        Source::Kind(_) => (format!("events AS e WHERE e.kind = ?3 AND {within}"), "e.position"),
        Source::Tag(_) => {
            let from = "tags AS t CROSS JOIN events AS e ON e.position = t.position \
                 WHERE t.tag = ?3 AND t.position > ?1 AND t.position <= ?2";
            (from.to_owned(), "t.position")
        }
        Source::Event(_) => (format!("events AS e WHERE e.event_id = ?3 AND +{within}"), "+e.position"),
        Source::Correlation(_) => (format!("events AS e WHERE e.correlation_id = ?3 AND {within}"), "e.position"),
        Source::Causation(_) => (format!("events AS e WHERE e.causation_id = ?3 AND {within}"), "e.position"),
    };
    let direction = if backwards { "DESC" } else { "ASC" };
    format!("SELECT {NUMBERED} FROM {from} ORDER BY {order} {direction}")
}

fn parameters(source: Source, Bounds { low, high }: Bounds) -> Vec<Value> {
    let (low, high) = (Value::Integer(low.0), Value::Integer(high.0));
    match source {
        Source::Range => vec![low, high],
        Source::Aggregate(aggregate, first, last) => {
            vec![Value::Integer(first), Value::Integer(last), Value::Integer(aggregate)]
        }
        Source::Kind(kind) => vec![low, high, Value::Integer(kind)],
        Source::Tag(tag) => vec![low, high, Value::Text(tag)],
        Source::Event(id) | Source::Correlation(id) | Source::Causation(id) => {
            vec![low, high, Value::Blob(id.as_bytes().to_vec())]
        }
    }
}

/// The sources of a query; the range alone if another choice would read all of it anyway.
pub(super) fn sources(connection: &Connection, query: &Query, bounds: Bounds) -> rusqlite::Result<Vec<Source>> {
    // A reader that keeps up has only a few events to check, whatever its query.
    if bounds.high.0 - bounds.low.0 <= SHORT_RANGE {
        return Ok(vec![Source::Range]);
    }
    let mut sources = Vec::new();
    for alternative in query.alternatives() {
        match Driver::of(alternative) {
            Driver::Source(source) => sources.push(source),
            Driver::Aggregates(aggregate_id) => {
                sources.extend(of_aggregates(connection, &alternative.stream_id, aggregate_id, bounds)?);
            }
            Driver::Kinds => {
                let sql =
                    "SELECT kind FROM kinds WHERE (?1 = '' OR stream_id = ?1) AND (?2 IS NULL OR event_type = ?2)";
                let mut select = connection.prepare_cached(sql)?;
                for kind in select.query_map((&alternative.stream_id, &alternative.event_type), |row| row.get(0))? {
                    sources.push(Source::Kind(kind?));
                }
            }
        }
        if sources.len() > MERGED_MAX || sources.last() == Some(&Source::Range) {
            return Ok(vec![Source::Range]);
        }
    }
    Ok(sources)
}

/// The aggregates with this name, in one stream or in any.
fn of_aggregates(
    connection: &Connection,
    stream_id: &str,
    aggregate_id: &str,
    bounds: Bounds,
) -> rusqlite::Result<Vec<Source>> {
    let streams = if stream_id.is_empty() {
        let mut select = connection.prepare_cached("SELECT DISTINCT stream_id FROM kinds")?;
        select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?
    } else {
        vec![stream_id.to_owned()]
    };
    let mut sources = Vec::new();
    for stream_id in &streams {
        if let Some(aggregate) = super::tables::aggregate(connection, stream_id, aggregate_id)? {
            sources.push(part_of_aggregate(connection, aggregate, bounds)?);
        }
    }
    Ok(sources)
}

/// The events of an aggregate within the bounds: positions grow with sequences, so a binary search finds both ends.
fn part_of_aggregate(connection: &Connection, aggregate: i64, bounds: Bounds) -> rusqlite::Result<Source> {
    let last = super::tables::sequence(connection, aggregate)?;
    let sql = "SELECT position FROM events WHERE aggregate = ?1 AND sequence = ?2";
    let mut select = connection.prepare_cached(sql)?;
    let mut last_up_to = |bound: Position, from: i64| {
        last_where(from, last, |sequence| {
            let position: Option<i64> = select.query_row([aggregate, sequence], |row| row.get(0)).optional()?;
            Ok(position.is_some_and(|position| position <= bound.0))
        })
    };
    let first = last_up_to(bounds.low, 0)?;
    let last = last_up_to(bounds.high, first)?;
    Ok(Source::Aggregate(aggregate, first, last))
}

/// A source being read, positioned on an event.
struct Cursor<'s> {
    rows: Rows<'s>,
    position: i64,
}

impl<'s> Cursor<'s> {
    /// `None` if the source has no events.
    fn open(statement: &'s mut CachedStatement<'_>, source: Source, bounds: Bounds) -> rusqlite::Result<Option<Self>> {
        let rows = statement.query(rusqlite::params_from_iter(parameters(source, bounds)))?;
        let mut cursor = Self { rows, position: 0 };
        Ok(cursor.advance()?.then_some(cursor))
    }

    fn advance(&mut self) -> rusqlite::Result<bool> {
        match self.rows.next()? {
            Some(row) => {
                self.position = row.get(0)?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn row(&self) -> rusqlite::Result<&Row<'s>> {
        self.rows.get().ok_or(rusqlite::Error::QueryReturnedNoRows)
    }
}

fn next_of(cursors: &[Cursor<'_>], backwards: bool) -> Option<usize> {
    let sign = if backwards { -1 } else { 1 };
    (0..cursors.len()).min_by_key(|index| sign * cursors[*index].position)
}
