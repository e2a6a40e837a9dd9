//! The store next to bare SQLite: each workload in turn, ours and raw, and a table of both.
//!
//! Both have the same tables and indexes. Raw does less: it checks no ids or sequences, and keeps nothing for others.
//!
//! `cargo bench --bench compare` takes some minutes. `CREWLOG_BENCH_SECONDS` is the length of one run (2),
//! `CREWLOG_BENCH_DIR` the folder for the databases (default: the system's temporary folder), and `CREWLOG_BENCH_ONLY`
//! a part of the names of the workloads to run (all).

mod by_sqlx;
mod folding;
mod followers;
mod raw;
mod workload;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use by_sqlx::BySqlx;
use crewlog_mq::{EventStore, Query, Range, Runner};
use folding::{Folded, N_FOLDED};
use futures::StreamExt;
use raw::Raw;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use workload::{BATCH, N_REPLAYED, N_WRITERS, Sample};

const N_RUNS: usize = 5;
/// For workloads that take long to prepare.
const N_LONG_RUNS: usize = 2;

fn main() {
    if followers::play() {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    let bench = Bench { runtime, length: length(), folder: folder() };
    let n_cpus = std::thread::available_parallelism().map_or(0, usize::from);
    println!(
        "{} {}, {n_cpus} CPUs; databases in {}",
        std::env::consts::OS,
        std::env::consts::ARCH,
        bench.folder.display()
    );
    println!(
        "256 bytes of data, full metadata, one tag; WAL, synchronous=FULL; medians of {N_RUNS} runs of {:?} in turn",
        bench.length
    );
    println!(
        "{:<34} {:>11} {:>11} {:>6}   {:<26} raw p50 / p99",
        "", "events/s", "raw", "ratio", "p50 / p99 of one append"
    );
    bench.compare("append by sqlx, 1 writer x 1", N_RUNS, Bench::sqlx_one, Bench::raw_one);
    bench.compare("append by sqlx, 64 writers x 1", N_RUNS, Bench::sqlx_many, Bench::raw_many);
    bench.compare("append by sqlx, 1 writer x 100", N_RUNS, Bench::sqlx_batch, Bench::raw_batch);
    bench.compare("append, 1 writer x 1 event", N_RUNS, Bench::ours_one, Bench::raw_one);
    bench.compare("append, 64 writers x 1 event", N_RUNS, Bench::ours_many, Bench::raw_many);
    bench.compare("append, 1 writer x 100 events", N_RUNS, Bench::ours_batch, Bench::raw_batch);
    bench.compare("the same on one aggregate", N_RUNS, Bench::ours_batch_of_one, Bench::raw_batch_of_one);
    bench.compare("load of 200,000 events", N_RUNS, Bench::ours_load, Bench::raw_replay);
    bench.compare("stream of 200,000 events", N_RUNS, Bench::ours_stream, Bench::raw_replay);
    bench.compare("fold of 1,000,000 events", N_LONG_RUNS, Bench::ours_fold, Bench::raw_fold);
    bench.delivery();
    bench.idle();
}

fn length() -> Duration {
    let seconds = std::env::var("CREWLOG_BENCH_SECONDS").ok();
    Duration::from_secs_f64(seconds.map_or(2.0, |seconds| seconds.parse().expect("it is a number of seconds")))
}

fn is_wanted(name: &str) -> bool {
    std::env::var("CREWLOG_BENCH_ONLY").map_or(true, |only| name.contains(&only))
}

fn folder() -> PathBuf {
    std::env::var_os("CREWLOG_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

struct Bench {
    runtime: Runtime,
    length: Duration,
    folder: PathBuf,
}

/// The result of one run.
struct Run {
    events_per_s: f64,
    latencies: Vec<Duration>,
}

impl Run {
    fn of(n_events: u64, took: Duration, latencies: Vec<Duration>) -> Self {
        Self { events_per_s: n_events as f64 / took.as_secs_f64(), latencies }
    }
}

impl Bench {
    fn compare(&self, name: &str, n_runs: usize, ours: fn(&Self, &Path) -> Run, raw: fn(&Self, &Path) -> Run) {
        if !is_wanted(name) {
            return;
        }
        let (mut of_ours, mut of_raw) = (Vec::new(), Vec::new());
        for _ in 0..n_runs {
            for (run, runs) in [(ours, &mut of_ours), (raw, &mut of_raw)] {
                let place = TempDir::new_in(&self.folder).expect("a folder can be made");
                runs.push(run(self, &place.path().join("log.db")));
            }
        }
        let (ours, raw) = (median(&of_ours), median(&of_raw));
        let (ours_latency, raw_latency) = (percentiles(&of_ours), percentiles(&of_raw));
        println!("{name:<34} {ours:>11.0} {raw:>11.0} {:>6.2}   {ours_latency:<26} {raw_latency}", ours / raw);
    }

    fn open(&self, path: &Path) -> EventStore {
        let url = path.to_str().expect("the folder is UTF-8");
        self.runtime.block_on(EventStore::open(url)).expect("the log opens")
    }

    fn ours_one(&self, path: &Path) -> Run {
        self.ours_in_turn(path, 1)
    }

    fn ours_batch(&self, path: &Path) -> Run {
        self.ours_in_turn(path, BATCH)
    }

    fn ours_in_turn(&self, path: &Path, n_events: u64) -> Run {
        let (store, metadata) = (self.open(path), workload::metadata());
        self.in_turn(n_events, |n| {
            let append = workload::append(n, n_events, &metadata);
            self.runtime.block_on(store.append(append)).expect("the append is taken");
        })
    }

    fn ours_batch_of_one(&self, path: &Path) -> Run {
        let (store, metadata) = (self.open(path), workload::metadata());
        self.in_turn(BATCH, |n| {
            let append = workload::append_to(0, n, BATCH, &metadata);
            self.runtime.block_on(store.append(append)).expect("the append is taken");
        })
    }

    fn raw_one(&self, path: &Path) -> Run {
        self.raw_in_turn(path, 1)
    }

    fn raw_batch(&self, path: &Path) -> Run {
        self.raw_in_turn(path, BATCH)
    }

    fn raw_batch_of_one(&self, path: &Path) -> Run {
        let mut raw = Raw::create(path);
        self.in_turn(BATCH, |n| raw.insert(&rows(n..n + BATCH), |_| 0))
    }

    fn raw_in_turn(&self, path: &Path, n_events: u64) -> Run {
        let mut raw = Raw::create(path);
        self.in_turn(n_events, |n| raw.insert(&rows(n..n + n_events), |n| n / n_events))
    }

    fn sqlx_one(&self, path: &Path) -> Run {
        self.sqlx_in_turn(path, 1)
    }

    fn sqlx_batch(&self, path: &Path) -> Run {
        self.sqlx_in_turn(path, BATCH)
    }

    fn sqlx_in_turn(&self, path: &Path, n_events: u64) -> Run {
        let mut by_sqlx = self.runtime.block_on(BySqlx::create(path));
        self.in_turn(n_events, |n| {
            self.runtime.block_on(by_sqlx.insert(&rows(n..n + n_events), |n| n / n_events));
        })
    }

    fn sqlx_many(&self, path: &Path) -> Run {
        let writer = self.runtime.block_on(async { by_sqlx::group_commit(BySqlx::create(path).await) });
        self.by_group_commit(&writer)
    }

    fn in_turn(&self, n_events: u64, mut append: impl FnMut(u64)) -> Run {
        let (mut latencies, mut n) = (Vec::new(), 0);
        let started = Instant::now();
        while started.elapsed() < self.length {
            let began = Instant::now();
            append(n);
            latencies.push(began.elapsed());
            n += n_events;
        }
        Run::of(n, started.elapsed(), latencies)
    }

    fn ours_many(&self, path: &Path) -> Run {
        let store = self.open(path);
        self.at_once(move |n| {
            let (store, append) = (store.clone(), workload::append(n, 1, &workload::metadata()));
            async move {
                store.append(append).await.expect("the append is taken");
            }
        })
    }

    fn raw_many(&self, path: &Path) -> Run {
        self.by_group_commit(&raw::group_commit(Raw::create(path)))
    }

    fn by_group_commit(&self, writer: &mpsc::Sender<(raw::Row, oneshot::Sender<()>)>) -> Run {
        let writer = writer.clone();
        self.at_once(move |n| {
            let metadata = serde_json::to_string(&workload::metadata()).expect("metadata is JSON");
            let (reply, answer) = oneshot::channel();
            let writer = writer.clone();
            async move {
                writer.send(((n, metadata), reply)).await.expect("it runs");
                answer.await.expect("it answers");
            }
        })
    }

    fn at_once<F: Future<Output = ()> + Send>(&self, append: impl Fn(u64) -> F + Clone + Send + Sync + 'static) -> Run {
        let (length, started) = (self.length, Instant::now());
        let writers: Vec<_> = (0..N_WRITERS)
            .map(|writer| {
                let append = append.clone();
                self.runtime.spawn(async move {
                    let (mut latencies, mut n) = (Vec::new(), writer);
                    while started.elapsed() < length {
                        let began = Instant::now();
                        append(n).await;
                        latencies.push(began.elapsed());
                        n += N_WRITERS;
                    }
                    latencies
                })
            })
            .collect();
        let latencies = self.runtime.block_on(futures::future::join_all(writers));
        let latencies: Vec<_> = latencies.into_iter().flat_map(|one| one.expect("a writer ends")).collect();
        Run::of(latencies.len() as u64, started.elapsed(), latencies)
    }

    fn ours_load(&self, path: &Path) -> Run {
        let store = self.open(path);
        self.runtime.block_on(async {
            workload::fill(&store, N_REPLAYED).await;
            let started = Instant::now();
            let loaded = store.load::<Sample>(&Query::all(), Range::default()).await.expect("the log can be read");
            Run::of(loaded.len() as u64, started.elapsed(), vec![])
        })
    }

    fn ours_stream(&self, path: &Path) -> Run {
        let store = self.open(path);
        self.runtime.block_on(async {
            workload::fill(&store, N_REPLAYED).await;
            let started = Instant::now();
            let mut stream = store.subscribe::<Sample>(&Query::all()).expect("the query is small");
            let mut n_events = 0;
            while n_events < N_REPLAYED {
                stream.next().await.expect("a stream has no end").expect("the event is a sample");
                n_events += 1;
            }
            Run::of(n_events, started.elapsed(), vec![])
        })
    }

    fn raw_replay(&self, path: &Path) -> Run {
        let mut raw = Raw::create(path);
        let metadata = serde_json::to_string(&workload::metadata()).expect("metadata is JSON");
        for first in (0..N_REPLAYED).step_by(1000) {
            let rows: Vec<_> = (first..first + 1000).map(|n| (n, metadata.clone())).collect();
            raw.insert(&rows, |n| n / 1000);
        }
        let started = Instant::now();
        std::hint::black_box(raw.replay());
        Run::of(N_REPLAYED, started.elapsed(), vec![])
    }

    fn ours_fold(&self, path: &Path) -> Run {
        let store = self.open(path);
        self.runtime.block_on(async {
            folding::fill_one(&store, N_FOLDED).await;
            let started = Instant::now();
            let mut runner = Runner::<Folded>::new(store.clone(), "bench", &workload::aggregate_id(0), Vec::new());
            runner.catch_up().await.expect("the log can be read");
            assert_eq!(runner.handler().n_events, N_FOLDED);
            Run::of(N_FOLDED, started.elapsed(), vec![])
        })
    }

    fn raw_fold(&self, path: &Path) -> Run {
        let mut raw = Raw::create(path);
        for first in (0..N_FOLDED).step_by(1000) {
            raw.insert(&rows(first..first + 1000), |_| 0);
        }
        let started = Instant::now();
        assert_eq!(std::hint::black_box(raw.fold(0)).n_events, N_FOLDED);
        Run::of(N_FOLDED, started.elapsed(), vec![])
    }

    /// The delay from the acknowledgement of an append until a follower has its event.
    fn delivery(&self) {
        if !is_wanted("delivery") {
            return;
        }
        let run = |latencies: Vec<Duration>| percentiles(&[Run::of(latencies.len() as u64, self.length, latencies)]);
        let place = TempDir::new_in(&self.folder).expect("a folder can be made");
        let path = place.path().join("log.db");
        let store = self.open(&path);
        let latencies = followers::delivery_in_process(&self.runtime, &store, self.length);
        println!("{:<66} {}", "delivery in one process, after the acknowledgement", run(latencies));
        let latencies = followers::delivery_between_processes(&self.runtime, &store, &path, self.length);
        println!("{:<66} {}", "delivery to another process, after the acknowledgement", run(latencies));
    }

    /// The cost of idle followers.
    fn idle(&self) {
        if !is_wanted("idle") {
            return;
        }
        let place = TempDir::new_in(&self.folder).expect("a folder can be made");
        let path = place.path().join("log.db");
        self.runtime.block_on(workload::fill(&self.open(&path), N_REPLAYED));
        let [one, hundred] = [1, 100].map(|n_followers| followers::idle_share(&path, n_followers));
        let shares = format!("{:.4} % / {:.4} %, {:.2} x", one * 100.0, hundred * 100.0, hundred / one);
        println!("{:<66} {shares}", "part of a processor that 1 idle follower takes / 100 of them");
    }
}

/// The rows of these numbers for bare SQLite.
fn rows(numbers: std::ops::Range<u64>) -> Vec<raw::Row> {
    let metadata = workload::metadata();
    let row = |n| (n, serde_json::to_string(&metadata).expect("metadata is JSON"));
    numbers.map(row).collect()
}

fn median(runs: &[Run]) -> f64 {
    let mut rates: Vec<_> = runs.iter().map(|run| run.events_per_s).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn percentiles(runs: &[Run]) -> String {
    let mut all: Vec<_> = runs.iter().flat_map(|run| &run.latencies).collect();
    all.sort_unstable();
    if all.is_empty() {
        return "-".into();
    }
    format!("{:.1?} / {:.1?}", all[all.len() / 2], all[all.len() * 99 / 100])
}
