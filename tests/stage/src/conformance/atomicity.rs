//! An append over several aggregates, with a condition and cells, is atomic.

use super::rig::{Rig, check_history, everything, note, notes, noting};
use crewlog_mq::{Append, CellChange, CellExpected, Error, EventStore, Expected, Position, Query};

pub(super) async fn check(rig: &Rig) {
    let store = rig.new_log().await;
    store.append(noting("old", 0)).await.expect("it is accepted");
    let cell = CellChange::set("s", "k", "before".into());
    store.append(Append::default().cell(cell)).await.expect("cells alone are an append too");
    refusals(&store).await;
    let whole = parts(Expected::Sequence(1), &Query::tag("none"), CellExpected::Any);
    let appended = store.append(whole).await.expect("nothing is against it");
    let places: Vec<_> = appended.places.iter().map(|place| (place.position.0, place.sequence)).collect();
    assert_eq!(places, [(2, 1), (3, 2), (4, 2), (5, 1)]);
    assert_eq!((appended.last(), appended.repeated, appended.cells.len()), (Position(5), false, 1));
    let history = everything(&store).await;
    for event in &history[1..] {
        assert_eq!(
            (event.append_start, event.created_at),
            (Position(2), appended.created_at),
            "one append, one moment"
        );
    }
    check_history(&history);
    let cell = store.cell("s", "k").await.expect("it can be read").expect("it is there");
    assert_eq!((cell.value.as_str(), cell.version), ("after", appended.cells[0]));
}

/// Four events in three aggregates, one of which already holds an event.
fn parts(expected: Expected, condition: &Query, cell: CellExpected) -> Append {
    Append::to("facts", "new", Expected::NoStream, notes(2))
        .and("facts", "old", expected, vec![note(3)])
        .and("facts", "empty", Expected::NoStream, vec![])
        .and("other", "old", Expected::Any, vec![note(4)])
        .none_matching(condition.clone(), Position(0))
        .cell(CellChange::set("s", "k", "after".into()).expecting(cell))
}

async fn refusals(store: &EventStore) {
    let before = (everything(store).await, store.cells("s", "", 9).await.expect("cells can be read"));
    let (none, some) = (Query::tag("none"), Query::aggregate("facts", "old"));
    let right = Expected::Sequence(1);
    for (append, is_expected) in [
        (parts(Expected::NoStream, &none, CellExpected::Any), "SequenceMismatch"),
        (parts(Expected::Sequence(0), &some, CellExpected::Any), "SequenceMismatch"),
        (parts(Expected::Sequence(2), &none, CellExpected::Version(1)), "SequenceMismatch"),
        (parts(right, &some, CellExpected::Any), "MatchFound"),
        (parts(right, &some, CellExpected::Version(1)), "MatchFound"),
        (parts(right, &none, CellExpected::Any).none_matching(none.clone(), Position(2)), "WentBack"),
        (parts(right, &none, CellExpected::Version(1)), "CellMismatch"),
        (parts(right, &none, CellExpected::Held(before.1[0].version)), "CellMismatch"),
        (parts(right, &none, CellExpected::Any).and("facts", "z", Expected::Sequence(1), vec![]), "SequenceMismatch"),
        (
            parts(right, &none, CellExpected::Any)
                .cell(CellChange::delete("s", "l").expecting(CellExpected::Version(1))),
            "CellMismatch",
        ),
    ] {
        let refusal: Error = store.append(append.clone()).await.expect_err("one part of it does not hold");
        assert!(
            format!("{refusal:?}").starts_with(is_expected),
            "{refusal:?}, and {is_expected} was expected: {append:?}"
        );
        let after = (everything(store).await, store.cells("s", "", 9).await.expect("cells can be read"));
        assert_eq!(after, before, "a refused append leaves nothing: {append:?}");
    }
}
