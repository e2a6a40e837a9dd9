//! Assigns notes, commands and kinds to steps, and the remaining text to the plan.

use serde_json::Value;

use super::blocks::{Block, Inline, Kind};
use super::commands::{Around, Fence, judge, language_of};
use super::finder::{Finder, Marker, Section, StepDraft};
use super::line::{dependency_line, is_question, verb_of};
use super::tree::{Format, Part, Reference, Tree, Verdict, When};
use super::words::{DEPENDS, after_any, first_word, is_one_of, kind_of};
use crate::plan::{Mark, NodeKind};

/// Assigns the contents of every step.
pub(super) fn finish(mut finder: Finder<'_>) -> Tree {
    let blocks = std::mem::take(&mut finder.blocks);
    for node in 0..finder.drafts.len() {
        finder.fill(&blocks, node);
    }
    let places = if finder.format == Format::Kiro { 0..blocks.len() } else { 0..0 };
    if let Some((place, code)) = places.rev().find_map(|place| Some((place, graph_of(&blocks[place])?))) {
        let at = blocks[place].span.start;
        let (message, help) = ("these waves cannot be read; the list gives the order", r#"write {"waves": [["1.1"]]}"#);
        match waves(code, at) {
            Some(waves) => finder.tree.waves = waves,
            None => finder.tree.warn(at, message, help),
        }
        finder.section_of[place].into_iter().for_each(|section| finder.sections[section].has_steps = true);
    }
    finder.leave_loose(&blocks);
    finder.leave_out(&blocks);
    let Finder { mut tree, told, .. } = finder;
    for (warning, n_more) in told.into_values().filter(|(_, n_more)| *n_more > 0) {
        tree.warnings[warning].1.push_str(&format!(" (and {n_more} more below this heading)"));
    }
    tree
}

impl Finder<'_> {
    fn fill(&mut self, blocks: &[Block], node: usize) {
        let draft = std::mem::take(&mut self.drafts[node]);
        let of_line = draft.span.or(draft.block.map(|block| blocks[block].span));
        let command = self.command(blocks, node, &draft);
        let fence = command.as_ref().and_then(|(_, fence)| *fence);
        for place in draft.below.iter().filter(|place| fence != Some(**place)) {
            self.note(node, &blocks[*place], draft.section);
        }
        let made = &mut self.tree.nodes[node];
        let task = &mut made.task;
        task.spans.extend(of_line.filter(|_| !made.is_heading));
        let is_note = |block: &&Block| block.kind != Kind::Rule;
        task.spans.extend(draft.below.iter().map(|place| &blocks[*place]).filter(is_note).map(|block| block.span));
        task.spans.sort_unstable();
        if made.is_group {
            self.tree.parts.extend(task.spans.iter().map(|span| (*span, Part::Context)));
        }
        task.command = command.map(|(command, _)| command);
        if let (Some(command), Some(_)) = (&task.command, fence) {
            let command = Inline::plain(command, 0);
            made.attach(&command);
        }
        let (task, text) = (&mut made.task, draft.line.text.trim());
        if task.kind == NodeKind::Clarification {
            task.description = text.to_owned();
        } else {
            task.description = text.trim_end_matches([':', ' ']).to_owned();
            task.kind = task.command.as_ref().map_or_else(|| kind_by_words(&draft.line), |_| NodeKind::ToolCall);
        }
        self.drafts[node] = draft;
    }

    /// The reason why no code of a step runs.
    fn barred(&self, blocks: &[Block], node: usize, draft: &StepDraft) -> Option<&'static str> {
        let made = &self.tree.nodes[node];
        let mut around = std::iter::successors(Some(made), |node| Some(&self.tree.nodes[node.parent?]));
        let section = draft.section.map(|section| &self.sections[section]);
        let reasons = [
            (made.task.mark == Mark::Done, "its step is done"),
            (around.any(|node| node.task.mark == Mark::Cancelled), "its step was cancelled"),
            (made.is_group, "its step has substeps"),
            (made.task.kind == NodeKind::Clarification, "its step is a question"),
            (section.is_some_and(|section| section.is_out || section.has_no_commands), "its section has no commands"),
            (draft.is_followed, "a paragraph follows its list"),
            (draft.line.text.contains("~~"), "its step is struck out in part"),
            (self.is_denied, "the title forbids it"),
            (
                draft.below.iter().any(|place| says_over(text_of(&blocks[*place], self.text))),
                "a note says that it has ended",
            ),
            (self.doubtful.contains(&draft.section), "not every sentence around it is a step"),
        ];
        reasons.into_iter().find_map(|(holds, reason)| holds.then_some(reason))
    }

    /// The command of a step, and its fence if it is one; warnings for code that does not run.
    fn command(&mut self, blocks: &[Block], node: usize, draft: &StepDraft) -> Option<(String, Option<usize>)> {
        let StepDraft { below, section, .. } = draft;
        let line = draft.command.as_ref().unwrap_or(&draft.line);
        // Another cell of the same row may forbid the command.
        let row = draft.command.as_ref().map(|_| draft.line.text.as_str());
        let is_fence = |place: &&usize| matches!(blocks[**place].kind, Kind::Fence { .. });
        if line.codes.is_empty() && !below.iter().any(|place| is_fence(&place)) {
            return None;
        }
        let made = &self.tree.nodes[node];
        let has_box = made.state.is_some();
        let mut leads = draft.lead.map(|lead| &blocks[lead].inline).into_iter().collect::<Vec<_>>();
        // Content that is not read as text, such as a comment, may forbid a command too.
        let source = |block: &Block| &self.text[block.span.start..block.span.end];
        let own = draft.block.map(|block| source(&blocks[block])).filter(|own| own.contains("<!--"));
        let is_read = |block: &&Block| match &block.kind {
            Kind::Fence { language, .. } => language.is_empty() || language_of(language).1,
            other => matches!(other, Kind::Paragraph | Kind::Item(_)),
        };
        let denies = |block: &&Block| !is_read(block) || source(block).contains("<!--");
        let unread = below.iter().map(|place| &blocks[*place]).filter(denies).map(source);
        let notes = made.task.notes.iter().map(String::as_str).chain(row);
        let raw = own.into_iter().chain(unread).chain(notes).map(|text| Inline::plain(text, 0)).collect::<Vec<_>>();
        let mut others = below.iter().map(|place| &blocks[*place].inline).chain(&raw).collect::<Vec<_>>();
        for above in std::iter::successors(made.parent, |above| self.tree.nodes[*above].parent) {
            let (line, node) = (&self.drafts[above].line, &self.tree.nodes[above]);
            let introduces = has_box || line.text.trim_end().ends_with(':');
            let is_lead = introduces && !node.is_heading && node.when == When::Always;
            if is_lead { &mut leads } else { &mut others }.push(line);
        }
        let last = below.iter().rev().find(|place| blocks[**place].kind != Kind::Rule);
        let fences = below.iter().enumerate().filter(|(_, place)| is_fence(place)).map(|(n, place)| {
            let before = n.checked_sub(1).map(|n| &blocks[below[n]]);
            let before = before.filter(|block| matches!(block.kind, Kind::Paragraph | Kind::Item(_)));
            Fence { block: &blocks[*place], before: before.map(|block| &block.inline), is_last: last == Some(place) }
        });
        let is_bullet = draft.block.is_some_and(|block| blocks[block].kind == Kind::Item(None));
        let is_strong = has_box || self.marker == Marker::Number && !is_bullet;
        let barred = self.barred(blocks, node, draft);
        let is_column = row.is_some();
        let around = Around { barred, is_strong, has_box, is_column, leads: &leads, others: &others };
        let verdicts = judge(line, &fences.collect::<Vec<_>>(), &around);
        let is_over = made.task.mark.is_end() || made.task.kind == NodeKind::Clarification;
        let fences = below.iter().filter(is_fence).map(|place| (blocks[*place].span.start, Some(*place)));
        let codes = line.codes.iter().map(|code| (line.at(code.start), None)).chain(fences);
        let runs = verdicts.iter().any(|verdict| matches!(verdict, Verdict::Runs { .. }));
        let mut command = None;
        for ((at, place), verdict) in codes.zip(verdicts) {
            self.tree.codes.push((node, at, verdict.clone()));
            match verdict {
                Verdict::Runs { command: found, .. } => command = Some((found, place)),
                Verdict::Withheld { reason, help } if !is_over => {
                    self.warn(*section, "withheld", at, &format!("this code does not run: {reason}"), help);
                }
                Verdict::Mentioned if !runs && !is_over => {
                    let help =
                        "if it is a command, begin the step with it: Run `...`, or put it into a fence marked sh";
                    self.warn(*section, "mentioned", at, "this code is text and does not run", help);
                }
                Verdict::Withheld { .. } | Verdict::Mentioned | Verdict::Text => {}
            }
        }
        command
    }

    /// A block below a step.
    fn note(&mut self, node: usize, block: &Block, section: Option<usize>) {
        if block.kind == Kind::Rule {
            return;
        }
        let made = &mut self.tree.nodes[node];
        if let Some(waits_for) = dependency_line(&block.inline, &self.headings) {
            made.waits_for.extend(waits_for);
            return;
        }
        let text = text_of(block, self.text);
        made.task.notes.extend((!text.is_empty()).then(|| text.to_owned()));
        made.attach(&block.inline);
        let is_done = made.task.mark == Mark::Done;
        let is_open = !made.task.mark.is_end() && made.task.kind != NodeKind::Clarification;
        let asks = is_question(&block.inline.text) || block.inline.masked().contains("? ");
        if asks && is_open && block.kind == Kind::Paragraph {
            let help = "write the question in a step of its own";
            self.warn(section, "question", block.span.start, "a question below a step is asked of nobody", help);
        }
        let list = after_any(block.inline.text.trim(), &DEPENDS).and_then(|rest| rest.trim_start().strip_prefix(':'));
        if list.is_some_and(|list| !is_one_of(list.trim(), &["", "none", "nothing", "-"])) {
            let message = "crewlog does not understand these dependencies and keeps them as a note";
            self.warn(section, "depends", block.span.start, message, "write the names with commas between them");
        }
        let verdicts = judge(&block.inline, &[], &Around { barred: Some("it is in a note"), ..Around::default() });
        for (code, verdict) in block.inline.codes.iter().zip(verdicts) {
            let at = block.inline.at(code.start);
            self.tree.codes.push((node, at, verdict.clone()));
            if matches!(verdict, Verdict::Withheld { .. }) && !is_done {
                let help = "to run it, make it a step of its own";
                self.warn(section, "note", at, "this code does not run: it is in a note", help);
            }
        }
    }

    /// Text outside of steps is context; lists and fences there get a warning.
    fn leave_loose(&mut self, blocks: &[Block]) {
        for (place, section) in std::mem::take(&mut self.loose) {
            let block = &blocks[place];
            if section.is_some_and(|section| !self.sections[section].has_steps) {
                self.tree.parts.push((block.span, Part::LeftOut));
                continue;
            }
            self.tree.parts.push((block.span, Part::Context));
            self.tree.context.push(text_of(block, self.text).to_owned());
            match &block.kind {
                Kind::Item(_) => {
                    let (boxes, help) = self.marker.hint();
                    let message = format!("this item is not a step: the file has {boxes}");
                    self.warn(section, "item", block.span.start, &message, help);
                }
                Kind::Fence { language, .. } if language_of(language).1 || language.is_empty() => {
                    let message = "this fence is below no step and does not run";
                    self.warn(section, "fence", block.span.start, message, "indent it below its step");
                }
                _other => {}
            }
        }
    }

    /// One warning for each section without steps.
    fn leave_out(&mut self, blocks: &[Block]) {
        let Self { sections, tree, marker, .. } = self;
        let is_told =
            |section: &&Section| !section.has_steps && section.parent.is_none_or(|around| sections[around].has_steps);
        for section in sections.iter().filter(is_told) {
            let (boxes, remedy) = marker.hint();
            let none = "this section has no steps and is left out".to_owned();
            let (message, help) = match *marker {
                _ if section.is_out || section.is_option => (none, "rename the heading if the section has steps"),
                Marker::Sentence => (none, remedy),
                _strong => (format!("this section is left out, since the file has {boxes}"), remedy),
            };
            tree.warn(blocks[section.block].span.start, message, help);
        }
    }
}

