//! What stands inside a line: code, links, addresses, quotes, brackets and paths.
//!
//! One pass each, in linear time, without recursion; nothing here knows what a task is.

use std::collections::HashMap;

use super::addresses::{scheme, url_length};
use super::bytes::{BRACKET, FIRST, MARK, QUOTE, SIGN, STOP, STUCK, TICK, WORD, class, is_odd};
use super::pairs::Pairs;
use super::paths;
use super::starts::{self, Starts};
use super::text::{has_byte, is_cjk, trim};
use crate::plan::{Attachment, AttachmentKind};

/// Targets of `[name]: target` lines, by name in lower case.
pub(super) type Definitions = HashMap<String, String>;

/// What a stretch of a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AtomKind {
    /// Between backticks.
    Code,
    /// `[shown](target)`.
    Link(String),
    /// `![shown](target)`.
    Image(String),
    /// An address without brackets.
    Url,
    /// A path of a file, which has so many bytes without the line number after it.
    Path(usize),
    /// `<!-- -->`.
    Comment,
    /// `~~ ~~`.
    Struck,
    /// `a@b.c` and other words that only look like something else.
    Word,
}

/// A stretch `start..end` and, within it, what is shown.
#[derive(Debug, Clone)]
pub(super) struct Atom {
    pub(super) kind: AtomKind,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) inner: (usize, usize),
}

/// Everything found in a text; atoms and guards are in order and do not overlap.
#[derive(Debug, Default)]
pub(super) struct Inline {
    pub(super) atoms: Vec<Atom>,
    /// Stretches that never split: atoms, quotes, brackets.
    pub(super) guards: Vec<(usize, usize)>,
    /// Brackets that are no links, outermost only: opening sign, closing sign.
    pub(super) brackets: Vec<(usize, usize)>,
    /// Where phrases can begin.
    pub(super) starts: Starts,
    /// Where backticks, brackets and what the scan goes to stand.
    signs: Vec<usize>,
    /// What its bytes can be part of: a rule that needs a sign is spared where there is none.
    seen: u32,
}

impl Inline {
    pub(super) fn scan(text: &str, definitions: &Definitions) -> Self {
        let mut inline = Self::default();
        inline.read(text, definitions, &mut Pairs::default());
        inline
    }

    /// Finds what stands in another text, in the memory of the one before.
    pub(super) fn read(&mut self, text: &str, definitions: &Definitions, found: &mut Pairs) {
        // Most lines have few of these signs, and what needs one is not looked for without it.
        self.starts.clear();
        self.signs.clear();
        let bytes = text.as_bytes();
        let (mut seen, mut before, mut at) = (0, 0, 0);
        while let Some(byte) = bytes.get(at) {
            let class = class(*byte);
            if starts::begins(class, before) > 0 {
                self.starts.add(text, at);
            }
            if class & (STOP | BRACKET) > 0 {
                self.signs.push(at);
            }
            seen |= class;
            before = class;
            at += 1;
            if starts::joins(class) {
                // Within a word nothing begins, and letters and digits are no signs.
                at += bytes[at..].iter().take_while(|byte| starts::joins(super::bytes::class(**byte))).count();
            }
        }
        self.seen = seen;
        found.clear();
        if seen & TICK > 0 {
            found.code_spans(text, &self.signs);
        }
        if seen & BRACKET > 0 {
            found.bracket_pairs(text, &self.signs);
        }
        self.atoms.clear();
        if seen & (TICK | MARK | SIGN) > 0 {
            let (signs, atoms) = (&self.signs[..], &mut self.atoms);
            Scanner { text, bytes, signs, pairs: &found.brackets, definitions, atoms, dead: [false; 2] }
                .run(&found.codes);
        }
        self.find_brackets(&found.brackets);
        self.guards.clear();
        let mut atoms = self.atoms.iter().map(|atom| (atom.start, atom.end)).peekable();
        for (open, close) in &self.brackets {
            while let Some(atom) = atoms.next_if(|(start, _)| start < open) {
                self.guards.push(atom);
            }
            self.guards.push((*open, close + 1));
        }
        self.guards.extend(atoms);
        if seen & QUOTE > 0 {
            self.guards.extend(quotes(text, &self.atoms));
        }
        merge(&mut self.guards);
    }

