//! Signs before items that are also other things, and count only beside another line with the same sign: times of day,
//! `1: `, `1 - `, `[1] `, and markers without a blank behind them.

use super::markers::{self, Marker, ends};
use super::phrases::strip_prefix_ci;
use super::text::spaces;
use super::vocabulary;
use crate::plan::Mark;

/// A sign of this sort.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loose {
    /// Signs of one shape stand beside each other.
    shape: Shape,
    number: Option<u32>,
    pub(super) mark: Option<Mark>,
    pub(super) skip: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Time,
    Dash,
    Box,
    /// The sign behind the number, and whether there is a bracket before it.
    Number(u8),
}

impl Loose {
    pub(super) fn marker(&self) -> Marker<'static> {
        self.number.map_or(Marker::Bullet, |number| Marker::Number(number.to_string().into()))
    }

    /// True when the next line may go on from this one.
    pub(super) fn leads_to(&self, next: &Self) -> bool {
        self.shape == next.shape && self.number.map(|number| number.saturating_add(1)) == next.number
    }
}

/// The sign before a line, if it is one of these.
pub(super) fn loose(content: &str) -> Option<Loose> {
    match content.as_bytes().first()? {
        b'-' | b'*' => bullet(content),
        b'0'..=b'9' => {
            let time = time(content).map(|_| Loose { shape: Shape::Time, number: None, mark: None, skip: 0 });
            time.or_else(|| numbered(content))
        }
        b'[' => {
            let found = numbered(&content[1..]).filter(|found| found.shape == Shape::Number(b']'))?;
            let skip = found.skip + 1;
            vocabulary::begins_with_verb(&content[skip..]).then_some(Loose { skip, ..found })
        }
        _ => None,
    }
}

/// `-[ ] Fix it`, `-Fix it`.
fn bullet(content: &str) -> Option<Loose> {
    let rest = &content[1..];
    if let Some((mark, length)) = markers::checkbox(rest) {
        let skip = 1 + length + spaces(&rest[length..]);
        return Some(Loose { shape: Shape::Box, number: None, mark: Some(mark), skip });
    }
    let fits = content.starts_with('-')
        && (rest.starts_with(char::is_uppercase)
            || rest.starts_with(char::is_lowercase) && vocabulary::begins_with_verb(rest));
    fits.then_some(Loose { shape: Shape::Dash, number: None, mark: None, skip: 1 })
}

/// `1.Fix it`, `1: Fix it`, `1 - Fix it`, `1] Fix it`.
fn numbered(content: &str) -> Option<Loose> {
    let digits = content.bytes().take(4).take_while(u8::is_ascii_digit).count();
    let number = content.get(..digits)?.parse::<u32>().ok()?;
    let rest = &content[digits..];
    let (sign, after) = match rest.as_bytes() {
        [sign @ (b'.' | b')'), ..] if rest[1..].starts_with(char::is_alphabetic) => (*sign, &rest[1..]),
        [sign @ (b':' | b']'), b' ', ..] => (*sign, &rest[2..]),
        [b' ', ..] => {
            let after = [" - ", " \u{2013} "].iter().find_map(|dash| rest.strip_prefix(dash))?;
            (b'-', after)
        }
        _ => return None,
    };
    let words = after.trim_start();
    let skip = content.len() - words.len();
    words.starts_with(char::is_alphabetic).then_some(Loose {
        shape: Shape::Number(sign),
        number: Some(number),
        mark: None,
        skip,
    })
}

/// The length of the time of day before words: `9:00 Stand-up`, `14:00-15:30 Review`.
pub(super) fn time(content: &str) -> Option<usize> {
    let mut length = clock(content)?;
    if let Some(to) = content[length..].trim_start().strip_prefix(['-', '\u{2013}']).map(str::trim_start)
        && let Some(end) = clock(to)
    {
        length = content.len() - to.len() + end;
    }
    let rest = &content[length..];
    let words = rest.trim_start_matches([':', '-', '\u{2013}', ' ']);
    ((ends(rest) || rest.starts_with(':')) && words.starts_with(char::is_alphabetic)).then_some(length)
}

/// The length of a time of day: `9:00`, `14.30 Uhr`, `10:02:15 AM`.
pub(super) fn clock(text: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let hours = digits(text);
    let minutes = text[hours..].strip_prefix([':', '.', 'h']).filter(|minutes| digits(minutes) == 2)?;
    text[..hours].parse::<u8>().ok().filter(|hour| *hour < 25)?;
    let seconds = minutes[2..].strip_prefix(':').filter(|seconds| digits(seconds) == 2);
    let rest = seconds.map_or(&minutes[2..], |seconds| &seconds[2..]);
    let halves = ["am", "pm", "a.m.", "p.m.", "Uhr"];
    let half = halves.iter().find_map(|half| strip_prefix_ci(rest.trim_start(), half)).filter(|rest| ends(rest));
    Some(text.len() - half.unwrap_or(rest).len())
}
