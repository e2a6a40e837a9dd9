//! The budgets of a run of an agent, by which it is stopped when one is used up: that of its task, of its plan or of the day.

use crewlog_planner::event::{Budget, Usage};
use crewlog_planner::state::{Measure, PlannerState, Task};

use crate::agent::Agent;
use crate::breakers::is_nearly_used;
use crate::roster::Roster;
use crate::run::Stop;

/// The rest of the budgets of a task and of its plan, for the next run of the task.
pub(crate) fn left_for_run(state: &PlannerState, task: &Task) -> Budget {
    if task.plan.compensates.is_some() {
        return Budget::default();
    }
    let rest = |measure: Measure| {
        let limit = measure.limit(&state.config.budget)?;
        Some(limit.saturating_sub(measure.of(&state.spent())))
    };
    // A task that has used its budget up starts again only if a person says so: then it has its budget again.
    let rest_of = |budget: u64| task.spent.cost_micros.checked_rem(budget).map_or(0, |used| budget - used);
    let own = task.plan.budget_micros.map(rest_of);
    let of_task = Budget { cost_micros: own, ..Budget::default() };
    Budget { tokens: rest(Measure::Tokens), cost_micros: rest(Measure::Cost), duration_ms: None }.least(of_task)
}

/// The budgets of a run of an agent.
pub(crate) struct Budgets<'a> {
    roster: &'a Roster,
    agent: &'a Agent,
    /// The rest of those of its task and its plan.
    budget: &'a Budget,
    target: String,
    /// True after a warning.
    is_told: bool,
    /// True if it began with nothing left for today: a person said so.
    is_beyond_today: bool,
}

impl<'a> Budgets<'a> {
    /// Those of a run that begins now.
    pub(crate) fn new(roster: &'a Roster, agent: &'a Agent, budget: &'a Budget, target: String) -> Self {
        let today = roster.limits.as_ref().and_then(|limits| limits.left_today(agent));
        let is_beyond_today = today.is_some_and(|today| today.left() == 0);
        Self { roster, agent, budget, target, is_told: false, is_beyond_today }
    }

    /// The reason to stop the run once it has used one up.
    pub(crate) fn used_up(&mut self, used: &Usage) -> Option<Stop> {
        let today = self.roster.limits.as_ref().and_then(|limits| limits.left_today(self.agent));
        let limits = Measure::ALL.map(|measure| (measure, measure.limit(self.budget), None));
        let today = today
            .filter(|_| !self.is_beyond_today)
            .map(|today| (Measure::Cost, Some(today.left()), Some(today.ends_in_ms)));
        for (measure, left, wait_ms) in limits.into_iter().chain(today) {
            let (Some(left), amount) = (left, measure.of(used)) else { continue };
            let of_day = if wait_ms.is_some() { " for today" } else { "" };
            let words = || format!("{} of {} that were left{of_day}", measure.words(amount), measure.words(left));
            if amount >= left {
                return Some(Stop::OverBudget { error: format!("stopped: it has used {}", words()), wait_ms });
            }
            if is_nearly_used(amount, left) && !std::mem::replace(&mut self.is_told, true) {
                tracing::warn!("{} has used {}", self.target, words());
            }
        }
        None
    }
}
