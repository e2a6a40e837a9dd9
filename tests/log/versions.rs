//! Events of several versions in one log, including unreadable ones.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

use crewlog_mq::{
    Append, Cause, Envelope, Error, Event, EventStore, ExecuteError, Expected, Handler, Metadata, NewEvent, Position,
    Query, Range, Runner, Upcaster,
};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use super::{everything, in_time, logs};

/// An account in the form of the first program.
#[derive(Serialize, Deserialize)]
enum First {
    Opened,
    Paid { euros: u64 },
    Noted { text: String },
}

impl Event for First {
    const EVENT_VERSION: &'static str = "1.0";
}

/// The form of the third program: amounts are in cents since 1.1, and payments are called deposits since 2.0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Third {
    Opened,
    Deposited { cents: u64 },
    Noted { text: String },
}

impl Event for Third {
    const EVENT_VERSION: &'static str = "2.0";

    fn upcasters() -> &'static [Upcaster] {
        const STEPS: &[Upcaster] = &[
            Upcaster::step("1.0", "1.1").of("Paid").by(|data| {
                let euros = data["euros"].as_u64().ok_or("euros is no number")?;
                Ok(serde_json::json!({ "cents": euros * 100 }))
            }),
            Upcaster::step("1.0", "1.1"),
            Upcaster::step("1.1", "2.0").of("Paid").renamed("Deposited"),
            Upcaster::step("1.1", "2.0"),
        ];
        STEPS
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Account {
    cents: u64,
    n_events: u64,
}

impl Handler for Account {
    type Command = u64;
    type Event = Third;
    type Error = String;

    fn decide(&self, cents: u64) -> Result<Vec<Third>, String> {
        let event = Third::Deposited { cents };
        Ok(vec![event])
    }

