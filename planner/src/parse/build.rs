//! Blocks to drafts: walks the text once and hands each part to a task, to the context or to what is ignored.

use std::cell::RefCell;
use std::rc::Rc;

use super::built::{Built, Odd, attach, merge_spans};
use super::draft::{Draft, Link, Reference, Step};
use super::fences::{self, Lead};
use super::heads::{self, Branch};
use super::inline::{AtomKind, Definitions, Inline};
use super::lines::{self, Block, BlockKind};
use super::markup::Code;
use super::orders::Known;
use super::outline::{self, Place};
use super::pairs::Pairs;
use super::parsed::TASKS_MAX;
use super::sections::{self, Section, Use};
use super::sentences::Clause;
use super::text::{Flow, holds, is_plain};
use super::told::Told;
use super::{addresses, connectors, letters, mails, meta, numbered, plain, relations, roles, shell, vocabulary};
use crate::plan::{Attachment, Condition, Span};

/// The heading of a list is looked for in so many blocks before it.
const HEADING_BLOCKS_MAX: usize = 64;

/// What the walk stands in.
pub(super) enum Open {
    List(usize, bool),
    Group {
        block: usize,
        title: String,
        names: std::ops::Range<usize>,
        /// "In parallel:": its items have no order.
        parallel: bool,
        /// It is a step itself, and its items follow it in this way.
        follow: Option<Link>,
        /// The draft of that step, to which the remarks among its items belong.
        own: Option<usize>,
        /// What its items have unless they say otherwise.
        priority: Option<String>,
        assignee: Option<String>,
        needs: Rc<[Reference]>,
    },
    Section {
        level: usize,
        title: Option<(String, Span)>,
        first: usize,
        priority: Option<String>,
    },
}

impl Open {
    fn priority(&self) -> Option<String> {
        match self {
            Self::Section { priority, .. } => priority.clone(),
            Self::List(..) | Self::Group { .. } => None,
        }
    }
}

/// What the walk knows at a place in the text.
pub(super) struct Builder<'a> {
    pub(super) source: &'a str,
    pub(super) definitions: Definitions,
    /// The pairs of signs in the line that was read last.
    pub(super) pairs: Pairs,
    /// What was found in a line that is done; its memory serves the next one.
    pub(super) spare: Option<Box<Inline>>,
    /// The clauses of an item that is done, for the same.
    pub(super) clauses: Vec<Clause>,
    pub(super) lenient: bool,
    pub(super) out: Built<'a>,
    pub(super) open: Vec<Open>,
    /// The draft that remarks belong to.
    pub(super) last: Option<usize>,
    pub(super) pending_notes: Vec<(String, Option<Span>)>,
    pub(super) pending_attachments: Vec<Attachment>,
    pub(super) condition: Option<Condition>,
    /// The conditions of what is open.
    pub(super) branches: Vec<Branch>,
    /// "If it fails:" above a list, a table or a paragraph.
    pub(super) lead_condition: Option<(Condition, Link)>,
    /// The last paragraph's last clause ended with a colon, or it stands directly above.
    pub(super) colon: bool,
    pub(super) group: Option<String>,
    /// "Write tests for:" above a list.
    pub(super) lead: Option<String>,
    /// "Then:" above a list.
    pub(super) lead_link: Option<Link>,
    pub(super) priority: Option<String>,
    /// Lists and sections with `[P]` in them, in order.
    pub(super) marked_lists: Vec<usize>,
    pub(super) marked_sections: Vec<usize>,
    pub(super) section: usize,
    /// What others say is quoted here, beside what is asked for.
    outside: bool,
    /// An empty box stands somewhere in the text.
    pub(super) has_boxes: bool,
    /// Nothing but ASCII is in the text, and no blanks but spaces and ends of lines.
    pub(super) is_plain: bool,
    /// The section above in which things are only told.
    pub(super) told: Option<Told>,
    pub(super) known: RefCell<Known>,
}

