//! Scripts in the crew: commands under leases, things that are leased, and tasks that are claimed from the command line.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crewlog_executors::crew::scripts::Script;
use crewlog_planner::crew::leases::Request;
use crewlog_planner::crew::target::Target;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::hooks::rig::{edit, shell, wait_for, with};
use super::mcp::Client;
use super::team::{Team, joined};
use crate::cli::scene::{Gate, Ran, Running, Scene, named_pipe};
use crate::executors::rig::new_log;

/// A repository with a log on the backend of the tests.
struct Tree(Scene, #[expect(dead_code, reason = "it holds the log")] TempDir);

impl Tree {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scene = Scene::with_repository().with_env("CREWLOG_STORE", new_log(&folder));
        scene.run(&["init", "--no-hosts"]).expect(0);
        Self(scene, folder)
    }

    fn command(&self, folder: &Path, agent: &str, words: &[&str]) -> Command {
        let mut command = self.0.crewlog_in(folder, words);
        command.env("AGENT_ID", agent);
        command
    }

    /// Runs the program as an agent, or as nobody.
    fn run(&self, agent: &str, words: &[&str]) -> Ran {
        Running::start(&mut self.command(self.0.folder(), agent, words)).finish()
    }

    /// A command under leases that runs until it is let go.
    fn holding(&self, agent: &str, words: &[&str]) -> Holding {
        let mut gate = Gate::new(&self.0, "gate");
        let go = named_pipe(&self.0, "go");
        let script = format!("{}; read x < go", Gate::pass("gate"));
        let words = [&["lease"], words, &["--", "sh", "-c", &script]].concat();
        let running = Running::start(&mut self.command(self.0.folder(), agent, &words));
        gate.wait();
        Holding { running, gate, go }
    }

    /// `agent path`, and `agent path waits`.
    fn leases(&self) -> Vec<String> {
        let listed = self.0.run(&["leases", "-o", "json"]).expect(0).json();
        let text = |lease: &Value| {
            let waits = if lease["lease"].is_null() { " waits" } else { "" };
            format!("{} {}{waits}", lease["agent"].as_str().unwrap(), lease["path"].as_str().unwrap())
        };
        listed["leases"].as_array().unwrap().iter().map(text).collect()
    }

    fn present(&self) -> Vec<String> {
        let listed = self.0.run(&["agents", "-o", "json"]).expect(0).json();
        listed["agents"].as_array().unwrap().iter().map(|agent| agent["agent"].as_str().unwrap().to_owned()).collect()
    }

    /// The answer of the hook of a session of Claude Code.
    fn hook(&self, session: &str, input: Value) -> String {
        self.input(session, input);
        let mut hook = self.0.crewlog(&["hook"]);
        Running::start(hook.stdin(File::open(self.0.path("../input")).unwrap())).finish().expect(0).stdout
    }

    /// Writes the input of such a hook.
    fn input(&self, session: &str, input: Value) {
        let input = with(input, json!({ "session_id": session }));
        self.0.write("../input", input.to_string());
    }
}

struct Holding {
    running: Running,
    gate: Gate,
    go: PathBuf,
}

impl Holding {
    fn let_go(self) -> Ran {
        fs::write(&self.go, "go\n").unwrap();
        let ran = self.running.finish();
        clear(self.gate, &self.go);
        ran
    }

    /// Lets the command go whose program was killed.
    fn let_go_killed(self) {
        fs::write(&self.go, "go\n").unwrap();
        let ran = self.running.finish();
        assert_eq!(ran.status.signal(), Some(Signal::KILL.as_raw()));
        clear(self.gate, &self.go);
    }
}

/// Waits for the end of the command, and removes its pipes.
fn clear(gate: Gate, go: &Path) {
    gate.wait_until_free();
    for pipe in [go, &go.with_file_name("gate")] {
        fs::remove_file(pipe).unwrap();
    }
}

