//! Finds the steps of a Markdown file by its strongest marker, and the blocks that belong to each.

use super::blocks::{Block, Inline, Kind, blocks};
use super::finder::{Finder, Marker, Section, alias_of};
use super::line::{self, box_of, dependency_line, is_near_box, says_parallel};
use super::names::{is_number, name_at};
use super::tree::{Format, Part, Tree, When};
use super::words::{ACCEPTANCE, NEVER, OVER, SECTIONS, after, after_any, find_word, is_one_of};
use super::{contents, prose};
use crate::plan::NodeKind;

/// Reads a file.
pub(super) fn read(text: &str, format: Format) -> Tree {
    let blocks = blocks(text);
    let n_blocks = blocks.len();
    let tree = Tree { is_ordered: true, nodes: Vec::with_capacity(n_blocks.min(100_000)), ..Tree::default() };
    let (node_of, notes) = (vec![None; n_blocks], vec![false; n_blocks]);
    let mut finder = Finder { text, format, blocks, tree, node_of, notes, ..Finder::default() };
    finder.survey();
    for place in 0..n_blocks {
        finder.take(place);
    }
    contents::finish(finder)
}

impl Finder<'_> {
    /// Finds the sections, the acceptance lists and the strongest marker.
    fn survey(&mut self) {
        let mut titles = self.blocks.iter().filter(|block| block.kind == Kind::Heading(1));
        self.tree.title = titles.next().map(|block| block.inline.text.trim().to_owned());
        self.has_title = self.tree.title.is_some() && titles.next().is_none();
        self.is_denied = self.tree.title.as_ref().is_some_and(|title| find_word(title, &NEVER).is_some());
        let (mut section, mut accepts) = (None, false);
        for place in 0..self.blocks.len() {
            if let Kind::Heading(level) = self.blocks[place].kind {
                section = Some(self.survey_heading(place, level, section));
            }
            self.section_of.push(section);
            self.note_acceptance(place);
            if matches!(self.blocks[place].kind, Kind::Item(_)) && is_near_box(&self.blocks[place].inline.text) {
                let help = "write a box with one character, followed by a space: [ ] or [x]";
                self.warn(section, "box", self.blocks[place].span.start, "this is not a box", help);
            }
            let block = &self.blocks[place];
            if matches!(block.kind, Kind::Other | Kind::Paragraph) && begins_task(&self.text[block.span.start..]) {
                let help = "write them as a list";
                self.warn(None, "tags", block.span.start, "tasks in XML are not read", help);
            }
            let is_out = section.is_some_and(|section| self.sections[section].is_out);
            let block = &self.blocks[place];
            let text = block.inline.text.trim();
            let has_box = box_of(&block.inline.text).is_some();
            let mut around = section.filter(|_| has_box);
            while let Some(section) = around {
                self.sections[section].has_boxes = true;
                around = self.sections[section].parent;
            }
            let found = match &block.kind {
                Kind::Heading(level) if !(is_out || self.is_title(*level)) && name_at(text).is_some() => Marker::Number,
                Kind::Item(_) if self.notes[place] => {
                    accepts |= has_box;
                    Marker::Sentence
                }
                Kind::Item(_) if has_box => Marker::Box,
                Kind::Item(number) if !is_out => number.map_or(Marker::Bullet, |_| Marker::Number),
                _other => Marker::Sentence,
            };
            self.marker = self.marker.min(found);
        }
        self.acceptance = None;
        // In a file without other boxes and numbers, the acceptance list is the plan.
        if accepts && self.marker > Marker::Number {
            self.notes.fill(false);
            self.marker = Marker::Box;
        }
    }

    /// Adds the section of a heading, given the previous section.
    fn survey_heading(&mut self, place: usize, level: u8, before: Option<usize>) -> usize {
        let mut parent = before;
        while let Some(section) = parent.filter(|section| self.sections[*section].level >= level) {
            parent = self.sections[section].parent;
        }
        let text = self.blocks[place].inline.text.trim();
        let bare = without_name(text);
        let alias = alias_of(text);
        let names = [bare, text].into_iter().chain(alias.as_deref());
        self.headings.extend(names.map(str::to_lowercase));
        let is_title = self.is_title(level);
        let is_step = !is_title && after(text, "step").is_some() && name_at(text).is_some();
        self.n_steps += usize::from(is_step);
        let around = |holds: fn(&Section) -> bool| parent.is_some_and(|section| holds(&self.sections[section]));
        self.sections.push(Section {
            level,
            block: place,
            parent,
            node: None,
            is_out: around(|section| section.is_out) || !is_title && is_out(bare),
            has_no_commands: around(|section| section.has_no_commands)
                || text.ends_with('?')
                || if is_title { is_out(bare) } else { has_no_commands(text) },
            is_option: around(|section| section.is_option) || after_any(text, &["option", "alternative"]).is_some(),
            has_steps: false,
            is_step: is_step || around(|section| section.is_step),
            has_boxes: false,
        });
        self.sections.len() - 1
    }

    /// Marks items as notes if a line above them introduces acceptance criteria.
    fn note_acceptance(&mut self, place: usize) {
        let block = &self.blocks[place];
        let says = |block: &Block| after_any(block.inline.text.trim(), &ACCEPTANCE).is_some();
        match &block.kind {
            Kind::Item(number) if number.is_none() || box_of(&block.inline.text).is_some() => {
                let inherits = block.item.is_some_and(|item| self.notes[item] || says(&self.blocks[item]));
                self.notes[place] = inherits || self.acceptance == Some(block.item);
            }
            Kind::Heading(_) | Kind::Paragraph => self.acceptance = says(block).then_some(block.item),
            _other => {}
        }
    }

    fn take(&mut self, place: usize) {
        self.section = self.section_of[place];
        let block = &self.blocks[place];
        let reads_prose = self.marker == Marker::Sentence && !self.is_out();
        match &block.kind {
            Kind::Heading(_) => self.heading(place),
            Kind::Item(number) => self.item(place, *number),
            Kind::Rule => {
                self.tree.parts.push((block.span, Part::Heading));
                self.owner(place).into_iter().for_each(|node| self.drafts[node].below.push(place));
            }
            Kind::Table(rows) if reads_prose && prose::is_plan(rows) => prose::table(self, place),
            Kind::Paragraph if reads_prose => prose::paragraph(self, place),
            Kind::Paragraph => {
                self.note_list(place);
                self.below(place);
            }
            Kind::Fence { .. } | Kind::Other | Kind::Table(_) => {
                let is_doubtful = self.marker == Marker::Sentence && block.kind == Kind::Other;
                self.doubtful.extend(is_doubtful.then_some(self.section));
                self.below(place);
            }
        }
    }

    /// Keeps a paragraph for the list below it. Above boxes, only a line that introduces them counts.
    fn note_list(&mut self, place: usize) {
        let block = &self.blocks[place];
        let text = block.inline.text.trim_end();
        let has_boxes = self.marker == Marker::Box && !self.is_step(self.section);
        let is_lead = !has_boxes || text.ends_with([':', '?']);
        let (_, listed) = self.lists.insert(block.item, (is_lead.then_some(place), Vec::new())).unwrap_or_default();
        if !has_boxes && !text.ends_with(':') {
            listed.into_iter().for_each(|node| self.drafts[node].is_followed = true);
        }
    }

    fn heading(&mut self, place: usize) {
        let Some(section) = self.section else { return };
        let Section { level, parent, is_out, is_option, .. } = self.sections[section];
        let block = &self.blocks[place];
        self.tree.parts.push((block.span, Part::Heading));
        self.lists.clear();
        self.current = None;
        let name = name_at(block.inline.text.trim()).map(|(name, _)| name).filter(|_| !self.is_title(level));
        if is_option && !is_out && parent.is_none_or(|around| !self.sections[around].is_option) {
            self.option(place, section);
        } else if !self.is_out()
            && name
                .is_some_and(|name| self.marker == Marker::Number || !is_number(&name) || self.is_step(Some(section)))
        {
            let group = self.group(parent);
            let node = self.step(self.blocks[place].inline.clone(), Some(place), group);
            self.tree.nodes[node].alias = alias_of(&self.blocks[place].inline.text);
            self.sections[section].node = Some(node);
            self.current = Some(node);
        }
    }

    /// Merges sections that are options into one question, which belongs to the enclosing section.
    fn option(&mut self, place: usize, section: usize) {
        let Section { level, parent, .. } = self.sections[section];
        let Block { inline, span, .. } = &self.blocks[place];
        let text = inline.text.trim();
        let before = self.sections[..section].iter().rev().find(|section| section.level <= level);
        let is_next = before.is_some_and(|section| section.level == level && section.is_option);
        let last = self.drafts.last_mut().filter(|draft| is_next && draft.line.text.starts_with("Which of these: "));
        if let Some(draft) = last {
            draft.line.text.insert_str(draft.line.text.len() - 1, &format!("; {text}"));
        } else {
            let line = Inline::plain(&format!("Which of these: {text}?"), span.start);
            self.section = parent;
            let group = self.group(parent);
            let node = self.step(self.blocks[place].inline.clone(), Some(place), group);
            self.tree.nodes[node].task.kind = NodeKind::Clarification;
            self.drafts[node].line = line;
        }
    }

    fn item(&mut self, place: usize, number: Option<u64>) {
        let Block { inline, span, item, .. } = &self.blocks[place];
        let (text, span, item) = (&inline.text, *span, *item);
        let sign = box_of(text);
        let above = self.step_around(place);
        let has_parts = |above: usize| {
            let ends_with_colon = self.drafts[above].line.text.trim_end().ends_with(':');
            let is_bullet = |item: usize| self.node_of[item].is_some() && self.blocks[item].kind == Kind::Item(None);
            ends_with_colon || self.tree.nodes[above].parts_beside || item.is_some_and(is_bullet)
        };
        let is_step = !self.notes[place]
            && !is_struck(text)
            && match self.marker {
                Marker::Box => (sign.is_some() || item.is_none() && self.is_step(self.section)) && !self.is_option(),
                Marker::Number => !self.is_out() && (number.is_some() || above.is_some_and(has_parts)),
                Marker::Bullet => !self.is_out(),
                Marker::Sentence => false,
            }
            && dependency_line(inline, &self.headings).is_none();
        if is_step && text.len() < 40 && without_name(text[sign.map_or(0, |(_, length)| length)..].trim()).is_empty() {
            self.tree.parts.push((span, Part::LeftOut));
            self.tree.warn(span.start, "this step has no text and is left out", "describe the work");
            return;
        }
        if !is_step {
            let is_lost = self.marker == Marker::Box && number.is_some() && above.is_none();
            self.tree.lost.extend(is_lost.then_some(span));
            return self.below(place);
        }
        let parent = above.or_else(|| self.group(self.section));
        let inline = std::mem::take(&mut self.blocks[place].inline);
        let node = self.step(inline, Some(place), parent);
        let (lead, listed) = self.lists.entry(item).or_default();
        listed.push(node);
        self.drafts[node].lead = *lead;
        let lead = lead.map(|lead| self.blocks[lead].inline.text.trim());
        let counted = number.map(|counted| written_number(self.text, span.start, counted));
        // A number in an indented list continues its parent's number.
        let around = if self.is_step(self.section) { parent } else { above };
        let prefix = around.and_then(|around| self.tree.nodes[around].name.clone()).filter(|name| is_number(name));
        let prefix = prefix.map_or_else(String::new, |prefix| prefix + ".");
        let made = &mut self.tree.nodes[node];
        made.name = made.name.take().or_else(|| counted.map(|counted| prefix + &counted));
        if let Some(lead) = lead {
            made.beside |= says_parallel(lead);
            if made.when == When::Always && lead.ends_with(':') {
                made.when = line::condition_above(lead).unwrap_or_default();
            }
        }
        self.node_of[place] = Some(node);
        self.adopt(node, above);
        self.current = Some(node);
    }

    /// `1.1` belongs to `1`, even if it is not indented.
    fn adopt(&mut self, node: usize, above: Option<usize>) {
        let Some(name) = self.tree.nodes[node].name.clone().filter(|name| is_number(name)) else { return };
        let section = self.drafts[node].section;
        let is_group = |group: &usize| self.drafts[*group].section == section && !self.tree.nodes[*group].is_heading;
        let group = name.rsplit_once('.').and_then(|(prefix, _)| self.named.get(prefix).copied()).filter(is_group);
        if let Some(group) = group.filter(|group| above != Some(*group)) {
            self.tree.nodes[node].parent = Some(group);
            self.tree.nodes[group].is_group = true;
        }
        self.named.insert(name, node);
    }
}

