//! Events and cells are read back byte for byte, whatever their names and values, up to the limits.

use serde_json::json;
use uuid::Uuid;

use super::rig::{Rig, everything};
use crewlog_mq::{
    Append, Appended, CellChange, Error, EventStore, Expected, JSON_DEPTH_MAX, Metadata, NAME_BYTES_MAX, NewEvent,
    PAYLOAD_BYTES_MAX, Query, Range, TAGS_MAX,
};

const DATA: &[&str] = &[
    "{}",
    "null",
    " { \"b\" : 1 ,\n\t\"a\": [ 1.0, 1e2, -0 ] } ",
    "{\"same\":1,\"same\":2}",
    "\"\\u0000\\u00e9\\ud83d\\ude00\\ud800\\/\"",
    "\"é😀\u{2028}\u{7f}\"",
    "\"it's \\\"quoted\\\" -- ; DROP TABLE events\"",
    "123456789012345678901234567890.10",
    "1e400",
    "[[[[[[[[[[]]]]]]]]]]",
];

const NAMES: &[&str] = &[
    "a",
    "A",
    "a ",
    " a",
    "á",
    "a\u{301}",
    "it's \"q\"",
    "a/b",
    "a\\b",
    "%_*",
    "a\u{1}",
    "a\u{1}b",
    "?1",
    "$1",
    "\n",
    "{a,b}",
    "NULL",
    "😀",
];

pub(super) async fn check(rig: &Rig) {
    data(rig).await;
    names(rig).await;
    limits(rig).await;
}

async fn data(rig: &Rig) {
    let store = rig.new_log().await;
    let large = format!("\"{}\"", "é\u{10ffff}\\n".repeat(500_000));
    let extra = json!({ "text": "x\u{0}é", "list": [null, true, 1.5] });
    let metadata = Metadata {
        correlation_id: Some(Uuid::from_u128(u128::MAX)),
        causation_id: Some(Uuid::nil()),
        extra: Some(extra),
    };
    for data in DATA.iter().copied().chain([large.as_str()]) {
        let event = NewEvent::from_json("T", "1", data.into(), &metadata).expect("it is JSON");
        store.append(Append::to("raw", "a", Expected::Any, vec![event])).await.expect("it is accepted");
    }
    let stored = everything(&store).await;
    assert!(stored.iter().map(|event| event.data.as_str()).eq(DATA.iter().copied().chain([large.as_str()])));
    assert!(stored.iter().all(|event| event.metadata().expect("it has its form") == metadata));
    let value = "\u{10ffff}\u{0}'\"\\".repeat(100_000).replace('\u{0}', "\u{1}");
    store.append(Append::default().cell(CellChange::set("s", "k", value.clone()))).await.expect("it is accepted");
    assert_eq!(store.cell("s", "k").await.expect("it can be read").expect("it is there").value, value);
}

async fn names(rig: &Rig) {
    let store = rig.new_log().await;
    for name in NAMES {
        let event = NewEvent::from_json(name, name, "1".into(), &Metadata::default()).expect("it is JSON");
        let append = Append::to(name, name, Expected::NoStream, vec![event.with_tags([*name])]);
        let append = append.cell(CellChange::set(name, name, (*name).to_owned()));
        store.append(append).await.unwrap_or_else(|error| panic!("{name:?} is a name: {error}"));
    }
    for name in NAMES {
        for query in [
            Query::stream(name),
            Query::aggregate(name, name),
            Query::tag(*name),
            Query::all().of_type(name),
            Query { aggregate_id: Some((*name).into()), ..Query::all() },
        ] {
            let found = store.read(&query, Range::default(), 100).await.expect("it can be read").events;
            let names: Vec<_> = found.iter().map(|e| (&*e.stream_id, &*e.event_version, &*e.tags[0])).collect();
            assert_eq!(names, [(*name, *name, *name)], "{query:?}");
        }
        let cell = store.cell(name, name).await.expect("it can be read").expect("it is there");
        assert_eq!(cell.value, *name);
    }
}

/// A value that is exactly at a limit is accepted.
async fn limits(rig: &Rig) {
    let store = rig.new_log().await;
    let name = "é".repeat(NAME_BYTES_MAX / 2);
    let tags: Vec<_> = (0..TAGS_MAX).map(|n| format!("{n:02}{}", "t".repeat(NAME_BYTES_MAX - 2))).collect();
    let data = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
    let event = NewEvent::from_json(&name, &name, data, &Metadata::default()).expect("it is JSON");
    let append = Append::to(&name, &name, Expected::Any, vec![event.with_tags(tags.clone())]);
    store.append(append.cell(CellChange::set(&name, &name, name.clone()))).await.expect("it is within the limits");
    let stored = everything(&store).await;
    assert_eq!((&stored[0].stream_id, &stored[0].event_type, &stored[0].tags), (&name, &name, &tags));
    assert_eq!(stored[0].data.len(), PAYLOAD_BYTES_MAX);
    let found =
        store.read(&Query::tag(&tags[31]).and_tag(&tags[0]), Range::default(), 9).await.expect("it can be read");
    assert_eq!(found.events, stored);
    depth(&store).await;
}

/// An accepted value can be parsed, however deep it is; brackets within texts do not count.
async fn depth(store: &EventStore) {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let texts = |levels: usize| format!("[{}\"\\\"{}\"]", nested(levels - 1) + ",", "[{".repeat(200));
    let extra = |levels| serde_json::from_str(&nested(levels)).expect("it is JSON");
    for (levels, is_accepted) in [(1, true), (JSON_DEPTH_MAX, true), (JSON_DEPTH_MAX + 1, false), (100_000, false)] {
        for data in [nested(levels), if levels > 1 { texts(levels) } else { "{}".into() }] {
            let event = NewEvent::from_json("T", "1", data, &Metadata::default()).expect("it is JSON");
            let appended = store.append(Append::to("deep", "a", Expected::Any, vec![event])).await;
            check_depth(levels, is_accepted, appended);
        }
    }
    for (levels, is_accepted) in [(JSON_DEPTH_MAX - 1, true), (JSON_DEPTH_MAX, false)] {
        let metadata = Metadata { extra: Some(extra(levels)), ..Metadata::default() };
        let event = NewEvent::from_json("T", "1", "1".into(), &metadata).expect("it is JSON");
        check_depth(levels, is_accepted, store.append(Append::to("deep", "b", Expected::Any, vec![event])).await);
    }
    let stored = store.read(&Query::stream("deep"), Range::default(), 99).await.expect("it can be read").events;
    for event in &stored {
        serde_json::from_str::<serde_json::Value>(&event.data).expect("it can be parsed");
        event.metadata().expect("it has its form");
    }
    assert_eq!(stored.len(), 5);
}

fn check_depth(levels: usize, is_accepted: bool, appended: Result<Appended, Error>) {
    match appended {
        Ok(_) if is_accepted => {}
        Err(Error::LimitPassed { limit: "json_depth_max", max: JSON_DEPTH_MAX, .. }) if !is_accepted => {}
        another => panic!("{levels} levels: {another:?}"),
    }
}
