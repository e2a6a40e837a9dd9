//! Deciding and folding plans of many shapes and sizes: the cost of a command and of an event on one core.
//!
//! A plain table: each figure is the least and the median of several runs. An argument selects the rows that contain it
//! in their name.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

use crewlog_mq::Handler;
use crewlog_planner::event::{
    Amendment, Command, Event, FailureClass, Order, PlannerCmd, PlannerConfig, Setting, TaskEvent,
};
use crewlog_planner::plan::{Dependency, NodeKind, Strength, TaskId, TaskPlan};
use crewlog_planner::planner::Planner;
use crewlog_planner::prompt::render;

/// The numbers of tasks of the plans.
const SIZES: [u64; 4] = [100, 1_000, 10_000, 100_000];
/// The prompts of larger plans, all at once, need more than the memory.
const AGENTS_FOLDED_MAX: u64 = 10_000;
/// The number of runs; the largest plans have fewer.
const N_RUNS: usize = 5;
const N_RUNS_OF_LARGEST: usize = 3;

/// The dependencies of a task, by its number.
type Shape = fn(u64) -> Vec<u64>;

fn main() {
    let shapes: [(&str, Shape); 4] = [
        ("list", |_| vec![]),
        ("chain", |n| vec![n.saturating_sub(1)]),
        ("fan", |n| if n == 1 { vec![] } else { vec![1] }),
        ("diamonds", diamond),
    ];
    // Prompts for agents hold history and open tasks; commands get only their own input.
    let kinds =
        [("commands", NodeKind::ToolCall), ("agents", NodeKind::Processing), ("questions", NodeKind::Clarification)];
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    println!("{:<20} {:>7}  {:>22}  {:>22}", "", "tasks", "commands/s max, median", "events/s max, median");
    if "orders".contains(&wanted) {
        // One task less than the maximum, for the one that is added.
        for n_tasks in [SIZES[0], SIZES[3] - 1] {
            [Order::Place, Order::CriticalPath].into_iter().for_each(|order| measure_orders(n_tasks, order));
        }
    }
    if "prompts".contains(&wanted) {
        SIZES.into_iter().for_each(measure_prompts);
    }
    for (of, kind) in kinds {
        for (shape, before) in shapes {
            let name = format!("{shape} of {of}");
            for n_tasks in SIZES.into_iter().filter(|_| name.contains(&wanted)) {
                measure(&name, n_tasks, before, kind);
            }
        }
    }
}

fn measure(name: &str, n_tasks: u64, before: Shape, kind: NodeKind) {
    let n_runs = if n_tasks == SIZES[SIZES.len() - 1] { N_RUNS_OF_LARGEST } else { N_RUNS };
    let begun = begin(n_tasks, before, kind);
    let is_folded = kind != NodeKind::Processing || n_tasks <= AGENTS_FOLDED_MAX;
    let (commands, events) = course(&begun, is_folded);
    let deciding = runs(n_runs, || {
        let (mut planner, commands) = (begun.1.clone(), commands.clone());
        let start = Instant::now();
        for command in commands {
            black_box(planner.process(command).expect("it is due"));
        }
        start.elapsed()
    });
    let folding = is_folded.then(|| {
        runs(n_runs, || {
            let start = Instant::now();
            let planner = black_box(Planner::fold(black_box(&events)));
            let time = start.elapsed();
            // Dropping a plan is not part of folding it.
            drop(planner);
            time
        })
    });
    let folded = folding.map_or_else(String::new, |times| rates(events.len(), &times));
    println!("{name:<20} {n_tasks:>7}  {}  {folded}", rates(commands.len(), &deciding));
}

