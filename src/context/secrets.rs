//! Redacts configured secrets in texts before they are appended: an append-only log keeps them forever.

use crewlog_mq::{self as mq, NewEvent};
use crewlog_planner::sealing;
use crewlog_planner::sealing::Visibility;
use regex::{Regex, RegexBuilder};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

const REDACTED: &str = "[redacted]";
/// The shortest value of a variable that counts as a secret; shorter ones occur in any text.
const VALUE_BYTES_MIN: usize = 6;
/// How large a compiled pattern may be, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// The ends of the paths of texts that stay as they are written: a changed command must never run.
const COMMANDS: [&str; 4] = ["/command", "/Command", "/compensate", "/Compensate"];

/// The secrets that are configured.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Secrets {
    #[serde(deserialize_with = "patterns")]
    patterns: Vec<Regex>,
    /// The values that these environment variables have now.
    #[serde(rename = "env", deserialize_with = "values")]
    values: Vec<String>,
}

impl Secrets {
    /// The event with each secret replaced in the texts that people, agents and programs wrote; none if it has no secret. Ids,
    /// paths and states stay.
    pub fn redacted_event(&self, event: &NewEvent) -> mq::Result<Option<NewEvent>> {
        if self.patterns.is_empty() && self.values.is_empty() {
            return Ok(None);
        }
        let redacted = |json: &str, root: &str| {
            sealing::replaced(json, root, |path, written| {
                let is_text = sealing::rule(path) == Some(Visibility::Sealed);
                if !is_text || COMMANDS.iter().any(|end| path.ends_with(end)) {
                    return None;
                }
                let text: String = serde_json::from_str(&format!("\"{written}\"")).ok()?;
                let redacted = Some(self.redacted(&text)).filter(|redacted| *redacted != text)?;
                serde_json::to_string(&redacted).ok().map(|json| json[1..json.len() - 1].to_owned())
            })
        };
        match (redacted(event.data(), "data"), redacted(event.metadata(), "metadata")) {
            (None, None) => Ok(None),
            (data, metadata) => {
                let data = data.unwrap_or_else(|| event.data().to_owned());
                let metadata = metadata.unwrap_or_else(|| event.metadata().to_owned());
                event.clone().with_json(data, metadata).map(Some)
            }
        }
    }

    pub fn redacted(&self, text: &str) -> String {
        let text = self.values.iter().fold(text.to_owned(), |text, value| text.replace(value, REDACTED));
        self.patterns.iter().fold(text, |text, pattern| pattern.replace_all(&text, REDACTED).into_owned())
    }
}

/// A pattern that matches the empty text is refused.
fn patterns<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Regex>, D::Error> {
    let compiled = |pattern: String| {
        let compiled = RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES_MAX).build();
        let compiled = compiled.map_err(|error| format!("invalid pattern {pattern:?}: {error}").replace('\n', " "))?;
        match compiled.is_match("") {
            true => Err(format!("the pattern {pattern:?} matches the empty text: write one that matches secrets only")),
            false => Ok(compiled),
        }
    };
    let patterns = Vec::<String>::deserialize(from)?.into_iter();
    patterns.map(compiled).collect::<Result<_, _>>().map_err(D::Error::custom)
}

fn values<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let values = Vec::<String>::deserialize(from)?.into_iter().filter_map(|name| std::env::var(name).ok());
    Ok(values.filter(|value| value.len() >= VALUE_BYTES_MIN).collect())
}
