//! What agents plan: each type of agent has plans of its own form and tools of its own, and all of them lower to tasks.
//!
//! A plan of an agent is data. It is read ([`AgentPlan::read`]), held to the rules and to the registry of tools
//! ([`AgentPlan::validate`]), and made into a [`Proposal`] ([`AgentPlan::lower`]); the planner does all three when the plan
//! is proposed. Nothing here runs a tool, and nothing here knows a plan that is under way.
//!
//! The forms do not know each other: what they share is how a step becomes a task (`lower`), the registry, and what may
//! be asked of other agents ([`crate::protocol`]). Each has a version of its own, and reads its older versions.

mod error;
pub mod failures;
mod lower;
mod orchestration;
mod perception;
pub mod registry;
pub mod requests;
mod schema;
mod shape;
mod strategic;
mod tactical;
mod words;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json;
use crate::plan::{AgentOrigin, Origin, Proposal};
use crate::protocol::AgentType;
pub use error::PlanError;
pub use lower::Care;
use lower::Lowered;
pub use orchestration::{Assignment, OrchestrationPlan};
pub use perception::{Ambiguity, ExtractionPattern, PerceptionPlan, ResolutionStrategy, ResolveBy, StateUpdate};
use registry::ToolRegistry;
pub use schema::schema;
use shape::Field;
pub use shape::Misfit;
pub use strategic::{DramaticBeat, NarrativeGoal, StrategicPlan, Theme};
pub use tactical::{DependencyGraph, ResourceMap, TacticalPlan, TacticalStep};
pub use words::{plan_answer, plan_words, read_words};

/// The most bytes of an agent's plan, as JSON.
pub const PLAN_BYTES_MAX: usize = 1 << 20;
/// The most steps of an agent's plan, and the most of any other list in it.
pub const STEPS_MAX: usize = 1_000;
/// The most milliseconds that a step may be given, which are not quite fifty days.
pub const STEP_TIMEOUT_MS_MAX: u64 = u32::MAX as u64;
/// The most characters of the id of a step.
pub const ID_CHARS_MAX: usize = 64;

/// The plan of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AgentPlan {
    /// Goals, constraints, milestones.
    Strategic(StrategicPlan),
    /// Steps, what waits for what, and what is needed.
    Tactical(TacticalPlan),
    /// What to look for, and what to keep of it.
    Perception(PerceptionPlan),
    /// Who does what, and when.
    Orchestration(OrchestrationPlan),
}

/// What the planner is given of an agent's plan, and keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProposal {
    /// The type of agent whose plan it is.
    pub agent: AgentType,
    /// The plan as JSON, as it was given; the event repeats it.
    #[serde(skip)]
    pub plan: String,
    /// The tools by which it is judged, of all types: only so can a foreign one be named with its owner.
    pub registry: ToolRegistry,
    /// Where it came from, but for what the planner adds of the agent.
    #[serde(skip)]
    pub origin: Origin,
}

/// A form of plan. It sees neither the other forms nor what becomes of the plan.
trait Form: Serialize + DeserializeOwned {
    /// Whose.
    const AGENT: AgentType;
    /// The newest version; what an older one lacks, [`Form::upgrade`] adds.
    const VERSION: u32;
    /// All fields of the newest version, of which the first tells the version.
    const FIELDS: &'static [Field];

    /// Makes a plan of an older version one of the newest. What a newer one only adds has defaults, and needs nothing.
    fn upgrade(plan: Value, _version: u32) -> Value {
        plan
    }

    /// Gives the rules of the form, and the tasks that it means.
    fn lower(&self, registry: &ToolRegistry) -> Result<Lowered, PlanError>;
}

impl AgentPlan {
    /// Reads a plan of an agent of this type, of its newest version or an older one; without a version it is of the first.
    ///
    /// # Errors
    /// [`PlanError`] when it is too long, no JSON, of an unknown version or of another form.
    pub fn read(agent: AgentType, json: &str) -> Result<Self, PlanError> {
        match agent {
            AgentType::Strategic => read(json).map(Self::Strategic),
            AgentType::Tactical => read(json).map(Self::Tactical),
            AgentType::Perception => read(json).map(Self::Perception),
            AgentType::Orchestrator => read(json).map(Self::Orchestration),
        }
    }

