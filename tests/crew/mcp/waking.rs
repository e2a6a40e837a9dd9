//! An idle session of Claude Code is woken over its socket, and one of opencode over that of its plugin.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use crewlog_executors::crew::Crew;
use crewlog_executors::liveness::LivenessLock;
use crewlog_mq::EventStore;
use crewlog_planner::crew::asks::Answer;
use serde_json::{Value, json};

use super::{Client, until};
use crate::cli::scene::{DEADLINE, Running, Scene, named_pipe};

/// The socket of a session, whose program these tests stand for.
struct Socket {
    path: PathBuf,
    lines: Receiver<Value>,
}

impl Socket {
    fn of(scene: &Scene, pid: u32) -> Self {
        let path = scene.around().join(format!("{pid}.sock"));
        let listener = UnixListener::bind(&path).unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = sender.send(serde_json::from_str(&line).unwrap());
                }
            }
        });
        Self { path, lines }
    }

    /// The text of the next wake.
    fn text(&self) -> String {
        let line = self.lines.recv_timeout(DEADLINE).expect("a wake");
        assert_eq!(
            (&line["type"], &line["priority"], &line["message"]["role"]),
            (&json!("user"), &json!("next"), &json!("user"))
        );
        line["message"]["content"].as_str().unwrap().to_owned()
    }
}

fn session(scene: &Scene, name: &str, socket: &Socket) -> Client {
    scene.run(&["init", "--no-hosts"]).expect(0);
    let mut command = scene.crewlog(&["mcp"]);
    let mut client = Client::start(command.env("AGENT_ID", name).env("CLAUDE_CODE_MESSAGING_SOCKET", &socket.path));
    client.initialize("2025-06-18", "claude-code");
    client.call("join", json!({}));
    client
}

fn say(scene: &Scene, to: &str) {
    scene.run(&["send", to, "--subject", "Freeze", "--body", "secret words"]).expect(0);
}

/// A plan that a person gives to sessions, before there is one: the command line takes these tests for its program.
fn plan_for_sessions(scene: &Scene) -> String {
    scene.run(&["init", "--no-hosts"]).expect(0);
    scene.write("p.md", "- [ ] [P] Write the lexer\n- [ ] [P] Write the parser\n");
    let plan = scene.run(&["run", "p.md", "--yes", "--detach", "--quiet"]).expect(0).stdout.trim().to_owned();
    scene.run(&["plan", "set", &plan, "sessions=true"]).expect(0);
    plan
}

#[tokio::test]
async fn a_session_is_woken_by_a_count_and_again_once_it_has_read() {
    let scene = Scene::with_repository();
    let socket = Socket::of(&scene, std::process::id());
    let mut ann = session(&scene, "ann", &socket);
    say(&scene, "ann");
    assert_eq!(socket.text(), "crewlog: for you: 1 unread message; read_inbox, ask_person and next_task show them.");
    // One is outstanding.
    say(&scene, "ann");
    assert_eq!(ann.call("read_inbox", json!({ "mark_read": true }))["messages"].as_array().unwrap().len(), 2);
    ann.call("ask_person", json!({ "text": "Which port?" }));
    let project = ann.call("get_status", json!({}))["project"].as_str().unwrap().to_owned();
    // The command line takes these tests for the agent's program.
    let store = EventStore::open(scene.path(".crewlog/log.db").to_str().unwrap()).await.unwrap();
    let life = LivenessLock::begin(&scene.path(".crewlog/log.db-workers")).unwrap();
    let answer = Answer { by: "eve".into(), text: "8080".into(), is_granted: None };
    Crew::new(&store, &project, Arc::new(life)).answer(1, answer).await.unwrap();
    assert_eq!(socket.text(), "crewlog: for you: 1 answer; read_inbox, ask_person and next_task show them.");
    assert!(socket.lines.try_recv().is_err());
}