/// Reads a text; `lenient` takes what is otherwise context for tasks.
pub(super) fn build(source: &str, lenient: bool) -> Built<'_> {
    let mut blocks = lines::blocks(source);
    sections::promote(source, &mut blocks);
    numbered::settle(source, &mut blocks);
    mails::history(source, &mut blocks);
    mails::frame(source, &mut blocks);
    letters::sign_off(source, &mut blocks);
    if !(sections::holds_steps(source, &blocks) || (lenient && sections::outline_only(source, &mut blocks))) {
        return Built { ignored: blocks.iter().map(|block| block.span).collect(), ..Built::default() };
    }
    if lenient {
        sections::drop_stories(source, &mut blocks);
    }
    let uses = sections::uses(source, &blocks, lenient);
    let places = outline::outline(source, &blocks);
    let outside =
        blocks.iter().any(|block| !block.quoted && !matches!(block.kind, BlockKind::Heading(_) | BlockKind::Ignored));
    let mut builder = Builder {
        source,
        definitions: definitions(source, &blocks),
        pairs: Pairs::default(),
        spare: None,
        clauses: Vec::new(),
        lenient,
        out: Built::default(),
        open: Vec::new(),
        last: None,
        pending_notes: Vec::new(),
        pending_attachments: Vec::new(),
        condition: None,
        branches: Vec::new(),
        lead_condition: None,
        colon: false,
        group: None,
        lead: None,
        lead_link: None,
        priority: None,
        marked_lists: Vec::new(),
        marked_sections: Vec::new(),
        section: 0,
        outside,
        told: None,
        known: RefCell::default(),
        has_boxes: source.contains("[ ]"),
        is_plain: is_plain(source),
    };
    // Drafts are large, and a list that grows copies them.
    let n_items = blocks.iter().filter(|block| matches!(block.kind, BlockKind::Item { .. })).count();
    builder.out.drafts.reserve(n_items.min(TASKS_MAX));
    builder.find_marks(&blocks, &places);
    for (n, block) in blocks.iter().enumerate() {
        builder.block(n, block, &blocks, &places, uses[n], outside && !lenient);
    }
    while builder.close() {}
    builder.settle();
    builder.out
}

fn definitions(source: &str, blocks: &[Block]) -> Definitions {
    let ignored = blocks.iter().filter(|block| block.kind == BlockKind::Ignored);
    let lines = ignored
        .flat_map(|block| block.pieces.iter())
        .filter_map(|piece| addresses::definition(&source[piece.start..piece.end]));
    lines.map(|(name, target)| (name.to_lowercase(), target.to_owned())).collect()
}

impl<'a> Builder<'a> {
    /// Finds the lists and sections in which `[P]` makes unmarked items a sequence.
    fn find_marks(&mut self, blocks: &[Block], places: &[Place]) {
        if !self.source.contains("[P]") {
            return;
        }
        let mut section = 0;
        for (n, block) in blocks.iter().enumerate() {
            if matches!(block.kind, BlockKind::Heading(level) if level < 7 && self.begins_scope(block)) {
                section = n;
            }
            let line = block.pieces.first().map_or("", |piece| &self.source[piece.start..piece.end]);
            let end = line.floor_char_boundary(64);
            if matches!(block.kind, BlockKind::Item { .. })
                && (holds(&line[..end], "[P]") || line.trim_end().ends_with("[P]"))
            {
                self.marked_lists.push(places[n].list);
                if places[n].parent.is_none() {
                    self.marked_sections.push(section);
                }
            }
        }
        self.marked_lists.sort_unstable();
        self.marked_lists.dedup();
        self.marked_sections.dedup();
    }

    fn begins_scope(&self, block: &Block) -> bool {
        let title = block.pieces.first().map_or("", |piece| &self.source[piece.start..piece.end]);
        sections::section(title) == Section::Phase
    }

