//! Extracts the paths and file patterns that a text mentions, without checking whether they exist.
//!
//! A word counts if it has a slash, a file ending, a `*` or a leading full stop, and at least three characters. URLs,
//! versions, e-mail addresses, command options and pairs such as "and/or" do not count, nor do devices and installed
//! programs, which any command may name.

use std::collections::BTreeSet;

use crate::paths::{file_ref, without_line};

const CHARS_MIN: usize = 3;
/// The longest word that is examined, in bytes, including the marks around it.
const WORD_BYTES_MAX: usize = 4_096;
/// Prefixes of paths that belong to the machine.
const MACHINE: [&str; 6] = ["/dev/", "/proc/", "/sys/", "/bin/", "/sbin/", "/usr/"];
/// Words that a slash joins in prose.
const PAIRS: [&str; 26] = [
    "and", "or", "he", "she", "his", "her", "him", "it", "its", "yes", "no", "on", "off", "true", "false", "input",
    "output", "read", "write", "client", "server", "tcp", "ip", "in", "out", "either",
];

/// The paths and patterns that a text mentions, in order, each once. The iterator is lazy.
pub fn mentioned_files(text: &str) -> impl Iterator<Item = &str> {
    let mut known = BTreeSet::new();
    let words = words(text).filter(|word| word.len() <= WORD_BYTES_MAX);
    let paths = words.map(without_marks).map(|word| without_line(word.split_once("#L").map_or(word, |(path, _)| path)));
    paths.filter(move |path| is_file(path) && known.insert(*path))
}

/// Splits the text at white space, shell signs, quotation marks, and commas outside braces.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |char: char| {
        let cuts = match char {
            '{' => {
                depth += 1;
                false
            }
            '}' => {
                depth = depth.saturating_sub(1);
                false
            }
            ',' => depth == 0,
            '"' | '\'' | '`' | '(' | ')' | '<' | '>' | '|' | '&' | ';' | '=' => true,
            char => char.is_whitespace(),
        };
        if cuts {
            depth = 0;
        }
        cuts
    })
}

/// Removes the marks around a word, but keeps the brackets of a pattern and the full stop of a hidden file.
fn without_marks(word: &str) -> &str {
    let mut word = word.trim_start_matches([',', ';', ':', '!', '?']);
    let count = |char: char| word.matches(char).count();
    let mut pairs = [('[', ']'), ('{', '}')].map(|(open, close)| (open, close, count(open), count(close)));
    loop {
        let before = word.len();
        word = word.trim_end_matches([',', ';', ':', '!', '?', '.']);
        for (open, close, n_open, n_close) in &mut pairs {
            if *n_close > *n_open {
                if let Some(rest) = word.strip_suffix(*close) {
                    (word, *n_close) = (rest, *n_close - 1);
                }
            } else if *n_open > *n_close {
                if let Some(rest) = word.strip_prefix(*open) {
                    (word, *n_open) = (rest, *n_open - 1);
                }
            } else if *n_open == 1
                && let Some(rest) = word.strip_prefix(*open).and_then(|rest| rest.strip_suffix(*close))
            {
                (word, *n_open, *n_close) = (rest, 0, 0);
            }
        }
        if word.len() == before {
            return word;
        }
    }
}

fn is_file(word: &str) -> bool {
    let is_odd = word.chars().count() < CHARS_MIN
        || word.contains("://")
        || word.starts_with(['-', '+', '%', '#'])
        || (word.contains('$') && !word.starts_with("$HOME/"))
        || (word.contains('@') && !word.contains('/'))
        || !word.contains(|char: char| char.is_alphabetic() || char == '*')
        || MACHINE.iter().any(|start| word.starts_with(start));
    if is_odd || is_pair(word) {
        return false;
    }
    let is_hidden = word.strip_prefix('.').is_some_and(|name| name.starts_with(|char: char| char.is_ascii_lowercase()));
    let is_pattern = word.contains('*') && word.contains(|char: char| char.is_alphabetic());
    is_hidden || is_pattern || has_slash(word) || file_ref(word).is_some()
}

fn has_slash(word: &str) -> bool {
    match word.trim_matches('/').split('/').find(|name| !name.is_empty()) {
        // A host without its `https:`.
        Some(first) => word.contains('/') && !(first.starts_with("www.") || first.ends_with(".com")),
        None => false,
    }
}

/// True for `and/or`, `w/o`, `n/a`, `1/2`.
fn is_pair(word: &str) -> bool {
    let Some((first, second)) = word.split_once('/') else { return false };
    let is_word = |half: &str| {
        let half = half.to_lowercase();
        PAIRS.contains(&half.as_str()) || half.chars().count() == 1 && half.chars().all(char::is_alphanumeric)
    };
    is_word(first) && is_word(second)
}
