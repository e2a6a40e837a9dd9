//! `doctor`: checks that agent programs are connected to the log, and that their hooks refuse an edit of a file that
//! another agent has reserved.

use std::io;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::crew::{Crew, Join};
use crewlog_executors::liveness::LivenessLock;
use crewlog_executors::supervisor::Spec;
use crewlog_mq::{EventStore, Options, Timestamp};
use crewlog_planner::crew::agents::{Profile, Wish};
use crewlog_planner::crew::{leases, target};
use serde::Serialize;
use serde_json::{Value, json};

use super::hosts::git_hooks;
use super::ours::our_hooks;
use super::places::Places;
use super::programs::{run, spec};
use super::target::{Target, read};
use super::wanted::COMMAND;
use super::{json as json_text, trust};
use crate::cli::programs::Host;
use crate::commands::Doctor;
use crate::context::{Session, crew};
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{one_line, rfc3339, visible};

/// The time limit for a program to print its version, and for a hook to answer.
const SHORT: Duration = Duration::from_secs(10);
/// The time limit for one turn of a program's model.
const TURN: Duration = Duration::from_secs(60);
/// Relative to the root of the worktree.
const TRIAL_FILE: &str = "crewlog-doctor-trial.txt";
const TRIAL_PROJECT: &str = "crewlog-doctor-trial";
const PROMPT: &str = "Say ok, and do nothing else.";

const CLAUDE: &[&str] = &[".claude/settings.local.json", ".claude/settings.json", "~/.claude/settings.json"];
const CODEX: &[&str] = &[".codex/config.toml", "~/.codex/config.toml"];
const GEMINI: &[&str] = &[".gemini/settings.json", "~/.gemini/settings.json"];
const OPENCODE: &[&str] = &["opencode.json", "opencode.jsonc"];
/// Settings that disable hooks or the server: the program, its files in order of precedence, the path of keys, and the
/// disabling value or list element, as JSON.
const SWITCHES: [(Host, &[&str], &str, &str); 6] = [
    (Host::Claude, CLAUDE, "disableAllHooks", "true"),
    (Host::Claude, CLAUDE, "disabledMcpjsonServers", "\"crewlog\""),
    (Host::Codex, CODEX, "features.hooks", "false"),
    (Host::Codex, CODEX, "mcp_servers.crewlog.enabled", "false"),
    (Host::Gemini, GEMINI, "hooksConfig.enabled", "false"),
    (Host::Opencode, OPENCODE, "mcp.crewlog.enabled", "false"),
];

/// Checks the named agent programs, or those found here.
pub async fn doctor(session: &Session, args: &Doctor) -> Result<Code, Failure> {
    let places = Places::of(session);
    let hosts = Host::chosen(&args.hosts, &places);
    if hosts.is_empty() {
        let none = Failure::new(Code::Nothing, "no agent program was found here");
        return Err(none.hint("`crewlog doctor --host NAME` checks one anyway"));
    }
    let folder = tempfile::tempdir().map_err(|error| Failure::user(format!("no folder for the trial: {error}")))?;
    let trial = trial_log(session, folder.path()).await?;
    let mut checks = Vec::new();
    let git_hooks = git_hooks(&places);
    if !git_hooks.is_empty() {
        let found = configured(&git_hooks, &places).map_err(|found| format!("{found}; fix: crewlog init"));
        checks.push(Check::new("git", "hooks", found));
    }
    for host in hosts {
        let mend = |found: String| format!("{found}; fix: crewlog init --host {}", host.as_ref());
        let version = run(spec(&places, vec![host.as_ref().to_owned(), "--version".to_owned()]), SHORT).await;
        checks.push(Check::new(host, "installed", version.map(|version| one_line(&version, 60))));
        let entries = connected(host, &places).map_err(mend);
        let wrong = entries.clone().err().into_iter().chain(switched_off(host, &places)).collect::<Vec<_>>().join("; ");
        checks.push(Check::new(host, "configured", if wrong.is_empty() { entries } else { Err(wrong) }));
        checks.push(Check::new(host, "trusted", trusted(host, &places).map_err(mend)));
        checks.push(Check::new(host, "refuses", refuses(host, &places, &trial).await.map_err(mend)));
        if args.live {
            checks.push(Check::new(host, "fires", fires(session, host, &places).await));
        }
        let fired = last_fired(session, host).await.map_or("never".to_owned(), rfc3339);
        checks.push(Check::new(host, "last fired", Ok(fired)));
    }
    session.print(&json!({ "checks": checks }), |out| checks.iter().try_for_each(|check| check.print(out)))?;
    Ok(if checks.iter().all(|check| check.is_ok) { Code::Done } else { Code::User })
}

