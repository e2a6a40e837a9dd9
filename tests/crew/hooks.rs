//! `crewlog hook`: the real program with the inputs of the four agent programs and of git.

mod commits;
mod faults;
mod history;
mod observed;
mod odd_names;
mod offers;
mod paths;
mod permissions;
mod queue;
pub mod rig;
mod sessions;
mod trees;
mod witness;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::Instant;

use crewlog_planner::crew::messages::Message;
use serde_json::{Value, json};

use self::rig::{HOSTS, Rig, SIGNS, claude, context, edit, join, join_as, refused, timeless, wait_for, with};
use super::team::letter;
use crate::cli::scene::{Running, Scene};

#[test]
fn an_edit_under_anothers_lease_is_refused_in_every_dialect() {
    let rig = Rig::new();
    rig.reserves("bob", "a.txt", "rewrites it");
    for host in HOSTS {
        let reason = "this edit is refused: a.txt is leased by bob (\\\"rewrites it\\\") until T or longer. Possible now: \
                      work on other files; call reserve_paths with wait_seconds to get the file next; or ask bob with \
                      request_release.";
        let expected = match host {
            "gemini" => format!("{{\"decision\":\"deny\",\"reason\":\"{reason}\"}}"),
            _ => format!(
                "{{\"hookSpecificOutput\":{{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\
                 \"permissionDecisionReason\":\"{reason}\"}}}}"
            ),
        };
        assert_eq!(timeless(&rig.edits("ann", host, "a.txt")), expected, "{host}");
    }
    let refusals = rig.0.events_of_type("EditRefused");
    assert_eq!(refusals.len(), 1, "one for each agent, file and lease: {refusals:#?}");
    assert_eq!(rig.leases(), ["bob a.txt"]);
}

#[test]
fn an_allowed_edit_is_silent_and_takes_a_lease() {
    for host in HOSTS {
        let rig = Rig::new();
        assert_eq!(rig.edits("ann", host, "src/a.txt"), "", "{host}");
        assert_eq!(rig.edits("ann", host, "src/a.txt"), "", "{host}: twice");
        assert_eq!(rig.leases(), ["ann src/a.txt"], "{host}");
        assert_eq!(rig.0.events_of_type("LeasesGranted").len(), 1, "{host}");
        let other = if host == "claude" { "codex" } else { "claude" };
        assert!(refused(&rig.edits("bob", other, "src/a.txt")).contains("src/a.txt is leased by ann"), "{host}");
        rig.0.write("crewlog.toml", "[hooks]\nlease_on_edit = false\n");
        assert_eq!(rig.edits("bob", host, "b.txt"), "");
        assert_eq!(rig.leases(), ["ann src/a.txt"], "{host}: no lease is wanted");
    }
}

#[test]
fn an_edit_under_an_own_shared_lease_takes_one_of_its_own() {
    let rig = Rig::new();
    rig.shares("ann", "src/a.txt");
    assert_eq!(rig.edits("ann", "claude", "src/a.txt"), "");
    assert_eq!(rig.leases(), ["ann src/a.txt", "ann src/a.txt"]);
    let rig = Rig::new();
    rig.shares("ann", "src/a.txt");
    rig.shares("bob", "src/a.txt");
    assert!(refused(&rig.edits("ann", "claude", "src/a.txt")).contains("src/a.txt is leased by bob"));
}

#[test]
fn recorded_inputs_of_the_hosts_are_answered() {
    let rig = Rig::new();
    for host in ["claude", "codex", "gemini"] {
        let start = rig.hook(host, &rig.recorded(host, "session_start"));
        let text = context(&start);
        assert!(text.starts_with(&format!("crewlog: you are {host} in project ")), "{text}");
        for moment in ["prompt", "after_shell", "before_mcp", "after_mcp", "stop", "stop_again"] {
            assert_eq!(rig.hook(host, &rig.recorded(host, moment)), "", "{host} {moment}");
        }
    }
    assert_eq!(rig.hook("codex", &rig.recorded("codex", "before_patch_with_move")), "");
    assert_eq!(rig.leases(), ["codex new.txt", "codex a.txt", "codex sub/c.txt"]);
    let taken = rig.hook("gemini", &rig.recorded("gemini", "before_write"));
    assert!(taken.contains("new.txt is leased by codex"), "{taken}");
    assert_eq!(rig.hook("codex", &rig.recorded("codex", "stop")), "", "leases for edits end silently");
    assert!(rig.leases().is_empty());
}

