//! `doctor` reports for each agent program if it is installed, connected and trusted, and if its edits can be refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::init::{program, scene};
use crate::cli::scene::Scene;

/// A repository where all programs are found and connected.
fn connected() -> Scene {
    let scene = scene();
    for name in ["claude", "codex", "gemini", "opencode"] {
        program(&scene, name, "echo 1.2.3");
    }
    program(&scene, "crewlog", "touch \"$HOME/ran\"");
    scene.run(&["init", "--yes"]).expect(0);
    scene
}

/// The failed checks: the program, the check, and the finding.
fn missing(report: &Value) -> Vec<(String, String, String)> {
    let missing = report["checks"].as_array().unwrap().iter().filter(|check| check["is_ok"] == false);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    missing.map(|check| (text(&check["host"]), text(&check["name"]), text(&check["found"]))).collect()
}

/// The only failed check of a program, and its finding.
fn only_missing(scene: &Scene, words: &[&str]) -> (String, String) {
    let ran = scene.run(&[&["doctor", "-o", "json", "--host"] as &[&str], words].concat()).expect(1);
    match missing(&ran.json()).as_slice() {
        [(host, name, found)] if host == words[0] => (name.clone(), found.clone()),
        others => panic!("{others:?}"),
    }
}

#[test]
fn programs_that_are_connected_and_refused_are_well() {
    let scene = connected();
    let log = fs::read(scene.path(".crewlog/log.db")).unwrap();
    let ran = scene.run(&["doctor"]).expect(0);
    for line in ["claude    installed   ok       1.2.3\n", "codex     refuses     ok  ", "last fired  ok       never\n"]
    {
        assert!(ran.stdout.contains(line), "{line}\n{}", ran.stdout);
    }
    assert!(!scene.around().join("home/ran").exists(), "only this program itself is run, wherever the PATH leads");
    assert_eq!(fs::read(scene.path(".crewlog/log.db")).unwrap(), log);
    assert_eq!(missing(&scene.run(&["doctor", "-o", "json"]).expect(0).json()), []);
}

#[test]
fn missing_parts_are_named_with_the_command_that_repairs_them() {
    let codes = |scene: &Scene, host: &str, name: &str, says: &str| {
        let (missing, found) = only_missing(scene, &[host]);
        assert_eq!(missing, name);
        assert!(found.contains(says), "{found}");
    };
    let scene = connected();
    fs::remove_file(scene.around().join("bin/claude")).unwrap();
    codes(&scene, "claude", "installed", "claude");
    scene.write(".codex/config.toml", "");
    codes(&scene, "codex", "configured", "; fix: crewlog init --host codex");
    scene.run(&["init"]).expect(0);
    scene.write(
        "../home/.codex/config.toml",
        scene.read("../home/.codex/config.toml").replacen("sha256:", "sha256:0", 1),
    );
    codes(&scene, "codex", "trusted", "; fix: crewlog init --host codex");
    fs::remove_file(scene.path("../home/.gemini/trustedFolders.json")).unwrap();
    codes(&scene, "gemini", "trusted", "; fix: crewlog init --host gemini");
    let scene = scene.with_env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    scene.run(&["doctor", "--host", "gemini"]).expect(0);
    // A hook that crewlog only resembles is not ours, and is not run.
    let hooks = scene.read(".claude/settings.json").replace("crewlog hook", "./crewlog hook; touch ran");
    scene.write(".claude/settings.json", hooks);
    program(&scene, "claude", "echo 1.2.3");
    scene.write("crewlog", "#!/bin/sh\ntouch ran\n");
    let ran = scene.run(&["doctor", "--host", "claude", "-o", "json"]).expect(1);
    assert!(missing(&ran.json()).iter().any(|(_, name, found)| name == "configured" && found.contains("crewlog init")));
    assert!(!scene.path("ran").exists());
}

#[test]
fn a_program_that_cannot_tell_its_version_is_not_well() {
    let scene = connected();
    program(&scene, "claude", "echo broken >&2; exit 3");
    let ran = scene.run(&["doctor", "--host", "claude"]).expect(1);
    assert!(ran.stdout.contains("claude    installed   missing  exit code 3 broken\n"), "{}", ran.stdout);
}

#[test]
fn a_live_check_starts_the_program_and_waits_for_its_hook() {
    let scene = connected();
    program(&scene, "codex", "echo \"$@\" >> \"$HOME/started\"; echo 1.2.3");
    let (missing, found) = only_missing(&scene, &["codex", "--live"]);
    assert_eq!((missing.as_str(), found.as_str()), ("fires", "no hook ran (1.2.3)"));
    let started = scene.read("../home/started");
    assert!(started.contains("exec --skip-git-repo-check Say ok"), "{started}");
}

