//! List items: steps, groups of steps, and the remarks under them.

use std::borrow::Cow;
use std::rc::Rc;

use super::branches::starts_condition;
use super::build::{Builder, Open};
use super::built::{self, Name, Odd, attach, merge_needs};
use super::draft::Link;
use super::heads;
use super::inline::{AtomKind, Inline};
use super::lines::{Block, BlockKind};
use super::outline::{Place, Role};
use super::phrases::{Word, words};
use super::sections::{self, Section, Use};
use super::text::{Flow, is_white};
use super::{connectors, fields, meta, plain, roles, settings, vocabulary};
use crate::plan::{Mark, Span, TaskPlan};

impl<'a> Builder<'a> {
    pub(super) fn item(&mut self, n: usize, block: &Block<'a>, places: &[Place]) {
        let BlockKind::Item { marker, mark } = &block.kind else { return };
        let place = &places[n];
        let (flow, inline) = self.flow(block);
        if is_white(&flow.text)
            || inline.is_struck(&flow.text)
            || (place.role != Role::Group && self.ordering(&flow, &inline))
        {
            return self.out.ignored.push(block.span);
        }
        if place.role == Role::Note {
            return self.note_under(place, block, &flow, &inline);
        }
        self.given_up(place, block, &flow);
        let silent =
            place.parent.is_none() && self.marked_sections.binary_search(&self.section).is_ok() && !marker.is_ordered();
        if place.parent.is_none() && marker.is_ordered() && self.last.is_some() {
            self.ask_above(place.list, &flow);
        }
        self.enter(place.parent, place.list, silent);
        let parallel = self.open.iter().rev().find_map(|open| match open {
            Open::Group { parallel, .. } => Some(*parallel),
            Open::List(..) | Open::Section { .. } => None,
        });
        let ordered = (marker.is_ordered() || self.marked_lists.binary_search(&place.list).is_ok() || silent)
            && !(place.parent.is_some() && parallel == Some(true))
            && !(place.parent.is_none() && self.lead.as_deref().is_some_and(is_unordered));
        let link = if ordered { Link::Next } else { Link::Free };
        if place.role == Role::Group {
            return self.open_group(n, block, &flow, &inline, (place.list, marker.number().cloned()), link);
        }
        let before = self.out.drafts.len();
        let follow = match place.role {
            Role::Tested => Some(Link::Tested),
            Role::Lead => Some(Link::Then),
            Role::Task | Role::Group | Role::Note => None,
        };
        if follow.is_some() {
            self.push(
                Open::Group {
                    block: n,
                    title: String::new(),
                    names: 0..0,
                    parallel: false,
                    follow,
                    own: None,
                    priority: None,
                    assignee: None,
                    needs: Rc::from([]),
                },
                link,
            );
        }
        let own = if follow.is_some() { Link::Free } else { link };
        self.step_item(block, &flow, &inline, own, mark.unwrap_or(Mark::Open), marker.is_ordered());
        self.underlined(before, block);
        if let (Role::Lead, last, Some(Open::Group { own, .. })) = (place.role, self.last, self.open.last_mut()) {
            *own = last;
        }
        let said = self.out.drafts.get(before).and_then(|draft| draft.plan.condition.clone());
        if let Some(condition) = said.filter(|_| follow.is_some()) {
            // What follows a step that may not be done is not done without it.
            self.branches.push(heads::Branch { depth: self.open.len(), own: condition, outer: None });
        }
        self.name(before, place.list, marker.number());
        let code = inline.is_only(&flow.text, |kind| matches!(kind, AtomKind::Code));
        self.lend(before, code);
        self.spare = Some(inline);
    }

    /// A line below the words that makes a heading of them belongs to the task that the heading is.
    fn underlined(&mut self, n: usize, block: &Block) {
        let Some(words) = block.pieces.last().filter(|words| words.end < block.span.end) else { return };
        let line = Span { start: words.end, end: block.span.end };
        match self.out.drafts.get_mut(n) {
            Some(draft) => draft.plan.spans.push(line),
            None => self.out.ignored.push(line),
        }
    }

    /// Says of the drafts of an item in which list they stand, for what its groups wait, and what its number names.
    fn name(&mut self, before: usize, list: usize, number: Option<&Cow<'a, str>>) {
        let inherited = self.open.iter().filter_map(|open| match open {
            Open::Group { needs, .. } if !needs.is_empty() => Some(needs.clone()),
            Open::Group { .. } | Open::List(..) | Open::Section { .. } => None,
        });
        let inherited: Vec<_> = inherited.collect();
        for draft in &mut self.out.drafts[before..] {
            draft.list = Some(list);
            draft.inherited.clone_from(&inherited);
        }
        if let Some(number) = number {
            // An item that became a remark is the step that it is said of.
            let end = self.out.drafts.len();
            let first = if before < end { before } else { before.saturating_sub(1) };
            let name = Name { text: number.clone(), list: Some(list), first, end };
            self.out.names.push(name);
        }
    }

