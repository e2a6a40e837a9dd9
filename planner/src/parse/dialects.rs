//! Markup other than Markdown: Org, Jira and Textile, AsciiDoc, MediaWiki and todo.txt. It says which of them a text is
//! in, judged once by its first lines, and what a line of it is; what the words mean is for others.
//!
//! A text is in one of them only for a sign that Markdown has not (`h2. `, `== Title`, `. step`, `* TODO`, a date or a
//! letter of priority before the words), so that no Markdown is read as anything else.

use super::text::{is_blank, spaces};
use super::{markers, vocabulary};
use crate::plan::Mark;

/// So many lines, and so many bytes, are looked at to know the markup.
const LINES_MAX: usize = 200;
const BYTES_MAX: usize = 64 * 1024;

/// The markup of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Markdown,
    /// `h2. Title`, `# step`, `* item`; so is Textile.
    Jira,
    /// `* TODO Title`.
    Org,
    /// `== Title`, `. step`, `* item`.
    AsciiDoc,
    /// `== Title ==`, `# step`, `* item`.
    MediaWiki,
    /// `(A) 2026-01-02 Title +project @context`.
    TodoTxt,
}

/// What a line is; places are bytes of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sign<'t> {
    Heading {
        level: usize,
        from: usize,
        to: usize,
    },
    Item {
        /// 1 for an item of the outermost list.
        depth: usize,
        numbered: bool,
        mark: Option<Mark>,
        from: usize,
        /// Behind it stand tags.
        to: usize,
    },
    /// Code up to a line that begins so.
    Code {
        language: &'t str,
        end: &'static str,
    },
    /// Says something of the markup alone.
    Aside,
}

impl Dialect {
    /// The markup of a text, by its first lines.
    pub(super) fn of(text: &str) -> Self {
        let mut end = text.len().min(BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut seen = Seen::default();
        for line in text[..end].lines().take(LINES_MAX) {
            let line = line.trim_start_matches(is_blank);
            if line.starts_with("```") || line.starts_with("~~~") {
                seen.fenced = !seen.fenced;
            }
            if seen.fenced {
                continue;
            }
            if let Some(found) = seen.line(line.trim_end_matches(is_blank)) {
                return found;
            }
        }
        match seen {
            Seen { others: 0, numbers_in_a_row: true, .. } => Self::Jira,
            Seen { others: 0, dated: true, .. } => Self::TodoTxt,
            _ => Self::Markdown,
        }
    }

    /// What a line is in this markup; nothing for a line that is as in Markdown.
    pub(super) fn sign<'t>(self, line: &'t str) -> Option<Sign<'t>> {
        match self {
            Self::Markdown => None,
            Self::Jira => jira(line),
            Self::Org => org(line),
            Self::AsciiDoc => ascii_doc(line),
            Self::MediaWiki => equals(line).or_else(|| listed(line, b"*#")),
            Self::TodoTxt => Some(todo_txt(line)),
        }
    }
}

/// What the first lines have shown.
#[derive(Default)]
struct Seen {
    fenced: bool,
    /// Two lines with `# ` directly one below the other, the second of which says what to do.
    numbers_in_a_row: bool,
    number_before: bool,
    /// A line as todo.txt has them, which nothing else is.
    dated: bool,
    /// Lines that begin as no line with `# ` and none of todo.txt does.
    others: usize,
}

impl Seen {
    /// The markup that this line alone shows.
    fn line(&mut self, line: &str) -> Option<Dialect> {
        let number = line.starts_with("# ");
        self.numbers_in_a_row |= number && self.number_before && vocabulary::begins_with_verb(&line[2..]);
        self.number_before = number;
        let first = *line.as_bytes().first()?;
        match first {
            b'h' if jira_heading(line).is_some() => return Some(Dialect::Jira),
            b'=' if equals(line).is_some() => {
                return Some(if line.ends_with('=') { Dialect::MediaWiki } else { Dialect::AsciiDoc });
            }
            b'.' if run(line, b".").is_some() => return Some(Dialect::AsciiDoc),
            b'*' if matches!(org(line), Some(Sign::Item { mark: Some(_), .. })) => return Some(Dialect::Org),
            b'#' if is_org_keyword(line) => return Some(Dialect::Org),
            _ => {}
        }
        self.dated |= is_dated(line);
        let listed = matches!(first, b'-' | b'*' | b'+' | b'>' | b'|' | b'#' | b'[' | b'<' | b'1'..=b'9');
        let date = date(line).is_some();
        self.others += usize::from(!number && !line.starts_with("#*") && !line.starts_with("##") && listed && !date);
        // Prose is no list of numbers; in todo.txt every line is an item.
        self.others += usize::from(!number && self.numbers_in_a_row && !listed);
        None
    }
}

