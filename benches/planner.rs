//! Deciding and folding plans of many shapes and sizes: what a command and an event cost on one core.
//!
//! A plain table and no statistics of their own: each figure is the least and the median of several runs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, Event, ExecutorEvent, PlannerCmd, PlannerConfig};
use crewlog_planner::plan::{Dependency, NodeKind, Strength, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;

/// So many tasks the plans have.
const SIZES: [u64; 4] = [100, 1_000, 10_000, 100_000];
/// In so many runs.
const N_RUNS: usize = 5;

/// The tasks that one waits for, by its number.
type Shape = fn(u64) -> Vec<u64>;

fn main() {
    // Tasks without a command are told what has happened, which costs as much as the token budget lets them be told.
    let shapes: [(&str, Shape, NodeKind); 6] = [
        ("list", |_| vec![], NodeKind::ToolCall),
        ("chain", |n| vec![n.saturating_sub(1)], NodeKind::ToolCall),
        ("fan", |n| if n == 1 { vec![] } else { vec![1] }, NodeKind::ToolCall),
        ("diamonds", diamond, NodeKind::ToolCall),
        ("questions", |_| vec![], NodeKind::Clarification),
        ("told", |_| vec![], NodeKind::Processing),
    ];
    println!("{:<10} {:>7}  {:>22}  {:>22}", "", "tasks", "commands/s max, median", "events/s max, median");
    for (name, before, kind) in shapes {
        let sizes = if kind == NodeKind::Processing { &SIZES[..2] } else { &SIZES[..] };
        for n_tasks in sizes.iter().copied() {
            let begun = begin(n_tasks, before, kind);
            let (commands, events) = course(&begun);
            let deciding = runs(|| {
                let (mut planner, commands) = (begun.1.clone(), commands.clone());
                let start = Instant::now();
                for command in commands {
                    black_box(planner.process(command).expect("it is due"));
                }
                start.elapsed()
            });
            let folding = runs(|| {
                let start = Instant::now();
                let planner = black_box(Planner::fold(black_box(&events)));
                let time = start.elapsed();
                // To forget a plan is no part of folding it.
                drop(planner);
                time
            });
            println!(
                "{name:<10} {n_tasks:>7}  {}  {}",
                rates(commands.len(), &deciding),
                rates(events.len(), &folding)
            );
        }
    }
}

/// One, two beside each other after it, and one after both.
fn diamond(n: u64) -> Vec<u64> {
    match n % 3 {
        1 => vec![n.saturating_sub(1), n.saturating_sub(2)],
        2 => vec![n - 1],
        _ => vec![n - 2],
    }
}

/// A plan whose first tasks are dispatched, and its events so far.
fn begin(n_tasks: u64, before: Shape, kind: NodeKind) -> (Vec<Event>, Planner) {
    let tasks = (1..=n_tasks).map(|n| {
        let mut task = TaskPlan::new(TaskId(n), kind, format!("Do what part {n} of the work wants?"));
        task.command = (kind == NodeKind::ToolCall).then(|| format!("cargo test -p part-{n}"));
        let earlier = before(n).into_iter().filter(|other| (1..n).contains(other));
        task.depends_on = earlier.map(|other| Dependency { task: TaskId(other), strength: Strength::Hard }).collect();
        task.depends_on.sort_unstable();
        task.depends_on.dedup();
        task
    });
    let planned = Event::TasksPlanned {
        tasks: tasks.collect(),
        title: None,
        source: String::new(),
        config: Box::new(PlannerConfig::default()),
        context: Vec::new(),
        attachments: Vec::new(),
        origin: Default::default(),
    };
    let mut events = vec![planned];
    let mut planner = Planner::fold(&events);
    events.extend(planner.process(Command::Continue).expect("it begins"));
    (events, planner)
}

/// The reports that bring a plan to its end, and all its events.
fn course((events, planner): &(Vec<Event>, Planner)) -> (Vec<Command>, Vec<Event>) {
    let (mut events, mut planner) = (events.clone(), planner.clone());
    let mut commands = Vec::new();
    let mut at = 0;
    while let Some(event) = events.get(at) {
        at += 1;
        let report = match event {
            Event::TaskDispatched { task_id, attempt, command: PlannerCmd::ExecuteTask { .. }, .. } => {
                ExecutorEvent::TaskCompleted { node_id: *task_id, attempt: *attempt, result: "test result: ok".into() }
            }
            Event::ClarificationRequested { task_id, question_id, .. } => ExecutorEvent::ClarificationProvided {
                node_id: *task_id,
                question_id: *question_id,
                answer: "As it was before".into(),
            },
            _ => continue,
        };
        let command = Command::HandleExecutorEvent(report);
        events.extend(planner.process(command.clone()).expect("it is due"));
        commands.push(command);
    }
    (commands, events)
}

fn runs(mut run: impl FnMut() -> Duration) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..N_RUNS).map(|_| run()).collect();
    times.sort_unstable();
    times
}

/// How many a second in the best run and in the middle one.
fn rates(n: usize, times: &[Duration]) -> String {
    let rate = |time: Duration| n as f64 / time.as_secs_f64();
    format!("{:>10.0} {:>11.0}", rate(times[0]), rate(times[times.len() / 2]))
}
