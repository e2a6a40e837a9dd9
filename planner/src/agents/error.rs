//! Why the plan of an agent is refused. It only names what was wrong.

use crate::agents::Misfit;
use crate::protocol::{AgentType, RequestError};
use crate::validity::InvalidPlan;

/// Why the plan of an agent is refused. Places in it are JSON pointers, `/execution_steps/0/tool`.
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
    /// It is no JSON, or not of its agent's form.
    #[error("this is no {agent} plan: {misfit}")]
    Form {
        /// Whose plan it was to be.
        agent: AgentType,
        /// What is wrong.
        misfit: Box<Misfit>,
    },
    /// It is of a version that is not known.
    #[error("a {agent} plan of version {version} cannot be read: the versions are 1 to {newest}")]
    Version {
        /// Whose plan it is.
        agent: AgentType,
        /// As written.
        version: String,
        /// The newest that is known.
        newest: u32,
    },
    /// It names a tool that only others have.
    #[error("{at}: the tool {tool} is {}, and a {agent} plan may not name it", of_whom(owners))]
    ForeignTool {
        /// The tool.
        tool: String,
        /// Whose it is.
        owners: Vec<AgentType>,
        /// Whose plan it is.
        agent: AgentType,
        /// Where it is named.
        at: String,
    },
    /// It names a tool that nobody has.
    #[error("{at}: no tool is called {tool:?}; a {agent} agent has {}", names(known))]
    UnknownTool {
        /// As written.
        tool: String,
        /// Whose plan it is.
        agent: AgentType,
        /// Where it is named.
        at: String,
        /// The tools that the agent has.
        known: Vec<String>,
    },
    /// Steps wait for each other in a circle.
    #[error("{at}: these wait for each other in a circle: {}", cycle.join(" -> "))]
    Cycle {
        /// The ids in order of waiting, the first repeated at the end.
        cycle: Vec<String>,
        /// Where what waits is written.
        at: String,
    },
    /// No step has this id.
    #[error("{at}: nothing in the plan has the id {id:?}")]
    UnknownId {
        /// As written.
        id: String,
        /// Where it is named.
        at: String,
    },
    /// Two have the same id.
    #[error("{at}: the id {id:?} is used twice")]
    DuplicateId {
        /// The id.
        id: String,
        /// Where it is used again.
        at: String,
    },
    /// An id is empty, too long, or has characters that names have not.
    #[error("{at}: {id:?} is no id: 1 to {max} letters, digits, - and _")]
    BadId {
        /// As written.
        id: String,
        /// Where.
        at: String,
        /// The most characters.
        max: usize,
    },
    /// Something that must say something says nothing.
    #[error("{at}: this is empty")]
    Empty {
        /// Where.
        at: String,
    },
    /// Nothing is to be done.
    #[error("{at}: there is nothing in it, so that nothing would be done; give it at least one entry")]
    NoSteps {
        /// Where.
        at: String,
    },
    /// A list is too long.
    #[error("{at}: {value} of these are more than {max}; split the plan into several")]
    TooMany {
        /// Where.
        at: String,
        /// How many there are.
        value: usize,
        /// How many there may be.
        max: usize,
    },
    /// A step is given no time, or too much.
    #[error("{at}: {value} ms are no time for a step: 1 to {max}")]
    Timeout {
        /// Where.
        at: String,
        /// As written.
        value: u64,
        /// The most milliseconds.
        max: u64,
    },
    /// A step is to be tried again too often.
    #[error("{at}: {value} tries again are more than retries_max, which is {max}")]
    Retry {
        /// Where.
        at: String,
        /// As written.
        value: u32,
        /// The limit.
        max: u32,
    },
    /// A step cannot be tried again, or undone, as its plan says.
    #[error("{at}: {why}")]
    Care {
        /// Where.
        at: String,
        /// Why not.
        why: &'static str,
    },
    /// It is not said who does it, or it is said twice.
    #[error("{at}: say exactly one of {allowed}")]
    OneOf {
        /// Where.
        at: String,
        /// What may be said.
        allowed: &'static str,
    },
    /// A tool is given what it does not take, or is not given what it needs.
    #[error("{at}: the tool {tool} {wants}")]
    Use {
        /// Where.
        at: String,
        /// The tool.
        tool: String,
        /// What it wants.
        wants: &'static str,
    },
    /// Work is left to an agent that it cannot be left to.
    #[error("{at}: a {agent} agent may not leave work to a {to} agent, which does not plan in more detail")]
    MayNotDelegate {
        /// Whose plan it is.
        agent: AgentType,
        /// To whom it was to be left.
        to: AgentType,
        /// Where.
        at: String,
    },
    /// The plan uses an agent that it does not list among what it needs.
    #[error("{at}: a step needs a {agent} agent, which the resource requirements do not list")]
    NotRequired {
        /// Who is missing.
        agent: AgentType,
        /// The step.
        at: String,
    },
    /// The words of which a plan was to be made are none.
    #[error("{error}")]
    Words {
        /// Why.
        error: InvalidPlan,
    },
    /// The agent has no tool for a step.
    #[error("step {step}: a {agent} agent has no tool for {kind}; give it one under [agents.{agent}] in crewlog.toml")]
    NoTool {
        /// Whose plan it was to be.
        agent: AgentType,
        /// What sort of work the step is.
        kind: &'static str,
        /// The step.
        step: String,
    },
    /// A request to another agent breaks a rule.
    #[error("{at}: {error}")]
    Request {
        /// Where.
        at: String,
        /// Which.
        error: RequestError,
    },
}

impl PlanError {
    /// The name of the variant, by which failures are counted.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "TooLong",
            Self::Form { .. } => "Form",
            Self::Version { .. } => "Version",
            Self::ForeignTool { .. } => "ForeignTool",
            Self::UnknownTool { .. } => "UnknownTool",
            Self::Cycle { .. } => "Cycle",
            Self::UnknownId { .. } => "UnknownId",
            Self::DuplicateId { .. } => "DuplicateId",
            Self::BadId { .. } => "BadId",
            Self::Empty { .. } => "Empty",
            Self::NoSteps { .. } => "NoSteps",
            Self::TooMany { .. } => "TooMany",
            Self::Timeout { .. } => "Timeout",
            Self::Retry { .. } => "Retry",
            Self::Care { .. } => "Care",
            Self::OneOf { .. } => "OneOf",
            Self::Use { .. } => "Use",
            Self::MayNotDelegate { .. } => "MayNotDelegate",
            Self::NotRequired { .. } => "NotRequired",
            Self::Words { .. } => "Words",
            Self::NoTool { .. } => "NoTool",
            Self::Request { .. } => "Request",
        }
    }
}

fn of_whom(owners: &[AgentType]) -> String {
    if owners.is_empty() {
        return "nobody's".into();
    }
    let owners = owners.iter().map(|agent| agent.as_str()).collect::<Vec<_>>();
    format!("of {} agents", owners.join(" and "))
}

fn names(known: &[String]) -> String {
    if known.is_empty() { "none".into() } else { known.join(", ") }
}
