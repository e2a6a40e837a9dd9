//! The command line: commands, arguments and options. The doc comments are the help texts.

mod change;
mod crew;
mod hosts;
mod log;
mod run;
mod show;
mod typed;

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use crewlog_mq::Position;

use crate::sealing::KeyPlace;
use typed::{plan_at, position};

pub use change::{AddTask, Amend, Answer, Ask, BACKLOG, Cancel, Changes, Edits, Pause, Retry, Set, Task, Unset};
pub use crew::{AsOf, Crew, Inbox, Leases, Send};
pub use hosts::{Doctor, Host, Init, Scope, Tokens};
#[cfg(feature = "sealing")]
pub use log::Keys;
pub use log::{Db, Groups, ParkedOf};
pub use run::{Fork, Resume, Run, RunArgs, Work};
pub use show::{Check, EventFilter, Events, Plan, Propose, Replay, Show};
pub use typed::{At, PlanAt, duration};

/// Plan, run and replay work on one durable event log.
#[derive(Debug, Parser)]
#[command(name = "crewlog", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 error, 2 usage, 3 the plan does not parse, 4 nothing matched, 5 waiting for a person, \
6 paused, 7 paused because of its budget, 8 time-out, 9 conflict, 10 replay produced different events, \
100 a task failed or was cancelled, 101 a bug, 130 interrupted";

