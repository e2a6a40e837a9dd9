//! Arguments of commands on the log: `groups`, `db`, `keys`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use crewlog_mq::AggregateName;

use super::typed::aggregate;

#[derive(Debug, Subcommand)]
pub enum Groups {
    /// List the groups
    Ls,
    /// Show a group: its versions, and the owner and lag of each partition
    Show { name: String },
    /// Give a group no events until it is resumed
    Pause { name: String },
    /// Resume a paused group
    Resume { name: String },
    /// Move a group to another position, whatever it has handled
    Reset {
        name: String,
        /// Count everything up to here as handled, and nothing after it
        #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(0..))]
        to: i64,
        /// The version [default: the active one]
        #[arg(long, value_name = "N")]
        group_version: Option<u32>,
    },
    /// List the parked events of a group, or replay or skip them
    Parked(ParkedOf),
    /// End a version of a group
    Retire {
        name: String,
        /// The version
        #[arg(long, value_name = "N")]
        group_version: u32,
    },
}

#[derive(Debug, Args)]
pub struct ParkedOf {
    pub name: String,
    /// Handle parked events again
    #[arg(long, conflicts_with = "skip")]
    pub replay: bool,
    /// Skip the first parked event and handle those after it
    #[arg(long, requires = "aggregate")]
    pub skip: bool,
    /// Only this aggregate
    #[arg(long, value_name = "STREAM/ID", value_parser = aggregate)]
    pub aggregate: Option<AggregateName>,
    /// The version [default: the active one]
    #[arg(long, value_name = "N")]
    pub group_version: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub enum Db {
    /// Check that the log is sound; nothing is changed
    Check,
    /// Migrate the schema of the log, as opening the log does
    Migrate,
    /// Copy the log into a new file; others can keep writing
    Backup {
        /// The file to make, a log that --store opens
        file: PathBuf,
    },
    /// Count the events of the log
    Info,
}

#[cfg(feature = "sealing")]
#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Make an operator's key in a new file; with it new plans are sealed
    New {
        /// The file to make
        file: PathBuf,
    },
    /// List the keys of sealed plans, and their state
    Ls,
    /// Destroy the key of a plan, and with it the texts of the plan and its forks, for good
    Destroy {
        /// The plan; or a text that a model was asked about, or a key, as `keys ls` names it
        plan: String,
    },
    /// Wrap the keys of all plans under another operator's key
    Rotate {
        /// The file with the other operator's key
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
}
