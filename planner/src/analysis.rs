//! Analysis of a plan's graph: parallel groups, critical path and bottlenecks. Each task counts as one step.

use std::collections::BTreeSet;

use crate::plan::{Dependency, Strength, TaskId, TaskPlan};
use crate::validity::{self, InvalidPlan, edges_of};

/// At most so many bottlenecks are named.
pub const BOTTLENECKS_MAX: usize = 20;

/// What the graph of a plan says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// The tasks by the step in which each can run at the earliest; what is in one group can run at once.
    pub groups: Vec<Vec<TaskId>>,
    /// A longest chain of tasks that wait for each other, the first task first. It has as many tasks as there are groups.
    pub critical_path: Vec<TaskId>,
    /// Tasks that nothing can make up for and that several wait for; those with the most first.
    pub bottlenecks: Vec<Bottleneck>,
    /// How many steps are left when the mere order of the text binds nothing.
    pub n_steps_relaxed: usize,
}

/// A task that has no slack and that at least two tasks wait for directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bottleneck {
    /// The task.
    pub task: TaskId,
    /// How many wait for it directly.
    pub n_waiting: usize,
}

impl Analysis {
    /// Looks at the tasks of a plan.
    ///
    /// # Errors
    /// When they are not a plan: the check that every plan passes.
    pub fn of(tasks: &[TaskPlan]) -> Result<Self, InvalidPlan> {
        let (edges, ranks) = edges_of(tasks)?;
        let graph = Graph::of(&edges, &ranks, |_| true);
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
        let n_steps_relaxed = Graph::of(&edges, &ranks, |strength| strength == Strength::Hard).steps().1;
        Ok(Self { groups, critical_path, bottlenecks, n_steps_relaxed })
    }

    /// How many steps the plan takes when all that can be done at once is.
    pub fn n_steps(&self) -> usize {
        self.groups.len()
    }

    /// How many tasks can run at once at the most, each as early as it can.
    pub fn n_at_once(&self) -> usize {
        self.groups.iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// Who waits for whom, by place in the list of tasks.
struct Graph {
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    /// Every task behind all that it waits for.
    order: Vec<usize>,
}

impl Graph {
    /// The graph of the dependencies that have such a strength.
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

    /// The earliest step of each task, from 0, and how many steps there are.
    fn steps(&self) -> (Vec<usize>, usize) {
        let mut steps = vec![0; self.before.len()];
        for task in &self.order {
            steps[*task] = self.before[*task].iter().map(|before| steps[*before] + 1).max().unwrap_or(0);
        }
        let n_steps = steps.iter().max().map_or(0, |last| last + 1);
        (steps, n_steps)
    }

    /// How many steps each task and all that follows from it take.
    fn steps_to_go(&self) -> Vec<usize> {
        let mut to_go = vec![1; self.after.len()];
        for task in self.order.iter().rev() {
            to_go[*task] = self.after[*task].iter().map(|after| to_go[*after] + 1).max().unwrap_or(1);
        }
        to_go
    }

    /// Of the longest chains the one whose tasks come first in the plan.
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
