//! What a step says about itself beside its text: id, markers, priority, who, dependencies, limits.

use super::dialects;
use super::draft::Reference;
use super::inline::Inline;
use super::labels::{label, priority_head};
use super::phrases::{Words, after_any, list, strip_prefix_ci};
use super::plain::{Removed, plain};
use super::references;
use super::settings::{Settings, files, looks_like_setting};
use super::states;
use super::text::{Flow, find_early, has_byte, is_white, trim, trim_start};
use super::waits::{BEFORE, WAITS, undone};
use crate::plan::Mark;

/// Everything taken out of a step's text, and what is left.
#[derive(Debug, Default)]
pub(super) struct Meta {
    pub(super) label: Option<String>,
    /// `[P]`.
    pub(super) beside: bool,
    /// "(in parallel)".
    pub(super) parallel: bool,
    /// "(in parallel with 2)": what it is beside is no part of it.
    pub(super) alongside: bool,
    /// "After the review, ...": the text before the comma was a wait.
    pub(super) led: bool,
    pub(super) group: Option<String>,
    pub(super) priority: Option<String>,
    pub(super) assignee: Option<String>,
    /// "(in progress)".
    pub(super) mark: Option<Mark>,
    pub(super) needs: Option<Vec<Reference>>,
    pub(super) before: Vec<Reference>,
    pub(super) set: Settings,
    /// Where the text begins behind a wait that stood before it.
    pub(super) begin: usize,
    /// Brackets whose code belongs to a setting and is no command.
    pub(super) hidden: Option<(usize, usize)>,
    /// Words that look like a setting and cannot be read, and where.
    pub(super) unread: Vec<(usize, String)>,
    /// Something was taken out of the description.
    pub(super) shortened: bool,
    pub(super) description: String,
}

impl Meta {
    /// Takes what stood before the text.
    pub(super) fn lead(&mut self, head: Self) {
        self.label = head.label;
        self.beside |= head.beside;
        self.group = head.group.or(self.group.take());
        self.priority = head.priority.or(self.priority.take());
        self.mark = head.mark.or(self.mark);
    }

    /// Takes what stood at the end of the text, behind what is kept of it.
    pub(super) fn end(&mut self, mut tail: Self) {
        self.beside |= tail.beside;
        self.group = self.group.take().or(tail.group.take());
        self.hidden = self.hidden.or(tail.hidden);
        self.unread.append(&mut tail.unread);
        tail.take_into(self);
    }

    /// Gives another what was read of a step.
    fn take_into(&mut self, meta: &mut Self) {
        match (&mut meta.needs, self.needs.take()) {
            (Some(all), Some(mut needs)) => all.append(&mut needs),
            (none, Some(needs)) => *none = Some(needs),
            (_, None) => {}
        }
        meta.before.append(&mut self.before);
        if self.set.any() {
            meta.set.take(std::mem::take(&mut self.set));
        }
        meta.priority = self.priority.take().or(meta.priority.take());
        meta.assignee = self.assignee.take().or(meta.assignee.take());
        meta.mark = self.mark.or(meta.mark);
        meta.parallel |= self.parallel;
        meta.alongside |= self.alongside;
    }

    /// Turns places in the flow into places in the source.
    pub(super) fn locate(&mut self, flow: &Flow) {
        for (at, _) in &mut self.unread {
            *at = flow.source(*at);
        }
        for reference in self.needs.iter_mut().flatten().chain(&mut self.before) {
            match reference {
                Reference::Name(_, at)
                | Reference::Range(_, _, at)
                | Reference::Phrase(_, at)
                | Reference::Word(_, at) => {
                    *at = flow.source(*at);
                }
                Reference::Previous | Reference::Above | Reference::Both => {}
            }
        }
    }
}

/// Words that may stand before those in brackets.
static STARTS: Words = Words::new(|| {
    list(
        "start|starts|starting|begin|begins|run|runs|do|only|only start|can start|can only start|must start|must run|\
         must be done|should be done|has to be done|needs to be done|must happen|should happen|must come|\
     should start|to be done|comes|goes",
    )
});

/// Reads a step from `from..to`; positions in references are places in `text`.
pub(super) fn extract(text: &str, inline: &Inline, from: usize, to: usize, item: bool) -> Meta {
    let mut meta = Meta::default();
    let start = if item { head(&mut meta, text, inline, from, to) } else { from };
    extract_after(&mut meta, text, inline, start, to);
    meta
}

/// Reads what follows a head in `start..to`.
pub(super) fn extract_after(meta: &mut Meta, text: &str, inline: &Inline, start: usize, to: usize) {
    let mut reader = Reader { text, inline, meta: &mut *meta, removed: Removed::default() };
    reader.brackets(start, to);
    reader.phrases(start, to);
    reader.tags(start, to);
    let mut removed = reader.removed;
    let removed = removed.sorted();
    meta.shortened = !removed.is_empty();
    meta.description = plain(text, inline, start, to, removed);
}

