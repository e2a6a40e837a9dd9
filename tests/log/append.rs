//! Appending: positions, expectations, and atomicity.

use std::collections::BTreeSet;

use crewlog_mq::{
    APPEND_EVENTS_MAX, Append, CellChange, Error, EventStore, Expected, METADATA_BYTES_MAX, Metadata, NAME_BYTES_MAX,
    NewEvent, PAGE_EVENTS_MAX, PAYLOAD_BYTES_MAX, Place as EventPlace, Position, Query, Range, TAGS_MAX,
};
use futures::future::join_all;

use super::{Place, check_history, everything, in_time, logs, note, notes, noting};

fn place(position: i64, sequence: i64) -> EventPlace {
    EventPlace { position: Position(position), sequence }
}

#[tokio::test]
async fn positions_count_the_log_and_sequences_count_an_aggregate() {
    for (store, _place) in logs().await {
        let mut places = Vec::new();
        for aggregate_id in ["a", "b", "a", "c", "b", "a"] {
            places.extend(store.append(noting(aggregate_id, 0)).await.unwrap().places);
        }
        let expected = [place(1, 1), place(2, 1), place(3, 2), place(4, 1), place(5, 2), place(6, 3)];
        assert_eq!(places, expected);
        assert_eq!(store.head().await.unwrap(), Position(6));
        check_history(&everything(&store).await);
    }
}

#[tokio::test]
async fn one_aggregate_id_in_two_streams_is_two_aggregates() {
    for (store, _place) in logs().await {
        let append = Append::to("left", "a", Expected::NoStream, notes([1, 2]));
        let appended = store.append(append.and("right", "a", Expected::NoStream, notes([3]))).await.unwrap();
        assert_eq!(appended.places, [place(1, 1), place(2, 2), place(3, 1)]);
    }
}

#[tokio::test]
async fn an_expectation_holds_or_the_refusal_names_the_actual_sequence() {
    check_expected(0, Expected::Any, true).await;
    check_expected(2, Expected::Any, true).await;
    check_expected(0, Expected::NoStream, true).await;
    check_expected(2, Expected::NoStream, false).await;
    check_expected(0, Expected::Sequence(0), true).await;
    check_expected(0, Expected::Sequence(1), false).await;
    check_expected(2, Expected::Sequence(2), true).await;
    check_expected(2, Expected::Sequence(0), false).await;
    check_expected(2, Expected::Sequence(1), false).await;
    check_expected(2, Expected::Sequence(3), false).await;
    check_expected(2, Expected::Sequence(-1), false).await;
}

async fn check_expected(n_before: i64, believed: Expected, holds: bool) {
    for (store, _place) in logs().await {
        for n in 0..n_before {
            store.append(noting("a", n)).await.expect("an append of any kind is accepted");
        }
        let outcome = store.append(Append::to("facts", "a", believed, vec![note(9)])).await;
        match outcome {
            Ok(appended) => assert!(holds && appended.places == [place(n_before + 1, n_before + 1)], "{believed:?}"),
            Err(Error::SequenceMismatch { stream_id, aggregate_id, expected, actual }) => {
                assert_eq!((&*stream_id, &*aggregate_id, expected, actual), ("facts", "a", believed, n_before));
                assert!(!holds, "{believed:?} on {n_before} events");
            }
            Err(other) => panic!("{other}"),
        }
        let n_after = n_before + i64::from(holds);
        assert_eq!(store.head().await.expect("the head can be read"), Position(n_after));
    }
}

#[tokio::test]
async fn a_refused_append_does_not_fail_others_in_its_group_commit() {
    let place = Place::new();
    let store = place.open().await;
    store.append(noting("shared", 0)).await.unwrap();
    let commits = place.hold_commits();
    let appends = (0..200i64).map(|n| {
        let store = store.clone();
        let expected = if n % 5 == 3 { Expected::Sequence(1000) } else { Expected::Any };
        let append = Append::to("facts", "shared", expected, vec![note(n)]);
        let append = append.and("facts", &format!("own-{n}"), Expected::NoStream, vec![note(n)]);
        async move { store.append(append).await }
    });
    let release = async {
        tokio::task::yield_now().await;
        commits.unlock().unwrap();
    };
    let (outcomes, ()) = in_time("the appends", async { tokio::join!(join_all(appends), release) }).await;
    for (n, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.is_err(), n % 5 == 3, "append {n}: {outcome:?}");
    }
    let times: BTreeSet<_> = outcomes.iter().flatten().map(|appended| appended.created_at).collect();
    assert!(times.len() <= 3, "they are committed together, not in {} commits", times.len());
    let history = everything(&store).await;
    assert_eq!(history.len(), 1 + 2 * 160);
    check_history(&history);
}

#[tokio::test]
async fn an_append_is_checked_against_earlier_ones_in_the_same_group_commit() {
    let place = Place::new();
    let store = place.open().await;
    let commits = place.hold_commits();
    let appends = [0, 1, 1, 2, 7, 3].map(|sequence| {
        let append = Append::to("facts", "a", Expected::Sequence(sequence), vec![note(sequence)]);
        let store = store.clone();
        async move { store.append(append).await.map_err(|error| error.to_string()) }
    });
    let release = async {
        tokio::task::yield_now().await;
        commits.unlock().unwrap();
    };
    let (outcomes, ()) = in_time("the appends", async { tokio::join!(join_all(appends), release) }).await;
    let accepted: Vec<_> = outcomes.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, true, false, true, false, true], "{outcomes:?}");
    check_history(&everything(&store).await);
}

