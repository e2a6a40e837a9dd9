//! Two sessions under one name, and a program that dies. A program here is a shell that starts hooks.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::rig::{Rig, claude, edit, join_as, join_with, profile, refused, with};
use crate::cli::scene::{Running, named_pipe};

/// Starts a program that acts as ann. `{NAME}` in its script runs a hook with this input, `{program}` is the program.
fn program(rig: &Rig, script: &str, inputs: &[(&str, Value)]) -> Running {
    let program = rig.0.around().join("agent");
    let _ = symlink("/bin/sh", &program);
    let mut script = script.replace("{program}", program.to_str().unwrap());
    for (name, input) in inputs {
        let file = rig.0.path(format!("../{name}.json"));
        fs::write(&file, input.to_string()).unwrap();
        let hook = format!("{} hook < {}", env!("CARGO_BIN_EXE_crewlog"), file.display());
        script = script.replace(&format!("{{{name}}}"), &hook);
    }
    let hook = rig.command(rig.0.folder(), &[]);
    let mut command = Command::new(program);
    command.args(["-c", &script]).current_dir(rig.0.folder());
    for (name, value) in hook.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Running::start(command.env("AGENT_ID", "ann").stdin(Stdio::piped()))
}

fn of(rig: &Rig, session: &str, event: &str) -> Value {
    with(claude(rig.0.folder(), event), json!({ "session_id": session }))
}

/// Runs a hook of a session of ann outside of her program.
fn older(rig: &Rig, input: &Value) -> String {
    rig.raw(input.to_string().as_bytes(), Some("ann")).expect(0).stdout
}

fn edit_of(rig: &Rig, session: &str, path: &str) -> Value {
    with(edit("claude", rig.0.folder(), path), json!({ "session_id": session }))
}

#[test]
fn a_killed_program_frees_its_files() {
    for resident in [false, true] {
        let rig = Rig::new();
        let resident = resident.then(|| rig.resident());
        let inputs = [("edit", edit_of(&rig, "s1", "a.txt"))];
        let mut ann = program(&rig, "{edit} && echo leased && kill -STOP $$", &inputs);
        ann.stdout.until("leased");
        assert!(refused(&rig.edits("bob", "codex", "a.txt")).contains("a.txt is leased by ann"));
        ann.killed();
        assert_eq!(rig.edits("bob", "codex", "a.txt"), "");
        assert_eq!(rig.leases(), ["bob a.txt"]);
        assert_eq!(rig.0.events_of_type("AgentLost")[0]["is_dead"], true);
        if let Some(resident) = resident {
            resident.signal(Signal::INT);
            resident.finish().expect(130);
        }
    }
}

#[test]
fn a_dead_program_stops_no_commit_of_a_person() {
    let rig = Rig::new();
    program(&rig, "{edit}; exit 0", &[("edit", edit_of(&rig, "s1", "a.txt"))]).finish().expect(0);
    rig.0.write("a.txt", "a");
    rig.0.git(&["add", "a.txt"]);
    Running::start(&mut rig.command(rig.0.folder(), &["hook", "pre-commit"])).finish().expect(0);
    assert!(rig.leases().is_empty());
}

#[test]
fn a_session_that_goes_on_elsewhere_is_not_dead() {
    for resumed in ["start", "edit"] {
        let rig = Rig::new();
        let inputs = [("start", of(&rig, "s1", "SessionStart")), ("edit", edit_of(&rig, "s1", "a.txt"))];
        program(&rig, "{start} && {edit}", &inputs).finish().expect(0);
        let mut resumed = program(&rig, &format!("{{{resumed}}} && echo resumed && kill -STOP $$"), &inputs);
        resumed.stdout.until("resumed");
        assert!(refused(&rig.edits("bob", "codex", "a.txt")).contains("a.txt is leased by ann"));
        resumed.killed();
        assert_eq!(rig.edits("bob", "codex", "a.txt"), "");
    }
}

