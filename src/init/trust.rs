//! The consent that Codex and Gemini CLI keep in the user's own files: without it they skip the hooks of a repository.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::COMMAND;
use super::content::Content;
use super::entry::{Entry, keys};
use super::files;
use super::hosts::Target;
use super::json::value_at;
use super::places::Places;
use crate::cli::Host;

/// The time-out of a hook of Codex that sets none, in seconds.
const CODEX_TIMEOUT: u32 = 600;

/// The consent of the user that a program needs, to its hooks as `init` writes them.
pub fn target(host: Host, places: &Places) -> Option<Target> {
    match host {
        Host::Claude | Host::Opencode => None,
        Host::Codex => {
            // It looks for the main worktree from any other.
            let root = places.main_root.to_string_lossy();
            let mut entries = vec![Entry::Trust(keys(&["projects", &root, "trust_level"]), json!("trusted"))];
            let file = host.hooks_file(places);
            let own = host.targets(places).into_iter().find(|own| own.path == file);
            let text = files::read(&file).ok().flatten().unwrap_or_default();
            // A file that cannot be edited has no hooks of ours.
            let hooks = own.and_then(|own| own.content.with(&text).ok()).unwrap_or_default();
            entries.extend(hashes(&file, &hooks));
            Some(Target { path: places.codex_config(), content: Content::Toml(entries) })
        }
        Host::Gemini => {
            let entry = Entry::Trust(keys(&[&places.root.to_string_lossy()]), json!("TRUST_FOLDER"));
            Some(Target { path: places.gemini_trust(), content: Content::Json(vec![entry]) })
        }
    }
}

/// The hash of each of our hooks, under the hook's place in its file.
fn hashes(file: &Path, text: &str) -> Vec<Entry> {
    let events = value_at(text, &keys(&["hooks"])).ok().flatten().unwrap_or_default();
    let mut entries = Vec::new();
    for (event, groups) in events.as_object().into_iter().flatten() {
        let event = snake_case(event);
        for (i, group) in groups.as_array().into_iter().flatten().enumerate() {
            for (j, hook) in group["hooks"].as_array().into_iter().flatten().enumerate() {
                // Another command of that name may be anything: Codex itself asks about it.
                if hook["command"] == COMMAND {
                    let place = format!("{}:{event}:{i}:{j}", file.display());
                    let hash = hash(&event, group.get("matcher"), hook);
                    entries.push(Entry::Member(keys(&["hooks", "state", &place, "trusted_hash"]), json!(hash)));
                }
            }
        }
    }
    entries
}

/// The SHA-256 of a hook's JSON, without blanks and with its keys in order of the alphabet.
fn hash(event: &str, matcher: Option<&Value>, hook: &Value) -> String {
    let is_async = hook["async"].as_bool().unwrap_or(false);
    let timeout = hook.get("timeout").cloned().unwrap_or_else(|| json!(CODEX_TIMEOUT));
    let hook = json!({"async": is_async, "command": hook["command"], "timeout": timeout, "type": hook["type"]});
    let mut hashed = json!({"event_name": event, "hooks": [hook]});
    if let Some(matcher) = matcher {
        hashed["matcher"] = matcher.clone();
    }
    format!("sha256:{}", sha256(&hashed.to_string()))
}

/// The SHA-256 of a text, in hexadecimal.
pub fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn snake_case(event: &str) -> String {
    let mut snake = String::new();
    for (i, c) in event.char_indices() {
        if c.is_uppercase() && i > 0 {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}
