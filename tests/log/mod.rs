//! The contract of the event store, on every backend, in one process and in several.

mod append;
mod broken;
mod check;
mod child;
mod closing;
mod concurrency;
mod conformance;
mod content;
mod deciders;
mod failover;
mod file;
mod follow;
mod full;
mod groups;
mod ids;
mod import;
mod joined;
mod kills;
mod lost;
mod many;
mod migrate;
mod odd;
mod postgres;
mod postgres_faults;
mod processes;
mod read;
mod refused;
mod restored;
mod rivals;
mod runner;
mod scenarios;
mod snapshots;
mod time;
mod together;
mod versions;
mod wakes;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use crewlog_mq::{
    Append, Error, Event, EventStore, Expected, Metadata, NewEvent, PAGE_EVENTS_MAX, Position, Query, Range, Recorded,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crewlog_stage::backends::logs;
use crewlog_stage::text;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    Noted { n: i64 },
    Closed,
}

impl Event for Fact {
    fn event_type(&self) -> &'static str {
        match self {
            Self::Noted { .. } => "Noted",
            Self::Closed => "Closed",
        }
    }
}

/// A new event with the number `n`.
fn note(n: i64) -> NewEvent {
    NewEvent::of(&Fact::Noted { n }, &Metadata::default()).expect("a fact can be written as JSON")
}

fn notes(n: impl IntoIterator<Item = i64>) -> Vec<NewEvent> {
    n.into_iter().map(note).collect()
}

/// An append of one event to one aggregate of stream `facts`, without an expectation.
fn noting(aggregate_id: &str, n: i64) -> Append {
    Append::to("facts", aggregate_id, Expected::Any, vec![note(n)])
}

/// A folder for one test with a location for a log.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder can be made") }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("log.db")
    }

    fn url(&self) -> String {
        text(&self.path())
    }

    async fn open(&self) -> EventStore {
        EventStore::open(&self.url()).await.expect("the log opens")
    }

    /// While this is held, no process commits to the log.
    fn hold_commits(&self) -> std::fs::File {
        let lock = std::fs::File::options().write(true).open(self.folder.path().join("log.db-lock"));
        let lock = lock.expect("a log has a lock file");
        lock.lock().expect("the lock is granted");
        lock
    }
}

/// Every event of a log.
async fn everything(store: &EventStore) -> Vec<Recorded> {
    let mut all = Vec::new();
    let mut range = Range::default();
    loop {
        let page = store.read(&Query::all(), range, PAGE_EVENTS_MAX).await.expect("the log can be read");
        all.extend(page.events);
        if !page.more {
            return all;
        }
        range.after = page.next;
    }
}

/// The head of a log that went back, if the error says so.
fn went_back(error: &Error) -> Option<Position> {
    match error {
        Error::WentBack { head, .. } => Some(*head),
        _other => None,
    }
}

/// Checks the positions and the sizes of appends in a history from the beginning.
#[track_caller]
fn check_history(history: &[Recorded]) {
    let mut sequences: HashMap<(&str, &str), i64> = HashMap::new();
    let mut last_start = Position(0);
    for (index, event) in history.iter().enumerate() {
        assert_eq!(event.position.0, index as i64 + 1, "positions are 1, 2, 3 ...");
        let sequence = sequences.entry((&event.stream_id, &event.aggregate_id)).or_default();
        *sequence += 1;
        assert_eq!(event.sequence, *sequence, "sequences of {} are 1, 2, 3 ...", event.aggregate_id);
        assert!(
            event.append_start == last_start || event.append_start == event.position,
            "an append is contiguous, at {}",
            event.position
        );
        last_start = event.append_start;
    }
    assert!(history.is_sorted_by_key(|event| event.created_at), "log time never runs backwards");
}

/// The result of a future within a time limit; a test must not hang.
async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(Duration::from_secs(30), future).await {
        Ok(output) => output,
        Err(_) => panic!("{what} did not come in time"),
    }
}
