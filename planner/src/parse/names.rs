//! Ids and numbers of steps, as written in a plan file.

use std::sync::LazyLock;

use regex::Regex;

use super::words::{after, first_word, kind_of};

/// Separators after an id or a number.
const MARKS: [&str; 7] = [": ", ". ", ") ", " \u{2014} ", " \u{2013} ", " - ", " \u{b7} "];

/// The id or number at the beginning of a text, and its length including the separator.
pub(super) fn name_at(text: &str) -> Option<(String, usize)> {
    let (lead, bare) = match after(text, "step").or_else(|| after(text, "task")) {
        Some(rest) => (text.len() - rest.trim_start().len(), rest.trim_start()),
        None => (0, text),
    };
    let end = bare.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '#'))).unwrap_or(bare.len());
    let word = bare[..end].trim_end_matches('.');
    let rest = &bare[word.len()..];
    let mark = MARKS.iter().find(|mark| rest.starts_with(**mark) || rest == mark.trim_end());
    let (is_id, is_alone) = (is_id(word), rest.is_empty() || rest.starts_with(' '));
    // An id without a colon needs one to three capitals and at least two digits, or an order after it: `S1 Run ...`.
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let is_plain = word.len() - digits.len() <= 3 && matches!(digits.as_bytes(), [b'0'..=b'9', b'0'..=b'9', ..])
        || word.len() == 2 && matches!(word.as_bytes()[0], b'S' | b'T') && kind_of(&first_word(rest)).is_some();
    let is_name = match word.as_bytes() {
        _step if lead > 0 => is_number(word) && mark.is_some(),
        [letter] if rest.starts_with(": ") => letter.is_ascii_alphanumeric() && !letter.is_ascii_lowercase(),
        [b'#', number @ ..] => is_number(&word[1..]) && !number.contains(&b'.') && (is_alone || mark.is_some()),
        _number if is_number(word) => {
            mark.is_some_and(|mark| !mark.starts_with(' ')) || word.contains('.') && rest.starts_with([' ', '*'])
        }
        _word => is_id && (mark.is_some_and(|mark| *mark != ") ") || is_alone && is_plain),
    };
    let length = lead + word.len() + mark.map_or(0, |mark| mark.trim_end().len());
    is_name.then(|| (word.to_owned(), length))
}

/// True for `3` and `2.1`.
pub(crate) fn is_number(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= 12
        && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// True for capitals and digits with a hyphen, or with a final small letter or part: `T001`, `ABC-7`, `T100f`, `T9.1`.
pub(super) fn is_id(word: &str) -> bool {
    static ID: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("^[A-Z]{1,6}-?[0-9]{1,9}[a-z]?(?:[.][0-9]{1,3})?$").expect("it is a constant"));
    ID.is_match(word)
}
