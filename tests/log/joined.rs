//! Appends joined with a caller's own SQL: both or neither, and no harm to the log.

use crewlog_mq::{Append, Error, EventStore, Expected, JOINED_TIME_MAX, JoinedError, Options, Position, Query, Sqlite};
use futures::StreamExt;
use rusqlite::Transaction;

use super::{Fact, Place, check_history, everything, in_time, note, noting};

/// A log and its backend, in a file and in memory.
async fn logs() -> [(Sqlite, EventStore, Option<Place>); 2] {
    let place = Place::new();
    let on_disk = Sqlite::open(&place.path(), Options::default()).await.expect("the log opens");
    let in_memory = Sqlite::in_memory(Options::default()).await.expect("a log in memory");
    let store = |sqlite: &Sqlite| EventStore::on(sqlite.clone());
    let (first, second) = (store(&on_disk), store(&in_memory));
    [(on_disk, first, Some(place)), (in_memory, second, None)]
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT";

fn take_one(connection: &Transaction<'_>) -> rusqlite::Result<i64> {
    connection.execute_batch(TABLE)?;
    let sql = "INSERT INTO stock VALUES ('tea', 1) ON CONFLICT (item) DO UPDATE SET n = n + 1 RETURNING n";
    connection.query_row(sql, [], |row| row.get(0))
}

async fn n_taken(sqlite: &Sqlite) -> i64 {
    let look = |connection: &Transaction<'_>| {
        connection.execute_batch(TABLE)?;
        connection.query_row("SELECT coalesce(sum(n), 0) FROM stock", [], |row| row.get(0))
    };
    // It is refused, so that the query appends no event.
    let (seen, found) = std::sync::mpsc::channel();
    let look = move |connection: &Transaction<'_>| look(connection).map(|n: i64| seen.send(n));
    let append = Append::to("looks", "none", Expected::Sequence(7), vec![note(0)]);
    sqlite.append_with(append, look).await.expect_err("it has no event 7");
    found.recv().expect("it looked")
}

#[tokio::test]
async fn an_append_and_a_callers_sql_commit_together_and_wake_followers() {
    for (sqlite, store, _place) in logs().await {
        let mut stream = store.subscribe::<Fact>(&Query::all()).unwrap();
        for n in 1..=3 {
            let (appended, taken) = sqlite.append_with(noting("a", n), take_one).await.unwrap();
            assert_eq!((taken, appended.last(), appended.places[0].sequence), (n, Position(2 * n - 1), 2 * n - 1));
            store.append(noting("a", -n)).await.unwrap();
            for expected in [n, -n] {
                let envelope = in_time("an event", stream.next()).await.unwrap().unwrap();
                assert_eq!(envelope.event, Fact::Noted { n: expected });
            }
        }
        check_history(&everything(&store).await);
        assert_eq!(n_taken(&sqlite).await, 3);
    }
}

#[tokio::test]
async fn failed_caller_sql_or_a_refused_append_rolls_back_both() {
    for (sqlite, store, _place) in logs().await {
        sqlite.append_with(noting("a", 1), take_one).await.unwrap();
        let failing = |connection: &Transaction<'_>| {
            take_one(connection).expect("it can be taken");
            Err::<(), _>("none is left")
        };
        let failed = sqlite.append_with(noting("a", 2), failing).await.expect_err("it fails");
        assert!(matches!(failed, JoinedError::Work("none is left")), "{failed:?}");
        let expecting = Append::to("facts", "a", Expected::NoStream, vec![note(2)]);
        let refused = sqlite.append_with(expecting, take_one).await.expect_err("it has an event");
        assert!(matches!(refused, JoinedError::Store(Error::SequenceMismatch { actual: 1, .. })), "{refused:?}");
        assert_eq!((n_taken(&sqlite).await, store.head().await.unwrap()), (1, Position(1)));
    }
}

#[tokio::test]
async fn panicking_caller_sql_rolls_back_and_the_log_keeps_working() {
    for (sqlite, store, _place) in logs().await {
        let other = sqlite.clone();
        let panicking = tokio::spawn(async move {
            let panic = |connection: &Transaction<'_>| -> rusqlite::Result<()> {
                take_one(connection)?;
                panic!("the caller's own")
            };
            other.append_with(noting("a", 1), panic).await.map(|_| ())
        });
        assert!(panicking.await.expect_err("it panics").is_panic());
        store.append(noting("a", 2)).await.unwrap();
        let (appended, taken) = sqlite.append_with(noting("a", 3), take_one).await.unwrap();
        assert_eq!((appended.last(), taken), (Position(2), 1));
    }
}

#[tokio::test]
async fn a_repeated_joined_append_keeps_the_first_callers_sql() {
    for (sqlite, store, _place) in logs().await {
        let append = noting("a", 1);
        let (first, _) = sqlite.append_with(append.clone(), take_one).await.unwrap();
        let (again, _) = sqlite.append_with(append.clone(), take_one).await.unwrap();
        assert_eq!((again.places, again.repeated), (first.places, true));
        assert!(store.append(append).await.unwrap().repeated);
        assert_eq!((n_taken(&sqlite).await, store.head().await.unwrap()), (1, Position(1)));
    }
}

