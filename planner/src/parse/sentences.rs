//! Running text to clauses: sentence ends and the connectors between instructions.

use std::iter::Peekable;

use super::bytes::{FOREIGN, QUESTION, SPEECH};
use super::connectors::{self, connector, next_connects, starts_with_pronoun};
use super::draft::Link;
use super::inline::Inline;
use super::phrases::{Word, Words, after_word, begins, list, lower, words};
use super::questions::{asides, quotes_question, strip_default};
use super::starts::{CONNECTOR, STOP};
use super::text::{Flow, has_byte, holds, is_cjk, is_white, trim_end, trim_start};
use super::{elsewhere, speakers, unasked, vocabulary};

/// What ended a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// A full stop, a semicolon, a connector or the end.
    Plain,
    /// A question mark.
    Question,
    /// A colon at the end of the text.
    Colon,
}

/// A part of a text: `start..end` with its signs, `from..to` without the connector and the full stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clause {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) link: Link,
    /// "otherwise ...".
    pub(super) otherwise: bool,
    pub(super) stop: Stop,
}

impl Clause {
    /// What it says, without connector and full stop.
    pub(super) fn text<'f>(&self, flow: &'f Flow) -> &'f str {
        flow.text.get(self.from..self.to).unwrap_or("")
    }
}

/// A text is cut into at most so many clauses, which is more than a plan may have tasks; the last keeps the rest.
const CLAUSES_MAX: usize = 2 * super::parsed::TASKS_MAX;

/// An order to which another is joined is no longer.
const ORDER_BYTES_MAX: usize = 400;

/// A row of steps between arrows is no longer than this, nor is one of them.
const ROW_BYTES_MAX: usize = 300;
const ROW_WORDS_MAX: usize = 6;

/// None of the following is longer, in Latin letters without a full stop.
const ABBREVIATION_BYTES_MAX: usize = 6;
/// Words before a full stop that does not end a sentence.
static ABBREVIATIONS: Words = Words::new(|| {
    list(
        "e.g|i.e|eg|ie|vs|cf|dr|mr|mrs|ms|prof|st|fig|approx|dept|est|ca|resp|incl|excl|viz|al|eq|sec|ch|vol|jr|\
     sr|a.k.a|w.r.t|p.s|u.s|u.k|e.u|z.b|d.h|bzw|ggf|evtl|inkl|exkl|vgl|bspw|nr|mme|mlle|p.ej",
    )
});
/// The same, unless a capital letter follows.
static SOFT_ABBREVIATIONS: Words = Words::new(|| {
    list(
        "etc|inc|ltd|co|corp|a.m|p.m|no|nos|max|min|ext|ver|rev|art|p|pp|chap|para|figs|eqs|ed|mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|\
     apr|jun|jul|aug|sep|sept|oct|nov|dec",
    )
});

/// With these every connector inside a sentence begins, and other words too.
static CONNECTORS: Words = Words::new(|| {
    list("and |and,|then|next|finally|after|lastly|subseq|meanwhile|at the|in par|simul|otherwise|else|if not")
});
/// After "and", the next step.
static AND_THEN: Words = Words::new(|| list("then|after that|finally|afterwards"));
/// After "and", a step beside the one before.
static AND_BESIDE: Words = Words::new(|| list("in parallel|meanwhile|at the same time|simultaneously"));
/// After a comma, a step of its own.
static LISTED: Words = Words::new(|| {
    list(
        "finally|after that|afterwards|lastly|subsequently|after which|meanwhile|at the same time|in parallel|\
     simultaneously",
    )
});

/// Splits a text; the clauses cover it from end to end.
pub(super) fn clauses(text: &str, inline: &Inline) -> Vec<Clause> {
    let mut found = Vec::new();
    read(text, inline, &mut found);
    found
}

