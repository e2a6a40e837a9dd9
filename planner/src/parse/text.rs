//! Places in a text: lines and columns, and runs of text that remember where each character stood.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::plan::Span;

/// Finds the line and the column of a byte.
pub(super) struct Lines<'a> {
    text: &'a str,
    /// Found when the first place is asked for: most texts have nothing that anybody must find.
    starts: OnceCell<Vec<usize>>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, starts: OnceCell::new() }
    }

    /// Line and column of a byte, both from 1.
    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        let ends = self.text.match_indices('\n');
        let starts = self.starts.get_or_init(|| std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect());
        let line = starts.partition_point(|start| *start <= at).max(1);
        let start = starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..at).unwrap_or("");
        (line, before.chars().filter(|c| !is_invisible(*c)).count() + 1)
    }
}

/// Characters without width that people paste without seeing them.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// White space, invisible characters and NUL.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || is_invisible(c) || c == '\0' || c == '\u{200c}' || c == '\u{200d}'
}

/// True when nothing in it can be seen.
pub(super) fn blank(text: &str) -> bool {
    text.chars().all(is_blank)
}

/// How many bytes of white space begin a text.
pub(super) fn spaces(text: &str) -> usize {
    // Mostly it is one or none.
    match text.as_bytes() {
        [b' ', next, ..] if next.is_ascii_graphic() => return 1,
        [first, ..] if first.is_ascii_graphic() => return 0,
        _ => {}
    }
    text.len() - text.trim_start_matches(is_blank).len()
}

/// Characters of scripts that are written without spaces between words.
pub(super) fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

/// A run of text put together from pieces of the source, one per line.
///
/// Invisible characters are left out, every other space is a plain one, and line ends are `\n`.
#[derive(Debug)]
pub(super) struct Flow<'s> {
    pub(super) text: Cow<'s, str>,
    /// Where it begins in the source.
    begin: usize,
    /// Where a stretch begins here, and where in the source; empty when it is one stretch.
    map: Vec<(usize, usize)>,
}

impl<'s> Flow<'s> {
    /// `plain` where nothing but signs of ASCII, plain spaces and ends of lines is in the source.
    pub(super) fn new(source: &'s str, pieces: &[Span], plain: bool) -> Self {
        Self::joined(source, pieces, "\n", plain)
    }

    /// The same, with something else than the end of a line between the pieces.
    pub(super) fn joined(source: &'s str, pieces: &[Span], between: &str, plain: bool) -> Self {
        let part = |piece: &Span| source.get(piece.start..piece.end).unwrap_or("");
        if let [piece] = pieces
            && (plain || odd(part(piece)).is_none())
        {
            return Self { text: Cow::Borrowed(part(piece)), begin: piece.start, map: Vec::new() };
        }
        let mut text = String::new();
        let mut map = Vec::with_capacity(pieces.len());
        for (n, piece) in pieces.iter().enumerate() {
            if n > 0 {
                map.push((text.len(), piece.start));
                text.push_str(between);
            }
            let part = part(piece);
            map.push((text.len(), piece.start));
            let mut from = 0;
            while let Some((at, c)) = odd(&part[from..]) {
                text.push_str(&part[from..from + at]);
                if !is_invisible(c) {
                    text.push(' ');
                }
                from += at + c.len_utf8();
                map.push((text.len(), piece.start + from));
            }
            text.push_str(&part[from..]);
        }
        Self { text: Cow::Owned(text), begin: pieces.first().map_or(0, |piece| piece.start), map }
    }

    /// The byte of the source from which the byte `at` came.
    pub(super) fn source(&self, at: usize) -> usize {
        let n = self.map.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        self.map.get(n).map_or(self.begin + at, |(start, source)| source + at.saturating_sub(*start))
    }

    /// The part of the source from which a range came, without the space at its ends.
    pub(super) fn span(&self, start: usize, end: usize) -> Option<Span> {
        let part = self.text.get(start..end)?;
        let first = start + (part.len() - trim_start(part).len());
        let (last, c) = trim_end(part).char_indices().next_back()?;
        Some(Span { start: self.source(first), end: self.source(start + last) + c.len_utf8() })
    }
}

