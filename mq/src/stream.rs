//! Following a log: history in pages, then live, by one loop.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use futures::stream::BoxStream;
use tokio::sync::watch;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::event::{Envelope, Event};
use crate::position::Position;
use crate::record::{Query, Range, Recorded};

/// How many events a stream reads at a time; also the most that it holds.
const STREAM_PAGE: usize = 500;
/// With every hint lost, an event is seen this much later at the most.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
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
        let mut grown = backend.grown();
        let mut after = match start {
            Start::Beginning => Some(Position(0)),
            Start::After(position) => Some(position),
            Start::Now => None,
        };
        let mut backoff = BACKOFF.0;
        loop {
            grown.borrow_and_update();
            match next_page(&*backend, &query, after).await {
                Ok(page) => {
                    backoff = BACKOFF.0;
                    for recorded in page.events {
                        yield Ok(recorded);
                    }
                    after = Some(page.next);
                    if !page.more {
                        wait(&mut grown).await;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a read for a stream failed and is tried again");
                    yield Err(error);
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                }
            }
        }
    }
}

async fn next_page(
    backend: &dyn Backend,
    query: &Query,
    after: Option<Position>,
) -> Result<crate::record::Page, Error> {
    match after {
        Some(after) => backend.read(query, Range::after(after), STREAM_PAGE).await,
        None => {
            let next = backend.head().await?;
            Ok(crate::record::Page { events: Vec::new(), next, more: false })
        }
    }
}

/// Returns when the log may have grown.
async fn wait(grown: &mut watch::Receiver<Position>) {
    match tokio::time::timeout(POLL_INTERVAL, grown.changed()).await {
        Ok(Ok(())) | Err(_) => {}
        // Nobody is left to give hints: the slow poll alone goes on.
        Ok(Err(_)) => tokio::time::sleep(POLL_INTERVAL).await,
    }
}
