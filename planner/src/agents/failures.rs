//! Refused and missing plans of agents: the error, and the event that records it.

use crewlog_mq::Event as MqEvent;
use serde::{Deserialize, Serialize};

use crate::protocol::AgentType;
use crate::validity::InvalidPlan;

/// The stream of failed planning; the aggregate is the type of agent, so its sequence counts the failures.
pub const STREAM: &str = "planning";

/// The reason why an agent's plan is refused: the place, as a JSON pointer (`/steps/0/tool`), and the rule in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
pub enum PlanError {
    /// It is too long, or not JSON of the form.
    #[error("this is not an agent's plan: {0}")]
    Form(String),
    /// It names a tool of other agents.
    #[error("{0}: {1}")]
    ForeignTool(String, String),
    /// It breaks another rule of the form or of its role.
    #[error("{0}: {1}")]
    Rule(String, String),
    /// Its steps, or the words for it, do not make a plan: a cycle, nothing to do, too many tasks.
    #[error(transparent)]
    Invalid(#[from] InvalidPlan),
    /// The agent has no tool for a step: the step, and how to add one.
    #[error("step {0}: {1}")]
    NoTool(String, String),
}

impl PlanError {
    /// The name of the variant, by which failures are counted.
    pub fn name(&self) -> &'static str {
        if let Self::Invalid(error) = self { error.name() } else { self.into() }
    }
}

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
