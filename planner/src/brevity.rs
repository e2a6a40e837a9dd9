//! Keeping texts short: their beginning and end, in a line, and fair shares of room.

use std::borrow::Cow;

/// A text of at most `chars_max` characters: its beginning and its end, where errors say most.
#[must_use]
pub fn shorten(text: &str, chars_max: usize) -> String {
    if fits(text, chars_max) {
        return text.to_owned();
    }
    let mark = " ... ";
    let Some(room) = chars_max.checked_sub(mark.len()) else { return start_of(text, chars_max).to_owned() };
    let head = start_of(text, room / 2);
    let tail = match room - room / 2 {
        0 => "",
        n_chars => text.char_indices().nth_back(n_chars - 1).map_or(text, |(at, _)| &text[at..]),
    };
    format!("{head}{mark}{tail}")
}

/// A span of time in its largest whole unit: `90 s`, `10 min`, `2 h`.
#[must_use]
pub fn span(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    let whole = units.into_iter().find(|(unit, _)| ms >= *unit && ms.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{ms} ms"), |(unit, name)| format!("{} {name}", ms / unit))
}

/// The first characters of a text; a long text costs no more than they do.
pub(crate) fn start_of(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(at, _)| &text[..at])
}

/// True when a text has at most so many characters.
pub(crate) fn fits(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max || start_of(text, chars_max).len() == text.len()
}

/// A text without line breaks, of at most `chars_max` characters.
pub(crate) fn in_a_line(text: &str, chars_max: usize) -> Cow<'_, str> {
    if text.len() <= chars_max && is_in_a_line(text) {
        return Cow::Borrowed(text);
    }
    // What is looked at has a limit too, so that a huge text costs no more than a long one.
    let looked_at = shorten(text, 4 * chars_max);
    Cow::Owned(shorten(&looked_at.split_whitespace().collect::<Vec<_>>().join(" "), chars_max))
}

/// True of plain words with one blank between them.
fn is_in_a_line(text: &str) -> bool {
    let bytes = text.as_bytes();
    // All of it is looked at in any case, which goes many bytes at a time.
    let is_odd = bytes.iter().fold(0, |is_odd, byte| is_odd | u8::from(!(b' '..0x7f).contains(byte)));
    let pairs = bytes.windows(2).map(|pair| u8::from(pair[0] == b' ') & u8::from(pair[1] == b' '));
    let has_two_blanks = pairs.fold(0, |has, pair| has | pair);
    is_odd | has_two_blanks == 0 && bytes.first() != Some(&b' ') && bytes.last() != Some(&b' ')
}

/// The characters of a text.
pub(crate) fn n_chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// How long each of some texts may be to have room together: small ones stay whole, the big ones share the rest alike.
pub(crate) fn fair_limit(lengths: impl IntoIterator<Item = usize>, room: usize) -> usize {
    let mut lengths = lengths.into_iter().collect::<Vec<_>>();
    lengths.sort_unstable();
    let (mut left, mut n_left) = (room, lengths.len());
    for length in lengths {
        let share = left / n_left;
        if length > share {
            return share;
        }
        left -= length;
        n_left -= 1;
    }
    usize::MAX
}