#[test]
fn git_hooks_must_be_where_git_looks_for_them_and_run() {
    let scene = connected();
    let hooks = |says: &str| {
        let ran = scene.run(&["doctor", "-o", "json", "--host", "claude"]).expect(1);
        let [(host, name, found)] = missing(&ran.json()).try_into().unwrap();
        assert_eq!((host.as_str(), name.as_str()), ("git", "hooks"));
        assert!(found.contains(says) && found.contains("; fix: crewlog init"), "{found}");
    };
    let ran = scene.run(&["doctor", "--host", "claude"]).expect(0);
    assert!(ran.stdout.contains("git       hooks       ok  "), "{}", ran.stdout);
    let (pre_commit, pre_push) = (scene.path(".git/hooks/pre-commit"), scene.path(".git/hooks/pre-push"));
    fs::set_permissions(&pre_commit, PermissionsExt::from_mode(0o644)).unwrap();
    hooks(".git/hooks/pre-commit: git skips it, since it is not executable");
    fs::set_permissions(&pre_commit, PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(&pre_push, "#!/bin/sh\necho mine\n").unwrap();
    hooks(".git/hooks/pre-push");
    for other in ["# run('crewlog hook pre-push')", "run('crewlog hook pre-commit')"] {
        fs::write(&pre_push, format!("#!/usr/bin/env python3\n{other}\n")).unwrap();
        hooks(".git/hooks/pre-push");
    }
    fs::write(&pre_push, "#!/usr/bin/env python3\nrun('crewlog hook pre-push')\n").unwrap();
    scene.run(&["doctor", "--host", "claude"]).expect(0);
    scene.git(&["config", "core.hooksPath", ".githooks"]);
    hooks(".githooks/pre-commit, .githooks/pre-merge-commit, .githooks/pre-push");
}

#[test]
fn nothing_to_check_is_no_success() {
    let scene = scene();
    scene.run(&["doctor"]).expect(4).says(&["no agent program was found here", "crewlog doctor --host NAME"]);
}

#[test]
fn a_setting_that_turns_hooks_or_the_server_off_is_named() {
    let hooks_off = r#"{"disableAllHooks": true, // quiet"#;
    let server_off = r#"{"disabledMcpjsonServers": ["x", "crewlog"],"#;
    let gemini_off = r#"{"hooksConfig": {"enabled": false},"#;
    let has = |file: &str, setting: &str| format!("{file} has {setting}: remove it");
    let hooks = "disableAllHooks = true";
    let server = "\"crewlog\" in disabledMcpjsonServers";
    // The program, a file, the text to replace in it, its replacement, and the finding of `doctor`.
    let cases = [
        ("claude", ".claude/settings.json", "{", hooks_off, hooks),
        ("claude", ".claude/settings.local.json", "{", hooks_off, hooks),
        ("claude", "../home/.claude/settings.json", "", "{\"disableAllHooks\": true}", hooks),
        ("claude", ".claude/settings.json", "{", server_off, server),
        ("claude", ".claude/settings.local.json", "{", server_off, server),
        ("claude", "../home/.claude/settings.json", "", "{\"disabledMcpjsonServers\": [\"crewlog\"]}", server),
        ("codex", ".codex/config.toml", "", "features.hooks = false # slow\n", "features.hooks = false"),
        ("codex", "../home/.codex/config.toml", "", "features = { hooks = false }\n", "features.hooks = false"),
        ("codex", ".codex/config.toml", "args = ", "enabled = false\nargs = ", "mcp_servers.crewlog.enabled = false"),
        ("gemini", ".gemini/settings.json", "{", gemini_off, "hooksConfig.enabled = false"),
        (
            "gemini",
            "../home/.gemini/settings.json",
            "",
            "{\"hooksConfig\": {\"enabled\": false}}",
            "hooksConfig.enabled = false",
        ),
        ("opencode", "opencode.json", "\"enabled\": true", "\"enabled\": false", "mcp.crewlog.enabled = false"),
    ];
    let scene = connected();
    let home = scene.around().join("home").canonicalize().unwrap();
    for (host, file, from, to, setting) in cases {
        let before = fs::read_to_string(scene.path(file)).ok();
        fs::create_dir_all(scene.path(file).parent().unwrap()).unwrap();
        scene.write(file, before.clone().unwrap_or_default().replacen(from, to, 1));
        let shown = file.replace("../home", &home.to_string_lossy());
        assert_eq!(only_missing(&scene, &[host]), ("configured".to_owned(), has(&shown, setting)), "{file}: {to}");
        match before {
            Some(text) => scene.write(file, text),
            None => fs::remove_file(scene.path(file)).unwrap(),
        }
    }
    scene.run(&["doctor"]).expect(0);
    scene.write(".codex/config.toml", "features.hooks = false\n");
    let both =
        ".codex/config.toml; fix: crewlog init --host codex; .codex/config.toml has features.hooks = false: remove it";
    assert_eq!(only_missing(&scene, &["codex"]).1, both);
}

#[test]
fn a_setting_that_does_not_turn_ours_off_is_well() {
    let scene = connected();
    // A file, a text in it, and its replacement.
    let cases = [
        (
            ".claude/settings.local.json",
            "{",
            r#"{"disableAllHooks": false, "disabledMcpjsonServers": ["crewlog-old"],"#,
        ),
        ("../home/.claude/settings.json", "", r#"{"disableAllHooks": true}"#),
        (".codex/config.toml", "", "features.hooks = true\nmcp_servers.other.enabled = false\n"),
        ("../home/.codex/config.toml", "", "features.hooks = false\n"),
        ("../home/.gemini/settings.json", "", "{\"hooksConfig\": {\"enabled\": false}, broken"),
    ];
    for (file, from, to) in cases {
        fs::create_dir_all(scene.path(file).parent().unwrap()).unwrap();
        let before = fs::read_to_string(scene.path(file)).unwrap_or_default();
        scene.write(file, before.replacen(from, to, 1));
    }
    scene.run(&["doctor"]).expect(0);
}
