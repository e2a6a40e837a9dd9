//! The arguments of all commands, and the values that are typed: places, durations, settings.

pub mod programs;
pub mod sealing;
pub mod settings;
pub mod typed;

use std::path::PathBuf;

use clap::{ArgAction, Args};

use self::sealing::KeyPlace;
use crate::ui::terminal::TerminalArgs;

#[derive(Debug, Clone, Args)]
pub struct Global {
    /// The log [default: .crewlog/log.db of the repository]
    ///
    /// A path, or a sqlite: or postgres: URL.
    #[arg(long, global = true, env = "CREWLOG_STORE", value_name = "PATH|URL", hide_env_values = true)]
    pub store: Option<String>,
    /// The configuration [default: the nearest crewlog.toml, upward to the root of the worktree]
    #[arg(long, global = true, env = "CREWLOG_CONFIG", value_name = "PATH", hide_short_help = true)]
    pub config: Option<PathBuf>,
    #[cfg_attr(feature = "sealing", command(flatten))]
    #[cfg_attr(not(feature = "sealing"), arg(skip))]
    pub keys: KeyPlace,
    #[command(flatten)]
    pub terminal: TerminalArgs,
    /// Agree without being asked
    ///
    /// To run the commands of a plan, or to write the user's own configuration.
    #[arg(short, long, global = true)]
    pub yes: bool,
    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, hide_short_help = true)]
    pub version: Option<bool>,
    /// Print help; --help prints more
    #[arg(short, long, global = true, action = ArgAction::Help)]
    pub help: Option<bool>,
}