    fn block(&mut self, n: usize, block: &Block<'a>, blocks: &[Block], places: &[Place], uses: Use, outside: bool) {
        let colon = std::mem::take(&mut self.colon);
        let first = self.out.drafts.len();
        let told = (block.quoted && self.outside) || self.told.is_some();
        if block.quoted && uses == Use::Tasks {
            // The signs of quotation belong to no task.
            let mut at = block.span.start;
            for piece in block.pieces.iter() {
                self.out.ignored.push(Span { start: at, end: piece.start.max(at) });
                at = piece.end;
            }
        }
        match &block.kind {
            BlockKind::Fence(code) if uses != Use::Never && self.diagram(&code.language, block) => {}
            BlockKind::Heading(level) => self.heading(n, block, *level, uses),
            BlockKind::Ignored => {
                self.out.ignored.push(block.span);
                self.colon = colon;
            }
            BlockKind::Item { mark, .. }
                if uses == Use::Tasks || (uses == Use::Context { boxes: true } && mark.is_some()) =>
            {
                self.item(n, block, places);
            }
            BlockKind::Item { .. } | BlockKind::Paragraph | BlockKind::Fence(_) | BlockKind::Table
                if uses != Use::Tasks =>
            {
                if uses == Use::Outside && matches!(block.kind, BlockKind::Item { .. }) {
                    self.outside(n, blocks);
                }
                if matches!(uses, Use::Context { .. }) && self.requires(n, blocks) {
                    self.out.requires = true;
                    self.outside(n, blocks);
                }
                self.context(block, uses);
            }
            BlockKind::Item { .. } => {}
            BlockKind::Paragraph => self.paragraph(n, block, blocks, places, outside),
            BlockKind::Fence(code) => {
                let lead = Lead::of(self.source, &blocks[..n]);
                let held = places[n].parent.is_some() || self.goes_on(n, blocks, places).is_some();
                let inside = held || lead.as_ref().is_some_and(Lead::holds_code);
                self.fence(block, code, (inside, colon, told), lead.as_ref());
            }
            BlockKind::Table => {
                self.enter(None, usize::MAX, false);
                let above = self.last.filter(|_| places[n].parent.is_some());
                let above = above.and_then(|last| self.out.drafts[last].plan.condition.clone());
                self.lead_condition = self.lead_condition.take().or(above.map(|condition| (condition, Link::Tested)));
                self.under_lead(|builder| builder.table(block));
            }
        }
        if told {
            self.only_told(first, matches!(block.kind, BlockKind::Item { mark: Some(_), .. }));
        }
    }

    /// True for an item under a heading of requirements.
    fn requires(&self, n: usize, blocks: &[Block]) -> bool {
        let is_heading = |block: &&Block| matches!(block.kind, BlockKind::Heading(_));
        let title = || {
            let above = blocks[..n].iter().rev().take(HEADING_BLOCKS_MAX).find(is_heading)?;
            above.pieces.first().map(|piece| &self.source[piece.start..piece.end])
        };
        matches!(&blocks[n].kind, BlockKind::Item { .. })
            && title().is_some_and(|title| title.to_lowercase().contains("requirement"))
    }

    /// Says at the first item of a list that it is not read.
    fn outside(&mut self, n: usize, blocks: &[Block]) {
        let is_item = |block: &Block| matches!(block.kind, BlockKind::Item { .. });
        if n > 0 && blocks.get(n - 1).is_some_and(is_item) {
            return;
        }
        let count = blocks[n..].iter().take_while(|block| is_item(block)).count();
        let items = if count == 1 { "item" } else { "items" };
        let message = format!("a list of {count} {items} stands outside the section of tasks and is not read");
        let help = "move it under the heading of the tasks if it is part of the plan";
        self.out.odd.push(Odd { at: blocks[n].span.start, message, help: help.into() });
    }

    pub(super) fn flow(&mut self, block: &Block) -> (Flow<'a>, Box<Inline>) {
        let flow = Flow::new(self.source, &block.pieces, self.is_plain);
        let mut inline = self.spare.take().unwrap_or_default();
        inline.read(&flow.text, &self.definitions, &mut self.pairs);
        (flow, inline)
    }

