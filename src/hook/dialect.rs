//! The four agent programs: parses the input of a hook into one [`Call`], and prints a [`Verdict`] as the JSON object
//! that the program understands.

use std::path::PathBuf;

use crewlog_planner::crew::asks;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{from_str, json};

use super::sight::Sight;
use super::touches::Edits;
use super::{patch, shell};
use crate::cli::programs::Host;
use crate::ui::text::sha256;

/// The most characters of a hook's text for the model; the rest is cut.
pub const TEXT_CHARS_MAX: usize = 2_000;

/// The most characters of a tool call that are kept: too many for a question, so nobody allows a part.
const SHOWN_CHARS_MAX: usize = asks::TEXT_BYTES_MAX;

/// The tools that run a command of a shell.
const SHELLS: [&str; 4] = ["Bash", "bash", "run_shell_command", "exec_command"];

/// One run of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The program that runs the hook.
    pub host: Host,
    /// The host's name of the moment, which answers repeat.
    pub event: String,
    pub moment: Moment,
    /// The host's id of the session.
    pub session: String,
    /// The subagent that makes the call; `None` for the session's own agent.
    pub agent: Option<SubAgent>,
    /// The absolute folder that relative paths start at.
    pub cwd: PathBuf,
    /// The call of a tool that has run, or may run if a person allows it.
    pub tool: Option<ToolCall>,
    /// The state of the session that the event shows.
    pub sight: Option<Sight>,
}

/// A call of a tool, for a person to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool with its command, its file, or its whole input.
    pub text: String,
    /// Of the whole text.
    pub digest: String,
    /// True for a command of a shell, which may write any file.
    #[serde(default)]
    pub is_shell: bool,
}

/// The moment in a session at which a hook runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moment {
    /// A session starts or resumes, or has compacted its context.
    Start,
    /// A person or script gave a prompt.
    Prompt,
    /// A tool call that will change files.
    Before(Edits),
    /// A tool call that has run.
    After(Edits),
    /// The program asks its person whether a tool call may run.
    Permission,
    /// The person has answered that in the program.
    Answered,
    /// The agent is about to end its turn. Refusing repeated stops would never end.
    Stop { is_repeated: bool },
    /// The session works in another folder from now on.
    Moved,
    /// The session, or the subagent, has ended.
    End,
    /// The program draws its status line, which is crewlog's `own` if the person has none.
    StatusLine { own: bool },
    /// Any other event: it changes nothing and gets no answer.
    Other,
}

/// An agent started by a session's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubAgent {
    /// Unique within the session.
    pub id: String,
    /// The host's name for this kind of agent.
    pub kind: Option<String>,
}

/// The decision on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Continue, and show the model this text unless it is empty.
    Allow(String),
    /// Refuse the tool call, or the end of the turn, for this reason.
    Refuse(String),
    /// The person allows the tool call.
    Grant,
}

/// The required fields; all others are skipped, such as the content of a written file.
#[derive(Deserialize)]
struct Input<'a> {
    hook_event_name: String,
    session_id: String,
    cwd: PathBuf,
    transcript_path: Option<String>,
    turn_id: Option<IgnoredAny>,
    timestamp: Option<IgnoredAny>,
    model: Option<IgnoredAny>,
    agent_id: Option<String>,
    agent_type: Option<String>,
    stop_hook_active: Option<bool>,
    new_cwd: Option<PathBuf>,
    notification_type: Option<String>,
    source: Option<String>,
    error: Option<Box<RawValue>>,
    tool_name: Option<String>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
}

/// The arguments of a tool that writes a file.
#[derive(Deserialize)]
struct Write {
    #[serde(alias = "notebook_path", alias = "filePath")]
    file_path: PathBuf,
}

#[derive(Deserialize)]
struct Patch {
    #[serde(alias = "patchText")]
    command: String,
}

