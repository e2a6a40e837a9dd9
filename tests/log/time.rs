//! Log time under a clock that jumps: it never runs backwards, and a large step is an event.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crewlog_mq::{Clock, EventStore, Options, Query, Range, Timestamp};

use super::{Place, check_history, everything, noting};

const SECOND: i64 = 1_000_000;

/// Both clocks in microseconds, as a test sets them.
#[derive(Default)]
struct Hands {
    wall: AtomicI64,
    monotonic: AtomicI64,
}

impl Hands {
    fn set(&self, wall: i64, monotonic: i64) {
        self.wall.store(wall, Ordering::SeqCst);
        self.monotonic.store(monotonic, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn wall(&self) -> Timestamp {
        Timestamp(self.wall.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.monotonic.load(Ordering::SeqCst)).expect("it is not negative"))
    }
}

async fn timed(place: &Place) -> (EventStore, Arc<Hands>) {
    let hands = Arc::new(Hands::default());
    let clock: Arc<dyn Clock> = Arc::<Hands>::clone(&hands);
    let options = Options { clock, ..Options::default() };
    (EventStore::open_with(&place.url(), options).await.expect("the log opens"), hands)
}

/// For each setting of the clocks (wall, monotonic) in seconds, the recorded time of an append in tenths of a second,
/// and whether a step is recorded before it.
async fn check(script: &[((f64, f64), i64, bool)]) {
    let place = Place::new();
    let (store, hands) = timed(&place).await;
    let micros = |seconds: f64| (seconds * SECOND as f64) as i64;
    for ((wall, monotonic), tenths, steps) in script {
        hands.set(micros(*wall), micros(*monotonic));
        let before = store.head().await.expect("the head can be read");
        let appended = store.append(noting("a", 0)).await.expect("an append of any kind is accepted");
        assert_eq!(appended.created_at.0 / (SECOND / 10), *tenths, "at wall time {wall}");
        let new = store.read(&Query::all(), Range::after(before), 10).await.expect("the log can be read").events;
        let types: Vec<_> = new.iter().map(|event| &*event.event_type).collect();
        assert_eq!(types, if *steps { vec!["ClockStepped", "Noted"] } else { vec!["Noted"] }, "at wall time {wall}");
        assert!(store.now() >= appended.created_at);
    }
    check_history(&everything(&store).await);
}

#[tokio::test]
async fn log_time_follows_a_wall_clock_that_moves_forward() {
    check(&[((100., 0.), 1000, false), ((100., 1.), 1000, false), ((500., 2.), 5000, false)]).await;
}

#[tokio::test]
async fn a_step_back_is_recorded_once_and_log_time_follows_the_monotonic_clock() {
    check(&[
        ((100., 0.), 1000, false),
        ((40., 1.), 1000, true),
        ((41., 2.), 1010, false),
        ((45., 6.), 1050, false),
        ((104., 7.), 1060, false),
        ((110., 8.), 1100, false),
        ((50., 9.), 1100, true),
        ((51., 10.), 1110, false),
    ])
    .await;
}

#[tokio::test]
async fn a_small_step_back_is_smoothed_without_a_record() {
    check(&[((100., 0.), 1000, false), ((99.1, 1.), 1000, false), ((99.6, 1.5), 1005, false)]).await;
}

#[tokio::test]
async fn a_large_step_back_after_a_small_one_is_recorded() {
    check(&[((100., 0.), 1000, false), ((99.5, 1.), 1000, false), ((40., 2.), 1010, true), ((41., 3.), 1020, false)])
        .await;
}

#[tokio::test]
async fn a_recorded_step_says_how_far_behind_the_clock_is() {
    let place = Place::new();
    let (store, hands) = timed(&place).await;
    hands.set(100 * SECOND, 0);
    store.append(noting("a", 0)).await.unwrap();
    hands.set(40 * SECOND, 0);
    store.append(noting("a", 0)).await.unwrap();
    let steps = store.read(&Query::aggregate("log", "clock"), Range::default(), 10).await.unwrap().events;
    assert_eq!(steps.len(), 1);
    assert_eq!((&*steps[0].event_type, &*steps[0].data), ("ClockStepped", "{\"behind_us\":60000000}"));
}

/// Leases use it: they must expire even without writes.
#[tokio::test]
async fn log_time_advances_while_the_clock_is_behind_and_nothing_is_written() {
    let place = Place::new();
    let (store, hands) = timed(&place).await;
    hands.set(100 * SECOND, 0);
    store.append(noting("a", 0)).await.unwrap();
    hands.set(40 * SECOND, SECOND);
    assert_eq!(store.now(), Timestamp(100 * SECOND));
    hands.set(60 * SECOND, 21 * SECOND);
    assert_eq!(store.now(), Timestamp(120 * SECOND));
    let appended = store.append(noting("a", 0)).await.unwrap();
    assert_eq!(appended.created_at, Timestamp(120 * SECOND), "the writer and the readers have one log time");
    let types = everything(&store).await.into_iter().map(|event| event.event_type);
    assert_eq!(types.collect::<Vec<_>>(), ["Noted", "ClockStepped", "Noted"], "asking hides no step");
}

#[tokio::test]
async fn a_store_opened_while_the_clock_is_behind_does_not_go_back() {
    let place = Place::new();
    let (first, hands) = timed(&place).await;
    hands.set(100 * SECOND, 0);
    first.append(noting("a", 0)).await.unwrap();
    drop(first);
    let (second, hands) = timed(&place).await;
    hands.set(40 * SECOND, 0);
    assert_eq!(second.now(), Timestamp(100 * SECOND));
    assert_eq!(second.append(noting("a", 0)).await.unwrap().created_at, Timestamp(100 * SECOND));
}
