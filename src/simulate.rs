//! `plan simulate`: puts the planner to graphs of tasks with known durations, and says whether it keeps to what is known of
//! them: the critical path, Graham's bound.

use std::io::Write;
use std::path::Path;

use crewlog_planner::event::Order;
use crewlog_planner::plan::{Dependency, NodeKind, Strength, TaskId, TaskPlan};
use crewlog_planner::planner::PARALLELISM_MAX;
use crewlog_planner::simulation::simulate as carry_out;
use crewlog_planner::validity;
use serde::{Deserialize, Serialize};

use crate::cli::{Output, Simulate};
use crate::failure::{Code, Failure};
use crate::json::{print_line, print_pretty};
use crate::session::Session;

/// How many differences are told one by one.
const TOLD_MAX: usize = 10;
/// A second, in the unit of time in which plans are simulated here.
const SECOND: f64 = 1e6;
/// A duration may be this long, in seconds: sums of many stay exact.
const SECONDS_MAX: f64 = 1e11;

/// A line of the file.
#[derive(Deserialize)]
struct Given {
    /// By task: the numbers of those it waits for, counted from 1.
    depends_on: Vec<Vec<u64>>,
    /// By task: how long it takes.
    seconds: Vec<f64>,
    /// The longest way through the graph.
    critical_path_seconds: f64,
}

/// A graph as it is simulated: times in microseconds.
struct Graph {
    tasks: Vec<TaskPlan>,
    durations: Vec<u64>,
    critical_path: u64,
}

/// What came of all graphs.
#[derive(Default, Serialize)]
struct Report {
    graphs: usize,
    /// Of how many the makespan with executors enough is the critical path.
    exact: usize,
    differences: Vec<String>,
    executors: Vec<Executors>,
}

/// What came of all graphs with so many executors.
#[derive(Serialize)]
struct Executors {
    executors: usize,
    /// How many graphs took no longer than Graham's bound, in the order of the plan and by critical path.
    within_bound: usize,
    within_bound_by_critical_path: usize,
    /// The mean of the makespans over that of the critical paths.
    mean_by_place: f64,
    mean_by_critical_path: f64,
    /// How many graphs were faster by critical path than in the order of the plan, and how many slower.
    faster: usize,
    slower: usize,
}

impl Report {
    fn holds(&self) -> bool {
        let holds = |with: &Executors| {
            with.within_bound == self.graphs
                && with.within_bound_by_critical_path == self.graphs
                && with.mean_by_critical_path <= with.mean_by_place
        };
        self.exact == self.graphs && self.executors.iter().all(holds)
    }
}

/// Simulates every graph of a file and prints a table. [`Code::User`] when something does not hold.
pub fn simulate(session: &Session, simulate: &Simulate) -> Result<Code, Failure> {
    let graphs = read(&simulate.file)?;
    let mut report = Report { graphs: graphs.len(), ..Report::default() };
    for (n, graph) in graphs.iter().enumerate() {
        let makespan = makespan(graph, PARALLELISM_MAX, Order::Place)?;
        if makespan == graph.critical_path {
            report.exact += 1;
        } else if report.differences.len() < TOLD_MAX {
            let (took, expected) = (makespan as f64 / SECOND, graph.critical_path as f64 / SECOND);
            report.differences.push(format!("line {}: {took} s, and the critical path is {expected} s", n + 1));
        }
    }
    for n_executors in &simulate.executors {
        report.executors.push(with(usize::from(*n_executors), &graphs)?);
    }
    let mut stdout = std::io::stdout().lock();
    match session.output {
        Output::Json => print_pretty(&mut stdout, &report)?,
        Output::Jsonl => print_line(&mut stdout, &report)?,
        Output::Text => print(&mut stdout, &report)?,
    }
    stdout.flush()?;
    Ok(if report.holds() { Code::Done } else { Code::User })
}

fn makespan(graph: &Graph, n_executors: usize, order: Order) -> Result<u64, Failure> {
    let simulated = carry_out(graph.tasks.clone(), &graph.durations, n_executors, order);
    Ok(simulated.map_err(|error| Failure::user(error.to_string()))?.makespan)
}