    fn apply(&mut self, event: &Third) {
        self.n_events += 1;
        if let Third::Deposited { cents } = event {
            self.cents += cents;
        }
    }
}

fn account() -> Query {
    Query::aggregate("accounts", "a")
}

async fn append<T: Event>(store: &EventStore, event: &T) {
    store.push_event("accounts", "a", event, &Metadata::default()).await.unwrap();
}

async fn append_raw(store: &EventStore, event_type: &str, version: &str, data: &str) {
    let event = NewEvent::from_json(event_type, version, data.into(), &Metadata::default()).unwrap();
    store.append(Append::to("accounts", "a", Expected::Any, vec![event])).await.unwrap();
}

/// A log written by three programs, one after another.
async fn write_old(store: &EventStore) {
    append(store, &First::Opened).await;
    append(store, &First::Paid { euros: 3 }).await;
    append(store, &First::Noted { text: "é".into() }).await;
    append_raw(store, "Paid", "1.1", r#"{"cents":50}"#).await;
    append(store, &Third::Deposited { cents: 7 }).await;
}

fn as_read_now() -> Vec<Third> {
    let deposited = |cents| Third::Deposited { cents };
    vec![Third::Opened, deposited(300), Third::Noted { text: "é".into() }, deposited(50), deposited(7)]
}

#[tokio::test]
async fn events_of_older_versions_are_upcast_on_read_and_stored_unchanged() {
    for (store, _place) in logs().await {
        write_old(&store).await;
        let before = everything(&store).await;
        assert_eq!(store.load_events::<Third>(&account(), None).await.unwrap(), as_read_now());
        let mut followed = store.subscribe::<Third>(&account()).unwrap();
        for expected in as_read_now() {
            let item = in_time("an event", followed.next()).await.unwrap().unwrap();
            assert_eq!(item.event, expected);
        }
        let mut runner = Runner::<Account>::new(store.clone(), "accounts", "a", vec![]);
        runner.execute(1, &Cause::request()).await.unwrap();
        assert_eq!(*runner.handler(), Account { cents: 358, n_events: 6 });
        let after = everything(&store).await;
        assert_eq!(after[..5], before, "the log is as it was");
        assert_eq!(
            (&*after[1].event_type, &*after[1].event_version, &*after[1].data),
            ("Paid", "1.0", "{\"euros\":3}")
        );
        assert_eq!((&*after[5].event_type, &*after[5].event_version), ("Deposited", "2.0"));
    }
}

/// Each way in which an event can be unreadable, and its error.
const UNREADABLE: [(&str, &str, &str, &str); 5] = [
    ("Deposited", "3.0", r#"{"cents":1}"#, "version 3.0 is not known, only 2.0"),
    ("Deposited", "0.9", r#"{"cents":1}"#, "version 0.9 is not known"),
    ("Withdrawn", "2.0", r#"{"cents":1}"#, "unknown variant `Withdrawn`"),
    ("Deposited", "2.0", r#"{"euros":1}"#, "missing field `cents`"),
    ("Paid", "1.0", r#"{"euros":"one"}"#, "the step from version 1.0 to 1.1 refuses it: euros is no number"),
];

#[tokio::test]
async fn an_unreadable_event_is_an_item_with_its_position_among_the_others() {
    for (store, _place) in logs().await {
        for (event_type, version, data, _) in UNREADABLE {
            append(&store, &Third::Opened).await;
            append_raw(&store, event_type, version, data).await;
        }
        let items = store.load_items::<Third>(&account(), Range::default()).await.unwrap();
        let mut followed = store.subscribe::<Third>(&account()).unwrap();
        assert_eq!(items.len(), 2 * UNREADABLE.len());
        for (n, item) in (1..).zip(items) {
            let live = in_time("an item", followed.next()).await.unwrap();
            assert_eq!(format!("{item:?}"), format!("{live:?}"));
            match item {
                Ok(Envelope { event, recorded, .. }) => {
                    assert_eq!((event, recorded.position, n % 2), (Third::Opened, Position(n), 1));
                }
                Err(error) => check_unreadable(&error, n),
            }
        }
    }
}

/// An error names the event's position, its type, the reason and a hint.
fn check_unreadable(error: &Error, at: i64) {
    let (event_type, version, _, why) = UNREADABLE[at as usize / 2 - 1];
    let Error::Decode { position, event_type: found, event_version, .. } = error else { panic!("{error}") };
    assert_eq!((*position, &**found, &**event_version), (Position(at), event_type, version));
    let said = error.to_string();
    assert!(said.contains(why) && said.contains("a newer program may read it, or an upcaster"), "{said}");
}

#[tokio::test]
async fn a_strict_load_and_a_runner_stop_at_an_unreadable_event_until_it_is_readable() {
    let store = EventStore::in_memory().await.unwrap();
    write_old(&store).await;
    append_raw(&store, "Deposited", "3.0", r#"{"cents":1}"#).await;
    append(&store, &Third::Deposited { cents: 1 }).await;
    let error = store.load_events::<Third>(&account(), None).await.unwrap_err();
    assert!(matches!(error, Error::Decode { position: Position(6), .. }), "{error}");
    let mut runner = Runner::<Account>::new(store.clone(), "accounts", "a", vec![]);
    for _ in 0..2 {
        let error = runner.execute(5, &Cause::request()).await.unwrap_err();
        assert!(matches!(error, ExecuteError::Store(Error::Decode { position: Position(6), .. })), "{error}");
        assert_eq!(*runner.handler(), Account { cents: 357, n_events: 5 }, "what stands before it, once");
    }
    assert_eq!(store.head().await.unwrap(), Position(7), "nothing is decided on half of the history");
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Fields { text: String, n: Option<u8> },
    Newtype(Vec<u8>),
    Tuple(u8, String),
    Unit,
}

impl Event for Shape {
    const EVENT_VERSION: &'static str = "1.0";
}

#[test]
fn every_variant_shape_survives_encoding_and_decoding() {
    let text = "a \"quoted\" } text\n\u{0}é".to_owned();
    for (shape, event_type, data) in [
        (Shape::Fields { text, n: None }, "Fields", r#"{"text":"a \"quoted\" } text\n\u0000é","n":null}"#),
        (Shape::Newtype(vec![1, 2]), "Newtype", "[1,2]"),
        (Shape::Tuple(7, String::new()), "Tuple", r#"[7,""]"#),
        (Shape::Unit, "Unit", "null"),
    ] {
        assert_eq!((shape.event_type(), &*shape.encode().unwrap()), (event_type, data));
        assert_eq!(Shape::decode(event_type, "1.0", data).unwrap(), shape);
    }
    for (event_type, data, why) in [("Tuple", "[7]", "invalid length 1"), ("Unit", "null null", "trailing characters")]
    {
        let error = Shape::decode(event_type, "1.0", data).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[derive(Serialize, Deserialize)]
struct NoEnum {
    n: u8,
}

impl Event for NoEnum {
    const EVENT_VERSION: &'static str = "1.0";
}

#[test]
fn a_type_that_is_not_an_enum_is_refused_by_name() {
    let error = NoEnum { n: 1 }.encode().unwrap_err().to_string();
    assert!(error.contains("NoEnum cannot be written: serde does not write it as a variant"), "{error}");
}
