//! Excerpts of long outputs: errors keep their types, paths and line numbers, results what their profile asks for.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::event::Profile;
use crate::paths::file_ref;
use crate::text::{fits, n_chars, prefix, truncate};

/// Characters of a text that are read, half of them from its end.
const READ_CHARS_MAX: usize = 128 << 10;
/// The share of the room that one line may take, in percent.
const LINE_PERCENT: usize = 60;
/// Characters of a line that decide its relevance.
const JUDGED_CHARS_MAX: usize = 1_000;
/// A line is cut to no less than this.
const LINE_CHARS_MIN: usize = 40;

/// The kind of a text, which decides the lines to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// An error: types, paths and line numbers.
    Error,
    /// The result of a task.
    Result(Profile),
}

/// A text of at most `chars_max` characters: the text itself, or its most relevant lines in their order. A repeated line
/// is kept once with its count, of a stack trace only the first frame, and the omitted lines are counted at the end.
#[must_use]
pub fn excerpt(text: &str, chars_max: usize, content: Content) -> Cow<'_, str> {
    if fits(text, chars_max) {
        return Cow::Borrowed(text);
    }
    let mark = |n_omitted: usize| format!("... {n_omitted} more lines");
    let read = truncate(text, READ_CHARS_MAX);
    let (lines, n_lines) = (distinct(&read, content), read.lines().count());
    let room = chars_max.checked_sub(n_chars(&mark(n_lines)) + 1).filter(|_| lines.len() > 1);
    let Some(mut left) = room else { return Cow::Owned(truncate(text, chars_max)) };
    let line_max = (left * LINE_PERCENT / 100).max(LINE_CHARS_MIN);
    let mut order = (0..lines.len()).filter(|place| lines[*place].relevance > Relevance::None).collect::<Vec<_>>();
    order.sort_by_key(|place| std::cmp::Reverse(lines[*place].relevance));
    let mut kept: Vec<Option<String>> = vec![None; lines.len()];
    for place in order {
        let whole = lines[place].to_string();
        let line = truncate(&whole, line_max.min(left.saturating_sub(1)));
        // Half a line is kept only when it is relevant.
        if line == whole || (lines[place].relevance >= Relevance::High && n_chars(&line) >= LINE_CHARS_MIN) {
            left -= n_chars(&line) + 1;
            kept[place] = Some(line);
        }
    }
    let n_kept = lines.iter().zip(&kept).filter(|(_, kept)| kept.is_some()).map(|(line, _)| line.count).sum::<usize>();
    let kept = kept.into_iter().flatten().collect::<Vec<_>>().join("\n");
    Cow::Owned(match (kept.is_empty(), n_lines.saturating_sub(n_kept)) {
        (true, _) => truncate(text, chars_max),
        (false, 0) => kept,
        (false, n_omitted) => format!("{kept}\n{}", mark(n_omitted)),
    })
}

/// How much a line says, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relevance {
    None,
    Low,
    Medium,
    High,
    Highest,
}

struct Line<'t> {
    text: &'t str,
    relevance: Relevance,
    count: usize,
}

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text)?;
        if self.count > 1 { write!(f, " ({} times)", self.count) } else { Ok(()) }
    }
}

/// The lines of a text, each once.
fn distinct(text: &str, content: Content) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let (mut is_in_stack, mut is_in_code) = (false, false);
    for raw in text.lines() {
        let (line, shown) = (raw.trim_end(), raw.trim());
        let judged = prefix(shown, JUDGED_CHARS_MAX);
        let is_fence = shown.starts_with("```");
        is_in_code ^= is_fence;
        let is_frame = is_frame(judged);
        let relevance = match content {
            _ if !judged.chars().any(char::is_alphanumeric) => Relevance::None,
            Content::Error if is_frame && is_in_stack => Relevance::None,
            Content::Error if is_frame => Relevance::High,
            Content::Error => of_error(judged),
            Content::Result(_) if is_in_code || is_fence => {
                if is_signature(judged) {
                    Relevance::High
                } else {
                    Relevance::None
                }
            }
            // The first line says more than the middle.
            Content::Result(profile) if lines.is_empty() => of_result(judged, profile).max(Relevance::Medium),
            Content::Result(profile) => of_result(judged, profile),
        };
        is_in_stack = is_frame || (is_in_stack && (raw.starts_with("    ") || raw.starts_with('\t')));
        let place = *known.entry(pattern_of(shown)).or_insert(lines.len());
        match lines.get_mut(place) {
            Some(line) => line.count += 1,
            None => {
                lines.push(Line { text: if content == Content::Error { shown } else { line }, relevance, count: 1 });
            }
        }
    }
    // So does the last line.
    if let Some(last) = lines.last_mut().filter(|last| last.relevance == Relevance::Low) {
        last.relevance = Relevance::Medium;
    }
    lines
}

