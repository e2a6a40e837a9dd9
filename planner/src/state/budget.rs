//! The budget of a plan: usage, reservations and admission of tasks.

use crate::event::{Budget, TaskStatus, Usage, money};
use crate::plan::{TaskId, TaskPlan};
use crate::state::graph::{Lane, N_LANES, lane};
use crate::state::{PlannerState, Task};

/// What of a plan's budget can run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Tokens, told and written together.
    Tokens,
    /// Millionths of the unit in which prices are given.
    Cost,
    /// Milliseconds for which tasks run.
    Duration,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tokens, Self::Cost, Self::Duration];

    /// How much of it a usage is.
    #[must_use]
    pub fn of(self, usage: &Usage) -> u64 {
        match self {
            Self::Tokens => usage.input_tokens.saturating_add(usage.output_tokens),
            Self::Cost => usage.cost_micros,
            Self::Duration => usage.duration_ms,
        }
    }

    /// The limit that a budget sets to it, if it does.
    #[must_use]
    pub fn limit(self, budget: &Budget) -> Option<u64> {
        match self {
            Self::Tokens => budget.tokens,
            Self::Cost => budget.cost_micros,
            Self::Duration => budget.duration_ms,
        }
    }

    /// An amount in words.
    #[must_use]
    pub fn words(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens"),
            Self::Cost => format!("a cost of {}", money(amount)),
            Self::Duration => format!("{}.{:03} s", amount / 1_000, amount % 1_000),
        }
    }

    /// How much of it a usage is, in words: marked as estimated where nobody counted.
    #[must_use]
    pub fn words_of(self, usage: &Usage) -> String {
        let words = self.words(self.of(usage));
        match (self, usage.estimated_tokens) {
            (Self::Tokens, 1..) if usage.estimated_tokens >= self.of(usage) => format!("{words} (estimated)"),
            (Self::Tokens, estimated @ 1..) => format!("{words} ({estimated} of them estimated)"),
            (Self::Tokens, 0) | (Self::Cost | Self::Duration, _) => words,
        }
    }

    /// The option that sets the limit.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Self::Tokens => "--budget-tokens",
            Self::Cost => "--budget-cost",
            Self::Duration => "--budget-time",
        }
    }
}

/// A usage in words: of each measure that it has any of.
#[must_use]
pub fn words_for(usage: &Usage) -> String {
    let some = Measure::ALL.iter().filter(|measure| measure.of(usage) > 0);
    some.map(|measure| measure.words_of(usage)).collect::<Vec<_>>().join(", ")
}

/// An exhausted measure of the budget: used up, or reserved for running tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Of what.
    pub measure: Measure,
    /// The budget.
    pub limit: u64,
    /// Used up so far.
    pub spent: u64,
    /// The expected usage of the running tasks.
    pub reserved: u64,
}

impl Shortage {
    /// What is missing.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { measure, limit, spent, reserved } = *self;
        let reserved = match reserved {
            0 => String::new(),
            _ => format!(", {} reserved for what runs", measure.words(reserved)),
        };
        format!("the budget of {} is used up: {} spent{reserved}", measure.words(limit), measure.words(spent))
    }
}

impl std::fmt::Display for Shortage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (words, option) = (self.words(), self.measure.option());
        write!(f, "{words}; raise it with `crewlog set PLAN {option} ...`, then `crewlog resume PLAN`")
    }
}

/// Why a budget keeps what is ready from being started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldByBudget {
    /// It is used up.
    Short(Shortage),
    /// What such tasks use is not known before the first of them has ended.
    Unknown,
}

impl HeldByBudget {
    /// Why.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Short(shortage) => shortage.words(),
            Self::Unknown => {
                "there is a budget, and what such tasks use up is known when the first of them has ended".to_owned()
            }
        }
    }
}

/// What has been used up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spending {
    pub(crate) total: Usage,
    by_lane: [LaneUse; N_LANES],
}

/// Usage of the tasks of one lane, without tasks that are sub-plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LaneUse {
    total: Usage,
    /// The runs that have ended.
    n_ended: u64,
}

impl LaneUse {
    /// The average usage of a run.
    fn mean(&self) -> Usage {
        let mean = |total: u64| total / self.n_ended.max(1);
        Usage {
            input_tokens: mean(self.total.input_tokens),
            output_tokens: mean(self.total.output_tokens),
            cost_micros: mean(self.total.cost_micros),
            duration_ms: mean(self.total.duration_ms),
            ..Usage::default()
        }
    }
}

/// Reservations while tasks are admitted.
pub(crate) struct Ledger {
    /// The expected usage of the running tasks.
    reserved: Usage,
    /// By lane: whether a task runs.
    runs: [bool; N_LANES],
    /// Why the first refused task was refused.
    held: Option<HeldByBudget>,
}

impl PlannerState {
    /// What has been used up.
    #[must_use]
    pub fn spent(&self) -> Usage {
        self.spending.total
    }

    /// Takes in what a task used up.
    pub(super) fn spend(&mut self, task: TaskId, usage: &Usage) {
        let Some(index) = self.index(task) else { return };
        let plan = &self.tasks[index].plan;
        self.spending.total.add(usage);
        // The usage of a sub-plan says nothing about a single task.
        if !plan.is_delegated() {
            self.spending.by_lane[lane(plan) as usize].total.add(usage);
        }
    }

    /// Takes in that a task which ran has another status. One that was stopped says little about the next.
    pub(super) fn end_spending(&mut self, task: TaskId, status: TaskStatus) {
        let counts = |task: &&Task| task.status == TaskStatus::Running && !task.plan.is_delegated();
        let has_ended = match status {
            TaskStatus::Running | TaskStatus::Cancelled | TaskStatus::Skipped => false,
            TaskStatus::Planned
            | TaskStatus::NeedsClarification
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::TimedOut => true,
        };
        if let Some(task) = self.task(task).filter(counts) {
            let lane = lane(&task.plan);
            self.spending.by_lane[lane as usize].n_ended += u64::from(has_ended);
        }
    }

