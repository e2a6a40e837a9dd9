//! Signs of life of agents, which are no events.

use crewlog_mq::Timestamp;

use super::{Agent, Agents};

impl Agent {
    /// The time of its last call, to about a minute.
    pub fn seen(&self) -> Timestamp {
        self.seen.max(self.heard)
    }
}

impl Agents {
    /// Takes in when an agent was last seen, which no event says.
    pub fn hear(&mut self, agent: &str, at: Timestamp) {
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.heard = agent.heard.max(at);
        }
    }
}
