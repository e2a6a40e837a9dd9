//! `crewlog hook`: reads the host's input, asks the resident process or else the log, and prints the answer in time.
//! Whatever fails here, the host goes on: the configured policy decides, with a warning.

use std::fmt::Display;
use std::future::Future;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::timeout;

use super::answer::{Printed, Verdict, render};
use super::dialect::{Call, INPUT_BYTES_MAX, parse};
use super::identity::Origin;
use super::socket::{self, Socket, WAIT};
use super::{Intent, Moment, git_hooks, moments, process};
use crate::cli::{GitHook, Global};
use crate::config::{HooksConfig, OnError};
use crate::crew::session::{agent_id, open};
use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::say;
use crate::text::visible;

/// The most bytes of an input that are read and thrown away, so that its writer does not fail.
const REST_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How long closing the log, and then its threads, may take after the answer.
const CLOSE_WAIT: Duration = Duration::from_millis(500);
const SHUTDOWN: Duration = Duration::from_millis(50);

/// Answers a hook of git, or else of an agent program.
pub fn run(global: &Global, git: Option<GitHook>) -> ExitCode {
    let session = Session::new(global);
    let hooks = session.as_ref().ok().and_then(|session| session.config().ok());
    let hooks = hooks.map(|config| config.hooks.clone()).unwrap_or_default();
    match git {
        Some(hook) => git_hooks::run(session, hook, hooks.on_error),
        None => {
            let Printed { stdout, exit } = printed(session, &hooks);
            // A host that is gone needs no answer.
            let _ = io::stdout().write_all(stdout.as_bytes());
            ExitCode::from(exit)
        }
    }
}

fn printed(session: Result<Session, Failure>, hooks: &HooksConfig) -> Printed {
    let read = read_input().map_err(|error| error.to_string());
    let read = read.and_then(|input| parse(&input).map(|call| (input, call)).map_err(|error| error.to_string()));
    let (input, call) = match read {
        Ok(read) => read,
        Err(error) => return unreadable(hooks.on_error, &error),
    };
    let is_asked = match (&call.moment, &call.intent) {
        (Moment::Other, _) | (Moment::PreTool, Intent::Nothing | Intent::OwnTool(_)) => false,
        (_, _) => true,
    };
    if !is_asked {
        return Printed::default();
    }
    match session.and_then(|session| decide(&session, hooks, &input, &call)) {
        Ok(verdict) => render(call.host, &call.moment, &verdict),
        Err(failure) => undecided(hooks.on_error, &call, &failure),
    }
}

fn read_input() -> io::Result<Vec<u8>> {
    let (mut input, mut stdin) = (Vec::new(), io::stdin().lock());
    stdin.by_ref().take(INPUT_BYTES_MAX as u64 + 1).read_to_end(&mut input)?;
    io::copy(&mut stdin.take(REST_BYTES_MAX), &mut io::sink())?;
    Ok(input)
}

fn decide(session: &Session, hooks: &HooksConfig, input: &[u8], call: &Call) -> Result<Verdict, Failure> {
    session.config()?;
    if session.place.is_unused() {
        return Ok(Verdict::Allow);
    }
    let origin = Origin {
        folder: session.folder.clone(),
        agent: agent_id(),
        ancestors: process::ancestors(),
        is_strict: hooks.strict,
        lease_on_edit: hooks.lease_on_edit,
    };
    let socket = Socket::of(&session.place, &session.project()?);
    if let Ok(verdict) = socket::ask(&socket, &origin, input) {
        return Ok(verdict);
    }
    on_the_log(session, async {
        let crew = open(session).await?;
        Ok(moments::answer(&crew, &origin, call).await?)
    })
}

/// Runs a future that opens the log, for a short time, and closes the log.
pub fn on_the_log<T>(session: &Session, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::user(format!("the hook cannot start: {error}")))?;
    let done = runtime.block_on(async {
        let done = timeout(WAIT, work).await;
        // A log that is not closed loses nothing.
        let _ = timeout(CLOSE_WAIT, session.place.close()).await;
        done
    });
    runtime.shutdown_timeout(SHUTDOWN);
    done.unwrap_or_else(|_| Err(Failure::user(format!("the log did not answer within {} s", WAIT.as_secs()))))
}

/// The policy for a call that could not be decided.
fn undecided(on_error: OnError, call: &Call, error: &dyn Display) -> Printed {
    let (verdict, done) = match on_error {
        OnError::Allow => (Verdict::AllowWith as fn(String) -> Verdict, "allowed"),
        OnError::Deny => (Verdict::Deny as fn(String) -> Verdict, "refused"),
    };
    let is_before = call.moment == Moment::PreTool;
    let what = if is_before { format!("this call is {done}") } else { "nothing was done".to_owned() };
    let text = format!("crewlog could not look at the leases, {what}: {}", visible(&error.to_string()));
    say(&text);
    let verdict = if is_before { verdict(text) } else { Verdict::AllowWith(text) };
    render(call.host, &call.moment, &verdict)
}

/// The policy for an input of which not even the host is known. Exit code 2 refuses in three of the four hosts.
fn unreadable(on_error: OnError, error: &str) -> Printed {
    say(&format!("crewlog: {}", visible(error)));
    match on_error {
        OnError::Allow => Printed::default(),
        OnError::Deny => Printed { exit: 2, ..Printed::default() },
    }
}