    /// Keeps of all pairs of brackets the outer ones that are no links.
    fn find_brackets(&mut self, pairs: &[(usize, usize)]) {
        self.brackets.clear();
        let mut atoms = self.atoms.iter().peekable();
        let mut covered = 0;
        for (open, close) in pairs.iter().copied() {
            while let Some(atom) = atoms.next_if(|atom| atom.start <= open) {
                covered = covered.max(atom.end);
            }
            if open >= covered {
                self.brackets.push((open, close));
                covered = close + 1;
            }
        }
    }

    /// True when the text has a sign of some sort.
    pub(super) fn has(&self, sort: u32) -> bool {
        self.seen & sort > 0
    }

    /// The attachments within a range, in order, each once.
    pub(super) fn attachments(&self, text: &str, start: usize, end: usize) -> Vec<Attachment> {
        let from = self.atoms.partition_point(|atom| atom.start < start);
        let mut found: Vec<Attachment> = Vec::new();
        for atom in self.atoms[from..].iter().take_while(|atom| atom.end <= end) {
            let shown = trim(text.get(atom.inner.0..atom.inner.1).unwrap_or(""));
            let label = || (!shown.is_empty()).then(|| shown.to_owned());
            let one = match &atom.kind {
                AtomKind::Link(target) => attachment(link_kind(target), label()),
                AtomKind::Image(target) => attachment(AttachmentKind::ImageRef(target.clone()), label()),
                AtomKind::Url => attachment(link_kind(shown), None),
                AtomKind::Path(length) => attachment(path_kind(shown.get(..*length).unwrap_or(shown)), None),
                AtomKind::Code if !has_byte(shown, b' ') => match paths::file_ref(shown) {
                    Some(path) => attachment(path_kind(path), None),
                    None => continue,
                },
                AtomKind::Code | AtomKind::Comment | AtomKind::Struck | AtomKind::Word => continue,
            };
            if found.len() < 1_000 && !found.iter().any(|old| old.kind == one.kind) {
                // Mostly it is the only one.
                found.reserve_exact(usize::from(found.is_empty()));
                found.push(one);
            }
        }
        found
    }

    /// True when nothing but such atoms and comments can be seen, and one of them at least.
    pub(super) fn is_only(&self, text: &str, sort: impl Fn(&AtomKind) -> bool) -> bool {
        let mut at = 0;
        let mut any = false;
        for atom in &self.atoms {
            let own = sort(&atom.kind);
            if !(own || atom.kind == AtomKind::Comment) {
                continue;
            }
            if text[at..atom.start].contains(char::is_alphanumeric) {
                return false;
            }
            any |= own;
            at = atom.end;
        }
        any && !text[at..].contains(char::is_alphanumeric)
    }

    /// True when all of it is struck through or a comment.
    pub(super) fn is_struck(&self, text: &str) -> bool {
        self.is_only(text, |kind| matches!(kind, AtomKind::Struck | AtomKind::Comment))
    }

    /// The atoms that begin within a range.
    pub(super) fn within(&self, start: usize, end: usize) -> &[Atom] {
        let from = self.atoms.partition_point(|atom| atom.start < start);
        let rest = &self.atoms[from..];
        // Mostly the range ends a few atoms further on.
        let mut near = 1;
        while near < rest.len() && rest[near].start < end {
            near *= 2;
        }
        let near = &rest[..near.min(rest.len())];
        &near[..near.partition_point(|atom| atom.start < end)]
    }
}

