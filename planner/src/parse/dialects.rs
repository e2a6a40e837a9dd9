//! Markup other than Markdown: Org, Jira and Textile, AsciiDoc, MediaWiki and todo.txt. It says which of them a text is
//! in, judged once by its first lines, and what a line of it is; what the words mean is for others.
//!
//! A text is in one of them only for a sign that Markdown has not (`h2. `, `== Title`, `. step`, `* TODO`, a date or a
//! letter of priority before the words), so that no Markdown is read as anything else. Where the sign can also be one
//! of Markdown or of plain words, as `* TODO` and `. step` can, one alone is not enough.

use super::text::{blank, find, is_blank, spaces};
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
    /// Code, or what is only shown, up to its end; the first of it stands in the line from a byte on.
    Listing {
        said: Listing<'t>,
        from: usize,
        end: Until<'t>,
    },
    /// What is said of the listing below it.
    Attributes(Listing<'t>),
    /// The listings below are shown and not to be run, up to the next headline as high as the one in which it stands.
    Throughout,
    /// Words from a byte on that are only shown.
    Literal(usize),
    /// Words to nobody.
    Comment(Until<'t>),
    /// Says something of the markup alone.
    Aside,
}

/// What is said of a listing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Listing<'t> {
    pub(super) language: &'t str,
    /// It is shown and not to be run: it has a title, or says so itself.
    pub(super) shown: bool,
    /// The paragraph below is a quotation.
    pub(super) quotes: bool,
}

impl<'t> Listing<'t> {
    /// What is only shown.
    pub(super) const TOLD: Self = Self { language: "text", shown: true, quotes: false };

    /// This, said above it too.
    pub(super) fn under(self, above: Self) -> Self {
        let language = if self.language.is_empty() { above.language } else { self.language };
        Self { language, shown: self.shown || above.shown, quotes: self.quotes || above.quotes }
    }
}

