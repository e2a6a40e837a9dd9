//! The command line: one file per command, whose doc comments are help and reference.

pub mod agents;
pub mod agree;
pub mod answer;
pub mod blame;
pub mod brief;
pub mod cancel;
pub mod completions;
pub mod db;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod events;
pub mod export;
pub mod fork;
pub mod groups;
pub mod hook;
pub mod import;
pub mod inbox;
pub mod init;
#[cfg(feature = "sealing")]
pub mod keys;
pub mod lease;
pub mod leases;
pub mod logs;
pub mod ls;
pub mod pause;
pub mod plan;
pub mod replay;
pub mod resume;
pub mod retry;
pub mod run;
pub mod send;
pub mod serve;
pub mod show;
pub mod stats;
pub mod status;
pub mod task;
pub mod why;
pub mod work;

use std::ffi::OsString;
use std::fmt::Write;

use clap::builder::{StyledStr, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::Global;
use crate::cli::typed::AtPosition;

#[cfg(feature = "sealing")]
pub use self::keys::Keys;
pub use self::{
    agents::Agents, agree::Agree, answer::Answer, blame::Blame, brief::Brief, cancel::Cancel, completions::Completions,
    db::Db, demo::Demo, diff::Diff, doctor::Doctor, events::Events, export::Export, fork::Fork, groups::Groups,
    hook::Hook, import::Import, inbox::Inbox, init::Init, lease::Lease, leases::Leases, logs::Logs, ls::Ls,
    pause::Pause, plan::Plan, replay::Replay, resume::Resume, retry::Retry, run::Run, send::Send, serve::Serve,
    show::Show, stats::Stats, status::Status, task::Task, why::Why, work::Work,
};

/// Commands that users of git, gh and kubectl type, and those that they mean. No help lists them.
const ELSEWHERE: [(&str, &str); 13] = [
    ("task ls", "show"),
    ("task list", "show"),
    ("plan ls", "ls"),
    ("plan list", "ls"),
    ("plan show", "show"),
    ("list", "ls"),
    ("log", "events"),
    ("messages", "inbox"),
    ("tokens", "serve tokens"),
    ("conflicts", "leases --conflicts"),
    ("checkpoint", "plan checkpoint"),
    ("version", "--version"),
    ("completion", "completions"),
];

/// The commands that `crewlog -h` lists; the others are hidden.
const HEADINGS: [(&str, &[&str]); 3] = [
    ("Plans", &["run", "work", "ls", "show", "logs", "resume", "pause", "cancel", "retry", "plan", "task"]),
    (
        "Crew",
        &["init", "doctor", "inbox", "agree", "answer", "send", "agents", "lease", "leases", "why", "top", "serve"],
    ),
    ("Log", &["events", "replay", "diff", "fork", "stats", "export", "keys"]),
];
const GLOBAL: &str = "Global options";
const WIDTH: usize = 8;
/// One line for the commands that people type once and those that programs start, so that the help stays short.
const ALSO: &str = "mcp serves one agent by MCP, completions prints a script, demo serves a day, db copies the log";
const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 error, 2 usage, 3 the plan does not parse, 4 nothing matched, 5 waiting for a person, \
6 paused, 7 paused because of its budget, 8 time-out, 9 conflict, 10 replay produced different events, \
11 only a person may do it, 100 a task failed or was cancelled, 101 a bug, 130 interrupted";

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

/// The command line with its help, as it is parsed and completed: the commands under their headings, and the options of
/// all commands last. An empty environment variable counts as unset.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let styles = Styles::styled();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let mut listed = StyledStr::new();
    for (heading, names) in HEADINGS {
        let _ = writeln!(listed, "{header}{heading}:{header:#}");
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let (name, about) = (command.get_name(), command.get_about().cloned().unwrap_or_default());
            let _ = writeln!(listed, "  {literal}{name:<WIDTH$}{literal:#}{about}");
        }
    }
    let _ = writeln!(listed, "{header}Also:{header:#} {ALSO}\n{header}{GLOBAL}:{header:#}");
    let template = format!("{{usage-heading}} {{usage}}\n{}{{options}}{{after-help}}", listed.ansi());
    command.after_long_help(EXIT_CODES).help_template(template).mut_args(|arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        let arg = if arg.is_global_set() { arg.help_heading(GLOBAL) } else { arg };
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
    let matches = command().try_get_matches_from(&words).or_else(|error| {
        let is_alone =
            matches!(error.kind(), ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        if is_alone && typed_name().is_none() {
            let status = ["status", "--since-last"].map(OsString::from);
            return command().try_get_matches_from(words.iter().chain(&status));
        }
        let Some(words) = meant(&words, &error) else { return Err(error) };
        let is_unknown = |meant: &clap::Error| meant.kind() == ErrorKind::InvalidSubcommand;
        command().try_get_matches_from(words).map_err(|meant| if is_unknown(&meant) { error } else { meant })
    });
    Cli::from_arg_matches(&matches?)
}

/// The command line with the command that a user of another program means, if clap does not know the typed one.
fn meant(words: &[OsString], error: &clap::Error) -> Option<Vec<OsString>> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let at = words.iter().position(|word| **word == **unknown)?;
    let split = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
    let mut known = ELSEWHERE.iter().map(|(typed, meant)| (split(typed), split(meant)));
    let (typed, meant) = known.find(|(typed, _)| words[..=at].ends_with(typed))?;
    Some([&words[..at + 1 - typed.len()], &meant, &words[at + 1..]].concat())
}

