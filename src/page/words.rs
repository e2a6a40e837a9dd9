//! Words and markup: numbers, times and texts as the page writes them. Texts from the log cannot become markup.

use std::fmt::{Display, Formatter};

use askama::Template;
use askama::filters::HtmlSafe;
use crewlog_mq::Timestamp;
use jiff::civil::DateTime;

pub use crate::text::one_line as cut;
use crate::text::{EPOCH, rfc3339, visible};
use crate::views::{Counts, Stage};

/// Markup that this program wrote: a template puts it in place as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markup(pub String);

impl Display for Markup {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

impl Markup {
    /// The markup of a template.
    pub fn of(template: &impl Template) -> Self {
        Self(template.render().expect("a template of the page writes to memory, and nothing in it fails"))
    }
}

/// A text between tags or in an attribute.
pub fn escaped(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => markup.push_str("&amp;"),
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '"' => markup.push_str("&quot;"),
            '\'' => markup.push_str("&#39;"),
            c => markup.push(c),
        }
    }
    markup
}

/// A text of several lines, of at most `chars_max` characters, and whether that is all of it.
pub fn whole(text: &str, chars_max: usize) -> (String, bool) {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => (visible(&text[..end]), false),
        None => (visible(text), true),
    }
}

/// `18204` as `18,204`.
pub fn grouped(n: impl Into<i64>) -> String {
    let digits = n.into().to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && digit != '-' && (digits.len() - i).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The time of day of an RFC 3339 time in UTC.
pub fn clock(rfc3339: &str) -> &str {
    rfc3339.get(11..19).unwrap_or(rfc3339)
}

/// A time of day; the script writes it in the reader's time zone.
pub fn at_clock(rfc3339: &str) -> Markup {
    timed("data-clock", rfc3339)
}

/// A time of day, which the script replaces by the time since then, or until then.
pub fn ago(rfc3339: &str) -> Markup {
    timed("data-ago", rfc3339)
}

fn timed(how: &str, rfc3339: &str) -> Markup {
    let (moment, clock) = (escaped(rfc3339), escaped(clock(rfc3339)));
    Markup(format!("<time {how} datetime=\"{moment}\" title=\"{moment}\">{clock}</time>"))
}

/// The time of day of a log time; before the first event there is none.
pub fn clock_of(moment: Timestamp) -> Markup {
    if moment == Timestamp::default() { Markup("the beginning".to_owned()) } else { at_clock(&rfc3339(moment)) }
}

/// Microseconds since 1970 of an RFC 3339 time in UTC.
pub fn microseconds(rfc3339: &str) -> Option<i64> {
    let moment: DateTime = rfc3339.strip_suffix('Z')?.parse().ok()?;
    i64::try_from(moment.duration_since(EPOCH).as_micros()).ok()
}

/// A length of time in at most two units: `1 h 48 min`.
pub fn lasting(us: i64) -> String {
    let seconds = us.max(0) / 1_000_000;
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, 0) => format!("{hours} h"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, 0, _) => format!("{days} d"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// What tasks in a stage are said to be.
pub fn of_stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Done => "done",
        Stage::Failed => "failed",
        Stage::Skipped => "skipped",
        Stage::Running => "running",
        Stage::Retrying => "waiting to retry",
        Stage::Queued => "ready",
        Stage::Waiting => "waiting for you",
        Stage::Planned => "planned",
    }
}

/// `9 done, 2 running`; the stages without tasks are left out.
pub fn of_counts(counts: &Counts) -> String {
    let some = Stage::ALL.iter().map(|stage| (counts[*stage as usize], *stage)).filter(|(n, _)| *n > 0);
    let words: Vec<_> = some.map(|(n, stage)| format!("{} {}", grouped(n), of_stage(stage))).collect();
    if words.is_empty() { "no tasks".to_owned() } else { words.join(", ") }
}

/// A name of the JSON form as a word: `most_active` as `most active`.
pub fn name_of_value(value: &serde_json::Value) -> String {
    let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    visible(&word)
}