/// Where a listing ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until<'t> {
    /// At a line like this.
    Line(&'t str),
    /// At the line `#+end_` with this name.
    Named(&'t str),
    /// At this sign, wherever it stands in a line.
    Sign(&'static str),
    /// Before an empty line.
    Blank,
    /// Before a headline of this depth or above it.
    Headline(usize),
}

impl<'t> Until<'t> {
    /// Where in a line the end stands, and its length.
    pub(super) fn found(self, line: &str) -> Option<(usize, usize)> {
        match self {
            Self::Line(end) => (line == end).then_some((0, line.len())),
            Self::Named(name) => super::phrases::strip_prefix_ci(line, "#+end_")
                .is_some_and(|rest| rest.trim_end().eq_ignore_ascii_case(name))
                .then_some((0, line.len())),
            Self::Sign(end) => find(line, end).map(|at| (at, end.len())),
            Self::Blank | Self::Headline(_) => None,
        }
    }

    /// True for a line that stands behind the end, which has no sign of its own.
    pub(super) fn is_past(self, line: &str) -> bool {
        match self {
            Self::Blank => line.is_empty(),
            Self::Headline(level) => run(line, b"*").is_some_and(|(_, depth)| depth <= level),
            Self::Line(_) | Self::Named(_) | Self::Sign(_) => false,
        }
    }

    /// What closes it; nothing for what ends with the text too.
    pub(super) fn sign(self) -> Option<&'t str> {
        match self {
            Self::Line(end) | Self::Sign(end) => Some(end),
            Self::Named(_) => Some("#+END_ and the name it began with"),
            Self::Blank | Self::Headline(_) => None,
        }
    }
}

impl Dialect {
    /// The markup of a text, by its first lines.
    pub(super) fn of(text: &str) -> Self {
        let mut end = text.len().min(BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut seen = Seen::default();
        let mut fenced = false;
        for line in text[..end].lines().take(LINES_MAX) {
            let bare = line.trim_start_matches(is_blank);
            if bare.starts_with("```") || bare.starts_with("~~~") {
                fenced = !fenced;
                seen.fences = true;
            }
            if fenced {
                continue;
            }
            if let Some(found) = seen.line(bare.trim_end_matches(is_blank), bare.len() < line.len()) {
                return found;
            }
        }
        seen.settled()
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
    /// A line with words.
    any: bool,
    /// An empty line stands before this one.
    blank: bool,
    /// Code as Markdown has it.
    fences: bool,
    /// Another sign of Markdown: `# `, `- [ ]`, `1. `.
    markdown: bool,
    /// Two lines with `# ` directly one below the other, the second of which says what to do.
    numbers_in_a_row: bool,
    number_before: bool,
    /// A line as todo.txt has them, which nothing else is.
    dated: bool,
    /// A line that is none of todo.txt: it stands apart, or is a sentence.
    prose: bool,
    /// Lines that begin as no line with `# ` and none of todo.txt does.
    others: usize,
    /// Signs of AsciiDoc; a title in the first line is as good as two.
    ascii_doc: usize,
    /// Lines with `* `, and those of them with a state.
    stars: usize,
    states: usize,
}

impl Seen {
    /// The markup that this line alone shows.
    fn line(&mut self, line: &str, indented: bool) -> Option<Dialect> {
        let number = line.starts_with("# ");
        self.numbers_in_a_row |= number && self.number_before && vocabulary::begins_with_verb(&line[2..]);
        self.number_before = number;
        let Some(first) = line.as_bytes().first().copied() else {
            self.blank = true;
            return None;
        };
        let apart = std::mem::take(&mut self.blank) || !self.any;
        match first {
            b'#' if is_org_keyword(line) => return Some(Dialect::Org),
            b':' if line.eq_ignore_ascii_case(":properties:") => return Some(Dialect::Org),
            b'S' | b'D' if line.starts_with("SCHEDULED: <") || line.starts_with("DEADLINE: <") => {
                return Some(Dialect::Org);
            }
            _ if indented => {}
            b'h' if jira_heading(line).is_some() => return Some(Dialect::Jira),
            b'=' if equals(line).is_some() => {
                if line.ends_with('=') {
                    return Some(Dialect::MediaWiki);
                }
                self.ascii_doc += if self.any { 1 } else { 2 };
            }
            b'.' => self.ascii_doc += usize::from(run(line, b".").is_some()),
            b'[' => self.ascii_doc += usize::from(line.starts_with("[source")),
            b'*' if run(line, b"*").is_some() => {
                self.stars += 1;
                self.states += usize::from(matches!(org(line), Some(Sign::Item { mark: Some(_), .. })));
            }
            _ => {}
        }
        self.any = true;
        let counted = first.is_ascii_digit() && line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ");
        self.markdown |= number || counted || line.starts_with("- [");
        let sentence = || line.ends_with(['.', ':']) || line.contains(". ");
        self.prose = self.prose || !has_form(line) && (apart || sentence());
        let listed = matches!(first, b'-' | b'*' | b'+' | b'>' | b'|' | b'#' | b'[' | b'<' | b'1'..=b'9');
        let date = date(line).is_some();
        self.others += usize::from(!number && !line.starts_with("#*") && !line.starts_with("##") && listed && !date);
        // Prose is no list of numbers; in todo.txt every line is an item.
        self.others += usize::from(!number && self.numbers_in_a_row && !listed);
        // Where there is one of these already, a date says nothing any more.
        self.dated = self.dated || !self.prose && self.others == 0 && is_dated(line);
        None
    }

    /// The markup that all of them show.
    fn settled(&self) -> Dialect {
        match () {
            () if self.ascii_doc > 1 && !self.fences => Dialect::AsciiDoc,
            () if 2 * self.states > self.stars && !self.markdown && !self.fences => Dialect::Org,
            () if self.others == 0 && self.numbers_in_a_row => Dialect::Jira,
            () if self.others == 0 && self.dated && !self.prose => Dialect::TodoTxt,
            () => Dialect::Markdown,
        }
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
    if let Some(found) = jira_listing(line) {
        return Some(found);
    }
    if line.starts_with("bq. ") {
        return Some(Sign::Literal("bq. ".len()));
    }
    if line.starts_with("{panel") || line.starts_with("{color") && line.ends_with('}') && !line.contains(' ') {
        return Some(Sign::Aside);
    }
    listed(line, b"*#-")
}

/// `{code:sh}`, `{noformat}` and `{quote}`, with the first words behind them or in the lines below.
fn jira_listing(line: &str) -> Option<Sign<'_>> {
    let kinds = [("{code", "{code}"), ("{noformat", "{noformat}"), ("{quote", "{quote}")];
    let (begin, end) = kinds.into_iter().find(|(begin, _)| line.starts_with(begin))?;
    let (given, behind) = line[begin.len()..].split_once('}')?;
    // Words behind the end make a sentence of it.
    let sentence = find(behind, end).is_some_and(|at| !blank(&behind[at + end.len()..]));
    if sentence || !(given.is_empty() || given.starts_with(':')) {
        return None;
    }
    let mut said = if begin == "{code" { Listing::default() } else { Listing::TOLD };
    for part in given.split([':', '|']).map(str::trim) {
        match part.split_once('=') {
            Some(("title", _)) => said.shown = true,
            Some(("language", language)) => said.language = language,
            Some(_) => {}
            None if said.language.is_empty() => said.language = part,
            None => {}
        }
    }
    Some(Sign::Listing { said, from: line.len() - behind.len(), end: Until::Sign(end) })
}

/// `== Title`, also with signs behind it.
fn equals<'t>(line: &str) -> Option<Sign<'t>> {
    let (_, level) = run(line, b"=")?;
    let to = line.trim_end_matches(['=', ' ']).len();
    let from = level + spaces(&line[level..]);
    (to > from).then_some(Sign::Heading { level, from, to })
}

fn ascii_doc(line: &str) -> Option<Sign<'_>> {
    // "[source, bash]", "[quote, Ann]": the first word says what it is.
    let attribute = |open: char, close: char| {
        let inside = line.strip_prefix(open).and_then(|rest| rest.split_once(close)).map_or("", |(inside, _)| inside);
        let kind = inside.split(',').next().unwrap_or("");
        !inside.is_empty() && !kind.contains(' ') && !kind.starts_with('~')
    };
    let framed = |signs: &[u8]| {
        let first = line.as_bytes().first().filter(|first| signs.contains(first));
        line.len() >= 4 && first.is_some_and(|first| line.bytes().all(|byte| byte == *first))
    };
    if framed(b"/") {
        return Some(Sign::Comment(Until::Line(line)));
    }
    if framed(b"-.") {
        return Some(Sign::Listing { said: Listing::default(), from: line.len(), end: Until::Line(line) });
    }
    if framed(b"_+") {
        return Some(Sign::Listing { said: Listing::TOLD, from: line.len(), end: Until::Line(line) });
    }
    if line == "+" || line.starts_with("//") || attribute(':', ':') {
        return Some(Sign::Aside);
    }
    // `[source,sh]` stands over a listing; a box has one sign or none.
    if line.ends_with(']') && line.len() > 3 && !line.starts_with("[[") && attribute('[', ']') {
        return Some(Sign::Attributes(ascii_doc_listing(&line[1..line.len() - 1])));
    }
    let titled = line.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    if titled && line.len() < 80 {
        return Some(Sign::Heading { level: 6, from: 1, to: line.len() });
    }
    equals(line).or_else(|| listed(line, b"*")).or_else(|| listed(line, b"."))
}

/// What `source,sh,title="Never"` says of the listing below.
fn ascii_doc_listing(given: &str) -> Listing<'_> {
    let mut parts = given.split(',').map(|part| part.trim().trim_matches('"'));
    let kind = parts.next().unwrap_or("").split(['%', '#', '.']).next().unwrap_or("");
    let mut said = Listing { quotes: matches!(kind, "quote" | "verse"), ..Listing::default() };
    for (n, part) in parts.enumerate() {
        match part.split_once('=') {
            Some(("title", _)) => said.shown = true,
            Some(("language", language)) => said.language = language.trim_matches('"'),
            Some(_) => {}
            None if n == 0 && matches!(kind, "source" | "listing" | "") => said.language = part,
            None => {}
        }
    }
    said
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
    let known =
        ["title", "author", "todo", "startup", "options", "begin_src", "filetags", "date", "property", "header"];
    name.is_some_and(|name| known.iter().any(|one| one.eq_ignore_ascii_case(name)))
}

fn org(line: &str) -> Option<Sign<'_>> {
    if let Some(rest) = line.strip_prefix("#+") {
        let named = |name: &str| super::phrases::strip_prefix_ci(rest, name);
        if let Some(title) = named("title:") {
            let from = line.len() - title.trim_start().len();
            return Some(Sign::Heading { level: 1, from, to: line.len() });
        }
        if named("caption").is_some() {
            return Some(Sign::Attributes(Listing { shown: true, ..Listing::default() }));
        }
        if let Some(given) = ["header:", "headers:"].into_iter().find_map(named) {
            return Some(Sign::Attributes(org_listing(given)));
        }
        if named("property:").is_some_and(|given| org_listing(given).shown) {
            return Some(Sign::Throughout);
        }
        let Some(begun) = named("begin_") else { return Some(Sign::Aside) };
        let (name, given) = begun.split_once([' ', '\t']).unwrap_or((begun, ""));
        let end = Until::Named(name);
        if name.eq_ignore_ascii_case("comment") {
            return Some(Sign::Comment(end));
        }
        let source = name.eq_ignore_ascii_case("src");
        let said = if source { org_listing(given) } else { Listing::TOLD };
        return Some(Sign::Listing { said, from: line.len(), end });
    }
    if line == ":" || line.starts_with(": ") {
        return Some(Sign::Literal(1 + spaces(&line[1..])));
    }
    if let Some((name, given)) = line.strip_prefix(':').and_then(|rest| rest.split_once(':'))
        && let Some(name) = name.split([':', '+']).next().filter(|name| is_property(name))
    {
        let arguments = name.eq_ignore_ascii_case("header-args") && org_listing(given).shown;
        return Some(if arguments { Sign::Throughout } else { Sign::Aside });
    }
    let (_, depth) = run(line, b"*")?;
    let from = depth + spaces(&line[depth..]);
    let to = untagged(line, from);
    let hidden = |text: &str| text.strip_prefix("COMMENT").is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    if hidden(&line[from..to]) {
        return Some(Sign::Comment(Until::Headline(depth)));
    }
    let state = STATES.iter().find(|(word, _)| {
        line[from..to].strip_prefix(word).is_some_and(|rest| rest.starts_with(' ') && !rest.trim().is_empty())
    });
    Some(match state {
        Some((word, _)) if hidden(line[from + word.len()..to].trim_start()) => Sign::Comment(Until::Headline(depth)),
        Some((word, mark)) => {
            let from = from + word.len();
            Sign::Item { depth, numbered: false, mark: Some(*mark), from: from + spaces(&line[from..]), to }
        }
        None => Sign::Heading { level: depth, from, to },
    })
}