#[test]
fn the_exit_code_is_that_of_the_command_and_nothing_stays_behind() {
    let tree = Tree::new();
    let cases: [(&str, &[&str], i32, &str); 20] = [
        ("", &["a.txt", "--", "true"], 0, ""),
        ("", &["a.txt", "docs", "src/*.rs", "@port:5432", "--", "sh", "-c", "exit 7"], 7, ""),
        ("", &["a.txt", "--", "sh", "-c", "kill -KILL $$"], 137, ""),
        ("", &["a.txt", "--", "sh", "-c", "kill -TERM $$"], 143, ""),
        ("", &["--shared", "--reason", "reads", "a.txt", "--", "sh", "-c", "exit 9"], 9, ""),
        ("", &["a.txt", "--", "no-such-program"], 1, "no-such-program cannot be started"),
        ("", &["a.txt", "--", "./crewlog.toml.none"], 1, "cannot be started"),
        ("", &["a.txt", "true"], 2, "<COMMAND>"),
        ("", &["--", "true"], 2, "<FILE>"),
        ("", &["a.txt", "--"], 2, "<COMMAND>"),
        ("", &["a.txt", "--wait", "soon", "--", "true"], 2, "invalid duration"),
        ("", &["../a.txt", "--", "true"], 1, "outside the repository"),
        ("", &["**", "--", "true"], 1, "the whole repository"),
        ("", &["@port:", "--", "true"], 1, "of the form @KIND:NAME, as @port:5432"),
        ("", &["@:5432", "--", "true"], 1, "write ./@:5432 for a file"),
        ("", &["@port:54*", "--", "true"], 1, "of the form @KIND:NAME"),
        ("a b", &["a.txt", "--", "true"], 1, "AGENT_ID is \"a b\", no name for an agent"),
        ("root", &["a.txt", "--", "true"], 1, "AGENT_ID is \"root\", no name for an agent"),
        ("ann/scout", &["a.txt", "--", "true"], 1, "only its parent starts it"),
        ("ann", &["a.txt", "--", "sh", "-c", "exit 3"], 3, ""),
    ];
    for (agent, words, code, says) in cases {
        let ran = tree.run(agent, &[&["lease"], words].concat()).expect(code);
        ran.says(&[says]);
        assert!(!says.is_empty() || ran.stderr.is_empty(), "{words:?}: {}", ran.stderr);
        assert_eq!((tree.leases(), tree.present()), (Vec::<String>::new(), Vec::new()), "{agent} {words:?}");
    }
}

#[test]
fn a_refusal_names_the_holder_the_file_the_reason_and_the_end() {
    let tree = Tree::new();
    let held = tree.holding("ann", &["a.txt", "docs", "@db:test", "--reason", "moves it"]);
    assert_eq!(tree.leases(), ["ann a.txt", "ann docs", "ann @db:test"]);
    for (words, file) in [
        (&["a.txt"] as &[&str], "a.txt"),
        (&["b.txt", "*.txt"], "a.txt"),
        (&["--shared", "docs/page.md"], "docs"),
        (&["@db:test"], "@db:test"),
    ] {
        let ran = tree.run("", &[&["lease"], words, &["--", "touch", "ran"]].concat()).expect(9);
        ran.says(&[
            file,
            " is leased by ann",
            "(\"moves it\") until 20",
            "--wait 10m",
            "crewlog",
            "send ann --subject",
        ]);
        assert_eq!(tree.present(), ["ann"], "a script that is refused leaves");
    }
    assert!(!tree.0.path("ran").exists(), "all or nothing");
    tree.run("", &["lease", "b.txt", "@db:test2", "--", "true"]).expect(0);
    let denied = tree.hook("c1", edit("claude", tree.0.folder(), "a.txt"));
    assert!(denied.contains("deny") && denied.contains("leased by ann"), "{denied}");
    held.let_go().expect(0);
    tree.run("", &["lease", "a.txt", "docs", "@db:test", "--", "true"]).expect(0);

    let shared = tree.holding("ann", &["--shared", "a.txt"]);
    tree.run("", &["lease", "--shared", "a.txt", "--", "true"]).expect(0);
    tree.run("", &["lease", "a.txt", "--", "true"]).expect(9);
    shared.let_go().expect(0);
}

