//! Clauses to drafts: what running text and the text of an item ask for.

use std::borrow::Cow;

use super::branches::{Part, starts_condition};
use super::build::Builder;
use super::built::{self, attach, merge_needs};
use super::bytes::BRACKET;
use super::draft::{Draft, Link, Reference, Step};
use super::inline::Inline;
use super::letters;
use super::lines::Block;
use super::meta::{self, Meta};
use super::parsed::TASKS_MAX;
use super::phrases::{Words, after_any, after_word, begins, list, spelt_words, words};
use super::roles::{self, Said, Sense};
use super::sentences::{self, Clause, Stop};
use super::text::{Flow, find_early, has_byte, holds};
use super::{commands, plain, unasked, vocabulary};
use crate::plan::{Mark, NodeKind};

/// The name of a link is no longer.
const NAME_BYTES_MAX: usize = 32;

/// Gives a draft what its text said of it.
pub(super) fn adopt(draft: &mut Draft, found: &mut Meta) {
    merge_needs(draft, found.needs.take());
    draft.before.append(&mut found.before);
    draft.unread.append(&mut found.unread);
    let plan = &mut draft.plan;
    plan.label = found.label.take();
    plan.group = found.group.take();
    plan.priority = found.priority.take();
    plan.assignee = found.assignee.take();
    plan.mark = found.mark.take().unwrap_or(plan.mark);
    if found.set.any() {
        std::mem::take(&mut found.set).give(plan);
    }
}

/// A clause taken apart.
struct Read {
    found: Meta,
    part: Part,
    /// Where it begins behind its marks.
    start: usize,
}

