//! Event ids make appends repeatable: known ones are recognised, mixed and reused ones refused.

use crewlog_mq::{Append, Error, EventStore, Expected, Metadata, NewEvent, Position};
use futures::FutureExt;
use uuid::Uuid;

use super::{Fact, Place, check_history, everything, in_time, logs, note, notes, noting};

fn known(id: u128, n: i64) -> NewEvent {
    note(n).with_id(Uuid::from_u128(id)).with_tags(["x", "y"])
}

fn to(aggregate_id: &str, expected: Expected, events: Vec<NewEvent>) -> Append {
    Append::to("facts", aggregate_id, expected, events)
}

#[tokio::test]
async fn a_repeated_append_may_differ_in_metadata_and_tag_order() {
    for (store, _place) in logs().await {
        store.append(to("a", Expected::Any, vec![known(1, 1)])).await.unwrap();
        let metadata = Metadata { correlation_id: Some(Uuid::from_u128(7)), ..Metadata::default() };
        let other = NewEvent::of(&Fact::Noted { n: 1 }, &metadata).unwrap().with_id(Uuid::from_u128(1));
        let again = store.append(to("a", Expected::Any, vec![other.with_tags(["y", "x", "y"])])).await.unwrap();
        assert!(again.repeated);
        assert_eq!(everything(&store).await[0].metadata().unwrap(), Metadata::default(), "the first one stays");
    }
}

#[tokio::test]
async fn an_event_id_with_different_content_is_refused_with_its_position() {
    for (store, _place) in logs().await {
        store.append(noting("other", 0)).await.unwrap();
        store.append(to("a", Expected::Any, vec![known(1, 1)])).await.unwrap();
        let raw = |event_type, version, data: &str| {
            let event = NewEvent::from_json(event_type, version, data.into(), &Metadata::default()).unwrap();
            event.with_id(Uuid::from_u128(1)).with_tags(["x", "y"])
        };
        let reuses = [
            to("a", Expected::Any, vec![known(1, 2)]),
            to("b", Expected::Any, vec![known(1, 1)]),
            Append::to("other", "a", Expected::Any, vec![known(1, 1)]),
            to("a", Expected::Any, vec![known(1, 1).with_tags(["x"])]),
            to("a", Expected::Any, vec![raw("Noted", "2.0", "{\"n\":1}")]),
            to("a", Expected::Any, vec![raw("Closed", "1.0", "{\"n\":1}")]),
            to("a", Expected::Any, vec![raw("Noted", "1.0", "{\"n\": 1}")]),
            to("a", Expected::Any, vec![known(2, 2), known(1, 2)]),
        ];
        for append in reuses {
            match store.append(append.clone()).await {
                Err(Error::IdReused { event_id, position }) => {
                    assert_eq!((event_id, position), (Uuid::from_u128(1), Position(2)));
                }
                other => panic!("{append:?}: {other:?}"),
            }
        }
        let same = to("a", Expected::Any, vec![raw("Noted", "1.0", "{\"n\":1}")]);
        assert!(store.append(same).await.unwrap().repeated, "the parts that were varied are the only difference");
        assert_eq!(store.head().await.unwrap(), Position(2));
    }
}

#[tokio::test]
async fn an_append_that_mixes_known_and_unknown_ids_is_refused_naming_both() {
    for (store, _place) in logs().await {
        store.append(to("a", Expected::Any, vec![known(1, 1)])).await.unwrap();
        for append in [
            to("a", Expected::Any, vec![known(1, 1), known(2, 2)]),
            to("a", Expected::Any, vec![known(2, 2), known(1, 1)]),
            to("b", Expected::NoStream, vec![known(2, 2)]).and("facts", "a", Expected::Any, vec![known(1, 1)]),
        ] {
            match store.append(append).await {
                Err(Error::PartlyKnown { known, position, unknown }) => {
                    let ids = (Uuid::from_u128(1), Uuid::from_u128(2));
                    assert_eq!((known, unknown, position), (ids.0, ids.1, Position(1)));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(store.head().await.unwrap(), Position(1));
    }
}

#[tokio::test]
async fn two_identical_appends_in_one_group_commit_are_stored_once() {
    let place = Place::new();
    let store = place.open().await;
    let commits = place.hold_commits();
    let append = to("a", Expected::NoStream, vec![known(1, 1), known(2, 2)]);
    let racers = (0..20).map(|_| store.append(append.clone()));
    let release = async {
        tokio::task::yield_now().await;
        commits.unlock().unwrap();
    };
    let all = async { tokio::join!(futures::future::join_all(racers), release) };
    let (outcomes, ()) = in_time("the appends", all).await;
    let outcomes: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(outcomes.iter().filter(|appended| !appended.repeated).count(), 1);
    assert!(outcomes.iter().all(|appended| appended.places == outcomes[0].places));
    assert_eq!(store.head().await.unwrap(), Position(2));
}

/// After one poll an append is under way; dropping its future must neither tear it nor make a retry unsafe.
#[tokio::test]
async fn an_append_with_a_dropped_future_is_stored_whole_and_can_be_repeated() {
    let place = Place::new();
    let store = place.open().await;
    for round in 0..30u128 {
        let events = vec![known(3 * round, 1), known(3 * round + 1, 2), known(3 * round + 2, 3)];
        let append = to("a", Expected::Any, events);
        let commits = place.hold_commits();
        assert!(store.append(append.clone()).now_or_never().is_none(), "no commit is possible yet");
        commits.unlock().unwrap();
        if round % 2 == 0 {
            let again = in_time("the retry", store.append(append)).await.unwrap();
            assert!(again.repeated, "the dropped one is ahead of it in the queue");
        }
    }
    store.append(noting("end", 0)).await.unwrap();
    let history = everything(&store).await;
    assert_eq!(history.len(), 3 * 30 + 1);
    check_history(&history);
}

#[tokio::test]
async fn appends_queued_when_the_store_is_dropped_are_stored() {
    let place = Place::new();
    let store = place.open().await;
    for n in 0..50 {
        assert!(store.append(noting("a", n)).now_or_never().is_none());
    }
    drop(store);
    let store: EventStore = place.open().await;
    let mut stream = store.subscribe::<Fact>(&super::Query::all()).unwrap();
    for n in 0..50 {
        let next = in_time("the event", futures::StreamExt::next(&mut stream)).await.unwrap().unwrap();
        assert_eq!(next.event, Fact::Noted { n });
    }
    assert_eq!(store.append(to("b", Expected::Any, notes([1]))).await.unwrap().last(), Position(51));
}
