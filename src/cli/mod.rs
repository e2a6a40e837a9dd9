//! The command line: commands, arguments and options. The doc comments are the help texts.

pub mod sealing;
pub mod settings;

mod change;
mod crew;
mod help;
mod hosts;
mod log;
mod run;
mod show;
mod typed;

use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::cli::sealing::KeyPlace;
use typed::{address_to_listen_on, plan_at};

pub use clap::ColorChoice as Color;

pub use change::{AddTask, Answer, Ask, BACKLOG, Cancel, Pause, Retry, Task};
pub use crew::{AsOf, Crew, Inbox, Leases, Send};
pub use hosts::{Doctor, Host, Init, Scope, Tokens};
#[cfg(feature = "sealing")]
pub use log::Keys;
pub use log::{Db, Groups, ParkedOf};
pub use run::{Fork, Resume, Run, RunArgs, Work};
pub use show::{Check, EventFilter, Events, Plan, Propose, Replay, Show};
pub use typed::{Address, At, ForkAt, InPlan, PlanAt, duration};

/// Plan, run and replay work on one durable event log.
#[derive(Debug, Parser)]
#[command(
    name = "crewlog",
    version,
    disable_help_subcommand = true,
    disable_help_flag = true,
    disable_version_flag = true
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// The command line, as it is parsed and completed. An empty environment variable counts as unset.
pub fn command() -> clap::Command {
    help::with_help(Cli::command()).mut_args(|arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        let arg = arg.hide_env_values(true);
        if value.is_some_and(|value| value.is_empty()) { arg.env(None::<&str>) } else { arg }
    })
}

pub fn typed_here() -> Result<Cli, clap::Error> {
    let mut words = std::env::args_os().collect::<Vec<_>>();
    // `crewlog help run`
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    Cli::from_arg_matches(&command().try_get_matches_from(words)?)
}

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
    #[command(flatten)]
    pub keys: KeyPlace,
    /// The format of standard output
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORMAT", hide_default_value = true)]
    pub output: Output,
    /// When to colour the output; auto does on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, hide_short_help = true)]
    pub color: Color,
    /// Print no progress
    #[arg(short, long, global = true, hide_short_help = true)]
    pub quiet: bool,
    /// Ask nothing, even on a terminal
    #[arg(long, global = true, hide_short_help = true)]
    pub no_input: bool,
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
pub enum GitHook {
    /// Refuse a commit of files that others hold leases on
    PreCommit,
    /// Warn of merge risks of a push
    PrePush,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a plan from a file and run it
    Run(Run),
    /// Run the tasks of all plans, together with other workers
    ///
    /// It runs until it is stopped, or with --until-idle until nothing is left to do.
    Work(Work),
    /// List the plans
    Ls(AsOf),
    /// Show a plan or one of its tasks
    Show(Show),
    /// Resume a plan, or let a paused task start
    ///
    /// It runs what an interrupted, paused or waiting plan has left. Of a task it starts nothing itself.
    Resume(Resume),
    /// Pause a plan or a task
    ///
    /// No more tasks start; running tasks continue until they end.
    Pause(Pause),
    /// Cancel a plan or a task
    Cancel(Cancel),
    /// Open failed tasks again
    Retry(Retry),
    /// Check, change and sync plans
    #[command(subcommand)]
    Plan(Plan),
    /// Add, change and report tasks
    #[command(subcommand)]
    Task(Task),
    /// Connect the agent programs of this repository to a log
    Init(Init),
    /// Check that agent programs are connected, and that edits can be refused
    Doctor(Doctor),
    #[command(flatten)]
    Crew(Crew),
    /// Answer a question
    Answer(Answer),
    /// Watch the crew on the terminal
    ///
    /// Questions that wait for you can be answered there.
    Top(AsOf),
    /// Serve the dashboard, the HTTP API and MCP
    #[command(args_conflicts_with_subcommands = true)]
    Serve {
        /// Address to listen on
        #[arg(long, default_value = "127.0.0.1:7777", value_name = "ADDR", value_parser = address_to_listen_on)]
        listen: std::net::SocketAddr,
        #[command(subcommand)]
        command: Option<Serve>,
    },
    /// Print events
    Events(Box<Events>),
    /// Step through the history of a plan
    ///
    /// Each step says why an event came and what it changed. Nothing is executed.
    Replay(Replay),
    /// Compare two plans, or two points of one
    Diff {
        /// The plan before: PLAN, or PLAN@POSITION, or PLAN@CHECKPOINT
        #[arg(value_name = "BEFORE", value_parser = plan_at)]
        before: PlanAt,
        /// The plan after, in the same form
        #[arg(value_name = "AFTER", value_parser = plan_at)]
        after: PlanAt,
        /// Show where two plans with a common history diverge, and the outcome of each
        #[arg(long)]
        outcomes: bool,
    },
    /// Make a plan that continues from a point of another
    ///
    /// The fork begins paused, and shares the history of the plan up to the point. Change it like any plan, with `plan set` and
    /// `task`, then `resume` it.
    Fork(Fork),
    /// Show statistics by project
    Stats {
        /// Only this project; zeros when it has no plans
        project: Option<String>,
        #[command(flatten)]
        at: AsOf,
    },
    /// Write the log, or one plan, as JSON lines
    Export {
        /// Only this plan and its tasks; the whole log if left out
        plan: Option<String>,
        /// Write to this file, which must not exist [default: standard output]
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Import an export
    ///
    /// It must be the export of a whole log, and the log that takes it must be empty.
    Import {
        /// The export; - for standard input
        file: PathBuf,
    },
    /// Check, copy and migrate the database of the log
    #[command(subcommand)]
    Db(Db),
    /// Manage the keys of encrypted plans
    #[cfg(feature = "sealing")]
    #[command(subcommand)]
    Keys(Keys),
    /// Serve a recorded day of a crew
    ///
    /// It has a temporary log of its own: no agents, keys or network are needed.
    Demo {
        /// Address to listen on [default: a free port]
        #[arg(long, default_value = "127.0.0.1:0", hide_default_value = true, value_name = "ADDR", value_parser = address_to_listen_on)]
        listen: std::net::SocketAddr,
        /// Do not open the browser
        #[arg(long)]
        no_open: bool,
    },
    /// Serve one agent by MCP on standard input and output; agent programs start it
    #[command(hide = true)]
    Mcp,
    /// Answer the hook of an agent program, whose JSON comes on standard input, or a hook of git
    #[command(hide = true)]
    Hook {
        /// The hook of git
        #[arg(value_enum)]
        git: Option<GitHook>,
        /// Arguments from git: the remote and its URL
        #[arg(hide = true)]
        more: Vec<String>,
    },
    /// Internal: runs between a worker and a command
    #[command(hide = true)]
    Supervise,
    /// Manage groups: durable subscriptions of programs on this log
    #[command(subcommand, hide = true)]
    Groups(Groups),
    /// Print the script that lets a shell complete commands, plans, tasks and questions
    ///
    /// bash: add `source <(crewlog completions bash)` to ~/.bashrc. zsh: the same in ~/.zshrc. fish: `crewlog completions fish >
    /// ~/.config/fish/completions/crewlog.fish`.
    #[command(hide = true)]
    Completions {
        /// The shell
        #[arg(value_parser = SHELLS)]
        shell: String,
    },
}

/// The shells that complete.
pub const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

#[derive(Debug, Subcommand)]
pub enum Serve {
    /// List the tokens of programs that use the API, or change them
    #[command(args_conflicts_with_subcommands = true)]
    Tokens {
        #[command(subcommand)]
        command: Option<Tokens>,
    },
}
