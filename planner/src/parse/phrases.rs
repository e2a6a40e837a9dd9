//! Words and phrases at the start of a text, compared without case.
//!
//! Lists of phrases are looked up by the bytes with which they begin, so that a long list costs little more than a
//! short one. What the phrases mean is said where the lists stand.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::bytes::{CAPITAL, FOREIGN, PARTS, class};
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
    /// By their first byte, the bytes that follow it in a phrase, as bits; of letters only the case is lost.
    seconds: [u32; 32],
    /// Where each phrase stands, one past its place, by its head and its length; twice as many as there are phrases.
    whole: Vec<u16>,
}

struct Phrase {
    text: &'static str,
    head: Head,
    /// The bytes of the head that it fills.
    mask: u64,
    /// What it can be, where its list says that.
    marks: u32,
}

impl Phrase {
    /// The text after it, when a word ends there; the text begins with its head, and with no curly apostrophe in it.
    #[inline]
    fn after<'t>(&self, text: &'t str) -> Option<&'t str> {
        let wanted = self.text.as_bytes();
        if let Some(rest) = wanted.get(size_of::<Head>()..).filter(|rest| !rest.is_empty())
            && !text.as_bytes().get(size_of::<Head>()..wanted.len())?.eq_ignore_ascii_case(rest)
        {
            return if rest.contains(&b'\'') { after_whole(text, self.text) } else { None };
        }
        let rest = text.get(wanted.len()..)?;
        let ends = || wanted.last().is_some_and(|last| !last.is_ascii_alphanumeric());
        (begins_apart(rest) || ends()).then_some(rest)
    }
}

/// The first bytes of a text; where it is shorter, zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head(u64);

impl Head {
    #[inline]
    fn new(text: &[u8]) -> Self {
        let head = match text.first_chunk::<8>() {
            Some(first) => u64::from_le_bytes(*first),
            None => short(text),
        };
        // The capitals among the eight bytes have their high bit set here, and are 0x20 below their small letters.
        let low = head & each(0x7f);
        let capitals = (low + each(0x80 - b'A')) & !(low + each(0x7f - b'Z')) & !head & each(0x80);
        Self(head | capitals >> 2)
    }

    /// True when a text with this head can begin with a phrase with that one.
    fn begins(self, phrase: &Phrase) -> bool {
        (self.0 ^ phrase.head.0) & phrase.mask == 0
    }

    /// Where to look first for a whole phrase, in a table of so many places, a power of two.
    fn place(self, length: usize, n_places: usize) -> usize {
        let mixed = (self.0 ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize & (n_places - 1)
    }

    /// True when the head holds what could be a curly apostrophe, which is longer than the straight one of a phrase.
    fn is_curly(self) -> bool {
        let other = self.0 ^ each(CURLY[0]);
        other.wrapping_sub(each(1)) & !other & each(0x80) != 0
    }
}

/// Eight times the same byte.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The bytes of a text of seven or fewer as one number.
#[inline]
fn short(text: &[u8]) -> u64 {
    let n = text.len();
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (n - 4));
    }
    // The middle one of three is its own; of fewer it is the last.
    let Some((first, last)) = text.first().zip(text.last()) else { return 0 };
    u64::from(*first) | u64::from(text[n / 2]) << (8 * (n / 2)) | u64::from(*last) << (8 * (n - 1))
}

/// The curly apostrophe.
const CURLY: [u8; 3] = [0xe2, 0x80, 0x99];