/// R. L. Graham, "Bounds on Multiprocessing Timing Anomalies" (1969): whoever never lets an executor idle while a task is
/// ready needs at most work / k + critical path x (k - 1) / k. Both sides are multiplied by k.
fn is_within_bound(graph: &Graph, makespan: u64, n_executors: u128) -> bool {
    let work = graph.durations.iter().map(|takes| u128::from(*takes)).sum::<u128>();
    u128::from(makespan) * n_executors <= work + u128::from(graph.critical_path) * (n_executors - 1)
}

fn with(n_executors: usize, graphs: &[Graph]) -> Result<Executors, Failure> {
    let (mut faster, mut slower, mut within, mut within_by_path) = (0, 0, 0, 0);
    let (mut by_place, mut by_path) = (0.0, 0.0);
    for graph in graphs {
        let placed = makespan(graph, n_executors, Order::Place)?;
        let pathed = makespan(graph, n_executors, Order::CriticalPath)?;
        within += usize::from(is_within_bound(graph, placed, n_executors as u128));
        within_by_path += usize::from(is_within_bound(graph, pathed, n_executors as u128));
        faster += usize::from(pathed < placed);
        slower += usize::from(pathed > placed);
        let shortest = graph.critical_path.max(1) as f64;
        by_place += placed as f64 / shortest;
        by_path += pathed as f64 / shortest;
    }
    let n_graphs = graphs.len().max(1) as f64;
    Ok(Executors {
        executors: n_executors,
        within_bound: within,
        within_bound_by_critical_path: within_by_path,
        mean_by_place: by_place / n_graphs,
        mean_by_critical_path: by_path / n_graphs,
        faster,
        slower,
    })
}

fn read(path: &Path) -> Result<Vec<Graph>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::user(format!("{}: {error}", path.display())))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let graphs = lines.map(|(n, line)| {
        let at = |what: String| Failure::user(format!("{}:{}: {what}", path.display(), n + 1));
        let given = serde_json::from_str::<Given>(line).map_err(|error| {
            at(format!("{error}; each line is an object with depends_on, seconds and critical_path_seconds"))
        })?;
        graph(&given).map_err(at)
    });
    graphs.collect()
}

fn graph(given: &Given) -> Result<Graph, String> {
    let n_tasks = given.depends_on.len();
    if given.seconds.len() != n_tasks {
        return Err(format!("{n_tasks} tasks have {} durations; give one for each", given.seconds.len()));
    }
    let time = |seconds: f64| match (0.0..=SECONDS_MAX).contains(&seconds) {
        true => Ok((seconds * SECOND).round() as u64),
        false => Err(format!("{seconds} s is no duration: it must be from 0 to {SECONDS_MAX}")),
    };
    let durations = given.seconds.iter().map(|seconds| time(*seconds)).collect::<Result<Vec<_>, _>>()?;
    let tasks = given.depends_on.iter().zip(&durations).enumerate().map(|(n, (waits_for, takes))| {
        let task = TaskPlan::new(TaskId(n as u64 + 1), NodeKind::Processing, format!("step {}", n + 1));
        let mut waits_for = waits_for.clone();
        waits_for.sort_unstable();
        waits_for.dedup();
        let depends_on = waits_for.iter().map(|id| Dependency { task: TaskId(*id), strength: Strength::Hard });
        TaskPlan { depends_on: depends_on.collect(), estimate_ms: Some(takes / 1_000), ..task }
    });
    let tasks = tasks.collect::<Vec<_>>();
    validity::validate(&tasks).map_err(|error| error.to_string())?;
    Ok(Graph { tasks, critical_path: time(given.critical_path_seconds)?, durations })
}

fn print(to: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let Report { graphs, exact, differences, executors } = report;
    writeln!(to, "{exact} of {graphs} graphs end with their critical path when there are executors enough")?;
    for difference in differences {
        writeln!(to, "  {difference}")?;
    }
    writeln!(to)?;
    writeln!(to, "executors  within the bound      mean by place  by critical path  faster  slower")?;
    for with in executors {
        let within = format!("{} and {} of {graphs}", with.within_bound, with.within_bound_by_critical_path);
        writeln!(
            to,
            "{:>9}  {within:<20}{:>13.4}  {:>16.4}  {:>6}  {:>6}",
            with.executors, with.mean_by_place, with.mean_by_critical_path, with.faster, with.slower
        )?;
    }
    Ok(())
}
