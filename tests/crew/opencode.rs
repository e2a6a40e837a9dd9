//! The plugin of opencode wakes idle sessions, continues turns and answers permissions; node stands for opencode.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::mcp::Client;
use crate::cli::scene::{DEADLINE, Scene};

/// The process that stands for opencode, with the plugin that `crewlog init` writes.
struct Opencode {
    scene: Scene,
    server: Client,
    says: BufReader<UnixStream>,
}

impl Opencode {
    fn new() -> Self {
        Self::of(Scene::with_repository())
    }

    fn of(scene: Scene) -> Self {
        scene.run(&["init", "--yes", "--host", "opencode"]).expect(0);
        let socket = scene.around().join("fake");
        let listener = UnixListener::bind(&socket).unwrap();
        let crewlog = scene.crewlog(&[]);
        let mut node = Command::new("node");
        node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crew/opencode.mjs"));
        node.arg(scene.path(".opencode/plugin/crewlog.js")).arg(&socket).arg(crewlog.get_program());
        for (name, value) in crewlog.get_envs() {
            match value {
                Some(value) => node.env(name, value),
                None => node.env_remove(name),
            };
        }
        let folder = Path::new(crewlog.get_program()).parent().unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        node.current_dir(scene.folder()).env("PATH", path);
        node.env("XDG_RUNTIME_DIR", scene.around()).env("AGENT_ID", "ann");
        let mut server = Client::start(&mut node);
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        server.initialize("2025-06-18", "opencode");
        server.call("join", json!({}));
        Self { scene, server, says: BufReader::new(stream) }
    }

    /// The next line of opencode.
    fn says(&mut self) -> Value {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Runs a hook of the plugin to its end, and returns what the plugin asked of opencode meanwhile.
    fn runs(&mut self, hook: &Value) -> Vec<Value> {
        writeln!(self.says.get_mut(), "{hook}").unwrap();
        let mut said = Vec::new();
        loop {
            let line = self.says();
            if line["done"] == hook[0] {
                return said;
            }
            said.push(line);
        }
    }

    fn event(&mut self, name: &str, properties: &Value) -> Vec<Value> {
        self.runs(&json!(["event", { "event": { "type": name, "properties": properties } }]))
    }

    fn idle(&mut self, session: &str) -> usize {
        let said = self.event("session.idle", &json!({ "sessionID": session }));
        assert!(
            said.iter().all(|line| line["text"].as_str().unwrap().starts_with("crewlog: you still hold ")),
            "{said:?}"
        );
        said.len()
    }

    /// A prompt of a person.
    fn prompt(&mut self, session: &str) {
        let parts = json!({ "parts": [{ "type": "text", "id": "prt_1", "text": "Work." }] });
        assert_eq!(self.runs(&json!(["chat.message", { "sessionID": session }, parts])), Vec::<Value>::new());
    }

    /// opencode asks its person for a permission.
    fn asks(&mut self, id: &str, permission: &str, metadata: &Value) {
        let patterns = ["p"];
        let asked = json!({ "id": id, "sessionID": "root", "permission": permission, "patterns": patterns, "metadata": metadata });
        assert_eq!(self.event("permission.asked", &asked), Vec::<Value>::new());
    }

    /// Waits until the inbox has `n` items, and returns them.
    #[track_caller]
    fn items(&self, n: usize) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let items = self.scene.run(&["inbox", "-o", "json"]).expect(0).json()["items"].as_array().unwrap().clone();
            if items.len() == n {
                return items;
            }
            assert!(begun.elapsed() < DEADLINE, "not {n}: {items:?}");
        }
    }

    fn n_sockets(&self) -> usize {
        fs::read_dir(folder_of_sockets(&self.scene)).unwrap().count()
    }
}

fn folder_of_sockets(scene: &Scene) -> PathBuf {
    scene.around().join(format!("crewlog-{}", rustix::process::getuid().as_raw()))
}

