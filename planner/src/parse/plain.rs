//! Text as a person would read it aloud, without the signs of Markdown.

use std::borrow::Cow;

use super::bytes::EMPHASIS;
use super::inline::{Atom, AtomKind, Inline};
use super::text::{any_byte, any_pair, collapse, holds};

/// What is taken out of a text; mostly it is one part or none, which needs no memory of its own.
#[derive(Debug, Default)]
pub(super) struct Removed {
    one: Option<(usize, usize)>,
    more: Vec<(usize, usize)>,
}

impl Removed {
    pub(super) fn push(&mut self, part: (usize, usize)) {
        match self.one {
            None => self.one = Some(part),
            Some(_) => self.more.push(part),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(usize, usize)> {
        self.one.iter().chain(&self.more)
    }

    /// All of it, in order.
    pub(super) fn sorted(&mut self) -> &[(usize, usize)] {
        if self.more.is_empty() {
            return self.one.as_slice();
        }
        self.more.extend(self.one.take());
        self.more.sort_unstable();
        &self.more
    }
}

/// Text as a person would read it aloud: no Markdown signs, nothing of what was taken out, which is in order.
pub(super) fn plain(text: &str, inline: &Inline, from: usize, to: usize, removed: &[(usize, usize)]) -> String {
    let mut atoms = inline.within(from, to).iter().peekable();
    let mut removed = removed.iter().peekable();
    let mut out = String::with_capacity(to.saturating_sub(from));
    let emphasis = inline.has(EMPHASIS);
    let mut at = from;
    loop {
        let next = atoms.peek().map(|atom| (atom.start, atom.end));
        let (start, end, shown) = match removed.next_if(|one| next.is_none_or(|next| **one <= next)) {
            Some((start, end)) => (*start, *end, None),
            None => match atoms.next() {
                Some(atom) => (atom.start, atom.end, shown(atom)),
                None => break,
            },
        };
        if start < at || end > to {
            continue;
        }
        push_plain(&mut out, &text[at..start], emphasis);
        if let Some((first, last)) = shown {
            out.push_str(text.get(first..last).unwrap_or(""));
        }
        at = end;
    }
    let tail = text.get(at..to).unwrap_or("");
    // The full stop of "docker build ." belongs to the code.
    let code = tail.trim_end_matches([' ', '.']).is_empty() && out.ends_with(" .");
    push_plain(&mut out, tail, emphasis);
    let mut shown = tidy(out);
    if code {
        shown.push_str(" .");
    }
    shown
}

/// What of an atom is still shown.
fn shown(atom: &Atom) -> Option<(usize, usize)> {
    match &atom.kind {
        AtomKind::Comment | AtomKind::Struck => None,
        AtomKind::Code
        | AtomKind::Link(_)
        | AtomKind::Image(_)
        | AtomKind::Url
        | AtomKind::Path(_)
        | AtomKind::Word => Some(atom.inner),
    }
}

/// Adds text without signs of emphasis, if there are any.
fn push_plain(out: &mut String, text: &str, emphasis: bool) {
    let signs = |byte: u8| (byte == b'*') | (byte == b'_') | (byte == b'\\');
    if !emphasis || !any_byte(text, signs) {
        return out.push_str(text);
    }
    let before = out.chars().next_back().unwrap_or(' ');
    let mut from = 0;
    for (at, sign) in text.bytes().enumerate().filter(|(_, byte)| signs(*byte)) {
        let previous = text[..at].chars().next_back().unwrap_or(before);
        let next = text[at + 1..].chars().next().unwrap_or(' ');
        let dropped = match sign {
            b'*' => next == '*' || previous == '*' || previous.is_alphanumeric() != next.is_alphanumeric(),
            b'_' => next == '_' && !previous.is_alphanumeric(),
            _ => matches!(next, '*' | '_' | '`' | '[' | ']' | '~' | '<' | '(' | ')'),
        };
        if dropped {
            out.push_str(&text[from..at]);
            from = at + 1;
        }
    }
    out.push_str(&text[from..]);
}

/// Spaces collapsed; signs left over at the ends taken off.
fn tidy(mut out: String) -> String {
    out.truncate(out.trim_end_matches(' ').len());
    if let [b' ', next, ..] = out.as_bytes()
        && next.is_ascii_alphanumeric()
    {
        out.remove(0);
    }
    let is_odd = |byte: u8| !(b' '..0x80).contains(&byte);
    let rough = |a: u8, b: u8| is_odd(a) | ((a == b' ') & ((b == b' ') | (b == b',') | (b == b'.')));
    let ends = out.as_bytes().first().zip(out.as_bytes().last());
    let clean = ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric());
    if clean && !any_pair(&out, rough) {
        return out;
    }
    let mut text = collapse(&out);
    if holds(&text, " ,") {
        text = text.replace(" ,", ",").into();
    }
    // What was taken out before a full stop left a space; the one in " ./a" is a path's.
    if holds(&text, " .") {
        let joined = text.replace(" . ", ". ");
        text = joined.strip_suffix(" .").map(|rest| format!("{rest}.")).unwrap_or(joined).into();
    }
    let mut short = text.trim_end_matches([' ', ',', ':', '\u{2014}', '\u{2013}', '\u{3002}', '\u{ff0c}']);
    while let Some(rest) = short.strip_suffix(" -").or_else(|| short.strip_suffix(" --")) {
        short = rest;
    }
    let short = short.strip_suffix('.').filter(|rest| !rest.ends_with("..") && !rest.ends_with("etc")).unwrap_or(short);
    let mut short = short.trim_start_matches([',', ':', ' ', '\u{2014}', '\u{ff0c}']);
    while let Some(rest) = short.strip_prefix("- ") {
        short = rest;
    }
    let short = short.trim();
    // Mostly nothing was to be done but to cut the ends.
    let Cow::Borrowed(whole) = text else { return short.to_owned() };
    let start = (whole.as_ptr() as usize - out.as_ptr() as usize) + (short.as_ptr() as usize - whole.as_ptr() as usize);
    let end = start + short.len();
    let mut out = out;
    out.truncate(end);
    out.drain(..start);
    out
}
