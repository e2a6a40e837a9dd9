//! Long texts made short by what their lines say: errors keep their types, paths and line numbers, work keeps what the
//! next one builds on. Pure and deterministic; what is left out is counted, and nothing is made up.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::brevity::{fits, n_chars, shorten, start_of};
use crate::event::Profile;
use crate::paths::file_ref;

/// So many characters of a text are looked at, half of them from its end.
const LOOKED_AT_CHARS_MAX: usize = 128 << 10;
/// The part of the room that one line may take, in percent: no line is all that is told.
const LINE_PERCENT: usize = 60;
/// So many characters of a line are judged.
const JUDGED_CHARS_MAX: usize = 1_000;
/// The least that is worth telling of a line that does not fit as a whole.
const LINE_CHARS_MIN: usize = 40;

/// What of a text matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// What went wrong, and where.
    Error,
    /// What came of a task.
    Result(Profile),
}

/// A text of at most `chars_max` characters: itself if it is that short, else the lines of it that say most, in their
/// order. A line that occurs again is told once, frames of a stack are left out but for the first, and the number of
/// lines that are left out stands where they were last.
#[must_use]
pub fn condense(text: &str, chars_max: usize, sort: Sort) -> Cow<'_, str> {
    if fits(text, chars_max) {
        return Cow::Borrowed(text);
    }
    let looked_at = shorten(text, LOOKED_AT_CHARS_MAX);
    let lines = distinct(&looked_at, sort);
    let mut order = (0..lines.len()).collect::<Vec<_>>();
    order.sort_by_key(|place| std::cmp::Reverse(lines[*place].worth));
    if lines.len() <= 1 {
        return Cow::Owned(shorten(text, chars_max));
    }
    let mark = |n_left_out: usize| format!("... {n_left_out} more lines");
    let n_lines = looked_at.lines().count();
    let Some(room) = chars_max.checked_sub(n_chars(&mark(n_lines)) + 1) else {
        return Cow::Owned(shorten(text, chars_max));
    };
    let line_max = (room * LINE_PERCENT / 100).max(LINE_CHARS_MIN);
    let mut left = room;
    let mut told: Vec<Option<String>> = vec![None; lines.len()];
    for place in order.into_iter().filter(|place| lines[*place].worth > Worth::None) {
        let whole = lines[place].told();
        let line = shorten(&whole, line_max.min(left.saturating_sub(1)));
        // Half a line of little worth says nothing.
        let is_told = line == whole || (lines[place].worth >= Worth::Much && n_chars(&line) >= LINE_CHARS_MIN);
        if is_told {
            left -= n_chars(&line) + 1;
            told[place] = Some(line);
        }
    }
    let n_told =
        lines.iter().zip(&told).filter(|(_, told)| told.is_some()).map(|(line, _)| line.n_times).sum::<usize>();
    let told = told.into_iter().flatten().collect::<Vec<_>>();
    if told.is_empty() {
        return Cow::Owned(shorten(text, chars_max));
    }
    let all = told.join("\n");
    Cow::Owned(if n_told < n_lines { format!("{all}\n{}", mark(n_lines - n_told)) } else { all })
}

/// True of a text that bears a mark of what was left out of it. One that has such a mark of its own is taken for short too:
/// who looks up all of it loses nothing.
pub(crate) fn is_condensed(text: &str) -> bool {
    let is_cut = text.contains(" ... ") || text.lines().any(|line| line.ends_with(" times)"));
    is_cut || text.lines().last().is_some_and(|line| line.starts_with("... ") && line.ends_with(" more lines"))
}

/// How much a line says, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// Nothing that is not said elsewhere.
    None,
    Little,
    Some,
    Much,
    Most,
}

struct Line<'t> {
    text: &'t str,
    worth: Worth,
    n_times: usize,
}

impl Line<'_> {
    fn told(&self) -> String {
        if self.n_times > 1 { format!("{} ({} times)", self.text, self.n_times) } else { self.text.to_owned() }
    }
}