/// Reads the command line. An empty environment variable counts as unset.
pub fn typed_here() -> Result<Cli, clap::Error> {
    let command = Cli::command().mut_args(|arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        if value.is_some_and(|value| value.is_empty()) { arg.env(None::<&str>) } else { arg }
    });
    Cli::from_arg_matches(&command.try_get_matches()?)
}

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
    /// The format of standard output
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
    /// Agree without being asked: to run a plan's commands, to write the user's own configuration
    #[arg(short, long, global = true)]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// One JSON document a line
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GitHook {
    /// Refuse a commit of files that others hold leases on
    PreCommit,
    /// Warn of merge risks of a push
    PrePush,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the log of this repository, and connect the agent programs found here to it
    Init(Init),
    /// Check that agent programs are connected to the log and that their edits can be refused
    Doctor(Doctor),
    /// Make a plan from a text and run it
    Run(Run),
    /// Resume a plan that was interrupted, paused or waiting, or let a paused task start
    Resume(Resume),
    /// Run the tasks of all plans in the log, together with other workers, until stopped
    Work(Work),
    /// Work with plans without running them
    #[command(subcommand)]
    Plan(Plan),
    /// List the plans
    Ls {
        /// As of this position of the log
        #[arg(long, value_name = "POSITION", value_parser = position())]
        at: Option<Position>,
    },
    /// Show a plan
    Show(Show),
    /// Print events
    Events(Box<Events>),
    /// List the configured agents
    Executors,
    /// Step through a plan's events: why each came and what it changed; nothing is executed
    Replay(Replay),
    /// Show how a plan differs from itself at another position, or from another plan
    Diff {
        /// The plan before: its id, or a prefix of it, and a position of the log or a checkpoint (now if left out)
        #[arg(value_name = "PLAN@POSITION", value_parser = plan_at)]
        before: PlanAt,
        /// The plan after
        #[arg(value_name = "PLAN@POSITION", value_parser = plan_at)]
        after: PlanAt,
    },
    /// Make a plan that continues from a point of another plan's history
    Fork(Box<Fork>),
    /// Show where two plans with a common history diverge, and the outcome of each
    Compare {
        /// A plan: its id, or a prefix of it
        #[arg(value_name = "PLAN")]
        one: String,
        /// A fork of it, the plan that it was forked from, or another fork
        #[arg(value_name = "PLAN")]
        other: String,
    },
    /// Name the current position of a plan
    Checkpoint {
        /// The plan's id, or a prefix of it
        plan: String,
        /// The name: letters, digits, dashes, dots and underscores
        name: String,
    },
    /// List the checkpoints of a plan
    Checkpoints {
        /// The plan's id, or a prefix of it
        plan: String,
    },
    /// Show the statistics of each project
    Stats {
        /// Only this project; zeros when it has no plans
        project: Option<String>,
        /// As of this position of the log
        #[arg(long, value_name = "POSITION", value_parser = position())]
        at: Option<Position>,
    },
    /// List tasks that are held at the same time and touch the same files
    Conflicts {
        /// The plan's id, or a prefix of it; all plans if left out
        plan: Option<String>,
        /// Include resolved conflicts
        #[arg(long)]
        all: bool,
        /// As of this position of the log
        #[arg(long, value_name = "POSITION", value_parser = position())]
        at: Option<Position>,
    },
    #[command(flatten)]
    Crew(Crew),
    /// Watch the crew live on the terminal, and answer what waits for you
    Top(AsOf),
    /// Serve one agent by MCP on standard input and output; agent programs start it
    Mcp,
    /// Serve the page of the crew for you, an API for programs, and agents by MCP over HTTP
    Serve {
        /// Address to listen on
        #[arg(long, default_value = "127.0.0.1:7777", value_name = "ADDR")]
        listen: std::net::SocketAddr,
    },
    /// List the tokens of programs that use the API of `crewlog serve`
    #[command(subcommand_required = false, args_conflicts_with_subcommands = true)]
    Tokens {
        #[command(subcommand)]
        command: Option<Tokens>,
    },
    /// Serve a recorded day of a crew, from a temporary log: no agents, keys or network are needed
    Demo {
        /// Address to listen on [default: a free port]
        #[arg(long, default_value = "127.0.0.1:0", hide_default_value = true, value_name = "ADDR")]
        listen: std::net::SocketAddr,
        /// Do not open the browser
        #[arg(long)]
        no_open: bool,
    },
    /// Answer a question of a plan or of an agent
    Answer(Answer),
    /// Ask a question about a task, which then waits for the answer
    Ask(Ask),
    /// Withdraw a question
    Withdraw {
        /// The plan's id, or a prefix of it
        plan: String,
        /// The question (q1), or the task that asks
        question: String,
        /// Why
        #[arg(long, default_value = "withdrawn by a person")]
        reason: String,
    },
    /// Report that you have done a task
    Done {
        /// The plan's id, or a prefix of it
        plan: String,
        /// The task, by number or label
        task: String,
        /// Its result
        #[arg(default_value = "done")]
        result: String,
    },
    /// Report that a task cannot be done
    Fail {
        /// The plan's id, or a prefix of it
        plan: String,
        /// The task, by number or label
        task: String,
        /// Why
        error: String,
    },
    /// Cancel a plan or one of its tasks
    Cancel(Cancel),
    /// Start no more tasks of a plan, or not one of them, until it is resumed
    Pause(Pause),
    /// Change the tasks of a running plan: add, edit, skip, reorder
    Amend(Box<Amend>),
    /// Change the settings of a running plan
    Set(Set),
    /// Work with single tasks
    #[command(subcommand)]
    Task(Task),
    /// Open failed tasks again
    Retry(Retry),
    /// Write the log, or one plan, as JSON lines
    Export {
        /// Only this plan and its tasks; the whole log if left out
        plan: Option<String>,
        /// Write to this file, which must not exist [default: standard output]
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Import the export of a whole log
    Import {
        /// The export; - for standard input
        file: PathBuf,
    },
    /// Manage groups: durable subscriptions of programs on this log
    #[command(subcommand)]
    Groups(Groups),
    /// Manage the database of the log
    #[command(subcommand)]
    Db(Db),
    /// Manage the keys that seal the texts of plans
    #[cfg(feature = "sealing")]
    #[command(subcommand)]
    Keys(Keys),
    /// Answer the hook of an agent program, whose JSON comes on standard input, or a hook of git
    Hook {
        /// The hook of git
        #[arg(value_enum)]
        git: Option<GitHook>,
        /// What git adds: the remote and its URL
        #[arg(hide = true)]
        more: Vec<String>,
    },
    /// Internal: runs between a worker and a command
    #[command(name = "supervise", hide = true)]
    Supervise,
}
