//! The plugin: installed in place of hooks in files, never with them; node stands for opencode 2.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::init::{program, scene};
use crate::cli::scene::{Ran, Running, Scene};

/// Programs that install plugins as the real ones do, as far as `init` sees.
fn programs() -> Scene {
    let scene = scene();
    let note = r#"echo "$(basename "$0") $*" >> "$HOME/commands""#;
    let claude = r#"settings="$HOME/.claude/settings.json"; mkdir -p "$HOME/.claude"
case "$*" in
    "plugin install crewlog@crewlog") echo '{"enabledPlugins": {"crewlog@crewlog": true}}' > "$settings" ;;
    "plugin uninstall crewlog@crewlog") echo '{"enabledPlugins": {}}' > "$settings" ;;
    --version) echo 1.2.3 ;;
esac"#;
    let codex = r#"config="$HOME/.codex/config.toml"; mkdir -p "$HOME/.codex"
case "$*" in
    "plugin add crewlog@crewlog") printf '[plugins."crewlog@crewlog"]\nenabled = true\n' >> "$config" ;;
    "plugin remove crewlog@crewlog") sed -i '/^\[plugins/,/^enabled/d' "$config" ;;
    --version) echo 1.2.3 ;;
esac"#;
    program(&scene, "claude", &format!("{note}\n{claude}"));
    program(&scene, "codex", &format!("{note}\n{codex}"));
    scene
}

fn commands(scene: &Scene) -> Vec<String> {
    let commands = fs::read_to_string(scene.around().join("home/commands")).unwrap_or_default();
    commands.lines().filter(|line| !line.ends_with("--version")).map(str::to_owned).collect()
}

fn folder(scene: &Scene) -> String {
    scene.around().join("home/.local/share/crewlog/plugin").to_string_lossy().into_owned()
}

/// The failed checks of `doctor`.
fn missing(scene: &Scene) -> String {
    let ran = scene.run(&["doctor", "-o", "json", "--host", "claude", "--host", "codex"]);
    let report = ran.json();
    let missing = report["checks"].as_array().unwrap().iter().filter(|check| check["is_ok"] == false);
    missing.map(|check| format!("{}: {}; ", check["host"], check["found"])).collect()
}