/// The name of the command in a command line that may be wrong: the first word that is no option, and no value of one.
pub fn typed_name() -> Option<String> {
    let (command, mut words) = (command(), std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()));
    loop {
        let word = words.next()?;
        let Some(option) = word.strip_prefix('-') else { return Some(word) };
        let is_long = |arg: &clap::Arg| arg.get_long().is_some_and(|long| option.strip_prefix('-') == Some(long));
        let is_short =
            |arg: &clap::Arg| !option.starts_with('-') && arg.get_short().is_some_and(|it| option.ends_with(it));
        if command.get_arguments().any(|arg| arg.get_action().takes_values() && (is_long(arg) || is_short(arg))) {
            words.next();
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a plan from a file and run it
    Run(Box<Run>),
    /// Run the tasks of all plans, together with other workers
    ///
    /// It runs until it is stopped, or with --until-idle until nothing is left to do.
    Work(Work),
    /// List the plans
    Ls(Ls),
    /// Show a plan or one of its tasks
    Show(Show),
    /// Print the output of a task's run, while it runs and after
    Logs(Logs),
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
    /// Reopen failed tasks
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
    /// List the agents
    Agents(Agents),
    /// Run a command under leases on files and things
    ///
    /// The leases last as long as the command. Its exit code is that of the command; 9 if others hold the leases.
    Lease(Lease),
    /// List the leases on files, and conflicts
    Leases(Leases),
    /// Send a message to agents
    Send(Send),
    /// List what waits for you
    Inbox(Inbox),
    /// Explain an agent, a plan, a task or a file; blame names the author of each line
    Why(Why),
    /// Print the brief for a successor of an agent
    #[command(hide = true)]
    Brief(Brief),
    /// Show which agent wrote each line of a file
    Blame(Blame),
    /// Let tasks run that wait for your agreement
    Agree(Agree),
    /// Answer a question
    Answer(Answer),
    /// Watch the crew on the terminal
    ///
    /// Questions that wait for you can be answered there.
    Top(AtPosition),
    /// Serve the dashboard, the HTTP API and MCP
    Serve(Serve),
    /// Print events
    Events(Box<Events>),
    /// Step through the history of a plan
    ///
    /// Each step says why an event came and what it changed. Nothing is executed.
    Replay(Replay),
    /// Compare two plans, or two points of one
    Diff(Diff),
    /// Make a plan that continues from a point of another
    ///
    /// The fork begins paused, and shares the history of the plan up to the point. Change it like any plan, with `plan set` and
    /// `task`, then `resume` it.
    Fork(Fork),
    /// Show statistics by project
    Stats(Stats),
    /// Write the log, or one plan, as JSON lines; import reads them
    Export(Export),
    /// Import an export
    ///
    /// It must be the export of a whole log, and the target log must be empty.
    Import(Import),
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
    Demo(Demo),
    /// Serve one agent by MCP on standard input and output; agent programs start it
    Mcp,
    /// Answer the hook of an agent program, whose JSON comes on standard input, or a hook of git
    #[command(hide = true)]
    Hook(Hook),
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
    Completions(Completions),
    /// Show what waits for you, and the plans
    #[command(hide = true)]
    Status(Status),
}
