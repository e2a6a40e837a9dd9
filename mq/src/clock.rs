//! Time as the log sees it: microseconds since 1970 in UTC, from a clock that is passed in.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// Whether it is the clock of the machine and nothing more. Where a log has a better one, such as that of a database
    /// server for all its clients, that is taken in place of it.
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

/// What a clock that was never set says, a time before 1970, is taken for 1970: no log has earlier events.
fn at(wall: SystemTime) -> Timestamp {
    let since_epoch = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
}

/// The time of one log, shared by a process: it never runs behind a known event. While the wall
/// clock is behind, it follows the monotonic clock.
pub(crate) struct LogTime {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: Timestamp,
    behind: Option<Behind>,
}

/// Since when the wall clock is behind.
#[derive(Clone, Copy)]
struct Behind {
    last: Timestamp,
    since: Duration,
    is_recorded: bool,
}

/// A reading of log time.
pub(crate) struct Reading {
    pub(crate) now: Timestamp,
    /// Set while the wall clock is far behind and that is not recorded: by how much.
    pub(crate) stepped_back: Option<Duration>,
}

/// Steps of the wall clock up to this long are smoothed over in silence.
const SILENT_STEP_MAX: Duration = Duration::from_secs(1);

impl LogTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.after(Timestamp(i64::MIN)).now
    }

    /// Learns of an event that was made at `last`.
    pub(crate) fn learn(&self, last: Timestamp) {
        let mut state = self.state();
        state.last = state.last.max(last);
    }

    /// The time of an event that follows one made at `last`.
    pub(crate) fn after(&self, last: Timestamp) -> Reading {
        let mut state = self.state();
        state.last = state.last.max(last);
        let (last, wall) = (state.last, self.clock.wall());
        if wall >= last {
            state.behind = None;
            return Reading { now: wall, stepped_back: None };
        }
        let monotonic = self.clock.monotonic();
        let behind = *state.behind.get_or_insert(Behind { last, since: monotonic, is_recorded: false });
        let ran_on = behind.last.plus(monotonic.saturating_sub(behind.since));
        let step = last.since(wall);
        let stepped_back = (!behind.is_recorded && step > SILENT_STEP_MAX).then_some(step);
        Reading { now: ran_on.max(last), stepped_back }
    }

    /// Says that the log has the step.
    pub(crate) fn step_is_recorded(&self) {
        if let Some(behind) = &mut self.state().behind {
            behind.is_recorded = true;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A clock of the caller's that panicked has changed nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_before_1970_is_clamped_to_1970() {
        assert_eq!(at(UNIX_EPOCH - Duration::from_secs(1)), Timestamp(0));
        assert_eq!(at(UNIX_EPOCH + Duration::from_secs(1)), Timestamp(1_000_000));
    }
}
