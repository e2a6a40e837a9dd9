//! Which tasks wait for which, and what follows from their statuses, kept so that a step costs what it changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Order, PlannerConfig, TaskStatus};
use crate::plan::{Condition, ConditionKey, NodeKind, TaskId, TaskPlan};
use crate::priority::rank;
use crate::state::{Phase, PlannerState};
use crate::task::Task;

/// What follows from tasks and statuses, kept so that a step costs what it changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Graph {
    /// By task: those that wait for it.
    pub(super) dependants: Vec<BTreeSet<usize>>,
    /// By task: dependencies that have not let it go yet.
    pub(super) unmet: Vec<usize>,
    /// Planned, not paused, everything they wait for has let them go, and nobody is being asked whether they run at all.
    pub(crate) ready: BTreeMap<ConcurrencyGroup, BTreeSet<Priority>>,
    /// By condition: the places of the tasks that have it and are ready but for that.
    conditional: BTreeMap<ConditionKey, BTreeSet<usize>>,
    /// Planned, and something they wait for has ended for good: which.
    pub(crate) doomed: BTreeMap<usize, TaskId>,
    /// The tasks that have not ended.
    pub(crate) open: BTreeSet<usize>,
    pub(crate) running: Running,
    /// The places of those that run.
    pub(super) under_way: BTreeSet<usize>,
    /// Tasks that undo others and have not ended.
    pub(crate) n_undoing: usize,
    /// How many dependencies there are.
    pub(crate) n_edges: usize,
    /// How many of them are on later tasks. Without one no task can wait for itself.
    pub(crate) n_edges_back: usize,
    /// By task: how long the longest way from its start to the end of the plan is; empty unless it orders them.
    critical_paths: Vec<u64>,
}

/// Tasks run side by side in lanes, each with a limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// Those with a command, which run by themselves.
    Commands,
    /// Those without.
    Others,
    /// Questions, which have no limit.
    Questions,
}

/// Tasks that have the same limits on how many of them run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConcurrencyGroup {
    pub(crate) lane: Lane,
    /// Set where the settings limit the kind.
    kind: Option<NodeKind>,
    /// Set where the settings limit the assignee: its place among those that they limit.
    executor: Option<usize>,
}

/// Order of the ready tasks in a group: urgency, remaining critical path, index.
pub(crate) type Priority = (u8, Reverse<u64>, usize);

/// Whether each condition holds; `None` while a person is asked.
pub(crate) type Conditions = BTreeMap<ConditionKey, Option<bool>>;

/// Default estimate of a task in milliseconds. Without any estimates, tasks are counted.
const ESTIMATE_MS: u64 = 60_000;

/// The number of lanes.
pub(crate) const N_LANES: usize = 3;

/// The lane of a task.
pub(crate) fn lane(task: &TaskPlan) -> Lane {
    match (task.kind, &task.command) {
        (NodeKind::Clarification, _) => Lane::Questions,
        (_, Some(_)) => Lane::Commands,
        (_, None) => Lane::Others,
    }
}

impl ConcurrencyGroup {
    pub(crate) fn of(task: &TaskPlan, config: &PlannerConfig) -> Self {
        let lane = lane(task);
        if lane == Lane::Questions {
            return Self { lane, kind: None, executor: None };
        }
        let kind = config.parallelism_by_kind.contains_key(&task.kind).then_some(task.kind);
        let assignee = task.assignee.as_ref().filter(|_| !config.parallelism_by_executor.is_empty());
        let limited = |assignee: &String| {
            let assignee = assignee.to_lowercase();
            config.parallelism_by_executor.keys().position(|name| name.to_lowercase() == assignee)
        };
        let executor = assignee.and_then(limited);
        Self { lane, kind, executor }
    }
}

impl Graph {
    fn queue(&mut self, index: usize, task: &TaskPlan, config: &PlannerConfig, conditions: &Conditions) {
        if let Some(condition) = task.condition_key() {
            let is_asked = conditions.get(&condition) == Some(&None);
            self.conditional.entry(condition).or_default().insert(index);
            if is_asked {
                return;
            }
        }
        let priority = self.priority(index, task);
        self.ready.entry(ConcurrencyGroup::of(task, config)).or_default().insert(priority);
    }

    fn leave_queue(&mut self, index: usize, task: &TaskPlan, config: &PlannerConfig) {
        self.leave_ready(index, task, config);
        if let Some(condition) = task.condition_key()
            && let Some(places) = self.conditional.get_mut(&condition)
        {
            places.remove(&index);
            if places.is_empty() {
                self.conditional.remove(&condition);
            }
        }
        self.doomed.remove(&index);
    }

