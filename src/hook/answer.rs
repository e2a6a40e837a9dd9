//! What a hook prints: the one JSON object that its host understands, or nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Host, Moment};

/// The most characters of a context or a reason; the rest is cut.
pub const TEXT_CHARS_MAX: usize = 2_000;

/// What crewlog decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Go on. Prints nothing on every host.
    Allow,
    /// Go on, and let the model read this.
    AllowWith(String),
    /// Do not run the tool call, for this reason. After the call, the reason is context.
    Deny(String),
    /// Do not end the turn, for this reason.
    RefuseStop(String),
}

/// What the hook's process does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// All of standard output.
    pub stdout: String,
    /// The exit code: always 0, since with any other the hosts ignore what is printed.
    pub exit: u8,
}

/// The answer to a host. Prints nothing where the host could not act on it.
#[must_use]
pub fn render(host: Host, moment: &Moment, verdict: &Verdict) -> Printed {
    let text = match verdict {
        Verdict::Allow => return Printed::default(),
        Verdict::AllowWith(text) if text.trim().is_empty() => return Printed::default(),
        Verdict::AllowWith(text) | Verdict::Deny(text) | Verdict::RefuseStop(text) => shortened(text),
    };
    let stdout = match (verdict, moment) {
        (Verdict::Allow, _) => None,
        (Verdict::AllowWith(_), moment) | (Verdict::Deny(_), moment @ Moment::PostTool) => context(host, moment, &text),
        (Verdict::Deny(_), Moment::PreTool) => Some(denial(host, &text).to_string()),
        (Verdict::RefuseStop(_), Moment::Stop) => match host {
            Host::Claude | Host::Codex => Some(json!({ "decision": "block", "reason": text }).to_string()),
            Host::Gemini => Some(json!({ "decision": "deny", "reason": text }).to_string()),
            // Its session ends whatever a plugin says.
            Host::Opencode => None,
        },
        (Verdict::Deny(_) | Verdict::RefuseStop(_), _) => None,
    };
    Printed { stdout: stdout.unwrap_or_default(), exit: 0 }
}

fn denial(host: Host, reason: &str) -> Value {
    match host {
        Host::Claude | Host::Codex | Host::Opencode => json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }}),
        Host::Gemini => json!({ "decision": "deny", "reason": reason }),
    }
}

/// Text for the model, where the host has a way to it.
fn context(host: Host, moment: &Moment, text: &str) -> Option<String> {
    let event = match (host, moment) {
        (Host::Codex, Moment::Prompt) => return Some(plain(text)),
        // Nothing of theirs carries a text before the call.
        (Host::Gemini | Host::Opencode, Moment::PreTool) => return None,
        (Host::Gemini, Moment::PostTool) => "AfterTool",
        (Host::Gemini, Moment::Prompt) => "BeforeAgent",
        (_, Moment::SessionStart { .. }) => "SessionStart",
        (Host::Claude | Host::Opencode, Moment::Prompt) => "UserPromptSubmit",
        (Host::Claude | Host::Codex, Moment::PreTool) => "PreToolUse",
        (Host::Claude | Host::Codex | Host::Opencode, Moment::PostTool) => "PostToolUse",
        (_, Moment::Stop | Moment::SessionEnd | Moment::Other) => return None,
    };
    Some(json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } }).to_string())
}

/// Text that Codex takes as it is: what begins like JSON would be parsed, and dropped.
fn plain(text: &str) -> String {
    let is_like_json = text.trim_start().starts_with(['{', '[']);
    if is_like_json { format!("crewlog: {text}") } else { text.to_owned() }
}

/// At most [`TEXT_CHARS_MAX`] characters, and never blank: Codex runs a call that is denied without a reason.
fn shortened(text: &str) -> String {
    if text.trim().is_empty() {
        return "crewlog refused this; `crewlog leases` shows who holds which files".to_owned();
    }
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        None => text.to_owned(),
        Some(_) => text.chars().take(TEXT_CHARS_MAX - 1).chain(['…']).collect(),
    }
}
