//! Finds the steps of a Markdown file by its strongest marker, and what belongs to each.

use std::collections::{HashMap, HashSet};

use super::blocks::{Block, Inline, Kind, blocks};
use super::line::{self, Line, box_of, is_near_box, name_at};
use super::tree::{Format, Node, Part, Tree, When};
use super::words::{OVER, SECTIONS, after, after_any, find_word};
use super::{contents, prose};
use crate::plan::{NodeKind, Span, TaskPlan};

/// What marks a step, from the strongest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Marker {
    Box,
    Number,
    Bullet,
    Sentence,
}

impl Marker {
    /// What is so marked, for people, and how to make something a step.
    pub fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Box => ("boxes", "to make it a step, write a box: - [ ] ..."),
            Self::Number => ("numbers", "to make it a step, give it a number"),
            Self::Bullet => ("bullets", "to make it a step, write a bullet: - ..."),
            Self::Sentence => ("sentences", "to make it a step, begin the sentence with a verb"),
        }
    }
}

/// Reads a file.
pub(super) fn read(text: &str, format: Format) -> Tree {
    let blocks = blocks(text);
    let mut finder = Finder::new(text, format, &blocks);
    finder.marker = finder.strongest();
    for place in 0..blocks.len() {
        finder.take(place);
    }
    contents::finish(finder)
}

/// A heading and what is below it.
pub(super) struct Section {
    level: u8,
    pub block: usize,
    /// The section around it.
    pub parent: Option<usize>,
    /// Its group, once it has a step.
    node: Option<usize>,
    /// It, or one around it, is of a kind that has no steps.
    pub is_out: bool,
    /// It, or one around it, has no commands.
    pub has_no_commands: bool,
    /// It is an option of a question.
    pub is_option: bool,
    /// It, or a section in it, has a step.
    pub has_steps: bool,
}

/// A step in the making.
#[derive(Default)]
pub(super) struct Draft {
    /// The block of its line.
    pub block: Option<usize>,
    pub line: Inline,
    /// Its bytes, where it is a part of a block.
    pub span: Option<Span>,
    /// The line that says its command, where that is another.
    pub command: Option<Inline>,
    /// The blocks below it.
    pub below: Vec<usize>,
    /// The paragraph above its list.
    pub lead: Option<usize>,
    /// A paragraph follows its list.
    pub is_followed: bool,
    /// Its section, or 0 without one; counted from 1.
    pub section: usize,
}

pub(super) struct Finder<'a> {
    pub text: &'a str,
    pub format: Format,
    pub blocks: &'a [Block],
    pub tree: Tree,
    pub drafts: Vec<Draft>,
    pub sections: Vec<Section>,
    pub headings: HashSet<String>,
    pub marker: Marker,
    /// The open sections, by their places in the list of all.
    open: Vec<usize>,
    /// By block: the node of an item that is a step.
    node_of: Vec<Option<usize>>,
    /// By block: an item that is a note, because acceptance is what it says.
    notes: Vec<bool>,
    /// The last paragraph or heading that introduces a list of notes, with its item.
    acceptance: Option<Option<usize>>,
    /// By the item around them: the last paragraph, and the steps listed since.
    lists: HashMap<Option<usize>, (Option<usize>, Vec<usize>)>,
    /// The last node of each name.
    named: HashMap<String, usize>,
    /// The last step below the last heading.
    pub current: Option<usize>,
    has_title: bool,
    /// One of the boxes that are none was told.
    has_near_box: bool,
    /// Sections in which not every sentence is a step, counted from 1.
    pub doubtful: HashSet<usize>,
    /// Blocks in no step, with their sections.
    pub loose: Vec<(usize, Option<usize>)>,
    /// Numbered items and shell fences that are no steps because the file has boxes.
    pub lost: Vec<usize>,
}

