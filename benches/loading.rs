//! From the log to a plan: reads a plan of 1,500 events from an SQLite file, for display and for its planner; forks one
//! of 10,000.

use crewlog_executors::claiming::claim_of;
use crewlog_executors::history::History;
use crewlog_executors::planning;
use crewlog_executors::plans;
use crewlog_mq::{Append, Cause, EventStore, Expected, Handler, Metadata, NewEvent, Query, Range, Recorded, Runner};
use crewlog_planner::claim::{Claim, Ending, Executor, TaskCommand};
use crewlog_planner::event::{Command, Event, PlannerConfig, STREAM, TaskEvent, plan_tag};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use crewlog_planner::view::PlanView;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::TryStreamExt;
use tempfile::TempDir;
use tokio::runtime::Runtime;

criterion_group!(benches, loading, forking);
criterion_main!(benches);

/// The number of events of the plan.
const N_EVENTS: usize = 1_500;
/// The number of events of the forked plan.
const N_EVENTS_BEFORE_FORK: usize = 10_000;
/// The kinds of tasks in a plan.
const SORTS: [(&str, &str); 2] = [("commands", "Run `cargo test -p shop-N`"), ("agents", "Move table N of the shop")];

/// The events of a plan, from its text to its last report.
fn events(n_events: usize, task: &str) -> Vec<Event> {
    let text = (1..=n_events / 2).map(|n| format!("{n}. {}\n", task.replace('N', &n.to_string())));
    let initialize = Command::of_text(text.collect(), PlannerConfig::default(), true).expect("it is a plan");
    let mut planner = Planner::default();
    let mut events = planner.process(initialize).expect("it is a plan");
    for n in (1..).take_while(|n| *n <= n_events as u64 / 2) {
        let result = "all sums are as they were".to_owned();
        let report = Command::HandleExecutorEvent {
            task: TaskId(n),
            event: TaskEvent::TaskCompleted { attempt: 1, result, epoch: 1, run: None },
        };
        events.extend(planner.process(report).expect("it runs"));
    }
    // The plan continues.
    events.truncate(n_events);
    events
}

/// A log with one plan.
async fn filled(folder: &TempDir, plan: &str, events: &[Event]) -> EventStore {
    let path = folder.path().join(format!("{plan}.db"));
    let store = EventStore::open(path.to_str().expect("it is UTF-8")).await.expect("the log opens");
    let tags = [plan_tag(plan)];
    for some in events.chunks(100) {
        let new = |event| NewEvent::of(event, &Metadata::default()).expect("it is JSON").with_tags(tags.clone());
        let append = Append::to(STREAM, plan, Expected::Any, some.iter().map(new).collect());
        store.append(append).await.expect("the append is taken");
    }
    store
}

/// The handled reports of the plan, as events of its tasks.
async fn report(store: &EventStore, plan: &str, events: &[Event]) {
    for event in events {
        let Event::TaskStatusUpdated { task_id, result: Some(result), .. } = event else { continue };
        let executor = Executor { name: "e".into(), host: "here".into(), worker: "e".into() };
        let ending = Ending::Completed { result: result.clone(), run: None };
        let report =
            TaskCommand::Report { claim: Claim { attempt: 1, executor, now: store.now(), ..Claim::default() }, ending };
        let mut claim = claim_of(store, plan, *task_id, vec![plan_tag(plan)]);
        claim.execute(report, &Cause::request()).await.expect("nobody else has the task");
    }
}

async fn records(store: &EventStore, plan: &str) -> Vec<Recorded> {
    let history = History::of(store, plan).await.expect("the log is read");
    history.records(store, &Query::all(), Range::default()).try_collect().await.expect("the log is read")
}

async fn view(store: &EventStore, plan: &str) -> PlanView {
    let history = History::of(store, plan).await.expect("the log is read");
    let mut view = PlanView::default();
    let mut records = std::pin::pin!(history.records(store, &Query::all(), Range::default()));
    while let Some(recorded) = records.try_next().await.expect("the log is read") {
        view.apply(&recorded).expect("it is an event of a plan");
    }
    view
}

async fn planner(store: &EventStore, plan: &str) -> Runner<Planner> {
    planning::catch_up(store, plan, vec![plan_tag(plan)]).await.expect("the log is read")
}

