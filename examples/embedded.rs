//! An event store in a file, in thirty lines: appends events, reads them again, and follows new ones.
//!
//!     cargo run --example embedded [FILE]

use crewlog_mq::{Envelope, Event, EventStore, Metadata, Query};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Placed { item: String },
    Paid { cents: u64 },
}

impl Event for Order {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or(format!("{}/orders.db", std::env::temp_dir().display()));
    let store = EventStore::open(&file).await?;
    let placed = Order::Placed { item: "tea".into() };
    // When this returns, the event is on disk.
    store.push_event("orders", "order-1", &placed, &Metadata::default()).await?;
    let mut orders = store.subscribe::<Order>(&Query::stream("orders"))?;
    let head = store.push_event("orders", "order-1", &Order::Paid { cents: 250 }, &Metadata::default()).await?.last();
    // History first, then new events, without end; an unreadable event is an error item.
    while let Some(item) = orders.next().await {
        let Envelope { event, recorded, .. } = item?;
        println!("{} {} {event:?}", recorded.position, recorded.aggregate_id);
        if recorded.position == head {
            break;
        }
    }
    Ok(())
}
