//! Time as the log sees it: microseconds since 1970 in UTC, from a clock that is passed in.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A moment in log time: microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This moment and `duration` more.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// How long from `earlier` to this moment; nothing when it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Where a log's time comes from. A test passes its own.
pub trait Clock: Send + Sync + 'static {
    /// What the wall clock says; it may step backwards.
    fn wall(&self) -> Timestamp;
    /// Time since some fixed moment; it never runs backwards.
    fn monotonic(&self) -> Duration;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Turns a clock that may step back into one that does not: while the wall clock is behind the last event,
/// time runs on by the monotonic clock.
#[derive(Debug, Default)]
#[cfg(feature = "sqlite")]
pub(crate) struct LogTime {
    behind: Option<Behind>,
}

#[cfg(feature = "sqlite")]
#[derive(Debug, Clone, Copy)]
struct Behind {
    last: Timestamp,
    since: Duration,
}

/// A reading of log time.
#[cfg(feature = "sqlite")]
pub(crate) struct Reading {
    pub(crate) now: Timestamp,
    /// Set once for each time that the wall clock is found far behind: by how much.
    pub(crate) stepped_back: Option<Duration>,
}

/// Steps of the wall clock up to this long are smoothed over in silence.
#[cfg(feature = "sqlite")]
const SILENT_STEP_MAX: Duration = Duration::from_secs(1);

#[cfg(feature = "sqlite")]
impl LogTime {
    /// The time of an event that follows one made at `last`.
    pub(crate) fn read(&mut self, clock: &dyn Clock, last: Timestamp) -> Reading {
        let wall = clock.wall();
        if wall >= last {
            self.behind = None;
            return Reading { now: wall, stepped_back: None };
        }
        let first_seen = self.behind.is_none();
        let behind = *self.behind.get_or_insert_with(|| Behind { last, since: clock.monotonic() });
        let ran_on = behind.last.plus(clock.monotonic().saturating_sub(behind.since));
        let step = last.since(wall);
        Reading { now: ran_on.max(last), stepped_back: (first_seen && step > SILENT_STEP_MAX).then_some(step) }
    }
}
