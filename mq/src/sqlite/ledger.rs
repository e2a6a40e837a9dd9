//! The log as one SQLite transaction sees it, for the judge of appends.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Transaction, params};

use super::read;
use super::tables::{self, Row, tags_as_json};
use crate::cell::{CellChange, Held};
use crate::clock::Timestamp;
use crate::judge::{Entry, Known, Ledger};
use crate::position::{Place, Position};
use crate::query::Query;
use crate::record::{NewEvent, Write};

/// Interned numbers that are kept in memory, of each sort.
const INTERNED_MAX: usize = 65_536;

/// The numbers of names that were committed.
#[derive(Debug, Default)]
pub(super) struct Interned {
    /// Of `(stream, aggregate)`.
    aggregates: HashMap<(String, String), i64>,
    /// Of `(stream, event type)`.
    kinds: HashMap<(String, String), i64>,
}

impl Interned {
    /// Takes in what a transaction that is committed now has interned.
    pub(super) fn learn(&mut self, new: Self) {
        if self.aggregates.len() + new.aggregates.len() > INTERNED_MAX {
            self.aggregates.clear();
        }
        if self.kinds.len() + new.kinds.len() > INTERNED_MAX {
            self.kinds.clear();
        }
        self.aggregates.extend(new.aggregates);
        self.kinds.extend(new.kinds);
    }
}

/// A transaction that writes.
pub(super) struct Writing<'a> {
    transaction: &'a Transaction<'a>,
    known: &'a Interned,
    /// Known to others only once they are committed.
    new: Interned,
}

impl<'a> Writing<'a> {
    pub(super) fn new(transaction: &'a Transaction<'a>, known: &'a Interned) -> Self {
        Self { transaction, known, new: Interned::default() }
    }

    pub(super) fn into_interned(self) -> Interned {
        self.new
    }

    fn aggregate(&self, stream_id: &str, aggregate_id: &str) -> rusqlite::Result<Option<i64>> {
        let key = (stream_id.to_owned(), aggregate_id.to_owned());
        match self.known.aggregates.get(&key).or_else(|| self.new.aggregates.get(&key)) {
            Some(aggregate) => Ok(Some(*aggregate)),
            None => tables::aggregate(self.transaction, stream_id, aggregate_id),
        }
    }

    /// The number of an aggregate, which gets one when it has none.
    fn interned_aggregate(&mut self, stream_id: &str, aggregate_id: &str) -> rusqlite::Result<i64> {
        if let Some(aggregate) = self.aggregate(stream_id, aggregate_id)? {
            return Ok(aggregate);
        }
        let aggregate = tables::intern_aggregate(self.transaction, stream_id, aggregate_id)?;
        self.new.aggregates.insert((stream_id.to_owned(), aggregate_id.to_owned()), aggregate);
        Ok(aggregate)
    }

    /// The number of a kind, which gets one when it has none.
    fn interned_kind(&mut self, stream_id: &str, event_type: &str) -> rusqlite::Result<i64> {
        let key = (stream_id.to_owned(), event_type.to_owned());
        if let Some(kind) = self.known.kinds.get(&key).or_else(|| self.new.kinds.get(&key)) {
            return Ok(*kind);
        }
        let kind = tables::interned_kind(self.transaction, stream_id, event_type)?;
        self.new.kinds.insert(key, kind);
        Ok(kind)
    }
}

impl Ledger for Writing<'_> {
    type Fault = rusqlite::Error;

    fn known(&mut self, write: &Write, event: &NewEvent) -> rusqlite::Result<Option<Known>> {
        let sql = "SELECT e.position, e.sequence, e.created_at, a.stream_id = ?2 AND a.aggregate_id = ?3 \
             AND e.event_type = ?4 AND e.event_version = ?5 AND e.data = ?6 AND e.tags = ?7 \
             FROM events AS e CROSS JOIN aggregates AS a ON a.aggregate = e.aggregate WHERE e.event_id = ?1";
        let event_id = &event.event_id.as_bytes()[..];
        let of = [&write.stream_id, &write.aggregate_id, &event.event_type, &event.event_version, &event.data];
        let [stream_id, aggregate_id, event_type, event_version, data] = of;
        let tags = tags_as_json(&event.tags);
        self.transaction
            .prepare_cached(sql)?
            .query_row(params![event_id, stream_id, aggregate_id, event_type, event_version, data, tags], |row| {
                Ok(Known {
                    place: Place { position: Position(row.get(0)?), sequence: row.get(1)? },
                    created_at: Timestamp(row.get(2)?),
                    is_equal: row.get(3)?,
                })
            })
            .optional()
    }

    fn sequence(&mut self, stream_id: &str, aggregate_id: &str) -> rusqlite::Result<i64> {
        match self.aggregate(stream_id, aggregate_id)? {
            Some(aggregate) => tables::sequence(self.transaction, aggregate),
            None => Ok(0),
        }
    }

    fn first_match(&mut self, query: &Query, after: Position) -> rusqlite::Result<Option<Position>> {
        read::first_match(self.transaction, query, after)
    }

    fn cell(&mut self, space: &str, key: &str) -> rusqlite::Result<Option<Held>> {
        let sql = "SELECT version, held_until FROM cells WHERE space = ?1 AND key = ?2";
        self.transaction
            .prepare_cached(sql)?
            .query_row([space, key], |row| {
                Ok(Held { version: row.get(0)?, until: row.get::<_, Option<i64>>(1)?.map(Timestamp) })
            })
            .optional()
    }

    fn insert(&mut self, entry: &Entry<'_>) -> rusqlite::Result<()> {
        let event = entry.event;
        let row = Row {
            position: entry.place.position,
            event_id: event.event_id,
            aggregate: self.interned_aggregate(entry.stream_id, entry.aggregate_id)?,
            kind: self.interned_kind(entry.stream_id, &event.event_type)?,
            sequence: entry.place.sequence,
            event_type: &event.event_type,
            event_version: &event.event_version,
            data: &event.data,
            metadata: &event.metadata,
            causes: event.causes,
            tags: &event.tags,
            created_at: entry.created_at,
            append_start: entry.append_start,
        };
        row.insert(self.transaction)
    }

    fn change_cell(&mut self, change: &CellChange, held: Held) -> rusqlite::Result<()> {
        let (space, key) = (&change.space, &change.key);
        let Some(value) = &change.value else {
            let sql = "DELETE FROM cells WHERE space = ?1 AND key = ?2";
            self.transaction.prepare_cached(sql)?.execute([space, key])?;
            return Ok(());
        };
        let sql = "INSERT INTO cells (space, key, version, value, held_until) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (space, key) DO UPDATE SET version = ?3, value = ?4, held_until = ?5";
        let held_until = held.until.map(|until| until.0);
        self.transaction.prepare_cached(sql)?.execute(params![space, key, held.version, value, held_until])?;
        Ok(())
    }
}
