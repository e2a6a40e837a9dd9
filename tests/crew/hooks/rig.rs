//! A repository with a log, and the inputs of the four agent programs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crewlog_executors::crew::{Crew, Join, Joined};
use crewlog_executors::liveness::LivenessLock;
use crewlog_mq::EventStore;
use crewlog_planner::crew::agents::{Profile, Wish};
use crewlog_planner::crew::leases::{Request, Turn};
use crewlog_planner::crew::target::Target;
use serde_json::{Value, json};

use crate::cli::scene::{Ran, Running, Scene};

/// Variables of agent programs, which may be set outside the tests.
pub const SIGNS: [&str; 7] = [
    "AGENT_ID",
    "CLAUDECODE",
    "CLAUDE_CODE_SESSION_ID",
    "GEMINI_CLI",
    "GEMINI_SESSION_ID",
    "OPENCODE",
    "XDG_RUNTIME_DIR",
];
const PROJECT: &str = "trial";
pub const HOSTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// A repository with a log.
pub struct Rig(pub Scene);

impl Rig {
    pub fn new() -> Self {
        let rig = Self(Scene::with_repository());
        rig.0.run(&["init"]).expect(0);
        fs::create_dir_all(rig.0.path(".git/crewlog")).unwrap();
        rig.0.write(".git/crewlog/project", format!("{PROJECT}\n"));
        rig
    }

    pub fn command(&self, folder: &Path, words: &[&str]) -> Command {
        let mut command = self.0.crewlog_in(folder, words);
        for name in SIGNS {
            command.env_remove(name);
        }
        command
    }

    /// Runs the hook with this input.
    pub fn raw(&self, input: &[u8], agent: Option<&str>) -> Ran {
        self.in_folder(self.0.folder(), input, agent)
    }

    pub fn in_folder(&self, folder: &Path, input: &[u8], agent: Option<&str>) -> Ran {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), input).unwrap();
        let mut command = self.command(folder, &["hook"]);
        command.envs(agent.map(|agent| ("AGENT_ID", agent))).stdin(File::open(file.path()).unwrap());
        Running::start(&mut command).finish()
    }

    /// Runs the hook in a separate session of this agent.
    pub fn hook(&self, agent: &str, input: &Value) -> String {
        let session = format!("{agent}-{}", input["session_id"].as_str().unwrap());
        let input = with(input.clone(), json!({ "session_id": session }));
        let ran = self.raw(input.to_string().as_bytes(), Some(agent)).expect(0);
        assert_eq!(ran.stderr, "");
        ran.stdout
    }

    /// An edit of a file by an agent, in the dialect of a host; returns the output of the hook.
    pub fn edits(&self, agent: &str, host: &str, path: &str) -> String {
        self.hook(agent, &edit(host, self.0.folder(), path))
    }

    pub fn shell(&self, agent: &str, command: &str) -> String {
        self.hook(agent, &shell(self.0.folder(), command))
    }

    pub fn asks(&self, agent: &str, event: &str) -> String {
        self.hook(agent, &claude(self.0.folder(), event))
    }

    /// A recorded input, in this folder.
    pub fn recorded(&self, host: &str, name: &str) -> Value {
        let path = format!("{}/tests/fixtures/hooks/{host}/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap().replace("/repo", self.0.folder().to_str().unwrap());
        serde_json::from_str(&text).unwrap()
    }

    /// The crew of the log, as an MCP server has it.
    pub fn with_crew<T>(&self, work: impl AsyncFnOnce(&Crew, &str) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = EventStore::open(self.0.path(".crewlog/log.db").to_str().unwrap()).await.unwrap();
            let life = Arc::new(LivenessLock::begin(&self.0.path(".crewlog/log.db-workers")).unwrap());
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let worktree = format!("{host}:{}", self.0.folder().canonicalize().unwrap().display());
            let done = work(&Crew::new(&store, PROJECT, life), &worktree).await;
            store.close().await;
            done
        })
    }

    /// An agent reserves files.
    pub fn reserves(&self, agent: &str, target: &str, reason: &str) {
        self.reserves_as(agent, target, reason, true);
    }

    /// An agent reserves files for reading.
    pub fn shares(&self, agent: &str, target: &str) {
        self.reserves_as(agent, target, "", false);
    }

    fn reserves_as(&self, agent: &str, target: &str, reason: &str, is_exclusive: bool) {
        self.with_crew(async |crew, worktree| {
            let joined = join(crew, agent, worktree).await;
            let request = Request {
                holder: joined.caller.holder(),
                targets: vec![Target::written(target).unwrap()],
                is_exclusive,
                ttl: Duration::from_secs(3_600),
                reason: reason.to_owned(),
                task: None,
                is_strict: false,
            };
            crew.reserve(&joined.caller, request, Turn::Behind).await.unwrap();
        });
    }

    /// The live leases: `agent path`.
    pub fn leases(&self) -> Vec<String> {
        self.with_crew(async |crew, _| {
            let leases = crew.leases().await.unwrap();
            leases.iter().map(|(_, lease)| format!("{} {}", lease.holder.agent, lease.target.path)).collect()
        })
    }

    pub fn resident(&self) -> Running {
        let running = Running::start(&mut self.command(self.0.folder(), &["work", "--no-input"]));
        wait_for("a socket", || self.socket().is_some());
        running
    }

    pub fn socket(&self) -> Option<PathBuf> {
        let files = fs::read_dir(self.0.path(".crewlog")).unwrap().flatten().map(|entry| entry.path());
        files.into_iter().find(|path| path.extension().is_some_and(|end| end == "sock"))
    }
}

