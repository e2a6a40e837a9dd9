//! Reads from the output of a rate-limited program when its limit resets.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use regex::{Captures, Regex};

/// Later times are ignored.
const LONGEST: Duration = Duration::from_hours(8 * 24);
const MONTHS: &str = "janfebmaraprmayjunjulaugsepoctnovdec";

/// The words before a time to wait: `try again in 3 days 2 hours`, `reset after 4h28m20s`, `Retry-After: 120`.
static WITHIN: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(retry[-_ ]?after|retry[-_]?delay)|(?:again|retry|wait|resets?|available)(?: in| for| after)?")
});
static PART: LazyLock<Regex> = LazyLock::new(|| regex(r#"^["':=\s,~]*(?:and )?(\d+(?:\.\d+)?)\s*([a-z]*)"#));
/// `usage limit reached|1763000000`, `"resets_at":1763000000`.
static EPOCH: LazyLock<Regex> = LazyLock::new(|| regex(r#"(?:\||resets?(?:_?at)?["':= ]+)(\d{10}|\d{13})\b"#));
/// `2026-11-30T15:50:00Z`.
static STAMP: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)"));
/// `resets at 15:50`, `resets 3pm (Europe/Berlin)`, `try again at Oct 9th, 2025 3:02 PM`.
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?:resets?|again|until|available)(?: at| on)?:? (?:([a-z]{3})[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}),?)?(?: at)? )?",
        r"(\d{1,2})(?::(\d\d))?(?::\d\d)? ?(am|pm)?\b(?: ?\(([a-z_]+/[a-z_/]+|utc)\))?",
    ))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(&format!("(?i){pattern}")).expect("it is valid")
}

