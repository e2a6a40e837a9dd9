//! Attacks as data, each with its refusal and the state of the log afterwards.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod consent;
mod grants;
mod programs;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::scene::{Running, Scene};

const EVERYBODY: &str = "can be written by everybody";
const OTHERS: &str = "belongs to another account (user id 54321)";

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A file or folder that others may have written, in two ways; only root can give one away.
fn of_others(path: &Path, has: &mut dyn FnMut(&str)) {
    let before = path.metadata().unwrap().permissions().mode() & 0o777;
    mode(path, before | 0o002);
    has(EVERYBODY);
    mode(path, before);
    if is_root() {
        chown(path, Some(54_321), None).unwrap();
        has(OTHERS);
        chown(path, Some(0), None).unwrap();
    }
}

#[test]
fn files_of_others_decide_nothing_unless_they_are_named() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    scene.write("crewlog.toml", "project = \"mine\"\n");
    for name in [".crewlog", ".crewlog/log.db", ".git", "."] {
        of_others(&scene.path(name), &mut |why| {
            for words in [&["ls"] as &[&str], &["task", "add", "Two"], &["inbox"], &["work", "--no-input"]] {
                let ran = scene.run(words).expect(1);
                assert!(ran.stderr.contains(why) && ran.stderr.contains("--store"), "{name} {words:?}: {}", ran.stderr);
            }
            scene.run(&["ls", "--store", ".crewlog/log.db", "--config", "crewlog.toml"]).expect(0);
        });
    }
    of_others(&scene.path("crewlog.toml"), &mut |why| {
        let ran = scene.run(&["task", "add", "Two"]).expect(1);
        assert!(ran.stderr.contains(why) && ran.stderr.contains("--config"), "{}", ran.stderr);
        scene.run(&["task", "add", "Two", "--config", "crewlog.toml"]).expect(0);
    });
    for name in [".crewlog", ".crewlog/log.db", "."] {
        mode(&scene.path(name), scene.path(name).metadata().unwrap().permissions().mode() | 0o020);
    }
    scene.run(&["ls"]).expect(0);
}

#[test]
fn an_account_that_git_or_sudo_names_is_trusted() {
    if !is_root() {
        return;
    }
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    chown(scene.path(".crewlog"), Some(54_321), None).unwrap();
    scene.run(&["ls"]).expect(1).says(&[OTHERS]);
    Running::start(scene.crewlog(&["ls"]).env("SUDO_UID", "54321")).finish().expect(0);
    scene.git(&["config", "--global", "--add", "safe.directory", &scene.folder().to_string_lossy()]);
    scene.run(&["ls"]).expect(0);
    scene.git(&["config", "--global", "--add", "safe.directory", ""]);
    scene.run(&["ls"]).expect(1).says(&[OTHERS]);
}

/// One file in `/tmp` must not make a project of everything in it.
#[test]
fn the_search_in_folders_above_stops_at_those_of_others() {
    let scene = Scene::new();
    let open = scene.path("open");
    fs::create_dir_all(open.join("mine/deep")).unwrap();
    fs::create_dir(open.join(".crewlog")).unwrap();
    fs::write(open.join(".crewlog/log.db"), "bait").unwrap();
    fs::write(open.join("crewlog.toml"), "[executors.x]\nargv = [\"touch\", \"ran\"]\n").unwrap();
    mode(&open, 0o1777);
    let below = open.join("mine/deep");
    Running::start(&mut scene.crewlog_in(&below, &["task", "add", "One", "--new"])).finish().expect(0);
    assert!(below.join(".crewlog/log.db").exists());
    assert_eq!(fs::read_to_string(open.join(".crewlog/log.db")).unwrap(), "bait");
}

fn all_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            all_below(&entry.path(), found);
        }
    }
}

