//! `doctor`: checks that agent programs are connected to the log, and that their hooks refuse an edit of a file that
//! another agent has reserved.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::crew::{Crew, Join, Reserve};
use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::supervisor::{Exit, Spec, Supervised, SupervisorProgram};
use crewlog_mq::{EventStore, Options, Timestamp};
use crewlog_planner::crew::agents::Profile;
use crewlog_planner::crew::leases;
use crewlog_planner::crew::target;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::entry::{Wrong, is_our_hook, keys};
use super::hosts::Target;
use super::places::Places;
use super::{COMMAND, Edit, files, json as json_text, trust};
use crate::cli::{Doctor, Host};
use crate::crew::session as crew;
use crate::crew::worktree::Worktree;
use crate::failure::{Code, Failure};
use crate::session::Session;
use crate::text::{one_line, rfc3339, visible};

/// How long a program may take to print its version, and a hook to answer.
const SHORT: Duration = Duration::from_secs(10);
/// How long a program may take for one turn of its model.
const TURN: Duration = Duration::from_secs(60);
const PROMPT: &str = "Say ok, and do nothing else.";

/// Checks each agent program found here, or those that are named.
pub async fn doctor(session: &Session, args: &Doctor) -> Result<Code, Failure> {
    let places = Places::of(session);
    let is_wanted = |host: &Host| args.hosts.contains(host) || (args.hosts.is_empty() && host.is_found(&places));
    let folder = tempfile::tempdir().map_err(|error| Failure::user(format!("no folder for the trial: {error}")))?;
    let trial = trial_lease(session, folder.path()).await?;
    let mut reports = Vec::new();
    for host in Host::ALL.into_iter().filter(is_wanted) {
        let mut fired = last_fired(session, host).await?;
        let mut fires = None;
        if args.live {
            let ran = run(&places, live(host), None, Vec::new(), TURN).await;
            let before = std::mem::replace(&mut fired, last_fired(session, host).await?);
            fires = Some(fired_live(fired != before, ran));
        }
        reports.push(Report {
            host,
            installed: installed(host, &places).await,
            configured: configured(host, &places),
            trusted: trusted(host, &places),
            refuses: refuses(host, &places, &trial).await,
            fires,
            last_fired: fired.map(rfc3339),
        });
    }
    if reports.is_empty() {
        let none = Failure::new(Code::Nothing, "no agent program was found here");
        return Err(none.hint("`crewlog doctor --host NAME` checks one anyway"));
    }
    session.print(&json!({ "hosts": reports }), |out| reports.iter().try_for_each(|report| report.print(out)))?;
    let is_well = reports.iter().flat_map(Report::checks).all(|(_, check)| check.is_ok);
    Ok(if is_well { Code::Done } else { Code::User })
}

/// When a hook of a program last ran on the log of this repository.
async fn last_fired(session: &Session, host: Host) -> Result<Option<Timestamp>, Failure> {
    let program = match host {
        Host::Claude => "claude-code",
        Host::Codex => "codex",
        Host::Gemini => "gemini-cli",
        Host::Opencode => "opencode",
    };
    // Without a log none has run, and every other command says what is wrong with one that cannot be read.
    let Ok(crew) = crew::open(session).await else { return Ok(None) };
    Ok(crew.last_hook(program).await?)
}

/// A log in which another agent than the hook's has reserved a file.
struct Trial {
    /// The log.
    url: String,
    /// The file, from the root of the worktree.
    path: PathBuf,
}

/// Makes the trial's log in a folder of its own, so that nothing of the trial stays in the log of the repository. In it
/// another agent than the hook's has a lease on the file.
async fn trial_lease(session: &Session, folder: &Path) -> Result<Trial, Failure> {
    let url = folder.join("log.db").to_string_lossy().into_owned();
    let path = PathBuf::from("crewlog-doctor-trial.txt");
    let store = EventStore::open_with(&url, Options { create: true, ..Options::default() }).await?;
    let life =
        LivenessLock::begin(&folder.join("workers")).map_err(|error| Failure::user(format!("no trial: {error}")))?;
    let crew = Crew::new(&store, &session.project()?, Arc::new(life));
    let worktree = Worktree::around(&session.folder);
    let profile = Profile {
        program: "trial".to_owned(),
        model: None,
        capabilities: Vec::new(),
        focus: Vec::new(),
        worktree: worktree.name().to_owned(),
        process: None,
    };
    let join = Join { name: Some("trial".to_owned()), parent: None, session: "trial".to_owned(), profile };
    let holder = crew.join(join).await?.caller;
    let targets = target::Target::literal(&path.to_string_lossy()).into_iter().collect();
    let reserve = Reserve {
        targets,
        is_exclusive: true,
        ttl: leases::TTL,
        reason: "the trial of crewlog doctor".to_owned(),
        task: None,
        is_strict: false,
        wait: None,
    };
    crew.reserve(&holder, reserve).await?;
    store.close().await;
    Ok(Trial { url, path })
}

/// The session that the trial's edit comes from.
const TRIAL_SESSION: &str = "crewlog-doctor";

