//! Parses the line of one step into box, name, brackets, condition and remaining text.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use super::blocks::Inline;
use super::names::{is_id, is_number, name_at};
use super::program::may_run;
use super::tree::{Format, Node, Reference, Tree, When};
use super::words::{DEPENDS, NEXT, UNSURE, after, after_any, after_order, find_word, first_word, kind_of, sentences};
use crate::plan::{DefaultAnswer, Mark, Span};
use crate::text::{length_ms, price};

/// The most brackets in one line; further ones are text.
const BRACKETS_MAX: usize = 50;
/// The settings with a value; `retry: 2` may be written `retry 2`, the others need their colon.
const SETTINGS: [&str; 10] =
    ["retry", "timeout", "deadline", "on failure", "undo:", "default:", "files:", "priority:", "assignee:", "budget:"];

struct Line<'a> {
    node: Node,
    /// The rest of the text.
    inline: Inline,
    tree: &'a mut Tree,
}

/// Parses a step's first line, and returns the rest of it. `headings` are the names of groups, in small letters.
pub(super) fn read(
    inline: Inline,
    format: Format,
    headings: &HashSet<String>,
    has_names: bool,
    tree: &mut Tree,
) -> (Node, Inline) {
    let node = Node { at: inline.at(0), ..Node::default() };
    let mut line = Line { node, inline, tree };
    line.take_box(format);
    line.take_parallel();
    line.take_brackets(headings);
    if has_names {
        line.take_name();
    }
    line.take_assignee();
    line.take_condition();
    (line.node, line.inline)
}

impl Line<'_> {
    fn take_box(&mut self, format: Format) {
        let Some((sign, length)) = box_of(&self.inline.text) else { return };
        let at = self.inline.at(1);
        self.node.state = Some(Span { start: at, end: at + sign.len_utf8() });
        self.node.task.mark = match (sign, format) {
            (' ', _) | ('~', Format::Kiro) => Mark::Open,
            ('x' | 'X', _) => Mark::Done,
            ('-', Format::Kiro) | ('~', _) => Mark::InProgress,
            ('-', _) => Mark::Cancelled,
            _unknown => {
                self.node.state = None;
                let help = "write [ ], [x], [~] or [-]; until then a person has to resume the step";
                self.tree.warn(at, "unknown character in a box", help);
                Mark::Deferred
            }
        };
        self.node.task.optional = self.inline.text[length..].starts_with('*');
        self.inline.cut(0..length + usize::from(self.node.task.optional));
    }

    /// `[P]` at the end of the text, or at its start after an id and labels.
    fn take_parallel(&mut self) {
        static MARK: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"^(?:(?:\[[^\]\s]*\]|\S*[0-9]\S*)\s*)*\[P\][ \[]| \[P\]$").expect("it is a constant")
        });
        let masked = if self.inline.text.contains("[P]") { self.inline.masked() } else { return };
        let found = MARK.find(&masked).and_then(|found| Some(found.start() + found.as_str().rfind("[P]")?));
        if let Some(at) = found {
            self.node.beside = true;
            self.inline.cut(at..at + 3);
        }
    }

    fn take_name(&mut self) {
        if let Some((name, length)) = name_at(&self.inline.text) {
            self.node.name = Some(name);
            let rest = &self.inline.text[length..];
            self.node.task.optional |= rest.starts_with('*');
            let length = length + usize::from(rest.starts_with("* "));
            self.inline.cut(0..length);
        }
    }

    fn take_brackets(&mut self, headings: &HashSet<String>) {
        let mut from = 0;
        for _ in 0..BRACKETS_MAX {
            let Some((open, close)) = bracket(&self.inline, from) else { break };
            let inside = self.inline.text[open + 1..close].trim();
            let at = self.inline.at(open + 1);
            if set_all(&mut self.node, inside, at, headings) || set(&mut self.node, inside, at, headings) {
                from = self.inline.text[..open].trim_end().len();
                self.inline.cut(open..close + 1);
            } else {
                let is_needed =
                    after_any(inside, &["after", "needs"]).is_some_and(|it| it.contains(|c: char| c.is_ascii_digit()));
                let is_setting = after_any(inside, &["rerun:", "on-failure", "depends on", "blocked by"]).is_some();
                if is_needed || is_setting || after_any(inside, &SETTINGS).is_some() {
                    let help = "use a documented form, such as (retry 2) or (depends on T001)";
                    let message = "crewlog does not understand these brackets and keeps them as text";
                    self.tree.warn(at, message, help);
                }
                from = open + 1;
            }
        }
    }

    fn take_assignee(&mut self) {
        let text = &self.inline.text;
        let Some((before, name)) = text.rsplit_once(" @") else { return };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if is_name {
            self.node.task.assignee = Some(name.to_owned());
            let part = before.len()..text.len();
            self.inline.cut(part);
        }
    }

    /// A second condition stays in the text, where it withholds a command.
    fn take_condition(&mut self) {
        if self.node.when != When::Always {
            return;
        }
        let text = &self.inline.text;
        let lead = after_any(text, &NEXT).map_or(text.as_str(), |rest| rest.trim_start_matches([',', ' ']));
        let asked = after(lead, "if");
        let Some(rest) = asked.or_else(|| after(lead, "otherwise")) else { return };
        let comma = asked.map_or(Some(0), |_| self.inline.masked()[text.len() - rest.len()..].find(','));
        let Some(comma) = comma else {
            // `If it is a release:` as the line above its steps.
            self.node.when = condition_above(lead).filter(|_| rest.ends_with(':')).unwrap_or_default();
            return;
        };
        let when = asked.map_or(When::Otherwise, |rest| condition(rest[..comma].trim()));
        let rest = &rest[comma..];
        let rest = rest.trim_start_matches([',', ':', ' ']);
        if !rest.is_empty() {
            let length = text.len() - rest.len();
            self.node.when = when;
            self.inline.cut(0..length);
        }
    }
}

