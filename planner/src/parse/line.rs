//! One step: its box, its name, its brackets, its condition and what is left as its text.

use std::collections::HashSet;
use std::ops::Range;

use super::blocks::Inline;
use super::tree::{Format, Reference, When};
use super::words::{NEXT, after, after_any};
use crate::plan::{DefaultAnswer, FailurePolicy, Mark, TaskPlan};

/// Brackets of one line; further ones are text.
const BRACKETS_MAX: usize = 50;

/// A step's first line, taken apart.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The byte of the character in its box, with what the box says.
    pub state: Option<(usize, Mark)>,
    /// A box with a sign that the format does not have.
    pub strange_box: Option<usize>,
    pub is_optional: bool,
    pub name: Option<String>,
    pub beside: bool,
    pub waits_for: Vec<Reference>,
    pub when: When,
    pub settings: Settings,
    /// The rest.
    pub inline: Inline,
}

/// What brackets set.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub retry: Option<u32>,
    pub timeout_ms: Option<u64>,
    pub deadline_ms: Option<u64>,
    pub estimate_ms: Option<u64>,
    pub on_failure: Option<FailurePolicy>,
    pub compensate: Option<String>,
    pub default_answer: Option<DefaultAnswer>,
    pub files: Vec<String>,
    pub rerun_safe: bool,
    pub priority: Option<String>,
    pub assignee: Option<String>,
}

impl Settings {
    pub fn give(self, task: &mut TaskPlan) {
        let Self { retry, timeout_ms, deadline_ms, estimate_ms, on_failure, compensate, .. } = self;
        task.retry = retry;
        (task.timeout_ms, task.deadline_ms, task.estimate_ms) = (timeout_ms, deadline_ms, estimate_ms);
        (task.on_failure, task.compensate, task.default_answer) = (on_failure, compensate, self.default_answer);
        (task.files, task.rerun_safe) = (self.files, self.rerun_safe);
        (task.priority, task.assignee) = (self.priority, self.assignee);
    }
}

/// Takes a step's line apart. `headings` are the names of groups, in small letters.
pub(super) fn read(inline: Inline, format: Format, headings: &HashSet<String>, has_names: bool) -> Line {
    let mut line = Line { inline, ..Line::default() };
    line.take_box(format);
    if has_names {
        line.take_names();
    }
    line.take_brackets(headings);
    line.take_assignee();
    line.take_condition();
    line
}

impl Line {
    fn cut(&mut self, start: usize) {
        self.inline.cut_front(start);
    }

    fn take_box(&mut self, format: Format) {
        let text = &self.inline.text;
        if let Some((sign, length)) = box_of(text) {
            let at = self.inline.at(1);
            let mark = match (sign, format) {
                (' ', _) => Some(Mark::Open),
                ('x' | 'X', _) => Some(Mark::Done),
                ('~', Format::Kiro) => Some(Mark::Open),
                ('-', Format::Kiro) | ('~', Format::Markdown) => Some(Mark::InProgress),
                ('-', Format::Markdown) => Some(Mark::Cancelled),
                _unknown => None,
            };
            match mark {
                Some(mark) => self.state = Some((at, mark)),
                None => self.strange_box = Some(at),
            }
            self.is_optional = text[length..].starts_with('*');
            self.cut(length + usize::from(self.is_optional));
        }
    }

    /// Ids, numbers and the marks of parallel steps, in any order.
    fn take_names(&mut self) {
        for _ in 0..4 {
            let text = &self.inline.text;
            if let Some(rest) = after_any(text, &["[P]", "(P)", "(parallel)"]) {
                self.beside = true;
                self.cut(text.len() - rest.len());
            } else if let Some((name, length)) = name_at(text).filter(|_| self.name.is_none()) {
                self.name = Some(name);
                self.is_optional |= text[length..].starts_with('*');
                self.cut(length + usize::from(text[length..].starts_with("* ")));
            } else {
                break;
            }
        }
        // `[US1]` and other labels in brackets may stand before the mark.
        let text = self.inline.text.clone();
        if let Some(end) = text.strip_prefix('[').and_then(|rest| rest.find(']')).map(|end| end + 2)
            && let Some(rest) = after_any(text[end..].trim_start(), &["[P]", "(P)"])
        {
            self.beside = true;
            self.inline = self.without(text.len() - rest.len() - 3..text.len() - rest.len());
        }
        if let Some(bare) = self.inline.text.strip_suffix("[P]") {
            let end = bare.len();
            self.beside = true;
            self.inline = self.inline.slice(0..end);
        }
    }

