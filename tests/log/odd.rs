//! Append, check and import agree: a log written through the public API checks clean, and every backend imports its
//! export, byte for byte.

use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{
    Append, CellChange, Clock, Error, EventStore, Expected, Metadata, NAME_BYTES_MAX, NewEvent, Options, Position,
    Query, Timestamp,
};
use crewlog_stage::conformance::{Hands, Rig};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;
use uuid::Uuid;

use super::{check_history, everything};
use crewlog_stage::backends::rigs;

/// An operation on a log.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<OddEvent>, [String; 2], Expected),
    Change(CellChange),
    Condition(Query, Position),
    Clock(i64),
}

#[derive(Debug, Clone)]
struct OddEvent {
    event_id: Uuid,
    names: [String; 2],
    tags: Vec<String>,
    data: String,
    metadata: OddMetadata,
}

#[derive(Debug, Clone)]
enum OddMetadata {
    Json(String),
    Parts(Metadata),
}

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

/// Mostly valid names, so that most logs have events.
fn some_name() -> impl Strategy<Value = String> {
    let long = "é".repeat(NAME_BYTES_MAX / 2);
    let odd = ["".into(), "a\0b".into(), long.clone() + "x", long, "\u{feff}".into(), "log".into(), "clock".into()];
    prop_oneof![6 => prop::sample::select(vec!["a".to_owned(), "b".to_owned()]),
                1 => prop::sample::select(odd.to_vec()), 1 => "\\PC{1,8}"]
}

fn some_json() -> impl Strategy<Value = String> {
    let odd = [
        "".into(),
        "{".into(),
        "{\"a\":\"\\u0000\"}".into(),
        "\"\\ud800\"".into(),
        "{\"a\":1,\"a\":2}".into(),
        "1e999".into(),
        "-0.0".into(),
        " \n[1\t] ".into(),
        "\u{feff}1".into(),
        "9".repeat(400),
        nested(500),
        "\"a\0\"".into(),
    ];
    prop_oneof![1 => Just("{}".to_owned()), 2 => prop::sample::select(odd.to_vec()),
                1 => any::<String>().prop_map(|text| Value::from(text).to_string())]
}

fn some_id() -> impl Strategy<Value = Uuid> {
    prop_oneof![3 => any::<u128>().prop_map(Uuid::from_u128), 1 => prop::sample::select(vec![Uuid::nil(), Uuid::max()])]
}

/// An object with the fields of metadata, others, and duplicates; or any value.
fn some_metadata() -> impl Strategy<Value = OddMetadata> {
    let id = || prop::option::of(some_id());
    let field = prop_oneof![
        some_id().prop_map(|id| format!("\"causation_id\":\"{}\"", id.urn())),
        some_id().prop_map(|id| format!("\"correlation_id\":\"{}\"", id.braced())),
        Just("\"correlation_id\":7".to_owned()),
        some_json().prop_map(|json| format!("\"extra\":{json}")),
        some_json().prop_map(|json| format!("\"other\":{json}")),
    ];
    let object = prop::collection::vec(field, 0..3).prop_map(|fields| format!("{{{}}}", fields.join(",")));
    let extra = prop_oneof![
        Just(Value::Null),
        Just(Value::from("\0")),
        Just(Value::from(f64::MAX)),
        prop::sample::select(vec![1, 100, 126, 127, 128, 500])
            .prop_map(|depth| (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]))),
    ];
    let parts = (id(), id(), prop::option::of(extra)).prop_map(|(correlation_id, causation_id, extra)| Metadata {
        correlation_id,
        causation_id,
        extra,
    });
    prop_oneof![
        parts.prop_map(OddMetadata::Parts),
        object.prop_map(OddMetadata::Json),
        some_json().prop_map(OddMetadata::Json)
    ]
}

fn some_event() -> impl Strategy<Value = OddEvent> {
    let tags = prop_oneof![8 => prop::collection::vec(some_name(), 0..2), 1 => prop::collection::vec("t{1,9}[0-9]{3}", 30..40)];
    (some_id(), [some_name(), some_name()], tags, some_json(), some_metadata())
        .prop_map(|(event_id, names, tags, data, metadata)| OddEvent { event_id, names, tags, data, metadata })
}

