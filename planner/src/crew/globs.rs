//! Patterns of paths, and whether two of them overlap. File systems are never read.
//!
//! A pattern is a path with `*` and `?` (within a name), `[a-z]`, `[!a]`, `{a,b}` and `**` (any number of folders). It
//! also covers everything below its matches, unless its last name has a file ending (`*.rs`): otherwise `**/*.rs` would
//! overlap with every file, in case a match is a folder. A match that another pattern names as a folder is one: `a.rs` and
//! `a.rs/b` overlap. Names that begin with a full stop are ordinary names. Case matters. A backslash separates like a slash.
//!
//! A pattern that exceeds a limit is widened to the folder before its first wildcard, so overlaps are never missed.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use serde::{Deserialize, Serialize};

use super::paths::has_file_ending;
use crate::text::truncate;

/// The greatest length of a pattern, in bytes.
pub const GLOB_BYTES_MAX: usize = 512;
/// The most patterns that `{a,b}` makes of one.
pub const GLOB_ALTERNATIVES_MAX: usize = 64;
/// The most names of a path that are compared.
pub const GLOB_COMPONENTS_MAX: usize = 64;

/// A pattern in the form that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pattern {
    shown: String,
    /// Its alternatives, without `{}`. The last part of each is `None`, for everything below, except for files. An
    /// absolute path starts with an empty name.
    ways: Vec<Vec<Option<Name>>>,
}

/// A name in a path: the set of allowed characters at each place; `None` matches any number of characters. In place of
/// a name, `None` matches any number of folders.
type Name = Vec<Option<Chars>>;

/// The characters allowed at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Chars {
    One(char),
    /// One of these, as sorted, disjoint ranges; possibly empty.
    OneOf(Vec<(char, char)>),
}

impl Pattern {
    /// The pattern `written`, relative to `folder` unless it is absolute. Dots are resolved in the text alone.
    pub fn new(folder: Option<&str>, written: &str) -> Self {
        let is_relative = !written.starts_with(['/', '~']);
        let text = match folder.filter(|_| is_relative) {
            Some(folder) => format!("{folder}/{written}"),
            None => written.to_owned(),
        };
        let text = text.replace('\\', "/");
        let alternatives = expand(&text).unwrap_or_else(|| vec![widened(&text).to_owned()]);
        Self::of(written, &alternatives)
    }

    /// True if the pattern is within all limits.
    pub fn fits(written: &str) -> bool {
        let is_short = |text: &String| text.split('/').count() <= GLOB_COMPONENTS_MAX;
        expand(written).is_some_and(|alternatives| alternatives.iter().all(is_short))
    }

    /// A file or folder of this name; wildcard characters are literal.
    pub fn literal(path: &str) -> Self {
        let name = |name: &str| Some(name.chars().map(Chars::One).map(Some).collect());
        Self { shown: path.to_owned(), ways: vec![parts(path, name)] }
    }

    fn of(written: &str, alternatives: &[String]) -> Self {
        let mut ways = Vec::new();
        for alternative in alternatives {
            let way = parts(alternative, |name| (name != "**").then(|| chars(name)));
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        Self { shown: truncate(written, GLOB_BYTES_MAX), ways }
    }

    /// As written.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The greatest cost of a comparison, in steps; comparing two patterns costs the product.
    pub fn n_steps(&self) -> usize {
        self.ways.iter().flatten().map(|part| part.as_ref().map_or(1, Vec::len)).sum()
    }

    /// True if both mean the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.ways == other.ways
    }

    /// True if some path matches both, or is below a match of both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let meet = |own: &[_], theirs: &[_]| is_at_or_above(own, theirs) || is_at_or_above(theirs, own);
        self.ways.iter().any(|own| other.ways.iter().any(|theirs| meet(own, theirs)))
    }
}

