//! What is PostgreSQL's own: its lock, its pooler, its faults, its plans.

use crewlog_mq::{Append, Error, EventStore, Expected, Position, Query, Range, Start};
use futures::StreamExt;
use futures::future::join_all;

use super::cluster::Database;
use super::{check_history, everything, in_time, note, notes, noting};

#[tokio::test]
async fn what_is_appended_is_read_by_every_store_on_the_database() {
    let database = Database::new();
    let (store, other) = (database.open().await, database.open_pooled().await);
    let appended = store.append(Append::to("facts", "a", Expected::NoStream, notes(1..=3))).await.unwrap();
    assert_eq!(appended.last(), Position(3));
    let refused = other.append(Append::to("facts", "a", Expected::NoStream, vec![note(4)])).await.unwrap_err();
    assert!(matches!(refused, Error::SequenceMismatch { actual: 3, .. }), "{refused}");
    other.append(noting("b", 4)).await.unwrap();
    for store in [&store, &other] {
        assert_eq!(store.head().await.unwrap(), Position(4));
        check_history(&everything(store).await);
        let page = store.read(&Query::aggregate("facts", "a"), Range::default().backwards(), 2).await.unwrap();
        assert_eq!(page.events.iter().map(|event| event.position.0).collect::<Vec<_>>(), [3, 2]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_that_open_an_empty_database_at_once_share_one_log() {
    let database = Database::new();
    let openers = (0..10).map(|n| {
        let url = if n % 2 == 0 { database.url() } else { database.pooled_url() };
        tokio::spawn(async move {
            let store = EventStore::open(&url).await.unwrap();
            store.append(noting("a", n)).await.unwrap();
            store.log().await.unwrap().id
        })
    });
    let ids: Vec<_> = in_time("the openers", join_all(openers.collect::<Vec<_>>())).await;
    let ids: Vec<_> = ids.into_iter().map(Result::unwrap).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(database.open().await.head().await.unwrap(), Position(10));
}

#[tokio::test]
async fn a_stream_sees_what_another_store_commits_directly_and_through_the_pooler() {
    let database = Database::new();
    let (writer, listening, polling) = (database.open().await, database.open().await, database.open_pooled().await);
    for (n, reader) in [&listening, &polling].into_iter().enumerate() {
        let mut live = std::pin::pin!(reader.follow(&Query::all(), Start::Now));
        let first = reader.clone();
        let next = async { live.next().await.expect("a stream has no end").unwrap() };
        let write = async {
            first.head().await.unwrap();
            writer.append(noting("a", n as i64)).await.unwrap().last()
        };
        let (event, position) = in_time("the event", async { tokio::join!(next, write) }).await;
        assert_eq!(event.position, position);
    }
}
