//! Why an agent's plan is refused.

use std::collections::BTreeSet;

use crate::protocol::{Ability, AgentType};
use crate::validity::InvalidPlan;

/// Why an agent's plan is refused. Places are JSON pointers, `/steps/0/tool`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It is too long.
    #[error("the plan has {value} bytes, and plan_bytes_max is {max}: split it into several plans")]
    TooLong {
        /// Its length.
        value: usize,
        /// The limit.
        max: usize,
    },
    /// It is not JSON, or not of the form.
    #[error("this is not an agent's plan: {reason}")]
    Form {
        /// What is wrong, with line and column.
        reason: String,
    },
    /// It has a part that its role does not use.
    #[error("{at}: a {agent} plan has no such part")]
    NotOfRole {
        /// The part.
        at: String,
        /// The agent that plans.
        agent: AgentType,
    },
    /// It names a tool of other agents.
    #[error("{at}: the tool {tool} belongs to {}, and a {agent} plan may not name it", owned_by(owners))]
    ForeignTool {
        /// The tool.
        tool: String,
        /// The agents that have it.
        owners: Vec<AgentType>,
        /// The agent that plans.
        agent: AgentType,
        /// Where it is named.
        at: String,
    },
    /// It names a tool that does not exist.
    #[error("{at}: no tool is called {tool:?}; a {agent} agent has {}", list(known))]
    UnknownTool {
        /// As written.
        tool: String,
        /// The agent that plans.
        agent: AgentType,
        /// Where it is named.
        at: String,
        /// The agent's tools.
        known: Vec<String>,
    },
    /// No step or goal has this id.
    #[error("{at}: nothing in the plan has the id {id:?}")]
    UnknownId {
        /// As written.
        id: String,
        /// Where it is named.
        at: String,
    },
    /// An id is used twice.
    #[error("{at}: the id {id:?} is used twice")]
    DuplicateId {
        /// The id.
        id: String,
        /// Where it is used again.
        at: String,
    },
    /// An id is empty, too long, or has other characters than names may have.
    #[error("{at}: {id:?} is not an id: 1 to {max} letters, digits, - and _")]
    BadId {
        /// As written.
        id: String,
        /// Where.
        at: String,
        /// The most characters.
        max: usize,
    },
    /// A text or list is empty that must not be.
    #[error("{at}: this is empty")]
    Empty {
        /// Where.
        at: String,
    },
    /// A number, or the length of a list or text, is out of its range.
    #[error("{at}: {value} is not allowed: {min} to {max}")]
    Range {
        /// Where.
        at: String,
        /// As written.
        value: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
    },
    /// A step contradicts itself.
    #[error("{at}: {rule}")]
    Step {
        /// Where.
        at: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// The agent may not delegate to this one, or not ask it.
    #[error("{at}: a {agent} agent may not {verb} a {to} agent")]
    NotAllowed {
        /// The agent that plans.
        agent: AgentType,
        /// `delegate to` or `ask`.
        verb: &'static str,
        /// The other agent.
        to: AgentType,
        /// Where.
        at: String,
    },
    /// The other agent does not answer such requests.
    #[error("{at}: a {to} agent does not {}: it answers {}", ability.as_str(), abilities(answers))]
    NotAble {
        /// The other agent.
        to: AgentType,
        /// What was asked of it.
        ability: Ability,
        /// What it answers.
        answers: BTreeSet<Ability>,
        /// Where.
        at: String,
    },
    /// A step uses an agent that the resources do not list.
    #[error("{at}: the step needs a {agent} agent, which /resources/agent_types does not list")]
    NotListed {
        /// The missing agent.
        agent: AgentType,
        /// The step.
        at: String,
    },
    /// Its steps, or the words for it, do not make a plan: a cycle, nothing to do, too many tasks.
    #[error(transparent)]
    Invalid(#[from] InvalidPlan),
    /// The agent has no tool for a step.
    #[error("step {step}: a {agent} agent has no tool for {kind}; give it one under [agents.{agent}] in crewlog.toml")]
    NoTool {
        /// The agent that plans.
        agent: AgentType,
        /// The kind of the step.
        kind: &'static str,
        /// The step.
        step: String,
    },
}

impl PlanError {
    /// The name of the variant, by which failures are counted.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "TooLong",
            Self::Form { .. } => "Form",
            Self::NotOfRole { .. } => "NotOfRole",
            Self::ForeignTool { .. } => "ForeignTool",
            Self::UnknownTool { .. } => "UnknownTool",
            Self::UnknownId { .. } => "UnknownId",
            Self::DuplicateId { .. } => "DuplicateId",
            Self::BadId { .. } => "BadId",
            Self::Empty { .. } => "Empty",
            Self::Range { .. } => "Range",
            Self::Step { .. } => "Step",
            Self::NotAllowed { .. } => "NotAllowed",
            Self::NotAble { .. } => "NotAble",
            Self::NotListed { .. } => "NotListed",
            Self::Invalid(error) => error.name(),
            Self::NoTool { .. } => "NoTool",
        }
    }
}

fn owned_by(owners: &[AgentType]) -> String {
    let owners = owners.iter().map(|agent| agent.as_str()).collect::<Vec<_>>();
    if owners.is_empty() { "nobody".into() } else { format!("{} agents", owners.join(" and ")) }
}

fn list(names: &[impl AsRef<str>]) -> String {
    let names = names.iter().map(AsRef::as_ref).collect::<Vec<_>>();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

fn abilities(answers: &BTreeSet<Ability>) -> String {
    list(&answers.iter().map(|ability| ability.as_str()).collect::<Vec<_>>())
}
