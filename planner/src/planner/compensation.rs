//! Compensation: a failed or cancelled plan gets tasks that undo its completed tasks, where these have undo commands.

use std::collections::BTreeMap;

use crate::event::{Event, Outcome, TaskStatus};
use crate::plan::{Dependency, FailurePolicy, NodeKind, Strength, TaskId, TaskPlan};
use crate::planner::Planner;
use crate::state::{Phase, Task};

impl Planner {
    /// The compensating tasks of a plan whose tasks have all ended, newest first; one for each completed task.
    pub(super) fn compensate(&self) -> Vec<Event> {
        let outcome = self.outcome();
        if !self.state.config.compensate || outcome == Outcome::Completed {
            return Vec::new();
        }
        let mut done = self.state.tasks.iter().filter(|task| may_be_undone(task)).collect::<Vec<_>>();
        if done.is_empty() {
            return Vec::new();
        }
        done.sort_by_key(|task| std::cmp::Reverse((task.ended_by, task.plan.id)));
        let first = self.state.next_id();
        let tasks = (first..).zip(done).map(|(id, task)| {
            let before = (id > first).then(|| Dependency { task: TaskId(id - 1), strength: Strength::Hard });
            TaskPlan {
                // Its number may be the label of another task.
                label: self.state.labels.contains_key(&id.to_string()).then(|| format!("undo/{id}")),
                command: task.plan.compensate.clone(),
                compensates: Some(task.plan.id),
                depends_on: before.into_iter().collect(),
                // The next task is undone even if this one fails.
                on_failure: Some(FailurePolicy::Continue),
                ..TaskPlan::new(
                    TaskId(id),
                    NodeKind::ToolCall,
                    format!("Undo {}: {}", task.plan.name(), task.plan.description),
                )
            }
        });
        let word = if outcome == Outcome::Cancelled { "was cancelled" } else { "failed" };
        let reason = format!("the plan {word}; undoing it");
        let amended = Event::TasksAmended { tasks: tasks.collect(), reason, source: None };
        // A cancelled plan is undone at once, even if a person had paused it.
        let resumed = (self.state.phase == Phase::Paused).then_some(Event::PlanResumed {});
        resumed.into_iter().chain([amended]).collect()
    }

    /// Cancels the plan and undoes it regardless of its settings, also after it failed or was cancelled.
    pub(super) fn cancel_and_undo(&self, reason: &str) -> Vec<Event> {
        let mut config = Box::new(self.state.config.clone());
        let set = (!config.compensate).then(|| {
            config.compensate = true;
            Event::SettingsChanged { config, reason: reason.to_owned() }
        });
        let has_something = || self.state.tasks.iter().any(may_be_undone);
        match self.state.phase {
            Phase::Ended(Outcome::Completed) => Vec::new(),
            Phase::Ended(Outcome::Failed | Outcome::Cancelled) if !has_something() => Vec::new(),
            Phase::Ended(Outcome::Failed | Outcome::Cancelled) => set.into_iter().collect(),
            Phase::Empty | Phase::Active | Phase::Paused => set.into_iter().chain(self.cancel_plan(reason)).collect(),
        }
    }

    /// The number of undone tasks, and of those that could not be undone.
    pub(super) fn n_undone(&self) -> (usize, usize) {
        let tasks = || self.state.tasks.iter();
        let undoing =
            tasks().filter_map(|task| Some((task.plan.compensates?, task.status))).collect::<BTreeMap<_, _>>();
        let n_tried = tasks().filter(|task| task.is_compensated).count();
        let is_undone = |task: &&Task| undoing.get(&task.plan.id) == Some(&TaskStatus::Completed);
        let n_undone = tasks().filter(|task| task.is_compensated).filter(is_undone).count();
        (n_undone, n_tried - n_undone)
    }
}

/// True for a task with an undo command that completed in this plan and has not been undone since.
fn may_be_undone(task: &Task) -> bool {
    let is_done = task.plan.compensate.is_some() && task.status == TaskStatus::Completed;
    is_done && task.attempts > 0 && !task.is_inherited && !task.is_compensated
}