fn attachment(kind: AttachmentKind, label: Option<String>) -> Attachment {
    Attachment { kind, label }
}

fn link_kind(target: &str) -> AttachmentKind {
    let end = target.bytes().position(|byte| matches!(byte, b'?' | b'#'));
    let path = &target[..end.unwrap_or(target.len())];
    if paths::is_image(path) {
        AttachmentKind::ImageRef(target.to_owned())
    } else {
        AttachmentKind::Link(target.to_owned())
    }
}

/// An image when its ending says so, else a file.
pub(super) fn path_kind(path: &str) -> AttachmentKind {
    if paths::is_image(path) {
        AttachmentKind::ImageRef(path.to_owned())
    } else {
        AttachmentKind::FileRef(path.to_owned())
    }
}

/// Puts ranges in order, and joins those that overlap.
fn merge(ranges: &mut Vec<(usize, usize)>) {
    if ranges.is_sorted_by(|before, after| before.1 <= after.0) {
        return;
    }
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let overlaps = next.0 < last.1;
        if overlaps {
            last.1 = last.1.max(next.1);
        }
        overlaps
    });
}

/// Quoted stretches outside atoms.
fn quotes(text: &str, atoms: &[Atom]) -> Vec<(usize, usize)> {
    const PAIRS: [(char, char); 7] = [
        ('"', '"'),
        ('\'', '\''),
        ('\u{201c}', '\u{201d}'),
        ('\u{2018}', '\u{2019}'),
        ('\u{ab}', '\u{bb}'),
        ('\u{300c}', '\u{300d}'),
        ('\u{300e}', '\u{300f}'),
    ];
    // Where each sort of quote closes, in order, so that looking ahead stays linear.
    let mut closers: [Vec<usize>; 7] = Default::default();
    let mut openers: Vec<(usize, usize)> = Vec::new();
    let mut skip = atoms.iter().peekable();
    for (at, _) in text.bytes().enumerate().filter(|(_, byte)| class(*byte) & QUOTE > 0) {
        while skip.next_if(|atom| atom.end <= at).is_some() {}
        if skip.peek().is_some_and(|atom| atom.start <= at) {
            continue;
        }
        let mut chars = text[at..].chars();
        let Some(c) = chars.next() else { continue };
        let after = chars.next().unwrap_or(' ');
        let before = text[..at].chars().next_back().unwrap_or(' ');
        for (sort, (open, close)) in PAIRS.iter().enumerate() {
            let same = open == close;
            if c == *open && (!same || (!before.is_alphanumeric() && !after.is_whitespace())) {
                openers.push((at, sort));
            }
            if c == *close && (!(same || *close == '\u{2019}') || (!after.is_alphanumeric() && !before.is_whitespace()))
            {
                closers[sort].push(at);
            }
        }
    }
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut covered = 0;
    let mut next = [0; 7];
    for (at, sort) in openers {
        if at < covered {
            continue;
        }
        while closers[sort].get(next[sort]).is_some_and(|close| *close <= at) {
            next[sort] += 1;
        }
        if let Some(close) = closers[sort].get(next[sort]).filter(|close| **close - at <= 2_000) {
            covered = close + PAIRS[sort].1.len_utf8();
            found.push((at, covered));
        }
    }
    found
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Those that the scan has not come to.
    signs: &'a [usize],
    pairs: &'a [(usize, usize)],
    definitions: &'a Definitions,
    atoms: &'a mut Vec<Atom>,
    /// No further end of a comment, no further `~~`: do not look again.
    dead: [bool; 2],
}