impl Builder<'_> {
    /// Running text: every sentence is a step, a remark or context.
    pub(super) fn prose(&mut self, flow: &Flow, inline: &Inline, code: bool) {
        let mut clauses = sentences::clauses(&flow.text, inline);
        let mut said: Vec<Said> = clauses.iter().map(|clause| Said::new(clause.text(flow))).collect();
        let letter = said.iter().any(Said::speaks);
        let mut things = Vec::new();
        if letter {
            (clauses, said, things) = part_requests(flow, inline, clauses, said);
        }
        self.out.drafts.reserve(clauses.len().min(TASKS_MAX));
        let mut here: Option<usize> = None;
        let mut unsettled = Vec::new();
        // The wish that the last step was, until another step comes.
        let mut wish: Option<(usize, usize)> = None;
        // What limits a step can stand before it.
        let last_step = self
            .last
            .is_none()
            .then(|| clauses.iter().zip(&said).rposition(|(clause, said)| is_plain_step(clause, said)));
        for (n, (clause, own)) in clauses.iter().zip(&said).enumerate() {
            let text = own.text;
            let first = self.last.is_none() && last_step.flatten().is_none_or(|last| last <= n);
            let thing = things.iter().find(|(start, _)| *start == clause.start).map(|(_, verb)| *verb);
            let before = n.checked_sub(1).and_then(|n| said.get(n));
            let sense = match thing {
                Some(_) => Sense::Step,
                None => sense_in(flow, inline, clause, own, (before, first)),
            };
            let next = clauses.get(n + 1).map(|next| &flow.text[next.start..next.end]).zip(said.get(n + 1));
            let opening = match next {
                Some((whole, next)) if sense == Sense::Step => opening(clause, own, whole, next, here.is_none()),
                Some(_) | None => Opening::None,
            };
            let plain = sense == Sense::Step && thing.is_none() && !connected(flow, clause);
            let step = here.filter(|_| plain).and_then(|n| self.out.drafts.get(n));
            let adds = step
                .is_some_and(|step| letters::adds(text) || (letter && letters::forms(&step.plan.description, text)));
            let spells = letter && plain;
            let wished =
                wish.filter(|(_, at)| spells && said.get(*at).is_some_and(|wish| letters::spells_out(wish, own)));
            let asked = code && n + 1 == clauses.len() && clause.stop == Stop::Colon;
            let alone = self.lenient && self.last.is_none();
            if opening != Opening::None {
                wish = None;
            }
            match sense {
                Sense::Statement if asked || alone => {
                    here = self.clause(flow, inline, clause, Link::Free, false).or(here);
                }
                Sense::Step if adds => self.remark(flow, inline, clause, here),
                Sense::Step if let Some((draft, _)) = wished => self.remark(flow, inline, clause, Some(draft)),
                Sense::Step if opening == Opening::Note => self.remark(flow, inline, clause, Some(usize::MAX)),
                Sense::Step if opening == Opening::Context => self.remark(flow, inline, clause, None),
                Sense::Step => {
                    here = self.clause(flow, inline, clause, clause.link, false).or(here);
                    if let (Some(verb), Some(draft)) = (thing, here.and_then(|here| self.out.drafts.get_mut(here))) {
                        draft.plan.description = format!("{verb} {}", draft.plan.description);
                        draft.plan.kind = vocabulary::kind(&draft.plan.description, None);
                    }
                    if let Some(draft) = here.and_then(|here| self.out.drafts.get_mut(here)) {
                        draft.questions.append(&mut unsettled);
                    }
                    wish = here.filter(|_| letter).map(|draft| (draft, n));
                }
                Sense::Question => {
                    let asker = here.or(self.last);
                    self.question(flow, inline, clause, here);
                    // What is asked before anything is said has to be known for what is said then.
                    unsettled.extend(self.last.filter(|_| asker.is_none()));
                    if asker.is_none() {
                        self.last = None;
                    }
                }
                Sense::Constraint => self.remark(flow, inline, clause, self.last.map(Some).unwrap_or(Some(usize::MAX))),
                Sense::Reference => self.reference(flow, inline, clause),
                Sense::Statement => self.remark(flow, inline, clause, here),
            }
        }
    }

    /// A list item: one step, with what else it says as remarks.
    pub(super) fn step_item(
        &mut self,
        block: &Block,
        flow: &Flow,
        inline: &Inline,
        link: Link,
        mark: Mark,
        ordered: bool,
    ) {
        let mut clauses = std::mem::take(&mut self.clauses);
        sentences::read(&flow.text, inline, &mut clauses);
        let begin = self.out.steps.len();
        let first = self.out.drafts.len();
        let boxed = self.has_box(block, inline);
        let tracked = mark != Mark::Open || boxed || roles::is_labelled(&flow.text);
        let mut here = None;
        for (n, clause) in clauses.iter().enumerate() {
            let text = &flow.text[clause.from..clause.to];
            let follows = clause.link != Link::Free && !tracked;
            if n == 0 {
                if !tracked && clause.stop != Stop::Question && self.folds(text, ordered) {
                    self.remark(flow, inline, clause, self.last.or(Some(usize::MAX)));
                    continue;
                }
                if !ordered && !tracked && self.refers(flow, inline, clause) {
                    self.reference(flow, inline, clause);
                    continue;
                }
                let own = if clause.link == Link::Free { link } else { clause.link };
                here = self.clause(flow, inline, clause, own, true);
                continue;
            }
            let branch = clause.otherwise || (starts_condition(text) && !tracked);
            let said = Said::new(text);
            match if clause.stop == Stop::Question { said.asks() } else { said.sense(here.is_none()) } {
                Sense::Question if here.is_some() => self.question(flow, inline, clause, here),
                Sense::Reference => self.reference(flow, inline, clause),
                Sense::Step if here.is_none() => here = self.clause(flow, inline, clause, link, true),
                Sense::Step | Sense::Statement if follows || branch => {
                    here = self
                        .clause(flow, inline, clause, if branch { Link::Tested } else { clause.link }, false)
                        .or(here);
                }
                Sense::Step | Sense::Statement | Sense::Constraint | Sense::Question => {
                    self.remark(flow, inline, clause, here);
                }
            }
        }
        self.clauses = clauses;
        // A box that says something wins over a word in brackets, and an empty one over a word behind a dash.
        let bare = boxed && !flow.text.ends_with([')', ']']);
        let ending = if bare { unasked::ending(&flow.text) } else { None };
        let loses = |draft: &Draft| mark != Mark::Open || ending == Some(draft.plan.mark);
        for draft in self.out.drafts[first..].iter_mut().filter(|draft| loses(draft)) {
            draft.plan.mark = mark;
        }
        if let Some(draft) = self.out.drafts.get_mut(first) {
            draft.plan.spans.push(crate::plan::Span {
                start: block.span.start,
                end: block.pieces.first().map_or(block.span.end, |piece| piece.start),
            });
            draft.at = block.span.start;
        } else {
            self.out.ignored.push(block.span);
        }
        self.gather(begin, link);
    }

    /// True for an item with an empty box, before its text or in it.
    fn has_box(&self, block: &Block, inline: &Inline) -> bool {
        let head = block.pieces.first().map_or(block.span.end, |piece| piece.start);
        // A few bytes stand before the text.
        let before = &self.source.as_bytes()[block.span.start..head];
        self.has_boxes && before.windows(3).any(|sign| sign == b"[ ]")
            || (self.has_boxes && inline.has(BRACKET) && holds(&self.source[block.span.start..block.span.end], "[ ]"))
    }

    /// Several steps from one item stand together in its place.
    fn gather(&mut self, begin: usize, link: Link) {
        let added = self.out.steps.len() - begin;
        if added < 2 {
            return;
        }
        let outer = match self.out.steps.get_mut(begin) {
            Some(Step::Task(_, own)) => std::mem::replace(own, Link::Free),
            Some(Step::Open(_) | Step::Close) | None => link,
        };
        self.wrap(begin, outer);
    }

    /// True for an item that only says where more is to be read on the one before it.
    fn refers(&self, flow: &Flow, inline: &Inline, clause: &Clause) -> bool {
        self.last.is_some()
            && Said::new(clause.text(flow)).sense(false) == Sense::Reference
            && !inline.attachments(&flow.text, clause.start, clause.end).is_empty()
    }

    /// True for an item that only limits the one before it.
    fn folds(&self, text: &str, ordered: bool) -> bool {
        if ordered {
            return self.last.is_some() && unasked::is_prohibition(text);
        }
        unasked::is_prohibition(text) || (self.last.is_some() && roles::is_constraint(text))
    }

    /// What a clause says of itself, and its condition.
    fn read(&self, flow: &Flow, inline: &Inline, clause: &Clause, item: bool) -> Read {
        let mut found = Meta::default();
        let begin = if item { meta::head(&mut found, &flow.text, inline, clause.from, clause.to) } else { clause.from };
        let start = begin + leading(&flow.text[begin..clause.to.max(begin)]);
        // "But first, run the tests": before what was said last.
        let first = after_word(&flow.text[start..clause.to.max(start)], "but first");
        let first = first.map(|rest| clause.to - rest.trim_start_matches([',', ' ']).len());
        let first = first.filter(|_| !item && !self.out.drafts.is_empty());
        let (start, begin) = (first.unwrap_or(start), first.unwrap_or(begin));
        let whole = Clause { from: start, ..*clause };
        let (part, tail) = self.condition_before_settings(&flow.text, inline, &whole);
        if part.condition.is_some() {
            let head = std::mem::take(&mut found);
            meta::extract_after(&mut found, &flow.text, inline, part.from, part.to);
            found.lead(head);
            if let Some(tail) = tail {
                found.end(meta::extract(&flow.text, inline, tail, clause.to, false));
            }
            self.wait_for_tested(&mut found, &part, flow, start);
        } else {
            meta::extract_after(&mut found, &flow.text, inline, begin, part.to);
        }
        let before = first.is_some() || (!item && self.last.is_some() && goes_first(clause, &flow.text));
        found.before.extend(before.then_some(Reference::Previous));
        Read { found, part, start }
    }

    /// One step; `None` when nothing of it can be seen.
    fn clause(&mut self, flow: &Flow, inline: &Inline, clause: &Clause, link: Link, item: bool) -> Option<usize> {
        let Read { mut found, part, start } = self.read(flow, inline, clause, item);
        found.locate(flow);
        if found.description.is_empty() && holds(&flow.text[clause.from..clause.end], "???") {
            found.description = "???".to_owned();
        }
        let polite = clause.stop == Stop::Question && Said::new(&found.description).asks() == Sense::Step;
        let code = match clause.stop {
            Stop::Question if !polite => commands::Found::default(),
            _ => {
                // "Then we run `make`"
                let told = told_step(&flow.text[part.from..part.to]).filter(|_| clause.link != Link::Free);
                let from = told.map_or(part.from.max(found.begin), |rest| part.to - rest.len());
                commands::command_in(&flow.text, inline, from, part.to, found.hidden)
            }
        };
        let command = code.command;
        self.out.odd.extend(code.missed.map(|(at, code)| built::not_taken((flow.source(at), code))));
        let shown: Cow<'_, str> = if clause.stop == Stop::Question {
            asked(&found.description, &flow.text[clause.to..clause.end]).into()
        } else {
            (&*found.description).into()
        };
        if !shown.chars().any(char::is_alphanumeric) && command.is_none() && !holds(&shown, "???") {
            self.remark_span(flow, clause);
            return None;
        }
        let kind = match &command {
            Some(_) => NodeKind::ToolCall,
            None if clause.stop == Stop::Question && !polite => NodeKind::Clarification,
            // What ends in a question mark here quotes a question, or is code.
            None if vocabulary::is_question_mark(&found.description) && !vocabulary::is_open(&found.description) => {
                vocabulary::kind(found.description.trim_end_matches(['?', '"', '\u{201d}']), None)
            }
            None => vocabulary::kind(&found.description, None),
        };
        // Only what is asked is shown otherwise than it is described.
        let shown = match shown {
            Cow::Owned(shown) if kind == NodeKind::Clarification => Some(shown),
            Cow::Owned(_) | Cow::Borrowed(_) => None,
        };
        let description = shown.unwrap_or_else(|| std::mem::take(&mut found.description));
        let asked = part.condition.as_ref().map(|one| one.text.as_str());
        let asked = asked.filter(|one| !item || part.from > start || part.link.is_some() || self.is_tested(one));
        let link = match part.link {
            Some(Link::Parallel) if !found.beside => Link::Parallel,
            Some(_) | None => self.place(link, &found, asked, clause.otherwise, item),
        };
        if part.condition.is_some() {
            self.condition.clone_from(&part.condition);
        }
        self.out.drafts.push(Draft::new(kind, description, flow.source(clause.from)));
        if let Some(draft) = self.out.drafts.last_mut() {
            draft.plan.command = command;
            draft.plan.attachments = inline.attachments(&flow.text, clause.start, clause.end);
            draft.plan.spans.extend(flow.span(clause.start, clause.end));
            draft.plan.condition = part.condition;
            draft.plan.mark = unasked::ending(&flow.text[part.from..part.to]).unwrap_or(Mark::Open);
            adopt(draft, &mut found);
        }
        Some(self.added(link))
    }

    fn question(&mut self, flow: &Flow, inline: &Inline, clause: &Clause, here: Option<usize>) {
        let link = if here.is_some() { Link::Free } else { clause.link };
        let steps = self.out.steps.len();
        let last = self.last;
        let Some(n) = self.clause(flow, inline, clause, link, false) else { return };
        if let Some(asker) = here.or(last) {
            // It stands outside the order of the steps around it.
            self.out.steps.truncate(steps);
            self.out.drafts[asker].questions.push(n);
            self.last = Some(asker);
        }
    }

    /// An item under a step that asks something about it.
    pub(super) fn ask(&mut self, asker: usize, block: &Block, flow: &Flow, inline: &Inline) {
        let (first, list) = (self.out.drafts.len(), self.out.drafts[asker].list);
        for clause in sentences::clauses(&flow.text, inline) {
            self.last = Some(asker);
            if clause.stop == Stop::Question {
                self.question(flow, inline, &clause, None);
            } else {
                self.remark(flow, inline, &clause, Some(asker));
            }
        }
        match self.out.drafts.get_mut(first) {
            Some(draft) => {
                draft.plan.spans.push(block.span);
                draft.list = list;
            }
            None => self.out.drafts[asker].plan.spans.push(block.span),
        }
    }

    /// A remark goes to a draft, waits for the next one (`usize::MAX`), or is context.
    fn remark(&mut self, flow: &Flow, inline: &Inline, clause: &Clause, to: Option<usize>) {
        let read = |plain: String| match clause.stop {
            Stop::Question => asked(&plain, &flow.text[clause.to..clause.end]),
            Stop::Plain | Stop::Colon => plain,
        };
        let note = || read(plain::plain(&flow.text, inline, clause.from, clause.to, &[]));
        let span = flow.span(clause.start, clause.end);
        match to {
            Some(n) if n < self.out.drafts.len() => {
                let draft = &mut self.out.drafts[n];
                let settings = meta::settings(&flow.text, inline, clause.from, clause.to);
                let mut found =
                    settings.unwrap_or_else(|| meta::extract(&flow.text, inline, clause.from, clause.to, false));
                found.locate(flow);
                draft.unread.append(&mut found.unread);
                if found.description.is_empty() {
                    adopt_more(draft, found);
                } else {
                    if only_orders(&found.description) {
                        merge_needs(draft, found.needs.take());
                        draft.before.append(&mut found.before);
                    }
                    draft.plan.notes.push(if found.shortened { note() } else { read(found.description) });
                }
                attach(&mut draft.plan.attachments, inline.attachments(&flow.text, clause.start, clause.end));
                draft.plan.spans.extend(span);
            }
            Some(_) => self.pending_notes.push((note(), span)),
            None => {
                self.out.context.push(note());
                self.out.ignored.extend(span);
                attach(&mut self.pending_attachments, inline.attachments(&flow.text, clause.start, clause.end));
            }
        }
    }

    fn remark_span(&mut self, flow: &Flow, clause: &Clause) {
        self.out.ignored.extend(flow.span(clause.start, clause.end));
    }

    /// "See also ...": its links belong to the task before it.
    fn reference(&mut self, flow: &Flow, inline: &Inline, clause: &Clause) {
        let found = inline.attachments(&flow.text, clause.start, clause.end);
        let Some(last) = self.last else { return self.remark(flow, inline, clause, None) };
        if found.is_empty() {
            return self.remark(flow, inline, clause, Some(last));
        }
        let plan = &mut self.out.drafts[last].plan;
        attach(&mut plan.attachments, found);
        plan.spans.extend(flow.span(clause.start, clause.end));
    }
}

