//! What one agent may ask of another: the types of agent, and the requests between them.
//!
//! A request carries text and asks for text. No tool, and no handle to one, crosses between agents.

use serde::{Deserialize, Serialize};

/// The longest time a request may wait for its answer, in milliseconds: a day.
pub const REQUEST_TIMEOUT_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// The greatest length of the text of a request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 16 << 10;

/// A type of agent. Its role says what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentType {
    /// Plans goals, constraints and milestones.
    Strategic,
    /// Plans the steps of a task.
    Tactical,
    /// Plans what to find out about the repository.
    Perception,
    /// Plans which agent does what, and when.
    Orchestrator,
}

impl AgentType {
    /// All types.
    pub const ALL: [Self; 4] = [Self::Strategic, Self::Tactical, Self::Perception, Self::Orchestrator];

    /// The name as written in plans and in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strategic => "strategic",
            Self::Tactical => "tactical",
            Self::Perception => "perception",
            Self::Orchestrator => "orchestrator",
        }
    }

    /// The type with this name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.as_str().eq_ignore_ascii_case(name))
    }
}

impl std::fmt::Display for AgentType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
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
    /// Finds where something is.
    Locate,
}

impl Ability {
    /// The name as written in requests and in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Analyse => "analyse",
            Self::Extract => "extract",
            Self::Locate => "locate",
        }
    }
}

/// A request to another agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum AgentRequest {
    /// Asks for a judgement.
    #[serde(alias = "AnalyzeNarrative")]
    Analyse {
        /// The text to judge.
        text: String,
    },
    /// Asks for the files and symbols of a context.
    #[serde(alias = "ExtractEntities")]
    Extract {
        /// Where to look.
        context: String,
    },
    /// Asks where something is.
    #[serde(alias = "FindSpatialContext")]
    Locate {
        /// The name of a file, a symbol or a part of the system.
        #[serde(alias = "entity_id")]
        entity: String,
    },
}

impl AgentRequest {
    /// The ability that answers it.
    #[must_use]
    pub const fn ability(&self) -> Ability {
        match self {
            Self::Analyse { .. } => Ability::Analyse,
            Self::Extract { .. } => Ability::Extract,
            Self::Locate { .. } => Ability::Locate,
        }
    }

    /// The text, context or entity it asks about.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Analyse { text } => text,
            Self::Extract { context } => context,
            Self::Locate { entity } => entity,
        }
    }

    /// The request as an instruction.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Analyse { text } => format!("Analyse this, and say what follows from it: {text}"),
            Self::Extract { context } => {
                format!("Name the files, symbols and other things that this is about: {context}")
            }
            Self::Locate { entity } => format!("Say where this is, with path and line: {entity}"),
        }
    }
}

/// A step that another agent answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossAgentStep {
    /// The agent that is asked.
    pub target_agent: AgentType,
    /// The request.
    pub request: AgentRequest,
    /// The time for the answer, in milliseconds; required and positive.
    #[serde(alias = "timeout")]
    pub timeout_ms: u64,
}
