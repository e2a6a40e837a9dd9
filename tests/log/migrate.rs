//! Logs of an older form, written by the program of before, in `older/`: they go forward whole, whoever is killed.
//!
//! Their pages are small, and each stands beside the export that the program of before made of it. `unfinished` has its last
//! events in a -wal file whose last commit is cut off; `odd` has metadata in every spelling that was taken in.

use std::path::Path;
use std::process::Command;

use crewlog_mq::{Append, EventStore, Expected, Metadata, Query, Range, Recorded};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::child::{self, Chance, Other, body, n_rounds, say};
use super::{Place, check_history, everything, note, notes};

const OLDER: [&str; 4] = ["empty", "plan", "odd", "unfinished"];

/// A copy of an older log.
fn older(name: &str) -> Place {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/log/older");
    std::fs::copy(folder.join(format!("{name}.db")), place.path()).expect("it can be copied");
    let wal = folder.join(format!("{name}.db-wal"));
    if wal.exists() {
        std::fs::copy(wal, format!("{}-wal", place.url())).expect("it can be copied");
    }
    place
}

/// An older log with so many more events, each its own aggregate, and each the cause of the next.
fn older_with(n_events: i64) -> Place {
    let place = older("empty");
    let mut connection = Connection::open(place.path()).expect("it is a database");
    let transaction = connection.transaction().expect("nobody else has it");
    for n in 1..=n_events {
        let sql = "INSERT INTO aggregates (aggregate, stream_id, aggregate_id) VALUES (?1, ?2, ?3)";
        transaction.execute(sql, params![n, format!("stream-{}", n % 7), format!("aggregate-{n}")]).expect("it is new");
        insert_as_before(&transaction, n, n).expect("it is new");
    }
    transaction.commit().expect("it can be written");
    place
}

/// As the program of before writes an event.
fn insert_as_before(connection: &Connection, position: i64, aggregate: i64) -> rusqlite::Result<usize> {
    let metadata = Metadata {
        correlation_id: Some(Uuid::from_u128(position as u128 % 10)),
        causation_id: Some(Uuid::from_u128(1 << 64 | (position - 1) as u128)).filter(|_| position > 1),
        ..Metadata::default()
    };
    let id = Uuid::from_u128(1 << 64 | position as u128);
    connection.execute(
        "INSERT INTO events (position, event_id, aggregate, sequence, event_type, event_version, data, metadata, tags, \
         created_at, append_start) VALUES (?1, ?2, ?3, 1, 'Noted', '1.0', '{\"n\":1}', ?4, '[]', 7, ?1)",
        params![position, id.as_bytes(), aggregate, serde_json::to_string(&metadata).expect("it is JSON")],
    )
}

fn export(place: &Place) -> String {
    let crewlog = Command::new(env!("CARGO_BIN_EXE_crewlog")).args(["--store", &place.url(), "export"]).output();
    let exported = crewlog.expect("the program runs");
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    String::from_utf8(exported.stdout).expect("it is UTF-8")
}

async fn check_sound(store: &EventStore) {
    let checked = store.check().await.expect("it can be read");
    assert_eq!((checked.findings, checked.more), (vec![], false));
}

#[tokio::test]
async fn a_log_of_the_program_of_before_is_exported_as_it_was() {
    for name in OLDER {
        let place = older(name);
        let before = std::fs::read_to_string(format!("tests/log/older/{name}.jsonl")).expect("it is there");
        let after = export(&place);
        assert!(after == before, "{name}");
        assert_eq!(after.lines().count() > 1, name != "empty", "{name}");
        check_sound(&place.open().await).await;
        assert!(export(&place) == before, "{name}, once more");
    }
}

