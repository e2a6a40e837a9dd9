//! Keeps the graph of a plan's tasks up to date with each event, and answers which tasks may start.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::event::{Order, TaskStatus};
use crate::plan::{Condition, ConditionKey, TaskId, TaskPlan};
use crate::priority::rank;
use crate::state::graph::{ConcurrencyGroup, ConditionStatus, Graph, Priority, Running};
use crate::state::{Phase, PlannerState};
use crate::task::Task;

/// Default estimate of a task in milliseconds. Without any estimates, tasks are counted.
const ESTIMATE_MS: u64 = 60_000;

impl PlannerState {
    /// The dispatched tasks that may start now, in order of priority: each fits within the limits next to
    /// the held tasks; other unclaimed tasks do not count. Nothing starts while the plan is paused or stopped.
    pub fn startable(&self, is_held: impl Fn(TaskId) -> bool) -> Vec<TaskId> {
        if self.phase != Phase::Active || self.stopped_by.is_some() {
            return Vec::new();
        }
        let mut running = Running::default();
        let mut waiting = Vec::new();
        for index in self.graph.under_way.iter().copied() {
            let task = &self.tasks[index];
            let group = ConcurrencyGroup::of(&task.plan, &self.config);
            if is_held(task.plan.id) {
                running.begin(group);
            } else if !task.is_paused {
                waiting.push((self.priority(index), group));
            }
        }
        waiting.sort_unstable();
        let has_room = |(_, group): &(_, ConcurrencyGroup)| running.have_room(*group, &self.config);
        waiting.into_iter().filter(has_room).map(|((_, _, index), _)| self.tasks[index].plan.id).collect()
    }

    /// True if the limits allow one more task like this next to all dispatched ones.
    pub(crate) fn has_room(&self, task: &TaskPlan) -> bool {
        self.graph.running.have_room(ConcurrencyGroup::of(task, &self.config), &self.config)
    }

    /// True if the limits allow a dispatched task next to the held ones.
    pub(crate) fn has_place(&self, task: &TaskPlan, held: impl Iterator<Item = TaskId>) -> bool {
        let group = ConcurrencyGroup::of(task, &self.config);
        let mut others = self.graph.running.clone();
        others.end(group);
        // Mostly all dispatched tasks fit: the held ones need not be counted.
        others.have_room(group, &self.config) || {
            let mut running = Running::default();
            let held = held.filter_map(|id| self.task(id));
            held.for_each(|held| running.begin(ConcurrencyGroup::of(&held.plan, &self.config)));
            running.have_room(group, &self.config)
        }
    }

    /// The urgency of a task: 0 for the most urgent.
    pub fn urgency(&self, task: TaskId) -> u8 {
        self.task(task).map_or(u8::MAX, |task| rank(task.plan.priority.as_deref()))
    }

    /// The dispatched tasks.
    pub fn dispatched(&self) -> impl Iterator<Item = &Task> {
        self.graph.under_way.iter().map(|index| &self.tasks[*index])
    }

    /// Changes a task, and updates the graph.
    pub(super) fn change(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) {
        let Some(index) = self.index(id) else { return };
        let was_ended = self.tasks[index].status.is_end();
        self.detach(index);
        change(&mut self.tasks[index]);
        self.attach(index);
        if self.tasks[index].status.is_end() && !was_ended {
            self.release_dependants(index);
            if !self.inherited_answers.is_empty() {
                self.pass_answers_on(vec![index]);
            }
            self.note_end(index);
        }
    }

    /// Adds a task to the sets that its status puts it in.
    fn attach(&mut self, index: usize) {
        let Task { plan, status, .. } = &self.tasks[index];
        if !status.is_end() {
            self.graph.open.insert(index);
            self.graph.n_undoing += usize::from(plan.compensates.is_some());
        }
        if *status == TaskStatus::Running {
            self.graph.running.begin(ConcurrencyGroup::of(plan, &self.config));
            self.graph.under_way.insert(index);
        }
        self.queue(index);
    }

    /// Removes a task from the sets that its status puts it in.
    fn detach(&mut self, index: usize) {
        let Task { plan, status, .. } = &self.tasks[index];
        let group = ConcurrencyGroup::of(plan, &self.config);
        if !status.is_end() {
            self.graph.open.remove(&index);
            self.graph.n_undoing -= usize::from(plan.compensates.is_some());
        }
        if *status == TaskStatus::Running {
            self.graph.running.end(group);
            self.graph.under_way.remove(&index);
        }
        if *status == TaskStatus::Planned {
            let priority = self.priority(index);
            if let Some(queue) = self.graph.ready.get_mut(&group) {
                queue.remove(&priority);
                if queue.is_empty() {
                    self.graph.ready.remove(&group);
                }
            }
            self.graph.doomed.remove(&index);
        }
    }

