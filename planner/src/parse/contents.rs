//! What belongs to each step: its notes, its command, its kind; and what belongs to none.

use std::collections::HashMap;

use super::blocks::{Block, Inline, Kind};
use super::commands::{Around, Fence, Verdict, judge, sentences};
use super::line;
use super::steps::{Finder, Marker};
use super::tree::{CodeUse, Format, Part, Reference, Tree};
use super::words::{DEPENDS, NEXT, POLITE, SHELLS, after_any, first_word, kind_of};
use crate::paths::{file_ref, is_image, word_length};
use crate::plan::{Attachment, AttachmentKind, Mark, NodeKind};

/// Attachments of one line; further ones stay text.
const ATTACHMENTS_MAX: usize = 100;

/// Gives every step its contents.
pub(super) fn finish(finder: Finder<'_>) -> Tree {
    let mut sorter = Sorter { finder, told: HashMap::new() };
    for node in 0..sorter.finder.drafts.len() {
        sorter.take(node);
    }
    sorter.loose();
    sorter.sections();
    sorter.waves();
    let Finder { mut tree, lost, blocks, .. } = sorter.finder;
    tree.lost = lost.into_iter().map(|place| blocks[place].span).collect();
    for (warning, n_more) in sorter.told.into_values().filter(|(_, n_more)| *n_more > 0) {
        tree.warnings[warning].message.push_str(&format!(" (and {n_more} more below this heading)"));
    }
    tree
}

struct Sorter<'a> {
    finder: Finder<'a>,
    /// By section and sort of warning: its place, and how many others it stands for.
    told: HashMap<(usize, &'static str), (usize, usize)>,
}