/// The lines of a text, each once.
fn distinct(text: &str, sort: Sort) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut is_in_stack = false;
    let mut is_in_code = false;
    for raw in text.lines() {
        let line = raw.trim_end();
        let shown = line.trim_start();
        let judged = start_of(shown, JUDGED_CHARS_MAX);
        if shown.starts_with("```") {
            is_in_code = !is_in_code;
        }
        let is_frame = is_frame(judged);
        let worth = match sort {
            _ if is_rule(judged) => Worth::None,
            Sort::Error if is_frame => {
                if is_in_stack {
                    Worth::None
                } else {
                    Worth::Much
                }
            }
            Sort::Error => of_error(judged),
            Sort::Result(_) if is_in_code || shown.starts_with("```") => of_code(judged),
            Sort::Result(profile) => of_result(judged, profile),
        };
        // What begins or ends a text says more than its middle.
        let is_first = lines.is_empty() && sort != Sort::Error;
        let worth = if is_first && worth == Worth::Little { Worth::Some } else { worth };
        is_in_stack = is_frame || (is_in_stack && is_beside_frame(raw));
        let place = *known.entry(likeness(shown)).or_insert(lines.len());
        match lines.get_mut(place) {
            Some(line) => line.n_times += 1,
            None => lines.push(Line { text: if sort == Sort::Error { shown } else { line }, worth, n_times: 1 }),
        }
    }
    if let Some(last) = lines.last_mut()
        && last.worth == Worth::Little
    {
        last.worth = Worth::Some;
    }
    lines
}

/// What two lines have in common that say the same of other numbers or addresses.
fn likeness(line: &str) -> String {
    let mut like = String::with_capacity(line.len());
    for c in line.chars() {
        if !c.is_ascii_digit() {
            like.push(c);
        } else if !like.ends_with('0') {
            like.push('0');
        }
    }
    // Errors at two places are two errors.
    if has_place(line) { line.to_owned() } else { like }
}

fn of_error(line: &str) -> Worth {
    match (names_error(line), has_place(line)) {
        (true, _) => Worth::Most,
        (false, true) => Worth::Much,
        (false, false) if says_why(line) => Worth::Some,
        (false, false) => Worth::Little,
    }
}

fn of_code(line: &str) -> Worth {
    if is_signature(line) { Worth::Much } else { Worth::None }
}

fn of_result(line: &str, profile: Profile) -> Worth {
    let is_kept = match profile {
        Profile::Coding => has_path(line) || is_signature(line) || names_error(line),
        Profile::Analysis => is_finding(line) || has_figure(line) || has_source(line),
    };
    let is_heading = line.starts_with('#') || line.ends_with(':');
    match (is_kept, is_heading) {
        (true, _) => Worth::Most,
        (false, true) => Worth::Some,
        (false, false) => Worth::Little,
    }
}

/// A line of nothing but signs.
fn is_rule(line: &str) -> bool {
    !line.chars().any(char::is_alphanumeric)
}

/// Whether some word of a line, of letters, digits and `_`, is as wanted.
fn has_word(line: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| !word.is_empty() && is_wanted(word))
}

/// `TypeError: ...`, `error[E0308]: ...`, `java.lang.NullPointerException`, `panicked at`, `FAILED`.
fn names_error(line: &str) -> bool {
    has_word(line, |word| {
        let lower = word.to_ascii_lowercase();
        let is_type = word.len() > 5
            && ["Error", "Exception", "Failure", "Warning", "Panic"].iter().any(|end| word.ends_with(end));
        let is_code = word.len() >= 4
            && word.as_bytes()[0].is_ascii_uppercase()
            && word.bytes().skip_while(u8::is_ascii_uppercase).count() >= 3
            && word.bytes().skip_while(u8::is_ascii_uppercase).all(|byte| byte.is_ascii_digit());
        is_type
            || is_code
            || matches!(
                lower.as_str(),
                "error"
                    | "errors"
                    | "exception"
                    | "fatal"
                    | "panic"
                    | "panicked"
                    | "failed"
                    | "failure"
                    | "denied"
                    | "undefined"
            )
            || (lower == "exit" || lower == "exited") && line.contains("code")
    })
}