/// A heading after its id or number.
fn without_name(text: &str) -> &str {
    name_at(text).map_or(text, |(_, length)| text[length..].trim())
}

/// True if a heading, after its number, marks a section without steps.
fn is_out(bare: &str) -> bool {
    after_any(bare, &SECTIONS).is_some() && after(bare, "how to").is_none() || bare.contains("~~")
}

/// True if a heading contains a word that withholds the commands of its section.
fn has_no_commands(text: &str) -> bool {
    let text = &text.to_lowercase().replace('/', " ");
    let has = |words: &&str| words.contains(' ') && text.contains(words);
    find_word(text, &SECTIONS).or_else(|| find_word(text, &OVER)).is_some() || SECTIONS.iter().any(has)
}

/// True for a text that begins with the tag of a task.
fn begins_task(text: &str) -> bool {
    let Some(tag) = text.strip_prefix('<') else { return false };
    let end = tag.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tag.len());
    is_one_of(
        &tag[..end].to_lowercase(),
        &["task", "tasks", "step", "steps", "todo", "todos", "action", "li", "ul", "ol"],
    )
}

/// True for an item that is struck out as a whole.
fn is_struck(text: &str) -> bool {
    let text = box_of(text).map_or(text, |(_, length)| &text[length..]).trim();
    let bare = text.strip_prefix("~~").and_then(|rest| rest.strip_suffix("~~"));
    bare.is_some_and(|bare| !bare.contains("~~"))
}

/// The number or letter of an item as written; Markdown's count if the numbers do not rise.
fn written_number(text: &str, at: usize, counted: u64) -> String {
    let written = text[at..].trim_start_matches(['(', ' ', '\t']);
    if let [letter @ b'a'..=b'z', b')', ..] = written.as_bytes() {
        return char::from(*letter).to_string();
    }
    let n_digits = written.bytes().take_while(u8::is_ascii_digit).count();
    written[..n_digits].parse().map_or(counted, |written: u64| written.max(counted)).to_string()
}
