//! Lines to blocks: headings, items, paragraphs, fences and tables, each with its place in the source.
//!
//! It knows how Markdown and pasted text mark their structure, and nothing about what the words mean.

use super::dialects::{Dialect, Listing};
use super::markers::{self, Found, Marker};
use super::markup::{Code, Frame};
use super::text::{find_byte, has_byte, is_blank, is_invisible};
use super::{addresses, cells, connectors, inlined, markup, phases, relations, shell, vocabulary};
use crate::plan::{Mark, Span};

/// An indented block of code has at most so many lines.
const CODE_LINES_MAX: usize = 200;

/// Room is made for a block in so many bytes at first.
const BLOCK_BYTES: usize = 64;

/// The letter that a list goes on from is looked for in so many blocks.
const RESUMED_BLOCKS_MAX: usize = 64;

/// What a run of lines is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BlockKind<'t> {
    /// A heading; 7 is a bold line or a line with a colon that stands for one.
    Heading(usize),
    /// A list item without its marker.
    Item { marker: Marker<'t>, mark: Option<Mark> },
    /// Running text.
    Paragraph,
    /// A block of code, or of what is only shown.
    Fence(Code<'t>),
    /// Rows of a table, one piece each, without the line of dashes.
    Table,
    /// Comments, rules, front matter, definitions of reference links.
    Ignored,
}

/// The lines of a block; mostly it is one.
#[derive(Debug, Clone)]
pub(super) enum Pieces {
    One([Span; 1]),
    Many(Vec<Span>),
}

impl Pieces {
    fn push(&mut self, piece: Span) {
        match self {
            Self::One([first]) => *self = Self::Many(vec![*first, piece]),
            Self::Many(all) => all.push(piece),
        }
    }
}

impl std::ops::Deref for Pieces {
    type Target = [Span];

    fn deref(&self) -> &[Span] {
        match self {
            Self::One(one) => one,
            Self::Many(all) => all,
        }
    }
}

/// A run of lines.
#[derive(Debug, Clone)]
pub(super) struct Block<'t> {
    pub(super) kind: BlockKind<'t>,
    /// All of it, markers included.
    pub(super) span: Span,
    /// Its text, line by line, without markers.
    pub(super) pieces: Pieces,
    /// Columns before the marker or the text.
    pub(super) indent: usize,
    /// True inside `> `.
    pub(super) quoted: bool,
    /// True when an empty line precedes it.
    pub(super) apart: bool,
}

/// A line without its end, after the `> ` before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) begin: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) indent: usize,
    pub(super) quote: usize,
}

/// Cuts a text into blocks; what follows a reference definition is collected apart.
pub(super) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut lexer = Lexer {
        text,
        at: 0,
        // A list that grows copies what it holds.
        blocks: Vec::with_capacity(text.len() / BLOCK_BYTES),
        apart: true,
        previous: None,
        no_comment_end: false,
        // On old machines lines end with "\r" alone.
        line_end: if has_byte(text.trim_end(), b'\n') || !has_byte(text, b'\r') { b'\n' } else { b'\r' },
        dialect: Dialect::of(text),
        has_bars: has_byte(text, b'|'),
        counts: Vec::new(),
        headline: None,
        under: 0,
        aside: None,
        said: Listing::default(),
        unrun: None,
    };
    lexer.front_matter();
    while let Some(line) = lexer.next() {
        lexer.take(line);
    }
    lexer.ornaments();
    lexer.blocks
}

/// Takes the lines one after another.
pub(super) struct Lexer<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) blocks: Vec<Block<'a>>,
    pub(super) apart: bool,
    /// The block of the item before, if it has a number: to tell `1.2 Next` from `1.2 GB`.
    previous: Option<usize>,
    no_comment_end: bool,
    line_end: u8,
    /// There can be tables.
    has_bars: bool,
    pub(super) dialect: Dialect,
    /// By depth: the number of the last item and whether it is shown, where the markup leaves counting to its reader.
    pub(super) counts: Vec<(usize, bool)>,
    /// The depth of the headline that is to be done and in which the lines stand.
    pub(super) headline: Option<usize>,
    /// Columns by which lines stand deeper because they belong to a headline.
    pub(super) under: usize,
    /// The level of the section in which nothing is to be done.
    pub(super) aside: Option<usize>,
    /// What was said of the listing that comes next.
    pub(super) said: Listing<'a>,
    /// The level of the section whose listings are not to be run; 0 is the text.
    pub(super) unrun: Option<usize>,
}