/// True if some path matches both, or is a match of `own` that `theirs` names as a folder: `a.rs` in `a.rs/b`.
fn is_at_or_above(own: &[Option<Name>], theirs: &[Option<Name>]) -> bool {
    let reached = reached(own, theirs, is_possible, names_meet);
    let is_named = |name: &Option<Name>| name.as_deref().is_some_and(is_literal);
    // Where folders repeat, an index is also reached in the midst of them.
    let is_folder = |at: usize| reached[at] && is_named(&theirs[at - 1]) && theirs[at].is_some();
    let is_possible = || theirs.iter().flatten().all(is_possible);
    is_end(&reached, theirs) || (1..theirs.len()).any(is_folder) && is_possible()
}

fn is_literal(name: &[Option<Chars>]) -> bool {
    name.iter().all(|char| matches!(char, Some(Chars::One(_))))
}

/// True if the name can match at all.
fn is_possible(name: &Name) -> bool {
    name.iter().flatten().all(Chars::is_possible)
}

fn names_meet(own: &Name, theirs: &Name) -> bool {
    if is_literal(own) && is_literal(theirs) {
        return own == theirs;
    }
    is_end(&reached(own, theirs, Chars::is_possible, Chars::meet), theirs)
}

impl Chars {
    fn is_possible(&self) -> bool {
        !matches!(self, Self::OneOf(ranges) if ranges.is_empty())
    }

    fn meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One(own), Self::One(theirs)) => own == theirs,
            (Self::One(char), Self::OneOf(ranges)) | (Self::OneOf(ranges), Self::One(char)) => {
                ranges.iter().any(|(first, last)| (first..=last).contains(&char))
            }
            (Self::OneOf(own), Self::OneOf(theirs)) => {
                own.iter().any(|own| theirs.iter().any(|theirs| own.0.max(theirs.0) <= own.1.min(theirs.1)))
            }
        }
    }
}

/// Of two patterns, in which `None` is any number of items: by index in `b`, true if some sequence matches all of `a` and
/// `b` up to there. It runs the product of the two automata, in `a.len() * b.len()` steps.
fn reached<T>(
    a: &[Option<T>],
    b: &[Option<T>],
    is_possible: impl Fn(&T) -> bool,
    meets: impl Fn(&T, &T) -> bool,
) -> Vec<bool> {
    let mut reached = vec![false; b.len() + 1];
    reached[0] = true;
    for x in a {
        let mut next = vec![false; b.len() + 1];
        for at in 0..=b.len() {
            if !reached[at] {
                continue;
            }
            next[at] |= x.is_none();
            match (x, b.get(at)) {
                (_, None) => {}
                (x, Some(None)) => {
                    reached[at + 1] = true;
                    next[at] |= x.as_ref().is_none_or(&is_possible);
                }
                (None, Some(Some(y))) => reached[at + 1] |= is_possible(y),
                (Some(x), Some(Some(y))) => next[at + 1] |= meets(x, y),
            }
        }
        if !next.contains(&true) {
            return next;
        }
        reached = next;
    }
    reached
}

/// True if the rest of `b` after an index that is reached can match nothing.
fn is_end<T>(reached: &[bool], b: &[Option<T>]) -> bool {
    let n_repeating = b.iter().rev().take_while(|y| y.is_none()).count();
    reached[b.len() - n_repeating..].contains(&true)
}

/// The parts of a path, without `.` and `..` as far as they can be resolved.
fn parts(path: &str, part: impl Fn(&str) -> Option<Name>) -> Vec<Option<Name>> {
    let (root, up) = (Some(Vec::new()), Some(vec![Some(Chars::One('.')); 2]));
    let mut parts = path.starts_with('/').then(|| root.clone()).into_iter().collect::<Vec<_>>();
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        match (name, parts.last()) {
            // The parent of any number of folders is any number of folders, and the parent of the root is the root.
            ("..", Some(last)) if last.is_none() || *last == root => {}
            ("..", Some(last)) if *last != up => _ = parts.pop(),
            ("..", Some(_) | None) => parts.push(up.clone()),
            ("**", Some(None)) => {}
            (name, Some(_) | None) => parts.push(part(name)),
        }
    }
    let is_file = parts.len() <= GLOB_COMPONENTS_MAX && has_file_ending(path);
    parts.truncate(GLOB_COMPONENTS_MAX);
    if !is_file {
        parts.push(None);
    }
    parts
}

