//! The end of a log as one process knows it: the last event, the events before it, and whether the log went back or was
//! closed. All live subscribers of the process share it. The backend feeds it; it never queries the database. On a miss,
//! readers fall back to reading a page.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::identity::LogIdentity;
use crate::position::Position;
use crate::recorded::Recorded;

/// The most events that are kept.
const EVENTS_MAX: usize = 2048;
/// An outage lasts at least this long.
const SETTLED: Duration = Duration::from_millis(100);
/// About the most bytes that are kept.
const BYTES_MAX: usize = 8 << 20;

/// Identifies the event at a position: its id and its time, since a repeated append may put the same id there again.
pub(crate) type Mark = (Uuid, Timestamp);

/// The last event of a log, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct End {
    pub(crate) head: Position,
    pub(crate) event_id: Uuid,
    pub(crate) created_at: Timestamp,
}

impl End {
    pub(crate) fn mark(&self) -> Mark {
        (self.event_id, self.created_at)
    }
}

impl From<&Recorded> for End {
    fn from(event: &Recorded) -> Self {
        Self { head: event.position, event_id: event.event_id, created_at: event.created_at }
    }
}

/// The farthest end of the log that this process has seen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    /// How often the log has gone back.
    pub(crate) generation: u64,
    pub(crate) end: End,
}

/// A log as a transaction finds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// The end of the log.
    pub(crate) end: End,
    /// The log time of the last write of an event or a cell.
    pub(crate) time: Timestamp,
    /// The time on the database's clock, and the monotonic time when it was asked. Unset if log time has another clock.
    pub(crate) now: Option<(Duration, Timestamp)>,
    /// The generation when the look began.
    pub(crate) generation: u64,
    /// False if the log went back: the look then belongs to another generation.
    pub(crate) is_same: bool,
}

/// A wake-up for a follower: read again.
#[derive(Debug, Clone, Default)]
struct News {
    /// The last known position.
    head: Position,
    generation: u64,
    is_closed: bool,
    /// The number of failed polls for new events so far.
    n_faults: u64,
    /// The last failure.
    fault: Option<Error>,
}

/// The tail of a log. Each backend has one, and reports to it every commit that it makes or learns of.
#[derive(Debug, Default)]
pub struct Tail {
    news: watch::Sender<News>,
    /// A copy of the flag in `news`, for tasks that wait for nothing else.
    is_closed: watch::Sender<bool>,
    known: Mutex<Known>,
    n_followers: AtomicUsize,
    /// Wakes the poll for the commits of others.
    look: Notify,
    outage: Mutex<Outage>,
}

/// Something that a process does with a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    Poll,
    Read,
    Append,
}

/// The deeds that failed the last time, and the time since which one does.
#[derive(Debug, Default)]
struct Outage {
    failing: BTreeSet<Deed>,
    began: Option<Instant>,
}

#[derive(Debug, Default)]
struct Known {
    seen: Seen,
    /// The last events of this generation, without gaps.
    events: VecDeque<Arc<Recorded>>,
    n_bytes: usize,
    /// The last known position when the log last went back, and its head after that.
    lost: (Position, Position),
    /// That of the log, once it is known.
    identity: Option<LogIdentity>,
}

impl Tail {
    /// The known end. Take it before looking at the log, and pass it to [`Tail::saw`].
    pub(crate) fn seen(&self) -> Seen {
        self.known().seen
    }

    /// The identity of the log of a generation, if it is known.
    pub(crate) fn identity(&self, generation: u64) -> Option<LogIdentity> {
        let known = self.known();
        known.identity.clone().filter(|_| known.seen.generation == generation)
    }

    /// Keeps the identity of the log. An empty log may become a copy of another.
    pub(crate) fn keep_identity(&self, generation: u64, identity: LogIdentity) {
        let mut known = self.known();
        if known.seen.generation == generation && known.seen.end.head > Position(0) {
            known.identity = Some(identity);
        }
    }

    /// How often the log has gone back. Events read in an earlier generation may be gone.
    pub(crate) fn generation(&self) -> u64 {
        self.news.borrow().generation
    }

