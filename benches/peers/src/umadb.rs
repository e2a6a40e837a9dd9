//! UmaDB: its server in a separate process, its Rust client over gRPC. It syncs before each reply, which cannot be
//! disabled.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use umadb_client::{AsyncUmaDbClient, UmaDbClient};
use umadb_dcb::{DcbEvent, DcbEventStoreAsync, DcbSequencedEvent};
use uuid::Uuid;

use crate::data::Data;
use crate::place::{Place, Running, free_address};
use crate::subject::{Batch, Result, Store};
use crate::workload::{TAG, aggregate_id, metadata};

pub struct UmaDb {
    client: Arc<AsyncUmaDbClient>,
    _server: Running,
}

impl UmaDb {
    pub async fn start(place: &Place, folder: &Path) -> Result<Self> {
        let address = free_address()?;
        let mut command = Command::new(place.python_program("umadb")?);
        command.arg("--listen").arg(address.to_string()).arg("--db-path").arg(folder.join("uma.db"));
        let server = Running::start(command, address, folder)?;
        let client = UmaDbClient::new(format!("http://{address}")).connect_async().await?;
        Ok(Self { client: Arc::new(client), _server: server })
    }
}

/// The aggregate is a tag, since events are found by tags.
fn event(n: u64, aggregate: u64) -> Result<DcbEvent> {
    let metadata = metadata();
    let id = |id: Option<Uuid>| id.unwrap_or_default().to_string();
    Ok(DcbEvent::default()
        .event_type("Measured")
        .tags([TAG.to_owned(), aggregate_id(aggregate)])
        .data(serde_json::to_vec(&Data::nth(n))?)
        .uuid(Uuid::now_v7())
        .metadata([
            ("event_version", "1.0".to_owned()),
            ("correlation_id", id(metadata.correlation_id)),
            ("causation_id", id(metadata.causation_id)),
            ("extra", serde_json::to_string(&metadata.extra)?),
        ]))
}

fn number(event: &DcbSequencedEvent) -> Result<u64> {
    let data: Data = serde_json::from_slice(&event.event.data)?;
    Ok(data.n)
}

impl Store for UmaDb {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let events = batch.numbers().map(|n| event(n, batch.aggregate)).collect::<Result<Vec<_>>>()?;
            self.client.append(events, None, None).await?;
            Ok(())
        })
    }

    fn replay(&self, n_events: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut response = self.client.read(None, None, false, None).await?;
            let mut n_read = 0;
            while n_read < n_events {
                let page = response.next_batch().await?;
                if page.is_empty() {
                    return Err(format!("only {n_read} events are there").into());
                }
                for event in &page {
                    std::hint::black_box(number(event)?);
                }
                n_read += page.len() as u64;
            }
            Ok(())
        })
    }

    fn follow(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<u64>>>> {
        Box::pin(async move {
            let subscription = self.client.subscribe(None, None).await?;
            Ok(subscription.map(|event| number(&event?)).boxed())
        })
    }
}
