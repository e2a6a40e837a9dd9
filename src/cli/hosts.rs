//! Arguments of commands on agent programs: `init`, `doctor`.

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

#[derive(Debug, Args)]
pub struct Init {
    /// Connect this agent program only; may be repeated [default: those found here]
    #[arg(long = "host", value_name = "NAME", value_enum)]
    pub hosts: Vec<Host>,
    /// Make the log only
    #[arg(long, conflicts_with_all = ["hosts", "remove"])]
    pub no_hosts: bool,
    /// Take out again what `init` wrote, except the log
    #[arg(long, conflicts_with = "hosts")]
    pub remove: bool,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Check this agent program only; may be repeated [default: those found here]
    #[arg(long = "host", value_name = "NAME", value_enum)]
    pub hosts: Vec<Host>,
    /// Start each agent program with a short prompt, and check that its hook runs; this costs one request to its model
    #[arg(long)]
    pub live: bool,
}

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

/// The permissions of a token.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    /// To see everything
    Read,
    /// To give commands
    Write,
    /// To agree that commands of plans run
    Execute,
    /// To do what only a person may: answer, withdraw, end leases of others
    Operator,
}

/// Changes of the tokens of programs.
#[derive(Debug, Subcommand)]
pub enum Tokens {
    /// Make a token and show it, once
    Add {
        /// Name of the token, recorded in events
        name: String,
        /// The permissions of the token; may be repeated, or separated by commas
        #[arg(long, value_enum, value_delimiter = ',', default_value = "read")]
        scope: Vec<Scope>,
    },
    /// Revoke a token
    Revoke {
        /// Its name
        name: String,
    },
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
