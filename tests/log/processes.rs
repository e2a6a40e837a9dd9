//! Several processes on one file, and killed processes: no acknowledged append is lost, none is torn.
//!
//! The test binary runs itself as the other processes.

use std::collections::BTreeMap;

use crewlog_mq::{Append, Appended, Error, EventStore, Expected, Metadata, NewEvent, Position, Query, Recorded};
use futures::StreamExt;
use uuid::Uuid;

use super::child::{self, Other, body, say};
use super::{Fact, Place, check_history, everything, in_time, note};

/// The body of a child process.
#[test]
#[ignore = "runs in another process"]
fn child_process_body() {
    let (role, url) = child::role();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match role.split_once(' ') {
            Some(("write", writer)) => write(&url, writer.parse().unwrap(), 0..N_APPENDS).await,
            Some(("write-on", writer)) => write(&url, writer.parse().unwrap(), 0..u64::MAX).await,
            Some(("move", folder)) => move_and_read(&url, folder).await,
            other => panic!("{other:?} is no role"),
        }
    });
}

const N_WRITERS: u64 = 4;
const N_APPENDS: u64 = 60;
const N_EVENTS: i64 = 3;

/// The `n`-th append of a writer: always the same ids, in its own aggregate and a shared one.
fn nth_append(writer: u64, n: u64) -> Append {
    let event = |index: u64| {
        let id = Uuid::from_u64_pair(writer + 1, 4 * n + index);
        note(n as i64).with_id(id)
    };
    Append::to("own", &format!("writer-{writer}"), Expected::Any, vec![event(0), event(1)]).and(
        "shared",
        "all",
        Expected::Any,
        vec![event(2)],
    )
}

/// Appends, and reports each acknowledgement on its own line.
async fn write(url: &str, writer: u64, numbers: std::ops::Range<u64>) {
    let store = EventStore::open(url).await.expect("the log opens");
    for n in numbers {
        let appended = store.append(nth_append(writer, n)).await.expect("an append of any kind is accepted");
        say(&format!("{n} {}", appended.places[0].position));
    }
}

fn start(place: &Place, role: &str, environment: &[(&str, &str)]) -> Other {
    Other::start(body!(child_process_body), role, &place.url(), environment)
}

/// The number and the first position of the next acknowledged append; none once the process has ended.
fn next(other: &mut Other) -> Option<(u64, Position)> {
    // The last line of a killed process may be truncated: then it reported nothing.
    let said = other.next()?;
    let (n, position) = said.split_once(' ')?;
    Some((n.parse().ok()?, Position(position.parse().ok()?)))
}

fn all(other: &mut Other) -> Vec<(u64, Position)> {
    std::iter::from_fn(|| next(other)).collect()
}

