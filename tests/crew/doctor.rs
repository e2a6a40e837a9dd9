//! `doctor` says of each agent program whether it is installed, connected, trusted, and refused when it must be.

use std::fs;

use serde_json::Value;

use super::init::{program, scene};
use crate::cli::scene::Scene;

/// Refuses as `crewlog hook` does, and notes the log that it was given.
const REFUSING: &str = r#"input=$(cat); echo "$CREWLOG_STORE $1 $input" >> "$HOME/told"
case "$input" in
*BeforeTool*) echo '{"decision":"deny","reason":"held by a1"}' ;;
*) echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"held by a1"}}' ;;
esac"#;

/// A repository where all programs are found and connected, and the hook refuses.
fn connected() -> Scene {
    let scene = scene();
    for name in ["claude", "codex", "gemini", "opencode"] {
        program(&scene, name, "echo 1.2.3");
    }
    program(&scene, "crewlog", REFUSING);
    scene.run(&["init", "--yes"]).expect(0);
    scene
}

/// What is missing, by program.
fn missing(report: &Value) -> Vec<(String, Vec<String>)> {
    let is_missing = |check: &Value| check["is_ok"] == false;
    let hosts = report["hosts"].as_array().unwrap().iter();
    let missing = hosts.map(|report| {
        let checks = report.as_object().unwrap().iter().filter(|(_, check)| is_missing(check));
        (report["host"].as_str().unwrap().to_owned(), checks.map(|(name, _)| name.clone()).collect())
    });
    missing.filter(|(_, missing): &(_, Vec<_>)| !missing.is_empty()).collect()
}

#[test]
fn programs_that_are_connected_and_refused_are_well() {
    let scene = connected();
    let log = fs::read(scene.path(".crewlog/log.db")).unwrap();
    let ran = scene.run(&["doctor"]).expect(0);
    for line in ["claude\n  installed   ok       1.2.3\n", "  refuses     ok  ", "  last fired  never\n"] {
        assert!(ran.stdout.contains(line), "{line}\n{}", ran.stdout);
    }
    let told = scene.read("../home/told");
    assert_eq!(told.matches("/log.db hook {").count(), 4, "{told}");
    assert!(!told.contains(&*scene.path(".crewlog").to_string_lossy()), "the trial has a log of its own: {told}");
    assert_eq!(told.matches("transcript_path").count(), 3, "its absence marks opencode: {told}");
    assert_eq!(fs::read(scene.path(".crewlog/log.db")).unwrap(), log);
    assert_eq!(missing(&scene.run(&["doctor", "-o", "json"]).expect(0).json()), []);
}

#[test]
fn what_is_missing_is_named_with_the_command_that_mends_it() {
    let codes = |scene: &Scene, host: &str, name: &str, mend: &str| {
        let report = scene.run(&["doctor", "--host", host, "-o", "json"]).expect(1).json();
        assert_eq!(missing(&report), [(host.to_owned(), vec![name.to_owned()])], "{report:#}");
        assert_eq!(report["hosts"][0][name]["mend"], mend, "{report:#}");
    };
    let scene = connected();
    fs::remove_file(scene.around().join("bin/claude")).unwrap();
    codes(&scene, "claude", "installed", "npm install -g @anthropic-ai/claude-code");
    scene.write(".codex/config.toml", "");
    codes(&scene, "codex", "configured", "crewlog init --host codex");
    scene.run(&["init"]).expect(0);
    scene.write(
        "../home/.codex/config.toml",
        scene.read("../home/.codex/config.toml").replacen("sha256:", "sha256:0", 1),
    );
    codes(&scene, "codex", "trusted", "crewlog init --host codex --yes");
    fs::remove_file(scene.path("../home/.gemini/trustedFolders.json")).unwrap();
    codes(&scene, "gemini", "trusted", "crewlog init --host gemini --yes");
    let scene = scene.with_env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    scene.run(&["doctor", "--host", "gemini"]).expect(0);
    program(&scene, "crewlog", "cat > /dev/null");
    codes(&scene, "opencode", "refuses", "crewlog init --host opencode");
}

#[test]
fn an_answer_that_the_program_does_not_take_for_a_refusal_does_not_count() {
    let scene = connected();
    let refuses = |host: &str, script: &str| {
        program(&scene, "crewlog", script);
        let report = scene.run(&["doctor", "--host", host, "-o", "json"]).expect(1).json();
        assert_eq!(missing(&report), [(host.to_owned(), vec!["refuses".to_owned()])], "{script}: {report:#}");
    };
    let refusal = |more: &str| {
        let said = r#""hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"held""#;
        format!("echo '{{\"hookSpecificOutput\":{{{said}{more}}}}}'")
    };
    refuses("gemini", &refusal(""));
    refuses("codex", &refusal(",\"more\":1"));
    refuses("claude", &format!("{}; exit 1", refusal("")));
    refuses("claude", &refusal("").replace("held", ""));
    fs::remove_file(scene.around().join("bin/crewlog")).unwrap();
    let ran = scene.run(&["doctor", "--host", "claude"]).expect(1);
    assert!(ran.stdout.contains("`crewlog hook` failed: exit code 127"), "{}", ran.stdout);
}

#[test]
fn a_program_that_cannot_tell_its_version_is_not_well() {
    let scene = connected();
    program(&scene, "claude", "echo broken >&2; exit 3");
    let ran = scene.run(&["doctor", "--host", "claude"]).expect(1);
    assert!(ran.stdout.contains("  installed   missing  exit code 3 broken; to mend: npm"), "{}", ran.stdout);
}

#[test]
fn a_live_check_starts_the_program_and_waits_for_its_hook() {
    let scene = connected();
    program(&scene, "codex", "echo \"$@\" >> \"$HOME/started\"; echo 1.2.3");
    let report = scene.run(&["doctor", "--host", "codex", "--live", "-o", "json"]).expect(1).json();
    assert_eq!(missing(&report), [("codex".to_owned(), vec!["fires".to_owned()])]);
    assert_eq!(report["hosts"][0]["fires"]["found"], "no hook ran (exit code 0 1.2.3)");
    let started = scene.read("../home/started");
    assert!(started.contains("exec --skip-git-repo-check Say ok"), "{started}");
}

#[test]
fn nothing_to_check_is_no_success() {
    let scene = scene();
    scene.run(&["doctor"]).expect(4).says(&["no agent program was found here", "crewlog doctor --host NAME"]);
}
