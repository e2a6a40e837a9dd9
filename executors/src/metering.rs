//! Stops the run of an agent that has used up a budget: that of its task, of its plan or of the day.

use std::path::PathBuf;
use std::time::Duration;

use crewlog_planner::event::{Budget, Usage};
use crewlog_planner::state::{Measure, PlannerState, Task};
use serde_json::Value;

use crate::agent::Agent;
use crate::roster::Roster;
use crate::run::Stop;
use crate::runs::Kept;
use crate::usage::AgentRun;

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
    let own = task.plan.budget_micros.map(|budget| budget.saturating_sub(task.spent.cost_micros));
    let of_task = Budget { cost_micros: own, ..Budget::default() };
    Budget { tokens: rest(Measure::Tokens), cost_micros: rest(Measure::Cost), duration_ms: None }.least(of_task)
}

/// A run of an agent, as its output shows it.
pub(crate) struct Watched<'a> {
    pub(crate) roster: &'a Roster,
    pub(crate) agent: &'a Agent,
    /// The rest of its budgets.
    pub(crate) budget: &'a Budget,
    pub(crate) target: String,
    /// True after a warning.
    pub(crate) is_told: bool,
}

/// A fact about a run.
pub(crate) enum Sight {
    /// The id of its session, once.
    Session(String),
    /// It has used the rest of a budget, as far as its program reports it while it runs.
    OverBudget(Stop),
}

impl Watched<'_> {
    /// Waits for the next.
    pub(crate) async fn next(&mut self, meter: &mut Meter) -> Sight {
        loop {
            tokio::time::sleep(METER_INTERVAL).await;
            let is_known = meter.session().is_some();
            let used = meter.usage();
            if let Some(session) = meter.session().filter(|_| !is_known) {
                return Sight::Session(session.to_owned());
            }
            if let Some(stop) = self.over_budget(&used) {
                return Sight::OverBudget(stop);
            }
        }
    }

    fn over_budget(&mut self, used: &Usage) -> Option<Stop> {
        let today = self.roster.limits.as_ref().and_then(|limits| limits.left_today(self.agent));
        let limits = Measure::ALL.map(|measure| (measure, measure.limit(self.budget), None));
        let today = today.map(|today| (Measure::Cost, Some(today.left), Some(today.ends_in_ms)));
        for (measure, left, wait_ms) in limits.into_iter().chain(today) {
            let (Some(left), amount) = (left, measure.of(used)) else { continue };
            let of_day = if wait_ms.is_some() { " for today" } else { "" };
            let words = || format!("{} of {} that were left{of_day}", measure.words(amount), measure.words(left));
            if amount >= left {
                return Some(Stop::OverBudget { error: format!("stopped: it has used {}", words()), wait_ms });
            }
            if amount >= left - left / 5 && !std::mem::replace(&mut self.is_told, true) {
                tracing::warn!("{} has used {}", self.target, words());
            }
        }
        None
    }
}

/// Reads a run from the file of its output while it runs.
pub(crate) struct Meter {
    file: PathBuf,
    n_read: u64,
    rest: Vec<u8>,
    run: AgentRun,
}

impl Meter {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, n_read: 0, rest: Vec::new(), run: AgentRun::default() }
    }

    /// The id of its session, as far as the output was read.
    pub(crate) fn session(&self) -> Option<&str> {
        self.run.session.as_deref()
    }

    /// The usage so far, as far as the program reports it in lines of JSON.
    pub(crate) fn usage(&mut self) -> Usage {
        // There is no file before the first output.
        if let Ok(kept) = Kept::open(&self.file)
            && kept.copy(self.n_read, &mut self.rest).is_ok()
        {
            self.n_read = kept.n_bytes;
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
