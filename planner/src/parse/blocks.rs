//! Parses Markdown into a list of blocks: headings, items, paragraphs, fences, tables, with their text and byte ranges.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::names::name_at;
use super::repair::{DEPTH_MAX, Repaired, repair};
use super::words::{ACCEPTANCE, DEPENDS, after, after_any};
use crate::crew::paths::Link;
use crate::plan::Span;

/// A block of a Markdown file.
#[derive(Debug)]
pub(super) struct Block {
    pub kind: Kind,
    /// Its bytes in the file; for an item, those of its marker and first paragraph.
    pub span: Span,
    /// The enclosing item, as an index of the list of blocks.
    pub item: Option<usize>,
    pub inline: Inline,
}

#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    /// Its level, 1 to 6; 7 for a bold paragraph.
    Heading(u8),
    /// Its number as Markdown counts it, unless it has a bullet.
    Item(Option<u64>),
    Paragraph,
    /// Its language and its text.
    Fence {
        language: String,
        code: String,
        /// False if its closing line is missing.
        is_closed: bool,
    },
    /// Quotes, HTML, front matter, indented code.
    Other,
    /// Rules and comments.
    Rule,
    /// Rows of cells, starting with the header.
    Table(Vec<Vec<Inline>>),
}

/// Text without Markdown's signs, except for the backticks of code.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Inline {
    pub text: String,
    /// The code in the text, with its backticks.
    pub codes: Vec<Range<usize>>,
    pub links: Vec<Link>,
    /// Offsets of the text, each with its byte in the file.
    places: Vec<(usize, usize)>,
}

impl Inline {
    /// The byte of the file at an offset of the text.
    pub fn at(&self, offset: usize) -> usize {
        let after = self.places.partition_point(|(known, _)| *known <= offset);
        match after.checked_sub(1).map(|before| self.places[before]) {
            Some((known, at)) => at + (offset - known),
            None => self.places.first().map_or(0, |(_, at)| *at),
        }
    }

    /// A text of its own at a byte of the file.
    pub fn plain(text: &str, at: usize) -> Self {
        Self { text: text.to_owned(), places: vec![(0, at)], ..Self::default() }
    }

    /// Its bytes in the file.
    pub fn span(&self) -> Span {
        let visible = self.text.trim_end().len();
        Span { start: self.at(0), end: self.at(visible.saturating_sub(1)) + 1 }
    }

    /// The code at a range, without its backticks.
    pub fn code(&self, range: &Range<usize>) -> &str {
        self.text[range.start + 1..range.end - 1].trim()
    }

    /// The text with code blanked out, so that words in code are not found. Offsets stay the same.
    pub fn masked(&self) -> Cow<'_, str> {
        if self.codes.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let mut bytes = self.text.clone().into_bytes();
        self.codes.iter().for_each(|code| bytes[code.clone()].fill(0));
        Cow::Owned(String::from_utf8(bytes).unwrap_or_default())
    }

    /// A part of the text, without white space around it.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let part = &self.text[range.clone()];
        let start = range.start + (part.len() - part.trim_start().len());
        let end = start + part.trim().len();
        let moved = |range: &Range<usize>| range.start - start..range.end - start;
        let codes = within(&self.codes, start..end, |code| code);
        let links = within(&self.links, start..end, |link| &link.range);
        let first = self.places.partition_point(|(offset, _)| *offset <= start);
        let places = self.places[first..].iter().take_while(|(offset, _)| *offset < end);
        let places = places.map(|(offset, at)| (offset - start, *at));
        Self {
            text: self.text[start..end].to_owned(),
            codes: codes.iter().map(moved).collect(),
            links: links.iter().map(|link| Link { range: moved(&link.range), ..link.clone() }).collect(),
            places: std::iter::once((0, self.at(start))).chain(places).collect(),
        }
    }

    /// Removes a part with the white space around it; one space stays between two words.
    pub fn cut(&mut self, part: Range<usize>) {
        let start = self.text[..part.start].trim_end().len();
        let end = self.text.len() - self.text[part.end..].trim_start().len();
        let rest = &self.text[end..];
        let is_glued = start == 0 || rest.is_empty() || rest.starts_with(['.', ',', ';', ':', '!', '?']);
        let glue = if is_glued { "" } else { " " };
        let (kept, at) = (start + glue.len(), self.at(end));
        self.text.replace_range(start..end, glue);
        let moved = |offset: usize| offset - end + kept;
        let stays = |range: &mut Range<usize>| {
            let (is_before, is_after) = (range.end <= start, range.start >= end);
            let is_around = range.start < start && range.end >= end;
            range.start = if is_after { moved(range.start) } else { range.start };
            range.end = if range.end >= end { moved(range.end) } else { range.end };
            is_before || is_after || is_around
        };
        self.codes.retain_mut(stays);
        self.links.retain_mut(|link| stays(&mut link.range));
        let first = self.places.partition_point(|(offset, _)| *offset < start);
        let behind = self.places.partition_point(|(offset, _)| *offset <= end);
        self.places[behind..].iter_mut().for_each(|(offset, _)| *offset = moved(*offset));
        self.places.splice(first..behind, [(kept, at)]);
    }

    fn push(&mut self, text: &str, at: usize) {
        let follows = self.places.last().is_some_and(|(offset, last)| last + (self.text.len() - offset) == at);
        if !follows {
            self.places.push((self.text.len(), at));
        }
        // Enough for most lines.
        self.text.reserve(if self.text.is_empty() { 96 } else { 0 });
        self.text.push_str(text);
    }
}