#[test]
fn the_plugin_replaces_hooks_in_files_and_goes_with_remove() {
    let scene = programs();
    scene.run(&["init", "--yes"]).expect(0);
    assert!(scene.path(".mcp.json").exists() && scene.path(".codex/hooks.json").exists());
    scene.run(&["init", "--yes", "--plugin"]).expect(0).says(&["the plugin is in "]);
    let (from, id) = (folder(&scene), "crewlog@crewlog");
    let installed = [
        format!("claude plugin marketplace add {from}"),
        format!("claude plugin install {id}"),
        format!("codex plugin marketplace add {from}"),
        format!("codex plugin add {id}"),
    ];
    assert_eq!(commands(&scene), installed);
    for file in [".mcp.json", ".claude/settings.json", ".codex/hooks.json", ".codex/config.toml"] {
        assert!(!scene.path(file).exists(), "{file} connects a program too");
    }
    assert!(scene.read(".claude/settings.local.json").contains("\"mcp__plugin_crewlog_crewlog\""));
    let hooks = fs::read_to_string(Path::new(&from).join("crewlog/hooks/codex.json")).unwrap();
    assert_eq!(hooks.matches("\"crewlog hook\"").count(), 10, "{hooks}");
    let trusted = fs::read_to_string(scene.around().join("home/.codex/config.toml")).unwrap();
    assert_eq!(trusted.matches("crewlog@crewlog:hooks/codex.json:").count(), 10, "{trusted}");
    assert_eq!(missing(&scene), "", "doctor knows the plugin");

    // With the plugin, `init` adds no hooks to files; hooks in both places are named and taken out.
    let again = scene.run(&["init", "--yes", "-o", "json"]).expect(0).json();
    let outcomes = again["files"].as_array().unwrap();
    assert!(outcomes.iter().all(|row| row["outcome"] == "unchanged"), "{again:#}");
    scene.write(".mcp.json", r#"{"mcpServers": {"crewlog": {"command": "crewlog", "args": ["mcp"]}}}"#);
    assert!(missing(&scene).contains("these files connect it too: .mcp.json"), "{}", missing(&scene));
    scene.run(&["init", "--yes"]).expect(0);
    assert_eq!((missing(&scene).as_str(), scene.path(".mcp.json").exists()), ("", false));

    // Unattended, the files are restored and the plugin stays.
    scene.run(&["init", "--remove"]).expect(1).says(&["codex plugin remove", "the plugin was not changed"]);
    assert_eq!((commands(&scene).len(), scene.path(".claude").exists()), (4, false));
    scene.run(&["init", "--yes"]).expect(0);
    scene.run(&["init", "--remove", "--yes"]).expect(0);
    assert_eq!(
        commands(&scene)[4..].join("\n"),
        format!(
            "claude plugin uninstall {id}\nclaude plugin marketplace remove crewlog\n\
         codex plugin remove {id}\ncodex plugin marketplace remove crewlog"
        )
    );
    assert!(!scene.path(".claude").exists(), "its permission is removed");
    let left = fs::read_to_string(scene.around().join("home/.codex/config.toml")).unwrap_or_default();
    assert!(!left.contains("crewlog"), "{left}");
    // Without the plugin, hooks are in files again.
    scene.run(&["init", "--yes"]).expect(0);
    assert!(scene.path(".mcp.json").exists());
}

#[test]
fn nothing_is_installed_unasked_by_an_agent_or_into_a_folder_of_others() {
    let scene = programs();
    let shown = format!("claude plugin marketplace add {}", folder(&scene));
    scene.run(&["init", "--plugin"]).expect(1).says(&[&shown, "run them yourself, then `crewlog init`"]);
    let by_agent = |words: &[&str]| Running::start(scene.crewlog(words).env("AGENT_ID", "ann")).finish();
    by_agent(&["init", "--plugin", "--yes"]).expect(11);
    fs::create_dir(scene.path("mine")).unwrap();
    scene.write("mine/notes", "mine");
    scene.run(&["init", "--yes", "--plugin=mine"]).expect(1).says(&["mine has files, and is no plugin of crewlog"]);
    assert_eq!(commands(&scene), [""; 0], "no program was started");
    assert!(!scene.path(".mcp.json").exists() && !scene.path(".crewlog").exists());
    // The folder may be named, and a failure of a program is reported with its command.
    program(&scene, "claude", "echo broken >&2; exit 3");
    let failed: Ran = scene.run(&["init", "--yes", "--host", "claude", "--plugin=own"]).expect(1);
    failed.says(&["`claude plugin marketplace add ", "/own` failed: exit code 3 broken"]);
    let version = scene.read("own/crewlog/.claude-plugin/plugin.json");
    let version: Value = serde_json::from_str(&version).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn sessions_that_began_before_are_named() {
    let scene = programs();
    program(&scene, "claude", "echo begun; read line");
    let session = |folder: &Path| {
        let mut claude = Command::new("/bin/sh");
        claude.arg(scene.around().join("bin/claude")).current_dir(folder).stdin(Stdio::piped());
        let mut session = Running::start(&mut claude);
        session.stdout.until("begun");
        session
    };
    let (here, elsewhere) = (session(scene.folder()), session(scene.around()));
    let ran = scene.run(&["init", "--yes", "--host", "claude"]).expect(0);
    let named = ran.stderr.lines().find(|line| line.contains("these sessions began before: restart claude (process "));
    assert_eq!(named.map(|line| line.matches("process").count()), Some(1), "{}", ran.stderr);
    // Nothing changes, so nothing has to start again.
    let ran = scene.run(&["init", "--yes", "--host", "claude"]).expect(0);
    assert!(!ran.stderr.contains("restart"), "{}", ran.stderr);
    here.killed();
    elsewhere.killed();
}

#[test]
fn the_file_for_opencode_2_has_the_form_of_its_plugins() {
    let scene = Scene::with_repository();
    scene.run(&["init", "--no-hosts"]).expect(0);
    scene.run(&["init", "--yes", "--host", "opencode", "--plugin=made"]).expect(0);
    let ann = ["lease", "a.txt", "--reason", "mine", "--", "sh", "-c", "echo leased; read line"];
    let mut holder = Running::start(scene.crewlog(&ann).env("AGENT_ID", "ann").stdin(Stdio::piped()));
    holder.stdout.until("leased");
    scene.write("host.mjs", include_str!("opencode2.mjs"));
    fs::copy(scene.path("made/opencode/2/crewlog.js"), scene.path("plugin.mjs")).unwrap();
    let crewlog = scene.crewlog(&[]);
    let mut node = Command::new("node");
    node.arg("host.mjs").envs(crewlog.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for (name, _) in crewlog.get_envs().filter(|(_, value)| value.is_none()) {
        node.env_remove(name);
    }
    let folder = Path::new(crewlog.get_program()).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let ran = Running::start(node.current_dir(scene.folder()).env("PATH", path)).finish().expect(0);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(said["refused"].as_str().unwrap().contains("ann"), "{said:#}");
    assert_eq!(said["allowed"], true, "{said:#}");
    assert!(said["system"][0]["text"].as_str().unwrap().contains("crewlog"), "{said:#}");
    // The lease for the edit ended with the turn.
    let leases = scene.run(&["leases", "-o", "json"]).expect(0).json();
    assert!(!leases.to_string().contains("b.txt"), "{leases:#}");
    assert_eq!(scene.events_of_type("LeasesGranted").len(), 2);
    holder.types("");
    holder.finish().expect(0);
}