impl<'a> Lexer<'a> {
    pub(super) fn next(&mut self) -> Option<Line> {
        if self.at >= self.text.len() {
            return None;
        }
        let begin = self.at;
        let rest = &self.text[begin..];
        let length = find_byte(rest.as_bytes(), self.line_end).unwrap_or(rest.len());
        self.at = begin + (length + 1).min(rest.len());
        let body = trim_end(&rest[..length]);
        Some(self.open(begin, begin + body.len()))
    }

    /// Measures the indentation and takes off `> `.
    fn open(&self, begin: usize, end: usize) -> Line {
        let mut line = Line { begin, start: end, end, indent: 0, quote: 0 };
        let body = &self.text[begin..end];
        if body.as_bytes().first().is_some_and(|first| first.is_ascii_graphic() && *first != b'>') {
            return Line { start: begin, indent: self.under, ..line };
        }
        for (at, c) in body.char_indices() {
            let follows = body[at + c.len_utf8()..].chars().next();
            match c {
                '\t' => line.indent += 4 - line.indent % 4,
                '>' if follows.is_none_or(|f| is_blank(f) || f == '>' || f.is_alphabetic()) => {
                    line.quote += 1;
                    line.indent = 0;
                }
                c if is_invisible(c) || c == '\0' => {}
                c if c.is_whitespace() => line.indent += 1,
                _ => {
                    line.start = begin + at;
                    break;
                }
            }
        }
        if line.quote > 0 {
            line.indent = line.indent.saturating_sub(1);
        }
        line.indent += self.under;
        line
    }

    fn front_matter(&mut self) {
        let head = self.text.trim_start_matches(is_invisible);
        let skipped = self.text.len() - head.len();
        let Some(rest) = head.strip_prefix("---\n").or_else(|| head.strip_prefix("---\r\n")) else { return };
        let first = rest.lines().next().unwrap_or("");
        if !first.contains(':') {
            return;
        }
        let mut at = self.text.len() - rest.len();
        for line in rest.split_inclusive('\n').take(200) {
            at += line.len();
            if matches!(line.trim_end(), "---" | "...") {
                self.at = at;
                self.push(BlockKind::Ignored, Span { start: skipped, end: at }, Pieces::Many(Vec::new()), 0, false);
                return;
            }
        }
    }

    fn take(&mut self, line: Line) {
        let content = &self.text[line.start..line.end];
        if content.is_empty() {
            if line.begin < line.start && line.quote > 0 {
                self.push(
                    BlockKind::Ignored,
                    Span { start: line.begin, end: line.end },
                    Pieces::Many(Vec::new()),
                    0,
                    true,
                );
            }
            self.apart = true;
            return;
        }
        let plain = self.dialect == Dialect::Markdown && markers::begins_with_words(content);
        if !plain && self.signed(line, content) {
            return;
        }
        let barred = self.has_bars && has_byte(content, b'|');
        let barred = barred && (content.starts_with('|') || self.table_begins() || self.in_table(content));
        if barred || self.in_sheet(content) {
            return self.table(line);
        }
        self.item_or_text(line);
    }

    /// Fences, rules, headings and their like, which begin with a sign; true when the line is one of them.
    fn signed(&mut self, line: Line, content: &str) -> bool {
        if content.starts_with("<!--") && self.comment(line) {
            return true;
        }
        if let Some((fence, length, language)) = fence_open(content) {
            self.fence(line, fence, length, language);
            return true;
        }
        if self.dialect != Dialect::Markdown && self.marked_up(line) {
            return true;
        }
        if self.underline(line, content) {
            return true;
        }
        if let Some(summary) = markup::summary(content) {
            let piece = Span { start: line.start + summary.start, end: line.start + summary.end };
            self.push(BlockKind::Heading(7), cover(line), Pieces::One([piece]), line.indent, line.quote > 0);
            return true;
        }
        if is_rule(content)
            || addresses::definition(content).is_some()
            || markup::only_tags(content)
            || markup::quick_action(content)
        {
            self.whole(BlockKind::Ignored, line);
            return true;
        }
        if let Some((level, skip)) = heading(content) {
            let inner = content[skip..].trim_end_matches('#').trim();
            let start = line.start + skip + (content[skip..].len() - content[skip..].trim_start().len());
            let piece = Span { start, end: start + inner.len() };
            self.push(BlockKind::Heading(level), cover(line), Pieces::One([piece]), line.indent, line.quote > 0);
            return true;
        }
        false
    }