#[tokio::test]
async fn a_callers_sql_cannot_touch_the_log_or_its_transaction() {
    let harmful = [
        "INSERT INTO cells VALUES ('a', 'b', 1, 'c', NULL)",
        "UPDATE EVENTS SET data = '{}'",
        "DELETE FROM tags",
        "DELETE FROM main.kinds",
        "UPDATE log SET format = 9",
        "DROP TABLE aggregates",
        "DROP VIEW recorded_events",
        "DROP INDEX events_by_kind",
        "ALTER TABLE events ADD COLUMN mine TEXT",
        "CREATE INDEX mine ON events (data)",
        "CREATE TRIGGER mine AFTER INSERT ON events BEGIN SELECT 1; END",
        "CREATE TABLE mine (n); CREATE TRIGGER t AFTER INSERT ON mine BEGIN DELETE FROM events; END; \
         INSERT INTO mine VALUES (1)",
        "CREATE TEMP TABLE events (position INTEGER)",
        "CREATE TEMP VIEW log AS SELECT 1",
        "ATTACH ':memory:' AS other",
        "PRAGMA synchronous = OFF",
        "PRAGMA writable_schema = ON",
        "COMMIT",
        "ROLLBACK",
        "PRAGMA user_version = 0",
    ];
    for (sqlite, store, _place) in logs().await {
        store.append(Append::to("facts", "a", Expected::Any, vec![note(1).with_tags(["t"])])).await.unwrap();
        for sql in harmful {
            let harm = move |connection: &Transaction<'_>| connection.execute_batch(sql);
            let refused = sqlite.append_with(noting("a", 2), harm).await.expect_err(sql);
            assert!(
                matches!(&refused, JoinedError::Work(error) if error.to_string().contains("not authorized")),
                "{sql}: {refused}"
            );
        }
        assert_eq!(everything(&store).await.len(), 1);
        assert_eq!(store.check().await.unwrap().findings, []);
        sqlite.append_with(noting("a", 2), take_one).await.expect("what is its own it may write");
    }
}

#[tokio::test]
async fn caller_sql_that_takes_too_long_is_interrupted() {
    let endless = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";
    for (sqlite, store, _place) in logs().await {
        let work = move |connection: &Transaction<'_>| {
            take_one(connection)?;
            connection.query_row(endless, [], |row| row.get::<_, i64>(0))
        };
        let late = sqlite.append_with(noting("a", 1), work).await.expect_err("it has no end");
        let told = late.to_string();
        assert!(told.contains(&format!("longer than {} s", JOINED_TIME_MAX.as_secs())), "{told}");
        assert_eq!((n_taken(&sqlite).await, store.head().await.unwrap()), (0, Position(0)));
    }
}

#[tokio::test]
async fn a_callers_sql_is_refused_on_a_deleted_or_replaced_log() {
    for is_replaced in [false, true] {
        for was_used in [false, true] {
            let place = Place::new();
            let sqlite = Sqlite::open(&place.path(), Options::default()).await.unwrap();
            if was_used {
                sqlite.append_with(noting("a", 1), take_one).await.unwrap();
            }
            for ending in ["", "-wal", "-shm", "-lock"] {
                let path = place.folder.path().join(format!("log.db{ending}"));
                std::fs::rename(&path, place.folder.path().join(format!("old.db{ending}"))).unwrap();
            }
            let other = if is_replaced { Some(place.open().await) } else { None };
            let refused = sqlite.append_with(noting("a", 2), take_one).await.expect_err("it is another log");
            assert!(matches!(refused, JoinedError::Store(Error::Replaced { .. })), "{refused:?}");
            match other {
                Some(other) => assert_eq!(other.head().await.unwrap(), Position(0)),
                None => assert!(!place.path().exists(), "no file is made"),
            }
        }
    }
}

#[tokio::test]
async fn caller_sql_that_ends_its_transaction_stores_nothing_even_if_it_returns_ok() {
    for (sqlite, store, _place) in logs().await {
        sqlite.append_with(noting("a", 1), take_one).await.unwrap();
        let losing = |connection: &Transaction<'_>| {
            connection.execute("INSERT OR ROLLBACK INTO stock VALUES ('tea', 7)", []).expect_err("there is tea");
            // It would run in its own transaction, if allowed.
            Ok::<_, rusqlite::Error>(connection.execute("UPDATE stock SET n = 9", []).is_ok())
        };
        let two = Append::to("facts", "a", Expected::Any, vec![note(2), note(3)]);
        let failed = sqlite.append_with(two, losing).await.expect_err("its transaction is gone");
        assert!(failed.to_string().contains("ended the transaction"), "{failed}");
        assert_eq!((n_taken(&sqlite).await, store.head().await.unwrap()), (1, Position(1)));
        let (appended, taken) = sqlite.append_with(noting("a", 2), take_one).await.unwrap();
        assert_eq!((appended.last(), taken), (Position(2), 2));
    }
}
