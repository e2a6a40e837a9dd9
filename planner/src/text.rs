//! Measuring and shortening texts.

use std::time::Duration;

/// The characters per token for estimates.
pub const CHARS_PER_TOKEN: usize = 4;

/// The estimated tokens of a text: a quarter of its characters, rounded up.
pub fn estimate_tokens(text: &str) -> u64 {
    n_chars(text).div_ceil(CHARS_PER_TOKEN) as u64
}

/// A text of at most `chars_max` characters: its beginning and its end, with ` ... ` between them.
pub fn truncate(text: &str, chars_max: usize) -> String {
    if fits(text, chars_max) {
        return text.to_owned();
    }
    let mark = " ... ";
    let Some(room) = chars_max.checked_sub(mark.len()) else { return prefix(text, chars_max).to_owned() };
    let head = prefix(text, room / 2);
    let tail = match room - room / 2 {
        0 => "",
        n_chars => text.char_indices().nth_back(n_chars - 1).map_or(text, |(at, _)| &text[at..]),
    };
    format!("{head}{mark}{tail}")
}

/// A text without line breaks, of at most `chars_max` characters.
pub fn single_line(text: &str, chars_max: usize) -> String {
    // Shortens a huge text first, to bound the cost.
    let start = truncate(text, chars_max.saturating_mul(4));
    truncate(&start.split_whitespace().collect::<Vec<_>>().join(" "), chars_max)
}

/// A duration in at most two units: `340 ms`, `2.5 s`, `31 s`, `8 min 9 s`, `2 h`, `3 d 4 h`.
pub fn duration(ms: u64) -> String {
    let secs = ms / 1_000;
    let (large, small) = match secs {
        0 => return format!("{ms} ms"),
        1..10 if ms % 1_000 >= 100 => return format!("{secs}.{} s", ms / 100 % 10),
        1..60 => return format!("{secs} s"),
        60..3_600 => ((secs / 60, "min"), (secs % 60, "s")),
        3_600..86_400 => ((secs / 3_600, "h"), (secs / 60 % 60, "min")),
        86_400.. => ((secs / 86_400, "d"), (secs / 3_600 % 24, "h")),
    };
    let words = [large, small].into_iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n} {unit}"));
    words.collect::<Vec<_>>().join(" ")
}

/// The milliseconds of a duration.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Parses a duration such as `90s`, `10m`, `2h`, `1d` or `500ms` into milliseconds; `None` for zero.
pub fn length_ms(text: &str) -> Option<u64> {
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

/// The first characters of a text.
pub(crate) fn prefix(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(at, _)| &text[..at])
}

/// True when a text has at most `chars_max` characters.
pub(crate) fn fits(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max || prefix(text, chars_max).len() == text.len()
}

/// The characters of a text.
pub(crate) fn n_chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The length limit at which several texts fit into `room`: short ones stay whole, long ones get equal shares.
pub(crate) fn equal_share(lengths: impl IntoIterator<Item = usize>, room: usize) -> usize {
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

/// Millionths of a unit, in units: `0.600000`.
pub fn money(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A cost in millionths: `2`, `2.50`.
///
/// # Errors
/// It is none.
pub fn price(typed: &str) -> Result<u64, String> {
    let wrong = || "invalid cost: use a number such as 2 or 2.50".to_owned();
    let (whole, part) = typed.split_once('.').unwrap_or((typed, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !is_number(whole) || !is_number(part) {
        return Err(wrong());
    }
    format!("{whole}{part:0<6}").parse().map_err(|_| wrong())
}