    fn leave_ready(&mut self, index: usize, task: &TaskPlan, config: &PlannerConfig) {
        let (group, priority) = (ConcurrencyGroup::of(task, config), self.priority(index, task));
        if let Some(queue) = self.ready.get_mut(&group) {
            queue.remove(&priority);
            if queue.is_empty() {
                self.ready.remove(&group);
            }
        }
    }

    fn priority(&self, index: usize, task: &TaskPlan) -> Priority {
        (rank(task.priority.as_deref()), Reverse(self.critical_paths.get(index).copied().unwrap_or(0)), index)
    }
}

/// How many tasks run, by group, as far as some do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Running(BTreeMap<ConcurrencyGroup, usize>);

impl Running {
    pub(crate) fn begin(&mut self, group: ConcurrencyGroup) {
        *self.0.entry(group).or_default() += 1;
    }

    pub(crate) fn end(&mut self, group: ConcurrencyGroup) {
        if let Some(n) = self.0.get_mut(&group) {
            *n -= 1;
            if *n == 0 {
                self.0.remove(&group);
            }
        }
    }

    pub(crate) fn count(&self, which: impl Fn(&ConcurrencyGroup) -> bool) -> usize {
        self.0.iter().filter(|(group, _)| which(group)).map(|(_, n)| n).sum()
    }

    /// True when one more task of a group may be dispatched. A standing plan dispatches everything that is ready, since its
    /// unclaimed tasks do not count against its parallelism.
    pub(crate) fn may_dispatch(&self, group: ConcurrencyGroup, config: &PlannerConfig) -> bool {
        config.standing || self.have_room(group, config)
    }

    /// True when one more task of a group may run beside these.
    fn have_room(&self, group: ConcurrencyGroup, config: &PlannerConfig) -> bool {
        let ConcurrencyGroup { lane, kind, executor } = group;
        if lane == Lane::Questions {
            return true;
        }
        let max_of_kind = kind.and_then(|kind| config.parallelism_by_kind.get(&kind));
        let max_of_executor = executor.and_then(|place| config.parallelism_by_executor.values().nth(place));
        self.count(|other| other.lane == lane) < config.parallelism
            && max_of_kind.is_none_or(|max| self.count(|other| other.kind == kind) < *max)
            && max_of_executor.is_none_or(|max| self.count(|other| other.executor == executor) < *max)
    }
}

