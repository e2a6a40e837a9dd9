//! Two sessions under one name, and a program that dies. A program here is a shell that starts hooks.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::rig::{Rig, claude, context, edit, join_with, profile, refused, with};
use crate::cli::scene::Running;

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
        ann.signal(Signal::KILL);
        ann.finish();
        assert_eq!(rig.edits("bob", "codex", "a.txt"), "");
        assert_eq!(rig.leases(), ["bob a.txt"]);
        assert_eq!(rig.0.events_of_type("AgentLost")[0]["is_dead"], true);
        if let Some(resident) = resident {
            resident.signal(Signal::INT);
            resident.finish();
        }
    }
}

#[test]
fn a_session_that_goes_on_elsewhere_is_not_dead() {
    let rig = Rig::new();
    let inputs = [("start", of(&rig, "s1", "SessionStart")), ("edit", edit_of(&rig, "s1", "a.txt"))];
    program(&rig, "{start} && {edit}", &inputs).finish().expect(0);
    let mut resumed = program(&rig, "{start} && kill -STOP $$", &inputs);
    resumed.stdout.until("you are ann");
    assert!(refused(&rig.edits("bob", "codex", "a.txt")).contains("a.txt is leased by ann"));
    resumed.signal(Signal::KILL);
    resumed.finish();
    assert_eq!(rig.edits("bob", "codex", "a.txt"), "");
}

#[test]
fn a_newer_session_of_a_name_takes_over() {
    let rig = Rig::new();
    let session = |session: &str, path: &str| {
        [("start", of(&rig, session, "SessionStart")), ("edit", edit_of(&rig, session, path))]
    };
    program(&rig, "{start} && {edit}", &session("s1", "a.txt")).finish().expect(0);
    let second = program(&rig, "{start} && {edit}", &session("s2", "b.txt")).finish().expect(0);
    assert!(context(&second.stdout).contains("you are ann"));
    assert_eq!(rig.leases(), ["ann a.txt", "ann b.txt"]);
    let joined = rig.0.events_of_type("AgentJoined");
    assert_eq!((joined.len(), &joined[1]["supersedes"]), (2, &json!(true)));
    let older = |input: Value| rig.raw(input.to_string().as_bytes(), Some("ann")).expect(0).stdout;
    let reason = refused(&older(edit_of(&rig, "s1", "a.txt")));
    assert_eq!(reason, "this edit is refused: ann was taken over by a newer session: join under another name");
    for event in ["UserPromptSubmit", "Stop", "SessionEnd"] {
        assert_eq!(older(of(&rig, "s1", event)), "", "{event}");
    }
    assert_eq!(rig.leases(), ["ann a.txt", "ann b.txt"]);
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
    program(&rig, "{start}; exit 0", &session("s2", "b.txt")).finish().expect(0);
    let older = rig.raw(edit_of(&rig, "s1", "a.txt").to_string().as_bytes(), Some("ann")).expect(0);
    assert!(refused(&older.stdout).contains("ann was taken over by a newer session"));
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
