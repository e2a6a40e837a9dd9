//! Patterns of paths, and whether some path is matched by both of two. It never looks at a file system.
//!
//! A pattern is a path with `*` and `?` (within a name), `[a-z]`, `[!a]`, `{a,b}` and `**` (any number of folders). It
//! also covers everything below what it matches, unless its last name ends as files do (`*.rs`): else `**/*.rs` would
//! overlap with every file, in case that is a folder. Names that begin with a full stop are names like any other. Letters
//! in upper and lower case differ. Backslashes separate, as slashes do.
//!
//! A pattern that passes a limit stands for the whole folder that it names before its first wildcard, so it never
//! overlaps with less than was written.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use serde::{Deserialize, Serialize};

use crate::paths::has_file_ending;
use crate::text::truncate;

/// The greatest length of a pattern, in bytes.
pub const GLOB_BYTES_MAX: usize = 512;
/// The most patterns that `{a,b}` makes of one.
pub const GLOB_ALTERNATIVES_MAX: usize = 64;
/// The most names that are looked at in a path.
pub const GLOB_COMPONENTS_MAX: usize = 64;

/// A pattern, as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pattern {
    shown: String,
    /// Its alternatives, without `{}`. The last part of each is [`Part::Deep`], for everything below, except for files. The
    /// first part of an absolute path is a name without characters.
    ways: Vec<Vec<Part>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Part {
    /// Any number of folders.
    Deep,
    Name(Vec<Step>),
}

/// What one place of a name may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Step {
    /// Any number of characters.
    Many,
    Char(char),
    /// One of these, as sorted ranges that do not touch; perhaps of none.
    OneOf(Vec<(char, char)>),
}

impl Pattern {
    /// The pattern that is `written`, as seen from `folder` if it is relative. Dots are resolved by the text alone.
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

    /// A pattern relative to the root; `None` if it passes a limit.
    pub fn exact(written: &str) -> Option<Self> {
        let alternatives = expand(written)?;
        let fits = alternatives.iter().all(|text| text.split('/').count() <= GLOB_COMPONENTS_MAX);
        fits.then(|| Self::of(written, &alternatives))
    }

    /// A file or folder of this name; wildcard characters are literal.
    pub fn literal(path: &str) -> Self {
        let name = |name: &str| Part::Name(name.chars().map(Step::Char).collect());
        Self { shown: path.to_owned(), ways: vec![parts(path, name)] }
    }

    fn of(written: &str, alternatives: &[String]) -> Self {
        let mut ways = Vec::new();
        for alternative in alternatives {
            let way = parts(alternative, Part::of);
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

    /// What comparing it costs at the most, in steps: a comparison of two takes the product.
    pub fn n_steps(&self) -> usize {
        let steps = |part: &Part| match part {
            Part::Deep => 1,
            Part::Name(steps) => steps.len(),
        };
        self.ways.iter().flatten().map(steps).sum()
    }

    /// True when both were written to the same effect.
    pub fn is_same(&self, other: &Self) -> bool {
        self.ways == other.ways
    }

    /// True when some path is matched by both, or is below a match of both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let meet = |own: &[Part], theirs: &[Part]| {
            meet(own, theirs, |part| *part == Part::Deep, Part::is_possible, Part::meets)
        };
        self.ways.iter().any(|own| other.ways.iter().any(|theirs| meet(own, theirs)))
    }
}

impl Part {
    fn of(name: &str) -> Self {
        if name == "**" { Self::Deep } else { Self::Name(steps(name)) }
    }

    /// True when any name is matched.
    fn is_possible(&self) -> bool {
        match self {
            Self::Deep => true,
            Self::Name(steps) => steps.iter().all(Step::is_possible),
        }
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Deep, other) | (other, Self::Deep) => other.is_possible(),
            (Self::Name(own), Self::Name(theirs)) => {
                if own.iter().chain(theirs).all(|step| matches!(step, Step::Char(_))) {
                    return own == theirs;
                }
                meet(own, theirs, |step| *step == Step::Many, Step::is_possible, Step::meets)
            }
        }
    }
}

impl Step {
    fn is_possible(&self) -> bool {
        match self {
            Self::Many | Self::Char(_) => true,
            Self::OneOf(ranges) => !ranges.is_empty(),
        }
    }

    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Char(own), Self::Char(theirs)) => own == theirs,
            (Self::Char(char), Self::OneOf(ranges)) | (Self::OneOf(ranges), Self::Char(char)) => {
                ranges.iter().any(|(first, last)| (first..=last).contains(&char))
            }
            (Self::OneOf(own), Self::OneOf(theirs)) => {
                own.iter().any(|own| theirs.iter().any(|theirs| own.0.max(theirs.0) <= own.1.min(theirs.1)))
            }
            (Self::Many, other) | (other, Self::Many) => other.is_possible(),
        }
    }
}

