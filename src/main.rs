//! The `crewlog` program: commands in, folds of the log out. It decides nothing itself.

mod action;
mod cli;
mod commands;
mod consent;
mod context;
mod demo;
mod hook;
mod init;
mod plan_file;
mod run;
mod serve;
mod target;
mod top;
mod ui;
mod views;

use std::process::ExitCode;

use clap::error::ErrorKind;
use crewlog_executors::caller;
use crewlog_mq::{Clock, SystemClock};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::commands::{Cli, Command, Db, Demo, Diff, Plan, Serve, Task, completions, task};
use crate::context::Session;
use crate::init::doctor;
use crate::serve::{http, mcp, tokens};
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::{Lines, Terminal, say};
use crate::ui::text::date_time;

/// The time and the host before each message of a process that runs for long.
struct Stamp(bool);

impl FormatTime for Stamp {
    fn format_time(&self, to: &mut Writer<'_>) -> std::fmt::Result {
        if self.0 { write!(to, "{} {}", date_time(SystemClock::default().wall()), caller::host()) } else { Ok(()) }
    }
}

/// The stack of a thread: a server runs whole commands inside its own calls.
const STACK: usize = 4 << 20;
/// How long what still runs may take when the program ends.
const SHUTDOWN: std::time::Duration = std::time::Duration::from_millis(100);

