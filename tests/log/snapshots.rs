//! Snapshots: they save reads, and never change a result.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

use std::collections::BTreeMap;

use crewlog_mq::{
    Append, CELL_BYTES_MAX, Cause, CellChange, EventStore, Expected, Handler, Position, Prefix, Query, Runner, Snapshot,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Fact, Place, logs, note, notes};
use crewlog_stage::counting::counted;

/// The number of notes of each number, until closed.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct Tally {
    noted: BTreeMap<i64, u64>,
    closed: bool,
}

impl Handler for Tally {
    type Command = Vec<i64>;
    type Event = Fact;
    type Error = String;

    /// Notes the numbers noted fewer than five times; with none left it closes.
    fn decide(&self, numbers: Vec<i64>) -> Result<Vec<Fact>, String> {
        if self.closed {
            return Err("it is closed".into());
        }
        let few = |n: &i64| self.noted.get(n).is_none_or(|count| *count < 5);
        let events = match &*numbers {
            [] => vec![Fact::Closed],
            numbers => numbers.iter().copied().filter(few).map(|n| Fact::Noted { n }).collect::<Vec<_>>(),
        };
        Ok(events)
    }

    fn apply(&mut self, event: &Fact) {
        match event {
            Fact::Noted { n } => *self.noted.entry(*n).or_default() += 1,
            Fact::Closed => self.closed = true,
        }
    }
}

impl Snapshot for Tally {
    const FOLD: &'static str = "tally";
    const VERSION: u32 = 1;
    const EVERY: u64 = 10;
}

const SPACE: &str = "snapshot:tally:1";
const KEY: &str = "[\"tallies\",\"a\"]";

fn tallies(store: &EventStore) -> Runner<Tally> {
    Runner::new(store.clone(), "tallies", "a", vec![]).with_snapshots()
}

async fn with_events(store: &EventStore, n_events: i64) {
    let append = Append::to("tallies", "a", Expected::Any, notes((0..n_events).map(|n| n % 100)));
    store.append(append).await.unwrap();
}

async fn execute(runner: &mut Runner<Tally>, numbers: &[i64]) {
    runner.execute(numbers.to_vec(), &Cause::request()).await.unwrap();
}

/// A runner on the current log, and the number of events it read.
async fn read(store: &EventStore) -> (Runner<Tally>, usize) {
    let (store, counts) = counted(store);
    let mut runner = tallies(&store);
    runner.catch_up().await.unwrap();
    let n_read = counts.take_events();
    check_state(&runner, &store).await;
    (runner, n_read)
}

async fn check_state(runner: &Runner<Tally>, store: &EventStore) {
    let history = store.load_events::<Fact>(&Query::aggregate("tallies", "a"), None).await.unwrap();
    assert_eq!(*runner.handler(), Tally::fold(&history));
    assert_eq!(runner.sequence(), history.len() as i64);
    assert_eq!(runner.position(), store.head().await.unwrap());
}

#[tokio::test]
async fn reading_a_long_aggregate_from_a_snapshot_costs_only_its_tail() {
    for (store, _place) in logs().await {
        with_events(&store, 5000).await;
        let (_, n_read) = read(&store).await;
        assert_eq!(n_read, 5000);
        assert_eq!(store.stats().await.unwrap().n_cells, 1, "reading keeps it, and appends no event");
        assert_eq!(store.head().await.unwrap(), Position(5000));

        let (counted, counts) = counted(&store);
        execute(&mut tallies(&counted), &[1000, 1001]).await;
        assert_eq!((counts.take_events(), counts.take_appends()), (1, 1), "its last event is looked up");
        // The last event of the snapshot is looked up, and the tail is read.
        assert_eq!(read(&store).await.1, 1 + 2);
        with_events(&store, 3).await;
        assert_eq!(read(&store).await.1, 1 + 5);
    }
}

#[tokio::test]
async fn a_refused_command_or_one_without_events_writes_a_snapshot_too() {
    for numbers in [vec![1], vec![]] {
        let store = EventStore::in_memory().await.unwrap();
        store.append(Append::to("tallies", "a", Expected::Any, notes([1; 20]))).await.unwrap();
        if numbers.is_empty() {
            execute(&mut Runner::new(store.clone(), "tallies", "a", vec![]), &[]).await;
        }
        let mut runner = tallies(&store);
        for _ in 0..3 {
            let executed = runner.execute(numbers.clone(), &Cause::request()).await;
            assert_eq!(executed.is_err(), numbers.is_empty());
        }
        assert_eq!(store.stats().await.unwrap().n_cells, 1);
        assert_eq!(read(&store).await.1, 1);
    }
}