#[derive(Debug, Serialize)]
struct Check {
    /// The agent program, or git.
    host: String,
    name: &'static str,
    is_ok: bool,
    /// The result, or the missing part.
    found: String,
}

impl Check {
    fn new(host: impl AsRef<str>, name: &'static str, found: Result<String, String>) -> Self {
        let (host, is_ok) = (host.as_ref().to_owned(), found.is_ok());
        Self { host, name, is_ok, found: found.unwrap_or_else(|missing| missing) }
    }

    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { host, name, is_ok, found } = self;
        let verdict = if *is_ok { "ok" } else { "missing" };
        writeln!(out, "{:<8}  {name:<10}  {verdict:<7}  {}", host, visible(found))
    }
}

/// A log and a configuration of their own.
struct Trial {
    log: String,
    config: String,
}

/// The last run of a program's hook on the log of this repository. Other commands report why a log cannot be read.
async fn last_fired(session: &Session, host: Host) -> Option<Timestamp> {
    crew::open(session).await.ok()?.last_hook(host.program()).await.ok()?
}

/// Creates a log in this folder, in which an agent other than the hook's has leased the trial's file. The log of the
/// repository is not touched.
async fn trial_log(session: &Session, folder: &Path) -> Result<Trial, Failure> {
    let url = folder.join("log.db").to_string_lossy().into_owned();
    let config = folder.join("crewlog.toml");
    let made = std::fs::write(&config, format!("project = \"{TRIAL_PROJECT}\"\n"));
    made.map_err(|error| Failure::user(format!("no trial: {error}")))?;
    let store = EventStore::open_with(&url, Options { create: true, ..Options::default() }).await?;
    let life = LivenessLock::begin(&folder.join("workers"));
    let life = life.map_err(|error| Failure::user(format!("no trial: {error}")))?;
    let crew = Crew::new(&store, TRIAL_PROJECT, Arc::new(life));
    let trial = || "trial".to_owned();
    let worktree = Worktree::around(&session.folder).name;
    let profile = Profile {
        program: trial(),
        model: None,
        capabilities: vec![],
        focus: vec![],
        worktree,
        process: None,
        program_process: None,
    };
    let join = Join { wish: Wish::of(&trial()), session: trial(), profile };
    let holder = crew.join(join).await?.caller;
    let request = leases::Request {
        holder: holder.holder(),
        targets: target::Target::literal(TRIAL_FILE).into_iter().collect(),
        is_exclusive: true,
        ttl: leases::TTL,
        reason: trial(),
        task: None,
        is_strict: false,
    };
    crew.reserve(&holder, request, leases::Turn::Behind).await?;
    store.close().await;
    Ok(Trial { log: url, config: config.to_string_lossy().into_owned() })
}

/// Fails unless the program is connected in one way, by its files or by the plugin.
fn connected(host: Host, places: &Places) -> Result<String, String> {
    if !host.has_plugin(places) {
        return configured(&host.targets(places), places);
    }
    let both = host.targets(places).into_iter().filter(Target::has_ours);
    let both = both.map(|target| places.shown(&target.path)).collect::<Vec<_>>();
    if !both.is_empty() {
        return Err(format!("its plugin is installed, and these files connect it too: {}", both.join(", ")));
    }
    let more = host.plugin_targets(places);
    configured(&more, places).map(|_| "its plugin is installed".to_owned())
}

/// Fails with the files that `init` would change, and those that it cannot change.
fn configured(targets: &[Target], places: &Places) -> Result<String, String> {
    let unlike = targets.iter().filter_map(|target| {
        let shown = places.shown(&target.path);
        match target.before_and_after() {
            Ok((before, after)) => (before != Some(after)).then_some(shown),
            Err(reason) => Some(format!("{shown}: {reason}")),
        }
    });
    let unlike = unlike.collect::<Vec<_>>();
    if unlike.is_empty() { Ok("its files have the entries".to_owned()) } else { Err(unlike.join(", ")) }
}

/// The settings that disable hooks or the server. Other checks report unreadable files.
fn switched_off(host: Host, places: &Places) -> Vec<String> {
    let switches = SWITCHES.iter().filter(|(of, ..)| *of == host);
    let named = |(_, files, keys, off): &(Host, &[&str], &str, &str)| {
        let pointer = format!("/{}", keys.replace('.', "/"));
        let (file, is_off) = files.iter().find_map(|name| {
            let file = places.configuration(name);
            let text = read(&file).ok()??;
            let settings: Value = toml_edit::de::from_str(&text).or_else(|_| json_text::value(&text)).ok()?;
            let found = settings.pointer(&pointer)?.to_string();
            let is_off = found.contains(off);
            // Programs merge the lists of all files. For other values, the first one counts.
            (is_off || !found.starts_with('[')).then_some((file, is_off))
        })?;
        let setting = if off.starts_with('"') { format!("{off} in {keys}") } else { format!("{keys} = {off}") };
        is_off.then(|| format!("{} has {setting}: remove it", places.shown(&file)))
    };
    switches.filter_map(named).collect()
}

