//! Analysis of a plan's graph: parallel groups, critical path and bottlenecks. Each task counts as one step.

use std::collections::BTreeSet;

use crate::plan::{Dependency, Strength, TaskId, TaskPlan};
use crate::validity::{self, InvalidPlan, edges_of};

/// The most bottlenecks that are listed.
pub const BOTTLENECKS_MAX: usize = 20;

/// The analysis of a plan's graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Analysis {
    /// The tasks by the earliest step in which each can run; the tasks of one group can run in parallel.
    pub groups: Vec<Vec<TaskId>>,
    /// A longest chain of dependent tasks, in order. It has as many tasks as there are groups.
    pub critical_path: Vec<TaskId>,
    /// Tasks without slack that several others depend on, sorted by their number of dependents.
    pub bottlenecks: Vec<Bottleneck>,
    /// The number of steps if the order of the text does not count as a dependency.
    pub n_steps_relaxed: usize,
}

/// A task without slack that at least two tasks directly depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bottleneck {
    /// The task.
    pub task: TaskId,
    /// The number of its direct dependents.
    pub n_waiting: usize,
}

impl Analysis {
    /// Analyses the tasks of a plan.
    ///
    /// # Errors
    /// If they are not a valid plan.
    pub fn of(tasks: &[TaskPlan]) -> Result<Self, InvalidPlan> {
        let (edges, ranks) = edges_of(tasks)?;
        let graph = DependencyGraph::of(&edges, &ranks, |_| true);
        let (steps, n_steps) = graph.steps();
        let mut groups = vec![Vec::new(); n_steps];
        for (task, step) in tasks.iter().zip(&steps) {
            groups[*step].push(task.id);
        }
        let to_go = graph.steps_to_go();
        let has_no_slack = |n: usize| steps[n] + to_go[n] == n_steps;
        let mut bottlenecks = (0..tasks.len())
            .filter(|n| has_no_slack(*n) && graph.after[*n].len() > 1)
            .map(|n| Bottleneck { task: tasks[n].id, n_waiting: graph.after[n].len() })
            .collect::<Vec<_>>();
        bottlenecks.sort_by_key(|one| (std::cmp::Reverse(one.n_waiting), one.task));
        bottlenecks.truncate(BOTTLENECKS_MAX);
        let critical_path = graph.longest_chain(&steps, &to_go, n_steps).into_iter().map(|n| tasks[n].id).collect();
        let n_steps_relaxed = DependencyGraph::of(&edges, &ranks, |strength| strength == Strength::Hard).steps().1;
        Ok(Self { groups, critical_path, bottlenecks, n_steps_relaxed })
    }

    /// The number of steps with maximum parallelism.
    pub fn n_steps(&self) -> usize {
        self.groups.len()
    }

    /// The most tasks that run at once if each runs as early as possible.
    pub fn n_at_once(&self) -> usize {
        self.groups.iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// The dependencies between tasks, by index in the list of tasks.
struct DependencyGraph {
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    /// A topological order.
    order: Vec<usize>,
}

impl DependencyGraph {
    /// The graph of the dependencies whose strength counts.
    fn of(edges: &[Vec<Dependency>], ranks: &[usize], counts: impl Fn(Strength) -> bool) -> Self {
        let mut after = vec![Vec::new(); edges.len()];
        let mut before = Vec::with_capacity(edges.len());
        for (n, own) in edges.iter().enumerate() {
            let places = own.iter().filter(|one| counts(one.strength)).map(validity::before);
            let places = places.collect::<BTreeSet<_>>();
            places.iter().for_each(|place| after[*place].push(n));
            before.push(places.into_iter().collect());
        }
        let mut order = (0..edges.len()).collect::<Vec<_>>();
        order.sort_unstable_by_key(|n| ranks[*n]);
        Self { before, after, order }
    }

    /// The earliest step of each task, from 0, and the number of steps.
    fn steps(&self) -> (Vec<usize>, usize) {
        let mut steps = vec![0; self.before.len()];
        for task in &self.order {
            steps[*task] = self.before[*task].iter().map(|before| steps[*before] + 1).max().unwrap_or(0);
        }
        let n_steps = steps.iter().max().map_or(0, |last| last + 1);
        (steps, n_steps)
    }

    /// The number of steps from each task to the end of its longest chain of dependents.
    fn steps_to_go(&self) -> Vec<usize> {
        let mut to_go = vec![1; self.after.len()];
        for task in self.order.iter().rev() {
            to_go[*task] = self.after[*task].iter().map(|after| to_go[*after] + 1).max().unwrap_or(1);
        }
        to_go
    }

    /// The longest chain; of several, the one whose tasks come first in the plan.
    fn longest_chain(&self, steps: &[usize], to_go: &[usize], n_steps: usize) -> Vec<usize> {
        let mut chain: Vec<usize> = Vec::with_capacity(n_steps);
        let is_next = |n: &usize, step: usize| steps[*n] == step && to_go[*n] == n_steps - step;
        for step in 0..n_steps {
            let next = match chain.last() {
                None => (0..steps.len()).find(|n| is_next(n, step)),
                Some(last) => self.after[*last].iter().copied().find(|n| is_next(n, step)),
            };
            chain.extend(next);
        }
        chain
    }
}
