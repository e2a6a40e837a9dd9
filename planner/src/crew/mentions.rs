//! Which paths and patterns of files a text mentions. It never looks whether they exist.
//!
//! A word is one when it has a slash, an ending that files have, a `*`, or a full stop in front, and three characters or
//! more. URLs, versions, e-mail addresses, options of commands and pairs such as "and/or" are none, and neither are
//! devices and installed programs, which every command may name.

use crate::parse::paths::file_ref;

const CHARS_MIN: usize = 3;
/// The longest word that is looked at, in bytes.
const WORD_BYTES_MAX: usize = 4_096;
/// Whatever begins so belongs to the machine.
const MACHINE: [&str; 6] = ["/dev/", "/proc/", "/sys/", "/bin/", "/sbin/", "/usr/"];
/// Words that a slash joins in prose.
const PAIRS: [&str; 26] = [
    "and", "or", "he", "she", "his", "her", "him", "it", "its", "yes", "no", "on", "off", "true", "false", "input",
    "output", "read", "write", "client", "server", "tcp", "ip", "in", "out", "either",
];

/// The paths and patterns that a text mentions, in that order, each once.
#[must_use]
pub fn mentioned_files(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in words(text).into_iter().map(without_marks).map(without_place) {
        if is_file(word) && !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
    }
    found
}

/// The text cut at white space, at the marks of the shell and of quotations, and at commas outside of braces.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, char) in text.char_indices() {
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
            words.push(&text[start..at]);
            start = at + char.len_utf8();
            depth = 0;
        }
    }
    words.push(&text[start..]);
    words
}

/// Without the marks around it; brackets that a pattern needs stay, and so does the full stop of a hidden file.
fn without_marks(word: &str) -> &str {
    let mut word = word.trim_start_matches([',', ';', ':', '!', '?']);
    loop {
        let before = word.len();
        word = word.trim_end_matches([',', ';', ':', '!', '?', '.']);
        for (open, close) in [('[', ']'), ('{', '}')] {
            let n_open = word.matches(open).count();
            let n_close = word.matches(close).count();
            if n_close > n_open {
                word = word.strip_suffix(close).unwrap_or(word);
            } else if n_open > n_close {
                word = word.strip_prefix(open).unwrap_or(word);
            } else if n_open == 1 && word.starts_with(open) && word.ends_with(close) {
                word = &word[1..word.len() - 1];
            }
        }
        if word.len() == before {
            return word;
        }
    }
}

/// Without `:42`, `:42:3`, `:12-20` and `#L10`.
fn without_place(word: &str) -> &str {
    let mut word = word.split_once("#L").map_or(word, |(path, _)| path);
    for _ in 0..2 {
        if let Some((path, place)) = word.rsplit_once(':')
            && !place.is_empty()
            && place.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        {
            word = path;
        }
    }
    word
}

fn is_file(word: &str) -> bool {
    let is_odd = word.len() > WORD_BYTES_MAX
        || word.chars().count() < CHARS_MIN
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

/// True of `and/or`, `w/o`, `n/a`, `1/2`.
fn is_pair(word: &str) -> bool {
    let Some((first, second)) = word.split_once('/') else { return false };
    let is_word = |half: &str| {
        let half = half.to_lowercase();
        PAIRS.contains(&half.as_str()) || half.chars().count() == 1 && half.chars().all(char::is_alphanumeric)
    };
    is_word(first) && is_word(second)
}