/// Applies several settings in one pair of brackets, or none of them.
fn set_all(node: &mut Node, inside: &str, at: usize, headings: &HashSet<String>) -> bool {
    let mut changed = if inside.contains(',') { node.clone() } else { return false };
    let are_set = inside.split(',').all(|part| set(&mut changed, part.trim(), at, headings));
    *node = if are_set { changed } else { return false };
    true
}

/// Applies a setting in brackets; false if it is not a setting.
fn set(node: &mut Node, inside: &str, at: usize, headings: &HashSet<String>) -> bool {
    if let Some(references) = references(inside, at, headings) {
        node.waits_for.extend(references);
        return true;
    }
    match inside.to_ascii_lowercase().as_str() {
        "p" | "parallel" => node.beside = true,
        "reads only" => node.task.reads_only = true,
        "rerun: safe" => node.task.rerun_safe = true,
        priority if matches!(priority.as_bytes(), [b'p', b'0'..=b'9']) => node.task.priority = Some(inside.to_owned()),
        _other => return set_value(node, inside).is_some(),
    }
    true
}

/// Applies a setting with a value.
fn set_value(node: &mut Node, inside: &str) -> Option<()> {
    let task = &mut node.task;
    if let Some(estimate) = inside.strip_prefix('~') {
        task.estimate_ms = Some(length_ms(estimate)?);
        return Some(());
    }
    if let Some(text) = after_any(inside, &["if", "unless"]).filter(|_| node.when == When::Always) {
        let negated = after(inside, "unless").is_some();
        node.when = When::Asked { text: text.trim().to_owned(), negated };
        return Some(());
    }
    let (name, value) = SETTINGS.iter().find_map(|name| {
        let rest =
            after(inside, name.trim_end_matches(':')).or_else(|| after(inside, &name.replace(' ', "-")))?.trim_start();
        let value = rest.strip_prefix(':').or_else(|| (!name.ends_with(':')).then_some(rest))?.trim();
        (!value.is_empty()).then_some((*name, value))
    })?;
    let text = || value.trim_matches('`').to_owned();
    match name {
        "retry" => task.retry = Some(value.parse().ok()?),
        "timeout" => task.timeout_ms = Some(length_ms(value)?),
        "budget:" => task.budget_micros = Some(price(value).ok().filter(|budget| *budget > 0)?),
        "deadline" => task.deadline_ms = Some(length_ms(value)?),
        "on failure" => task.on_failure = Some(value.parse().ok()?),
        "undo:" if may_run(&text()) => task.compensate = Some(text()),
        "default:" => task.default_answer = Some(DefaultAnswer::read(value)?),
        "files:" => {
            let files = value.split(',').map(|file| file.trim().trim_matches('`').to_owned());
            task.files.extend(files.filter(|file| !file.is_empty()));
        }
        "priority:" => task.priority = Some(text()),
        "assignee:" => task.assignee = Some(text().trim_start_matches('@').to_owned()),
        _other => return None,
    }
    Some(())
}

