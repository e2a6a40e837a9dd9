//! Reads from the output of a rate-limited program when its limit resets.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use regex::{Captures, Regex};

/// A limit that resets later is none that a task waits for.
const LONGEST: Duration = Duration::from_hours(8 * 24);

/// `retry-after: 120`, `try again in 3 days 2 hours 5 minutes`, `"retryDelay":"23s"`.
static WITHIN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?:retry[-_ ]?(?:after|delay)|(?:again|retry|wait|resets?|available)(?: in| for)?)["':= ]*~?((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)?\b[, ]*(?:and )?)+)"#,
    )
});
static PART: LazyLock<Regex> = LazyLock::new(|| regex(r"(\d+(?:\.\d+)?)\s*([a-z]*)"));
/// `usage limit reached|1763000000`, `"resets_at":1763000000`.
static EPOCH: LazyLock<Regex> = LazyLock::new(|| regex(r#"(?:\||resets?(?:_?at)?["':= ]+)(\d{10}|\d{13})\b"#));
/// `2026-11-30T15:50:00Z`.
static STAMP: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)"));
/// `resets at 15:50`, `reset 3pm (Europe/Berlin)`, `try again at 3:02 PM`.
static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:resets?|again|until|available)(?: at)? (\d{1,2})(?::(\d\d))?(?::\d\d)? ?(am|pm)?\b(?: ?\(([a-z_]+/[a-z_/]+|utc)\))?",
    )
});

fn regex(pattern: &str) -> Regex {
    Regex::new(&format!("(?i){pattern}")).expect("it is valid")
}

/// The time until the limit resets that a text names: of several the first to come. A time of day is that of the zone it names, or
/// else of `now`.
pub fn resets_in(text: &str, now: &Zoned) -> Option<Duration> {
    let within = WITHIN.captures_iter(text).filter_map(|found| span_of(&found[1]));
    let at = |time: Timestamp| Duration::try_from(time.duration_since(now.timestamp())).ok();
    let epochs = EPOCH.captures_iter(text).filter_map(|found| {
        let number: i64 = found[1].parse().ok()?;
        Timestamp::from_second(if found[1].len() == 13 { number / 1_000 } else { number }).ok().and_then(at)
    });
    let stamps = STAMP.find_iter(text).filter_map(|found| found.as_str().to_uppercase().parse().ok().and_then(at));
    let clocks = CLOCK.captures_iter(text).filter_map(|found| at(next_at(&found, now)?));
    within.chain(epochs).chain(stamps).chain(clocks).filter(|wait| !wait.is_zero() && *wait <= LONGEST).min()
}

/// The sum of amounts with units; a number alone is seconds.
fn span_of(text: &str) -> Option<Duration> {
    let parts = PART.captures_iter(text).map(|part| {
        let amount: f64 = part[1].parse().ok()?;
        let seconds = match part[2].to_lowercase().as_str() {
            unit if unit.starts_with("ms") || unit.starts_with("milli") => 0.001,
            "" => 1.0,
            unit if unit.starts_with('s') => 1.0,
            unit if unit.starts_with('m') => 60.0,
            unit if unit.starts_with('h') => 3_600.0,
            _days => 86_400.0,
        };
        Duration::try_from_secs_f64(amount * seconds).ok()
    });
    parts.sum::<Option<Duration>>()
}

/// The next moment with a time of day.
fn next_at(found: &Captures<'_>, now: &Zoned) -> Option<Timestamp> {
    let (hour, minute): (i8, i8) = (found[1].parse().ok()?, found.get(2).map_or(Ok(0), |it| it.as_str().parse()).ok()?);
    let hour = match found.get(3).map(|half| half.as_str().to_lowercase()) {
        Some(half) if half == "pm" => hour % 12 + 12,
        Some(_am) => hour % 12,
        // A number alone is no time.
        None if found.get(2).is_none() => return None,
        None => hour,
    };
    let zone = found.get(4).map_or(Some(now.time_zone().clone()), |zone| TimeZone::get(zone.as_str()).ok())?;
    let here = now.with_time_zone(zone.clone());
    let today = here.date().to_datetime(Time::new(hour, minute, 0, 0).ok()?).to_zoned(zone.clone()).ok()?;
    if today > here {
        return Some(today.timestamp());
    }
    Some(today.datetime().checked_add(1.day()).ok()?.to_zoned(zone).ok()?.timestamp())
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