/// Words that say when, beside those that name a task.
static ORDERS: Words = Words::new(|| {
    list(
        "it|this|that|they|these|must|should|has|have|to|needs|need|can|only|always|run|runs|be|done|happen|happens|come|\
         comes|start|starts|begin|begins|wait|waits|executed|made|the|step|task",
    )
});

/// True for "it must run after the build": a remark on nothing but the order.
fn only_orders(text: &str) -> bool {
    let ends = ["after", "before", "for", "until", "once"];
    for (n_words, word) in spelt_words(text).enumerate() {
        if ends.iter().any(|end| word.is(end)) {
            return n_words > 0;
        }
        if !ORDERS.contains_ci(word.as_str()) {
            return false;
        }
    }
    false
}

/// What a sentence that is nothing but metadata says of the task before it.
fn adopt_more(draft: &mut Draft, mut found: Meta) {
    merge_needs(draft, found.needs.take());
    draft.before.append(&mut found.before);
    let plan = &mut draft.plan;
    plan.priority = found.priority.take().or(plan.priority.take());
    plan.assignee = found.assignee.take().or(plan.assignee.take());
    found.set.give(plan);
}

/// A question with one question mark, of the script in which it is written.
fn asked(text: &str, end: &str) -> String {
    let mark = if end.contains('\u{ff1f}') { '\u{ff1f}' } else { '?' };
    let bare = text.trim_end_matches(['?', '\u{ff1f}', '!', '\u{ff01}', ' ']);
    let closed = bare.trim_end_matches(['"', ')', '*', '_', '\u{201d}']).ends_with(['?', '\u{ff1f}']);
    let closed = closed || (bare.ends_with(')') && bare.contains("? ("));
    if bare.is_empty() || closed { text.to_owned() } else { format!("{bare}{mark}") }
}