/// "it passes" and "it fails" are decided by the previous step; any other condition by a person.
fn condition(text: &str) -> When {
    let words = text.to_lowercase();
    match words.split_ascii_whitespace().collect::<Vec<_>>().as_slice() {
        ["it" | "this" | "that" | "they" | "these" | "both", verb] => match *verb {
            "passes" | "pass" | "succeeds" | "succeed" | "passed" | "succeeded" => When::Outcome { succeeded: true },
            "fails" | "fail" | "failed" => When::Outcome { succeeded: false },
            _verb => When::Asked { text: text.to_owned(), negated: false },
        },
        _words => When::Asked { text: text.to_owned(), negated: false },
    }
}

/// The condition in a heading or in a line above a list.
pub(super) fn condition_above(text: &str) -> Option<When> {
    let text = text.trim().trim_end_matches(':');
    match after(text, "otherwise") {
        Some(rest) => rest.trim().is_empty().then_some(When::Otherwise),
        None => after(text, "if").map(|rest| condition(rest.trim())),
    }
}

/// True for a text that begins like a box, but has none.
pub(super) fn is_near_box(text: &str) -> bool {
    let inside = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(inside, _)| inside.trim());
    inside.is_some_and(|inside| matches!(inside, "" | "x" | "X")) && box_of(text).is_none()
}

/// The sign in a box at the beginning of a text, and the length of the box.
pub(super) fn box_of(text: &str) -> Option<(char, usize)> {
    let rest = text.strip_prefix('[')?;
    let sign = rest.chars().next()?;
    let length = 2 + sign.len_utf8();
    let after = text.get(length - 1..)?.strip_prefix(']')?;
    let after = after.strip_prefix('*').unwrap_or(after);
    // `[P]` is a mark of spec-kit, `[1]` a reference.
    let is_sign = matches!(sign, 'x' | 'X') || !sign.is_alphanumeric() && !matches!(sign, ']' | '[');
    let is_box = (after.is_empty() || after.starts_with([' ', '\t', '\u{a0}'])) && is_sign;
    is_box.then_some((sign, length))
}

/// The next pair of round brackets outside code, from an offset.
fn bracket(inline: &Inline, from: usize) -> Option<(usize, usize)> {
    let first = from + inline.text.get(from..)?.find('(')?;
    let masked = inline.masked();
    let first = first + masked[first..].find('(')?;
    let close = first + masked[first..].find(')')?;
    Some((first + masked[first..close].rfind('(')?, close))
}

/// The names in a written dependency, unless the text is something else.
pub(super) fn references(text: &str, at: usize, headings: &HashSet<String>) -> Option<Vec<Reference>> {
    let rest = after_any(text, &["after", "depends on", "needs", "blocked by", "requires"])?;
    names(rest, at + (text.len() - rest.len()), headings)
}