    /// What the first step of a list asks is known from what stands before the list.
    fn ask_above(&mut self, list: usize, flow: &Flow) {
        let is_open = |open: &Open| matches!(open, Open::List(own, _) if *own == list);
        if starts_condition(&flow.text) && !self.open.iter().any(is_open) {
            self.lead_link = self.lead_link.or(Some(Link::Tested));
        }
    }

    /// What stands above lends its name and its verb; code alone has no verb of its own.
    fn lend(&mut self, first: usize, code: bool) {
        let parent = self.open.iter().rev().find_map(|open| match open {
            Open::Group { title, .. } => Some(title.as_str()).filter(|title| !title.is_empty()),
            Open::List(..) | Open::Section { .. } => None,
        });
        let lent = self.open.iter().rev().filter_map(|open| match open {
            Open::Group { priority, assignee, .. } => Some((priority, assignee)),
            Open::List(..) | Open::Section { .. } => None,
        });
        let priority = lent.clone().map(|(priority, _)| priority).find(|one| one.is_some()).unwrap_or(&self.priority);
        let assignee = lent.map(|(_, assignee)| assignee).find(|one| one.is_some());
        let lead = self.lead.as_deref();
        let verb = parent.or(lead);
        let group = parent.or_else(|| lead.filter(|lead| is_title(lead))).or(self.group.as_deref());
        for draft in &mut self.out.drafts[first..] {
            let plan = &mut draft.plan;
            if let Some(verb) = verb {
                lend_verb(plan, verb, code);
            }
            plan.group = group.and_then(group_name).or(plan.group.take());
            if plan.priority.is_none() {
                plan.priority.clone_from(priority);
            }
            if plan.assignee.is_none()
                && let Some(assignee) = assignee
            {
                plan.assignee.clone_from(assignee);
            }
        }
    }

