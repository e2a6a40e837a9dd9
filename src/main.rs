//! The `crewlog` program: commands in, folds of the log out. It decides nothing itself.

mod amend;
mod archive;
mod by_model;
mod check;
mod cli;
mod commands;
mod complete;
mod config;
mod consent;
mod crew;
mod demo;
mod diff;
mod events;
mod failure;
mod fork;
mod groups;
mod hook;
mod http;
mod init;
mod json;
#[cfg(feature = "sealing")]
mod keys;
mod matching;
mod mcp;
mod page;
mod place;
mod progress;
mod queries;
mod replay;
mod run_session;
mod runtime;
mod sealing;
mod secrets;
mod session;
mod settings;
mod show;
mod start;
mod sync;
mod terminal;
mod text;
mod top;
mod views;
mod work;

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::cli::{Cli, Command, Db, Plan, Serve, Task};
use crate::failure::{Code, Failure};
use crate::init::doctor;
use crate::session::Session;

/// How long what still runs may take when the program ends.
const SHUTDOWN: std::time::Duration = std::time::Duration::from_millis(100);

fn main() -> ExitCode {
    if complete::has_completed() {
        return ExitCode::SUCCESS;
    }
    let cli = match cli::typed_here() {
        Ok(cli) => cli,
        Err(error) => {
            let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // Nobody is left to tell that nothing could be told.
            let _ = error.print();
            // With exit code 2 a hook would refuse every tool call.
            let is_hook = std::env::args_os().nth(1).is_some_and(|word| word == "hook");
            return if is_answer { ExitCode::SUCCESS } else { ExitCode::from(if is_hook { 1 } else { 2 }) };
        }
    };
    if let Command::Supervise = cli.command {
        return crewlog_executors::supervisor::supervise();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::say(&format!("error: the program cannot start: {error}"));
            return Code::User.into();
        }
    };
    // Before every tool call: nothing more is set up than an answer needs.
    if let Command::Hook { git, .. } = cli.command {
        let code = runtime.block_on(hook::run(&cli.global, git));
        runtime.shutdown_timeout(SHUTDOWN);
        return code;
    }
    let quiet = if cli.global.quiet { "error" } else { "warn,sqlx=error,rmcp=error" };
    let filter = tracing_subscriber::EnvFilter::try_from_env("CREWLOG_LOG").unwrap_or_else(|_| quiet.into());
    // Messages of a model provider may contain a key; crewlog reports its errors without them.
    let filter = filter.add_directive("genai=off".parse().expect("it names a crate and a level"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(terminal::Terminal::new(&cli.global).has_colour)
        .without_time()
        .with_target(false)
        .with_writer(|| terminal::Lines)
        // The subscriber would print its own errors on standard error too, and panic if that is closed.
        .log_internal_errors(false)
        .init();
    let ended = runtime.block_on(run(cli));
    // A question that nobody answered must not hold the program.
    runtime.shutdown_timeout(SHUTDOWN);
    match ended {
        Ok(code) => code.into(),
        Err(failure) => {
            if failure.code != Code::Done {
                terminal::say(&failure.to_string());
            }
            failure.code.into()
        }
    }
}

async fn run(cli: Cli) -> Result<Code, Failure> {
    // It has a log of its own.
    if let Command::Demo { listen, no_open } = cli.command {
        return demo::demo(&cli.global, listen, !no_open).await;
    }
    let session = Session::new(&cli.global)?;
    let ended = obey(&session, cli.command).await;
    session.place.close().await;
    ended
}

async fn obey(session: &Session, command: Command) -> Result<Code, Failure> {
    match command {
        Command::Init(args) => init::init(session, &args).await,
        // The log does not record yet when a hook runs.
        Command::Doctor(args) => doctor::doctor(session, &args).await,
        Command::Work(work) => work::work(session, work).await,
        Command::Plan(Plan::Check(args)) => check::check(session, args).await,
        Command::Plan(Plan::Sync { plan }) => sync::sync(session, &plan).await,
        Command::Plan(Plan::Propose(args)) => start::propose(session, args).await,
        Command::Plan(Plan::Draft { file, agent, model }) => start::draft(session, &file, agent, model).await,
        Command::Plan(Plan::Schema { agent }) => start::schema_of(session, agent),
        Command::Ls(at) => show::ls(session, at.at).await,
        Command::Events(events) => events::events(session, *events).await,
        Command::Replay(replay) => replay::replay(session, &replay).await,
        Command::Export { plan, to } => archive::export(session, plan.as_deref(), to.as_deref()).await,
        Command::Import { file } => archive::import(session, &file).await,
        Command::Groups(groups) => groups::groups(session, groups).await,
        Command::Db(Db::Check) => archive::check(session).await,
        Command::Db(Db::Migrate) => archive::migrate(session).await,
        Command::Db(Db::Backup { file }) => archive::backup(session, &file).await,
        Command::Db(Db::Info) => archive::info(session).await,
        #[cfg(feature = "sealing")]
        Command::Keys(keys) => keys::keys(session, keys).await,
        Command::Stats { project, at } => crew::verbs::stats(session, project, at.at).await,
        Command::Mcp => mcp::stdio_server(session).await,
        Command::Top(at) => top::top(session, at.at).await,
        Command::Serve { command: Some(Serve::Tokens { command }), .. } => http::access::tokens(session, command),
        Command::Serve { listen, command: None } => http::serve(session, listen).await,
        Command::Completions { shell } => complete::script(session, &shell),
        Command::Supervise | Command::Hook { .. } | Command::Demo { .. } => unreachable!("it was taken before"),
        command => carry_out(session, command).await,
    }
}

/// Carries out a command that may come from any face.
pub async fn carry_out(session: &Session, command: Command) -> Result<Code, Failure> {
    match command {
        Command::Run(run) => start::run(session, run).await,
        Command::Resume(resume) => start::resume(session, resume).await,
        Command::Show(show) => show::show(session, &show).await,
        Command::Diff { before, after, outcomes: false } => diff::diff(session, &before, &after).await,
        Command::Diff { before, after, outcomes: true } => diff::outcomes(session, &before, &after).await,
        Command::Fork(fork) => fork::fork(session, fork).await,
        Command::Crew(command) => crew::verbs::obey(session, command).await,
        Command::Answer(answer) => {
            session.person_only("answer questions")?;
            match answer.number() {
                Some(number) => crew::verbs::answer(session, number, answer).await,
                None => commands::answer(session, answer).await,
            }
        }
        Command::Cancel(cancel) => commands::cancel(session, cancel).await,
        Command::Pause(pause) => commands::pause(session, pause).await,
        Command::Retry(retry) => commands::retry(session, retry).await,
        Command::Plan(Plan::Set { plan, settings, reason }) => amend::set(session, &plan, settings, reason).await,
        Command::Plan(Plan::Checkpoint { plan, name: Some(name) }) => fork::checkpoint(session, &plan, name).await,
        Command::Plan(Plan::Checkpoint { plan, name: None }) => fork::checkpoints(session, &plan).await,
        Command::Task(Task::Add(add)) => amend::add(session, add).await,
        Command::Task(Task::Edit { task, changes, reason }) => amend::edit(session, task, changes, reason).await,
        Command::Task(Task::Skip { tasks, reason }) => amend::skip(session, &tasks, reason).await,
        Command::Task(Task::Move { task, after, reason }) => amend::reorder(session, &task, &after, reason).await,
        Command::Task(Task::Done { task, result }) => commands::done(session, &task, result).await,
        Command::Task(Task::Fail { task, error }) => commands::fail(session, &task, error).await,
        Command::Task(Task::Ask(ask)) => commands::ask(session, ask).await,
        Command::Task(Task::Withdraw { question, reason }) => commands::withdraw(session, &question, reason).await,
        _other => Err(Failure::user("this is a command of the command line alone")),
    }
}
