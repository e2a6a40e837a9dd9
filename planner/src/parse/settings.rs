//! The values of settings: durations, policies, paths. It reads words and knows nothing of where they stand.

use super::paths;
use super::text::after_word;
use crate::plan::FailurePolicy;

/// True for "retry many" and "timeout: soon", whether or not they can be read.
pub(super) fn looks_like_setting(part: &str) -> bool {
    const SETTINGS: &[&str] = &["retries", "retry", "timeout", "time limit", "on failure", "on-failure", "on_failure"];
    let rest = SETTINGS.iter().find_map(|word| after_word(part, word));
    // "rerun the tests" is a step and no setting, and so is "files to change".
    let mut with_sign = ["rerun", "files"].iter().filter_map(|word| after_word(part, word));
    let rest = rest.or_else(|| with_sign.find(|rest| rest.starts_with([':', '='])));
    rest.is_some_and(|rest| !rest.trim().is_empty() && rest.len() <= 40 && rest.split_whitespace().count() <= 3)
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
        let tail = rest[digits..].trim_start();
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = match &tail[..letters] {
            "ms" | "millis" | "milliseconds" => 1,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000,
            "d" | "day" | "days" => 86_400_000,
            _ => return None,
        };
        total = total.checked_add(value.checked_mul(unit)?)?;
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
