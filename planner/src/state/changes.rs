//! Applies what changes a whole plan: amendments, other settings, and a fork.

use std::collections::BTreeSet;

use crate::event::{Order, PlannerConfig, TaskStatus, Timer, Usage};
use crate::plan::{Parent, TaskPlan};
use crate::state::{Phase, PlannerState};
use crate::task::Task;

impl PlannerState {
    /// Redefines known tasks, which keep their history, and adds new ones. A standing plan is active again.
    pub(super) fn amend(&mut self, tasks: &[TaskPlan], source: Option<&str>) {
        if let Some(source) = source {
            source.clone_into(&mut self.source);
        }
        tasks.iter().for_each(|task| self.retime_task(task));
        let has_ended = self.phase.is_ended();
        if has_ended && self.config.standing && tasks.iter().any(|task| task.compensates.is_none()) {
            (self.phase, self.is_cancelled) = (Phase::Active, false);
            self.start_timer(Timer::Plan, self.config.deadline_ms);
        }
        for plan in tasks {
            if let Some(undone) = plan.compensates.and_then(|of| self.index(of)) {
                self.tasks[undone].is_compensated = true;
                // Compensation reopens the plan.
                if let Phase::Ended(_) = self.phase {
                    self.phase = Phase::Active;
                }
            }
            if plan.id.0 >= self.next_id() {
                // Adding a task to a stopped plan resumes it. Its undo tasks come when all others have ended.
                self.stopped_by = None;
                self.add_to_graph(plan.clone());
            }
        }
        let known = tasks.iter().filter_map(|plan| Some((self.index(plan.id)?, plan))).collect::<Vec<_>>();
        for (index, plan) in &known {
            if let Some(label) = &self.tasks[*index].plan.label {
                self.labels.remove(&label.to_lowercase());
            }
            self.redefine(*index, plan);
        }
        // Two tasks may swap their labels, so all are removed before any is added.
        let labelled = known.iter().filter_map(|(_, plan)| Some((plan.label.as_ref()?.to_lowercase(), plan.id)));
        self.labels.extend(labelled);
        let passes_on =
            |index: &usize| self.tasks[*index].status.is_end() || self.inherited_answers.contains_key(index);
        let passing_on = known.iter().map(|(index, _)| *index).filter(passes_on).collect();
        self.pass_answers_on(passing_on);
        if self.config.order == Order::CriticalPath {
            self.index_graph();
        }
    }

    /// Changes the settings, and updates limits, order and deadline accordingly.
    pub(super) fn configure(&mut self, config: &PlannerConfig) {
        if self.config.deadline_ms != config.deadline_ms {
            let is_open = matches!(self.phase, Phase::Active | Phase::Paused);
            self.drop_timer(Timer::Plan);
            self.start_timer(Timer::Plan, config.deadline_ms.filter(|_| is_open));
        }
        self.config = config.clone();
        self.index_graph();
    }

    /// Turns the state into that of a fork. Open tasks are pending again, and ask their open questions again.
    pub(super) fn fork(&mut self, parent: Parent, is_draft: bool) {
        (self.parent, self.is_draft) = (Some(parent), is_draft);
        self.n_ancestors += 1;
        // A fork needs the parent's history.
        if self.phase == Phase::Empty {
            return;
        }
        self.phase = Phase::Active;
        self.drop_timers();
        self.start_timer(Timer::Plan, self.config.deadline_ms);
        (self.is_cancelled, self.is_late, self.stopped_by) = (false, false, None);
        let undone = self.tasks.iter().filter(|task| task.status == TaskStatus::Completed);
        let undone = undone.filter_map(|task| task.plan.compensates).collect::<BTreeSet<_>>();
        let is_undone = |task: &Task| task.status == TaskStatus::Completed && undone.contains(&task.plan.id);
        let reset = self.tasks.iter().enumerate().filter(|(_, task)| is_undone(task)).map(|(index, _)| index);
        self.retract(&reset.collect());
        for task in &mut self.tasks {
            // The fork's tasks have claims of their own.
            (task.is_inherited, task.usage_epoch, task.spent) = (true, 0, Usage::default());
            if task.plan.compensates.is_some() && !task.status.is_end() {
                // The undo tasks of the parent are not the fork's business.
                (task.status, task.unblocks, task.is_paused) = (TaskStatus::Skipped, true, false);
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
        self.index_graph();
    }
}