#[test]
fn a_rename_in_a_patch_is_refused_on_either_side() {
    let rig = Rig::new();
    let patch = rig.recorded("codex", "before_patch_with_move");
    for taken in ["a.txt", "sub"] {
        let rig_of_bob = Rig::new();
        rig_of_bob.reserves("bob", taken, "");
        let text = patch.to_string().replace(rig.0.folder().to_str().unwrap(), rig_of_bob.0.folder().to_str().unwrap());
        let ran = rig_of_bob.raw(text.as_bytes(), Some("ann")).expect(0);
        assert!(refused(&ran.stdout).contains("leased by bob"), "{taken}");
    }
}

#[test]
fn every_name_of_a_file_is_the_same_file() {
    let rig = Rig::new();
    let folder = rig.0.folder().to_owned();
    fs::create_dir_all(folder.join("src")).unwrap();
    rig.0.write("src/caf\u{e9}.md", "x");
    symlink("src", folder.join("link")).unwrap();
    symlink("src/caf\u{e9}.md", folder.join("alias.md")).unwrap();
    rig.reserves("bob", "src/caf\u{e9}.md", "");
    let absolute = folder.join("src/caf\u{e9}.md");
    for path in [
        "src/caf\u{e9}.md",
        "src/cafe\u{301}.md",
        "src//caf\u{e9}.md",
        "./src/../src/caf\u{e9}.md",
        "link/caf\u{e9}.md",
        "alias.md",
        absolute.to_str().unwrap(),
    ] {
        assert!(refused(&rig.edits("ann", "claude", path)).contains("leased by bob"), "{path}");
    }
    // The target of the link does not exist yet.
    symlink("new.md", folder.join("soon.md")).unwrap();
    symlink("./newdir", folder.join("soon")).unwrap();
    rig.reserves("bob", "new.md", "");
    rig.reserves("bob", "newdir/a.md", "");
    for path in ["soon.md", "soon/a.md"] {
        assert!(refused(&rig.edits("ann", "claude", path)).contains("leased by bob"), "{path}");
    }
    for free in ["src/other.md", "src/caf\u{e9}.mdx", "soon/b.md"] {
        assert_eq!(rig.edits("ann", "claude", free), "", "{free}");
    }
}

#[test]
fn files_that_git_ignores_or_outside_pass_without_a_lease() {
    let rig = Rig::new();
    rig.0.write(".gitignore", "target/\n*.log\n");
    rig.reserves("bob", "**/*.log", "");
    rig.reserves("bob", "tracked.log", "");
    let outside = rig.0.around().join("outside.txt");
    for path in ["target/x", "a.log", "target/deep/b.log", ":(top)x.log", outside.to_str().unwrap()] {
        assert_eq!(rig.edits("ann", "claude", path), "", "{path}");
    }
    assert_eq!(rig.leases(), ["bob **/*.log", "bob tracked.log"]);
    rig.0.write("tracked.log", "x");
    rig.0.git(&["add", "-f", "tracked.log"]);
    assert!(refused(&rig.edits("ann", "claude", "tracked.log")).contains("bob"), "a tracked file is not ignored");
}