#[derive(Debug, Serialize)]
struct Report {
    host: Host,
    installed: Check,
    configured: Check,
    trusted: Check,
    refuses: Check,
    /// With --live: whether a hook ran.
    fires: Option<Check>,
    last_fired: Option<String>,
}

#[derive(Debug, Serialize)]
struct Check {
    is_ok: bool,
    found: String,
    /// The command that mends it.
    mend: Option<String>,
}

impl Check {
    fn ok(found: impl Into<String>) -> Self {
        Self { is_ok: true, found: found.into(), mend: None }
    }

    fn missing(found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { is_ok: false, found: found.into(), mend: Some(mend.into()) }
    }
}

impl Report {
    fn checks(&self) -> impl Iterator<Item = (&'static str, &Check)> {
        let Self { installed, configured, trusted, refuses, fires, .. } = self;
        let always = [("installed", installed), ("configured", configured), ("trusted", trusted), ("refuses", refuses)];
        always.into_iter().chain(fires.as_ref().map(|fires| ("fires", fires)))
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.host.as_ref())?;
        for (name, Check { is_ok, found, mend }) in self.checks() {
            let verdict = if *is_ok { "ok" } else { "missing" };
            let mend = mend.as_ref().map(|mend| format!("; to mend: {mend}")).unwrap_or_default();
            writeln!(out, "  {name:<10}  {verdict:<7}  {}", visible(&format!("{found}{mend}")))?;
        }
        writeln!(out, "  last fired  {}", self.last_fired.as_deref().unwrap_or("never"))
    }
}

async fn installed(host: Host, places: &Places) -> Check {
    let package = match host {
        Host::Claude => "@anthropic-ai/claude-code",
        Host::Codex => "@openai/codex",
        Host::Gemini => "@google/gemini-cli",
        Host::Opencode => "opencode-ai",
    };
    let mend = format!("npm install -g {package}");
    if host.on_path().is_none() {
        return Check::missing("not on the PATH", mend);
    }
    match run(places, vec![host.as_ref().into(), "--version".into()], None, Vec::new(), SHORT).await {
        Ok(Ran { exit: Exit::Code(0), out, .. }) => Check::ok(one_line(&out, 60)),
        Ok(ran) => Check::missing(ran.shown(), mend),
        Err(reason) => Check::missing(reason, mend),
    }
}

fn configured(host: Host, places: &Places) -> Check {
    match unlike(places, &host.targets(places)) {
        files if files.is_empty() => Check::ok("its files have the entries"),
        files => Check::missing(files.join(", "), format!("crewlog init --host {}", host.as_ref())),
    }
}

fn trusted(host: Host, places: &Places) -> Check {
    let Some(target) = trust::target(host, places) else { return Check::ok("it asks for no consent") };
    if host == Host::Gemini && std::env::var("GEMINI_CLI_TRUST_WORKSPACE").is_ok_and(|value| value == "true") {
        return Check::ok("by GEMINI_CLI_TRUST_WORKSPACE");
    }
    match unlike(places, &[target]) {
        files if files.is_empty() => Check::ok("the user's own file says so"),
        files => Check::missing(files.join(", "), format!("crewlog init --host {} --yes", host.as_ref())),
    }
}

/// The files that `init` would change, and those that it cannot change.
fn unlike(places: &Places, targets: &[Target]) -> Vec<String> {
    let edits = targets.iter().map(|target| Edit::of(places, target));
    let unlike = edits.filter_map(|edit| match edit {
        Ok(edit) => match edit.is_done() {
            Ok(is_done) => (!is_done).then_some(edit.shown),
            Err(wrong) => Some(wrong.of(&edit.shown)),
        },
        Err(row) => row.reason,
    });
    unlike.collect()
}

/// Runs the hook that the program would run before an edit.
async fn refuses(host: Host, places: &Places, trial: &Trial) -> Check {
    let mend = format!("crewlog init --host {}", host.as_ref());
    let command = match hook_command(host, places) {
        Ok(Some(command)) => command,
        Ok(None) => return Check::missing("no hook runs before an edit", mend),
        Err(wrong) => return Check::missing(wrong.of(&places.shown(&host.hooks_file(places))), mend),
    };
    let input = trial_edit(host, &places.root, &trial.path).to_string();
    let env = vec![("CREWLOG_STORE".to_owned(), trial.url.clone())];
    match run(places, Spec::shell_line(&command, []), Some(input), env, SHORT).await {
        Ok(ran) if ran.exit != Exit::Code(0) => Check::missing(format!("`{command}` failed: {}", ran.shown()), mend),
        Ok(ran) if denies(host, &ran.out) => Check::ok("the edit of a reserved file"),
        Ok(ran) => Check::missing(format!("`{command}` does not refuse, but says: {}", one_line(&ran.out, 100)), mend),
        Err(reason) => Check::missing(reason, mend),
    }
}

