//! Words and phrases at the start of a text, compared without case.
//!
//! Lists of phrases are looked up by the bytes with which they begin, so that a long list costs little more than a
//! short one. What the phrases mean is said where the lists stand.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::text::{holds, is_cjk};

/// A list of words or phrases in lower case, made once.
pub(super) type Words = LazyLock<Phrases>;

/// Takes a list apart at its bars.
pub(super) fn list(text: &'static str) -> Phrases {
    Phrases::new(text.split('|'))
}

/// A list of words or phrases, in order within each first byte.
pub(super) struct Phrases {
    all: Vec<Phrase>,
    /// The phrases that begin with byte `b` are `all[starts[b]..starts[b + 1]]`.
    starts: [u16; 257],
}

struct Phrase {
    text: &'static str,
    head: Head,
}

/// The first bytes of a text; where it is shorter, zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head(u64);

impl Head {
    fn new(text: &[u8]) -> Self {
        let mut head = [0; 8];
        match text.first_chunk::<8>() {
            Some(first) => head = *first,
            None => head[..text.len()].copy_from_slice(text),
        }
        head.make_ascii_lowercase();
        Self(u64::from_le_bytes(head))
    }

    /// True when a text with this head can begin with a phrase with that one.
    fn begins(self, phrase: &Phrase) -> bool {
        let unused = 64 - 8 * u32::try_from(phrase.text.len().min(8)).unwrap_or(8);
        (self.0 ^ phrase.head.0).checked_shl(unused).unwrap_or(0) == 0
    }

    /// True when the head holds what could be a curly apostrophe, which is longer than the straight one of a phrase.
    fn is_curly(self) -> bool {
        self.0.to_le_bytes().contains(&CURLY[0])
    }
}

/// The curly apostrophe.
const CURLY: [u8; 3] = [0xe2, 0x80, 0x99];

impl Phrases {
    fn new(phrases: impl Iterator<Item = &'static str>) -> Self {
        let mut all: Vec<Phrase> = phrases.map(|text| Phrase { text, head: Head::new(text.as_bytes()) }).collect();
        all.sort_by_key(|phrase| phrase.head.0 as u8);
        let mut starts = [0; 257];
        for (byte, start) in starts.iter_mut().enumerate() {
            let before = all.partition_point(|phrase| usize::from(phrase.head.0 as u8) < byte);
            *start = u16::try_from(before).expect("no list has so many phrases");
        }
        Self { all, starts }
    }

    /// All the words of some lists.
    pub(super) fn union(lists: &[&Words]) -> Self {
        Self::new(lists.iter().flat_map(|list| list.iter()))
    }

    /// All of them, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.all.iter().map(|phrase| phrase.text)
    }

    /// True when the word is one of the list, exactly as it stands there.
    pub(super) fn contains(&self, word: &str) -> bool {
        let head = Head::new(word.as_bytes());
        self.bucket(head.0 as u8).iter().any(|phrase| phrase.head == head && phrase.text == word)
    }

    /// The same, compared without ASCII case.
    pub(super) fn contains_ci(&self, word: &str) -> bool {
        let head = Head::new(word.as_bytes());
        self.bucket(head.0 as u8).iter().any(|phrase| phrase.head == head && phrase.text.eq_ignore_ascii_case(word))
    }

    /// The text after the first phrase of the list with which it begins.
    pub(super) fn after<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.found(text).next().map(|(_, after)| after)
    }

    /// The longest phrase of the list with which a text begins, and the text after it.
    pub(super) fn longest<'t>(&self, text: &'t str) -> Option<(&'static str, &'t str)> {
        self.found(text).min_by_key(|(_, after)| after.len())
    }

    /// True when the text starts with one of the phrases as it stands there, whatever follows.
    pub(super) fn begin(&self, text: &str) -> bool {
        let head = Head::new(text.as_bytes());
        let bucket = self.bucket(head.0 as u8).iter();
        bucket.filter(|phrase| head.begins(phrase)).any(|phrase| text.starts_with(phrase.text))
    }

    /// The same, compared without ASCII case.
    pub(super) fn begin_ci(&self, text: &str) -> bool {
        let head = Head::new(text.as_bytes());
        let mut bucket = self.bucket(head.0 as u8).iter().filter(|phrase| head.begins(phrase));
        bucket.any(|phrase| {
            let start = text.as_bytes().get(..phrase.text.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(phrase.text.as_bytes()))
        })
    }

    /// The phrases with which a text begins, and the text after each.
    pub(super) fn found<'t>(&self, text: &'t str) -> impl Iterator<Item = (&'static str, &'t str)> {
        let head = Head::new(text.as_bytes());
        let curly = head.is_curly();
        let first = if curly && text.as_bytes().starts_with(&CURLY) { b'\'' } else { head.0 as u8 };
        let fits = move |phrase: &&Phrase| curly || head.begins(phrase);
        self.bucket(first).iter().filter(fits).filter_map(|phrase| Some((phrase.text, after_word(text, phrase.text)?)))
    }

    fn bucket(&self, first: u8) -> &[Phrase] {
        let first = usize::from(first);
        &self.all[usize::from(self.starts[first])..usize::from(self.starts[first + 1])]
    }
}