impl PlannerState {
    /// The dispatched tasks that may start now, in order of priority. Held tasks count against the limits first. Nothing starts
    /// while the plan is paused or stopped.
    #[must_use]
    pub fn startable(&self, is_held: impl Fn(TaskId) -> bool) -> Vec<TaskId> {
        if self.phase != Phase::Active || self.stopped.is_some() {
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
                waiting.push((self.graph.priority(index, &task.plan), group));
            }
        }
        waiting.sort_unstable();
        let mut startable = Vec::new();
        for ((_, _, index), group) in waiting {
            if running.have_room(group, &self.config) {
                running.begin(group);
                startable.push(self.tasks[index].plan.id);
            }
        }
        startable
    }

    /// How urgent a task is: 0 for what comes first.
    #[must_use]
    pub fn urgency(&self, task: TaskId) -> u8 {
        self.task(task).map_or(u8::MAX, |task| rank(task.plan.priority.as_deref()))
    }

    /// The dispatched tasks.
    pub fn dispatched(&self) -> impl Iterator<Item = &Task> {
        self.graph.under_way.iter().map(|index| &self.tasks[*index])
    }

    /// Changes a task and what follows from its status.
    pub(super) fn change(&mut self, id: TaskId, change: impl FnOnce(&mut Task)) {
        let Some(index) = self.index(id) else { return };
        let task = &mut self.tasks[index];
        let before = task.status;
        if before == TaskStatus::Planned {
            self.graph.leave_queue(index, &task.plan, &self.config);
        }
        change(task);
        let after = task.status;
        let group = || ConcurrencyGroup::of(&task.plan, &self.config);
        match (before == TaskStatus::Running, after == TaskStatus::Running) {
            (true, false) => {
                self.graph.running.end(group());
                self.graph.under_way.remove(&index);
            }
            (false, true) => {
                self.graph.running.begin(group());
                self.graph.under_way.insert(index);
            }
            (true, true) | (false, false) => {}
        }
        if after == TaskStatus::Planned {
            self.await_turn(index);
        }
        match (before.is_end(), after.is_end()) {
            (false, true) => {
                self.graph.open.remove(&index);
                self.graph.n_undoing -= usize::from(self.tasks[index].plan.compensates.is_some());
                self.release_dependants(index);
                if !self.inherited_answers.is_empty() {
                    self.pass_answers_on(vec![index]);
                }
            }
            (true, false) => {
                self.graph.open.insert(index);
                self.graph.n_undoing += usize::from(self.tasks[index].plan.compensates.is_some());
                self.forget_end(index);
            }
            (true, true) => self.forget_end(index),
            (false, false) => {}
        }
        if after.is_end() {
            self.note_end(index);
        }
    }

    /// Whether a condition lets its task run: by the outcome of the task that decides it, if that has a command, else by
    /// what a person said. Unset inside while a person is asked; unset while nothing is known. A task that did not run
    /// decides against both branches.
    pub(crate) fn judged(&self, plan: &TaskPlan) -> Option<Option<bool>> {
        let (condition, key) = (plan.condition.as_ref()?, plan.condition_key());
        let decides = condition.outcome_of.and_then(|id| self.task(id)).filter(|task| task.plan.command.is_some());
        // A person may have changed the plan such that the task runs before the one that decides has ended.
        let Some(task) = decides.filter(|task| task.status.is_end()) else {
            let said = self.conditions.get(&key?).copied()?;
            return Some(said.map(|holds| holds != condition.negated));
        };
        match task.status {
            TaskStatus::Completed => Some(Some(!condition.negated)),
            TaskStatus::Failed | TaskStatus::TimedOut => Some(Some(condition.negated)),
            TaskStatus::Cancelled | TaskStatus::Skipped => Some(Some(false)),
            TaskStatus::Planned | TaskStatus::Running | TaskStatus::NeedsClarification => None,
        }
    }

    /// Sets whether a condition holds, is being asked, or is unknown.
    pub(super) fn judge(&mut self, condition: &ConditionKey, holds: Option<Option<bool>>) {
        match holds {
            Some(holds) => _ = self.conditions.insert(condition.clone(), holds),
            None => _ = self.conditions.remove(condition),
        }
        let Some(places) = self.graph.conditional.get(condition).cloned() else { return };
        for index in places {
            let plan = &self.tasks[index].plan;
            match holds {
                Some(None) => self.graph.leave_ready(index, plan, &self.config),
                Some(Some(_)) | None => self.graph.queue(index, plan, &self.config, &self.conditions),
            }
        }
    }

    /// Places a task that is planned. What it waits for may have been reopened since it was first dispatched.
    fn await_turn(&mut self, index: usize) {
        let task = &self.tasks[index];
        let plan = &task.plan;
        if self.graph.unmet[index] == 0 {
            if may_be_queued(task) {
                self.graph.queue(index, plan, &self.config, &self.conditions);
            }
        } else if let Some(blocker) = plan
            .depends_on
            .iter()
            .find(|dependency| self.task(dependency.task).is_some_and(|blocker| hold(plan, blocker) == Hold::ForGood))
        {
            self.graph.doomed.insert(index, blocker.task);
        }
    }

    fn release_dependants(&mut self, index: usize) {
        let ended = &self.tasks[index];
        let dependants = std::mem::take(&mut self.graph.dependants[index]);
        for dependant in dependants.iter().copied() {
            let task = &self.tasks[dependant];
            let is_planned = task.status == TaskStatus::Planned;
            match hold(&task.plan, ended) {
                Hold::None => {
                    self.graph.unmet[dependant] -= 1;
                    if self.graph.unmet[dependant] == 0 && is_planned && may_be_queued(task) {
                        self.graph.queue(dependant, &task.plan, &self.config, &self.conditions);
                    }
                }
                Hold::ForGood if is_planned => {
                    self.graph.doomed.entry(dependant).or_insert(ended.plan.id);
                }
                Hold::ForGood | Hold::ForNow => {}
            }
        }
        self.graph.dependants[index] = dependants;
    }

    /// A place for one more task, after all others.
    pub(super) fn add_to_graph(&mut self, plan: TaskPlan) {
        self.graph.open.insert(self.tasks.len());
        self.graph.dependants.push(BTreeSet::new());
        self.graph.n_undoing += usize::from(plan.compensates.is_some());
        self.graph.unmet.push(0);
        // What it waits for is linked with what else is amended.
        self.tasks.push(Task::planned(TaskPlan { depends_on: Vec::new(), ..plan }));
    }

    /// Another definition of a task, and what follows from it.
    pub(super) fn redefine(&mut self, index: usize, plan: &TaskPlan) {
        let status = self.tasks[index].status;
        let before = std::mem::replace(&mut self.tasks[index].plan, plan.clone());
        if !status.is_end() {
            self.graph.n_undoing -= usize::from(before.compensates.is_some());
            self.graph.n_undoing += usize::from(plan.compensates.is_some());
        }
        if status == TaskStatus::Planned {
            self.graph.leave_queue(index, &before, &self.config);
        } else if status == TaskStatus::Running {
            self.graph.running.end(ConcurrencyGroup::of(&before, &self.config));
            self.graph.running.begin(ConcurrencyGroup::of(plan, &self.config));
        }
        if before.depends_on != plan.depends_on {
            for dependency in &before.depends_on {
                let Some(blocker) = self.index(dependency.task) else { continue };
                self.graph.dependants[blocker].remove(&index);
            }
            for dependency in &plan.depends_on {
                let Some(blocker) = self.index(dependency.task) else { continue };
                self.graph.dependants[blocker].insert(index);
            }
            self.graph.n_edges = self.graph.n_edges + plan.depends_on.len() - before.depends_on.len();
            self.graph.n_edges_back = self.graph.n_edges_back + n_edges_back(plan) - n_edges_back(&before);
        }
        let holds = |blocker: &Task| hold(plan, blocker) != Hold::None;
        let waits_for = plan.depends_on.iter().filter_map(|dependency| self.task(dependency.task));
        self.graph.unmet[index] = waits_for.filter(|blocker| holds(blocker)).count();
        if status == TaskStatus::Planned {
            self.await_turn(index);
        }
    }

    /// Builds the graph from tasks and statuses.
    pub(super) fn index_graph(&mut self) {
        let n_tasks = self.tasks.len();
        let mut graph =
            Graph { dependants: vec![BTreeSet::new(); n_tasks], unmet: vec![0; n_tasks], ..Graph::default() };
        for (index, task) in self.tasks.iter().enumerate() {
            if !task.status.is_end() {
                graph.open.insert(index);
                graph.n_undoing += usize::from(task.plan.compensates.is_some());
            }
            if task.status == TaskStatus::Running {
                graph.running.begin(ConcurrencyGroup::of(&task.plan, &self.config));
                graph.under_way.insert(index);
            }
            graph.n_edges += task.plan.depends_on.len();
            graph.n_edges_back += n_edges_back(&task.plan);
            for dependency in &task.plan.depends_on {
                let Some(before) = self.index(dependency.task) else { continue };
                graph.dependants[before].insert(index);
                let blocker = &self.tasks[before];
                let hold = hold(&task.plan, blocker);
                graph.unmet[index] += usize::from(hold != Hold::None);
                if task.status == TaskStatus::Planned && hold == Hold::ForGood {
                    graph.doomed.entry(index).or_insert(blocker.plan.id);
                }
            }
        }
        if self.config.order == Order::CriticalPath {
            graph.critical_paths = self.critical_paths(&graph.dependants);
        }
        for (index, task) in self.tasks.iter().enumerate() {
            if task.status == TaskStatus::Planned && may_be_queued(task) && graph.unmet[index] == 0 {
                graph.queue(index, &task.plan, &self.config, &self.conditions);
            }
        }
        self.graph = graph;
    }

    /// By task: how long it and the longest chain of what waits for it are estimated to last, in milliseconds.
    fn critical_paths(&self, dependants: &[BTreeSet<usize>]) -> Vec<u64> {
        let estimate = |index: usize| self.tasks[index].plan.estimate_ms.unwrap_or(ESTIMATE_MS);
        let mut paths = (0..self.tasks.len()).map(estimate).collect::<Vec<_>>();
        let mut n_left = dependants.iter().map(BTreeSet::len).collect::<Vec<_>>();
        let mut ends = (0..n_left.len()).filter(|index| n_left[*index] == 0).collect::<Vec<_>>();
        while let Some(index) = ends.pop() {
            let waits_for = &self.tasks[index].plan.depends_on;
            for before in waits_for.iter().filter_map(|dependency| self.index(dependency.task)) {
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

/// How many tasks that come after it a task waits for.
pub(crate) fn n_edges_back(task: &TaskPlan) -> usize {
    task.depends_on.iter().filter(|dependency| dependency.task >= task.id).count()
}

/// True of a planned task that is neither paused nor waits for its retry.
fn may_be_queued(task: &Task) -> bool {
    !task.is_paused && task.retry_ms.is_none()
}

/// Whether a task holds one that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    None,
    ForNow,
    ForGood,
}

/// The step whose outcome decides lets go by any end; without such a step a person is asked after any end.
fn lets_go(condition: &Condition, blocker: &Task) -> bool {
    condition.outcome_of.is_none_or(|decides| decides == blocker.plan.id)
}

fn hold(dependant: &TaskPlan, blocker: &Task) -> Hold {
    match blocker.status.is_end() {
        false => Hold::ForNow,
        true if blocker.unblocks => Hold::None,
        true if dependant.condition.as_ref().is_some_and(|one| lets_go(one, blocker)) => Hold::None,
        true => Hold::ForGood,
    }
}