/// The parts of a text that are within a range of it.
fn within<T>(parts: &[T], within: Range<usize>, range: impl Fn(&T) -> &Range<usize>) -> &[T] {
    let first = parts.partition_point(|part| range(part).start < within.start);
    let end = parts.partition_point(|part| range(part).end <= within.end);
    &parts[first..end.max(first)]
}

/// Reads a file.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let start = front_matter(text);
    let repaired = repair(&text[start..], start);
    let mut builder =
        BlockBuilder { repaired: &repaired, blocks: Vec::new(), items: Vec::new(), state: BlockState::default() };
    if start > BYTE_ORDER_MARK.len_utf8() {
        builder.add(Kind::Other, Span { start: 0, end: text[..start].trim_end().len() });
    }
    for (event, range) in Parser::new_ext(&repaired.text, Options::ENABLE_TABLES).into_offset_iter() {
        builder.take(event, range);
    }
    builder.blocks
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The length of a byte order mark and the front matter.
pub fn front_matter(text: &str) -> usize {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let start = text.len() - body.len();
    let is_rule = |line: &str| line.trim_end() == "---";
    let mut lines = body.split_inclusive('\n');
    let first = lines.next().filter(|line| is_rule(line));
    let has_fields = lines.clone().next().is_some_and(|line| line.contains(':') || is_rule(line));
    let end = lines.position(is_rule).filter(|_| first.is_some() && has_fields);
    end.map_or(start, |n| start + body.split_inclusive('\n').take(n + 2).map(str::len).sum::<usize>())
}

/// A bold paragraph that begins like a step is a heading.
fn is_bold_step(source: &str) -> bool {
    let bold = ["**", "__"].iter().find_map(|sign| source.trim().strip_prefix(sign)?.strip_suffix(sign));
    bold.is_some_and(|bold| !bold.contains(['*', '_']) && after(bold, "step").is_some() && name_at(bold).is_some())
}

struct BlockBuilder<'a> {
    repaired: &'a Repaired,
    blocks: Vec<Block>,
    /// The open items.
    items: Vec<usize>,
    state: BlockState,
}

#[derive(Default)]
struct BlockState {
    /// The open lists, each with the number of its next item.
    lists: Vec<Option<u64>>,
    /// The block that takes text.
    open: Option<usize>,
    /// How deep the parser is inside a quote or HTML, which are skipped.
    skipped: usize,
    in_fence: bool,
    in_cell: bool,
    /// The open links and images.
    links: Vec<(usize, String, bool)>,
    /// Where the text of the open block ends.
    end: usize,
}

