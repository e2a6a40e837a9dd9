//! Roles as data: what each type of agent may plan, use, delegate and ask.

use crate::agents::{orchestration, perception, strategic, tactical};
use crate::plan::NodeKind;
use crate::protocol::{Ability, AgentType};

/// A part of the form that not every role uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `goals`, and the goals of steps.
    Goals,
    /// `constraints`.
    Constraints,
    /// `updates`.
    Updates,
    /// `resources`.
    Resources,
    /// `resolution`.
    Resolution,
}

/// What a type of agent may do.
#[derive(Debug)]
pub struct Role {
    /// The type.
    pub agent: AgentType,
    /// The version of the role's form, recorded with each of its plans.
    pub version: u32,
    /// The model's instruction for the role.
    pub instruction: &'static str,
    /// The parts of the form that its plans may have.
    pub parts: &'static [Part],
    /// Name, kind and description of each tool it has where nothing else is configured.
    pub tools: &'static [(&'static str, NodeKind, &'static str)],
    /// The agents to which it may delegate a step. They plan in more detail, so work never comes back.
    pub delegates_to: &'static [AgentType],
    /// The agents it may ask.
    pub asks: &'static [AgentType],
    /// What it answers where nothing else is configured.
    pub answers: &'static [Ability],
    /// When it plans words by rule: who gets the steps that look something up, and who the others. It does them itself,
    /// by its tools, where unset.
    pub hands_to: Option<(AgentType, AgentType)>,
    /// Whether it changes nothing in the repository.
    pub is_read_only: bool,
}

impl Role {
    /// The role of a type of agent.
    #[must_use]
    pub const fn of(agent: AgentType) -> &'static Self {
        match agent {
            AgentType::Strategic => &strategic::ROLE,
            AgentType::Tactical => &tactical::ROLE,
            AgentType::Perception => &perception::ROLE,
            AgentType::Orchestrator => &orchestration::ROLE,
        }
    }

    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}