/// True when one sequence is matched by both patterns: the product of the two automata, state by state. It takes
/// `a.len() * b.len()` steps, whatever they hold.
fn meet<T>(
    a: &[T],
    b: &[T],
    repeats: impl Fn(&T) -> bool,
    is_possible: impl Fn(&T) -> bool,
    meets: impl Fn(&T, &T) -> bool,
) -> bool {
    // By place in `b`: whether it is reached together with the present place in `a`.
    let mut reached = vec![false; b.len() + 1];
    reached[0] = true;
    for x in a {
        let mut next = vec![false; b.len() + 1];
        for at in 0..=b.len() {
            if !reached[at] {
                continue;
            }
            next[at] |= repeats(x);
            match b.get(at) {
                None => {}
                Some(y) if repeats(y) => {
                    reached[at + 1] = true;
                    next[at] |= is_possible(x);
                }
                Some(y) if repeats(x) => reached[at + 1] |= is_possible(y),
                Some(y) => next[at + 1] |= meets(x, y),
            }
        }
        if !next.contains(&true) {
            return false;
        }
        reached = next;
    }
    // What is left of the other must match nothing at all.
    let n_repeating = b.iter().rev().take_while(|y| repeats(y)).count();
    reached[b.len() - n_repeating..].contains(&true)
}

/// The parts of a path, without `.` and `..` as far as they can be resolved.
fn parts(path: &str, part: impl Fn(&str) -> Part) -> Vec<Part> {
    let (root, up) = (Part::Name(Vec::new()), Part::Name(vec![Step::Char('.'), Step::Char('.')]));
    let mut parts: Vec<Part> = path.starts_with('/').then(|| root.clone()).into_iter().collect();
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        match (name, parts.last()) {
            // Above any number of folders is any number of folders, and above the root is the root.
            ("..", Some(last)) if *last == Part::Deep || *last == root => {}
            ("..", Some(last)) if *last != up => _ = parts.pop(),
            ("..", Some(_) | None) => parts.push(up.clone()),
            ("**", Some(Part::Deep)) => {}
            (name, Some(_) | None) => parts.push(part(name)),
        }
    }
    let is_file = parts.len() <= GLOB_COMPONENTS_MAX && has_file_ending(path);
    parts.truncate(GLOB_COMPONENTS_MAX);
    if !is_file {
        parts.push(Part::Deep);
    }
    parts
}

/// The folder that a pattern names before its first wildcard, as far as it may be long.
fn widened(text: &str) -> &str {
    let end = text.floor_char_boundary(GLOB_BYTES_MAX);
    let end = text[..end].find(['*', '?', '[', '{']).unwrap_or(end);
    if end == text.len() {
        return text;
    }
    text[..end].rfind('/').map_or("", |slash| &text[..=slash])
}

/// The patterns without `{}` that one stands for; nothing when a limit is passed.
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

/// The first `{a,b}`: where it begins and ends, and its choices. Braces without a comma, or without a partner, are
/// characters.
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

fn steps(name: &str) -> Vec<Step> {
    let chars = name.chars().collect::<Vec<_>>();
    let (mut steps, mut at) = (Vec::new(), 0);
    while let Some(char) = chars.get(at) {
        at += 1;
        match char {
            '*' => {
                if steps.last() != Some(&Step::Many) {
                    steps.push(Step::Many);
                }
            }
            '?' => steps.push(without_slash(ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]))),
            '[' => match class(&chars[at..]) {
                Some((step, n_chars)) => {
                    steps.push(step);
                    at += n_chars;
                }
                None => steps.push(Step::Char('[')),
            },
            char => steps.push(Step::Char(*char)),
        }
    }
    steps
}

/// What follows a `[` up to its `]`, and how long that is; nothing when it is never closed.
fn class(chars: &[char]) -> Option<(Step, usize)> {
    let is_negated = matches!(chars.first(), Some('!' | '^'));
    let first = usize::from(is_negated);
    // A bracket that comes first is a character.
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

/// One of these characters, as far as a name can have them.
fn without_slash(mut class: ClassUnicode) -> Step {
    class.difference(&ClassUnicode::new([ClassUnicodeRange::new('/', '/')]));
    Step::OneOf(class.ranges().iter().map(|range| (range.start(), range.end())).collect())
}
