//! The orchestrator's role: which agent does what, and when.

use crate::agents::Role;
use crate::plan::NodeKind;
use crate::protocol::AgentType;

pub(super) const ROLE: Role = Role {
    agent: AgentType::Orchestrator,
    version: 1,
    instruction: "You orchestrate: you plan which agent does what, and when.",
    parts: &[],
    tools: &[("review_progress", NodeKind::Analysis, "judge the state of all work")],
    delegates_to: &[AgentType::Strategic, AgentType::Tactical, AgentType::Perception],
    asks: &[AgentType::Strategic, AgentType::Tactical, AgentType::Perception],
    answers: &[],
    hands_to: Some((AgentType::Perception, AgentType::Tactical)),
    is_read_only: false,
};
