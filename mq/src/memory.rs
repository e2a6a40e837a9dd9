//! The in-memory log, which defines the behaviour of every backend: a list of events under a lock. It favours
//! simplicity over speed; where another backend differs from it, one of the two is wrong. It lives as long as its
//! store.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use crate::append::{Append, Appended, NewEvent, Write};
use crate::backend::{Backend, Options, Records};
use crate::cell::{Cell, CellChange, Held};
use crate::check::Check;
use crate::clock::{LogTime, Timestamp};
use crate::error::{Error, Result};
use crate::identity::LogIdentity;
use crate::import::{Import, Taken};
use crate::judge::{Entry, Judge, Known, LAST_CHANGE, Ledger};
use crate::law::FORMAT;
use crate::limits::PAGE_BYTES_MAX;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::{Page, Recorded};
use crate::report::{Checked, Imported, KindStats, Stats};
use crate::tail::{End, Tail};

/// A log in memory, for [`crate::EventStore::on`]: the executable specification of [`Backend`].
pub struct Memory(Arc<Inner>);

struct Inner {
    /// Held by the current writer. An import holds it for long, so waiting for it must not block a thread.
    writing: tokio::sync::Mutex<()>,
    log: Mutex<Log>,
    log_time: LogTime,
    tail: Arc<Tail>,
}

/// This log never goes back.
const GENERATION: u64 = 0;

/// The contents of the log.
#[derive(Clone)]
struct Log {
    identity: LogIdentity,
    /// The event at position 1 comes first.
    events: Vec<Recorded>,
    /// By `(space, key)`.
    cells: BTreeMap<(String, String), Cell>,
}

impl Memory {
    /// An empty log.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let log_time = LogTime::new(options.clock);
        let identity = LogIdentity { id: Uuid::now_v7(), format: FORMAT, created_at: log_time.now() };
        let log = Log { identity, events: Vec::new(), cells: BTreeMap::new() };
        let (writing, log) = (tokio::sync::Mutex::new(()), Mutex::new(log));
        Self(Arc::new(Inner { writing, log, log_time, tail: Arc::default() }))
    }

    fn open(&self) -> Result<&Inner> {
        self.0.check_open().map(|()| &*self.0)
    }
}

impl Backend for Memory {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended>> {
        let inner = Arc::clone(&self.0);
        // In a separate task: an unpolled future that holds the lock would block everyone else.
        let working = tokio::spawn(async move {
            let _writing = inner.writing.lock().await;
            inner.check_open()?;
            inner.append(&append)
        });
        async { working.await.map_err(|error| Error::NotAcknowledged { source: Arc::new(error) })? }.boxed()
    }

    fn read<'a>(&'a self, query: &'a Query, range: Range, limit: usize) -> BoxFuture<'a, Result<Page>> {
        async move { Ok(self.open()?.log().page(query, range, limit)) }.boxed()
    }

    fn head(&self) -> BoxFuture<'_, Result<Position>> {
        async { Ok(self.open()?.log().head()) }.boxed()
    }

    fn whole(&self, at: Position) -> BoxFuture<'_, Result<Position>> {
        async move { Ok(self.open()?.log().whole(at)) }.boxed()
    }

    fn log(&self) -> BoxFuture<'_, Result<LogIdentity>> {
        async { Ok(self.open()?.log().identity.clone()) }.boxed()
    }

    fn import(&self, identity: LogIdentity, records: Records) -> BoxFuture<'_, Result<Imported>> {
        let inner = Arc::clone(&self.0);
        async move {
            let work = tokio::task::spawn_blocking(move || inner.import(&identity, records));
            work.await.map_err(|error| Error::storage("importing", error))?
        }
        .boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<Checked>> {
        async { Ok(self.open()?.log().check()) }.boxed()
    }

    fn cells<'a>(&'a self, space: &'a str, from: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Cell>>> {
        async move { Ok(self.open()?.log().cells(space, from, limit)) }.boxed()
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats>> {
        async { Ok(self.open()?.log().stats()) }.boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.tail.close();
        let inner = Arc::clone(&self.0);
        // Waits for a running import.
        let closing = async move { drop(inner.writing.lock().await) };
        async { drop(tokio::spawn(closing).await) }.boxed()
    }

    fn now(&self) -> Timestamp {
        self.0.log_time.now()
    }

    fn tail(&self) -> &Arc<Tail> {
        &self.0.tail
    }
}