#[test]
fn a_session_is_woken_for_the_steps_that_a_person_gave_to_sessions() {
    let scene = Scene::with_repository();
    let socket = Socket::of(&scene, std::process::id());
    let plan = plan_for_sessions(&scene);
    let mut ann = session(&scene, "ann", &socket);
    scene.run(&["task", "add", "Write the tests", "--plan", &plan]).expect(0);
    assert_eq!(socket.text(), "crewlog: for you: 1 ready step; read_inbox, ask_person and next_task show them.");
    // The same step does not wake again, and neither does one that the session gives back.
    let id = ann.call("next_task", json!({}))["task"]["id"].clone();
    ann.call("update_task", json!({ "id": id, "status": "released" }));
    say(&scene, "ann");
    let text = socket.text();
    assert!(text.starts_with("crewlog: for you: 1 unread message, 1 ready step;"), "{text}");
}

/// One session is woken for a step: the first of those that have no task.
#[test]
fn a_session_with_a_task_keeps_no_other_from_the_next_step() {
    let scene = Scene::with_repository();
    let socket = Socket::of(&scene, std::process::id());
    let plan = plan_for_sessions(&scene);
    let mut abe = Client::of_another_program(&scene, "abe");
    assert_eq!(abe.call("next_task", json!({}))["status"], "claimed");
    let _ann = session(&scene, "ann", &socket);
    scene.run(&["plan", "set", &plan, "parallelism=3"]).expect(0);
    assert_eq!(socket.text(), "crewlog: for you: 1 ready step; read_inbox, ask_person and next_task show them.");
}

/// The receipt of the last message to an agent.
fn receipt(scene: &Scene, agent: &str) -> String {
    let listed = scene.run(&["inbox", "--agent", agent, "--all", "-o", "json"]).json();
    listed["messages"].as_array().unwrap().last().unwrap()["receipt"].as_str().unwrap().to_owned()
}

#[test]
fn a_message_is_sent_woken_for_and_read_only_by_its_reader() {
    let scene = Scene::with_repository();
    let socket = Socket::of(&scene, std::process::id());
    let mut ann = session(&scene, "ann", &socket);
    let mut bob = Client::of_another_program(&scene, "bob");
    bob.call("send_message", json!({ "to": ["ann"], "subject": "Hi", "body": "by an agent" }));
    assert_eq!(receipt(&scene, "ann"), "sent");
    say(&scene, "ann");
    socket.text();
    until(|| json!(receipt(&scene, "ann")), |receipt| receipt == "woken");
    ann.call("read_inbox", json!({ "mark_read": false }));
    assert_eq!(receipt(&scene, "ann"), "woken", "a look is no reading");
    ann.call("read_inbox", json!({}));
    assert_eq!(receipt(&scene, "ann"), "read");
}

#[test]
fn news_about_leases_wake_only_if_the_settings_say_so() {
    for (config, text) in [("wake = 'all'", "1 lease notice"), ("", "1 unread message")] {
        let scene = Scene::with_repository();
        scene.write("crewlog.toml", format!("[hooks]\n{config}\n"));
        let socket = Socket::of(&scene, std::process::id());
        let mut ann = session(&scene, "ann", &socket);
        ann.call("reserve_paths", json!({ "paths": ["a.rs"] }));
        let mut bob = Client::of_another_program(&scene, "bob");
        bob.call("request_release", json!({ "paths": ["a.rs"], "reason": "secret words" }));
        if config.is_empty() {
            say(&scene, "ann");
        }
        let woken = socket.text();
        assert!(woken.starts_with(&format!("crewlog: for you: {text};")), "{woken}");
    }
}

