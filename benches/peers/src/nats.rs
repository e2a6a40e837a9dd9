//! NATS JetStream: a server with one file-backed stream, and its Rust client. A batch is published at once and then
//! awaited, message by message.

use std::path::Path;
use std::process::Command;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::{Config, StorageType};
use async_nats::jetstream::{self, Context, Message};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use uuid::Uuid;

use crate::data::Data;
use crate::place::{Place, Running, free_address, page};
use crate::subject::{Batch, Result, Store};
use crate::workload::{TAG, aggregate_id, metadata};

const STREAM: &str = "bench";

/// The times at which the server syncs its files.
#[derive(Debug, Clone, Copy)]
pub enum Sync {
    Always,
    Default,
}

pub struct Nats {
    context: Context,
    server: Running,
}

impl Nats {
    pub async fn start(place: &Place, folder: &Path, sync: Sync) -> Result<Self> {
        let (address, monitor) = (free_address()?, free_address()?);
        let sync_line = match sync {
            Sync::Always => "sync_interval: always\n",
            Sync::Default => "",
        };
        let config = format!(
            "listen: \"{address}\"\nhttp: \"{monitor}\"\njetstream {{\nstore_dir: \"{}\"\nmax_file_store: 64GB\n{sync_line}}}\n",
            folder.join("jetstream").display()
        );
        let file = folder.join("nats.conf");
        std::fs::write(&file, config)?;
        let mut command = Command::new(place.python_program("nats-server")?);
        command.arg("-c").arg(file);
        let server = Running::start(command, address, folder)?;
        check(&page(monitor, "/varz")?, sync)?;
        let context = jetstream::new(async_nats::connect(address.to_string()).await?);
        let stream = Config {
            name: STREAM.into(),
            subjects: vec![format!("{STREAM}.>")],
            storage: StorageType::File,
            ..Config::default()
        };
        context.create_stream(stream).await?;
        Ok(Self { context, server })
    }
}

/// The setting according to the server, rather than as requested.
fn check(varz: &str, sync: Sync) -> Result<()> {
    let varz: serde_json::Value = serde_json::from_str(varz)?;
    let config = &varz["jetstream"]["config"];
    let always = config["sync_always"] == true;
    match (sync, always) {
        (Sync::Always, true) | (Sync::Default, false) => Ok(()),
        (Sync::Always, false) | (Sync::Default, true) => Err(format!("the server says {config}").into()),
    }
}

/// The server drops messages with a repeated id.
fn headers() -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Msg-Id", Uuid::now_v7().to_string());
    headers.insert("event-type", "Measured");
    headers.insert("event-version", "1.0");
    headers.insert("metadata", serde_json::to_string(&metadata())?);
    headers.insert("tag", TAG);
    Ok(headers)
}

fn number(message: &Message) -> Result<u64> {
    let data: Data = serde_json::from_slice(&message.payload)?;
    Ok(data.n)
}

impl Nats {
    async fn read(&self) -> Result<BoxStream<'static, Result<u64>>> {
        let stream = self.context.get_stream(STREAM).await?;
        let config = pull::OrderedConfig { deliver_policy: DeliverPolicy::All, ..Default::default() };
        let messages = stream.create_consumer(config).await?.messages().await?;
        Ok(messages.map(|message| number(&message?)).boxed())
    }
}

impl Store for Nats {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let subject = format!("{STREAM}.{}", aggregate_id(batch.aggregate));
            let mut acknowledgements = Vec::new();
            for n in batch.numbers() {
                let payload = serde_json::to_vec(&Data::nth(n))?.into();
                let sent = self.context.publish_with_headers(subject.clone(), headers()?, payload).await;
                acknowledgements.push(sent?);
            }
            for acknowledgement in acknowledgements {
                acknowledgement.await?;
            }
            Ok(())
        })
    }

    fn replay(&self, n_events: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut messages = self.read().await?;
            for n_read in 0..n_events {
                match messages.next().await {
                    Some(number) => std::hint::black_box(number?),
                    None => return Err(format!("only {n_read} events came from {}", self.server.address).into()),
                };
            }
            Ok(())
        })
    }

    fn follow(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<u64>>>> {
        Box::pin(self.read())
    }
}
