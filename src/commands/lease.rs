//! `lease`: runs a command under leases on files and things.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use clap::Args;
use crewlog_executors::crew::Refusal;
use crewlog_executors::crew::scripts::Script;
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::LeaveOutcome;
use crewlog_planner::crew::leases::Request;
use crewlog_planner::text::single_line;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::process::{Child, Command};
use tokio::signal::unix::SignalKind;

use super::leases::target;
use crate::cli::typed::duration;
use crate::context::Session;
use crate::context::crew::open;
use crate::hook::edits::Hit;
use crate::hook::facts::listed;
use crate::ui::failure::{Code, Failure};
use crate::ui::signals::Signals;

/// How long the leases last without a sign of life. The proof that this process is dead ends them at once.
const TTL: Duration = Duration::from_secs(600);
/// The most characters of the program's name in the reason of a lease.
const NAME_CHARS_MAX: usize = 80;
/// The exit code of a command that a signal ended, before the number of the signal.
const BY_SIGNAL: u8 = 128;

#[derive(Debug, Args)]
pub struct Lease {
    /// Files, folders and patterns, or things such as @port:5432
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Wait this long while others lease them, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Duration>,
    /// Why, for those who meet the leases
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Share them with others that only read
    #[arg(long)]
    pub shared: bool,
    /// The command, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Returns the exit code of the command; 128 and the number of the signal that ended it.
pub async fn lease(session: &Session, args: Lease) -> Result<u8, Failure> {
    let targets = args.files.iter().map(|file| target(session, file)).collect::<Result<Vec<_>, _>>()?;
    // From here on a signal must not end this process before the leases are released.
    let mut signals = Signals::new()?;
    let crew = open(session).await?;
    let script = Script::of_command(&crew, &session.folder).await?;
    let newest = crew.leases().await?.newest();
    let program = single_line(&args.command[0].to_string_lossy(), NAME_CHARS_MAX);
    let request = Request {
        targets,
        holder: script.holder(),
        is_exclusive: !args.shared,
        ttl: TTL,
        reason: args.reason.unwrap_or_else(|| format!("runs {program}")),
        task: None,
        is_strict: false,
    };
    let wait = args.wait.unwrap_or_default();
    let ran = run_under(session, &script, (&request, wait), &args.command, &mut signals).await;
    let ran = match ran {
        Err(Refusal::Crew(CrewError::Held(blocked))) => {
            let leases = crew.leases().await?;
            let hits: Vec<_> = blocked.into_iter().map(|blocked| Hit::of(&leases, blocked)).collect();
            Err(refused(session, &hits, args.wait.is_some()))
        }
        Err(refusal) => Err(refusal.into()),
        Ok(ran) => ran,
    };
    let outcome = if matches!(ran, Ok(0)) { LeaveOutcome::Success } else { LeaveOutcome::Failure };
    if let Err(error) = script.end(&request.targets, newest, outcome).await {
        session.remark(&format!("the leases are not released, and end without signs of life: {error}"));
    }
    ran
}

/// Takes the leases, and runs the command.
async fn run_under(
    session: &Session,
    script: &Script,
    (request, wait): (&Request, Duration),
    command: &[OsString],
    signals: &mut Signals,
) -> Result<Result<u8, Failure>, Refusal> {
    let Some(taken) = script.lease(request, wait, signals.next()).await? else {
        return Ok(Ok(Code::Interrupted as u8));
    };
    let started = Command::new(&command[0]).args(&command[1..]).envs(script.variables()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let program = command[0].to_string_lossy();
            let cannot = Failure::user(format!("{program} cannot be started: {error}"));
            return Ok(Err(cannot.hint("the command is an executable file or a name in PATH, with its arguments")));
        }
    };
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended,
            () = script.stay() => {}
            signal = signals.next_kind() => forward(&child, signal),
        }
    };
    for path in script.ended(&taken).await.unwrap_or_default() {
        session.remark(&format!("the lease on {path} ended before the command did: others may have changed it"));
    }
    let by_signal = |number| u8::try_from(number).map_or(u8::MAX, |number| BY_SIGNAL.saturating_add(number));
    let code = |ended: std::process::ExitStatus| match ended.code() {
        Some(code) => u8::try_from(code).unwrap_or(u8::MAX),
        None => ended.signal().map_or(u8::MAX, by_signal),
    };
    Ok(ended.map(code).map_err(|error| Failure::user(format!("the end of the command is not known: {error}"))))
}

/// Sends a signal to the command. An interrupt that was typed has reached it already: a second one would cut its cleaning up short.
fn forward(child: &Child, kind: SignalKind) {
    let is_typed = || tcgetpgrp(io::stdin()).is_ok_and(|in_front| in_front == getpgrp());
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let signal = Signal::from_named_raw(kind.as_raw_value());
    if let Some((pid, signal)) = pid.zip(signal).filter(|_| kind != SignalKind::interrupt() || !is_typed()) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

fn refused(session: &Session, hits: &[Hit], has_waited: bool) -> Failure {
    let failure = Failure::new(Code::Conflict, format!("the command is not run: {}", listed(hits)));
    let holder = hits.first().map_or("", |hit| hit.blocked.holder.agent.as_str());
    let ask = session.command(&format!("send {holder} --subject \"...\""));
    let wait = if has_waited { "a longer --wait may help" } else { "--wait 10m waits for them" };
    failure.hint(wait).hint(format!("to ask {holder} for them: {ask}"))
}
