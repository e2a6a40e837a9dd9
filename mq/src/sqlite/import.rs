//! Imports the events of another copy of a log: one transaction under the append lock, on its own connection. It never
//! changes an existing event.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::location::Location;
use super::read::{self, Snapshot};
use super::tables::{self, RECORDED, Row, end_of, recorded};
use crate::backend::Records;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::identity::LogIdentity;
use crate::import::{Import, Taken};
use crate::recorded::Recorded;
use crate::report::Imported;

/// Aggregates whose last sequence is kept in memory.
const KNOWN_AGGREGATES_MAX: usize = 65_536;

const DOING: &str = "importing";

/// Imports all of the records, or none; also returns the log time of the last write.
pub(super) fn run(location: &Location, identity: &LogIdentity, records: Records) -> Result<(Imported, Timestamp)> {
    let fault = |error| location.fault(DOING, error);
    let lock = location.open_lock()?;
    let held = location.hold(lock.as_ref())?;
    let mut connection = location.connect_to_write()?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    let (start, _) = end_of(&transaction).map_err(fault)?;
    let mut import = Import::begin(&read::log(&transaction).map_err(fault)?, start.head, identity)?;
    if import.adopts {
        adopt(&transaction, identity).map_err(fault)?;
    }
    let mut shelf = Shelf { transaction: &transaction, aggregates: HashMap::new() };
    for record in records {
        let record = record?;
        match import.take(&record)? {
            Taken::Known => Import::compare(&shelf.known(&record).map_err(fault)?, &record)?,
            Taken::New => {
                let (aggregate, sequence) = shelf.aggregate(&record).map_err(fault)?;
                let same_id = tables::position_of(&transaction, record.event_id).map_err(fault)?;
                import.add(&record, sequence, same_id)?;
                shelf.insert(&record, aggregate).map_err(fault)?;
            }
        }
    }
    let (end, time) = end_of(&transaction).map_err(fault)?;
    let whole = read::whole(&Snapshot { connection: &transaction, end }, import.position()).map_err(fault)?;
    let imported = import.end(whole)?;
    #[cfg(feature = "faults")]
    crate::faults::reach(crate::faults::Point::Before(start.head, end.head));
    transaction.commit().map_err(fault)?;
    #[cfg(feature = "faults")]
    crate::faults::reach(crate::faults::Point::After(start.head, end.head));
    drop(held);
    Ok((imported, time))
}

fn adopt(connection: &Connection, identity: &LogIdentity) -> rusqlite::Result<usize> {
    let sql = "UPDATE log SET id = ?1, created_at = ?2";
    connection.execute(sql, params![identity.id.to_string(), identity.created_at.0])
}

/// The log, as the transaction of one import sees it.
struct Shelf<'a> {
    transaction: &'a Transaction<'a>,
    /// The number and the last sequence of the aggregates written to.
    aggregates: HashMap<(String, String), (i64, i64)>,
}

impl Shelf<'_> {
    /// The log's event at the record's position.
    fn known(&self, record: &Recorded) -> rusqlite::Result<Recorded> {
        let sql = format!("SELECT {RECORDED} FROM recorded_events WHERE position = ?1");
        self.transaction.prepare_cached(&sql)?.query_one([record.position.0], recorded)
    }

    fn insert(&self, record: &Recorded, aggregate: i64) -> rusqlite::Result<()> {
        let row = Row {
            position: record.position,
            event_id: record.event_id,
            aggregate,
            kind: tables::interned_kind(self.transaction, &record.stream_id, &record.event_type)?,
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
        row.insert(self.transaction)
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
}
