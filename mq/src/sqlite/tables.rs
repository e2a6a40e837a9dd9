//! Reads and writes the rows of the log's tables within a transaction, without judging their contents.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::types::Type;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row as Found, params};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::judge::LAST_CHANGE;
use crate::position::Position;
use crate::query::Query;
use crate::recorded::{Causes, Recorded, tags_as_json, tags_of_json};
use crate::tail::{End, Look, Seen, Tail};

/// The end of the log, and the log time of the last write.
pub(super) fn end_of(connection: &Connection) -> rusqlite::Result<(End, Timestamp)> {
    // A join would create a temporary table for each append, and a second statement costs more than a subquery.
    let sql = "SELECT *, (SELECT held_until FROM cells WHERE space = ?1 AND key = ?2) FROM \
         (SELECT position, event_id, created_at FROM events UNION ALL SELECT 0, zeroblob(16), 0 ORDER BY position DESC LIMIT 1)";
    connection.prepare_cached(sql)?.query_row([LAST_CHANGE.0, LAST_CHANGE.1], |row| {
        let (created_at, changed) = (row.get(2)?, row.get::<_, Option<i64>>(3)?.unwrap_or(0));
        let end = End { head: Position(row.get(0)?), event_id: id_or_max(row, 1)?, created_at: Timestamp(created_at) };
        Ok((end, Timestamp(created_at.max(changed))))
    })
}

/// Looks at the log in a transaction that began after `before` was known.
pub(super) fn look(connection: &Connection, tail: &Tail, before: Seen) -> rusqlite::Result<Look> {
    let ((end, time), known) = (end_of(connection)?, before.end.head);
    let found = match known.cmp(&end.head) {
        Ordering::Equal => Some(end.mark()),
        Ordering::Greater => None,
        Ordering::Less => connection
            .prepare_cached("SELECT event_id, created_at FROM events WHERE position = ?1")?
            .query_row([known.0], |row| Ok((id_or_max(row, 0)?, Timestamp(row.get(1)?))))
            .optional()?,
    };
    Ok(Look { end, time, now: None, generation: before.generation, is_same: tail.saw(before, end, found) })
}

/// The number of an aggregate, if it has one.
pub(super) fn aggregate(connection: &Connection, stream_id: &str, aggregate_id: &str) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT aggregate FROM aggregates WHERE stream_id = ?1 AND aggregate_id = ?2";
    connection.prepare_cached(sql)?.query_row([stream_id, aggregate_id], |row| row.get(0)).optional()
}

/// Gives an aggregate its number.
pub(super) fn intern_aggregate(connection: &Connection, stream_id: &str, aggregate_id: &str) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO aggregates (stream_id, aggregate_id) VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute([stream_id, aggregate_id])?;
    Ok(connection.last_insert_rowid())
}

/// The number of a stream and an event type; assigns one if they have none.
pub(super) fn interned_kind(connection: &Connection, stream_id: &str, event_type: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT kind FROM kinds WHERE stream_id = ?1 AND event_type = ?2";
    let found = connection.prepare_cached(sql)?.query_row([stream_id, event_type], |row| row.get(0)).optional()?;
    if let Some(kind) = found {
        return Ok(kind);
    }
    let sql = "INSERT INTO kinds (stream_id, event_type) VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute([stream_id, event_type])?;
    Ok(connection.last_insert_rowid())
}

/// The sequence of an aggregate's last event; 0 if it has none.
pub(super) fn sequence(connection: &Connection, aggregate: i64) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(sequence), 0) FROM events WHERE aggregate = ?1";
    connection.prepare_cached(sql)?.query_row([aggregate], |row| row.get(0))
}

/// Selects the position of the event with an id.
pub(super) const POSITION_OF: &str = "SELECT position FROM events WHERE event_id = ?1";

/// The greatest id of the log. `None` if the log is empty; the greatest possible id if a row has a malformed one.
pub(super) fn greatest_id(connection: &Connection) -> rusqlite::Result<Option<Uuid>> {
    let sql = "SELECT max(event_id) FROM events";
    connection.prepare_cached(sql)?.query_row([], |row| {
        let found = row.get_ref(0)?.as_blob_or_null()?;
        Ok(found.map(|id| Uuid::from_slice(id).unwrap_or(Uuid::max())))
    })
}

/// The position of the event with this id.
pub(super) fn position_of(connection: &Connection, event_id: Uuid) -> rusqlite::Result<Option<Position>> {
    connection
        .prepare_cached(POSITION_OF)?
        .query_row([&event_id.as_bytes()[..]], |row| row.get(0).map(Position))
        .optional()
}

/// An event in the form that is inserted.
pub(super) struct Row<'a> {
    pub(super) position: Position,
    pub(super) event_id: Uuid,
    pub(super) aggregate: i64,
    pub(super) kind: i64,
    pub(super) sequence: i64,
    pub(super) event_type: &'a str,
    pub(super) event_version: &'a str,
    pub(super) data: &'a str,
    pub(super) metadata: &'a str,
    pub(super) causes: Causes,
    pub(super) tags: &'a [String],
    pub(super) created_at: Timestamp,
    pub(super) append_start: Position,
}

impl Row<'_> {
    /// Writes the event and its tags.
    pub(super) fn insert(&self, connection: &Connection) -> rusqlite::Result<()> {
        Inserts::prepare(connection)?.insert(self)
    }
}

