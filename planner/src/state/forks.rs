//! Forks in the state: ended tasks and answers are inherited, and tasks that had not ended start again.

use std::collections::BTreeSet;

use crate::event::{TaskStatus, Timer};
use crate::plan::Parent;
use crate::state::{Phase, PlannerState};
use crate::task::Task;

impl PlannerState {
    /// Turns the state into that of a fork. Open tasks are pending again, and ask their open questions again.
    pub(super) fn fork(&mut self, parent: Parent) {
        self.parent = Some(parent);
        self.n_ancestors += 1;
        // A fork needs the parent's history.
        if self.phase == Phase::Empty {
            return;
        }
        self.phase = Phase::Active;
        self.drop_timers();
        self.start_timer(Timer::Plan, self.config.deadline_ms);
        (self.is_cancelled, self.stopped_by) = (false, None);
        let undone = self.tasks.iter().filter(|task| task.status == TaskStatus::Completed);
        let undone = undone.filter_map(|task| task.plan.compensates).collect::<BTreeSet<_>>();
        let is_undone = |task: &Task| task.status == TaskStatus::Completed && undone.contains(&task.plan.id);
        let reset = self.tasks.iter().enumerate().filter(|(_, task)| is_undone(task)).map(|(index, _)| index);
        self.retract(&reset.collect());
        for task in &mut self.tasks {
            // The fork's tasks have claims of their own.
            (task.is_inherited, task.usage_epoch) = (true, 0);
            if task.plan.compensates.is_some() && !task.status.is_end() {
                // The undo tasks of the parent are not the fork's business.
                (task.status, task.unblocks) = (TaskStatus::Skipped, true);
                task.error = Some("not run: the parent plan was undoing it".into());
            } else if !task.status.is_end() || is_undone(task) {
                *task = Task { is_paused: task.is_paused, ..Task::planned(task.plan.clone()) };
            } else {
                task.is_compensated = false;
            }
        }
        for place in std::mem::take(&mut self.open) {
            self.questions[place].is_withdrawn = true;
        }
        self.conditions.retain(|_, holds| holds.is_some());
        self.summary.requested = None;
        self.index_graph();
    }
}