fn main() -> ExitCode {
    if completions::has_completed(commands::command) {
        return ExitCode::SUCCESS;
    }
    let cli = match commands::typed_here() {
        Ok(cli) => cli,
        Err(error) => {
            let is_answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            // If standard error is closed too, there is nowhere to report it.
            let _ = error.print();
            // With exit code 2 a hook would refuse every tool call.
            let is_hook = || commands::typed_name().is_some_and(|name| name == "hook");
            return if is_answer { ExitCode::SUCCESS } else { ExitCode::from(if is_hook() { 1 } else { 2 }) };
        }
    };
    if let Command::Supervise = cli.command {
        return crewlog_executors::supervisor::supervise();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("error: the program cannot start: {error}"));
            return Code::User.into();
        }
    };
    // Before every tool call: nothing more is set up than an answer needs.
    if let Command::Hook(hook) = &cli.command {
        let code = runtime.block_on(hook::run(&cli.global, hook.named, hook.then.clone(), &hook.more));
        runtime.shutdown_timeout(SHUTDOWN);
        return code;
    }
    let quiet = if cli.global.terminal.quiet { "error" } else { "warn,sqlx=error,rmcp=error" };
    let filter = tracing_subscriber::EnvFilter::try_from_env("CREWLOG_LOG").unwrap_or_else(|_| quiet.into());
    // Messages of a model provider may contain a key; crewlog reports its errors without them.
    let filter = filter.add_directive("genai=off".parse().expect("it names a crate and a level"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(Terminal::new(&cli.global.terminal).has_colour)
        .with_timer(Stamp(matches!(cli.command, Command::Work(_) | Command::Serve(_) | Command::Mcp)))
        .with_target(false)
        .with_writer(|| Lines)
        // The subscriber would print its own errors on standard error too, and panic if that is closed.
        .log_internal_errors(false)
        .init();
    let ended = runtime.block_on(run(cli));
    // A question that nobody answered must not hold the program.
    runtime.shutdown_timeout(SHUTDOWN);
    match ended {
        Ok(code) => code,
        Err(failure) => {
            if failure.code != Code::Done {
                say(&failure.to_string());
            }
            failure.code.into()
        }
    }
}

async fn run(cli: Cli) -> Result<ExitCode, Failure> {
    // It has a log of its own.
    if let Command::Demo(Demo { listen, no_open }) = cli.command {
        return Ok(demo::demo(&cli.global, listen, !no_open).await?.into());
    }
    let session = Session::new(&cli.global)?;
    let by = session.by("cli", None);
    let ended = match cli.command {
        // Its exit code is that of another program.
        Command::Lease(args) => caller::ordered(by, commands::lease::lease(&session, args)).await.map(ExitCode::from),
        command => caller::ordered(by, carry_out(&session, command)).await.map(ExitCode::from),
    };
    session.place.close().await;
    session.say_where_passwords_go();
    ended
}

async fn carry_out(session: &Session, command: Command) -> Result<Code, Failure> {
    match command {
        Command::Init(args) => init::init(session, &args).await,
        // The log does not record yet when a hook runs.
        Command::Doctor(args) => doctor::doctor(session, &args).await,
        Command::Serve(Serve { command: Some(command), .. }) => tokens::command(session, command).await,
        Command::Plan(Plan::Check(check)) => commands::plan::check(session, check).await,
        Command::Plan(Plan::Sync { plan }) => plan_file::sync::sync(session, &plan).await,
        Command::Plan(Plan::Propose(propose)) => commands::plan::propose(session, propose).await,
        Command::Plan(Plan::Draft(draft)) => commands::plan::draft(session, draft).await,
        Command::Plan(Plan::Schema(schema)) => commands::plan::print_schema(session, &schema),
        Command::Ls(ls) => commands::ls::ls(session, ls).await,
        Command::Status(at) => commands::status::status(session, at).await,
        Command::Events(events) => commands::events::events(session, *events).await,
        Command::Logs(logs) => commands::logs::logs(session, logs).await,
        Command::Replay(replay) => commands::replay::replay(session, &replay).await,
        Command::Export(export) => commands::export::export(session, export).await,
        Command::Import(import) => commands::import::import(session, &import.file).await,
        Command::Groups(groups) => commands::groups::groups(session, groups).await,
        Command::Db(Db::Check) => commands::db::check(session).await,
        Command::Db(Db::Migrate) => commands::db::migrate(session).await,
        Command::Db(Db::Backup(backup)) => commands::db::backup(session, &backup.file).await,
        Command::Db(Db::Info) => commands::db::info(session).await,
        #[cfg(feature = "sealing")]
        Command::Keys(keys) => commands::keys::keys(session, keys).await,
        Command::Stats(stats) => commands::stats::stats(session, stats).await,
        Command::Completions(completions) => commands::completions::script(session, &completions.shell),
        Command::Run(run) => commands::run::run(session, *run).await,
        Command::Resume(resume) => commands::resume::resume(session, resume).await,
        Command::Show(show) => commands::show::show(session, &show).await,
        Command::Diff(Diff { before, after, outcomes: false }) => commands::diff::diff(session, &before, &after).await,
        Command::Diff(Diff { before, after, outcomes: true }) => {
            commands::diff::outcomes(session, &before, &after).await
        }
        Command::Fork(fork) => commands::fork::fork(session, fork).await,
        Command::Agents(agents) => commands::agents::agents(session, agents).await,
        Command::Leases(leases) => commands::leases::leases(session, leases).await,
        Command::Send(send) => commands::send::send(session, send).await,
        Command::Inbox(inbox) => commands::inbox::inbox(session, inbox).await,
        Command::Brief(args) => commands::brief::brief(session, args).await,
        Command::Blame(blame) => commands::blame::blame(session, &blame.file).await,
        Command::Why(why) => commands::why::why(session, &why.what, why.at.at).await,
        Command::Agree(agree) => commands::agree::agree(session, agree).await,
        Command::Answer(answer) => commands::answer::answer(session, answer).await,
        Command::Cancel(cancel) => commands::cancel::cancel(session, cancel).await,
        Command::Pause(pause) => commands::pause::pause(session, pause).await,
        Command::Retry(retry) => commands::retry::retry(session, retry).await,
        Command::Plan(Plan::Set(set)) => commands::plan::set(session, set).await,
        Command::Plan(Plan::Checkpoint(checkpoint)) => commands::plan::checkpoint(session, checkpoint).await,
        Command::Task(Task::Add(add)) => task::add(session, add).await,
        Command::Task(Task::Edit(edit)) => task::edit(session, edit).await,
        Command::Task(Task::Skip(skip)) => task::skip(session, skip).await,
        Command::Task(Task::Move(order)) => task::reorder(session, order).await,
        Command::Task(Task::Next) => task::next(session).await,
        Command::Task(Task::Claim(claim)) => task::claim(session, claim).await,
        Command::Task(Task::Release(release)) => task::release(session, release).await,
        Command::Task(Task::Done(done)) => task::done(session, done).await,
        Command::Task(Task::Fail(fail)) => task::fail(session, fail).await,
        Command::Task(Task::Ask(ask)) => task::ask(session, ask).await,
        Command::Task(Task::Withdraw(withdraw)) => task::withdraw(session, withdraw).await,
        Command::Mcp => mcp::stdio_server(session).await,
        Command::Top(at) => top::top(session, at.at).await,
        Command::Serve(serve @ Serve { command: None, .. }) => http::serve(session, serve.address()).await,
        Command::Work(work) => commands::work::work(session, work).await,
        Command::Supervise | Command::Hook(_) | Command::Demo(_) | Command::Lease(_) => {
            unreachable!("it is executed before this")
        }
    }
}