/// The JSON of a fence with Kiro's waves.
fn graph_of(block: &Block) -> Option<&str> {
    let Kind::Fence { code, .. } = &block.kind else { return None };
    code.contains("\"waves\"").then_some(code)
}

/// The names of the tasks in each wave, as strings, or as numbers if the number has no part.
fn waves(code: &str, at: usize) -> Option<Vec<Vec<Reference>>> {
    let graph = serde_json::from_str::<Value>(code).ok()?;
    let text = |name: &Value| name.as_str().map_or_else(|| name.to_string(), str::to_owned);
    let named = |name: &Value| (name.is_string() || name.is_number()).then(|| Reference { name: text(name), at });
    let wave = |wave: &Value| wave["tasks"].as_array().or(wave.as_array())?.iter().map(named).collect();
    graph["waves"].as_array()?.iter().map(wave).collect()
}

/// The text of a block, or its source if it is not read as text.
fn text_of<'a>(block: &'a Block, file: &'a str) -> &'a str {
    match &block.kind {
        Kind::Paragraph | Kind::Item(_) => block.inline.text.trim(),
        _other => file[block.span.start..block.span.end].trim(),
    }
}

/// True for a note that begins with the state of an ended step.
fn says_over(note: &str) -> bool {
    let note = note.trim_start_matches(['>', ' ']);
    let note = after_any(note, &["status:", "status"]).unwrap_or(note).trim_start_matches([':', ' ']);
    after_any(note, &["done", "completed", "skipped", "cancelled"]).is_some()
}

/// The kind of a step, from its first verb.
fn kind_by_words(line: &Inline) -> NodeKind {
    let verb = first_word(verb_of(&line.text));
    let kind = kind_of(&verb).unwrap_or(NodeKind::Processing);
    let writes = kind == NodeKind::CodeImplementation || is_one_of(&verb, &["write", "define", "extend", "update"]);
    let mut words = line.text.split(|c: char| !c.is_alphanumeric()).skip(1);
    if writes && words.any(|word| is_one_of(word, &["test", "tests"])) { NodeKind::UnitTest } else { kind }
}