/// The time until the limit resets, as a text names it; the shortest if it names several. A time of day is in the zone that it
/// names, else in that of `now`.
pub fn resets_in(text: &str, now: &Zoned) -> Option<Duration> {
    let within =
        WITHIN.captures_iter(text).filter_map(|found| span(&text[found.get_match().end()..], found.get(1).is_some()));
    let at = |time: Timestamp| Duration::try_from(time.duration_since(now.timestamp())).ok();
    let epochs = EPOCH.captures_iter(text).filter_map(|found| {
        let number: i64 = found[1].parse().ok()?;
        Timestamp::from_second(if found[1].len() == 13 { number / 1_000 } else { number }).ok().and_then(at)
    });
    let stamps = STAMP.find_iter(text).filter_map(|found| found.as_str().to_uppercase().parse().ok().and_then(at));
    // An unknown name of a zone makes the time unknown.
    let names_zone = |found: &Captures<'_>| text[found.get_match().end()..].trim_start().starts_with('(');
    let clocks = CLOCK.captures_iter(text).filter(|found| found.get(7).is_some() || !names_zone(found));
    let clocks = clocks.filter_map(|found| at(moment(&found, now)?));
    within.chain(epochs).chain(stamps).chain(clocks).filter(|wait| !wait.is_zero() && *wait <= LONGEST).min()
}

/// The sum of the amounts at the beginning of a text. A number without a unit counts only if it `may_be_bare`.
fn span(mut text: &str, may_be_bare: bool) -> Option<Duration> {
    let mut sum = None::<Duration>;
    while let Some(part) = PART.captures(text) {
        let seconds = match part[2].to_lowercase().as_str() {
            "" if may_be_bare && sum.is_none() => 1.0,
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _another => break,
        };
        let amount = Duration::try_from_secs_f64(part[1].parse::<f64>().ok()? * seconds).ok()?;
        sum = Some(sum.unwrap_or_default().checked_add(amount)?);
        text = &text[part.get_match().end()..];
    }
    sum
}

/// The moment of a time of day: of its date, or else the next one.
fn moment(found: &Captures<'_>, now: &Zoned) -> Option<Timestamp> {
    let number = |group: usize| found.get(group).and_then(|found| found.as_str().parse::<i16>().ok());
    let (hour, minute) = (i8::try_from(number(4)?).ok()?, i8::try_from(number(5).unwrap_or(0)).ok()?);
    let hour = match found.get(6).map(|half| half.as_str().to_lowercase()) {
        Some(half) if half == "pm" => hour % 12 + 12,
        Some(_am) => hour % 12,
        // A number alone is no time.
        None if found.get(5).is_none() => return None,
        None => hour,
    };
    let zone = found.get(7).map_or(Some(now.time_zone().clone()), |zone| TimeZone::get(zone.as_str()).ok())?;
    let (here, time) = (now.with_time_zone(zone.clone()), Time::new(hour, minute, 0, 0).ok()?);
    let (date, step) = match found.get(1) {
        Some(month) => {
            let month = i8::try_from(MONTHS.find(&month.as_str().to_lowercase())? / 3 + 1).ok()?;
            let date = Date::new(number(3).unwrap_or(here.year()), month, i8::try_from(number(2)?).ok()?).ok()?;
            (date, 1.year())
        }
        None => (here.date(), 1.day()),
    };
    let moment = date.to_datetime(time).to_zoned(zone).ok()?;
    let is_next = moment <= here && found.get(3).is_none();
    Some(if is_next { moment.checked_add(step).ok()? } else { moment }.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_until_a_limit_resets_is_read_in_every_form() {
        // Monday, 2026-11-30, 14:00 in Berlin: 13:00 UTC, and epoch 1796043600.
        let now: Zoned = "2026-11-30T14:00:00+01:00[Europe/Berlin]".parse().expect("a time");
        for (text, seconds) in [
            ("usage limit reached, resets at 15:50", Some(6_600)),
            ("5-hour limit reached ∙ resets 3pm", Some(3_600)),
            ("Limit reached · resets 1pm", Some(23 * 3_600)),
            ("resets 9am (America/New_York)", Some(3_600)),
            ("try again at 3:02 PM", Some(3_720)),
            ("resets at 12:30 am", Some(10 * 3_600 + 1_800)),
            ("Claude AI usage limit reached|1796043660", Some(60)),
            ("{\"resets_at\":1796043660000}", Some(60)),
            ("until 2026-11-30T13:01:00Z", Some(60)),
            ("resets 2026-11-30T14:00:30.5+01:00", Some(30)),
            ("HTTP 429, Retry-After: 120", Some(120)),
            ("Please try again in 1.898s", Some(1)),
            ("try again in 3 days 2 hours 5 minutes", Some(266_700)),
            ("\"retryDelay\": \"23s\"", Some(23)),
            ("wait 1h 30m", Some(5_400)),
            ("You've hit your session limit · resets 3:50pm (Europe/Berlin)", Some(6_600)),
            ("resets 12:50am (America/Los_Angeles)", Some(19 * 3_600 + 3_000)),
            ("resets 3 pm", Some(3_600)),
            ("Your quota will reset after 4h28m20s.", Some(16_100)),
            ("Please retry in 7m12s", Some(432)),
            ("try again at Dec 1st, 2026 2:05 PM.", Some(86_700)),
            ("Limit reached · resets Dec 2 at 2pm (Europe/Berlin)", Some(2 * 86_400)),
            ("resets Dec 1, 9am", Some(19 * 3_600)),
            ("Retry-After: Mon, 30 Nov 2026", None),
            ("wait 5 and reset 12 counters", None),
            ("try again in 10 more minutes", None),
            ("resets Oct 9 at 2pm", None),
            ("resets 3pm (EST)", None),
            ("resets 3pm (Mars/Olympus)", None),
            // Two times: the first to come.
            ("resets at 15:50; try again in 10 minutes", Some(600)),
            // None, none to come, or too far.
            ("usage limit reached", None),
            ("too many requests: 429", None),
            ("limit reached|1700000000", None),
            ("resets in 30 days", None),
            ("resets at 25:99", None),
            ("try again in 99999999999999999999 days", None),
            ("", None),
        ] {
            let found = resets_in(text, &now).map(|wait| wait.as_secs());
            assert_eq!(found, seconds, "{text}");
        }
    }
}