    pub(super) fn whole(&mut self, kind: BlockKind<'a>, line: Line) {
        let piece = Span { start: line.start, end: line.end };
        self.push(kind, cover(line), Pieces::One([piece]), line.indent, line.quote > 0);
    }

    pub(super) fn push(&mut self, kind: BlockKind<'a>, span: Span, pieces: Pieces, indent: usize, quoted: bool) {
        self.blocks.push(Block { kind, span, pieces, indent, quoted, apart: self.apart });
        self.apart = false;
    }

    /// A comment that begins the line, however many lines it has.
    fn comment(&mut self, line: Line) -> bool {
        if self.no_comment_end {
            return false;
        }
        let Some(length) = self.text[line.start..].find("-->") else {
            self.no_comment_end = true;
            return false;
        };
        let end = line.start + length + 3;
        let apart = self.apart;
        self.push(BlockKind::Ignored, Span { start: line.begin, end }, Pieces::Many(Vec::new()), 0, false);
        self.apart = apart;
        self.at = end;
        true
    }

    fn fence(&mut self, open: Line, fence: char, length: usize, language: String) {
        let mut pieces = Vec::new();
        let mut end = open.end;
        let mut frame = Frame::Open(if fence == '~' { "~~~" } else { "```" });
        self.said = Listing::default();
        while self.at < self.text.len() {
            let before = self.at;
            let Some(line) = self.next() else { break };
            if line.quote < open.quote {
                self.at = before;
                break;
            }
            end = line.end;
            let content = &self.text[line.start..line.end];
            if content.len() >= length && content.chars().all(|c| c == fence) {
                frame = Frame::Closed;
                break;
            }
            pieces.push(self.unindent(line, open));
        }
        self.push(
            BlockKind::Fence(Code { language, frame }),
            Span { start: open.begin, end },
            Pieces::Many(pieces),
            open.indent,
            open.quote > 0,
        );
    }

    /// A line of code without the indentation of its fence.
    pub(super) fn unindent(&self, line: Line, open: Line) -> Span {
        let mut start = line.begin;
        let (mut column, mut quote) = (0, 0);
        for c in self.text[line.begin..line.start].chars() {
            let inside = quote < open.quote;
            if !inside && column >= open.indent - self.under + usize::from(open.quote > 0) {
                break;
            }
            match c {
                '>' if inside => quote += 1,
                '\t' => column += 4,
                _ => column += usize::from(!inside),
            }
            start += c.len_utf8();
        }
        Span { start, end: line.end }
    }

    /// `===` or `---` under a single line of text makes that line a heading.
    fn underline(&mut self, line: Line, content: &str) -> bool {
        let level = match content.chars().next() {
            Some('=') if content.len() >= 3 && content.chars().all(|c| c == '=') => 1,
            Some('-') if content.len() >= 3 && content.chars().all(|c| c == '-') => 2,
            _ => return false,
        };
        let apart = self.apart;
        match self.blocks.last_mut() {
            Some(last) if !apart && last.kind == BlockKind::Paragraph && last.pieces.len() == 1 => {
                last.kind = BlockKind::Heading(level);
                last.span.end = line.end;
                true
            }
            _ => false,
        }
    }

    /// True when the next line is the line of dashes under a table's head.
    fn table_begins(&self) -> bool {
        let line = self.line_below();
        line.len() < 10_000 && line.contains('|') && cells::is_dashes(line.trim_start_matches(['>', ' ']))
    }

    /// True for the line of dashes right under a table's head.
    fn in_table(&self, content: &str) -> bool {
        let last = self.blocks.last().filter(|_| !self.apart);
        last.is_some_and(|last| last.kind == BlockKind::Table) && cells::is_dashes(content)
    }

    /// True for a row of a sheet: under another, or the names above the first.
    fn in_sheet(&self, content: &str) -> bool {
        let last = self.blocks.last().filter(|last| !self.apart && last.kind == BlockKind::Table);
        if let Some(head) = last.and_then(|last| last.pieces.first()) {
            return cells::continues(&self.text[head.start..head.end], content);
        }
        !self.in_list() && cells::sheet(content, || self.line_below())
    }

