//! Excerpts of long outputs: errors keep types, paths and line numbers; results keep the lines their profile asks for.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use crate::crew::paths::file_ref;
use crate::event::ExcerptProfile;
use crate::text::{fits, n_chars, prefix, truncate};

/// The characters of a text that are read, half of them from its end.
const READ_CHARS_MAX: usize = 128 << 10;
/// The share of the room that one line may take, in percent.
const LINE_PERCENT: usize = 60;
/// The characters of a line that decide its relevance.
const JUDGED_CHARS_MAX: usize = 1_000;
/// The characters of an error in one line.
const HEADLINE_CHARS_MAX: usize = 240;
/// The characters of a line of an error for people.
const LINE_CHARS_MAX: usize = 400;
/// The lines that describe an error, from the one that names it.
const CAUSE_LINES: usize = 3;
/// A line is cut to at least this length.
const LINE_CHARS_MIN: usize = 40;

/// The kind of a text, which decides the lines to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// An error: types, paths and line numbers.
    Error,
    /// The result of a task.
    Result(ExcerptProfile),
}

/// The words of others for a prompt, of at most `chars_max` characters: an excerpt in a fence that no line of it can end.
pub fn quoted(text: &str, chars_max: usize, content: Content) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    // A fence of any length could take the whole budget.
    let (text, longest) = if longest > 8 { (text.replace('`', "'").into(), 0) } else { (Cow::Borrowed(text), longest) };
    let fence = "`".repeat(longest.max(2) + 1);
    let text = excerpt(&text, chars_max.saturating_sub(2 * fence.len() + 2), content);
    format!("{fence}\n{text}\n{fence}")
}

/// A text of at most `chars_max` characters: the text itself, or its most relevant lines in their order. A repeated line
/// is kept once with its count, of a stack trace only the first frame, and the omitted lines are counted at the end.
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
        // Half a line is kept only if it is relevant.
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

/// An error in one line: its first line; after a mere exit code also the first line that names an error, or else the last.
pub fn headline(error: &str) -> String {
    let mut lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let is_code = first.starts_with("exit code ");
    let mut rest = lines.filter(|_| is_code);
    let cause = rest.clone().find(|line| names_error(line)).or_else(|| rest.next_back());
    truncate(&cause.map_or_else(|| first.to_owned(), |cause| format!("{first}: {cause}")), HEADLINE_CHARS_MAX)
}

/// An error in at most `lines_max` lines: its first line, the first that names an error with the two after it, and the
/// last ones. `...` marks omitted lines.
pub fn error_lines(error: &str, lines_max: usize) -> Vec<String> {
    let lines = error.trim_end().lines().collect::<Vec<_>>();
    let mut kept = (0..lines.len().min(1)).collect::<BTreeSet<_>>();
    let cause = (1..lines.len()).find(|at| names_error(lines[*at]));
    kept.extend(cause.into_iter().flat_map(|at| at..(at + CAUSE_LINES).min(lines.len())));
    // Two marks fit, too.
    let n_last = if lines.len() <= lines_max { lines.len() } else { lines_max.saturating_sub(kept.len() + 2) };
    kept.extend(lines.len() - n_last..lines.len());
    let (mut shown, mut next) = (Vec::new(), 0);
    for at in kept {
        shown.extend((at > next).then(|| "...".to_owned()));
        shown.push(truncate(lines[at], LINE_CHARS_MAX));
        next = at + 1;
    }
    shown
}

/// True if a line names an error, and not a warning.
fn names_error(line: &str) -> bool {
    let judged = prefix(line, JUDGED_CHARS_MAX);
    ERROR.is_match(judged) && !judged.contains("arning")
}

/// The relevance of a line, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relevance {
    None,
    Low,
    Medium,
    High,
    Highest,
}

struct RankedLine<'t> {
    text: &'t str,
    relevance: Relevance,
    count: usize,
}

impl std::fmt::Display for RankedLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text)?;
        if self.count > 1 { write!(f, " ({} times)", self.count) } else { Ok(()) }
    }
}