/// What a person would read next: what was expected, what is the cause.
fn says_why(line: &str) -> bool {
    has_word(line, |word| {
        matches!(
            word.to_ascii_lowercase().as_str(),
            "expected"
                | "actual"
                | "found"
                | "caused"
                | "cause"
                | "because"
                | "reason"
                | "cannot"
                | "missing"
                | "help"
                | "left"
                | "right"
                | "got"
        )
    })
}

/// A path with a line (`src/a.rs:3`, `a.ts(3,5)`), or `line 3`.
fn has_place(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let after_name = |at: usize| {
        let name = line[..at].rsplit(|c: char| c.is_whitespace() || "\"'`(<[".contains(c)).next().unwrap_or_default();
        name.contains('.') && name.bytes().any(|byte| byte.is_ascii_alphabetic()) && !name.ends_with('.')
    };
    let at_number = |at: usize| matches!(bytes[at], b':' | b'(') && is_digit(at + 1) && after_name(at);
    let lower = line.to_ascii_lowercase();
    (0..bytes.len()).any(at_number)
        || lower
            .match_indices("line ")
            .any(|(at, word)| lower.as_bytes().get(at + word.len()).is_some_and(u8::is_ascii_digit))
}

/// A word that names a file.
fn has_path(line: &str) -> bool {
    let words = line.split(|c: char| c.is_whitespace() || "\"'`()<>[],;".contains(c));
    words.map(|word| word.trim_end_matches(['.', ':', '!', '?'])).any(|word| file_ref(word).is_some())
}

/// The head of a function, type or module in the usual languages.
fn is_signature(line: &str) -> bool {
    let line = line.trim_start_matches(['+', '-', '`', '*', ' ']);
    let heads = [
        "fn ",
        "pub ",
        "struct ",
        "enum ",
        "trait ",
        "impl ",
        "type ",
        "def ",
        "async def ",
        "class ",
        "interface ",
        "function ",
        "async function ",
        "export ",
        "func ",
        "public ",
        "private ",
        "protected ",
        "const ",
        "CREATE TABLE",
        "create table",
    ];
    heads.iter().any(|head| line.starts_with(head))
}

/// What was found out, or is advised.
fn is_finding(line: &str) -> bool {
    has_word(line, |word| {
        matches!(
            word.to_ascii_lowercase().as_str(),
            "found"
                | "finding"
                | "findings"
                | "therefore"
                | "because"
                | "conclusion"
                | "concluded"
                | "shows"
                | "showed"
                | "means"
                | "recommend"
                | "recommendation"
                | "risk"
                | "cause"
                | "causes"
                | "confirmed"
                | "refuted"
                | "likely"
                | "must"
                | "decided"
        )
    })
}

fn has_figure(line: &str) -> bool {
    // The number of an item is none.
    let said = line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ')' | ' ' | '-' | '*'));
    said.bytes().any(|byte| byte.is_ascii_digit())
}

fn has_source(line: &str) -> bool {
    line.contains("://")
        || has_word(line, |word| {
            matches!(word.to_ascii_lowercase().as_str(), "source" | "sources" | "according" | "see")
        })
}

/// A line of a stack: `at f (a.js:1:2)`, `File "a.py", line 3, in f`, `3: core::panicking::panic`, `a.go:12 +0x1d`.
fn is_frame(line: &str) -> bool {
    let numbered = line.split_once(": ").is_some_and(|(n, rest)| {
        !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()) && (rest.contains("::") || rest.starts_with("0x"))
    });
    let is_at =
        line.strip_prefix("at ").is_some_and(|rest| has_place(rest) || rest.contains('(') || rest.starts_with("./"));
    let is_file = line.starts_with("File \"") && line.contains("line ");
    let is_go = line.contains(" +0x") && has_place(line);
    numbered || is_at || is_file || is_go
}

/// A line that shows the source of a frame, deeper than its surroundings.
fn is_beside_frame(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}