#[tokio::test]
async fn queries_of_a_migrated_log_find_what_a_scan_finds() {
    for place in OLDER.map(older).into_iter().chain([older_with(400)]) {
        let store = place.open().await;
        // So that the range is long enough for an index.
        store.append(Append::to("filling", "a", Expected::Any, notes(0..400))).await.expect("it goes on");
        let all = everything(&store).await;
        check_history(&all);
        let ids = |event: &Recorded| event.metadata().expect("it is in the form of metadata");
        for event in &all {
            let Metadata { correlation_id, causation_id, .. } = ids(event);
            let queries = [
                Query::stream(&event.stream_id),
                Query::stream(&event.stream_id).of_type(&event.event_type),
                Query { correlation_id, ..Query::all() },
                Query { causation_id, ..Query::all() },
            ];
            if event.stream_id == "filling" {
                continue;
            }
            for query in queries {
                let found = store.read(&query, Range::default(), 1000).await.expect("it can be read").events;
                let expected = all.iter().filter(|other| {
                    (query.stream_id.is_empty() || query.stream_id == other.stream_id)
                        && query.event_type.as_ref().is_none_or(|wanted| *wanted == other.event_type)
                        && query.correlation_id.is_none_or(|id| ids(other).correlation_id == Some(id))
                        && query.causation_id.is_none_or(|id| ids(other).causation_id == Some(id))
                });
                assert!(found.iter().eq(expected), "{query:?}");
            }
        }
        check_sound(&store).await;
    }
}

/// The body of another process, which opens a log; in the run of the tests themselves it does nothing.
#[test]
fn opens_a_log() {
    let Some((_, url)) = child::role() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        say("opening");
        let store = EventStore::open(&url).await.expect("the log opens");
        say(&store.head().await.expect("it can be read").0.to_string());
    });
}

#[tokio::test]
async fn a_migration_that_is_killed_anywhere_is_made_by_the_next_who_opens() {
    const N_EVENTS: i64 = 500;
    let pattern = older_with(N_EVENTS);
    let mut chance = Chance::new();
    let orders: &[(&str, &str)] = if cfg!(feature = "faults") { &[("CREWLOG_KILL", "migrated")] } else { &[] };
    for round in 0..n_rounds(10) {
        let place = Place::new();
        std::fs::copy(pattern.path(), place.path()).expect("it can be copied");
        // One dies when all is written and nothing committed, the others anywhere.
        let environment = if round == 0 { orders } else { &[] };
        let mut other = Other::start(body!(opens_a_log), "open", &place.url(), environment);
        assert_eq!(other.next().as_deref(), Some("opening"));
        if environment.is_empty() {
            chance.linger(30_000);
            other.kill();
        } else {
            assert_eq!(other.next(), None, "it dies before it is open");
        }
        drop(other);
        let store = place.open().await;
        assert_eq!(everything(&store).await.len() as i64, N_EVENTS);
        check_sound(&store).await;
    }
}

#[tokio::test]
async fn several_processes_migrate_one_log_at_once() {
    let place = older_with(300);
    let others = [(); 4].map(|()| Other::start(body!(opens_a_log), "open", &place.url(), &[]));
    for other in others {
        assert_eq!(other.succeeds(), ["opening", "300"]);
    }
    check_sound(&place.open().await).await;
}

/// It has its statement prepared, and writes no kinds.
#[tokio::test]
async fn a_program_of_before_that_still_has_the_log_open_is_refused_and_reads_on() {
    let place = older_with(1);
    let before = Connection::open(place.path()).expect("it is a database");
    let store = place.open().await;
    let refused = insert_as_before(&before, 2, 1).expect_err("it writes no kinds").to_string();
    assert!(refused.contains("the log was brought to a newer form, end this older program"), "{refused}");
    let n_events: i64 = before.query_row("SELECT count(*) FROM recorded_events", [], |row| row.get(0)).unwrap();
    assert_eq!(n_events, 1);
    store.append(Append::to("facts", "a", Expected::Any, vec![note(1)])).await.expect("the log goes on");
    check_sound(&store).await;
}

#[tokio::test]
async fn what_a_program_of_before_is_just_writing_is_waited_for() {
    let place = older_with(2);
    drop(Connection::open(place.path()));
    std::fs::write(place.folder.path().join("log.db-lock"), "").unwrap();
    let lock = place.hold_commits();
    let before = Connection::open(place.path()).expect("it is a database");
    before.execute_batch("BEGIN IMMEDIATE").unwrap();
    let url = place.url();
    let mut other = Other::start(body!(opens_a_log), "open", &url, &[]);
    assert_eq!(other.next().as_deref(), Some("opening"));
    before.execute("INSERT INTO aggregates VALUES (3, 'stream-3', 'late')", []).unwrap();
    insert_as_before(&before, 3, 3).expect("nothing is migrated yet");
    before.execute_batch("COMMIT").unwrap();
    lock.unlock().unwrap();
    assert_eq!(other.succeeds(), ["3"]);
    check_sound(&place.open().await).await;
}