    /// The text without a part of it.
    fn without(&self, part: Range<usize>) -> Inline {
        let (before, after) = (self.inline.slice(0..part.start), self.inline.slice(part.end..self.inline.text.len()));
        before.joined(&after)
    }

    fn take_brackets(&mut self, headings: &HashSet<String>) {
        let mut from = 0;
        for _ in 0..BRACKETS_MAX {
            let Some((open, close)) = bracket(&self.inline, from) else { break };
            let inside = self.inline.text[open + 1..close].trim().to_owned();
            let at = self.inline.at(open + 1);
            if self.take_bracket(&inside, at, headings) {
                self.inline = self.without(open..close + 1);
                from = open.min(self.inline.text.len());
            } else {
                from = open + 1;
            }
        }
    }

    fn take_bracket(&mut self, inside: &str, at: usize, headings: &HashSet<String>) -> bool {
        let settings = &mut self.settings;
        let lower = inside.to_lowercase();
        let value = |name: &str| {
            let rest = after(inside, name)?;
            let rest = rest.trim_start().strip_prefix(':').unwrap_or(rest).trim();
            (!rest.is_empty()).then_some(rest)
        };
        if let Some(references) = references(inside, at, headings) {
            self.waits_for.extend(references);
        } else if lower == "p" || lower == "parallel" {
            self.beside = true;
        } else if lower == "reads only" {
            // A step that changes no file needs no reservation; nothing else depends on it.
        } else if lower == "rerun: safe" {
            settings.rerun_safe = true;
        } else if is_priority(inside) {
            settings.priority = Some(inside.to_owned());
        } else if let Some(times) = value("retry").and_then(|times| times.parse().ok()) {
            settings.retry = Some(times);
        } else if let Some(length) = value("timeout").and_then(length_ms) {
            settings.timeout_ms = Some(length);
        } else if let Some(length) = value("deadline").and_then(length_ms) {
            settings.deadline_ms = Some(length);
        } else if let Some(length) = inside.strip_prefix('~').and_then(length_ms) {
            settings.estimate_ms = Some(length);
        } else if let Some(policy) = value("on failure").and_then(policy) {
            settings.on_failure = Some(policy);
        } else if let Some(command) = inside.strip_prefix("undo:") {
            settings.compensate = Some(command.trim().trim_matches('`').to_owned());
        } else if let Some(default) = inside.strip_prefix("default:").and_then(default_answer) {
            settings.default_answer = Some(default);
        } else if let Some(files) = inside.strip_prefix("files:") {
            let files = files.split(',').map(|file| file.trim().trim_matches('`').to_owned());
            settings.files.extend(files.filter(|file| !file.is_empty()));
        } else if let Some(priority) = inside.strip_prefix("priority:") {
            settings.priority = Some(priority.trim().to_owned());
        } else if let Some(assignee) = inside.strip_prefix("assignee:") {
            settings.assignee = Some(assignee.trim().trim_start_matches('@').to_owned());
        } else if let Some(text) = after(inside, "if").or_else(|| after(inside, "unless")) {
            let negated = after(inside, "unless").is_some();
            self.when = When::Asked { text: text.trim().to_owned(), negated };
        } else {
            return false;
        }
        true
    }

    fn take_assignee(&mut self) {
        let text = &self.inline.text;
        let Some((before, name)) = text.rsplit_once(" @") else { return };
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if is_name {
            self.settings.assignee = Some(name.to_owned());
            let end = before.len();
            self.inline = self.inline.slice(0..end);
        }
    }

