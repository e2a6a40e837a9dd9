//! The log as one SQLite transaction sees it, for judging appends.

use std::collections::HashMap;

use rusqlite::{CachedStatement, OptionalExtension, Transaction, params};
use uuid::Uuid;

use super::read;
use super::tables::{self, Inserts, Row};
use crate::append::{NewEvent, Write};
use crate::cell::{CellChange, Held};
use crate::clock::Timestamp;
use crate::judge::{Entry, Known, Ledger};
use crate::position::{Place, Position};
use crate::query::Query;
use crate::recorded::tags_as_json;
use crate::tail::{End, Look};

/// The most aggregates and kinds kept in memory.
const NAMES_MAX: usize = 65_536;

/// The writer's memory of the log between transactions. It is dropped when the outcome of a transaction is unknown.
#[derive(Debug, Default)]
pub(super) struct Memory {
    streams: HashMap<String, Stream>,
    n_names: usize,
    /// The log generation that this belongs to.
    log_generation: u64,
    /// The end of the log after this writer's last commit.
    head: Position,
    /// Counts the writes of others that were detected: earlier sequences may be stale.
    generation: u64,
    /// The greatest event id of the log, known while nobody else writes.
    greatest: Option<Uuid>,
}

#[derive(Debug, Default)]
struct Stream {
    aggregates: HashMap<String, Aggregate>,
    kinds: HashMap<String, i64>,
}

#[derive(Debug, Clone, Copy)]
struct Aggregate {
    number: i64,
    sequence: i64,
    generation: u64,
}

impl Memory {
    fn aggregate(&self, stream_id: &str, aggregate_id: &str) -> Option<Aggregate> {
        self.streams.get(stream_id)?.aggregates.get(aggregate_id).copied()
    }

    fn learn_aggregate(&mut self, stream_id: &str, aggregate_id: &str, number: i64, sequence: i64) {
        let aggregate = Aggregate { number, sequence, generation: self.generation };
        if let Some(known) = self.streams.get_mut(stream_id).and_then(|stream| stream.aggregates.get_mut(aggregate_id))
        {
            *known = aggregate;
        } else {
            self.stream(stream_id).aggregates.insert(aggregate_id.to_owned(), aggregate);
        }
    }

    /// The map of a stream, with room for one more name.
    fn stream(&mut self, stream_id: &str) -> &mut Stream {
        if self.n_names >= NAMES_MAX {
            self.streams.clear();
            self.n_names = 0;
        }
        self.n_names += 1;
        self.streams.entry(stream_id.to_owned()).or_default()
    }
}

/// A writing transaction.
pub(super) struct Writing<'a> {
    transaction: &'a Transaction<'a>,
    memory: &'a mut Memory,
    inserts: Inserts<'a>,
    position_of: CachedStatement<'a>,
}

impl<'a> Writing<'a> {
    /// A transaction that begins at this end of the log.
    pub(super) fn new(
        transaction: &'a Transaction<'a>,
        memory: &'a mut Memory,
        Look { generation, end: End { head, .. }, .. }: Look,
    ) -> rusqlite::Result<Self> {
        if memory.log_generation != generation || memory.head > head {
            *memory = Memory { log_generation: generation, ..Memory::default() };
        }
        if memory.head != head || memory.greatest.is_none() {
            memory.generation += 1;
            memory.head = head;
            memory.greatest = tables::greatest_id(transaction)?;
        }
        let inserts = Inserts::prepare(transaction)?;
        let position_of = transaction.prepare_cached(tables::POSITION_OF)?;
        Ok(Self { transaction, memory, inserts, position_of })
    }

    /// The number of an aggregate; assigns one if it has none.
    fn interned_aggregate(&mut self, stream_id: &str, aggregate_id: &str) -> rusqlite::Result<i64> {
        if let Some(aggregate) = self.memory.aggregate(stream_id, aggregate_id) {
            return Ok(aggregate.number);
        }
        match tables::aggregate(self.transaction, stream_id, aggregate_id)? {
            Some(number) => Ok(number),
            None => tables::intern_aggregate(self.transaction, stream_id, aggregate_id),
        }
    }

    /// The number of a kind; assigns one if it has none.
    fn interned_kind(&mut self, stream_id: &str, event_type: &str) -> rusqlite::Result<i64> {
        if let Some(kind) = self.memory.streams.get(stream_id).and_then(|stream| stream.kinds.get(event_type)) {
            return Ok(*kind);
        }
        let kind = tables::interned_kind(self.transaction, stream_id, event_type)?;
        self.memory.stream(stream_id).kinds.insert(event_type.to_owned(), kind);
        Ok(kind)
    }
}

impl Ledger for Writing<'_> {
    type Fault = rusqlite::Error;

    fn known(&mut self, write: &Write, event: &NewEvent) -> rusqlite::Result<Option<Known>> {
        // New ids usually begin with the current time, so they are greater than all existing ones.
        if self.memory.greatest.is_none_or(|greatest| event.event_id > greatest) {
            return Ok(None);
        }
        let event_id = &event.event_id.as_bytes()[..];
        if self.position_of.query_row([event_id], |_| Ok(())).optional()?.is_none() {
            return Ok(None);
        }
        let sql = "SELECT e.position, e.sequence, e.created_at, a.stream_id = ?2 AND a.aggregate_id = ?3 \
             AND e.event_type = ?4 AND e.event_version = ?5 AND e.data = ?6 AND e.tags = ?7 \
             FROM events AS e CROSS JOIN aggregates AS a ON a.aggregate = e.aggregate WHERE e.event_id = ?1";
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
        let number = match self.memory.aggregate(stream_id, aggregate_id) {
            Some(known) if known.generation == self.memory.generation => return Ok(known.sequence),
            Some(known) => Some(known.number),
            None => tables::aggregate(self.transaction, stream_id, aggregate_id)?,
        };
        let Some(number) = number else { return Ok(0) };
        let sequence = tables::sequence(self.transaction, number)?;
        self.memory.learn_aggregate(stream_id, aggregate_id, number, sequence);
        Ok(sequence)
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
        let aggregate = self.interned_aggregate(entry.stream_id, entry.aggregate_id)?;
        let row = Row {
            position: entry.place.position,
            event_id: event.event_id,
            aggregate,
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
        self.inserts.insert(&row)?;
        self.memory.learn_aggregate(entry.stream_id, entry.aggregate_id, aggregate, entry.place.sequence);
        self.memory.greatest = self.memory.greatest.max(Some(event.event_id));
        self.memory.head = entry.place.position;
        Ok(())
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
