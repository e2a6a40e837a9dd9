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

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// What a clock that was never set says, a time before 1970, is taken for 1970: no log has earlier events.
fn at(wall: SystemTime) -> Timestamp {
    let since_epoch = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(micros(since_epoch))
}

/// The time of one log, shared by a process. It never falls behind the last known write. While the wall clock shows less than
/// that write, or than its own earlier readings allow, log time follows the monotonic clock.
pub(crate) struct LogTime {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    /// The time of the last write known.
    last: Timestamp,
    /// Log time minus monotonic time, in microseconds.
    offset: i64,
    /// Whether the log already records that the wall clock is behind.
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

    /// The same, by a wall clock that was read before: its answer, and the monotonic time at which it was asked.
    pub(crate) fn after_by(&self, last: Timestamp, answer: Option<(Duration, Timestamp)>) -> Reading {
        let (asked, wall) = answer.unwrap_or_else(|| (self.clock.monotonic(), self.clock.wall()));
        let (asked, wall, heard) = (micros(asked), wall.min(TIME_MAX), micros(self.clock.monotonic()));
        // An answer may be late: the wall clock showed it at some moment between the two.
        let (least, most) = (wall.0.saturating_sub(heard), wall.0.saturating_sub(asked));
        // A clock of the caller's that panicked has changed nothing.
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

    const SECOND: i64 = 1_000_000;

    fn set(hands: &Hands, wall: i64, monotonic: u64) {
        *hands.0.lock().expect("nobody panics with it") = (wall, monotonic);
    }

    /// Log time and the step, both in seconds, after a write at `last`.
    fn read(time: &LogTime, last: i64, answer: Option<(u64, i64)>) -> (i64, u64) {
        let answer = answer.map(|(asked, wall)| (Duration::from_secs(asked), Timestamp(wall * SECOND)));
        let reading = time.after_by(Timestamp(last * SECOND), answer);
        (reading.now.0 / SECOND, reading.stepped_back.unwrap_or_default().as_secs())
    }

    #[test]
    fn a_step_back_after_a_quiet_time_is_a_step_until_the_clock_has_caught_up() {
        let (hands, time) = timed(100);
        assert_eq!(read(&time, 100, None), (100, 0));
        for (clock, is_recorded, expected) in [
            ((1_900, 5_400), false, (5_500, 3_600)),
            ((1_901, 5_401), true, (5_501, 0)),
            ((5_502, 5_402), true, (5_502, 0)),
            ((5_501, 5_403), false, (5_503, 2)),
        ] {
            set(&hands, clock.0, clock.1);
            if is_recorded {
                time.step_is_recorded();
            }
            assert_eq!(read(&time, 100, None), expected, "at {clock:?}");
        }
    }

    #[test]
    fn a_suspended_machine_is_no_step() {
        let (hands, time) = timed(100);
        for clock in [(100, 0), (3_700, 0), (3_701, 1)] {
            set(&hands, clock.0, clock.1);
            assert_eq!(read(&time, 100, None), (clock.0, 0), "at {clock:?}");
        }
    }

    /// A server's, which each reader of a process hears when it goes on.
    #[test]
    fn a_late_answer_is_no_step_and_hides_none() {
        let (hands, time) = timed(0);
        for (monotonic, answer, expected) in [
            (10, (10, 110), (110, 0)),
            (11, (2, 102), (102, 0)),
            (20, (11, 111), (111, 0)),
            (30, (29, 119), (130, 10)),
            (31, (12, 112), (112, 0)),
        ] {
            set(&hands, 0, monotonic);
            assert_eq!(read(&time, 0, Some(answer)), expected, "at {monotonic}");
        }
    }

    #[test]
    fn a_late_answer_does_not_go_behind_a_write() {
        let (hands, time) = timed(0);
        set(&hands, 0, 10);
        assert_eq!(read(&time, 109, Some((10, 110))), (110, 0));
        set(&hands, 0, 20);
        assert_eq!(read(&time, 109, Some((5, 105))), (120, 0));
    }

    #[test]
    fn log_time_is_from_1970_to_the_year_9999() {
        let (hands, time) = timed(0);
        for (wall, now) in [(-9_000_000_000_000, 0), (9_000_000_000_000, TIME_MAX.0)] {
            set(&hands, wall, 0);
            assert_eq!(time.now(), Timestamp(now));
        }
    }

    #[test]
    fn a_process_that_knows_of_less_time_slows_no_other_down() {
        let (hands, time) = timed(100);
        for (clock, written, now) in
            [((100, 0), 100, 100), ((50, 10), 105, 110), ((51, 11), 105, 111), ((52, 12), 120, 120)]
        {
            set(&hands, clock.0, clock.1);
            assert_eq!(read(&time, written, None).0, now, "at {clock:?}");
        }
    }
}
