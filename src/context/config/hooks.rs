//! The hooks of agent programs and of git, as `[hooks]` in `crewlog.toml` sets them.

use serde::Deserialize;

/// The refusals of hooks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HooksConfig {
    /// The policy for a tool call that a hook cannot decide.
    pub on_error: OnError,
    /// True if overlaps with leases of other worktrees are refused too.
    pub strict: bool,
    /// True if an edit takes a lease on its file.
    pub lease_on_edit: bool,
}

impl Default for HooksConfig {
    fn default() -> Self {
        Self { on_error: OnError::Allow, strict: false, lease_on_edit: true }
    }
}

/// The policy if a hook cannot decide: the log cannot be opened, or the input is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The tool call runs, with a warning.
    #[default]
    Allow,
    /// It is refused.
    Deny,
}
