//! Events are stored exactly as given, byte for byte.

use crewlog_mq::{Append, Cause, CellChange, Error, EventStore, Expected, Metadata, NewEvent, Position, Query, Range};
use serde_json::json;
use uuid::Uuid;

use super::{Fact, everything, logs, note, noting};

#[test]
fn data_that_is_not_json_is_refused_before_the_append() {
    for data in ["", "{", "{} {}", "nul", "{'a':1}", "\u{0}", "\"\u{0}\"", "[1,]", "\u{feff}{}"] {
        let refusal = NewEvent::from_json("T", "1", data.into(), &Metadata::default()).unwrap_err();
        assert!(matches!(&refusal, Error::Encode { event_type, .. } if event_type == "T"), "{data:?}: {refusal}");
    }
}

/// Not every database can store one.
#[tokio::test]
async fn a_name_with_a_zero_byte_is_refused() {
    for (store, _place) in logs().await {
        let event = |event_type, version| {
            NewEvent::from_json(event_type, version, "1".into(), &Metadata::default()).expect("it is JSON")
        };
        let to = |stream_id, aggregate_id, event| Append::to(stream_id, aggregate_id, Expected::Any, vec![event]);
        for (append, says) in [
            (to("a\0", "a", note(1)), "the stream id \"a\\0\" has a zero byte"),
            (to("a", "\0", note(1)), "the aggregate id \"\\0\" has a zero byte"),
            (to("a", "a", event("T\0", "1")), "the event type \"T\\0\" has"),
            (to("a", "a", event("T", "1\0")), "the event version \"1\\0\" has"),
            (to("a", "a", note(1).with_tags(["a", "\0"])), "the tag \"\\0\" has"),
            (noting("a", 1).cell(CellChange::set("\0", "k", "v".into())), "the cell's space \"\\0\" has"),
            (noting("a", 1).cell(CellChange::set("s", "\0", "v".into())), "the cell's key \"\\0\" has"),
        ] {
            let refusal = store.append(append).await.unwrap_err();
            assert!(matches!(&refusal, Error::InvalidAppend { reason } if reason.contains(says)), "{says}: {refusal}");
        }
        assert_eq!(store.head().await.unwrap(), Position(0));
    }
}

#[tokio::test]
async fn tags_are_a_sorted_set() {
    for (store, _place) in logs().await {
        let event = note(1).with_tags(["b", "a", "b", "c:1", "a"]);
        store.append(Append::to("facts", "a", Expected::Any, vec![event])).await.unwrap();
        assert_eq!(everything(&store).await[0].tags, ["a", "b", "c:1"]);
    }
}

#[tokio::test]
async fn metadata_is_read_back_as_written() {
    for (store, _place) in logs().await {
        let cause = Cause::request();
        let given = Metadata {
            correlation_id: cause.metadata().correlation_id,
            causation_id: Some(Uuid::from_u128(5)),
            extra: Some(json!({"command": {"at": 1.5, "name": "x\u{0}é"}, "list": [null, true]})),
        };
        store.push_event("facts", "a", &Fact::Closed, &given).await.unwrap();
        let loaded = store.load::<Fact>(&Query::all(), Range::default()).await.unwrap();
        assert_eq!((&loaded[0].event, &loaded[0].metadata), (&Fact::Closed, &given));
        assert_eq!((&*loaded[0].recorded.event_version, &*loaded[0].recorded.data), ("1.0", "null"));
    }
}

#[test]
fn metadata_that_could_not_be_read_again_is_refused() {
    let event = || NewEvent::from_json("Noted", "1.0", "{}".into(), &Metadata::default()).unwrap();
    for metadata in ["", "[]", "7", "{\"extra\":1,\"extra\":2}", "{\"causation_id\":\"x\"}", "{\"extra\":1e999}"] {
        let refusal = event().with_json("{}".into(), metadata.into()).unwrap_err();
        assert!(matches!(refusal, Error::Encode { .. }), "{metadata}: {refusal}");
    }
    event().with_json("{}".into(), "{\"another\":1,\"another\":\"\\u0000\"}".into()).expect("more fields are allowed");
    let nested =
        |depth| Metadata { extra: Some((0..depth).fold(json!(1), |inner, _| json!([inner]))), ..Metadata::default() };
    NewEvent::of(&Fact::Closed, &nested(100)).expect("it can be read again");
    for refused in
        [NewEvent::of(&Fact::Closed, &nested(200)), NewEvent::from_json("Noted", "1", "1".into(), &nested(200))]
    {
        assert!(matches!(refused, Err(Error::Encode { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn an_event_of_another_type_is_a_decode_error_with_its_position() {
    let store = EventStore::in_memory().await.unwrap();
    store.append(super::noting("a", 1)).await.unwrap();
    for (event_type, version, data) in [("Other", "1.0", "{}"), ("Noted", "2.0", "{\"n\":1}"), ("Noted", "1.0", "{}")] {
        let event = NewEvent::from_json(event_type, version, data.into(), &Metadata::default()).unwrap();
        let at = store.append(Append::to("facts", "b", Expected::Any, vec![event])).await.unwrap().last();
        let after = crewlog_mq::Position(at.0 - 1);
        match store.load_events::<Fact>(&Query::all(), Some(after)).await.unwrap_err() {
            Error::Decode { position, event_type: named, event_version, .. } => {
                assert_eq!((position, &*named, &*event_version), (at, event_type, version));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(store.load_events::<Fact>(&Query::aggregate("facts", "a"), None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_clone_in_memory_is_the_same_log_and_another_store_is_not() {
    let store = EventStore::in_memory().await.unwrap();
    let other = EventStore::in_memory().await.unwrap();
    let clone = store.clone();
    store.append(super::noting("a", 1)).await.unwrap();
    drop(store);
    clone.append(super::noting("a", 2)).await.unwrap();
    assert_eq!(everything(&clone).await.len(), 2);
    assert_eq!(everything(&other).await.len(), 0);
    assert_ne!(clone.log().await.unwrap().id, other.log().await.unwrap().id);
}
