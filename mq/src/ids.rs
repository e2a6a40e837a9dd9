//! Event ids: time-ordered for unique events, derived for reactions that may be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{Builder, NoContext, Uuid};

use crate::clock::Timestamp;

/// A new event id: UUIDv7, so that the index on ids grows at its end.
#[must_use]
pub fn new_event_id() -> Uuid {
    id_made_at(SystemTime::now())
}

/// An id cannot hold a time before 1970, so 1970 is used; the random part keeps the ids distinct.
fn id_made_at(wall: SystemTime) -> Uuid {
    if wall < UNIX_EPOCH { Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, 0, 0)) } else { Uuid::now_v7() }
}

/// The id of the `index`-th event with which `process` reacts to `cause`: a UUIDv8 from the time of the cause and a
/// hash of the three. A repeated reaction has the same ids and is recognised. A process that reacts to one event in
/// two aggregates, or twice, must use two names.
///
/// Bytes 0..6 are the milliseconds of `caused_at`, as in UUIDv7; the rest is UUIDv5 in the namespace of the cause.
#[must_use]
pub fn derived_event_id(process: &str, caused_at: Timestamp, cause: Uuid, index: usize) -> Uuid {
    let hash = Uuid::new_v5(&cause, format!("{process}/{index}").as_bytes());
    let mut bytes = *hash.as_bytes();
    let millis = u64::try_from(caused_at.0 / 1000).unwrap_or(0);
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// FNV-1a, 64 bits: short, and the same on every machine and in every version.
pub(crate) fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn ids_can_be_made_with_a_clock_before_1970() {
        let wall = UNIX_EPOCH - Duration::from_secs(86_400);
        let ids = [id_made_at(wall), id_made_at(wall)];
        assert_ne!(ids[0], ids[1]);
        assert!(ids.iter().all(|id| id.get_version_num() == 7 && id.as_bytes()[..6] == [0; 6]), "{ids:?}");
        let now = [id_made_at(SystemTime::now()), new_event_id()];
        assert!(now[0] < now[1] && now[0].as_bytes()[..6] > [0; 6][..], "{now:?}");
    }
}