/// What a sentence before a step is to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// A step itself.
    None,
    /// What the step is for, in words that the step needs.
    Note,
    /// Nothing that the step does not say.
    Context,
}

fn opening(clause: &Clause, said: &Said, whole: &str, next: &Said, none_yet: bool) -> Opening {
    if none_yet && said.is_wish() && is_first(whole) {
        // "We need a report. First, ...": the first sentence only says what the others are for.
        return Opening::Context;
    }
    let told = || !said.is_wish() && (next.is_request() || next.begins_with_verb());
    let spelt = clause.link == Link::Free && said.speaks() && !letters::joined(whole, next.text);
    if spelt && (letters::spells_out(said, next) || (said.late_wish().is_some() && told())) {
        return Opening::Note;
    }
    if clause.link == Link::Free && letters::introduces(said, whole, next) {
        return Opening::Context;
    }
    Opening::None
}

/// What a clause of running text is.
fn sense_of(clause: &Clause, said: &Said, first: bool) -> Sense {
    if clause.stop == Stop::Question {
        return said.asks();
    }
    // "Additionally, it would be helpful to see the data": asked for, where it would only be a remark otherwise.
    let adds = clause.from > clause.start + 4 && letters::would_help(said.text);
    if adds || clause.link != Link::Free || clause.otherwise || roles::waits(said.text) || starts_condition(said.text) {
        return Sense::Step;
    }
    said.sense(first)
}

