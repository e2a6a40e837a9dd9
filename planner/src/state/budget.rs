//! What a plan has used up, what more is expected, and whether that fits its budget. It starts and stops nothing.

use crate::event::{Budget, TaskStatus, Usage, money};
use crate::plan::{Condition, TaskId};
use crate::state::graph::{Lane, N_LANES, lane};
use crate::state::{PlannerState, Task};
use crate::text::estimate_tokens;

/// The tokens of what every prompt says about how to answer.
const INSTRUCTIONS_TOKENS: u64 = 125;

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

    /// How much of it a usage is, in words: what of it nobody counted is said to be estimated.
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

/// Why a task is not started: what it is expected to use does not fit the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Of what.
    pub measure: Measure,
    /// The budget.
    pub limit: u64,
    /// Used up so far.
    pub spent: u64,
    /// What those that run are expected to use.
    pub kept_back: u64,
    /// What the next task is expected to use.
    pub needed: u64,
}

impl Shortage {
    /// What is missing.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { measure, limit, spent, kept_back, needed } = *self;
        let words = |amount| measure.words(amount);
        let kept_back = match kept_back {
            0 => String::new(),
            _ => format!("{} kept back for what runs, ", words(kept_back)),
        };
        let needed = match needed {
            0 => "nothing left".to_owned(),
            _ => format!("{} more would be needed", words(needed)),
        };
        format!("the budget of {} does not suffice: {} spent, {kept_back}{needed}", words(limit), words(spent))
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
    /// The rest of it does not suffice.
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

/// What has been used up, as far as later tasks can be judged by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spending {
    pub(crate) total: Usage,
    /// By lane: the most that a task used of each measure; unset before the first that said so.
    greatest: [Option<Usage>; N_LANES],
    /// By lane: whether a task has ended, so that what it used is known if it ever will be.
    has_ended: [bool; N_LANES],
}

impl Spending {
    /// What a whole plan used tells nothing of a single task.
    pub(super) fn take(&mut self, lane: Lane, is_delegated: bool, usage: &Usage) {
        self.total.add(usage);
        if is_delegated {
            return;
        }
        let greatest = self.greatest[lane as usize].get_or_insert_default();
        greatest.input_tokens = greatest.input_tokens.max(usage.input_tokens);
        greatest.output_tokens = greatest.output_tokens.max(usage.output_tokens);
        greatest.cost_micros = greatest.cost_micros.max(usage.cost_micros);
        greatest.duration_ms = greatest.duration_ms.max(usage.duration_ms);
    }

    /// Takes in that a task no longer runs. One that was stopped tells little of the next.
    pub(super) fn end(&mut self, lane: Lane, status: TaskStatus) {
        self.has_ended[lane as usize] |= match status {
            TaskStatus::Running | TaskStatus::Cancelled | TaskStatus::Skipped => false,
            TaskStatus::Planned
            | TaskStatus::NeedsClarification
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::TimedOut => true,
        };
    }
}

/// What may still be used up while tasks are chosen to be started.
pub(crate) struct Purse {
    /// What the tasks that run are expected to use.
    reserved: Usage,
    /// By lane: whether a task runs.
    runs: [bool; N_LANES],
    /// Why the first task that was refused was.
    pub(crate) shortage: Option<Shortage>,
    /// Whether a task was refused because it is not known what it uses.
    is_unknown: bool,
}

impl PlannerState {
    /// What has been used up.
    #[must_use]
    pub fn spent(&self) -> Usage {
        self.spending.total
    }

    /// Takes in what a task used up.
    pub(super) fn spend(&mut self, task: TaskId, usage: &Usage) {
        if let Some(index) = self.index(task) {
            let plan = &self.tasks[index].plan;
            self.spending.take(lane(plan), plan.is_delegated(), usage);
        }
    }

    /// Takes in that a task which ran has another status.
    pub(super) fn end_spending(&mut self, task: TaskId, status: TaskStatus) {
        let counts = |task: &&Task| task.status == TaskStatus::Running && !task.plan.is_delegated();
        if let Some(task) = self.task(task).filter(counts) {
            let lane = lane(&task.plan);
            self.spending.end(lane, status);
        }
    }

    /// Why nothing more is started, when that is the budget: nothing runs, and the next task does not fit.
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

    /// Why of what is ready nothing is started, when that is the budget, also while something runs.
    #[must_use]
    pub fn held_by_budget(&self) -> Option<HeldByBudget> {
        if self.config.budget.is_unlimited() {
            return None;
        }
        let mut purse = self.purse();
        let may_start = |task: &&Task| {
            let is_so = |condition: &Condition| self.judged(condition) == Some(Some(true));
            !task.is_paused && task.plan.condition.as_ref().is_none_or(is_so)
        };
        let ready = self.graph.ready.iter().filter(|(pool, _)| pool.lane != Lane::Questions);
        let ready = ready.flat_map(|(_, queue)| queue).map(|(_, _, index)| &self.tasks[*index]);
        let fits = ready.filter(may_start).map(|task| self.reserve(&mut purse, task)).collect::<Vec<_>>();
        match purse.shortage {
            _ if fits.contains(&true) => None,
            Some(shortage) => Some(HeldByBudget::Short(shortage)),
            None => purse.is_unknown.then_some(HeldByBudget::Unknown),
        }
    }

    /// True while a task runs that is no question.
    pub(crate) fn runs_tasks(&self) -> bool {
        self.graph.running.count(|pool| pool.lane != Lane::Questions) > 0
    }

    /// What is kept back for the tasks that run.
    pub(crate) fn purse(&self) -> Purse {
        self.purse_for(|_| true)
    }