    pub(super) fn open_group(
        &mut self,
        n: usize,
        block: &Block,
        flow: &Flow,
        inline: &Inline,
        number: (usize, Option<Cow<'a, str>>),
        link: Link,
    ) {
        let mut found = meta::extract(&flow.text, inline, 0, flow.text.len(), true);
        found.locate(flow);
        self.out.odd.extend(std::mem::take(&mut found.unread).into_iter().map(built::unread));
        self.out.ignored.push(block.span);
        let first = self.out.drafts.len();
        let begin = self.out.names.len();
        let (list, number) = number;
        self.out.names.extend(number.map(|text| Name { text, list: Some(list), first, end: first }));
        self.out.names.extend(found.label.map(|text| Name { text: text.into(), list: None, first, end: first }));
        let names = begin..self.out.names.len();
        let colon = flow.text.trim_end().ends_with([':', '\u{ff1a}']);
        let named = !found.description.is_empty();
        let title = if colon && named { format!("{}:", found.description) } else { found.description };
        let link = match sections::section(&title) {
            _ if found.beside => Link::Beside,
            _ if found.alongside && link == Link::Next => Link::Parallel,
            Section::Phase => Link::Phase,
            // Written dependencies replace the order of the list.
            _ if found.needs.as_ref().is_some_and(|needs| !needs.is_empty()) && link == Link::Next => Link::Anew,
            Section::Tasks | Section::Never | Section::Context | Section::Plain => link,
        };
        let branch = self.branch_in(flow, inline, link).or_else(|| self.branch_of(&title, link));
        let (condition, link) = branch.map_or((None, link), |(condition, link)| (Some(condition), link));
        let needs = found.needs.unwrap_or_default().into();
        let (priority, assignee) = (found.priority, found.assignee);
        let parallel = found.parallel && !found.alongside;
        self.push(
            Open::Group { block: n, title, names, parallel, follow: None, own: None, priority, assignee, needs },
            link,
        );
        if let Some(condition) = condition {
            self.begin_branch(condition);
        }
        self.last = None;
    }

    /// Says where a level of a list is in no task.
    fn given_up(&mut self, place: &Place, block: &Block, flow: &Flow) {
        let at = block.span.start;
        if place.unnamed {
            let title: String = flow.text.trim().chars().take(60).collect();
            let message = format!("\"{title}\" holds only other groups, so no task has its name");
            self.out.odd.push(Odd { at, message, help: "write it as a heading, or give it a task of its own".into() });
        }
        if place.flat {
            let message = "this item stands too deep and is read as one of the list above it".to_owned();
            self.out.odd.push(Odd { at, message, help: "indent it less".into() });
        }
    }

    /// A remark among the steps that follow an item belongs to the item.
    fn note_under(&mut self, place: &Place, block: &Block, flow: &Flow, inline: &Inline) {
        let above = self.open.iter().rev().find_map(|open| match open {
            Open::Group { block, own, .. } if Some(*block) == place.parent => *own,
            Open::Group { .. } | Open::List(..) | Open::Section { .. } => None,
        });
        let last = self.last;
        self.last = above.or(last);
        match self.last.filter(|_| vocabulary::is_question_mark(&flow.text) && !vocabulary::is_request(&flow.text)) {
            Some(asker) => self.ask(asker, block, flow, inline),
            None => self.note(block, flow, inline),
        }
        self.last = last;
    }

    /// A remark under an item.
    pub(super) fn note(&mut self, block: &Block, flow: &Flow, inline: &Inline) {
        let Some(last) = self.last else { return self.context(block, Use::Tasks) };
        let mut found = meta::extract(&flow.text, inline, 0, flow.text.len(), false);
        found.locate(flow);
        let attachments = inline.attachments(&flow.text, 0, flow.text.len());
        let draft = &mut self.out.drafts[last];
        attach(&mut draft.plan.attachments, attachments);
        draft.plan.spans.push(block.span);
        let field = fields::apply(draft, &flow.text, flow.source(0));
        if !field {
            if settings::looks_like_setting(flow.text.trim()) {
                self.out.odd.push(built::unread((flow.source(0), flow.text.trim().to_owned())));
            }
            merge_needs(draft, found.needs.filter(|_| found.description.is_empty()));
            let text = plain::plain(&flow.text, inline, 0, flow.text.len(), &[]);
            draft.plan.notes.push(text);
        }
    }

    pub(super) fn lend_plainly(&mut self, first: usize) {
        for draft in &mut self.out.drafts[first..] {
            draft.plan.group = self.group.as_deref().and_then(group_name).or(draft.plan.group.take());
            if draft.plan.priority.is_none() {
                draft.plan.priority.clone_from(&self.priority);
            }
        }
    }
}

/// The name of a group: its text without the colon, if anything is left.
fn group_name(title: &str) -> Option<String> {
    let name = title.trim_end_matches([':', '\u{ff1a}', ' ']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// "In parallel:", "Do these in any order:" above a list.
fn is_unordered(lead: &str) -> bool {
    let lead = lead.trim_end_matches([':', ' ']);
    connectors::connection(lead) == Some(Link::Parallel)
        || ["in parallel", "in any order", "at the same time", "simultaneously"].iter().any(|end| lead.ends_with(end))
}

/// "Backend:" above a list names it; "Please do the following:" and "Refactor utils.py:" do not.
fn is_title(lead: &str) -> bool {
    let says =
        |word: Word| matches!(word.as_str(), "following" | "steps" | "tasks" | "items" | "list" | "below" | "do");
    let short = lead.starts_with(char::is_uppercase) && words(lead).nth(3).is_none() && !words(lead).any(says);
    short
        && (words(lead).nth(1).is_none() || !vocabulary::begins_with_verb(lead))
        && connectors::connector(lead).is_none()
        && connectors::connection(lead).is_none()
        && !roles::states(lead)
        && !vocabulary::is_request(lead)
}

/// Gives a child the verb of its group: "Write tests for:" and "the parser".
fn lend_verb(plan: &mut TaskPlan, title: &str, code: bool) {
    let acts = || {
        vocabulary::own_kind(&plan.description).is_some()
            || (vocabulary::begins_with_verb(&plan.description) && !vocabulary::is_route(&plan.description))
    };
    if plan.command.is_some() || (!code && acts()) {
        return;
    }
    let (Some(kind), Some(name)) = (vocabulary::own_kind(title), group_name(title)) else { return };
    plan.kind = kind;
    let last = name.rsplit(' ').next().unwrap_or("").to_lowercase();
    let hangs = matches!(last.as_str(), "for" | "of" | "to" | "in" | "with" | "from" | "on" | "the" | "and" | "about")
        || !name.contains(' ');
    if hangs {
        plan.description = format!("{name} {}", plan.description);
    }
}