impl Sorter<'_> {
    /// Warns once for a section.
    fn warn(&mut self, section: usize, sort: &'static str, at: usize, message: String, help: &str) {
        let place = self.finder.tree.warnings.len();
        match self.told.entry((section, sort)) {
            std::collections::hash_map::Entry::Occupied(mut told) => told.get_mut().1 += 1,
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert((place, 0));
                self.finder.tree.warn(at, message, help);
            }
        }
    }

    fn take(&mut self, node: usize) {
        let blocks = self.finder.blocks;
        let draft = &mut self.finder.drafts[node];
        let (below, line, section) = (std::mem::take(&mut draft.below), draft.line.clone(), draft.section);
        let is_group = self.finder.tree.nodes[node].is_group;
        let of_line = draft.span.or(draft.block.map(|block| blocks[block].span));
        let command_line = draft.command.take();
        let mut spans = of_line.into_iter().collect::<Vec<_>>();
        if self.finder.tree.nodes[node].is_heading {
            spans.clear();
        }
        spans.extend(below.iter().map(|place| blocks[*place].span));
        spans.sort_unstable();
        let command = self.judge(node, command_line.as_ref().unwrap_or(&line), &below);
        for place in &below {
            self.note(
                node,
                &blocks[*place],
                command.as_ref().is_some_and(|(_, block)| *block == Some(*place)),
                section,
            );
        }
        let made = &mut self.finder.tree.nodes[node];
        made.task.description = line.text.trim().trim_end_matches([':', ' ']).to_owned();
        made.task.spans = spans;
        made.task.command = command.map(|(command, _)| command).filter(|_| !is_group);
        if made.task.kind != NodeKind::Clarification {
            made.task.kind = kind_by_words(&line, made.task.command.is_some());
        } else {
            made.task.description = line.text.trim().to_owned();
        }
        if is_group && made.task.mark == Mark::Done {
            let (at, help) = (made.at, "clear the box of the group, or tick its parts");
            let parts = self.finder.tree.nodes.iter().filter(|part| part.parent == Some(node));
            if parts.clone().any(|part| {
                !part.is_group && !part.task.optional && matches!(part.task.mark, Mark::Open | Mark::InProgress)
            }) {
                self.warn(section, "done", at, "this group is done, and parts of it are open".to_owned(), help);
            }
        }
        let made = &mut self.finder.tree.nodes[node];
        if is_group {
            self.finder.tree.parts.extend(made.task.spans.iter().map(|span| (*span, Part::Context)));
            let context = std::mem::take(&mut made.task.notes);
            self.finder.tree.context.extend(context);
        }
    }

    /// Why no code of a step runs.
    fn barred(&self, node: usize, below: &[usize]) -> Option<&'static str> {
        let Finder { blocks, drafts, tree, sections, .. } = &self.finder;
        let (made, draft) = (&tree.nodes[node], &drafts[node]);
        let is_out = draft
            .section
            .checked_sub(1)
            .is_some_and(|section| sections[section].is_out || sections[section].has_no_commands);
        let ended = match made.task.mark {
            Mark::Done => Some("its step is done"),
            Mark::Cancelled => Some("its step was given up"),
            Mark::Open | Mark::InProgress | Mark::Deferred => None,
        };
        ended
            .or(made.is_group.then_some("its step has parts"))
            .or((made.task.kind == NodeKind::Clarification).then_some("its step is a question"))
            .or(is_out.then_some("its section has no commands"))
            .or(below
                .iter()
                .any(|place| says_over(&blocks[*place].inline.text))
                .then_some("a note says that it is over"))
            .or(self.finder.doubtful.contains(&draft.section).then_some("not every sentence around it is a step"))
    }

    /// The command of a step, and its fence if it is one; warnings for code that does not run.
    fn judge(&mut self, node: usize, line: &Inline, below: &[usize]) -> Option<(String, Option<usize>)> {
        let Finder { blocks, drafts, tree, .. } = &self.finder;
        let is_fence = |place: &usize| matches!(blocks[*place].kind, Kind::Fence { .. });
        if line.codes.is_empty() && !below.iter().any(is_fence) {
            return None;
        }
        let made = &tree.nodes[node];
        let draft = &drafts[node];
        let barred = self.barred(node, below);
        let mut leads = draft.lead.map(|lead| &blocks[lead].inline).into_iter().collect::<Vec<_>>();
        let raw = below.iter().map(|place| &blocks[*place]).filter(|block| block.kind == Kind::Other);
        let raw = raw.map(|block| Inline::plain(&self.finder.text[block.span.start..block.span.end], block.span.start));
        let raw = raw.collect::<Vec<_>>();
        let mut others = below.iter().map(|place| &blocks[*place].inline).chain(&raw).collect::<Vec<_>>();
        let mut parent = made.parent;
        while let Some(above) = parent {
            let line = &drafts[above].line;
            let list = if line.text.trim_end().ends_with(':') && !tree.nodes[above].is_heading {
                &mut leads
            } else {
                &mut others
            };
            list.push(line);
            parent = tree.nodes[above].parent;
        }
        let places =
            below.iter().copied().filter(|place| matches!(blocks[*place].kind, Kind::Fence { .. })).collect::<Vec<_>>();
        let last = below.iter().rev().find(|place| blocks[**place].kind != Kind::Rule);
        let fences = places.iter().filter_map(|place| {
            let Kind::Fence { language, code } = &blocks[*place].kind else { return None };
            let before = below.iter().rev().find(|other| **other < *place).map(|other| &blocks[*other]);
            let before = before.filter(|block| matches!(block.kind, Kind::Paragraph | Kind::Item(_)));
            Some(Fence { language, code, before: before.map(|block| &block.inline), is_last: last == Some(place) })
        });
        let fences = fences.collect::<Vec<_>>();
        let (has_box, has_number) = (made.state.is_some(), self.finder.marker == Marker::Number);
        let is_strong = has_box || has_number;
        let (of_text, of_fences) =
            judge(line, &fences, &Around { barred, is_strong, has_box, leads: &leads, others: &others });
        let of_text = line.codes.iter().zip(of_text).map(|(code, verdict)| (line.at(code.range.start), None, verdict));
        let of_fences =
            places.iter().zip(of_fences).map(|(place, verdict)| (blocks[*place].span.start, Some(*place), verdict));
        let verdicts = of_text.chain(of_fences).collect::<Vec<_>>();
        let section = draft.section;
        let mut command = None;
        let runs = verdicts.iter().any(|(_, _, verdict)| matches!(verdict, Verdict::Runs { .. }));
        let is_over =
            matches!(made.task.mark, Mark::Done | Mark::Cancelled) || made.task.kind == NodeKind::Clarification;
        for (at, place, verdict) in verdicts {
            self.finder.tree.codes.push((Some(node), CodeUse::of(at, &verdict)));
            match verdict {
                Verdict::Runs { command: found, .. } => command = Some((found, place)),
                Verdict::Withheld { .. } if is_over => {}
                Verdict::Withheld { reason, help } => {
                    self.warn(section, "withheld", at, format!("this code does not run: {reason}"), help);
                }
                Verdict::Mentioned if !runs && !is_over => {
                    let help = "if it is a command, write: Run `...`, or put it into a fence marked sh";
                    self.warn(section, "mentioned", at, "this code is text and does not run".to_owned(), help);
                }
                Verdict::Mentioned | Verdict::Text => {}
            }
        }
        command
    }

    /// A block below a step.
    fn note(&mut self, node: usize, block: &Block, is_command: bool, section: usize) {
        let made = &mut self.finder.tree.nodes[node];
        if is_command || block.kind == Kind::Rule {
            return;
        }
        let text = match &block.kind {
            Kind::Paragraph | Kind::Item(_) => block.inline.text.trim().to_owned(),
            Kind::Heading(_) | Kind::Fence { .. } | Kind::Other | Kind::Rule | Kind::Table(_) => {
                self.finder.text[block.span.start..block.span.end].trim().to_owned()
            }
        };
        if let Some(waits_for) = dependency_line(&block.inline, &self.finder.headings) {
            made.waits_for.extend(waits_for);
            return;
        }
        if !text.is_empty() {
            made.task.notes.push(text);
        }
        let known = attachments(&block.inline)
            .into_iter()
            .filter(|one| !made.task.attachments.contains(one))
            .collect::<Vec<_>>();
        made.task.attachments.extend(known);
        let is_over = made.task.mark == Mark::Done;
        if block.inline.codes.is_empty() {
            return;
        }
        let (verdicts, _) = judge(&block.inline, &[], &Around { barred: Some("it is in a note"), ..Around::default() });
        for (code, verdict) in block.inline.codes.iter().zip(verdicts) {
            let at = block.inline.at(code.range.start);
            self.finder.tree.codes.push((Some(node), CodeUse::of(at, &verdict)));
            if let (Verdict::Withheld { .. }, false) = (verdict, is_over) {
                let help = "to run it, make it a step of its own";
                self.warn(section, "note", at, "this code does not run: it is in a note".to_owned(), help);
            }
        }
    }

    /// Text in no step is context; lists and fences in none are told.
    fn loose(&mut self) {
        let (blocks, marker) = (self.finder.blocks, self.finder.marker);
        for (place, section) in std::mem::take(&mut self.finder.loose) {
            let block = &blocks[place];
            let has_steps = section.is_none_or(|section| self.finder.sections[section].has_steps);
            if !has_steps {
                self.finder.tree.parts.push((block.span, Part::LeftOut));
                continue;
            }
            self.finder.tree.parts.push((block.span, Part::Context));
            let number = section.map_or(0, |section| section + 1);
            let text = self.finder.text[block.span.start..block.span.end].trim();
            match &block.kind {
                Kind::Paragraph | Kind::Item(_) => self.finder.tree.context.push(block.inline.text.trim().to_owned()),
                Kind::Heading(_) | Kind::Fence { .. } | Kind::Other | Kind::Rule | Kind::Table(_) => {
                    self.finder.tree.context.push(text.to_owned());
                }
            }
            match &block.kind {
                Kind::Item(_) => {
                    let message = format!("this item is no step, since the file has {}", marker.plural());
                    self.warn(number, "item", block.span.start, message, marker.remedy());
                }
                Kind::Fence { language, .. } if is_shell(language) || language.is_empty() => {
                    let message = "this fence is below no step and does not run".to_owned();
                    self.warn(number, "fence", block.span.start, message, "indent it below its step");
                }
                Kind::Heading(_) | Kind::Fence { .. } | Kind::Paragraph | Kind::Other | Kind::Rule | Kind::Table(_) => {
                }
            }
        }
    }

    /// Sections without steps, told once with all that is in them.
    fn sections(&mut self) {
        let sections = &self.finder.sections;
        let mut told = Vec::new();
        for section in sections.iter().filter(|section| !section.has_steps) {
            let around = section.parent.map(|parent| &sections[parent]);
            if around.is_none_or(|around| around.has_steps) {
                told.push((self.finder.blocks[section.block].span.start, section.is_out));
            }
        }
        for (at, is_out) in told {
            let help = match is_out {
                true => "rename the heading if the section has steps",
                false => "write its steps as the other steps are marked",
            };
            self.finder.tree.warn(at, "this section has no steps and is left out", help);
        }
    }

    /// Kiro's waves, in a fence of JSON.
    fn waves(&mut self) {
        #[derive(serde::Deserialize)]
        struct Graph {
            waves: Vec<Wave>,
        }
        #[derive(serde::Deserialize)]
        struct Wave {
            tasks: Vec<String>,
        }
        if self.finder.format != Format::Kiro {
            return;
        }
        for block in self.finder.blocks {
            let Kind::Fence { language, code } = &block.kind else { continue };
            if language == "json"
                && let Ok(Graph { waves }) = serde_json::from_str(code)
            {
                let at = block.span.start;
                let named = |wave: Wave| wave.tasks.into_iter().map(|name| Reference { name, at }).collect();
                self.finder.tree.waves = waves.into_iter().map(named).collect();
            }
        }
    }
}