/// The same among other clauses: after the one before it, and where it may be the first step.
fn sense_in(
    flow: &Flow,
    inline: &Inline,
    clause: &Clause,
    said: &Said,
    (before, first): (Option<&Said>, bool),
) -> Sense {
    let lead = &flow.text[clause.start..clause.from];
    let signed = || has_byte(lead, b'\n') && before.is_some_and(|before| roles::closes(before.text));
    if signed() && roles::is_signature(said.text) {
        return Sense::Statement;
    }
    // "First, we clone it": one step of several, told as they are done.
    if is_first(lead) && told_step(said.text).is_some() {
        return Sense::Step;
    }
    let sense = sense_of(clause, said, first);
    if sense == Sense::Step && names_link(flow, inline, clause) { Sense::Reference } else { sense }
}

/// True for "Paper: https://example.com/a.pdf", which only says where something is.
fn names_link(flow: &Flow, inline: &Inline, clause: &Clause) -> bool {
    let text = clause.text(flow);
    let Some(colon) = find_early(text, b':', NAME_BYTES_MAX) else { return false };
    let (name, rest) = (&text[..colon], &text[colon + 1..]);
    let named = rest.starts_with(' ') && words(name).count() <= 3 && !vocabulary::begins_with_verb(name);
    if !named {
        return false;
    }
    let n_words = rest.split_whitespace().take(9).count();
    n_words > 0 && inline.attachments(&flow.text, clause.to - rest.len(), clause.end).len() == n_words
}

