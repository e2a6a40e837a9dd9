//! Items numbered inside one line: "1. Add tests; 2. fix bugs", "(1) fetch it, (2) clean it and (3) plot it", "T1: Build
//! it. T2: Test it."
//!
//! It only finds where they begin; a line that merely speaks of numbers has none.

use super::markers::Marker;
use super::text::{any_pair, threes};
use super::vocabulary;

/// A longer line is no list that somebody wrote into a sentence.
const LINE_BYTES_MAX: usize = 10_000;

/// An item in a line: its number, where its sign begins, where its text begins and ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inlined<'t> {
    pub(super) marker: Marker<'t>,
    pub(super) start: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The items of a line; none when it is no such list.
pub(super) fn items(line: &str) -> Vec<Inlined<'_>> {
    // Without a second item there is none, and mostly there is none.
    let begins = |a: u8, b: u8, c: u8| {
        (((a == b' ') | (a == b'(')) & (b == b'2') & ((c == b'.') | (c == b')')))
            | ((a == b'(') & (b == b'b') & (c == b')'))
            | (((a == b'T') | (a == b'0')) & (b == b'2') & (c == b':'))
    };
    let ends = |b: u8, c: u8| ((b == b'2') & ((c == b'.') | (c == b')') | (c == b':'))) | ((b == b'b') & (c == b')'));
    let second = any_pair(line, ends) && threes(line).fold(false, |any, (a, b, c)| any | begins(a, b, c));
    if !second || line.len() > LINE_BYTES_MAX {
        return Vec::new();
    }
    let mut found: Vec<Inlined> = Vec::new();
    for (at, _) in line.match_indices(|c: char| c.is_ascii_digit() || matches!(c, '(' | 'T')) {
        if !(at == 0 || line.as_bytes()[at - 1] == b' ') {
            continue;
        }
        let Some((number, length, sign)) = sign(&line[at..]) else { continue };
        let same = found.first().is_none_or(|first| shape(line.as_bytes()[first.start]) == shape(line.as_bytes()[at]));
        let from = at + length;
        // A bracket parts two items by itself.
        if number == found.len() + 1
            && same
            && (!found.is_empty() || leads(&line[..at], sign))
            && (sign == b')' || parted(line, &found, at))
        {
            let written = line[at..from].trim_matches(['(', ')', '.', ' ']);
            if sign == b':' {
                found.push(Inlined { marker: Marker::Bullet, start: at, from: at, to: line.len() });
                continue;
            }
            let lettered = written.starts_with(|c: char| c.is_ascii_alphabetic());
            let marker = if lettered { Marker::Letter(written.into()) } else { Marker::Number(written.into()) };
            found.push(Inlined { marker, start: at, from, to: line.len() });
        }
    }
    let ends: Vec<usize> = found.iter().skip(1).map(|item| item.start).collect();
    for (item, end) in found.iter_mut().zip(ends) {
        item.to = item.from + bare(&line[item.from..end]).len();
    }
    let whole = |item: &Inlined| {
        let text = &line[item.from..item.to];
        let closed = |sign: char| text.matches(sign).count().is_multiple_of(2);
        closed('`') && closed('"') && text.matches('(').count() == text.matches(')').count() && is_step(text)
    };
    if found.len() > 1 && found.iter().all(whole) { found } else { Vec::new() }
}

/// What an item begins with: a bracket, an id or a number.
fn shape(first: u8) -> u8 {
    if first.is_ascii_digit() { b'0' } else { first }
}

fn is_step(text: &str) -> bool {
    let id = text.strip_prefix('T').and_then(|rest| rest.split_once(": ")).filter(|(number, _)| number.len() <= 4);
    let text = id.map_or(text, |(_, rest)| rest);
    vocabulary::begins_with_verb(text) || text.starts_with('`')
}

/// The number of `2. `, `2) `, `(2) `, `(b) ` and `T2: `, their length and their last sign.
fn sign(text: &str) -> Option<(usize, usize, u8)> {
    if let [b'(', letter @ b'a'..=b'j', b')', b' ', ..] = text.as_bytes() {
        return Some((usize::from(letter - b'a') + 1, 4, b')'));
    }
    if let Some(rest) = text.strip_prefix('T') {
        // The id stays with its item.
        let digits = rest.bytes().take(4).take_while(u8::is_ascii_digit).count();
        let number = rest[..digits].parse().ok()?;
        return rest[digits..].starts_with(": ").then_some((number, digits + 3, b':'));
    }
    let open = usize::from(text.starts_with('('));
    let digits = text[open..].bytes().take(3).take_while(u8::is_ascii_digit).count();
    let number = text[open..open + digits].parse().ok()?;
    let sign = *text.as_bytes().get(open + digits)?;
    let fits = sign == b')' || (sign == b'.' && open == 0);
    let space = text.as_bytes().get(open + digits + 1) == Some(&b' ');
    (fits && space).then_some((number, open + digits + 2, sign))
}

/// True when a list can begin behind some text: at the start of the line, after a colon, and in brackets after a word.
fn leads(before: &str, sign: u8) -> bool {
    let before = before.trim_end();
    before.is_empty() || before.ends_with(':') || (sign == b')' && !before.ends_with(['.', '!', '?']))
}

/// True when the text of the last item ends before `at`.
fn parted(line: &str, found: &[Inlined], at: usize) -> bool {
    let Some(last) = found.last() else { return true };
    let text = line[last.from..at].trim_end();
    text.ends_with([';', ',', '.', '!']) || [" and", " then"].iter().any(|word| text.ends_with(word))
}

/// An item without what joins it to the next.
fn bare(text: &str) -> &str {
    let signs = |c: char| c == ' ' || matches!(c, ';' | ',' | '.');
    let mut short = text.trim_end_matches(signs);
    for word in [" then", " and"] {
        short = short.strip_suffix(word).unwrap_or(short).trim_end_matches(signs);
    }
    short
}
