//! `init`: connects the agent programs of a repository to a log.

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
    /// Remove what `init` added, except the log
    #[arg(long, conflicts_with = "hosts")]
    pub remove: bool,
}
