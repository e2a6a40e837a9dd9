//! The types of the graph of a plan's tasks: dependencies, ready tasks, running tasks, lanes and conditions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::event::PlannerConfig;
use crate::plan::{ConditionKey, NodeKind, TaskId, TaskPlan};

/// Values derived from tasks and statuses, updated by each event. Tasks are named by their index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Graph {
    /// By task: its dependents.
    pub(crate) dependants: Vec<BTreeSet<usize>>,
    /// By task: the number of its unmet dependencies.
    pub(super) unmet: Vec<usize>,
    /// Planned tasks that may start: not paused, all dependencies met, and no open question about their condition.
    pub(crate) ready: BTreeMap<ConcurrencyGroup, BTreeSet<Priority>>,
    /// By condition: the tasks that have it.
    pub(super) conditional: BTreeMap<ConditionKey, BTreeSet<usize>>,
    /// Planned tasks that can never start, each with the dependency that ended without success.
    pub(crate) doomed: BTreeMap<usize, TaskId>,
    /// The tasks that have not ended.
    pub(crate) open: BTreeSet<usize>,
    pub(crate) running: Running,
    /// The running tasks.
    pub(super) under_way: BTreeSet<usize>,
    /// Open tasks that undo others.
    pub(crate) n_undoing: usize,
    /// The number of dependencies.
    pub(crate) n_edges: usize,
    /// By task: its remaining critical path; empty unless the plan is ordered by it.
    pub(super) critical_paths: Vec<u64>,
}

/// Tasks run in parallel in lanes, each with its own limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// Those with a command, which run by themselves.
    Commands,
    /// Those without a command.
    Others,
    /// Questions, which are unlimited.
    Questions,
}

/// Tasks that share the limits on parallelism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConcurrencyGroup {
    pub(crate) lane: Lane,
    /// Set if the settings limit the kind.
    kind: Option<NodeKind>,
    /// Set if the settings limit the assignee: its index among the limited ones.
    executor: Option<usize>,
}

/// Order of the ready tasks in a group: urgency, remaining critical path, index.
pub(crate) type Priority = (u8, Reverse<u64>, usize);

/// The value of each condition; `None` while a person is asked.
pub(crate) type Conditions = BTreeMap<ConditionKey, Option<bool>>;

/// The effect of a task's condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionStatus {
    Holds,
    Fails,
    /// No task ran that decides it: neither branch runs.
    Void,
    /// A person is being asked.
    Asked,
    Unknown,
}

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

/// The number of running tasks, by group.
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

    /// True if one more task of a group may run now.
    pub(crate) fn have_room(&self, group: ConcurrencyGroup, config: &PlannerConfig) -> bool {
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
