//! `crewlog hook`: reads the host's input, asks the resident process or else the log, and prints the answer in time. On
//! any failure the host continues: the configured policy decides, with a warning.

use std::io;
use std::io::{Error, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use crewlog_executors::crew::process;
use crewlog_executors::crew::worktree::Worktree;
use tokio::time::timeout;

use super::dialect::{Call, Moment, Verdict, parse, printed};
use super::identity::Origin;
use super::in_time::{RECORD_WAIT, WAIT, on_the_log};
use super::notes::Notes;
use super::status_line::{self, Own};
use super::{git_hooks, moments, permission, recorders, resident};
use crate::cli::Global;
use crate::cli::programs::NamedHook;
use crate::context::config::{HooksConfig, OnError};
use crate::context::crew::open;
use crate::context::{Session, agent_id};
use crate::ui::failure::Failure;
use crate::ui::terminal::{answer, say};
use crate::ui::text::visible;

/// The most bytes of an input: Claude Code sends the whole content of a written file.
const INPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The most bytes of an input that are read and discarded, so that its writer does not fail.
const REST_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Answers a hook of git, or else of an agent program.
pub async fn run(global: &Global, named: Option<NamedHook>, then: Option<String>, more: &[String]) -> ExitCode {
    let (session, unconfigured) = match Session::new(global).map(Session::with_some_configuration) {
        Ok((session, why)) => (Ok(session), why),
        Err(failure) => (Err(failure), None),
    };
    let on_error = configured(&session).on_error;
    match named {
        Some(NamedHook::PreCommit) => return git_hooks::run(session, false, on_error).await,
        Some(NamedHook::PrePush) => return git_hooks::run(session, true, on_error).await,
        Some(NamedHook::StatusLine) => return status_line(session, unconfigured, then).await,
        Some(recorder) => return recorders::run(session, recorder, more).await,
        None => {}
    }
    let mut call = match read_input().and_then(|input| Ok(parse(&input)?)) {
        Ok(call) => call,
        Err(error) => {
            let error = visible(&error.to_string());
            say(&format!("crewlog: the hook input is unknown: {error}; `crewlog doctor` tries the hook of each host"));
            // The host is unknown. Exit code 2 means a refusal for three of the four.
            return ExitCode::from(if on_error == OnError::Deny { 2 } else { 0 });
        }
    };
    let mut hooks = configured(&session);
    let session = session.and_then(|own| of_files(own, global, &call, unconfigured));
    let verdict = match session {
        Ok((session, unconfigured)) => {
            hooks = configured(&Ok(session.clone()));
            hide_secrets(&session, &mut call);
            decide(&session, &hooks, &call, unconfigured).await
        }
        Err(failure) => Err(failure),
    };
    let verdict = verdict.unwrap_or_else(|failure| undecided(hooks.on_error, &call, &failure));
    answer(&printed(&call, &verdict));
    ExitCode::SUCCESS
}

/// Prints the person's own status line, or else one of crewlog, and records what the program gives it.
async fn status_line(
    session: Result<Session, Failure>,
    unconfigured: Option<String>,
    then: Option<String>,
) -> ExitCode {
    let input = read_input().unwrap_or_default();
    let own = Own::start(then, input.clone());
    if let (Ok(session), Some(call)) = (session, status_line::call(&input, own.is_none())) {
        let hooks = configured(&Ok(session.clone()));
        if let Ok(Verdict::Allow(line)) = decide(&session, &hooks, &call, unconfigured).await {
            answer(&line);
        }
    }
    own.map_or(ExitCode::SUCCESS, Own::end)
}

fn read_input() -> io::Result<Vec<u8>> {
    let (mut input, mut stdin) = (Vec::new(), io::stdin().lock());
    stdin.by_ref().take(INPUT_BYTES_MAX as u64 + 1).read_to_end(&mut input)?;
    io::copy(&mut stdin.take(REST_BYTES_MAX), &mut io::sink())?;
    let is_whole = input.len() <= INPUT_BYTES_MAX;
    is_whole.then_some(input).ok_or_else(|| Error::other(format!("it has over {INPUT_BYTES_MAX} bytes")))
}

/// The configured policy, or the default one if the configuration cannot be read.
fn configured(session: &Result<Session, Failure>) -> HooksConfig {
    let config = session.as_ref().ok().and_then(|session| session.config().ok());
    config.map(|config| config.hooks.clone()).unwrap_or_default()
}

/// The repository of the files that a call changes, if it has a log and is not the hook's own. A log named by the user
/// is for the hook's own repository only.
fn of_files(
    own: Session,
    global: &Global,
    call: &Call,
    unconfigured: Option<String>,
) -> Result<(Session, Option<String>), Failure> {
    let (Moment::Before(edits) | Moment::After(edits)) = &call.moment else { return Ok((own, unconfigured)) };
    let home = Worktree::around(&own.folder);
    let indexes = edits.commits.iter().map(|folder| folder.join(".git"));
    let files: Vec<_> = edits.touches.iter().map(|touch| touch.path.clone()).chain(indexes).collect();
    let is_here = |file: &PathBuf| home.around_path(&call.cwd, file).is_some();
    if own.place.is_named || (!own.place.is_unused() && files.iter().any(is_here)) {
        return Ok((own, unconfigured));
    }
    for folder in files.iter().filter_map(|file| call.cwd.join(file).parent().map(Worktree::around)) {
        let other = Session::in_folder(global, folder.root.clone())?;
        if other.place.repository.is_some() && !other.place.is_unused() {
            return Ok(other.with_some_configuration());
        }
    }
    Ok((own, unconfigured))
}

async fn decide(
    session: &Session,
    hooks: &HooksConfig,
    call: &Call,
    unconfigured: Option<String>,
) -> Result<Verdict, Failure> {
    let is_shell = call.is_shell();
    let (is_other, nothing) = (call.moment == Moment::Other, Ok(Verdict::Allow(String::new())));
    if session.place.is_unused() || (is_other && !is_shell && call.sight.is_none()) {
        return nothing;
    }
    let mut origin = Origin {
        folder: session.folder.clone(),
        agent: agent_id(),
        ancestors: process::ancestors(),
        is_strict: hooks.strict,
        lease_on_edit: hooks.lease_on_edit,
        unconfigured,
        notes: None,
    };
    let notes = Notes::of(&session.place);
    let (_, here) = origin.worktrees(call);
    let is_noted = notes.take_in(&here, call, (origin.agent.as_deref(), &origin.ancestors));
    if is_other && is_noted && call.sight.is_none() {
        return nothing;
    }
    origin.notes = Some(notes).filter(|_| !is_noted || matches!(call.moment, Moment::After(_)));
    if call.moment == Moment::Permission {
        let wait = hooks.permission_wait;
        let asked = async { Ok(permission::answer(&*open(session).await?, &origin, call, wait).await?) };
        return on_the_log(session, WAIT + wait, asked).await;
    }
    let socket = resident::socket(&session.place, &session.project()?);
    if let Ok(Ok(verdict)) = timeout(WAIT, resident::ask(&socket, &origin, call)).await {
        return Ok(verdict);
    }
    let wait = if is_other { RECORD_WAIT } else { WAIT };
    let answered = on_the_log(session, wait, async {
        let crew = open(session).await?;
        Ok(moments::answer(&crew, &origin, call).await?)
    })
    .await;
    // Nothing is decided about such a call: without its notes only its changes are not compared.
    if is_other { nothing } else { answered }
}

/// Leaves of a tool call a few words without secrets.
fn hide_secrets(session: &Session, call: &mut Call) {
    if let Some(sight) = &mut call.sight {
        sight.shorten(|text| session.config().ok().map(|config| config.secrets.redacted(text)));
    }
}

/// The policy for a call that could not be decided.
fn undecided(on_error: OnError, call: &Call, failure: &Failure) -> Verdict {
    let is_before = matches!(call.moment, Moment::Before(_));
    let what = match (is_before, on_error) {
        (false, _) => "nothing was done",
        (true, OnError::Allow) => "this call is allowed",
        (true, OnError::Deny) => "this call is refused",
    };
    let text = format!("crewlog could not look at the leases, {what}: {}", visible(&failure.to_string()));
    say(&text);
    if is_before && on_error == OnError::Deny { Verdict::Refuse(text) } else { Verdict::Allow(text) }
}
