//! The roles as data: each type of agent with its parts of the form, tools, delegates and requests.

use crate::plan::NodeKind;
use crate::protocol::{Ability, AgentType};

/// The tool that asks a person, of every type of agent.
pub const ASK_PERSON: &str = "ask_person";
/// The tool whose steps bring a shell command.
pub const RUN_COMMAND: &str = "run_command";

/// A part of the form that not every role uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormPart {
    Goals,
    Constraints,
    Updates,
    Resources,
    Resolution,
}

/// The abilities of a type of agent.
#[derive(Debug)]
pub struct Role {
    /// The type.
    pub agent: AgentType,
    /// The version of the role's form, recorded with each of its plans.
    pub version: u32,
    /// The model's instruction for the role.
    pub instruction: &'static str,
    /// The agents to which it may delegate a step. They plan in more detail, so work never comes back.
    pub delegates_to: &'static [AgentType],
    /// The agents it may ask.
    pub asks: &'static [AgentType],
    /// The requests that it answers by default.
    pub answers: &'static [Ability],
    /// The parts of the form that its plans may have.
    pub(super) parts: &'static [FormPart],
    /// Name, kind and description of each of its default tools.
    pub(super) tools: &'static [(&'static str, NodeKind, &'static str)],
    /// The agents for planning by rule: for steps that look something up, and for others. Unset to use its own tools.
    pub(super) hands_to: Option<(AgentType, AgentType)>,
    /// True if it changes nothing in the repository.
    pub(super) is_read_only: bool,
}

impl Role {
    /// The role of a type of agent.
    pub const fn of(agent: AgentType) -> &'static Self {
        match agent {
            AgentType::Strategic => &STRATEGIC,
            AgentType::Tactical => &TACTICAL,
            AgentType::Perception => &PERCEPTION,
            AgentType::Orchestrator => &ORCHESTRATION,
        }
    }

    pub(super) fn has(&self, part: FormPart) -> bool {
        self.parts.contains(&part)
    }
}

const STRATEGIC: Role = Role {
    agent: AgentType::Strategic,
    version: 1,
    instruction: "You are strategic: you plan goals, constraints and milestones (the steps), not how to reach them.",
    parts: &[FormPart::Goals, FormPart::Constraints],
    tools: &[
        ("weigh_options", NodeKind::Analysis, "compare the options for a goal, and choose one"),
        ("review_outcome", NodeKind::Analysis, "check whether a milestone is reached"),
    ],
    delegates_to: &[AgentType::Tactical, AgentType::Perception],
    asks: &[AgentType::Tactical, AgentType::Perception],
    answers: &[Ability::Analyse],
    hands_to: Some((AgentType::Tactical, AgentType::Tactical)),
    is_read_only: false,
};

const TACTICAL: Role = Role {
    agent: AgentType::Tactical,
    version: 1,
    instruction: "You are tactical: you plan how to do a task, step by step.",
    parts: &[FormPart::Resources],
    tools: &[
        ("edit_code", NodeKind::CodeImplementation, "write or change code"),
        ("refactor_code", NodeKind::Refactor, "restructure code without changing its behaviour"),
        ("write_tests", NodeKind::UnitTest, "write or run tests"),
        ("review_code", NodeKind::Analysis, "review code"),
        ("look_up", NodeKind::Retrieval, "find or fetch something that a step needs"),
        ("do_step", NodeKind::Processing, "anything that no other tool fits"),
        (RUN_COMMAND, NodeKind::ToolCall, "run a shell command"),
    ],
    delegates_to: &[AgentType::Perception],
    asks: &[AgentType::Strategic, AgentType::Perception],
    answers: &[Ability::Analyse],
    hands_to: None,
    is_read_only: false,
};

const PERCEPTION: Role = Role {
    agent: AgentType::Perception,
    version: 1,
    instruction: "You explore: you plan what to find out about the repository (the steps), and which \
         findings to record (the updates).",
    parts: &[FormPart::Updates, FormPart::Resources, FormPart::Resolution],
    tools: &[
        ("survey_files", NodeKind::Retrieval, "list files"),
        ("search_code", NodeKind::Retrieval, "find where something is mentioned"),
        ("read_code", NodeKind::Analysis, "read code and describe it"),
        ("record_finding", NodeKind::Processing, "record a finding"),
    ],
    delegates_to: &[],
    asks: &[],
    answers: &[Ability::Analyse, Ability::Extract, Ability::Locate],
    hands_to: None,
    is_read_only: true,
};

const ORCHESTRATION: Role = Role {
    agent: AgentType::Orchestrator,
    version: 1,
    instruction: "You orchestrate: you plan which agent does what, and when.",
    parts: &[],
    tools: &[("review_progress", NodeKind::Analysis, "assess the progress of all tasks")],
    delegates_to: &[AgentType::Strategic, AgentType::Tactical, AgentType::Perception],
    asks: &[AgentType::Strategic, AgentType::Tactical, AgentType::Perception],
    answers: &[],
    hands_to: Some((AgentType::Perception, AgentType::Tactical)),
    is_read_only: false,
};
