//! The file: its settings, its schema, its identity.

use crewlog_mq::{Append, Error, EventStore, Expected, JoinedError, Options, Sqlite};
use rusqlite::Connection;

use super::{Place, everything, note, noting, text};

fn connect(place: &Place) -> Connection {
    Connection::open(place.path()).expect("it is a database")
}

#[tokio::test]
async fn the_file_is_durable_and_has_the_application_id() {
    let place = Place::new();
    let store = place.open().await;
    store.append(noting("a", 1)).await.unwrap();
    let connection = connect(&place);
    let pragma = |name: &str| {
        let value = connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0));
        value.unwrap()
    };
    assert_eq!(pragma("journal_mode"), "wal".to_owned().into());
    assert_eq!(pragma("application_id"), i64::from(u32::from_be_bytes(*b"crlg")).into());
    assert_eq!(pragma("encoding"), "UTF-8".to_owned().into());
    assert_eq!(pragma("integrity_check"), "ok".to_owned().into());
    assert!(connection.prepare("PRAGMA foreign_key_check").unwrap().query([]).unwrap().next().unwrap().is_none());
}

/// Changing the schema changes this list and needs a new migration.
#[tokio::test]
async fn the_schema_matches_the_expected_list() {
    let place = Place::new();
    place.open().await;
    let connection = connect(&place);
    let sql = "SELECT o.type || ' ' || o.name || ': ' || group_concat(c.name || iif(c.\"notnull\", '!', ''), ' ')
               FROM sqlite_schema AS o, pragma_table_info(o.name) AS c
               WHERE o.type IN ('table', 'view') GROUP BY o.name ORDER BY o.name";
    let list = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    assert_eq!(
        list(sql),
        [
            "table aggregates: aggregate stream_id! aggregate_id!",
            "table cells: space! key! version! value! held_until",
            "table events: position event_id! aggregate! sequence! event_type! event_version! data! metadata! tags! \
             created_at! append_start! kind! correlation_id causation_id",
            "table kinds: kind stream_id! event_type!",
            "table log: one id! format! created_at!",
            "view recorded_events: position event_id stream_id aggregate_id sequence event_type event_version data \
             metadata tags created_at append_start",
            "table tags: tag! position!",
        ]
    );
    let sql = "SELECT o.name || iif(i.\"unique\", ' unique ', ' ')
                      || (SELECT group_concat(name, ' ') FROM pragma_index_info(i.name))
               FROM sqlite_schema AS o, pragma_index_list(o.name) AS i
               WHERE o.type = 'table' ORDER BY 1";
    let indexes = [
        "aggregates unique stream_id aggregate_id",
        "cells unique space key",
        "events causation_id",
        "events correlation_id",
        "events kind",
        "events unique aggregate sequence",
        "events unique event_id",
        "kinds unique stream_id event_type",
        "tags unique tag position",
    ];
    assert_eq!(list(sql), indexes);
    assert_eq!(list("SELECT name FROM sqlite_schema WHERE type = 'trigger'"), [""; 0]);
}

#[tokio::test]
async fn the_view_joins_an_event_with_the_names_of_its_aggregate() {
    let place = Place::new();
    let store = place.open().await;
    let event = note(7).with_tags(["b", "a"]);
    let event_id = event.event_id();
    store.append(noting("other", 0)).await.unwrap();
    store.append(Append::to("facts", "a", Expected::Any, vec![event])).await.unwrap();
    let sql = "SELECT position, event_id, stream_id, aggregate_id, sequence, data, tags, append_start \
               FROM recorded_events WHERE position = 2";
    connect(&place)
        .query_row(sql, [], |row| {
            assert_eq!((row.get(0)?, row.get(4)?, row.get(7)?), (2i64, 1i64, 2i64));
            assert_eq!(row.get::<_, Vec<u8>>(1)?, event_id.as_bytes());
            assert_eq!((row.get::<_, String>(2)?, row.get::<_, String>(3)?), ("facts".into(), "a".into()));
            assert_eq!(
                (row.get::<_, String>(5)?, row.get::<_, String>(6)?),
                ("{\"n\":7}".into(), "[\"a\",\"b\"]".into())
            );
            Ok(())
        })
        .unwrap();
}

#[tokio::test]
async fn a_log_keeps_its_identity_and_events_across_reopening() {
    let place = Place::new();
    let store = place.open().await;
    let identity = store.log().await.unwrap();
    assert_eq!(identity.format, 2);
    for n in 0..5 {
        let store = place.open().await;
        assert_eq!(store.log().await.unwrap(), identity);
        assert_eq!(store.append(noting("a", n)).await.unwrap().places[0].sequence, n + 1);
    }
    assert_eq!(everything(&store).await.len(), 5);
    assert_ne!(Place::new().open().await.log().await.unwrap().id, identity.id);
}

#[tokio::test]
async fn every_spelling_of_a_location_opens_the_same_log() {
    let place = Place::new();
    let path = place.url();
    let identity = place.open().await.log().await.unwrap();
    for url in [path.clone(), format!("sqlite:{path}"), format!("sqlite://{path}")] {
        assert_eq!(EventStore::open(&url).await.unwrap().log().await.unwrap(), identity, "{url}");
    }
}

