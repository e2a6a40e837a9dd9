//! What can be typed: commands, arguments, options. Each file has the arguments of some commands and nothing else.

mod agents;
mod amend;
mod commands;
mod fork;
#[cfg(feature = "sealing")]
mod keys;
mod model;
mod run;
mod show;
mod typed;
mod upkeep;

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::sealing::KeyPlace;

pub use agents::{Draft, Propose, Schema};
pub use amend::{AddTask, Amend, BACKLOG, Changes, Facts, Limit, Set, Task, Unset};
pub use commands::{Answer, Ask, Cancel, Done, Fail, Pause, Retry, Withdraw};
pub use fork::{At, Checkpoint, Checkpoints, Compare, Fork};
#[cfg(feature = "sealing")]
pub use keys::{DestroyKey, KeyFile, Keys, RotateKeys};
pub use run::{OnFailure, Resume, Run, RunArgs, Work};
pub use show::{
    Check, Conflicts, Diff, EventFilter, Events, ExportPlan, Ls, Plan, PlanAt, Replay, Show, Stats, SyncPlan,
};
pub use typed::duration;
pub use upkeep::{Backup, Db, Export, Groups, Import, ParkedOf};

/// Plan, run and replay work on one durable event log.
#[derive(Debug, Parser)]
#[command(name = "crewlog", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// Everywhere.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 error, 2 usage, 3 the plan does not parse, 4 nothing matched, 5 waiting for a person, \
6 paused, 7 paused because of its budget, 8 time-out, 9 conflict, 10 decided again the log would be another, \
100 a task failed or was cancelled, 101 a bug, 130 interrupted";

/// What was typed, beside what the surroundings say. A variable that is empty says nothing.
pub fn typed_here() -> Result<Cli, clap::Error> {
    let command = Cli::command();
    let empty = command.get_arguments().filter_map(|arg| {
        let value = std::env::var_os(arg.get_env()?)?;
        value.is_empty().then(|| arg.get_id().clone())
    });
    let empty = empty.collect::<Vec<_>>();
    let command = Cli::command().mut_args(|arg| match empty.contains(arg.get_id()) {
        true => arg.env(None::<&str>),
        false => arg,
    });
    Cli::from_arg_matches(&command.try_get_matches()?)
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// The log: a path, or a sqlite: or postgres: URL [default: .crewlog/log.db of the repository]
    #[arg(long, global = true, env = "CREWLOG_STORE", value_name = "PATH|URL")]
    pub store: Option<String>,
    /// The configuration [default: the nearest crewlog.toml, upward to the root of the worktree]
    #[arg(long, global = true, env = "CREWLOG_CONFIG", value_name = "PATH")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub keys: KeyPlace,
    /// The form of what is printed on standard output
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Whether to colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Print no progress
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Ask nothing, even on a terminal
    #[arg(long, global = true)]
    pub no_input: bool,
    /// Run the plan's commands without asking
    #[arg(short, long, global = true)]
    pub yes: bool,
}

/// A form of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// One JSON document a line
    Jsonl,
}

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the log of this repository (other commands do so by themselves when they need one)
    Init,
    /// Make a plan of a text and carry it out
    Run(Run),
    /// Go on with a plan that was interrupted, paused or waiting, or let a paused task start
    Resume(Resume),
    /// Take the tasks of all plans in the log, together with other workers, until stopped
    Work(Work),
    /// Work with plans without running them
    #[command(subcommand)]
    Plan(Plan),
    /// List the plans
    Ls(Ls),
    /// Show a plan
    Show(Show),
    /// Print events
    Events(Box<Events>),
    /// List the agents that are configured
    Executors,
    /// Step through a plan's events: why each came and what it changed; nothing is executed
    Replay(Replay),
    /// Show how a plan differs from itself at another position, or from another plan
    Diff(Diff),
    /// Make a plan that goes on from a point of another plan's history
    Fork(Box<Fork>),
    /// Show where two plans with a common history part, and the outcome of each
    Compare(Compare),
    /// Give this point of a plan's history a name
    Checkpoint(Checkpoint),
    /// List the points of a plan's history that have names
    Checkpoints(Checkpoints),
    /// Show the figures of each project
    Stats(Stats),
    /// List tasks that are held at the same time and touch the same files
    Conflicts(Conflicts),
    /// Answer a question
    Answer(Answer),
    /// Ask something of a task, which then waits for the answer
    Ask(Ask),
    /// Ask a question no longer
    Withdraw(Withdraw),
    /// Say that you have done a task
    Done(Done),
    /// Say that a task cannot be done
    Fail(Fail),
    /// End a plan or one of its tasks
    Cancel(Cancel),
    /// Start no more tasks of a plan, or not one of them, until it is resumed
    Pause(Pause),
    /// Change the tasks of a plan under way: add, edit, skip, put in another order
    Amend(Box<Amend>),
    /// Change the settings of a plan under way
    Set(Set),
    /// Work with single tasks, which are no plan of their own
    #[command(subcommand)]
    Task(Task),
    /// Open failed tasks again
    Retry(Retry),
    /// Write the log, or one plan, as JSON lines
    Export(Export),
    /// Take in the export of a whole log
    Import(Import),
    /// Look after groups: durable subscriptions of programs on this log
    #[command(subcommand)]
    Groups(Groups),
    /// Look after the database of the log
    #[command(subcommand)]
    Db(Db),
    /// Look after the keys by which the texts of plans are sealed
    #[cfg(feature = "sealing")]
    #[command(subcommand)]
    Keys(Keys),
    /// Internal: stand between a worker and a command
    #[command(name = "supervise", hide = true)]
    Supervise,
}