/// True when signs or a connector stand between a clause and what is before it.
fn connected(flow: &Flow, clause: &Clause) -> bool {
    let whole = &flow.text[clause.start..];
    clause.from != clause.start + (whole.len() - whole.trim_start().len())
}

/// Clauses and what they say, and where those begin that are only things, with what is to be done with them.
type Parted<'f> = (Vec<Clause>, Vec<Said<'f>>, Vec<(usize, &'f str)>);

/// Parts the clauses of a letter that ask for two things.
fn part_requests<'f>(flow: &'f Flow, inline: &Inline, clauses: Vec<Clause>, said: Vec<Said<'f>>) -> Parted<'f> {
    let mut parted = Vec::with_capacity(clauses.len());
    let mut parts = Vec::with_capacity(clauses.len());
    let mut things = Vec::new();
    for (clause, said) in clauses.into_iter().zip(said) {
        let asks = clause.stop == Stop::Question;
        let fits = if asks { said.is_request() } else { !starts_condition(said.text) };
        let fits = fits && !clause.otherwise && sense_of(&clause, &said, false) == Sense::Step;
        match letters::second_request(&flow.text, inline, clause.from, clause.to, asks).filter(|_| fits) {
            Some((at, verb)) => {
                if !verb.is_empty() {
                    things.push((at, verb));
                }
                let to = clause.from + flow.text[clause.from..at].trim_end_matches([' ', ',', '\n']).len();
                let skip = flow.text[at..clause.to].find(' ').map_or(0, |space| space + 1);
                let rest = Clause { start: at, from: at + skip, link: Link::Free, stop: Stop::Plain, ..clause };
                let first = Clause { end: at, to, stop: Stop::Plain, ..clause };
                parts.extend([Said::new(first.text(flow)), Said::new(rest.text(flow))]);
                parted.extend([first, rest]);
            }
            None => {
                parts.push(said);
                parted.push(clause);
            }
        }
    }
    (parted, parts, things)
}

fn leading(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

fn is_plain_step(clause: &Clause, said: &Said) -> bool {
    clause.stop != Stop::Question
        && said.begins_with_verb()
        && !roles::is_constraint(said.text)
        && !unasked::is_prohibition(said.text)
}

/// What follows "we" where that is an instruction.
fn told_step(text: &str) -> Option<&str> {
    let rest = after_any(text, &["we", "you", "i"])?.trim_start();
    vocabulary::begins_with_verb(rest).then_some(rest)
}

/// "Fix the crash first!" behind another step, which then waits for it.
fn goes_first(clause: &Clause, text: &str) -> bool {
    let said = &text[clause.from..clause.to];
    clause.link == Link::Free && said.ends_with(" first") && vocabulary::begins_with_verb(said)
}

fn is_first(text: &str) -> bool {
    let plain = text.trim_start();
    begins(plain, &["first", "firstly", "to start", "to begin", "initially"])
}
