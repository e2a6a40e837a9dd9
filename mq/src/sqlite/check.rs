//! Looking whether a log keeps what logs promise, in one snapshot on a connection of its own. It changes nothing, and what
//! it finds wrong is an answer, not an error.

use rusqlite::{Connection, params};

use super::location::Location;
use super::tables::{self, RECORDED, recorded};
use crate::FINDINGS_MAX;
use crate::check::{Check, cause_of};
use crate::error::{Error, Result};
use crate::position::Position;
use crate::record::{Checked, Recorded};

const DOING: &str = "checking the log";

/// Findings of SQLite itself. The row of an event is its position.
const STRUCTURE: [&str; 2] = [
    "SELECT NULL, integrity_check FROM pragma_integrity_check WHERE integrity_check != 'ok'",
    "SELECT iif(\"table\" = 'events', rowid, NULL) AS position, \
            'a row of ' || \"table\" || ' names a row of ' || parent || ' that is not there' \
     FROM pragma_foreign_key_check ORDER BY position",
];

/// Findings between the rows of several tables. Each comes in the order of positions.
const TABLES: [&str; 3] = [
    "SELECT NULL, 'aggregate ' || stream_id || '/' || aggregate_id || ' has no event' FROM aggregates AS a \
     WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.aggregate = a.aggregate) ORDER BY aggregate",
    "SELECT position, 'the sequence in its aggregate is ' || sequence || ', and before it comes ' || before FROM ( \
         SELECT position, sequence, coalesce(lag(sequence) OVER aggregates, 0) AS before, \
                coalesce(lag(position) OVER aggregates, 0) AS place \
         FROM events WINDOW aggregates AS (PARTITION BY aggregate ORDER BY sequence)) \
     WHERE sequence != before + 1 OR position <= place ORDER BY position",
    "SELECT t.position, 'the index of tags has ' || t.tag || ', and the event has it not' FROM tags AS t \
     WHERE NOT EXISTS (SELECT 1 FROM events AS e, json_each(iif(json_valid(e.tags), e.tags, '[]')) AS j \
                       WHERE e.position = t.position AND j.value = t.tag) ORDER BY t.position",
];

/// Looks at all of the log.
pub(super) fn run(location: &Location) -> Result<Checked> {
    let mut connection = location.connect()?;
    let mut check = Check::default();
    if let Err(error) = look(&mut check, &mut connection) {
        match location.fault(DOING, error) {
            // The database is beyond reading further, which is what was to be found out.
            damaged @ Error::NotADatabase { .. } => check.find(None, damaged.to_string()),
            fault => return Err(fault),
        }
    }
    Ok(check.end())
}

fn look(check: &mut Check, connection: &mut Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA query_only = ON")?;
    let snapshot = connection.transaction()?;
    for sql in STRUCTURE.into_iter().chain(TABLES) {
        rows(check, &snapshot, sql)?;
    }
    events(check, &snapshot)
}

fn rows(check: &mut Check, connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    let mut select = connection.prepare(&format!("{sql} LIMIT {}", FINDINGS_MAX + 1))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        check.find(row.get::<_, Option<i64>>(0)?.map(Position), row.get(1)?);
    }
    Ok(())
}

/// Looks at the events one by one.
fn events(check: &mut Check, connection: &Connection) -> rusqlite::Result<()> {
    // Not by the view, which has no event whose aggregate is missing.
    let sql = format!("SELECT {RECORDED} FROM events LEFT JOIN aggregates USING (aggregate) ORDER BY position");
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let position = Position(row.get(0)?);
        if let Some(event) = check.event(position, || recorded(row)) {
            indexes(check, connection, &event)?;
        }
    }
    Ok(())
}

/// Looks whether the event is found by its tags, and the event that it names as its cause by its id.
fn indexes(check: &mut Check, connection: &Connection, event: &Recorded) -> rusqlite::Result<()> {
    for tag in &event.tags {
        let sql = "SELECT EXISTS (SELECT 1 FROM tags WHERE tag = ?1 AND position = ?2)";
        let is_indexed: bool =
            connection.prepare_cached(sql)?.query_row(params![tag, event.position.0], |row| row.get(0))?;
        if !is_indexed {
            check.find(Some(event.position), format!("the event has tag {tag}, and the index of tags has it not"));
        }
    }
    if let Some(cause) = cause_of(event)
        && tables::position_of(connection, cause)?.is_none()
    {
        check.find_lost_cause(event, cause);
    }
    Ok(())
}
