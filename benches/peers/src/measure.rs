//! One run of one workload on one store, through its trait only. Nothing is compared here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::BoxStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::subject::{Batch, Failure, Result, Store, Workload};
use crate::workload::{BATCH, N_AGGREGATES, N_WRITERS};

const N_SUBSCRIBERS: u64 = 16;
const N_IN_FLIGHT: u64 = 100;
/// The number of events in one append of a filling.
const FILL_BATCH: u64 = 1000;
/// The number of the event after which a subscriber ends.
const LAST: u64 = u64::MAX;
/// A run that takes this much longer than it should has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The result of one run: events, or deliveries, per second, and the latencies of its appends, or of its deliveries.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub rate: f64,
    pub p50: Option<Duration>,
    pub p99: Option<Duration>,
}

impl Run {
    fn of(n_events: u64, took: Duration, mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        let at = |percent: usize| latencies.get(latencies.len() * percent / 100).copied();
        Self { rate: n_events as f64 / took.as_secs_f64(), p50: at(50), p99: at(99) }
    }
}

/// One run of a workload other than a replay, on a new store.
pub async fn run(store: Arc<dyn Store>, workload: Workload, length: Duration) -> Result<Run> {
    let run = async {
        match workload {
            Workload::OneWriter => in_turn(&*store, 1, length, |n| n % N_AGGREGATES).await,
            Workload::Batches => in_turn(&*store, BATCH, length, |n| n / BATCH % N_AGGREGATES).await,
            Workload::OneAggregate => in_turn(&*store, BATCH, length, |_| 0).await,
            Workload::ManyWriters => Ok(at_once(&store, N_WRITERS, length).await?.1),
            Workload::Delivery => delivery(&store, length).await,
            Workload::FanOut => fan_out(&store, 1, length).await,
            Workload::FanOutInFlight => fan_out(&store, N_IN_FLIGHT, length).await,
            Workload::Replay => Err("a replay needs a filled store".into()),
        }
    };
    tokio::time::timeout(length + PATIENCE, run)
        .await
        .map_err(|_| format!("it had not ended after {PATIENCE:?} more"))?
}

/// Appends this many events, for replays.
pub async fn fill(store: &dyn Store, n_events: u64) -> Result<()> {
    for first in (0..n_events).step_by(FILL_BATCH as usize) {
        store.append(Batch { first, n_events: FILL_BATCH, aggregate: first / FILL_BATCH % N_AGGREGATES }).await?;
    }
    Ok(())
}

/// One replay of a filled store.
pub async fn replay(store: &dyn Store, n_events: u64) -> Result<Run> {
    let began = Instant::now();
    store.replay(n_events).await?;
    Ok(Run::of(n_events, began.elapsed(), vec![]))
}

async fn in_turn(store: &dyn Store, n_events: u64, length: Duration, aggregate: fn(u64) -> u64) -> Result<Run> {
    let (mut latencies, mut first) = (Vec::new(), 0);
    let started = Instant::now();
    while started.elapsed() < length {
        let began = Instant::now();
        store.append(Batch { first, n_events, aggregate: aggregate(first) }).await?;
        latencies.push(began.elapsed());
        first += n_events;
    }
    Ok(Run::of(first, started.elapsed(), latencies))
}

/// Also returns the number of events written.
async fn at_once(store: &Arc<dyn Store>, n_writers: u64, length: Duration) -> Result<(u64, Run)> {
    let started = Instant::now();
    let writers = (0..n_writers).map(|writer| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let (mut latencies, mut n) = (Vec::new(), writer);
            while started.elapsed() < length {
                let began = Instant::now();
                store.append(Batch { first: n, n_events: 1, aggregate: n % N_AGGREGATES }).await?;
                latencies.push(began.elapsed());
                n += n_writers;
            }
            Ok::<_, Failure>(latencies)
        })
    });
    let writers = try_join_all(writers.collect::<Vec<_>>()).await?;
    let latencies: Vec<_> = writers.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let n_written = latencies.len() as u64;
    Ok((n_written, Run::of(n_written, started.elapsed(), latencies)))
}

/// The delay from the acknowledgement of an append until a subscriber has its event, one append at a time.
async fn delivery(store: &Arc<dyn Store>, length: Duration) -> Result<Run> {
    let mut numbers = store.follow().await?;
    let (seen, mut when) = mpsc::channel(1);
    let reader = tokio::spawn(async move {
        while let Some(number) = numbers.next().await {
            if number? == LAST || seen.send(Instant::now()).await.is_err() {
                break;
            }
        }
        Ok::<_, Failure>(())
    });
    let mut latencies = Vec::new();
    let started = Instant::now();
    let mut first = 0;
    while started.elapsed() < length || first < 2 {
        store.append(Batch { first, n_events: 1, aggregate: first % N_AGGREGATES }).await?;
        let acknowledged = Instant::now();
        let seen = when.recv().await.ok_or("the stream has ended")?;
        if first > 0 {
            latencies.push(seen.saturating_duration_since(acknowledged));
        }
        first += 1;
    }
    store.append(Batch { first: LAST, n_events: 1, aggregate: 0 }).await?;
    reader.await??;
    Ok(Run::of(first, started.elapsed(), latencies))
}

/// Some writers, and subscribers each of which gets everything.
async fn fan_out(store: &Arc<dyn Store>, n_writers: u64, length: Duration) -> Result<Run> {
    let mut subscribers = Vec::new();
    for _ in 0..N_SUBSCRIBERS {
        subscribers.push(subscribe(store.follow().await?));
    }
    store.append(Batch { first: 0, n_events: 1, aggregate: 0 }).await?;
    for (live, _) in &mut subscribers {
        live.await.map_err(|_| "a stream has ended")?;
    }
    let started = Instant::now();
    let (n_written, written) = at_once(store, n_writers, length).await?;
    store.append(Batch { first: LAST, n_events: 1, aggregate: 0 }).await?;
    let mut n_delivered = 0;
    for (_, reader) in subscribers {
        n_delivered += reader.await??;
    }
    let took = started.elapsed();
    if n_delivered != n_written * N_SUBSCRIBERS {
        return Err(format!("{n_delivered} deliveries of {n_written} events to {N_SUBSCRIBERS} subscribers").into());
    }
    Ok(Run { rate: n_delivered as f64 / took.as_secs_f64(), ..written })
}

type Subscriber = (oneshot::Receiver<()>, JoinHandle<Result<u64>>);

/// Reports its first event, counts the others, and ends at the last.
fn subscribe(mut numbers: BoxStream<'static, Result<u64>>) -> Subscriber {
    let (live, is_live) = oneshot::channel();
    let reader = tokio::spawn(async move {
        numbers.next().await.ok_or("the stream has ended")??;
        let _ = live.send(());
        let mut n_seen = 0;
        while let Some(number) = numbers.next().await {
            if number? == LAST {
                return Ok(n_seen);
            }
            n_seen += 1;
        }
        Err("the stream has ended".into())
    });
    (is_live, reader)
}
