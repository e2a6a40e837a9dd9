//! What can be typed to look after a log: its groups, its exports, its database.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use crewlog_mq::AggregateName;

use super::typed::aggregate;

/// `groups`.
#[derive(Debug, Subcommand)]
pub enum Groups {
    /// List the groups
    Ls,
    /// Show a group: its versions, who holds which partition, how far behind each is
    Show(GroupName),
    /// Give a group no events until it is resumed
    Pause(GroupName),
    /// Let a paused group go on
    Resume(GroupName),
    /// Let a group go on behind another position, whatever it has handled
    Reset(ResetGroup),
    /// List what a group has parked, or have it handled again, or give it up
    Parked(ParkedOf),
    /// End a version of a group
    Retire(RetireGroup),
}

/// A group.
#[derive(Debug, Args)]
pub struct GroupName {
    /// Its name
    pub name: String,
}

/// `groups reset`.
#[derive(Debug, Args)]
pub struct ResetGroup {
    /// Its name
    pub name: String,
    /// Count everything up to here as handled, and nothing after it
    #[arg(long, value_name = "POSITION", value_parser = clap::value_parser!(i64).range(0..))]
    pub to: i64,
    /// The version [default: the active one]
    #[arg(long, value_name = "N")]
    pub group_version: Option<u32>,
}

/// `groups parked`.
#[derive(Debug, Args)]
pub struct ParkedOf {
    /// Its name
    pub name: String,
    /// Have it handled again
    #[arg(long, conflicts_with = "skip")]
    pub replay: bool,
    /// Skip the first parked event and handle those after it
    #[arg(long, requires = "aggregate")]
    pub skip: bool,
    /// Of this aggregate only
    #[arg(long, value_name = "STREAM/ID", value_parser = aggregate)]
    pub aggregate: Option<AggregateName>,
    /// The version [default: the active one]
    #[arg(long, value_name = "N")]
    pub group_version: Option<u32>,
}

/// `groups retire`.
#[derive(Debug, Args)]
pub struct RetireGroup {
    /// Its name
    pub name: String,
    /// The version
    #[arg(long, value_name = "N")]
    pub group_version: u32,
}

/// `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Of this plan and its tasks only; the whole log if left out
    pub plan: Option<String>,
    /// Write to this file, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

/// `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The export; - for standard input
    pub file: PathBuf,
}

/// `db`.
#[derive(Debug, Subcommand)]
pub enum Db {
    /// Look whether the log is sound; nothing is changed
    Check,
    /// Bring the schema of the log up to date; opening a log does the same, this does it alone
    Migrate,
    /// Copy the log into a new file, while others go on writing
    Backup(Backup),
    /// Count what the log holds
    Stats,
}

/// `db backup`.
#[derive(Debug, Args)]
pub struct Backup {
    /// The file to be made; it is a log, and --store opens it
    pub file: PathBuf,
}