#[tokio::test]
async fn an_invalid_append_is_refused_with_the_reason() {
    let store = EventStore::in_memory().await.unwrap();
    let twice = note(1);
    for (append, says) in [
        (Append::default(), "no events"),
        (Append::to("facts", "a", Expected::Any, vec![]), "no events"),
        (noting("a", 1).and("facts", "a", Expected::Any, notes([2])), "facts/a is written twice"),
        (Append::to("facts", "a", Expected::Any, vec![twice.clone(), twice.clone()]), "occurs twice"),
        (
            Append::to("facts", "a", Expected::Any, vec![twice.clone()]).and("x", "b", Expected::Any, vec![twice]),
            "occurs twice",
        ),
        (Append::to("", "a", Expected::Any, notes([1])), "the stream id is empty"),
        (Append::to("facts", "", Expected::Any, notes([1])), "the aggregate id is empty"),
        (Append::to("facts", "a", Expected::Any, vec![note(1).with_tags([""])]), "tag is empty"),
    ] {
        let refusal = store.append(append).await.unwrap_err();
        assert!(matches!(refusal, Error::InvalidAppend { .. }), "{refusal:?}");
        assert!(refusal.to_string().contains(says), "{refusal}");
    }
    assert_eq!(store.head().await.unwrap(), Position(0));
}

/// A JSON string of exactly this many bytes.
fn json_of(n_bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(n_bytes - 2))
}

fn raw(event_type: &str, data: String, metadata: &Metadata) -> NewEvent {
    NewEvent::from_json(event_type, "1.0", data, metadata).expect("the data is JSON")
}

#[tokio::test]
async fn an_exceeded_limit_is_reported_with_what_exceeds_it() {
    let store = EventStore::in_memory().await.unwrap();
    let none = Metadata::default();
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    let to_a = |event| Append::to("facts", "a", Expected::Any, vec![event]);
    let tags = (0..=TAGS_MAX).map(|n| format!("tag-{n}"));
    let extra = Metadata { extra: Some("x".repeat(METADATA_BYTES_MAX).into()), ..Metadata::default() };
    let extra_bytes = serde_json::to_string(&extra).unwrap().len();
    let too_many = notes(0..=APPEND_EVENTS_MAX as i64);
    for (append, named, what, given, bound) in [
        (
            to_a(raw("T", json_of(PAYLOAD_BYTES_MAX + 1), &none)),
            "payload_bytes_max",
            "the bytes of T",
            None,
            PAYLOAD_BYTES_MAX,
        ),
        (
            to_a(raw("T", "1".into(), &extra)),
            "metadata_bytes_max",
            "the bytes of the metadata of T",
            Some(extra_bytes),
            METADATA_BYTES_MAX,
        ),
        (to_a(note(1).with_tags(tags)), "tags_max", "the tags of Noted", None, TAGS_MAX),
        (to_a(note(1).with_tags([long.clone()])), "name_bytes_max", "the bytes of the tag \"xxx", None, NAME_BYTES_MAX),
        (
            to_a(raw(&long, "1".into(), &none)),
            "name_bytes_max",
            "the bytes of the event type \"xxx",
            None,
            NAME_BYTES_MAX,
        ),
        (
            Append::to(&long, "a", Expected::Any, notes([1])),
            "name_bytes_max",
            "the bytes of the stream id \"xxx",
            None,
            NAME_BYTES_MAX,
        ),
        (
            noting("a", 1).cell(CellChange::set("s", &long, String::new())),
            "name_bytes_max",
            "the bytes of the cell's key \"xxx",
            None,
            NAME_BYTES_MAX,
        ),
        (noting(&long, 1), "name_bytes_max", "the bytes of the aggregate id \"xxx", None, NAME_BYTES_MAX),
        (
            Append::to("facts", "a", Expected::Any, too_many),
            "append_events_max",
            "the events of the append",
            None,
            APPEND_EVENTS_MAX,
        ),
    ] {
        match store.append(append).await.unwrap_err() {
            Error::LimitPassed { limit, what: found, value, max } => {
                assert_eq!((limit, value, max), (named, given.unwrap_or(bound + 1), bound));
                assert!(found.starts_with(what), "{found}");
            }
            other => panic!("{named}: {other}"),
        }
    }
    assert_eq!(store.head().await.unwrap(), Position(0));
}

#[tokio::test]
async fn reads_have_limits_too() {
    let store = EventStore::in_memory().await.unwrap();
    let refusal = store.read(&Query::all(), Range::default(), PAGE_EVENTS_MAX + 1).await.unwrap_err();
    assert!(matches!(refusal, Error::LimitPassed { limit: "page_events_max", .. }), "{refusal}");
    let query = Query { tags: (0..2000).map(|n| format!("tag-{n}")).collect(), ..Query::default() };
    let refusal = store.read(&query, Range::default(), 1).await.unwrap_err();
    assert!(matches!(refusal, Error::LimitPassed { limit: "tags_max", value: 2000, .. }), "{refusal}");
    let refusal = store.subscribe::<super::Fact>(&query).err().expect("a stream on it is refused");
    assert!(matches!(refusal, Error::LimitPassed { limit: "tags_max", .. }), "{refusal}");
}