    /// Marks a planned task as ready or doomed, if it is.
    fn queue(&mut self, index: usize) {
        let task = &self.tasks[index];
        if task.status != TaskStatus::Planned {
            return;
        }
        if self.graph.unmet[index] > 0 {
            let blocker = self.failed_blockers(&task.plan).next().map(|blocker| blocker.plan.id);
            if let Some(blocker) = blocker {
                self.graph.doomed.insert(index, blocker);
            }
            return;
        }
        let is_asked = task.plan.condition_key().is_some_and(|key| self.conditions.get(&key) == Some(&None));
        if !task.is_paused && task.retry_ms.is_none() && !is_asked {
            let (group, priority) = (ConcurrencyGroup::of(&task.plan, &self.config), self.priority(index));
            self.graph.ready.entry(group).or_default().insert(priority);
        }
    }

    /// The dependencies of a task that ended without success, so that it cannot start.
    pub(crate) fn failed_blockers(&self, plan: &TaskPlan) -> impl Iterator<Item = &Task> {
        let dependencies = plan.depends_on.iter().filter_map(|dependency| self.task(dependency.task));
        dependencies.filter(|blocker| hold(plan, blocker) == Hold::ForGood)
    }

    fn priority(&self, index: usize) -> Priority {
        let critical_path = self.graph.critical_paths.get(index).copied().unwrap_or(0);
        (rank(self.tasks[index].plan.priority.as_deref()), Reverse(critical_path), index)
    }

    /// The effect of a task's condition, by the outcome of the deciding task, else by a person's answer.
    pub(crate) fn condition_status(&self, plan: &TaskPlan) -> ConditionStatus {
        let (Some(condition), Some(key)) = (&plan.condition, plan.condition_key()) else {
            return ConditionStatus::Holds;
        };
        let can_decide = |task: &Task| condition.by_any_work || task.plan.command.is_some();
        let ended = |id: &TaskId| self.task(*id).filter(|task| task.status.is_end() && can_decide(task));
        let decides: Vec<_> = condition.outcome_of.iter().filter_map(ended).map(|task| task.status).collect();
        let all = |of: &[TaskStatus]| {
            // After an amendment the task may be ready before the deciding tasks have ended.
            decides.len() == condition.outcome_of.len()
                && !decides.is_empty()
                && decides.iter().all(|one| of.contains(one))
        };
        let holds = if all(&[TaskStatus::Cancelled, TaskStatus::Skipped]) {
            return ConditionStatus::Void;
        } else if all(&[TaskStatus::Completed]) || all(&[TaskStatus::Failed, TaskStatus::TimedOut]) {
            decides[0] == TaskStatus::Completed
        } else {
            match self.conditions.get(&key) {
                Some(Some(holds)) => *holds,
                Some(None) => return ConditionStatus::Asked,
                None => return ConditionStatus::Unknown,
            }
        };
        if holds != condition.negated { ConditionStatus::Holds } else { ConditionStatus::Fails }
    }

    /// True if nobody chose to skip a task: another one failed or did not run, or its outcome decided it.
    pub fn was_skipped_by_others(&self, task: &Task) -> bool {
        let by_outcome = |condition: &Condition| !condition.outcome_of.is_empty();
        let is_decided = matches!(self.condition_status(&task.plan), ConditionStatus::Fails | ConditionStatus::Void);
        let is_by_outcome = is_decided && task.plan.condition.as_ref().is_some_and(by_outcome);
        task.status == TaskStatus::Skipped && (!task.unblocks || is_by_outcome)
    }

    /// Sets whether a condition holds, is being asked, or is unknown.
    pub(super) fn judge(&mut self, condition: &ConditionKey, holds: Option<Option<bool>>) {
        let places = self.graph.conditional.get(condition).cloned().unwrap_or_default();
        places.iter().for_each(|index| self.detach(*index));
        match holds {
            Some(holds) => _ = self.conditions.insert(condition.clone(), holds),
            None => _ = self.conditions.remove(condition),
        }
        places.iter().for_each(|index| self.attach(*index));
    }

