//! Failed planning by agents, as events.

use crewlog_mq::Event as MqEvent;
use serde::{Deserialize, Serialize};

use crate::agents::PlanError;
use crate::protocol::AgentType;

/// The stream of failed planning; the aggregate is the type of agent, so its sequence counts the failures.
pub const STREAM: &str = "planning";

/// An event of planning by agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanningEvent {
    /// An agent has no plan, or its plan was refused.
    PlanningFailed {
        /// The agent.
        agent: AgentType,
        /// The rule that was broken: [`PlanError::name`].
        kind: String,
        /// The error.
        error: String,
    },
}

impl PlanningEvent {
    /// The event of a refusal.
    pub fn of(agent: AgentType, error: &PlanError) -> Self {
        Self::PlanningFailed { agent, kind: error.name().to_owned(), error: error.to_string() }
    }
}

impl MqEvent for PlanningEvent {}