/// The same, in the memory of clauses that are done.
pub(super) fn read(text: &str, inline: &Inline, clauses: &mut Vec<Clause>) {
    clauses.clear();
    let mut splitter = Splitter { text, cuts: Vec::new(), conditional: false, begin: 0 };
    splitter.run(inline);
    let mut cuts = splitter.cuts;
    let speakers = if inline.has(SPEECH) { speakers::speakers(text) } else { Vec::new() };
    let asks = inline.has(QUESTION | FOREIGN);
    if !speakers.is_empty() {
        cuts.extend(speakers.iter().map(|(at, _)| *at).filter(|at| *at > 0));
        cuts.sort_unstable();
        cuts.dedup();
    }
    if inline.has(QUESTION) && holds(text, "?)") {
        cuts.extend(asides(text, inline));
        cuts.sort_unstable();
        cuts.dedup();
    }
    clauses.reserve(cuts.len() + 1);
    let mut start = 0;
    for end in cuts.into_iter().chain(std::iter::once(text.len())) {
        if !is_white(&text[start..end]) {
            let said = speakers.iter().find(|(at, length)| *at == start && at + length <= end);
            let said = said.map_or(0, |(_, length)| *length);
            let mut next = Clause { start, ..clause(text, start + said, end, asks) };
            let ran = || clauses.last().is_some_and(|last| connectors::runs(&text[last.from..last.to]));
            if next.link == Link::Free && connectors::and_works(&text[start..]) && ran() {
                next.link = Link::Then;
            }
            clauses.push(next);
            if next.stop == Stop::Question {
                ask_for_all(text, clauses);
            }
        }
        start = end;
    }
}

/// "Could you resize it, and then send it?" asks for both things, and is no question.
fn ask_for_all(text: &str, clauses: &mut [Clause]) {
    let Some((last, before)) = clauses.split_last_mut() else { return };
    let ends = |clause: &&Clause| text[clause.start..clause.end].trim_end().ends_with(['.', '!', '?', ';', '\u{3002}']);
    let first = before.iter().rev().take(16).take_while(|clause| !ends(clause)).last();
    if first.is_some_and(|first| vocabulary::is_request(&text[first.from..first.to])) {
        last.stop = Stop::Plain;
    }
}

/// One clause; `asks` where a question mark can stand in the text.
fn clause(text: &str, start: usize, end: usize, asks: bool) -> Clause {
    let part = &text[start..end];
    let mut from = start + (part.len() - trim_start(part).len());
    let (mut link, mut otherwise) = (Link::Free, false);
    for _ in 0..3 {
        let rest = &text[from..end];
        let Some((found, negated, length)) = connector(rest) else { break };
        if rest[length..].trim_matches(|c: char| !c.is_alphanumeric() && c != '`').is_empty() {
            // "Then:" above code is the place of the code.
            link = if rest.trim_end().ends_with(':') { found } else { link };
            break;
        }
        if found != Link::Free {
            link = found;
        }
        otherwise |= negated;
        from += length;
    }
    let tail = trim_end(&text[from..end]);
    let aside = tail.strip_suffix(['.', ',']).filter(|tail| tail.starts_with('(') && tail.ends_with("?)"));
    let tail = aside.unwrap_or(tail);
    if link == Link::Free && ends_after(tail) {
        link = Link::Then;
    }
    let answer = if asks && (has_byte(tail, b'?') || !tail.is_ascii()) {
        tail.rfind('(').filter(|at| strip_default(&tail[*at..]).is_some())
    } else {
        None
    };
    let shown = answer.map_or(tail, |at| tail[..at].trim_end());
    let asked = asks && shown.trim_end_matches(['!', '\u{ff01}']).ends_with(['?', '\u{ff1f}']);
    let stop = match tail.chars().next_back() {
        Some(_) if asked => Stop::Question,
        Some(':' | '\u{ff1a}') => Stop::Colon,
        Some(_) | None if asks && vocabulary::is_question_mark(tail) && !quotes_question(tail) => Stop::Question,
        Some(_) | None => Stop::Plain,
    };
    let urgent = tail.ends_with(" !!") || tail.ends_with(" !!!");
    let to = from + if urgent { tail } else { bare(unmarked(tail)) }.len();
    Clause { start, end, from, to, link, otherwise, stop }
}

/// True for a text with a letter, a digit or a closing bracket at its end, as most clauses have, and no sign that parts.
fn is_worded(tail: &str) -> bool {
    tail.as_bytes().last().is_some_and(|last| last.is_ascii_alphanumeric() || matches!(last, b')' | b'`'))
}

/// A clause without the marks of a question or an order.
fn unmarked(tail: &str) -> &str {
    if is_worded(tail) { tail } else { tail.trim_end_matches(['?', '\u{ff1f}', '!', '\u{ff01}']) }
}