    fn heading(&mut self, n: usize, block: &Block, level: usize, uses: Use) {
        let (flow, inline) = self.flow(block);
        let (text, priority) = heading_text(&flow.text, &inline);
        self.out.ignored.push(block.span);
        while matches!(self.open.last(), Some(Open::List(..) | Open::Group { .. }))
            || matches!(self.open.last(), Some(Open::Section { level: above, .. }) if *above >= level)
        {
            self.close();
        }
        let kind = sections::section(&text);
        self.told = Told::below(self.told.take(), level, &text);
        let phase = kind == Section::Phase && uses == Use::Tasks;
        let link = if phase { Link::Phase } else { Link::Free };
        let steps = uses == Use::Tasks && kind != Section::Never && kind != Section::Context;
        let title = sections::phase_title(&text);
        let branch = || self.branch_of(&title, link).or_else(|| self.branch_in(&flow, &inline, link));
        let branch = if steps { branch() } else { None };
        if self.out.title.is_none()
            && !text.is_empty()
            && self.out.drafts.is_empty()
            && level <= 1
            && kind != Section::Context
            && kind != Section::Never
        {
            self.out.title = Some(text.clone());
        }
        self.lead = None;
        self.lead_link = None;
        self.lead_condition = None;
        self.last = None;
        self.condition = None;
        let first = self.out.drafts.len();
        let title = (phase && !text.is_empty()).then_some((title, block.span));
        let priority = priority.or_else(|| self.open.iter().rev().find_map(Open::priority));
        self.priority.clone_from(&priority);
        let (condition, link) = branch.map_or((None, link), |(condition, link)| (Some(condition), link));
        self.push(Open::Section { level, title, first, priority }, link);
        if let Some(condition) = condition {
            self.begin_branch(condition);
        }
        if phase {
            self.section = n;
        }
        let groups = uses == Use::Tasks && kind != Section::Tasks && level > 1;
        self.group = (groups && !text.is_empty()).then_some(text);
    }

    pub(super) fn push(&mut self, open: Open, link: Link) {
        let silent = matches!(open, Open::List(_, true));
        self.open.push(open);
        if !silent {
            self.out.steps.push(Step::Open(link));
        }
    }

    /// Leaves the innermost list, group or section.
    fn close(&mut self) -> bool {
        let Some(open) = self.open.pop() else { return false };
        self.end_branches();
        match open {
            Open::List(_, true) => return true,
            Open::List(_, false) => {}
            Open::Group { names, .. } => {
                let end = self.out.drafts.len();
                for name in self.out.names.get_mut(names).into_iter().flatten() {
                    name.end = end;
                }
            }
            Open::Section { title: Some((title, span)), first, .. }
                if first == self.out.drafts.len() && !title.is_empty() =>
            {
                // A phase without steps is a step.
                let open = vocabulary::is_open(&title);
                let mut draft = Draft::new(vocabulary::kind(&title, None), title, span.start);
                // What is not decided yet says nothing without the name of its phase.
                draft.plan.group = open.then(|| heading_name(&self.source[span.start..span.end]));
                draft.plan.spans.push(span);
                self.out.ignored.retain(|ignored| *ignored != span);
                self.out.drafts.push(draft);
                self.out.steps.push(Step::Task(first, Link::Free));
            }
            Open::Section { .. } => {}
        }
        self.out.steps.push(Step::Close);
        true
    }

    /// Opens what is missing so that the next thing stands in its list, under its parent.
    pub(super) fn enter(&mut self, parent: Option<usize>, list: usize, silent: bool) {
        loop {
            match self.open.last() {
                Some(Open::List(open, _)) if *open == list && self.lead_condition.is_none() => return,
                Some(Open::Group { block, .. }) if Some(*block) == parent => break,
                Some(Open::Section { .. }) | None => break,
                Some(Open::List(..) | Open::Group { .. }) => {
                    self.close();
                }
            }
        }
        if list != usize::MAX {
            let follow = match self.open.last() {
                Some(Open::Group { follow, .. }) => *follow,
                Some(Open::List(..) | Open::Section { .. }) | None => None,
            };
            let lead = self.lead_link.take();
            let branch = self.lead_condition.take();
            let (condition, tested) = branch.unzip();
            let silent = silent && condition.is_none();
            self.push(Open::List(list, silent), follow.or(lead).or(tested).unwrap_or(Link::Free));
            if let Some(condition) = condition {
                self.begin_branch(condition);
            }
        }
    }

    pub(super) fn context(&mut self, block: &Block, uses: Use) {
        let (flow, inline) = self.flow(block);
        self.out.ignored.push(block.span);
        if uses == Use::Never {
            return;
        }
        self.ordering_aside(&flow, &inline);
        let text = plain::plain(&flow.text, &inline, 0, flow.text.len(), &[]);
        if !text.is_empty() {
            self.out.context.push(text);
        }
    }

