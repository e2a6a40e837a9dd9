//! What one agent may ask of another: the four types of agent, the requests between them, their answers, and the rules
//! that a request is held to before anybody is told of it.
//!
//! A request carries words and asks for words. No tool, and nothing by which one could be used, ever crosses.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The longest that a request may wait for its answer, in milliseconds: a day.
pub const REQUEST_TIMEOUT_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// The most bytes of what a request asks about.
pub const REQUEST_BYTES_MAX: usize = 16 << 10;
/// The most bytes of an answer.
pub const RESPONSE_BYTES_MAX: usize = 256 << 10;

/// A type of agent: what it plans about, and with which tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentType {
    /// Says what is wanted: goals, constraints, milestones.
    Strategic,
    /// Says how a task is carried out, step by step.
    Tactical,
    /// Says what is to be found out about the repository.
    Perception,
    /// Says which agent does what, and when.
    Orchestrator,
}

impl AgentType {
    /// All of them.
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

    /// The type of this name, if it is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.as_str().eq_ignore_ascii_case(name))
    }

    /// Whether it may put a request to another.
    #[must_use]
    pub const fn may_ask(self, other: Self) -> bool {
        match self {
            Self::Orchestrator => matches!(other, Self::Strategic | Self::Tactical | Self::Perception),
            Self::Strategic => matches!(other, Self::Tactical | Self::Perception),
            Self::Tactical => matches!(other, Self::Strategic | Self::Perception),
            // It looks, and says what it sees.
            Self::Perception => false,
        }
    }

    /// Whether it may leave a task to a plan of another: only to one that plans in more detail, so that no plan can come
    /// back to where it began.
    #[must_use]
    pub const fn may_delegate_to(self, other: Self) -> bool {
        self.level() > other.level()
    }

    const fn level(self) -> u8 {
        match self {
            Self::Orchestrator => 3,
            Self::Strategic => 2,
            Self::Tactical => 1,
            Self::Perception => 0,
        }
    }
}

impl std::fmt::Display for AgentType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an agent can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ability {
    /// To judge a text.
    Analyse,
    /// To name what a context is about.
    Extract,
    /// To say where something is.
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

/// Which types of agent answer what.
pub type Abilities = BTreeMap<AgentType, BTreeSet<Ability>>;

/// What each type answers where nothing else is configured.
#[must_use]
pub fn usual_abilities() -> Abilities {
    let of = |agent, abilities: &[Ability]| (agent, abilities.iter().copied().collect());
    Abilities::from([
        of(AgentType::Strategic, &[Ability::Analyse]),
        of(AgentType::Tactical, &[Ability::Analyse]),
        of(AgentType::Perception, &[Ability::Analyse, Ability::Extract, Ability::Locate]),
        of(AgentType::Orchestrator, &[]),
    ])
}

/// What one agent asks of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum AgentRequest {
    /// What is to be made of this?
    Analyse {
        /// What is to be judged.
        text: String,
    },
    /// Which files, symbols and the like is this about?
    Extract {
        /// Where to look.
        context: String,
    },
    /// Where is this?
    Locate {
        /// A file, a symbol, a part of the system, by its name.
        entity: String,
    },
}

impl AgentRequest {
    /// What the other must be able to do.
    #[must_use]
    pub const fn ability(&self) -> Ability {
        match self {
            Self::Analyse { .. } => Ability::Analyse,
            Self::Extract { .. } => Ability::Extract,
            Self::Locate { .. } => Ability::Locate,
        }
    }

    /// What it is about.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Analyse { text } => text,
            Self::Extract { context } => context,
            Self::Locate { entity } => entity,
        }
    }

    /// The same as an order in words.
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

/// A step of a plan that another agent answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossAgentStep {
    /// Who is asked.
    pub target_agent: AgentType,
    /// What.
    pub request: AgentRequest,
    /// Milliseconds within which an answer counts; required, and more than none.
    pub timeout_ms: u64,
}

/// A request as its task has it: who asks, and what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asking {
    /// The type of agent whose plan it is in.
    pub from: AgentType,
    /// What is asked of whom.
    pub step: CrossAgentStep,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentResponse {
    /// The answer, in words.
    Answer {
        /// What was found.
        text: String,
    },
    /// There is none.
    Refusal {
        /// Why.
        reason: String,
    },
}

/// Why a request is refused before anybody is told of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It asks about nothing.
    #[error("the request to {target} asks about nothing: say what it is to {}", ability.as_str())]
    Empty {
        /// Who was to be asked.
        target: AgentType,
        /// For what.
        ability: Ability,
    },
    /// It is too long.
    #[error("the request has {value} bytes, and request_bytes_max is {max}: put it into a file and name that")]
    TooLong {
        /// Its length.
        value: usize,
        /// The limit.
        max: usize,
    },
    /// Its time is none, or too long.
    #[error("timeout_ms is {value}, and must be from 1 to {max}")]
    Timeout {
        /// What was given.
        value: u64,
        /// The limit.
        max: u64,
    },
    /// Such agents may not ask such others.
    #[error("a {from} agent may not ask a {target} agent")]
    NotAllowed {
        /// Who asks.
        from: AgentType,
        /// Who was to be asked.
        target: AgentType,
    },
    /// The other does not answer that.
    #[error("a {target} agent does not {}: it answers {}", ability.as_str(), list(answers))]
    NotAble {
        /// Who was to be asked.
        target: AgentType,
        /// For what.
        ability: Ability,
        /// What it does answer.
        answers: BTreeSet<Ability>,
    },
}

fn list(abilities: &BTreeSet<Ability>) -> String {
    let names = abilities.iter().map(|ability| ability.as_str()).collect::<Vec<_>>();
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}

/// Holds a request to the rules: its form, who may ask whom, and what the other declares to answer.
///
/// # Errors
/// The first rule that does not hold.
pub fn check_request(from: AgentType, step: &CrossAgentStep, abilities: &Abilities) -> Result<(), RequestError> {
    let CrossAgentStep { target_agent: target, request, timeout_ms } = step;
    let (target, ability) = (*target, request.ability());
    if request.text().trim().is_empty() {
        return Err(RequestError::Empty { target, ability });
    }
    if request.text().len() > REQUEST_BYTES_MAX {
        return Err(RequestError::TooLong { value: request.text().len(), max: REQUEST_BYTES_MAX });
    }
    if !(1..=REQUEST_TIMEOUT_MS_MAX).contains(timeout_ms) {
        return Err(RequestError::Timeout { value: *timeout_ms, max: REQUEST_TIMEOUT_MS_MAX });
    }
    if !from.may_ask(target) {
        return Err(RequestError::NotAllowed { from, target });
    }
    match abilities.get(&target) {
        Some(answers) if answers.contains(&ability) => Ok(()),
        answers => Err(RequestError::NotAble { target, ability, answers: answers.cloned().unwrap_or_default() }),
    }
}
