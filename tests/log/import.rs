//! Importing a copy of a log: complete, once, equal in every field, or not at all.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crewlog_mq::{
    Append, Clock, Error, EventStore, Expected, Imported, LogIdentity, METADATA_BYTES_MAX, Metadata, NAME_BYTES_MAX,
    NewEvent, Options, Position, Query, Recorded, Result, TAGS_MAX, Timestamp,
};
use futures::StreamExt;

use super::{Fact, Place, check_history, everything, in_time, logs, note, noting};

/// A log of six events: an append of one, one of three in two aggregates, and two of one.
async fn source() -> EventStore {
    let store = EventStore::in_memory().await.expect("a log in memory");
    let mut causes = Metadata { extra: Some(serde_json::json!({ "a": [1, "é"] })), ..Metadata::default() };
    let spaced = NewEvent::from_json("Spaced", "2.1", " {\n\t\"a\" : 1.0 }\n".into(), &causes).expect("it is JSON");
    let first = spaced.with_tags(["plan:a", "project:x"]);
    causes.causation_id = Some(first.event_id());
    let noted = NewEvent::of(&Fact::Noted { n: 5 }, &causes).expect("it is JSON");
    for append in [
        Append::to("raw", "a", Expected::Any, vec![first]),
        Append::to("facts", "a", Expected::Any, vec![note(1).with_tags(["t"]), note(2)]).and(
            "facts",
            "b",
            Expected::Any,
            vec![note(3)],
        ),
        noting("b", 4),
        Append::to("facts", "a", Expected::Any, vec![noted]),
    ] {
        store.append(append).await.expect("an append of any kind is accepted");
    }
    store
}

async fn import(into: &EventStore, identity: LogIdentity, records: Vec<Recorded>) -> Result<Imported> {
    into.import(identity, records.into_iter().map(Ok)).await
}

/// The identity and the first events of a log.
async fn export(from: &EventStore, n_events: usize) -> (LogIdentity, Vec<Recorded>) {
    let mut records = everything(from).await;
    records.truncate(n_events);
    (from.log().await.expect("a log has an identity"), records)
}

fn imported(n_added: usize, n_known: usize, head: i64) -> Imported {
    Imported { n_added, n_known, head: Position(head) }
}

#[track_caller]
fn check_same<T: PartialEq + std::fmt::Debug>(one: &T, other: &T, what: &str) {
    assert_eq!(one, other, "{what}");
}

#[tokio::test]
async fn an_import_into_an_empty_log_recreates_the_log() {
    let source = source().await;
    let whole = export(&source, 6).await;
    for (copy, _place) in logs().await {
        assert_eq!(import(&copy, whole.0.clone(), whole.1.clone()).await.unwrap(), imported(6, 0, 6));
        check_same(&export(&copy, 9).await, &whole, "the copy");
        assert_eq!(copy.head().await.unwrap(), Position(6));
        assert_eq!(copy.whole(Position(3)).await.unwrap(), Position(1), "appends are kept together");
        let tagged = copy.load_events::<Fact>(&Query::tag("t"), None).await.unwrap();
        assert_eq!(tagged, [Fact::Noted { n: 1 }], "tags are indexed");
        let refused = copy.append(Append::to("facts", "a", Expected::Sequence(2), vec![note(9)])).await.unwrap_err();
        assert!(matches!(refused, Error::SequenceMismatch { actual: 3, .. }), "{refused}");
        let next = copy.append(Append::to("facts", "a", Expected::Sequence(3), vec![note(9)])).await.unwrap();
        assert_eq!((next.places[0].position, next.places[0].sequence), (Position(7), 4));
        check_history(&everything(&copy).await);
    }
}

#[tokio::test]
async fn importing_again_adds_only_new_events() {
    let source = source().await;
    for (copy, _place) in logs().await {
        for (n_events, came_to) in [
            (0, imported(0, 0, 0)),
            (1, imported(1, 0, 1)),
            (1, imported(0, 1, 1)),
            (5, imported(4, 1, 5)),
            (6, imported(1, 5, 6)),
            (6, imported(0, 6, 6)),
            (4, imported(0, 4, 6)),
            (0, imported(0, 0, 6)),
        ] {
            let (identity, records) = export(&source, n_events).await;
            assert_eq!(import(&copy, identity, records).await.unwrap(), came_to, "of {n_events} events");
        }
        check_same(&export(&copy, 9).await, &export(&source, 9).await, "the copy");
    }
}

