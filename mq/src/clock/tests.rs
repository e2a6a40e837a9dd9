//! Clocks that step, stop and run backwards.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

#[test]
fn a_time_before_1970_is_clamped_to_1970() {
    assert_eq!(at(UNIX_EPOCH - Duration::from_secs(1)), Timestamp(0));
    assert_eq!(at(UNIX_EPOCH + Duration::from_secs(1)), Timestamp(1_000_000));
}

/// A monotonic clock in seconds. Each reading comes with the answer of a different wall clock.
#[derive(Default)]
struct Monotonic(AtomicU64);

impl Clock for Monotonic {
    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

/// Monotonic time, time of the last write, time of the request to the server, and its answer; then the expected log
/// time and step. All in seconds.
type Heard = (u64, i64, (u64, i64), (i64, u64));

#[track_caller]
fn check(script: &[Heard]) {
    const SECOND: i64 = 1_000_000;
    let clock = Arc::new(Monotonic::default());
    let time = LogTime::new(Arc::<Monotonic>::clone(&clock));
    for (now, last, (asked, wall), expected) in script {
        clock.0.store(*now, Ordering::SeqCst);
        let answer = (Duration::from_secs(*asked), Timestamp(wall * SECOND));
        let reading = time.after_by(Timestamp(last * SECOND), Some(answer));
        let found = (reading.now.0 / SECOND, reading.stepped_back.unwrap_or_default().as_secs());
        assert_eq!(found, *expected, "at {now}");
    }
}

/// The server's clock, whose answer each reader of a process receives when it resumes.
#[test]
fn a_late_answer_is_no_step_and_hides_none() {
    check(&[
        (10, 0, (10, 110), (110, 0)),
        (11, 0, (2, 102), (102, 0)),
        (20, 0, (11, 111), (111, 0)),
        (30, 0, (29, 119), (130, 10)),
        (31, 0, (12, 112), (112, 0)),
    ]);
}

#[test]
fn a_late_answer_does_not_go_behind_a_write() {
    check(&[(10, 109, (10, 110), (110, 0)), (20, 109, (5, 105), (120, 0)), (8, 0, (8, 50), (109, 58))]);
}

#[test]
fn a_process_that_knows_of_less_time_slows_no_other_down() {
    check(&[
        (0, 100, (0, 100), (100, 0)),
        (10, 105, (10, 50), (110, 60)),
        (11, 105, (11, 51), (111, 60)),
        (12, 120, (12, 52), (120, 68)),
    ]);
}