impl Inner {
    fn check_open(&self) -> Result<()> {
        if self.tail.is_closed() { Err(Error::Closed) } else { Ok(()) }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // A panic under the lock came from a reader: writes are judged before, and cannot fail.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, append: &Append) -> Result<Appended> {
        let mut log = self.log();
        let (before, last) = (log.events.len(), log.last_time());
        let reading = self.log_time.after(last);
        let Ok(mut judge) = Judge::begin(&mut *log, Position(before as i64), &reading);
        if reading.stepped_back.is_some() {
            self.log_time.step_is_recorded();
        }
        let Ok(outcome) = judge.judge(append);
        if let Some(time) = judge.written_at() {
            self.log_time.learn(time);
        }
        if log.events.len() > before {
            // Under the lock, so that the tail receives all commits in order.
            self.tail.publish(GENERATION, log.events[before..].to_vec());
        }
        outcome
    }

    /// Imports into a copy, which replaces the log once everything is judged.
    fn import(&self, identity: &LogIdentity, records: Records) -> Result<Imported> {
        let _writing = self.writing.blocking_lock();
        self.check_open()?;
        let mut log = self.log().clone();
        let mut import = Import::begin(&log.identity, log.head(), identity)?;
        if import.adopts {
            log.identity = identity.clone();
        }
        for record in records {
            let record = record?;
            match import.take(&record)? {
                Taken::Known => Import::compare(log.at(record.position).expect("the log has it"), &record)?,
                Taken::New => {
                    let sequence = log.sequence_of(&record.stream_id, &record.aggregate_id);
                    import.add(&record, sequence, log.of_id(record.event_id).map(|known| known.position))?;
                    log.events.push(record);
                }
            }
        }
        let imported = import.end(log.whole(import.position()))?;
        self.log_time.learn(log.last_time());
        let end = log.events.last().map(End::from).unwrap_or_default();
        *self.log() = log;
        self.tail.grew(GENERATION, end);
        Ok(imported)
    }
}

impl Log {
    fn head(&self) -> Position {
        Position(self.events.len() as i64)
    }

    fn at(&self, position: Position) -> Option<&Recorded> {
        self.events.get(usize::try_from(position.0.checked_sub(1)?).ok()?)
    }

    fn of_id(&self, event_id: Uuid) -> Option<&Recorded> {
        self.events.iter().find(|event| event.event_id == event_id)
    }

    /// The log time of the last write of an event or a cell.
    fn last_time(&self) -> Timestamp {
        let key = (LAST_CHANGE.0.to_owned(), LAST_CHANGE.1.to_owned());
        let changed = self.cells.get(&key).and_then(|cell| cell.held_until);
        self.events.last().map(|event| event.created_at).max(changed).unwrap_or_default()
    }

    fn sequence_of(&self, stream_id: &str, aggregate_id: &str) -> i64 {
        let of = |event: &&Recorded| event.stream_id == stream_id && event.aggregate_id == aggregate_id;
        self.events.iter().rev().find(of).map_or(0, |event| event.sequence)
    }

    fn page(&self, query: &Query, range: Range, limit: usize) -> Page {
        let (low, high) = self.bounds(range);
        let within = |event: &&Recorded| low < event.position && event.position <= high && query.matches(event);
        let matching: Vec<_> = match range.backwards {
            false => self.events.iter().filter(within).collect(),
            true => self.events.iter().rev().filter(within).collect(),
        };
        let (mut events, mut n_bytes) = (Vec::new(), 0);
        for event in matching {
            if events.len() == limit || n_bytes >= PAGE_BYTES_MAX {
                break;
            }
            n_bytes += event.data.len() + event.metadata.len();
            events.push(event.clone());
        }
        Page::of(events, limit, (low, high), range.backwards)
    }

