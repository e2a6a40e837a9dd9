//! Settings of a task: how often, how long, what if it fails, what undoes it. It reads words and knows nothing of where
//! they stand.

use super::paths;
use super::phrases::{Words, after_any, after_word, list, strip_prefix_ci};
use crate::plan::{DefaultAnswer, FailurePolicy, TaskPlan};

/// With these a setting begins.
static NAMES: Words = Words::new(|| {
    list(
        "retries|retry|timeout|time limit|deadline|estimate|estimated|est.|est|on failure|on-failure|on_failure|\
         if it fails|compensate|compensation|undo|rollback|default|rerun",
    )
});

/// What a text sets for a task.
#[derive(Debug, Default)]
pub(super) struct Settings {
    retry: Option<u32>,
    timeout_ms: Option<u64>,
    deadline_ms: Option<u64>,
    estimate_ms: Option<u64>,
    on_failure: Option<FailurePolicy>,
    compensate: Option<String>,
    default_answer: Option<DefaultAnswer>,
    pub(super) files: Vec<String>,
    rerun_safe: bool,
}

impl Settings {
    /// True when something is set.
    pub(super) fn any(&self) -> bool {
        self.retry.is_some()
            || self.timeout_ms.is_some()
            || self.deadline_ms.is_some()
            || self.estimate_ms.is_some()
            || self.on_failure.is_some()
            || self.compensate.is_some()
            || self.default_answer.is_some()
            || !self.files.is_empty()
            || self.rerun_safe
    }

    /// Takes over what another has; it wins.
    pub(super) fn take(&mut self, mut other: Self) {
        self.retry = other.retry.or(self.retry);
        self.timeout_ms = other.timeout_ms.or(self.timeout_ms);
        self.deadline_ms = other.deadline_ms.or(self.deadline_ms);
        self.estimate_ms = other.estimate_ms.or(self.estimate_ms);
        self.on_failure = other.on_failure.or(self.on_failure);
        self.compensate = other.compensate.or(self.compensate.take());
        self.default_answer = other.default_answer.or(self.default_answer.take());
        self.files.append(&mut other.files);
        self.rerun_safe |= other.rerun_safe;
    }

    /// Gives a task what is set; what it has already stays where nothing new is said.
    pub(super) fn give(self, plan: &mut TaskPlan) {
        plan.retry = self.retry.or(plan.retry);
        plan.timeout_ms = self.timeout_ms.or(plan.timeout_ms);
        plan.deadline_ms = self.deadline_ms.or(plan.deadline_ms);
        plan.estimate_ms = self.estimate_ms.or(plan.estimate_ms);
        plan.on_failure = self.on_failure.or(plan.on_failure);
        plan.compensate = self.compensate.or(plan.compensate.take());
        plan.default_answer = self.default_answer.or(plan.default_answer.take());
        plan.files.extend(self.files);
        plan.rerun_safe |= self.rerun_safe;
    }

    /// Reads `retry 3`, `deadline: 2h`, `undo: make down` and their like; false when it is none of them.
    pub(super) fn read(&mut self, part: &str) -> bool {
        if NAMES.found(part).next().is_none() && !part.starts_with('~') {
            return false;
        }
        let value = |words: &[&str]| after_any(part, words).map(|rest| rest.trim_start_matches([':', '=', ' ']).trim());
        if let Some(rest) = value(&["retries", "retry"]) {
            return set(&mut self.retry, times(rest));
        }
        if let Some(rest) = value(&["timeout", "time limit"]) {
            return set(&mut self.timeout_ms, duration_ms(strip_prefix_ci(rest, "after ").unwrap_or(rest).trim()));
        }
        if let Some(rest) = value(&["deadline"]) {
            let rest = ["in ", "after "].iter().find_map(|word| strip_prefix_ci(rest, word)).unwrap_or(rest);
            return set(&mut self.deadline_ms, duration_ms(rest.trim()));
        }
        if let Some(rest) = value(&["estimate", "estimated", "est.", "est"]).or_else(|| part.strip_prefix('~')) {
            return set(&mut self.estimate_ms, duration_ms(rest.trim_start_matches('~').trim()));
        }
        if let Some(rest) = value(&["on failure", "on-failure", "on_failure", "if it fails"]) {
            return set(&mut self.on_failure, policy(rest));
        }
        if let Some(rest) = value(&["compensate", "compensation", "undo", "undo with", "rollback"]) {
            return set(&mut self.compensate, code(rest));
        }
        if let Some(rest) = value(&["default"]) {
            return set(&mut self.default_answer, default_answer(rest));
        }
        if value(&["rerun"]).is_some_and(|rest| rest.eq_ignore_ascii_case("safe")) {
            self.rerun_safe = true;
            return true;
        }
        false
    }
}

