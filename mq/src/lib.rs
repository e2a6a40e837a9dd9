//! An event store and message bus on one persistent log.
//!
//! Writers append events; readers load them, or follow them as an [`EventStream`]. Every event has a
//! [`Position`] in the whole log (1, 2, 3 ... in commit order) and a sequence in its aggregate, so no reader
//! ever skips, repeats or reorders one. An acknowledged append is on disk. The crate knows nothing of tasks or plans.
//!
//! An event type is an enum with serde's derives: a variant is an event type, and its fields are the data.
//!
//! ```
//! use crewlog_mq::{Event, EventStore, Metadata, Query};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! enum Order { Placed { item: String }, Paid { cents: u64 } }
//!
//! impl Event for Order {}
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), crewlog_mq::Error> {
//! let store = EventStore::in_memory().await?; // EventStore::open("orders.db") keeps it in a file
//! store.push_event("orders", "order-1", &Order::Placed { item: "tea".into() }, &Metadata::default()).await?;
//! store.push_event("orders", "order-1", &Order::Paid { cents: 250 }, &Metadata::default()).await?;
//! let history: Vec<Order> = store.load_events(&Query::aggregate("orders", "order-1"), None).await?;
//! assert_eq!(history.len(), 2);
//! # Ok(()) }
//! ```
//!
//! # Append
//!
//! An [`Append`] is atomic: writes to one or several aggregates, each with the writer's expectation ([`Expected`]),
//! at most one condition on the rest of the log, and changes of [cells](Cell). A refusal is an [`Error`] that
//! describes the actual state of the log. An append with the same ids and content may be repeated at any time: it
//! changes nothing and returns the first places, so a lost reply does no harm.
//!
//! ```
//! # use crewlog_mq::{Append, Error, EventStore, Expected, Metadata, NewEvent, Query};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
//! # let store = EventStore::in_memory().await?;
//! let event = |name: &str| NewEvent::from_json(name, "1.0", r#"{"cents":250}"#.into(), &Metadata::default());
//! let paid = Append::to("orders", "order-1", Expected::NoStream, vec![event("Paid")?])
//!     .and("accounts", "ada", Expected::Any, vec![event("Charged")?.with_tags(["customer:ada"])]);
//! let first = store.append(paid.clone()).await?;
//! let again = store.append(paid).await?;
//! assert_eq!((again.repeated, again.places), (true, first.places.clone()));
//!
//! // Only while nothing else has happened to this customer since.
//! let closed = Append::to("accounts", "ada", Expected::Sequence(1), vec![event("Closed")?])
//!     .none_matching(Query::tag("customer:ada"), first.places[0].position);
//! assert!(matches!(store.append(closed).await, Err(Error::MatchFound { .. })));
//! # Ok(()) }
//! ```
//!
//! # Read
//!
//! A [`Query`] selects events: of a stream, an aggregate, a type, with tags, by id, correlation or cause, or a
//! combination of several queries. A [`Range`] selects part of the log, by position and time, forwards or backwards.
//! [`EventStore::load_events`] and [`EventStore::load`] return typed events, and fail at one that cannot be decoded;
//! [`EventStore::load_items`] returns such an error as an item. [`EventStore::read`] returns records as stored.
//!
//! ```
//! # use crewlog_mq::{Append, Error, EventStore, Expected, Metadata, NewEvent, Query, Range};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
//! # let store = EventStore::in_memory().await?;
//! # for name in ["Placed", "Paid", "Sent"] {
//! #     let event = NewEvent::from_json(name, "1.0", "{}".into(), &Metadata::default())?.with_tags(["customer:ada"]);
//! #     store.append(Append::to("orders", "order-1", Expected::Any, vec![event])).await?;
//! # }
//! let query = Query::tag("customer:ada").of_types(["Placed", "Sent"]);
//! let newest = store.read(&query, Range::default().backwards(), 1).await?;
//! assert_eq!(newest.events[0].event_type, "Sent");
//! let (mut rest, mut n_events) = (Some(Range::default()), 0);
//! while let Some(range) = rest {
//!     let page = store.read(&query, range, 1).await?;
//!     n_events += page.events.len();
//!     rest = range.rest(&page);
//! }
//! assert_eq!(n_events, 2);
//! # Ok(()) }
//! ```
//!
//! # Follow
//!
//! [`EventStore::subscribe`] returns the history and then new events, as one endless stream. Errors are items, and
//! the stream continues. A follower that stores its position continues from there with [`Start::After`].
//!
//! ```
//! # use crewlog_mq::{Append, Error, EventStore, Expected, Metadata, NewEvent, Query, Start};
//! # use futures::StreamExt;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
//! # let store = EventStore::in_memory().await?;
//! # let append = |name: &str| {
//! #     let event = NewEvent::from_json(name, "1.0", "{}".into(), &Metadata::default());
//! #     event.map(|event| Append::to("orders", "order-1", Expected::Any, vec![event]))
//! # };
//! store.append(append("Placed")?).await?;
//! let mut records = std::pin::pin!(store.follow(&Query::stream("orders"), Start::Beginning));
//! store.append(append("Paid")?).await?;
//! for expected in ["Placed", "Paid"] {
//!     let recorded = records.next().await.ok_or(Error::Closed)??;
//!     assert_eq!(recorded.event_type, expected);
//! }
//! # Ok(()) }
//! ```
//!
//! # Handlers
//!
//! A [`Handler`] decides: it is pure, turns commands into events, and its state is the fold of its events. A [`Runner`]
//! runs one on a log: it reads new events, asks the handler, appends its decision, and decides again if concurrent
//! writers were faster. [`Runner::new`] is for decisions within one aggregate, [`Runner::over`] for decisions over all
//! events that match a query. [`given`] tests a handler as data, in memory and on a log, and checks its laws.
//!
//! ```
//! use crewlog_mq::{Cause, Event, EventStore, Handler, Runner, Snapshot, given};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! enum Stock { Booked { n: i64 } }
//!
//! impl Event for Stock {}
//!
//! #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
//! struct Shelf { n_left: i64 }
//!
//! impl Handler for Shelf {
//!     type Command = i64;
//!     type Event = Stock;
//!     type Error = String;
//!
//!     fn decide(&self, n: i64) -> Result<Vec<Stock>, String> {
//!         if self.n_left + n < 0 {
//!             return Err(format!("only {} are left", self.n_left));
//!         }
//!         Ok(vec![Stock::Booked { n }])
//!     }
//!
//!     fn apply(&mut self, Stock::Booked { n }: &Stock) {
//!         self.n_left += n;
//!     }
//! }
//!
//! // Only for a handler of long histories.
//! impl Snapshot for Shelf {
//!     const FOLD: &'static str = "shelf";
//!     const VERSION: u32 = 1;
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = given::<Shelf>([Stock::Booked { n: 3 }])
//!     .when(-2).then([Stock::Booked { n: -2 }])
//!     .when(-2).then_refused(|refusal| refusal == "only 1 are left");
//!
//! let store = EventStore::in_memory().await?;
//! scenario.on(&store).await;
//! let mut shelf = Runner::<Shelf>::new(store, "stock", "bolts", vec![]).with_snapshots();
//! shelf.execute(3, &Cause::request()).await?;
//! assert_eq!(shelf.handler().n_left, 3);
//! # Ok(()) }
//! ```
//!
//! # Snapshots
//!
//! A fold that implements [`Snapshot`] is stored in a [`Cell`] from time to time, so that the next reader folds only newer
//! events. Snapshots are disposable: one that is missing, of another version or log, ahead of the log or
//! unreadable is ignored, and deleting them at any time changes no result. To fold a log without a handler, use
//! [`Snapshots`].
//!
//! # Older events
//!
//! Stored events never change. When an event type changes its form, raise [`Event::EVENT_VERSION`] and add
//! [`Upcaster`]s that convert older events. An event of an unknown type or version is an [`Error::Decode`] with its
//! position: streams and [`EventStore::load_items`] return it as an item; a runner stops at it, since it would decide
//! on half of the history.
//!
//! # Backends
//!
//! The store uses a [`Backend`] of plain records: SQLite (feature `sqlite`, on by default), PostgreSQL (feature
//! `postgres`), or [`Memory`], which defines in plain Rust what every backend does. A test wraps one in its own backend with [`EventStore::on`].
//!
//! # Promises
//!
//! Each promise, with the test that shows it, is in
//! [guarantees.md](https://github.com/crewlog/crewlog/blob/main/docs/internal/guarantees.md).

mod address;
mod append;
mod backend;
mod backoff;
mod cell;
mod check;
mod clock;
mod error;
mod event;
mod executed;
mod expected;
#[cfg(feature = "faults")]
mod faults;
mod given;
mod group;
mod handler;
mod identity;
mod ids;
mod import;
mod judge;
mod law;
mod limits;
mod memory;
mod pages;
mod position;
#[cfg(feature = "postgres")]
mod postgres;
mod query;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod queue;
mod recorded;
mod report;
mod runner;
mod snapshot;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod stream;
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    expect(dead_code, reason = "a log in memory never goes back")
)]
mod tail;
mod trace;
mod upcast;
mod variant;
mod veil;

