//! Lines of other markup than Markdown to blocks, and signs before items that are no markers; which markup a text has,
//! and what a line of it says, `dialects` knows.

use super::dialects::{Dialect, Listing, Sign, Until};
use super::lines::{Block, BlockKind, Lexer, Line, Pieces, cover};
use super::loose::loose;
use super::markers::{self, Marker};
use super::phrases::{Words, list};
use super::sections::{Section, section};
use super::text::{blank, find, is_blank};
use super::{roles, vocabulary};
use crate::plan::{Mark, Span};

/// A block of code as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Code<'t> {
    pub(super) language: String,
    pub(super) frame: Frame<'t>,
}

/// How a block of code is marked off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame<'t> {
    /// By its indentation.
    Indented,
    /// By signs at both ends.
    Closed,
    /// By signs at its beginning alone; this would close it.
    Open(&'t str),
    /// By signs that say that it is only shown.
    Shown,
}

/// An item as its line has it.
#[derive(Clone, Copy)]
struct Listed {
    depth: usize,
    numbered: bool,
    mark: Option<Mark>,
    from: usize,
    to: usize,
}

impl<'a> Lexer<'a> {
    /// What the markup of the text makes of a line; false for a line that is as in Markdown.
    pub(super) fn marked_up(&mut self, line: Line) -> bool {
        let text = self.text;
        let content = &text[line.start..line.end];
        let above = std::mem::take(&mut self.said);
        match self.dialect.sign(content) {
            None if self.dialect == Dialect::AsciiDoc && self.is_author(content) => {
                self.whole(BlockKind::Ignored, line);
            }
            None => return false,
            Some(Sign::Aside) => {
                self.whole(BlockKind::Ignored, line);
                self.said = above;
            }
            Some(Sign::Attributes(said)) => self.attributes(line, said.under(above)),
            Some(Sign::Throughout) => {
                self.whole(BlockKind::Ignored, line);
                let level = if content.starts_with('#') { 0 } else { self.under / 2 };
                self.unrun = Some(self.unrun.map_or(level, |above| above.min(level)));
            }
            Some(Sign::Listing { said, from, end }) => self.listing(line, said.under(above), from, end),
            Some(Sign::Literal(from)) => {
                let piece = Span { start: line.start + from, end: line.end };
                let kind = BlockKind::Fence(Code { language: "text".to_owned(), frame: Frame::Shown });
                self.push(kind, cover(line), Pieces::One([piece]), line.indent, line.quote > 0);
            }
            Some(Sign::Comment(end)) => self.hidden(line, end),
            // What has a title above its code is shown.
            Some(Sign::Heading { .. }) if content.starts_with('.') && self.over_listing() => {
                self.whole(BlockKind::Ignored, line);
                self.said = Listing { shown: true, ..above };
            }
            Some(Sign::Heading { level, from, to }) => self.headline(line, level, from, to),
            Some(Sign::Item { depth, numbered, mark, from, to }) => {
                self.listed(line, Listed { depth, numbered, mark, from, to });
            }
        }
        // What stands below a headline is no rest of it.
        self.apart |= self.dialect == Dialect::Org;
        true
    }

    /// True for who wrote it, right under the title.
    fn is_author(&self, content: &str) -> bool {
        let titled = self.blocks.last().is_some_and(|last| last.kind == BlockKind::Heading(1));
        let signed = content.contains(" <") && content.contains('@') && content.ends_with('>');
        let named = || roles::is_signature(content) && !vocabulary::begins_with_verb(content);
        titled && !self.apart && (signed || named())
    }

    /// True when the next line begins a listing, or says what it is.
    fn over_listing(&self) -> bool {
        let next = self.text[self.at..].lines().next().unwrap_or("");
        matches!(self.dialect.sign(next.trim()), Some(Sign::Listing { .. } | Sign::Attributes(_)))
    }

    fn attributes(&mut self, line: Line, said: Listing<'a>) {
        if said.quotes && !self.over_listing() {
            return self.listing(line, said.under(Listing::TOLD), line.end - line.start, Until::Blank);
        }
        self.whole(BlockKind::Ignored, line);
        self.said = said;
    }

