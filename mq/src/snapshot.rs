//! Snapshots: the state of a fold, kept in a cell so that the next reader folds only the tail. They are disposable:
//! missing or wrong ones change no answer, and their errors never make a command fail.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::append::Append;
use crate::cell::CellChange;
use crate::error::Result;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::Recorded;
use crate::store::EventStore;

/// At least one event per this many bytes of a snapshot must come before the next one. So however large a state grows,
/// its snapshots cost no more than the events.
const BYTES_PER_EVENT: usize = 256;

/// The longest wait for a snapshot to be stored: a reader does not wait for other writers.
const PUT_MAX: std::time::Duration = std::time::Duration::from_secs(1);

/// A fold whose state can be stored.
///
/// The restored state must equal the stored one, including everything that later answers depend on. JSON has only maps
/// with keys of text or numbers: write others as lists.
pub trait Snapshot: Serialize + DeserializeOwned {
    /// The name of the fold, unique in the log.
    const FOLD: &'static str;
    /// Raise it whenever the state's form or the effect of events on it changes: older snapshots are then ignored.
    const VERSION: u32;
    /// The fewest events between two snapshots.
    const EVERY: u64 = 1000;
}

/// The last event in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// Its place in the log.
    pub position: Position,
    /// Its place in its aggregate.
    pub sequence: i64,
    /// Its id.
    pub event_id: Uuid,
}

impl Last {
    /// True if the log still has this event, and the query matches it.
    pub(crate) async fn is_in(self, store: &EventStore, query: &Query) -> Result<bool> {
        let range = Range::between(Position(self.position.0.saturating_sub(1)), self.position);
        Ok(store.read(query, range, 1).await?.events.first().map(Self::from) == Some(self))
    }
}

impl From<&Recorded> for Last {
    fn from(recorded: &Recorded) -> Self {
        Self { position: recorded.position, sequence: recorded.sequence, event_id: recorded.event_id }
    }
}

/// The snapshots of one fold over one query: reads the newest, and decides when another is due. [`crate::Runner`] does
/// this for handlers; use this type to fold a log without one.
pub struct Snapshots<S> {
    store: EventStore,
    query: Query,
    form: Form<S>,
    space: String,
    key: String,
    /// Known once the newest snapshot has been requested.
    log: Option<Uuid>,
    n_events: usize,
    n_bytes: usize,
}

/// Functions for a state's type, so that only types that opt in must be serialisable.
struct Form<S> {
    every: usize,
    write: fn(&S) -> serde_json::Result<String>,
    read: fn(&str) -> serde_json::Result<S>,
}

/// The first line of a snapshot's cell; the second is the state. In one text, a state of megabytes would be read twice.
#[derive(Serialize, Deserialize)]
struct Head {
    log: Uuid,
    last: Last,
}

impl<S> Snapshots<S> {
    /// Snapshots of a fold over the matching events, each in a cell `snapshot:FOLD:VERSION`, by stream and aggregate.
    #[must_use]
    pub fn of(store: &EventStore, query: &Query) -> Self
    where
        S: Snapshot,
    {
        let form = Form {
            every: usize::try_from(S::EVERY).unwrap_or(usize::MAX).max(1),
            write: |state| serde_json::to_string(state),
            read: |text| serde_json::from_str(text),
        };
        let space = format!("snapshot:{}:{}", S::FOLD, S::VERSION);
        let (store, query, key) = (store.clone(), query.clone(), key_of(query));
        Self { store, query, form, space, key, log: None, n_events: 0, n_bytes: 0 }
    }

    /// Stores the snapshots under another name, for readers that must not get ahead of a process with this fold.
    #[must_use]
    pub fn under(mut self, name: &str) -> Self {
        self.space = format!("{name}:{}", self.space);
        self
    }

    /// The newest snapshot and its last event, after which the fold continues. A snapshot is ignored if it is ahead of
    /// the log, of another log or unreadable. A [`crate::Veil`] may forbid snapshots of its events.
    ///
    /// # Errors
    /// A fault of the database.
    pub async fn newest(&mut self) -> Result<Option<(S, Last)>> {
        (self.n_events, self.n_bytes) = (0, 0);
        if !self.store.backend().keeps_snapshots(&self.query).await? {
            // Without the log's id no snapshot is ever due.
            self.log = None;
            return Ok(None);
        }
        let log = self.store.log().await?.id;
        self.log = Some(log);
        let Some(cell) = self.store.cell(&self.space, &self.key).await? else { return Ok(None) };
        let passed_over = |reason: &str| {
            tracing::warn!(space = self.space, key = self.key, reason, "a snapshot is passed over");
            Ok(None)
        };
        let (head, state) = cell.value.split_once('\n').unwrap_or((&cell.value, ""));
        let head: Head = match serde_json::from_str(head) {
            Ok(head) => head,
            Err(error) => return passed_over(&error.to_string()),
        };
        if head.log != log {
            return passed_over("it is of another log");
        }
        if !head.last.is_in(&self.store, &self.query).await? {
            return passed_over("its last event is not in the log");
        }
        match (self.form.read)(state) {
            Ok(state) => {
                self.n_bytes = cell.value.len();
                Ok(Some((state, head.last)))
            }
            Err(error) => passed_over(&error.to_string()),
        }
    }

    /// Counts folded events.
    pub fn fold(&mut self, n_events: usize) {
        self.n_events += n_events;
    }

    /// The change of a cell that stores this state, if a snapshot is due. A state that is too large or cannot be
    /// written as JSON is skipped.
    pub fn due(&mut self, state: &S, last: Last) -> Option<CellChange> {
        let log = self.log?;
        if self.n_events < self.form.every.max(self.n_bytes / BYTES_PER_EVENT) {
            return None;
        }
        let head = serde_json::to_string(&Head { log, last });
        let written = head.and_then(|head| Ok(head + "\n" + &(self.form.write)(state)?));
        let change = written.map_err(|error| error.to_string()).and_then(|value| {
            self.n_bytes = value.len();
            let change = CellChange::set(&self.space, &self.key, value);
            change.check().map(|()| change).map_err(|error| error.to_string())
        });
        match change {
            Ok(change) => Some(change),
            Err(reason) => {
                tracing::warn!(space = self.space, key = self.key, reason, "a snapshot is not kept");
                self.n_events = 0;
                None
            }
        }
    }

    /// Records that the last due change is in the log.
    pub fn kept(&mut self) {
        self.n_events = 0;
    }

    /// Stores this state in its own append if a snapshot is due. After a failure it tries again later.
    pub async fn keep(&mut self, state: &S, last: Last) {
        if let Some(change) = self.due(state, last) {
            self.put(change).await;
        }
    }

    pub(crate) async fn put(&mut self, change: CellChange) {
        match tokio::time::timeout(PUT_MAX, self.store.append(Append::default().cell(change))).await {
            Ok(Ok(_)) => self.kept(),
            Ok(Err(error)) => tracing::warn!(%error, "a snapshot could not be kept"),
            Err(_) => self.n_events = 0,
        }
    }
}

/// Stream and aggregate, or whatever the query selects; as JSON, so that keys are unique.
fn key_of(query: &Query) -> String {
    let Query { stream_id, aggregate_id, .. } = query;
    let key = match aggregate_id {
        Some(aggregate_id) if *query == Query::aggregate(stream_id, aggregate_id) => {
            serde_json::to_string(&[stream_id, aggregate_id])
        }
        Some(_) | None => serde_json::to_string(query),
    };
    key.expect("text is JSON")
}
