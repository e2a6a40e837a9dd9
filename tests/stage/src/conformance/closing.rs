//! Closing a log finishes pending operations and refuses later ones; nothing waits forever.

use std::sync::mpsc;
use std::time::Duration;

use futures::future::{join, join_all, join5};
use futures::{FutureExt, Stream, StreamExt};
use tokio::sync::mpsc as channel;

use super::rig::{Rig, export, note, notes, noting};
use crewlog_mq::{
    Append, Error, EventStore, ExecuteError, Expected, Position, Query, Range, Recorded, Result, Start, group_handler,
};

/// Appends in flight while the log is closed.
const N_APPENDS: u64 = 40;

pub(super) async fn check(rig: &Rig) {
    appends_under_way(rig).await;
    import_under_way(rig).await;
    streams_within_a_page(rig).await;
    all_that_wait(rig).await;
}

async fn appends_under_way(rig: &Rig) {
    let store = rig.new_log().await;
    let clone = store.clone();
    store.append(noting("before", 0)).await.expect("it is open");
    let appends = join_all((0..N_APPENDS).map(|n| clone.append(noting("a", n))));
    let query = Query::all();
    let reads = join_all((0..N_APPENDS).map(|_| clone.read(&query, Range::default(), 1)));
    let ((outcomes, read), ()) = join(join(appends, reads), store.close()).await;
    for refusal in outcomes.into_iter().filter_map(Result::err).chain(read.into_iter().filter_map(Result::err)) {
        assert!(matches!(refusal, Error::Closed), "what comes too late is refused as such: {refusal}");
    }
    refused(&clone).await;
    store.close().await;
    refused(&store).await;
}

/// Every operation on the log is refused.
async fn refused(store: &EventStore) {
    let append = Append::to("facts", "late", Expected::Any, vec![note(1)]);
    let outcomes = [
        ("append", store.append(append).await.err()),
        ("read", store.read(&Query::all(), Range::default(), 1).await.err()),
        ("head", store.head().await.err()),
        ("whole", store.whole(crewlog_mq::Position(1)).await.err()),
        ("log", store.log().await.err()),
        ("check", store.check().await.err()),
        ("cells", store.cells("space", "", 1).await.err()),
        ("stats", store.stats().await.err()),
    ];
    for (what, refusal) in outcomes {
        assert!(matches!(refusal, Some(Error::Closed)), "{what} of a closed log is refused, and not {refusal:?}");
    }
}

async fn import_under_way(rig: &Rig) {
    let from = rig.new_log().await;
    for n in 0..3 {
        from.append(noting("a", n)).await.expect("it is open");
    }
    let (identity, events) = export(&from).await;
    let store = rig.new_log().await;
    let (begun, is_begun) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let mut begun = Some(begun);
    let records = events.clone().into_iter().map(move |event| {
        if let Some(begun) = begun.take() {
            let _ = begun.send(());
            let _ = may_go_on.recv();
        }
        Ok(event)
    });
    let closing = async {
        is_begun.await.expect("the import begins");
        // A close that nobody polls any more does not keep others from closing.
        let mut left = std::pin::pin!(store.close());
        assert!(futures::poll!(&mut left).is_pending(), "closing waits for what was begun");
        let mut close = std::pin::pin!(store.close());
        assert!(futures::poll!(&mut close).is_pending(), "so does a second call");
        go_on.send(()).expect("the import waits");
        close.await;
    };
    let (imported, ()) = join(store.import(identity.clone(), records), closing).await;
    assert_eq!(imported.expect("it was begun before").n_added, events.len(), "an import that was begun is done");
    let late = store.import(identity, std::iter::empty()).await;
    assert!(matches!(late, Err(Error::Closed)), "an import into a closed log is refused, and not {late:?}");
}

/// Streams that nobody polls, with more to come in their page and after it.
async fn streams_within_a_page(rig: &Rig) {
    let store = rig.new_log().await;
    for _ in 0..3 {
        store.append(Append::to("facts", "a", Expected::Any, notes(300))).await.expect("it is open");
    }
    let follow = || store.follow(&Query::all(), Start::Beginning).boxed();
    let mut within = [follow(), follow(), store.records(&Query::all(), Range::default()).boxed()];
    for stream in &mut within {
        let first = stream.next().await.expect("there are events").expect("it can be read");
        assert_eq!(first.position, Position(1));
    }
    let mut begun = [follow(), follow(), follow()];
    for stream in &mut begun {
        let _ = stream.next().now_or_never();
    }
    store.close().await;
    for stream in within.into_iter().chain(begun) {
        let rest = to_the_end(stream).await;
        assert!(rest.len() <= 900, "events that were read may still come");
    }
    assert!(to_the_end(follow()).await.is_empty(), "nothing comes from a closed log");
}

/// Reads the remaining events of a stream. Then it reports that the log is closed, and ends.
async fn to_the_end(stream: impl Stream<Item = Result<Recorded>>) -> Vec<Recorded> {
    let mut items = stream.collect::<Vec<_>>().await;
    let last = items.pop();
    assert!(matches!(last, Some(Err(Error::Closed))), "a stream ends with the closing, and not with {last:?}");
    items.into_iter().map(|item| item.expect("there is no other error")).collect()
}

/// Followers that have read everything, and callers that wait for more.
async fn all_that_wait(rig: &Rig) {
    let store = rig.new_log().await;
    store.append(noting("a", 0)).await.expect("it is open");
    let mut live = store.follow(&Query::all(), Start::Beginning).boxed();
    assert!(live.next().await.is_some_and(|event| event.is_ok()));
    assert!(futures::poll!(live.next()).is_pending(), "no more is there");
    let marked = store.follow_marked(&Query::all(), Start::Now).filter_map(|item| std::future::ready(item.err()));
    // The lease is too long for a renewal to notice that the log is closed.
    let group = store.group("facts").query(Query::stream("facts")).lease(Duration::from_secs(3600));
    group.declare().await.expect("it is declared");
    let (tell, mut told) = channel::unbounded_channel();
    let closing = async {
        assert_eq!(told.recv().await, Some(Position(1)));
        store.close().await;
    };
    let far = Position(1000);
    let handler = group_handler(move |event, _| {
        // The test may have ended.
        let _ = tell.send(event.position);
        std::future::pending().boxed()
    });
    let groups = join(group.run(handler), group.wait_until(far));
    let (rest, marks, waited, (ran, handled), ()) =
        join5(to_the_end(live), marked.collect::<Vec<_>>(), store.wait_until(far), groups, closing).await;
    // From the group's own stream.
    assert!(rest.iter().all(|event| event.stream_id == "groups"), "{rest:?}");
    assert!(matches!(*marks, [Error::Closed]), "a follower hears of it once, and not {marks:?}");
    assert!(matches!(waited, Err(Error::Closed)), "waiting ends, and not with {waited:?}");
    assert!(matches!(ran, Err(ExecuteError::Store(Error::Closed))), "a worker ends, and not with {ran:?}");
    assert!(matches!(handled, Err(ExecuteError::Store(Error::Closed))), "waiting ends, and not with {handled:?}");
}
