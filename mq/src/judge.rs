//! The rules that accept or refuse an append. Every database applies them within the writing transaction, and answers
//! their questions about the log through a [`Ledger`].

use std::time::Duration;

use crate::append::{Append, Appended, NewEvent, NoneMatching, Write};
use crate::cell::{CellChange, Held};
use crate::clock::{Reading, Timestamp};
use crate::error::{Error, Result};
use crate::expected::Expected;
use crate::position::{Place, Position};
use crate::query::Query;
use crate::recorded::{Metadata, Recorded};

/// The space and the key of the cell that records the last change of any cell: it has the greatest version of all
/// cells, including deleted ones, and is held until the log time of that change. Callers cannot use this name.
pub(crate) const LAST_CHANGE: (&str, &str) = ("", "");

/// The log as a transaction sees it, including its own writes.
pub(crate) trait Ledger {
    /// An error of the database.
    type Fault;

    /// The event with the id of `event`, if there is one.
    fn known(&mut self, write: &Write, event: &NewEvent) -> Result<Option<Known>, Self::Fault>;

    /// The sequence of an aggregate's last event; 0 when it has none.
    fn sequence(&mut self, stream_id: &str, aggregate_id: &str) -> Result<i64, Self::Fault>;

    /// The first matching event after a position.
    fn first_match(&mut self, query: &Query, after: Position) -> Result<Option<Position>, Self::Fault>;

    /// The facts that decide on a change of this cell.
    fn cell(&mut self, space: &str, key: &str) -> Result<Option<Held>, Self::Fault>;

    /// Writes an event.
    fn insert(&mut self, entry: &Entry<'_>) -> Result<(), Self::Fault>;

    /// Writes a cell, or deletes it.
    fn change_cell(&mut self, change: &CellChange, held: Held) -> Result<(), Self::Fault>;
}

/// A recorded event with the id of an event to be appended.
pub(crate) struct Known {
    pub(crate) place: Place,
    pub(crate) created_at: Timestamp,
    /// True if aggregate, type, version, tags and data are equal.
    pub(crate) is_equal: bool,
}

impl Known {
    pub(crate) fn of(write: &Write, event: &NewEvent, found: &Recorded) -> Self {
        let place = Place { position: found.position, sequence: found.sequence };
        Self { place, created_at: found.created_at, is_equal: event.is_same(write, found) }
    }
}

/// An event with its place.
pub(crate) struct Entry<'a> {
    pub(crate) stream_id: &'a str,
    pub(crate) aggregate_id: &'a str,
    pub(crate) event: &'a NewEvent,
    pub(crate) place: Place,
    pub(crate) append_start: Position,
    pub(crate) created_at: Timestamp,
}

impl Entry<'_> {
    /// The event as stored.
    pub(crate) fn recorded(&self) -> Recorded {
        let Self { stream_id, aggregate_id, place, append_start, created_at, .. } = *self;
        self.event.clone().recorded((stream_id.to_owned(), aggregate_id.to_owned()), place, append_start, created_at)
    }
}

/// A transaction in progress: appends are judged one after another, each including the writes of earlier ones.
pub(crate) struct Judge<L> {
    pub(crate) ledger: L,
    head: Position,
    now: Timestamp,
    has_written: bool,
}

impl<L: Ledger> Judge<L> {
    /// A judge at the end of the log, at this log time. It records a step of the wall clock.
    pub(crate) fn begin(ledger: L, head: Position, reading: &Reading) -> Result<Self, L::Fault> {
        let mut judge = Self { ledger, head, now: reading.now, has_written: false };
        if let Some(step) = reading.stepped_back {
            judge.record_step(step)?;
        }
        Ok(judge)
    }

