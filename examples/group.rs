//! A durable subscription: orders come in, and each is billed exactly once, however often this is run or killed.
//!
//!     cargo run --example group [FILE]

use std::error::Error;

use crewlog_mq::{Event, EventStore, Expected, Metadata, Query, Range, group_handler};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum Order {
    Placed { cents: u64 },
}

impl Event for Order {
    fn event_type(&self) -> &'static str {
        match self {
            Self::Placed { .. } => "Placed",
        }
    }
}

#[derive(Serialize, Deserialize)]
enum Bill {
    Sent { cents: u64 },
}

impl Event for Bill {
    fn event_type(&self) -> &'static str {
        match self {
            Self::Sent { .. } => "Sent",
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "orders.db".into());
    let store = EventStore::open(&path).await?;
    for (order, cents) in [("order-1", 250), ("order-2", 0), ("order-3", 900)] {
        store.push_event("orders", order, &Order::Placed { cents }, &Metadata::default()).await?;
    }
    let billing = store.group("billing").query(Query::stream("orders")).park_after(1);
    let handler = group_handler(|event, delivery| {
        Box::pin(async move {
            let Order::Placed { cents } = event.decode()?;
            if cents == 0 {
                return Err("there is nothing to pay".into());
            }
            // In the log together with the acknowledgement, or not at all.
            delivery.append("bills", &event.aggregate_id, Expected::Any, &Bill::Sent { cents })?;
            Ok(())
        })
    });
    let head = store.head().await?;
    // A service would `run` without end; several processes may run it and share the orders.
    let all_are_handled = async { billing.wait_until(head).await.expect("the log can be read") };
    billing.run_until(handler, all_are_handled).await?;

    let bills = store.load::<Bill>(&Query::stream("bills"), Range::default()).await?;
    let orders = store.load_events::<Order>(&Query::stream("orders"), None).await?;
    println!("{} orders, {} bills", orders.len(), bills.len());
    for parked in &store.groups().show("billing").await?.versions[0].parked {
        println!("{}: {} events wait: {}", parked.aggregate, parked.n_events, parked.error);
    }
    Ok(())
}