impl Phrases {
    fn new(phrases: impl Iterator<Item = &'static str>) -> Self {
        let mask =
            |text: &str| u64::MAX.checked_shr(64 - 8 * u32::try_from(text.len().min(8)).unwrap_or(8)).unwrap_or(0);
        let phrase = |text: &'static str| Phrase { text, head: Head::new(text.as_bytes()), mask: mask(text), marks: 0 };
        let mut all: Vec<Phrase> = phrases.map(phrase).collect();
        all.sort_by_key(|phrase| phrase.head.0 as u8);
        let mut starts = [0; 257];
        for (byte, start) in starts.iter_mut().enumerate() {
            let before = all.partition_point(|phrase| usize::from(phrase.head.0 as u8) < byte);
            *start = u16::try_from(before).expect("no list has so many phrases");
        }
        let n_places = (2 * all.len()).next_power_of_two();
        let mut whole = vec![0; n_places];
        for (n, phrase) in (1..).zip(&all) {
            let mut place = phrase.head.place(phrase.text.len(), n_places);
            while whole[place] > 0 {
                place = (place + 1) % n_places;
            }
            whole[place] = n;
        }
        let mut seconds = [0; 32];
        for phrase in &all {
            match phrase.text.as_bytes() {
                [] => {}
                [only] => seconds[usize::from(only & 0x1f)] = u32::MAX,
                [first, second, ..] => {
                    // A curly apostrophe stands for a straight one.
                    let curly = |byte: u8, curly: u8| if byte == b'\'' { curly } else { byte };
                    seconds[usize::from(first & 0x1f)] |= 1 << (second & 0x1f);
                    seconds[usize::from(first & 0x1f)] |= 1 << (curly(*second, CURLY[0]) & 0x1f);
                    seconds[usize::from(curly(*first, CURLY[0]) & 0x1f)] |= 1 << (curly(*first, CURLY[1]) & 0x1f);
                }
            }
        }
        Self { all, starts, seconds, whole }
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
        self.may_begin(word.as_bytes()) && self.whole(word).any(|n| self.all[n].text == word)
    }

    /// The same, compared without ASCII case.
    pub(super) fn contains_ci(&self, word: &str) -> bool {
        self.may_begin(word.as_bytes()) && self.whole(word).any(|n| self.all[n].text.eq_ignore_ascii_case(word))
    }

    /// The phrases with the first bytes of a word; half of the places are empty, so they are few.
    fn whole(&self, word: &str) -> impl Iterator<Item = usize> {
        let head = Head::new(word.as_bytes());
        let n_places = self.whole.len();
        let mut place = head.place(word.len(), n_places);
        std::iter::from_fn(move || {
            loop {
                let n = usize::from(self.whole[place]).checked_sub(1)?;
                place = (place + 1) & (n_places - 1);
                if self.all[n].head == head {
                    return Some(n);
                }
            }
        })
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
        if !self.may_begin(text.as_bytes()) {
            return false;
        }
        let head = Head::new(text.as_bytes());
        let bucket = self.bucket(head.0 as u8).iter();
        bucket.filter(|phrase| head.begins(phrase)).any(|phrase| text.starts_with(phrase.text))
    }

    /// The same, compared without ASCII case.
    pub(super) fn begin_ci(&self, text: &str) -> bool {
        if !self.may_begin(text.as_bytes()) {
            return false;
        }
        let head = Head::new(text.as_bytes());
        let mut bucket = self.bucket(head.0 as u8).iter().filter(|phrase| head.begins(phrase));
        bucket.any(|phrase| {
            let start = text.as_bytes().get(..phrase.text.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(phrase.text.as_bytes()))
        })
    }

    /// The phrases with which a text begins, and the text after each.
    #[inline]
    pub(super) fn found<'t>(&self, text: &'t str) -> impl Iterator<Item = (&'static str, &'t str)> {
        let (bucket, head) =
            if self.may_begin(text.as_bytes()) { self.near(text.as_bytes()) } else { (&[][..], Head(0)) };
        let curly = head.is_curly();
        let begun = bucket.iter().filter(move |phrase| curly || head.begins(phrase));
        begun.filter_map(move |phrase| {
            let after = if curly { after_word(text, phrase.text) } else { phrase.after(text) };
            Some((phrase.text, after?))
        })
    }

    /// The phrases with the first byte of a text, and its head.
    fn near(&self, bytes: &[u8]) -> (&[Phrase], Head) {
        let first = if bytes.starts_with(&CURLY) { b'\'' } else { bytes.first().map_or(0, u8::to_ascii_lowercase) };
        (self.bucket(first), Head::new(bytes))
    }

    /// False when already by its first two bytes a text begins with no phrase of the list, as most do.
    #[inline]
    fn may_begin(&self, text: &[u8]) -> bool {
        match text {
            [first, second, ..] => self.seconds[usize::from(first & 0x1f)] >> (second & 0x1f) & 1 > 0,
            [_] | [] => true,
        }
    }

    fn bucket(&self, first: u8) -> &[Phrase] {
        let first = usize::from(first);
        &self.all[usize::from(self.starts[first])..usize::from(self.starts[first + 1])]
    }
}

