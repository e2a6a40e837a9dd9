//! Text for people: it cannot move the cursor or colour the terminal, and lines stay lines.

use std::time::Duration;

pub use crewlog_executors::exports::{moment_of, rfc3339};
pub use crewlog_executors::shell::{in_one_line, shell_word, words};
pub use crewlog_executors::text::{one_line, visible};
use crewlog_mq::Timestamp;
use crewlog_planner::plan::DefaultAnswer;
pub use crewlog_planner::text::{duration, millis};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};

/// Characters of a default answer in a line.
const DEFAULT_CHARS_MAX: usize = 60;
const DAY: Duration = Duration::from_secs(86_400);
/// A moment nearer than this is shown with its seconds.
const NEAR: Duration = Duration::from_secs(600);

pub fn count(n: usize, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}

/// The present, by the clock of this machine.
pub fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_microsecond())
}

/// RFC 3339 in UTC, to the second: the same text for every reader.
pub fn utc(moment: Timestamp) -> String {
    let text = rfc3339(moment);
    text.split_once('.').map_or_else(|| text.clone(), |(second, _)| format!("{second}Z"))
}

/// A moment on the reader's clock; `None` beyond its calendar.
fn local(moment: Timestamp) -> Option<DateTime> {
    let moment = jiff::Timestamp::from_microsecond(moment.0).ok()?;
    Some(moment.to_zoned(TimeZone::system()).datetime())
}

/// A moment on the reader's clock, to the second: `2026-11-28 13:51:16`.
pub fn date_time(moment: Timestamp) -> String {
    local(moment).map_or_else(|| rfc3339(moment), |moment| moment.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// A moment as a time of day, with the date if it is of another day than `now`: `15:12`, `15:12:30`, `2026-11-29 15:12`.
pub fn clock(moment: Timestamp, now: Timestamp) -> String {
    let (Some(at), Some(today)) = (local(moment), local(now)) else { return rfc3339(moment) };
    let is_near = moment.since(now).max(now.since(moment)) < NEAR;
    let form = match (at.date() == today.date(), is_near) {
        (true, true) => "%H:%M:%S",
        (true, false) => "%H:%M",
        (false, _) => "%Y-%m-%d %H:%M",
    };
    at.strftime(form).to_string()
}

/// An age in its largest unit: `35 min`.
pub fn age(ms: u64) -> String {
    let secs = ms / 1_000;
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| secs >= *unit);
    unit.map_or_else(|| format!("{secs} s"), |(unit, name)| format!("{} {name}", secs / unit))
}

/// A moment seen from `now`: `just now`, `2 min ago`, the date after a day, the clock time of one to come.
pub fn ago(moment: Timestamp, now: Timestamp) -> String {
    let since = now.since(moment);
    match local(moment) {
        _ if moment > now => clock(moment, now),
        _ if since < Duration::from_secs(1) => "just now".to_owned(),
        Some(moment) if since >= DAY => moment.date().to_string(),
        Some(_) | None => format!("{} ago", age(millis(since))),
    }
}

/// A time that [`rfc3339`] wrote, on the reader's clock; another text as it is.
pub fn readable(time: &str) -> String {
    moment_of(time).map_or_else(|| visible(time), date_time)
}

/// The default answer of a question and the time when it applies, in words; empty without one.
pub fn by_default(default: Option<&DefaultAnswer>, deadline: Option<Timestamp>) -> String {
    let Some(DefaultAnswer { answer, after_ms }) = default else { return String::new() };
    let wait = deadline.map_or_else(|| duration(*after_ms), |at| format!("until {}", clock(at, now())));
    format!(" (waits {wait} for an answer, then {})", one_line(answer, DEFAULT_CHARS_MAX))
}

#[cfg(test)]
mod tests;

pub fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