/// Every append is complete, and each acknowledged one is at its reported position.
fn check_appends(history: &[Recorded], acknowledged: &[(u64, u64, Position)]) {
    check_history(history);
    let mut appends: BTreeMap<Position, Vec<&Recorded>> = BTreeMap::new();
    for event in history {
        appends.entry(event.append_start).or_default().push(event);
    }
    assert!(appends.values().all(|events| events.len() as i64 == N_EVENTS), "no append is torn");
    for (writer, n, position) in acknowledged {
        let id = Uuid::from_u64_pair(writer + 1, 4 * n);
        assert!(appends.get(position).is_some_and(|events| events[0].event_id == id), "{writer}'s append {n} is lost");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_write_one_history_and_each_sees_all_of_it() {
    let place = Place::new();
    let n_all = N_WRITERS as i64 * N_APPENDS as i64 * N_EVENTS;
    let writers: Vec<_> = (0..N_WRITERS)
        .map(|writer| {
            let mut other = start(&place, &format!("write {writer}"), &[]);
            std::thread::spawn(move || {
                let told = all(&mut other);
                other.succeeds();
                told.into_iter().map(|(n, position)| (writer, n, position)).collect::<Vec<_>>()
            })
        })
        .collect();
    let store = place.open().await;
    let mut stream = store.subscribe::<Fact>(&Query::all()).unwrap();
    for expected in 1..=n_all {
        let envelope = in_time("an event of another process", stream.next()).await.unwrap().unwrap();
        assert_eq!(envelope.recorded.position, Position(expected));
    }
    let acknowledged: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    assert_eq!(acknowledged.len() as u64, N_WRITERS * N_APPENDS);
    check_appends(&everything(&store).await, &acknowledged);
}

#[tokio::test]
async fn a_process_killed_at_any_time_loses_no_acknowledged_append() {
    let place = Place::new();
    let store = place.open().await;
    let mut acknowledged = Vec::new();
    for round in 0..20u64 {
        let mut other = start(&place, &format!("write-on {round}"), &[]);
        // The scheduler decides where in its work the process is hit; the round decides how far it has come.
        for _ in 0..=(round * 37 % 23) {
            let (n, position) = next(&mut other).expect("it writes until it is killed");
            acknowledged.push((round, n, position));
        }
        other.kill();
        acknowledged.extend(all(&mut other).into_iter().map(|(n, position)| (round, n, position)));
        let history = everything(&store).await;
        check_appends(&history, &acknowledged);
        let next = store.append(nth_append(1000 + round, 0)).await.unwrap();
        assert_eq!(next.places[0].position.0, history.len() as i64 + 1, "the log goes on at its head");
        acknowledged.push((1000 + round, 0, next.places[0].position));
    }
}

/// Opens a log by a relative path, changes the directory, and must still use the same log.
async fn move_and_read(url: &str, folder: &str) {
    let (home, name) = url.rsplit_once('/').expect("the path is absolute");
    std::env::set_current_dir(home).expect("it is a folder");
    let store = EventStore::open(name).await.expect("the log opens");
    std::env::set_current_dir(folder).expect("it is a folder");
    store.append(nth_append(0, 0)).await.expect("an append of any kind is accepted");
    assert_eq!(everything(&store).await.len() as i64, N_EVENTS);
}

#[tokio::test]
async fn a_log_opened_by_relative_path_survives_a_change_of_directory() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let other = start(&place, &format!("move {}", super::text(elsewhere.folder.path())), &[]);
    other.succeeds();
    assert_eq!(everything(&place.open().await).await.len() as i64, N_EVENTS);
}

/// The second append has position 4.
#[cfg(feature = "faults")]
#[tokio::test]
async fn a_process_that_dies_during_a_commit_leaves_all_of_it_or_none() {
    for (order, n_left) in [("before:4", N_EVENTS), ("after:4", 2 * N_EVENTS)] {
        let place = Place::new();
        let mut other = start(&place, "write-on 0", &[("CREWLOG_KILL", order)]);
        assert_eq!(all(&mut other), [(0, Position(1))], "the second append is acknowledged to nobody");
        other.fails();
        let store = place.open().await;
        let history = everything(&store).await;
        assert_eq!(history.len() as i64, n_left, "{order}");
        check_appends(&history, &[(0, 0, Position(1))]);
        let retried = store.append(nth_append(0, 1)).await.unwrap();
        assert_eq!((retried.places[0].position, retried.repeated), (Position(4), order.starts_with("after")));
        check_appends(&everything(&store).await, &[(0, 0, Position(1)), (0, 1, Position(4))]);
    }
}

/// A process stopped in the middle of a commit holds the append lock.
#[tokio::test]
async fn a_held_append_lock_times_out_and_appends_work_after_its_release() {
    let place = Place::new();
    let store = place.open().await;
    let lock = place.hold_commits();
    let refused = append_one(&store, "kept").await.expect_err("the lock is kept");
    assert!(matches!(refused, Error::Locked { .. }), "{refused:?}");
    let reader = place.open().await;
    assert_eq!(reader.head().await.expect("readers wait for nobody"), Position(0));
    lock.unlock().expect("it is held");
    append_one(&reader, "another store").await.expect("who gave up waiting does not hold the lock");
    append_one(&store, "the same store").await.expect("the lock is free");
}

async fn append_one(store: &EventStore, aggregate_id: &str) -> Result<Appended, Error> {
    let event = NewEvent::from_json("Made", "1.0", "{}".into(), &Metadata::default())?;
    store.append(Append::to("test", aggregate_id, Expected::Any, vec![event])).await
}