    /// Whose plan it is.
    #[must_use]
    pub fn agent(&self) -> AgentType {
        match self {
            Self::Strategic(_) => AgentType::Strategic,
            Self::Tactical(_) => AgentType::Tactical,
            Self::Perception(_) => AgentType::Perception,
            Self::Orchestration(_) => AgentType::Orchestrator,
        }
    }

    /// The version in which plans of this type are written today.
    #[must_use]
    pub fn version(&self) -> u32 {
        match self {
            Self::Strategic(_) => StrategicPlan::VERSION,
            Self::Tactical(_) => TacticalPlan::VERSION,
            Self::Perception(_) => PerceptionPlan::VERSION,
            Self::Orchestration(_) => OrchestrationPlan::VERSION,
        }
    }

    /// The plan as JSON, as [`AgentPlan::read`] reads it.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("texts, numbers and lists can always be written as JSON")
    }

    /// Holds the plan to its rules: its steps, what waits for what, the tools that its agent has, and that no tool of
    /// another is named anywhere in it.
    ///
    /// # Errors
    /// The first rule that does not hold, with the place in the plan.
    pub fn validate(&self, registry: &ToolRegistry) -> Result<(), PlanError> {
        self.lower(registry).map(drop)
    }

    /// The tasks that the plan means; it is validated on the way.
    ///
    /// # Errors
    /// As [`AgentPlan::validate`].
    pub fn lower(&self, registry: &ToolRegistry) -> Result<Proposal, PlanError> {
        let agent = self.agent();
        let value = serde_json::to_value(self).expect("texts, numbers and lists can always be written as JSON");
        registry.check_words(agent, &value)?;
        let Lowered { tasks, title, context } = match self {
            Self::Strategic(plan) => plan.lower(registry),
            Self::Tactical(plan) => plan.lower(registry),
            Self::Perception(plan) => plan.lower(registry),
            Self::Orchestration(plan) => plan.lower(registry),
        }?;
        let tools = registry.tools_of(agent).map(|tool| tool.name.clone()).collect();
        let origin = AgentOrigin { agent, version: self.version(), tools };
        let origin = Origin { agent: Some(origin), ..Origin::default() };
        Ok(Proposal { tasks, title, source: self.json(), context, origin })
    }
}

impl AgentProposal {
    /// The proposal that it means. Its source is the plan as it was given, byte for byte.
    ///
    /// # Errors
    /// [`PlanError`], with the place in the plan.
    pub fn lower(&self) -> Result<Proposal, PlanError> {
        let proposal = AgentPlan::read(self.agent, &self.plan)?.lower(&self.registry)?;
        let origin = Origin { agent: proposal.origin.agent, ..self.origin.clone() };
        Ok(Proposal { source: self.plan.clone(), origin, ..proposal })
    }
}

fn read<F: Form>(text: &str) -> Result<F, PlanError> {
    let agent = F::AGENT;
    if text.len() > PLAN_BYTES_MAX {
        return Err(PlanError::TooLong { value: text.len(), max: PLAN_BYTES_MAX });
    }
    let misfit = |misfit| PlanError::Form { agent, misfit: Box::new(misfit) };
    let plan = json::read(text).map_err(|error| misfit(error.into()))?;
    let version = match plan.get("version") {
        // What is null says nothing.
        None | Some(Value::Null) => 1,
        Some(version) => version.as_u64().and_then(|version| u32::try_from(version).ok()).unwrap_or(0),
    };
    if !(1..=F::VERSION).contains(&version) {
        let version = plan.get("version").map(Value::to_string).unwrap_or_default();
        return Err(PlanError::Version { agent, version, newest: F::VERSION });
    }
    let plan = if version == F::VERSION { plan } else { F::upgrade(plan, version) };
    let plan = shape::fitted(plan, F::FIELDS).map_err(misfit)?;
    Ok(F::deserialize(plan).expect("what has the shape of a form is of that form"))
}