/// A note that begins with the state of an ended step.
fn says_over(note: &str) -> bool {
    let note = after_any(note.trim(), &["status:", "status"]).unwrap_or(note).trim_start_matches([':', ' ']);
    after_any(note, &["done", "completed", "skipped", "cancelled"]).is_some()
}

/// `Depends on: 2.1` as a line of its own.
pub(super) fn dependency_line(inline: &Inline, headings: &std::collections::HashSet<String>) -> Option<Vec<Reference>> {
    let text = inline.text.trim();
    let rest = after_any(text, &DEPENDS)?;
    let list = rest.trim_start().strip_prefix(':')?;
    line::names(list, inline.at(inline.text.len() - list.len()), headings)
}

/// True of the languages of shells.
pub(super) fn is_shell(language: &str) -> bool {
    SHELLS.contains(&language.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase().as_str())
}

/// The place at which a question begins that follows what it asks about in the same line.
pub(super) fn trailing_question(inline: &Inline) -> Option<usize> {
    let masked = inline.masked();
    let is_question = |part: &str| part.trim_end().ends_with('?');
    if !is_question(&masked) {
        return None;
    }
    let sentences = sentences(&masked);
    let first = sentences.iter().position(|sentence| is_question(&masked[sentence.clone()]))?;
    (first > 0).then(|| sentences[first].start)
}