fn loading(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let folder = TempDir::new().expect("a folder can be made");
    for (sort, task) in SORTS {
        let events = events(N_EVENTS, task);
        let n_bytes = events.iter().map(|event| serde_json::to_vec(event).map_or(0, |data| data.len())).sum::<usize>();
        println!("{N_EVENTS} events of {} bytes each", n_bytes / events.len());
        let store = runtime.block_on(filled(&folder, sort, &events));
        let recorded = runtime.block_on(records(&store, sort));
        let decode = |recorded: &Recorded| recorded.decode::<Event>().expect("it is an event of a plan");

        let mut group = criterion.benchmark_group(format!("a plan of {N_EVENTS} events, of {sort}"));
        group.throughput(Throughput::Elements(events.len() as u64));
        group.bench_function("to a view", |bencher| {
            bencher.iter_with_large_drop(|| runtime.block_on(view(&store, sort)));
        });
        group.bench_function("to a planner that can go on", |bencher| {
            bencher.iter_with_large_drop(|| runtime.block_on(planner(&store, sort)));
        });
        group.bench_function("of that: to read them", |bencher| {
            bencher.iter_with_large_drop(|| runtime.block_on(records(&store, sort)));
        });
        group.bench_function("of that: to decode them", |bencher| {
            bencher.iter_with_large_drop(|| recorded.iter().map(decode).collect::<Vec<_>>());
        });
        group
            .bench_function("of that: to fold them", |bencher| bencher.iter_with_large_drop(|| Planner::fold(&events)));
        runtime.block_on(report(&store, sort, &events));
        group.bench_function("with the events of its tasks: to a view", |bencher| {
            bencher.iter_with_large_drop(|| runtime.block_on(view(&store, sort)));
        });
        group.bench_function("with the events of its tasks: to a planner that can go on", |bencher| {
            bencher.iter_with_large_drop(|| runtime.block_on(planner(&store, sort)));
        });
        group.finish();
    }
}

/// The cost of forking a plan with a long history: in total, and for the decision and its append.
fn forking(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let folder = TempDir::new().expect("a folder can be made");
    for (sort, task) in SORTS {
        let plan = format!("long-{sort}");
        let store = runtime.block_on(filled(&folder, &plan, &events(N_EVENTS_BEFORE_FORK, task)));
        let mut n_forks = 0;
        let mut next = || {
            n_forks += 1;
            format!("fork-{n_forks}")
        };
        let mut group = criterion.benchmark_group(format!("a fork behind {N_EVENTS_BEFORE_FORK} events, of {sort}"));
        group.sample_size(20);
        group.bench_function("all of it", |bencher| {
            bencher.iter_with_large_drop(|| {
                runtime.block_on(async {
                    let (mut runner, command) = fork(&store, &plan, &next()).await;
                    runner.execute(command, &Cause::request()).await.expect("nothing is in its way");
                    runner
                })
            });
        });
        group.bench_function("the decision and its append", |bencher| {
            bencher.iter_batched(
                || {
                    runtime.block_on(async {
                        let (mut runner, command) = fork(&store, &plan, &next()).await;
                        runner.catch_up().await.expect("the log is read");
                        (runner, command)
                    })
                },
                |(mut runner, command)| {
                    let forked = runtime.block_on(runner.execute(command, &Cause::request()));
                    (forked.expect("nothing is in its way").events.len(), runner)
                },
                criterion::BatchSize::PerIteration,
            );
        });
        group.finish();
    }
}

/// The planner of a fork at the plan's end, and the command that makes it one.
async fn fork(store: &EventStore, plan: &str, fork: &str) -> (Runner<Planner>, Command) {
    let history = History::of(store, plan).await.expect("the log is read");
    let head = store.head().await.expect("the log is read");
    let point = history.fork_point(store, head).await.expect("the log is read").expect("the plan has begun");
    let runner = plans::planner_of_fork(store, &point, fork, vec![plan_tag(fork)]);
    let command = Command::Fork {
        parent: point.parent,
        at: point.at,
        reason: String::new(),
        pauses: false,
        amendments: Vec::new(),
    };
    (runner, command)
}
