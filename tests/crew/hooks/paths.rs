//! Paths that hooks cannot check as written: from outside the repository, without a lease, beyond a limit.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use super::rig::{Rig, context, edit, refused, shell, with};
use crate::cli::scene::Running;

const DENY: &str = "[hooks]\non_error = \"deny\"\n";

#[test]
fn an_edit_from_outside_the_repository_is_checked() {
    let rig = Rig::new();
    rig.reserves("bob", "a.txt", "");
    let outside = rig.0.around().join("outside");
    fs::create_dir(&outside).unwrap();
    let edits = |folder: &Path, path: &Path| {
        let input = edit("claude", folder, path.to_str().unwrap());
        rig.in_folder(folder, input.to_string().as_bytes(), Some("ann")).expect(0).stdout
    };
    for folder in [rig.0.around(), &outside] {
        assert!(refused(&edits(folder, &rig.0.path("a.txt"))).contains("a.txt is leased by bob"));
        assert_eq!(edits(folder, &rig.0.path("new/b.txt")), "");
        assert_eq!(edits(folder, &outside.join("a.txt")), "");
        assert_eq!(rig.leases(), ["bob a.txt", "ann new/b.txt"]);
    }
    // Another repository with its own log, around the hook.
    rig.0.git(&["init", "-q", outside.to_str().unwrap()]);
    Running::start(&mut rig.command(&outside, &["init", "--no-hosts"])).finish().expect(0);
    assert!(refused(&edits(&outside, &rig.0.path("a.txt"))).contains("a.txt is leased by bob"));
    assert_eq!(edits(&outside, &outside.join("a.txt")), "");
    let rm = shell(&outside, &format!("rm {}", rig.0.path("a.txt").display()));
    let ran = rig.in_folder(&outside, rm.to_string().as_bytes(), Some("ann")).expect(0);
    assert!(refused(&ran.stdout).contains("a.txt is leased by bob"));
}

#[test]
fn a_named_log_makes_no_project_of_another_repository() {
    let rig = Rig::new();
    let other = rig.0.around().join("other");
    rig.0.git(&["init", "-q", other.to_str().unwrap()]);
    let file = rig.0.around().join("edit.json");
    fs::write(&file, edit("claude", rig.0.folder(), other.join("a.txt").to_str().unwrap()).to_string()).unwrap();
    let mut hook = rig.command(rig.0.folder(), &["hook"]);
    hook.env("CREWLOG_STORE", rig.0.path(".crewlog/log.db")).stdin(fs::File::open(&file).unwrap());
    assert_eq!(Running::start(&mut hook).finish().expect(0).stdout, "");
    assert!(!other.join(".git/crewlog").exists());
    assert!(rig.0.events_of_type("AgentJoined").is_empty());
}

#[test]
fn a_path_that_cannot_be_leased_follows_the_policy() {
    let rig = Rig::new();
    let outside = rig.0.around().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, rig.0.path("link")).unwrap();
    symlink(&outside, rig.0.path("ignored-link")).unwrap();
    rig.0.write(".gitignore", "ignored*\n");
    let long = format!("{}b.txt", "long/".repeat(120));
    let edits =
        |path: &str| rig.raw(edit("claude", rig.0.folder(), path).to_string().as_bytes(), Some("ann")).expect(0);
    let cases = [
        ("a\nb.txt", "\"a\\nb.txt\" has a control character"),
        (&long, "has 605 bytes or too many parts"),
        ("link/b.txt", "link/b.txt leaves the repository through the link link"),
    ];
    for (path, says) in cases {
        let allowed = context(&edits(path).stdout);
        assert!(allowed.contains("this call is allowed: ") && allowed.contains(says), "{allowed}");
    }
    rig.0.write("crewlog.toml", DENY);
    for (path, says) in cases {
        let reason = refused(&edits(path).stdout);
        assert!(reason.contains("this call is refused: ") && reason.contains(says), "{reason}");
        let after = with(edit("claude", rig.0.folder(), path), json!({ "hook_event_name": "PostToolUse" }));
        assert_eq!(rig.hook("ann", &after), "");
    }
    for path in ["../outside/b.txt", "ignored/a\nb.txt", "ignored-link/b.txt", "ignored\u{7}", "a.txt"] {
        assert_eq!(edits(path).stderr, "", "{path}");
    }
    rig.reserves("bob", "c.txt", "");
    let both = shell(rig.0.folder(), "rm link/b.txt c.txt").to_string();
    assert!(refused(&rig.raw(both.as_bytes(), Some("ann")).expect(0).stdout).contains("c.txt is leased by bob"));
    // The hook of git sees the files of a commit.
    rig.0.write("a\tb.txt", "");
    rig.0.git(&["add", "a\tb.txt"]);
    let commit = || Running::start(&mut rig.command(rig.0.folder(), &["hook", "pre-commit"])).finish();
    commit().expect(1).says(&["has a control character"]);
    rig.0.write("crewlog.toml", "");
    commit().expect(0).says(&["has a control character"]);
}

#[test]
fn a_command_past_a_limit_follows_the_policy() {
    let rig = Rig::new();
    let many = (0..=200).map(|n| format!(" f{n}")).collect::<String>();
    let commands =
        [format!(": {}; rm a.txt", "x".repeat(70_000)), format!("rm{many}"), format!("{}rm a.txt", "( ".repeat(40))];
    let says = "the call is past a limit: 200 paths, or a command of 64 KiB with 32 nested subshells";
    let runs =
        |command: &str| rig.raw(shell(rig.0.folder(), command).to_string().as_bytes(), Some("ann")).expect(0).stdout;
    for command in &commands {
        assert!(context(&runs(command)).contains(says), "{command:.30}");
    }
    rig.0.write("crewlog.toml", DENY);
    for command in &commands {
        assert!(refused(&runs(command)).contains(says), "{command:.30}");
    }
    let file = format!("cat > b.txt <<'END'\n{}END\n", "line\n".repeat(1_000));
    assert_eq!(runs(&file), "");
    assert_eq!(rig.asks("ann", "Stop"), "");
}