/// "Deploy both afterwards."
fn ends_after(tail: &str) -> bool {
    let plain = if is_worded(tail) { tail } else { tail.trim_end_matches(['.', '!', ';', ',', '\u{2019}', '*', '_']) };
    // Most clauses end in another letter.
    let ends = plain.ends_with(['s', 'd', 't'])
        && ["afterwards", "afterward", "after that"]
            .iter()
            .any(|end| plain.strip_suffix(end).is_some_and(|before| before.ends_with(' ')));
    ends && !plain.ends_with("right after that")
}

/// A clause without the signs that end it and without a connector that the next one left behind.
fn bare(tail: &str) -> &str {
    let ends = |c: char| {
        matches!(
            c,
            '\u{3002}' | '\u{964}' | '\u{ff1b}' | '\u{ff1a}' | '\u{ff0c}' | '\u{ff01}' | '\u{3001}' | '\u{2225}'
        )
    };
    let signs = |c: char| matches!(c, '.' | ';' | ':' | ',' | '!') || ends(c) || c.is_whitespace();
    if is_worded(tail) && !tail.ends_with(" and") && !tail.ends_with(" or") {
        return tail;
    }
    let mut short = tail;
    // A quote that was never opened.
    if let Some(quote) = short.chars().next_back().filter(|c| matches!(c, '"' | '\'')) {
        let rest = &short[..short.len() - 1];
        if rest.ends_with(['.', '!', '?']) && tail_of(rest, 0, rest.len(), 2_000).matches(quote).count() % 2 == 0 {
            short = rest.trim_end_matches(['?', '\u{ff1f}']);
        }
    }
    // An ellipsis or an abbreviation keeps its full stop.
    if !(short.ends_with("...") || short.ends_with("etc.")) {
        short = short.trim_end_matches(signs);
    }
    for word in [" and", ", and", " or"] {
        short = short.strip_suffix(word).unwrap_or(short);
        short = if is_worded(short) { short } else { short.trim_end_matches(signs) };
    }
    short
}

pub(super) struct Splitter<'a> {
    pub(super) text: &'a str,
    /// Where the second clause begins, and those after it.
    cuts: Vec<usize>,
    /// The sentence began with "if", so that its "then" belongs to it.
    conditional: bool,
    begin: usize,
}