    /// The position of the last event written or found.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn head(&self) -> Position {
        self.head
    }

    /// The log time of the writes, if there are any.
    pub(crate) fn written_at(&self) -> Option<Timestamp> {
        self.has_written.then_some(self.now)
    }

    /// Writes an append, or refuses it without effect. The outer error is one of the database.
    pub(crate) fn judge(&mut self, append: &Append) -> Result<Result<Appended>, L::Fault> {
        match self.repetition(append)? {
            Ok(None) => {}
            Ok(Some(repeated)) => return Ok(Ok(repeated)),
            Err(refusal) => return Ok(Err(refusal)),
        }
        let mut sequences = Vec::with_capacity(append.writes.len());
        for write in &append.writes {
            let actual = self.ledger.sequence(&write.stream_id, &write.aggregate_id)?;
            if let Some(refusal) = refusal(write, actual) {
                return Ok(Err(refusal));
            }
            sequences.push(actual);
        }
        if let &Some(NoneMatching { ref query, after }) = &append.none_matching {
            if after > self.head {
                // The decision is based on events beyond the end of the log.
                return Ok(Err(Error::WentBack { known: after, head: self.head }));
            }
            if let Some(position) = self.ledger.first_match(query, after)? {
                return Ok(Err(Error::MatchFound { position, after }));
            }
        }
        let mut cells = Vec::with_capacity(append.cells.len());
        for change in &append.cells {
            let found = self.ledger.cell(&change.space, &change.key)?;
            if let Err(refusal) = change.judge(found, self.now) {
                return Ok(Err(refusal));
            }
            cells.push(found);
        }
        let places = self.write(append, &sequences)?;
        let cells = self.change_cells(append, &cells)?;
        Ok(Ok(Appended { places, cells, created_at: self.now, repeated: false }))
    }

    /// Records in the log that the wall clock is behind log time.
    fn record_step(&mut self, step: Duration) -> Result<(), L::Fault> {
        let micros = step.as_micros();
        tracing::warn!(behind_us = micros, "the wall clock stepped back; log time runs on");
        let (data, metadata) = (format!("{{\"behind_us\":{micros}}}"), Metadata::default());
        let event = NewEvent::from_json("ClockStepped", "1.0", data, &metadata).expect("both are JSON");
        let append = Append::to("log", "clock", Expected::Any, vec![event]);
        let sequence = self.ledger.sequence("log", "clock")?;
        self.write(&append, &[sequence])?;
        Ok(())
    }

    /// Judges the ids first; `None` if all are new.
    fn repetition(&mut self, append: &Append) -> Result<Result<Option<Appended>>, L::Fault> {
        let (mut known, mut unknown) = (Vec::new(), None);
        for write in &append.writes {
            for event in &write.events {
                match self.ledger.known(write, event)? {
                    Some(found) if !found.is_equal => {
                        let (event_id, position) = (event.event_id, found.place.position);
                        return Ok(Err(Error::IdReused { event_id, position }));
                    }
                    Some(found) => known.push((event.event_id, found)),
                    None => unknown = Some(event.event_id),
                }
            }
        }
        let Some((first_id, first)) = known.first() else { return Ok(Ok(None)) };
        if let Some(unknown) = unknown {
            return Ok(Err(Error::PartlyKnown { known: *first_id, position: first.place.position, unknown }));
        }
        let places = known.iter().map(|(_, found)| found.place).collect();
        Ok(Ok(Some(Appended { places, cells: Vec::new(), created_at: first.created_at, repeated: true })))
    }

    /// Writes the events after the last sequences of their aggregates.
    fn write(&mut self, append: &Append, sequences: &[i64]) -> Result<Vec<Place>, L::Fault> {
        let append_start = Position(self.head.0 + 1);
        let mut places = Vec::new();
        for (write, last) in append.writes.iter().zip(sequences) {
            for (event, sequence) in write.events.iter().zip(last + 1..) {
                let place = Place { position: Position(self.head.0 + 1), sequence };
                self.ledger.insert(&Entry {
                    stream_id: &write.stream_id,
                    aggregate_id: &write.aggregate_id,
                    event,
                    place,
                    append_start,
                    created_at: self.now,
                })?;
                (self.head, self.has_written) = (place.position, true);
                places.push(place);
            }
        }
        Ok(places)
    }

    /// Gives each changed cell a version above that of any cell so far, even if it was deleted and is created again.
    /// One moment of log time may see many changes, so the greatest version is stored.
    fn change_cells(&mut self, append: &Append, found: &[Option<Held>]) -> Result<Vec<i64>, L::Fault> {
        if append.cells.is_empty() {
            return Ok(Vec::new());
        }
        let last = self.ledger.cell(LAST_CHANGE.0, LAST_CHANGE.1)?;
        let mut last = last.iter().chain(found.iter().flatten()).map(|held| held.version).max().unwrap_or(0);
        let mut versions = Vec::with_capacity(append.cells.len());
        for change in &append.cells {
            last = self.now.0.max(last.saturating_add(1));
            let until = change.hold.map(|duration| self.now.plus(duration));
            self.ledger.change_cell(change, Held { version: last, until })?;
            versions.push(last);
        }
        let change = CellChange::set(LAST_CHANGE.0, LAST_CHANGE.1, String::new());
        self.ledger.change_cell(&change, Held { version: last, until: Some(self.now) })?;
        self.has_written = true;
        Ok(versions)
    }
}

fn refusal(write: &Write, actual: i64) -> Option<Error> {
    let holds = match write.expected {
        Expected::Any => true,
        Expected::NoStream => actual == 0,
        Expected::Sequence(sequence) => actual == sequence,
    };
    (!holds).then(|| Error::SequenceMismatch {
        stream_id: write.stream_id.clone(),
        aggregate_id: write.aggregate_id.clone(),
        expected: write.expected,
        actual,
    })
}