/// What `sh :eval never` says of the listing below.
fn org_listing(given: &str) -> Listing<'_> {
    let mut words = given.split_whitespace();
    let first = given.split_whitespace().next();
    let language = first.filter(|first| !first.starts_with([':', '-', '+'])).unwrap_or("");
    let evals = words.by_ref().any(|word| word.eq_ignore_ascii_case(":eval"));
    let shown = evals && !matches!(words.next(), Some("yes" | "always"));
    Listing { language, shown, quotes: false }
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
    let tagged = || line.split(' ').any(|word| is_name(word) || word.starts_with("due:") && is_tag(word));
    urgency(line).is_some_and(|length| length > 4 || tagged()) || date(line).is_some() && tagged()
}

/// True for a line that can stand in a todo.txt.
fn has_form(line: &str) -> bool {
    line.starts_with("x ") || urgency(line).is_some() || date(line).is_some() || has_tag(line)
}

/// True for a line with a tag among its words. Only a word with a sign of one is looked at for itself: a line can be long.
fn has_tag(line: &str) -> bool {
    let (mut from, mut signed) = (0, false);
    for (at, byte) in line.bytes().enumerate() {
        if byte == b' ' {
            if signed && is_tag(&line[from..at]) {
                return true;
            }
            (from, signed) = (at + 1, false);
        }
        signed |= matches!(byte, b'+' | b'@' | b':');
    }
    signed && is_tag(&line[from..])
}

/// `+project`, `@context`.
fn is_name(word: &str) -> bool {
    let name = word.strip_prefix(['+', '@']);
    name.is_some_and(|name| name.starts_with(char::is_alphanumeric) && !name.contains('/'))
}

/// The same, and `due:2026-01-02`.
fn is_tag(word: &str) -> bool {
    let keyed = |(key, value): (&str, &str)| is_key(key) && !value.is_empty() && !value.contains('/');
    is_name(word) || word.split_once(':').is_some_and(keyed)
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