    fn paragraph(&mut self, n: usize, block: &Block, blocks: &[Block], places: &[Place], outside: bool) {
        let (flow, inline) = self.flow(block);
        if flow.text.trim().is_empty() || inline.is_struck(&flow.text) || self.ordering(&flow, &inline) {
            return self.out.ignored.push(block.span);
        }
        if relations::is_line(&flow.text) {
            self.ordering_aside(&flow, &inline);
        }
        if self.last.is_some() && (places[n].parent.is_some() || self.tells_more(n, &flow, blocks, places)) {
            let asks = places[n].parent.is_some() && vocabulary::is_question_mark(&flow.text);
            let asker = self.last.filter(|_| asks && !vocabulary::is_request(&flow.text));
            return match asker {
                Some(asker) => self.ask(asker, block, &flow, &inline),
                None => self.note(block, &flow, &inline),
            };
        }
        if !self.lenient && inline.is_only(&flow.text, |kind| matches!(kind, AtomKind::Image(_) | AtomKind::Url)) {
            return self.show(block, &flow, &inline);
        }
        self.leave(n, blocks, places);
        let next = blocks.get(n + 1);
        let leads = |kind: &BlockKind| matches!(kind, BlockKind::Item { .. } | BlockKind::Table);
        let colon = flow.text.trim_end().ends_with([':', '\u{ff1a}']);
        let head = heads::head(&flow.text).filter(|head| colon || head.rest.is_empty());
        let asks = head.is_some();
        let leads = |kind: &BlockKind| leads(kind) || asks && *kind == BlockKind::Paragraph;
        let listed = next.is_some_and(|next| matches!(next.kind, BlockKind::Item { .. } | BlockKind::Table));
        let titles = !self.lenient && (listed || n == 0 && next.is_some()) && roles::is_title(&flow.text);
        if titles && !listed {
            return self.context(block, Use::Tasks);
        }
        let lead_in = (colon || asks || titles) && next.is_some_and(|next| leads(&next.kind));
        if lead_in && asks {
            self.lead_condition = self.branch_of(&flow.text, Link::Free);
        } else if lead_in {
            if self.ask_last(block, &flow, &inline) {
                return;
            }
            self.lead_condition = self.branch_in(&flow, &inline, Link::Free);
        }
        self.lead = lead_in.then(|| plain::plain(&flow.text, &inline, 0, flow.text.len(), &[]));
        self.lead_link = lead_in.then(|| connectors::connection(&flow.text)).flatten();
        if lead_in {
            attach(&mut self.pending_attachments, inline.attachments(&flow.text, 0, flow.text.len()));
        }
        let told = !self.lenient && (roles::explains(&flow.text) || roles::is_form(&flow.text));
        if lead_in || told || (outside && block.quoted) {
            return self.context(block, Use::Tasks);
        }
        let code = next.is_some_and(|next| self.is_shell(next));
        if !self.lenient && colon && next.is_some_and(|next| fences::is_title(&flow.text, next, code)) {
            return self.note(block, &flow, &inline);
        }
        let before = self.out.drafts.len();
        self.under_lead(|builder| builder.prose(&flow, &inline, code));
        self.lend_plainly(before);
        self.colon = flow.text.trim_end().ends_with([':', '\u{ff1a}']) || next.is_some_and(|next| !next.apart);
    }

    /// True for prose between two items of a list, which says more of the first; not for what asks, connects or runs.
    fn tells_more(&self, n: usize, flow: &Flow, blocks: &[Block], places: &[Place]) -> bool {
        let item = n > 0 && matches!(blocks[n - 1].kind, BlockKind::Item { .. });
        let text = flow.text.trim_end();
        let own = text.contains('`') || text.ends_with(['?', ':', '\u{ff1f}', '\u{ff1a}']);
        item && !own && connectors::connector(text).is_none() && self.goes_on(n, blocks, places).is_some()
    }

    /// True for a fence that is a command.
    fn is_shell(&self, block: &Block) -> bool {
        let BlockKind::Fence(Code { language, .. }) = &block.kind else { return false };
        let first = block.pieces.first().map_or("", |piece| &self.source[piece.start..piece.end]);
        shell::is_shell_language(language) || (language.is_empty() && shell::reads_like_shell(first))
    }