impl BlockBuilder<'_> {
    fn span(&self, range: &Range<usize>) -> Span {
        let end = range.start + self.repaired.text[range.clone()].trim_end().len();
        let start = self.repaired.in_file(range.start);
        Span { start, end: self.repaired.end_in_file(end).max(start) }
    }

    fn add(&mut self, kind: Kind, span: Span) -> usize {
        let item = self.items.get(self.items.len().min(DEPTH_MAX).wrapping_sub(1)).copied();
        self.blocks.push(Block { kind, span, item, inline: Inline::default() });
        self.blocks.len() - 1
    }

    fn begin(&mut self, kind: Kind, range: &Range<usize>) -> usize {
        self.close();
        self.add(kind, self.span(range))
    }

    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        if self.state.skipped > 0 {
            match event {
                Event::Start(_) => self.state.skipped += 1,
                Event::End(_) => self.state.skipped -= 1,
                _inside => {}
            }
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag, &range),
            Event::End(tag) => self.end(tag, &range),
            Event::Text(text) => match self.blocks.last_mut() {
                Some(Block { kind: Kind::Fence { code, .. }, .. }) if self.state.in_fence => code.push_str(&text),
                _ => _ = self.push(&text, &range),
            },
            Event::Code(code) => self.code(&code, &range),
            // A line with dependencies or acceptance criteria below an item is a separate note of it.
            Event::SoftBreak | Event::HardBreak if self.begins_note(range.end) => {
                self.close();
            }
            Event::SoftBreak | Event::HardBreak => _ = self.push(" ", &range),
            Event::InlineHtml(html) if html.starts_with("<!--") => self.state.end = range.end,
            Event::InlineHtml(html) | Event::InlineMath(html) | Event::DisplayMath(html) => {
                _ = self.push(&html.replace('\n', " "), &range);
            }
            Event::Rule => _ = self.begin(Kind::Rule, &range),
            Event::Html(_) | Event::FootnoteReference(_) | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph => {
                let is_open = |item: &usize| self.state.open == Some(*item);
                let fresh = self.items.last().copied().filter(is_open);
                if fresh.is_none_or(|item| !self.blocks[item].inline.text.is_empty()) {
                    let is_step = self.items.is_empty() && is_bold_step(&self.repaired.text[range.clone()]);
                    let kind = if is_step { Kind::Heading(7) } else { Kind::Paragraph };
                    self.state.open = Some(self.begin(kind, range));
                }
            }
            Tag::Heading { level, .. } => self.state.open = Some(self.begin(Kind::Heading(level as u8), range)),
            Tag::List(first) => {
                self.close();
                self.state.lists.push(first);
            }
            Tag::Item => {
                let number = self.state.lists.last_mut().and_then(Option::as_mut);
                let number = number.map(|next| std::mem::replace(next, next.saturating_add(1)));
                let start = self.repaired.in_file(range.start);
                let end = self.repaired.end_in_file(range.start + 1);
                let item = self.add(Kind::Item(number), Span { start, end: end.max(start) });
                self.items.push(item);
                self.state.open = Some(item);
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(language)) => {
                let source = self.repaired.text[range.clone()].trim_end();
                let end = source.rsplit_once('\n').map_or("", |(_, end)| end.trim_start_matches([' ', '\t', '>']));
                let is_closed = end.starts_with("```") || end.starts_with("~~~");
                self.begin(Kind::Fence { language: language.to_string(), code: String::new(), is_closed }, range);
                self.state.in_fence = true;
            }
            Tag::CodeBlock(CodeBlockKind::Indented) | Tag::BlockQuote(_) | Tag::HtmlBlock | Tag::MetadataBlock(_) => {
                let is_comment = self.repaired.text[range.clone()].trim_start().starts_with("<!--");
                self.begin(if is_comment { Kind::Rule } else { Kind::Other }, range);
                self.state.skipped = 1;
            }
            Tag::Table(_) => _ = self.begin(Kind::Table(Vec::new()), range),
            Tag::TableHead | Tag::TableRow => self.rows().into_iter().for_each(|rows| rows.push(Vec::new())),
            Tag::TableCell => {
                let row = self.rows().and_then(|rows| rows.last_mut());
                row.into_iter().for_each(|row| row.push(Inline::default()));
                self.state.in_cell = true;
            }
            Tag::Emphasis if self.is_in_name(range) => _ = self.push("_", &(range.start..range.start + 1)),
            Tag::Strong if self.is_in_name(range) => _ = self.push("__", &(range.start..range.start + 2)),
            Tag::Link { dest_url, .. } => self.link(&dest_url, false),
            Tag::Image { dest_url, .. } => self.link(&dest_url, true),
            _emphasis => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) => {
                self.state.end = range.start + self.repaired.text[range.clone()].trim_end().len();
                self.close();
            }
            TagEnd::Emphasis if self.is_in_name(range) => _ = self.push("_", &(range.end - 1..range.end)),
            TagEnd::Strong if self.is_in_name(range) => _ = self.push("__", &(range.end - 2..range.end)),
            TagEnd::List(_) => _ = self.state.lists.pop(),
            TagEnd::Item => {
                self.close();
                self.items.pop();
            }
            TagEnd::CodeBlock => self.state.in_fence = false,
            TagEnd::TableCell => self.state.in_cell = false,
            TagEnd::Link | TagEnd::Image => {
                self.state.end = range.end;
                // The alternative text of an image in a link is the link's text.
                let last = self.state.links.pop().filter(|_| self.state.links.is_empty());
                if let (Some((start, url, is_image)), Some(inline)) = (last, self.inline()) {
                    inline.links.push(Link { range: start..inline.text.len(), url, is_image });
                }
            }
            _other => {}
        }
    }

    /// Ends the text of the open block.
    fn close(&mut self) {
        let end = std::mem::take(&mut self.state.end);
        let Some(open) = self.state.open.take() else { return };
        let block = &mut self.blocks[open];
        block.span.end = block.span.end.max(self.repaired.end_in_file(end));
    }

    /// Underscores in a name, such as `src/__tests__/` or `__init__.py`, are not emphasis.
    fn is_in_name(&self, range: &Range<usize>) -> bool {
        let (before, after) = (&self.repaired.text[..range.start], &self.repaired.text[range.end..]);
        let after = after.strip_prefix('.').unwrap_or(after);
        let goes_on = after.starts_with(|c: char| c == '/' || c.is_alphanumeric());
        self.repaired.text[range.start..].starts_with('_') && (goes_on || before.ends_with(['/', '.', '-']))
    }

    fn begins_note(&self, at: usize) -> bool {
        let text = self.repaired.text[at..].trim_start_matches([' ', '_', '*']);
        !self.items.is_empty()
            && self.state.links.is_empty()
            && after_any(text, &DEPENDS).or_else(|| after_any(text, &ACCEPTANCE)).is_some()
    }

    fn link(&mut self, url: &str, is_image: bool) {
        let start = self.inline().map_or(0, |inline| inline.text.len());
        self.state.links.push((start, url.to_owned(), is_image));
    }

    fn inline(&mut self) -> Option<&mut Inline> {
        match self.state.open {
            _ if self.state.in_cell => self.rows()?.last_mut()?.last_mut(),
            Some(open) => Some(&mut self.blocks[open].inline),
            None => None,
        }
    }

    /// The rows of the last table.
    fn rows(&mut self) -> Option<&mut Vec<Vec<Inline>>> {
        if let Kind::Table(rows) = &mut self.blocks.last_mut()?.kind { Some(rows) } else { None }
    }

    /// Text of a tight item after another block in it is a separate paragraph.
    fn push(&mut self, text: &str, range: &Range<usize>) -> usize {
        if self.state.open.is_none() && !self.state.in_cell && !self.items.is_empty() {
            self.state.open = Some(self.begin(Kind::Paragraph, range));
        }
        self.state.end = range.end.max(range.start + text.len()).min(self.repaired.text.len());
        let at = self.repaired.in_file(range.start);
        let Some(inline) = self.inline() else { return 0 };
        inline.push(text, at);
        inline.text.len() - text.len()
    }

    fn code(&mut self, code: &str, range: &Range<usize>) {
        let from = self.push("`", range);
        self.push(code, &(range.start + 1..range.end));
        self.push("`", &(range.end - 1..range.end));
        if let Some(inline) = self.inline() {
            inline.codes.push(from..inline.text.len());
        }
    }
}