    /// Records a look at the log that began after `before` was taken: the end of the log, and the event now at the
    /// position of `before.end`. Returns false if that event is a different one: the log went back, now or since
    /// `before`.
    pub(crate) fn saw(&self, before: Seen, end: End, found: Option<Mark>) -> bool {
        let mut known = self.known();
        if known.seen.generation != before.generation {
            return false;
        }
        if before.end.head > Position(0) && found != Some(before.end.mark()) {
            tracing::error!(known = before.end.head.0, head = end.head.0, "the log went back");
            let generation = before.generation + 1;
            *known = Known { seen: Seen { generation, end }, lost: (before.end.head, end.head), ..Known::default() };
            self.news.send_modify(|news| (news.head, news.generation) = (end.head, generation));
            return false;
        }
        known.see(end);
        true
    }

    /// The error for appends and reads based on an earlier generation.
    pub(crate) fn went_back(&self) -> Error {
        let (known, head) = self.known().lost;
        Error::WentBack { known, head }
    }

    /// Refuses to write to a log that went back.
    pub(crate) fn check_look(&self, look: Look) -> Result<(), Error> {
        if look.is_same { Ok(()) } else { Err(self.went_back()) }
    }

    /// Refuses an append or a read based on an earlier generation.
    pub(crate) fn check(&self, generation: Option<u64>) -> Result<(), Error> {
        let is_current = generation.is_none_or(|generation| generation == self.generation());
        if is_current { Ok(()) } else { Err(self.went_back()) }
    }

    /// Waits until the log is closed or leaves this generation, and returns that as an error.
    pub(crate) async fn ended(&self, generation: u64) -> Error {
        let is_over = |news: &News| news.is_closed || news.generation != generation;
        let is_closed = self.news.subscribe().wait_for(is_over).await.is_ok_and(|news| news.is_closed);
        if is_closed { Error::Closed } else { self.went_back() }
    }

    /// Records committed events, in order and without gaps, and announces the new head. The events are kept only while
    /// there are followers. Events of an earlier generation are dropped.
    pub(crate) fn publish(&self, generation: u64, events: Vec<Recorded>) {
        let Some(end) = events.last().map(End::from) else { return };
        let mut known = self.known();
        if known.seen.generation != generation {
            return;
        }
        known.see(end);
        if self.is_followed() {
            known.take_in(events);
        }
        self.grow(end.head);
    }

    /// Records that the log reaches at least to `end`.
    pub(crate) fn grew(&self, generation: u64, end: End) {
        let mut known = self.known();
        if known.seen.generation != generation {
            return;
        }
        known.see(end);
        self.grow(end.head);
    }

    /// Called with `known` locked, so that no older head comes after the news that the log went back.
    fn grow(&self, head: Position) {
        self.news.send_if_modified(|news| {
            let grew = head > news.head;
            news.head = news.head.max(head);
            grew
        });
    }

