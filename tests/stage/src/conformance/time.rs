//! Log time under a clock that is set back: cell changes advance log time as events do, so no lease lasts longer.

use std::time::Duration;

use super::rig::{Rig, everything, export, import, new_name, noting, timed};
use crewlog_mq::{Append, CellChange, CellExpected, Clock, Error, EventStore, Memory};

const LEASE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_secs(3600);

pub(super) async fn check(rig: &Rig) {
    for is_seen_by_another in [false, true] {
        a_lease_ends_in_time(rig, is_seen_by_another).await;
    }
    a_long_lease_ends_in_time_after_a_quiet_time(rig).await;
    an_import_leaves_log_time(rig).await;
    the_time_of_a_write_is_never_in_the_future(rig).await;
}

/// A lease is renewed in a log without other writes, then the clock steps back. The process that holds the lease, or
/// a new one, observes it.
async fn a_lease_ends_in_time(rig: &Rig, is_seen_by_another: bool) {
    let (name, (hands, options)) = (new_name(), timed());
    let mut store = rig.open(&name, options.clone()).await;
    let mut version = lease(&store, CellExpected::Free).await.expect("it is free");
    for _ in 0..3 {
        hands.pass(LEASE / 3);
        version = lease(&store, CellExpected::Held(version)).await.expect("it is renewed");
    }
    assert_eq!(everything(&store).await, [], "only cells were written");
    let until = hands.wall().plus(LEASE);
    hands.set_back(STEP);
    if is_seen_by_another {
        store = rig.open(&name, options).await;
    }
    lease(&store, CellExpected::Free).await.expect_err("it is held");
    hands.pass(LEASE - Duration::from_micros(1));
    lease(&store, CellExpected::Free).await.expect_err("it is held still");
    hands.pass(Duration::from_micros(1));
    lease(&store, CellExpected::Held(version)).await.expect_err("its time is over");
    let taken = lease(&store, CellExpected::Free).await.expect("it is free again");
    assert!(taken > version, "a version grows whatever the clock says");
    let cell = store.cell("lease", "a").await.expect("cells can be read").expect("it is there");
    assert_eq!(cell.held_until, Some(until.plus(LEASE)), "log time has gone on");
    let steps = everything(&store).await;
    assert!(!steps.is_empty() && steps.iter().all(|event| event.event_type == "ClockStepped"), "{steps:?}");
    assert_eq!(steps[0].data, "{\"behind_us\":3600000000}");
    assert!(store.now() >= steps[0].created_at);
}

/// The clock is set back by less than the time since the last write, so it never shows a time before that write.
async fn a_long_lease_ends_in_time_after_a_quiet_time(rig: &Rig) {
    let (store, hands) = rig.timed_log().await;
    lease_for(&store, 2 * STEP, CellExpected::Free).await.expect("it is free");
    let until = hands.wall().plus(2 * STEP);
    hands.pass(STEP * 3 / 2);
    hands.set_back(STEP);
    hands.pass(STEP / 2 - Duration::from_micros(1));
    lease(&store, CellExpected::Free).await.expect_err("it is held");
    hands.pass(Duration::from_micros(1));
    assert_eq!(store.now(), until, "log time has gone on");
    lease(&store, CellExpected::Free).await.expect("it is free again");
    lease(&store, CellExpected::Free).await.expect_err("it is held");
    let steps = everything(&store).await;
    let mut steps: Vec<_> = steps.iter().map(|event| (&*event.event_type, &*event.data)).collect();
    // Each process records the step once, and a rig may open several stores.
    steps.dedup();
    assert_eq!(steps, [("ClockStepped", "{\"behind_us\":3600000000}")]);
}

/// Steps of the clock that are too small to be recorded, after a write of events and after one of cells.
async fn the_time_of_a_write_is_never_in_the_future(rig: &Rig) {
    for append in [noting("a", 1), Append::default().cell(CellChange::set("s", "k", String::new()))] {
        let (store, hands) = rig.timed_log().await;
        let written = store.append(append).await.expect("an append of any kind is accepted").created_at;
        hands.set_back(Duration::from_millis(500));
        assert!(store.now() >= written, "{:?} is before {written:?}", store.now());
    }
}

/// Imports events that are older than the cells of the log.
async fn an_import_leaves_log_time(rig: &Rig) {
    let (hands, options) = timed();
    let source = EventStore::on(Memory::new(options.clone()));
    source.append(noting("a", 1)).await.expect("an append of any kind is accepted");
    let (identity, events) = export(&source).await;
    let copy = rig.open(&new_name(), options).await;
    hands.pass(STEP);
    lease(&copy, CellExpected::Free).await.expect("it is free");
    let before = hands.wall();
    hands.set_back(STEP);
    import(&copy, &identity, &events).await;
    let appended = copy.append(noting("a", 2)).await.expect("an append of any kind is accepted");
    assert_eq!(appended.created_at, before, "log time goes on from the last write");
}

async fn lease(store: &EventStore, expected: CellExpected) -> Result<i64, Error> {
    lease_for(store, LEASE, expected).await
}

async fn lease_for(store: &EventStore, ttl: Duration, expected: CellExpected) -> Result<i64, Error> {
    let change = CellChange::set("lease", "a", String::new()).held_for(ttl).expecting(expected);
    store.append(Append::default().cell(change)).await.map(|appended| appended.cells[0])
}
