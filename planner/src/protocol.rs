//! The types of agent, and the requests between them: text only, no tool crosses between agents.

use serde::{Deserialize, Serialize};

/// The longest time a request may wait for its answer, in milliseconds: a day.
pub const REQUEST_TIMEOUT_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// The greatest length of the text of a request.
pub const REQUEST_CHARS_MAX: usize = 16 << 10;

/// A type of agent. Its role defines its abilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, strum::Display, strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum AgentType {
    /// Plans goals, constraints and milestones.
    Strategic,
    /// Plans the steps of a task.
    Tactical,
    /// Plans the search for facts about the repository.
    Perception,
    /// Assigns steps to agents, and orders them.
    Orchestrator,
}

impl AgentType {
    /// All types.
    pub const ALL: [Self; 4] = [Self::Strategic, Self::Tactical, Self::Perception, Self::Orchestrator];

    /// The name as written in plans and in the configuration.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The type with this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// A kind of request that an agent can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ability {
    /// Judges a text.
    Analyse,
    /// Names the files and symbols of a context.
    Extract,
    /// Finds the location of something.
    Locate,
}

/// A request to another agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[expect(missing_docs, reason = "names and types say what the fields hold")]
pub enum AgentRequest {
    /// Requests a judgement of a text.
    #[serde(alias = "AnalyzeNarrative")]
    Analyse { text: String },
    /// Requests the files and symbols of a context.
    #[serde(alias = "ExtractEntities")]
    Extract { context: String },
    /// Requests the location of a file, a symbol or a part of the system.
    #[serde(alias = "FindSpatialContext")]
    Locate {
        #[serde(alias = "entity_id")]
        entity: String,
    },
}

impl AgentRequest {
    /// The ability that answers it, and its subject.
    pub fn subject(&self) -> (Ability, &str) {
        match self {
            Self::Analyse { text } => (Ability::Analyse, text),
            Self::Extract { context } => (Ability::Extract, context),
            Self::Locate { entity } => (Ability::Locate, entity),
        }
    }

    /// The request as an instruction.
    pub fn instruction(&self) -> String {
        let (ability, text) = self.subject();
        let verb = match ability {
            Ability::Analyse => "Analyse this, and draw conclusions",
            Ability::Extract => "List the files, symbols and other things that this is about",
            Ability::Locate => "Say where this is, with path and line",
        };
        format!("{verb}: {text}")
    }
}

/// A step that another agent answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossAgentStep {
    /// The agent that answers.
    pub target_agent: AgentType,
    /// The request.
    pub request: AgentRequest,
    /// The time for the answer, in milliseconds; required and positive.
    #[serde(alias = "timeout")]
    pub timeout_ms: u64,
}