    fn take_condition(&mut self) {
        let text = self.inline.text.clone();
        let lead = after_any(&text, &NEXT).map_or(text.as_str(), |rest| rest.trim_start_matches([',', ' ']));
        let (when, rest) = if let Some(rest) = after(lead, "otherwise") {
            (When::Otherwise, rest)
        } else if let Some(rest) = after(lead, "if") {
            let offset = text.len() - rest.len();
            let Some(comma) = self.inline.masked()[offset..].find(',') else { return };
            (condition(rest[..comma].trim()), &rest[comma..])
        } else {
            return;
        };
        let rest = rest.trim_start_matches([',', ':', ' ']);
        if rest.is_empty() {
            return;
        }
        self.when = when;
        self.cut(text.len() - rest.len());
    }
}

/// "it passes" and "it fails" are decided by the step before; a person is asked anything else.
fn condition(text: &str) -> When {
    let words = text.to_lowercase();
    let mut words = words.split_ascii_whitespace();
    let subject = words.next().unwrap_or_default();
    let verb = words.next().unwrap_or_default();
    let is_outcome = matches!(subject, "it" | "this" | "that" | "they" | "these" | "both") && words.next().is_none();
    match verb {
        "passes" | "pass" | "succeeds" | "succeed" | "passed" | "succeeded" if is_outcome => {
            When::Outcome { succeeded: true }
        }
        "fails" | "fail" | "failed" if is_outcome => When::Outcome { succeeded: false },
        _words => When::Asked { text: text.to_owned(), negated: false },
    }
}

/// The sign in a box at the beginning of a text, and the length of the box.
pub(super) fn box_of(text: &str) -> Option<(char, usize)> {
    let rest = text.strip_prefix('[')?;
    let sign = rest.chars().next()?;
    let length = 2 + sign.len_utf8();
    let after = text.get(length - 1..)?.strip_prefix(']')?;
    let after = after.strip_prefix('*').unwrap_or(after);
    // `[P]` is a mark of spec-kit.
    let is_box = (after.is_empty() || after.starts_with([' ', '\u{a0}'])) && !matches!(sign, 'P' | ']' | '[');
    is_box.then_some((sign, length))
}

/// The id or number at the beginning of a text, and its length with what separates it from the rest.
pub(super) fn name_at(text: &str) -> Option<(String, usize)> {
    let (lead, bare) = match after(text, "step").or_else(|| after(text, "task")) {
        Some(rest) => (text.len() - rest.trim_start().len(), rest.trim_start()),
        None => (0, text),
    };
    let end = bare.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '#'))).unwrap_or(bare.len());
    let word = bare[..end].trim_end_matches('.');
    let rest = &bare[word.len()..];
    let sign = rest.chars().next();
    let is_marked = matches!(sign, Some(':' | '.' | ')'));
    let is_name = match () {
        () if lead > 0 => is_number(word) && matches!(sign, Some(':' | '.' | ')')),
        () if is_number(word) => {
            is_marked && rest[1..].starts_with(' ') || word.contains('.') && matches!(sign, Some(' ' | '*'))
        }
        () => match (word.as_bytes(), sign) {
            ([letter], Some(':')) => letter.is_ascii_uppercase() && rest[1..].starts_with(' '),
            ([b'#', ..], Some(' ' | ':')) => is_number(&word[1..]) && !word.contains('.'),
            (_, Some(':' | '.')) => is_id(word) && rest[1..].starts_with(' '),
            (_, Some(' ') | None) => is_id(word) && is_plain_id(word),
            (_, Some(_)) => false,
        },
    };
    let length = lead + word.len() + usize::from(is_marked);
    is_name.then(|| (word.to_owned(), length))
}

