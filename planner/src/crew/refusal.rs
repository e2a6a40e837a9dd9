//! Reasons for which agents, leases, messages and questions refuse a command.

use crewlog_mq::Timestamp;
use serde::Serialize;

use super::names::LeaseHolder;
use super::target::Target;

/// The reason for a refusal: one variant for each reaction of the caller. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CrewError {
    /// The command itself is wrong; no state of the log would make it right.
    #[error("{0}")]
    Invalid(String),
    /// Too much is open already; the command may succeed later.
    #[error("{0}")]
    Full(String),
    /// It names something that does not exist.
    #[error("{0}")]
    Missing(String),
    /// It names something that has ended.
    #[error("{0}")]
    Closed(String),
    #[error("{}", .0.first().map_or_else(String::new, ToString::to_string))]
    Held(Vec<Blocked>),
    #[error("lease {lease} is held by {holder}")]
    NotYours { lease: u64, holder: String },
    #[error("there is no agent {0}: join first")]
    Unknown(String),
    #[error("{0} has left: join again")]
    Left(String),
    #[error("{0} is the name of a session that is alive: choose another name, or give none")]
    Taken(String),
    #[error("{0} was taken over by a newer session: join under another name")]
    Superseded(String),
}

/// A lease or a waiting request that blocks a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// The requested target.
    pub asked: Target,
    /// The lease or the waiting request that blocks it.
    pub by: By,
    /// Its holder.
    pub holder: LeaseHolder,
    /// The blocking files.
    pub target: Target,
    /// True if it is exclusive.
    pub is_exclusive: bool,
    /// When it ends, unless it is renewed.
    pub until: Timestamp,
    /// The task that it is for.
    pub task: Option<String>,
}

impl Blocked {
    /// The lease that blocks, unless a waiting request does.
    #[must_use]
    pub const fn lease(&self) -> Option<u64> {
        match self.by {
            By::Lease(lease) => Some(lease),
            By::Waiting(_) => None,
        }
    }
}

impl std::fmt::Display for Blocked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verb = match self.by {
            By::Lease(_) => "held",
            By::Waiting(_) => "awaited",
        };
        write!(f, "{} is {verb} by {}", self.target.path, self.holder.agent)
    }
}

/// The cause of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum By {
    /// A live lease.
    Lease(u64),
    /// A request that has waited longer.
    Waiting(u64),
}

/// Checks the length of a text in bytes, or the number of the parts of something.
pub(in crate::crew) fn check_length(what: &str, n: usize, max: usize) -> Result<(), CrewError> {
    let says = || format!("{what} has {n} bytes or parts; at most {max}: put long texts in a file and name it");
    if n > max { Err(CrewError::Invalid(says())) } else { Ok(()) }
}