    /// The line behind this one.
    fn line_below(&self) -> &'a str {
        let rest = &self.text[self.at..];
        trim_end(&rest[..find_byte(rest.as_bytes(), self.line_end).unwrap_or(rest.len())])
    }

    fn table(&mut self, line: Line) {
        let content = &self.text[line.start..line.end];
        let dashes = cells::is_dashes(content);
        let piece = Span { start: line.start, end: line.end };
        let apart = self.apart;
        match self.blocks.last_mut() {
            Some(last) if !apart && last.kind == BlockKind::Table => {
                last.span.end = line.end;
                if !dashes {
                    last.pieces.push(piece);
                }
            }
            _ => self.push(BlockKind::Table, cover(line), Pieces::One([piece]), line.indent, line.quote > 0),
        }
    }

    fn item_or_text(&mut self, line: Line) {
        if self.inlined(line) || self.indented_code(line) {
            return;
        }
        let content = &self.text[line.start..line.end];
        if self.loosely(line) {
            return;
        }
        let previous = self.previous.and_then(|n| match &self.blocks.get(n)?.kind {
            BlockKind::Item { marker, .. } => marker.number().map(|number| &**number),
            BlockKind::Heading(_)
            | BlockKind::Paragraph
            | BlockKind::Fence(_)
            | BlockKind::Table
            | BlockKind::Ignored => None,
        });
        let lettered = || self.lettered(content).then_some(Found { marker: Marker::Bullet, mark: None, skip: 0 });
        if let Some(found) =
            markers::item(content, previous, self.in_list()).or_else(lettered).or_else(|| self.resumed(content, line))
        {
            // Remarks under a numbered item leave its number the last one.
            let beneath = self.previous.filter(|n| self.blocks.get(*n).is_some_and(|above| line.indent > above.indent));
            self.previous = found.marker.number().map_or(beneath, |_| Some(self.blocks.len()));
            let piece = Span { start: line.start + found.skip, end: line.end };
            let kind = BlockKind::Item { marker: found.marker, mark: found.mark };
            return self.push(kind, cover(line), Pieces::One([piece]), line.indent, line.quote > 0);
        }
        let (apart, text) = (self.apart, self.text);
        let piece = Span { start: line.start, end: line.end };
        let quoted = line.quote > 0;
        if let Some(last) = self.blocks.last_mut() {
            let open = match last.kind {
                BlockKind::Paragraph => {
                    !apart
                        && !phases::parts(
                            last.pieces.first().map_or("", |first| &text[first.start..first.end]),
                            content,
                        )
                }
                BlockKind::Item { .. } => {
                    let above = last.pieces.last().map_or("", |piece| &text[piece.start..piece.end]);
                    let leads = || connectors::leads_line(content, above) || relations::is_line(content);
                    !apart && (line.indent > last.indent || !(markers::label_line(content) || leads()))
                }
                BlockKind::Table => !apart && has_byte(content, b'|'),
                BlockKind::Heading(_) | BlockKind::Fence(_) | BlockKind::Ignored => false,
            };
            if open && last.quoted == quoted {
                last.pieces.push(piece);
                last.span.end = line.end;
                return;
            }
        }
        self.whole(BlockKind::Paragraph, line);
    }

    /// Items numbered inside the line, with what stands before the first.
    fn inlined(&mut self, line: Line) -> bool {
        let content = &self.text[line.start..line.end];
        let items = inlined::items(content);
        let Some(first) = items.first() else { return false };
        let quoted = line.quote > 0;
        let mut begin = line.begin;
        let lead = content[..first.start].trim_end();
        if !lead.is_empty() {
            let piece = Span { start: line.start, end: line.start + lead.len() };
            // "Please (1) ..." says nothing of its own.
            let kind = if lead.ends_with(':') { BlockKind::Paragraph } else { BlockKind::Ignored };
            self.push(kind, Span { start: begin, end: piece.end }, Pieces::One([piece]), line.indent, quoted);
            begin = piece.end;
        }
        for item in items {
            let piece = Span { start: line.start + item.from, end: line.start + item.to };
            let kind = BlockKind::Item { marker: item.marker, mark: None };
            self.push(kind, Span { start: begin, end: piece.end }, Pieces::One([piece]), line.indent, quoted);
            begin = piece.end;
        }
        if let Some(last) = self.blocks.last_mut() {
            last.span.end = line.end;
        }
        true
    }

    /// `b. ` behind items that stand deeper: it goes on from the letter at its own depth.
    fn resumed<'c>(&self, content: &'c str, line: Line) -> Option<Found<'c>> {
        if !matches!(content.as_bytes(), [b'b'..=b'z', b'.', b' ', ..]) || !self.in_list() {
            return None;
        }
        let near = self.blocks.iter().rev().take(RESUMED_BLOCKS_MAX).take_while(|block| block.indent >= line.indent);
        let above = near.filter(|block| block.indent == line.indent).find_map(|block| match &block.kind {
            BlockKind::Item { marker: Marker::Letter(letter), .. } => Some(&**letter),
            BlockKind::Item { .. }
            | BlockKind::Heading(_)
            | BlockKind::Paragraph
            | BlockKind::Fence(_)
            | BlockKind::Table
            | BlockKind::Ignored => None,
        });
        markers::item(content, Some(above?), true)
    }

    /// Lines behind "Run this:" that are indented as Markdown indents code, and that read like shell.
    fn indented_code(&mut self, line: Line) -> bool {
        let Some(last) = self.blocks.last().filter(|_| self.apart && line.indent >= 4) else { return false };
        let (least, follows) = match last.kind {
            BlockKind::Paragraph => (last.indent + 4, true),
            BlockKind::Item { .. } => (last.indent + 6, true),
            BlockKind::Heading(_) | BlockKind::Fence(_) | BlockKind::Table | BlockKind::Ignored => (4, false),
        };
        let text = self.text;
        let above = last.pieces.last().map_or("", |piece| &text[piece.start..piece.end]);
        let prompt = self.text[line.start..line.end].starts_with("$ ");
        if line.indent < least || !follows || !(prompt || above.trim_end().ends_with(':')) {
            return false;
        }
        let begin = self.at;
        let mut pieces = vec![self.unindent(line, line)];
        let (mut end, mut at) = (line.end, self.at);
        while pieces.len() < CODE_LINES_MAX {
            let Some(next) = self.next() else { break };
            if next.start == next.end {
                continue;
            }
            if next.indent < least || next.quote != line.quote {
                break;
            }
            pieces.push(self.unindent(next, line));
            (end, at) = (next.end, self.at);
        }
        self.at = at;
        let body: Vec<&str> = pieces.iter().map(|piece| &self.text[piece.start..piece.end]).collect();
        if !prompt && !shell::reads_like_shell(&body.join("\n")) {
            self.at = begin;
            return false;
        }
        let span = Span { start: line.begin, end };
        let code = Code { language: String::new(), frame: Frame::Indented };
        self.push(BlockKind::Fence(code), span, Pieces::Many(pieces), line.indent, line.quote > 0);
        true
    }

    /// True for "A: build it", which begins a list, and for "B: test it" right under it.
    fn lettered(&self, content: &str) -> bool {
        let Some(letter) = markers::letter(content) else { return false };
        let above = || {
            let piece = self.blocks.last().filter(|_| self.in_list())?.pieces.first()?;
            markers::letter(&self.text[piece.start..piece.end])
        };
        (letter == b'A' && vocabulary::begins_with_verb(&content[3..]))
            || above().is_some_and(|above| above + 1 == letter)
    }

    pub(super) fn in_list(&self) -> bool {
        self.blocks.last().is_some_and(|block| matches!(block.kind, BlockKind::Item { .. }))
    }
}

