//! The views on a long log: the first time, when there is no snapshot, and again; then on a log with one plan of 20,000
//! tasks, and a task command on a standing plan of 3,000.
//!
//! `cargo bench --bench lists -- [EVENTS] [FOLDER or postgres://... of an empty schema]`. The log has plans of 322 events; the last 800 have not ended, and
//! have half of them.

use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use crewlog_mq::{Append, Event as MqEvent, EventStore, Expected, Handler, Metadata, NewEvent};
use crewlog_planner::claim::{self, Executor, RunDetails, TaskEvent};
use crewlog_planner::event::{self, Command, Event, PlannerConfig, plan_tag};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Two events of a plan for each task, and two of the task. Open plans have half of them.
const N_TASKS: usize = 80;
const N_EVENTS_OF_PLAN: usize = N_TASKS * 4 + 2;
const N_OPEN: usize = 800;
const N_LARGE: usize = 20_000;
const N_STANDING: usize = 3_000;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let n_events = words.first().map_or(Ok(1_000_000), |word| word.parse::<usize>())?;
    let place = words.get(1);
    let server = place.filter(|place| crewlog_mq::is_postgres_url(place));
    let folder = place.filter(|_| server.is_none()).map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(folder)?;
    // The commands are for the project of their folder.
    std::fs::write(folder.path().join("crewlog.toml"), "project = \"shop\"")?;
    std::env::set_current_dir(folder.path())?;
    let file = folder.path().join("log.db");
    let log = server.map_or_else(|| file.to_str().ok_or("the path is not UTF-8"), |url| Ok(url))?;
    let n_plans = n_events.div_ceil(N_EVENTS_OF_PLAN);
    let runtime = tokio::runtime::Runtime::new()?;
    let n_events = runtime.block_on(fill(log, n_plans, N_TASKS, false))?;
    println!("{n_plans} plans, {} of them open, {n_events} events", n_plans.min(N_OPEN));
    table(log, &["ls", "stats", "leases --conflicts", "agents", "leases", "inbox"])?;
    let large = folder.path().join("large.db");
    let large = large.to_str().ok_or("the path is not UTF-8")?;
    let n_events = runtime.block_on(fill(large, 1, N_LARGE, false))?;
    println!("\na plan of {N_LARGE} tasks, {n_events} events");
    table(large, &["show shop-0", "inbox", "why shop-0/5"])?;
    let standing = folder.path().join("standing.db");
    let standing = standing.to_str().ok_or("the path is not UTF-8")?;
    let n_events = runtime.block_on(fill(standing, 1, N_STANDING, true))?;
    println!("\na standing plan of {N_STANDING} tasks, {n_events} events");
    table(standing, &["task add Look --plan shop-0"])
}

fn table(log: &str, commands: &[&str]) -> Result<(), Failure> {
    println!("{:<28} {:>12} {:>12} {:>12}", "command", "first", "second", "third");
    for command in commands {
        let mut took = Vec::new();
        for _ in 0..3 {
            took.push(format!("{:.1?}", run(log, command)?));
        }
        println!("{command:<28} {:>12} {:>12} {:>12}", took[0], took[1], took[2]);
    }
    Ok(())
}

fn run(log: &str, command: &str) -> Result<Duration, Failure> {
    let mut process = Process::new(env!("CARGO_BIN_EXE_crewlog"));
    let began = Instant::now();
    let status = process.arg("--store").arg(log).args(command.split(' ')).stdout(Stdio::null()).status()?;
    if status.success() { Ok(began.elapsed()) } else { Err(format!("{command}: {status}").into()) }
}

/// Fills a log with plans, each in a few appends.
async fn fill(log: &str, n_plans: usize, n_tasks: usize, standing: bool) -> Result<i64, Failure> {
    let store = EventStore::open(log).await?;
    let text = (1..=n_tasks).map(|n| format!("{n}. Run `cargo test -p shop-{n}`\n")).collect::<String>();
    let config = PlannerConfig { standing, ..PlannerConfig::default() };
    let initialize = Command::of_text(text, config, true).expect("it is a plan");
    let mut planner = Planner::default();
    let mut of_plan = vec![planner.process(initialize)?];
    for n in 1..=n_tasks as u64 {
        let result = "all sums are as they were".to_owned();
        let report = Command::HandleExecutorEvent {
            task: TaskId(n),
            event: TaskEvent::TaskCompleted { attempt: 1, result, epoch: 1, run: None },
        };
        of_plan.push(planner.process(report)?);
    }
    for plan in 0..n_plans {
        let (id, is_open) = (format!("shop-{plan}"), plan + N_OPEN >= n_plans);
        let tags = [plan_tag(&id), "project:shop".to_owned()];
        let n_reports = if is_open { n_tasks / 2 } else { n_tasks };
        for reports in of_plan[..=n_reports].chunks(40) {
            let (mut events, mut of_tasks) = (Vec::new(), Vec::new());
            for reaction in reports {
                let mut cause = Metadata::default();
                for task in reaction.iter().filter_map(ended_task) {
                    let of_task = task_events(&store);
                    let of_task = of_task.iter().map(|event| new_event(event, &tags, &cause));
                    let of_task: Vec<_> = of_task.collect::<Result<_, _>>()?;
                    cause.causation_id = of_task.last().map(NewEvent::event_id);
                    of_tasks.push((task, of_task));
                }
                for event in reaction {
                    events.push(new_event(event, &tags, &cause)?);
                }
            }
            let mut append = Append::to(event::STREAM, &id, Expected::Any, events);
            for (task, events) in of_tasks {
                append = append.and(claim::STREAM, &claim::aggregate_id(&id, task), Expected::NoStream, events);
            }
            store.append(append).await?;
        }
    }
    Ok(store.head().await?.0)
}

fn new_event<E: MqEvent>(event: &E, tags: &[String], cause: &Metadata) -> Result<NewEvent, crewlog_mq::Error> {
    Ok(NewEvent::of(event, cause)?.with_tags(tags.to_vec()))
}

fn ended_task(event: &Event) -> Option<TaskId> {
    match event {
        Event::TaskStatusUpdated { task_id, status, .. } if status.is_end() => Some(*task_id),
        _other => None,
    }
}

fn task_events(store: &EventStore) -> [TaskEvent; 2] {
    let executor = Executor { name: "shell".into(), host: "laptop".into(), worker: "w".into() };
    let (lease_until, result) = (Some(store.now().plus(claim::LEASE)), "all sums are as they were".to_owned());
    let run = RunDetails {
        exit_code: Some(0),
        signal: None,
        duration_ms: 12,
        output_bytes: 25,
        output_is_cut: false,
        output: None,
    };
    [
        TaskEvent::TaskClaimed {
            attempt: 1,
            executor,
            lease_until,
            epoch: 1,
            cut_off: false,
            only_reports: false,
            prompt: None,
        },
        TaskEvent::TaskCompleted { attempt: 1, epoch: 1, result, run: Some(run) },
    ]
}
