//! Redacts configured secrets in texts before they are cut or appended: an append-only log keeps them forever.

use std::ops::Range;
use std::rc::Rc;

use crewlog_mq::{self as mq, NewEvent};
use crewlog_planner::sealing;
use crewlog_planner::sealing::Visibility;
use regex::{Regex, RegexBuilder};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

const REDACTED: &str = "[redacted]";
/// The shortest value of a variable that counts as a secret; shorter ones occur in any text.
const VALUE_BYTES_MIN: usize = 6;
/// The longest secret that a pattern finds in a text that arrives in pieces, if it is in several of them.
const PATTERN_WINDOW: usize = 4 << 10;
/// The characters that may follow a backslash in a pattern that matches no end of a line.
const WITHIN_LINES: &str = ".-Sdwb/+*?()[]{}|$^@_\\";
/// A line that is longer is not waited for.
const LINE_BYTES_MAX: usize = 64 << 10;
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

    /// As a supervisor gets them.
    pub(crate) fn texts(&self) -> SecretTexts {
        let patterns = self.patterns.iter().map(|pattern| pattern.as_str().to_owned());
        SecretTexts { patterns: patterns.collect(), values: self.values.clone() }
    }

    /// The most bytes of a secret that can have several lines; 0 if none can.
    fn lines_window(&self) -> usize {
        let of_patterns = if self.patterns.iter().any(may_cross_lines) { PATTERN_WINDOW } else { 0 };
        let values = self.values.iter().filter(|value| value.contains('\n'));
        values.map(String::len).fold(of_patterns, usize::max)
    }

    /// The most bytes of a secret.
    fn window(&self) -> usize {
        let of_patterns = if self.patterns.is_empty() { 0 } else { PATTERN_WINDOW };
        self.values.iter().map(String::len).fold(of_patterns, usize::max)
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

/// The texts of secrets.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SecretTexts {
    patterns: Vec<String>,
    values: Vec<String>,
}

impl From<SecretTexts> for Secrets {
    fn from(SecretTexts { patterns, values }: SecretTexts) -> Self {
        Self { patterns: patterns.iter().filter_map(|pattern| compiled(pattern).ok()).collect(), values }
    }
}

/// Replaces the secrets of a text that arrives in pieces: what may be a part of one waits for the rest.
pub(crate) struct Redactor {
    secrets: Rc<Secrets>,
    waits: Vec<u8>,
    window: usize,
    lines_window: usize,
}

impl Redactor {
    pub(crate) fn new(secrets: Rc<Secrets>) -> Self {
        let (window, lines_window) = (secrets.window(), secrets.lines_window());
        Self { secrets, waits: Vec::new(), window, lines_window }
    }

    /// The text that is known to be free of secrets after these bytes; the rest of it, if they are the last. Invalid UTF-8 is
    /// replaced.
    pub(crate) fn take(&mut self, bytes: &[u8], are_last: bool) -> String {
        self.waits.extend_from_slice(bytes);
        let n_whole = if are_last { self.waits.len() } else { whole_chars(&self.waits) };
        let cut_off = self.waits.split_off(n_whole);
        let text = String::from_utf8_lossy(&self.waits).into_owned();
        let n_free = text.floor_char_boundary(text.len().saturating_sub(self.lines_window));
        let mut end = match text[..n_free].rfind('\n').map(|at| at + 1) {
            _ if are_last || self.window == 0 => text.len(),
            Some(end) => end,
            None if text.len() < LINE_BYTES_MAX => 0,
            None => text.len().saturating_sub(self.window.max(self.lines_window)),
        };
        end = text.floor_char_boundary(end);
        let found = self.secrets.found(&text);
        if let Some(secret) = found.iter().find(|secret| secret.start < end && end < secret.end) {
            // One that is longer than any window ends here.
            end = if secret.start == 0 { secret.end } else { secret.start };
        }
        self.waits = text.as_bytes()[end..].to_vec();
        self.waits.extend(cut_off);
        let text = replaced(&text, &found, 0..end);
        if self.window == 0 { text } else { text.split_inclusive('\n').map(|line| self.line(line)).collect() }
    }

    /// A line of JSON hides secrets by its escapes.
    fn line(&self, line: &str) -> String {
        let json = Some(line).filter(|line| line.trim_start().starts_with('{') && line.contains('\\'));
        let Some(mut json) = json.and_then(|line| serde_json::from_str::<Value>(line).ok()) else {
            return line.to_owned();
        };
        if !self.hide(&mut json) {
            return line.to_owned();
        }
        json.to_string() + if line.ends_with('\n') { "\n" } else { "" }
    }

    /// True if a text in it had a secret.
    fn hide(&self, json: &mut Value) -> bool {
        match json {
            Value::String(text) => {
                let redacted = self.secrets.redacted(text);
                redacted != std::mem::replace(text, redacted.clone())
            }
            Value::Array(values) => values.iter_mut().filter_map(|value| self.hide(value).then_some(())).count() > 0,
            Value::Object(fields) => fields.values_mut().filter_map(|value| self.hide(value).then_some(())).count() > 0,
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

/// True unless a pattern has only signs that match no end of a line.
fn may_cross_lines(pattern: &Regex) -> bool {
    let text = pattern.as_str().replace("(?:", "(").replace("(?i)", "");
    let has_sign = ["(?", "[^", "[:"].iter().any(|sign| text.contains(sign));
    let mut chars = text.chars();
    let mut crosses = has_sign;
    while let Some(c) = chars.next() {
        crosses |= c.is_control() || c == '\\' && chars.next().is_none_or(|escaped| !WITHIN_LINES.contains(escaped));
    }
    crosses
}

/// The length of a text without a character at its end that is not complete yet.
fn whole_chars(text: &[u8]) -> usize {
    let starts = |byte: &&u8| **byte & 0xc0 != 0x80;
    let n_back = text.iter().rev().take(3).position(|byte| starts(&byte)).map_or(0, |at| at + 1);
    let n_needed = match text.len().checked_sub(n_back).and_then(|at| text.get(at)) {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 0,
    };
    if n_needed > n_back { text.len() - n_back } else { text.len() }
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
fn compiled(pattern: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
    let compiled = compiled.map_err(|error| format!("invalid pattern {pattern:?}: {error}").replace('\n', " "))?;
    match compiled.is_match("") {
        true => Err(format!("the pattern {pattern:?} matches the empty text: write one that matches secrets only")),
        false => Ok(compiled),
    }
}

fn patterns<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Regex>, D::Error> {
    let patterns = Vec::<String>::deserialize(from)?;
    patterns.iter().map(|pattern| compiled(pattern)).collect::<Result<_, _>>().map_err(D::Error::custom)
}

fn values<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let values = Vec::<String>::deserialize(from)?.into_iter().filter_map(|name| std::env::var(name).ok());
    Ok(values.filter(|value| value.len() >= VALUE_BYTES_MIN).collect())
}