/// Equal for lines that differ in numbers only. Errors in two places stay two errors.
fn pattern_of(line: &str) -> String {
    if has_place(line) {
        return line.to_owned();
    }
    let mut pattern = String::with_capacity(line.len());
    for c in line.chars() {
        if !c.is_ascii_digit() {
            pattern.push(c);
        } else if !pattern.ends_with('0') {
            pattern.push('0');
        }
    }
    pattern
}

fn of_error(line: &str) -> Relevance {
    match (names_error(line), has_place(line), has_word(line, CAUSES)) {
        (true, _, _) => Relevance::Highest,
        (false, true, _) => Relevance::High,
        (false, false, true) => Relevance::Medium,
        (false, false, false) => Relevance::Low,
    }
}

fn of_result(line: &str, profile: Profile) -> Relevance {
    let is_kept = match profile {
        Profile::Coding => has_path(line) || is_signature(line) || names_error(line),
        Profile::Analysis => {
            has_word(line, FINDINGS) || has_figure(line) || (line.contains("://") || has_word(line, SOURCES))
        }
    };
    match (is_kept, line.starts_with('#') || line.ends_with(':')) {
        (true, _) => Relevance::Highest,
        (false, true) => Relevance::Medium,
        (false, false) => Relevance::Low,
    }
}

/// Words of a line that name an error.
const ERRORS: &str = "error errors exception fatal panic panicked failed failure denied undefined";
/// How the names of error types end.
const ERROR_TYPES: [&str; 5] = ["Error", "Exception", "Failure", "Warning", "Panic"];
/// Words of lines about an expected value or a cause.
const CAUSES: &str = "expected actual found caused cause because reason cannot missing help left right got";
/// Words of a line that states a finding or gives advice.
const FINDINGS: &str = "found finding findings therefore because conclusion concluded shows showed means recommend \
                        recommendation risk cause causes confirmed refuted likely must decided";
/// Words of a line that names its source.
const SOURCES: &str = "source sources according see";
/// How a function, type or module begins in common languages, with the blank after it.
const SIGNATURES: &str = "fn,pub,struct,enum,trait,impl,type,def,async def,class,interface,function,async function,\
                          export,func,public,private,protected,const,CREATE TABLE,create table";

/// The words of a line: letters, digits and `_`.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn has_word(line: &str, wanted: &str) -> bool {
    words(line).any(|word| wanted.split(' ').any(|wanted| wanted.eq_ignore_ascii_case(word)))
}

/// `TypeError: ...`, `error[E0308]: ...`, `java.lang.NullPointerException`, `panicked at`, `FAILED`.
fn names_error(line: &str) -> bool {
    let is_code = |word: &str| {
        let number = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
        number.len() >= 3 && number.len() < word.len() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_type = |word: &str| word.len() > 5 && ERROR_TYPES.iter().any(|end| word.ends_with(end));
    has_word(line, ERRORS)
        || words(line).any(|word| is_type(word) || is_code(word))
        || (has_word(line, "exit exited") && line.contains("code"))
}

/// A path with a line (`src/a.rs:3`, `a.ts(3,5)`), or `line 3`.
fn has_place(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let after_name = |at: usize| {
        let name = line[..at].rsplit(|c: char| c.is_whitespace() || "\"'`(<[".contains(c)).next().unwrap_or_default();
        name.contains('.') && name.bytes().any(|byte| byte.is_ascii_alphabetic()) && !name.ends_with('.')
    };
    let is_number = |at: usize| matches!(bytes[at], b':' | b'(') && is_digit(at + 1) && after_name(at);
    let lower = line.to_ascii_lowercase();
    (0..bytes.len()).any(is_number) || lower.match_indices("line ").any(|(at, word)| is_digit(at + word.len()))
}

/// A word that names a file.
fn has_path(line: &str) -> bool {
    let words = line.split(|c: char| c.is_whitespace() || "\"'`()<>[],;".contains(c));
    words.map(|word| word.trim_end_matches(['.', ':', '!', '?'])).any(|word| file_ref(word).is_some())
}

fn is_signature(line: &str) -> bool {
    let line = line.trim_start_matches(['+', '-', '`', '*', ' ']);
    let after = |begin: &str| line.strip_prefix(begin).is_some_and(|rest| rest.starts_with(' '));
    SIGNATURES.split(',').any(after)
}

/// A digit that is not the number of a list item.
fn has_figure(line: &str) -> bool {
    let text = line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ')' | ' ' | '-' | '*'));
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// A line of a stack: `at f (a.js:1:2)`, `File "a.py", line 3, in f`, `3: core::panicking::panic`, `a.go:12 +0x1d`.
fn is_frame(line: &str) -> bool {
    let is_numbered = line.split_once(": ").is_some_and(|(n, rest)| {
        !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()) && (rest.contains("::") || rest.starts_with("0x"))
    });
    let is_at =
        line.strip_prefix("at ").is_some_and(|rest| has_place(rest) || rest.contains('(') || rest.starts_with("./"));
    let is_file = line.starts_with("File \"") && line.contains("line ");
    is_numbered || is_at || is_file || (line.contains(" +0x") && has_place(line))
}
