//! Text for people: it cannot move the cursor or colour the terminal, and lines stay lines.

pub use crewlog_executors::shell::shell_word;
use crewlog_mq::Timestamp;
use crewlog_planner::plan::DefaultAnswer;
use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use sha2::{Digest, Sha256};

pub const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);
/// Characters of a default answer in a line.
const DEFAULT_CHARS_MAX: usize = 60;

/// The text with control characters made visible, except line ends and tabs.
pub fn visible(text: &str) -> String {
    let is_safe = |c: char| c == '\n' || c == '\t' || !(c.is_control() || is_bidi(c));
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_safe(c) { shown.push(c) } else { shown.extend(c.escape_default()) }
    }
    shown
}

/// Characters that reorder displayed text, so that a command could look like another.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text in one line of at most `chars_max` characters.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        // No more is looked at than can be shown, even of a text of a megabyte.
        if line.len() > chars_max.saturating_mul(4) {
            break;
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.extend(word.chars().take(chars_max.saturating_add(1)));
    }
    let text = visible(&line);
    if text.chars().count() <= chars_max {
        return text;
    }
    text.chars().take(chars_max.saturating_sub(3)).chain("...".chars()).collect()
}

/// A command of several lines in one line, for display.
pub fn in_one_line(command: &str) -> String {
    command.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// The words of a line, as a shell splits it: quotes and backslashes keep spaces. None if a quote is not closed.
pub fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            '\\' if quote != Some('\'') => word.get_or_insert_default().extend(chars.next()),
            c if c.is_whitespace() && quote.is_none() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

pub fn count(n: usize, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}

/// RFC 3339 in UTC, with microseconds. [`jiff::Timestamp`] would end a day before the largest time of a log.
pub fn rfc3339(moment: Timestamp) -> String {
    match EPOCH.checked_add(SignedDuration::from_micros(moment.0)) {
        Ok(moment) => format!("{moment:.6}Z"),
        Err(_) => format!("{} us", moment.0),
    }
}

/// The default answer of a question and its time, in words; empty without one.
pub fn by_default(default: Option<&DefaultAnswer>, deadline: Option<Timestamp>) -> String {
    let Some(DefaultAnswer { answer, after_ms }) = default else { return String::new() };
    let when = deadline.map_or_else(|| format!("after {}", length(*after_ms)), |at| format!("at {}", rfc3339(at)));
    format!(" (default: {} {when})", one_line(answer, DEFAULT_CHARS_MAX))
}

/// A length of time in the largest unit that divides it: `2h`, `90s`, `1500ms`.
pub fn length(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let unit = units.into_iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ms}ms"), |(unit, name)| format!("{}{name}", ms / unit))
}

#[cfg(test)]
mod tests;

pub fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
