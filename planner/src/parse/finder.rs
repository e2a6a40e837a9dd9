//! The finder of steps: its state while it walks a file, and how it adds steps, groups and notes.

use std::collections::{HashMap, HashSet};

use super::blocks::{Block, Inline, Kind};
use super::commands::language_of;
use super::line::{self, is_question, is_unsure, says_parallel, trailing_question};
use super::names::is_number;
use super::tree::{Format, Node, Tree, When};
use crate::plan::{NodeKind, Span, TaskPlan};

/// The markers of a step, from the strongest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Marker {
    Box,
    Number,
    Bullet,
    #[default]
    Sentence,
}

impl Marker {
    /// The marker's name for people, and how to mark a step with it.
    pub fn hint(self) -> (&'static str, &'static str) {
        match self {
            Self::Box => ("boxes", "to make it a step, write a box: - [ ] ..."),
            Self::Number => ("numbers", "to make it a step, give it a number"),
            Self::Bullet => ("bullets", "to make it a step, write a bullet: - ..."),
            Self::Sentence => ("sentences", "to make it a step, begin the sentence with a verb"),
        }
    }
}

/// A heading with its contents.
#[derive(Clone, Copy)]
pub(super) struct Section {
    pub level: u8,
    pub block: usize,
    /// The enclosing section.
    pub parent: Option<usize>,
    /// Its group, once it has a step.
    pub node: Option<usize>,
    /// It, or an enclosing section, is of a kind without steps.
    pub is_out: bool,
    /// It, or an enclosing section, has no commands.
    pub has_no_commands: bool,
    /// It is an option of a question.
    pub is_option: bool,
    /// It, or a section in it, has a step.
    pub has_steps: bool,
    /// It, or an enclosing section, is called `Step 1`.
    pub is_step: bool,
    /// It, or a section in it, has a box.
    pub has_boxes: bool,
}

/// A step under construction.
#[derive(Default)]
pub(super) struct StepDraft {
    /// The block of its line.
    pub block: Option<usize>,
    pub line: Inline,
    /// Its bytes, if it is part of a block.
    pub span: Option<Span>,
    /// The line with its command, if that is a different one.
    pub command: Option<Inline>,
    /// The blocks below it.
    pub below: Vec<usize>,
    /// The paragraph above its list.
    pub lead: Option<usize>,
    /// A paragraph follows its list.
    pub is_followed: bool,
    pub section: Option<usize>,
}

#[derive(Default)]
pub(super) struct Finder<'a> {
    pub text: &'a str,
    pub format: Format,
    pub blocks: Vec<Block>,
    pub tree: Tree,
    pub drafts: Vec<StepDraft>,
    pub sections: Vec<Section>,
    /// By block: its innermost section.
    pub section_of: Vec<Option<usize>>,
    /// The texts and names of the headings, in small letters.
    pub headings: HashSet<String>,
    pub marker: Marker,
    /// The innermost section at the current place.
    pub section: Option<usize>,
    /// By block: the node of an item that is a step.
    pub node_of: Vec<Option<usize>>,
    /// By block: true for an item that is a note, because it is an acceptance criterion.
    pub notes: Vec<bool>,
    /// The last paragraph or heading that introduces a list of notes, with its item.
    pub acceptance: Option<Option<usize>>,
    /// By enclosing item: the last paragraph, and the steps listed since.
    pub lists: HashMap<Option<usize>, (Option<usize>, Vec<usize>)>,
    /// The last node of each number.
    pub named: HashMap<String, usize>,
    /// The last step below the last heading.
    pub current: Option<usize>,
    /// There is one heading of level 1, which is the title of the file.
    pub has_title: bool,
    /// The title marks the file as one that must not run.
    pub is_denied: bool,
    /// Sections in which not every sentence is a step.
    pub doubtful: HashSet<Option<usize>>,
    /// Blocks outside of steps.
    pub loose: Vec<(usize, Option<usize>)>,
    /// The number of headings such as `Step 1`.
    pub n_steps: usize,
    /// By section and kind of warning: the index of the warning, and how many others it covers.
    pub told: HashMap<(Option<usize>, &'static str), (usize, usize)>,
}

