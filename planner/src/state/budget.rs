//! The budget of a plan: usage, reservations and admission of tasks.

use std::collections::BTreeSet;

use crate::event::{Budget, TaskStatus, Usage, money};
use crate::plan::{TaskId, TaskPlan};
use crate::state::graph::{ConditionStatus, Lane, N_LANES, lane};
use crate::state::{PlannerState, Task};
use crate::text::duration;

/// A quantity that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Tokens read and written.
    Tokens,
    /// Millionths of the unit in which prices are given.
    Cost,
    /// Milliseconds that tasks run.
    Duration,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tokens, Self::Cost, Self::Duration];

    /// Its amount in a usage.
    pub fn of(self, usage: &Usage) -> u64 {
        match self {
            Self::Tokens => usage.input_tokens.saturating_add(usage.output_tokens),
            Self::Cost => usage.cost_micros,
            Self::Duration => usage.duration_ms,
        }
    }

    /// Its limit in a budget, if there is one.
    pub fn limit(self, budget: &Budget) -> Option<u64> {
        match self {
            Self::Tokens => budget.tokens,
            Self::Cost => budget.cost_micros,
            Self::Duration => budget.duration_ms,
        }
    }

    /// An amount in words.
    pub fn words(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens"),
            Self::Cost => format!("a cost of {}", money(amount)),
            Self::Duration => duration(amount),
        }
    }

    /// The amount of a usage in words, with how much of it is estimated.
    pub fn words_of(self, usage: &Usage) -> String {
        let words = self.words(self.of(usage));
        match usage.estimated_tokens {
            estimated if self != Self::Tokens || estimated == 0 => words,
            estimated if estimated >= self.of(usage) => format!("{words} (estimated)"),
            estimated => format!("{words} ({estimated} of them estimated)"),
        }
    }

    /// The setting of the limit.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tokens => "budget.tokens",
            Self::Cost => "budget.cost",
            Self::Duration => "budget.time",
        }
    }
}

/// An exhausted measure of the budget: used up, or reserved for running tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// The measure.
    pub measure: Measure,
    /// The budget.
    pub limit: u64,
    /// Used up so far.
    pub spent: u64,
    /// The expected usage of the running tasks.
    pub reserved: u64,
}

impl Shortage {
    /// The shortage in words, without a remedy.
    pub fn words(&self) -> String {
        let Self { measure, limit, spent, reserved } = *self;
        let (limit, spent) = (measure.words(limit), measure.words(spent));
        match reserved {
            0 => format!("the budget of {limit} is used up: {spent} spent"),
            _ => {
                let reserved = measure.words(reserved);
                format!(
                    "the budget of {limit} is fully reserved: {spent} spent, {reserved} reserved for running \
         tasks"
                )
            }
        }
    }
}

impl std::fmt::Display for Shortage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (words, key) = (self.words(), self.measure.key());
        write!(f, "{words}; raise it with `crewlog plan set PLAN {key}=...`, then `crewlog resume PLAN`")
    }
}

/// The usage so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spending {
    pub(crate) total: Usage,
    by_lane: [LaneUse; N_LANES],
    /// The tasks whose current run has a known usage.
    known: BTreeSet<TaskId>,
}

/// Usage of the tasks of one lane, without sub-plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LaneUse {
    total: Usage,
    /// The number of runs that have ended.
    n_ended: u64,
}

/// Reservations while tasks are admitted.
#[derive(Default)]
pub(crate) struct Ledger {
    /// By measure: the expected usage of the running tasks.
    reserved: [u64; Measure::ALL.len()],
    /// The reason why the first task was refused.
    shortage: Option<Shortage>,
}

impl PlannerState {
    /// The usage so far.
    pub fn spent(&self) -> Usage {
        self.spending.total
    }

    /// Adds the usage of a claim of a task.
    pub(super) fn spend(&mut self, task: TaskId, epoch: u64, usage: &Usage) {
        let Some(index) = self.index(task) else { return };
        self.tasks[index].usage_epoch = epoch;
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

    /// The budget of the sub-plan of a task: the part neither spent nor reserved. Other tasks have no budget of their own.
    pub(crate) fn left(&self, ledger: &Ledger, task: &Task) -> Budget {
        if task.plan.is_delegated() { self.left_of(ledger) } else { Budget::default() }
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
        let shortage = Measure::ALL.into_iter().filter(|measure| may_use(*measure, &task.plan)).find_map(|measure| {
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
        for measure in Measure::ALL.into_iter().filter(|measure| may_use(*measure, &task.plan)) {
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
}

/// True if the budget limits a measure that the task uses. Commands use no tokens.
fn may_use(measure: Measure, task: &TaskPlan) -> bool {
    let is_limited = task.compensates.is_none() && lane(task) != Lane::Questions;
    let is_command = lane(task) == Lane::Commands && !task.is_delegated();
    is_limited && (measure == Measure::Duration || !is_command)
}
