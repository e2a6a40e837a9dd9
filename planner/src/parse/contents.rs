//! What belongs to each step: its notes, its command, its kind; and what belongs to none.

use std::collections::{HashMap, HashSet};

use super::blocks::{Block, Inline, Kind};
use super::commands::{Around, Fence, Verdict, judge, sentences};
use super::line;
use super::steps::{Finder, Marker, Section};
use super::tree::{CodeUse, Format, Node, Part, Reference, Tree, When};
use super::words::{DEPENDS, NEVER, NEXT, POLITE, SHELLS, after_any, find_word, first_word, is_one_of, kind_of};
use crate::paths::attachments;
use crate::plan::{Mark, NodeKind, Span};

/// Gives every step its contents.
pub(super) fn finish(finder: Finder<'_>) -> Tree {
    let is_open =
        |part: &&Node| !part.is_group && !part.task.optional && matches!(part.task.mark, Mark::Open | Mark::InProgress);
    let has_open_parts = finder.tree.nodes.iter().filter(is_open).filter_map(|part| part.parent).collect();
    let mut sorter = Sorter { finder, has_open_parts, told: HashMap::new() };
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
    /// The groups that have open parts of their own.
    has_open_parts: HashSet<usize>,
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
        let (below, section) = (std::mem::take(&mut draft.below), draft.section);
        let (line, command_line) = (std::mem::take(&mut draft.line), draft.command.take());
        let of_line = draft.span.or(draft.block.map(|block| blocks[block].span));
        let made = &self.finder.tree.nodes[node];
        let mut spans = of_line.filter(|_| !made.is_heading).into_iter().collect::<Vec<_>>();
        spans.extend(below.iter().map(|place| blocks[*place].span));
        spans.sort_unstable();
        // The text of a row may deny the command in another cell of it.
        let row = command_line.is_some().then_some(&line);
        let command = self.judge(node, command_line.as_ref().unwrap_or(&line), row, &below);
        let fence = command.as_ref().and_then(|(_, fence)| *fence);
        for place in below.iter().filter(|place| fence != Some(**place)) {
            self.note(node, &blocks[*place], section);
        }
        let made = &mut self.finder.tree.nodes[node];
        made.task.spans = spans;
        if let Some((command, Some(_))) = &command {
            attach(made, &Inline::plain(command, 0));
        }
        made.task.command = command.map(|(command, _)| command);
        let text = line.text.trim();
        if made.task.kind == NodeKind::Clarification {
            made.task.description = text.to_owned();
        } else {
            made.task.description = text.trim_end_matches([':', ' ']).to_owned();
            made.task.kind = kind_by_words(&line, made.task.command.is_some());
        }
        self.finder.drafts[node].line = line;
        if made.is_group {
            self.group(node, section);
        }
    }

    /// A group has no notes: what is below it is context.
    fn group(&mut self, node: usize, section: usize) {
        let Tree { nodes, parts, context, .. } = &mut self.finder.tree;
        let made = &mut nodes[node];
        parts.extend(made.task.spans.iter().map(|span| (*span, Part::Context)));
        let notes = std::mem::take(&mut made.task.notes);
        context.extend(notes.into_iter().map(|note| format!("{}: {note}", made.task.description)));
        let (at, is_done) = (made.at, made.task.mark == Mark::Done);
        if is_done && self.has_open_parts.contains(&node) {
            let help = "clear the box of the group, or tick its parts";
            self.warn(section, "done", at, "this group is done, and parts of it are open".to_owned(), help);
        }
    }

    /// Why no code of a step runs.
    fn barred(&self, node: usize, line: &Inline, below: &[usize]) -> Option<&'static str> {
        let Finder { blocks, drafts, tree, sections, .. } = &self.finder;
        let (made, draft) = (&tree.nodes[node], &drafts[node]);
        let section = draft.section.checked_sub(1).map(|section| &sections[section]);
        let is_over = |place: &usize| says_over(&blocks[*place].inline.text);
        match made.task.mark {
            Mark::Done => return Some("its step is done"),
            Mark::Cancelled => return Some("its step was cancelled"),
            Mark::Open | Mark::InProgress | Mark::Deferred => {}
        }
        let reasons = [
            (made.is_group, "its step has parts"),
            (made.task.kind == NodeKind::Clarification, "its step is a question"),
            (section.is_some_and(|section| section.is_out || section.has_no_commands), "its section has no commands"),
            (draft.is_followed, "a paragraph follows its list"),
            (line.text.contains("~~"), "its step is struck out in part"),
            (tree.title.as_ref().is_some_and(|title| find_word(title, &NEVER).is_some()), "the title denies it"),
            (below.iter().any(is_over), "a note says that it is over"),
            (self.finder.doubtful.contains(&draft.section), "not every sentence around it is a step"),
        ];
        reasons.into_iter().find_map(|(holds, reason)| holds.then_some(reason))
    }

    /// The command of a step, and its fence if it is one; warnings for code that does not run.
    fn judge(
        &mut self,
        node: usize,
        line: &Inline,
        row: Option<&Inline>,
        below: &[usize],
    ) -> Option<(String, Option<usize>)> {
        let Finder { blocks, drafts, tree, .. } = &self.finder;
        let is_fence = |place: &&usize| matches!(blocks[**place].kind, Kind::Fence { .. });
        let places = below.iter().filter(is_fence).copied().collect::<Vec<_>>();
        if line.codes.is_empty() && places.is_empty() {
            return None;
        }
        let (made, draft) = (&tree.nodes[node], &drafts[node]);
        let mut leads = draft.lead.map(|lead| &blocks[lead].inline).into_iter().collect::<Vec<_>>();
        // What is not read as text, such as a comment, may deny a command too.
        let source = |span: &Span| &self.finder.text[span.start..span.end];
        let own = draft.block.map(|block| blocks[block].span).filter(|span| source(span).contains("<!--"));
        let is_read = |block: &&Block| matches!(block.kind, Kind::Paragraph | Kind::Item(_) | Kind::Fence { .. });
        let unread = below.iter().map(|place| &blocks[*place]).filter(|block| !is_read(block)).map(|block| block.span);
        let sources = own.into_iter().chain(unread).map(|span| source(&span));
        let notes = made.task.notes.iter().chain(row.map(|row| &row.text)).map(String::as_str);
        let raw = sources.chain(notes).map(|text| Inline::plain(text, 0)).collect::<Vec<_>>();
        let mut others = below.iter().map(|place| &blocks[*place].inline).chain(&raw).collect::<Vec<_>>();
        let mut parent = made.parent;
        while let Some(above) = parent {
            let line = &drafts[above].line;
            let node = &tree.nodes[above];
            let is_lead = line.text.trim_end().ends_with(':') && !node.is_heading && node.when == When::Always;
            if is_lead { &mut leads } else { &mut others }.push(line);
            parent = tree.nodes[above].parent;
        }
        let last = below.iter().rev().find(|place| blocks[**place].kind != Kind::Rule);
        let fences = places.iter().filter_map(|place| {
            let Kind::Fence { language, code, is_closed } = &blocks[*place].kind else { return None };
            let before = below.iter().rev().find(|other| *other < place).map(|other| &blocks[*other]);
            let before = before.filter(|block| matches!(block.kind, Kind::Paragraph | Kind::Item(_)));
            let (before, is_last) = (before.map(|block| &block.inline), last == Some(place));
            Some(Fence { language, code, before, is_last, is_closed: *is_closed })
        });
        let has_box = made.state.is_some();
        let is_bullet = draft.block.is_some_and(|block| blocks[block].kind == Kind::Item(None));
        let is_strong = has_box || self.finder.marker == Marker::Number && !is_bullet;
        let barred = self.barred(node, line, below);
        let around = Around { barred, is_strong, has_box, leads: &leads, others: &others };
        let (of_text, of_fences) = judge(line, &fences.collect::<Vec<_>>(), &around);
        let of_text = line.codes.iter().zip(of_text).map(|(code, verdict)| (line.at(code.range.start), None, verdict));
        let of_fences =
            places.iter().zip(of_fences).map(|(place, verdict)| (blocks[*place].span.start, Some(*place), verdict));
        let is_over =
            matches!(made.task.mark, Mark::Done | Mark::Cancelled) || made.task.kind == NodeKind::Clarification;
        let section = draft.section;
        let verdicts = of_text.chain(of_fences).collect::<Vec<_>>();
        let runs = verdicts.iter().any(|(_, _, verdict)| matches!(verdict, Verdict::Runs { .. }));
        let mut command = None;
        for (at, place, verdict) in verdicts {
            self.finder.tree.codes.push((Some(node), CodeUse::of(at, &verdict)));
            match verdict {
                Verdict::Runs { command: found, .. } => command = Some((found, place)),
                Verdict::Withheld { reason, help } if !is_over => {
                    self.warn(section, "withheld", at, format!("this code does not run: {reason}"), help);
                }
                Verdict::Mentioned if !runs && !is_over => {
                    let help = "if it is a command, write: Run `...`, or put it into a fence marked sh";
                    self.warn(section, "mentioned", at, "this code is text and does not run".to_owned(), help);
                }
                Verdict::Withheld { .. } | Verdict::Mentioned | Verdict::Text => {}
            }
        }
        command
    }

    /// A block below a step.
    fn note(&mut self, node: usize, block: &Block, section: usize) {
        let made = &mut self.finder.tree.nodes[node];
        if block.kind == Kind::Rule {
            return;
        }
        if let Some(waits_for) = dependency_line(&block.inline, &self.finder.headings) {
            made.waits_for.extend(waits_for);
            return;
        }
        let list = after_any(block.inline.text.trim(), &DEPENDS).and_then(|rest| rest.trim_start().strip_prefix(':'));
        if list.is_some_and(|list| !list.trim().is_empty() && !is_one_of(list.trim(), &["none", "nothing", "-"])) {
            let message = "crewlog does not understand these dependencies and leaves them as a note".to_owned();
            self.warn(section, "depends", block.span.start, message, "write the names with commas between them");
        }
        let made = &mut self.finder.tree.nodes[node];
        let text = text_of(block, self.finder.text);
        if !text.is_empty() {
            made.task.notes.push(text.to_owned());
        }
        attach(made, &block.inline);
        let is_over = made.task.mark == Mark::Done;
        self.hidden_boxes(block, section);
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

    /// Boxes in a fence are not steps, and get a warning.
    fn hidden_boxes(&mut self, block: &Block, section: usize) {
        let is_item =
            |line: &str| line.trim_start().strip_prefix("- ").is_some_and(|rest| line::box_of(rest).is_some());
        if let Kind::Fence { code, .. } = &block.kind
            && code.lines().any(is_item)
        {
            let message = "boxes in a fence are not steps".to_owned();
            self.warn(section, "boxes", block.span.start, message, "put the steps outside of the fence");
        }
    }

    /// Text outside of steps is context; lists and fences there get a warning.
    fn loose(&mut self) {
        let (blocks, marker) = (self.finder.blocks, self.finder.marker);
        for (place, section) in std::mem::take(&mut self.finder.loose) {
            let block = &blocks[place];
            if section.is_some_and(|section| !self.finder.sections[section].has_steps) {
                self.finder.tree.parts.push((block.span, Part::LeftOut));
                continue;
            }
            self.finder.tree.parts.push((block.span, Part::Context));
            self.finder.tree.context.push(text_of(block, self.finder.text).to_owned());
            let number = section.map_or(0, |section| section + 1);
            self.hidden_boxes(block, number);
            match &block.kind {
                Kind::Item(_) => {
                    let (boxes, help) = marker.told();
                    let message = format!("this item is not a step: the file has {boxes}");
                    self.warn(number, "item", block.span.start, message, help);
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

    /// One warning for each section without steps.
    fn sections(&mut self) {
        let Finder { sections, tree, blocks, marker, .. } = &mut self.finder;
        let is_told =
            |section: &&Section| !section.has_steps && section.parent.is_none_or(|around| sections[around].has_steps);
        for section in sections.iter().filter(is_told) {
            let none = "this section has no steps and is left out".to_owned();
            let (boxes, remedy) = marker.told();
            let (message, help) = match (section.is_out, section.is_option, *marker) {
                (true, ..) => (none, "rename the heading if the section has steps"),
                (false, true, _) => {
                    let message = "this section is left out: an option is only asked about".to_owned();
                    (message, "write its steps into a section of their own, each with (if ...)")
                }
                (false, false, Marker::Sentence) => (none, remedy),
                (false, false, _) => (format!("this section is left out, since the file has {boxes}"), remedy),
            };
            tree.warn(blocks[section.block].span.start, message, help);
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
            tasks: Vec<serde_json::Value>,
        }
        if self.finder.format != Format::Kiro {
            return;
        }
        for block in self.finder.blocks {
            let Kind::Fence { language, code, .. } = &block.kind else { continue };
            if language == "json"
                && let Ok(Graph { waves }) = serde_json::from_str(code)
            {
                let at = block.span.start;
                // A name is a string or, without a part, a number.
                let name = |name: serde_json::Value| name.as_str().map_or_else(|| name.to_string(), str::to_owned);
                let named = |wave: Wave| wave.tasks.into_iter().map(|one| Reference { name: name(one), at }).collect();
                self.finder.tree.waves = waves.into_iter().map(named).collect();
            }
        }
    }
}

/// The text of a block; of what is not read as text, its source.
fn text_of<'a>(block: &'a Block, file: &'a str) -> &'a str {
    match block.kind {
        Kind::Paragraph | Kind::Item(_) => block.inline.text.trim(),
        Kind::Heading(_) | Kind::Fence { .. } | Kind::Other | Kind::Rule | Kind::Table(_) => {
            file[block.span.start..block.span.end].trim()
        }
    }
}

/// A note that begins with the state of an ended step.
fn says_over(note: &str) -> bool {
    let note = after_any(note.trim(), &["status:", "status"]).unwrap_or(note).trim_start_matches([':', ' ']);
    after_any(note, &["done", "completed", "skipped", "cancelled"]).is_some()
}

/// `Depends on: 2.1` as a line of its own.
pub(super) fn dependency_line(inline: &Inline, headings: &HashSet<String>) -> Option<Vec<Reference>> {
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
    let writes = matches!(kind, NodeKind::CodeImplementation)
        || matches!(verb.as_str(), "write" | "define" | "extend" | "update");
    let mut words = line.text.split(|c: char| !c.is_alphanumeric()).skip(1);
    if writes && words.any(|word| is_one_of(word, &["test", "tests"])) { NodeKind::UnitTest } else { kind }
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

/// Gives a step what a text refers to, unless it has it.
pub(super) fn attach(node: &mut Node, inline: &Inline) {
    for one in attachments(&inline.text, &inline.links) {
        if !node.task.attachments.contains(&one) {
            node.task.attachments.push(one);
        }
    }
}
