//! Commands of git that commit or change leased files, with the hooks that `crewlog init` installs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use super::rig::{Rig, SIGNS, context};
use crate::cli::scene::{Ran, Running};

/// A repository with hooks of git and three files. Bob has leased one by an edit.
pub fn connected() -> Rig {
    let rig = Rig::new();
    rig.0.run(&["init", "--host", "gemini"]).expect(0);
    for path in ["a.txt", "b.txt", "victim.txt"] {
        rig.0.write(path, "base\n");
    }
    git(&rig, None, &["add", "."]).expect(0);
    git(&rig, None, &["commit", "-qm", "base"]).expect(0);
    assert_eq!(rig.edits("bob", "claude", "victim.txt"), "");
    rig
}

/// Git as an agent, or as a person.
pub fn git(rig: &Rig, agent: Option<&str>, words: &[&str]) -> Ran {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "core.editor=true"]).args(words);
    for name in SIGNS {
        git.env_remove(name);
    }
    git.envs(agent.map(|agent| ("AGENT_ID", agent))).env("HOME", rig.0.around().join("home"));
    git.env("GIT_CEILING_DIRECTORIES", rig.0.around()).env("PATH", "/usr/bin:/bin").current_dir(rig.0.folder());
    Running::start(&mut git).finish()
}

fn recorded(rig: &Rig) -> Vec<Value> {
    rig.0.events_of_type("FilesCommitted")
}

#[test]
fn a_commit_without_verification_is_recorded_for_all_three() {
    for agent in [Some("ann"), None] {
        let rig = connected();
        rig.asks("ann", "SessionStart");
        rig.0.write("victim.txt", "x\n");
        git(&rig, agent, &["commit", "-qam", "x"]).expect(1);
        assert_eq!(recorded(&rig).len(), 0, "a refused commit is none");
        let ran = git(&rig, agent, &["commit", "-qam", "x", "--no-verify"]).expect(0);
        let by = agent.unwrap_or("a person");
        ran.says(&[&format!("crewlog: {by} committed victim.txt in "), "leased by bob"]);
        let [event] = &recorded(&rig)[..] else { panic!("{:?}", recorded(&rig)) };
        let head = rig.0.git(&["rev-parse", "HEAD"]);
        let commit =
            json!({ "id": head.trim(), "how": "commit", "agent": agent, "worktree": event["commit"]["worktree"] });
        assert_eq!(event["commit"]["id"], commit["id"]);
        assert_eq!((&event["commit"]["how"], &event["commit"]["agent"]), (&commit["how"], &commit["agent"]));
        let [file] = &event["files"].as_array().unwrap()[..] else { panic!("{event}") };
        assert_eq!((&file["path"], &file["lease"]["holder"]), (&json!("victim.txt"), &json!("bob")));
        assert!(file["lease"]["token"].as_u64().is_some_and(|token| token > 0), "{file}");
        let told = context(&rig.asks("bob", "UserPromptSubmit"));
        assert!(told.contains(&format!("{by} committed victim.txt in {}", &head[..10])), "{told}");
        // The inbox does not repeat to a person what that person has committed.
        let inbox = rig.0.run(&["inbox"]);
        let is_shown =
            inbox.stdout.contains(&format!("ann committed victim.txt in {} under the lease of bob", &head[..10]));
        assert_eq!(is_shown, agent.is_some(), "{}", inbox.stdout);
    }
}

#[test]
fn other_commands_of_git_that_change_leased_files_are_recorded() {
    let to_other: [&[&str]; 1] = [&["checkout", "-q", "other"]];
    let merge: [&[&str]; 1] = [&["merge", "-q", "other"]];
    let rebase: [&[&str]; 3] =
        [&["checkout", "-q", "-b", "mine"], &["commit", "-q", "--allow-empty", "-m", "m"], &["rebase", "-q", "other"]];
    for (how, commands) in [("checkout", &to_other[..]), ("merge", &merge[..]), ("rebase", &rebase[..])] {
        let rig = connected();
        git(&rig, None, &["checkout", "-q", "-b", "other"]).expect(0);
        rig.0.write("victim.txt", "other\n");
        rig.0.write("b.txt", "other\n");
        git(&rig, None, &["commit", "-qam", "other", "--no-verify"]).expect(0);
        git(&rig, None, &["checkout", "-q", "main"]).expect(0);
        context(&rig.asks("bob", "UserPromptSubmit"));
        let before = recorded(&rig).len();
        for words in commands {
            git(&rig, Some("ann"), words).expect(0);
        }
        let events = recorded(&rig)[before..].to_vec();
        let of = |how: &str| events.iter().filter(|event| event["commit"]["how"] == how).cloned().collect::<Vec<_>>();
        let [event] = &of(how)[..] else { panic!("{how}: {events:#?}") };
        assert_eq!(event["commit"]["agent"], "ann", "{how}");
        let files = event["files"].as_array().unwrap();
        assert_eq!((files.len(), &files[0]["path"]), (1, &json!("victim.txt")), "{how}: only the file of another");
        let told = context(&rig.asks("bob", "UserPromptSubmit"));
        assert!(told.contains("ann changed victim.txt by a "), "{how}: {told}");
    }
}