impl Scanner<'_> {
    fn run(&mut self, codes: &[(usize, usize, usize)]) {
        let mut codes = codes.iter().peekable();
        let mut at = 0;
        let mut fresh = true;
        // One past the last sign that was found.
        let mut known = 0;
        while at < self.bytes.len() {
            if at >= known {
                let Some((begin, sign)) = self.next(at) else { break };
                fresh |= begin > at;
                (at, known) = (begin, sign + 1);
            }
            let class = class(self.bytes[at]);
            if class & TICK > 0 {
                while codes.next_if(|(start, _, _)| *start < at).is_some() {}
                if let Some((start, end, width)) = codes.next_if(|(start, _, _)| *start == at) {
                    self.push(AtomKind::Code, *start, *end, (start + width, end - width));
                    at = *end;
                    fresh = false;
                    continue;
                }
            }
            let sign = if class & SIGN > 0 { self.sign(at) } else { None };
            if let Some(end) = sign.or_else(|| fresh.then(|| self.word(at)).flatten()) {
                at = end.max(at + 1);
                fresh = false;
                continue;
            }
            if self.bytes[at].is_ascii() {
                fresh = class & STUCK == 0;
                at += 1;
            } else {
                let c = self.text[at..].chars().next().unwrap_or(' ');
                fresh = !c.is_alphanumeric() || is_cjk(c);
                at += c.len_utf8();
            }
        }
    }

    /// Where the word begins in which the next sign stands, and where that is; most of a text is words without one.
    fn next(&mut self, from: usize) -> Option<(usize, usize)> {
        let stops = |sign: &usize| *sign >= from && class(self.bytes[*sign]) & STOP > 0;
        let n_passed = self.signs.iter().position(stops)?;
        let sign = self.signs[n_passed];
        self.signs = &self.signs[n_passed + 1..];
        let joined = self.bytes[from..sign].iter().rev().take_while(|byte| class(**byte) & WORD > 0).count();
        Some((sign - joined, sign))
    }

    fn push(&mut self, kind: AtomKind, start: usize, end: usize, inner: (usize, usize)) {
        self.atoms.push(Atom { kind, start, end, inner });
    }

    /// Something that begins with a sign of its own; gives its end.
    fn sign(&mut self, at: usize) -> Option<usize> {
        let rest = &self.bytes[at..];
        match rest.first()? {
            b'\\' if rest.get(1).is_some_and(|b| b"[]()`*_~<".contains(b)) => Some(at + 2),
            b'!' if rest.get(1) == Some(&b'[') => self.link(at + 1, true),
            b'[' => self.link(at, false),
            b'<' if rest.starts_with(b"<!--") => self.closed(at, "<!--", "-->", 0, AtomKind::Comment),
            b'<' => self.autolink(at),
            b'~' if rest.starts_with(b"~~") => self.closed(at, "~~", "~~", 1, AtomKind::Struck),
            _ => None,
        }
    }

    fn closed(&mut self, at: usize, open: &str, close: &str, sort: usize, kind: AtomKind) -> Option<usize> {
        if self.dead[sort] {
            return None;
        }
        let from = at + open.len();
        let Some(found) = self.text.get(from..)?.find(close) else {
            self.dead[sort] = true;
            return None;
        };
        let end = from + found + close.len();
        self.push(kind, at, end, (from, from + found));
        Some(end)
    }

    fn closing(&self, open: usize) -> Option<usize> {
        let n = self.pairs.binary_search_by_key(&open, |(open, _)| *open).ok()?;
        self.pairs.get(n).map(|(_, close)| *close)
    }

    /// `[shown](target)`, `[shown][name]`, `[name]`.
    fn link(&mut self, open: usize, image: bool) -> Option<usize> {
        let close = self.closing(open)?;
        let start = open - usize::from(image);
        let shown = (open + 1, close);
        let (target, end) = match self.bytes.get(close + 1) {
            Some(b'(') => {
                let last = self.closing(close + 1)?;
                (destination(self.text.get(close + 2..last)?)?, last + 1)
            }
            Some(b'[') => {
                let last = self.closing(close + 1)?;
                let name = self.text.get(close + 2..last)?;
                let name = if name.is_empty() { self.text.get(shown.0..shown.1)? } else { name };
                (self.definition(name)?, last + 1)
            }
            Some(_) | None => (self.definition(self.text.get(shown.0..shown.1)?)?, close + 1),
        };
        let kind = if image { AtomKind::Image(target) } else { AtomKind::Link(target) };
        self.push(kind, start, end, shown);
        Some(end)
    }

    fn definition(&self, name: &str) -> Option<String> {
        if name.len() > 200 || self.definitions.is_empty() {
            return None;
        }
        self.definitions.get(&name.to_lowercase()).cloned()
    }

    fn autolink(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at + 1..];
        scheme(rest)?;
        let length = rest.find(|c: char| c == '>' || c.is_whitespace()).filter(|n| rest[*n..].starts_with('>'))?;
        let inner = (at + 1, at + 1 + length);
        self.push(AtomKind::Url, at, inner.1 + 1, inner);
        Some(inner.1 + 1)
    }

    /// An address, a path or an e-mail address that begins here; gives the end of the word.
    fn word(&mut self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        let first = rest.chars().next()?;
        let begins = if first.is_ascii() {
            class(self.bytes[at]) & FIRST > 0
        } else {
            first.is_alphanumeric() && !is_cjk(first)
        };
        if !begins {
            return None;
        }
        let (length, seen) = run(rest);
        if seen & MARK == 0 {
            return Some(at + without_stops(&rest[..length]).len().max(1));
        }
        if scheme(rest).is_some() || super::phrases::strip_prefix_ci(rest, "www.").is_some() {
            let end = at + url_length(rest);
            self.push(AtomKind::Url, at, end, (at, end));
            return Some(end);
        }
        let word = without_stops(&rest[..length]);
        let bare = word.strip_prefix('@').filter(|w| w.contains(['/', '.'])).unwrap_or(word);
        let start = at + word.len() - bare.len();
        let end = at + word.len();
        if let Some(path) = paths::file_ref(bare) {
            self.push(AtomKind::Path(path.len()), start, end, (start, end));
        } else if word.contains(['@', '.', '/', '\\']) && word.len() > 1 {
            self.push(AtomKind::Word, at, end, (at, end));
        }
        Some(end.max(at + 1))
    }
}

