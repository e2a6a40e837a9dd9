//! Taking in the events of another copy of a log: one transaction under the append lock, on a connection of its own. It
//! never changes an event that the log has.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use uuid::Uuid;

use super::location::Location;
use super::tables::{self, End, RECORDED, Row, end_of, recorded};
use super::writer::FORMAT;
use crate::backend::{LogIdentity, Records};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::law::{self, Previous};
use crate::position::Position;
use crate::record::{Imported, Recorded};

/// Aggregates whose last sequence is kept in memory.
const KNOWN_AGGREGATES_MAX: usize = 65_536;

const DOING: &str = "importing";

/// Takes in all of the records, or none; with the time of the log's last event.
pub(super) fn run(location: &Location, identity: &LogIdentity, records: Records) -> Result<(Imported, Timestamp)> {
    if identity.format > FORMAT {
        return Err(Error::NewerImport { found: identity.format, supported: FORMAT });
    }
    let fault = |error| location.fault(DOING, error);
    let lock = location.open_lock()?;
    let held = location.hold(lock.as_ref())?;
    let mut connection = location.connect()?;
    location.make_durable(&connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    let start = end_of(&transaction).map_err(fault)?;
    adopt(&transaction, location, identity, start.head)?;
    let mut import = Import { transaction: &transaction, location, start, aggregates: HashMap::new(), last: None };
    for record in records {
        import.take(&record?)?;
    }
    let imported = import.end()?;
    let end = end_of(&transaction).map_err(fault)?;
    #[cfg(feature = "faults")]
    crate::faults::reach(crate::faults::Point::Before, start.head, end.head);
    transaction.commit().map_err(fault)?;
    #[cfg(feature = "faults")]
    crate::faults::reach(crate::faults::Point::After, start.head, end.head);
    drop(held);
    Ok((imported, end.created_at))
}

/// An empty log becomes the log of the import; any other must be it already.
fn adopt(connection: &Connection, location: &Location, identity: &LogIdentity, head: Position) -> Result<()> {
    let fault = |error| location.fault(DOING, error);
    let (id, created_at): (String, i64) = connection
        .query_row("SELECT id, created_at FROM log", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(fault)?;
    let log = Uuid::parse_str(&id).map_err(|error| Error::storage("reading the log's identity", error))?;
    let LogIdentity { id: import, format, created_at: Timestamp(made_at) } = *identity;
    if format < 1 {
        return Err(invalid(None, format!("there is no log format {format}")));
    }
    match (log == import, created_at == made_at) {
        (true, true) => Ok(()),
        (_, _) if head == Position(0) => {
            let sql = "UPDATE log SET id = ?1, created_at = ?2";
            connection.execute(sql, params![import.to_string(), made_at]).map_err(fault)?;
            Ok(())
        }
        (true, false) => {
            Err(invalid(None, format!("the log was made at {created_at} microseconds since 1970, not at {made_at}")))
        }
        (false, _) => Err(Error::OtherLog { log, head, import }),
    }
}

/// One import on its way.
struct Import<'a> {
    transaction: &'a Transaction<'a>,
    location: &'a Location,
    /// Where the log ended before.
    start: End,
    /// The number and the last sequence of aggregates that were written to.
    aggregates: HashMap<(String, String), (i64, i64)>,
    last: Option<Previous>,
}

impl Import<'_> {
    fn take(&mut self, record: &Recorded) -> Result<()> {
        let (position, expected) = (record.position, Position(self.position().0 + 1));
        if position != expected {
            return Err(Error::ImportGap { position, expected });
        }
        if let Some(reason) = law::broken(self.last, record) {
            return Err(invalid(Some(position), reason));
        }
        self.last = Some(Previous::of(record));
        if position <= self.start.head { self.compare(record) } else { self.add(record) }
    }

    /// The last that was taken in.
    fn position(&self) -> Position {
        self.last.map_or(Position(0), |last| last.position)
    }

    /// An event that the log has must be the same.
    fn compare(&self, record: &Recorded) -> Result<()> {
        let sql = format!("SELECT {RECORDED} FROM recorded_events WHERE position = ?1");
        let known = self
            .transaction
            .prepare_cached(&sql)
            .and_then(|mut select| select.query_one([record.position.0], recorded));
        match difference(&known.map_err(|error| self.location.fault(DOING, error))?, record) {
            Some(differs) => Err(Error::Forked { position: record.position, differs }),
            None => Ok(()),
        }
    }

    fn add(&mut self, record: &Recorded) -> Result<()> {
        let fault = |error| self.location.fault(DOING, error);
        let position = record.position;
        if position.0 == self.start.head.0 + 1 && record.append_start != position {
            // A log ends with an append, and here it has ended.
            return Err(Error::Forked { position, differs: "append_start" });
        }
        let (aggregate, sequence) = self.aggregate(record).map_err(fault)?;
        let next = sequence.saturating_add(1);
        if record.sequence != next {
            let Recorded { stream_id, aggregate_id, sequence: found, .. } = record;
            let reason = format!("{stream_id}/{aggregate_id} has sequence {found} where {next} should be");
            return Err(invalid(Some(position), reason));
        }
        if let Some(first) = tables::position_of(self.transaction, record.event_id).map_err(fault)? {
            let reason = format!("event id {} is that of position {first} too", record.event_id);
            return Err(invalid(Some(position), reason));
        }
        let row = Row {
            position,
            event_id: record.event_id,
            aggregate,
            kind: tables::interned_kind(self.transaction, &record.stream_id, &record.event_type).map_err(fault)?,
            sequence: record.sequence,
            event_type: &record.event_type,
            event_version: &record.event_version,
            data: &record.data,
            metadata: &record.metadata,
            causes: record.causes(),
            tags: &record.tags,
            created_at: record.created_at,
            append_start: record.append_start,
        };
        row.insert(self.transaction).map_err(fault)
    }

    /// The number of the record's aggregate, and the sequence before the record.
    fn aggregate(&mut self, record: &Recorded) -> rusqlite::Result<(i64, i64)> {
        let key = (record.stream_id.clone(), record.aggregate_id.clone());
        if let Some((aggregate, sequence)) = self.aggregates.get_mut(&key) {
            *sequence += 1;
            return Ok((*aggregate, *sequence - 1));
        }
        let (aggregate, sequence) = match tables::aggregate(self.transaction, &key.0, &key.1)? {
            Some(aggregate) => (aggregate, tables::sequence(self.transaction, aggregate)?),
            None => (tables::intern_aggregate(self.transaction, &key.0, &key.1)?, 0),
        };
        if self.aggregates.len() >= KNOWN_AGGREGATES_MAX {
            self.aggregates.clear();
        }
        self.aggregates.insert(key, (aggregate, sequence.saturating_add(1)));
        Ok((aggregate, sequence))
    }

    /// The log may be ahead of the import, but not within an append.
    fn end(&self) -> Result<Imported> {
        let (position, head) = (self.position(), self.start.head);
        if Position(0) < position && position < head {
            let sql = "SELECT append_start FROM events WHERE position = ?1";
            let next = self.transaction.query_row(sql, [position.0 + 1], |row| row.get(0).map(Position));
            let append_start = next.map_err(|error| self.location.fault(DOING, error))?;
            if append_start <= position {
                let reason = format!("it ends in the middle of the append that begins at position {append_start}");
                return Err(invalid(Some(position), reason));
            }
        }
        let count = |n: i64| usize::try_from(n).unwrap_or(0);
        let n_known = position.min(head);
        Ok(Imported { n_added: count(position.0 - n_known.0), n_known: count(n_known.0), head: head.max(position) })
    }
}

fn invalid(position: Option<Position>, reason: String) -> Error {
    Error::InvalidImport { position, reason }
}

/// The first field in which two events differ.
fn difference(known: &Recorded, given: &Recorded) -> Option<&'static str> {
    let fields = [
        ("event_id", known.event_id == given.event_id),
        ("stream_id", known.stream_id == given.stream_id),
        ("aggregate_id", known.aggregate_id == given.aggregate_id),
        ("sequence", known.sequence == given.sequence),
        ("event_type", known.event_type == given.event_type),
        ("event_version", known.event_version == given.event_version),
        ("data", bare(&known.data) == bare(&given.data)),
        ("metadata", bare(&known.metadata) == bare(&given.metadata)),
        ("tags", known.tags == given.tags),
        ("created_at", known.created_at == given.created_at),
        ("append_start", known.append_start == given.append_start),
    ];
    fields.into_iter().find(|(_, is_equal)| !is_equal).map(|(name, _)| name)
}

/// White space around JSON means nothing, and an export leaves it out.
fn bare(json: &str) -> &str {
    json.trim_matches([' ', '\t', '\r', '\n'])
}
