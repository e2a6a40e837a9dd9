//! `hook`: answers a hook of an agent program or of git.

use clap::Args;

use crate::cli::programs::GitHook;

#[derive(Debug, Args)]
pub struct Hook {
    /// The hook of git
    #[arg(value_enum)]
    pub git: Option<GitHook>,
    /// Arguments from git: the remote and its URL, the commits of a checkout, or the command of a rewrite
    #[arg(hide = true)]
    pub more: Vec<String>,
}
