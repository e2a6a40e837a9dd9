//! A text that an event copies from its cause: stored once, and returned to every reader.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

use crewlog_mq::{
    Append, Cause, EventStore, Expected, Metadata, NewEvent, Position, Query, Range, Recorded, SharedFields, Start,
};
use futures::StreamExt;

use super::logs;

const FIELDS: SharedFields = &[("Copied", "text")];

fn event(event_type: &str, text: &str, metadata: &Metadata) -> NewEvent {
    let data = serde_json::json!({ "n": 1, "text": text }).to_string();
    NewEvent::from_json(event_type, "1.0", data, metadata).unwrap()
}

async fn append(store: &EventStore, event: NewEvent) -> Recorded {
    let append = Append::to("s", "a", Expected::Any, vec![event]);
    let position = store.append(append).await.unwrap().last();
    let read = store.read(&Query::all(), Range::between(Position(position.0 - 1), position), 1).await.unwrap();
    read.events.into_iter().next().unwrap()
}

fn caused_by(cause: &Recorded) -> Metadata {
    Cause::event(cause).metadata().clone()
}

async fn as_stored(store: &EventStore) -> Vec<String> {
    let store = store.clone().as_stored();
    let page = store.read(&Query::all(), Range::default(), 100).await.unwrap();
    page.events.into_iter().map(|recorded| recorded.data).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_shared_with_the_cause_is_stored_once_and_read_everywhere() {
    for (below, _on) in logs().await {
        stored_once(&below).await;
    }
}

async fn stored_once(below: &EventStore) {
    let store = below.clone().sharing(FIELDS);
    let text = format!("said \"so\"\n\u{1}\\ é {}", "x".repeat(100));
    let reported = append(&store, event("Reported", &text, &Metadata::default())).await;
    let live = store.follow(&Query::stream("s").of_type("Copied"), Start::Beginning);
    let live = tokio::spawn(async move { std::pin::pin!(live).next().await.unwrap().unwrap() });
    let copied = event("Copied", &text, &caused_by(&reported));
    let whole = copied.clone();
    let recorded = append(&store, copied.clone()).await;
    assert_eq!(recorded.data, reported.data, "byte for byte");
    assert_eq!(live.await.unwrap().data, reported.data, "also live");
    let stored = as_stored(&store).await;
    assert_eq!(stored[1], "{\"n\":1,\"text\":\"\\u0001cause/text\"}");
    let again = Append::to("s", "a", Expected::Any, vec![whole]);
    assert!(store.append(again).await.unwrap().repeated, "a repeated append is known");

    let elsewhere = EventStore::in_memory().await.unwrap();
    let events = below.read(&Query::all(), Range::default(), 100).await.unwrap().events;
    elsewhere.import(below.log().await.unwrap(), events.into_iter().map(Ok)).await.unwrap();
    let read =
        elsewhere.sharing(FIELDS).read(&Query::stream("s").of_type("Copied"), Range::default(), 9).await.unwrap();
    assert_eq!(read.events[0].data, reported.data);
}

#[tokio::test]
async fn other_texts_are_stored_unchanged() {
    let store = EventStore::in_memory().await.unwrap().sharing(FIELDS);
    let long = "y".repeat(100);
    let reported = append(&store, event("Reported", &long, &Metadata::default())).await;
    let short = append(&store, event("Reported", "short", &Metadata::default())).await;
    let odd = append(&store, event("Reported", "\u{1}cause/nothing", &Metadata::default())).await;
    let cases = [
        ("another type", event("Other", &long, &caused_by(&reported))),
        ("another text", event("Copied", &"z".repeat(100), &caused_by(&reported))),
        ("no cause", event("Copied", &long, &Metadata::default())),
        ("a short text", event("Copied", "short", &caused_by(&short))),
        ("what looks like a reference", event("Copied", "\u{1}cause/nothing", &caused_by(&odd))),
    ];
    for (case, new) in cases {
        let read = append(&store, new).await;
        assert_eq!(as_stored(&store).await.pop().unwrap(), read.data, "{case}");
    }
}
