//! The server's clock as last read: the one clock of a log that many machines write.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, SystemClock, Timestamp};

/// The server's current time, in SQL: microseconds since 1970.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// The server's answer, and the time of the request.
#[derive(Default)]
pub(super) struct ServerClock {
    machine: SystemClock,
    heard: Mutex<Option<(Timestamp, Duration)>>,
}

impl ServerClock {
    pub(super) fn set(&self, now: Timestamp) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, self.machine.monotonic()));
    }
}

impl Clock for ServerClock {
    fn wall(&self) -> Timestamp {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.map_or_else(|| self.machine.wall(), |(now, at)| now.plus(self.machine.monotonic().saturating_sub(at)))
    }

    fn monotonic(&self) -> Duration {
        self.machine.monotonic()
    }
}