/// The command of our hook before an edit, as it is configured.
fn hook_command(host: Host, places: &Places) -> Result<Option<String>, Wrong> {
    let Some(text) = files::read(&host.hooks_file(places))? else { return Ok(None) };
    let event = match host {
        Host::Claude | Host::Codex => "PreToolUse",
        Host::Gemini => "BeforeTool",
        // Its plugin is a program, and runs the command itself.
        Host::Opencode => return Ok(Some(COMMAND.to_owned())),
    };
    let groups = json_text::value_at(&text, &keys(&["hooks", event]))?.unwrap_or_default();
    let groups = groups.as_array().into_iter().flatten();
    let mut hooks = groups.filter_map(|group| group["hooks"].as_array()).flatten().filter(|hook| is_our_hook(hook));
    Ok(hooks.next().and_then(|hook| hook["command"].as_str()).map(str::to_owned))
}

/// What a hook of the program reads before it edits a file, as recorded.
fn trial_edit(host: Host, root: &Path, path: &Path) -> Value {
    let (relative, absolute) = (path.to_string_lossy(), root.join(path));
    let (event, tool, input) = match host {
        Host::Claude => ("PreToolUse", "Write", json!({ "file_path": absolute, "content": "trial" })),
        Host::Codex => {
            let patch = format!("*** Begin Patch\n*** Add File: {relative}\n+trial\n*** End Patch\n");
            ("PreToolUse", "apply_patch", json!({ "command": patch }))
        }
        Host::Gemini => ("BeforeTool", "write_file", json!({ "file_path": relative, "content": "trial" })),
        Host::Opencode => ("PreToolUse", "write", json!({ "filePath": absolute, "content": "trial" })),
    };
    let mut edit = json!({ "session_id": TRIAL_SESSION, "cwd": root, "hook_event_name": event, "tool_name": tool,
        "tool_input": input });
    // Only the plugin of opencode gives none.
    if host != Host::Opencode {
        edit["transcript_path"] = "".into();
    }
    edit
}

/// True of an answer that the program takes for a refusal.
fn denies(host: Host, answer: &str) -> bool {
    let answer = serde_json::from_str::<Value>(answer).unwrap_or_default();
    let said = &answer["hookSpecificOutput"];
    let (decision, reason) = match host {
        Host::Gemini => (&answer["decision"], &answer["reason"]),
        Host::Claude | Host::Codex | Host::Opencode => (&said["permissionDecision"], &said["permissionDecisionReason"]),
    };
    // Codex throws away an answer with a field that it does not know.
    let size = |value: &Value| value.as_object().map(serde_json::Map::len);
    let is_known = host != Host::Codex || (size(&answer), size(said)) == (Some(1), Some(3));
    decision == "deny" && reason.as_str().is_some_and(|reason| !reason.is_empty()) && is_known
}

/// The program with a prompt of one turn, unattended.
fn live(host: Host) -> Vec<String> {
    let words: &[&str] = match host {
        Host::Claude => &["claude", "-p", PROMPT],
        Host::Codex => &["codex", "exec", "--skip-git-repo-check", PROMPT],
        Host::Gemini => &["gemini", "-p", PROMPT],
        Host::Opencode => &["opencode", "run", PROMPT],
    };
    words.iter().map(|&word| word.to_owned()).collect()
}

fn fired_live(has_fired: bool, ran: Result<Ran, String>) -> Check {
    let how = ran.map_or_else(|reason| reason, |ran| ran.shown());
    let found = format!("{} ({how})", if has_fired { "its hook ran" } else { "no hook ran" });
    Check { is_ok: has_fired, found, mend: None }
}

/// A program that has ended.
struct Ran {
    exit: Exit,
    out: String,
    err: String,
}

impl Ran {
    fn shown(&self) -> String {
        let how = match &self.exit {
            Exit::Code(code) => format!("exit code {code}"),
            Exit::Signal(signal) => format!("ended by signal {signal}"),
            Exit::NotStarted { reason } => reason.clone(),
        };
        one_line(&format!("{how} {}", if self.err.is_empty() { &self.out } else { &self.err }), 100)
    }
}

/// Runs a program in the repository. After the limit it is killed, with all that it has started.
async fn run(
    places: &Places,
    argv: Vec<String>,
    input: Option<String>,
    env: Vec<(String, String)>,
    limit: Duration,
) -> Result<Ran, String> {
    let spec = Spec { argv, input, cwd: Some(places.root.clone()), env, lock: None };
    let ran = async {
        let mut supervised = Supervised::spawn(&SupervisorProgram::this_binary(["supervise"])?, &spec).await?;
        let (mut stdout, mut stderr) = supervised.take_output();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (exit, ..) =
            tokio::try_join!(supervised.wait(), stdout.read_to_end(&mut out), stderr.read_to_end(&mut err))?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok::<_, io::Error>(Ran { exit, out: text(out), err: text(err) })
    };
    match tokio::time::timeout(limit, ran).await {
        Ok(ran) => ran.map_err(|error| format!("it could not be run: {error}")),
        Err(_) => Err(format!("killed after {} s", limit.as_secs())),
    }
}