    /// What is kept back for the tasks that run, but for one.
    pub(crate) fn purse_without(&self, one: &Task) -> Purse {
        self.purse_for(|task| task.plan.id != one.plan.id)
    }

    fn purse_for(&self, counts: impl Fn(&Task) -> bool) -> Purse {
        let (mut reserved, mut runs) = (Usage::default(), [false; N_LANES]);
        if !self.config.budget.is_unlimited() && self.runs_tasks() {
            let running = self.graph.under_way.iter().map(|index| &self.tasks[*index]);
            for task in running.filter(|task| counts(task)) {
                self.keep_back(&mut reserved, task);
                runs[lane(&task.plan) as usize] = true;
            }
        }
        Purse { reserved, runs, shortage: None, is_unknown: false }
    }

    /// A plan within the plan is given all that is left, and may use it: nothing of it is given twice.
    fn keep_back(&self, reserved: &mut Usage, task: &Task) {
        let Budget { tokens, cost_micros, duration_ms } = self.config.budget;
        reserved.add(&match task.plan.is_delegated() {
            true => Usage {
                input_tokens: tokens.unwrap_or(0),
                output_tokens: 0,
                cost_micros: cost_micros.unwrap_or(0),
                duration_ms: duration_ms.unwrap_or(0),
                ..Usage::default()
            },
            false => self.expected(task),
        });
    }

    /// What a plan that carries a task out may use up: all that is left and not kept back for others. Of other tasks
    /// nothing is said.
    pub(crate) fn left(&self, purse: &Purse, task: &Task) -> Budget {
        if !task.plan.is_delegated() {
            return Budget::default();
        }
        self.left_of(purse)
    }

    fn left_of(&self, purse: &Purse) -> Budget {
        let left = |measure: Measure| {
            let taken = measure.of(&self.spending.total).saturating_add(measure.of(&purse.reserved));
            measure.limit(&self.config.budget).map(|limit| limit.saturating_sub(taken))
        };
        Budget { tokens: left(Measure::Tokens), cost_micros: left(Measure::Cost), duration_ms: left(Measure::Duration) }
    }

    /// What the plans that carry tasks out may use up together: all that is left and not kept back for the tasks that run
    /// by themselves.
    #[must_use]
    pub fn left_for_plans(&self) -> Budget {
        let purse = self.purse_for(|task| !task.plan.is_delegated());
        self.left_of(&purse)
    }

    /// Keeps back what a task is expected to use, if that fits. What undoes something is no matter of the budget.
    pub(crate) fn reserve(&self, purse: &mut Purse, task: &Task) -> bool {
        if self.config.budget.is_unlimited() || task.plan.compensates.is_some() || lane(&task.plan) == Lane::Questions {
            return true;
        }
        let lane = lane(&task.plan) as usize;
        // Of what nothing is known yet one goes ahead: many at once could pass the budget many times over.
        if purse.runs[lane] && self.is_use_unknown(task) {
            purse.is_unknown = true;
            return false;
        }
        let expected = self.expected(task);
        let is_short = |measure: &Measure| {
            let limit = measure.limit(&self.config.budget)?;
            let spent = measure.of(&self.spending.total);
            let needed = measure.of(&expected);
            let taken = spent.saturating_add(measure.of(&purse.reserved));
            let is_short = match needed {
                // Of what it never uses there is always enough.
                0 => self.may_use(*measure, task) && taken >= limit,
                _ => taken.saturating_add(needed) > limit,
            };
            let kept_back = measure.of(&purse.reserved);
            is_short.then_some(Shortage { measure: *measure, limit, spent, kept_back, needed })
        };
        let shortage = Measure::ALL.iter().find_map(is_short);
        if shortage.is_some() {
            purse.shortage = purse.shortage.or(shortage);
            return false;
        }
        self.keep_back(&mut purse.reserved, task);
        purse.runs[lane] = true;
        true
    }

    /// True while no task of the lane has told, by its end, how much of a limited measure such tasks use.
    fn is_use_unknown(&self, task: &Task) -> bool {
        let (lane, budget) = (lane(&task.plan), &self.config.budget);
        let is_limited = budget.tokens.is_some() || budget.cost_micros.is_some();
        is_limited && lane != Lane::Commands && !self.spending.has_ended[lane as usize]
    }

    /// What a task is expected to use: the most that one of its lane did; of the first, its description and notes.
    fn expected(&self, task: &Task) -> Usage {
        if task.plan.is_delegated() {
            return Usage::default();
        }
        let lane = lane(&task.plan);
        let mut expected = self.spending.greatest[lane as usize].unwrap_or_default();
        if self.spending.greatest[lane as usize].is_none()
            && lane != Lane::Commands
            && self.config.budget.tokens.is_some()
        {
            let texts = task.plan.notes.iter().chain([&task.plan.description, &self.config.system_prompt]);
            expected.input_tokens = texts.map(|text| estimate_tokens(text)).sum::<u64>() + INSTRUCTIONS_TOKENS;
        }
        expected.duration_ms = task.plan.estimate_ms.unwrap_or(expected.duration_ms);
        expected
    }

    /// Whether a task of which nothing is expected may use something all the same.
    fn may_use(&self, measure: Measure, task: &Task) -> bool {
        if task.plan.is_delegated() {
            return true;
        }
        let lane = lane(&task.plan);
        let is_unknown = self.spending.greatest[lane as usize].is_none();
        match measure {
            Measure::Tokens | Measure::Cost => is_unknown && lane != Lane::Commands,
            Measure::Duration => is_unknown,
        }
    }
}
