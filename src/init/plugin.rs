//! The plugin of crewlog: a folder that Claude Code and Codex install as a marketplace, with an extension for Gemini CLI and
//! the file for opencode. A person installs it once, for all repositories.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crewlog_executors::private::user_folder;
use crewlog_executors::supervisor::Spec;
use serde_json::{Value, json};

use super::change::{Change, Files, Row};
use super::content::Content;
use super::hosts::{INSTRUCTIONS, PLUGIN};
use super::json as json_text;
use super::places::Places;
use super::programs::{run, spec};
use super::target::{Target, read};
use super::trust::hashes;
use super::wanted::{SERVER, Wanted};
use crate::cli::programs::Host;
use crate::consent::confirm;
use crate::context::Session;
use crate::ui::failure::Failure;
use crate::ui::text::{shell_word, visible};

/// The plugin, and after the sign the marketplace that has it.
const ID: &str = "crewlog@crewlog";
/// Claude Code puts the names of the plugin and of its server before the names of tools.
const CLAUDE_TOOLS: &str = "mcp__plugin_crewlog_crewlog";
const CODEX_HOOKS: &str = "hooks/codex.json";
const MARKETPLACE: &str = ".claude-plugin/marketplace.json";
/// The time limit for a program to install it.
const INSTALL_MAX: Duration = Duration::from_secs(60);

/// The files of the plugin, relative to its folder.
fn files() -> Vec<(PathBuf, String)> {
    let about = "Coordinates coding agents in a repository: leases on files, tasks, messages, questions to the person.";
    let with = |mut base: Value, more: Value| {
        if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
            base.extend(more);
        }
        base
    };
    let plugin = |more| with(json!({"name": SERVER, "version": env!("CARGO_PKG_VERSION"), "description": about}), more);
    let (owner, license) = (json!({"name": SERVER}), "MIT OR Apache-2.0");
    let marketplace = |source: Value, more| {
        let entry = with(json!({"name": SERVER, "source": source, "description": about}), more);
        json!({"name": SERVER, "owner": owner, "metadata": {"description": about}, "plugins": [entry]})
    };
    let for_codex = json!({"category": "Developer Tools",
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}});
    // Codex starts the server without the variables that it is not given, and Claude Code ignores these members.
    let server = json!({"command": "crewlog", "args": ["mcp"], "env_vars": ["AGENT_ID", "CREWLOG_SESSION"],
        "tool_timeout_sec": 60, "default_tools_approval_mode": "approve"});
    let hooks = |host: Host| json!({"hooks": host.hooks()});
    let gemini = plugin(json!({"mcpServers": {SERVER: Host::gemini_server()}}));
    let jsons = [
        (MARKETPLACE, marketplace("./crewlog".into(), json!({}))),
        (".agents/plugins/marketplace.json", marketplace(json!({"source": "local", "path": "./crewlog"}), for_codex)),
        ("crewlog/.claude-plugin/plugin.json", plugin(json!({"author": owner, "license": license}))),
        (
            "crewlog/.codex-plugin/plugin.json",
            plugin(json!({"author": owner, "license": license, "skills": "./skills/", "mcpServers": "./.mcp.json",
                "hooks": format!("./{CODEX_HOOKS}")})),
        ),
        ("crewlog/.mcp.json", json!({"mcpServers": {SERVER: server}})),
        ("crewlog/hooks/hooks.json", hooks(Host::Claude)),
        ("crewlog/hooks/codex.json", hooks(Host::Codex)),
        ("gemini/gemini-extension.json", gemini),
        ("gemini/hooks/hooks.json", hooks(Host::Gemini)),
    ];
    let texts = [
        ("crewlog/skills/crew/SKILL.md", format!("---\nname: crew\ndescription: {about}\n---\n\n{INSTRUCTIONS}")),
        ("crewlog/README.md", format!("# crewlog\n\n{about}\n\n{}", include_str!("plugin/README.md"))),
        ("opencode/crewlog.js", PLUGIN.to_owned()),
        ("opencode/2/crewlog.js", include_str!("plugin/opencode2.js").to_owned()),
    ];
    let jsons = jsons.into_iter().map(|(path, value)| (path, format!("{value:#}\n")));
    jsons.chain(texts).map(|(path, text)| (path.into(), text)).collect()
}

/// The folder of the plugin unless a person names another one.
pub fn usual_folder() -> Option<PathBuf> {
    user_folder("XDG_DATA_HOME", ".local/share").map(|folder| folder.join("plugin"))
}

/// Writes the folder. One that has other files is refused.
pub fn write(folder: &Path) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::user(format!("the plugin cannot be written: {error}"));
    let is_other = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if is_other && !folder.join(MARKETPLACE).is_file() {
        let refused = format!("{} has files, and is no plugin of crewlog", folder.display());
        return Err(Failure::user(refused).hint("name a new folder: crewlog init --plugin=FOLDER"));
    }
    for (path, text) in files() {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(cannot)?;
        fs::write(path, text).map_err(cannot)?;
    }
    Ok(())
}

