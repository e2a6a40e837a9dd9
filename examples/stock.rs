//! The parts of a workshop: an event type, a handler that decides, an executor that acts on events, and a projection
//! that remembers. Run it again on the same file, or kill it anywhere: nothing gets into the log twice.
//!
//!     cargo run --example stock [FILE]

use std::{collections::BTreeMap, collections::BTreeSet, error::Error};

use crewlog_mq::{Cause, Envelope, Event, EventStore, Handler, Position, Query, Runner};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

/// The events of a part. Each part is an aggregate of the stream `stock`; used parts are booked as negative numbers.
#[derive(Serialize, Deserialize)]
enum Stock {
    Booked { paper: String, n: i32 },
    RanLow { paper: String },
    Ordered { paper: String },
}

impl Event for Stock {}

/// A command to a part.
#[derive(Clone)]
enum Command {
    Book { paper: String, n: i32 },
    Order { paper: String },
}

/// The handler of one part: pure, without log or clock.
#[derive(Clone, Default)]
struct Part {
    left: i32,
    papers: BTreeSet<String>,
    to_order: BTreeSet<String>,
}

impl Handler for Part {
    type Command = Command;
    type Event = Stock;
    type Error = String;

    fn decide(&self, command: Command) -> Result<Vec<Stock>, String> {
        Ok(match command {
            // A paper counts once, however often it is submitted.
            Command::Book { paper, .. } if self.papers.contains(&paper) => vec![],
            Command::Book { paper, n } if self.left + n < 0 => return Err(format!("{paper} wants {}: too many", -n)),
            // Decided together, these are in the log together or not at all.
            Command::Book { paper, n } if self.left + n < 3 => {
                vec![Stock::Booked { paper: paper.clone(), n }, Stock::RanLow { paper }]
            }
            Command::Book { paper, n } => vec![Stock::Booked { paper, n }],
            Command::Order { paper } => vec![Stock::Ordered { paper }],
        })
    }

    fn apply(&mut self, event: &Stock) {
        match event {
            Stock::Booked { paper, n } => (self.left, _) = (self.left + n, self.papers.insert(paper.clone())),
            Stock::RanLow { paper } => _ = self.to_order.insert(paper.clone()),
            Stock::Ordered { paper } => _ = self.to_order.remove(paper),
        }
    }
}

/// The executor: follows low stocks, writes to the dealer, and records that in the log.
async fn buy(store: &EventStore) -> Result<(), Box<dyn Error>> {
    let mut low = store.subscribe(&Query::stream("stock").of_type("RanLow"))?;
    while let Some(happened) = low.next().await {
        let Envelope { event: Stock::RanLow { paper }, recorded, .. } = happened? else { continue };
        let mut part = Runner::<Part>::new(store.clone(), "stock", &recorded.aggregate_id, vec![]);
        part.catch_up().await?;
        if part.handler().to_order.contains(&paper) {
            println!("Dear dealer, please send 10 {} for {paper}.", recorded.aggregate_id);
            // A reaction has its ids from its cause: of two concurrent buyers, only one gets into the log. If killed
            // before, it writes again.
            let cause = Cause::reaction("buyer", &recorded);
            part.execute(Command::Order { paper }, &cause).await?;
        }
    }
    Ok(())
}

/// The projection: a fold of history and then of live events, until it has seen all events and nothing needs ordering.
async fn show(store: &EventStore) -> Result<(), Box<dyn Error>> {
    let (mut shelf, mut seen, until) = (BTreeMap::<String, Part>::new(), Position(0), store.head().await?);
    let mut stock = store.subscribe(&Query::stream("stock"))?;
    while seen < until || shelf.values().any(|part| !part.to_order.is_empty()) {
        let Some(Envelope { event, recorded, .. }) = stock.next().await.transpose()? else { break };
        shelf.entry(recorded.aggregate_id).or_default().apply(&event);
        seen = recorded.position;
    }
    shelf.iter().for_each(|(name, part)| println!("{name}: {} left", part.left));
    println!("{seen} events");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).unwrap_or(format!("{}/stock.db", std::env::temp_dir().display()));
    let store = EventStore::open(&file).await?;
    let papers = [("bolts", "note 1", 8), ("nails", "note 2", 4), ("bolts", "a gate", -6), ("nails", "a barn", -9)];
    for (name, paper, n) in papers {
        let mut part = Runner::<Part>::new(store.clone(), "stock", name, vec![]);
        if let Err(refusal) = part.execute(Command::Book { paper: paper.into(), n }, &Cause::request()).await {
            println!("{name}: {refusal}");
        }
    }
    tokio::select! { bought = buy(&store) => bought, shown = show(&store) => shown }
}