#[test]
fn shell_commands_are_refused_by_the_files_they_name() {
    let rig = Rig::new();
    rig.0.write("a.txt", "a");
    rig.0.write("b.txt", "b");
    fs::create_dir(rig.0.path("dir")).unwrap();
    rig.reserves("bob", "a.txt", "");
    rig.reserves("bob", "dir/b.txt", "");
    for command in [
        "echo x > a.txt",
        "sed -i s/a/b/ a.txt",
        "rm -rf *",
        "rm -rf .",
        "git restore .",
        "mv b.txt dir",
        "cp b.txt a.txt",
        "cd dir && rm b.txt",
        "rm *.txt",
        "rm -rf ..",
        "rm -rf ../*",
        "cd .. && rm -rf *",
        "mv .. /tmp/q",
        "git checkout -- '*.txt'",
        "cd dir && git restore :/",
        &format!("rm -rf {}", rig.0.folder().display()),
    ] {
        assert!(refused(&rig.shell("ann", command)).contains("leased by bob"), "{command}");
    }
    assert_eq!(rig.leases(), ["bob a.txt", "bob dir/b.txt"], "a refused command leases nothing");
    for command in ["cat a.txt", "cp a.txt c.txt", "mv b.txt dir/c.txt", "python a.py", "ls > /dev/null", "rm ../*.log"]
    {
        assert_eq!(rig.shell("ann", command), "", "{command}");
    }
    assert_eq!(rig.shell("ann", "mv b.txt new"), "");
    assert!(!rig.leases().contains(&"ann new/b.txt".to_owned()), "{:?}", rig.leases());
}

#[test]
fn a_commit_is_refused_when_its_index_has_files_of_others() {
    let rig = Rig::new();
    rig.0.write("a.txt", "a\n");
    rig.0.git(&["add", "a.txt"]);
    rig.0.git(&["commit", "-qm", "a"]);
    rig.0.git(&["mv", "a.txt", "b.txt"]);
    assert_eq!(rig.shell("ann", "git commit -m x"), "");
    rig.reserves("bob", "a.txt", "");
    let reason = refused(&rig.shell("ann", "git commit -m x"));
    assert!(
        reason.starts_with("this commit is refused: it changes files leased by others: a.txt is leased by bob"),
        "{reason}"
    );
    assert_eq!(rig.shell("bob", "git commit -m x"), "", "its own lease");
    // A repository below this one has different files with the same names.
    rig.0.git(&["init", "-q", "sub"]);
    rig.0.write("sub/a.txt", "a\n");
    rig.0.git(&["-C", "sub", "add", "a.txt"]);
    assert_eq!(rig.shell("ann", "cd sub && git commit -m x"), "");
}

#[test]
fn the_hook_of_git_stops_a_commit_of_files_of_others() {
    let rig = Rig::new();
    rig.0.write("a.txt", "a\n");
    rig.0.git(&["add", "a.txt"]);
    let pre_commit = |agent: Option<&str>| {
        let mut command = rig.command(rig.0.folder(), &["hook", "pre-commit"]);
        Running::start(command.envs(agent.map(|agent| ("AGENT_ID", agent)))).finish()
    };
    pre_commit(None).expect(0);
    rig.reserves("bob", "a.txt", "");
    pre_commit(Some("bob")).expect(0);
    let person = pre_commit(None).expect(1);
    person.says(&["a.txt is leased by bob", "`crewlog leases --force NUMBER --reason WHY`", "--no-verify"]);
    let agent = pre_commit(Some("ann")).expect(1);
    agent.says(&["a.txt is leased by bob", "reserve_paths"]);
    assert!(!agent.stderr.contains("--no-verify") && !agent.stderr.contains("--force"), "{}", agent.stderr);
    // Git runs it with a separate index.
    let hook = rig.0.path(".git/hooks/pre-commit");
    fs::write(&hook, format!("#!/bin/sh\nexec {} hook pre-commit\n", env!("CARGO_BIN_EXE_crewlog"))).unwrap();
    fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    rig.0.write("free.txt", "free\n");
    rig.0.git(&["add", "free.txt"]);
    let mut commit = Command::new("git");
    commit.args(["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"]).current_dir(rig.0.folder());
    for name in SIGNS {
        commit.env_remove(name);
    }
    let status = commit.stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(!status.success());
    assert!(commit.arg("free.txt").stderr(Stdio::null()).status().unwrap().success(), "only the free file");
}

