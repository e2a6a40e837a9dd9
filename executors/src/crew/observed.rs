//! The state of agents as their programs show it: recorded without an event, unless their health changes.

use std::time::Duration;

use crewlog_mq::Executed;
use crewlog_planner::crew::agents::{Agent, AgentCommand, AgentEvent, Agents, Health, SessionState};
use crewlog_planner::event::RetryClass;

use super::Refusal;
use super::signs::space;
use super::state::Crew;
use crate::agent::{Agent as Executor, Program};
use crate::caller::request;
use crate::signs::Signs;

/// The shortest time between two records of the state of an agent while nothing but its usage changes.
pub const SHOWN_EVERY: Duration = Duration::from_secs(5);

impl Crew {
    /// Records the state of an agent as its program shows it, in the cell of its signs: most changes of it mean nothing later.
    /// A change of its health is an event, and a limit stops the executors of the same program on this host.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn observe(&self, name: &str, agent: &Agent, shown: SessionState) -> Result<(), Refusal> {
        let (known, now) = (agent.observed(), self.store.now());
        let shown = SessionState { at: now, ..shown };
        let of = |state: &SessionState| {
            let usage = (state.usage.context_usage.is_some(), state.usage.limits.clone());
            (state.activity, state.error.clone(), state.doing.clone(), state.turn, usage)
        };
        let mut next = agent.clone();
        next.show(shown.clone());
        let is_news = next.derived_health(now) != agent.health().0;
        if !is_news && of(known) == of(&shown) && now.since(known.at) < SHOWN_EVERY {
            return Ok(());
        }
        Signs::put_with(&self.store, &space(&self.project), name, &shown).await?;
        if !is_news {
            return Ok(());
        }
        let judge = AgentCommand::Judge { agent: name.to_owned(), now };
        let health = |_: &Agents, executed: Executed<AgentEvent>| match executed.events.first() {
            Some(AgentEvent::AgentHealthChanged { health, until, .. }) => Some((*health, *until)),
            _unchanged => None,
        };
        if let Some((Health::Limited, until)) = self.agents.execute(judge, health).await? {
            self.stop_runs(name, &agent.profile.program, until.map(|until| until.since(now))).await;
        }
        Ok(())
    }

    /// Opens the breakers of the executors that run the program of an agent: they share its account, and so its limit.
    async fn stop_runs(&self, name: &str, program: &str, after: Option<Duration>) {
        let Some((roster, limits)) = self.roster().and_then(|roster| Some((roster, roster.limits.as_ref()?))) else {
            return;
        };
        // `claude-code` is started as `claude`. A line for a shell may start anything.
        let file = program.split('-').next();
        let runs_it = |executor: &&Executor| match &executor.program {
            Program::Argv(words) => words.first().and_then(|path| path.rsplit('/').next()) == file,
            Program::Shell(_) => false,
        };
        for executor in roster.agents.iter().filter(runs_it) {
            limits.met_limit(&executor.name, name, (after, RetryClass::RateLimited.policy()), &request()).await;
        }
    }
}
