//! An event store and message bus on one persistent log.
//!
//! Writers append events; readers load them, or follow them as an [`EventStream`]. Every event has a
//! [`Position`] in the whole log (1, 2, 3 ... in commit order) and a sequence in its aggregate, so no reader
//! ever skips, repeats or reorders one. An acknowledged append is on disk.
//!
//! ```
//! use crewlog_mq::{Event, EventStore, Metadata, Query};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! enum Order { Placed { item: String }, Paid { cents: u64 } }
//!
//! impl Event for Order {
//!     const EVENT_VERSION: &'static str = "1.0";
//!     fn event_type(&self) -> &'static str {
//!         match self { Self::Placed { .. } => "Placed", Self::Paid { .. } => "Paid" }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), crewlog_mq::Error> {
//! let store = EventStore::in_memory().await?;
//! store.push_event("orders", "order-1", &Order::Placed { item: "tea".into() }, &Metadata::default()).await?;
//! store.push_event("orders", "order-1", &Order::Paid { cents: 250 }, &Metadata::default()).await?;
//! let history: Vec<Order> = store.load_events(&Query::aggregate("orders", "order-1"), None).await?;
//! assert_eq!(history.len(), 2);
//! # Ok(()) }
//! ```
//!
//! What lies below is a [`Backend`]; SQLite is the one here (feature `sqlite`, on by default). The crate knows
//! nothing of tasks or plans.

mod backend;
mod cell;
mod check;
mod clock;
mod error;
mod event;
#[cfg(feature = "faults")]
mod faults;
mod given;
mod handler;
mod ids;
mod import;
mod judge;
mod law;
mod position;
mod query;
mod record;
mod runner;
mod snapshot;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod stream;
mod tail;
mod upcast;
mod variant;

pub use backend::{Backend, LogIdentity, Options, Records};
pub use cell::{Cell, CellChange, CellExpected};
pub use clock::{Clock, SystemClock, Timestamp};
pub use error::{Error, Result, Source};
pub use event::{Envelope, Event};
pub use given::{Given, When, given};
pub use handler::{Cause, Handler};
pub use ids::{derived_event_id, new_event_id};
pub use position::{Expected, Place, Position};
pub use query::{NoneMatching, Query, Range};
pub use record::{
    Append, Appended, Checked, Finding, Imported, KindStats, Metadata, NewEvent, Page, Recorded, Stats, Write,
};
pub use runner::{ExecuteError, Executed, Runner};
pub use snapshot::{Last, Snapshot, Snapshots};
pub use store::EventStore;
#[cfg(feature = "sqlite")]
pub use store::sqlite_path;
pub use stream::{EventStream, Start};
pub use tail::{News, Tail};
pub use upcast::Upcaster;

/// The greatest size of one event's `data`, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 32 << 20;
/// The greatest size of one event's `metadata`, in bytes.
pub const METADATA_BYTES_MAX: usize = 1 << 20;
/// The greatest length of a stream id, an aggregate id, an event type, a version or a tag, in bytes.
pub const NAME_BYTES_MAX: usize = 512;
/// The most tags on one event.
pub const TAGS_MAX: usize = 32;
/// The most events in one append.
pub const APPEND_EVENTS_MAX: usize = 400_000;
/// The most changes of cells in one append.
pub const APPEND_CELLS_MAX: usize = 1024;
/// The greatest size of a cell's value, in bytes.
pub const CELL_BYTES_MAX: usize = 32 << 20;
/// The longest time for which a cell can be held without a change.
pub const LEASE_MAX: std::time::Duration = std::time::Duration::from_secs(30 * 24 * 3600);
/// With every hint lost, an event is seen this much later at the most.
pub const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(250);
/// The most alternatives of a query.
pub const QUERY_ALTERNATIVES_MAX: usize = 64;
/// The most events that one read returns.
pub const PAGE_EVENTS_MAX: usize = 10_000;
/// A read returns no more once its events have this many bytes of `data` and `metadata`.
pub const PAGE_BYTES_MAX: usize = 64 << 20;
/// The most findings that one check tells of.
pub const FINDINGS_MAX: usize = 100;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