#[derive(Deserialize)]
struct Shell {
    #[serde(alias = "cmd")]
    command: String,
    #[serde(alias = "dir_path")]
    workdir: Option<PathBuf>,
}

/// Parses the input of a hook of any host.
///
/// # Errors
/// Input that no known host sends.
pub fn parse(input: &[u8]) -> serde_json::Result<Call> {
    let input: Input<'_> = serde_json::from_slice(input)?;
    let host = host(&input);
    let edits = || edits(input.tool_name.as_deref(), input.tool_input);
    let event = input.hook_event_name.clone();
    let moment = match event.as_str() {
        "SessionStart" => Moment::Start,
        "UserPromptSubmit" | "BeforeAgent" => Moment::Prompt,
        "PreToolUse" | "BeforeTool" => match edits()? {
            none if none == Edits::default() => Moment::Other,
            edits => Moment::Before(edits),
        },
        "PostToolUse" | "PostToolUseFailure" | "AfterTool" => Moment::After(edits()?),
        // Only these are known to wait for the answer.
        "PermissionRequest" if matches!(host, Host::Claude | Host::Opencode) => Moment::Permission,
        "PermissionReplied" if host == Host::Opencode => Moment::Answered,
        "Stop" | "AfterAgent" => Moment::Stop { is_repeated: input.stop_hook_active.unwrap_or(false) },
        "CwdChanged" => Moment::Moved,
        "SessionEnd" => Moment::End,
        "SubagentStop" if input.agent_id.is_some() => Moment::End,
        _unused => Moment::Other,
    };
    let call = input.tool_name.as_deref().zip(input.tool_input).map(|(tool, input)| ToolCall::of(tool, input.get()));
    let sight = sight(&input, &moment, call.as_ref());
    let Input { session_id: session, cwd, new_cwd, agent_id, agent_type, .. } = input;
    let cwd = new_cwd.filter(|_| moment == Moment::Moved).unwrap_or(cwd);
    if !cwd.is_absolute() {
        return Err(Error::custom("`cwd` is not an absolute path"));
    }
    let agent = agent_id.map(|id| SubAgent { id, kind: agent_type });
    let is_before = matches!(event.as_str(), "PreToolUse" | "BeforeTool");
    let has_call = is_before || matches!(moment, Moment::Permission | Moment::Answered | Moment::After(_));
    let tool = call.filter(|_| has_call);
    Ok(Call { host, event, moment, session, agent, cwd, tool, sight })
}

/// The state of the session that an event shows. The transcript of a subagent is that of its session.
fn sight(input: &Input<'_>, moment: &Moment, call: Option<&ToolCall>) -> Option<Sight> {
    let error = input.error.as_deref().and_then(|error| from_str::<String>(error.get()).ok());
    let kind = [&input.notification_type, &input.source, &error].into_iter().flatten().next();
    let sight = Sight::of(&input.hook_event_name, kind.map(String::as_str), call.map(|call| call.text.as_str()))?;
    let has_usage = input.agent_id.is_none() && matches!(moment, Moment::After(_) | Moment::Stop { .. });
    let transcript = input.transcript_path.as_ref().filter(|_| has_usage).map(PathBuf::from);
    Some(Sight { transcript, ..sight })
}

impl Call {
    /// True for a command of a shell, which may write any file.
    pub fn is_shell(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| tool.is_shell)
    }
}

impl ToolCall {
    fn of(tool: &str, input: &str) -> Self {
        let command = from_str::<Shell>(input).map(|shell| shell.command);
        let told = command.or_else(|_| from_str::<Write>(input).map(|write| write.file_path.display().to_string()));
        // In one line: a command cannot imitate the lines of the inbox.
        let text = format!("{tool}: {}", told.as_deref().unwrap_or(input).replace(['\n', '\r'], " ⏎ "));
        let is_shell = SHELLS.contains(&tool);
        Self { is_shell, digest: sha256(&text), text: text.chars().take(SHOWN_CHARS_MAX).collect() }
    }
}

