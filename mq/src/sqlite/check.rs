//! Checks a log's invariants in one snapshot, on its own connection, without changes. Violations are findings, not
//! errors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, Row, params};

use super::location::Location;
use super::migrations;
use super::readers::STEPS;
use super::tables::{self, RECORDED, recorded};
use crate::check::Check;
use crate::error::{Error, Result};
use crate::limits::FINDINGS_MAX;
use crate::position::Position;
use crate::recorded::Recorded;
use crate::report::Checked;
use crate::tail::Tail;

const DOING: &str = "checking the log";

/// Findings of SQLite itself. The rowid of an event is its position.
const STRUCTURE: [&str; 2] = [
    "SELECT NULL, integrity_check FROM pragma_integrity_check WHERE integrity_check != 'ok'",
    "SELECT iif(\"table\" = 'events', rowid, NULL) AS position, \
            'a row of ' || \"table\" || ' names a row of ' || parent || ' that is not there' \
     FROM pragma_foreign_key_check ORDER BY position",
];

/// Inconsistencies between tables, in position order.
const TABLES: [&str; 7] = [
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
    "SELECT NULL, 'kind ' || stream_id || '/' || event_type || ' has no event' FROM kinds AS k \
     WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.kind = k.kind) ORDER BY kind",
    "SELECT position, 'the kind is ' || coalesce(k.stream_id || '/' || k.event_type, 'none') || ', and not ' \
            || a.stream_id || '/' || e.event_type FROM events AS e JOIN aggregates AS a USING (aggregate) \
     LEFT JOIN kinds AS k USING (kind) \
     WHERE k.stream_id IS NOT a.stream_id OR k.event_type IS NOT e.event_type ORDER BY position",
    "SELECT NULL, 'cell ' || space || '/' || key || ' has version ' || version FROM cells \
     WHERE version < 1 ORDER BY space, key",
    "SELECT NULL, 'cell ' || space || '/' || key || ' has no whole name' FROM cells \
     WHERE (space = '') != (key = '') ORDER BY space, key",
];

/// All parts of the schema except SQLite's own.
const SCHEMA: &str = "SELECT type || ' ' || name, sql, tbl_name FROM sqlite_schema \
     WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";

/// Checks the whole log.
pub(super) fn run(location: &Location, tail: &Arc<Tail>) -> Result<Checked> {
    // Connecting would create a missing file.
    location.check_same()?;
    let mut connection = location.connect()?;
    location.check_same()?;
    let closing = Arc::clone(tail);
    let ending = connection.progress_handler(STEPS, Some(move || closing.is_closed()));
    ending.map_err(|error| location.fault(DOING, error))?;
    let mut check = Check::default();
    if let Err(error) = look(&mut check, &mut connection) {
        if tail.is_closed() {
            return Err(Error::Closed);
        }
        if check.has_findings() && error.sqlite_error_code() == Some(ErrorCode::Unknown) {
            // A table or a column is missing, and that is already a finding.
            return Ok(check.end());
        }
        match location.fault(DOING, error) {
            // The database cannot be read any further, which is itself a finding.
            damaged @ Error::NotADatabase { .. } => check.find(None, damaged.to_string()),
            fault => return Err(fault),
        }
    }
    Ok(check.end())
}

fn look(check: &mut Check, connection: &mut Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA query_only = ON")?;
    let snapshot = connection.transaction()?;
    schema(check, &snapshot)?;
    for sql in STRUCTURE.into_iter().chain(TABLES) {
        rows(check, &snapshot, sql)?;
    }
    events(check, &snapshot)
}

/// Compares the schema with that of a new log: nothing may be missing or foreign, such as a trigger.
fn schema(check: &mut Check, connection: &Connection) -> rusqlite::Result<()> {
    let (expected, mut found) = (schema_of(&migrations::pattern()?)?, schema_of(connection)?);
    let own: BTreeSet<String> = expected.values().map(|(_, table)| table.clone()).collect();
    for (name, (sql, _)) in expected {
        match found.remove(&name).map(|(other, _)| other) {
            None => check.find(None, format!("the {name} is missing")),
            Some(other) if other != sql => check.find(None, format!("the {name} is another than a log has")),
            Some(_) => {}
        }
    }
    // Callers' own tables are allowed: they are written together with events.
    found.retain(|_, (_, table)| own.contains(table));
    for name in found.into_keys().take(FINDINGS_MAX + 1) {
        check.find(None, format!("there is a {name}, and no log has one"));
    }
    Ok(())
}

fn rows(check: &mut Check, connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    let mut select = connection.prepare(&format!("{sql} LIMIT {}", FINDINGS_MAX + 1))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        check.find(row.get::<_, Option<i64>>(0)?.map(Position), row.get(1)?);
    }
    Ok(())
}

/// The parts of the schema by type and name: the SQL, and the table that they belong to.
fn schema_of(connection: &Connection) -> rusqlite::Result<BTreeMap<String, (Option<String>, String)>> {
    let rows = |row: &Row<'_>| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)));
    connection.prepare(SCHEMA)?.query_map([], rows)?.collect()
}

/// The correlation and causation columns of an event.
fn causes_beside(row: &Row<'_>) -> rusqlite::Result<[Option<Vec<u8>>; 2]> {
    Ok([row.get("correlation_id")?, row.get("causation_id")?])
}

/// Checks the events one by one.
fn events(check: &mut Check, connection: &Connection) -> rusqlite::Result<()> {
    // Reads the tables: the view omits events whose aggregate is missing.
    let sql = format!(
        "SELECT {RECORDED}, correlation_id, causation_id FROM events LEFT JOIN aggregates USING (aggregate) \
         ORDER BY position"
    );
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let position = Position(row.get(0)?);
        if let Some(event) = check.event(position, || recorded(row)) {
            let causes = event.causes();
            if causes_beside(row)? != causes.as_bytes() {
                let what = "the indexes of correlation and causation have other ids than the metadata";
                check.find(Some(position), what.into());
            }
            tag_index(check, connection, &event)?;
            if let Some(cause) = causes.causation_id
                && tables::position_of(connection, cause)?.is_none()
            {
                check.foreign_cause(position);
            }
        }
    }
    Ok(())
}

/// Checks that the event is found by its tags.
fn tag_index(check: &mut Check, connection: &Connection, event: &Recorded) -> rusqlite::Result<()> {
    for tag in &event.tags {
        let sql = "SELECT EXISTS (SELECT 1 FROM tags WHERE tag = ?1 AND position = ?2)";
        let is_indexed: bool =
            connection.prepare_cached(sql)?.query_row(params![tag, event.position.0], |row| row.get(0))?;
        if !is_indexed {
            check.find(Some(event.position), format!("the event has tag {tag}, and the index of tags has it not"));
        }
    }
    Ok(())
}
