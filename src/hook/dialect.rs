//! The hook inputs of the four hosts, read into one [`Call`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use super::{Edits, Host, Intent, Moment, TouchKind, patch, shell};

/// The most bytes of a hook's input. Claude Code sends a written file whole.
pub const INPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most bytes of the id of a session or subagent.
pub const ID_BYTES_MAX: usize = 256;

/// One run of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Who runs the hook.
    pub host: Host,
    /// When.
    pub moment: Moment,
    /// The host's id of the session.
    pub session: String,
    /// The subagent that makes the call; none for the session's own agent.
    pub agent: Option<SubAgent>,
    /// The absolute folder that relative paths are below.
    pub cwd: PathBuf,
    /// The host's name of the tool, before and after a tool call.
    pub tool: Option<String>,
    /// What the tool call changes.
    pub intent: Intent,
    /// True when this stop was refused before: refusing it again would not end.
    pub is_repeated_stop: bool,
}

/// An agent that a session's agent started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubAgent {
    /// Unique within the session.
    pub id: String,
    /// The host's name for this kind of agent.
    pub kind: Option<String>,
}

/// An input that no known host sends. Whether the tool call may run is the caller's policy.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// It is not even read.
    #[error("the hook input has {n_bytes} bytes, over {INPUT_BYTES_MAX}: write the file in smaller parts")]
    TooLong {
        /// Its length.
        n_bytes: usize,
    },
    /// Not an object of JSON in UTF-8.
    #[error("the hook input is not a JSON object; `crewlog doctor` tries the hook of each host")]
    NotJson(#[source] serde_json::Error),
    /// A field is missing or is not what the hosts send.
    #[error("`{field}` of the hook input {problem}; `crewlog doctor` tries the hook of each host")]
    Field {
        /// Its name, with `tool_input.` before the arguments of a tool.
        field: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Reads the input of a hook of any host.
///
/// # Errors
/// Anything that a known host does not send. Fields that are not needed are not judged.
pub fn parse(input: &[u8]) -> Result<Call, HookError> {
    if input.len() > INPUT_BYTES_MAX {
        return Err(HookError::TooLong { n_bytes: input.len() });
    }
    let fields = Fields { below: "", raw: serde_json::from_slice(input).map_err(HookError::NotJson)? };
    let event = fields.required("hook_event_name")?;
    let host = host(&event, &fields)?;
    let moment = match event.as_str() {
        "SessionStart" => Moment::SessionStart { source: fields.text("source")?.unwrap_or_default() },
        "UserPromptSubmit" | "BeforeAgent" => Moment::Prompt,
        "PreToolUse" | "BeforeTool" => Moment::PreTool,
        "PostToolUse" | "AfterTool" => Moment::PostTool,
        "Stop" | "AfterAgent" => Moment::Stop,
        "SessionEnd" => Moment::SessionEnd,
        "SubagentStop" if fields.has("agent_id") => Moment::SessionEnd,
        _unused => Moment::Other,
    };
    let cwd = PathBuf::from(fields.required("cwd")?);
    if !cwd.is_absolute() {
        return Err(fields.wrong("cwd", "is not an absolute path"));
    }
    let agent = match fields.id("agent_id")? {
        Some(id) => Some(SubAgent { id, kind: fields.text("agent_type")? }),
        None => None,
    };
    let (tool, intent) = match moment {
        Moment::PreTool | Moment::PostTool => {
            let tool = fields.required("tool_name")?;
            let intent = intent(&tool, &fields)?;
            (Some(tool), intent)
        }
        Moment::SessionStart { .. } | Moment::Prompt | Moment::Stop | Moment::SessionEnd | Moment::Other => {
            (None, Intent::Nothing)
        }
    };
    let session = fields.id("session_id")?.ok_or_else(|| fields.wrong("session_id", "is missing"))?;
    let is_repeated_stop = fields.read("stop_hook_active", "is neither true nor false")?.unwrap_or(false);
    Ok(Call { host, moment, session, agent, cwd, tool, intent, is_repeated_stop })
}

/// Who speaks. Gemini has names of its own for events, and a time in each; Codex an id for each turn, and a transcript
/// that is a rollout; opencode's plugin sends no transcript.
fn host(event: &str, fields: &Fields<'_>) -> Result<Host, HookError> {
    if fields.has("turn_id") {
        return Ok(Host::Codex);
    }
    if event.starts_with("Before") || event.starts_with("After") || fields.has("timestamp") {
        return Ok(Host::Gemini);
    }
    if !fields.has("transcript_path") {
        return Ok(if fields.has("model") { Host::Codex } else { Host::Opencode });
    }
    // Claude Code gives a model too, at the start of a session. Codex has no transcript in a session that is not kept.
    let transcript = fields.text("transcript_path")?;
    let name = transcript.as_deref().map(|path| path.rsplit(['/', '\\']).next().unwrap_or(path));
    Ok(if name.is_none_or(|name| name.starts_with("rollout-")) { Host::Codex } else { Host::Claude })
}

fn intent(tool: &str, fields: &Fields<'_>) -> Result<Intent, HookError> {
    let mut found = Edits::default();
    match tool {
        "Edit" | "Write" | "replace" | "write_file" => write(fields, "file_path", &mut found)?,
        "NotebookEdit" => write(fields, "notebook_path", &mut found)?,
        "edit" | "write" => write(fields, "filePath", &mut found)?,
        "apply_patch" => {
            let arguments = fields.arguments()?;
            // opencode's name for it, then Codex's.
            let text = match arguments.text("patchText")? {
                Some(text) => text,
                None => arguments.required("command")?,
            };
            patch::read(&text, Path::new(""), &mut found);
        }
        "Bash" | "bash" | "run_shell_command" => run(fields, "command", &mut found)?,
        "exec_command" => run(fields, "cmd", &mut found)?,
        tool => {
            let own =
                ["mcp__crewlog__", "mcp_crewlog_", "crewlog_"].iter().find_map(|prefix| tool.strip_prefix(prefix));
            return Ok(own.map_or(Intent::Nothing, |tool| Intent::OwnTool(tool.to_owned())));
        }
    }
    let is_nothing = found == Edits::default();
    Ok(if is_nothing { Intent::Nothing } else { Intent::Edits(found) })
}

fn write(fields: &Fields<'_>, name: &str, found: &mut Edits) -> Result<(), HookError> {
    let path = fields.arguments()?.required(name)?;
    found.add_literal(Path::new(""), &path, TouchKind::Write);
    Ok(())
}

fn run(fields: &Fields<'_>, name: &str, found: &mut Edits) -> Result<(), HookError> {
    let arguments = fields.arguments()?;
    let folder = match arguments.text("workdir")? {
        Some(folder) => folder,
        None => arguments.text("dir_path")?.unwrap_or_default(),
    };
    shell::read(&arguments.required(name)?, Path::new(&folder), found);
    Ok(())
}

/// The fields of an object, each read when it is asked for: a written file is passed over, not copied.
struct Fields<'a> {
    below: &'static str,
    raw: BTreeMap<String, &'a RawValue>,
}

impl<'a> Fields<'a> {
    fn has(&self, name: &str) -> bool {
        self.raw.contains_key(name)
    }

    /// Nothing for a missing field and for null.
    fn read<T: serde::Deserialize<'a>>(&self, name: &str, problem: &'static str) -> Result<Option<T>, HookError> {
        let Some(raw) = self.raw.get(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map_err(|_of_another_type| self.wrong(name, problem))
    }

    fn text(&self, name: &str) -> Result<Option<String>, HookError> {
        self.read(name, "is not a string")
    }

    fn required(&self, name: &str) -> Result<String, HookError> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    fn id(&self, name: &str) -> Result<Option<String>, HookError> {
        let id = self.text(name)?;
        match &id {
            Some(id) if id.is_empty() || id.len() > ID_BYTES_MAX => Err(self.wrong(name, "is empty or too long")),
            Some(id) if id.contains(char::is_control) => Err(self.wrong(name, "has control characters")),
            Some(_) | None => Ok(id),
        }
    }

    /// The arguments of a tool call.
    fn arguments(&self) -> Result<Fields<'a>, HookError> {
        let raw = self.read("tool_input", "is not an object")?.ok_or_else(|| self.wrong("tool_input", "is missing"))?;
        Ok(Fields { below: "tool_input.", raw })
    }

    fn wrong(&self, field: &str, problem: &'static str) -> HookError {
        HookError::Field { field: format!("{}{field}", self.below), problem }
    }
}
