//! `hook`: answers a hook of an agent program or of git, or prints a status line.

use clap::Args;

use crate::cli::programs::NamedHook;

#[derive(Debug, Args)]
pub struct Hook {
    /// The hook of git, or the status line
    #[arg(value_enum)]
    pub named: Option<NamedHook>,
    /// The command of the person's own status line
    #[arg(long, hide = true)]
    pub then: Option<String>,
    /// Arguments from git: the remote and its URL, the commits of a checkout, or the command of a rewrite
    #[arg(hide = true)]
    pub more: Vec<String>,
}
