//! Following a log: history in pages, then live, by one loop.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use futures::stream::BoxStream;

use crate::backend::Backend;
use crate::error::Result;
use crate::event::{Envelope, Event};
use crate::position::Position;
use crate::query::{Query, Range};
use crate::record::{Page, Recorded};

/// How many events a stream reads at a time; also the most that it holds.
const STREAM_PAGE: usize = 500;
/// The waits after failed reads grow from the first to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the first event of the log.
    Beginning,
    /// After this position.
    After(Position),
    /// After the head of the log at the time of the first read.
    Now,
}

/// The events that match a query, from a place in the log on, without end.
///
/// Each event comes once, in the order of the log. One that cannot be decoded is an `Err` item with its position,
/// and a failed read is an `Err` item too; in both cases the stream goes on. Dropping it ends it.
pub struct EventStream<T> {
    records: BoxStream<'static, Result<Recorded>>,
    event: PhantomData<fn() -> T>,
}

impl<T: Event> EventStream<T> {
    pub(crate) fn follow(backend: Arc<dyn Backend>, query: Query, start: Start) -> Self {
        Self { records: Box::pin(records(backend, query, start)), event: PhantomData }
    }
}

impl<T: Event> Stream for EventStream<T> {
    type Item = Result<Envelope<T>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.records.as_mut().poll_next(cx).map(|item| item.map(|recorded| recorded.and_then(Envelope::of)))
    }
}

pub(crate) fn records(backend: Arc<dyn Backend>, query: Query, start: Start) -> impl Stream<Item = Result<Recorded>> {
    async_stream::stream! {
        // Begun before the first read, so that nothing comes unseen between it and the first wait.
        let mut follower = backend.tail().follow();
        let mut after = match start {
            Start::Beginning => Some(Position(0)),
            Start::After(position) => Some(position),
            Start::Now => None,
        };
        let mut backoff = BACKOFF.0;
        // Set once the log was read to its end: all that comes after is told.
        let mut is_live = false;
        loop {
            if is_live
                && let Some(read_to) = after
                && let Err(error) = follower.wait(read_to).await
            {
                tracing::warn!(%error, "looking for new events failed and is tried again");
                yield Err(error);
            }
            // Live events come from memory, for all followers of the process the same ones.
            if let Some(read_to) = after
                && let Some(events) = follower.after(read_to, STREAM_PAGE)
            {
                for event in events {
                    after = Some(event.position);
                    if query.matches(&event) {
                        yield Ok(Recorded::clone(&event));
                    }
                }
                continue;
            }
            match next_page(&*backend, &query, after).await {
                Ok(page) => {
                    backoff = BACKOFF.0;
                    for recorded in page.events {
                        yield Ok(recorded);
                    }
                    after = Some(page.next);
                    is_live = !page.more;
                }
                Err(error) => {
                    is_live = false;
                    tracing::warn!(%error, "a read for a stream failed and is tried again");
                    yield Err(error);
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                }
            }
        }
    }
}

async fn next_page(backend: &dyn Backend, query: &Query, after: Option<Position>) -> Result<Page> {
    match after {
        Some(after) => backend.read(query, Range::after(after), STREAM_PAGE).await,
        None => {
            let next = backend.head().await?;
            Ok(Page { events: Vec::new(), next, more: false })
        }
    }
}