#[tokio::test]
async fn white_space_dropped_by_an_export_is_not_a_difference() {
    let source = source().await;
    let (identity, mut records) = export(&source, 6).await;
    records[0].data = records[0].data.trim().to_owned();
    assert_eq!(import(&source, identity, records).await.unwrap(), imported(0, 6, 6));
}

/// One edit of a valid export, and the expected error.
type Edit = (&'static str, fn(&mut LogIdentity, &mut Vec<Recorded>), &'static str);

const HOSTILE: &[Edit] = &[
    ("a newer form", |log, _| log.format = 3, "log format 3, and this version reads up to 2: install a newer one"),
    ("an older form", |log, _| log.format = 1, "the export has log format 1, and this version reads 2 only"),
    ("no form", |log, _| log.format = 0, "there is no log format 0"),
    (
        "a part of a log",
        |_, events| drop(events.remove(0)),
        "position 2 where 1 should be: it is a part of a log, export",
    ),
    ("a gap", |_, events| drop(events.remove(4)), "position 6 where 5 should be"),
    ("an event twice", |_, events| events.insert(1, events[0].clone()), "position 1 where 2 should be"),
    ("another order", |_, events| events.swap(4, 5), "position 6 where 5 should be"),
    ("a position below the first", |_, events| events[0].position.0 = 0, "position 0 where 1 should be"),
    ("the last position of all", |_, events| events[5].position.0 = i64::MAX, "where 6 should be"),
    (
        "a sequence that is skipped",
        |_, events| events[5].sequence = 4,
        "at position 6: facts/a has sequence 4 where 3 should",
    ),
    ("a sequence twice", |_, events| events[5].sequence = 2, "at position 6: facts/a has sequence 2 where 3 should be"),
    ("a sequence below 1", |_, events| events[0].sequence = 0, "at position 1: raw/a has sequence 0 where 1 should be"),
    ("an id twice", |_, events| events[4].event_id = events[1].event_id, "is that of position 2 too"),
    ("time back", |_, events| events[5].created_at.0 = 1, "at position 6: created_at runs backwards, from "),
    ("time on in an append", |_, events| events[2].created_at.0 += 1, "at position 3: created_at is another than"),
    (
        "an append from later",
        |_, events| events[4].append_start.0 = 6,
        "at position 5: append_start is 6, and only 2 or 5 can",
    ),
    ("an append from before", |_, events| events[4].append_start.0 = 1, "append_start is 1, and only 2 or 5 can be"),
    ("a first that begins nothing", |_, events| events[0].append_start.0 = 0, "append_start is 0, and the first event"),
    (
        "data that is no JSON",
        |_, events| events[3].data.push('}'),
        "at position 4: data is not JSON: trailing characters",
    ),
    (
        "data of many levels",
        |_, events| events[3].data = format!("{}{}", "[".repeat(121), "]".repeat(121)),
        "json_depth_max is 120",
    ),
    ("no data", |_, events| events[3].data.clear(), "at position 4: data is not JSON: EOF"),
    (
        "metadata that is no JSON",
        |_, events| events[3].metadata = "{".into(),
        "at position 4: metadata is not JSON: EOF",
    ),
    (
        "metadata of another form",
        |_, events| events[3].metadata = "{\"causation_id\":\"zzz\"}".into(),
        "at position 4: metadata has another form than that of a log",
    ),
    ("no stream", |_, events| events[3].stream_id.clear(), "at position 4: the stream id is empty"),
    ("no aggregate", |_, events| events[3].aggregate_id.clear(), "the aggregate id is empty"),
    ("no type", |_, events| events[3].event_type.clear(), "the event type is empty"),
    ("no version", |_, events| events[3].event_version.clear(), "the event version is empty"),
    ("an empty tag", |_, events| events[3].tags = vec![String::new()], "the tag is empty"),
    ("a zero byte", |_, events| events[3].stream_id.push('\0'), "the stream id \"facts\\0\" has a zero byte"),
    ("a zero byte in a tag", |_, events| events[3].tags = vec!["\0".into()], "the tag \"\\0\" has a zero byte"),
    ("a long name", |_, events| events[3].aggregate_id = "x".repeat(NAME_BYTES_MAX + 1), "name_bytes_max is 512"),
    ("a long tag", |_, events| events[3].tags = vec!["x".repeat(NAME_BYTES_MAX + 1)], "name_bytes_max is 512"),
    (
        "many tags",
        |_, events| events[3].tags = (100..=100 + TAGS_MAX).map(|n| n.to_string()).collect(),
        "tags_max is 32",
    ),
    (
        "long metadata",
        |_, events| events[3].metadata = format!("\"{}\"", "x".repeat(METADATA_BYTES_MAX)),
        "metadata_bytes_max",
    ),
    ("unsorted tags", |_, events| events[0].tags.reverse(), "at position 1: the tags are not sorted"),
    ("a tag twice", |_, events| events[3].tags = vec!["a".into(), "a".into()], "or one is there twice"),
];