/// A line without the blank at its end.
fn trim_end(line: &str) -> &str {
    if line.as_bytes().last().is_some_and(u8::is_ascii_graphic) { line } else { line.trim_end_matches(is_blank) }
}

pub(super) fn cover(line: Line) -> Span {
    Span { start: line.begin, end: line.end }
}

/// The character, the length and the language of an opening fence.
fn fence_open(content: &str) -> Option<(char, usize, String)> {
    let fence = content.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = content.chars().take_while(|c| *c == fence).count();
    let rest = &content[length..];
    if length < 3 || (fence == '`' && rest.contains('`')) {
        return None;
    }
    let language = rest.trim().split(|c: char| c.is_whitespace() || matches!(c, '{' | ',')).next().unwrap_or("");
    Some((fence, length, language.to_ascii_lowercase()))
}

fn is_rule(content: &str) -> bool {
    let mark = content.chars().next().unwrap_or(' ');
    matches!(mark, '-' | '*' | '_' | '=' | '\u{2500}' | '\u{2014}')
        && content.chars().all(|c| c == mark || c == ' ')
        && content.chars().filter(|c| *c == mark).count() >= 3
}

/// Level of a heading and the length of its mark.
fn heading(content: &str) -> Option<(usize, usize)> {
    let level = content.bytes().take_while(|b| *b == b'#').count();
    let spaced = content[level..].starts_with(is_blank) || level == content.len();
    ((1..=6).contains(&level) && spaced).then_some((level, level))
}
