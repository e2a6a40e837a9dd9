//! What each agent program needs: its MCP server, its hooks, its consent, and the instructions for its agents.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::COMMAND;
use super::content::Content;
use super::entry::{Entry, keys};
use super::places::Places;
use super::section::Section;
use crate::cli::Host;

/// The tools of Claude Code that change files.
const CLAUDE_TOOLS: &str = "Edit|Write|NotebookEdit|Bash";
const CODEX_TOOLS: &str = "apply_patch|Bash";
const GEMINI_TOOLS: &str = "write_file|replace|run_shell_command";
/// Tells opencode's events to crewlog: it has plugins in place of hooks.
const PLUGIN: &str = include_str!("plugin.js");
const INSTRUCTIONS: &str = "\
Several agents work in this repository. They coordinate on crewlog, by the MCP tools of the server `crewlog`:
- Call `join` first. Its answer tells who works on what, and what waits for you.
- Call `reserve_paths` before you edit files. A path that another agent holds is refused, with its holder.
- Call `next_task` to get a task, and `update_task` when it advances, is done or fails.
- Call `read_inbox` between steps: messages and requests to release a path arrive there.
- Call `ask_person` when a decision is not yours, and work on something else until the answer comes.
- Call `leave` at the end: it releases your paths and hands back your tasks.
- A refused edit or commit names what to do next. Do not work around it.
";

/// One file and what crewlog keeps in it.
#[derive(Debug)]
pub struct Target {
    pub path: PathBuf,
    pub content: Content,
}

impl Target {
    fn new(path: PathBuf, content: Content) -> Self {
        Self { path, content }
    }
}

impl Host {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode];

    /// The file in the repository that says which hooks run.
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
        let hooks_file = self.hooks_file(places);
        match self {
            Self::Claude => vec![
                Target::new(root(".mcp.json"), Content::Json(vec![server("mcpServers", json!({}))])),
                Target::new(hooks_file, Content::Json(claude_hooks())),
                Target::new(
                    // The allowed tools of the shared settings are ignored until the workspace is trusted.
                    root(".claude/settings.local.json"),
                    Content::Json(vec![Entry::Element(keys(&["permissions", "allow"]), json!("mcp__crewlog"))]),
                ),
            ],
            Self::Codex => {
                let options = json!({"env_vars": ["AGENT_ID"], "tool_timeout_sec": 60,
                    "default_tools_approval_mode": "approve"});
                let config = Content::Toml(vec![server("mcp_servers", options)]);
                let hooks = hooks(CODEX_TOOLS, 5, ["PreToolUse", "PostToolUse"], &CODEX_EVENTS);
                vec![Target::new(root(".codex/config.toml"), config), Target::new(hooks_file, Content::Json(hooks))]
            }
            Self::Gemini => {
                let options = json!({"timeout": 60_000, "trust": true});
                let mut entries = vec![server("mcpServers", options)];
                entries.extend(hooks(GEMINI_TOOLS, 5_000, ["BeforeTool", "AfterTool"], &GEMINI_EVENTS));
                vec![Target::new(hooks_file, Content::Json(entries))]
            }
            Self::Opencode => {
                let is_jsonc = root("opencode.jsonc").exists() && !root("opencode.json").exists();
                let config = root(if is_jsonc { "opencode.jsonc" } else { "opencode.json" });
                let server =
                    json!({"type": "local", "command": ["crewlog", "mcp"], "enabled": true, "timeout": 60_000});
                let entries = vec![Entry::Member(keys(&["mcp", "crewlog"]), server)];
                vec![Target::new(config, Content::Json(entries)), Target::new(hooks_file, Content::Whole(PLUGIN))]
            }
        }
    }
}

const CODEX_EVENTS: [&str; 4] = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"];
const GEMINI_EVENTS: [&str; 4] = ["SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"];

fn claude_hooks() -> Vec<Entry> {
    let events = ["SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "SessionEnd"];
    hooks(CLAUDE_TOOLS, 5, ["PreToolUse", "PostToolUse"], &events)
}

/// Hooks around the tools of a matcher, and at other events. The unit of the time-out is the program's.
fn hooks(tools: &str, timeout: u32, around: [&str; 2], events: &[&str]) -> Vec<Entry> {
    let hooks = json!([{"type": "command", "command": COMMAND, "timeout": timeout}]);
    let entry = |event: &str, group: Value| Entry::Element(keys(&["hooks", event]), group);
    let around = around.into_iter().map(|event| entry(event, json!({"matcher": tools, "hooks": hooks})));
    around.chain(events.iter().map(|event| entry(event, json!({"hooks": hooks})))).collect()
}

/// The MCP server, with further options.
fn server(section: &str, options: Value) -> Entry {
    let mut server = json!({"command": "crewlog", "args": ["mcp"]});
    if let (Value::Object(server), Value::Object(options)) = (&mut server, options) {
        server.extend(options);
    }
    Entry::Member(keys(&[section, "crewlog"]), server)
}

/// The instructions for agents. Claude Code reads its own file only.
pub fn instructions(hosts: &[Host], places: &Places) -> Vec<Target> {
    let section = Section {
        begin: "<!-- crewlog: begin; `crewlog init` writes this section -->",
        end: "<!-- crewlog: end -->",
        body: INSTRUCTIONS.to_owned(),
        is_first: false,
    };
    let for_claude = places.root.join("CLAUDE.md");
    let has_claude = hosts.contains(&Host::Claude) || for_claude.exists();
    let paths = [Some(places.root.join("AGENTS.md")), has_claude.then_some(for_claude)];
    paths.into_iter().flatten().map(|path| Target::new(path, Content::Section(section.clone()))).collect()
}

/// The hooks of git that refuse commits and pushes. They run before those that are there, and leave them the input.
pub fn git_hooks(places: &Places) -> Vec<Target> {
    let Some(folder) = places.git_hooks() else { return Vec::new() };
    let hook = |name: &str, arguments: &str| {
        let run = format!("crewlog hook {name}{arguments} </dev/null || exit 1");
        let section = Section {
            begin: "# crewlog: begin; `crewlog init` writes this section",
            end: "# crewlog: end",
            body: format!("if command -v crewlog >/dev/null; then {run}; fi\n"),
            is_first: true,
        };
        Target::new(folder.join(name), Content::Section(section))
    };
    vec![hook("pre-commit", ""), hook("pre-push", " \"$@\"")]
}
