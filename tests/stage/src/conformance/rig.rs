//! Opens the logs of the suite, and provides its clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use crewlog_mq::{
    Append, Clock, Error, EventStore, Expected, Imported, LogIdentity, Metadata, NewEvent, Options, PAGE_EVENTS_MAX,
    Position, Query, Range, Recorded, Result, Timestamp,
};

/// Opens the log with this name.
type Open = dyn Fn(String, Options) -> BoxFuture<'static, Result<EventStore>> + Send + Sync;

/// Opens logs of one backend. A clone opens the same logs.
#[derive(Clone)]
pub struct Rig {
    name: String,
    open: Arc<Open>,
}

impl Rig {
    /// Creates a rig for a backend from its name for messages and a function that opens a log. For a new name
    /// (letters, digits and dashes) the function creates an empty log with the given options. For a known name it
    /// opens the same log again, like another process; if no other process can, it clones the store.
    pub fn new<F>(name: impl Into<String>, open: impl Fn(String, Options) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<EventStore>> + Send + 'static,
    {
        Self { name: name.into(), open: Arc::new(move |log, options| open(log, options).boxed()) }
    }

    /// The backend's name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens the log of this name.
    ///
    /// # Panics
    /// If opening fails.
    pub async fn open(&self, log: &str, options: Options) -> EventStore {
        let opened = (self.open)(log.to_owned(), options).await;
        opened.unwrap_or_else(|error| panic!("{}: log {log} cannot be opened: {error}", self.name))
    }

    /// A new log with the system clock.
    pub(super) async fn new_log(&self) -> EventStore {
        self.open(&new_name(), Options::default()).await
    }

    /// A new log whose clock the block sets.
    pub(super) async fn timed_log(&self) -> (EventStore, Arc<Hands>) {
        let (hands, options) = timed();
        (self.open(&new_name(), options).await, hands)
    }
}

/// Options with a clock that the block sets.
pub(super) fn timed() -> (Arc<Hands>, Options) {
    let hands = Arc::new(Hands::default());
    hands.set(Timestamp(1_700_000_000_000_000));
    let clock: Arc<dyn Clock> = Arc::<Hands>::clone(&hands);
    (hands, Options { clock, ..Options::default() })
}

/// A name not used by any log before.
pub(super) fn new_name() -> String {
    static N_LOGS: AtomicU64 = AtomicU64::new(0);
    format!("log-{}-{}", N_LOGS.fetch_add(1, Ordering::Relaxed), Uuid::now_v7().simple())
}

/// A clock that moves only when it is set. Its monotonic time moves with it, but never back.
#[derive(Debug, Default)]
pub struct Hands(Mutex<(Timestamp, Duration)>);

impl Hands {
    /// Sets the clock.
    pub fn set(&self, now: Timestamp) {
        let mut hands = self.0.lock().expect("nobody panics with them");
        *hands = (now, hands.1 + now.since(hands.0));
    }

    /// Moves the clock forward.
    pub fn pass(&self, duration: Duration) {
        self.set(self.wall().plus(duration));
    }

    /// Moves the clock back.
    pub fn set_back(&self, duration: Duration) {
        self.set(Timestamp(self.wall().0 - duration.as_micros() as i64));
    }
}

impl Clock for Hands {
    fn wall(&self) -> Timestamp {
        self.0.lock().expect("nobody panics with them").0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().expect("nobody panics with them").1
    }
}

/// An event with the number `n`.
pub(super) fn note(n: u64) -> NewEvent {
    NewEvent::from_json("Noted", "1.0", format!("{{\"n\":{n}}}"), &Metadata::default()).expect("it is JSON")
}

pub(super) fn notes(n_events: u64) -> Vec<NewEvent> {
    (0..n_events).map(note).collect()
}

/// An append of one event to an aggregate of stream `facts`.
pub(super) fn noting(aggregate_id: &str, n: u64) -> Append {
    Append::to("facts", aggregate_id, Expected::Any, vec![note(n)])
}

/// Every event of a log.
pub(super) async fn everything(store: &EventStore) -> Vec<Recorded> {
    in_pages(store, &Query::all(), Range::default(), PAGE_EVENTS_MAX).await
}

/// A log in the form that an import takes.
pub(super) async fn export(store: &EventStore) -> (LogIdentity, Vec<Recorded>) {
    (store.log().await.expect("a log has an identity"), everything(store).await)
}

pub(super) async fn import(into: &EventStore, identity: &LogIdentity, events: &[Recorded]) -> Imported {
    let events: Vec<_> = events.iter().cloned().map(Ok).collect();
    into.import(identity.clone(), events.into_iter()).await.expect("what was exported can be imported")
}

/// Reads page after page, and checks the invariants of each page.
pub(super) async fn in_pages(store: &EventStore, query: &Query, range: Range, limit: usize) -> Vec<Recorded> {
    let mut all = Vec::new();
    let mut rest = Some(range);
    while let Some(range) = rest {
        let page = store.read(query, range, limit).await.expect("the log can be read");
        let context =
            || format!("{query:?} {range:?} by {limit}, of which comes next {} more {}", page.next, page.more);
        assert!(page.events.len() <= limit, "a page has its limit: {}", context());
        let low = range.after.max(Position(0));
        let (from, to) = if range.backwards { (page.next, Position(i64::MAX)) } else { (low, page.next) };
        let within = |event: &Recorded| from < event.position && event.position <= to;
        assert!(page.events.iter().all(within), "a page is complete up to its next: {}", context());
        rest = range.rest(&page);
        if let Some(rest) = rest {
            assert!(rest != range, "a page before the last makes progress: {}", context());
        }
        all.extend(page.events);
    }
    all
}

/// Converts an outcome for comparison: errors are compared by their messages.
pub(super) fn said<T>(outcome: Result<T, Error>) -> Result<T, String> {
    outcome.map_err(|error| format!("{error:?}"))
}

/// Checks that the places of a complete history satisfy the log's invariants.
pub(super) fn check_history(history: &[Recorded]) {
    let mut sequences = std::collections::HashMap::new();
    let mut last_start = Position(0);
    for (event, position) in history.iter().zip(1..) {
        assert_eq!(event.position.0, position, "positions are 1, 2, 3 ...");
        let sequence = sequences.entry((&event.stream_id, &event.aggregate_id)).or_insert(0);
        *sequence += 1;
        assert_eq!(event.sequence, *sequence, "sequences of {} are 1, 2, 3 ...", event.aggregate_id);
        let goes_on = event.append_start == last_start && event.position.0 > 1;
        assert!(goes_on || event.append_start == event.position, "an append is contiguous, at {position}");
        last_start = event.append_start;
    }
    assert!(history.is_sorted_by_key(|event| event.created_at), "log time never runs backwards");
}