#[test]
fn a_commit_of_an_agent_is_recorded_with_its_leases_and_a_free_one_of_a_person_is_not() {
    let rig = connected();
    rig.0.write("a.txt", "x\n");
    git(&rig, None, &["commit", "-qm", "x", "--", "a.txt"]).expect(0);
    git(&rig, None, &["checkout", "-q", "-b", "other"]).expect(0);
    assert_eq!(recorded(&rig).len(), 0);
    rig.0.write("victim.txt", "x\n");
    let ran = git(&rig, Some("bob"), &["commit", "-qam", "own"]).expect(0);
    assert_eq!(ran.stderr, "");
    let [event] = &recorded(&rig)[..] else { panic!("{:?}", recorded(&rig)) };
    assert_eq!((&event["commit"]["agent"], &event["files"][0]["lease"]["holder"]), (&json!("bob"), &json!("bob")));
    assert_eq!(rig.asks("bob", "UserPromptSubmit"), "", "it needs no notice");
    git(&rig, Some("bob"), &["commit", "-q", "--amend", "-m", "again"]).expect(0);
    assert_eq!(recorded(&rig).len(), 2, "an amended commit is another one, recorded once");
}

#[test]
fn a_commit_of_a_file_that_another_held_since_is_refused() {
    let rig = Rig::new();
    rig.0.run(&["init", "--host", "gemini"]).expect(0);
    let edits = |agent: &str, path: &str| {
        assert_eq!(rig.edits(agent, "claude", path), "");
        rig.0.write(path, format!("of {agent}\n"));
        rig.asks(agent, "Stop");
    };
    let commit = |agent: Option<&str>| git(&rig, agent, &["commit", "-qm", "x"]);
    edits("ann", "a.txt");
    edits("ann", "b.txt");
    git(&rig, None, &["add", "a.txt", "b.txt"]).expect(0);
    edits("bob", "a.txt");
    let refused = commit(Some("ann")).expect(1);
    refused.says(&["this commit is refused: you edited a.txt under the lease with token", "and bob has had it since"]);
    assert!(!refused.stderr.contains("b.txt"), "{}", refused.stderr);
    // The next edit takes a new lease.
    assert_eq!(rig.edits("ann", "claude", "a.txt"), "");
    commit(Some("ann")).expect(0);
    edits("ann", "a.txt");
    edits("bob", "a.txt");
    git(&rig, None, &["add", "a.txt"]).expect(0);
    commit(None).expect(0);
}

#[test]
fn recorders_keep_the_hooks_that_were_there_and_are_removed() {
    let rig = Rig::new();
    let mine = "#!/bin/sh\necho \"$@\" >> ran\n";
    for name in ["post-commit", "post-checkout", "post-merge", "post-rewrite"] {
        let hook = rig.0.path(format!(".git/hooks/{name}"));
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, mine).unwrap();
        fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    }
    rig.0.run(&["init", "--host", "gemini"]).expect(0);
    for name in ["post-commit", "post-checkout", "post-merge", "post-rewrite"] {
        let text = rig.0.read(format!(".git/hooks/{name}"));
        assert!(text.contains(&format!("hook {name}")) && text.ends_with(&mine["#!/bin/sh\n".len()..]), "{text}");
    }
    rig.0.write("a.txt", "a\n");
    git(&rig, None, &["add", "a.txt"]).expect(0);
    git(&rig, None, &["commit", "-qm", "a"]).expect(0);
    git(&rig, None, &["checkout", "-q", "-b", "other"]).expect(0);
    assert_eq!(rig.0.read("ran").lines().count(), 2, "{}", rig.0.read("ran"));
    rig.0.run(&["init", "--remove"]).expect(0);
    for name in ["post-commit", "post-checkout", "post-merge", "post-rewrite"] {
        assert_eq!(rig.0.read(format!(".git/hooks/{name}")), mine);
    }
}
