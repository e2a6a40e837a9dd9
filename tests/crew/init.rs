//! `init` connects agent programs to the log, removes its entries again, and destroys nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::cli::scene::{Ran, Running, Scene};

const ALL: [&str; 9] = ["init", "--host", "claude", "--host", "codex", "--host", "gemini", "--host", "opencode"];

/// A repository where only git and the programs of the test are on the PATH.
pub(super) fn scene() -> Scene {
    let scene = Scene::with_repository();
    let bin = scene.around().join("bin");
    fs::create_dir(&bin).unwrap();
    let folders = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&folders).map(|folder| folder.join("git")).find(|git| git.exists()).unwrap();
    symlink(git, bin.join("git")).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    scene.with_env("PATH", path).with_env("CODEX_HOME", "").with_env("GEMINI_CLI_TRUST_WORKSPACE", "")
}

/// Puts a program on the PATH.
pub(super) fn program(scene: &Scene, name: &str, script: &str) {
    let file = scene.around().join("bin").join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs git with the PATH of the scene.
fn git(scene: &Scene, folder: &Path, words: &[&str]) -> Ran {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=test", "-c", "user.email=test@localhost"]).args(words).current_dir(folder);
    git.env("PATH", scene.env("PATH").unwrap()).env("HOME", scene.around().join("home"));
    Running::start(&mut git).finish()
}

/// The files below a folder with their texts, except those of logs and of git.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let is_skipped = [".crewlog", "objects", "refs", "logs"].iter().any(|name| path.ends_with(name));
            if path.is_dir() && !is_skipped {
                folders.push(path);
            } else if path.is_file() {
                let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                files.insert(path, text);
            }
        }
    }
    files
}

fn outcomes(ran: &Ran) -> BTreeMap<String, String> {
    let json = ran.json();
    let rows = json["files"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(&row["path"]), text(&row["outcome"]))).collect()
}

fn write(scene: &Scene, name: &str, text: &str) {
    fs::create_dir_all(scene.path(name).parent().unwrap()).unwrap();
    scene.write(name, text);
}

const MCP: &str =
    "{\n    // servers\n    \"mcpServers\": {\n        \"other\": { \"command\": \"x\" } // stays\n    }\n}\n";
const SETTINGS: &str = "{\n\t\"model\": \"m\", /* first */\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n\t\t\t// linter\n\t\t\t\
    {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]},\n\t\t],\n\t},\n\t\"env\": {}\n}";
const CONFIG: &str = "# mine\nmodel = 'gpt' # keep\n\n[mcp_servers.other] # second\ncommand = \"x\"\n";
const OPENCODE: &str = "{\r\n  \"theme\": \"dark\", // mine\r\n  \"model\": \"m\"\r\n}\r\n";
const AGENTS: &str = "# Rules\r\n\r\nBe kind.";
const PRE_PUSH: &str = "#!/usr/bin/env bash\ncat > pushed\n";

/// A file of each kind, as a person wrote it.
fn with_own_files(scene: &Scene) {
    let files = [
        (".mcp.json", MCP),
        (".claude/settings.json", SETTINGS),
        (".codex/config.toml", CONFIG),
        ("opencode.json", OPENCODE),
        ("AGENTS.md", AGENTS),
        (".git/hooks/pre-push", PRE_PUSH),
        ("../home/.codex/config.toml", CONFIG),
    ];
    files.into_iter().for_each(|(name, text)| write(scene, name, text));
    set_mode(scene, ".git/hooks/pre-push", 0o755);
}

