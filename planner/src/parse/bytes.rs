//! What a byte can be part of: one table, so that one look at a byte answers for all who ask. What the classes mean
//! together is for them. The bits 16, 17 and 24 are those of `starts`.

use super::starts;

/// Parts backticks.
pub(super) const TICK: u32 = 1 << 0;
/// A bracket.
pub(super) const BRACKET: u32 = 1 << 1;
/// Begins something that has a sign of its own.
pub(super) const SIGN: u32 = 1 << 2;
/// A quote, or the first byte of one.
pub(super) const QUOTE: u32 = 1 << 3;
/// Makes a path or an address of a word.
pub(super) const MARK: u32 = 1 << 4;
/// Goes on a word that can be a path.
pub(super) const WORD: u32 = 1 << 5;
/// Begins such a word; of bytes that are not ASCII the character decides.
pub(super) const FIRST: u32 = 1 << 6;
/// Goes before no word.
pub(super) const STUCK: u32 = 1 << 7;
/// Begins a tag: who, how urgent, how long.
pub(super) const TAG: u32 = 1 << 8;
/// Marks words, and is not shown.
pub(super) const EMPHASIS: u32 = 1 << 9;
/// Makes something of a word, or can be made a word of: what the scan goes to.
pub(super) const STOP: u32 = 1 << 10;
/// Points from one thing to another.
pub(super) const ARROW: u32 = 1 << 11;
/// No ASCII.
pub(super) const FOREIGN: u32 = 1 << 12;
/// A question mark.
pub(super) const QUESTION: u32 = 1 << 13;
/// A colon, or the end of a line: what names a speaker has one.
pub(super) const SPEECH: u32 = 1 << 14;
/// Parts the parts of a path.
pub(super) const SLASH: u32 = 1 << 15;
/// White space.
pub(super) const SPACE: u32 = 1 << 18;
/// A colon.
pub(super) const COLON: u32 = 1 << 19;
/// Before a name.
pub(super) const AT: u32 = 1 << 20;
/// In a glob.
pub(super) const STAR: u32 = 1 << 21;
/// A sign that no path has.
pub(super) const ALIEN: u32 = 1 << 22;
/// Parts words.
pub(super) const PARTS: u32 = 1 << 23;
/// A capital letter.
pub(super) const CAPITAL: u32 = 1 << 25;

/// What a byte can be part of.
#[inline]
pub(super) fn class(byte: u8) -> u32 {
    static CLASSES: [u32; 256] = classes();
    CLASSES[usize::from(byte)]
}

const fn classes() -> [u32; 256] {
    const SETS: [(&[u8], u32); 22] = [
        (b"`", TICK),
        (b"()[]", BRACKET),
        (b"\\![<~", SIGN),
        (b"\"'\xc2\xe2\xe3", QUOTE),
        (b"./\\@", MARK),
        (b"\\/._-~@$*+#%:?=&!", WORD),
        (b"\\/._-~@$*%", FIRST),
        (b"\\/._-~@$*%+#", STUCK),
        (b"@!~", TAG),
        (b"*_\\", EMPHASIS),
        (b"`./\\@![<~", STOP),
        (b">", ARROW),
        (b"?", QUESTION),
        (b":\n", SPEECH),
        (b"/\\", SLASH),
        (b" \t\n\x0b\x0c\r", SPACE),
        (b":", COLON),
        (b"@", AT),
        (b"*", STAR),
        (b"=&|<>`\"", ALIEN),
        (b" \t\n\x0b\x0c\r,;():\"/", PARTS),
        (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", CAPITAL),
    ];
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = starts::class(byte as u8);
        let own = byte as u8;
        if own.is_ascii_alphanumeric() {
            classes[byte] |= WORD | FIRST | STUCK;
        }
        if !own.is_ascii() {
            classes[byte] |= FOREIGN;
        }
        // A character that is not ASCII stands where its first byte does.
        if is_odd(own) && !matches!(own, 0x80..0xc0) {
            classes[byte] |= STOP;
        }
        byte += 1;
    }
    let mut set = 0;
    while set < SETS.len() {
        let (bytes, class) = SETS[set];
        let mut n = 0;
        while n < bytes.len() {
            classes[bytes[n] as usize] |= class;
            n += 1;
        }
        set += 1;
    }
    classes
}

/// What can stand in a word only by its place, and what is no ASCII.
pub(super) const fn is_odd(byte: u8) -> bool {
    !byte.is_ascii() || matches!(byte, b'{' | b'[' | b']')
}