/// A word without the signs that end a sentence or a part of one.
fn without_stops(word: &str) -> &str {
    let stops = word.bytes().rev().take_while(|b| matches!(b, b'.' | b',' | b':' | b';' | b'!' | b'?')).count();
    &word[..word.len() - stops]
}

/// The length of the word that could be a path, and what its bytes are.
fn run(text: &str) -> (usize, u32) {
    let mut seen = 0;
    for (at, byte) in text.bytes().enumerate() {
        let class = class(byte);
        if class & WORD > 0 {
            seen |= class;
        } else if !is_odd(byte) {
            return (at, seen);
        } else if matches!(&text.as_bytes()[at..], [b']'] | [b']', b' ', ..])
            && text.as_bytes()[..at].last().is_some_and(u8::is_ascii_alphanumeric)
        {
            return (at + 1, seen);
        } else {
            let length = paths::word_length(text);
            return (length, text.bytes().take(length).fold(0, |seen, byte| seen | super::bytes::class(byte)));
        }
    }
    (text.len(), seen)
}

/// The target in the round brackets of a link, without its title.
fn destination(inside: &str) -> Option<String> {
    let inside = inside.trim();
    if let Some(rest) = inside.strip_prefix('<') {
        return rest.split('>').next().map(str::to_owned);
    }
    let target = inside.split_whitespace().next()?;
    let rest = inside[target.len()..].trim();
    if rest.is_empty() || rest.starts_with(['"', '\'', '(']) {
        return Some(target.to_owned());
    }
    // The name of a file may have blanks in it.
    let path = inside.split(" \"").next().unwrap_or(inside).trim_end();
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let fits = (1..=5).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (fits && !path.contains('\n')).then(|| path.to_owned())
}
