//! Following a log: history in pages, then live, by one loop.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use crate::backend::Backend;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{Envelope, Event};
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::{Page, Recorded};

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
    /// With the first event that was made at this time or later.
    At(Timestamp),
    /// After the head of the log at the time of the first read.
    Now,
}

impl Start {
    /// The position after which it begins, as of now: of a time that is to come, the head.
    pub(crate) async fn position(self, backend: &dyn Backend) -> Result<Position> {
        match self {
            Self::Beginning => Ok(Position(0)),
            Self::After(position) => Ok(position),
            Self::At(since) => {
                let range = Range { since: Some(since), ..Range::default() };
                let page = backend.read(&Query::all(), range, 1).await?;
                Ok(page.events.first().map_or(page.next, |first| Position(first.position.0 - 1)))
            }
            Self::Now => backend.head().await,
        }
    }

    /// No event that was made before.
    fn since(self) -> Option<Timestamp> {
        match self {
            Self::At(since) => Some(since),
            Self::Beginning | Self::After(_) | Self::Now => None,
        }
    }
}

/// What a stream says that tells also when it has caught up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly every item is an event")]
pub enum Followed {
    /// The next event that matches.
    Event(Recorded),
    /// All events up to here have been yielded; later ones are live. It comes again whenever the stream has
    /// fallen behind, had to read pages, and has caught up again.
    CaughtUp(Position),
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

/// The events of a stream, without marks.
pub(crate) fn records(backend: Arc<dyn Backend>, query: Query, start: Start) -> impl Stream<Item = Result<Recorded>> {
    marked(backend, query, start).filter_map(async |item| match item {
        Ok(Followed::Event(recorded)) => Some(Ok(recorded)),
        Ok(Followed::CaughtUp(_)) => None,
        Err(error) => Some(Err(error)),
    })
}

/// The events of a stream, and when it has caught up.
pub(crate) fn marked(backend: Arc<dyn Backend>, query: Query, start: Start) -> impl Stream<Item = Result<Followed>> {
    async_stream::stream! {
        if let Err(error) = query.check() {
            yield Err(error);
            return;
        }
        // Begun before the first read, so that nothing comes unseen between it and the first wait.
        let mut follower = backend.tail().follow();
        let mut after = None;
        let mut backoff = BACKOFF.0;
        // Set once the log has been read to its end: later events are live.
        let mut is_live = false;
        let mut is_caught_up = false;
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
                    let position = event.position;
                    if query.matches(&event) && start.since().is_none_or(|since| event.created_at >= since) {
                        match backend.opened(event).await {
                            Ok(event) => yield Ok(Followed::Event(Arc::unwrap_or_clone(event))),
                            // It is not passed over: what keeps it closed may be mended.
                            Err(error) => {
                                tracing::warn!(%error, "an event of a stream could not be opened and is tried again");
                                yield Err(error);
                                tokio::time::sleep(backoff).await;
                                backoff = (backoff * 2).min(BACKOFF.1);
                                break;
                            }
                        }
                    }
                    after = Some(position);
                }
                continue;
            }
            match next_page(&*backend, &query, start, after).await {
                Ok(page) => {
                    backoff = BACKOFF.0;
                    // A page that was cut short is of one who is behind.
                    is_caught_up &= !page.more;
                    for recorded in page.events {
                        yield Ok(Followed::Event(recorded));
                    }
                    after = Some(page.next);
                    is_live = !page.more;
                    if is_live && !is_caught_up {
                        is_caught_up = true;
                        yield Ok(Followed::CaughtUp(page.next));
                    }
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

async fn next_page(backend: &dyn Backend, query: &Query, start: Start, after: Option<Position>) -> Result<Page> {
    match after {
        Some(after) => {
            let range = Range { after, since: start.since(), ..Range::default() };
            backend.read(query, range, STREAM_PAGE).await
        }
        None => {
            let next = start.position(backend).await?;
            Ok(Page { events: Vec::new(), next, more: true })
        }
    }
}

/// All matching events of a range, as they stand in the log. Whoever takes them may work for long between two, and read
/// the log meanwhile, so that no page is read before it is wanted.
pub(crate) fn records_of(
    backend: Arc<dyn Backend>,
    query: Query,
    range: Range,
) -> impl Stream<Item = Result<Recorded>> {
    async_stream::try_stream! {
        query.check()?;
        let mut rest = Some(range);
        while let Some(range) = rest {
            let page = backend.read(&query, range, STREAM_PAGE).await?;
            rest = range.rest(&page);
            for recorded in page.events {
                yield recorded;
            }
        }
    }
}

/// Waits until this process knows of the event at a position.
pub(crate) async fn wait_until(backend: &dyn Backend, position: Position) -> Result<()> {
    let mut follower = backend.tail().follow();
    if backend.head().await? < position {
        follower.wait(Position(position.0 - 1)).await?;
    }
    Ok(())
}
