//! The command line: one file per command, whose doc comments are help and reference.

mod agents;
pub mod answer;
pub mod cancel;
pub mod completions;
mod db;
mod demo;
pub mod diff;
pub mod doctor;
pub mod events;
mod export;
pub mod fork;
mod groups;
pub mod hook;
pub mod import;
mod inbox;
pub mod init;
#[cfg(feature = "sealing")]
mod keys;
pub mod leases;
mod ls;
pub mod pause;
pub mod plan;
mod replay;
pub mod resume;
pub mod retry;
pub mod run;
pub mod send;
pub mod serve;
pub mod show;
mod stats;
mod status;
pub mod task;
mod top;
pub mod why;
mod work;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::{Global, help};
use crate::context::Session;
use crate::plan_file;
use crate::ui::failure::{Code, Failure};

#[cfg(feature = "sealing")]
pub use self::keys::Keys;
pub use self::{
    agents::Agents, answer::Answer, cancel::Cancel, completions::Completions, db::Db, demo::Demo, diff::Diff,
    doctor::Doctor, events::Events, export::Export, fork::Fork, groups::Groups, hook::Hook, import::Import,
    inbox::Inbox, init::Init, leases::Leases, ls::Ls, pause::Pause, plan::Plan, replay::Replay, resume::Resume,
    retry::Retry, run::Run, send::Send, serve::Serve, show::Show, stats::Stats, status::Status, task::Task, top::Top,
    why::Why, work::Work,
};

/// Commands that users of git, gh and kubectl type, and those that they mean. No help lists them.
const ELSEWHERE: [(&str, &str); 14] = [
    ("task ls", "show"),
    ("task list", "show"),
    ("plan ls", "ls"),
    ("plan list", "ls"),
    ("plan show", "show"),
    ("list", "ls"),
    ("log", "events"),
    ("logs", "show"),
    ("messages", "inbox"),
    ("tokens", "serve tokens"),
    ("conflicts", "leases --conflicts"),
    ("checkpoint", "plan checkpoint"),
    ("version", "--version"),
    ("completion", "completions"),
];

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
    let ends_at = |typed: &str| {
        let typed = typed.split(' ').collect::<Vec<_>>();
        let start = (at + 1).checked_sub(typed.len())?;
        words[start..=at].iter().zip(&typed).all(|(word, typed)| *word == **typed).then_some(start)
    };
    let (start, meant) = ELSEWHERE.iter().find_map(|(typed, meant)| Some((ends_at(typed)?, meant)))?;
    let meant = meant.split(' ').map(OsString::from);
    Some([&words[..start], &meant.collect::<Vec<_>>(), &words[at + 1..]].concat())
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
    /// List the leases on files, and conflicts
    Leases(Leases),
    /// Send a message to agents
    Send(Send),
    /// List what waits for you
    Inbox(Inbox),
    /// Explain an agent, a plan, a task or a file
    Why(Why),
    /// Answer a question
    Answer(Answer),
    /// Watch the crew on the terminal
    ///
    /// Questions that wait for you can be answered there.
    Top(Top),
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
    /// Write the log, or one plan, as JSON lines
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

/// Runs a command that ends by itself; the servers, `top`, `hook` and the like are started by `main`.
pub async fn execute(session: &Session, command: Command) -> Result<Code, Failure> {
    match command {
        Command::Work(work) => work::work(session, work).await,
        Command::Plan(Plan::Check(check)) => plan::check(session, check).await,
        Command::Plan(Plan::Sync(sync)) => plan_file::sync::sync(session, &sync.plan).await,
        Command::Plan(Plan::Propose(propose)) => plan::propose(session, propose).await,
        Command::Plan(Plan::Draft(draft)) => plan::draft(session, draft).await,
        Command::Plan(Plan::Schema(schema)) => plan::print_schema(session, &schema),
        Command::Ls(ls) => ls::ls(session, ls).await,
        Command::Status(at) => status::status(session, at).await,
        Command::Events(events) => events::events(session, *events).await,
        Command::Replay(replay) => replay::replay(session, &replay).await,
        Command::Export(export) => export::export(session, export).await,
        Command::Import(import) => import::import(session, &import.file).await,
        Command::Groups(groups) => groups::groups(session, groups).await,
        Command::Db(Db::Check) => db::check(session).await,
        Command::Db(Db::Migrate) => db::migrate(session).await,
        Command::Db(Db::Backup(backup)) => db::backup(session, &backup.file).await,
        Command::Db(Db::Info) => db::info(session).await,
        #[cfg(feature = "sealing")]
        Command::Keys(keys) => keys::keys(session, keys).await,
        Command::Stats(stats) => stats::stats(session, stats).await,
        Command::Completions(completions) => completions::script(session, &completions.shell),
        Command::Run(run) => run::run(session, *run).await,
        Command::Resume(resume) => resume::resume(session, resume).await,
        Command::Show(show) => show::show(session, &show).await,
        Command::Diff(Diff { before, after, outcomes: false }) => diff::diff(session, &before, &after).await,
        Command::Diff(Diff { before, after, outcomes: true }) => diff::outcomes(session, &before, &after).await,
        Command::Fork(fork) => fork::fork(session, fork).await,
        Command::Agents(agents) => agents::agents(session, agents).await,
        Command::Leases(leases) => leases::leases(session, leases).await,
        Command::Send(send) => send::send(session, send).await,
        Command::Inbox(inbox) => inbox::inbox(session, inbox).await,
        Command::Why(why) => why::why(session, &why.what, why.at.at).await,
        Command::Answer(answer) => answer::answer(session, answer).await,
        Command::Cancel(cancel) => cancel::cancel(session, cancel).await,
        Command::Pause(pause) => pause::pause(session, pause).await,
        Command::Retry(retry) => retry::retry(session, retry).await,
        Command::Plan(Plan::Set(set)) => plan::set(session, set).await,
        Command::Plan(Plan::Checkpoint(checkpoint)) => plan::checkpoint(session, checkpoint).await,
        Command::Task(task) => task::execute(session, task).await,
        Command::Init(_)
        | Command::Doctor(_)
        | Command::Mcp
        | Command::Top(_)
        | Command::Serve(_)
        | Command::Supervise
        | Command::Hook(_)
        | Command::Demo(_) => unreachable!("main starts it"),
    }
}
