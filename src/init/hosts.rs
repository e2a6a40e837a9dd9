//! The requirements of each agent program: its MCP server, its hooks, its consent, and the instructions for its agents.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::content::{Content, Script};
use super::places::Places;
use super::target::Target;
use super::wanted::{COMMAND, SERVER, Wanted};
use crate::cli::programs::{Host, STATUS_LINE};
use crate::ui::text::shell_word;

/// Passes opencode's events to crewlog: it has plugins instead of hooks.
pub const PLUGIN: &str = include_str!("plugin.js");

pub const INSTRUCTIONS: &str = "\
Several agents work in this repository. They coordinate on crewlog, by the MCP tools of the server `crewlog`:
- Call `join` first. Its answer tells who works on what, and what waits for you.
- Call `reserve_paths` before you edit files. A path that another agent holds is refused, with its holder.
- Call `next_task` to get a task, and `update_task` when it advances, is done or fails.
- Call `read_inbox` between steps: messages and requests to release a path arrive there.
- Call `ask_person` when a decision is not yours, and work on something else until the answer comes.
- Call `leave` at the end: it releases your paths and hands back your tasks.
- A refused edit or commit names what to do next. Do not work around it.
";

impl Host {
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode];

    /// The file in the repository that configures hooks.
    pub fn hooks_file(self, places: &Places) -> PathBuf {
        places.root.join(match self {
            Self::Claude => ".claude/settings.json",
            Self::Codex => ".codex/hooks.json",
            Self::Gemini => ".gemini/settings.json",
            Self::Opencode => ".opencode/plugin/crewlog.js",
        })
    }

    /// The program's files in the repository.
    pub fn targets(self, places: &Places) -> Vec<Target> {
        let root = |name: &str| places.root.join(name);
        let wanted = |ours| Wanted { ours, trust: Value::Null };
        let json = |path, ours| Target { path, content: Content::Json(wanted(ours)) };
        let hooks_file = self.hooks_file(places);
        match self {
            Self::Claude => {
                vec![
                    json(root(".mcp.json"), json!({"mcpServers": {SERVER: {"command": "crewlog", "args": ["mcp"]}}})),
                    json(
                        hooks_file,
                        json!({"hooks": self.hooks(), "statusLine": {"type": "command", "command": STATUS_LINE}}),
                    ),
                    // The allowed tools of the shared settings are ignored until the workspace is trusted.
                    json(root(".claude/settings.local.json"), json!({"permissions": {"allow": ["mcp__crewlog"]}})),
                ]
            }
            Self::Codex => {
                let server = json!({"command": "crewlog", "args": ["mcp"], "env_vars": ["AGENT_ID", "CREWLOG_SESSION"],
                    "tool_timeout_sec": 60, "default_tools_approval_mode": "approve"});
                let content = Content::Toml(wanted(json!({"mcp_servers": {SERVER: server}})));
                let hooks = json!({"hooks": self.hooks()});
                vec![Target { path: root(".codex/config.toml"), content }, json(hooks_file, hooks)]
            }
            Self::Gemini => {
                let ours = json!({"mcpServers": {SERVER: Self::gemini_server()}, "hooks": self.hooks()});
                vec![json(hooks_file, ours)]
            }
            Self::Opencode => {
                let is_jsonc = root("opencode.jsonc").exists() && !root("opencode.json").exists();
                let config = root(if is_jsonc { "opencode.jsonc" } else { "opencode.json" });
                let server =
                    json!({"type": "local", "command": ["crewlog", "mcp"], "enabled": true, "timeout": 60_000});
                let plugin = Target { path: hooks_file, content: Content::Whole(PLUGIN) };
                vec![json(config, json!({"mcp": {SERVER: server}})), plugin]
            }
        }
    }
}

impl Host {
    /// The MCP server in the settings and extensions of Gemini CLI.
    pub fn gemini_server() -> Value {
        json!({"command": "crewlog", "args": ["mcp"], "timeout": 60_000, "trust": true})
    }