impl Finder<'_> {
    /// Warns once for a section.
    pub(super) fn warn(&mut self, section: Option<usize>, sort: &'static str, at: usize, message: &str, help: &str) {
        if let Some((_, n_more)) = self.told.get_mut(&(section, sort)) {
            *n_more += 1;
        } else {
            self.told.insert((section, sort), (self.tree.warnings.len(), 0));
            self.tree.warn(at, message, help);
        }
    }

    /// True for the only heading of level 1, which is the title and never a step.
    pub(super) fn is_title(&self, level: u8) -> bool {
        level == 1 && self.has_title
    }

    pub(super) fn is_out(&self) -> bool {
        self.section.is_some_and(|section| self.sections[section].is_out) || self.is_option()
    }

    /// True for one of several sections called `Step 1` if it has no boxes, in a file with boxes: its items are steps.
    pub(super) fn is_step(&self, section: Option<usize>) -> bool {
        let section = section.map(|section| &self.sections[section]);
        self.marker == Marker::Box
            && self.n_steps > 1
            && section.is_some_and(|it| it.is_step && !it.has_boxes && !it.is_out)
    }

    pub(super) fn is_option(&self) -> bool {
        self.section.is_some_and(|section| self.sections[section].is_option)
    }

    /// The nearest step around an item, or around a block below one.
    pub(super) fn step_around(&self, place: usize) -> Option<usize> {
        let around = |item: &usize| self.blocks[*item].item;
        std::iter::successors(around(&place), around).find_map(|item| self.node_of[item])
    }

    /// Adds a step from its line, below a parent, which becomes a group.
    pub(super) fn step(&mut self, inline: Inline, block: Option<usize>, parent: Option<usize>) -> usize {
        let has_names = self.marker != Marker::Sentence || block.is_some();
        let (mut node, inline) = line::read(inline, self.format, &self.headings, has_names, &mut self.tree);
        node.at = block.map_or(node.at, |block| self.blocks[block].span.start);
        node.parent = parent;
        node.attach(&inline);
        node.parts_beside = says_parallel(&inline.text);
        if let Some(parent) = parent {
            self.tree.nodes[parent].is_group = true;
        }
        let mut section = self.section;
        while let Some(around) = section.filter(|section| !self.sections[*section].has_steps) {
            self.sections[around].has_steps = true;
            section = self.sections[around].parent;
        }
        let is_item = block.is_some_and(|block| matches!(self.blocks[block].kind, Kind::Item(_)));
        let asks_from = trailing_question(&inline).filter(|_| is_item);
        let (line, question) = match asks_from {
            Some(at) => (inline.slice(0..at), Some(inline.slice(at..inline.text.len()))),
            None if is_item && is_unsure(&inline) => {
                (inline.slice(0..inline.text.trim_end().len() - 1), Some(inline.clone()))
            }
            None => (inline, None),
        };
        let mark = node.task.mark;
        let is_open = question.is_none() && !is_question(&line.text) && !mark.is_end();
        if is_open && line.masked().contains("? ") {
            let help = "end the step with the question, or write it in a step of its own";
            self.warn(self.section, "question", line.at(0), "a question inside a step is asked of nobody", help);
        }
        if is_question(&line.text) {
            node.task.kind = NodeKind::Clarification;
        }
        let step = self.tree.nodes.len();
        self.tree.nodes.push(node);
        self.drafts.push(StepDraft { block, line, section: self.section, ..StepDraft::default() });
        if let Some(line) = question {
            let default_answer = self.tree.nodes[step].task.default_answer.take();
            let task = TaskPlan { kind: NodeKind::Clarification, default_answer, mark, ..TaskPlan::default() };
            self.tree.nodes.push(Node { parent, asked_before: true, at: line.at(0), task, ..Node::default() });
            let span = Some(line.span());
            self.drafts.push(StepDraft { line, span, section: self.section, ..StepDraft::default() });
        }
        step
    }

    /// The group of a section, created with its first step. The only title is not a group.
    pub(super) fn group(&mut self, section: Option<usize>) -> Option<usize> {
        let place = section?;
        let Section { level, block, parent, node, .. } = self.sections[place];
        if self.is_title(level) {
            return None;
        }
        let parent = self.group(parent);
        let node = node.unwrap_or_else(|| {
            let inner = std::mem::replace(&mut self.section, section);
            let node = self.step(self.blocks[block].inline.clone(), Some(block), parent);
            self.section = inner;
            let text = &self.blocks[block].inline.text;
            let made = &mut self.tree.nodes[node];
            made.is_heading = true;
            if made.when == When::Always {
                made.when = line::condition_above(text).unwrap_or_default();
            }
            made.alias = alias_of(text);
            self.sections[place].node = Some(node);
            node
        });
        self.tree.nodes[node].is_group = true;
        Some(node)
    }

    /// The step that a block belongs to as a note.
    pub(super) fn owner(&self, place: usize) -> Option<usize> {
        let takes_below = |node: &usize| {
            let block = self.drafts[*node].block.map(|block| &self.blocks[block].kind);
            let is_heading = !self.tree.nodes[*node].is_group && !matches!(block, None | Some(Kind::Item(_)));
            is_heading || matches!(self.marker, Marker::Box | Marker::Sentence)
        };
        self.step_around(place).or_else(|| self.current.filter(takes_below))
    }

    /// A block that is not a step: a note of its step, or a loose block.
    pub(super) fn below(&mut self, place: usize) {
        if let Some(node) = self.owner(place) {
            return self.drafts[node].below.push(place);
        }
        let block = &self.blocks[place];
        let is_shell = matches!(&block.kind, Kind::Fence { language, .. } if language_of(language).1);
        self.tree.lost.extend((self.marker == Marker::Box && is_shell).then_some(block.span));
        self.loose.push((place, self.section));
    }
}

/// `Phase 2` of `Phase 2: Build`.
pub(super) fn alias_of(text: &str) -> Option<String> {
    let (alias, _) = text.split_once([':', '\u{2014}'])?;
    let (_, number) = alias.trim().rsplit_once(' ')?;
    is_number(number).then(|| alias.trim().to_owned())
}