#[test]
fn a_push_is_warned_and_never_stopped() {
    let rig = Rig::new();
    rig.0.write("a.txt", "a\n");
    rig.0.write("a\tb.txt", "");
    rig.0.git(&["add", "a.txt", "a\tb.txt"]);
    rig.0.git(&["commit", "-qm", "a"]);
    let head = rig.0.git(&["rev-parse", "HEAD"]);
    let zeros = "0".repeat(40);
    let push = |line: String| {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), line).unwrap();
        let mut command = rig.command(rig.0.folder(), &["hook", "pre-push", "origin", "url"]);
        Running::start(command.stdin(File::open(file.path()).unwrap())).finish().expect(0).stderr
    };
    let main = format!("refs/heads/main {} refs/heads/main {zeros}\n", head.trim());
    assert_eq!(push(main.clone()), "", "a path that cannot be leased is no risk");
    rig.reserves("bob", "a.txt", "");
    let warned = push(main);
    assert!(warned.contains("merge risk: a.txt is leased by bob"), "{warned}");
    assert_eq!(push(format!("(delete) {zeros} refs/heads/main {}\n", head.trim())), "");
}

#[test]
fn a_subagent_may_edit_under_its_parents_lease_and_leaves_at_its_end() {
    let rig = Rig::new();
    rig.reserves("ann", "src/**", "");
    let of_sub =
        |id: &str, event: &str| with(claude(rig.0.folder(), event), json!({ "agent_id": id, "agent_type": "Explore" }));
    let edit_of = |id: &str| {
        let tool = json!({ "tool_name": "Write", "tool_input": { "file_path": "src/a.rs", "content": "" } });
        with(of_sub(id, "PreToolUse"), tool)
    };
    assert_eq!(rig.hook("ann", &edit_of("a1b2")), "");
    assert_eq!(rig.leases(), ["ann src/**", "ann/explore-a1b2 src/a.rs"]);
    assert!(refused(&rig.hook("ann", &edit_of("c3d4"))).contains("leased by ann/explore-a1b2"), "a sibling");
    assert_eq!(rig.hook("ann", &of_sub("a1b2", "SubagentStop")), "");
    assert_eq!(rig.leases(), ["ann src/**"]);
    assert_eq!(rig.hook("ann", &edit_of("c3d4")), "");
}

#[test]
fn another_worktree_is_a_merge_risk_and_refused_only_if_strict() {
    let rig = Rig::new();
    let other = rig.0.around().join("other");
    rig.0.git(&["worktree", "add", "-q", other.to_str().unwrap()]);
    assert_eq!(rig.edits("bob", "claude", "a.txt"), "");
    let edit_there = |path: &str| {
        let input = with(edit("claude", &other, path), json!({ "session_id": "ann" }));
        rig.in_folder(&other, input.to_string().as_bytes(), Some("ann")).expect(0).stdout
    };
    let risk = context(&edit_there("a.txt"));
    assert!(risk.starts_with("crewlog: merge risk: bob leases a.txt in "), "{risk}");
    assert_eq!(edit_there("a.txt"), "", "once");
    // The same file, by its path in the other worktree, belongs to that worktree.
    let path = rig.0.path("a.txt");
    assert!(refused(&edit_there(path.to_str().unwrap())).contains("leased by bob"));
    fs::write(other.join("crewlog.toml"), "[hooks]\nstrict = true\n").unwrap();
    assert!(refused(&edit_there("a.txt")).contains("a.txt is leased by bob"));
}

#[test]
fn a_stop_is_refused_once_while_something_is_held() {
    let rig = Rig::new();
    assert_eq!(rig.edits("ann", "claude", "a.txt"), "");
    assert_eq!(rig.asks("ann", "Stop"), "", "a lease for an edit ends with the turn");
    assert!(rig.leases().is_empty());
    rig.reserves("ann", "src/**", "a task");
    assert_eq!(rig.edits("ann", "claude", "a.txt"), "");
    assert_eq!(
        rig.asks("ann", "Stop"),
        "{\"decision\":\"block\",\"reason\":\"crewlog: you still hold leases on src/** (release_paths frees them). \
         The tool leave gives everything back.\"}"
    );
    assert_eq!(rig.leases(), ["ann src/**"]);
    let again = with(claude(rig.0.folder(), "Stop"), json!({ "stop_hook_active": true }));
    assert_eq!(rig.hook("ann", &again), "");
    let gemini = rig.hook("ann", &rig.recorded("gemini", "stop"));
    assert!(gemini.starts_with("{\"decision\":\"deny\",\"reason\":"), "{gemini}");
}

