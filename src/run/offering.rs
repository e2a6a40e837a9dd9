//! Names the sessions that may take steps of a plan, and asks whether they also get the steps of configured executors.

use crewlog_executors::crew::{OpenSession, is_offered, n_for_sessions};
use crewlog_executors::roster::Roster;
use crewlog_planner::event::PlannerConfig;
use crewlog_planner::plan::TaskPlan;
use crewlog_planner::view::PlanView;

use crate::cli::settings::Change;
use crate::context::{self, Session};
use crate::ui::failure::Failure;
use crate::ui::terminal;
use crate::ui::text::count;

/// The most sessions that a line names.
const NAMED_MAX: usize = 8;

/// The open sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenSessions(pub Vec<OpenSession>);

impl OpenSessions {
    /// `2 open sessions: ann (claude), bob (codex)`.
    pub fn named(&self) -> String {
        let named =
            self.0.iter().take(NAMED_MAX).map(|OpenSession { name, program, .. }| format!("{name} ({program})"));
        let more = self.0.len().saturating_sub(NAMED_MAX);
        let more = (more > 0).then(|| format!("{more} more"));
        format!("{}: {}", count(self.0.len(), "open session"), named.chain(more).collect::<Vec<_>>().join(", "))
    }

    /// The steps of a plan that these sessions are offered or work on, in words; none without sessions or steps.
    pub fn offered(&self, roster: &Roster, view: &PlanView) -> Option<String> {
        let n_steps = n_for_sessions(roster, view, &self.0);
        let verb = if n_steps == 1 { "is" } else { "are" };
        (n_steps > 0).then(|| format!("{} {verb} for {}", count(n_steps, "step"), self.named()))
    }
}

/// Refuses an agent that gives a plan to sessions: their people would pay for it.
pub async fn check(session: &Session, changes: &[Change]) -> Result<(), Failure> {
    if changes.iter().any(Change::is_of_sessions) {
        session.person_only("give plans to sessions").await
    } else {
        Ok(())
    }
}

/// Asks a person at a terminal whether open sessions are offered the steps of configured executors too.
pub async fn asked(
    session: &Session,
    roster: &Roster,
    tasks: &[TaskPlan],
    config: &PlannerConfig,
) -> Result<bool, Failure> {
    let is_of_executor = |task: &&TaskPlan| is_offered(None, config, task) && !is_offered(Some(roster), config, task);
    let n_steps = tasks.iter().filter(is_of_executor).count();
    if n_steps == 0 || session.yes || !session.terminal.is_interactive || !session.is_person().await? {
        return Ok(config.sessions);
    }
    let Some(store) = session.place.open_if_any().await? else { return Ok(false) };
    let open = OpenSessions(context::crew::on(session, &store)?.sessions().await?);
    if open.0.is_empty() {
        return Ok(false);
    }
    let steps = count(n_steps, "step");
    let question = format!("{}\noffer them the {steps} of configured executors too?", open.named());
    terminal::says_yes(&question).map_err(Failure::input)
}