/// True of a step that asks a person.
pub(super) fn is_question(text: &str) -> bool {
    let text = text.trim_end();
    text.ends_with(['?', '\u{ff1f}']) || text.ends_with("TBD")
}

/// A step's kind by the verb that it begins with.
fn kind_by_words(line: &Inline, has_command: bool) -> NodeKind {
    if has_command {
        return NodeKind::ToolCall;
    }
    let verb = first_word(verb_of(&line.text));
    let kind = kind_of(&verb).unwrap_or(NodeKind::Processing);
    let mut words = line.text.split(|c: char| !c.is_alphanumeric()).skip(1);
    let is_about_tests = words.any(|word| word.eq_ignore_ascii_case("test") || word.eq_ignore_ascii_case("tests"));
    let writes = matches!(kind, NodeKind::CodeImplementation)
        || matches!(verb.as_str(), "write" | "define" | "extend" | "update");
    if is_about_tests && writes { NodeKind::UnitTest } else { kind }
}

/// A text from its verb on.
pub(super) fn verb_of(text: &str) -> &str {
    let mut rest = text.trim_start();
    for _ in 0..4 {
        let label = rest.strip_prefix('[').and_then(|inside| inside.split_once(']')).map(|(_, after)| after);
        let Some(after) = label.or_else(|| after_any(rest, &NEXT)).or_else(|| after_any(rest, &POLITE)) else { break };
        rest = after.trim_start_matches([',', ':', ' ']);
    }
    // `Name: verb ...` says whose step it is.
    match rest.split_once(": ") {
        Some((name, after)) if name.split_whitespace().count() <= 2 && kind_of(&name.to_lowercase()).is_none() => after,
        Some(_) | None => rest,
    }
}