    /// The exhausted measure of the budget, when nothing runs and nothing more may start.
    #[must_use]
    pub fn shortage(&self) -> Option<Shortage> {
        if self.runs_tasks() {
            return None;
        }
        match self.held_by_budget()? {
            HeldByBudget::Short(shortage) => Some(shortage),
            HeldByBudget::Unknown => None,
        }
    }

    /// Why the budget starts none of the ready tasks, also while others run.
    #[must_use]
    pub fn held_by_budget(&self) -> Option<HeldByBudget> {
        if self.config.budget.is_unlimited() {
            return None;
        }
        let mut ledger = self.ledger();
        let may_start = |task: &&Task| {
            let holds = task.plan.condition.is_none() || self.judged(&task.plan) == Some(Some(true));
            !task.is_paused && holds
        };
        let ready = self.graph.ready.iter().filter(|(group, _)| group.lane != Lane::Questions);
        let mut ready = ready.flat_map(|(_, queue)| queue).map(|(_, _, index)| &self.tasks[*index]).filter(may_start);
        if ready.any(|task| self.admit(&mut ledger, task)) { None } else { ledger.held }
    }

    /// True while a task runs that is no question.
    pub(crate) fn runs_tasks(&self) -> bool {
        self.graph.running.count(|group| group.lane != Lane::Questions) > 0
    }

    /// What is reserved for the tasks that run.
    pub(crate) fn ledger(&self) -> Ledger {
        self.ledger_of(|_| true)
    }

    fn ledger_of(&self, counts: impl Fn(&Task) -> bool) -> Ledger {
        let (mut reserved, mut runs) = (Usage::default(), [false; N_LANES]);
        if !self.config.budget.is_unlimited() {
            for task in self.dispatched().filter(|task| counts(task)) {
                reserved.add(&self.expected(task));
                runs[lane(&task.plan) as usize] = true;
            }
        }
        Ledger { reserved, runs, held: None }
    }

    /// What a plan that carries a task out may use up: all that is left and not reserved for others. Other tasks have no
    /// budget of their own.
    pub(crate) fn left(&self, ledger: &Ledger, task: &Task) -> Budget {
        if task.plan.is_delegated() { self.left_of(ledger) } else { Budget::default() }
    }

    fn left_of(&self, ledger: &Ledger) -> Budget {
        let left = |measure: Measure| {
            let taken = measure.of(&self.spending.total).saturating_add(measure.of(&ledger.reserved));
            measure.limit(&self.config.budget).map(|limit| limit.saturating_sub(taken))
        };
        Budget { tokens: left(Measure::Tokens), cost_micros: left(Measure::Cost), duration_ms: left(Measure::Duration) }
    }

    /// What the plans that carry tasks out may use up together: all that is left and not reserved for other tasks.
    #[must_use]
    pub fn left_for_plans(&self) -> Budget {
        self.left_of(&self.ledger_of(|task| !task.plan.is_delegated()))
    }

    /// True when the budget admits a task; then the average usage of such tasks is reserved for it. Until an average is known,
    /// one task of a lane runs at a time. Compensating tasks are not limited.
    pub(crate) fn admit(&self, ledger: &mut Ledger, task: &Task) -> bool {
        let own = lane(&task.plan);
        if self.config.budget.is_unlimited() || task.plan.compensates.is_some() || own == Lane::Questions {
            return true;
        }
        let measures = Measure::ALL.into_iter().filter(|measure| may_use(*measure, &task.plan));
        let limits = measures.filter_map(|measure| Some((measure, measure.limit(&self.config.budget)?)));
        let limits = limits.collect::<Vec<_>>();
        let is_known = self.spending.by_lane[own as usize].n_ended > 0;
        let held = if !limits.is_empty() && ledger.runs[own as usize] && !is_known {
            Some(HeldByBudget::Unknown)
        } else {
            limits.iter().find_map(|(measure, limit)| {
                let (spent, reserved) = (measure.of(&self.spending.total), measure.of(&ledger.reserved));
                let is_short = spent.saturating_add(reserved) >= *limit;
                is_short.then_some(HeldByBudget::Short(Shortage { measure: *measure, limit: *limit, spent, reserved }))
            })
        };
        if held.is_some() {
            ledger.held = ledger.held.or(held);
            return false;
        }
        ledger.reserved.add(&self.expected(task));
        ledger.runs[own as usize] = true;
        true
    }

    /// The expected usage of a task: the average of its lane, with its estimated time if it has one. A sub-plan may use all
    /// that is left.
    fn expected(&self, task: &Task) -> Usage {
        if task.plan.is_delegated() {
            let Budget { tokens, cost_micros, duration_ms } = self.config.budget;
            return Usage {
                input_tokens: tokens.unwrap_or(0),
                cost_micros: cost_micros.unwrap_or(0),
                duration_ms: duration_ms.unwrap_or(0),
                ..Usage::default()
            };
        }
        let mean = self.spending.by_lane[lane(&task.plan) as usize].mean();
        Usage { duration_ms: task.plan.estimate_ms.unwrap_or(mean.duration_ms), ..mean }
    }
}

/// Whether a task may use some of a measure: commands use no tokens.
fn may_use(measure: Measure, task: &TaskPlan) -> bool {
    match measure {
        Measure::Tokens | Measure::Cost => task.is_delegated() || lane(task) != Lane::Commands,
        Measure::Duration => true,
    }
}
