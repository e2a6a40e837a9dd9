//! Log time under a clock that jumps: it never runs backwards, and a large step is an event.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crewlog_mq::{Append, CellChange, Clock, EventStore, Options, Query, Range, Timestamp};

use super::{Place, check_history, everything, noting};
use crewlog_stage::cluster::Database;

const SECOND: i64 = 1_000_000;

/// Both clocks in microseconds, set by a test.
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
        ((40., 1.), 1010, true),
        ((41., 2.), 1020, false),
        ((45., 6.), 1060, false),
        ((105., 7.), 1070, false),
        ((110., 8.), 1100, false),
        ((50., 9.), 1110, true),
        ((51., 10.), 1120, false),
    ])
    .await;
}

#[tokio::test]
async fn a_small_step_back_is_smoothed_without_a_record() {
    check(&[((100., 0.), 1000, false), ((99.6, 0.5), 1005, false), ((99.9, 0.8), 1008, false)]).await;
}

#[tokio::test]
async fn a_large_step_back_after_a_small_one_is_recorded() {
    check(&[((100., 0.), 1000, false), ((99.5, 0.5), 1005, false), ((40., 2.), 1020, true), ((41., 3.), 1030, false)])
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

#[tokio::test]
async fn a_step_back_after_a_quiet_time_is_a_step_until_the_clock_has_caught_up() {
    check(&[
        ((100., 0.), 1000, false),
        ((1900., 5400.), 55000, true),
        ((1901., 5401.), 55010, false),
        ((5502., 5402.), 55020, false),
        ((5501., 5403.), 55030, true),
    ])
    .await;
}

#[tokio::test]
async fn a_suspended_machine_is_no_step() {
    check(&[((100., 0.), 1000, false), ((3700., 0.), 37000, false), ((3701., 1.), 37010, false)]).await;
}

#[tokio::test]
async fn log_time_is_from_1970_to_the_year_9999() {
    let place = Place::new();
    let (store, hands) = timed(&place).await;
    for (wall, now) in [(i64::MIN, 0), (i64::MAX, 253_402_300_799_999_999)] {
        hands.set(wall, 0);
        assert_eq!(store.now(), Timestamp(now));
    }
}

/// Leases use it: they must expire even without writes.
#[tokio::test]
async fn log_time_advances_while_the_clock_is_behind_and_nothing_is_written() {
    let place = Place::new();
    let (store, hands) = timed(&place).await;
    hands.set(100 * SECOND, 0);
    store.append(noting("a", 0)).await.unwrap();
    hands.set(40 * SECOND, SECOND);
    assert_eq!(store.now(), Timestamp(101 * SECOND));
    hands.set(60 * SECOND, 21 * SECOND);
    assert_eq!(store.now(), Timestamp(121 * SECOND));
    let appended = store.append(noting("a", 0)).await.unwrap();
    assert_eq!(appended.created_at, Timestamp(121 * SECOND), "the writer and the readers have one log time");
    let types = everything(&store).await.into_iter().map(|event| event.event_type);
    assert_eq!(types.collect::<Vec<_>>(), ["Noted", "ClockStepped", "Noted"], "asking hides no step");
}

#[tokio::test]
async fn a_log_reopened_after_a_change_of_cells_does_not_go_back() {
    let (place, database) = (Place::new(), Database::new());
    for url in [place.url(), database.url(), database.pooled_url()] {
        for round in [2, 1] {
            let hands = Arc::new(Hands::default());
            let clock: Arc<dyn Clock> = Arc::<Hands>::clone(&hands);
            let store =
                EventStore::open_with(&url, Options { clock, ..Options::default() }).await.expect("the log opens");
            hands.set(100 * round * SECOND, 0);
            let change = CellChange::set("lease", "a", String::new()).held_for(Duration::from_secs(30));
            store.append(Append::default().cell(change)).await.expect("an append of any kind is accepted");
            let cell = store.cell("lease", "a").await.unwrap().expect("it is there");
            assert_eq!((store.now().0, cell.held_until), (200 * SECOND, Some(Timestamp(230 * SECOND))), "{url}");
            store.close().await;
        }
    }
}