#[tokio::test]
async fn the_size_of_a_log_counts_its_write_ahead_log() {
    let place = Place::new();
    let store = place.open().await;
    for n in 0..50 {
        store.append(noting("a", n)).await.unwrap();
    }
    let on_disk = ["", "-wal"].map(|ending| std::fs::metadata(format!("{}{ending}", place.url())).unwrap().len());
    assert!(on_disk[1] > on_disk[0], "{on_disk:?}");
    assert_eq!(store.stats().await.unwrap().n_bytes, on_disk.iter().sum::<u64>() as i64);
    let in_memory = EventStore::in_memory().await.unwrap();
    assert!(in_memory.stats().await.unwrap().n_bytes > 0);
}

#[tokio::test]
async fn file_names_are_taken_literally() {
    let place = Place::new();
    for name in ["with space.db", "a?mode=ro", "50%20.db", "sh#arp", "ü.db", "it's.db", "-dash"] {
        let path = place.folder.path().join(name);
        let store = EventStore::open(&text(&path)).await.unwrap();
        store.append(noting("a", 1)).await.unwrap();
        assert_eq!(everything(&store).await.len(), 1, "{name}");
        assert!(path.exists(), "{name}");
    }
}

#[tokio::test]
async fn a_missing_log_is_not_created_unless_requested() {
    let place = Place::new();
    let options = || Options { create: false, ..Options::default() };
    let refusal = EventStore::open_with(&place.url(), options()).await.expect_err("there is none");
    assert!(matches!(&refusal, Error::NoLog { place: named } if *named == place.url()), "{refusal}");
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 0, "looking makes no file");
    place.open().await;
    EventStore::open_with(&place.url(), options()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_that_open_a_new_file_concurrently_create_one_log() {
    for _ in 0..5 {
        let place = Place::new();
        let openers = (0..8).map(|_| {
            let url = place.url();
            tokio::spawn(async move { EventStore::open(&url).await.unwrap().log().await.unwrap() })
        });
        let openers: Vec<_> = openers.collect();
        let mut identities = Vec::new();
        for opener in openers {
            identities.push(opener.await.unwrap().id);
        }
        identities.dedup();
        assert_eq!(identities.len(), 1);
    }
}

/// A process may die between choosing WAL mode and the first migration.
#[tokio::test]
async fn an_interrupted_creation_of_a_log_is_completed_on_the_next_open() {
    let place = Place::new();
    connect(&place).execute_batch("PRAGMA journal_mode = WAL").unwrap();
    let store = place.open().await;
    assert_eq!(store.append(noting("a", 1)).await.unwrap().places[0].sequence, 1);
}

#[tokio::test]
async fn a_closed_log_is_one_file_and_refuses_further_operations() {
    let place = Place::new();
    let store = place.open().await;
    let clone = store.clone();
    let appends = (0..100).map(|n| clone.append(noting("a", n)));
    let (appended, ()) = futures::future::join(futures::future::join_all(appends), async {
        store.append(noting("b", 1)).await.unwrap();
        store.close().await;
    })
    .await;
    let n_kept = appended.iter().filter(|outcome| outcome.is_ok()).count();
    for refused in appended.into_iter().filter_map(Result::err) {
        assert!(matches!(refused, crewlog_mq::Error::Closed), "{refused}");
    }
    store.close().await;
    assert!(matches!(store.append(noting("a", 1)).await, Err(crewlog_mq::Error::Closed)));
    assert!(matches!(store.head().await, Err(crewlog_mq::Error::Closed)));
    assert!(!place.path().with_extension("db-wal").exists(), "the -wal file is in the log");
    let alone = Place::new();
    std::fs::copy(place.path(), alone.path()).unwrap();
    assert_eq!(everything(&alone.open().await).await.len(), n_kept + 1);
}

/// Enough to start the thread that checkpoints the -wal file.
#[tokio::test]
async fn closing_closes_every_connection_and_leaves_one_file() {
    let place = Place::new();
    let sqlite = Sqlite::open(&place.path(), Options::default()).await.unwrap();
    let store = EventStore::on(sqlite.clone());
    let work = |connection: &rusqlite::Transaction<'_>| connection.execute_batch("CREATE TABLE IF NOT EXISTS mine (n)");
    sqlite.append_with(noting("a", 0), work).await.unwrap();
    let long = "x".repeat(100_000);
    for n in 1..=60 {
        let data = format!("{{\"Noted\":{{\"n\":{n}}},\"more\":\"{long}\"}}");
        let event = crewlog_mq::NewEvent::from_json("Noted", "1.0", data, &crewlog_mq::Metadata::default()).unwrap();
        store.append(Append::to("facts", "a", Expected::Any, vec![event])).await.unwrap();
    }
    store.head().await.unwrap();
    store.close().await;
    for ending in ["-wal", "-shm"] {
        assert!(!place.folder.path().join(format!("log.db{ending}")).exists(), "there is no {ending} file");
    }
    let late = sqlite.append_with(noting("a", 2), work).await.expect_err("it is closed");
    assert!(matches!(late, JoinedError::Store(Error::Closed)), "{late}");
    assert_eq!(everything(&place.open().await).await.len(), 61);
}

#[tokio::test]
async fn checking_a_deleted_log_creates_no_file() {
    let place = Place::new();
    let store = place.open().await;
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(place.folder.path().join(format!("log.db{ending}")));
    }
    let refused = store.check().await.expect_err("it is gone");
    assert!(matches!(refused, Error::Replaced { .. }), "{refused}");
    assert!(!place.path().exists());
}
