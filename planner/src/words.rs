//! The words and sentences of an English text.

use std::ops::Range;

/// The words of a text; negations such as `don't` are returned as `not`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}' | '-' | '_' | '.' | '/');
    text.split(move |c: char| !is_part(c)).filter(|word| !word.is_empty()).map(|word| {
        let is_bare = word.starts_with(char::is_alphanumeric) && word.ends_with(char::is_alphanumeric);
        let word = if is_bare { word } else { word.trim_matches(|c: char| !c.is_alphanumeric()) };
        let is_denied = ["n't", "N'T", "n\u{2019}t"].iter().any(|end| word.ends_with(end));
        if is_denied || is_one_of(word, &["dont", "cannot"]) { "not" } else { word }
    })
}

/// True if a list contains a word, in any case.
pub(crate) fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The first word of a text that is in a list.
pub(crate) fn find_word<'a>(text: &'a str, list: &[&str]) -> Option<&'a str> {
    words(text).find(|word| is_one_of(word, list))
}

/// The text after some first words, if it begins with exactly these words, in any case.
pub(crate) fn after<'a>(text: &'a str, first: &str) -> Option<&'a str> {
    let head = text.get(..first.len())?;
    let rest = &text[first.len()..];
    let ends = rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_');
    (head.eq_ignore_ascii_case(first) && ends).then_some(rest)
}

/// The text after the longest of several beginnings that matches.
pub(crate) fn after_any<'a>(text: &'a str, firsts: &[&str]) -> Option<&'a str> {
    let initial = text.bytes().next()?.to_ascii_lowercase();
    let fitting = firsts.iter().filter(|first| first.as_bytes()[0].eq_ignore_ascii_case(&initial));
    fitting.filter_map(|first| after(text, first)).min_by_key(|rest| rest.len())
}

/// The first word of a text, in small letters.
pub(crate) fn first_word(text: &str) -> String {
    words(text).next().map_or_else(String::new, str::to_lowercase)
}

/// The sentences of a text whose code is blanked out.
pub(crate) fn sentences(masked: &str) -> Vec<Range<usize>> {
    let (mut found, mut start) = (Vec::new(), 0);
    let bytes = masked.as_bytes();
    for (at, c) in masked.char_indices() {
        let end = at + c.len_utf8();
        let stops = match c {
            '.' if end == masked.len() || bytes[end].is_ascii_whitespace() => {
                let word = masked[start..at].rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
                word.chars().count() != 1 && !is_one_of(word, &["e.g", "i.e", "etc", "vs", "no", "cf"])
            }
            '!' | '?' => end == masked.len() || bytes[end].is_ascii_whitespace(),
            '\u{3002}' | '\u{ff01}' | '\u{ff1f}' => true,
            _other => false,
        };
        if stops {
            found.push(start..end);
            start = end;
        }
    }
    if !masked[start..].trim().is_empty() {
        found.push(start..masked.len());
    }
    found
}