    /// The hooks of the program. opencode has a plugin instead.
    pub fn hooks(self) -> Value {
        let turns = ["SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "SessionEnd"];
        match self {
            Self::Claude => {
                // Not WorktreeCreate: its hook has to make the worktree itself.
                let states = ["StopFailure", "Notification", "PreCompact", "PostCompact", "CwdChanged"];
                let events = [turns, states].concat();
                let around = ["PreToolUse", "PostToolUse", "PostToolUseFailure"];
                let mut hooks = hooks("Edit|Write|NotebookEdit|Bash", 5, &around, &events);
                // It waits for the person.
                let waiting = json!([{"type": "command", "command": COMMAND, "timeout": 600}]);
                hooks["PermissionRequest"] = json!([{"hooks": waiting}]);
                hooks
            }
            Self::Codex => {
                let events = [&turns[..], &["PermissionRequest", "PreCompact", "PostCompact"]].concat();
                hooks("apply_patch|Bash", 5, &["PreToolUse", "PostToolUse"], &events)
            }
            Self::Gemini => {
                let events = ["SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd", "Notification", "PreCompress"];
                hooks("write_file|replace|run_shell_command", 5_000, &["BeforeTool", "AfterTool"], &events)
            }
            Self::Opencode => json!({}),
        }
    }
}

/// Hooks around the tools of a matcher, and at other events. The unit of the time-out depends on the program.
fn hooks(tools: &str, timeout: u32, around: &[&str], events: &[&str]) -> Value {
    let hooks = json!([{"type": "command", "command": COMMAND, "timeout": timeout}]);
    let around = around.iter().map(|&event| (event.to_owned(), json!([{"matcher": tools, "hooks": hooks}])));
    around.chain(events.iter().map(|&event| (event.to_owned(), json!([{"hooks": hooks}])))).collect()
}

/// The files that programs share: instructions for agents, and the hooks of git.
pub fn shared(hosts: &[Host], places: &Places) -> Vec<Target> {
    let text = |path| Target { path, content: Content::Text(INSTRUCTIONS) };
    let mut targets = vec![text(places.root.join("AGENTS.md"))];
    let for_claude = places.root.join("CLAUDE.md");
    // Claude Code reads only its own file.
    if hosts.contains(&Host::Claude) || for_claude.exists() {
        targets.push(text(for_claude));
    }
    targets.extend(git_hooks(places));
    targets
}

/// The hooks of git that refuse commits and pushes. They run before existing hooks, and leave them the input. Each looks for
/// crewlog on the PATH, then where it is now, unless the file is committed: other machines have it elsewhere.
pub fn git_hooks(places: &Places) -> Vec<Target> {
    let Some(folder) = places.git_hooks() else { return Vec::new() };
    // husky writes this folder again at each install, and its scripts run those of the folder above.
    let of_husky = folder.ends_with(".husky/_").then(|| folder.parent().map(Path::to_owned)).flatten();
    let is_run_by_git = of_husky.is_none();
    let folder = of_husky.unwrap_or(folder);
    let own = std::env::current_exe().ok().filter(|_| !places.is_committed(&folder));
    let own = own.map(|path| shell_word(&path.to_string_lossy())).unwrap_or_default();
    let commit = "\"$crewlog\" hook pre-commit </dev/null || exit 1\n";
    // Git lists the pushed refs on standard input. The earlier hook needs them too.
    let push = "input=$(cat)\nprintf '%s\\n' \"$input\" | \"$crewlog\" hook pre-push \"$@\" || exit 1\n\
                exec <<END_OF_INPUT\n$input\nEND_OF_INPUT\n";
    let script = |(name, of, run): (&str, &str, &str)| {
        let body = format!(
            "crewlog=$(command -v crewlog) || crewlog={own}\nif [ -x \"$crewlog\" ]; then\n{run}else\n\
             echo 'crewlog is not found on the PATH: leases are not looked at' >&2\nfi\n"
        );
        let command = format!("{COMMAND} {of}");
        Target { path: folder.join(name), content: Content::Script(Script { body, command, is_run_by_git }) }
    };
    // An earlier hook gets the input.
    let record = |hook: &str| format!("\"$crewlog\" hook {hook} \"$@\" </dev/null || :\n");
    let recorders = ["post-commit", "post-checkout", "post-merge", "post-rewrite"].map(|hook| (hook, record(hook)));
    let recorders: Vec<_> = recorders.iter().map(|(hook, run)| script((hook, hook, run))).collect();
    // Git runs another hook before it commits a merge.
    let hooks = [
        ("pre-commit", "pre-commit", commit),
        ("pre-merge-commit", "pre-commit", commit),
        ("pre-push", "pre-push", push),
    ];
    hooks.map(script).into_iter().chain(recorders).collect()
}
