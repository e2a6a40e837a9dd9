//! `doctor`: checks that agent programs are connected, and that edits can be refused.

use clap::Args;

use crate::cli::programs::Host;

#[derive(Debug, Args)]
pub struct Doctor {
    /// Check this agent program only; may be repeated [default: those found here]
    #[arg(long = "host", value_name = "NAME", value_enum)]
    pub hosts: Vec<Host>,
    /// Start each agent program with a short prompt, and check that its hook runs; this costs one request to its model
    #[arg(long)]
    pub live: bool,
}