#[test]
fn new_files_are_for_their_account_alone() {
    let scene = Scene::with_repository();
    let (_, ran) = scene.plan("# Print\n1. Run `echo printed`\n");
    ran.expect(0);
    scene.run(&["export", "--to", "export.jsonl"]).expect(0);
    scene.run(&["db", "backup", "backup.db"]).expect(0);
    scene.run(&["serve", "tokens", "add", "ci"]).expect(0);
    let mut found = vec![scene.path(".crewlog"), scene.path("export.jsonl"), scene.path("backup.db")];
    all_below(&scene.path(".crewlog"), &mut found);
    // It only keeps git from removing the log.
    for path in found.iter().filter(|path| !path.starts_with(scene.path(".crewlog/.git"))) {
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
}

/// The variables by which each host shows that it runs a command.
const AGENTS: [(&str, &str); 10] = [
    ("AGENT_ID", "ann"),
    ("CLAUDECODE", "1"),
    ("CLAUDE_CODE_SESSION_ID", "s"),
    ("GEMINI_CLI", "1"),
    ("GEMINI_SESSION_ID", "s"),
    ("OPENCODE", "1"),
    ("OPENCODE_PID", "1"),
    ("CODEX_SESSION_ID", "s"),
    ("CODEX_THREAD_ID", "t"),
    ("CODEX_CI", "1"),
];

#[test]
fn what_only_a_person_may_do_is_refused_to_every_agent() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    scene.run(&["task", "add", "Two", "--after", "1"]).expect(0);
    scene.run(&["task", "ask", "backlog/2", "Which?"]).expect(0);
    let before = scene.events();
    for (name, value) in AGENTS {
        for words in [
            &["answer", "backlog/2", "this"] as &[&str],
            &["task", "withdraw", "backlog/2"],
            &["leases", "--force", "1", "--reason", "x"],
            &["serve", "tokens", "add", "x"],
            &["init", "--remove"],
        ] {
            let ran = Running::start(scene.crewlog(words).env(name, value)).finish();
            assert_eq!(ran.status.code(), Some(11), "{name} {words:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("a person has to do it"), "{name} {words:?}: {}", ran.stderr);
        }
    }
    assert_eq!(scene.events(), before);
}

#[test]
fn an_order_names_its_author() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    let ordered = Running::start(scene.crewlog(&["task", "add", "Two"]).env("AGENT_ID", "ann")).finish();
    ordered.expect(0);
    let by = |event: &Value| event["metadata"]["extra"]["by"].clone();
    let export = scene.run(&["export"]).expect(0).stdout.clone();
    let events: Vec<Value> = export.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let (account, host) = (by(&events[1])["account"].clone(), by(&events[1])["host"].clone());
    assert!(account.as_str().is_some_and(|name| !name.is_empty()) && host.is_string(), "{}", events[1]);
    let authors: Vec<Value> = events
        .iter()
        .filter(|event| ["TasksPlanned", "TasksAmended"].contains(&event["event_type"].as_str().unwrap_or_default()))
        .map(by)
        .collect();
    assert_eq!(
        authors,
        [
            json!({ "account": account, "host": host, "face": "cli" }),
            json!({ "account": account, "host": host, "face": "cli", "agent": "ann" })
        ]
    );
}

#[test]
fn a_question_is_settled_by_no_agent_by_no_way() {
    let agent = |scene: &Scene, words: &[&str]| Running::start(scene.crewlog(words).env("AGENT_ID", "ann")).finish();
    let plan = |scene: &Scene| {
        scene.write("plan.md", "# S\n\n- [ ] T01 Deploy?\n- [ ] T02 Run `touch deployed`\n");
        scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned()
    };
    let files = [
        "# S\n\n- [x] T01 Deploy?\n- [ ] T02 Run `touch deployed`\n",
        "# S\n\n- [ ] T02 Run `touch deployed`\n",
        "# S\n\n- [ ] T01 Deploy it now?\n- [ ] T02 Run `touch deployed`\n",
    ];
    for file in files {
        let scene = Scene::with_repository();
        let plan = plan(&scene);
        scene.write("plan.md", file);
        let synced = agent(&scene, &["plan", "sync", &plan, "--yes"]);
        let says = ["which only a person does", "the plan keeps it", "is not taken over"];
        assert!(says.iter().any(|says| synced.stderr.contains(says)), "{file}\n{}", synced.stderr);
        let _any = scene.run(&["work", "--until-idle"]);
        assert!(!scene.path("deployed").exists(), "{file}");
    }
    let scene = Scene::with_repository();
    let plan = plan(&scene);
    for words in [
        &["cancel", &format!("{plan}/T01")][..],
        &["task", "skip", &format!("{plan}/T01")],
        &["task", "ask", &format!("{plan}/T02"), "Sure?", "--default", "evil", "--after", "1s"],
    ] {
        agent(&scene, words).expect(11).says(&["an agent may not"]);
    }
    // An agent may have a terminal.
    let mut resumed = Running::start_on_terminal(scene.crewlog(&["resume", &plan]).env("AGENT_ID", "ann"));
    resumed.types("yes");
    resumed.finish().expect(5);
    assert!(!scene.path("deployed").exists());
    let answered = scene.run(&["answer", &format!("{plan}/T01"), "yes"]);
    answered.expect(0);
}
