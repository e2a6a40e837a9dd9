//! Durable subscriptions: the deliveries to their workers, their order, and the state after workers end.

mod between;
mod chaos;
mod control;
mod order;
mod processes;
mod retry;
mod versions;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crewlog_mq::{
    AggregateName, Append, Delivery, Event, EventStore, Expected, Group, GroupHandler, GroupReport, HandlerError,
    Position, Query, Range, Recorded,
};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::{Fact, in_time, logs, note, noting};

/// A handler's reaction to a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Effect {
    Made { n: i64 },
}

impl Event for Effect {
    fn event_type(&self) -> &'static str {
        match self {
            Self::Made { .. } => "Made",
        }
    }
}

/// The events seen by handlers, in order: worker and event.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, Recorded)>>>);

impl Seen {
    fn add(&self, worker: &str, event: &Recorded) {
        self.0.lock().expect("it goes well").push((worker.to_owned(), event.clone()));
    }

    /// The sequences seen of each aggregate.
    fn sequences(&self) -> BTreeMap<String, Vec<i64>> {
        let mut sequences = BTreeMap::<_, Vec<i64>>::new();
        for (_, event) in self.0.lock().expect("it goes well").iter() {
            sequences.entry(event.aggregate_id.clone()).or_default().push(event.sequence);
        }
        sequences
    }

    /// A handler that only records.
    fn noting(&self) -> impl GroupHandler + use<> {
        self.handler("", |_, _| Ok(()))
    }

    /// A handler that records, and then does this.
    fn handler<F>(&self, worker: &str, then: F) -> impl GroupHandler + use<F>
    where
        F: Fn(&Recorded, &mut Delivery) -> Result<(), HandlerError> + Send + Sync,
    {
        Handling { seen: self.clone(), worker: worker.to_owned(), then }
    }
}

struct Handling<F> {
    seen: Seen,
    worker: String,
    then: F,
}

impl<F> GroupHandler for Handling<F>
where
    F: Fn(&Recorded, &mut Delivery) -> Result<(), HandlerError> + Send + Sync,
{
    fn handle<'a>(
        &'a self,
        event: &'a Recorded,
        delivery: &'a mut Delivery,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        self.seen.add(&self.worker, event);
        let done = (self.then)(event, delivery);
        Box::pin(async move { done })
    }
}

/// A group of facts with short waits.
fn group(store: &EventStore) -> Group {
    let (first, max) = (Duration::from_millis(1), Duration::from_millis(20));
    store.group("facts").query(Query::stream("facts")).partitions(4).backoff(first, max)
}

async fn append(store: &EventStore, aggregate_id: &str, n: i64) -> Position {
    store.append(noting(aggregate_id, n)).await.expect("an append of any kind is accepted").last()
}

/// Appends the effect of a fact.
fn effect(event: &Recorded, delivery: &mut Delivery) -> Result<(), HandlerError> {
    match event.decode()? {
        Fact::Noted { n } => {
            delivery.append("effects", &event.aggregate_id, Expected::Any, &Effect::Made { n })?;
            Ok(())
        }
        Fact::Closed => Ok(()),
    }
}

/// The contents of the effects of each aggregate.
async fn effects(store: &EventStore) -> BTreeMap<String, Vec<i64>> {
    let mut effects = BTreeMap::<_, Vec<i64>>::new();
    let all = store.load::<Effect>(&Query::stream("effects"), Range::default()).await.expect("the log can be read");
    for effect in all {
        let Effect::Made { n } = effect.event;
        effects.entry(effect.recorded.aggregate_id).or_default().push(n);
    }
    effects
}

/// Runs a worker until the group has handled every event in the log.
async fn run_to_the_end(group: &Group, store: &EventStore, handler: impl GroupHandler) {
    let head = store.head().await.expect("the head can be read");
    run_to(group, head, handler).await;
}

async fn run_to(group: &Group, position: Position, handler: impl GroupHandler) {
    let stop = async { group.wait_until(position).await.expect("the group is there") };
    in_time("the end", group.run_until(handler, stop)).await.expect("the worker goes on");
}

/// Waits until a group reaches a state.
async fn until(store: &EventStore, what: &str, is_so: impl Fn(&GroupReport) -> bool) -> GroupReport {
    in_time(what, async {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        loop {
            ticks.tick().await;
            match store.groups().show("facts").await {
                Ok(report) if is_so(&report) => return report,
                Ok(_) | Err(_) => {}
            }
        }
    })
    .await
}

fn aggregate(aggregate_id: &str) -> AggregateName {
    AggregateName { stream_id: "facts".into(), aggregate_id: aggregate_id.into() }
}

/// Deletes every cell of a group, as no one should.
async fn delete_cells(store: &EventStore) -> usize {
    let mut n_deleted = 0;
    for space in ["group/facts/1", "group/facts/1/workers", "group/facts/2"] {
        for cell in store.cells(space, "", 1000).await.expect("cells can be read") {
            let gone = crewlog_mq::CellChange::delete(space, &cell.key);
            store.append(Append::default().cell(gone)).await.expect("whatever it holds");
            n_deleted += 1;
        }
    }
    n_deleted
}
