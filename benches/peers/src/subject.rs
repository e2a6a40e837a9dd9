//! The subjects: stores behind one small trait, and programs that measure themselves. Nothing is timed here.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::place::Place;
use crate::{nats, ours, postgres, program, sqlite, umadb};

pub type Failure = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Failure>;

/// Samples from `first` on, for one aggregate.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    pub first: u64,
    pub n_events: u64,
    pub aggregate: u64,
}

impl Batch {
    /// The numbers of its samples.
    pub fn numbers(self) -> impl Iterator<Item = u64> {
        (0..self.n_events).map(move |n| self.first + n)
    }
}

/// An open store. Dropping it stops its processes.
pub trait Store: Send + Sync {
    /// Appends all of it; on `Ok` it is as durable as the subject promises.
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>>;
    /// Reads the first `n_events` and decodes the data of each.
    fn replay(&self, n_events: u64) -> BoxFuture<'_, Result<()>>;
    /// Everything from the first event on, then live; an item is the number of a decoded sample.
    fn follow(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<u64>>>>;
}

/// One kind of work, the same for every subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    OneWriter,
    ManyWriters,
    Batches,
    OneAggregate,
    Replay,
    Delivery,
    FanOut,
    FanOutInFlight,
}

impl Workload {
    pub const ALL: [Self; 8] = [
        Self::OneWriter,
        Self::ManyWriters,
        Self::Batches,
        Self::OneAggregate,
        Self::Replay,
        Self::Delivery,
        Self::FanOut,
        Self::FanOutInFlight,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::OneWriter => "1 writer × 1 event, events/s",
            Self::ManyWriters => "64 writers × 1 event, 1,000 aggregates, events/s",
            Self::Batches => "batches of 100, 1,000 aggregates in turn, events/s",
            Self::OneAggregate => "batches of 100, one aggregate, events/s",
            Self::Replay => "read and decode, events/s",
            Self::Delivery => "acknowledged → live subscriber, p50 (less is better)",
            Self::FanOut => "16 subscribers, 1 in flight, deliveries/s",
            Self::FanOutInFlight => "16 subscribers, 100 in flight, deliveries/s",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    OursSqlite,
    RawSqlite,
    UmaDb,
    NatsAlways,
    NatsDefault,
    Evento,
    CqrsEs,
    Eventsourcing,
    OursPostgres,
    RawPostgresGroup,
    RawPostgresEach,
    Disintegrate,
}

impl Subject {
    pub const ALL: [Self; 12] = [
        Self::OursSqlite,
        Self::RawSqlite,
        Self::UmaDb,
        Self::NatsAlways,
        Self::NatsDefault,
        Self::Evento,
        Self::CqrsEs,
        Self::Eventsourcing,
        Self::OursPostgres,
        Self::RawPostgresGroup,
        Self::RawPostgresEach,
        Self::Disintegrate,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::OursSqlite => "crewlog on SQLite",
            Self::RawSqlite => "raw rusqlite",
            Self::UmaDb => "UmaDB",
            Self::NatsAlways => "JetStream, sync always",
            Self::NatsDefault => "JetStream, default (not durable)",
            Self::Evento => "evento, SQLite (write only)",
            Self::CqrsEs => "cqrs-es, SQLite",
            Self::Eventsourcing => "Python eventsourcing, SQLite",
            Self::OursPostgres => "crewlog on PostgreSQL",
            Self::RawPostgresGroup => "raw PostgreSQL, group commit by unnest",
            Self::RawPostgresEach => "raw PostgreSQL, 64 connections",
            Self::Disintegrate => "disintegrate-postgres",
        }
    }

    /// The one of ours to compare it with; `None` for ours.
    pub fn beside(self) -> Option<Self> {
        match self {
            Self::OursSqlite | Self::OursPostgres => None,
            Self::RawSqlite
            | Self::UmaDb
            | Self::NatsAlways
            | Self::NatsDefault
            | Self::Evento
            | Self::CqrsEs
            | Self::Eventsourcing => Some(Self::OursSqlite),
            Self::RawPostgresGroup | Self::RawPostgresEach | Self::Disintegrate => Some(Self::OursPostgres),
        }
    }

