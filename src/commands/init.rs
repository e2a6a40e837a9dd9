//! `init`: connects the agent programs of a repository to a log.

use std::path::PathBuf;

use clap::Args;

use crate::cli::programs::Host;

#[derive(Debug, Args)]
pub struct Init {
    /// Connect this agent program only; may be repeated [default: those found here]
    #[arg(long = "host", value_name = "NAME", value_enum)]
    pub hosts: Vec<Host>,
    /// Make the log only
    #[arg(long, conflicts_with_all = ["hosts", "remove"])]
    pub no_hosts: bool,
    /// Install the plugin for all repositories, from this folder [default: ~/.local/share/crewlog/plugin], in place of hooks in
    /// the files of this one
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, conflicts_with_all = ["no_hosts", "remove"])]
    pub plugin: Option<Option<PathBuf>>,
    /// Remove what `init` added, and the plugin, except the log
    #[arg(long, conflicts_with = "hosts")]
    pub remove: bool,
}
