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

use crate::commands::serve::ServeCommand;
use crate::commands::{Cli, Command, Demo, Serve, completions};
use crate::context::Session;
use crate::init::doctor;
use crate::serve::{http, mcp};
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::{Lines, Terminal, say};

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
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("error: the program cannot start: {error}"));
            return Code::User.into();
        }
    };
    // Before every tool call: nothing more is set up than an answer needs.
    if let Command::Hook(hook) = &cli.command {
        let code = runtime.block_on(hook::run(&cli.global, hook.git));
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
        .without_time()
        .with_target(false)
        .with_writer(|| Lines)
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
                say(&failure.to_string());
            }
            failure.code.into()
        }
    }
}

async fn run(cli: Cli) -> Result<Code, Failure> {
    // It has a log of its own.
    if let Command::Demo(Demo { listen, no_open }) = cli.command {
        return demo::demo(&cli.global, listen, !no_open).await;
    }
    let session = Session::new(&cli.global)?;
    let ended = match cli.command {
        Command::Init(args) => init::init(&session, &args).await,
        // The log does not record yet when a hook runs.
        Command::Doctor(args) => doctor::doctor(&session, &args).await,
        Command::Mcp => mcp::stdio_server(&session).await,
        Command::Top(top) => top::top(&session, top.at.at).await,
        Command::Serve(serve @ Serve { command: None, .. }) => http::serve(&session, serve.address()).await,
        Command::Serve(Serve { command: Some(ServeCommand::Tokens { command }), .. }) => {
            http::access::tokens(&session, command).await
        }
        command => commands::execute(&session, command).await,
    };
    session.place.close().await;
    session.say_where_passwords_go();
    ended
}
