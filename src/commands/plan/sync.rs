//! `plan sync`: applies changes of a plan's file, and writes the states of its tasks into the file.

use clap::Args;

#[derive(Debug, Args)]
pub struct Sync {
    /// The plan
    pub plan: String,
}