/// The process of these tests stands for an agent program that starts an MCP server and hooks.
#[test]
fn hooks_without_a_common_session_find_their_agent_by_the_process() {
    let rig = Rig::new();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let namespace = crewlog_executors::crew::process::pid_namespace();
    let session = format!("process:{host}:{namespace}:{}:{started}", std::process::id());
    rig.with_crew(async |crew, worktree| join_as(crew, "served", session.clone(), worktree).await);
    for (host, path) in [("gemini", "a.txt"), ("opencode", "b.txt"), ("claude", "c.txt")] {
        rig.raw(edit(host, rig.0.folder(), path).to_string().as_bytes(), None).expect(0);
    }
    assert_eq!(rig.leases(), ["served a.txt", "served b.txt", "claudecode-1 c.txt"]);
    // A server of another program may have it too, under the name of its launcher.
    rig.with_crew(async |crew, worktree| join_as(crew, "ann", format!("{session}:ann"), worktree).await);
    rig.edits("ann", "claude", "d.txt");
    assert_eq!(rig.leases().len(), 4);
    rig.asks("ann", "Stop");
    assert_eq!(rig.leases(), ["served a.txt", "served b.txt", "claudecode-1 c.txt"]);
    // If the hook joins first, the server finds it by the same session.
    let other = Rig::new();
    other.raw(edit("gemini", other.0.folder(), "a.txt").to_string().as_bytes(), None).expect(0);
    let joined = other.0.events_of_type("AgentJoined");
    assert_eq!((&joined[0]["agent"], &joined[0]["session"]), (&json!("geminicli-1"), &json!(session)));
}

#[test]
fn the_end_of_a_session_gives_everything_back() {
    let rig = Rig::new();
    let end = |session: &str| with(claude(rig.0.folder(), "SessionEnd"), json!({ "session_id": session }));
    let start = rig.raw(claude(rig.0.folder(), "SessionStart").to_string().as_bytes(), None).expect(0).stdout;
    assert!(context(&start).contains("you are claudecode-1 in"), "{start}");
    rig.raw(edit("claude", rig.0.folder(), "a.txt").to_string().as_bytes(), None).expect(0);
    assert_eq!(rig.leases(), ["claudecode-1 a.txt"]);
    // A program started below the agent has its name, and is another session.
    rig.hook("claudecode-1", &end("nested"));
    assert_eq!(rig.leases(), ["claudecode-1 a.txt"]);
    rig.raw(end("c1").to_string().as_bytes(), None).expect(0);
    assert!(rig.leases().is_empty());
    assert_eq!(rig.0.events_of_type("AgentLeft")[0]["note"], "its session ended");
}

