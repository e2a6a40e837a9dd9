//! evento and cqrs-es on SQLite, one run: CRATE WORKLOAD SECONDS FOLDER in, one line of JSON out.
//!
//! It only times appends; the calling program lists the peers and comparisons.

mod cqrs;
mod evento_log;

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, try_join_all};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Failure>;

const N_AGGREGATES: u64 = 1000;
const N_WRITERS: u64 = 64;
const BATCH: u64 = 100;

/// Samples from `first` on for one aggregate; the first of them gets this sequence, counted from 1.
struct Batch {
    first: u64,
    n_events: u64,
    aggregate: u64,
    sequence: u64,
}

trait Store: Send + Sync {
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<()>>;
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, workload, seconds, folder] = &arguments[..] else {
        return Err("give CRATE WORKLOAD SECONDS FOLDER".into());
    };
    let length = Duration::from_secs_f64(seconds.parse()?);
    tokio::runtime::Runtime::new()?.block_on(async {
        let pool = pool(folder).await?;
        let store: Arc<dyn Store> = match name.as_str() {
            "evento" => Arc::new(evento_log::Evento::create(pool).await?),
            "cqrs-es" => Arc::new(cqrs::Cqrs::create(pool).await?),
            other => return Err(format!("{other} is not measured").into()),
        };
        let (n_events, latencies, took) = match workload.as_str() {
            "one-writer" => in_turn(&*store, 1, length, N_AGGREGATES).await?,
            "batches" => in_turn(&*store, BATCH, length, N_AGGREGATES).await?,
            "one-aggregate" => in_turn(&*store, BATCH, length, 1).await?,
            "many-writers" => at_once(store, length).await?,
            other => return Err(format!("{other} cannot be run on {name}").into()),
        };
        tell(n_events, latencies, took);
        Ok(())
    })
}

/// The crates' recommended settings, but durable: their own pools stop at synchronous = NORMAL.
async fn pool(folder: &str) -> Result<SqlitePool> {
    let options = SqliteConnectOptions::from_str(&format!("sqlite://{folder}/events.db"))?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(60));
    Ok(SqlitePoolOptions::new().max_connections(10).connect_with(options).await?)
}

async fn in_turn(
    store: &dyn Store,
    n_events: u64,
    length: Duration,
    n_aggregates: u64,
) -> Result<(u64, Vec<Duration>, Duration)> {
    let (started, mut latencies, mut n_appends) = (Instant::now(), Vec::new(), 0);
    while started.elapsed() < length {
        let began = Instant::now();
        let (aggregate, sequence) = (n_appends % n_aggregates, n_appends / n_aggregates * n_events + 1);
        store.append(Batch { first: n_appends * n_events, n_events, aggregate, sequence }).await?;
        latencies.push(began.elapsed());
        n_appends += 1;
    }
    Ok((n_appends * n_events, latencies, started.elapsed()))
}

/// Each writer has its own aggregates, so that none is refused.
async fn at_once(store: Arc<dyn Store>, length: Duration) -> Result<(u64, Vec<Duration>, Duration)> {
    let started = Instant::now();
    let writers = (0..N_WRITERS).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let n_own = N_AGGREGATES / N_WRITERS;
            let (mut latencies, mut n) = (Vec::new(), 0);
            while started.elapsed() < length {
                let began = Instant::now();
                let (aggregate, sequence) = (writer * n_own + n % n_own, n / n_own + 1);
                store.append(Batch { first: n, n_events: 1, aggregate, sequence }).await?;
                latencies.push(began.elapsed());
                n += 1;
            }
            Ok::<_, Failure>(latencies)
        })
    });
    let writers = try_join_all(writers.collect::<Vec<_>>()).await?;
    let latencies: Vec<_> = writers.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    Ok((latencies.len() as u64, latencies, started.elapsed()))
}

fn tell(n_events: u64, mut latencies: Vec<Duration>, took: Duration) {
    latencies.sort_unstable();
    let at = |percent: usize| latencies[latencies.len() * percent / 100].as_secs_f64() * 1e6;
    let rate = n_events as f64 / took.as_secs_f64();
    println!("{}", serde_json::json!({"events_per_s": rate, "p50_us": at(50), "p99_us": at(99)}));
}

/// 256 bytes of JSON.
fn data(n: u64) -> String {
    let unit = "microseconds";
    let rest = r#"{"n":,"unit":"","note":""}"#.len() + unit.len() + n.to_string().len();
    format!(r#"{{"n":{n},"unit":"{unit}","note":"{}"}}"#, "x".repeat(256 - rest))
}

/// In the form of a writer to the log.
fn metadata() -> String {
    let id = |n: u8| format!("00000000-0000-0000-0000-00000000000{n}");
    serde_json::json!({"correlation_id": id(7), "causation_id": id(8), "extra": {"host": "bench"}}).to_string()
}