#[test]
fn a_signal_reaches_the_command_and_the_leases_are_released() {
    let tree = Tree::new();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let held = tree.holding("", &["a.txt"]);
        held.running.signal(signal);
        let _ = held.running.finish().expect(code);
        assert_eq!(tree.leases(), [""; 0], "{signal:?}");
        clear(held.gate, &held.go);
    }
    let mut gate = Gate::new(&tree.0, "gate");
    named_pipe(&tree.0, "go");
    let script = format!("trap 'exit 5' TERM; exec 8<>go; {}; read x <&8", Gate::pass("gate"));
    let running = tree.0.start(&["lease", "a.txt", "--", "sh", "-c", &script]);
    gate.wait();
    running.signal(Signal::TERM);
    let _ = running.finish().expect(5);
    assert_eq!(tree.leases(), [""; 0]);
}

#[test]
fn the_leases_of_a_killed_script_end_at_once() {
    let tree = Tree::new();
    for agent in ["", "ann"] {
        let held = tree.holding(agent, &["a.txt", "@port:5432"]);
        held.running.kill();
        // The kernel needs a moment to end the process.
        tree.run("", &["lease", "a.txt", "@port:5432", "--wait", "2m", "--", "true"]).expect(0);
        held.let_go_killed();
    }
}

#[test]
fn a_script_waits_in_the_queue_as_long_as_it_lives() {
    let tree = Tree::new();
    let held = tree.holding("ann", &["a.txt"]);
    tree.run("", &["lease", "a.txt", "--wait", "10ms", "--", "true"]).expect(9).says(&["a.txt is leased by ann"]);
    assert_eq!(tree.leases(), ["ann a.txt"], "it waits no longer");
    let first = Running::start(&mut tree.command(
        tree.0.folder(),
        "bob",
        &["lease", "a.txt", "--wait", "2m", "--", "touch", "1"],
    ));
    wait_for("a waiting request", || tree.leases().contains(&"bob a.txt waits".to_owned()));
    let second = Running::start(&mut tree.command(
        tree.0.folder(),
        "cyd",
        &["lease", "a.txt", "--wait", "2m", "--", "cat", "2"],
    ));
    let third = tree.0.start(&["lease", "a.txt", "--wait", "2m", "--", "cp", "2", "3"]);
    let fourth = tree.0.start(&["lease", "a.txt", "--wait", "2m", "--", "true"]);
    wait_for("four waiting requests", || tree.leases().len() == 5);
    first.killed();
    fourth.signal(Signal::INT);
    let _ = fourth.finish().expect(130);
    tree.0.write("2", "two");
    held.let_go().expect(0);
    assert_eq!(second.finish().expect(0).stdout, "two");
    let _ = third.finish().expect(0);
    assert_eq!(tree.0.read("3"), "two");
    assert!(!tree.0.path("1").exists(), "the place of a killed process is nobody's");
    tree.run("", &["lease", "a.txt", "--", "true"]).expect(0);
    assert_eq!(tree.leases(), [""; 0]);
}

#[test]
fn what_a_command_starts_acts_as_its_agent() {
    let tree = Tree::new();
    let program = env!("CARGO_BIN_EXE_crewlog");
    tree.input("c1", edit("claude", tree.0.folder(), "a.txt"));
    tree.0.write("a.txt", "a");
    let inner = format!(
        "set -e; echo $AGENT_ID; '{program}' hook < ../input; git add a.txt; '{program}' hook pre-commit
         '{program}' lease a.txt b.txt -- sh -c 'echo $AGENT_ID'; '{program}' leases -o jsonl | grep -c b.txt || true
         env -u AGENT_ID '{program}' hook pre-commit && exit 8; '{program}' answer a1 yes && exit 8; exit 6"
    );
    for (agent, name) in [("", "script-1"), ("ann", "ann")] {
        let ran = tree.run(agent, &["lease", "a.txt", "--", "sh", "-c", &inner]).expect(6);
        assert_eq!(ran.stdout, format!("{name}\n{name}\n0\n"), "{}", ran.stderr);
        ran.says(&["a.txt is leased by", "error: an agent may not"]);
        assert_eq!(tree.present(), [""; 0]);
    }
    let mut client = Client::start(&mut tree.0.crewlog(&["lease", "a.txt", "--", program, "mcp"]));
    client.initialize("2025-06-18", "claude-code");
    let joined = client.call("join", json!({}));
    assert_eq!(joined["agent"], "script-1", "{joined}");
    let granted = client.call("reserve_paths", json!({ "paths": ["a.txt", "b.txt", "@port:1"] }));
    assert_eq!(granted["status"], "granted", "{granted}");
    assert_eq!(tree.leases(), ["script-1 a.txt", "script-1 b.txt", "script-1 @port:1"]);
    client.close();
    assert_eq!((tree.leases(), tree.present()), (Vec::<String>::new(), Vec::new()));
}