/// Words, each with marks that say what it can be.
pub(super) struct Marked(Phrases);

/// Words that stand in a text at one place: what they can be, and where the longest of them stands.
pub(super) struct Hit {
    pub(super) marks: u32,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Marked {
    /// The mark of what is only the beginning of words.
    pub(super) const STEM: u32 = 1 << 31;

    /// Takes lists apart at their bars; a word has the marks of all the lists in which it stands.
    pub(super) fn new(lists: &[(u32, &'static str)]) -> Self {
        let mut words = Phrases::new(lists.iter().flat_map(|(_, list)| list.split('|')));
        for (mark, list) in lists {
            for word in list.split('|') {
                let same = words.whole(word).filter(|n| words.all[*n].text == word);
                for n in same.collect::<Vec<_>>() {
                    words.all[n].marks |= mark;
                }
            }
        }
        Self(words)
    }

    /// Those of its words that have one of some marks.
    pub(super) fn only(&self, marks: u32) -> Self {
        let wanted = || self.0.all.iter().filter(|phrase| phrase.marks & marks > 0);
        let mut words = Phrases::new(wanted().map(|phrase| phrase.text));
        // Both are in the same order.
        words.all.iter_mut().zip(wanted()).for_each(|(word, phrase)| word.marks = phrase.marks);
        Self(words)
    }

    /// Its words, each as often as it stands in a list.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter()
    }

    /// The marks of a word, compared without ASCII case; none when it is in no list.
    pub(super) fn marks(&self, word: &str) -> u32 {
        // Their first eight bytes are the same.
        let same = |text: &str| match (text.as_bytes().get(8..), word.as_bytes().get(8..)) {
            (Some(end), Some(other)) => end.eq_ignore_ascii_case(other),
            _shorter => text.len() == word.len(),
        };
        self.0.whole(word).map(|n| &self.0.all[n]).find(|one| same(one.text)).map_or(0, |one| one.marks)
    }

    /// The marks of the words with which a text begins, and the text after each.
    pub(super) fn found<'t>(&self, text: &'t str) -> impl Iterator<Item = (u32, &'t str)> {
        let (near, head) =
            if self.0.may_begin(text.as_bytes()) { self.0.near(text.as_bytes()) } else { (&[][..], Head(0)) };
        let fits = move |phrase: &&Phrase| head.is_curly() || head.begins(phrase);
        near.iter().filter(fits).filter_map(|phrase| {
            let rest = strip_prefix_ci(text, phrase.text)?;
            let whole = phrase.marks & Self::STEM > 0 || begins_apart(rest) || !phrase.text.ends_with(is_letter);
            whole.then_some((phrase.marks, rest))
        })
    }

    /// The next words of a text from a place on.
    pub(super) fn next(&self, text: &str, from: usize) -> Option<Hit> {
        let begins = |at: &usize| self.0.may_begin(&text.as_bytes()[*at..]) && begins_word(text, *at);
        (from..text.len()).filter(begins).find_map(|start| {
            let joined =
                |rest: &str| matches!(rest.as_bytes(), [b'-' | b'_', next, ..] if next.is_ascii_alphanumeric());
            let mut found = self.found(&text[start..]).filter(|(_, rest)| !joined(rest));
            let first = found.next()?;
            let all =
                found.fold(first, |all, one| (all.0 | one.0, if one.1.len() < all.1.len() { one.1 } else { all.1 }));
            Some(Hit { marks: all.0, start, end: text.len() - all.1.len() })
        })
    }
}

/// True for a letter or a digit that is a part of a word.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && !is_cjk(c)
}

