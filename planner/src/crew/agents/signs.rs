//! Signs of life of agents and what their programs show of them, which are no events.

use crewlog_mq::Timestamp;

use super::{Activity, Agent, Agents, SessionState};

impl Agent {
    /// The time of its last call, to about a minute.
    pub fn seen(&self) -> Timestamp {
        self.seen.max(self.heard)
    }

    /// Its state as its program shows it.
    #[must_use]
    pub fn observed(&self) -> &SessionState {
        &self.observed
    }

    /// Takes in its state as its program shows it.
    pub fn show(&mut self, shown: SessionState) {
        self.observed = shown;
    }

    /// Its state: as it reported in its turn, else as its program shows it.
    #[must_use]
    pub fn activity(&self) -> Activity {
        let is_newer = self.reported.is_none_or(|reported| reported < self.observed.turn);
        self.observed.activity.filter(|_| is_newer).unwrap_or(self.report.activity)
    }

    /// How much of its context is used, in percent: its program knows better than the agent.
    #[must_use]
    pub fn context_usage(&self) -> Option<u8> {
        self.observed.usage.context_usage.or(self.report.context_usage)
    }
}

impl Agents {
    /// Takes in when an agent was last seen, and its state then, which no event says.
    pub fn hear(&mut self, agent: &str, at: Timestamp, observed: impl FnOnce() -> Option<SessionState>) {
        let Some(agent) = self.agents.get_mut(agent).filter(|agent| agent.heard <= at) else { return };
        agent.heard = at;
        if let Some(observed) = observed() {
            agent.observed = observed;
        }
    }
}