    /// The positions of a range: after the first, up to and including the second, which is never before the first.
    fn bounds(&self, range: Range) -> (Position, Position) {
        let last_where = |holds: &dyn Fn(&Recorded) -> bool| {
            self.events.iter().rev().find(|event| holds(event)).map_or(Position(0), |event| event.position)
        };
        let mut low = range.after.max(Position(0));
        let mut high = range.up_to.map_or(self.head(), |up_to| up_to.min(self.head()));
        if let Some(since) = range.since {
            low = low.max(last_where(&|event| event.created_at < since));
        }
        if let Some(until) = range.until {
            high = high.min(last_where(&|event| event.created_at <= until));
        }
        (low, high.max(low))
    }

    fn whole(&self, at: Position) -> Position {
        let at = at.clamp(Position(0), self.head());
        match self.at(Position(at.0 + 1)) {
            Some(next) if next.append_start <= at => Position(next.append_start.0 - 1),
            Some(_) | None => at,
        }
    }

    fn check(&self) -> Checked {
        let mut check = Check::default();
        for event in &self.events {
            if let Some(event) = check.event(event.position, || Ok::<_, Infallible>(event.clone()))
                && let Some(cause) = event.causes().causation_id
                && self.of_id(cause).is_none()
            {
                check.foreign_cause(event.position);
            }
        }
        check.end()
    }

    fn cells(&self, space: &str, from: &str, limit: usize) -> Vec<Cell> {
        let first = Bound::Included((space.to_owned(), from.to_owned()));
        let cells = self.cells.range((first, Bound::Unbounded)).map(|(_, cell)| cell);
        cells.take_while(|cell| cell.space == space).take(limit).cloned().collect()
    }

    fn stats(&self) -> Stats {
        let mut kinds = BTreeMap::new();
        for event in &self.events {
            *kinds.entry((event.stream_id.clone(), event.event_type.clone())).or_insert(0) += 1;
        }
        let kinds = kinds.into_iter();
        Stats {
            head: self.head(),
            n_aggregates: self.events.iter().filter(|event| event.sequence == 1).count() as i64,
            n_cells: self.cells.keys().filter(|(space, _)| !space.is_empty()).count() as i64,
            n_bytes: 0,
            span: self.events.first().zip(self.events.last()).map(|(first, last)| (first.created_at, last.created_at)),
            kinds: kinds
                .map(|((stream_id, event_type), n_events)| KindStats { stream_id, event_type, n_events })
                .collect(),
        }
    }
}

impl Ledger for &mut Log {
    type Fault = Infallible;

    fn known(&mut self, write: &Write, event: &NewEvent) -> Result<Option<Known>, Infallible> {
        Ok(self.of_id(event.event_id).map(|found| Known::of(write, event, found)))
    }

    fn sequence(&mut self, stream_id: &str, aggregate_id: &str) -> Result<i64, Infallible> {
        Ok(self.sequence_of(stream_id, aggregate_id))
    }

    fn first_match(&mut self, query: &Query, after: Position) -> Result<Option<Position>, Infallible> {
        let mut behind = self.events.iter().filter(|event| event.position > after);
        Ok(behind.find(|event| query.matches(event)).map(|event| event.position))
    }

    fn cell(&mut self, space: &str, key: &str) -> Result<Option<Held>, Infallible> {
        let found = self.cells.get(&(space.to_owned(), key.to_owned()));
        Ok(found.map(|cell| Held { version: cell.version, until: cell.held_until }))
    }

    fn insert(&mut self, entry: &Entry<'_>) -> Result<(), Infallible> {
        self.events.push(entry.recorded());
        Ok(())
    }

    fn change_cell(&mut self, change: &CellChange, held: Held) -> Result<(), Infallible> {
        let CellChange { space, key, value, expected: _, hold: _ } = change.clone();
        let place = (space.clone(), key.clone());
        match value {
            Some(value) => {
                let Held { version, until: held_until } = held;
                self.cells.insert(place, Cell { space, key, version, value, held_until });
            }
            None => drop(self.cells.remove(&place)),
        }
        Ok(())
    }
}
