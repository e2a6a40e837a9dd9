//! Where in a text something stands with which a phrase can begin: found in one look at its bytes, so that a rule goes
//! to these places only and most rules have none to go to.
//!
//! It knows the first letters of phrases and the signs that can end a clause; what a phrase is, is for others.

use super::text::{is_cjk, start};

/// The first letters of a connector: "then", "otherwise".
pub(super) const CONNECTOR: u8 = 1;
/// A sign that can part a text, or a character of a script without spaces.
pub(super) const STOP: u8 = 2;
/// The first letters of a phrase of waiting: "after", "depends on".
pub(super) const WAIT: u8 = 4;
/// "if", "unless" and their like, as they stand within a sentence.
pub(super) const CONDITION: u8 = 8;

/// The places of a text, in order.
#[derive(Debug, Default)]
pub(super) struct Starts {
    all: Vec<(usize, u8)>,
    seen: u8,
}

impl Starts {
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.seen = 0;
    }

    /// Adds a place whose byte can begin something, if something begins there.
    #[inline]
    pub(super) fn add(&mut self, text: &str, at: usize) {
        let rest = &text.as_bytes()[at..];
        let kinds = match rest.first_chunk() {
            Some(first) if rest[0].is_ascii_alphabetic() => opening(first, rest),
            Some(_) | None => sign(text, at),
        };
        if kinds > 0 {
            self.seen |= kinds;
            self.all.push((at, kinds));
        }
    }

    /// True when something of a sort stands in the text.
    pub(super) fn has(&self, sort: u8) -> bool {
        self.seen & sort > 0
    }

    /// The places from `from` on at which something of a sort stands.
    pub(super) fn of(&self, sort: u8, from: usize) -> impl Iterator<Item = usize> {
        let all = if self.has(sort) { &self.all[..] } else { &[] };
        let first = if from == 0 { 0 } else { all.partition_point(|(at, _)| *at < from) };
        all[first..].iter().filter(move |(_, kinds)| kinds & sort > 0).map(|(at, _)| *at)
    }
}

/// True when the first bytes are those of a phrase of waiting.
pub(super) fn waits(rest: &[u8]) -> bool {
    rest.starts_with(ARROW) || rest.first_chunk().is_some_and(|first| opening(first, rest) & WAIT > 0)
}

/// The arrow that points to what is waited for.
const ARROW: &[u8] = b"\xe2\x86\x90";

/// What three letters can begin, where the fourth is this one or any.
const OPENINGS: [(&[u8; 3], u8, u8); 41] = [
    (b"alo", 0, WAIT),
    (b"and", 0, CONNECTOR),
    (b"und", 0, CONNECTOR),
    (b"et ", 0, CONNECTOR),
    (b"en ", 0, CONNECTOR),
    (b"the", b'n', CONNECTOR),
    (b"nex", 0, CONNECTOR),
    (b"fin", 0, CONNECTOR),
    (b"las", 0, CONNECTOR),
    (b"sub", 0, CONNECTOR),
    (b"mea", 0, CONNECTOR),
    (b"at ", b't', CONNECTOR),
    (b"sim", 0, CONNECTOR),
    (b"oth", 0, CONNECTOR),
    (b"els", 0, CONNECTOR),
    (b"if ", 0, CONNECTOR | CONDITION),
    (b"aft", 0, CONNECTOR | WAIT),
    (b"in ", b'p', CONNECTOR | WAIT),
    (b"dep", 0, WAIT),
    (b"as ", b's', WAIT),
    (b"blo", 0, WAIT),
    (b"nee", 0, WAIT),
    (b"req", 0, WAIT),
    (b"wai", 0, WAIT),
    (b"fol", 0, WAIT),
    (b"onc", 0, WAIT),
    (b"pri", 0, WAIT),
    (b"pre", 0, WAIT),
    (b"whe", 0, WAIT),
    (b"bef", 0, WAIT),
    (b"unb", 0, WAIT),
    (b"unl", 0, CONDITION),
    (b"nac", 0, WAIT),
    (b"apr", 0, WAIT),
    (b"des", 0, WAIT),
    (b"dop", 0, WAIT),
    (b"wen", 0, CONDITION),
    (b"si ", 0, CONDITION),
    (b"men", 0, CONDITION),
    (b"sei", 0, CONDITION),
    (b"moi", 0, CONDITION),
];

/// The openings by their hash, which is another for each.
static TABLE: [(u32, u8, u8); 256] = {
    let mut table = [(0, 0, 0); 256];
    let mut n = 0;
    while n < OPENINGS.len() {
        let (letters, fourth, kinds) = OPENINGS[n];
        let place = hash(start(letters));
        assert!(table[place].2 == 0, "two openings have one hash");
        table[place] = (start(letters), fourth, kinds);
        n += 1;
    }
    table
};