/// True where a word begins; "non-stop" is one, and in scripts without spaces every character is.
fn begins_word(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    match at.checked_sub(1).map(|before| bytes[before]) {
        None | Some(b' ') => true,
        Some(b'-' | b'_') => !(at > 1 && bytes[at - 2].is_ascii_alphanumeric()),
        Some(before) if before.is_ascii() && bytes[at].is_ascii() => !before.is_ascii_alphanumeric(),
        Some(_) => text.get(..at).is_some_and(|before| !before.ends_with(is_letter) || text[at..].starts_with(is_cjk)),
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
    if may_begin(text, prefix) { after_whole(text, prefix) } else { None }
}

#[inline(never)]
fn after_whole<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let rest = strip(text, prefix.as_bytes())?;
    let goes_on = match prefix.as_bytes().last() {
        Some(last) if last.is_ascii() => last.is_ascii_alphanumeric(),
        Some(_) | None => prefix.ends_with(is_letter),
    };
    (!goes_on || begins_apart(rest)).then_some(rest)
}

/// True for a text that goes on no word of letters and digits before it.
#[inline]
fn begins_apart(text: &str) -> bool {
    match text.as_bytes().first() {
        Some(byte) if byte.is_ascii() => !byte.is_ascii_alphanumeric(),
        Some(_) | None => !text.starts_with(is_letter),
    }
}

/// The text after `prefix`, compared without ASCII case; a curly apostrophe counts as a straight one.
#[inline]
pub(super) fn strip_prefix_ci<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    if may_begin(text, prefix) { strip(text, prefix.as_bytes()) } else { None }
}

/// False when already the first bytes differ; where they do no call is worth its cost.
#[inline]
fn may_begin(text: &str, prefix: &str) -> bool {
    let first = |text: &str| text.as_bytes().first().map_or(0, u8::to_ascii_lowercase);
    first(text) == first(prefix) || prefix.as_bytes().first().is_none_or(|byte| *byte == b'\'')
}

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
    parts(text).map(|(word, seen)| Word(if seen == 0 { Cow::Borrowed(word) } else { straight(lower(word)) }))
}

/// A word as it is written, where that is ASCII, else in lower case; it is compared without ASCII case.
#[derive(Debug, Clone, Default)]
pub(super) struct Spelt<'t>(Cow<'t, str>);

impl Spelt<'_> {
    #[inline]
    pub(super) fn is(&self, word: &str) -> bool {
        self.0.len() == word.len() && self.0.eq_ignore_ascii_case(word)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The words of a text as they are written, without punctuation at their ends.
pub(super) fn spelt_words(text: &str) -> impl Iterator<Item = Spelt<'_>> {
    let foreign = |seen: u32| seen & FOREIGN > 0;
    parts(text).map(move |(word, seen)| Spelt(if foreign(seen) { straight(lower(word)) } else { Cow::Borrowed(word) }))
}

/// The words of a text, and what is among their bytes.
fn parts(text: &str) -> impl Iterator<Item = (&str, u32)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (end, seen) = word_end(rest);
            let word = trimmed(&rest[..end]);
            rest = &rest[end..];
            rest = rest.chars().next().map_or(rest, |sign| &rest[sign.len_utf8()..]);
            if !word.is_empty() {
                return Some((word, seen));
            }
        }
        None
    })
}

/// The bytes before the next sign that parts words, and what is among them: capitals, what is no ASCII.
fn word_end(text: &str) -> (usize, u32) {
    let mut seen = 0;
    for (at, byte) in text.bytes().enumerate() {
        let class = class(byte);
        if class & (PARTS | FOREIGN) > 0 {
            return if class & FOREIGN > 0 { (foreign_end(text, at), FOREIGN) } else { (at, seen & CAPITAL) };
        }
        seen |= class;
    }
    (text.len(), seen & CAPITAL)
}

/// The same from a place on where no ASCII stands, which is judged by its character.
#[cold]
fn foreign_end(text: &str, at: usize) -> usize {
    let parts =
        |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | ':' | '"' | '/' | '\u{3001}' | '\u{ff0c}');
    text[at..].find(parts).map_or(text.len(), |found| at + found)
}

#[inline]
fn trimmed(word: &str) -> &str {
    let bytes = word.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() => word,
        _ => word.trim_matches(|c: char| !c.is_alphanumeric() && c != '?'),
    }
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