fn some_step() -> impl Strategy<Value = Step> {
    let number = prop::sample::select(vec![i64::MIN, -1, 0, 1, 2, 1_700_000_000_000_000, i64::MAX - 1, i64::MAX]);
    let expected = prop_oneof![
        8 => Just(Expected::Any),
        1 => Just(Expected::NoStream),
        1 => number.clone().prop_map(Expected::Sequence)
    ];
    let hold =
        prop::sample::select(vec![None, Some(Duration::ZERO), Some(Duration::from_secs(9)), Some(Duration::MAX)]);
    let change = (some_name(), some_name(), prop::option::of(some_json()), hold)
        .prop_map(|(space, key, value, hold)| CellChange { value, hold, ..CellChange::delete(&space, &key) });
    prop_oneof![
        8 => (prop::collection::vec(some_event(), 1..3), [some_name(), some_name()], expected)
            .prop_map(|(events, names, expected)| Step::Append(events, names, expected)),
        3 => change.prop_map(Step::Change),
        1 => (some_name(), some_name(), number.clone())
            .prop_map(|(stream, tag, after)| Step::Condition(Query::stream(&stream).and_tag(&tag), Position(after))),
        1 => number.prop_map(Step::Clock),
    ]
}

/// The event made by the API; `None` if it is refused.
fn event_of(odd: &OddEvent) -> Option<NewEvent> {
    let OddEvent { event_id, names: [event_type, event_version], tags, data, metadata } = odd;
    let new = |metadata| NewEvent::from_json(event_type, event_version, data.clone(), metadata);
    let event = match metadata {
        OddMetadata::Parts(metadata) => new(metadata),
        OddMetadata::Json(json) => {
            new(&Metadata::default()).and_then(|event| event.with_json(data.clone(), json.clone()))
        }
    };
    Some(event.ok()?.with_id(*event_id).with_tags(tags))
}

/// Performs it, and returns the versions of the cells that it has made.
async fn apply(store: &EventStore, hands: &Hands, step: &Step) -> Vec<i64> {
    let append = match step {
        Step::Append(events, [stream_id, aggregate_id], expected) => {
            let events = events.iter().filter_map(event_of).collect();
            Append::to(stream_id, aggregate_id, *expected, events)
        }
        Step::Change(change) => Append::default().cell(change.clone()),
        Step::Condition(query, after) => {
            Append::default().none_matching(query.clone(), *after).cell(CellChange::set("a", "a", String::new()))
        }
        Step::Clock(now) => {
            hands.set(Timestamp(*now));
            return Vec::new();
        }
    };
    match store.append(append).await {
        Ok(appended) => appended.cells,
        Err(fault @ (Error::Storage { .. } | Error::NotAcknowledged { .. } | Error::Closed)) => panic!("{fault:?}"),
        Err(_refusal) => Vec::new(),
    }
}

async fn is_sound(store: &EventStore, n_events: usize) {
    let checked = store.check().await.expect("it can be checked");
    assert_eq!((checked.n_events, checked.findings), (n_events, vec![]));
}

/// Builds a log on this rig, and copies it to each of `into`.
async fn check_steps(rig: &Rig, into: &[Rig], steps: &[Step]) {
    let hands = Arc::new(Hands::default());
    let clock: Arc<dyn Clock> = Arc::<Hands>::clone(&hands);
    let name = || Uuid::now_v7().simple().to_string();
    let source = rig.open(&name(), Options { clock, ..Options::default() }).await;
    let mut versions = Vec::new();
    for step in steps {
        versions.extend(apply(&source, &hands, step).await);
    }
    assert!(versions.is_sorted_by(|before, after| before < after), "versions grow at any time: {versions:?}");
    let (identity, events) = (source.log().await.expect("a log has an identity"), everything(&source).await);
    check_history(&events);
    is_sound(&source, events.len()).await;
    for event in &events {
        event.metadata().expect("what was appended can be decoded");
    }
    for copy in into {
        let on = copy.name();
        let copy = copy.open(&name(), Options::default()).await;
        let imported = copy.import(identity.clone(), events.clone().into_iter().map(Ok)).await;
        assert_eq!(imported.unwrap_or_else(|error| panic!("into {on}: {error}")).n_added, events.len());
        assert_eq!(
            (copy.log().await.expect("it has one"), everything(&copy).await),
            (identity.clone(), events.clone())
        );
        is_sound(&copy, events.len()).await;
    }
}

#[test]
fn every_appended_log_checks_clean_and_imports_everywhere() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let into: Vec<_> =
        rigs().into_iter().filter(|rig| ["SQLite in memory", "memory", "PostgreSQL"].contains(&rig.name())).collect();
    assert_eq!(into.len(), 3);
    let steps = prop::collection::vec(some_step(), 40..80);
    let config = Config { cases: 4, max_shrink_iters: 50, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&steps, |steps| {
            for rig in rigs() {
                let checked = std::panic::AssertUnwindSafe(|| runtime.block_on(check_steps(&rig, &into, &steps)));
                if let Err(panic) = std::panic::catch_unwind(checked) {
                    let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                    return Err(TestCaseError::fail(format!("{}: {said}", rig.name())));
                }
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
