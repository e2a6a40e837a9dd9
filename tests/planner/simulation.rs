//! The scheduler in simulated time: graphs of tasks with known durations, driven through the planner itself.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crewlog_mq::Handler;
use crewlog_planner::event::{Command, Event, Order, Outcome, PlannerConfig, TaskEvent};
use crewlog_planner::plan::{Dependency, NodeKind, Origin, Proposal, Strength, TaskId, TaskPlan};
use crewlog_planner::planner::{PARALLELISM_MAX, Planner};
use crewlog_planner::state::Phase;
use proptest::prelude::*;

/// By task: its dependencies, counted from 1, and its duration in seconds.
type Graph = Vec<(Vec<u64>, u64)>;

/// The time at which the last task ends when this many executors take dispatched tasks at once.
fn makespan(graph: &Graph, n_executors: usize, order: Order) -> u64 {
    let tasks = graph.iter().enumerate().map(|(n, (waits_for, takes))| {
        let task = TaskPlan::new(TaskId(n as u64 + 1), NodeKind::Processing, format!("step {}", n + 1));
        let depends_on = waits_for.iter().map(|id| Dependency { task: TaskId(*id), strength: Strength::Hard });
        TaskPlan { depends_on: depends_on.collect(), estimate_ms: Some(takes * 1_000), ..task }
    });
    let config = PlannerConfig { parallelism: n_executors, order, ..PlannerConfig::default() };
    let (tasks, source, origin) = (tasks.collect(), String::new(), Origin::default());
    let proposal = Box::new(Proposal { tasks, title: None, source, context: Vec::new(), origin });
    let mut planner = Planner::default();
    let mut events = planner.process(Command::Initialize { proposal, attachments: Vec::new(), config }).unwrap();
    let (mut running, mut now) = (BinaryHeap::new(), 0);
    loop {
        for event in &events {
            let Event::TaskDispatched { task_id, attempt, .. } = event else { continue };
            let (_, takes) = &graph[task_id.0 as usize - 1];
            running.push(Reverse((now + takes, *task_id, *attempt)));
        }
        assert!(running.len() <= n_executors);
        let Some(Reverse((ended_at, node_id, attempt))) = running.pop() else { break };
        now = ended_at;
        let completed = Command::HandleExecutorEvent {
            task: node_id,
            event: TaskEvent::TaskCompleted { attempt, result: String::new(), epoch: 1, run: None },
        };
        events = planner.process(completed).unwrap();
    }
    assert_eq!(planner.state().phase, Phase::Ended(Outcome::Completed));
    now
}

/// The longest path through the graph; tasks depend only on earlier ones.
fn critical_path(graph: &Graph) -> u64 {
    let mut ends: Vec<u64> = Vec::new();
    for (waits_for, takes) in graph {
        let begins = waits_for.iter().map(|id| ends[*id as usize - 1]).max().unwrap_or(0);
        ends.push(begins + takes);
    }
    ends.into_iter().max().unwrap_or(0)
}

/// R. L. Graham, "Bounds on Multiprocessing Timing Anomalies" (1969): a scheduler that never idles while a task is
/// ready needs at most work / k + critical path x (k - 1) / k. Both sides are multiplied by k.
fn is_within_bound(graph: &Graph, makespan: u64, n_executors: u64) -> bool {
    let work = graph.iter().map(|(_, takes)| takes).sum::<u64>();
    makespan * n_executors <= work + critical_path(graph) * (n_executors - 1)
}

#[test]
fn the_task_on_the_critical_path_starts_first() {
    // Two short tasks, then a chain of two long ones, and two executors.
    let graph = vec![(vec![], 1), (vec![], 1), (vec![], 3), (vec![3], 3)];
    assert_eq!(makespan(&graph, 2, Order::Place), 7);
    assert_eq!(makespan(&graph, 2, Order::CriticalPath), 6);
}

fn graphs() -> impl Strategy<Value = Graph> {
    let task = (prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0..1_000_u64);
    prop::collection::vec(task, 1..30).prop_map(|tasks| {
        let earlier = |n: usize, of: Vec<prop::sample::Index>| {
            let ids: BTreeSet<u64> = of.into_iter().filter(|_| n > 0).map(|index| index.index(n) as u64 + 1).collect();
            ids.into_iter().collect()
        };
        tasks.into_iter().enumerate().map(|(n, (of, takes))| (earlier(n, of), takes)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_enough_executors_a_plan_takes_as_long_as_its_critical_path(graph in graphs()) {
        prop_assert_eq!(makespan(&graph, PARALLELISM_MAX, Order::Place), critical_path(&graph));
    }

    #[test]
    fn with_few_executors_a_plan_keeps_grahams_bound(graph in graphs(), n_executors in 1..6_u64) {
        for order in [Order::Place, Order::CriticalPath] {
            let makespan = makespan(&graph, n_executors as usize, order);
            prop_assert!(is_within_bound(&graph, makespan, n_executors), "{order:?}: {makespan}");
        }
    }
}