#[tokio::test]
async fn snapshots_are_written_at_the_expected_interval() {
    let store = EventStore::in_memory().await.unwrap();
    let mut runner = tallies(&store);
    let mut last_version = None;
    let mut n_written = 0;
    for n in 0..100 {
        execute(&mut runner, &[n % 7, 100 + n]).await;
        let version = store.cell(SPACE, KEY).await.unwrap().map(|cell| cell.version);
        n_written += usize::from(version != last_version);
        last_version = version;
        assert!(read(&store).await.1 <= 20, "the tail stays short");
    }
    assert!((5..=20).contains(&n_written), "{n_written} of 170 events or so");
}

#[tokio::test]
async fn a_large_state_is_snapshotted_less_often() {
    let store = EventStore::in_memory().await.unwrap();
    store.append(Append::to("tallies", "a", Expected::Any, notes(0..4000))).await.unwrap();
    let mut runner = tallies(&store);
    let mut versions = std::collections::BTreeSet::new();
    for n in 0..100 {
        execute(&mut runner, &[5000 + n]).await;
        versions.insert(store.cell(SPACE, KEY).await.unwrap().unwrap().version);
    }
    let n_bytes = store.cell(SPACE, KEY).await.unwrap().unwrap().value.len();
    assert!(n_bytes > 30_000 && versions.len() == 1, "{n_bytes} bytes, {} times", versions.len());
}

/// Reads with a cell different from the one that a runner left there.
async fn read_with(store: &EventStore, change: impl FnOnce(&mut Value)) -> usize {
    let cell = store.cell(SPACE, KEY).await.unwrap().unwrap();
    let lines: Vec<Value> = cell.value.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut value = json!({ "head": lines[0], "state": lines[1] });
    change(&mut value);
    let put = |value: String| store.append(Append::default().cell(CellChange::set(SPACE, KEY, value)));
    put(format!("{}\n{}", value["head"], value["state"])).await.unwrap();
    let (_, n_read) = read(store).await;
    put(cell.value).await.unwrap();
    n_read
}

#[tokio::test]
async fn a_snapshot_of_another_log_or_an_unreadable_one_is_ignored() {
    let store = EventStore::in_memory().await.unwrap();
    with_events(&store, 100).await;
    execute(&mut tallies(&store), &[1]).await;
    assert_eq!(read_with(&store, |_| ()).await, 2);
    let spoilt: [fn(&mut Value); 9] = [
        |value| value["head"]["log"] = json!("00000000-0000-0000-0000-000000000000"),
        |value| value["head"]["last"]["event_id"] = json!("00000000-0000-0000-0000-000000000000"),
        |value| value["head"]["last"]["position"] = json!(1_000_000),
        |value| value["head"]["last"]["position"] = json!(i64::MIN),
        |value| value["head"]["last"]["position"] = json!(99),
        |value| value["head"]["last"]["sequence"] = json!(99),
        |value| value["state"] = json!({ "noted": 1 }),
        |value| value["state"] = Value::Null,
        |value| *value = json!("something else"),
    ];
    for (n, spoil) in spoilt.into_iter().enumerate() {
        assert!((101..=102).contains(&read_with(&store, spoil).await), "spoilt in way {n}");
    }
}

#[tokio::test]
async fn a_snapshot_ahead_of_a_restored_log_is_ignored() {
    let (place, store) = (Place::new(), EventStore::in_memory().await.unwrap());
    with_events(&store, 100).await;
    execute(&mut tallies(&store), &[1]).await;
    let ahead = store.cell(SPACE, KEY).await.unwrap().unwrap().value;
    // The same log up to a point, which then diverged.
    let restored = place.open().await;
    let backup = super::everything(&store).await.into_iter().take(90).map(Ok).collect::<Vec<_>>();
    restored.import(store.log().await.unwrap(), backup.into_iter()).await.unwrap();
    restored.append(Append::default().cell(CellChange::set(SPACE, KEY, ahead.clone()))).await.unwrap();
    assert_eq!(read(&restored).await.1, 90);
    with_events(&restored, 20).await;
    restored.append(Append::default().cell(CellChange::set(SPACE, KEY, ahead))).await.unwrap();
    assert_eq!(read(&restored).await.1, 111, "another event stands where the snapshot ends");
}

/// The same state, as interpreted by a newer program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Newer(Tally);

impl Handler for Newer {
    type Command = Vec<i64>;
    type Event = Fact;
    type Error = String;

    fn decide(&self, numbers: Vec<i64>) -> Result<Vec<Fact>, String> {
        self.0.decide(numbers)
    }

    fn apply(&mut self, event: &Fact) {
        self.0.apply(event);
    }
}

impl Snapshot for Newer {
    const FOLD: &'static str = "tally";
    const VERSION: u32 = 2;
    const EVERY: u64 = 10;
}

