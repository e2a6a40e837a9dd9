//! The invariants of an event relative to the previous one, for imports and checks. Gaps, sequences and ids need more
//! of the log and are judged elsewhere.

use std::cmp::Ordering;

use serde_json::value::RawValue;

use crate::clock::{TIME_MAX, Timestamp};
use crate::error::{Error, Result};
use crate::limits::{self, APPEND_EVENTS_MAX, check_name, check_sizes};
use crate::position::Position;
use crate::recorded::{Metadata, Recorded};

/// The only log format that this code reads and writes. Formats are not converted.
pub(crate) const FORMAT: i64 = 2;

/// Refuses a log of another format.
pub(crate) fn check_format(place: String, found: i64) -> Result<()> {
    match found.cmp(&FORMAT) {
        Ordering::Less => Err(Error::OlderFormat { place, found, supported: FORMAT }),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Error::NewerFormat { place, found, supported: FORMAT }),
    }
}

/// The facts about an event that constrain the next one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Previous {
    pub(crate) position: Position,
    created_at: Timestamp,
    append_start: Position,
}

impl Previous {
    pub(crate) fn of(event: &Recorded) -> Self {
        let Recorded { position, created_at, append_start, .. } = event;
        Self { position: *position, created_at: *created_at, append_start: *append_start }
    }
}

/// The first violation by this event, if any. `previous` is `None` before the first event.
pub(crate) fn broken(previous: Option<Previous>, event: &Recorded) -> Option<String> {
    broken_order(previous, event).or_else(|| broken_parts(event))
}

fn broken_order(previous: Option<Previous>, event: &Recorded) -> Option<String> {
    let Recorded { position, created_at, append_start, .. } = event;
    let begins = append_start == position;
    if !(Timestamp(0)..=TIME_MAX).contains(created_at) {
        return Some(format!("created_at is {}, and log time is from 1970 to the year 9999", created_at.0));
    }
    match previous {
        None if begins || position.0 != 1 => None,
        None => Some(format!("append_start is {append_start}, and the first event begins its append")),
        Some(previous) if *created_at < previous.created_at => {
            let (created_at, before) = (created_at.0, previous.created_at.0);
            Some(format!("created_at runs backwards, from {before} to {created_at} microseconds since 1970"))
        }
        // After a gap the event's append is unknown.
        Some(previous) if begins || previous.position.0.saturating_add(1) != position.0 => None,
        Some(previous) if *append_start != previous.append_start => {
            let before = previous.append_start;
            Some(format!("append_start is {append_start}, and only {before} or {position} can be"))
        }
        Some(previous) if *created_at != previous.created_at => {
            Some("created_at is another than that of the event before it, with which it was appended".into())
        }
        Some(_) => {
            let n_events = usize::try_from(position.0.saturating_sub(append_start.0)).unwrap_or(0).saturating_add(1);
            limits::check("append_events_max", "the events of the append", n_events, APPEND_EVENTS_MAX)
                .err()
                .map(|error| error.to_string())
        }
    }
}

fn broken_parts(event: &Recorded) -> Option<String> {
    if let Err(error) = check_limits(event) {
        return Some(match error {
            Error::InvalidAppend { reason } => reason,
            passed => passed.to_string(),
        });
    }
    if !event.tags.is_sorted_by(|before, after| before < after) {
        return Some("the tags are not sorted, or one is there twice".into());
    }
    let is_json = |text: &str| serde_json::from_str::<&RawValue>(text).err();
    let data = is_json(&event.data).map(|error| format!("data is not JSON: {error}"));
    let metadata = || is_json(&event.metadata).map(|error| format!("metadata is not JSON: {error}"));
    let form = || {
        let error = serde_json::from_str::<Metadata>(&event.metadata).err()?;
        Some(format!("metadata has another form than that of a log: {error}"))
    };
    data.or_else(metadata).or_else(form)
}

/// Checks the limits of an append on an event, as far as they apply to one.
fn check_limits(event: &Recorded) -> Result<()> {
    check_sizes(&event.event_type, &event.data, &event.metadata, &event.tags)?;
    check_name("stream id", &event.stream_id)?;
    check_name("aggregate id", &event.aggregate_id)?;
    check_name("event type", &event.event_type)?;
    check_name("event version", &event.event_version)
}