/// The cost of one order of a person in a large plan: retrying a task, and adding one.
fn measure_orders(n_tasks: u64, order: Order) {
    let (_, mut begun) = begin(n_tasks, diamond, NodeKind::ToolCall);
    begun
        .process(Command::Configure { changes: vec![Setting::Order(order)], reason: String::new() })
        .expect("it is a setting");
    let (node_id, attempt, class) = (TaskId(1), 1, FailureClass::Task);
    let failed = Command::HandleExecutorEvent {
        task: node_id,
        event: TaskEvent::TaskFailed { attempt, error: "it is broken".into(), class, epoch: 1, run: None },
    };
    let mut broken = begin(n_tasks, |_| vec![], NodeKind::ToolCall).1;
    broken.process(failed).expect("it is due");
    let add = Amendment::Add { text: "Run `true`".into(), after: vec![TaskId(2)], before: vec![TaskId(n_tasks)] };
    let orders = [
        ("retry of one", broken, Command::Retry { task: Some(TaskId(1)) }),
        ("one added", begun, Command::Amend { amendments: vec![add], reason: String::new() }),
    ];
    for (name, planner, order_given) in orders {
        let times = runs(N_RUNS, || {
            let (mut planner, command) = (planner.clone(), order_given.clone());
            let start = Instant::now();
            black_box(planner.process(command).expect("it can be done"));
            let time = start.elapsed();
            drop(planner);
            time
        });
        println!("{name}, order {order:?}: {n_tasks} tasks, {:?} {:?}", times[0], times[times.len() / 2]);
    }
}

/// The prompt of a task in the middle of a plan for agents.
fn measure_prompts(n_tasks: u64) {
    let (mut to_see, mut planner) = begin(n_tasks, diamond, NodeKind::Processing);
    let mut n_left = n_tasks / 2;
    while let Some(event) = to_see.pop().filter(|_| n_left > 0) {
        if let Some(report) = report_on(&event) {
            to_see.extend(planner.process(report).expect("it is due"));
            n_left -= 1;
        }
    }
    let state = planner.state();
    let task = state.dispatched().next().expect("one is dispatched");
    let times = runs(N_RUNS, || {
        let start = Instant::now();
        black_box(render(black_box(state), task).expect("it is for an agent"));
        start.elapsed()
    });
    println!("prompts: {n_tasks} tasks, {:?} {:?}", times[0], times[times.len() / 2]);
}

/// One task, two parallel ones after it, and one after both.
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
    let mut events = vec![Event::planned(tasks.collect(), PlannerConfig::default())];
    let mut planner = Planner::fold(&events);
    events.extend(planner.process(Command::Continue).expect("it begins"));
    (events, planner)
}

/// The reports that complete a plan, and all its events if they are wanted.
fn course((events, planner): &(Vec<Event>, Planner), is_kept: bool) -> (Vec<Command>, Vec<Event>) {
    let (mut to_see, mut planner) = (VecDeque::from(events.clone()), planner.clone());
    let (mut commands, mut seen) = (Vec::new(), Vec::new());
    while let Some(event) = to_see.pop_front() {
        let report = report_on(&event);
        seen.extend(is_kept.then_some(event));
        if let Some(command) = report {
            to_see.extend(planner.process(command.clone()).expect("it is due"));
            commands.push(command);
        }
    }
    (commands, seen)
}

/// The report or the answer that an event asks for.
fn report_on(event: &Event) -> Option<Command> {
    match event {
        Event::TaskDispatched { task_id, attempt, command: PlannerCmd::ExecuteTask { .. }, .. } => {
            Some(Command::HandleExecutorEvent {
                task: *task_id,
                event: TaskEvent::TaskCompleted {
                    attempt: *attempt,
                    result: "test result: ok".into(),
                    epoch: 1,
                    run: None,
                },
            })
        }
        Event::ClarificationRequested { question_id, .. } => {
            Some(Command::Answer { question: *question_id, answer: "As it was before".into() })
        }
        _ => None,
    }
}

fn runs(n_runs: usize, mut run: impl FnMut() -> Duration) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..n_runs).map(|_| run()).collect();
    times.sort_unstable();
    times
}

/// The rates per second of the best run and of the median.
fn rates(n: usize, times: &[Duration]) -> String {
    let rate = |time: Duration| n as f64 / time.as_secs_f64();
    format!("{:>10.0} {:>11.0}", rate(times[0]), rate(times[times.len() / 2]))
}