#[test]
fn a_script_takes_no_name_from_a_live_agent() {
    let tree = Tree::new();
    let held = tree.holding("ann", &["a.txt"]);
    tree.run("ann", &["lease", "a.txt", "--", "true"]).expect(9).says(&["a.txt is leased by ann"]);
    let other = tree.run("ann", &["lease", "b.txt", "--", "sh", "-c", "echo $AGENT_ID"]).expect(0);
    assert_eq!(other.stdout, "ann-2\n", "another program has the name");
    held.let_go().expect(0);

    // The program of this server is this test, which is above the command too.
    let mut bob = Client::named(&tree.0, "bob");
    bob.call("reserve_paths", json!({ "paths": ["b.txt"] }));
    let ran = tree.run("bob", &["lease", "b.txt", "c.txt", "--", "sh", "-c", "echo $AGENT_ID"]).expect(0);
    assert_eq!(ran.stdout, "bob\n");
    assert_eq!((tree.leases(), tree.present()), (vec!["bob b.txt".to_owned()], vec!["bob".to_owned()]));
    tree.run("", &["lease", "b.txt", "--", "true"]).expect(9);

    assert_eq!(tree.hook("c1", edit("claude", tree.0.folder(), "d.txt")), "");
    let mut below = tree.command(tree.0.folder(), "", &["lease", "d.txt", "--", "sh", "-c", "echo $AGENT_ID"]);
    let ran = Running::start(below.env("CLAUDE_CODE_SESSION_ID", "c1")).finish().expect(0);
    assert_eq!(ran.stdout, "claudecode-1\n", "a command that a session runs acts for it");
}

#[test]
fn a_thing_is_the_same_in_all_worktrees_and_no_file() {
    let tree = Tree::new();
    let other = tree.0.around().join("other");
    tree.0.git(&["worktree", "add", "-q", other.to_str().unwrap()]);
    let held = tree.holding("ann", &["@port:5432", "a.txt", "@db:x.rs"]);
    let there = |words: &[&str]| {
        let words = [&["lease"], words, &["--", "true"]].concat();
        Running::start(&mut tree.command(&other, "", &words)).finish()
    };
    there(&["@port:5432"]).expect(9).says(&["@port:5432 is leased by ann"]);
    there(&["a.txt", "@port:5433", "@Port:5432", "./@port:5432"]).expect(0);
    for words in [&["*"] as &[&str], &["./@port:5432"], &["@port"], &["./@*"], &["**/*.rs"], &["@db:x"]] {
        if words != ["*"] {
            tree.run("", &[&["lease"], words, &["--", "true"]].concat()).expect(0);
        }
    }
    for command in ["touch @port:5432", "rm ./@port:5432"] {
        assert_eq!(tree.hook("c1", shell(tree.0.folder(), command)), "", "{command}");
    }
    let leases = tree.leases();
    assert!(leases.contains(&"claudecode-1 ./@port:5432".to_owned()), "an edit leases such a file: {leases:?}");
    let listed = tree.0.run(&["leases", "@port:5432", "-o", "json"]).expect(0).json();
    assert_eq!((listed["leases"].as_array().unwrap().len(), &listed["leases"][0]["agent"]), (1, &json!("ann")));
    assert!(tree.0.run(&["why", "@port:5432"]).expect(0).stdout.contains("ann"));

    let mut bob = Client::named(&tree.0, "bob");
    let paths = json!({ "paths": ["@port:5432", "./@port:9", "@port:1"] });
    let checked = bob.call("check_paths", paths.clone());
    assert_eq!(
        (&checked["free"], &checked["blocked"][0]["path"]),
        (&json!(["./@port:9", "@port:1"]), &json!("@port:5432"))
    );
    assert_eq!(bob.call("reserve_paths", paths)["status"], "denied");
    assert_eq!(bob.call("reserve_paths", json!({ "paths": ["@port:1"] }))["status"], "granted");
    assert_eq!(bob.call("list_leases", json!({ "path": "@port:1" }))["leases"][0]["path"], "@port:1");
    assert_eq!(bob.call("release_paths", json!({ "paths": ["@port:1"] }))["released"].as_array().unwrap().len(), 1);
    let wrong = bob.call("reserve_paths", json!({ "paths": ["@port:a b"] }));
    assert!(wrong["message"].as_str().unwrap().contains("@KIND:NAME"), "{wrong}");

    tree.0.write("plan.md", "# Serve\n1. Run `touch served` (files: @port:5432)\n");
    let mut run = tree.0.start(&["run", "plan.md", "--yes"]);
    run.stderr.until("waits for its files: @port:5432 is held by ann");
    held.let_go().expect(0);
    let _ = run.finish().expect(0);
    assert!(tree.0.path("served").exists());
}

