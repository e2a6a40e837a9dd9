//! The tactical role: the steps of a task, their dependencies and the resources they need.

use crate::agents::registry::RUN_COMMAND;
use crate::agents::{Part, Role};
use crate::plan::NodeKind;
use crate::protocol::{Ability, AgentType};

pub(super) const ROLE: Role = Role {
    agent: AgentType::Tactical,
    version: 1,
    instruction: "You are tactical: you plan how a task is carried out, step by step.",
    parts: &[Part::Resources],
    tools: &[
        ("edit_code", NodeKind::CodeImplementation, "write or change code"),
        ("refactor_code", NodeKind::Refactor, "change the form of code and not what it does"),
        ("write_tests", NodeKind::UnitTest, "write or run tests"),
        ("review_code", NodeKind::Analysis, "read code and judge it"),
        ("look_up", NodeKind::Retrieval, "find or fetch something that a step needs"),
        ("do_step", NodeKind::Processing, "anything that no other tool fits"),
        (RUN_COMMAND, NodeKind::ToolCall, "run a line in the shell"),
    ],
    delegates_to: &[AgentType::Perception],
    asks: &[AgentType::Strategic, AgentType::Perception],
    answers: &[Ability::Analyse],
    hands_to: None,
    is_read_only: false,
};
