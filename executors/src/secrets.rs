//! Redacts configured secrets in texts before they are cut or appended: an append-only log keeps them forever.

use std::ops::Range;

use crewlog_mq::{self as mq, NewEvent};
use crewlog_planner::sealing;
use crewlog_planner::sealing::Visibility;
use regex::{Regex, RegexBuilder};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

const REDACTED: &str = "[redacted]";
/// The shortest value of a variable that counts as a secret; shorter ones occur in any text.
const VALUE_BYTES_MIN: usize = 6;
/// The longest secret that a pattern finds at a cut, in bytes.
const PATTERN_WINDOW: usize = 4 << 10;
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
    ///
    /// # Errors
    /// The event is too long with its secrets replaced.
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

    /// These and others.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.patterns.extend(others.patterns);
        self.values.extend(others.values);
        self
    }

    /// The text with each secret replaced.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        replaced(text, &self.found(text), 0..text.len())
    }

    /// The bytes behind a cut that show the longest secret whole which the cut could divide.
    #[must_use]
    pub fn window(&self) -> usize {
        let of_patterns = if self.patterns.is_empty() { 0 } else { PATTERN_WINDOW };
        self.values.iter().map(String::len).fold(of_patterns, usize::max)
    }

    /// The first bytes of a text, redacted. A secret at their end is replaced whole.
    #[must_use]
    pub fn head(&self, text: &str, bytes_max: usize) -> String {
        let (found, end) = (self.found(text), text.floor_char_boundary(bytes_max));
        let end = found.iter().find(|secret| secret.contains(&end)).map_or(end, |secret| secret.end);
        replaced(text, &found, 0..end)
    }

    /// The last bytes of a text, likewise.
    #[must_use]
    pub fn tail(&self, text: &str, bytes_max: usize) -> String {
        let (found, start) = (self.found(text), text.ceil_char_boundary(text.len().saturating_sub(bytes_max)));
        let start = found.iter().find(|secret| secret.contains(&start)).map_or(start, |secret| secret.start);
        replaced(text, &found, start..text.len())
    }

    /// The places of secrets in a text, in order. Those that overlap are one.
    fn found(&self, text: &str) -> Vec<Range<usize>> {
        let of_value = |value: &String| text.match_indices(&**value).map(|(at, found)| at..at + found.len()).collect();
        let of_pattern = |pattern: &Regex| pattern.find_iter(text).map(|found| found.range()).collect();
        let of_values = self.values.iter().map(of_value);
        let all: Vec<Vec<_>> = of_values.chain(self.patterns.iter().map(of_pattern)).collect();
        let mut found = all.concat();
        found.retain(|secret| !secret.is_empty());
        found.sort_by_key(|secret| secret.start);
        found.dedup_by(|next, secret| {
            let overlaps = next.start < secret.end;
            secret.end = secret.end.max(if overlaps { next.end } else { 0 });
            overlaps
        });
        found
    }
}

/// A part of a text in which secrets are replaced. Its ends are in no secret.
fn replaced(text: &str, secrets: &[Range<usize>], part: Range<usize>) -> String {
    let (mut to, mut at) = (String::new(), part.start);
    for secret in secrets.iter().filter(|secret| part.start <= secret.start && secret.end <= part.end) {
        to.push_str(&text[at..secret.start]);
        to.push_str(REDACTED);
        at = secret.end;
    }
    to + &text[at..part.end]
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
