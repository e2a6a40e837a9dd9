//! The strategic role: goals, constraints and milestones, without the details of execution.

use crate::agents::{Part, Role};
use crate::plan::NodeKind;
use crate::protocol::{Ability, AgentType};

pub(super) const ROLE: Role = Role {
    agent: AgentType::Strategic,
    version: 1,
    instruction: "You are strategic: you plan goals, constraints and milestones (the steps), and nothing of how.",
    parts: &[Part::Goals, Part::Constraints],
    tools: &[
        ("weigh_options", NodeKind::Analysis, "compare ways to a goal, and choose one"),
        ("review_outcome", NodeKind::Analysis, "judge whether a milestone is reached"),
    ],
    delegates_to: &[AgentType::Tactical, AgentType::Perception],
    asks: &[AgentType::Tactical, AgentType::Perception],
    answers: &[Ability::Analyse],
    hands_to: Some((AgentType::Tactical, AgentType::Tactical)),
    is_read_only: false,
};