    fn headline(&mut self, line: Line, level: usize, from: usize, to: usize) {
        let inside = self.headline.filter(|above| level > *above);
        let kind = match inside {
            // Within a headline that is to be done, another one is an item of it.
            Some(_) => BlockKind::Item { marker: Marker::Bullet, mark: None },
            None => BlockKind::Heading(level),
        };
        let indent = line.indent - self.under + if inside.is_some() { 2 * (level - 1) } else { 0 };
        let piece = Span { start: line.start + from, end: line.start + to };
        self.push(kind, cover(line), Pieces::One([piece]), indent, line.quote > 0);
        self.headline = inside;
        self.unrun = self.unrun.filter(|above| level > *above || *above == 0);
        if self.dialect == Dialect::Org && self.aside.is_none_or(|above| level <= above) {
            let aside = matches!(section(&self.text[piece.start..piece.end]), Section::Never | Section::Context);
            self.aside = aside.then_some(level);
        }
        self.counts.clear();
        self.under = if self.dialect == Dialect::Org { 2 * level } else { 0 };
    }

    fn listed(&mut self, line: Line, item: Listed) {
        if self.aside.is_some_and(|level| item.depth <= level) {
            // It stands beside the section above it and not in it.
            let here = Span { start: line.start, end: line.start };
            self.push(BlockKind::Heading(item.depth), here, Pieces::One([here]), line.indent - self.under, false);
            self.aside = None;
        }
        let between = |block: &&Block| matches!(block.kind, BlockKind::Fence(_) | BlockKind::Ignored);
        let above = self.blocks.iter().rev().find(|block| !between(block));
        if !above.is_some_and(|block| matches!(block.kind, BlockKind::Item { .. })) {
            self.counts.clear();
        }
        self.unrun = self.unrun.filter(|above| item.depth > *above || *above == 0);
        self.counts.resize(item.depth, (0, item.numbered));
        let (number, numbered) = &mut self.counts[item.depth - 1];
        if *numbered != item.numbered {
            // Numbers after bullets, and bullets after numbers, are another list.
            (*number, *numbered) = (0, item.numbered);
            self.apart = true;
        }
        *number += 1;
        let marker = if item.numbered { Marker::Number(number.to_string().into()) } else { Marker::Bullet };
        let indent = line.indent - self.under + 2 * (item.depth - 1);
        let words = Span { start: line.start + item.from, end: line.start + item.to };
        let kind = BlockKind::Item { marker, mark: item.mark };
        let span = Span { start: line.begin, end: words.end };
        self.push(kind, span, Pieces::One([words]), indent, line.quote > 0);
        if words.end < line.end {
            // Tags behind the words are a remark on them.
            let tags = self.text[words.end..line.end].trim_start().len();
            let piece = Span { start: line.end - tags, end: line.end };
            self.apart = true;
            self.push(BlockKind::Paragraph, piece, Pieces::One([piece]), indent + 4, line.quote > 0);
        }
        if self.dialect == Dialect::Org {
            self.headline = Some(item.depth);
            self.under = 2 * item.depth;
        }
    }

    fn listing(&mut self, open: Line, said: Listing<'a>, from: usize, end: Until<'a>) {
        let (pieces, last, missing) = self.passage(open, from, end);
        let frame = match missing {
            Some(sign) => Frame::Open(sign),
            None if said.shown || self.unrun.is_some() => Frame::Shown,
            None => Frame::Closed,
        };
        let kind = BlockKind::Fence(Code { language: said.language.to_ascii_lowercase(), frame });
        let span = Span { start: open.begin, end: last };
        self.push(kind, span, Pieces::Many(pieces), open.indent, open.quote > 0);
    }

    /// A comment; one that never ends is shown, so that nothing goes without a word.
    fn hidden(&mut self, open: Line, end: Until<'a>) {
        let (pieces, last, missing) = self.passage(open, open.end - open.start, end);
        let (kind, pieces) = match missing {
            Some(sign) => (BlockKind::Fence(Code { language: "text".to_owned(), frame: Frame::Open(sign) }), pieces),
            None => (BlockKind::Ignored, Vec::new()),
        };
        let span = Span { start: open.begin, end: last };
        self.push(kind, span, Pieces::Many(pieces), open.indent, open.quote > 0);
    }