/// The second letters of the openings by their first, as bits; of letters only the case is lost.
static SECONDS: [u32; 32] = {
    let mut seconds = [0; 32];
    let mut n = 0;
    while n < OPENINGS.len() {
        let (letters, _, _) = OPENINGS[n];
        seconds[(letters[0] & 0x1f) as usize] |= 1 << (letters[1] & 0x1f);
        n += 1;
    }
    // A word of one letter.
    seconds[(b'e' & 0x1f) as usize] |= 1 << (b' ' & 0x1f);
    seconds[(b'y' & 0x1f) as usize] |= 1 << (b' ' & 0x1f);
    seconds
};

const fn hash(letters: u32) -> usize {
    (letters.wrapping_mul(MULTIPLIER) >> 24) as usize
}

/// Gives each opening a hash of its own.
const MULTIPLIER: u32 = 0xae97_ba95;

/// Words that begin a condition within a sentence; of several words the one that says so.
const CONDITIONS: [&[u8]; 8] =
    [b"if ", b"unless ", b"wenn ", b"si ", b"menos que ", b"meno che ", b"sei denn", b"moins que "];

/// What the word can begin that stands at the start; a capital counts where `FIRSTS` lets it.
#[inline]
fn opening(first: &[u8; 3], rest: &[u8]) -> u8 {
    // Most words have a second letter that goes on nothing from the first.
    if SECONDS[usize::from(first[0] & 0x1f)] >> (first[1] & 0x1f) & 1 == 0 {
        return 0;
    }
    let letters = start(first);
    let (found, fourth, kinds) = TABLE[hash(letters)];
    if found != letters {
        // "and" of one letter, in other languages.
        return if matches!(first, [b'e' | b'y', b' ', _]) { CONNECTOR } else { 0 };
    }
    // Articles and prepositions are told from them by their next letter.
    if fourth != 0 && rest.get(3).map(|byte| byte | 0x20) != Some(fourth) {
        return 0;
    }
    let kinds = if connects(first[0]) { kinds } else { kinds & !CONNECTOR };
    let kinds = if waits_with(first[0]) { kinds } else { kinds & !WAIT };
    let condition = kinds & CONDITION == 0 || CONDITIONS.iter().any(|word| rest.starts_with(word));
    if condition { kinds } else { kinds & !CONDITION }
}

/// What a sign is, or what is no ASCII.
fn sign(text: &str, at: usize) -> u8 {
    match text.as_bytes()[at] {
        b'.' | b'!' | b'?' | b';' | b'\n' => STOP,
        b'-' if text.as_bytes().get(at + 1) == Some(&b'>') => STOP,
        b',' if text.as_bytes().get(at + 1) == Some(&b' ') => STOP,
        0x80.. => {
            let c = text.get(at..).and_then(|rest| rest.chars().next());
            let stops = c.is_some_and(|c| matches!(c, '\u{964}' | '\u{2192}' | '\u{2225}') || is_cjk(c));
            let before = at.checked_sub(1).is_none_or(|at| !text.as_bytes()[at].is_ascii_alphanumeric());
            let waits = before && text.as_bytes()[at..].starts_with(ARROW);
            let stop = if stops { STOP } else { 0 };
            if waits { stop | WAIT } else { stop }
        }
        _ => 0,
    }
}

/// The first letter of a connector.
const fn connects(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'f' | b'i' | b'l' | b'm' | b'n' | b'o' | b's' | b't' | b'A' | b'T')
        || matches!(byte, b'u' | b'y')
}

/// The first letter of a phrase of waiting.
const fn waits_with(byte: u8) -> bool {
    matches!(byte, b'a' | b'b' | b'd' | b'f' | b'i' | b'n' | b'o' | b'p' | b'r' | b'u' | b'w')
        || matches!(byte, b'A' | b'B' | b'D' | b'F' | b'I' | b'N' | b'O' | b'P' | b'W')
}

/// A letter that can begin a phrase where no word goes on.
const LETTER: u32 = 1 << 16;
/// A sign that can part a text, or what is no ASCII.
const SIGN: u32 = 1 << 17;
/// A letter or a digit, after which no word begins.
const JOINED: u32 = LETTER << 8;

/// What a byte is to the places at which something begins, as bits that no other class of bytes has.
pub(super) const fn class(byte: u8) -> u32 {
    let joined = if byte.is_ascii_alphanumeric() { JOINED } else { 0 };
    match byte {
        _ if connects(byte) || waits_with(byte) => LETTER | joined,
        b'.' | b'!' | b'?' | b';' | b',' | b'-' | b'\n' | 0x80.. => SIGN,
        _ => joined,
    }
}

/// True for the class of a letter or a digit.
#[inline]
pub(super) fn joins(class: u32) -> bool {
    class & JOINED > 0
}

/// More than nothing when something can begin at a byte of this class after one of that class.
#[inline]
pub(super) fn begins(class: u32, before: u32) -> u32 {
    class & (LETTER | SIGN) & !((before & JOINED) >> 8)
}
