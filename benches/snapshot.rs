//! One command on a long aggregate whose state has constant size: from a snapshot, from the beginning, and on an empty one.

use crewlog_mq::{Append, Cause, Event, EventStore, Expected, Handler, Metadata, NewEvent, Runner, Snapshot};
use criterion::{Criterion, criterion_group, criterion_main};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::runtime::Runtime;

criterion_group!(benches, commands);
criterion_main!(benches);

/// The length of the long aggregate.
const N_EVENTS: u64 = 100_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Meter {
    Read { kwh: u64 },
}

impl Event for Meter {}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Total {
    kwh: u64,
}

impl Handler for Total {
    type Command = u64;
    type Event = Meter;
    type Error = String;

    fn decide(&self, kwh: u64) -> Result<Vec<Meter>, String> {
        let event = Meter::Read { kwh };
        Ok(vec![event])
    }

    fn apply(&mut self, Meter::Read { kwh }: &Meter) {
        self.kwh += kwh;
    }
}

impl Snapshot for Total {
    const FOLD: &'static str = "total";
    const VERSION: u32 = 1;
}

async fn execute(runner: &mut Runner<Total>) {
    runner.execute(1, &Cause::request()).await.expect("nothing is in its way");
}

fn commands(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let folder = TempDir::new().expect("a folder can be made");
    let path = folder.path().join("log.db");
    let store = runtime.block_on(EventStore::open(path.to_str().expect("it is UTF-8"))).expect("the log opens");
    let runner = |id: &str| Runner::<Total>::new(store.clone(), "meters", id, vec![]);
    runtime.block_on(async {
        for id in ["long", "plain"] {
            for _ in 0..N_EVENTS / 1000 {
                let event = |_| NewEvent::of(&Meter::Read { kwh: 1 }, &Metadata::default()).expect("it is JSON");
                let events = (0..1000).map(event).collect();
                store.append(Append::to("meters", id, Expected::Any, events)).await.expect("the append is taken");
            }
        }
        execute(&mut runner("long").with_snapshots()).await;
    });

    let mut group = criterion.benchmark_group(format!("a cold command behind {N_EVENTS} events"));
    group.sample_size(20);
    let mut n = 0;
    group.bench_function("of none: a new aggregate", |bencher| {
        bencher.iter(|| {
            n += 1;
            runtime.block_on(execute(&mut runner(&n.to_string()).with_snapshots()));
        });
    });
    group.bench_function("from a snapshot", |bencher| {
        bencher.iter(|| runtime.block_on(execute(&mut runner("long").with_snapshots())));
    });
    group.sample_size(10);
    group.bench_function("from the beginning", |bencher| {
        bencher.iter(|| runtime.block_on(execute(&mut runner("plain"))));
    });
}