impl<'a> Finder<'a> {
    fn new(text: &'a str, format: Format, blocks: &'a [Block]) -> Self {
        let headings = blocks.iter().filter(|block| matches!(block.kind, Kind::Heading(_)));
        let names = headings.clone().flat_map(|block| {
            let (_, rest) = heading_name(&block.inline.text);
            let alias = alias_of(&block.inline.text);
            [Some(rest.to_owned()), Some(block.inline.text.clone()), alias].into_iter().flatten()
        });
        let n_titles = headings.filter(|block| block.kind == Kind::Heading(1)).count();
        let n_items = blocks.iter().filter(|block| matches!(block.kind, Kind::Item(_))).count();
        let tree = Tree { is_ordered: true, nodes: Vec::with_capacity(n_items), ..Tree::default() };
        Self {
            text,
            format,
            blocks,
            tree,
            drafts: Vec::with_capacity(n_items),
            sections: Vec::new(),
            headings: names.map(|name| name.to_lowercase()).collect(),
            marker: Marker::Sentence,
            open: Vec::new(),
            node_of: vec![None; blocks.len()],
            notes: vec![false; blocks.len()],
            acceptance: None,
            lists: HashMap::new(),
            named: HashMap::new(),
            current: None,
            has_title: n_titles == 1,
            has_near_box: false,
            doubtful: HashSet::new(),
            loose: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// The strongest marker that makes a step.
    fn strongest(&mut self) -> Marker {
        let mut strongest = Marker::Sentence;
        let mut outs: Vec<(u8, bool)> = Vec::new();
        let mut accepts = false;
        for (place, block) in self.blocks.iter().enumerate() {
            self.note_acceptance(place);
            let found = match block.kind {
                Kind::Heading(level) => {
                    outs.retain(|(other, _)| *other < level);
                    let is_out =
                        outs.last().is_some_and(|(_, is_out)| *is_out) || self.is_out_by(level, &block.inline.text);
                    outs.push((level, is_out));
                    let is_step = !is_out && heading_name(&block.inline.text).0.is_some();
                    if is_step { Marker::Number } else { Marker::Sentence }
                }
                Kind::Item(_) if self.notes[place] => {
                    accepts |= box_of(&block.inline.text).is_some();
                    Marker::Sentence
                }
                Kind::Item(_) if box_of(&block.inline.text).is_some() => Marker::Box,
                Kind::Item(_) if outs.last().is_some_and(|(_, is_out)| *is_out) => Marker::Sentence,
                Kind::Item(Some(_)) => Marker::Number,
                Kind::Item(None) => Marker::Bullet,
                Kind::Paragraph if bold_step(block).is_some() => Marker::Number,
                Kind::Paragraph | Kind::Fence { .. } | Kind::Other | Kind::Rule | Kind::Table(_) => Marker::Sentence,
            };
            strongest = strongest.min(found);
        }
        self.acceptance = None;
        // Without other boxes or numbers, what is to be accepted is what is to be done.
        if accepts && strongest > Marker::Number {
            self.notes.fill(false);
            strongest = Marker::Box;
        }
        strongest
    }

    /// True when a heading says that its section has no steps. The only title speaks of the whole file.
    fn is_out_by(&self, level: u8, heading: &str) -> bool {
        is_out(heading) && !(level == 1 && self.has_title)
    }

    /// Remembers which items are notes because of a line that says acceptance above them.
    fn note_acceptance(&mut self, place: usize) {
        let block = &self.blocks[place];
        let says = after_any(block.inline.text.trim(), &["acceptance", "done when"]).is_some();
        match block.kind {
            Kind::Item(number) if number.is_none() || box_of(&block.inline.text).is_some() => {
                let inherits = block.item.is_some_and(|item| {
                    self.notes[item]
                        || after_any(self.blocks[item].inline.text.trim(), &["acceptance", "done when"]).is_some()
                });
                if inherits || self.acceptance == Some(block.item) {
                    self.notes[place] = true;
                }
            }
            Kind::Heading(_) | Kind::Paragraph => self.acceptance = says.then_some(block.item),
            Kind::Item(_) | Kind::Fence { .. } | Kind::Other | Kind::Rule | Kind::Table(_) => {}
        }
    }

    fn take(&mut self, place: usize) {
        let block = &self.blocks[place];
        match &block.kind {
            Kind::Heading(level) => self.heading(place, *level),
            Kind::Item(number) => self.item(place, *number),
            Kind::Rule => self.tree.ignored.push(block.span),
            Kind::Table(rows) if self.marker == Marker::Sentence && prose::is_plan(rows) && !self.is_out() => {
                self.tree.ignored.push(block.span);
                prose::table(self, rows);
            }
            Kind::Paragraph if self.marker == Marker::Number && bold_step(block).is_some() => self.heading(place, 7),
            Kind::Paragraph if self.marker == Marker::Sentence && !self.is_out() => {
                prose::paragraph(self, place);
            }
            Kind::Paragraph | Kind::Fence { .. } | Kind::Other | Kind::Table(_) => {
                if self.marker == Marker::Sentence && matches!(block.kind, Kind::Other) {
                    self.doubtful.insert(self.place_of_section());
                }
                if block.kind == Kind::Paragraph {
                    self.note_list(place);
                }
                self.below(place);
            }
        }
    }

    /// Remembers a paragraph for the list below it and for the one above it. A list of boxes is a plan whatever is said
    /// around it, but for a line that introduces it.
    fn note_list(&mut self, place: usize) {
        let block = &self.blocks[place];
        let text = block.inline.text.trim_end();
        let is_lead = self.marker != Marker::Box || text.ends_with([':', '?']);
        let (_, listed) = self.lists.insert(block.item, (is_lead.then_some(place), Vec::new())).unwrap_or_default();
        if self.marker != Marker::Box && !text.ends_with(':') {
            listed.into_iter().for_each(|node| self.drafts[node].is_followed = true);
        }
    }

    fn is_out(&self) -> bool {
        self.is_option() || self.open.last().is_some_and(|section| self.sections[*section].is_out)
    }

    fn is_option(&self) -> bool {
        self.open.last().is_some_and(|section| self.sections[*section].is_option)
    }

    fn heading(&mut self, place: usize, level: u8) {
        let block = &self.blocks[place];
        let text = block.inline.text.trim();
        self.tree.ignored.push(block.span);
        self.lists.clear();
        self.open.retain(|section| self.sections[*section].level < level);
        self.current = None;
        let around = self.open.last().copied();
        let in_option = around.is_some_and(|section| self.sections[section].is_option);
        let is_out = around.is_some_and(|section| self.sections[section].is_out) || self.is_out_by(level, text);
        let has_no_commands = around.is_some_and(|section| self.sections[section].has_no_commands)
            || text.ends_with('?')
            || (has_no_commands(text) && !(level == 1 && self.has_title));
        let is_option = after_any(text, &["option", "alternative"]).is_some() || in_option;
        if level == 1 && self.tree.title.is_none() {
            self.tree.title = Some(text.to_owned());
        }
        if is_option && !in_option && !is_out {
            self.option(place, level);
        }
        let is_step = !(is_out || is_option)
            && match (heading_name(text).0, self.marker) {
                (Some(_), Marker::Number) => true,
                (Some(name), Marker::Box | Marker::Bullet | Marker::Sentence) => !line::is_number(&name),
                (None, _) => false,
            };
        let parent = if is_step { self.group() } else { None };
        self.sections.push(Section {
            level,
            block: place,
            parent: around,
            node: None,
            is_out,
            has_no_commands,
            is_option,
            has_steps: false,
        });
        let section = self.sections.len() - 1;
        self.open.push(section);
        if is_step {
            let node = self.step(block.inline.clone(), Some(place), parent);
            self.tree.nodes[node].alias = alias_of(text);
            self.sections[section].node = Some(node);
            self.current = Some(node);
        }
    }

    /// Sections that are options of one question.
    fn option(&mut self, place: usize, level: u8) {
        let text = self.blocks[place].inline.text.trim().to_owned();
        let before = self.sections.iter().rev().find(|section| section.level <= level);
        let is_next = before.is_some_and(|section| section.level == level && section.is_option);
        let last = self.drafts.last_mut().filter(|draft| is_next && draft.line.text.starts_with("Which of these: "));
        match last {
            Some(draft) => draft.line.text.insert_str(draft.line.text.len() - 1, &format!("; {text}")),
            None => {
                let parent = self.group();
                let node = self.step(self.blocks[place].inline.clone(), Some(place), parent);
                self.tree.nodes[node].task.kind = NodeKind::Clarification;
                let at = self.blocks[place].span.start;
                self.drafts[node].line = Inline::plain(&format!("Which of these: {text}?"), at);
            }
        }
    }

    fn item(&mut self, place: usize, number: Option<u64>) {
        let block = &self.blocks[place];
        let text = &block.inline.text;
        let has_box = box_of(text).is_some();
        let above = self.step_around(place);
        let is_step = !self.notes[place]
            && !is_struck(text)
            && contents::dependency_line(&block.inline, &self.headings).is_none()
            && match self.marker {
                Marker::Box => has_box && !self.is_option(),
                Marker::Number => {
                    !self.is_out()
                        && (number.is_some()
                            || above
                                .is_some_and(|above| self.ends_with_colon(above) || self.is_bullet_step(block.item)))
                }
                Marker::Bullet => !self.is_out(),
                Marker::Sentence => false,
            };
        if is_step && text[box_of(text).map_or(0, |(_, length)| length)..].trim().is_empty() {
            self.tree.parts.push((block.span, Part::LeftOut));
            self.tree.warn(block.span.start, "this step says nothing and is left out", "write what is to be done");
            return;
        }
        if is_near_box(text) && !std::mem::replace(&mut self.has_near_box, true) {
            self.tree.warn(
                block.span.start,
                "this is no box",
                "write a box with one sign and a space behind it: [ ] or [x]",
            );
        }
        if !is_step {
            let is_lost = self.marker == Marker::Box && number.is_some() && above.is_none();
            self.lost.extend(is_lost.then_some(place));
            return self.below(place);
        }
        let parent = above.or_else(|| self.group());
        let inline = block.inline.clone();
        let node = self.step(inline, Some(place), parent);
        let (lead, listed) = self.lists.entry(block.item).or_default();
        listed.push(node);
        let lead = *lead;
        self.drafts[node].lead = lead;
        let counted = number.map(|counted| written_number(self.text, block.span.start, counted));
        // A number in an indented list continues that of its parent.
        let prefix = above.and_then(|above| self.tree.nodes[above].name.clone()).filter(|name| line::is_number(name));
        let counted = match (counted, prefix) {
            (Some(counted), Some(prefix)) => Some(format!("{prefix}.{counted}")),
            (counted, _) => counted,
        };
        let made = &mut self.tree.nodes[node];
        made.name = made.name.take().or(counted);
        if let Some(lead) = lead.map(|lead| self.blocks[lead].inline.text.trim()) {
            made.beside |= says_parallel(lead);
            if made.when == When::Always && lead.ends_with(':') {
                made.when = line::condition_above(lead).unwrap_or_default();
            }
        }
        self.node_of[place] = Some(node);
        self.adopt(node, above);
        self.current = Some(node);
    }

    fn is_bullet_step(&self, item: Option<usize>) -> bool {
        item.is_some_and(|item| self.node_of[item].is_some() && self.blocks[item].kind == Kind::Item(None))
    }

    fn ends_with_colon(&self, node: usize) -> bool {
        self.drafts[node].line.text.trim_end().ends_with(':') || self.tree.nodes[node].parts_beside
    }

    /// `1.1` belongs to `1`, also when it is not indented.
    fn adopt(&mut self, node: usize, above: Option<usize>) {
        let Some(name) = self.tree.nodes[node].name.clone() else { return };
        let section = self.drafts[node].section;
        if let Some((prefix, _)) = name.rsplit_once('.').filter(|_| line::is_number(&name))
            && let Some(group) = self.named.get(prefix).copied().filter(|group| self.drafts[*group].section == section)
            && above != Some(group)
            && !self.tree.nodes[group].is_heading
        {
            self.tree.nodes[node].parent = Some(group);
            self.tree.nodes[group].is_group = true;
        }
        self.named.insert(name, node);
    }

    /// The nearest step around an item, or around what is below one.
    fn step_around(&self, place: usize) -> Option<usize> {
        let mut item = self.blocks[place].item;
        while let Some(known) = item {
            if let Some(node) = self.node_of[known] {
                return Some(node);
            }
            item = self.blocks[known].item;
        }
        None
    }

    /// A step with what its line says, below a parent that becomes a group.
    pub(super) fn step(&mut self, inline: Inline, block: Option<usize>, parent: Option<usize>) -> usize {
        let has_names = self.marker != Marker::Sentence || block.is_some();
        let Line { mut node, inline, odd } = line::read(inline, self.format, &self.headings, has_names);
        self.tree.warnings.extend(odd);
        node.at = block.map_or(node.at, |block| self.blocks[block].span.start);
        node.parent = parent;
        contents::attach(&mut node, &inline);
        node.parts_beside = says_parallel(&inline.text);
        if let Some(parent) = parent {
            self.tree.nodes[parent].is_group = true;
        }
        for section in &self.open {
            self.sections[*section].has_steps = true;
        }
        let section = self.place_of_section();
        let is_item = block.is_some_and(|block| matches!(self.blocks[block].kind, Kind::Item(_)));
        let asks_from = contents::trailing_question(&inline).filter(|_| is_item);
        let (line, question) = match asks_from {
            Some(at) => (inline.slice(0..at), Some(inline.slice(at..inline.text.len()))),
            None => (inline, None),
        };
        if contents::is_question(&line.text) {
            node.task.kind = NodeKind::Clarification;
        }
        let step = self.push(node, line, block, section);
        if let Some(question) = question {
            let default_answer = self.tree.nodes[step].task.default_answer.take();
            let task = TaskPlan { kind: NodeKind::Clarification, default_answer, ..TaskPlan::default() };
            let node = Node { parent, asked_before: true, ..Node::new(task, question.at(0)) };
            let asked = self.push(node, question, None, section);
            self.drafts[asked].span = Some(self.drafts[asked].line.span());
        }
        step
    }

    fn push(&mut self, node: Node, line: Inline, block: Option<usize>, section: usize) -> usize {
        self.drafts.push(Draft { block, line, section, ..Draft::default() });
        self.tree.nodes.push(node);
        self.tree.nodes.len() - 1
    }

    /// The group of the innermost open section.
    pub(super) fn group(&mut self) -> Option<usize> {
        let mut parent = None;
        for place in 0..self.open.len() {
            let section = self.open[place];
            let Section { level, block, node, .. } = self.sections[section];
            if level == 1 && self.has_title {
                continue;
            }
            let node = node.unwrap_or_else(|| self.section_group(section, block, parent));
            self.tree.nodes[node].is_group = true;
            parent = Some(node);
        }
        parent
    }

    fn section_group(&mut self, section: usize, block: usize, parent: Option<usize>) -> usize {
        let inline = self.blocks[block].inline.clone();
        let node = self.step(inline, Some(block), parent);
        self.drafts[node].section = section + 1;
        let made = &mut self.tree.nodes[node];
        made.is_group = true;
        made.is_heading = true;
        if made.when == When::Always {
            made.when = line::condition_above(&self.blocks[block].inline.text).unwrap_or_default();
        }
        made.alias = alias_of(&self.blocks[block].inline.text);
        self.sections[section].node = Some(node);
        node
    }

    /// A block that is no step: a note of the step that it belongs to, or of none.
    pub(super) fn below(&mut self, place: usize) {
        let block = &self.blocks[place];
        let current = self.current.filter(|current| {
            self.marker == Marker::Box || self.marker == Marker::Sentence || self.is_heading_step(*current)
        });
        match self.step_around(place).or(current) {
            Some(node) => self.drafts[node].below.push(place),
            None => {
                let is_shell = matches!(&block.kind, Kind::Fence { language, .. } if contents::is_shell(language));
                self.lost.extend((self.marker == Marker::Box && is_shell).then_some(place));
                self.loose.push((place, self.open.last().copied()));
            }
        }
    }

    fn is_heading_step(&self, node: usize) -> bool {
        let block = self.drafts[node].block;
        !self.tree.nodes[node].is_group && block.is_some_and(|block| !matches!(self.blocks[block].kind, Kind::Item(_)))
    }

    /// The innermost open section, counted from 1, or 0 without one.
    pub(super) fn place_of_section(&self) -> usize {
        self.open.last().map_or(0, |section| section + 1)
    }
}

/// The id or number of a heading, and the rest of it.
fn heading_name(text: &str) -> (Option<String>, &str) {
    match name_at(text.trim()) {
        Some((name, length)) => (Some(name), text.trim()[length..].trim()),
        None => (None, text.trim()),
    }
}

/// `Phase 2` of `Phase 2: Build`.
fn alias_of(text: &str) -> Option<String> {
    let (alias, _) = text.split_once([':', '\u{2014}'])?;
    let (_, number) = alias.trim().rsplit_once(' ')?;
    line::is_number(number).then(|| alias.trim().to_owned())
}

/// True when a heading says that its section has no steps.
fn is_out(text: &str) -> bool {
    let (_, rest) = heading_name(text);
    after_any(rest, &SECTIONS).is_some() && after(rest, "how to").is_none() || rest.contains("~~")
}

/// True when a heading has a word anywhere that withholds the commands of its section.
fn has_no_commands(text: &str) -> bool {
    let small = text.to_lowercase();
    find_word(text, &SECTIONS).or_else(|| find_word(text, &OVER)).is_some()
        || SECTIONS.iter().any(|words| words.contains(' ') && small.contains(words))
}

/// A bold paragraph that begins as a step does is a heading.
fn bold_step(block: &Block) -> Option<()> {
    let is_step = block.inline.is_bold
        && block.item.is_none()
        && block.inline.text.trim().get(..5).is_some_and(|head| head.eq_ignore_ascii_case("step "));
    (is_step && name_at(block.inline.text.trim()).is_some()).then_some(())
}

/// True of an item that is struck out as a whole.
fn is_struck(text: &str) -> bool {
    let text = box_of(text).map_or(text, |(_, length)| &text[length..]).trim();
    let bare = text.strip_prefix("~~").and_then(|rest| rest.strip_suffix("~~"));
    bare.is_some_and(|bare| !bare.contains("~~"))
}

/// True of a line whose items run side by side.
pub(super) fn says_parallel(text: &str) -> bool {
    text.trim().to_lowercase().ends_with("in parallel:")
}

/// The number or letter of an item as it is written; where numbers do not rise, as Markdown counts it.
fn written_number(text: &str, at: usize, counted: u64) -> String {
    let written = text[at..].trim_start_matches(['(', ' ', '\t']);
    let first = written.chars().next().filter(char::is_ascii_lowercase);
    if let Some(letter) = first.filter(|_| written[1..].starts_with(')')) {
        return letter.to_string();
    }
    let n_digits = written.bytes().take_while(u8::is_ascii_digit).count();
    written[..n_digits].parse().map_or(counted, |written: u64| written.max(counted)).to_string()
}
