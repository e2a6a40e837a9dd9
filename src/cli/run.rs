//! Arguments of commands that run plans: `run`, `resume`, `work`, `fork`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::show::Reading;
use super::typed::{Address, ForkAt, address, duration, fork_at, jobs};
use crate::cli::settings::{Change, KEYS, change, help};

/// How a process runs tasks.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The most tasks that this process runs at once [default: what the plan allows; for `work` 4]
    #[arg(short, long, value_name = "N", value_parser = jobs())]
    pub jobs: Option<usize>,
    /// Stop after this long and exit with 8; the plan can be resumed (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Stop a task after this long, unless it or its executor sets a timeout
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1h")]
    pub task_timeout: Duration,
    /// Let the configured model plan; when it fails, the text is parsed
    #[arg(long, conflicts_with = "no_model")]
    model: bool,
    /// Ask no model, whatever is configured
    #[arg(long)]
    no_model: bool,
}

impl RunArgs {
    /// True if a model plans; the configuration decides when unset.
    pub fn by_model(&self) -> Option<bool> {
        (self.model || self.no_model).then_some(self.model)
    }
}

const SET: &str = "\
A setting of the plan, such as budget.tokens=9000; may be repeated

It wins over the line `crewlog: KEY=VALUE ...` in the front matter of the file, which wins over the table [plan] of
crewlog.toml.";

#[derive(Debug, Args)]
pub struct Run {
    /// The plan file; - for standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub reading: Reading,
    #[command(flatten)]
    pub run_args: RunArgs,
    /// A setting of the plan, such as budget.tokens=9000; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = change, long_help = help(SET, KEYS))]
    pub set: Vec<Change>,
    /// Write the states of tasks into the file, and apply changes of the file
    #[arg(long)]
    pub sync: bool,
    /// Only make the plan, and leave it to `crewlog work`
    #[arg(long, conflicts_with_all = ["timeout", "task_timeout", "sync"])]
    pub detach: bool,
}

#[derive(Debug, Args)]
pub struct Resume {
    /// The plan, or a paused task to let start [default: the only plan that can be resumed]
    #[arg(value_name = "PLAN[/TASK]", value_parser = address)]
    pub target: Option<Address>,
    /// Write the states of tasks into the plan's file, and apply changes of the file
    #[arg(long)]
    pub sync: bool,
    /// Only resume the plan, and leave its tasks to `crewlog work`
    #[arg(long, conflicts_with_all = ["timeout", "task_timeout", "sync"])]
    pub detach: bool,
    #[command(flatten)]
    pub run_args: RunArgs,
}

#[derive(Debug, Args)]
pub struct Work {
    /// Run only these executors: shell, or names from crewlog.toml [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// End when no executor of this process has anything left to do
    #[arg(long)]
    pub until_idle: bool,
    #[command(flatten)]
    pub run_args: RunArgs,
}

#[derive(Debug, Args)]
pub struct Fork {
    /// The plan to continue
    pub plan: String,
    /// Where it continues: POSITION, CHECKPOINT, failure or before:TASK [default: its present state]
    ///
    /// A position of the log, or the name of a checkpoint of the plan; `failure`, right before the first failure of a task; or
    /// `before:TASK`, from where this task was first about to start.
    #[arg(long, value_name = "POINT", value_parser = fork_at)]
    pub at: Option<ForkAt>,
    /// Why
    #[arg(long, default_value = "forked by a person")]
    pub reason: String,
}