impl Splitter<'_> {
    fn run(&mut self, inline: &Inline) {
        self.start(0);
        let mut starts = inline.starts.of(CONNECTOR | STOP, 0).peekable();
        let mut at = 0;
        for (start, end) in &inline.guards {
            self.between(&mut starts, at, *start);
            at = *end;
            self.after_guard(at, self.before(at));
        }
        self.between(&mut starts, at, self.text.len());
    }

    /// The text between two guards.
    fn between(&mut self, starts: &mut Peekable<impl Iterator<Item = usize>>, from: usize, to: usize) {
        while let Some(at) = starts.next_if(|at| *at < to) {
            if at < from {
                continue;
            }
            let byte = self.text.as_bytes()[at];
            let c = if byte.is_ascii() { char::from(byte) } else { self.text[at..].chars().next().unwrap_or(' ') };
            if byte.is_ascii_alphabetic() {
                self.word(at);
            } else if !self.sign(at, c) && is_cjk(c) {
                self.cjk_word(at);
            }
        }
    }

    /// Where the clause begins that is read now.
    pub(super) fn last(&self) -> usize {
        self.cuts.last().copied().unwrap_or(0)
    }

    fn start(&mut self, at: usize) {
        self.begin = at;
        let rest = self.text[at..].trim_start();
        self.conditional = begins(rest, &["if", "when", "unless", "then if"]);
    }

    fn cut(&mut self, at: usize, sentence: bool) {
        if self.cuts.len() + 1 < CLAUSES_MAX && self.last() < at {
            self.cuts.push(at);
            if sentence {
                self.start(at);
            }
        }
    }

    /// A full stop inside quotes ends the sentence around them when a capital letter follows.
    fn after_guard(&mut self, at: usize, last: char) {
        if !matches!(last, '"' | '\u{201d}' | '\'' | '\u{300d}') {
            return;
        }
        let inside = self.text[..at - last.len_utf8()].chars().next_back();
        let capital = self.text[at..].trim_start().chars().next().is_some_and(char::is_uppercase);
        if matches!(inside, Some('.' | '!' | '?' | '\u{3002}'))
            && self.text[at..].starts_with(char::is_whitespace)
            && capital
        {
            self.cut(at, true);
        }
    }

    /// Sentence ends and semicolons.
    fn sign(&mut self, at: usize, c: char) -> bool {
        let end = at + c.len_utf8();
        let rest = &self.text[end..];
        match c {
            '\u{3002}' | '\u{964}' | '\u{ff01}' | '\u{ff1f}' | '\u{ff1b}' => self.cut(end, true),
            ';' => self.cut(end, false),
            ',' => {
                let conditional = || elsewhere::is_conditional(&self.text[self.begin..]);
                if elsewhere::listed(rest) && !conditional() || elsewhere::otherwise(rest) && conditional() {
                    self.cut(end + 1, false);
                }
            }
            '\u{2225}' => self.cut(at, false),
            '\u{2192}' | '-' if self.leads_on(at, c) => self.cut(at, false),
            '\n' if self.line_breaks(at) => self.cut(end, true),
            '.' | '!' | '?' => {
                if rest.starts_with(['.', '!', '?']) {
                    return true;
                }
                let closes = |c: &char| matches!(c, '"' | '\'' | ')' | ']' | '*' | '_' | '\u{201d}' | '\u{2019}');
                let closers: usize = rest.chars().take(4).take_while(closes).map(char::len_utf8).sum();
                let after = &rest[closers.min(rest.len())..];
                // "Go on? (default: yes after 10m)" is one clause.
                if c == '?' && strip_default(after).is_some() {
                    return true;
                }
                if (after.is_empty() || after.starts_with(char::is_whitespace) || after.starts_with(is_cjk))
                    && (c != '.' || self.full_stop(at, after))
                {
                    self.cut(end + closers, true);
                }
            }
            _ => return false,
        }
        true
    }

    /// True for the arrow in "build it -> test it", where both sides are instructions.
    fn leads_on(&self, at: usize, c: char) -> bool {
        let Some(rest) = self.text[at + c.len_utf8()..].strip_prefix(if c == '-' { ">" } else { "" }) else {
            return false;
        };
        let before = self.text.get(self.last()..at).unwrap_or("");
        let before = before.trim_start_matches(['-', '>', '\u{2192}', ' ']);
        let acts = |part: &str| vocabulary::begins_with_verb(part);
        rest.starts_with(' ') && ((acts(rest) && acts(before)) || self.is_row(at))
    }

    /// True when the line with the arrow at `at` is a row of steps, most of which say what to do: "deploy it -> smoke
    /// test -> announce it".
    fn is_row(&self, at: usize) -> bool {
        const ENDS: [&str; 3] = ["\n", ". ", "; "];
        let before = tail_of(self.text, self.begin, at, ROW_BYTES_MAX);
        let start = ENDS.iter().filter_map(|end| before.rfind(end).map(|found| found + end.len())).max().unwrap_or(0);
        let from = at - (before.len() - start);
        let rest = &self.text[from..];
        let rest = rest.char_indices().nth(ROW_BYTES_MAX).map_or(rest, |(end, _)| &rest[..end]);
        let end = ENDS.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        let line = rest[..end].trim_end_matches('.');
        if line.len() >= ROW_BYTES_MAX {
            return false;
        }
        let parts: Vec<&str> = line.split("->").flat_map(|part| part.split('\u{2192}')).map(str::trim).collect();
        let short = |part: &&str| !part.is_empty() && part.split_whitespace().count() <= ROW_WORDS_MAX;
        let n_acts = parts.iter().filter(|part| vocabulary::begins_with_verb(part)).count();
        parts.len() > 2 && parts.iter().all(short) && n_acts * 2 > parts.len()
    }

    /// True when the full stop at `at` is not that of an abbreviation.
    fn full_stop(&self, at: usize, after: &str) -> bool {
        let tail = tail_of(self.text, self.begin, at, 24);
        // A longer word is no abbreviation, no number and no name.
        let long = tail.as_bytes().last_chunk::<{ ABBREVIATION_BYTES_MAX + 1 }>();
        if long.is_some_and(|word| word.iter().all(u8::is_ascii_lowercase)) && !self.text[at + 1..].starts_with('.') {
            return true;
        }
        let word = tail.rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '"' | ',')).next().unwrap_or("");
        let word = lower(word);
        let next = after.trim_start().chars().next();
        // "Los Angeles, CA. Next" ends a sentence.
        let shouted = tail.ends_with(|c: char| c.is_uppercase()) && word.len() == 2;
        if word.ends_with('.') || self.text[at + 1..].starts_with('.') {
            return next.is_none_or(char::is_uppercase);
        }
        if ABBREVIATIONS.contains(&word) && !shouted {
            return next.is_none();
        }
        if SOFT_ABBREVIATIONS.contains(&word) {
            // "2:30 a.m. UTC"
            let zone = after.split_whitespace().next().unwrap_or("").trim_end_matches(['.', ',', ')']);
            if word.ends_with(".m") && (2..=4).contains(&zone.len()) && zone.bytes().all(|b| b.is_ascii_uppercase()) {
                return false;
            }
            return next.is_none_or(char::is_uppercase);
        }
        // "Restore the v1.2. dump", "version 2. of it": no sentence begins with what follows a number in lower case,
        // unless that is an instruction; behind a version not even then.
        if word.ends_with(|c: char| c.is_ascii_digit()) && next.is_some_and(char::is_lowercase) {
            let after = after.trim_start();
            let is_version = word.starts_with('v') && word.contains('.');
            return connector(after).is_some()
                || !is_version && (vocabulary::begins_with_verb(after) || starts_with_pronoun(after));
        }
        let initial = word.chars().count() == 1
            && word.chars().all(char::is_alphabetic)
            && tail.ends_with(char::is_uppercase)
            && !matches!(&*word, "i" | "c" | "r" | "x" | "b" | "a")
            // "Build D. Finally, ..." is no name.
            && !(vocabulary::begins_with_verb(after) || connector(after.trim_start()).is_some());
        if elsewhere::is_ordinal(tail, &word, after) || elsewhere::is_short(tail, &word, after) {
            return false;
        }
        // A sentence that is only a number was the sign of an item.
        let sign = tail.trim().strip_prefix('T').unwrap_or(tail.trim());
        let numeral = sign.len() < 4 && sign.bytes().all(|b| b.is_ascii_digit()) && at - self.begin < 5;
        !initial && !numeral
    }

    /// The character before a place.
    fn before(&self, at: usize) -> char {
        self.text[..at].chars().next_back().unwrap_or(' ')
    }

    /// Connectors of scripts without spaces.
    fn cjk_word(&mut self, at: usize) {
        static WORDS: Words = Words::new(|| {
            list(
                "\u{4e0e}\u{6b64}\u{540c}\u{65f6}|\u{6700}\u{5f8c}\u{306b}|\u{7136}\u{540e}|\u{63a5}\u{7740}|\
                 \u{6700}\u{540e}|\u{968f}\u{540e}|\u{540c}\u{65f6}|\u{63a5}\u{4e0b}\u{6765}|\u{5426}\u{5219}|\
                 \u{305d}\u{306e}\u{5f8c}|\u{6b21}\u{306b}",
            )
        });
        let is_inside = self.text[..at].ends_with("\u{4e0e}\u{6b64}");
        let rest = &self.text[at..];
        let is_again = rest.starts_with('\u{518d}')
            && self.text[..at].ends_with('\u{ff0c}')
            && !rest.starts_with("\u{518d}\u{6b21}");
        let is_connector = WORDS.begin(rest);
        if !is_again && (is_inside || !is_connector) {
            return;
        }
        let from = self.last();
        let before = tail_of(self.text, from, at, 32)
            .trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{ff0c}' | '\u{3001}'));
        if !before.is_empty() {
            self.cut(at, false);
        }
    }

    /// Connectors inside a sentence.
    fn word(&mut self, at: usize) {
        let rest = &self.text[at..];
        if elsewhere::joined(rest) && self.before(at) == ' ' && !elsewhere::is_conditional(&self.text[self.begin..]) {
            self.cut(at, false);
        }
        let previous = self.before(at);
        if previous.is_alphanumeric() || matches!(previous, '-' | '/' | '_' | '.' | '\'') {
            return;
        }
        if CONNECTORS.begin_ci(rest) && self.connects(at, rest) {
            self.cut(at, false);
        }
    }

    /// True when the sentence is an order up to here, and nothing that is forbidden, told, asked or left to somebody.
    fn orders(&self, at: usize) -> bool {
        static TOLD: Words = Words::new(|| {
            list("that|which|who|whom|whose|how|where|whether|why|what|when|to|says|said|not|never|i|i'll|i've")
        });
        let said = tail_of(self.text, self.begin, at, ORDER_BYTES_MAX);
        let whole = self.begin + said.len() == at;
        let plain = connector(said.trim_start()).map_or(said, |(.., length)| &said.trim_start()[length..]);
        let told = |word: Word| TOLD.contains(word.as_str());
        whole
            && vocabulary::begins_with_verb(plain)
            && !unasked::forbids(plain)
            && !said.contains(':')
            && !words(said).any(told)
    }

    fn connects(&self, at: usize, rest: &str) -> bool {
        // Most of these words are an "and" that joins no step.
        let second = after_word(rest, "and").map(|after| after.strip_prefix(' ').unwrap_or(""));
        let [then, beside] = [&AND_THEN, &AND_BESIDE].map(|list| second.and_then(|second| list.after(second)));
        if second.is_some() && then.or(beside).is_none_or(|after| after.starts_with(['\'', '\u{2019}'])) {
            let runs = || connectors::and_runs(rest) && !has_byte(&self.text[self.last()..at], b'`');
            let works = || connectors::runs(&self.text[self.last()..at]) && connectors::and_works(rest);
            return (connectors::joined(rest).is_some() || runs() || works()) && self.orders(at);
        }
        let from = self.last();
        let before = tail_of(self.text, from, at, 64).trim_end();
        if before.trim_matches(|c: char| !c.is_alphanumeric()).is_empty() {
            return false;
        }
        let comma = before.ends_with(',')
            || before.ends_with('\u{2014}')
            || before.ends_with(" -")
            || before.ends_with('\u{2192}');
        let joined = before.ends_with(" and") || before.ends_with(",and");
        let ends = |after: &str| after.trim_start().starts_with(['.', '!', '?', ';', ')']);
        let verb =
            |after: &str| !ends(after) && (vocabulary::begins_with_verb(after) || after.trim_start().starts_with('`'));
        if (then.is_some() || after_word(rest, "then").is_some()) && keeps_shell(before) {
            return false;
        }
        if let Some(after) = then {
            return !self.conditional || verb(after.trim_start_matches([',', ' ']));
        }
        if let Some(after) = after_word(rest, "then") {
            // "Only then" begins the sentence.
            if before.trim_start().eq_ignore_ascii_case("only") {
                return false;
            }
            if self.conditional
                && !joined
                && !holds(tail_of(self.text, self.begin, at, 400), ", then")
                && !self.has_branch(at)
            {
                return false;
            }
            let last = before.rsplit(' ').next().unwrap_or("");
            // "First to the testers, then to everyone" is one step.
            let again = begins(after.trim_start(), &["to", "in", "on", "for", "from", "with", "by", "at", "into"]);
            // "A script that fetches it, then cleans it" is one thing.
            let told = || elsewhere::tells(tail_of(self.text, self.begin, at, 400), after);
            return (comma && !ends(after) && !again && !told())
                || (verb(after)
                    && !joined
                    && !matches!(last, "since" | "until" | "by" | "back" | "just" | "from" | "if" | "and" | "till"));
        }
        if let Some(after) = after_word(rest, "next") {
            return comma && next_connects(after);
        }
        if let Some(after) = LISTED.after(rest) {
            return comma && verb(after.trim_start_matches([',', ' ']));
        }
        if let Some(after) = beside {
            return verb(after.trim_start_matches([',', ' ']));
        }
        if let Some(after) = after_word(rest, "otherwise").or_else(|| after_word(rest, "else")) {
            return comma && (self.conditional || verb(after.trim_start_matches([',', ' '])));
        }
        after_word(rest, "if not,").is_some() && comma
    }

    /// True when the part before is "if ..., ...": its "then" is past.
    fn has_branch(&self, at: usize) -> bool {
        let part = tail_of(self.text, self.begin, at, 400);
        holds(part.trim_end().trim_end_matches(','), ", ")
    }
}

/// True behind code that changes the shell in which the next has to run: "`cd sub`, then `make`".
fn keeps_shell(before: &str) -> bool {
    let code = before.trim_end_matches(" and").trim_end_matches([',', ' ']).strip_suffix('`');
    let code = code.and_then(|code| code.rsplit('`').next()).unwrap_or("");
    let first = code.split(' ').next().unwrap_or("");
    matches!(first, "cd" | "export" | "source" | "." | "pushd" | "set" | "unset" | "alias") || first.contains('=')
}

/// The last bytes of `text[from..to]`, at most `max` or a little more.
pub(super) fn tail_of(text: &str, from: usize, to: usize, max: usize) -> &str {
    let mut start = from.max(to.saturating_sub(max));
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..to).unwrap_or("")
}