#[test]
fn the_last_session_is_woken_and_a_child_session_is_not() {
    let mut opencode = Opencode::new();
    opencode.prompt("earlier");
    opencode.prompt("root");
    opencode.prompt("child");
    opencode.scene.run(&["send", "ann", "--subject", "Freeze", "--body", "secret words"]).expect(0);
    let text = "crewlog: for you: 1 unread message; read_inbox, ask_person and next_task show them.";
    assert_eq!(opencode.says(), json!({ "prompt": "root", "text": text }));
    assert_eq!(opencode.n_sockets(), 1);
    opencode.runs(&json!(["dispose"]));
    assert_eq!(opencode.n_sockets(), 0);
}

#[test]
fn no_socket_opens_in_a_folder_that_others_can_enter() {
    for (mode, n_sockets) in [(0o755, 0), (0o700, 1)] {
        let scene = Scene::with_repository();
        let folder = folder_of_sockets(&scene);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        assert_eq!(Opencode::of(scene).n_sockets(), n_sockets, "{mode:o}");
    }
}

#[test]
fn a_turn_continues_once_after_each_prompt_of_its_person() {
    let mut opencode = Opencode::new();
    opencode.prompt("root");
    assert_eq!(opencode.idle("root"), 0, "nothing is held");
    opencode.server.call("reserve_paths", json!({ "paths": ["a.txt"], "reason": "the parser" }));
    assert_eq!(["child", "root", "root"].map(|session| opencode.idle(session)), [0, 1, 0]);
    opencode.prompt("root");
    assert_eq!(["root", "root"].map(|session| opencode.idle(session)), [1, 0]);
    // Its person has ended it, which opencode reports twice.
    opencode.prompt("root");
    opencode.event("session.error", &json!({ "sessionID": "root" }));
    assert_eq!(["root", "root"].map(|session| opencode.idle(session)), [0, 0]);
}

#[test]
fn a_permission_of_opencode_is_answered_from_the_inbox() {
    let mut opencode = Opencode::new();
    let elsewhere = "external_directory: {\"patterns\":[\"p\"],\"metadata\":{\"command\":\"ls /\"}}";
    for (number, permission, metadata, shown, answer, reply) in [
        ("a1", "bash", json!({ "command": "cargo test" }), "bash: cargo test", &["allow"][..], "once"),
        ("a2", "edit", json!({ "filepath": "/a.txt", "diff": "d" }), "edit: /a.txt", &["deny", "not now"], "reject"),
        ("a3", "external_directory", json!({ "command": "ls /" }), elsewhere, &["allow"], "once"),
    ] {
        opencode.asks("p", permission, &metadata);
        let shown = format!("{shown}\n(in {})", opencode.scene.folder().display());
        let item = opencode.items(1).remove(0);
        assert!(item["text"].as_str().unwrap().contains(&shown), "{item}");
        opencode.scene.run(&[&["answer", number], answer].concat()).expect(0);
        let said = opencode.says();
        assert_eq!((&said["id"], &said["body"]["reply"]), (&json!("p"), &json!(reply)), "{said}");
        let words = said["body"]["message"].as_str().unwrap_or_default();
        assert_eq!(words.ends_with(": not now"), reply == "reject", "{said}");
        opencode.items(0);
    }
}

#[test]
fn an_answer_in_opencode_ends_the_entry_of_that_permission() {
    let mut opencode = Opencode::new();
    let command = |command: &str| json!({ "command": command });
    opencode.asks("p1", "bash", &command("cargo test"));
    opencode.asks("p2", "bash", &command("cargo doc"));
    opencode.items(2);
    let replied = json!({ "sessionID": "root", "requestID": "p1", "reply": "once" });
    assert_eq!(opencode.event("permission.replied", &replied), Vec::<Value>::new());
    assert!(opencode.items(1)[0]["text"].as_str().unwrap().contains("cargo doc"));
    // A rule of a program answers at once: nobody is asked.
    opencode.asks("p3", "bash", &command("cargo fmt"));
    opencode.event("permission.replied", &json!({ "sessionID": "root", "requestID": "p3", "reply": "once" }));
    // Open entries end with opencode.
    opencode.runs(&json!(["experimental.chat.system.transform", { "sessionID": "root" }, { "system": [] }]));
    opencode.runs(&json!(["dispose"]));
    opencode.items(0);
    assert_eq!(opencode.scene.events_of_type("PersonAsked").len(), 2);
}