/// The program of session s1 has ended, and that of s2 runs.
fn superseded(rig: &Rig) -> Running {
    let of_sub = with(edit_of(rig, "s1", "sub.txt"), json!({ "agent_id": "a1", "agent_type": "Explore" }));
    let session = |session: &str, path: &str| {
        [("start", of(rig, session, "SessionStart")), ("edit", edit_of(rig, session, path)), ("sub", of_sub.clone())]
    };
    program(rig, "{start} && {edit} && {sub}; exit 0", &session("s1", "a.txt")).finish().expect(0);
    let mut second = program(rig, "{start} && {edit} && echo runs && read line", &session("s2", "b.txt"));
    second.stdout.until("you are ann");
    second.stdout.until("runs");
    assert_eq!(rig.leases(), ["ann a.txt", "ann/explore-a1 sub.txt", "ann b.txt"]);
    second
}

#[test]
fn a_newer_session_of_a_name_takes_over() {
    let rig = Rig::new();
    rig.0.write("a.txt", "a");
    rig.0.git(&["add", "a.txt"]);
    let _second = superseded(&rig);
    let joined = rig.0.events_of_type("AgentJoined");
    assert_eq!((joined.len(), &joined[2]["supersedes"]), (3, &json!(true)));
    let reason = refused(&older(&rig, &edit_of(&rig, "s1", "a.txt")));
    assert!(reason.contains("a.txt is leased by ann"), "it is another agent now: {reason}");
    assert_eq!(older(&rig, &edit_of(&rig, "s1", "c.txt")), "");
    assert_eq!(rig.leases(), ["ann a.txt", "ann b.txt", "ann-2 c.txt"]);
    for event in ["UserPromptSubmit", "Stop", "SessionEnd"] {
        assert_eq!(older(&rig, &of(&rig, "s1", event)), "", "{event}");
    }
    assert_eq!(rig.leases(), ["ann a.txt", "ann b.txt"]);
}

#[test]
fn a_live_agents_name_is_not_given_to_another_session() {
    let rig = Rig::new();
    let session = |session: &str, path: &str| {
        [("start", of(&rig, session, "SessionStart")), ("edit", edit_of(&rig, session, path))]
    };
    let script = "{start} && {edit} && echo runs && read line";
    let mut first = program(&rig, script, &session("s1", "a.txt"));
    first.stdout.until("runs");
    let mut second = program(&rig, script, &session("s2", "b.txt"));
    second.stdout.until("you are ann-2");
    second.stdout.until("runs");
    assert_eq!(rig.leases(), ["ann a.txt", "ann-2 b.txt"]);
    first.killed();
    second.killed();
}

#[test]
fn a_superseded_program_commits_no_file_of_the_newer_one() {
    let rig = Rig::new();
    rig.0.write("b.txt", "b");
    rig.0.git(&["add", "b.txt"]);
    let commit =
        || Running::start(rig.command(rig.0.folder(), &["hook", "pre-commit"]).env("AGENT_ID", "ann")).finish();
    let second = superseded(&rig);
    commit().expect(1).says(&["b.txt is leased by ann"]);
    second.killed();
    commit().expect(0);
}

#[test]
fn a_superseded_session_goes_on_under_another_name() {
    let rig = Rig::new();
    let _second = superseded(&rig);
    rig.with_crew(async |crew, worktree| join_as(crew, "bob", "s1".to_owned(), worktree).await);
    assert_eq!(older(&rig, &edit_of(&rig, "s1", "c.txt")), "");
    assert!(rig.leases().contains(&"bob c.txt".to_owned()));
    assert_eq!(older(&rig, &of(&rig, "s1", "Stop")), "");
    assert!(!rig.leases().contains(&"bob c.txt".to_owned()));
}

#[test]
fn a_session_takes_the_name_of_a_dead_program() {
    let rig = Rig::new();
    program(&rig, "{edit}; exit 0", &[("edit", edit_of(&rig, "s1", "a.txt"))]).finish().expect(0);
    assert_eq!(older(&rig, &edit_of(&rig, "s2", "a.txt")), "");
    assert_eq!(rig.0.events_of_type("AgentJoined")[1]["session"], "s2");
}

#[test]
fn a_turn_ends_in_another_session_of_its_program() {
    let rig = Rig::new();
    let inputs = [
        ("edit", edit_of(&rig, "s1", "a.txt")),
        ("start-2", of(&rig, "s2", "SessionStart")),
        ("edit-2", edit_of(&rig, "s2", "b.txt")),
        ("stop-2", of(&rig, "s2", "Stop")),
    ];
    program(&rig, "{edit} && {start-2} && {edit-2} && {stop-2}; exit 0", &inputs).finish().expect(0);
    assert!(rig.leases().is_empty());
    assert_eq!(rig.0.events_of_type("AgentJoined").len(), 1);
}