/// A run of some signs with a space and a text behind it: the last sign and how many there are.
fn run(line: &str, signs: &[u8]) -> Option<(u8, usize)> {
    let length = line.bytes().take(9).take_while(|byte| signs.contains(byte)).count();
    let rest = line.get(length..)?;
    let last = *line.as_bytes().get(length.checked_sub(1)?)?;
    (length <= 6 && rest.starts_with([' ', '\t']) && !rest.trim().is_empty()).then_some((last, length))
}

/// `** item`, `## step`, `*# step`: the last sign says which, and how many there are how deep.
fn listed<'t>(line: &str, signs: &[u8]) -> Option<Sign<'t>> {
    let (last, depth) = run(line, signs)?;
    let from = depth + spaces(&line[depth..]);
    let (mark, from) = boxed(line, from);
    Some(Sign::Item { depth, numbered: matches!(last, b'#' | b'.'), mark, from, to: line.len() })
}

/// The box, or Jira's tick, at a place, and where the text behind it begins.
fn boxed(line: &str, from: usize) -> (Option<Mark>, usize) {
    let rest = &line[from..];
    let (mark, length) = match rest.strip_prefix("(/) ") {
        Some(_) => (Mark::Done, 3),
        None => match markers::checkbox(rest) {
            Some(found) => found,
            None => return (None, from),
        },
    };
    (Some(mark), from + length + spaces(&rest[length..]))
}

fn jira_heading(line: &str) -> Option<usize> {
    let level = line.strip_prefix('h')?.bytes().next().filter(|level| (b'1'..=b'6').contains(level))?;
    line.get(2..)?.starts_with(". ").then_some(usize::from(level - b'0'))
}

fn jira(line: &str) -> Option<Sign<'_>> {
    if let Some(level) = jira_heading(line) {
        let from = 3 + spaces(&line[3..]);
        return Some(Sign::Heading { level, from, to: line.len() });
    }
    for (begin, end) in [("{code", "{code}"), ("{noformat", "{noformat}")] {
        if let Some(rest) = line.strip_prefix(begin).filter(|_| line.ends_with('}')) {
            let language = rest.trim_start_matches(':').split(['}', '|', ':']).next().unwrap_or("");
            let language = if language.contains('=') { "" } else { language };
            return Some(Sign::Code { language, end });
        }
    }
    if line.starts_with("{panel") || line.starts_with("{color") && line.ends_with('}') && !line.contains(' ') {
        return Some(Sign::Aside);
    }
    listed(line, b"*#-")
}

/// `== Title`, also with signs behind it.
fn equals<'t>(line: &str) -> Option<Sign<'t>> {
    let (_, level) = run(line, b"=")?;
    let to = line.trim_end_matches(['=', ' ']).len();
    let from = level + spaces(&line[level..]);
    (to > from).then_some(Sign::Heading { level, from, to })
}

fn ascii_doc(line: &str) -> Option<Sign<'_>> {
    let attribute = |open: char, close: char| {
        line.strip_prefix(open)
            .and_then(|rest| rest.split_once(close))
            .is_some_and(|(name, _)| !name.is_empty() && !name.contains(' ') && !name.starts_with('~'))
    };
    if line == "+" || line.starts_with("//") || attribute(':', ':') {
        return Some(Sign::Aside);
    }
    if line == "----" || line == "...." {
        return Some(Sign::Code { language: "", end: if line == "----" { "----" } else { "...." } });
    }
    // `[source,sh]` stands over a listing; a box has one sign or none.
    if line.ends_with(']') && line.len() > 3 && attribute('[', ']') && !line.starts_with("[[") {
        return Some(Sign::Aside);
    }
    let titled = line.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    if titled && line.len() < 80 {
        return Some(Sign::Heading { level: 6, from: 1, to: line.len() });
    }
    equals(line).or_else(|| listed(line, b"*")).or_else(|| listed(line, b"."))
}

/// What stands before the title of a headline that is to be done, and how far it is.
const STATES: [(&str, Mark); 12] = [
    ("TODO", Mark::Open),
    ("NEXT", Mark::Open),
    ("WAITING", Mark::Open),
    ("WAIT", Mark::Open),
    ("HOLD", Mark::Open),
    ("STARTED", Mark::InProgress),
    ("DOING", Mark::InProgress),
    ("INPROGRESS", Mark::InProgress),
    ("IN-PROGRESS", Mark::InProgress),
    ("DONE", Mark::Done),
    ("CANCELLED", Mark::Cancelled),
    ("CANCELED", Mark::Cancelled),
];