/// The statements that write events, prepared once per transaction.
pub(super) struct Inserts<'c> {
    event: CachedStatement<'c>,
    tag: CachedStatement<'c>,
}

impl<'c> Inserts<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let sql = "INSERT INTO events (position, event_id, aggregate, sequence, event_type, event_version, data, \
             metadata, tags, created_at, append_start, kind, correlation_id, causation_id) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let event = connection.prepare_cached(sql)?;
        let tag = connection.prepare_cached("INSERT INTO tags (tag, position) VALUES (?1, ?2)")?;
        Ok(Self { event, tag })
    }

    /// Writes the event and its tags.
    pub(super) fn insert(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let Causes { correlation_id, causation_id } = &row.causes;
        let bytes = |id: &'_ Option<Uuid>| id.map(uuid::Uuid::into_bytes);
        self.event.execute(params![
            row.position.0,
            &row.event_id.as_bytes()[..],
            row.aggregate,
            row.sequence,
            row.event_type,
            row.event_version,
            row.data,
            row.metadata,
            tags_as_json(row.tags),
            row.created_at.0,
            row.append_start.0,
            row.kind,
            bytes(correlation_id),
            bytes(causation_id)
        ])?;
        for tag in row.tags {
            self.tag.execute(params![tag, row.position.0])?;
        }
        Ok(())
    }
}

/// The columns that [`recorded`] reads from the view.
pub(super) const RECORDED: &str = "position, event_id, stream_id, aggregate_id, sequence, event_type, event_version, \
     data, metadata, tags, created_at, append_start";

/// An event of the log.
pub(super) fn recorded(row: &Found<'_>) -> rusqlite::Result<Recorded> {
    named(row, (row.get(2)?, row.get(3)?), 4)
}

/// An event of this stream and aggregate. Column `at` is the sequence; the other columns follow.
fn named(row: &Found<'_>, (stream_id, aggregate_id): (String, String), at: usize) -> rusqlite::Result<Recorded> {
    Ok(Recorded {
        position: Position(row.get(0)?),
        event_id: event_id(row, 1)?,
        stream_id,
        aggregate_id,
        sequence: row.get(at)?,
        event_type: row.get(at + 1)?,
        event_version: row.get(at + 2)?,
        data: row.get(at + 3)?,
        metadata: row.get(at + 4)?,
        tags: tags(row, at + 5)?,
        created_at: Timestamp(row.get(at + 6)?),
        append_start: Position(row.get(at + 7)?),
    })
}

/// The columns that [`Names::recorded`] reads from the table of events.
pub(super) const NUMBERED: &str = "e.position, e.event_id, e.aggregate, e.sequence, e.event_type, e.event_version, \
     e.data, e.metadata, e.tags, e.created_at, e.append_start";

/// The most aggregates whose names a reader keeps in memory.
const NAMES_MAX: usize = 16_384;

/// Cached names of aggregates. They change only if the log goes back, so the cache is as safe as a join, and cheaper.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: HashMap<i64, (String, String)>,
    /// The generation that the names belong to.
    generation: u64,
}

impl Names {
    /// Drops all names of other generations, or if this generation may have ended.
    pub(super) fn enter(&mut self, generation: u64, is_current: bool) {
        if self.generation != generation || !is_current {
            self.names.clear();
        }
        self.generation = generation;
    }

    /// False if no alternative of a query wants the row's stream, aggregate or type.
    pub(super) fn may_match(
        &mut self,
        connection: &Connection,
        row: &Found<'_>,
        wanted: &[&Query],
    ) -> rusqlite::Result<bool> {
        let event_type = row.get_ref(4)?.as_str()?;
        let (stream_id, aggregate_id) = self.of(connection, row.get(2)?)?;
        let is_of = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        Ok(wanted.iter().any(|one| {
            (one.stream_id.is_empty() || one.stream_id == *stream_id)
                && is_of(&one.aggregate_id, aggregate_id)
                && is_of(&one.event_type, event_type)
        }))
    }

    /// An event of the log.
    pub(super) fn recorded(&mut self, connection: &Connection, row: &Found<'_>) -> rusqlite::Result<Recorded> {
        named(row, self.of(connection, row.get(2)?)?.clone(), 3)
    }

    fn of(&mut self, connection: &Connection, aggregate: i64) -> rusqlite::Result<&(String, String)> {
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(&aggregate) {
            self.names.clear();
        }
        match self.names.entry(aggregate) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(unknown) => {
                let sql = "SELECT stream_id, aggregate_id FROM aggregates WHERE aggregate = ?1";
                let mut select = connection.prepare_cached(sql)?;
                let names = select.query_row([aggregate], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(unknown.insert(names))
            }
        }
    }
}

fn malformed(index: usize, of: Type, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, of, Box::new(error))
}

fn event_id(row: &Found<'_>, index: usize) -> rusqlite::Result<Uuid> {
    Uuid::from_slice(row.get_ref(index)?.as_blob()?).map_err(|error| malformed(index, Type::Blob, error))
}

/// An id for comparisons only. A check reports a malformed one.
fn id_or_max(row: &Found<'_>, index: usize) -> rusqlite::Result<Uuid> {
    Ok(Uuid::from_slice(row.get_ref(index)?.as_bytes()?).unwrap_or(Uuid::max()))
}

fn tags(row: &Found<'_>, index: usize) -> rusqlite::Result<Vec<String>> {
    tags_of_json(row.get_ref(index)?.as_str()?).map_err(|error| malformed(index, Type::Text, error))
}
