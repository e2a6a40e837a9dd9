//! Cells: the meaning of each expectation, fencing by rising versions, and leases judged by log time.

use std::time::Duration;

use super::rig::Rig;
use crewlog_mq::{Append, Cell, CellChange, CellExpected, Clock, Error, EventStore};

const TTL: Duration = Duration::from_secs(10);

pub(super) async fn check(rig: &Rig) {
    expectations(rig).await;
    fencing(rig).await;
    versions(rig).await;
    order(rig).await;
}

async fn change(store: &EventStore, change: CellChange) -> Result<i64, Error> {
    store.append(Append::default().cell(change)).await.map(|appended| appended.cells[0])
}

fn lease(value: &str) -> CellChange {
    CellChange::set("lease", "a", value.into()).held_for(TTL)
}

async fn found(store: &EventStore) -> Option<Cell> {
    store.cell("lease", "a").await.expect("cells can be read")
}

/// Tries each expectation on a cell that is absent, present but not held, held, and expired.
async fn expectations(rig: &Rig) {
    let (store, hands) = rig.timed_log().await;
    check_expected(&store, [true, true, true, false, false], None).await;
    let version = change(&store, CellChange::set("lease", "a", "1".into())).await.expect("it is accepted");
    check_expected(&store, [true, false, true, true, false], Some(version)).await;
    let version = change(&store, lease("2")).await.expect("it is accepted");
    check_expected(&store, [true, false, false, true, true], Some(version)).await;
    let version = change(&store, lease("3")).await.expect("it is accepted");
    hands.pass(TTL);
    check_expected(&store, [true, false, true, true, false], Some(version)).await;
    let version = change(&store, lease("4")).await.expect("it is accepted");
    hands.pass(TTL - Duration::from_micros(1));
    check_expected(&store, [true, false, false, true, true], Some(version)).await;
    change(&store, CellChange::delete("lease", "a")).await.expect("it is accepted");
    check_expected(&store, [true, true, true, false, false], None).await;
}

/// Tries each expectation on a cell: any, absent, free, its version, its version held. Nothing changes: the append is
/// always refused, in the end by a second cell that is absent.
async fn check_expected(store: &EventStore, holds: [bool; 5], version: Option<i64>) {
    let never = CellChange::delete("none", "none").expecting(CellExpected::Version(1));
    let known = version.unwrap_or(1);
    let of_version = [CellExpected::Version(known), CellExpected::Held(known)];
    let expected = [CellExpected::Any, CellExpected::Absent, CellExpected::Free].into_iter().chain(of_version);
    for (expected, holds) in expected.zip(holds) {
        let append = Append::default().cell(lease("never").expecting(expected)).cell(never.clone());
        match store.append(append).await {
            Err(Error::CellMismatch { space, actual, .. }) => {
                assert_eq!(space == "none", holds, "{expected} of {version:?}");
                assert_eq!(actual, if holds { None } else { version }, "a refusal tells the version");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
    for wrong in [known - 1, known + 1] {
        for expected in [CellExpected::Version(wrong), CellExpected::Held(wrong)] {
            change(store, lease("never").expecting(expected)).await.expect_err("no cell has this version");
        }
    }
}

/// The former holder of an expired cell is refused, with or without a new holder.
async fn fencing(rig: &Rig) {
    let (store, hands) = rig.timed_log().await;
    let first = change(&store, lease("first").expecting(CellExpected::Free)).await.expect("it is free");
    let renewed = change(&store, lease("first").expecting(CellExpected::Held(first))).await.expect("it is held");
    assert!(renewed > first);
    change(&store, lease("second").expecting(CellExpected::Free)).await.expect_err("it is held");
    hands.pass(TTL);
    change(&store, lease("first").expecting(CellExpected::Held(renewed))).await.expect_err("its time is over");
    let second = change(&store, lease("second").expecting(CellExpected::Free)).await.expect("it is free");
    assert!(second > renewed);
    for late in [CellExpected::Held(renewed), CellExpected::Version(renewed), CellExpected::Free] {
        change(&store, lease("first").expecting(late)).await.expect_err("another holds it");
    }
    let cell = found(&store).await.expect("it is there");
    assert_eq!((cell.value.as_str(), cell.version), ("second", second));
    let until = cell.held_until.expect("it is held");
    assert_eq!(until, hands.wall().plus(TTL), "it is held by log time");
}

/// Versions rise with each change within one moment of log time, and across a deletion.
async fn versions(rig: &Rig) {
    let (store, _hands) = rig.timed_log().await;
    let mut last = 0;
    for round in 0..6 {
        let many = (0..20)
            .fold(Append::default(), |append, n| append.cell(CellChange::set("many", &format!("{n}"), String::new())));
        let made = store.append(many).await.expect("it is accepted").cells;
        let version = change(&store, lease("made").expecting(CellExpected::Free)).await.expect("it is free");
        assert!(version > last, "round {round}: version {version} comes after {last}");
        let deleted = change(&store, CellChange::delete("lease", "a")).await.expect("it is accepted");
        assert!(deleted > version && found(&store).await.is_none());
        let delete =
            (0..20).rev().fold(Append::default(), |append, n| append.cell(CellChange::delete("many", &format!("{n}"))));
        let gone = store.append(delete).await.expect("it is accepted").cells;
        for (made, gone) in made.iter().rev().zip(&gone) {
            assert!(gone > made, "a deletion has a greater version: {gone} after {made}");
        }
        last = version.max(gone.into_iter().max().unwrap_or(0));
        assert_eq!(store.stats().await.expect("it can be counted").n_cells, 0, "what was deleted is not counted");
    }
}

/// Cells of one space come in byte order of their keys.
async fn order(rig: &Rig) {
    let store = rig.new_log().await;
    let mut keys = ["b", "B", "a", "é", "e\u{301}", "aa", "a ", "a\u{1}", "ß", "z", "😀", "\u{ffff}"];
    let changes = keys.iter().map(|key| CellChange::set("s", key, format!("of {key}")));
    let append = changes.fold(Append::default(), Append::cell).cell(CellChange::set("S", "k", String::new()));
    store.append(append.cell(CellChange::set("s ", "k", String::new()))).await.expect("it is accepted");
    keys.sort_unstable();
    let read = async |from: &str, limit| {
        let cells = store.cells("s", from, limit).await.expect("cells can be read");
        cells.into_iter().map(|cell| (cell.key, cell.value)).collect::<Vec<_>>()
    };
    let of = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), format!("of {key}"))).collect::<Vec<_>>();
    assert_eq!(read("", 99).await, of(&keys));
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(read(key, 2).await, of(&keys[index..keys.len().min(index + 2)]), "from {key:?}");
    }
    assert_eq!(read("", 0).await, of(&[]));
    assert!(store.cells("", "", 9).await.expect("cells can be read").is_empty(), "a space has a name");
}
