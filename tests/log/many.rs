//! A thousand open streams on each backend: a stream that nobody polls delays no other read, no append and no closing.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

use crewlog_mq::{Append, EventStore, Expected, Position, Query, Range, Recorded, Result, Start};
use futures::stream::{BoxStream, select_all};
use futures::{FutureExt, StreamExt};

use super::{everything, in_time, logs, notes, noting};

const N_STREAMS: usize = 1000;
const N_EVENTS: usize = 2;

/// Endless and finite streams.
fn streams(store: &EventStore) -> Vec<BoxStream<'static, Result<Recorded>>> {
    let one = |n: usize| match n % 2 {
        0 => store.follow(&Query::all(), Start::Beginning).boxed(),
        _ => store.records(&Query::all(), Range::default()).boxed(),
    };
    (0..N_STREAMS).map(one).collect()
}

async fn with_events(store: &EventStore) {
    store.append(Append::to("facts", "a", Expected::Any, notes(0..N_EVENTS as i64))).await.unwrap();
}

/// Each has begun to read, most have not yet received their page, and some have received an event of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_nobody_polls_delay_no_read_append_or_closing() {
    for (store, _place) in logs().await {
        with_events(&store).await;
        let mut streams = streams(&store);
        for stream in &mut streams {
            let _ = stream.next().now_or_never();
        }
        for stream in streams.iter_mut().step_by(20) {
            assert!(in_time("an event", stream.next()).await.unwrap().is_ok());
        }
        in_time("an append", store.append(noting("b", 1))).await.unwrap();
        assert_eq!(in_time("a read", everything(&store)).await.len(), N_EVENTS + 1);
        assert_eq!(in_time("the head", store.head()).await.unwrap(), Position(N_EVENTS as i64 + 1));
        in_time("closing", store.close()).await;
        drop(streams);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merged_streams_go_on_while_each_event_is_answered_by_a_read() {
    for (store, _place) in logs().await {
        with_events(&store).await;
        let mut merged = select_all(streams(&store)).take(N_STREAMS * N_EVENTS);
        let mut n_seen = 0;
        while let Some(event) = in_time("an event", merged.next()).await {
            assert!(event.unwrap().position.0 <= N_EVENTS as i64);
            in_time("the head", store.head()).await.unwrap();
            n_seen += 1;
        }
        assert_eq!(n_seen, N_STREAMS * N_EVENTS);
        in_time("closing", store.close()).await;
    }
}
