//! Pasted chats: where the signs of speakers stand, such as "[10:31] ann: " and "Bob: ". What is said is for others.

use super::loose::clock;
use super::text::find_early;
use super::{roles, vocabulary};

/// The sign of a speaker alone on its line is no longer.
const STAMP_BYTES_MAX: usize = 60;

/// Where the signs of speakers stand in a pasted chat; nothing when it is none.
pub(super) fn speakers(text: &str) -> Vec<(usize, usize)> {
    // Without a colon or an end of a line near its start a text is nobody's.
    let named = text.starts_with(['[', '<']) || find_early(text, b':', 25).is_some();
    if !named && find_early(text, b'\n', STAMP_BYTES_MAX).is_none() {
        return Vec::new();
    }
    if stamp(text).is_some() {
        return signs(text, stamp);
    }
    if speaker(text).is_none() {
        return talk(text);
    }
    let found = signs(text, speaker);
    if found.len() > 1 || text.starts_with('[') { found } else { Vec::new() }
}

/// Where the signs stand at the starts of lines, and how long they are.
fn signs(text: &str, sign: impl Fn(&str) -> Option<usize>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        found.extend(sign(line).map(|length| (at, length)));
        at += line.len();
    }
    found
}

/// The length of the first line when it is a name and a time, over what is said: "ann  10:02 AM".
fn stamp(text: &str) -> Option<usize> {
    let end = find_early(text, b'\n', STAMP_BYTES_MAX)?;
    let line = text[..end].trim_end().trim_end_matches(']');
    // "10:02 AM" has a space in it.
    let parts = line.rmatch_indices([' ', '[']).take(2).map(|(at, _)| (&line[..at], &line[at + 1..]));
    let (name, _) = parts.into_iter().find(|(_, time)| clock(time) == Some(time.len()))?;
    let day = [" at", " Today", " Yesterday", " \u{2014}", " -", " |"];
    let name = day.iter().fold(name.trim_end(), |name, word| name.strip_suffix(word).unwrap_or(name).trim_end());
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '@'));
    let called = !name.is_empty() && name.split_whitespace().count() <= 3 && !vocabulary::begins_with_verb(name);
    (plain && called).then_some(end + 1)
}

/// The length of the sign of a speaker at the start of a line of a chat: "[10:31] ann: ", "Bob: ", "<ann> ".
fn speaker(line: &str) -> Option<usize> {
    if let Some((name, said)) = line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        let plain =
            (2..=24).contains(&name.len()) && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        return (plain && said.starts_with(' ')).then_some(name.len() + 3);
    }
    let timed = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|(time, _)| is_time(time));
    let rest = timed.map_or(line, |(_, rest)| rest.trim_start());
    let name = &rest[..find_early(rest, b':', 25).filter(|length| *length > 0)?];
    let after = &rest[name.len() + 1..];
    let plain = || name.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '@'));
    let called = timed.is_some()
        || (!name.contains(' ')
            && name.starts_with(char::is_uppercase)
            && name.chars().skip(1).all(char::is_lowercase)
            && !vocabulary::is_verb(&name.to_lowercase())
            && !roles::explains(line)
            && !matches!(
                name,
                "First" | "Second" | "Third" | "Fourth" | "Fifth" | "Then" | "Next" | "Finally" | "Last" | "Lastly"
            )
            && !matches!(name, "Note" | "Todo" | "Fixme" | "Warning" | "Hint" | "Example" | "Question" | "Answer"));
    (called && after.starts_with(' ') && plain()).then(|| line.len() - after.len() + 1)
}

/// "10:31", "2026-01-02 10:31".
fn is_time(text: &str) -> bool {
    text.len() <= 24 && text.split([' ', ',', 'T']).any(|part| clock(part) == Some(part.len()))
}

/// The same for names in lower case, of which every line has one, and which speak to each other.
fn talk(text: &str) -> Vec<(usize, usize)> {
    if !text.starts_with(|c: char| c.is_ascii_lowercase() || c == '@') {
        return Vec::new();
    }
    let mut found = Vec::new();
    let (mut at, mut speaks) = (0, false);
    for line in text.split_inclusive('\n') {
        // The name has at most sixteen bytes.
        let Some(length) = find_early(line, b':', 17).filter(|end| line[*end..].starts_with(": ")) else {
            return Vec::new();
        };
        let (name, said) = (&line[..length], &line[length + 2..]);
        let plain = (2..=16).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '@')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'@'));
        if !plain || vocabulary::is_verb(name) {
            return Vec::new();
        }
        speaks |= vocabulary::is_request(said) || roles::answers(said);
        found.push((at, name.len() + 2));
        at += line.len();
    }
    if speaks && found.len() > 1 { found } else { Vec::new() }
}
