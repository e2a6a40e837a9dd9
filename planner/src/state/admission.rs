//! Counts the usage of tasks, and admits those that the budget allows.

use crate::event::{Budget, TaskStatus, Usage};
use crate::plan::{TaskId, TaskPlan};
use crate::state::budget::{LaneUse, Ledger, Measure, Shortage};
use crate::state::graph::{ConditionStatus, Lane, lane};
use crate::state::{PlannerState, Task};

impl PlannerState {
    /// The usage so far.
    pub fn spent(&self) -> Usage {
        self.spending.total
    }

    /// Adds the usage of a claim of a task.
    pub(super) fn spend(&mut self, task: TaskId, epoch: u64, usage: &Usage) {
        let Some(index) = self.index(task) else { return };
        self.tasks[index].usage_epoch = epoch;
        self.tasks[index].spent.add(usage);
        let plan = &self.tasks[index].plan;
        self.spending.total.add(usage);
        self.spending.known.insert(task);
        // The usage of a sub-plan says nothing about a single task.
        if !plan.is_delegated() {
            self.spending.by_lane[lane(plan) as usize].total.add(usage);
        }
    }

    /// Counts a run that ends with a status. A cancelled run says little about the next.
    pub(super) fn end_spending(&mut self, task: TaskId, status: TaskStatus) {
        let has_usage = self.spending.known.remove(&task);
        let is_counted = match status {
            TaskStatus::Running | TaskStatus::Cancelled | TaskStatus::Skipped => false,
            // A run that was withdrawn, or asked before its start, has no usage.
            TaskStatus::Planned | TaskStatus::NeedsClarification => has_usage,
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::TimedOut => true,
        };
        let Some(task) = self.task(task).filter(|task| task.status == TaskStatus::Running) else { return };
        if is_counted && !task.plan.is_delegated() {
            let lane = lane(&task.plan);
            self.spending.by_lane[lane as usize].n_ended += 1;
        }
    }

    /// The exhausted measure of the budget if nothing runs and nothing more may start.
    pub fn shortage(&self) -> Option<Shortage> {
        let runs_tasks = self.graph.running.count(|group| group.lane != Lane::Questions) > 0;
        if runs_tasks { None } else { self.held_by_budget() }
    }

    /// The exhausted measure of the budget if it keeps every ready task from starting, even while others run.
    pub fn held_by_budget(&self) -> Option<Shortage> {
        if self.config.budget.is_unlimited() {
            return None;
        }
        let mut ledger = self.ledger(|_| true);
        let may_start = |task: &&Task| self.condition_status(&task.plan) == ConditionStatus::Holds;
        let ready = self.graph.ready.iter().filter(|(group, _)| group.lane != Lane::Questions);
        let mut ready = ready.flat_map(|(_, queue)| queue).map(|(_, _, index)| &self.tasks[*index]).filter(may_start);
        if ready.any(|task| self.admit(&mut ledger, task)) { None } else { ledger.shortage }
    }

    /// The reservations for the running tasks that count.
    pub(crate) fn ledger(&self, is_counted: impl Fn(&Task) -> bool) -> Ledger {
        let mut ledger = Ledger::default();
        if !self.config.budget.is_unlimited() {
            self.dispatched().filter(|task| is_counted(task)).for_each(|task| self.reserve(&mut ledger, task));
        }
        ledger
    }

    /// The budget of the sub-plan of a task: the part neither spent nor reserved for other tasks.
    #[must_use]
    pub fn left_for_plan(&self, task: TaskId) -> Budget {
        self.left_of(&self.ledger(|other| other.plan.id != task))
    }

    fn left_of(&self, ledger: &Ledger) -> Budget {
        let left = |measure: Measure| {
            let taken = measure.of(&self.spending.total).saturating_add(ledger.reserved[measure as usize]);
            measure.limit(&self.config.budget).map(|limit| limit.saturating_sub(taken))
        };
        Budget { tokens: left(Measure::Tokens), cost_micros: left(Measure::Cost), duration_ms: left(Measure::Duration) }
    }

    /// The budget of all running sub-plans together: the part neither spent nor reserved for other tasks.
    pub fn left_for_plans(&self) -> Budget {
        self.left_of(&self.ledger(|task| !task.plan.is_delegated()))
    }

    /// True when the budget admits a task; then its expected usage is reserved. Compensating tasks are not limited.
    pub(crate) fn admit(&self, ledger: &mut Ledger, task: &Task) -> bool {
        let mut measures = Measure::ALL.into_iter().filter(|measure| self.may_use(*measure, &task.plan));
        let shortage = measures.find_map(|measure| {
            let limit = measure.limit(&self.config.budget)?;
            let (spent, reserved) = (measure.of(&self.spending.total), ledger.reserved[measure as usize]);
            let is_short = spent.saturating_add(reserved) >= limit;
            is_short.then_some(Shortage { measure, limit, spent, reserved })
        });
        if shortage.is_some() {
            ledger.shortage = ledger.shortage.or(shortage);
            return false;
        }
        self.reserve(ledger, task);
        true
    }

    fn reserve(&self, ledger: &mut Ledger, task: &Task) {
        for measure in Measure::ALL.into_iter().filter(|measure| self.may_use(*measure, &task.plan)) {
            let reserved = &mut ledger.reserved[measure as usize];
            *reserved = reserved.saturating_add(self.expected(measure, &task.plan));
        }
    }

    /// The expected usage of a task: its estimated time, or the average of its lane; the whole budget for a sub-plan, and
    /// for the first task of a lane, so that it runs alone.
    fn expected(&self, measure: Measure, task: &TaskPlan) -> u64 {
        let LaneUse { total, n_ended } = &self.spending.by_lane[lane(task) as usize];
        match (measure, task.estimate_ms) {
            (Measure::Duration, Some(estimate_ms)) if !task.is_delegated() => estimate_ms,
            _ if task.is_delegated() || *n_ended == 0 => measure.limit(&self.config.budget).unwrap_or(0),
            (Measure::Tokens | Measure::Cost | Measure::Duration, _) => measure.of(total) / n_ended,
        }
    }

    /// True if the budget limits a measure that the task uses. Commands use only time, until one reports something else.
    fn may_use(&self, measure: Measure, task: &TaskPlan) -> bool {
        let is_limited = task.compensates.is_none() && lane(task) != Lane::Questions;
        let is_command = lane(task) == Lane::Commands && !task.is_delegated();
        let has_used = || measure.of(&self.spending.by_lane[Lane::Commands as usize].total) > 0;
        is_limited && (measure == Measure::Duration || !is_command || has_used())
    }
}
