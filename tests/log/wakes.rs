//! Wake-ups of followers after commits: from memory in one process, by the doorbell between processes, and by polling
//! if every hint is lost.

use std::path::PathBuf;

use crewlog_mq::{Append, Envelope, Error, EventStore, EventStream, Expected, Position, Query, Start};
use futures::{FutureExt, StreamExt};

use super::{Fact, Place, everything, in_time, note, noting};

/// More than could arrive in time if polling found each of them.
const N_PROMPT: i64 = 400;

async fn next(stream: &mut EventStream<Fact>) -> Result<Envelope<Fact>, Error> {
    in_time("the next event", stream.next()).await.expect("a stream has no end")
}

fn bell(place: &Place) -> PathBuf {
    place.folder.path().join("log.db-bell")
}

/// Appends one after another, each after the previous one has arrived.
async fn pass(writer: &EventStore, stream: &mut EventStream<Fact>, n: std::ops::Range<i64>) {
    for n in n {
        writer.append(noting("a", n)).await.expect("an append of any kind is accepted");
        assert_eq!(next(stream).await.expect("it can be read").event, Fact::Noted { n });
    }
}

#[tokio::test]
async fn the_doorbell_wakes_another_process_before_its_next_poll() {
    let place = Place::new();
    let (writer, reader) = (place.open().await, place.open().await);
    let mut stream = reader.subscribe::<Fact>(&Query::all()).unwrap();
    in_time("what is found by looking would not", pass(&writer, &mut stream, 0..N_PROMPT)).await;
    assert!(bell(&place).is_file());
}

#[tokio::test]
async fn a_log_without_followers_has_no_doorbell() {
    let place = Place::new();
    let store = place.open().await;
    store.append(noting("a", 1)).await.unwrap();
    assert!(!bell(&place).exists());
}

#[tokio::test]
async fn a_removed_doorbell_is_recreated() {
    let place = Place::new();
    let (writer, reader) = (place.open().await, place.open().await);
    let mut stream = reader.subscribe::<Fact>(&Query::all()).unwrap();
    pass(&writer, &mut stream, 0..5).await;
    for round in 1..=3 {
        std::fs::remove_file(bell(&place)).unwrap();
        pass(&writer, &mut stream, 1000 * round..1000 * round + 5).await;
        in_time("a new bell", async {
            while !bell(&place).exists() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    in_time("what is found by looking would not", pass(&writer, &mut stream, 0..N_PROMPT)).await;
}

/// A folder in its place can neither be written nor watched as a doorbell.
#[tokio::test]
async fn polling_finds_every_event_when_all_hints_are_lost() {
    let place = Place::new();
    std::fs::create_dir(bell(&place)).unwrap();
    let (writer, reader) = (place.open().await, place.open().await);
    let mut stream = reader.subscribe::<Fact>(&Query::all()).unwrap();
    pass(&writer, &mut stream, 0..8).await;
}

#[tokio::test]
async fn a_spurious_or_corrupt_doorbell_is_harmless() {
    let place = Place::new();
    let (writer, reader) = (place.open().await, place.open().await);
    let mut stream = reader.subscribe::<Fact>(&Query::all()).unwrap();
    pass(&writer, &mut stream, 0..3).await;
    for said in [&b""[..], b"x", &i64::MAX.to_le_bytes(), &i64::MIN.to_le_bytes(), &[0xff; 4096]] {
        std::fs::write(bell(&place), said).unwrap();
        assert!(stream.next().now_or_never().is_none(), "nothing comes that was not written");
        pass(&writer, &mut stream, 3..6).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_followers_in_two_processes_receive_every_event() {
    let place = Place::new();
    let stores = [place.open().await, place.open().await];
    let follow = |n: usize| {
        let mut stream = stores[n % 2].subscribe_from::<Fact>(&Query::all(), Start::Beginning).unwrap();
        tokio::spawn(async move {
            let mut positions = Vec::new();
            for _ in 0..200 {
                positions.push(next(&mut stream).await.expect("it can be read").recorded.position.0);
            }
            positions
        })
    };
    let followers: Vec<_> = (0..100).map(follow).collect();
    let write = |store: EventStore| async move {
        for n in 0..100 {
            store.append(noting("a", n)).await.expect("an append of any kind is accepted");
        }
    };
    tokio::join!(write(stores[0].clone()), write(stores[1].clone()));
    for follower in followers {
        assert_eq!(follower.await.unwrap(), (1..=200).collect::<Vec<_>>());
    }
}

/// A live event from memory equals the stored one.
#[tokio::test]
async fn a_live_event_equals_the_stored_one() {
    let place = Place::new();
    let (store, other) = (place.open().await, place.open().await);
    let mut live = Box::pin(store.follow(&Query::all(), Start::Beginning));
    let mut told = Vec::new();
    for n in 0..6 {
        let writer = if n % 3 == 2 { &other } else { &store };
        let first = note(n).with_tags(["b", "a"]);
        let append = Append::to("facts", "a", Expected::Any, vec![first, note(n)]).and(
            "facts",
            "b",
            Expected::Any,
            vec![note(n)],
        );
        writer.append(append.clone()).await.unwrap();
        // A repeated append and a refusal are not events.
        assert!(writer.append(append).await.unwrap().repeated);
        let refused = Append::to("facts", "a", Expected::NoStream, vec![note(n)]);
        writer.append(refused).await.unwrap_err();
        for _ in 0..3 {
            told.push(in_time("an event", live.next()).await.unwrap().unwrap());
        }
    }
    assert_eq!(told, everything(&store).await);
}

/// The table of events is renamed and restored, so polling fails in between although the file is fine.
#[tokio::test]
async fn a_stream_reports_a_read_error_once_and_recovers() {
    let place = Place::new();
    let (writer, reader) = (place.open().await, place.open().await);
    let mut stream = reader.subscribe::<Fact>(&Query::all()).unwrap();
    pass(&writer, &mut stream, 0..3).await;
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON").unwrap();
    connection.execute_batch("ALTER TABLE events RENAME TO hidden").unwrap();
    let failed = next(&mut stream).await.expect_err("there are no events to look at");
    assert!(matches!(failed, Error::Storage { .. }), "{failed:?}");
    connection.execute_batch("ALTER TABLE hidden RENAME TO events").unwrap();
    let writer = place.open().await;
    writer.append(noting("a", 3)).await.unwrap();
    let came = in_time("an event after the trouble", async {
        loop {
            match stream.next().await.expect("a stream has no end") {
                Ok(envelope) => return envelope,
                Err(error) => assert!(matches!(error, Error::Storage { .. }), "{error:?}"),
            }
        }
    });
    assert_eq!(came.await.recorded.position, Position(4));
}

#[tokio::test]
async fn a_lock_held_by_others_does_not_delay_followers() {
    let place = Place::new();
    let (writer, reader) = (place.open().await, place.open().await);
    let mut stream = reader.subscribe::<Fact>(&Query::all()).unwrap();
    pass(&writer, &mut stream, 0..3).await;
    let lock = place.hold_commits();
    let waiting = tokio::spawn({
        let reader = reader.clone();
        async move { reader.append(noting("a", 9)).await }
    });
    // While the reader's own writer waits, its followers wait too, and then receive everything.
    assert!(stream.next().now_or_never().is_none(), "nothing was written");
    lock.unlock().unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(next(&mut stream).await.unwrap().event, Fact::Noted { n: 9 });
}
