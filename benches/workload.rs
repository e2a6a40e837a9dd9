//! The workloads, the same for the store and for bare SQLite.

use crewlog_mq::{Append, Event, EventStore, Expected, Metadata, NewEvent};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub const N_AGGREGATES: u64 = 1000;
pub const N_WRITERS: u64 = 64;
pub const BATCH: u64 = 100;
pub const N_REPLAYED: u64 = 200_000;
pub const TAG: &str = "project:bench";

/// An event whose data is 256 bytes of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub enum Sample {
    Measured { n: u64, unit: String, note: String },
}

impl Event for Sample {
    fn event_type(&self) -> &'static str {
        match self {
            Self::Measured { .. } => "Measured",
        }
    }
}

impl Sample {
    pub fn nth(n: u64) -> Self {
        let unit = "microseconds";
        let note = "x".repeat(256 - r#"{"n":,"unit":"","note":""}"#.len() - unit.len() - n.to_string().len());
        Self::Measured { n, unit: unit.into(), note }
    }
}

/// Correlation, causation and a little more.
pub fn metadata() -> Metadata {
    Metadata {
        correlation_id: Some(Uuid::from_u128(7)),
        causation_id: Some(Uuid::from_u128(8)),
        extra: Some(serde_json::json!({"host": "bench"})),
    }
}

pub fn aggregate_id(n: u64) -> String {
    format!("aggregate-{:04}", n % N_AGGREGATES)
}

/// `n_events` events for the aggregate of `n`.
pub fn append(n: u64, n_events: u64, metadata: &Metadata) -> Append {
    append_to(n / n_events, n, n_events, metadata)
}

/// `n_events` events for one aggregate, from the `n`-th on.
pub fn append_to(aggregate: u64, n: u64, n_events: u64, metadata: &Metadata) -> Append {
    let event = |n| NewEvent::of(&Sample::nth(n), metadata).expect("a sample is JSON").with_tags([TAG]);
    let events = (n..n + n_events).map(event).collect();
    Append::to("bench", &aggregate_id(aggregate), Expected::Any, events)
}

/// A log of this many events.
pub async fn fill(store: &EventStore, n_events: u64) {
    let metadata = metadata();
    for first in (0..n_events).step_by(1000) {
        store.append(append(first, 1000, &metadata)).await.expect("the append is taken");
    }
}
