//! The findings of a check: none in a sound log, and each inconsistency that no crewlog can write.

use crewlog_mq::{Append, Checked, EventStore, Expected, FINDINGS_MAX, Finding, Metadata, NewEvent, Position};
use rusqlite::Connection;
use uuid::Uuid;

use super::{Place, everything, logs, note, notes, noting};

/// Five events: two of one append with tags, and three of which the last names the first as its cause.
async fn fill(store: &EventStore) {
    let tagged = vec![note(1).with_tags(["s", "t"]), note(2).with_tags(["t"])];
    store.append(Append::to("facts", "a", Expected::Any, tagged)).await.expect("an append of any kind is accepted");
    for n in 3..5 {
        store.append(noting("b", n)).await.expect("an append of any kind is accepted");
    }
    let cause = everything(store).await[0].event_id;
    let metadata = Metadata { causation_id: Some(cause), ..Metadata::default() };
    let event = NewEvent::from_json("Noted", "1.0", "{\"n\":5}".into(), &metadata).expect("it is JSON");
    store
        .append(Append::to("facts", "a", Expected::Any, vec![event]))
        .await
        .expect("an append of any kind is accepted");
}

fn sound(n_events: usize) -> Checked {
    Checked { n_events, findings: vec![], more: false, n_foreign_causes: 0, foreign_causes: vec![] }
}

