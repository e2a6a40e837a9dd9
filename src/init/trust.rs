//! The consent that Codex and Gemini CLI store in the user's own files: without it they skip the hooks of a repository.

use serde_json::{Value, json};

use super::content::Content;
use super::json as json_text;
use super::ours::{OurHook, our_hooks};
use super::places::Places;
use super::target::Target;
use super::wanted::{COMMAND, Wanted};
use crate::cli::programs::Host;

/// The time-out of a Codex hook without one, in seconds.
const CODEX_TIMEOUT: u32 = 600;

/// The user's consent that a program needs for its hooks as `init` writes them.
pub fn target(host: Host, places: &Places) -> Option<Target> {
    match host {
        Host::Claude | Host::Opencode => None,
        Host::Codex => {
            let file = host.hooks_file(places);
            let own = host.targets(places).into_iter().find(|own| own.path == file);
            // A file that cannot be edited has no hooks of ours.
            let (_, text) = own.and_then(|own| own.before_and_after().ok()).unwrap_or_default();
            let hooks = json_text::value(&text).unwrap_or_default();
            // Codex looks for the main worktree from any other one.
            let root = places.main_root.to_string_lossy();
            let trust = json!({"projects": {root: {"trust_level": "trusted"}}});
            let ours = json!({"hooks": {"state": hashes(&file.to_string_lossy(), &hooks)}});
            Some(Target { path: places.codex_config(), content: Content::Toml(Wanted { ours, trust }) })
        }
        Host::Gemini => {
            let trust = json!({places.root.to_string_lossy(): "TRUST_FOLDER"});
            let content = Content::Json(Wanted { ours: Value::Null, trust });
            Some(Target { path: places.gemini_trust(), content })
        }
    }
}

/// The hash of each of our hooks, by the hook's place in its file.
pub fn hashes(file: &str, settings: &Value) -> Value {
    // A command in another form may run anything: Codex itself asks about it.
    let hooks = our_hooks(settings).into_iter().filter(|ours| ours.hook["command"] == COMMAND);
    let entry = |OurHook { event, place: (group, index), matcher, hook }| {
        let event = snake_case(event);
        let hash = hash(&event, matcher, hook);
        (format!("{file}:{event}:{group}:{index}"), json!({ "trusted_hash": hash }))
    };
    hooks.map(entry).collect()
}

/// The SHA-256 of a hook's JSON, without blanks and with sorted keys.
fn hash(event: &str, matcher: Option<&Value>, hook: &Value) -> String {
    let is_async = hook["async"].as_bool().unwrap_or(false);
    let timeout = hook.get("timeout").cloned().unwrap_or_else(|| json!(CODEX_TIMEOUT));
    let hook = json!({"async": is_async, "command": hook["command"], "timeout": timeout, "type": hook["type"]});
    let mut hashed = json!({"event_name": event, "hooks": [hook]});
    if let Some(matcher) = matcher {
        hashed["matcher"] = matcher.clone();
    }
    format!("sha256:{}", crate::ui::text::sha256(&hashed.to_string()))
}

/// `PreToolUse` as `pre_tool_use`.
fn snake_case(event: &str) -> String {
    let parts = event.chars().flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain(c.to_lowercase()));
    parts.skip(1).collect()
}
