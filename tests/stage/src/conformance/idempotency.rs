//! Repeating an append is safe: after a lost reply at any point, with any expectation, and through another store.

use futures::FutureExt;
use uuid::Uuid;

use super::generate::Dice;
use super::rig::{Rig, check_history, everything, new_name, note, noting};
use crewlog_mq::{Append, CellChange, CellExpected, Error, EventStore, Expected, NewEvent, Options, Position, Query};

const N_ROUNDS: u64 = 12;

pub(super) async fn check(rig: &Rig, seed: u64) {
    let name = new_name();
    let store = rig.open(&name, Options::default()).await;
    let append = Append::to("facts", "a", Expected::NoStream, vec![known(1, 1), known(2, 2)])
        .and("facts", "b", Expected::NoStream, vec![known(3, 3)])
        .none_matching(Query::tag("known"), Position(0))
        .cell(CellChange::set("s", "k", "v".into()).expecting(CellExpected::Free));
    let first = store.append(append.clone()).await.expect("it is accepted");
    store.append(noting("a", 9)).await.expect("it is accepted");
    let cell = store.cell("s", "k").await.expect("it can be read");
    let again = rig.open(&name, Options::default()).await;
    for store in [&store, &again] {
        for expected in [Expected::Any, Expected::NoStream, Expected::Sequence(0), Expected::Sequence(77)] {
            let mut append = append.clone();
            append.writes_mut().iter_mut().for_each(|write| write.expected = expected);
            let repeated = store.append(append).await.expect("a repetition is accepted, whatever it expects");
            assert_eq!((&repeated.places, repeated.created_at), (&first.places, first.created_at), "{expected}");
            assert!(repeated.repeated && repeated.cells.is_empty());
        }
    }
    drop(store);
    let reopened = rig.open(&name, Options::default()).await;
    let repeated = reopened.append(append).await.expect("a repetition is accepted after the store was opened again");
    assert_eq!(repeated.places, first.places);
    assert_eq!(reopened.cell("s", "k").await.expect("it can be read"), cell, "a repetition changes no cell");
    other_events(&reopened).await;
    lost_replies(&reopened, &mut Dice::new(seed)).await;
    check_history(&everything(&reopened).await);
}

fn known(id: u128, n: u64) -> NewEvent {
    note(n).with_id(Uuid::from_u128(id)).with_tags(["known"])
}

/// An id names one event: with anything else of it different, or with an event that is new, it is refused.
async fn other_events(store: &EventStore) {
    let before = everything(store).await;
    let other = || Append::to("facts", "a", Expected::Any, vec![known(1, 1), known(2, 2)]);
    let mut data = other();
    data.writes_mut()[0].events[1] = known(2, 3);
    let mut tags = other();
    tags.writes_mut()[0].events[0] = note(1).with_id(Uuid::from_u128(1)).with_tags(["other"]);
    let mut aggregate = other();
    aggregate.writes_mut()[0].aggregate_id = "c".into();
    let mut stream = other();
    stream.writes_mut()[0].stream_id = "other".into();
    let partly = other().and("facts", "b", Expected::Any, vec![known(4, 4)]);
    for (append, is_reused) in [(data, true), (tags, true), (aggregate, true), (stream, true), (partly, false)] {
        match store.append(append).await {
            Err(Error::IdReused { .. }) if is_reused => {}
            Err(Error::PartlyKnown { unknown, .. }) if !is_reused => assert_eq!(unknown, Uuid::from_u128(4)),
            another => panic!("{another:?}"),
        }
    }
    assert_eq!(everything(store).await, before);
}

/// A caller abandons its append after any number of steps, and repeats it.
async fn lost_replies(store: &EventStore, dice: &mut Dice) {
    for round in 0..N_ROUNDS {
        let events = vec![known(100 + 2 * u128::from(round), 1), known(101 + 2 * u128::from(round), 2)];
        let append = Append::to("lost", "a", Expected::Any, events);
        let mut lost = Box::pin(store.append(append.clone()));
        let mut first = None;
        for _ in 0..dice.below(5) {
            if first.is_none() {
                first = (&mut lost).now_or_never();
                tokio::task::yield_now().await;
            }
        }
        drop(lost);
        let again = store.append(append.clone()).await.expect("a repetition is accepted");
        let once_more = store.append(append).await.expect("a repetition is accepted");
        assert_eq!(again.places, once_more.places);
        if let Some(first) = first {
            assert_eq!(first.expect("it is accepted").places, again.places);
        }
    }
    let lost =
        store.read(&Query::stream("lost"), crewlog_mq::Range::default(), 999).await.expect("it can be read").events;
    assert_eq!(lost.len() as u64, 2 * N_ROUNDS, "each of them landed once");
}
