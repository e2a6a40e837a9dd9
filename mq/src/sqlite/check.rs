//! Looking whether a log keeps what logs promise, in one snapshot on a connection of its own. It changes nothing, and what
//! it finds wrong is an answer, not an error.

use rusqlite::{Connection, Row, params};
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::location::Location;
use super::tables::{self, RECORDED, recorded};
use crate::FINDINGS_MAX;
use crate::error::{Error, Result};
use crate::law::{self, Previous};
use crate::position::Position;
use crate::record::{Checked, Finding, Recorded};

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
    let mut check = Check { findings: Vec::new(), n_events: 0 };
    if let Err(error) = check.look(&mut connection) {
        match location.fault(DOING, error) {
            // The database is beyond reading further, which is what was to be found out.
            damaged @ Error::NotADatabase { .. } => check.find(None, damaged.to_string()),
            fault => return Err(fault),
        }
    }
    Ok(check.end())
}

struct Check {
    /// Of each sort the first [`FINDINGS_MAX`] and one more, so that the first of all are among them.
    findings: Vec<Finding>,
    n_events: usize,
}

impl Check {
    fn look(&mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        connection.execute_batch("PRAGMA query_only = ON")?;
        let snapshot = connection.transaction()?;
        for sql in STRUCTURE.into_iter().chain(TABLES) {
            self.rows(&snapshot, sql)?;
        }
        self.events(&snapshot)
    }

    fn find(&mut self, position: Option<Position>, what: String) {
        self.findings.push(Finding { position, what });
    }

    fn rows(&mut self, connection: &Connection, sql: &str) -> rusqlite::Result<()> {
        let mut select = connection.prepare(&format!("{sql} LIMIT {}", FINDINGS_MAX + 1))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            self.find(row.get::<_, Option<i64>>(0)?.map(Position), row.get(1)?);
        }
        Ok(())
    }

    /// Looks at the events one by one.
    fn events(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let n_others = self.findings.len();
        // Not by the view, which has no event whose aggregate is missing.
        let sql = format!("SELECT {RECORDED} FROM events LEFT JOIN aggregates USING (aggregate) ORDER BY position");
        let mut select = connection.prepare(&sql)?;
        let mut rows = select.query([])?;
        let (mut expected, mut previous) = (Position(1), None);
        while let Some(row) = rows.next()? {
            self.n_events += 1;
            let position = Position(row.get(0)?);
            let is_full = self.findings.len() - n_others > FINDINGS_MAX;
            if !is_full {
                if position != expected {
                    self.find(Some(position), format!("position {expected} is missing before it"));
                }
                previous = self.event(connection, position, row, previous)?;
            }
            expected = Position(position.0.saturating_add(1));
        }
        Ok(())
    }

    /// One event, seen from the last before it that could be read.
    fn event(
        &mut self,
        connection: &Connection,
        position: Position,
        row: &Row<'_>,
        previous: Option<Previous>,
    ) -> rusqlite::Result<Option<Previous>> {
        let event = match recorded(row) {
            Ok(event) => event,
            Err(error) => {
                self.find(Some(position), format!("the event cannot be read: {error}"));
                return Ok(previous);
            }
        };
        if let Some(what) = law::broken(previous, &event) {
            self.find(Some(position), what);
        }
        for tag in &event.tags {
            let sql = "SELECT EXISTS (SELECT 1 FROM tags WHERE tag = ?1 AND position = ?2)";
            let is_indexed: bool =
                connection.prepare_cached(sql)?.query_row(params![tag, position.0], |row| row.get(0))?;
            if !is_indexed {
                self.find(Some(position), format!("the event has tag {tag}, and the index of tags has it not"));
            }
        }
        if let Some(cause) = cause_of(&event)
            && tables::position_of(connection, cause)?.is_none()
        {
            self.find(Some(position), format!("its cause {cause} is no event of the log"));
        }
        Ok(Some(Previous::of(&event)))
    }

    fn end(mut self) -> Checked {
        // Stable, so that what SQLite says of itself comes first.
        self.findings.sort_by_key(|finding| finding.position);
        let more = self.findings.len() > FINDINGS_MAX;
        self.findings.truncate(FINDINGS_MAX);
        Checked { n_events: self.n_events, findings: self.findings, more }
    }
}

/// The cause that the metadata names; metadata of another form names none.
fn cause_of(event: &Recorded) -> Option<Uuid> {
    #[derive(Deserialize)]
    struct Caused<'a> {
        #[serde(borrow)]
        causation_id: Option<&'a RawValue>,
    }
    let caused = serde_json::from_str::<Caused>(&event.metadata).ok()?;
    serde_json::from_str(caused.causation_id?.get()).ok()
}
