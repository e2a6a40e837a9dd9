//! Labels at the start of a task: `T001`, `A.`, `P1:`, `#12`. What they mean for the plan is for others.

use super::phrases::{Words, list};
use super::references;

/// The length of `P1:` before a text.
pub(super) fn priority_head(rest: &str) -> Option<usize> {
    let number = rest.strip_prefix(['P', 'p'])?.strip_prefix(['0', '1', '2', '3', '4'])?;
    number.starts_with(": ").then_some(3)
}

/// The id at the start of an item, and its length with the sign after it.
pub(super) fn label(rest: &str) -> Option<(&str, usize)> {
    if let Some(number) = rest.strip_prefix('#') {
        let digits = number.bytes().take(8).take_while(u8::is_ascii_digit).count();
        let after = &number[digits..];
        let skip = usize::from(after.starts_with(':'));
        let fits = (1..8).contains(&digits) && after[skip..].starts_with(' ');
        return fits.then(|| (&rest[..=digits], 1 + digits + skip));
    }
    if let Some(length) = numbered(rest) {
        let colon = usize::from(rest.as_bytes()[length] == b':');
        return Some((&rest[..length], length + colon));
    }
    let signs = rest.bytes().take_while(|b| matches!(b, b'*' | b'`' | b'[')).count();
    let body = &rest[signs.min(4)..];
    let length = body.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')).count();
    let token = body[..length].trim_end_matches('.');
    let tail = &body[token.len()..];
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    // Most items begin with a word.
    if signs == 0 && digits == 0 && tail.starts_with(' ') {
        return None;
    }
    let closing = tail.bytes().take_while(|b| matches!(b, b'*' | b'`' | b']')).count();
    let after = &tail[closing..];
    // "T1. Write it"
    let colon = after.starts_with(':') && after[1..].starts_with([' ', '*'])
        || (closing == 0 && after.starts_with(". ") && is_counted(token))
        || (closing == 0 && signs > 0 && tail.starts_with(":**"));
    let taken = rest.len() - after.len();
    let short = !token.is_empty() && token.len() <= 16 && token.starts_with(|c: char| c.is_ascii_alphabetic());
    if !short || (signs > 0 && closing == 0) || rest.starts_with("[P]") {
        return None;
    }
    if !colon && digits == 0 {
        return None;
    }
    if colon && (references::is_id(token, false) || (token.bytes().all(|b| b.is_ascii_uppercase()) && token.len() == 1))
    {
        let skip = after[1..].len() - after[1..].trim_start_matches('*').len();
        return Some((token, taken + 1 + skip));
    }
    let dash = after.trim_start().chars().next().filter(|c| matches!(c, '\u{2013}' | '\u{2014}'));
    let spaced = after.starts_with(' ');
    let ticket = token.split_once('-').is_some_and(|(head, number)| {
        (2..=10).contains(&head.len())
            && head.bytes().all(|b| b.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
            && !STANDARDS.contains(head)
    });
    let numbered = token.starts_with('T')
        && digits > 0
        && digits + 1 == token.trim_end_matches(|c: char| c.is_ascii_lowercase()).len()
        && token.len() <= 7;
    let framed = closing > 0 && digits > 0 && references::is_id(token, false);
    let fits = spaced && (ticket || numbered || framed);
    let skip = dash.filter(|_| fits).map_or(0, |c| after.len() - after.trim_start().len() + c.len_utf8());
    fits.then(|| (token, taken + skip))
}

/// The length of "T12" before a word or a bracket, or before a colon and a space: what most ids are.
fn numbered(rest: &str) -> Option<usize> {
    let digits = rest.strip_prefix('T')?.bytes().take(7).take_while(u8::is_ascii_digit).count();
    let fits = match rest.as_bytes().get(1 + digits..)? {
        [b' ', next, ..] => next.is_ascii_alphanumeric() || *next == b'[',
        [b':', b' ', ..] => true,
        _ => false,
    };
    (fits && (1..=6).contains(&digits)).then_some(1 + digits)
}

/// True for "T12".
fn is_counted(token: &str) -> bool {
    token.strip_prefix('T').is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Heads of names that are standards and not tickets.
static STANDARDS: Words = Words::new(|| list("UTF|SHA|ISO|RFC|CVE|HTTP|MD|ES|IEEE|ANSI|GPT|COVID|AES|RSA|TLS"));

/// True when an item begins with an id.
pub(super) fn has_label(line: &str) -> bool {
    label(line).is_some()
}