impl Host {
    /// True if the person has installed the plugin in this program.
    pub fn has_plugin(self, places: &Places) -> bool {
        let json = |path: &Path| json_text::value(&read(path).ok()??).ok();
        match self {
            Self::Claude => {
                let files = [".claude/settings.local.json", ".claude/settings.json", "~/.claude/settings.json"];
                let mut settings = files.iter().filter_map(|name| json(&places.configuration(name)));
                settings.find_map(|settings| settings["enabledPlugins"][ID].as_bool()).unwrap_or(false)
            }
            Self::Codex => {
                let text = read(&places.codex_config()).ok().flatten().unwrap_or_default();
                let config: Value = toml_edit::de::from_str(&text).unwrap_or_default();
                config["plugins"].get(ID).is_some_and(|plugin| plugin["enabled"] != false)
            }
            Self::Gemini => places.configuration("~/.gemini/extensions/crewlog/gemini-extension.json").exists(),
            Self::Opencode => places.opencode_plugin().exists(),
        }
    }

    /// The files of the repository and of the user that a program needs in addition to the plugin.
    pub fn plugin_targets(self, places: &Places) -> Vec<Target> {
        let wanted = |ours| Wanted { ours, trust: Value::Null };
        match self {
            Self::Claude => {
                let ours = json!({"permissions": {"allow": [CLAUDE_TOOLS]}});
                let path = places.root.join(".claude/settings.local.json");
                vec![Target { path, content: Content::Json(wanted(ours)) }]
            }
            Self::Codex => {
                let hooks = json!({"hooks": self.hooks()});
                let state = hashes(&format!("{ID}:{CODEX_HOOKS}"), &hooks);
                let content = Content::Toml(wanted(json!({"hooks": {"state": state}})));
                vec![Target { path: places.codex_config(), content }]
            }
            Self::Gemini | Self::Opencode => Vec::new(),
        }
    }

    /// The commands by which the program installs or removes the plugin of a folder.
    fn plugin_commands(self, folder: &Path, change: Change) -> Vec<Vec<String>> {
        let (folder, gemini) = (folder.to_string_lossy(), folder.join("gemini"));
        let gemini = gemini.to_string_lossy();
        let commands: &[&[&str]] = match (self, change) {
            (Self::Claude, Change::Add) => &[&["plugin", "marketplace", "add", &folder], &["plugin", "install", ID]],
            (Self::Claude, Change::TakeOut) => {
                &[&["plugin", "uninstall", ID], &["plugin", "marketplace", "remove", SERVER]]
            }
            (Self::Codex, Change::Add) => &[&["plugin", "marketplace", "add", &folder], &["plugin", "add", ID]],
            (Self::Codex, Change::TakeOut) => {
                &[&["plugin", "remove", ID], &["plugin", "marketplace", "remove", SERVER]]
            }
            (Self::Gemini, Change::Add) => &[&["extensions", "install", &gemini, "--consent"]],
            (Self::Gemini, Change::TakeOut) => &[&["extensions", "uninstall", SERVER]],
            (Self::Opencode, Change::Add | Change::TakeOut) => &[],
        };
        let own = |words: &&[&str]| [self.as_ref()].iter().chain(*words).map(|word| (*word).to_owned()).collect();
        commands.iter().map(own).collect()
    }
}

/// Installs or removes the plugin in these programs, once the person agrees. Returns the changed files of programs without
/// commands for it. Without an agreement nothing has changed, and the commands are named.
pub async fn change(
    session: &Session,
    places: &Places,
    files: &mut Files<'_>,
    (hosts, folder): (&[Host], &Path),
    change: Change,
) -> Result<Vec<Row>, Failure> {
    // A program keeps a copy: the installed one goes first.
    let steps = |host: &Host| {
        let old = if host.has_plugin(places) { host.plugin_commands(folder, Change::TakeOut) } else { Vec::new() };
        let new = if change == Change::Add { host.plugin_commands(folder, change) } else { Vec::new() };
        [old, new].concat()
    };
    let commands: Vec<_> = hosts.iter().flat_map(steps).collect();
    if !commands.is_empty() {
        let lines =
            commands.iter().map(|words| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "));
        let lines = lines.collect::<Vec<_>>();
        if !session.yes {
            lines.iter().for_each(|line| session.say(&visible(line)));
        }
        confirm(session, "Run these commands?", "the plugin was not changed")
            .map_err(|failure| failure.hint("or run them yourself, then `crewlog init`"))?;
        for (words, line) in commands.into_iter().zip(&lines) {
            // Gemini CLI asks whether the folder is trusted.
            let spec = Spec { input: Some("y\n".to_owned()), ..spec(places, words) };
            let ran = run(spec, INSTALL_MAX).await;
            ran.map_err(|reason| Failure::user(format!("`{line}` failed: {reason}")))?;
        }
    }
    let own = hosts.iter().filter(|host| **host == Host::Opencode);
    let target = || Target { path: places.opencode_plugin(), content: Content::Whole(PLUGIN) };
    Ok(own.map(|_| files.change(&target(), change)).collect())
}
