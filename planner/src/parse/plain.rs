//! Text as a person would read it aloud, without the signs of Markdown.

use std::borrow::Cow;

use super::inline::{AtomKind, Inline};
use super::text::{collapse, holds, pairs};

/// A stretch that is left out, and what of it is still shown.
type Hole = (usize, usize, Option<(usize, usize)>);

/// Text as a person would read it aloud: no Markdown signs, nothing of what was taken out.
pub(super) fn plain(text: &str, inline: &Inline, from: usize, to: usize, removed: &[(usize, usize)]) -> String {
    let mut holes: Vec<Hole> = removed.iter().map(|(start, end)| (*start, *end, None)).collect();
    for atom in inline.within(from, to) {
        let shown = match &atom.kind {
            AtomKind::Comment | AtomKind::Struck => None,
            AtomKind::Code
            | AtomKind::Link(_)
            | AtomKind::Image(_)
            | AtomKind::Url
            | AtomKind::Path(_)
            | AtomKind::Word => Some(atom.inner),
        };
        holes.push((atom.start, atom.end, shown));
    }
    holes.sort_unstable();
    let mut out = String::with_capacity(to.saturating_sub(from));
    let mut at = from;
    for (start, end, shown) in holes {
        if start < at || end > to {
            continue;
        }
        push_plain(&mut out, &text[at..start]);
        if let Some((first, last)) = shown {
            out.push_str(text.get(first..last).unwrap_or(""));
        }
        at = end;
    }
    push_plain(&mut out, text.get(at..to).unwrap_or(""));
    tidy(out)
}

/// Adds text without signs of emphasis.
fn push_plain(out: &mut String, text: &str) {
    let before = out.chars().next_back().unwrap_or(' ');
    let mut from = 0;
    for (at, sign) in text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'*' | b'_' | b'\\')) {
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
fn tidy(out: String) -> String {
    let mut text = collapse(&out);
    let spaced = pairs(&text).fold(false, |any, (a, b)| any | ((a == b' ') & ((b == b',') | (b == b'.'))));
    if spaced && holds(&text, " ,") {
        text = text.replace(" ,", ",").into();
    }
    // What was taken out before a full stop left a space; the one in " ./a" is a path's.
    if spaced && holds(&text, " .") {
        let joined = text.replace(" . ", ". ");
        text = joined.strip_suffix(" .").map(|rest| format!("{rest}.")).unwrap_or(joined).into();
    }
    let mut short = text.trim_end_matches([' ', ',', ':', '\u{2014}', '\u{2013}', '\u{3002}', '\u{ff0c}']);
    while let Some(rest) = short.strip_suffix(" -") {
        short = rest;
    }
    let short = short.strip_suffix('.').filter(|rest| !rest.ends_with("..") && !rest.ends_with("etc")).unwrap_or(short);
    let mut short = short.trim_start_matches([',', ':', ' ', '\u{2014}', '\u{ff0c}']);
    while let Some(rest) = short.strip_prefix("- ") {
        short = rest;
    }
    let short = short.trim();
    // Mostly nothing was to be done, and the text is what it was.
    let same = short.len() == out.len() && matches!(text, Cow::Borrowed(_));
    let tidied = (!same).then(|| short.to_owned());
    drop(text);
    tidied.unwrap_or(out)
}