/// Takes a text that is nothing but settings: "owner: dana", "depends: 2".
pub(super) fn settings(text: &str, inline: &Inline, from: usize, to: usize) -> Option<Meta> {
    let mut meta = Meta::default();
    let inside = &text[from..to];
    let named = inside.find(':').is_some_and(|at| inside[..at].split_whitespace().nth(1).is_none());
    let read = named && Reader { text, inline, meta: &mut meta, removed: Removed::default() }.details(inside, from);
    read.then_some(meta)
}

/// Reads the id and the markers before a text, and says where it begins.
pub(super) fn head(meta: &mut Meta, text: &str, inline: &Inline, from: usize, to: usize) -> usize {
    Reader { text, inline, meta, removed: Removed::default() }.head(from, to)
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) inline: &'a Inline,
    pub(super) meta: &'a mut Meta,
    pub(super) removed: Removed,
}

impl Reader<'_> {
    /// Id and markers before the text; gives where the text begins.
    fn head(&mut self, from: usize, to: usize) -> usize {
        let mut at = from;
        for _ in 0..6 {
            let part = &self.text[at..to];
            let rest = trim_start(part);
            let start = at + (part.len() - rest.len());
            if let Some(length) = self.head_tag(rest) {
                at = start + length;
                continue;
            }
            if let Some(length) = priority_head(rest) {
                self.meta.priority = rest.get(..2).map(str::to_owned);
                at = start + length;
                continue;
            }
            if let Some(length) = dialects::urgency(rest) {
                self.meta.priority = rest.get(1..2).map(str::to_owned);
                at = start + length;
                continue;
            }
            if self.meta.label.is_none()
                && let Some((label, length)) = label(rest)
            {
                self.meta.label = Some(label.to_owned());
                at = start + length;
                continue;
            }
            break;
        }
        if is_white(&self.text[at..to]) { from } else { at }
    }

    fn head_tag(&mut self, rest: &str) -> Option<usize> {
        let inner = rest.strip_prefix('[')?;
        let inner = &inner[..find_early(inner, b']', 17)?];
        let length = inner.len() + 2;
        let after = &rest[length..];
        if after.starts_with(['(', '[', ':']) || !self.tag(inner) {
            return None;
        }
        Some(length)
    }

    /// `[P]`, `[US1]`, `[P1]`.
    pub(super) fn tag(&mut self, inner: &str) -> bool {
        // None of them has two words.
        if inner.bytes().any(|byte| byte == b' ') {
            return false;
        }
        if matches!(inner, "P" | "p") {
            self.meta.beside = true;
            return true;
        }
        let digits = inner.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let head = &inner[..inner.len() - digits.len()];
        let numbered = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if inner.eq_ignore_ascii_case("parallel") {
            self.meta.beside = true;
        } else if numbered && matches!(head, "US" | "us" | "Story" | "STORY") {
            self.meta.group = Some(inner.to_owned());
        } else if let Some(letter) = inner.strip_prefix('#').filter(|letter| matches!(*letter, "A" | "B" | "C")) {
            self.meta.priority = Some(letter.to_owned());
        } else if let Some(mark) = states::said(inner) {
            self.meta.mark = Some(mark);
        } else if (numbered && head == "P" && digits.len() == 1) || is_priority(inner) {
            self.meta.priority = Some(inner.to_owned());
        } else {
            return false;
        }
        true
    }

    fn brackets(&mut self, from: usize, to: usize) {
        let first = self.inline.brackets.partition_point(|(open, _)| *open < from);
        for (open, close) in &self.inline.brackets[first..] {
            if *close >= to {
                break;
            }
            self.bracket((*open, open + 1), (*close, close + 1));
        }
        // Wide ones stand at the end.
        let part = self.text[from..to].trim_end();
        let wide = part.strip_suffix('\u{ff09}').and_then(|inner| inner.rfind('\u{ff08}').zip(Some(inner.len())));
        if let Some((open, close)) = wide {
            let width = '\u{ff08}'.len_utf8();
            self.bracket((from + open, from + open + width), (from + close, from + close + width));
        }
    }

    /// Takes a bracket out that says something about the step.
    fn bracket(&mut self, (begin, from): (usize, usize), (to, end): (usize, usize)) {
        let inside = &self.text[from..to];
        if inside.len() <= 2_000 && (self.tag(trim(inside)) || self.details(inside, from)) {
            self.removed.push((begin, end));
            if has_byte(inside, b'`') {
                self.meta.hidden = Some((begin, end));
            }
        }
    }

    /// `depends on 1, 2; retry 3`: true when every part was understood.
    pub(super) fn details(&mut self, inside: &str, at: usize) -> bool {
        let mut found = Meta::default();
        let mut waiting = None;
        let mut listing = false;
        let mut strict = false;
        let mut from = 0;
        while from <= inside.len() {
            let part = &inside[from..from + part_length(&inside[from..])];
            let place = at + from + (part.len() - trim_start(part).len());
            from += part.len() + 1;
            let part = trim(part);
            if part.is_empty() {
                continue;
            }
            // In a list of names most parts are nothing else.
            let named = waiting.is_some() && references::is_plain_id(part) && !is_priority(part);
            let read = if named { Detail::Nothing } else { detail(part, place, &mut found) };
            let more = if listing && matches!(read, Detail::Nothing) { files(part) } else { None };
            listing = more.is_some() || matches!(read, Detail::Files);
            match (waiting, read) {
                (_, Detail::Waits(is_strict)) => {
                    waiting = Some(true);
                    strict = is_strict;
                }
                (_, Detail::Before) => {
                    waiting = Some(false);
                    strict = false;
                }
                (_, Detail::Other | Detail::Files) => waiting = None,
                (Some(true), Detail::Nothing) => {
                    let list = if strict { references::names } else { references::list };
                    list(found.needs.get_or_insert_default(), part, place);
                }
                (Some(false), Detail::Nothing) => references::list(&mut found.before, part, place),
                (None, Detail::Nothing) if listing => found.set.files.extend(more.into_iter().flatten()),
                (None, Detail::Nothing) => {
                    if looks_like_setting(part) {
                        self.meta.unread.push((place, part.to_owned()));
                    } else if found.assignee.is_some() {
                        self.meta.unread.push((at, inside.trim().to_owned()));
                    }
                    return false;
                }
            }
        }
        self.take(&mut found)
    }

    fn take(&mut self, found: &mut Meta) -> bool {
        let any = found.needs.is_some() || !found.before.is_empty() || found.set.any();
        let any = any || found.priority.is_some() || found.assignee.is_some() || found.parallel || found.mark.is_some();
        found.take_into(self.meta);
        any
    }
}

