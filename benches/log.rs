//! The log under criterion: appends, replay and delivery, durable, each next to bare SQLite on the same schema.
//!
//! For ratios measured in turn see the bench `compare`.

mod raw;
mod workload;

use std::time::Instant;

use crewlog_mq::{EventStore, Query, Range};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use futures::StreamExt;
use futures::future::join_all;
use raw::Raw;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use workload::{BATCH, N_REPLAYED, N_WRITERS, Sample};

criterion_group!(benches, appends, many_writers, replay, delivery);
criterion_main!(benches);

fn runtime() -> Runtime {
    Runtime::new().expect("a runtime")
}

fn open(runtime: &Runtime) -> (TempDir, EventStore) {
    let folder = TempDir::new().expect("a folder can be made");
    let path = folder.path().join("log.db");
    let store = runtime.block_on(EventStore::open(path.to_str().expect("it is UTF-8"))).expect("the log opens");
    (folder, store)
}

fn create_raw() -> (TempDir, Raw) {
    let folder = TempDir::new().expect("a folder can be made");
    let raw = Raw::create(&folder.path().join("log.db"));
    (folder, raw)
}

fn metadata_json() -> String {
    serde_json::to_string(&workload::metadata()).expect("metadata is JSON")
}

fn appends(criterion: &mut Criterion) {
    for n_events in [1, BATCH] {
        let mut group = criterion.benchmark_group(format!("append of {n_events}"));
        group.sample_size(30).throughput(Throughput::Elements(n_events));
        ours_in_turn(&mut group, n_events);
        raw_in_turn(&mut group, n_events);
    }
}

fn ours_in_turn(group: &mut BenchmarkGroup<'_, WallTime>, n_events: u64) {
    let runtime = runtime();
    let (_folder, store) = open(&runtime);
    let (metadata, mut n) = (workload::metadata(), 0);
    group.bench_function("store", |bencher| {
        bencher.iter(|| {
            n += n_events;
            runtime.block_on(store.append(workload::append(n, n_events, &metadata))).expect("the append is taken")
        });
    });
}

fn raw_in_turn(group: &mut BenchmarkGroup<'_, WallTime>, n_events: u64) {
    let (_folder, mut raw) = create_raw();
    let mut n = 0;
    group.bench_function("bare SQLite", |bencher| {
        bencher.iter(|| {
            n += n_events;
            let rows: Vec<_> = (n..n + n_events).map(|n| (n, metadata_json())).collect();
            raw.insert(&rows, |n| n / n_events);
        });
    });
}

/// One iteration is one event of each writer.
fn many_writers(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("append of 1 by 64 writers");
    group.sample_size(20).throughput(Throughput::Elements(N_WRITERS));
    let (_folder, store) = open(&runtime);
    group.bench_function("store", |bencher| {
        bencher.to_async(&runtime).iter_custom(async |n_rounds| {
            let started = Instant::now();
            let writers = (0..N_WRITERS).map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for round in 0..n_rounds {
                        let append = workload::append(round * N_WRITERS + writer, 1, &workload::metadata());
                        store.append(append).await.expect("the append is taken");
                    }
                })
            });
            join_all(writers.collect::<Vec<_>>()).await;
            started.elapsed()
        });
    });
    let (_raw_folder, raw) = create_raw();
    let raw = raw::group_commit(raw);
    group.bench_function("bare SQLite", |bencher| {
        bencher.to_async(&runtime).iter_custom(async |n_rounds| {
            let started = Instant::now();
            let writers = (0..N_WRITERS).map(|writer| {
                let raw = raw.clone();
                tokio::spawn(async move {
                    for round in 0..n_rounds {
                        let (reply, answer) = oneshot::channel();
                        let row = (round * N_WRITERS + writer, metadata_json());
                        raw.send((row, reply)).await.expect("the thread runs");
                        answer.await.expect("the thread answers");
                    }
                })
            });
            join_all(writers.collect::<Vec<_>>()).await;
            started.elapsed()
        });
    });
}

fn replay(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("replay of 200,000 events");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(N_REPLAYED));
    let (_folder, store) = open(&runtime);
    runtime.block_on(workload::fill(&store, N_REPLAYED));
    group.bench_function("store", |bencher| {
        let load = async || store.load::<Sample>(&Query::all(), Range::default()).await.expect("the log can be read");
        bencher.to_async(&runtime).iter(load);
    });
    let (_raw_folder, mut raw) = create_raw();
    for first in (0..N_REPLAYED).step_by(1000) {
        let rows: Vec<_> = (first..first + 1000).map(|n| (n, metadata_json())).collect();
        raw.insert(&rows, |n| n / 1000);
    }
    group.bench_function("bare SQLite", |bencher| bencher.iter(|| raw.replay()));
}

/// From the call of an append until its event is with a subscriber of the same process.
fn delivery(criterion: &mut Criterion) {
    let runtime = runtime();
    let (_folder, store) = open(&runtime);
    let (metadata, mut n) = (workload::metadata(), 0);
    let mut stream = store.subscribe::<Sample>(&Query::all()).expect("the query is small");
    criterion.bench_function("append and delivery", |bencher| {
        bencher.iter(|| {
            n += 1;
            runtime.block_on(async {
                store.append(workload::append(n, 1, &metadata)).await.expect("the append is taken");
                stream.next().await.expect("a stream has no end").expect("the event is a sample")
            })
        });
    });
}