    /// Pictures and addresses alone: they belong to the task before them, else to the next.
    fn show(&mut self, block: &Block, flow: &Flow, inline: &Inline) {
        let found = inline.attachments(&flow.text, 0, flow.text.len());
        match self.last {
            Some(last) => {
                let plan = &mut self.out.drafts[last].plan;
                attach(&mut plan.attachments, found);
                plan.spans.push(block.span);
            }
            None => {
                attach(&mut self.pending_attachments, found);
                self.out.ignored.push(block.span);
            }
        }
    }

    /// Leaves the lists that the text at block `n` ends; a list whose numbers go on after it stays open.
    fn leave(&mut self, n: usize, blocks: &[Block], places: &[Place]) {
        match self.goes_on(n, blocks, places) {
            Some(list) => {
                while self.open.last().is_some_and(|open| !matches!(open, Open::List(own, _) if *own == list))
                    && self.close()
                {}
            }
            None => self.enter(None, usize::MAX, false),
        }
    }

    /// The open list that the next item continues, when only text stands between.
    pub(super) fn goes_on(&self, n: usize, blocks: &[Block], places: &[Place]) -> Option<usize> {
        let near = blocks.get(n + 1..(n + 9).min(blocks.len()))?;
        let text = |block: &&Block| !matches!(block.kind, BlockKind::Item { .. } | BlockKind::Heading(_));
        let next = n + 1 + near.iter().take_while(text).count();
        let is_item = blocks.get(next).is_some_and(|block| matches!(block.kind, BlockKind::Item { .. }));
        let list = places.get(next).filter(|_| is_item)?.list;
        let recent = self.open.iter().rev().take_while(|open| !matches!(open, Open::Section { .. }));
        recent.into_iter().any(|open| matches!(open, Open::List(own, _) if *own == list)).then_some(list)
    }

    /// Adds a draft at the end of the text read so far.
    pub(super) fn add(&mut self, draft: Draft, link: Link) -> usize {
        self.out.drafts.push(draft);
        self.added(link)
    }

    /// Gives the last draft what was said before it, and its place.
    pub(super) fn added(&mut self, link: Link) -> usize {
        let n = self.out.drafts.len() - 1;
        let draft = &mut self.out.drafts[n];
        if let Some(branch) = self.branches.last() {
            draft.plan.condition = Some(branch.give(draft.plan.condition.take()));
        }
        for (note, span) in self.pending_notes.drain(..) {
            draft.plan.notes.push(note);
            draft.plan.spans.extend(span);
        }
        attach(&mut draft.plan.attachments, std::mem::take(&mut self.pending_attachments));
        self.out.steps.push(Step::Task(n, link));
        self.last = Some(n);
        n
    }

    /// Wraps the steps of an item that became several drafts.
    pub(super) fn wrap(&mut self, from: usize, link: Link) {
        self.out.steps.insert(from, Step::Open(link));
        self.out.steps.push(Step::Close);
    }

    /// What is left over at the end goes to the last task, or to the context.
    fn settle(&mut self) {
        let notes = std::mem::take(&mut self.pending_notes);
        let attachments = std::mem::take(&mut self.pending_attachments);
        if let Some(draft) = self.out.drafts.last_mut() {
            attach(&mut draft.plan.attachments, attachments);
        }
        for (note, span) in notes {
            self.out.context.push(note);
            self.out.ignored.extend(span);
        }
        for draft in &mut self.out.drafts {
            merge_spans(&mut draft.plan.spans);
        }
    }
}

/// A heading as it is written, without the signs around it.
fn heading_name(line: &str) -> String {
    line.trim_matches(|c: char| matches!(c, '#' | '*' | ':') || c.is_whitespace()).to_owned()
}

/// A heading without its signs, and the priority in it.
fn heading_text(text: &str, inline: &Inline) -> (String, Option<String>) {
    let found = meta::extract(text, inline, 0, text.len(), false);
    let plain = plain::plain(text, inline, 0, text.len(), &[]);
    if found.priority.is_some() { (found.description, found.priority) } else { (plain, None) }
}
