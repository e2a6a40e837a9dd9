//! Event ids: time-ordered for what happens once, derived for a reaction that may be repeated.

use uuid::{Builder, Uuid};

use crate::clock::Timestamp;

/// A new event id: UUIDv7, so that the index on ids grows at its end.
#[must_use]
pub fn new_event_id() -> Uuid {
    Uuid::now_v7()
}

/// The id of the `index`-th event with which `process` reacts to `cause`: UUIDv8 from the time of the cause and
/// a hash of the three, so a repeated reaction bears the same ids and is recognised. A process that reacts to one event
/// in two aggregates, or twice, must go by two names.
///
/// Bytes 0..6 are the milliseconds of `caused_at`, as in UUIDv7; the rest is SHA-1 (by way of UUIDv5 in the
/// namespace of the cause).
#[must_use]
pub fn derived_event_id(process: &str, caused_at: Timestamp, cause: Uuid, index: usize) -> Uuid {
    let hash = Uuid::new_v5(&cause, format!("{process}/{index}").as_bytes());
    let mut bytes = *hash.as_bytes();
    let millis = u64::try_from(caused_at.0 / 1000).unwrap_or(0);
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    Builder::from_custom_bytes(bytes).into_uuid()
}