/// The names in a list, unless one of them is not a name.
pub(super) fn names(list: &str, at: usize, headings: &HashSet<String>) -> Option<Vec<Reference>> {
    let list = list.strip_prefix(':').unwrap_or(list);
    let mut found = Vec::new();
    for part in list.split([',', ';', '&']).flat_map(|part| part.split(" and ")) {
        let name = part.trim().trim_end_matches('.').trim_matches('`');
        let name = name.strip_prefix("and ").unwrap_or(name).trim();
        let bare = after_any(name, &["task", "step", "tasks", "steps"]).filter(|rest| rest.starts_with(' '));
        let bare = bare.map_or(name, str::trim_start);
        // `Deploy/2`, `2/question`.
        let place = bare.rsplit_once('/').map(|(_, place)| place);
        let is_name = is_number(bare.strip_prefix('#').unwrap_or(bare))
            || is_id(&bare.to_ascii_uppercase())
            || matches!(bare.as_bytes(), [b'A'..=b'Z'])
            || place.is_some_and(|place| place == "question" || is_number(place));
        let is_heading = !(is_name && bare == name) && headings.contains(&name.to_lowercase());
        if !is_name && !is_heading {
            return None;
        }
        found.push(Reference {
            name: if is_heading { name } else { bare }.to_owned(),
            at: at + Span::of(list, part).start + 1,
        });
    }
    (!found.is_empty()).then_some(found)
}

/// Reads a line such as `Depends on: 2.1`.
pub(super) fn dependency_line(inline: &Inline, headings: &HashSet<String>) -> Option<Vec<Reference>> {
    let rest = after_any(inline.text.trim(), &DEPENDS)?;
    let list = rest.trim_start().strip_prefix(':')?;
    names(list, inline.at(inline.text.len() - list.len()), headings)
}

/// The start of a question that follows its subject in the same line.
pub(super) fn trailing_question(inline: &Inline) -> Option<usize> {
    let is_question = |part: &str| part.trim_end().ends_with('?');
    if !is_question(&inline.text) {
        return None;
    }
    let masked = inline.masked();
    let sentences = sentences(&masked);
    let first = sentences.iter().position(|sentence| is_question(&masked[sentence.clone()]))?;
    (first > 0).then(|| sentences[first].start)
}

/// True for an order that is in doubt: `Fix the login, maybe in auth or session?`
pub(super) fn is_unsure(inline: &Inline) -> bool {
    let is_order = kind_of(&first_word(verb_of(&inline.text))).is_some() && inline.codes.is_empty();
    is_order && inline.text.trim_end().ends_with('?') && find_word(&inline.text, &UNSURE).is_some()
}

/// True for a step that asks a person.
pub(super) fn is_question(text: &str) -> bool {
    let text = text.trim_end();
    text.ends_with(['?', '\u{ff1f}']) || text.ends_with("TBD")
}

/// A text from its verb on.
pub(super) fn verb_of(text: &str) -> &str {
    let mut text = text.trim_start();
    while let Some((_, after)) = text.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        text = after.trim_start();
    }
    let rest = after_order(text);
    // `Name: verb ...` assigns the step.
    let head = &rest[..rest.floor_char_boundary(100)];
    let is_name = |name: &str| name.split_whitespace().count() <= 2 && kind_of(&name.to_lowercase()).is_none();
    head.split_once(": ").filter(|(name, _)| is_name(name)).map_or(rest, |(name, _)| &rest[name.len() + 2..])
}

/// True for a line whose items run in parallel.
pub(super) fn says_parallel(text: &str) -> bool {
    let text = text.trim();
    text.get(text.len().saturating_sub(12)..).is_some_and(|end| end.eq_ignore_ascii_case("in parallel:"))
}
