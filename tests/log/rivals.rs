//! Badly behaved or many processes on the same file: one that checkpoints, one that reads for long, one that takes
//! SQLite's lock without our append lock, and thirty-two that append.

use std::time::{Duration, Instant};

use crewlog_mq::{Append, Appended, Error, EventStore, Expected, Position};
use rusqlite::Connection;
use uuid::Uuid;

use super::child::{self, Other, body, n_rounds, say};
use super::{Place, check_history, everything, in_time, note};

/// The body of another process. The badly behaved ones run until killed.
#[test]
#[ignore = "runs in another process"]
fn rival_process_body() {
    let (role, url) = child::role();
    let connect = || {
        let connection = Connection::open(&url).expect("it is a database");
        connection.busy_timeout(Duration::from_secs(30)).expect("it can be set");
        connection
    };
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("checkpoint", _) => checkpoint(&connect()),
        ("read", _) => {
            let connection = connect();
            connection.execute_batch("BEGIN; SELECT count(*) FROM events").expect("it can be read");
            say("reading");
            loop {
                std::thread::park();
            }
        }
        ("storm", _) => storm(&connect()),
        ("append", numbers) => append_some(&url, numbers),
        other => panic!("{other:?} is no role"),
    }
}

/// Does not wait for readers: waiting would block all writers for as long.
fn checkpoint(connection: &Connection) {
    connection.busy_timeout(Duration::ZERO).expect("it can be set");
    loop {
        let busy: i64 =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).expect("it is tried");
        if busy == 0 {
            say("checkpointed");
        }
    }
}

/// Takes the lock for a millisecond and releases it for a moment, over and over.
fn storm(connection: &Connection) {
    loop {
        connection.execute_batch("BEGIN IMMEDIATE").expect("its turn comes");
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1) {
            std::thread::yield_now();
        }
        connection.execute_batch("COMMIT").expect("nothing was changed");
        say("stormed");
    }
}

fn append_some(url: &str, numbers: &str) {
    let (writer, n_appends) = numbers.split_once(' ').expect("a writer and how many appends");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it is the test's own");
    runtime.block_on(async {
        let store = EventStore::open(url).await.expect("the log opens");
        for n in 0..n_appends.parse().expect("it is a number") {
            let appended = append(&store, writer.parse().expect("it is a number"), n).await;
            say(&appended.expect("an append of any kind is accepted").last().to_string());
        }
    });
}

fn start(place: &Place, role: &str) -> Other {
    Other::start(body!(rival_process_body), role, &place.url(), &[])
}

/// The `n`-th append of a writer, of two events.
async fn append(store: &EventStore, writer: u64, n: u64) -> Result<Appended, Error> {
    let events = (0..2).map(|index| note(n as i64).with_id(Uuid::from_u64_pair(writer + 1, 2 * n + index)));
    store.append(Append::to("facts", &format!("writer-{writer}"), Expected::Any, events.collect())).await
}

/// Four writers of one process append while the other processes run.
async fn write(store: &EventStore, n_appends: u64) {
    let writers = (0..4).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..n_appends {
                // A writer that waited too long gets an error, and may retry.
                while let Err(error) = append(&store, writer, n).await {
                    assert!(matches!(error, Error::Locked { .. }), "{error:?}");
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        in_time("the end of a writer", writer).await.expect("no writer panics");
    }
}

async fn check_all(store: &EventStore, n_events: u64) {
    let history = everything(store).await;
    check_history(&history);
    assert_eq!(history.len() as u64, n_events);
    assert!(history.chunks(2).all(|append| append[0].append_start == append[1].append_start), "no append is torn");
    let checked = store.check().await.expect("it can be read");
    assert_eq!((checked.findings, checked.more), (vec![], false));
}

#[tokio::test]
async fn a_process_that_constantly_checkpoints_loses_no_events() {
    let place = Place::new();
    let store = place.open().await;
    let mut other = start(&place, "checkpoint");
    let n_appends = n_rounds(25);
    write(&store, n_appends).await;
    assert_eq!(other.next().as_deref(), Some("checkpointed"));
    check_all(&store, 8 * n_appends).await;
}

#[tokio::test]
async fn a_long_reading_process_blocks_no_writer() {
    let place = Place::new();
    let store = place.open().await;
    append(&store, 9, 0).await.unwrap();
    let mut reader = start(&place, "read");
    assert_eq!(reader.next().as_deref(), Some("reading"));
    let _checkpointer = start(&place, "checkpoint");
    let n_appends = n_rounds(25);
    write(&store, n_appends).await;
    check_all(&store, 8 * n_appends + 2).await;
    reader.kill();
}

#[tokio::test]
async fn a_process_that_keeps_taking_the_sqlite_lock_makes_no_append_fail() {
    let place = Place::new();
    let store = place.open().await;
    let mut other = start(&place, "storm");
    assert_eq!(other.next().as_deref(), Some("stormed"));
    let n_appends = n_rounds(5);
    write(&store, n_appends).await;
    assert_eq!(other.next().as_deref(), Some("stormed"));
    check_all(&store, 8 * n_appends).await;
}

#[tokio::test]
async fn thirty_two_processes_append_to_one_log_and_nothing_is_lost() {
    const N_PROCESSES: u64 = 32;
    let place = Place::new();
    let store = place.open().await;
    let n_appends = n_rounds(4);
    let others: Vec<_> =
        (0..N_PROCESSES).map(|writer| start(&place, &format!("append {writer} {n_appends}"))).collect();
    for (writer, other) in others.into_iter().enumerate() {
        let told: Vec<_> = other.succeeds().iter().map(|position| Position(position.parse().unwrap())).collect();
        let own = everything(&store).await.into_iter().filter(|event| event.aggregate_id == format!("writer-{writer}"));
        let lasts: Vec<_> = own.map(|event| event.position).skip(1).step_by(2).collect();
        assert_eq!(told, lasts, "each was told where its appends stand, in its own order");
        assert_eq!(told.len() as u64, n_appends);
    }
    check_all(&store, N_PROCESSES * n_appends * 2).await;
}