    /// Records whether the log could be used. The beginning of an outage and its end are logged, and nothing between. It ends when
    /// a poll works again, which reads too, and when an append does, if one had failed.
    pub(crate) fn tried<T>(&self, deed: Deed, outcome: &Result<T, Error>) {
        let Outage { failing, began } = &mut *self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Err(error) if error.is_outage() => {
                failing.insert(deed);
                if began.is_none() {
                    *began = Some(Instant::now());
                    tracing::warn!(%error, "the log cannot be used");
                }
                return;
            }
            // It says nothing about the database.
            Err(error) if error.is_final() => return,
            _ if deed == Deed::Append => _ = failing.remove(&Deed::Append),
            // A poll that began before the outage does not end it.
            _ if deed == Deed::Poll && began.is_some_and(|began| began.elapsed() > SETTLED) => {
                failing.retain(|failing| *failing == Deed::Append);
            }
            _ => return,
        }
        if failing.is_empty()
            && let Some(began) = began.take()
        {
            tracing::warn!("the log can be used again, after {} s", began.elapsed().as_secs());
        }
    }

    /// Reports a failed poll for new events; it will be retried.
    pub(crate) fn failed(&self, error: Error) {
        self.news.send_modify(|news| {
            news.n_faults += 1;
            news.fault = Some(error);
        });
    }

    /// Ends all followers.
    pub(crate) fn close(&self) {
        self.is_closed.send_replace(true);
        self.news.send_modify(|news| news.is_closed = true);
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    /// Waits until the log is closed.
    pub(crate) async fn closed(&self) {
        // The sender lives as long as this.
        let _ = self.is_closed.subscribe().wait_for(|is_closed| *is_closed).await;
    }

    /// The last known position.
    pub(crate) fn head(&self) -> Position {
        self.news.borrow().head
    }

    /// True if a follower wants the events themselves.
    pub(crate) fn is_followed(&self) -> bool {
        self.n_followers.load(Ordering::Relaxed) > 0
    }

    /// Asks the backend to poll for the commits of others now. One poll may answer several requests.
    pub(crate) fn ask(&self) {
        self.look.notify_one();
    }

    /// Waits until the backend should poll: on a request, or when the first follower starts.
    pub(crate) async fn asked(&self) {
        self.look.notified().await;
    }

    /// Starts to follow. A wake-up is a hint: it may come late, and does not cover events missed before.
    pub(crate) fn follow(self: &Arc<Self>) -> Follower {
        if self.n_followers.fetch_add(1, Ordering::Relaxed) == 0 {
            self.ask();
        }
        let news = self.news.subscribe();
        // Read once: a second read would wait forever for a writer that waits for the first one.
        let News { n_faults, generation, .. } = *news.borrow();
        Follower { tail: Arc::clone(self), news, n_faults, generation }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn see(&mut self, end: End) {
        if end.head > self.seen.end.head {
            self.seen.end = end;
        }
    }

    fn take_in(&mut self, events: Vec<Recorded>) {
        for event in events {
            let expected = self.events.back().map(|last| Position(last.position.0 + 1));
            match expected {
                // It is known already.
                Some(expected) if event.position < expected => continue,
                // A gap: no follower that keeps up needs the events before it.
                Some(expected) if event.position > expected => self.forget_events(),
                Some(_) | None => {}
            }
            self.n_bytes += size_of(&event);
            self.events.push_back(Arc::new(event));
        }
        while self.events.len() > EVENTS_MAX || self.n_bytes > BYTES_MAX {
            let Some(first) = self.events.pop_front() else { break };
            self.n_bytes -= size_of(&first);
        }
    }

    fn forget_events(&mut self) {
        self.events.clear();
        self.n_bytes = 0;
    }
}

fn size_of(event: &Recorded) -> usize {
    event.data.len() + event.metadata.len()
}

/// A follower of a tail. Without followers, the tail keeps no events.
#[derive(Debug)]
pub(crate) struct Follower {
    tail: Arc<Tail>,
    news: watch::Receiver<News>,
    n_faults: u64,
    generation: u64,
}

impl Follower {
    /// The generation that it reads.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Moves to the current generation. Returns true if the log went back since the last call.
    pub(crate) fn enter_generation(&mut self) -> bool {
        let generation = self.tail.generation();
        std::mem::replace(&mut self.generation, generation) != generation
    }

    /// Makes the next [`Follower::enter_generation`] return true.
    pub(crate) fn leave_generation(&mut self) {
        self.generation = u64::MAX;
    }

    /// Up to `limit` events after a position, if the first of them is in memory.
    pub(crate) fn after(&self, position: Position, limit: usize) -> Option<Vec<Arc<Recorded>>> {
        let known = self.tail.known();
        if known.seen.generation != self.generation {
            return None;
        }
        let first = known.events.front()?.position;
        let index = usize::try_from(position.0.saturating_add(1).saturating_sub(first.0)).ok()?;
        (index < known.events.len()).then(|| known.events.range(index..).take(limit).cloned().collect())
    }

    /// Waits until there is news after `read_to`.
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::WentBack`] until it enters the new generation; each failed poll for news, once.
    pub(crate) async fn wait(&mut self, read_to: Position) -> Result<(), Error> {
        let (seen, generation) = (self.n_faults, self.generation);
        let is_news = |news: &News| {
            news.is_closed || news.generation != generation || news.head > read_to || news.n_faults > seen
        };
        let told = self.news.wait_for(is_news).await.map(|news| news.clone());
        // The sender lives as long as the tail, which this holds.
        let Ok(news) = told else { return Err(Error::Closed) };
        match news.fault {
            _ if news.is_closed => Err(Error::Closed),
            _ if news.generation != generation => Err(self.tail.went_back()),
            Some(fault) if news.n_faults > seen => {
                self.n_faults = news.n_faults;
                Err(fault)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Waits this long after a fault, or until the log is closed.
    pub(crate) async fn pause(&self, duration: Duration) {
        let _ = tokio::time::timeout(duration, self.tail.closed()).await;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.tail.n_followers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.tail.known().forget_events();
        }
    }
}

#[cfg(test)]
mod tests;
