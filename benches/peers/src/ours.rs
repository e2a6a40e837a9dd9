//! crewlog's own store, through its public interface only.

use std::path::Path;

use crewlog_mq::{Append, EventStore, Expected, Metadata, NewEvent, Position, Query, Range, Start};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::postgres::Server;
use crate::subject::{Batch, Result, Store};
use crate::workload::{Sample, TAG, aggregate_id, metadata};

const DATABASE: &str = "crewlog";
/// The number of events in memory at once during a replay.
const LOADED_AT_ONCE: i64 = 10_000;

pub struct Ours {
    store: EventStore,
    metadata: Metadata,
}

impl Ours {
    pub async fn on_sqlite(folder: &Path) -> Result<Self> {
        let path = folder.join("log.db");
        Self::open(path.to_str().ok_or("the folder is not UTF-8")?).await
    }

    pub async fn on_postgres(server: &Server) -> Result<Self> {
        server.new_database(DATABASE).await?;
        Self::open(&server.url(DATABASE)).await
    }

    async fn open(url: &str) -> Result<Self> {
        Ok(Self { store: EventStore::open(url).await?, metadata: metadata() })
    }
}

impl Store for Ours {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut events = Vec::new();
            for n in batch.numbers() {
                events.push(NewEvent::of(&Sample::nth(n), &self.metadata)?.with_tags([TAG]));
            }
            self.store.append(Append::to("bench", &aggregate_id(batch.aggregate), Expected::Any, events)).await?;
            Ok(())
        })
    }

    fn replay(&self, n_events: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let (mut n_read, n_events) = (0, i64::try_from(n_events)?);
            while n_read < n_events {
                let range = Range::between(Position(n_read), Position(n_read + LOADED_AT_ONCE));
                let loaded = self.store.load::<Sample>(&Query::all(), range).await?;
                if loaded.is_empty() {
                    return Err(format!("only {n_read} events are there").into());
                }
                n_read += loaded.len() as i64;
            }
            Ok(())
        })
    }

    fn follow(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<u64>>>> {
        Box::pin(async move {
            let stream = self.store.subscribe_from::<Sample>(&Query::all(), Start::Beginning)?;
            let numbers = stream.map(|item| {
                let Sample::Measured { n, .. } = item?.event;
                Ok(n)
            });
            Ok(numbers.boxed())
        })
    }
}