/// `3`, `2.1`.
pub(super) fn is_number(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= 12
        && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// Capitals and digits, with a hyphen between them or a small letter behind: `T001`, `ABC-7`, `T100f`.
fn is_id(word: &str) -> bool {
    let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
    let rest = word[letters..].strip_prefix('-').unwrap_or(&word[letters..]);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let tail = &rest[digits..];
    (1..=6).contains(&letters)
        && (1..=9).contains(&digits)
        && tail.len() <= 1
        && tail.bytes().all(|b| b.is_ascii_lowercase())
}

/// An id that needs no colon: one to three capitals and two digits or more.
fn is_plain_id(word: &str) -> bool {
    let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
    letters <= 3 && !word.contains('-') && word[letters..].bytes().take_while(u8::is_ascii_digit).count() >= 2
}

/// `P0`, `high`.
fn is_priority(text: &str) -> bool {
    matches!(text.as_bytes(), [b'P' | b'p', b'0'..=b'9'])
}

/// The next pair of round brackets outside code, from an offset.
fn bracket(inline: &Inline, from: usize) -> Option<(usize, usize)> {
    let is_in_code = |at: usize| {
        let after = inline.codes.partition_point(|code| code.range.end <= at);
        inline.codes.get(after).is_some_and(|code| code.range.contains(&at))
    };
    let mut open = None;
    for (at, c) in inline.text.get(from..)?.char_indices().map(|(at, c)| (at + from, c)) {
        match (c, open) {
            ('(', _) if !is_in_code(at) => open = Some(at),
            (')', Some(open)) if !is_in_code(at) => return Some((open, at)),
            _other => {}
        }
    }
    None
}

/// The names in a written dependency, unless the text is something else.
pub(super) fn references(text: &str, at: usize, headings: &HashSet<String>) -> Option<Vec<Reference>> {
    let rest = after_any(text, &["after", "depends on", "needs", "blocked by", "requires"])?;
    names(rest, at + (text.len() - rest.len()), headings)
}

/// The names in a list, unless one of them can be none.
pub(super) fn names(list: &str, at: usize, headings: &HashSet<String>) -> Option<Vec<Reference>> {
    let list = list.strip_prefix(':').unwrap_or(list);
    let mut found = Vec::new();
    for part in list.split([',', ';', '&']).flat_map(|part| part.split(" and ")) {
        let name = part.trim().trim_end_matches('.').trim_matches('`');
        let name = name.strip_prefix("and ").unwrap_or(name).trim();
        let bare = ["task ", "step ", "tasks ", "steps "].iter().find_map(|word| {
            name.get(..word.len()).filter(|head| head.eq_ignore_ascii_case(word)).map(|_| &name[word.len()..])
        });
        let bare = bare.unwrap_or(name);
        let is_name = is_number(bare)
            || is_id(bare)
            || matches!(bare.as_bytes(), [b'A'..=b'Z'])
            || is_address(bare)
            || bare.strip_prefix('#').is_some_and(is_number)
            || headings.contains(&name.to_lowercase());
        if !is_name {
            return None;
        }
        let offset = part.as_ptr() as usize - list.as_ptr() as usize;
        let name = if headings.contains(&name.to_lowercase()) { name } else { bare };
        found.push(Reference { name: name.to_owned(), at: at + offset + 1 });
    }
    (!found.is_empty()).then_some(found)
}

/// `Deploy/2`, `2/question`.
fn is_address(name: &str) -> bool {
    let place = name.rsplit_once('/').map(|(_, place)| place);
    place.is_some_and(|place| place == "question" || is_number(place))
}

/// `90s`, `10m`, `2h`, `1d`, `500ms`, in milliseconds.
fn length_ms(text: &str) -> Option<u64> {
    let digits = text.trim().bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.trim().split_at(digits);
    let unit = match unit.trim().to_lowercase().as_str() {
        "ms" => 1,
        "s" | "sec" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _unit => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|length| *length > 0)
}

fn policy(text: &str) -> Option<FailurePolicy> {
    [FailurePolicy::SkipDependants, FailurePolicy::Continue, FailurePolicy::Stop, FailurePolicy::Ask]
        .into_iter()
        .find(|policy| policy.as_str() == text.to_lowercase())
}

/// `yes after 1h`.
fn default_answer(text: &str) -> Option<DefaultAnswer> {
    let (answer, after) = text.rsplit_once(" after ")?;
    Some(DefaultAnswer { answer: answer.trim().to_owned(), after_ms: length_ms(after)? })
}