#[tokio::test]
async fn a_snapshot_of_another_version_is_ignored() {
    let store = EventStore::in_memory().await.unwrap();
    with_events(&store, 100).await;
    execute(&mut tallies(&store), &[1]).await;
    let (counted, counts) = counted(&store);
    let newer = || Runner::<Newer>::new(counted.clone(), "tallies", "a", vec![]).with_snapshots();
    newer().execute(vec![2], &Cause::request()).await.unwrap();
    assert_eq!(counts.take_events(), 101);
    newer().catch_up().await.unwrap();
    assert_eq!(counts.take_events(), 2);
    assert_eq!(read(&store).await.1, 3, "and the older program has its own");
}

/// A state larger than a cell may be.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Large(String);

impl Handler for Large {
    type Command = ();
    type Event = Fact;
    type Error = String;

    fn decide(&self, (): ()) -> Result<Vec<Fact>, String> {
        Ok(vec![Fact::Closed])
    }

    fn apply(&mut self, _: &Fact) {
        self.0 = "x".repeat(CELL_BYTES_MAX);
    }
}

impl Snapshot for Large {
    const FOLD: &'static str = "large";
    const VERSION: u32 = 1;
    const EVERY: u64 = 1;
}

#[tokio::test]
async fn an_oversized_snapshot_is_dropped_without_failing_the_command() {
    let store = EventStore::in_memory().await.unwrap();
    let mut runner = Runner::<Large>::new(store.clone(), "tallies", "a", vec![]).with_snapshots();
    for _ in 0..3 {
        runner.execute((), &Cause::request()).await.unwrap();
    }
    let long = "x".repeat(500);
    let mut runner = Runner::<Tally>::new(store.clone(), &long, &long, vec![]).with_snapshots();
    for n in 0..20 {
        execute(&mut runner, &[n]).await;
    }
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.head, stats.n_cells), (Position(23), 0));
}

/// Possible events between two commands.
#[derive(Debug, Clone)]
enum Deed {
    Execute(Vec<i64>),
    /// By a writer without snapshots.
    Append(Vec<i64>),
    ForgetSnapshots,
    /// The runner's process ends.
    Restart,
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let numbers = || prop::collection::vec(0..40i64, 1..8);
    prop_oneof![
        6 => numbers().prop_map(Deed::Execute),
        3 => numbers().prop_map(Deed::Append),
        1 => Just(Deed::ForgetSnapshots),
        2 => Just(Deed::Restart),
    ]
}

/// The results of the commands, and the state after each.
async fn carry_out(deeds: &[Deed], runner_of: fn(&EventStore) -> Runner<Tally>) -> Vec<(usize, Tally)> {
    let store = EventStore::in_memory().await.unwrap();
    let mut runner = runner_of(&store);
    let mut seen = Vec::new();
    for deed in deeds {
        match deed {
            Deed::Execute(numbers) => {
                let executed = runner.execute(numbers.clone(), &Cause::request()).await.unwrap();
                seen.push((executed.events.len(), runner.handler().clone()));
            }
            Deed::Append(numbers) => {
                let events = numbers.iter().copied().map(note).collect();
                store.append(Append::to("tallies", "a", Expected::Any, events)).await.unwrap();
            }
            Deed::ForgetSnapshots => {
                let cells = store.cells(SPACE, "", 10).await.unwrap();
                for cell in cells {
                    store.append(Append::default().cell(CellChange::delete(SPACE, &cell.key))).await.unwrap();
                }
            }
            Deed::Restart => runner = runner_of(&store),
        }
    }
    runner.catch_up().await.unwrap();
    check_state(&runner, &store).await;
    seen
}

#[test]
fn deleting_snapshots_never_changes_a_result() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut tests = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let deeds = prop::collection::vec(any_deed(), 1..30);
    let outcome = tests.run(&deeds, |deeds| {
        let with = runtime.block_on(carry_out(&deeds, tallies));
        let without = |store: &EventStore| Runner::new(store.clone(), "tallies", "a", vec![]);
        prop_assert_eq!(with, runtime.block_on(carry_out(&deeds, without)));
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[tokio::test]
async fn a_snapshot_includes_the_folded_prefix() {
    let store = EventStore::in_memory().await.unwrap();
    store.append(Append::to("tallies", "before", Expected::Any, notes([5; 20]))).await.unwrap();
    let prefix = || vec![Prefix { query: Query::aggregate("tallies", "before"), up_to: Position(20) }];
    let mut runner = tallies(&store).behind(prefix());
    execute(&mut runner, &[1]).await;
    execute(&mut runner, &[2]).await;
    assert_eq!(store.stats().await.unwrap().n_cells, 1, "the events of the prefix count");
    let (counted, counts) = counted(&store);
    let mut again = tallies(&counted).behind(prefix());
    again.catch_up().await.unwrap();
    assert_eq!(again.handler(), runner.handler());
    assert!(counts.take_events() <= 2, "the prefix is not read again");
}