#[test]
fn a_thing_in_a_worktree_does_not_keep_git_from_changing_its_files() {
    let tree = Tree::new();
    let held = tree.holding("ann", &["@port:5432"]);
    assert_eq!(tree.hook("c1", shell(tree.0.folder(), "git reset --hard")), "");
    held.let_go().expect(0);
    let held = tree.holding("ann", &["a.txt"]);
    assert!(tree.hook("c1", shell(tree.0.folder(), "git reset --hard")).contains("deny"));
    held.let_go().expect(0);
}

#[test]
fn an_agent_claims_tasks_and_reports_on_them_from_the_command_line() {
    let tree = Tree::new();
    let one = tree.run("ann", &["task", "next"]).expect(4);
    one.says(&["no task is ready"]);
    assert_eq!(tree.present(), [""; 0]);
    tree.0.write("plan.md", "# Ship\n- [P] Write it (files: a.txt)\n- [P] Check it (files: a.txt)\n- [P] Paint it\n");
    let ran = tree.0.run(&["run", "plan.md", "--detach", "--yes"]).expect(0);
    let plan = ran.stdout.trim();
    let id = |n: u32| format!("{plan}/{n}");
    tree.run("", &["task", "next"]).expect(1).says(&["export AGENT_ID="]);
    tree.run("", &["task", "claim", &id(1)]).expect(1).says(&["export AGENT_ID="]);
    tree.run("ann", &["task", "claim", "nowhere/1"]).expect(4);
    let next = tree.run("ann", &["task", "next", "-o", "json"]).expect(0).json();
    let found = (&next["task"], &next["files"], &next["leases"][0]["path"]);
    assert_eq!(found, (&json!(id(1)), &json!(["a.txt"]), &json!("a.txt")));
    let text = tree.run("bob", &["task", "next"]).expect(0).stdout;
    assert!(text.starts_with(&format!("{}  Paint it\n", id(3))), "the files of the second are leased: {text}");
    let none = tree.run("cyd", &["task", "next", "-o", "json"]).expect(4);
    none.says(&["no task is ready", &format!("{}: a.txt is held by ann", id(2))]);
    assert_eq!((&none.json()["task"], &none.json()["why_not"][0]["task"]), (&Value::Null, &json!(id(2))));
    tree.run("cyd", &["task", "claim", &id(1)]).expect(9).says(&["claimed by ann"]);
    tree.run("cyd", &["task", "claim", &id(2)]).expect(9).says(&["a.txt is held by ann"]);
    assert_eq!(
        (tree.leases(), tree.present()),
        (vec!["ann a.txt".to_owned()], vec!["ann".to_owned(), "bob".to_owned()])
    );
    let again = tree.run("ann", &["task", "claim", &id(1), "-o", "json"]).expect(0).json();
    assert_eq!((&again["was_claimed"], &next["was_claimed"]), (&json!(true), &json!(false)));

    for (agent, words, code, says) in [
        ("cyd", &["done", &id(1)] as &[&str], 9, "claimed by ann"),
        ("", &["done", &id(1)], 9, "claimed by ann"),
        ("cyd", &["release", &id(1)], 1, "AGENT_ID names no agent that is here"),
        ("bob", &["release", &id(1)], 4, "claimed by ann"),
        ("ann", &["release", &id(1), "not today"], 0, ""),
        ("cyd", &["claim", &id(1)], 0, ""),
        ("cyd", &["fail", &id(1), "too hard"], 0, ""),
        ("bob", &["done", &id(3), "painted"], 0, ""),
    ] {
        tree.run(agent, &[&["task"], words].concat()).expect(code).says(&[says]);
    }
    assert_eq!((tree.leases(), tree.present()), (Vec::<String>::new(), Vec::new()), "who holds nothing leaves");
    let shown = tree.0.show(plan);
    assert_eq!((&shown["tasks"][0]["error"], &shown["tasks"][2]["result"]), (&json!("too hard"), &json!("painted")));
}