/// What a text refers to: links, images, paths; in its order, each once.
pub(super) fn attachments(inline: &Inline) -> Vec<Attachment> {
    let mut found: Vec<(usize, Attachment)> = Vec::new();
    let mut add = |at: usize, kind: AttachmentKind, label: Option<String>| {
        if found.len() < ATTACHMENTS_MAX && !found.iter().any(|(_, known)| known.kind == kind) {
            found.push((at, Attachment { kind, label }));
        }
    };
    for link in &inline.links {
        let label = Some(inline.text[link.range.clone()].trim().to_owned())
            .filter(|label| !label.is_empty() && *label != link.url);
        let kind = match (link.is_image, link.url.contains("://") || link.url.starts_with("mailto:")) {
            (true, _) => AttachmentKind::ImageRef(link.url.clone()),
            (false, true) => AttachmentKind::Link(link.url.clone()),
            (false, false) if link.url.starts_with('#') => continue,
            (false, false) => AttachmentKind::FileRef(link.url.clone()),
        };
        add(link.range.start, kind, label);
    }
    let text = &inline.text;
    let mut from = 0;
    let is_linked = |at: usize| {
        let after = inline.links.partition_point(|link| link.range.end <= at);
        inline.links.get(after).is_some_and(|link| link.range.contains(&at))
    };
    while let Some(start) =
        text[from..].find(|c: char| !(c.is_whitespace() || matches!(c, '`' | '(' | '"' | '\'' | '[' | ',')))
    {
        let at = from + start;
        let rest = &text[at..];
        if rest.starts_with("http://") || rest.starts_with("https://") {
            let end =
                rest.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`')).unwrap_or(rest.len());
            let url = rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '\'', '*']);
            if !is_linked(at) {
                add(at, AttachmentKind::Link(url.to_owned()), None);
            }
            from = at + end;
            continue;
        }
        let length = word_length(rest);
        if length == 0 {
            from = at + rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let word = rest[..length].trim_end_matches(['.', ':', '?', '!']);
        if let Some(path) = file_ref(word).filter(|_| !is_linked(at)) {
            let kind = if is_image(path) {
                AttachmentKind::ImageRef(path.to_owned())
            } else {
                AttachmentKind::FileRef(path.to_owned())
            };
            add(at, kind, None);
        }
        from = at + length;
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, attachment)| attachment).collect()
}

/// The attachments of a plain text.
pub(crate) fn attachments_of(text: &str) -> Vec<Attachment> {
    let blocks = super::blocks::blocks(text);
    let mut found: Vec<Attachment> = Vec::new();
    for attachment in blocks.iter().flat_map(|block| attachments(&block.inline)) {
        if !found.contains(&attachment) {
            found.push(attachment);
        }
    }
    found
}
