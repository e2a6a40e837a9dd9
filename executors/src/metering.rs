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

/// Returns when a run has used the rest of its budgets, as far as its program reports it while it runs.
pub(crate) async fn over_budget(roster: &Roster, agent: &Agent, budget: &Budget, target: &str, file: PathBuf) -> Stop {
    let mut is_told = false;
    if budget.is_unlimited() && agent.budget_per_day.is_none() {
        return std::future::pending().await;
    }
    let mut meter = Meter { file, n_read: 0, rest: Vec::new(), run: AgentRun::default() };
    loop {
        tokio::time::sleep(METER_INTERVAL).await;
        let used = meter.usage();
        let today = roster.limits.as_ref().and_then(|limits| limits.left_today(agent));
        let limits = Measure::ALL.map(|measure| (measure, measure.limit(budget), None));
        let today = today.map(|today| (Measure::Cost, Some(today.left), Some(today.ends_in_ms)));
        for (measure, left, wait_ms) in limits.into_iter().chain(today) {
            let (Some(left), amount) = (left, measure.of(&used)) else { continue };
            let of_day = if wait_ms.is_some() { " for today" } else { "" };
            let words = || format!("{} of {} that were left{of_day}", measure.words(amount), measure.words(left));
            if amount >= left {
                return Stop::OverBudget { error: format!("stopped: it has used {}", words()), wait_ms };
            }
            if amount >= left - left / 5 && !std::mem::replace(&mut is_told, true) {
                tracing::warn!("{target} has used {}", words());
            }
        }
    }
}

/// Reads the usage of a run from the file of its output while it runs.
struct Meter {
    file: PathBuf,
    n_read: u64,
    rest: Vec<u8>,
    run: AgentRun,
}

impl Meter {
    /// The usage so far, as far as the program reports it in lines of JSON.
    fn usage(&mut self) -> Usage {
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
