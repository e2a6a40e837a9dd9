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

/// The time of one log, shared by a process: it never runs behind what is known to be written. While the wall clock is
/// behind, it follows the monotonic clock.
pub(crate) struct LogTime {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    /// The time of the last write known.
    last: Timestamp,
    /// A log time, and the monotonic time at which it was that.
    base: (Timestamp, Duration),
    /// Whether the log has that the wall clock is behind.
    is_recorded: bool,
}

/// A reading of log time.
pub(crate) struct Reading {
    pub(crate) now: Timestamp,
    /// Set while the wall clock is far behind and that is not recorded: by how much.
    pub(crate) stepped_back: Option<Duration>,
}

/// Log time is from 1970 up to here, the end of the year 9999, so that versions and leases have room above it.
pub(crate) const TIME_MAX: Timestamp = Timestamp(253_402_300_799_999_999);

/// Steps of the wall clock up to this long are smoothed over in silence.
const SILENT_STEP_MAX: Duration = Duration::from_secs(1);

impl LogTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State { last: Timestamp(0), base: (Timestamp(0), clock.monotonic()), is_recorded: false };
        Self { clock, state: Mutex::new(state) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.after(Timestamp(0)).now
    }

    /// Learns of what was written at `last`.
    pub(crate) fn learn(&self, last: Timestamp) {
        self.after(last);
    }

    /// The time of what is written after `last`.
    pub(crate) fn after(&self, last: Timestamp) -> Reading {
        self.after_by(last, None)
    }

    /// The same, by a wall clock that was read before.
    pub(crate) fn after_by(&self, last: Timestamp, wall: Option<Timestamp>) -> Reading {
        let wall = wall.unwrap_or_else(|| self.clock.wall()).min(TIME_MAX);
        let monotonic = self.clock.monotonic();
        // A clock of the caller's that panicked has changed nothing.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ran_on = |base: (Timestamp, Duration)| base.0.plus(monotonic.saturating_sub(base.1));
        if last > state.last {
            state.last = last;
            // While the wall clock is behind, who wrote it may know of less time that has passed.
            if wall >= last || last >= ran_on(state.base) {
                state.base = (last, monotonic);
            }
        }
        if wall >= state.last {
            state.is_recorded = false;
            return Reading { now: wall, stepped_back: None };
        }
        let now = ran_on(state.base).min(TIME_MAX).max(state.last);
        let step = now.since(wall);
        Reading { now, stepped_back: (!state.is_recorded && step > SILENT_STEP_MAX).then_some(step) }
    }

    /// Says that the log has the step.
    pub(crate) fn step_is_recorded(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_recorded = true;
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

    /// Wall and monotonic time in seconds.
    struct Hands(Mutex<(i64, u64)>);

    impl Clock for Hands {
        fn wall(&self) -> Timestamp {
            Timestamp(self.0.lock().expect("nobody panics with it").0 * 1_000_000)
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.0.lock().expect("nobody panics with it").1)
        }
    }

    fn timed(wall: i64) -> (Arc<Hands>, LogTime) {
        let hands = Arc::new(Hands(Mutex::new((wall, 0))));
        (Arc::clone(&hands), LogTime::new(hands))
    }

    /// As that of a server, which every reader of a process sets to what it has heard.
    #[test]
    fn a_clock_that_another_reader_set_back_is_no_step() {
        let (_hands, time) = timed(7);
        let reading = time.after_by(Timestamp(9_000_000), Some(Timestamp(9_000_001)));
        assert_eq!((reading.now, reading.stepped_back), (Timestamp(9_000_001), None));
        assert_eq!(time.after(Timestamp(9_000_000)).stepped_back, Some(Duration::from_secs(2)));
    }

    #[test]
    fn log_time_is_from_1970_to_the_year_9999() {
        let (hands, time) = timed(0);
        for (wall, now) in [(-9_000_000_000_000, 0), (9_000_000_000_000, TIME_MAX.0)] {
            *hands.0.lock().expect("nobody panics with it") = (wall, 0);
            assert_eq!(time.now(), Timestamp(now));
        }
    }

    #[test]
    fn a_process_that_knows_of_less_time_slows_no_other_down() {
        let (hands, time) = timed(100);
        for (clock, written, now) in
            [((100, 0), 100, 100), ((50, 10), 105, 110), ((51, 11), 105, 111), ((52, 12), 120, 120)]
        {
            *hands.0.lock().expect("nobody panics with it") = clock;
            assert_eq!(time.after(Timestamp(written * 1_000_000)).now, Timestamp(now * 1_000_000), "at {clock:?}");
        }
    }
}