pub(super) fn is_priority(word: &str) -> bool {
    static PRIORITIES: Words = Words::new(|| list("p0|p1|p2|p3|p4|low|medium|high|critical|urgent|highest|lowest"));
    PRIORITIES.contains_ci(word)
}

/// How long a text is up to the next comma or semicolon outside code and quotes.
fn part_length(text: &str) -> usize {
    let mut code = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b',' | b';' if !code => return at,
            b'`' | b'"' => code = !code,
            _ => {}
        }
    }
    text.len()
}

enum Detail {
    /// True when the words after it can only name tasks.
    Waits(bool),
    Before,
    Files,
    Other,
    Nothing,
}

/// Words that only name tasks; "after" and its like can name anything.
static STRICT: Words =
    Words::new(|| list("depend|dependencies|dependency|deps|blocked|needs|requires|prerequisite|waits for"));

/// One part of a bracket.
fn detail<'t>(part: &'t str, at: usize, found: &mut Meta) -> Detail {
    let unsigned = |rest: &'t str| rest.trim_start_matches([':', '=', ' ']);
    let value = |words: &[&str]| after_any(part, words).map(unsigned);
    // "(start after the tests)".
    let started = STARTS.after(part).map(str::trim_start);
    let begun = started.and_then(|rest| WAITS.after(rest)).map(unsigned);
    if let Some(rest) = WAITS.after(part).map(unsigned).or(begun) {
        let mut names = rest;
        names = undone(names);
        let place = at + part.len() - rest.len();
        let strict = STRICT.begin_ci(part);
        let list = if strict { references::names } else { references::list };
        list(found.needs.get_or_insert_default(), names, place);
        return Detail::Waits(strict);
    }
    let begun = started.and_then(|rest| BEFORE.after(rest)).map(unsigned);
    if let Some(rest) = BEFORE.after(part).map(unsigned).or(begun) {
        references::list(&mut found.before, rest, at + part.len() - rest.len());
        return Detail::Before;
    }
    if found.set.read(part) {
        return Detail::Other;
    }
    if let Some(mark) = states::said(part) {
        found.mark = Some(mark);
        return Detail::Other;
    }
    let named = strip_prefix_ci(part, "priority").is_none().then(|| part.strip_suffix(" priority")).flatten();
    if let Some(word) = named.or(Some(part)).filter(|word| is_priority(word)) {
        found.priority = Some(word.to_owned());
        return Detail::Other;
    }
    if let Some(rest) =
        value(&["priority", "prio"]).filter(|rest| !rest.is_empty() && rest.len() <= 16 && !rest.contains(' '))
    {
        found.priority = Some(rest.to_owned());
        return Detail::Other;
    }
    if let Some(name) = value(&["assignee", "owner", "assigned to"])
        .or_else(|| part.strip_prefix('@'))
        .filter(|name| !name.is_empty() && name.len() <= 64)
    {
        found.assignee = Some(name.trim_start_matches('@').to_owned());
        return Detail::Other;
    }
    if let Some(paths) = value(&["files"]).and_then(files) {
        found.set.files.extend(paths);
        return Detail::Files;
    }
    let lower = part.to_ascii_lowercase();
    let alongside = ["in parallel with ", "parallel to ", "alongside "].iter().any(|word| lower.starts_with(word));
    if alongside || matches!(lower.as_str(), "in parallel" | "parallel") {
        found.alongside |= alongside;
        found.parallel = true;
        return Detail::Other;
    }
    Detail::Nothing
}