fn trusted(host: Host, places: &Places) -> Result<String, String> {
    if host.has_plugin(places) {
        return configured(&host.plugin_targets(places), places).map(|_| "with its plugin".to_owned());
    }
    let Some(target) = trust::target(host, places) else { return Ok("it asks for no consent".to_owned()) };
    if host == Host::Gemini && std::env::var("GEMINI_CLI_TRUST_WORKSPACE").is_ok_and(|value| value == "true") {
        return Ok("by GEMINI_CLI_TRUST_WORKSPACE".to_owned());
    }
    configured(&[target], places)
}

/// Runs the hook before an edit.
async fn refuses(host: Host, places: &Places, trial: &Trial) -> Result<String, String> {
    let command = hook_command(host, places)?;
    // A command that a repository names is never run. This program is the one that it means.
    let own = std::env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
    let input = Some(trial_edit(host, &places.root).to_string());
    let env = [("CREWLOG_STORE", &trial.log), ("CREWLOG_CONFIG", &trial.config)];
    let env = env.map(|(name, value)| (name.to_owned(), value.clone())).into();
    let argv = vec![own.to_string_lossy().into_owned(), "hook".to_owned()];
    let spec = Spec { input, env, ..spec(places, argv) };
    let answer = run(spec, SHORT).await.map_err(|reason| format!("`{command}` failed: {reason}"))?;
    if denies(host, &answer) {
        return Ok("the edit of a reserved file".to_owned());
    }
    Err(format!("`{command}` does not refuse, but says: {}", one_line(&answer, 100)))
}

/// The configured command of our hook before an edit.
fn hook_command(host: Host, places: &Places) -> Result<String, String> {
    if host == Host::Opencode || host.has_plugin(places) {
        // The plugin of opencode is a program, and runs the command itself.
        return Ok(COMMAND.to_owned());
    }
    let settings = json_text::value(&read(&host.hooks_file(places))?.unwrap_or_default())?;
    let hooks = our_hooks(&settings);
    let before_edit = hooks.iter().find(|ours| ["PreToolUse", "BeforeTool"].contains(&ours.event));
    let command = before_edit.and_then(|ours| ours.hook["command"].as_str());
    command.map(str::to_owned).ok_or("no hook runs before an edit".to_owned())
}

/// The recorded input of the program's hook before an edit.
fn trial_edit(host: Host, root: &Path) -> Value {
    let (relative, absolute) = (TRIAL_FILE, root.join(TRIAL_FILE));
    let (event, tool, input) = match host {
        Host::Claude => ("PreToolUse", "Write", json!({ "file_path": absolute, "content": "trial" })),
        Host::Codex => {
            let patch = format!("*** Begin Patch\n*** Add File: {relative}\n+trial\n*** End Patch\n");
            ("PreToolUse", "apply_patch", json!({ "command": patch }))
        }
        Host::Gemini => ("BeforeTool", "write_file", json!({ "file_path": relative, "content": "trial" })),
        Host::Opencode => ("PreToolUse", "write", json!({ "filePath": absolute, "content": "trial" })),
    };
    let mut edit = json!({ "session_id": "crewlog-doctor", "cwd": root, "hook_event_name": event, "tool_name": tool,
        "tool_input": input });
    // Only the plugin of opencode has none.
    if host != Host::Opencode {
        edit["transcript_path"] = "".into();
    }
    edit
}

/// True for an answer that the program treats as a refusal.
fn denies(host: Host, answer: &str) -> bool {
    let decision = if host == Host::Gemini { "/decision" } else { "/hookSpecificOutput/permissionDecision" };
    serde_json::from_str::<Value>(answer).is_ok_and(|answer| answer.pointer(decision) == Some(&json!("deny")))
}

/// Starts the program for one unattended turn, and checks that its hook has run.
async fn fires(session: &Session, host: Host, places: &Places) -> Result<String, String> {
    let one_turn = match host {
        Host::Claude => "claude -p",
        Host::Codex => "codex exec --skip-git-repo-check",
        Host::Gemini => "gemini -p",
        Host::Opencode => "opencode run",
    };
    let before = last_fired(session, host).await;
    let ran = run(spec(places, Spec::shell_line(&format!("{one_turn} '{PROMPT}'"), [])), TURN).await;
    let has_fired = last_fired(session, host).await != before;
    let how = ran.map_or_else(|reason| reason, |out| one_line(&out, 100));
    if has_fired { Ok(format!("its hook ran ({how})")) } else { Err(format!("no hook ran ({how})")) }
}