fn set<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    let read = value.is_some();
    *slot = value.or(slot.take());
    read
}

fn times(text: &str) -> Option<u32> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
    let tail = text[digits.len()..].trim();
    digits.parse().ok().filter(|_| matches!(tail, "" | "times" | "time" | "x" | "attempts"))
}

/// A command between backticks, and nothing else.
fn code(text: &str) -> Option<String> {
    let text = text.trim_start_matches("with ");
    let command = text.strip_prefix('`')?.strip_suffix('`')?.trim();
    (!command.is_empty() && !command.contains('`')).then(|| command.to_owned())
}

/// `yes after 10m`.
fn default_answer(text: &str) -> Option<DefaultAnswer> {
    let (answer, after) = text.rsplit_once(" after ")?;
    let answer = answer.trim().trim_matches('"').trim_matches('`');
    let after_ms = duration_ms(after.trim())?;
    (!answer.is_empty()).then(|| DefaultAnswer { answer: answer.to_owned(), after_ms })
}

/// True for "retry many" and "timeout: soon", whether or not they can be read.
pub(super) fn looks_like_setting(part: &str) -> bool {
    const SETTINGS: &[&str] = &["retries", "retry", "timeout", "time limit", "on failure", "on-failure", "on_failure"];
    let rest = after_any(part, SETTINGS);
    // "rerun the tests" is a step and no setting, and so is "files to change".
    let mut with_sign =
        ["rerun", "files", "assignee", "owner", "assigned to", "deadline", "estimate", "undo", "compensate", "default"]
            .iter()
            .filter_map(|word| after_word(part, word));
    let rest = rest.or_else(|| with_sign.find(|rest| rest.starts_with([':', '='])));
    rest.is_some_and(|rest| {
        let instant = rest.trim_end().rsplit_once(" after ").is_some_and(|(_, after)| after.starts_with('0'));
        !rest.trim().is_empty() && rest.len() <= 40 && (instant || rest.split_whitespace().count() <= 3)
    })
}

/// Paths and globs between commas or spaces, when every word is one.
pub(super) fn files(text: &str) -> Option<Vec<String>> {
    let words = text.split([',', ';', ' ', '\t']).filter(|word| !word.is_empty());
    let files = words.map(|word| {
        let code = word.strip_prefix('`').and_then(|word| word.strip_suffix('`'));
        let path = code.unwrap_or(word);
        (is_path(path) || (code.is_some() && !path.is_empty() && !path.contains('`'))).then(|| path.to_owned())
    });
    files.collect::<Option<Vec<_>>>().filter(|files| !files.is_empty())
}

/// What can be a path where paths are asked for, which is more than in running text.
fn is_path(word: &str) -> bool {
    word.contains(['/', '*', '.'])
        && word.contains(|c: char| c.is_alphabetic() || c == '*')
        && !word.contains("://")
        && !word.ends_with(['.', ':', '!', '?'])
        && paths::word_length(word) == word.len()
}

/// `90s`, `10m`, `1h30m`, `500 ms` in milliseconds.
pub(super) fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let value: u64 = rest[..digits].parse().ok()?;
        // "1.5h"
        let tenth = rest[digits..].strip_prefix('.').and_then(|tail| tail.chars().next()).and_then(|c| c.to_digit(10));
        let tail = rest[digits + tenth.map_or(0, |_| 2)..].trim_start();
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = match &tail[..letters] {
            "ms" | "millis" | "milliseconds" => 1,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000,
            "d" | "day" | "days" => 86_400_000,
            _ => return None,
        };
        let part = value.checked_mul(unit)?.checked_add(u64::from(tenth.unwrap_or(0)) * unit / 10)?;
        total = total.checked_add(part)?;
        rest = tail[letters..].trim_start();
    }
    (total > 0).then_some(total)
}

/// What a failure means for the rest, in the words of a text.
pub(super) fn policy(text: &str) -> Option<FailurePolicy> {
    match text.to_ascii_lowercase().as_str() {
        "continue" | "ignore" | "go on" => Some(FailurePolicy::Continue),
        "skip" | "skip dependants" | "skip dependents" => Some(FailurePolicy::SkipDependants),
        "stop" | "abort" | "halt" => Some(FailurePolicy::Stop),
        "ask" => Some(FailurePolicy::Ask),
        _ => None,
    }
}
