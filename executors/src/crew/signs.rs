//! The signs of life of a project's agents, as its state takes them in, and their state as their programs show it.

use std::time::Duration;

use crewlog_mq::Executed;

use crewlog_planner::crew::agents::{Agent, AgentCommand, AgentEvent, Agents, Health, Liveness, Observed};
use crewlog_planner::crew::asks::Asks;
use crewlog_planner::crew::leases::Leases;
use crewlog_planner::crew::messages::Messages;
use crewlog_planner::event::RetryClass;

use super::Refusal;
use super::state::Crew;
use crate::agent::{Agent as Executor, Program};
use crate::caller::request;
use crate::signs::Signs;

/// The shortest time between two records of the state of an agent while nothing but its usage changes.
pub const SHOWN_EVERY: Duration = Duration::from_secs(5);

/// A state that depends on signs of life.
pub trait Hears {
    /// False if it depends on none.
    const HEARS: bool = false;

    /// Takes them in. An agent without a sign counts as just seen: its log may come from a backup, which has none.
    fn hear(&mut self, _signs: &Signs) {}
}

/// The cells with the signs of a project's agents.
pub(super) fn space(project: &str) -> String {
    format!("seen:{project}")
}

impl Hears for Agents {
    const HEARS: bool = true;

    fn hear(&mut self, signs: &Signs) {
        let of = |(name, agent): (&str, &Agent)| {
            let unknown = || matches!(agent.liveness, Liveness::Alive | Liveness::Stuck).then_some(signs.unknown);
            Some((name.to_owned(), signs.of(name).or_else(unknown)?))
        };
        let seen: Vec<_> = self.iter().filter_map(of).collect();
        seen.iter().for_each(|(agent, at)| Self::hear(self, agent, *at, || signs.state_of(agent)));
    }
}

impl Hears for Leases {
    const HEARS: bool = true;

    fn hear(&mut self, signs: &Signs) {
        let holders: Vec<_> = self.holders().into_iter().map(str::to_owned).collect();
        for holder in holders {
            let seen = signs.of(&holder).unwrap_or(signs.unknown);
            Self::hear(self, &holder, seen);
        }
    }
}

impl Hears for Asks {}

impl Hears for Messages {}

impl Crew {
    /// Records the state of an agent as its program shows it, in the cell of its signs: most changes of it mean nothing later.
    /// A change of its health is an event, and a limit stops the executors of the same program on this host.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn observe(&self, name: &str, agent: &Agent, shown: Observed) -> Result<(), Refusal> {
        let (known, now) = (agent.observed(), self.store.now());
        let shown = Observed { at: now, ..shown };
        let of = |state: &Observed| {
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