#[test]
fn the_start_of_a_session_has_at_most_2000_characters_of_facts() {
    let rig = Rig::new();
    for number in 0..20 {
        rig.reserves(&format!("agent-{number:02}"), &format!("{}/{number}", "long".repeat(40)), "x");
    }
    let text = context(&rig.asks("ann", "SessionStart"));
    assert!(text.chars().count() <= 2_000, "{}", text.chars().count());
    for part in ["you are ann in project", "Present: agent-00 (codex): leases long", "12 more", "0 unread messages"] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn messages_are_counted_and_their_text_is_not_shown() {
    let rig = Rig::new();
    rig.asks("ann", "SessionStart");
    let send = || {
        rig.with_crew(async |crew, worktree| {
            let bob = join(crew, "bob", worktree).await.caller;
            crew.send(&bob, Message { body: "SECRET".into(), ..letter("bob", "ann", "SECRET") }).await.unwrap();
        });
    };
    send();
    let prompt = rig.asks("ann", "UserPromptSubmit");
    assert_eq!(context(&prompt), "crewlog: 1 unread message; read_inbox shows them.");
    assert_eq!(rig.asks("ann", "UserPromptSubmit"), "", "told once");
    send();
    let after = with(edit("claude", rig.0.folder(), "a.txt"), json!({ "hook_event_name": "PostToolUse" }));
    assert!(context(&rig.hook("ann", &after)).contains("2 unread messages"));
    assert_eq!(rig.0.events_of_type("UnleasedEdit")[0]["path"], "a.txt", "it was changed without a lease");
    let start = rig.asks("ann", "SessionStart");
    assert!(start.contains("2 unread messages") && !start.contains("SECRET"), "{start}");
}

#[test]
fn without_a_log_hooks_are_silent_and_make_none() {
    let scene = Scene::with_repository();
    let rig = Rig(scene);
    assert_eq!(rig.edits("ann", "claude", "a.txt"), "");
    assert!(!rig.0.path(".crewlog").exists());
}

#[test]
fn a_resident_process_answers_over_a_private_socket() {
    let rig = Rig::new();
    let resident = rig.resident();
    let socket = rig.socket().unwrap();
    wait_for("its mode", || fs::metadata(&socket).is_ok_and(|found| found.permissions().mode() & 0o777 == 0o600));
    assert_eq!(rig.edits("ann", "claude", "a.txt"), "");
    assert!(refused(&rig.edits("bob", "codex", "a.txt")).contains("leased by ann"));
    resident.signal(rustix::process::Signal::INT);
    resident.finish().expect(130);
    assert_eq!(rig.socket(), None, "it is removed at the end");
}

#[test]
fn of_concurrent_edits_of_one_file_one_is_allowed() {
    let rig = Rig::new();
    let resident = rig.resident();
    let allowed = std::thread::scope(|scope| {
        let rig = &rig;
        let edit = |n: usize| scope.spawn(move || rig.edits(&format!("agent-{n}"), HOSTS[n % 4], "a.txt").is_empty());
        let edits: Vec<_> = (0..8).map(edit).collect();
        edits.into_iter().map(|edit| edit.join().unwrap()).filter(|is_allowed| *is_allowed).count()
    });
    assert_eq!((allowed, rig.leases().len()), (1, 1));
    resident.signal(rustix::process::Signal::INT);
    resident.finish().expect(130);
}

#[test]
fn a_resident_process_that_hangs_is_passed_over_in_time() {
    let rig = Rig::new();
    let resident = rig.resident();
    rig.reserves("bob", "a.txt", "");
    resident.signal(rustix::process::Signal::STOP);
    let begun = Instant::now();
    assert!(refused(&rig.edits("ann", "claude", "a.txt")).contains("leased by bob"));
    // The agent programs wait for 5 s.
    assert!((2..5).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    resident.signal(rustix::process::Signal::CONT);
    resident.signal(rustix::process::Signal::INT);
    resident.finish().expect(130);
}

#[test]
fn another_process_takes_over_when_the_listening_one_is_killed() {
    let rig = Rig::new();
    let first = rig.resident();
    let second = Running::start(&mut rig.command(rig.0.folder(), &["work", "--no-input"]));
    let socket = rig.socket().unwrap();
    let made = || fs::metadata(&socket).and_then(|found| found.modified()).ok();
    let of_first = made();
    first.killed();
    // The socket of a dead process is there: the hook opens the log itself.
    assert_eq!(rig.edits("ann", "claude", "a.txt"), "");
    wait_for("another socket", || made().is_some_and(|made| Some(made) != of_first));
    assert!(refused(&rig.edits("bob", "claude", "a.txt")).contains("leased by ann"));
    second.signal(rustix::process::Signal::INT);
    second.finish().expect(130);
}

#[test]
fn a_socket_with_a_long_path_is_in_the_runtime_folder() {
    let rig = Rig::new();
    let runtime = rig.0.around().join("run");
    fs::create_dir(&runtime).unwrap();
    let deep = rig.0.around().join("d".repeat(90));
    fs::create_dir(&deep).unwrap();
    let store = deep.join("log.db");
    let with_store = |words: &[&str]| {
        let mut command = rig.command(rig.0.folder(), words);
        command.env("CREWLOG_STORE", &store).env("XDG_RUNTIME_DIR", &runtime);
        command
    };
    let resident = Running::start(&mut with_store(&["work", "--no-input"]));
    let socket = || {
        let files = fs::read_dir(&runtime).unwrap().flatten().map(|entry| entry.path());
        files.into_iter().find(|path| path.extension().is_some_and(|end| end == "sock"))
    };
    let has_socket = || socket().is_some();
    // A socket is there a moment before somebody listens.
    wait_for("a listener", || socket().is_some_and(|path| std::os::unix::net::UnixStream::connect(path).is_ok()));
    resident.signal(rustix::process::Signal::STOP);
    let begun = Instant::now();
    let file = rig.0.around().join("edit.json");
    fs::write(&file, edit("claude", rig.0.folder(), "a.txt").to_string()).unwrap();
    Running::start(with_store(&["hook"]).stdin(File::open(&file).unwrap())).finish().expect(0);
    assert!(begun.elapsed().as_secs() >= 2, "the hook has asked it: {:?}", begun.elapsed());
    resident.signal(rustix::process::Signal::CONT);
    resident.signal(rustix::process::Signal::INT);
    resident.finish().expect(130);
    assert!(!has_socket());
}

#[test]
fn a_change_that_no_hook_saw_is_recorded_without_a_culprit() {
    let rig = Rig::new();
    let resident = rig.resident();
    rig.reserves("bob", "leased.txt", "");
    // The watch begins a moment after the socket.
    wait_for("a record", || {
        rig.0.write("free.txt", format!("{:?}", Instant::now()));
        rig.0.write("leased.txt", "x");
        !rig.0.events_of_type("UnleasedEdit").is_empty()
    });
    let seen = rig.0.events_of_type("UnleasedEdit");
    assert_eq!((&seen[0]["path"], &seen[0]["agent"]), (&json!("free.txt"), &Value::Null));
    resident.signal(rustix::process::Signal::INT);
    resident.finish().expect(130);
}

#[test]
fn secrets_of_hooks_and_commands_are_redacted_before_they_are_appended() {
    // A short value occurs in any text, so it is no secret.
    let scene = Scene::with_repository().with_env("DEPLOY_TOKEN", "hunter2hunter2").with_env("INITIAL", "a");
    let rig = Rig(scene);
    rig.0.run(&["init"]).expect(0);
    rig.0.write("crewlog.toml", "[secrets]\npatterns = [\"sk-[a-z0-9]+\"]\nenv = [\"DEPLOY_TOKEN\", \"INITIAL\"]\n");
    let secret = "sk-abc1 hunter2hunter2";
    let prompt = with(claude(rig.0.folder(), "UserPromptSubmit"), json!({ "prompt": secret }));
    let content = json!({ "file_path": "a.txt", "content": secret });
    let write = with(claude(rig.0.folder(), "PreToolUse"), json!({ "tool_name": "Write", "tool_input": content }));
    rig.hook("ann", &write);
    rig.hook("ann", &prompt);
    rig.hook("ann", &rig::shell(rig.0.folder(), &format!("curl -H '{secret}' > b.txt")));
    rig.0.run(&["send", "ann", "--subject", secret, "--body", secret]).expect(0);
    let (plan, ran) = rig.0.plan(&format!("# About {secret}\n\n- Run `printf '%s' \"$DEPLOY_TOKEN\"`\n"));
    ran.expect(0);
    // The metadata of events has the commands that people gave.
    rig.0.run(&["task", "add", secret, "--reason", secret]).expect(0);
    rig.0.run(&["plan", "set", "backlog", "retry.transient.count=1", "--reason", secret]).expect(0);
    rig.0.run(&["cancel", "backlog/1", "--reason", secret]).expect(0);
    assert_eq!(rig.0.events_of_type("MessageSent")[0]["message"]["body"], "[redacted] [redacted]");
    assert_eq!(rig.0.show(&plan)["tasks"][0]["result"], "[redacted]");
    let log = rig.0.run(&["export"]).expect(0).stdout;
    assert!(!log.contains("sk-abc1") && !log.contains("hunter2"), "{log}");
}
