//! Names of agents, and the holders of leases.

use serde::{Deserialize, Serialize};

/// The recipient that means all agents.
pub const EVERYONE: &str = "everyone";
/// Names that no agent can have, in any case of letters: a reader would take them for the person, or for this program.
pub const RESERVED: [&str; 8] = [EVERYONE, "admin", "crewlog", "human", "operator", "person", "root", "user"];
/// The longest name, in bytes, including its parents'.
pub const NAME_BYTES_MAX: usize = 100;
/// How deep subagents may be nested.
pub const DEPTH_MAX: usize = 4;

/// The holder of a lease, or of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseHolder {
    /// The name of the agent in the project.
    pub agent: String,
    /// The worktree that the paths are in: its machine and its path.
    pub worktree: String,
}

/// True for a valid name: `claude-1`, `claude-1/explorer`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        (1..=32).contains(&part.len()) && part.chars().all(is_plain) && !part.starts_with(['.', '-'])
    };
    !RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
        && name.len() <= NAME_BYTES_MAX
        && name.split('/').count() <= DEPTH_MAX
        && name.split('/').all(is_part)
}

/// True for the parent itself and its subagents.
#[must_use]
pub fn is_below(agent: &str, parent: &str) -> bool {
    agent.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