/// True when nothing but signs of ASCII, plain spaces and ends of lines is in a text.
pub(super) fn is_plain(text: &str) -> bool {
    !any_byte(text, |byte| (!(b' '..0x80).contains(&byte)) & (byte != b'\n'))
}

/// The first white space that is no plain space, or the first invisible character.
fn odd(text: &str) -> Option<(usize, char)> {
    if !any_byte(text, |byte| !(b' '..0x80).contains(&byte)) {
        return None;
    }
    let mut from = 0;
    while let Some(at) = text.as_bytes()[from..].iter().position(|b| !(b' '..0x80).contains(b)) {
        let c = text[from + at..].chars().next()?;
        if is_blank(c) && !matches!(c, '\u{200c}' | '\u{200d}') {
            return Some((from + at, c));
        }
        from += at + c.len_utf8();
    }
    None
}

/// Where a phrase of two bytes or more stands in a text; such a search needs no preparation.
pub(super) fn find(text: &str, phrase: &str) -> Option<usize> {
    if !may_hold(text, phrase) {
        return None;
    }
    places(text, phrase).find(|at| text.as_bytes()[*at..].starts_with(phrase.as_bytes()))
}

/// Where it stands last.
pub(super) fn rfind(text: &str, phrase: &str) -> Option<usize> {
    if !may_hold(text, phrase) {
        return None;
    }
    places(text, phrase).rfind(|at| text.as_bytes()[*at..].starts_with(phrase.as_bytes()))
}

/// True when two bytes of a phrase stand in a text, its first two or, after a space, the next.
///
/// Mostly they do not, and a look at all bytes without a branch, many at a time, is cheaper than one that stops early.
fn may_hold(text: &str, phrase: &str) -> bool {
    let [first, second] = match phrase.as_bytes() {
        [b' ', first, second, ..] | [first, second, ..] => [*first, *second],
        [] | [_] => return false,
    };
    any_pair(text, |a, b| (a == first) & (b == second))
}

/// A text without the white space around it; mostly there is none.
pub(super) fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => text.trim(),
    }
}

/// A text without the white space before it; mostly that is none, or one space.
#[inline]
pub(super) fn trim_start(text: &str) -> &str {
    match text.as_bytes() {
        [first, ..] if first.is_ascii_graphic() => text,
        [b' ', next, ..] if next.is_ascii_graphic() => &text[1..],
        _ => text.trim_start(),
    }
}

/// A text without the white space behind it; mostly there is none.
#[inline]
pub(super) fn trim_end(text: &str) -> &str {
    if text.as_bytes().last().is_some_and(u8::is_ascii_graphic) { text } else { text.trim_end() }
}

/// True when nothing but white space is in it.
pub(super) fn is_white(text: &str) -> bool {
    !text.as_bytes().first().is_some_and(u8::is_ascii_graphic) && text.trim_start().is_empty()
}

/// The first word between white space, empty when there is none.
pub(super) fn first_word(text: &str) -> &str {
    let ends = |byte: &u8| *byte <= b' ' || !byte.is_ascii();
    match text.bytes().position(|byte| ends(&byte)) {
        Some(at) if at > 0 && text.as_bytes()[at] == b' ' => &text[..at],
        None => text,
        Some(_) => text.split_whitespace().next().unwrap_or(""),
    }
}

/// Where a byte of ASCII stands first; many bytes are looked at at once.
pub(super) fn find_byte(text: &[u8], wanted: u8) -> Option<usize> {
    let (long, rest) = text.as_chunks::<32>();
    for (n, part) in long.iter().enumerate() {
        if part.iter().fold(0, |any, byte| any | u8::from(*byte == wanted)) > 0 {
            return find_near(part, wanted).map(|found| n * 32 + found);
        }
    }
    find_near(rest, wanted).map(|found| long.len() * 32 + found)
}

