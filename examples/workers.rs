//! A group of workers on PostgreSQL: start it as often as you like, on any machine that reaches the server. Each order
//! is handled by one of them; when one is killed the others take over its share.
//!
//!     cargo run --example workers -- postgres://USER@HOST/DATABASE [NUMBER OF ORDERS TO PLACE]
//!
//! It ends when all orders that existed at its start are packed.

use std::error::Error;

use crewlog_mq::{Event, EventStore, Expected, Metadata, Query, group_handler};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum Order {
    Placed { nails: u32 },
}

impl Event for Order {}

#[derive(Serialize, Deserialize)]
enum Parcel {
    Packed { nails: u32, by: u32 },
}

impl Event for Parcel {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give the URL of a database: postgres://USER@HOST/DATABASE")?;
    let n_orders: u32 = arguments.next().map_or(Ok(0), |n| n.parse())?;
    let store = EventStore::open(&url).await?;
    for n in 0..n_orders {
        let order = format!("order-{}-{n}", std::process::id());
        store.push_event("orders", &order, &Order::Placed { nails: n }, &Metadata::default()).await?;
    }
    let packing = store.group("packing").query(Query::stream("orders")).partitions(8);
    let handler = group_handler(|event, delivery| {
        Box::pin(async move {
            let Order::Placed { nails } = event.decode()?;
            // Packing an order twice has one effect: the parcel and the acknowledgement are one append.
            let parcel = Parcel::Packed { nails, by: std::process::id() };
            delivery.append("parcels", &event.aggregate_id, Expected::NoStream, &parcel)?;
            Ok(())
        })
    });
    let head = store.head().await?;
    let all_are_packed = async { packing.wait_until(head).await.expect("the log can be read") };
    packing.run_until(handler, all_are_packed).await?;

    let parcels = store.load_events::<Parcel>(&Query::stream("parcels"), None).await?;
    let Some(Parcel::Packed { nails, .. }) = parcels.last() else { return Err("nothing was ordered yet".into()) };
    let here = parcels.iter().filter(|Parcel::Packed { by, .. }| *by == std::process::id()).count();
    println!("{} parcels, {here} of them packed here; the last has {nails} nails", parcels.len());
    Ok(())
}