/// The text after the first of some phrases with which it begins, when a word ends there.
pub(super) fn after_any<'t>(text: &'t str, phrases: &[&str]) -> Option<&'t str> {
    phrases.iter().find_map(|phrase| after_word(text, phrase))
}

/// True when a text begins with one of some phrases.
pub(super) fn begins(text: &str, phrases: &[&str]) -> bool {
    after_any(text, phrases).is_some()
}

/// The text after `prefix`, compared without case, when a word ends there.
#[inline]
pub(super) fn after_word<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let rest = strip_prefix_ci(text, prefix)?;
    let inside = prefix.ends_with(|c: char| c.is_ascii_alphanumeric())
        && rest.starts_with(|c: char| c.is_alphanumeric() && !is_cjk(c));
    (!inside).then_some(rest)
}

/// The text after `prefix`, compared without ASCII case; a curly apostrophe counts as a straight one.
#[inline]
pub(super) fn strip_prefix_ci<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let first = |text: &str| text.as_bytes().first().map_or(0, u8::to_ascii_lowercase);
    // Most texts part in the first byte, and where they do no call is worth its cost.
    if first(text) != first(prefix) && prefix.as_bytes().first().is_some_and(|byte| *byte != b'\'') {
        return None;
    }
    strip(text, prefix.as_bytes())
}

#[inline(never)]
fn strip<'t>(text: &'t str, wanted: &[u8]) -> Option<&'t str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    for byte in wanted {
        let found = bytes.get(at)?;
        if found.eq_ignore_ascii_case(byte) {
            at += 1;
        } else if *byte == b'\'' && bytes[at..].starts_with(&CURLY) {
            at += CURLY.len();
        } else {
            return None;
        }
    }
    text.get(at..)
}

/// A word in lower case, borrowed where it is written so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Word<'t>(Cow<'t, str>);

impl Word<'_> {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for Word<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl std::borrow::Borrow<str> for Word<'_> {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl std::ops::Deref for Word<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

/// The words of a text in lower case, without punctuation at their ends.
pub(super) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = word_end(rest);
            let word = trimmed(&rest[..end]);
            rest = &rest[end..];
            rest = rest.chars().next().map_or(rest, |sign| &rest[sign.len_utf8()..]);
            if !word.is_empty() {
                return Some(Word(if is_plain(word) { Cow::Borrowed(word) } else { straight(lower(word)) }));
            }
        }
        None
    })
}

/// The bytes before the next sign that parts words.
fn word_end(text: &str) -> usize {
    let parts =
        |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | ':' | '"' | '/' | '\u{3001}' | '\u{ff0c}');
    // What is not ASCII is judged by its character.
    match text.bytes().position(|byte| PARTS[usize::from(byte)]) {
        None => text.len(),
        Some(at) if text.as_bytes()[at].is_ascii() => at,
        Some(at) => text[at..].find(parts).map_or(text.len(), |found| at + found),
    }
}

/// The bytes that part words, and all that are not ASCII.
static PARTS: [bool; 256] = {
    let mut parts = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        parts[byte] =
            byte >= 0x80 || matches!(byte as u8, b'\t'..=b'\r' | b' ' | b',' | b';' | b'(' | b')' | b':' | b'"' | b'/');
        byte += 1;
    }
    parts
};

fn trimmed(word: &str) -> &str {
    let bytes = word.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() => word,
        _ => word.trim_matches(|c: char| !c.is_alphanumeric() && c != '?'),
    }
}

/// True when nothing in a word changes in lower case.
fn is_plain(word: &str) -> bool {
    word.bytes().fold(true, |plain, byte| plain & byte.is_ascii() & !byte.is_ascii_uppercase())
}

/// The text in lower case, borrowed where it is written so.
pub(super) fn lower(text: &str) -> Cow<'_, str> {
    if !text.is_ascii() {
        return Cow::Owned(text.to_lowercase());
    }
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    Cow::Borrowed(text)
}

/// The text with straight apostrophes for curly ones.
pub(super) fn straight(text: Cow<'_, str>) -> Cow<'_, str> {
    if holds(&text, "\u{2019}") { Cow::Owned(text.replace('\u{2019}', "'")) } else { text }
}
