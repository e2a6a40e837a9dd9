//! Recognises sealed plans and texts, even without the feature `sealing`: no executor may act on a text it cannot open.

use crewlog_mq::Event as MqEvent;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::TaskInput;
use crate::state::PlannerState;

/// The prefix of a sealed string. The number is the version of the form.
pub const PREFIX: &str = "sealed:1:";
/// Prefix of the tag on each event of a sealed session; the name of its key follows.
pub const TAG: &str = "sealed:";
/// Replaces a text whose key is missing.
pub const SEALED: &str = "[sealed]";
/// Replaces a text whose key was destroyed.
pub const SHREDDED: &str = "[shredded]";
/// Replaces a sealed text that was changed, or was sealed for another place.
pub const BROKEN: &str = "[broken seal]";

/// The stream of key events; an aggregate of it is a session.
pub const STREAM: &str = "keys";

/// An event of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyEvent {
    /// The key was destroyed, and with it the texts of its session.
    KeyDestroyed {
        /// Its name.
        key: String,
        /// The plans whose texts were sealed with it: the first of the session, and its forks.
        plans: Vec<String>,
    },
}

impl MqEvent for KeyEvent {}

/// The name of the key in these tags.
pub fn key_of(tags: &[String]) -> Option<&str> {
    tags.iter().find_map(|tag| tag.strip_prefix(TAG))
}

/// True for a placeholder of a text that cannot be opened, and without the feature `sealing` for any sealed text.
pub fn is_undecryptable(text: &str) -> bool {
    [SEALED, SHREDDED, BROKEN].contains(&text) || (cfg!(not(feature = "sealing")) && text.starts_with(PREFIX))
}

/// True if a text in this JSON cannot be opened.
pub fn is_json_undecryptable(json: &Value) -> bool {
    match json {
        Value::String(text) => is_undecryptable(text),
        Value::Array(values) => values.iter().any(is_json_undecryptable),
        Value::Object(fields) => fields.values().any(is_json_undecryptable),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// True if a text of a task's input cannot be opened. No executor may act on it.
pub fn is_task_undecryptable(parameters: &TaskInput) -> bool {
    serde_json::to_value(parameters).is_ok_and(|json| is_json_undecryptable(&json))
}

/// True if the plan's tasks cannot be read.
pub fn is_plan_undecryptable(state: &PlannerState) -> bool {
    let mut tasks = state.tasks.iter();
    tasks.any(|task| {
        is_undecryptable(&task.plan.description) || task.plan.command.as_deref().is_some_and(is_undecryptable)
    })
}