fn is_org_keyword(line: &str) -> bool {
    let name = line.strip_prefix("#+").and_then(|rest| rest.split([':', ' ', '\t']).next());
    let known = ["title", "author", "todo", "startup", "options", "begin_src", "filetags", "date"];
    name.is_some_and(|name| known.iter().any(|one| one.eq_ignore_ascii_case(name)))
}

fn org(line: &str) -> Option<Sign<'_>> {
    if let Some(rest) = line.strip_prefix("#+") {
        let named = |name: &str| super::phrases::strip_prefix_ci(rest, name);
        if let Some(title) = named("title:") {
            let from = line.len() - title.trim_start().len();
            return Some(Sign::Heading { level: 1, from, to: line.len() });
        }
        let language = named("begin_src").map(|rest| rest.split_whitespace().next().unwrap_or(""));
        return Some(language.map_or(Sign::Aside, |language| Sign::Code { language, end: "#+end_src" }));
    }
    if line.strip_prefix(':').is_some_and(|rest| rest.split_once(':').is_some_and(|(name, _)| is_property(name))) {
        return Some(Sign::Aside);
    }
    let (_, depth) = run(line, b"*")?;
    let from = depth + spaces(&line[depth..]);
    let to = untagged(line, from);
    let state = STATES.iter().find(|(word, _)| {
        line[from..to].strip_prefix(word).is_some_and(|rest| rest.starts_with(' ') && !rest.trim().is_empty())
    });
    Some(match state {
        Some((word, mark)) => {
            let from = from + word.len();
            Sign::Item { depth, numbered: false, mark: Some(*mark), from: from + spaces(&line[from..]), to }
        }
        None => Sign::Heading { level: depth, from, to },
    })
}

fn is_property(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Where a headline ends without the tags behind it, `:code:home:`.
fn untagged(line: &str, from: usize) -> usize {
    let text = line[from..].trim_end();
    let tags = text.rsplit([' ', '\t']).next().unwrap_or("");
    let plain = |part: &str| part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '@' | '%' | ':'));
    let tagged = tags.len() > 2 && tags.len() < text.len() && tags.starts_with(':') && tags.ends_with(':');
    from + if tagged && plain(tags) { text[..text.len() - tags.len()].trim_end().len() } else { text.len() }
}

/// `2026-01-02 ` at the start, and its length.
fn date(line: &str) -> Option<usize> {
    let head = line.as_bytes().get(..11)?;
    let fits = head.iter().enumerate().all(|(n, byte)| match n {
        4 | 7 => *byte == b'-',
        10 => *byte == b' ',
        _ => byte.is_ascii_digit(),
    });
    fits.then_some(11)
}

/// The length of `(A) ` and of a date behind it.
pub(super) fn urgency(line: &str) -> Option<usize> {
    let bytes = line.as_bytes().get(..4)?;
    let fits = bytes[0] == b'(' && bytes[1].is_ascii_uppercase() && bytes[2] == b')' && bytes[3] == b' ';
    fits.then(|| 4 + date(&line[4..]).unwrap_or(0))
}

/// True for a line that only todo.txt has: with a letter or an "x" before the words, and a date or tags.
fn is_dated(line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("x ") {
        return date(rest).is_some();
    }
    let tagged = || {
        let signs = ["+", "@", "due:"];
        line.split(' ').any(|word| signs.iter().any(|sign| word.len() > sign.len() && word.starts_with(sign)))
    };
    urgency(line).is_some_and(|length| length > 4 || tagged()) || date(line).is_some() && tagged()
}

fn todo_txt<'t>(line: &str) -> Sign<'t> {
    let mut from = 0;
    let mut mark = Mark::Open;
    if let Some(rest) = line.strip_prefix("x ") {
        mark = Mark::Done;
        from = 2 + spaces(rest);
    }
    for _ in 0..2 {
        from += date(&line[from..]).unwrap_or(0);
    }
    let to = from + without_tags(&line[from..]);
    Sign::Item { depth: 1, numbered: false, mark: Some(mark), from, to }
}

/// The length of a line of todo.txt without the tags at its end: `+project @context due:2026-01-02`.
fn without_tags(line: &str) -> usize {
    let is_tag = |word: &str| {
        let named = word.strip_prefix(['+', '@']).is_some_and(|name| !name.is_empty());
        named
            || word
                .split_once(':')
                .is_some_and(|(key, value)| is_key(key) && !value.is_empty() && !value.starts_with('/'))
    };
    let mut at = line.len();
    while let Some((rest, word)) = line[..at].trim_end().rsplit_once(' ') {
        if !is_tag(word) || rest.trim().is_empty() {
            break;
        }
        at = rest.len() + 1;
    }
    line[..at].trim_end().len()
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase())
}
