//! Time as the log sees it: microseconds since 1970 in UTC, from a clock that is passed in.

use std::sync::{Arc, Mutex, PoisonError};
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
        Self(self.0.saturating_add(micros(duration)))
    }

    /// The duration from `earlier` to this moment; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// The source of a log's time. A test passes its own.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock's time; it may step backwards.
    fn wall(&self) -> Timestamp;
    /// Time since some fixed moment; it never runs backwards.
    fn monotonic(&self) -> Duration;
    /// True for the machine's own clock. A PostgreSQL log then uses the server's clock instead.
    fn is_of_machine(&self) -> bool {
        false
    }
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
        at(SystemTime::now())
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn is_of_machine(&self) -> bool {
        true
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// A clock that was never set shows a time before 1970. It counts as 1970: no log has earlier events.
fn at(wall: SystemTime) -> Timestamp {
    let since_epoch = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(micros(since_epoch))
}

/// The time of one log, shared by a process. It is never earlier than the last known write. While the wall clock shows
/// less than that write, or than its own earlier readings allow, log time follows the monotonic clock.
pub(crate) struct LogTime {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    /// The time of the last known write.
    last: Timestamp,
    /// Log time minus monotonic time, in microseconds.
    offset: i64,
    /// True if the log already records that the wall clock is behind.
    is_recorded: bool,
}

/// A reading of log time.
pub(crate) struct Reading {
    pub(crate) now: Timestamp,
    /// How far the wall clock is behind; unset if it is close enough or the step is already recorded.
    pub(crate) stepped_back: Option<Duration>,
}

/// The latest log time, the end of the year 9999: versions and leases need room above it.
pub(crate) const TIME_MAX: Timestamp = Timestamp(253_402_300_799_999_999);

/// Wall clock steps up to this long are smoothed without a record.
const SILENT_STEP_MAX: Duration = Duration::from_secs(1);

impl LogTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State { last: Timestamp(0), offset: -micros(clock.monotonic()), is_recorded: false };
        Self { clock, state: Mutex::new(state) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.after(Timestamp(0)).now
    }

    /// For [`LogTime::after_by`], before another clock is asked.
    #[cfg(feature = "postgres")]
    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Records that a write at `last` exists.
    pub(crate) fn learn(&self, last: Timestamp) {
        self.after(last);
    }

    /// The time for a write that follows one at `last`.
    pub(crate) fn after(&self, last: Timestamp) -> Reading {
        self.after_by(last, None)
    }

    /// [`LogTime::after`] with an earlier reading of the wall clock: its answer, and the monotonic time of the request.
    pub(crate) fn after_by(&self, last: Timestamp, answer: Option<(Duration, Timestamp)>) -> Reading {
        let (asked, wall) = answer.unwrap_or_else(|| (self.clock.monotonic(), self.clock.wall()));
        let (asked, wall, heard) = (micros(asked), wall.min(TIME_MAX), micros(self.clock.monotonic()));
        // An answer may be late: the wall clock showed it at some moment between request and arrival.
        let (least, most) = (wall.0.saturating_sub(heard), wall.0.saturating_sub(asked));
        // A panic of the caller's clock leaves the state unchanged.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last = state.last.max(last);
        state.offset = state.offset.max(last.0.saturating_sub(heard));
        let step = Duration::from_micros(u64::try_from(state.offset.saturating_sub(most)).unwrap_or(0));
        if wall >= state.last && step <= SILENT_STEP_MAX {
            state.offset = state.offset.min(most).max(least);
            state.is_recorded = false;
            return Reading { now: wall, stepped_back: None };
        }
        let now = Timestamp(state.offset.saturating_add(heard)).min(TIME_MAX).max(state.last);
        Reading { now, stepped_back: (!state.is_recorded && step > SILENT_STEP_MAX).then_some(step) }
    }

    /// Says that the log has the step.
    pub(crate) fn step_is_recorded(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_recorded = true;
    }
}

#[cfg(test)]
mod tests;
