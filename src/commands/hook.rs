//! `hook`: answers a hook of an agent program or of git.

use clap::Args;

use crate::cli::programs::GitHook;

#[derive(Debug, Args)]
pub struct Hook {
    /// The hook of git
    #[arg(value_enum)]
    pub git: Option<GitHook>,
    /// Arguments from git: the remote and its URL
    #[arg(hide = true)]
    pub more: Vec<String>,
}
