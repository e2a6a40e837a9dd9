//! The perception role: what to find out about the repository, and which findings to record.

use crate::agents::{Part, Role};
use crate::plan::NodeKind;
use crate::protocol::{Ability, AgentType};

pub(super) const ROLE: Role = Role {
    agent: AgentType::Perception,
    version: 1,
    instruction: "You look: you plan what to find out about the repository (the steps), and what to record of it \
                  (the updates).",
    parts: &[Part::Updates, Part::Resources, Part::Resolution],
    tools: &[
        ("survey_files", NodeKind::Retrieval, "list what is there"),
        ("search_code", NodeKind::Retrieval, "find where something is mentioned"),
        ("read_code", NodeKind::Analysis, "read something and say what it is"),
        ("record_finding", NodeKind::Processing, "write down what was found"),
    ],
    delegates_to: &[],
    asks: &[],
    answers: &[Ability::Analyse, Ability::Extract, Ability::Locate],
    hands_to: None,
    is_read_only: true,
};