#[tokio::test]
async fn a_cause_in_another_log_is_information_and_no_finding() {
    for (store, _place) in logs().await {
        fill(&store).await;
        let metadata = Metadata { causation_id: Some(Uuid::max()), ..Metadata::default() };
        let new = |n: usize| NewEvent::from_json("Noted", "1.0", n.to_string(), &metadata).expect("it is JSON");
        let events = (0..=FINDINGS_MAX).map(new).collect();
        store.append(Append::to("facts", "b", Expected::Any, events)).await.expect("an append of any kind is accepted");
        let foreign_causes: Vec<_> = (6..).map(Position).take(FINDINGS_MAX).collect();
        let expected = Checked { n_foreign_causes: FINDINGS_MAX + 1, foreign_causes, ..sound(FINDINGS_MAX + 6) };
        assert_eq!(store.check().await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_normally_written_log_has_no_findings() {
    for (store, _place) in logs().await {
        assert_eq!(store.check().await.unwrap(), sound(0));
        fill(&store).await;
        assert_eq!(store.check().await.unwrap(), sound(5));
        store.append(noting("b", 6)).await.expect("a check holds nobody up");
    }
}

/// The findings of the check after a statement ran directly on a good log.
async fn check_after(sql: &str) -> Vec<(Option<i64>, String)> {
    let place = Place::new();
    fill(&place.open().await).await;
    let connection = Connection::open(place.path()).expect("it is a database");
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;").expect("it is taken");
    connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let checked = place.open().await.check().await.expect("what is wrong with a log is no error");
    assert!(!checked.more);
    let place_of = |finding: Finding| (finding.position.map(|position| position.0), finding.what);
    checked.findings.into_iter().map(place_of).collect()
}

/// A statement, and the expected position and finding.
type Case = (&'static str, &'static [(Option<i64>, &'static str)]);

const CASES: &[Case] = &[
    (
        "DELETE FROM events WHERE position = 3",
        &[
            (Some(4), "the sequence in its aggregate is 2, and before it comes 0"),
            (Some(4), "position 3 is missing before it"),
        ],
    ),
    ("UPDATE events SET position = 9 WHERE position = 5", &[(Some(9), "position 5 is missing before it")]),
    (
        "UPDATE events SET position = 9223372036854775807, append_start = -9223372036854775808 WHERE position = 5",
        &[(Some(i64::MAX), "position 5 is missing before it")],
    ),
    (
        "UPDATE events SET append_start = -9223372036854775808, created_at = 1",
        &[
            (Some(1), "append_start is -9223372036854775808, and the first event begins its append"),
            (Some(2), "append_events_max is 400000"),
            (Some(3), "append_events_max is 400000"),
            (Some(4), "append_events_max is 400000"),
            (Some(5), "append_events_max is 400000"),
        ],
    ),
    (
        "UPDATE events SET sequence = 7 WHERE position = 4",
        &[(Some(4), "the sequence in its aggregate is 7, and before it comes 1")],
    ),
    (
        "UPDATE events SET append_start = 1 WHERE position = 4",
        &[(Some(4), "append_start is 1, and only 3 or 4 can be")],
    ),
    (
        "UPDATE events SET append_start = 0 WHERE position = 1; UPDATE events SET append_start = 0 WHERE position = 2",
        &[(Some(1), "append_start is 0, and the first event begins its append")],
    ),
    ("UPDATE events SET created_at = 1 WHERE position = 4", &[(Some(4), "created_at runs backwards, from ")]),
    ("DELETE FROM tags WHERE tag = 's'", &[(Some(1), "the event has tag s, and the index of tags has it not")]),
    ("INSERT INTO tags VALUES ('u', 2)", &[(Some(2), "the index of tags has u, and the event has it not")]),
    (
        "INSERT INTO tags VALUES ('u', 77)",
        &[
            (None, "of tags names a row of events that is not there"),
            (Some(77), "the index of tags has u, and the event has it not"),
        ],
    ),
    ("UPDATE events SET tags = '[\"t\",\"s\"]' WHERE position = 1", &[(Some(1), "the tags are not sorted")]),
    (
        "UPDATE events SET tags = '[' WHERE position = 2",
        &[(Some(2), "the index of tags has t, and the event has it not"), (Some(2), "the event cannot be read: ")],
    ),
    ("UPDATE events SET event_id = x'0102' WHERE position = 2", &[(Some(2), "the event cannot be read: ")]),
    ("UPDATE events SET data = '{' WHERE position = 2", &[(Some(2), "data is not JSON: EOF")]),
    ("UPDATE events SET data = CAST(x'22ff22' AS TEXT) WHERE position = 2", &[(Some(2), "the event cannot be read: ")]),
    ("UPDATE events SET metadata = '' WHERE position = 2", &[(Some(2), "metadata is not JSON: EOF")]),
    (
        "UPDATE events SET event_type = '' WHERE position = 2",
        &[(Some(2), "the kind is facts/Noted, and not facts/"), (Some(2), "the event type is empty")],
    ),
    (
        "UPDATE events SET kind = 9 WHERE position = 3",
        &[
            (Some(3), "a row of events names a row of kinds that is not there"),
            (Some(3), "the kind is none, and not facts/Noted"),
        ],
    ),
    (
        "UPDATE events SET correlation_id = zeroblob(16) WHERE position = 2",
        &[(Some(2), "correlation and causation have other ids than the metadata")],
    ),
    (
        "UPDATE events SET causation_id = NULL WHERE position = 5",
        &[(Some(5), "correlation and causation have other ids than the metadata")],
    ),
    ("INSERT INTO kinds VALUES (7, 'facts', 'Gone')", &[(None, "kind facts/Gone has no event")]),
    ("INSERT INTO cells VALUES ('leases', 'a', 0, '', NULL)", &[(None, "cell leases/a has version 0")]),
    ("INSERT INTO cells VALUES ('', 'a', 1, '', NULL)", &[(None, "cell /a has no whole name")]),
    (
        "CREATE TRIGGER later AFTER INSERT ON events BEGIN SELECT 1; END; CREATE TABLE mine (a); CREATE VIEW v AS SELECT 1",
        &[(None, "there is a trigger later, and no log has one")],
    ),
    ("DROP INDEX events_by_kind", &[(None, "the index events_by_kind is missing")]),
    (
        "DROP VIEW recorded_events; CREATE VIEW recorded_events AS SELECT 1 AS position",
        &[(None, "the view recorded_events is another than a log has")],
    ),
    ("DROP TABLE tags", &[(None, "the table tags is missing")]),
    (
        "UPDATE events SET event_type = 'T' || char(0) WHERE position = 2",
        &[(Some(2), "the kind is facts/Noted, and not facts/T"), (Some(2), "the event type \"T\\0\" has a zero byte")],
    ),
    (
        "UPDATE events SET created_at = -1 WHERE position = 3",
        &[(Some(3), "created_at is -1, and log time is from 1970")],
    ),
    (
        "INSERT INTO aggregates (stream_id, aggregate_id) VALUES ('facts', 'z')",
        &[(None, "aggregate facts/z has no event")],
    ),
    (
        "UPDATE events SET aggregate = 99 WHERE position = 3; UPDATE events SET sequence = 1 WHERE position = 4",
        &[
            (Some(3), "a row of events names a row of aggregates that is not there"),
            (Some(3), "the event cannot be read: "),
        ],
    ),
    (
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'event_type     TEXT    NOT NULL', \
          'event_type     TEXT    NOT NULL CHECK (position != 3)') WHERE name = 'events'",
        &[(None, "the table events is another than a log has"), (None, "CHECK constraint failed in events")],
    ),
];

#[tokio::test]
async fn each_inconsistency_is_found_with_its_position() {
    for (sql, expected) in CASES {
        let findings = check_after(sql).await;
        let is_expected = findings.len() == expected.len()
            && findings
                .iter()
                .zip(*expected)
                .all(|(found, expected)| found.0 == expected.0 && found.1.contains(expected.1));
        assert!(is_expected, "{sql}: {findings:#?}");
    }
}

#[tokio::test]
async fn only_the_first_findings_are_listed_and_marked_as_incomplete() {
    let place = Place::new();
    let store = place.open().await;
    store.append(Append::to("facts", "a", Expected::Any, notes(1..=150))).await.unwrap();
    let connection = Connection::open(place.path()).unwrap();
    connection.execute_batch("UPDATE events SET data = '{'; INSERT INTO tags VALUES ('u', 50)").unwrap();
    let checked = store.check().await.unwrap();
    assert_eq!((checked.n_events, checked.findings.len(), checked.more), (150, FINDINGS_MAX, true));
    let positions: Vec<_> = checked.findings.iter().map(|finding| finding.position).collect();
    let expected = (1..=50).chain(50..FINDINGS_MAX as i64).map(|position| Some(Position(position)));
    assert_eq!(positions, expected.collect::<Vec<_>>());
}
