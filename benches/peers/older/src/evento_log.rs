//! evento: its executor's write, below the loading and the snapshot that its own commit adds.

use std::time::SystemTime;

use evento::migrator::Migrate;
use evento::{Executor, Sqlite, migrator};
use futures::future::BoxFuture;
use sqlx::SqlitePool;
use ulid::Ulid;

use crate::{Batch, Result, Store, data, metadata};

pub struct Evento {
    executor: Sqlite,
}

impl Evento {
    pub async fn create(pool: SqlitePool) -> Result<Self> {
        let mut connection = pool.acquire().await?;
        let migrations = evento::sql_migrator::new::<sqlx::Sqlite>()?;
        migrations.run(&mut *connection, &migrator::Plan::apply_all()).await?;
        drop(connection);
        Ok(Self { executor: pool.into() })
    }
}

impl Store for Evento {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
            let mut events = Vec::new();
            for n in 0..batch.n_events {
                events.push(evento::Event {
                    id: Ulid::new(),
                    aggregator_id: format!("aggregate-{:04}", batch.aggregate),
                    aggregator_type: "bench".into(),
                    version: i32::try_from(batch.sequence + n)?,
                    name: "Measured".into(),
                    routing_key: None,
                    data: data(batch.first + n).into_bytes(),
                    metadata: metadata().into_bytes(),
                    timestamp: now.as_secs(),
                    timestamp_subsec: now.subsec_millis(),
                });
            }
            Ok(self.executor.write(events).await?)
        })
    }
}
