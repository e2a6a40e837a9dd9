//! Applies amendments and other settings to a plan.

use crate::event::{Order, PlannerConfig, Timer};
use crate::plan::TaskPlan;
use crate::state::{Phase, PlannerState};

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
}
