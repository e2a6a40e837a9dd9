//! cqrs-es: its repository's persist, below the loading that its framework adds to each command.

use cqrs_es::event_sink::EventSink;
use cqrs_es::persist::{PersistedEventRepository, SerializedEvent};
use cqrs_es::{Aggregate, DomainEvent};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use sqlite_es::SqliteEventRepository;
use sqlx::SqlitePool;

use crate::{Batch, Result, Store, data, metadata};

/// Copied from the migrations of sqlite-es, which are not in its library.
const SCHEMA: &str = "CREATE TABLE events (
    aggregate_type text                          NOT NULL,
    aggregate_id   text                          NOT NULL,
    sequence       integer CHECK (sequence >= 0) NOT NULL,
    event_type     text                          NOT NULL,
    event_version  text                          NOT NULL,
    payload        text                          NOT NULL,
    metadata       text                          NOT NULL,
    PRIMARY KEY (aggregate_type, aggregate_id, sequence)
) STRICT";

pub struct Cqrs {
    repository: SqliteEventRepository,
}

impl Cqrs {
    pub async fn create(pool: SqlitePool) -> Result<Self> {
        sqlx::query(SCHEMA).execute(&pool).await?;
        Ok(Self { repository: SqliteEventRepository::new(pool) })
    }
}

impl Store for Cqrs {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut events = Vec::new();
            for n in 0..batch.n_events {
                events.push(SerializedEvent::new(
                    format!("aggregate-{:04}", batch.aggregate),
                    usize::try_from(batch.sequence + n)?,
                    Bench::TYPE.into(),
                    "Measured".into(),
                    "1.0".into(),
                    serde_json::from_str(&data(batch.first + n))?,
                    serde_json::from_str(&metadata())?,
                ));
            }
            Ok(self.repository.persist::<Bench>(&events, None).await?)
        })
    }
}

/// Only gives the rows their type.
#[derive(Default, Serialize, Deserialize)]
struct Bench;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Measured;

impl DomainEvent for Measured {
    fn event_type(&self) -> String {
        "Measured".into()
    }

    fn event_version(&self) -> String {
        "1.0".into()
    }
}

impl Aggregate for Bench {
    const TYPE: &'static str = "bench";
    type Command = ();
    type Event = Measured;
    type Error = std::fmt::Error;
    type Services = ();

    async fn handle(&mut self, (): (), (): &(), _sink: &EventSink<Self>) -> std::result::Result<(), Self::Error> {
        Ok(())
    }

    fn apply(&mut self, _event: Measured) {}
}
