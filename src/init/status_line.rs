//! The status line in the settings of Claude Code: crewlog's runs the person's own, which its command names.

use crewlog_executors::shell::{shell_word, words};
use serde_json::Value;

use crate::cli::programs::STATUS_LINE;

/// The key of the status line.
pub const KEY: &str = "statusLine";

/// The command with crewlog's status line before it.
pub fn chained(settings: &Value) -> String {
    match settings["command"].as_str() {
        Some(ours) if ours.contains(STATUS_LINE) => ours.to_owned(),
        Some(own) => format!("{STATUS_LINE} --then {}", shell_word(own)),
        None => STATUS_LINE.to_owned(),
    }
}

/// The person's own command, as it was before; `None` if the status line is not crewlog's.
pub fn own(settings: &Value) -> Option<Option<String>> {
    let rest = settings["command"].as_str()?.strip_prefix(STATUS_LINE)?;
    let own = rest.strip_prefix(" --then ").and_then(words).map(|words| words.join(" "));
    Some(own)
}
