//! Reads the run of an agent from its output while it runs: its session, and its usage, by which it is stopped when a budget is
//! used up: that of its task, of its plan or of the day.

use std::time::Duration;

use crewlog_planner::event::{Budget, Usage};
use crewlog_planner::state::{Measure, PlannerState, Task};
use serde_json::Value;

use crate::agent::Agent;
use crate::breakers::is_nearly_used;
use crate::roster::Roster;
use crate::run::Stop;
use crate::runs::OutputTo;
use crate::usage::AgentRun;

/// A longer line is no event.
const LINE_BYTES_MAX: usize = 8 << 20;
/// How often the output of a run is read.
const METER_INTERVAL: Duration = Duration::from_secs(1);

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

/// The usage of a run, as it was reported at its end and as it was read while it ran: of each amount the greater.
pub(crate) fn greater(reported: Usage, read: &Usage) -> Usage {
    let cost_micros = reported.cost_micros.max(read.cost_micros);
    let has_tokens = read.input_tokens > 0 || read.output_tokens > 0;
    Usage {
        input_tokens: reported.input_tokens.max(read.input_tokens),
        output_tokens: reported.output_tokens.max(read.output_tokens),
        cost_micros,
        n_without_tokens: if has_tokens { 0 } else { reported.n_without_tokens },
        n_without_cost: if cost_micros > 0 { 0 } else { reported.n_without_cost },
        ..reported
    }
}

/// A run of an agent, as its output shows it.
pub(crate) struct Watched<'a> {
    roster: &'a Roster,
    agent: &'a Agent,
    /// The rest of its budgets.
    budget: &'a Budget,
    target: String,
    /// True after a warning.
    is_told: bool,
    /// True if it began with nothing left for today: a person said so.
    is_beyond_today: bool,
}

/// A fact about a run.
pub(crate) enum Sight {
    /// The id of its session, once.
    Session(String),
    /// It has used the rest of a budget, as far as its program reports it while it runs.
    OverBudget(Stop),
}

impl<'a> Watched<'a> {
    /// A run that begins now, with the rest of its budgets.
    pub(crate) fn new(roster: &'a Roster, agent: &'a Agent, budget: &'a Budget, target: String) -> Self {
        let today = roster.limits.as_ref().and_then(|limits| limits.left_today(agent));
        let is_beyond_today = today.is_some_and(|today| today.left() == 0);
        Self { roster, agent, budget, target, is_told: false, is_beyond_today }
    }

    /// Waits for the next.
    pub(crate) async fn next(&mut self, meter: &mut Meter) -> Sight {
        loop {
            tokio::time::sleep(METER_INTERVAL).await;
            let is_known = meter.session().is_some();
            let used = meter.usage();
            if let Some(session) = meter.session().filter(|_| !is_known) {
                return Sight::Session(session.to_owned());
            }
            // A run that has ended, and exits, has its result.
            if let Some(stop) = self.over_budget(&used).filter(|_| !meter.run.has_ended()) {
                return Sight::OverBudget(stop);
            }
        }
    }

    fn over_budget(&mut self, used: &Usage) -> Option<Stop> {
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

/// Reads a run from the file of its output while it runs.
pub(crate) struct Meter {
    file: OutputTo,
    n_read: u64,
    rest: Vec<u8>,
    run: AgentRun,
}

impl Meter {
    pub(crate) fn new(file: OutputTo) -> Self {
        Self { file, n_read: 0, rest: Vec::new(), run: AgentRun::default() }
    }

    /// The id of its session, as far as the output was read.
    pub(crate) fn session(&self) -> Option<&str> {
        self.run.session.as_deref()
    }

    /// The usage so far, as far as the program reports it in lines of JSON.
    pub(crate) fn usage(&mut self) -> Usage {
        // There is no file before the first output.
        if let Ok(kept) = self.file.kept()
            && kept.copy(self.n_read, &mut self.rest).is_ok()
        {
            self.n_read = kept.n_bytes;
            if self.rest.len() > LINE_BYTES_MAX && !self.rest.contains(&b'\n') {
                self.rest.clear();
            }
            let n_whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let rest = self.rest.split_off(n_whole);
            for line in std::mem::replace(&mut self.rest, rest).split(|byte| *byte == b'\n') {
                let event = serde_json::from_slice::<Value>(line).ok();
                event.filter(Value::is_object).into_iter().for_each(|event| self.run.take(&event));
            }
        }
        self.run.so_far()
    }
}