/// By the settings, the sender and the socket: true if it wakes.
#[test]
fn only_the_wanted_news_wake_and_only_the_own_program() {
    let own = std::process::id();
    for (config, pid, from_agent, is_woken) in [
        ("", own, false, true),
        ("", own, true, false),
        ("wake = 'all'", own, true, true),
        ("wake = 'off'", own, false, false),
        ("wakes_per_hour = 0", own, false, false),
        ("", own + 1, false, false),
    ] {
        let scene = Scene::with_repository();
        scene.write("crewlog.toml", format!("[hooks]\n{config}\n"));
        let socket = Socket::of(&scene, pid);
        let mut ann = session(&scene, "ann", &socket);
        let mut bob = Client::of_another_program(&scene, "bob");
        match from_agent {
            true => _ = bob.call("send_message", json!({ "to": ["ann"], "subject": "Hi", "body": "secret words" })),
            false => say(&scene, "ann"),
        }
        match (is_woken, from_agent) {
            (true, _) => assert!(!socket.text().contains("secret words"), "{config} {pid} {from_agent}"),
            (false, true) => {
                say(&scene, "ann");
                assert!(socket.text().contains("1 unread message;"), "the agent's alone does not count");
            }
            (false, false) => {
                ann.call("read_inbox", json!({}));
                assert!(socket.lines.try_recv().is_err(), "{config} {pid}");
            }
        }
    }
}

/// A shell stands for Codex's daemon, and a script for its command `queue`.
#[test]
fn a_thread_of_codexs_daemon_is_woken_by_its_queue_and_another_codex_is_not() {
    for (word, is_woken) in [("app-server", true), ("exec", false)] {
        let scene = Scene::with_repository();
        scene.run(&["init", "--no-hosts"]).expect(0);
        let (program, pipe) = (scene.around().join("codex"), named_pipe(&scene, "queued"));
        std::fs::copy("/bin/sh", &program).unwrap();
        scene.write("queue", format!("printf '%s\\n' \"$@\" >'{}'\n", pipe.display()));
        let server = scene.crewlog(&["mcp"]);
        let mut daemon = Command::new(program);
        daemon.args(["-c", "\"$0\" mcp; true"]).arg(server.get_program()).arg(word).current_dir(scene.folder());
        daemon.envs(server.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("AGENT_ID", "ann");
        let mut ann = Client::start(&mut daemon);
        ann.initialize("2025-06-18", "codex-mcp-client");
        ann.meta = json!({ "x-codex-turn-metadata": { "session_id": "01a22e71" } });
        ann.call("join", json!({}));
        say(&scene, "ann");
        if is_woken {
            let text = "crewlog: for you: 1 unread message; read_inbox, ask_person and next_task show them.";
            let queued = std::fs::read_to_string(pipe).unwrap();
            assert_eq!(queued.lines().collect::<Vec<_>>(), ["--thread", "01a22e71", "--message", text, "--resume"]);
        } else {
            ann.call("read_inbox", json!({}));
        }
    }
}

/// By its process: that of these tests has started the server, as opencode does.
#[test]
fn the_socket_of_a_plugin_is_used_only_if_the_own_program_listens_there() {
    const COUNTS_BYTES: &str =
        "require('net').createServer(stream => { let n = 0; stream.on('data', data => n += data.length)
        .on('end', () => console.log(n)) }).listen(process.argv[1], () => console.log('ready'))";
    for is_own in [true, false] {
        let scene = Scene::with_repository();
        scene.run(&["init", "--no-hosts"]).expect(0);
        let folder = scene.around().join(format!("crewlog-{}", rustix::process::getuid().as_raw()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join(format!("opencode-{}.sock", std::process::id()));
        let own = is_own.then(|| UnixListener::bind(&path).unwrap());
        let mut other = (!is_own).then(|| Running::start(Command::new("node").args(["-e", COUNTS_BYTES]).arg(&path)));
        other.iter_mut().for_each(|other| assert_eq!(other.stdout.line(), "ready"));
        let mut server = scene.crewlog(&["mcp"]);
        let mut ann = Client::start(server.env("AGENT_ID", "ann").env("XDG_RUNTIME_DIR", scene.around()));
        ann.initialize("2025-06-18", "opencode");
        ann.call("join", json!({}));
        say(&scene, "ann");
        if let Some(listener) = own {
            let line = std::io::read_to_string(listener.accept().unwrap().0).unwrap();
            let text = "crewlog: for you: 1 unread message; read_inbox, ask_person and next_task show them.";
            let expected = json!({ "directory": scene.folder().canonicalize().unwrap(), "text": text });
            assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
        }
        other.iter_mut().for_each(|other| assert_eq!(other.stdout.line(), "0"));
    }
}
