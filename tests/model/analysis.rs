//! The analysis of a plan's graph, compared with a naive computation.

use crewlog_planner::analysis::Analysis;
use crewlog_planner::parse::{self, ReadOptions};
use crewlog_planner::plan::{Dependency, NodeKind, Strength, TaskId, TaskPlan};
use crewlog_planner::validity::InvalidPlan;
use proptest::prelude::*;

fn ids(ids: &[u64]) -> Vec<TaskId> {
    ids.iter().map(|id| TaskId(*id)).collect()
}

/// Tasks from 1, each with its dependencies.
fn tasks(waits: &[Vec<(u64, Strength)>]) -> Vec<TaskPlan> {
    let task = |(n, waits): (usize, &Vec<(u64, Strength)>)| {
        let mut task = TaskPlan::new(TaskId(n as u64 + 1), NodeKind::Processing, "x");
        task.depends_on =
            waits.iter().map(|(id, strength)| Dependency { task: TaskId(*id), strength: *strength }).collect();
        task
    };
    waits.iter().enumerate().map(task).collect()
}

#[test]
fn an_analysis_finds_groups_critical_path_bottlenecks_and_time_saved() {
    let text = "1. Fetch the key\n2. Open the door\n3. Sweep the hall (depends on 2)\n4. Paint the wall (depends on 2)\n5. Call Ana\n";
    let plan = parse::read(text, ReadOptions::default()).unwrap();
    let analysis = Analysis::of(&plan.tasks).unwrap();
    assert_eq!(analysis.groups, [ids(&[1]), ids(&[2]), ids(&[3, 4]), ids(&[5])]);
    assert_eq!(analysis.critical_path, ids(&[1, 2, 3, 5]));
    assert_eq!((analysis.n_steps(), analysis.n_at_once(), analysis.n_steps_relaxed), (4, 2, 2));
    let bottlenecks = analysis.bottlenecks.iter().map(|one| (one.task.0, one.n_waiting)).collect::<Vec<_>>();
    assert_eq!(bottlenecks, [(2, 2)]);
}

#[test]
fn an_invalid_plan_is_not_analysed() {
    assert_eq!(Analysis::of(&[]), Err(InvalidPlan::EmptyPlan));
    let hard = Strength::Hard;
    let round = tasks(&[vec![(2, hard)], vec![(1, hard)]]);
    assert!(matches!(Analysis::of(&round), Err(InvalidPlan::DependencyCycle(..))));
}

/// Any acyclic graph, in which a task may depend on one with a higher number.
fn graphs() -> impl Strategy<Value = Vec<TaskPlan>> {
    (1..12_usize, any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(n, edges, hard, is_turned)| {
        let bit = |bits: u64, at: usize| bits.rotate_left(at as u32 * 7 % 61) & 1 == 1;
        let mut waits = vec![Vec::new(); n];
        for task in 0..n {
            for before in 0..task {
                let at = task * n + before;
                let strength = if bit(hard, at) { Strength::Hard } else { Strength::Soft };
                let (task, before) = if is_turned { (n - 1 - task, n - 1 - before) } else { (task, before) };
                if bit(edges, at) {
                    waits[task].push((before as u64 + 1, strength));
                }
            }
        }
        tasks(&waits)
    })
}

/// The longest chain that ends with a task, by brute force.
fn longest(tasks: &[TaskPlan], task: TaskId, only_hard: bool) -> usize {
    let own = tasks.iter().find(|one| one.id == task).expect("it is there");
    let counts = |one: &&Dependency| !only_hard || one.strength == Strength::Hard;
    let before = own.depends_on.iter().filter(counts).map(|one| longest(tasks, one.task, only_hard));
    before.max().unwrap_or(0) + 1
}

/// The longest chain that starts with a task, by brute force.
fn longest_after(tasks: &[TaskPlan], task: TaskId) -> usize {
    let after = tasks.iter().filter(|one| one.depends_on.iter().any(|before| before.task == task));
    after.map(|one| longest_after(tasks, one.id)).max().unwrap_or(0) + 1
}

proptest! {
    #[test]
    fn critical_path_groups_and_bottlenecks_match_the_graph(tasks in graphs()) {
        let analysis = Analysis::of(&tasks).expect("it is a plan");
        let steps = tasks.iter().map(|task| longest(&tasks, task.id, false)).max().unwrap_or(0);
        prop_assert_eq!(analysis.n_steps(), steps);
        prop_assert_eq!(analysis.critical_path.len(), steps);
        for pair in analysis.critical_path.windows(2) {
            let next = tasks.iter().find(|task| task.id == pair[1]).expect("it is there");
            prop_assert!(next.depends_on.iter().any(|one| one.task == pair[0]));
        }
        for (n, group) in analysis.groups.iter().enumerate() {
            for task in group {
                prop_assert_eq!(longest(&tasks, *task, false), n + 1, "each task runs as early as it can");
            }
        }
        prop_assert_eq!(analysis.groups.iter().map(Vec::len).sum::<usize>(), tasks.len());
        let relaxed = tasks.iter().map(|task| longest(&tasks, task.id, true)).max().unwrap_or(0);
        prop_assert_eq!(analysis.n_steps_relaxed, relaxed);
        for task in &tasks {
            let waiting = tasks.iter().filter(|one| one.depends_on.iter().any(|before| before.task == task.id)).count();
            let has_no_slack = longest(&tasks, task.id, false) + longest_after(&tasks, task.id) == steps + 1;
            let found = analysis.bottlenecks.iter().find(|one| one.task == task.id).map(|one| one.n_waiting);
            prop_assert_eq!(found, (has_no_slack && waiting > 1).then_some(waiting));
        }
    }
}
