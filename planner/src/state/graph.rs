//! Which tasks wait for which, and what follows from their statuses, kept so that a step costs what it changes.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::TaskStatus;
use crate::plan::{FailurePolicy, NodeKind, TaskId, TaskPlan};
use crate::state::PlannerState;
use crate::task::Task;

/// What follows from tasks and statuses, kept so that a step costs what it changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Graph {
    /// By task: those that wait for it.
    pub(super) dependants: Vec<Vec<usize>>,
    /// By task: dependencies that have not let it go yet.
    pub(super) unmet: Vec<usize>,
    /// By lane: planned, and everything they wait for has let them go.
    pub(crate) ready: [BTreeSet<usize>; N_LANES],
    /// Planned, and something they wait for has ended for good: which.
    pub(crate) doomed: BTreeMap<usize, TaskId>,
    /// The tasks that have not ended.
    pub(crate) open: BTreeSet<usize>,
    pub(crate) n_running: [usize; N_LANES],
    /// Tasks whose failure stopped the plan.
    pub(crate) n_stopping: usize,
}

/// Tasks run side by side in lanes: those with a command, those without, and questions.
pub(crate) const N_LANES: usize = 3;
/// The lane of tasks that run by themselves.
pub(crate) const COMMANDS: usize = 0;
/// The lane that has no limit.
pub(crate) const QUESTIONS: usize = 2;

/// The lane of a task.
pub(crate) fn lane(task: &TaskPlan) -> usize {
    match (task.kind, &task.command) {
        (NodeKind::Clarification, _) => QUESTIONS,
        (_, Some(_)) => COMMANDS,
        (_, None) => 1,
    }
}

impl PlannerState {
    /// Changes a task and what follows from its status.
    pub(super) fn change(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) {
        let Some(index) = self.index(id) else { return };
        self.graph.n_stopping -= usize::from(self.stops(&self.tasks[index]));
        let task = &mut self.tasks[index];
        let (before, lane) = (task.status, lane(&task.plan));
        change(task);
        let after = task.status;
        self.graph.n_stopping += usize::from(self.stops(&self.tasks[index]));
        let n_running = &mut self.graph.n_running[lane];
        *n_running += usize::from(after == TaskStatus::Running);
        *n_running -= usize::from(before == TaskStatus::Running);
        if after != TaskStatus::Planned {
            self.graph.ready[lane].remove(&index);
            self.graph.doomed.remove(&index);
        } else if before != TaskStatus::Planned {
            self.await_turn(index);
        }
        match (before.is_end(), after.is_end()) {
            (false, true) => {
                self.graph.open.remove(&index);
                self.release_dependants(index);
            }
            (true, false) => {
                self.graph.open.insert(index);
                self.past.reopen(index);
            }
            (false, false) | (true, true) => {}
        }
        if after.is_end() {
            self.past.end(index, &self.tasks[index], self.config.profile);
        }
    }

    /// Places a task that is planned again. What it waits for may have been reopened since it was first dispatched.
    pub(super) fn await_turn(&mut self, index: usize) {
        let task = &self.tasks[index].plan;
        if self.graph.unmet[index] == 0 {
            self.graph.ready[lane(task)].insert(index);
        } else if let Some(blocker) = task
            .depends_on
            .iter()
            .find(|dependency| self.task(dependency.task).is_some_and(|blocker| hold(task, blocker) == Hold::ForGood))
        {
            self.graph.doomed.insert(index, blocker.task);
        }
    }

    pub(super) fn release_dependants(&mut self, index: usize) {
        let ended = &self.tasks[index];
        for dependant in &self.graph.dependants[index] {
            let task = &self.tasks[*dependant];
            let is_planned = task.status == TaskStatus::Planned;
            match hold(&task.plan, ended) {
                Hold::None => {
                    self.graph.unmet[*dependant] -= 1;
                    if self.graph.unmet[*dependant] == 0 && is_planned {
                        self.graph.ready[lane(&task.plan)].insert(*dependant);
                    }
                }
                Hold::ForGood if is_planned => {
                    self.graph.doomed.entry(*dependant).or_insert(ended.plan.id);
                }
                Hold::ForGood | Hold::ForNow => {}
            }
        }
    }

    /// Builds the graph from tasks and statuses.
    pub(super) fn index_graph(&mut self) {
        let n_tasks = self.tasks.len();
        let mut graph = Graph { dependants: vec![Vec::new(); n_tasks], unmet: vec![0; n_tasks], ..Graph::default() };
        for (index, task) in self.tasks.iter().enumerate() {
            if !task.status.is_end() {
                graph.open.insert(index);
            }
            graph.n_running[lane(&task.plan)] += usize::from(task.status == TaskStatus::Running);
            for dependency in &task.plan.depends_on {
                let Some(before) = self.index(dependency.task) else { continue };
                graph.dependants[before].push(index);
                let blocker = &self.tasks[before];
                let hold = hold(&task.plan, blocker);
                graph.unmet[index] += usize::from(hold != Hold::None);
                if task.status == TaskStatus::Planned && hold == Hold::ForGood {
                    graph.doomed.entry(index).or_insert(blocker.plan.id);
                }
            }
            if task.status == TaskStatus::Planned && graph.unmet[index] == 0 {
                graph.ready[lane(&task.plan)].insert(index);
            }
        }
        self.graph = graph;
        self.count_stopping();
    }

    /// Counts anew what a change of the settings can have made of failures.
    pub(super) fn count_stopping(&mut self) {
        self.graph.n_stopping = self.tasks.iter().filter(|task| self.stops(task)).count();
    }

    /// True of a task whose failure stopped the plan.
    pub(crate) fn stops(&self, task: &Task) -> bool {
        let policy = task.plan.on_failure.unwrap_or(self.config.on_failure);
        policy == FailurePolicy::Stop && matches!(task.status, TaskStatus::Failed | TaskStatus::TimedOut)
    }
}

/// Whether a task holds one that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    None,
    ForNow,
    ForGood,
}

/// What runs only if something holds is let go by any end, since the end may be what it asks about.
fn hold(dependant: &TaskPlan, blocker: &Task) -> Hold {
    match blocker.status.is_end() {
        false => Hold::ForNow,
        true if blocker.unblocks || dependant.condition.is_some() => Hold::None,
        true => Hold::ForGood,
    }
}