    /// True if its interface supports the workload.
    pub fn can(self, workload: Workload) -> bool {
        use Workload::{Batches, Delivery, FanOut, FanOutInFlight, ManyWriters, OneAggregate, OneWriter, Replay};
        let live = matches!(workload, Delivery | FanOut | FanOutInFlight);
        match self {
            Self::OursSqlite | Self::OursPostgres | Self::UmaDb | Self::NatsDefault => true,
            // Reading does not depend on how events were synced.
            Self::NatsAlways => workload != Replay,
            Self::RawSqlite | Self::RawPostgresGroup => !live,
            Self::RawPostgresEach => matches!(workload, OneWriter | ManyWriters),
            Self::Evento | Self::CqrsEs => matches!(workload, OneWriter | ManyWriters | Batches | OneAggregate),
            Self::Eventsourcing => matches!(workload, OneWriter | OneAggregate),
            Self::Disintegrate => matches!(workload, OneWriter | ManyWriters),
        }
    }

    /// True if filling a log of 1,000,000 events takes too long; it then replays fewer.
    pub fn fills_slowly(self) -> bool {
        match self {
            Self::OursSqlite | Self::RawSqlite | Self::NatsDefault => false,
            Self::UmaDb
            | Self::NatsAlways
            | Self::Evento
            | Self::CqrsEs
            | Self::Eventsourcing
            | Self::OursPostgres
            | Self::RawPostgresGroup
            | Self::RawPostgresEach
            | Self::Disintegrate => true,
        }
    }

    /// The program that measures it in a separate process, if it cannot be linked here.
    pub fn program(self) -> Option<program::Program> {
        match self {
            Self::Evento => Some(program::Program::Older("evento")),
            Self::CqrsEs => Some(program::Program::Older("cqrs-es")),
            Self::Eventsourcing => Some(program::Program::Python),
            Self::OursSqlite
            | Self::RawSqlite
            | Self::UmaDb
            | Self::NatsAlways
            | Self::NatsDefault
            | Self::OursPostgres
            | Self::RawPostgresGroup
            | Self::RawPostgresEach
            | Self::Disintegrate => None,
        }
    }

    /// A new, empty store.
    pub async fn open(self, place: &Place, folder: &Path, workload: Workload) -> Result<Arc<dyn Store>> {
        Ok(match self {
            Self::OursSqlite => Arc::new(ours::Ours::on_sqlite(folder).await?),
            Self::OursPostgres => Arc::new(ours::Ours::on_postgres(place.postgres()?).await?),
            Self::RawSqlite if workload == Workload::ManyWriters => Arc::new(sqlite::GroupCommit::start(folder)?),
            Self::RawSqlite => Arc::new(sqlite::Direct::create(folder)?),
            Self::UmaDb => Arc::new(umadb::UmaDb::start(place, folder).await?),
            Self::NatsAlways => Arc::new(nats::Nats::start(place, folder, nats::Sync::Always).await?),
            Self::NatsDefault => Arc::new(nats::Nats::start(place, folder, nats::Sync::Default).await?),
            Self::RawPostgresGroup => Arc::new(postgres::GroupCommit::start(place.postgres()?).await?),
            Self::RawPostgresEach => Arc::new(postgres::Each::connect(place.postgres()?).await?),
            Self::Disintegrate => return Err(disintegrate(place).into()),
            Self::Evento | Self::CqrsEs | Self::Eventsourcing => return Err("it is a program of its own".into()),
        })
    }
}

/// The reason why it is not measured.
fn disintegrate(place: &Place) -> String {
    let found = place.postgres().map_or_else(|failure| failure.to_string(), |server| server.version.clone());
    format!("4.0.1 has SQL that PostgreSQL reads from version 16 on, and no run is written for it; here is {found}")
}