#[test]
fn a_server_of_the_session_hides_no_program() {
    let rig = Rig::new();
    let session = |session: &str, path: &str| {
        [("start", of(&rig, session, "SessionStart")), ("edit", edit_of(&rig, session, path))]
    };
    rig.with_crew(async |crew, worktree| {
        let mut profile = profile(worktree);
        profile.process = Some(crew.process("codex"));
        join_with(crew, "ann", "s1".to_owned(), profile).await;
    });
    program(&rig, "{edit}; exit 0", &session("s1", "a.txt")).finish().expect(0);
    let mut second = program(&rig, "{start}; read line", &session("s2", "b.txt"));
    second.stdout.until("you are ann");
    let reason = refused(&older(&rig, &edit_of(&rig, "s1", "a.txt")));
    assert!(reason.contains("a.txt is leased by ann"), "{reason}");
}

#[test]
fn a_nested_program_with_the_name_ends_nothing() {
    let rig = Rig::new();
    let inputs = [
        ("start", of(&rig, "s1", "SessionStart")),
        ("edit", edit_of(&rig, "s1", "a.txt")),
        ("stop", of(&rig, "s1", "Stop")),
        ("start-2", of(&rig, "s2", "SessionStart")),
        ("edit-2", edit_of(&rig, "s2", "b.txt")),
        ("stop-2", of(&rig, "s2", "Stop")),
        ("end-2", of(&rig, "s2", "SessionEnd")),
    ];
    let nested = "{program} -c '{start-2}; {edit-2}; {stop-2}; {end-2}; exit 0'";
    let script = format!("{{start}} && {{edit}} && {nested} && echo ended && read line && {{stop}}");
    let mut ann = program(&rig, &script, &inputs);
    ann.stdout.until("ended");
    assert_eq!(rig.leases(), ["ann a.txt", "ann b.txt"]);
    ann.types("");
    ann.finish().expect(0);
    assert!(rig.leases().is_empty());
    assert_eq!(rig.0.events_of_type("AgentJoined").len(), 1);
}

#[test]
fn a_message_that_a_hook_has_counted_is_offered() {
    let rig = Rig::new();
    rig.asks("ann", "SessionStart");
    let receipt = || {
        let listed = rig.0.run(&["inbox", "--agent", "ann", "-o", "json"]).json();
        listed["messages"][0]["receipt"].as_str().unwrap().to_owned()
    };
    rig.0.run(&["send", "ann", "--subject", "Hi", "--body", "there"]).expect(0);
    assert_eq!(receipt(), "sent");
    rig.asks("ann", "UserPromptSubmit");
    assert_eq!(receipt(), "offered");
}

/// Another process gives the session id of a live one: by hand, or since a session was resumed twice.
#[test]
fn a_session_in_two_processes_is_warned_and_neither_ends_the_other() {
    let rig = Rig::new();
    let inputs = [("edit", edit_of(&rig, "s1", "a.txt")), ("end", of(&rig, "s1", "SessionEnd"))];
    let go = named_pipe(&rig.0, "go");
    let mut ann = program(&rig, &format!("{{edit}} && echo leased && read go < {} && {{end}}", go.display()), &inputs);
    ann.stdout.until("leased");
    older(&rig, &of(&rig, "s1", "SessionEnd"));
    assert_eq!(rig.leases(), ["ann a.txt"], "a forged end");
    let (last, inputs) = (named_pipe(&rig.0, "last"), [("start", of(&rig, "s1", "SessionStart")), inputs[1].clone()]);
    let mut second = program(&rig, &format!("{{start}}; echo; read go < {} && {{end}}", last.display()), &inputs);
    second.stdout.until("this session is open in another process too, and both are ann");
    second.stdout.until("\n");
    // The newer process is the recorded one now.
    fs::write(go, "go\n").unwrap();
    ann.finish().expect(0);
    assert_eq!(rig.leases(), ["ann a.txt"], "the end of the older process");
    fs::write(last, "go\n").unwrap();
    second.finish().expect(0);
    assert_eq!(rig.leases(), Vec::<String>::new());
}