/// The lines of a text, each once.
fn distinct(text: &str, content: Content) -> Vec<RankedLine<'_>> {
    let mut lines: Vec<RankedLine<'_>> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let (mut is_in_stack, mut is_in_code) = (false, false);
    for raw in text.lines() {
        let (line, shown) = (raw.trim_end(), raw.trim());
        let judged = prefix(shown, JUDGED_CHARS_MAX);
        let is_fence = shown.starts_with("```");
        is_in_code ^= is_fence;
        let is_frame = FRAME.is_match(judged);
        let relevance = match content {
            _ if !judged.chars().any(char::is_alphanumeric) => Relevance::None,
            Content::Error if is_frame && is_in_stack => Relevance::None,
            Content::Error if is_frame => Relevance::High,
            Content::Error => of_error(judged),
            Content::Result(_) if (is_in_code || is_fence) && SIGNATURE.is_match(judged) => Relevance::High,
            Content::Result(_) if is_in_code || is_fence => Relevance::None,
            // The first line matters more than the middle.
            Content::Result(profile) if lines.is_empty() => of_result(judged, profile).max(Relevance::Medium),
            Content::Result(profile) => of_result(judged, profile),
        };
        is_in_stack = is_frame || (is_in_stack && (raw.starts_with("    ") || raw.starts_with('\t')));
        let place = *known.entry(pattern_of(shown)).or_insert(lines.len());
        if place == lines.len() {
            lines.push(RankedLine { text: if content == Content::Error { shown } else { line }, relevance, count: 0 });
        }
        lines[place].count += 1;
    }
    // The last line matters, too.
    if let Some(last) = lines.last_mut().filter(|last| last.relevance == Relevance::Low) {
        last.relevance = Relevance::Medium;
    }
    lines
}

/// A key that is equal for lines that differ only in numbers. Errors in two places stay two errors.
fn pattern_of(line: &str) -> String {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex("[0-9]+"));
    if PLACE.is_match(line) { line.to_owned() } else { NUMBER.replace_all(line, "0").into_owned() }
}

fn of_error(line: &str) -> Relevance {
    match (ERROR.is_match(line), PLACE.is_match(line), CAUSE.is_match(line)) {
        (true, _, _) => Relevance::Highest,
        (false, true, _) => Relevance::High,
        (false, false, true) => Relevance::Medium,
        (false, false, false) => Relevance::Low,
    }
}

fn of_result(line: &str, profile: ExcerptProfile) -> Relevance {
    let is_kept = match profile {
        ExcerptProfile::Coding => has_path(line) || SIGNATURE.is_match(line) || ERROR.is_match(line),
        ExcerptProfile::Analysis => FINDING.is_match(line) || FIGURE.is_match(line),
    };
    match (is_kept, line.starts_with('#') || line.ends_with(':')) {
        (true, _) => Relevance::Highest,
        (false, true) => Relevance::Medium,
        (false, false) => Relevance::Low,
    }
}

/// A path with a line (`src/a.rs:3`, `a.ts(3,5)`), or `line 3`.
const PLACED: &str = r"\.\w*[A-Za-z]\w*[:(][0-9]|(?i:line )[0-9]";

static PLACE: LazyLock<Regex> = LazyLock::new(|| regex(PLACED));

/// `TypeError: ...`, `error[E0308]: ...`, `java.lang.NullPointerException`, `panicked at`, `FAILED`, `exit code 2`.
static ERROR: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(?:(?i:errors?|exception|fatal|panic|panicked|failure|failed|denied|undefined|exit(?:ed)?\b.*code)|\w*(?:Error|Exception|Failure|Warning|Panic)|[A-Z]+[0-9]{3,})\b",
    )
});

/// An expected value or a cause.
static CAUSE: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?i)\b(?:expected|actual|found|caused?|because|reason|cannot|missing|help|left|right|got)\b")
});

/// A finding, advice or a source.
static FINDING: LazyLock<Regex> = LazyLock::new(|| {
    let findings = "found|findings?|therefore|because|conclusion|concluded|shows|showed|means|recommend|recommendation|\
                    risk|causes?|confirmed|refuted|likely|must|decided";
    regex(&format!(r"(?i)\b(?:{findings}|sources?|according|see)\b|://"))
});

/// The beginning of a function, type or module in common languages.
static SIGNATURE: LazyLock<Regex> = LazyLock::new(|| {
    let begins = "fn|pub|struct|enum|trait|impl|type|(?:async )?def|class|interface|(?:async )?function|export|func|\
                  public|private|protected|const|CREATE TABLE|create table";
    regex(&format!("^[-+`* ]*(?:{begins}) "))
});

/// A digit that is not the number of a list item.
static FIGURE: LazyLock<Regex> = LazyLock::new(|| regex("^[-0-9.)* ]*[^-0-9.)* ].*[0-9]"));

/// A line of a stack: `at f (a.js:1:2)`, `File "a.py", line 3, in f`, `3: core::panicking::panic`, `a.go:12 +0x1d`.
static FRAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(&format!(r#"^(?:[0-9]+: (?:.*::|0x)|at (?:\./|.*\(|.*(?:{PLACED}))|File ".*line )|(?:{PLACED}).* \+0x"#))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("it is a constant")
}

/// True if a word names a file.
fn has_path(line: &str) -> bool {
    let words = line.split(|c: char| c.is_whitespace() || "\"'`()<>[],;".contains(c));
    words.map(|word| word.trim_end_matches(['.', ':', '!', '?'])).any(|word| file_ref(word).is_some())
}