fn set_mode(scene: &Scene, name: &str, mode: u32) {
    fs::set_permissions(scene.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn init_keeps_comments_and_order_in_every_kind_of_file() {
    let scene = scene();
    with_own_files(&scene);
    scene.run(&ALL).expect(0);
    let server = "\"crewlog\": {\n            \"command\": \"crewlog\",\n            \"args\": [\"mcp\"]\n        }";
    let mcp = MCP.replace(" } // stays", &format!(" }}, // stays\n        {server}"));
    assert_eq!(scene.read(".mcp.json"), mcp);
    let settings = scene.read(".claude/settings.json");
    let (before, after) = SETTINGS.split_once("\n\t\t],\n").unwrap();
    assert!(settings.starts_with(before), "{settings}");
    let rest = after.split_once("},").unwrap().1.trim_end().trim_end_matches(['}', '\n']);
    assert!(settings.contains(&format!("{rest}}},\n\t\"statusLine\": {{")), "{settings}");
    assert_eq!(settings.matches("\"crewlog hook\"").count(), 14, "{settings}");
    let config = scene.read(".codex/config.toml");
    assert!(config.starts_with(&format!("{CONFIG}\n[mcp_servers.crewlog]\ncommand = \"crewlog\"\n")), "{config}");
    let opencode = scene.read("opencode.json");
    assert!(opencode.starts_with("{\r\n  \"theme\": \"dark\", // mine\r\n  \"model\": \"m\",\r\n  \"mcp\": {\r\n"));
    assert_eq!(opencode.matches('\n').count(), opencode.matches("\r\n").count(), "{opencode:?}");
    let agents = scene.read("AGENTS.md");
    let (own, section) = agents.split_at(AGENTS.len());
    assert_eq!((own, section.trim_start().lines().count()), (AGENTS, 10));
    assert_eq!(agents.matches('\n').count(), agents.matches("\r\n").count(), "{agents:?}");
}

#[test]
fn init_twice_changes_nothing() {
    let scene = scene();
    with_own_files(&scene);
    let words = [&ALL as &[&str], &["--yes", "-o", "json"]].concat();
    scene.run(&words).expect(0);
    let once = tree(scene.around());
    let again = outcomes(&scene.run(&words).expect(0));
    assert!(again.values().all(|outcome| outcome == "unchanged") && again.len() == 19, "{again:?}");
    assert_eq!(tree(scene.around()), once);
}

#[test]
fn remove_restores_every_file_byte_for_byte() {
    let scene = scene();
    with_own_files(&scene);
    // First, so that the log's own files exist before.
    scene.run(&["init", "--no-hosts"]).expect(0);
    let before = tree(scene.around());
    scene.run(&[&ALL as &[&str], &["--yes"]].concat()).expect(0);
    assert_ne!(tree(scene.around()), before);
    let removed = outcomes(&scene.run(&["init", "--remove", "--yes", "-o", "json"]).expect(0));
    assert_eq!(tree(scene.around()), before);
    assert_eq!(removed[".mcp.json"], "wrote");
    assert_eq!(removed[".codex/hooks.json"], "deleted");
    assert!(!scene.path(".gemini").exists() && !scene.path(".opencode").exists(), "folders that init made are gone");
    assert!(outcomes(&scene.run(&["init", "--remove", "-o", "json"]).expect(0)).is_empty());
}

#[test]
fn remove_takes_out_only_what_init_wrote_once_a_person_has_edited() {
    let scene = scene();
    with_own_files(&scene);
    scene.run(&["init", "--no-hosts"]).expect(0);
    let before = tree(scene.around());
    let words = [&ALL as &[&str], &["--yes"]].concat();
    scene.run(&words).expect(0);
    let edit = |name: &str, from: &str, to: &str| {
        let text = scene.read(name);
        assert!(text.contains(from), "{name}: {text}");
        scene.write(name, text.replacen(from, to, 1));
    };
    edit(".mcp.json", "// servers", "// my servers");
    edit(".claude/settings.json", "\"env\": {}", "\"env\": {\"A\": \"b\"}");
    edit(".codex/config.toml", "# mine", "# ours");
    edit(".codex/hooks.json", "{", "{\n  // mine");
    edit("opencode.json", "dark", "light");
    edit("AGENTS.md", "Be kind.", "Be kind and short.");
    edit("CLAUDE.md", "<!--", "Mine.\n\n<!--");
    edit(".git/hooks/pre-push", "cat > pushed", "cat > sent");
    edit("../home/.codex/config.toml", "# mine", "# ours");
    // A second `init` must not treat the edited text as the original.
    scene.run(&words).expect(0);
    scene.run(&["init", "--remove", "--yes"]).expect(0);
    let mut wanted = before;
    let mut set = |name: &str, text: String| wanted.insert(scene.path(name).canonicalize().unwrap(), text);
    set(".mcp.json", MCP.replace("// servers", "// my servers"));
    set(".codex/config.toml", CONFIG.replace("# mine", "# ours"));
    set("opencode.json", OPENCODE.replace("dark", "light"));
    set(".git/hooks/pre-push", PRE_PUSH.replace("pushed", "sent"));
    set("AGENTS.md", "# Rules\r\n\r\nBe kind and short.\r\n".to_owned());
    set("CLAUDE.md", "Mine.\n\n".to_owned());
    set(".claude/settings.json", format!("{}\n", SETTINGS.replace("{}", "{\"A\": \"b\"}")));
    set(".codex/hooks.json", "{\n  // mine\n}\n".to_owned());
    // A person may rely on the trust, so it stays.
    let trust = format!("\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", scene.folder().display());
    set("../home/.codex/config.toml", CONFIG.replace("# mine", "# ours") + &trust);
    let left = tree(scene.around());
    for (path, text) in &wanted {
        assert_eq!(left.get(path), Some(text), "{}", path.display());
    }
    assert_eq!(left.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
}

#[test]
fn a_status_line_of_a_person_runs_within_ours_and_comes_back() {
    let scene = scene();
    let own = r#"jq -r '.cwd' | sed 's/a b/$X/'"#;
    let settings = format!(
        "{{\n  // mine\n  \"statusLine\": {{\"type\": \"command\", \"command\": \"{own}\", \"padding\": 0}},\n  \"env\": {{}}\n}}\n"
    );
    write(&scene, ".claude/settings.json", &settings);
    for _ in 0..2 {
        scene.run(&["init", "--host", "claude", "--yes"]).expect(0);
        let text = scene.read(".claude/settings.json");
        let quoted = own.replace('\'', r"'\\''");
        assert!(text.contains(&format!("\"crewlog hook status-line --then '{quoted}'\", \"padding\": 0")), "{text}");
    }
    // A person has edited the file since, so it cannot be restored as a whole.
    scene.write(".claude/settings.json", scene.read(".claude/settings.json").replace("// mine", "// ours"));
    scene.run(&["init", "--remove", "--yes"]).expect(0);
    assert_eq!(scene.read(".claude/settings.json"), settings.replace("// mine", "// ours"));
}

#[test]
fn a_file_that_cannot_be_parsed_is_left_alone_with_its_position() {
    let scene = scene();
    const BEGIN: &[u8] = b"<!-- crewlog: begin; `crewlog init` writes this section -->\n";
    let broken: [(&str, &[u8], &str); 5] = [
        (".mcp.json", b"{\n  \"a\": 1,\n  \"b\" 2\n}\n", "on line 3"),
        (".claude/settings.json", b"{\"hooks\": []}", "`hooks` is not an object"),
        (".codex/config.toml", b"a = 1\nb = = 2\n", "it is not TOML: TOML parse error at line 2, column 5"),
        ("AGENTS.md", b"a\nb \xff\n", "UTF-8"),
        ("CLAUDE.md", BEGIN, "it has no line `<!-- crewlog: end -->`"),
    ];
    for (name, bytes, _) in broken {
        fs::create_dir_all(scene.path(name).parent().unwrap()).unwrap();
        scene.write(name, bytes);
    }
    let ran = scene.run(&[&ALL as &[&str], &["-o", "json"]].concat()).expect(1);
    for (name, bytes, says) in broken {
        let rows = ran.json()["files"].take();
        let row = rows.as_array().unwrap().iter().find(|row| row["path"] == name).unwrap();
        assert!(row["text"].as_str().unwrap().contains(says), "{row}");
        assert_eq!(fs::read(scene.path(name)).unwrap(), bytes, "{name}");
        assert_eq!(outcomes(&ran)[name], "failed");
    }
    assert_eq!(outcomes(&ran)[".gemini/settings.json"], "wrote", "the others are done");
}

/// The values are those of Python: `hashlib.sha256(json.dumps(hook, sort_keys=True, separators=(",", ":")).encode())`.
#[test]
fn codex_gets_the_hash_of_each_hook_at_its_place() {
    let scene = scene();
    let own = r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "lint"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "crewlog hook && other", "timeout": 5}, {"type": "command", "command": "x"}]}]}}"#;
    write(&scene, ".codex/hooks.json", own);
    scene.run(&["init", "--host", "codex", "--yes"]).expect(0);
    assert!(scene.read(".codex/hooks.json").contains("crewlog hook && other"), "it is not ours to take out");
    let config = scene.read("../home/.codex/config.toml");
    let file = scene.path(".codex/hooks.json");
    for (place, hash) in [
        ("pre_tool_use:1:0", "41ca03f71283305798cda91a189a647cab379cd276c145e5ec30893f29ba2e3d"),
        ("stop:1:0", "aca2f16aed0a2135ac69acb096d35e6017f7207bb530043cb1f42edb024e7a79"),
        ("session_start:0:0", "f60c5f28b8255e2059e1948ce28cef84e7c0d7bf932c0e884a75adb3c2e72580"),
    ] {
        let entry = format!("[hooks.state.\"{}:{place}\"]\ntrusted_hash = \"sha256:{hash}\"\n", file.display());
        assert!(config.contains(&entry), "{entry}\n{config}");
    }
    let others = ["hooks.json:pre_tool_use:0:0", "hooks.json:stop:0:0"];
    assert!(others.iter().all(|other| !config.contains(other)), "other hooks are not trusted: {config}");
    assert!(config.contains(&format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", scene.folder().display())));
}

#[test]
fn git_hooks_go_where_git_looks_for_them() {
    let scene = scene();
    scene.git(&["worktree", "add", "-q", "../other"]);
    let other = scene.around().join("other");
    let init = |words: &[&str]| {
        let words = [&["init", "-o", "json"], words].concat();
        outcomes(&Running::start(&mut scene.crewlog_in(&other, &words)).finish().expect(0))
    };
    let done = init(&["--host", "gemini", "--host", "codex", "--yes"]);
    let shared = scene.path(".git/hooks/pre-commit").canonicalize().unwrap();
    assert_eq!(done[shared.to_str().unwrap()], "wrote", "worktrees share their hooks");
    assert_ne!(shared.metadata().unwrap().permissions().mode() & 0o111, 0);
    assert!(other.join(".gemini/settings.json").exists() && !scene.path(".gemini").exists());
    let trusted = scene.read("../home/.gemini/trustedFolders.json");
    assert!(trusted.contains(&format!("\"{}\": \"TRUST_FOLDER\"", other.display())), "{trusted}");
    let trusted = scene.read("../home/.codex/config.toml");
    assert!(trusted.contains(&format!("[projects.\"{}\"]", scene.folder().display())), "{trusted}");
    let removed = Running::start(&mut scene.crewlog_in(&other, &["init", "--remove", "--yes"])).finish().expect(0);
    let says = format!("deleted    {}\n    removed for all worktrees of the repository", shared.display());
    assert!(removed.stdout.contains(&says), "{}", removed.stdout);
    assert!(!shared.exists() && !other.join(".gemini").exists());
    scene.git(&["config", "core.hooksPath", ".githooks"]);
    assert_eq!(init(&["--host", "gemini"])[".githooks/pre-commit"], "wrote");
    assert!(other.join(".githooks/pre-push").exists() && !shared.exists());
}

#[test]
fn an_existing_git_hook_runs_after_ours_and_keeps_its_input() {
    let scene = scene();
    write(&scene, ".git/hooks/pre-push", PRE_PUSH);
    set_mode(&scene, ".git/hooks/pre-push", 0o755);
    write(&scene, ".git/hooks/pre-commit", "#!/usr/bin/env python3\nprint('mine')\n");
    set_mode(&scene, ".git/hooks/pre-commit", 0o755);
    program(&scene, "crewlog", "echo \"$@\" >> ran; cat > eaten; exit \"$(cat verdict 2>/dev/null || echo 0)\"");
    let ran = scene.run(&["init", "--host", "gemini"]).expect(1);
    assert_eq!(scene.read(".git/hooks/pre-commit"), "#!/usr/bin/env python3\nprint('mine')\n");
    let says =
        "failed     .git/hooks/pre-commit\n    it is not a shell script; run this in it: crewlog hook pre-commit";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
    git(&scene, scene.around(), &["init", "-q", "--bare", "remote"]).expect(0);
    git(&scene, scene.folder(), &["push", "-q", "../remote", "main"]).expect(0);
    assert!(scene.read("pushed").starts_with("refs/heads/main "), "{}", scene.read("pushed"));
    assert_eq!(scene.read("ran"), "hook pre-push ../remote ../remote\n");
    assert_eq!(scene.read("eaten"), scene.read("pushed"), "both are told what is pushed");
    scene.write("verdict", "1");
    fs::remove_file(scene.path("pushed")).unwrap();
    git(&scene, scene.folder(), &["push", "-q", "../remote", "main:other"]).expect(1);
    assert!(!scene.path("pushed").exists(), "the hook below does not run after a refusal");
}

#[test]
fn a_git_hook_that_git_skips_is_not_written() {
    let scene = scene();
    let mine = "#!/bin/sh\necho mine\n";
    write(&scene, ".git/hooks/pre-commit", mine);
    let init = || scene.run(&["init", "--host", "gemini"]);
    let ran = init().expect(1);
    let says = "failed     .git/hooks/pre-commit\n    git skips it, since it is not executable: chmod +x it\n";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
    assert_eq!(scene.read(".git/hooks/pre-commit"), mine);
    set_mode(&scene, ".git/hooks/pre-commit", 0o755);
    assert!(init().expect(0).stdout.contains("wrote      .git/hooks/pre-commit\n"));
    set_mode(&scene, ".git/hooks/pre-commit", 0o644);
    init().expect(1);
    scene.run(&["init", "--remove"]).expect(0);
    assert_eq!(scene.read(".git/hooks/pre-commit"), mine);
}

#[test]
fn toml_without_a_last_line_end_is_restored() {
    for own in ["a = 1", "[mcp_servers.other]\r\ncommand = 'x'\n# mixed", "a = 1\r\nb = 2\n"] {
        let scene = scene();
        write(&scene, ".codex/config.toml", own);
        scene.run(&["init", "--host", "codex"]).expect(0);
        assert_ne!(scene.read(".codex/config.toml"), own);
        scene.run(&["init", "--remove"]).expect(0);
        assert_eq!(scene.read(".codex/config.toml"), own);
        scene.run(&["init", "--remove", "--yes"]).expect(0);
        assert_eq!(scene.read(".codex/config.toml"), own, "nothing of it is ours");
    }
}

#[test]
fn a_missing_last_line_end_is_no_difference() {
    let scene = scene();
    let words = [&ALL as &[&str], &["--yes", "-o", "json"]].concat();
    scene.run(&words).expect(0);
    let files = [
        ".mcp.json",
        ".claude/settings.json",
        ".codex/config.toml",
        ".codex/hooks.json",
        ".gemini/settings.json",
        ".opencode/plugin/crewlog.js",
        "opencode.json",
        "AGENTS.md",
        ".git/hooks/pre-push",
        "../home/.codex/config.toml",
        "../home/.gemini/trustedFolders.json",
    ];
    let cut = files.map(|file| scene.read(file).trim_end().to_owned());
    files.iter().zip(&cut).for_each(|(file, text)| scene.write(file, text));
    let again = outcomes(&scene.run(&words).expect(0));
    assert!(again.values().all(|outcome| outcome == "unchanged") && again.len() == 19, "{again:?}");
    assert_eq!(files.map(|file| scene.read(file)), cut);
    scene.run(&["init", "--remove", "--yes"]).expect(0);
    assert_eq!(files[..9].iter().filter(|file| scene.path(file).exists()).collect::<Vec<_>>(), [] as [&&str; 0]);
}

#[test]
fn unattended_init_writes_nothing_outside_the_repository() {
    let scene = scene();
    write(&scene, "../home/CLAUDE.md", "mine\n");
    symlink("../home/CLAUDE.md", scene.path("CLAUDE.md")).unwrap();
    let home = tree(&scene.around().join("home"));
    let ran = scene.run(&ALL).expect(0);
    assert_eq!(tree(&scene.around().join("home")), home);
    for printed in
        ["printed    CLAUDE.md\n    <!-- crewlog: begin", "    trust_level = \"trusted\"", "\": \"TRUST_FOLDER\""]
    {
        assert!(ran.stdout.contains(printed), "{printed}\n{}", ran.stdout);
    }
    let answer = |answer: &str| {
        let mut running = Running::start_on_terminal(&mut scene.crewlog(&["init"]));
        for file in ["CLAUDE.md", ".codex/config.toml", ".gemini/trustedFolders.json"] {
            running.stderr.until(&format!("{file}:"));
            running.stderr.until("This file is outside the repository. Change it? [y/N] ");
            running.types(answer);
        }
        running.finish().expect(0).stdout
    };
    assert!(answer("n").contains("printed    CLAUDE.md"));
    assert_eq!(tree(&scene.around().join("home")), home);
    assert!(answer("y").contains("wrote      CLAUDE.md"));
    assert_eq!(tree(&scene.around().join("home")).len(), 3);
    assert!(scene.read("../home/CLAUDE.md").starts_with("mine\n<!-- crewlog: begin"));
    assert!(fs::symlink_metadata(scene.path("CLAUDE.md")).unwrap().is_symlink(), "the link is followed");
}

/// Root may write everywhere, so the folders cannot be made because files have their names.
#[test]
fn a_home_that_cannot_be_written_stops_nothing_in_the_repository() {
    for blocked in [&[".config"][..], &[".config", ".local", ".cache"]] {
        let scene = scene();
        for name in blocked {
            fs::write(scene.around().join("home").join(name), "mine").unwrap();
        }
        let home = tree(&scene.around().join("home"));
        let wrote = outcomes(&scene.run(&["init", "--host", "claude", "-o", "json"]).expect(0));
        assert_eq!(wrote[".mcp.json"], "wrote");
        scene.run(&["task", "add", "One"]).expect(0);
        scene.run(&["init", "--remove"]).expect(0);
        // The note of where the project is.
        let mut left = tree(&scene.around().join("home"));
        left.retain(|path, _| !path.to_string_lossy().contains("/crewlog/projects/"));
        assert_eq!(left, home);
    }
}

#[test]
fn in_the_home_every_file_is_the_users_own() {
    let scene = scene();
    let home = scene.around().join("home");
    fs::create_dir(home.join(".claude")).unwrap();
    let ran = Running::start(&mut scene.crewlog_in(&home, &["init", "-o", "json"])).finish().expect(0);
    let outcomes = outcomes(&ran);
    assert!(outcomes.values().all(|outcome| outcome == "printed") && outcomes.len() == 5, "{outcomes:?}");
    assert!(!home.join(".claude/settings.json").exists());
}

#[test]
fn only_programs_that_are_found_are_connected() {
    let scene = scene();
    let ran = scene.run(&["init"]).expect(0);
    ran.says(&["no agent program was found here"]);
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
    program(&scene, "gemini", "");
    fs::create_dir(scene.path(".opencode")).unwrap();
    let wrote = outcomes(&scene.run(&["init", "-o", "json"]).expect(0));
    assert!(wrote.contains_key(".gemini/settings.json") && wrote.contains_key("opencode.json"), "{wrote:?}");
    assert!(!wrote.contains_key(".mcp.json") && !wrote.contains_key(".codex/hooks.json"), "{wrote:?}");
    assert!(!wrote.contains_key("CLAUDE.md"), "only Claude Code reads it: {wrote:?}");
}

#[test]
fn a_persons_changes_to_our_entries_stay() {
    let scene = scene();
    let server = "{\"mcpServers\": {\"crewlog\": {\"type\": \"http\", \"url\": \"http://127.0.0.1:7777/mcp\"}}}\n";
    let config = "mcp_servers.crewlog.command = '/opt/crewlog' # mine\r\n";
    let group = r#"{"matcher": "Edit", "hooks": [{"type": "command", "command": "/opt/crewlog hook"}, {"type": "command", "command": "lint"}]}"#;
    write(&scene, ".mcp.json", server);
    write(&scene, ".codex/config.toml", config);
    write(&scene, ".claude/settings.json", &format!("{{\"hooks\": {{\"PreToolUse\": [{group}]}}}}\n"));
    let wrote = outcomes(&scene.run(&["init", "--host", "claude", "--host", "codex", "-o", "json"]).expect(0));
    assert_eq!((wrote[".mcp.json"].as_str(), wrote[".codex/config.toml"].as_str()), ("unchanged", "unchanged"));
    assert_eq!((scene.read(".mcp.json").as_str(), scene.read(".codex/config.toml").as_str()), (server, config));
    let settings = scene.read(".claude/settings.json");
    assert!(
        settings.contains(&format!("\"PreToolUse\": [{group},")),
        "a narrower matcher stays, with ours: {settings}"
    );
    scene.run(&["init", "--remove"]).expect(0);
    let settings = scene.read(".claude/settings.json");
    assert_eq!((scene.read(".mcp.json").as_str(), scene.read(".codex/config.toml").as_str()), (server, config));
    let left: Value = serde_json::from_str(&settings).unwrap();
    let lint = serde_json::json!([{"matcher": "Edit", "hooks": [{"type": "command", "command": "lint"}]}]);
    assert_eq!(left, serde_json::json!({"hooks": {"PreToolUse": lint}}), "{settings}");
}

#[test]
fn toml_tables_are_added_below_any_form_of_their_parent() {
    for own in [
        "mcp_servers = { other = { command = 'x' } }\n",
        "mcp_servers.other.command = 'x'\r\n",
        "[mcp_servers]\nother = { command = 'x' } # last\n",
    ] {
        let scene = scene();
        write(&scene, ".codex/config.toml", own);
        scene.run(&["init", "--host", "codex"]).expect(0);
        let again = outcomes(&scene.run(&["init", "--host", "codex", "-o", "json"]).expect(0));
        assert_eq!(again[".codex/config.toml"], "unchanged", "{own}");
        let config = scene.read(".codex/config.toml");
        assert_eq!(config.matches('\n').count() == config.matches("\r\n").count(), own.contains('\r'), "{config:?}");
        scene.write(".codex/config.toml", format!("# mine\n{config}"));
        scene.run(&["init", "--remove"]).expect(0);
        assert_eq!(
            scene.read(".codex/config.toml").replace("\r\n", "\n"),
            format!("# mine\n{own}").replace("\r\n", "\n")
        );
    }
}

#[test]
fn a_link_to_a_missing_file_counts_as_its_target() {
    for (target, expected) in [("../home/AGENTS.md", "printed"), ("docs/AGENTS.md", "wrote")] {
        let scene = scene();
        symlink(target, scene.path("AGENTS.md")).unwrap();
        let ran = scene.run(&["init", "--host", "gemini", "-o", "json"]).expect(0);
        assert_eq!(outcomes(&ran)["AGENTS.md"], expected);
        assert!(fs::symlink_metadata(scene.path("AGENTS.md")).unwrap().is_symlink());
        assert_eq!(scene.path("AGENTS.md").exists(), expected == "wrote");
    }
}