#[tokio::test]
async fn an_impossible_import_is_refused_and_the_log_stays_unchanged() {
    let source = source().await;
    let whole = export(&source, 6).await;
    for (empty, _place) in logs().await {
        let before = export(&empty, 9).await;
        for (case, edit, message) in HOSTILE {
            let (mut identity, mut records) = whole.clone();
            edit(&mut identity, &mut records);
            let refused = import(&empty, identity, records).await.expect_err(case).to_string();
            assert!(refused.contains(message), "{case}: {refused}");
            check_same(&export(&empty, 9).await, &before, case);
        }
        assert_eq!(empty.append(noting("a", 1)).await.unwrap().places[0].position, Position(1), "it is as good as new");
    }
}

/// A field, and an edit of only that field.
type Fork = (&'static str, fn(&mut Recorded));

#[tokio::test]
async fn importing_another_log_or_a_fork_is_refused_with_the_first_difference() {
    let source = source().await;
    let forks: &[Fork] = &[
        ("event_id", |event| event.event_id = crewlog_mq::new_event_id()),
        ("stream_id", |event| event.stream_id.push('x')),
        ("aggregate_id", |event| event.aggregate_id.push('x')),
        ("sequence", |event| event.sequence += 1),
        ("event_type", |event| event.event_type.push('x')),
        ("event_version", |event| event.event_version.push('x')),
        ("data", |event| event.data = "{ \"n\":3}".into()),
        ("metadata", |event| event.metadata = "{}".into()),
        ("tags", |event| event.tags.push("x".into())),
    ];
    let whole = export(&source, 6).await;
    for (copy, _place) in logs().await {
        import(&copy, whole.0.clone(), whole.1.clone()).await.unwrap();
        for (field, edit) in forks {
            let (identity, mut records) = whole.clone();
            edit(&mut records[3]);
            let refused = import(&copy, identity, records).await.unwrap_err();
            let is_told = matches!(&refused, Error::Forked { position: Position(4), differs } if differs == field);
            assert!(is_told, "{field}: {refused}");
        }
        check_same(&export(&copy, 9).await, &whole, "a fork");
    }
    let (identity, mut records) = export(&source, 6).await;
    records[0].created_at.0 -= 1;
    let refused = import(&source, identity.clone(), records).await.unwrap_err();
    assert!(matches!(refused, Error::Forked { position: Position(1), differs: "created_at" }), "{refused}");
    let remade = LogIdentity { created_at: Timestamp(1), ..identity };
    let refused = import(&source, remade, everything(&source).await).await.unwrap_err();
    assert!(refused.to_string().contains("the log was made at"), "{refused}");
    for (other, _place) in logs().await {
        other.append(noting("a", 1)).await.unwrap();
        let before = export(&other, 9).await;
        let (identity, records) = export(&source, 6).await;
        let refused = import(&other, identity.clone(), records).await.unwrap_err();
        assert!(
            matches!(refused, Error::OtherLog { log, head: Position(1), import } if (log, import) == (before.0.id, identity.id)),
            "{refused}"
        );
        check_same(&export(&other, 9).await, &before, "another log");
    }
}

#[tokio::test]
async fn two_diverged_copies_cannot_be_merged() {
    let source = source().await;
    let (copy, _place) = logs().await.into_iter().next().unwrap();
    let (identity, records) = export(&source, 4).await;
    import(&copy, identity.clone(), records).await.unwrap();
    copy.append(noting("b", 4)).await.unwrap();
    let refused = import(&copy, identity, everything(&source).await).await.unwrap_err();
    assert!(matches!(refused, Error::Forked { position: Position(5), differs: "event_id" }), "{refused}");
    assert_eq!(copy.head().await.unwrap(), Position(5));
}

#[tokio::test]
async fn an_import_may_neither_end_nor_continue_inside_an_append() {
    let source = source().await;
    let (identity, records) = export(&source, 3).await;
    let refused = import(&source, identity.clone(), records).await.unwrap_err();
    assert!(
        refused.to_string().contains("at position 3: it ends in the middle of the append that begins at position 2")
    );
    let (copy, _place) = logs().await.into_iter().next().unwrap();
    import(&copy, identity.clone(), export(&source, 4).await.1).await.unwrap();
    let mut records = everything(&source).await;
    (records[4].append_start, records[4].created_at) = (Position(2), records[3].created_at);
    let refused = import(&copy, identity, records).await.unwrap_err();
    assert!(matches!(refused, Error::Forked { position: Position(5), differs: "append_start" }), "{refused}");
    assert_eq!(copy.head().await.unwrap(), Position(4));
}

#[tokio::test]
async fn an_error_among_the_records_rolls_back_the_import_and_is_returned() {
    let source = source().await;
    let (identity, records) = export(&source, 6).await;
    for (empty, _place) in logs().await {
        let before = export(&empty, 9).await;
        let broken = || Err(Error::InvalidImport { position: None, reason: "the line broke".into() });
        let records = records.clone().into_iter().map(Ok).chain(std::iter::once_with(broken));
        let refused = empty.import(identity.clone(), records).await.unwrap_err();
        assert!(refused.to_string().ends_with("the line broke"), "{refused}");
        check_same(&export(&empty, 9).await, &before, "the log");
    }
}

#[tokio::test]
async fn other_writers_wait_for_an_import_and_then_continue() {
    let source = source().await;
    let (identity, records) = export(&source, 6).await;
    let place = Place::new();
    let (importer, other) = (place.open().await, place.open().await);
    let ((inside, is_inside), (go_on, may_go_on)) = (tokio::sync::oneshot::channel(), channel::<()>());
    let mut inside = Some(inside);
    let records = records.into_iter().map(move |record| {
        if let Some(inside) = inside.take() {
            inside.send(()).expect("the test waits");
            may_go_on.recv().expect("the test goes on");
        }
        Ok(record)
    });
    let importing = tokio::spawn(async move { importer.import(identity, records).await });
    in_time("the first record", is_inside).await.unwrap();
    let appending = tokio::spawn(async move { other.append(noting("c", 7)).await.map(|appended| (appended, other)) });
    let lock = std::fs::File::options().write(true).open(place.folder.path().join("log.db-lock")).unwrap();
    assert!(matches!(lock.try_lock(), Err(std::fs::TryLockError::WouldBlock)), "an import holds the append lock");
    go_on.send(()).unwrap();
    assert_eq!(in_time("the import", importing).await.unwrap().unwrap(), imported(6, 0, 6));
    let (appended, other) = in_time("the append", appending).await.unwrap().unwrap();
    assert_eq!(appended.places[0].position, Position(7), "who waited goes on behind the import");
    check_history(&everything(&other).await);
}

/// A wall clock that stays at its beginning.
struct Stopped;

impl Clock for Stopped {
    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[tokio::test]
async fn log_time_never_runs_backwards_after_an_import_and_streams_see_the_events() {
    let source = source().await;
    let (identity, records) = export(&source, 6).await;
    let last = records[5].created_at;
    let place = Place::new();
    let options = || Options { clock: Arc::new(Stopped), ..Options::default() };
    let store = EventStore::open_with(&place.url(), options()).await.unwrap();
    let other = EventStore::open_with(&place.url(), options()).await.unwrap();
    let mut stream = Box::pin(other.follow(&Query::all(), crewlog_mq::Start::Beginning));
    import(&store, identity, records.clone()).await.unwrap();
    assert!(store.now() >= last, "who imported knows at once");
    for record in records {
        assert_eq!(in_time("an imported event", stream.next()).await.unwrap().unwrap(), record);
    }
    for store in [&other, &store] {
        assert!(store.append(noting("a", 7)).await.unwrap().created_at >= last);
    }
    check_history(&everything(&store).await);
}