#[test]
fn a_task_stays_claimed_while_a_command_runs_for_it() {
    let tree = Tree::new();
    tree.0.run(&["task", "add", "Write it"]).expect(0);
    tree.run("ann", &["task", "next"]).expect(0);
    let held = tree.holding("ann", &["a.txt"]);
    tree.run("ann", &["lease", "a.txt", "--", "true"]).expect(0);
    tree.run("bob", &["lease", "a.txt", "--", "true"]).expect(9).says(&["a.txt is leased by ann"]);
    tree.run("bob", &["lease", "a.txt", "--wait", "10ms", "--", "true"]).expect(9);
    held.let_go().expect(0);
    tree.run("bob", &["lease", "a.txt", "--", "true"]).expect(0);
    tree.run("bob", &["task", "claim", "backlog/1"]).expect(9).says(&["claimed by ann"]);
    let waiting = tree.holding("bob", &["b.txt"]);
    let ann =
        Running::start(&mut tree.command(tree.0.folder(), "ann", &["lease", "b.txt", "--wait", "2m", "--", "true"]));
    waiting.let_go().expect(0);
    let _ = ann.finish().expect(0);
    tree.run("ann", &["task", "done", "backlog/1"]).expect(0);
}

#[tokio::test]
async fn the_leases_of_a_script_outlast_their_time_while_it_shows_that_it_lives() {
    // With the paused clock the time limits of a server's connection would run out.
    let team = Team::on_file();
    let (crew, other) = (Arc::new(team.process().await), team.process().await);
    let bob = joined(&other, "bob").await;
    let script = Arc::new(Script::of_command(&crew, Path::new("/")).await.unwrap());
    let request = |holder| Request {
        targets: vec![Target::thing("@port:5432").unwrap().unwrap()],
        holder,
        is_exclusive: true,
        ttl: Duration::from_secs(600),
        reason: String::new(),
        task: None,
        is_strict: false,
    };
    let taken = script.lease(&request(script.holder()), Duration::ZERO, std::future::pending()).await.unwrap();
    assert_eq!(taken.unwrap().len(), 1);
    let staying = tokio::spawn({
        let script = script.clone();
        async move { script.stay().await }
    });
    // While a blocking task runs, the paused clock does not advance on its own and run out the time of a write.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let blocking = tokio::task::spawn_blocking(move || ended.recv());
    tokio::time::pause();
    for _ in 0..15 {
        team.pass(60);
        let now = crew.store().now().0.to_string();
        let begun = Instant::now();
        while crew.store().cell("seen:p", "script-1").await.unwrap().unwrap().value != now {
            assert!(begun.elapsed() < Duration::from_secs(60), "it leaves a sign each minute");
            // Less than the time limit of a write.
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }
    drop(end);
    let _ = blocking.await.unwrap();
    tokio::time::resume();
    assert!(
        other.reserve(&bob, request(bob.holder()), crewlog_planner::crew::leases::Turn::Behind).await.is_err(),
        "15 minutes later"
    );
    staying.abort();
    team.pass(601);
    other.reserve(&bob, request(bob.holder()), crewlog_planner::crew::leases::Turn::Behind).await.unwrap();
}
