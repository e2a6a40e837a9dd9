//! The agent programs that crewlog knows, and the permissions of tokens.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// An agent program that can be connected to the log, and runs hooks. Its name is that of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize, strum::AsRefStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Host {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
}

impl Host {
    /// The name of the program in profiles of agents.
    pub fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini-cli",
            Self::Opencode => "opencode",
        }
    }
}

/// The permissions of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    /// To see everything
    Read,
    /// To change plans and tasks
    Write,
    /// To consent to running commands
    Execute,
    /// To act as a person: answer, withdraw, end leases of others
    Operator,
}

/// The command of crewlog's status line.
pub const STATUS_LINE: &str = "crewlog hook status-line";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NamedHook {
    /// Refuse a commit of files that others hold leases on
    PreCommit,
    /// Warn of merge risks of a push
    PrePush,
    /// Record a commit of leased files
    PostCommit,
    /// Record a checkout that changed files that others lease
    PostCheckout,
    /// Record such a merge
    PostMerge,
    /// Record such a rebase
    PostRewrite,
    /// Print the status line of Claude Code, and record its figures
    StatusLine,
}