/// Identifies the host. Gemini has its own names of events, and a time in each; Codex has an id for each turn, and a
/// transcript that is a rollout, or none in a temporary session; opencode's plugin sends neither transcript nor model.
fn host(input: &Input<'_>) -> Host {
    let (event, transcript) = (&input.hook_event_name, input.transcript_path.as_deref());
    let is_rollout = |path: &str| path.rsplit(['/', '\\']).next().is_some_and(|name| name.starts_with("rollout-"));
    if input.turn_id.is_some() || transcript.is_some_and(is_rollout) {
        Host::Codex
    } else if event.starts_with("Before") || event.starts_with("After") || input.timestamp.is_some() {
        Host::Gemini
    } else if transcript.is_some() {
        Host::Claude
    } else if input.model.is_some() {
        Host::Codex
    } else {
        Host::Opencode
    }
}

/// The changes of a tool call. The arguments of other tools are ignored.
fn edits(tool: Option<&str>, arguments: Option<&RawValue>) -> serde_json::Result<Edits> {
    let (mut found, arguments) = (Edits::default(), arguments.map_or("null", RawValue::get));
    match tool.ok_or_else(|| Error::missing_field("tool_name"))? {
        "Edit" | "Write" | "NotebookEdit" | "replace" | "write_file" | "edit" | "write" => {
            found.add_files([from_str::<Write>(arguments)?.file_path]);
        }
        "apply_patch" => found.add_files(patch::files(&from_str::<Patch>(arguments)?.command)),
        tool if SHELLS.contains(&tool) => {
            let Shell { command, workdir } = from_str(arguments)?;
            shell::read(&command, &workdir.unwrap_or_default(), &mut found);
        }
        _other => {}
    }
    Ok(found)
}

/// The output of the hook: empty if there is nothing to say, or if the host has no way to pass it to the model. Codex
/// drops an object with an unknown field, and runs the tool.
#[must_use]
pub fn printed(call: &Call, verdict: &Verdict) -> String {
    let text = match verdict {
        Verdict::Allow(text) | Verdict::Refuse(text) => text.as_str(),
        Verdict::Grant => "",
    };
    let text: String = match text.char_indices().nth(TEXT_CHARS_MAX) {
        None => text.to_owned(),
        Some(_) => text.chars().take(TEXT_CHARS_MAX - 1).chain(['…']).collect(),
    };
    let answer = match (verdict, &call.moment, call.host) {
        (Verdict::Grant, _, _) => json!({ "hookSpecificOutput": {
            "hookEventName": call.event, "decision": { "behavior": "allow" },
        }}),
        (Verdict::Refuse(_), Moment::Permission, _) => json!({ "hookSpecificOutput": {
            "hookEventName": call.event, "decision": { "behavior": "deny", "message": text },
        }}),
        (Verdict::Allow(_), _, _) if text.is_empty() => return text,
        (_, Moment::End | Moment::Moved | Moment::StatusLine { .. } | Moment::Answered | Moment::Other, _)
        | (Verdict::Allow(_), Moment::Permission, _)
        | (Verdict::Allow(_), Moment::Stop { .. }, _)
        | (Verdict::Allow(_), Moment::Before(_), Host::Gemini | Host::Opencode) => return String::new(),
        (Verdict::Refuse(_), _, Host::Gemini) => json!({ "decision": "deny", "reason": text }),
        (Verdict::Refuse(_), Moment::Stop { .. }, _) => json!({ "decision": "block", "reason": text }),
        (Verdict::Refuse(_), _, _) => json!({ "hookSpecificOutput": {
            "hookEventName": call.event, "permissionDecision": "deny", "permissionDecisionReason": text,
        }}),
        (Verdict::Allow(_), Moment::Prompt, Host::Codex) => return text,
        (Verdict::Allow(_), _, _) => {
            json!({ "hookSpecificOutput": { "hookEventName": call.event, "additionalContext": text } })
        }
    };
    answer.to_string()
}