    /// The lines up to an end, where they end, and the sign that closes them if it is missing.
    fn passage(&mut self, open: Line, from: usize, end: Until<'a>) -> (Vec<Span>, usize, Option<&'a str>) {
        let mut pieces = Vec::new();
        let mut last = open.end;
        if open.start + from < open.end {
            self.at = open.start + from;
        }
        while let Some(line) = self.next() {
            let content = &self.text[line.start..line.end];
            if let Some((at, length)) = end.found(content) {
                if !blank(&content[..at]) {
                    pieces.push(self.unindent(Line { end: line.start + at, ..line }, open));
                }
                if blank(&content[at + length..]) {
                    return (pieces, line.end, None);
                }
                // What stands behind the end is read for itself.
                self.at = line.start + at + length;
                return (pieces, self.at, None);
            }
            if end.is_past(content) {
                self.at = line.begin;
                return (pieces, last, None);
            }
            pieces.push(self.unindent(line, open));
            last = line.end;
        }
        (pieces, last, end.sign())
    }

    /// A line that begins with a sign that counts only beside another line with it.
    pub(super) fn loosely(&mut self, line: Line) -> bool {
        let text = self.text;
        let Some(found) = loose(&text[line.start..line.end]) else { return false };
        let sign = |part: &str| loose(part.trim_start_matches(is_blank));
        let last = self.blocks.last().filter(|last| matches!(last.kind, BlockKind::Item { .. }));
        let above = last.and_then(|last| sign(&text[last.span.start..last.span.end]));
        let next = || text[self.at..].lines().find(|next| !blank(next)).and_then(sign);
        let beside =
            above.is_some_and(|above| above.leads_to(&found)) || next().is_some_and(|next| found.leads_to(&next));
        if !beside {
            return false;
        }
        let piece = Span { start: line.start + found.skip, end: line.end };
        let kind = BlockKind::Item { marker: found.marker(), mark: found.mark };
        self.push(kind, cover(line), Pieces::One([piece]), line.indent, line.quote > 0);
        true
    }

    /// A tick is an ornament where all items have one, and where others have pictures for bullets.
    pub(super) fn ornaments(&mut self) {
        let text = self.text;
        let sign = |block: &Block| {
            let is_item = matches!(block.kind, BlockKind::Item { .. });
            let part = is_item.then(|| text[block.span.start..block.span.end].trim_start_matches(is_blank));
            part.and_then(|part| part.chars().next())
        };
        let ticked = |block: &Block| sign(block).is_some_and(markers::is_state);
        if !self.blocks.iter().any(ticked) {
            return;
        }
        let mut signs = self.blocks.iter().filter_map(sign);
        let first = signs.next();
        let alike = self.blocks.iter().filter_map(sign).all(|c| Some(c) == first);
        let pictured = signs.chain(first).any(markers::is_picture);
        for block in self.blocks.iter_mut().filter(|_| alike || pictured) {
            if let (true, BlockKind::Item { mark, .. }) = (ticked(block), &mut block.kind) {
                *mark = None;
            }
        }
    }
}

/// `/label ~bug`: what a forge is told of the whole text.
pub(super) fn quick_action(content: &str) -> bool {
    static ACTIONS: Words =
        Words::new(|| list("label|assign|due|estimate|spend|milestone|epic|cc|relate|weight|priority|unlabel"));
    let word = || content[1..].split(' ').next().unwrap_or("");
    content.starts_with('/') && ACTIONS.contains(word()) && content.contains(' ')
}

/// Where the title stands in `<summary>Title</summary>`.
pub(super) fn summary(content: &str) -> Option<Span> {
    let start = find(content, "<summary>").filter(|at| only_tags(&content[..*at]) || *at == 0)? + "<summary>".len();
    let end = start + find(&content[start..], "</summary>")?;
    (!blank(&content[start..end])).then_some(Span { start, end })
}

/// True for a line with nothing but tags of HTML that frame text.
pub(super) fn only_tags(content: &str) -> bool {
    const FRAMES: &[&str] = &[
        "details", "summary", "div", "p", "br", "hr", "center", "span", "table", "tbody", "thead", "tr", "ul", "ol",
        "picture", "section", "sub", "sup",
    ];
    if !content.trim_start().starts_with('<') {
        return false;
    }
    let mut rest = content.trim();
    let mut any = false;
    while let Some(inner) = rest.strip_prefix('<') {
        let body = inner.strip_prefix('/').unwrap_or(inner);
        let length = body.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let Some(end) = body.find('>').filter(|_| FRAMES.contains(&body[..length].to_ascii_lowercase().as_str()))
        else {
            return false;
        };
        rest = body[end + 1..].trim_start();
        any = true;
    }
    any && rest.is_empty()
}
