//! Closing a log while appends wait for the append lock: each is committed, or refused and absent.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

use crewlog_mq::{Error, EventStore, Query};
use futures::future::{join, join_all};

use super::{Fact, Place, check_history, everything, in_time, noting};
use crewlog_stage::cluster::{Database, execute};

const N_APPENDS: i64 = 100;

/// Closes a store while appends wait for the lock that `release` frees, and compares their answers with the log.
async fn close_under_way(store: EventStore, open_again: impl AsyncFnOnce() -> EventStore, release: impl AsyncFnOnce()) {
    let mut appends = join_all((0..N_APPENDS).map(|n| store.append(noting("a", n))));
    assert!(futures::poll!(&mut appends).is_pending());
    let mut closing = Box::pin(store.close());
    assert!(futures::poll!(&mut closing).is_pending(), "closing waits for what was queued");
    let (answers, _) = in_time("the answers", join(appends, join(closing, release()))).await;
    let mut committed = Vec::new();
    for (n, answer) in (0..).zip(answers) {
        match answer {
            Ok(_) => committed.push(Fact::Noted { n }),
            Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
        }
    }
    let store = open_again().await;
    check_history(&everything(&store).await);
    assert_eq!(store.load_events::<Fact>(&Query::all(), None).await.unwrap(), committed);
}

#[tokio::test]
async fn appends_that_wait_while_a_file_is_closed_are_committed_or_absent() {
    let place = Place::new();
    let store = place.open().await;
    let lock = place.hold_commits();
    close_under_way(store, async || place.open().await, async || lock.unlock().expect("it is held")).await;
}

#[tokio::test]
async fn appends_that_wait_while_a_servers_log_is_closed_are_committed_or_absent() {
    for is_pooled in [false, true] {
        let database = Database::new();
        let open = async || if is_pooled { database.open_pooled().await } else { database.open().await };
        let store = open().await;
        let mut holder = database.connect().await;
        execute(&mut holder, "BEGIN; SELECT one FROM append_lock FOR UPDATE").await;
        close_under_way(store, open, async || execute(&mut holder, "COMMIT").await).await;
    }
}