/// The same for a text of a few bytes.
fn find_near(text: &[u8], wanted: u8) -> Option<usize> {
    let pattern = u64::from_ne_bytes([wanted; 8]);
    let (all, rest) = text.as_chunks::<8>();
    for (n, part) in all.iter().enumerate() {
        // The high bit of the first byte that is the wanted one, and of none before it.
        let other = u64::from_le_bytes(*part) ^ pattern;
        let found = other.wrapping_sub(u64::from_ne_bytes([1; 8])) & !other & u64::from_ne_bytes([0x80; 8]);
        if found > 0 {
            return Some(n * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|byte| *byte == wanted).map(|found| all.len() * 8 + found)
}

/// Where a byte of ASCII stands first among the first bytes.
pub(super) fn find_early(text: &str, wanted: u8, n_bytes: usize) -> Option<usize> {
    find_byte(&text.as_bytes()[..text.len().min(n_bytes)], wanted)
}

/// True when a byte of ASCII stands in a text.
pub(super) fn has_byte(text: &str, wanted: u8) -> bool {
    find_byte(text.as_bytes(), wanted).is_some()
}

/// So many bytes are looked at at once.
const LANES: usize = 16;

/// True when some byte of a text is of a sort that bits tell.
#[inline]
pub(super) fn any_byte(text: &str, is: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let any = |part: &[u8; LANES]| part.iter().fold(0, |any, byte| any | u8::from(is(*byte))) > 0;
    match bytes.last_chunk() {
        // The last of them are looked at again rather than one by one.
        Some(last) => bytes.as_chunks().0.iter().any(any) || any(last),
        None => bytes.iter().any(|byte| is(*byte)),
    }
}

/// The same for each byte with the one after it.
#[inline]
pub(super) fn any_pair(text: &str, is: impl Fn(u8, u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let Some(seconds) = bytes.get(1..) else { return false };
    let firsts = &bytes[..seconds.len()];
    let any = |(firsts, seconds): (&[u8; LANES], &[u8; LANES])| {
        firsts.iter().zip(seconds).fold(0, |any, (a, b)| any | u8::from(is(*a, *b))) > 0
    };
    match (firsts.last_chunk(), seconds.last_chunk()) {
        (Some(a), Some(b)) => firsts.as_chunks().0.iter().zip(seconds.as_chunks().0).any(any) || any((a, b)),
        _shorter => firsts.iter().zip(seconds).any(|(a, b)| is(*a, *b)),
    }
}

/// Each byte with the two after it.
pub(super) fn threes(text: &str) -> impl Iterator<Item = (u8, u8, u8)> {
    let bytes = text.as_bytes();
    let [second, third] = [1, 2].map(|from| bytes.get(from..).unwrap_or_default());
    let pairs = bytes.iter().copied().zip(second.iter().copied());
    pairs.zip(third.iter().copied()).map(|((a, b), c)| (a, b, c))
}

/// The places of the first two bytes of a phrase.
fn places(text: &str, phrase: &str) -> impl DoubleEndedIterator<Item = usize> {
    let pair = phrase.as_bytes().first_chunk::<2>().copied().unwrap_or_default();
    let pairs = text.as_bytes().windows(2).enumerate();
    pairs.filter(move |(_, bytes)| bytes[0] == pair[0] && bytes[1] == pair[1]).map(|(at, _)| at)
}

/// Three bytes as one number, in which the case of letters is lost.
pub(super) const fn start(bytes: &[u8; 3]) -> u32 {
    u32::from_le_bytes([bytes[0] | 0x20, bytes[1] | 0x20, bytes[2] | 0x20, 0])
}

/// True when a phrase of two bytes or more stands in a text.
pub(super) fn holds(text: &str, phrase: &str) -> bool {
    find(text, phrase).is_some()
}

/// White space collapsed and trimmed.
pub(super) fn collapse(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let is_odd = |byte: u8| !(b' '..0x80).contains(&byte);
    if !any_pair(text, |a, b| is_odd(a) | is_odd(b) | ((a == b' ') & (b == b' '))) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    Cow::Owned(out)
}