    fn release_dependants(&mut self, index: usize) {
        let dependants = std::mem::take(&mut self.graph.dependants[index]);
        for dependant in dependants.iter().copied() {
            let (task, ended) = (&self.tasks[dependant], &self.tasks[index]);
            match hold(&task.plan, ended) {
                Hold::None => {
                    self.graph.unmet[dependant] -= 1;
                    if self.graph.unmet[dependant] == 0 {
                        self.queue(dependant);
                    }
                }
                Hold::ForGood if task.status == TaskStatus::Planned => {
                    self.graph.doomed.entry(dependant).or_insert(ended.plan.id);
                }
                Hold::ForGood | Hold::ForNow => {}
            }
        }
        self.graph.dependants[index] = dependants;
    }

    /// Adds a task after all others. `redefine` adds its dependencies, which may be on tasks added with it.
    pub(super) fn add_to_graph(&mut self, plan: TaskPlan) {
        self.graph.dependants.push(BTreeSet::new());
        self.graph.unmet.push(0);
        self.tasks.push(Task::planned(TaskPlan { depends_on: Vec::new(), ..plan }));
        let index = self.tasks.len() - 1;
        self.link(index);
        self.attach(index);
    }

    /// Gives a task another definition, and updates the graph.
    pub(super) fn redefine(&mut self, index: usize, plan: &TaskPlan) {
        self.detach(index);
        self.unlink(index);
        self.tasks[index].plan = plan.clone();
        self.link(index);
        self.attach(index);
    }

    /// The indexes of the tasks that a task depends on.
    fn blockers(&self, index: usize) -> Vec<usize> {
        let depends_on = &self.tasks[index].plan.depends_on;
        depends_on.iter().filter_map(|dependency| self.index(dependency.task)).collect()
    }

    /// Adds the dependencies and the condition of a task.
    fn link(&mut self, index: usize) {
        let blockers = self.blockers(index);
        let plan = &self.tasks[index].plan;
        let is_unmet = |blocker: &&usize| hold(plan, &self.tasks[**blocker]) != Hold::None;
        self.graph.unmet[index] = blockers.iter().filter(is_unmet).count();
        self.graph.n_edges += plan.depends_on.len();
        if let Some(condition) = plan.condition_key() {
            self.graph.conditional.entry(condition).or_default().insert(index);
        }
        for blocker in blockers {
            self.graph.dependants[blocker].insert(index);
        }
    }

    fn unlink(&mut self, index: usize) {
        for blocker in self.blockers(index) {
            self.graph.dependants[blocker].remove(&index);
        }
        let plan = &self.tasks[index].plan;
        self.graph.n_edges -= plan.depends_on.len();
        if let Some(tasks) = plan.condition_key().and_then(|condition| self.graph.conditional.get_mut(&condition)) {
            tasks.remove(&index);
        }
    }

    /// Builds the graph from tasks and statuses.
    pub(crate) fn index_graph(&mut self) {
        let n_tasks = self.tasks.len();
        self.graph = Graph { dependants: vec![BTreeSet::new(); n_tasks], unmet: vec![0; n_tasks], ..Graph::default() };
        (0..n_tasks).for_each(|index| self.link(index));
        if self.config.order == Order::CriticalPath {
            self.graph.critical_paths = self.critical_paths();
        }
        (0..n_tasks).for_each(|index| self.attach(index));
    }

    /// By task: the estimated duration of the task and its longest chain of dependents, in milliseconds.
    fn critical_paths(&self) -> Vec<u64> {
        let estimate = |index: usize| self.tasks[index].plan.estimate_ms.unwrap_or(ESTIMATE_MS);
        let mut paths = (0..self.tasks.len()).map(estimate).collect::<Vec<_>>();
        let mut n_left = self.graph.dependants.iter().map(BTreeSet::len).collect::<Vec<_>>();
        let mut ends = (0..n_left.len()).filter(|index| n_left[*index] == 0).collect::<Vec<_>>();
        while let Some(index) = ends.pop() {
            for before in self.blockers(index) {
                paths[before] = paths[before].max(paths[index].saturating_add(estimate(before)));
                n_left[before] -= 1;
                if n_left[before] == 0 {
                    ends.push(before);
                }
            }
        }
        paths
    }
}

/// The effect of a dependency on its dependent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    None,
    ForNow,
    ForGood,
}

fn hold(dependant: &TaskPlan, blocker: &Task) -> Hold {
    // A conditional task may run after any end of the tasks that decide its condition; without such a task, after any
    // end of its dependencies.
    let decides =
        |condition: &Condition| condition.outcome_of.is_empty() || condition.outcome_of.contains(&blocker.plan.id);
    match blocker.status.is_end() {
        false => Hold::ForNow,
        true if blocker.unblocks || dependant.condition.as_ref().is_some_and(decides) => Hold::None,
        true => Hold::ForGood,
    }
}