#[cfg(feature = "sqlite")]
pub use address::sqlite_path;
pub use address::{is_postgres_url, shown_url};
pub use append::{Append, Appended, NewEvent, NoneMatching, Write};
pub use backend::{Backend, Options, Records};
pub use backoff::{Backoff, retrying};
pub use cell::{Cell, CellChange};
pub use clock::{Clock, SystemClock, Timestamp};
pub use error::{Error, Result, Source};
pub use event::{Envelope, Event, FromRecorded};
pub use executed::{ExecuteError, Executed, Executions};
pub use expected::{CellExpected, Expected};
pub use given::{Given, When, given};
pub use group::{
    AggregateName, Delivery, Ended, GROUP_NAME_BYTES_MAX, GROUP_VERSIONS_MAX, GROUPS_STREAM, Group, GroupCommand,
    GroupError, GroupEvent, GroupHandler, GroupReport, GroupState, GroupVersion, Groups, HandlerError, Lag, PARKED_MAX,
    PARTITIONS_MAX, Parked, ParkedReport, PartitionReport, VersionReport, VersionStatus, group_handler, partition_of,
};
pub use handler::{Cause, Handler};
pub use identity::LogIdentity;
pub use ids::{derived_event_id, new_event_id};
#[cfg(feature = "sqlite")]
pub use limits::JOINED_TIME_MAX;
pub use limits::{
    APPEND_CELLS_MAX, APPEND_EVENTS_MAX, CELL_BYTES_MAX, FINDINGS_MAX, JSON_DEPTH_MAX, LEASE_MAX, METADATA_BYTES_MAX,
    NAME_BYTES_MAX, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, PAYLOAD_BYTES_MAX, POLL_INTERVAL, QUERY_ALTERNATIVES_MAX,
    TAGS_MAX,
};
pub use memory::Memory;
pub use position::{Place, Position};
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
pub use query::{Query, Range};
pub use recorded::{Metadata, Page, Recorded};
pub use report::{Checked, Finding, Imported, KindStats, Stats};
pub use runner::{Prefix, Runner};
#[cfg(feature = "sqlite")]
pub use rusqlite;
pub use snapshot::{Last, Snapshot, Snapshots};
#[cfg(feature = "sqlite")]
pub use sqlite::{JoinedError, Sqlite};
pub use store::{EventStore, Rewrite};
pub use stream::{EventStream, Followed, Start};
pub use tail::Tail;
pub use trace::{TRACE_EVENTS_MAX, Trace};
pub use upcast::Upcaster;
pub use veil::Veil;

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../docs/embedding.md")]
struct Embedding;
