//! Tasks per second, with every report on disk before it counts: commands of one plan, commands of many plans, and empty
//! tasks. Lost and repeated tasks are counted from the log.
//!
//! `cargo bench --bench crew -- [FOLDER]`. The folder determines the disk. Commands are run by the program. Empty tasks
//! are reported by executors in this process, the members of one group; another host in it runs the planner.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use crewlog_executors::planning::host_all;
use crewlog_executors::plans::planner_of;
use crewlog_mq::{Cause, Error, EventStore, Expected, Handler, NewEvent, Position, Query, Range, group_handler};
use crewlog_planner::claim::{self, Claim, Ending, Executor, TaskCommand, TaskEvent, TaskLease};
use crewlog_planner::event::{self, Command, Event, Outcome, PlannerConfig, plan_tag};
use futures::StreamExt;
use tokio::sync::watch;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const N_PLANS: usize = 200;
const N_TASKS: usize = 20;
/// The partitions of the executors' group, and the number of plans that are created concurrently.
const PARTITIONS: u16 = 16;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let folder = words.first().map_or_else(std::env::temp_dir, Into::into);
    commands(&folder)?;
    println!("\n{N_PLANS} plans of {N_TASKS} tasks that do nothing, two after one another and the rest side by side");
    println!("{:<12} {:>10} {:>12} {:>8} {:>8}", "executors", "tasks/s", "events/s", "lost", "twice");
    let runtime = tokio::runtime::Runtime::new()?;
    for n_executors in [1, 16] {
        let folder = tempfile::tempdir_in(&folder)?;
        let url = folder.path().join("log.db").display().to_string();
        let run = runtime.block_on(run(&url, n_executors))?;
        let seconds = run.took.as_secs_f64();
        let (tasks, events) = ((N_PLANS * N_TASKS) as f64 / seconds, run.n_events / seconds);
        println!("{n_executors:<12} {tasks:>10.0} {events:>12.0} {:>8} {:>8}", run.n_lost, run.n_twice);
    }
    Ok(())
}

/// Commands, run by the program.
fn commands(folder: &Path) -> Result<(), Failure> {
    let folder = tempfile::tempdir_in(folder)?;
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text);
    write("list.md", (1..=40).map(|n| format!("{n}. Run `true`\n")).collect())?;
    write("wide.md", "- Run `true`\n".repeat(2_000))?;
    write("plan.md", "- Run `sleep 0.01`\n".repeat(N_TASKS))?;
    let crewlog = |words: &str| -> Result<Duration, Failure> {
        let mut program = Program::new(env!("CARGO_BIN_EXE_crewlog"));
        program.args(words.split(' ')).current_dir(folder.path()).stdout(Stdio::null());
        let began = Instant::now();
        let status = program.status()?;
        if status.success() { Ok(began.elapsed()) } else { Err(format!("{words}: {status}").into()) }
    };
    let print = |what: &str, n: usize, took: Duration| {
        println!("{what:<60} {:>7.2} s {:>7.0} tasks/s", took.as_secs_f64(), n as f64 / took.as_secs_f64());
    };
    print("40 commands `true`, one after another", 40, crewlog("run list.md -yq --store list.db")?);
    print("2,000 commands `true`, 8 at once", 2_000, crewlog("run wide.md --parallel -j 8 -yq --store wide.db")?);
    for _ in 0..N_PLANS {
        crewlog("run plan.md --parallel --detach -yq --store plans.db")?;
    }
    let what = "200 plans of 20 commands of 10 ms, one worker, 16 at once";
    print(what, N_PLANS * N_TASKS, crewlog("work --until-idle -j 16 -q --store plans.db")?);
    Ok(())
}

struct Run {
    took: Duration,
    n_events: f64,
    n_lost: usize,
    n_twice: usize,
}

async fn run(url: &str, n_executors: usize) -> Result<Run, Failure> {
    let store = EventStore::open(url).await?;
    let host = tokio::spawn(host_all(store.clone(), watch::channel(Position(0)).0));
    let mut ends = store.subscribe::<Event>(&Query::stream(event::STREAM).of_type("PlanningCompleted"))?;
    let acting: Vec<_> = (0..n_executors).map(|n| tokio::spawn(act(store.clone(), n))).collect();
    let began = Instant::now();
    let plans = futures::stream::iter(0..N_PLANS).map(|n| begin(&store, n)).buffer_unordered(PARTITIONS.into());
    let begun: Vec<Result<(), Failure>> = plans.collect().await;
    begun.into_iter().collect::<Result<(), Failure>>()?;
    for _ in 0..N_PLANS {
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
        n_lost: N_PLANS * N_TASKS - n_reports.len(),
        n_twice: n_reports.values().filter(|n| **n > 1).count(),
    })
}

/// Creates a plan, which a running host plans.
async fn begin(store: &EventStore, n: usize) -> Result<(), Failure> {
    let steps = (3..=N_TASKS).map(|task| format!("{task}. Look at part {task} (depends on 2)\n"));
    let user_input = format!("1. Look at it\n2. Go on (depends on 1)\n{}", steps.collect::<String>());
    let config = PlannerConfig { parallelism: 8, ..PlannerConfig::default() };
    let command = Command::of_text(user_input, config, false).expect("it is a plan");
    let plan = format!("plan-{n}");
    let mut planner = planner_of(store, &plan, vec![plan_tag(&plan)]).await?;
    let cause = Cause::request().keeping(command.recorded());
    planner.execute(command, &cause).await?;
    Ok(())
}

/// Reports its share of the dispatched tasks as done, forever. The report and the acknowledgement are one append.
async fn act(store: EventStore, n: usize) -> Result<(), Failure> {
    let dispatched = Query::stream(event::STREAM).of_type("TaskDispatched");
    let now = store.now();
    let handler = group_handler(move |dispatch, delivery| {
        Box::pin(async move {
            let Event::TaskDispatched { task_id, attempt, .. } = dispatch.decode()? else { return Ok(()) };
            let executor = Executor { name: format!("e{n}"), host: "here".into(), worker: n.to_string() };
            let ending = Ending::Completed { result: "seen".into(), run: None };
            let report = TaskCommand::Report { claim: Claim { attempt, executor, now, ..Claim::default() }, ending };
            let task = claim::aggregate_id(&dispatch.aggregate_id, task_id);
            let metadata = Cause::event(dispatch).metadata().clone();
            let events = TaskLease::default().process(report)?;
            let events =
                events.iter().map(|event| Ok(NewEvent::of(event, &metadata)?.with_tags(dispatch.tags.clone())));
            delivery.write(claim::STREAM, &task, Expected::NoStream, events.collect::<Result<_, Error>>()?);
            Ok(())
        })
    });
    store.group("executors").query(dispatched).partitions(PARTITIONS).run(handler).await?;
    Ok(())
}