/// The folder before a pattern's first wildcard, cut to the maximum length.
fn widened(text: &str) -> &str {
    let end = text.floor_char_boundary(GLOB_BYTES_MAX);
    let end = text[..end].find(['*', '?', '[', '{']).unwrap_or(end);
    if end == text.len() {
        return text;
    }
    text[..end].rfind('/').map_or("", |slash| &text[..=slash])
}

/// The alternatives of a pattern, without `{}`; `None` beyond a limit.
fn expand(text: &str) -> Option<Vec<String>> {
    if text.len() > GLOB_BYTES_MAX {
        return None;
    }
    let (mut done, mut open) = (Vec::new(), vec![text.to_owned()]);
    while let Some(text) = open.pop() {
        match first_group(&text) {
            None => done.push(text),
            Some((start, end, choices)) => {
                let whole = |choice: &&str| format!("{}{choice}{}", &text[..start], &text[end..]);
                open.extend(choices.iter().rev().map(whole));
            }
        }
        if done.len() + open.len() > GLOB_ALTERNATIVES_MAX {
            return None;
        }
    }
    Some(done)
}

/// The first `{a,b}`: its start, its end and its choices. Braces without a comma or a partner are literal.
fn first_group(text: &str) -> Option<(usize, usize, Vec<&str>)> {
    for (start, _) in text.match_indices('{') {
        let (mut depth, mut choice_start, mut choices) = (0_usize, start + 1, Vec::new());
        for (at, char) in text[start..].char_indices().map(|(at, char)| (start + at, char)) {
            match char {
                '{' => depth += 1,
                ',' if depth == 1 => {
                    choices.push(&text[choice_start..at]);
                    choice_start = at + 1;
                }
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        if !choices.is_empty() {
                            choices.push(&text[choice_start..at]);
                            return Some((start, at + 1, choices));
                        }
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    None
}

fn chars(name: &str) -> Name {
    let written = name.chars().collect::<Vec<_>>();
    let (mut chars, mut at) = (Vec::new(), 0);
    while let Some(char) = written.get(at) {
        at += 1;
        match char {
            '*' if chars.last() == Some(&None) => {}
            '*' => chars.push(None),
            '?' => chars.push(Some(without_slash(ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])))),
            '[' if let Some((class, n_chars)) = class(&written[at..]) => {
                chars.push(Some(class));
                at += n_chars;
            }
            char => chars.push(Some(Chars::One(*char))),
        }
    }
    chars
}

/// The characters after a `[` up to its `]`, and the length; `None` if it is never closed.
fn class(chars: &[char]) -> Option<(Chars, usize)> {
    let is_negated = matches!(chars.first(), Some('!' | '^'));
    let first = usize::from(is_negated);
    // A bracket in first place is literal.
    let end = first + 1 + chars.get(first + 1..)?.iter().position(|char| *char == ']')?;
    let (mut class, mut at) = (ClassUnicode::empty(), first);
    while at < end {
        let is_range = at + 2 < end && chars[at + 1] == '-';
        let (from, to) = (chars[at], if is_range { chars[at + 2] } else { chars[at] });
        if from <= to {
            class.push(ClassUnicodeRange::new(from, to));
        }
        at += if is_range { 3 } else { 1 };
    }
    if is_negated {
        class.negate();
    }
    Some((without_slash(class), end + 1))
}

/// The set without the slash, which no name contains.
fn without_slash(mut class: ClassUnicode) -> Chars {
    class.difference(&ClassUnicode::new([ClassUnicodeRange::new('/', '/')]));
    Chars::OneOf(class.ranges().iter().map(|range| (range.start(), range.end())).collect())
}
