//! Places in a text: lines and columns, and runs of text that remember where each character stood.

use crate::plan::Span;

/// Finds the line and the column of a byte.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Line and column of a byte, both from 1.
    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
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

/// Characters of scripts that are written without spaces between words.
pub(super) fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

/// A run of text put together from pieces of the source, one per line.
///
/// Invisible characters are left out, every other space is a plain one, and line ends are `\n`.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) text: String,
    /// Where a stretch begins here, and where in the source.
    map: Vec<(usize, usize)>,
}

impl Flow {
    pub(super) fn new(source: &str, pieces: &[Span]) -> Self {
        let mut flow = Self::default();
        for (n, piece) in pieces.iter().enumerate() {
            if n > 0 {
                flow.map.push((flow.text.len(), piece.start));
                flow.text.push('\n');
            }
            flow.push(source, *piece);
        }
        flow
    }

    fn push(&mut self, source: &str, piece: Span) {
        let part = source.get(piece.start..piece.end).unwrap_or("");
        self.map.push((self.text.len(), piece.start));
        let mut from = 0;
        for (at, c) in part.char_indices() {
            let plain = matches!(c, ' ' | '\u{200c}' | '\u{200d}') || !is_blank(c);
            if plain {
                continue;
            }
            self.text.push_str(&part[from..at]);
            if !is_invisible(c) {
                self.text.push(' ');
            }
            from = at + c.len_utf8();
            self.map.push((self.text.len(), piece.start + from));
        }
        self.text.push_str(&part[from..]);
    }

    /// The byte of the source from which the byte `at` came.
    pub(super) fn source(&self, at: usize) -> usize {
        let n = self.map.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        self.map.get(n).map_or(0, |(start, source)| source + at.saturating_sub(*start))
    }

    /// The part of the source from which a range came, without the space at its ends.
    pub(super) fn span(&self, start: usize, end: usize) -> Option<Span> {
        let part = self.text.get(start..end)?;
        let first = start + (part.len() - part.trim_start().len());
        let (last, c) = part.char_indices().rev().find(|(_, c)| !c.is_whitespace())?;
        Some(Span { start: self.source(first), end: self.source(start + last) + c.len_utf8() })
    }
}

/// The words of a text in lower case, without punctuation at their ends.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | ':' | '"' | '/' | '\u{3001}' | '\u{ff0c}')
    })
    .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '?').to_lowercase().replace('\u{2019}', "'"))
    .filter(|word| !word.is_empty())
}

/// The text after `prefix`, compared without case, when a word ends there.
pub(super) fn after_word<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let rest = strip_prefix_ci(text, prefix)?;
    let inside = prefix.ends_with(|c: char| c.is_ascii_alphanumeric())
        && rest.starts_with(|c: char| c.is_alphanumeric() && !is_cjk(c));
    (!inside).then_some(rest)
}

/// The text after `prefix`, compared without ASCII case; a curly apostrophe counts as a straight one.
pub(super) fn strip_prefix_ci<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let mut chars = text.char_indices();
    for wanted in prefix.chars() {
        let (_, c) = chars.next()?;
        let c = if c == '\u{2019}' { '\'' } else { c };
        if !c.eq_ignore_ascii_case(&wanted) {
            return None;
        }
    }
    Some(chars.as_str())
}

/// White space collapsed and trimmed.
pub(super) fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// A list of words or phrases, made once.
pub(super) type Words = std::sync::LazyLock<Vec<&'static str>>;

/// Takes a list apart at its bars.
pub(super) fn list(text: &'static str) -> Vec<&'static str> {
    text.split('|').collect()
}
