//! Plans that agents could not make, or that were refused: what is recorded of each, and how often it happened to whom.

use std::collections::BTreeMap;

use crewlog_mq::Event as MqEvent;
use serde::{Deserialize, Serialize};

use crate::agents::PlanError;
use crate::protocol::AgentType;

/// The stream of what agents could not plan; an aggregate of it is a type of agent.
pub const STREAM: &str = "planning";

/// What went wrong when an agent planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanningEvent {
    /// There is no plan, or it was refused.
    PlanningFailed {
        /// Whose plan it was to be.
        agent: AgentType,
        /// The rule that it breaks, by the name of [`PlanError`].
        kind: String,
        /// What was said.
        error: String,
    },
}

impl PlanningEvent {
    /// Of a refusal.
    #[must_use]
    pub fn of(agent: AgentType, error: &PlanError) -> Self {
        Self::PlanningFailed { agent, kind: error.name().to_owned(), error: error.to_string() }
    }
}

impl MqEvent for PlanningEvent {
    const EVENT_VERSION: &'static str = "1.0";

    fn event_type(&self) -> &'static str {
        match self {
            Self::PlanningFailed { .. } => "PlanningFailed",
        }
    }
}

/// How often which agents could not plan, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanningFailures {
    counts: BTreeMap<(AgentType, String), u64>,
}

impl PlanningFailures {
    /// Takes one event in.
    pub fn apply(&mut self, event: &PlanningEvent) {
        let PlanningEvent::PlanningFailed { agent, kind, .. } = event;
        *self.counts.entry((*agent, kind.clone())).or_default() += 1;
    }

    /// By type of agent and rule: how often.
    pub fn counts(&self) -> impl Iterator<Item = (AgentType, &str, u64)> {
        self.counts.iter().map(|((agent, kind), n)| (*agent, kind.as_str(), *n))
    }
}