/// Joins like an agent over HTTP, where a server and hooks have no common session.
pub async fn join(crew: &Crew, agent: &str, worktree: &str) -> Joined {
    let present =
        crew.agents().await.unwrap().iter().find(|(name, _)| *name == agent).map(|(_, known)| known.session.clone());
    join_as(crew, agent, present.unwrap_or(format!("mcp:{agent}")), worktree).await
}

/// A session joins under a name.
pub async fn join_as(crew: &Crew, agent: &str, session: String, worktree: &str) -> Joined {
    join_with(crew, agent, session, profile(worktree)).await
}

pub fn profile(worktree: &str) -> Profile {
    Profile {
        program: "codex".into(),
        model: None,
        capabilities: Vec::new(),
        focus: Vec::new(),
        worktree: worktree.to_owned(),
        process: None,
        program_process: None,
    }
}

pub async fn join_with(crew: &Crew, agent: &str, session: String, profile: Profile) -> Joined {
    let join = Join { wish: Wish::of(agent), session, profile };
    crew.join(join).await.unwrap()
}

#[track_caller]
pub fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited for {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

pub fn claude(folder: &Path, event: &str) -> Value {
    json!({ "session_id": "c1", "transcript_path": "/h/c1.jsonl", "cwd": folder, "hook_event_name": event })
}

pub fn with(mut input: Value, mut fields: Value) -> Value {
    input.as_object_mut().unwrap().append(fields.as_object_mut().unwrap());
    input
}

pub fn shell(folder: &Path, command: &str) -> Value {
    let call = json!({ "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": "t1" });
    with(claude(folder, "PreToolUse"), call)
}

/// An edit of a file before it happens, in the dialect of a host.
pub fn edit(host: &str, folder: &Path, path: &str) -> Value {
    let tool = |name: &str, input: Value| json!({ "tool_name": name, "tool_input": input });
    match host {
        "claude" => with(
            claude(folder, "PreToolUse"),
            tool("Edit", json!({ "file_path": path, "old_string": "a", "new_string": "b" })),
        ),
        "codex" => {
            let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n");
            let session = json!({ "session_id": "x1", "turn_id": "t", "cwd": folder, "hook_event_name": "PreToolUse",
                                  "transcript_path": "/h/rollout-1.jsonl", "model": "m" });
            with(session, tool("apply_patch", json!({ "command": patch })))
        }
        "gemini" => with(
            json!({ "session_id": "g1", "transcript_path": "/h/session-1.jsonl", "cwd": folder,
                    "hook_event_name": "BeforeTool", "timestamp": "2026-11-24T04:58:00.270Z" }),
            tool("write_file", json!({ "file_path": path, "content": "b" })),
        ),
        _opencode => with(
            json!({ "session_id": "o1", "cwd": folder, "hook_event_name": "PreToolUse" }),
            tool("write", json!({ "filePath": folder.join(path), "content": "b" })),
        ),
    }
}

/// The text without its times.
pub fn timeless(text: &str) -> String {
    let mut parts = text.split("until 20");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| format!("{text}until T{}", part.split_once('Z').map_or("", |(_, after)| after)))
}

/// The reason of a refusal in Claude's form.
#[track_caller]
pub fn refused(stdout: &str) -> String {
    let answer: Value = serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout:?}"));
    let answer = &answer["hookSpecificOutput"];
    assert_eq!(answer["permissionDecision"], "deny", "{answer}");
    answer["permissionDecisionReason"].as_str().unwrap().to_owned()
}

#[track_caller]
pub fn context(stdout: &str) -> String {
    let answer: Value = serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout:?}"));
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}
