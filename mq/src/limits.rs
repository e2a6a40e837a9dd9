//! The limits of a log, and the refusal of what exceeds them.

use std::time::Duration;

use crate::error::{Error, Result};

/// The greatest size of one event's `data`, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 32 << 20;
/// The greatest size of one event's `metadata`, in bytes.
pub const METADATA_BYTES_MAX: usize = 1 << 20;
/// The greatest length of a stream id, an aggregate id, an event type, a version or a tag, in bytes.
pub const NAME_BYTES_MAX: usize = 512;
/// The most tags on one event.
pub const TAGS_MAX: usize = 32;
/// The most events in one append.
pub const APPEND_EVENTS_MAX: usize = 400_000;
/// The most changes of cells in one append.
pub const APPEND_CELLS_MAX: usize = 1024;
/// The greatest size of a cell's value, in bytes.
pub const CELL_BYTES_MAX: usize = 32 << 20;
/// The longest time for which a cell can be held without a change.
pub const LEASE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest delay until an event is seen if every hint is lost.
pub const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long a caller's own statements may take in the transaction of an append.
#[cfg(feature = "sqlite")]
pub const JOINED_TIME_MAX: Duration = Duration::from_secs(2);
/// The most alternatives of a query.
pub const QUERY_ALTERNATIVES_MAX: usize = 64;
/// The most events that one read returns.
pub const PAGE_EVENTS_MAX: usize = 10_000;
/// A read returns no more once its events have this many bytes of `data` and `metadata`.
pub const PAGE_BYTES_MAX: usize = 64 << 20;
/// The most findings that one check reports.
pub const FINDINGS_MAX: usize = 100;

/// The most arrays and objects of an event's `data` or `metadata` inside each other. Parsers read a few more.
pub const JSON_DEPTH_MAX: usize = 120;

/// The first and the longest wait after a fault; each wait is twice the previous one.
pub(crate) const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// The most bytes of a name that an error shows.
const SHOWN_BYTES_MAX: usize = 40;

/// Refuses a value that exceeds a limit; `what` names the value.
pub(crate) fn check(limit: &'static str, what: impl std::fmt::Display, value: usize, max: usize) -> Result<()> {
    if value > max { Err(Error::LimitPassed { limit, what: what.to_string(), value, max }) } else { Ok(()) }
}

/// The limits of an event's contents.
pub(crate) fn check_sizes(event_type: &str, data: &str, metadata: &str, tags: &[String]) -> Result<()> {
    check("payload_bytes_max", format_args!("the bytes of {event_type}"), data.len(), PAYLOAD_BYTES_MAX)?;
    let what = format_args!("the bytes of the metadata of {event_type}");
    check("metadata_bytes_max", what, metadata.len(), METADATA_BYTES_MAX)?;
    check("tags_max", format_args!("the tags of {event_type}"), tags.len(), TAGS_MAX)?;
    for (part, json) in [("data", data), ("metadata", metadata)] {
        check("json_depth_max", format_args!("the levels of the {part} of {event_type}"), depth(json), JSON_DEPTH_MAX)?;
    }
    tags.iter().try_for_each(|tag| check_name("tag", tag))
}

/// The limit of a name.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::InvalidAppend { reason: format!("the {what} is empty") });
    }
    if name.contains('\0') {
        return Err(Error::InvalidAppend { reason: format!("the {what} {name:?} has a zero byte") });
    }
    let beginning = &name[..name.floor_char_boundary(SHOWN_BYTES_MAX)];
    check("name_bytes_max", format_args!("the bytes of the {what} {beginning:?}..."), name.len(), NAME_BYTES_MAX)
}

/// The most arrays and objects of a JSON text inside each other.
fn depth(json: &str) -> usize {
    // Each level takes two bytes.
    if json.len() <= 2 * JSON_DEPTH_MAX {
        return 0;
    }
    let (mut depth, mut deepest, mut in_text, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
