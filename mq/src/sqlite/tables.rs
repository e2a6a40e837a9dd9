//! The rows of the log's tables as they are written and read within a transaction. Nothing here judges what they say.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row as Found, params};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::position::Position;
use crate::query::Causes;
use crate::record::Recorded;

/// Where the log ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) head: Position,
    pub(super) created_at: Timestamp,
}

pub(super) fn end_of(connection: &Connection) -> rusqlite::Result<End> {
    let sql = "SELECT position, created_at FROM events ORDER BY position DESC LIMIT 1";
    let end = connection
        .prepare_cached(sql)?
        .query_row([], |row| Ok(End { head: Position(row.get(0)?), created_at: Timestamp(row.get(1)?) }))
        .optional()?;
    Ok(end.unwrap_or(End { head: Position(0), created_at: Timestamp(0) }))
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

/// The number of a stream and an event type, which get one when they have none.
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

/// The sequence of an aggregate's last event; 0 when it has none.
pub(super) fn sequence(connection: &Connection, aggregate: i64) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(sequence), 0) FROM events WHERE aggregate = ?1";
    connection.prepare_cached(sql)?.query_row([aggregate], |row| row.get(0))
}

/// Where the event with this id stands.
pub(super) fn position_of(connection: &Connection, event_id: Uuid) -> rusqlite::Result<Option<Position>> {
    let sql = "SELECT position FROM events WHERE event_id = ?1";
    connection.prepare_cached(sql)?.query_row([&event_id.as_bytes()[..]], |row| row.get(0).map(Position)).optional()
}

/// An event as it goes into the log.
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
        let sql = "INSERT INTO events (position, event_id, aggregate, sequence, event_type, event_version, data, \
             metadata, tags, created_at, append_start, kind, correlation_id, causation_id) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let Causes { correlation_id, causation_id } = &self.causes;
        let bytes = |id: &'_ Option<Uuid>| id.map(uuid::Uuid::into_bytes);
        connection.prepare_cached(sql)?.execute(params![
            self.position.0,
            &self.event_id.as_bytes()[..],
            self.aggregate,
            self.sequence,
            self.event_type,
            self.event_version,
            self.data,
            self.metadata,
            tags_as_json(self.tags),
            self.created_at.0,
            self.append_start.0,
            self.kind,
            bytes(correlation_id),
            bytes(causation_id)
        ])?;
        for tag in self.tags {
            let sql = "INSERT INTO tags (tag, position) VALUES (?1, ?2)";
            connection.prepare_cached(sql)?.execute(params![tag, self.position.0])?;
        }
        Ok(())
    }
}

/// The columns that [`recorded`] reads, of the view that has them.
pub(super) const RECORDED: &str = "position, event_id, stream_id, aggregate_id, sequence, event_type, event_version, \
     data, metadata, tags, created_at, append_start";

/// An event of the log.
pub(super) fn recorded(row: &Found<'_>) -> rusqlite::Result<Recorded> {
    let malformed = |index: usize, of: Type, error: Box<dyn std::error::Error + Send + Sync>| {
        rusqlite::Error::FromSqlConversionFailure(index, of, error)
    };
    let event_id = Uuid::from_slice(&row.get::<_, Vec<u8>>(1)?);
    let tags = serde_json::from_str(&row.get::<_, String>(9)?);
    Ok(Recorded {
        position: Position(row.get(0)?),
        event_id: event_id.map_err(|error| malformed(1, Type::Blob, error.into()))?,
        stream_id: row.get(2)?,
        aggregate_id: row.get(3)?,
        sequence: row.get(4)?,
        event_type: row.get(5)?,
        event_version: row.get(6)?,
        data: row.get(7)?,
        metadata: row.get(8)?,
        tags: tags.map_err(|error| malformed(9, Type::Text, error.into()))?,
        created_at: Timestamp(row.get(10)?),
        append_start: Position(row.get(11)?),
    })
}

pub(super) fn tags_as_json(tags: &[String]) -> String {
    serde_json::to_string(tags).expect("strings are JSON")
}
