//! Many plans, many executors, one log: from the first plan to the last plan's end, with every report on disk before it
//! counts. What is lost and what is carried out twice is counted from the log.
//!
//! `cargo bench --bench crew -- [PLANS] [TASKS] [FOLDER]`. The executors do nothing but claim and report, so that what is
//! timed is the bus and the planner; a real one starts processes. One host decides for all plans, as in `crewlog work`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crewlog_executors::claiming::claim_of;
use crewlog_executors::planning::host_all;
use crewlog_executors::plans::planner_of;
use crewlog_mq::{Cause, Envelope, EventStore, Position, Query, Range};
use crewlog_planner::claim::{self, Ending, Executor, TaskCommand, TaskEvent};
use crewlog_planner::event::{self, Command, Event, Outcome, PlannerConfig, plan_tag};
use futures::StreamExt;
use tokio::sync::watch;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How many dispatches one executor has in hand.
const IN_HAND: usize = 16;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let number = |index: usize, default: usize| words.get(index).map_or(Ok(default), |word| word.parse());
    let (n_plans, n_tasks) = (number(0, 100)?, number(1, 20)?);
    let folder = words.get(2).map_or_else(std::env::temp_dir, Into::into);
    println!("{n_plans} plans of {n_tasks} tasks, two after one another and the rest side by side");
    println!("{:<12} {:>10} {:>12} {:>8} {:>8} {:>8}", "executors", "tasks/s", "events/s", "lost", "twice", "refused");
    let runtime = tokio::runtime::Runtime::new()?;
    for n_executors in [1, 4, 16] {
        let folder = tempfile::tempdir_in(&folder)?;
        let url = folder.path().join("log.db").display().to_string();
        let run = runtime.block_on(run(&url, n_plans, n_tasks, n_executors))?;
        let seconds = run.took.as_secs_f64();
        let (tasks, events) = ((n_plans * n_tasks) as f64 / seconds, run.n_events / seconds);
        println!(
            "{n_executors:<12} {tasks:>10.0} {events:>12.0} {:>8} {:>8} {:>8}",
            run.n_lost, run.n_twice, run.n_refused
        );
    }
    Ok(())
}

struct Run {
    took: Duration,
    n_events: f64,
    n_lost: usize,
    n_twice: usize,
    n_refused: usize,
}

async fn run(url: &str, n_plans: usize, n_tasks: usize, n_executors: usize) -> Result<Run, Failure> {
    let store = EventStore::open(url).await?;
    let host = tokio::spawn(host_all(store.clone(), watch::channel(Position(0)).0));
    let mut ends = store.subscribe::<Event>(&Query::stream(event::STREAM).of_type("PlanningCompleted"))?;
    let n_refused = Arc::new(AtomicUsize::new(0));
    let acting = (0..n_executors).map(|n| tokio::spawn(act(store.clone(), format!("e{n}"), n_refused.clone())));
    let acting: Vec<_> = acting.collect();
    let began = Instant::now();
    let plans = futures::stream::iter(0..n_plans).map(|n| begin(&store, n, n_tasks)).buffer_unordered(IN_HAND);
    let begun: Vec<Result<(), Failure>> = plans.collect().await;
    begun.into_iter().collect::<Result<(), Failure>>()?;
    for _ in 0..n_plans {
        let ended = ends.next().await.ok_or("the log ended")??.event;
        if !matches!(ended, Event::PlanningCompleted { outcome: Outcome::Completed, .. }) {
            return Err(format!("a plan ended as {ended:?}").into());
        }
    }
    let took = began.elapsed();
    host.abort();
    for one in acting {
        one.abort();
    }
    let completed = Query::stream(claim::STREAM).of_type("TaskCompleted");
    let mut n_reports: HashMap<String, usize> = HashMap::new();
    for envelope in store.load::<TaskEvent>(&completed, Range::default()).await? {
        *n_reports.entry(envelope.recorded.aggregate_id.to_string()).or_default() += 1;
    }
    Ok(Run {
        took,
        n_events: store.head().await?.0 as f64,
        n_lost: n_plans * n_tasks - n_reports.len(),
        n_twice: n_reports.values().filter(|n| **n > 1).count(),
        n_refused: n_refused.load(Ordering::Relaxed),
    })
}

/// Makes a plan, under a host that is there already.
async fn begin(store: &EventStore, n: usize, n_tasks: usize) -> Result<(), Failure> {
    let steps = (3..=n_tasks).map(|task| format!("{task}. Look at part {task} (depends on 2)\n"));
    let user_input = format!("1. Look at it\n2. Go on (depends on 1)\n{}", steps.collect::<String>());
    let config = PlannerConfig { parallelism: 8, ..PlannerConfig::default() };
    let command = Command::Initialize { user_input, attachments: Vec::new(), config, parallel: false };
    let plan = format!("plan-{n}");
    let mut planner = planner_of(store, &plan, vec![plan_tag(&plan)]).await?;
    let cause = Cause::request().keeping(command.recorded());
    planner.execute(command, &cause).await?;
    Ok(())
}

/// Takes what it can get of all that is dispatched, beside the others, for ever.
async fn act(store: EventStore, name: String, n_refused: Arc<AtomicUsize>) -> Result<(), Failure> {
    let dispatched = store.subscribe::<Event>(&Query::stream(event::STREAM).of_type("TaskDispatched"))?;
    let carry_out = |item: Result<Envelope<Event>, crewlog_mq::Error>| {
        let (store, name, n_refused) = (&store, &name, &n_refused);
        async move {
            let Ok(Envelope { event: Event::TaskDispatched { task_id, attempt, .. }, recorded, .. }) = item else {
                return;
            };
            let plan = recorded.aggregate_id.to_string();
            let mut claim = claim_of(store, &plan, task_id, vec![plan_tag(&plan)]);
            let executor = Executor { name: name.clone(), host: "here".into(), worker: name.clone() };
            let ending = Ending::Completed { result: "seen".into(), run: None };
            let report = TaskCommand::Report { attempt, executor, now: store.now(), dead_epoch: None, ending };
            let cause = Cause::event(&recorded).keeping(report.recorded());
            if claim.execute(report, &cause).await.is_err() {
                n_refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    dispatched.map(carry_out).buffer_unordered(IN_HAND).for_each(async |()| {}).await;
    Ok(())
}
