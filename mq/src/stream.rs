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
use crate::error::{Error, Result};
use crate::event::{Envelope, Event};
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::Recorded;
use crate::tail::{End, Follower, Mark};

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
/// and a failed read is an `Err` item too; in both cases the stream goes on. If the log went back and lost what the stream
/// has yielded, it yields [`Error::WentBack`] once and continues with the log as it is now. After [`Error::Closed`] it ends.
pub struct EventStream<T> {
    records: BoxStream<'static, Result<Recorded>>,
    event: PhantomData<fn() -> T>,
}

impl<T: Event> EventStream<T> {
    pub(crate) fn follow(backend: Arc<dyn Backend>, query: Query, start: Start, pinned: Option<u64>) -> Self {
        Self { records: Box::pin(records(backend, query, start, pinned)), event: PhantomData }
    }
}

impl<T: Event> Stream for EventStream<T> {
    type Item = Result<Envelope<T>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.records.as_mut().poll_next(cx).map(|item| item.map(|recorded| recorded.and_then(Envelope::of)))
    }
}

/// The events of a stream, without marks.
pub(crate) fn records(
    backend: Arc<dyn Backend>,
    query: Query,
    start: Start,
    pinned: Option<u64>,
) -> impl Stream<Item = Result<Recorded>> {
    marked(backend, query, start, pinned).filter_map(async |item| match item {
        Ok(Followed::Event(recorded)) => Some(Ok(recorded)),
        Ok(Followed::CaughtUp(_)) => None,
        Err(error) => Some(Err(error)),
    })
}

/// The events of a stream, and when it has caught up. With `pinned` it ends when the log is of another generation.
pub(crate) fn marked(
    backend: Arc<dyn Backend>,
    query: Query,
    start: Start,
    pinned: Option<u64>,
) -> impl Stream<Item = Result<Followed>> {
    async_stream::stream! {
        if let Err(error) = query.check() {
            yield Err(error);
            return;
        }
        // Begun before the first read, so that nothing comes unseen between it and the first wait.
        let follower = backend.tail().follow();
        let (place, is_live, is_caught_up) = (None, false, false);
        let mut cursor = Cursor { backend, query, start, pinned, follower, place, is_live, is_caught_up };
        let mut backoff = BACKOFF.0;
        loop {
            match cursor.next().await {
                Ok(items) => {
                    backoff = BACKOFF.0;
                    for item in items {
                        yield Ok(item);
                    }
                }
                Err(Fault { error, is_of_read }) => {
                    let is_last = match error {
                        Error::Closed => true,
                        Error::WentBack { .. } => pinned.is_some(),
                        ref error => {
                            tracing::warn!(%error, "reading for a stream failed and is tried again");
                            false
                        }
                    };
                    yield Err(error);
                    if is_last {
                        return;
                    }
                    if is_of_read {
                        cursor.follower.pause(backoff).await;
                        backoff = (backoff * 2).min(BACKOFF.1);
                    }
                }
            }
        }
    }
}

/// A stream that reads on.
struct Cursor {
    backend: Arc<dyn Backend>,
    query: Query,
    start: Start,
    pinned: Option<u64>,
    follower: Follower,
    /// Unset until it has begun.
    place: Option<Place>,
    /// Set once the log has been read to its end: later events are live.
    is_live: bool,
    is_caught_up: bool,
}

/// How far a stream has read, and how far it has yielded.
#[derive(Clone, Copy)]
struct Place {
    read_to: Position,
    has: Has,
}

/// Nothing after this position was yielded.
#[derive(Clone, Copy)]
struct Has {
    position: Position,
    /// The event there, once it is known.
    event: Option<Mark>,
}

/// Why reading stopped.
struct Fault {
    error: Error,
    /// Whether to wait before the next try. Faults of looking for news come at their own pace.
    is_of_read: bool,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { error, is_of_read: true }
    }
}

impl Cursor {
    /// The next items; there may be none.
    async fn next(&mut self) -> Result<Vec<Followed>, Fault> {
        if self.is_live
            && let Some(Place { read_to, .. }) = self.place
        {
            match self.follower.wait(read_to).await {
                Ok(()) | Err(Error::WentBack { .. }) => {}
                Err(error) => {
                    // The next read tells whether it lasts.
                    self.is_live = false;
                    return Err(Fault { error, is_of_read: false });
                }
            }
        }
        self.backend.tail().check(self.pinned)?;
        let place = self.place().await?;
        // Live events come from memory, for all followers of the process the same ones.
        match self.follower.after(place.read_to, STREAM_PAGE) {
            Some(events) => Ok(self.live(place, events).await?),
            None => Ok(self.page(place).await?),
        }
    }

    /// Where to read on. It is found at the beginning, and again after the log went back.
    async fn place(&mut self) -> Result<Place> {
        let went_back = self.follower.enter_generation();
        if let Some(place) = self.place.filter(|_| !went_back) {
            return Ok(place);
        }
        let found = match self.place {
            Some(Place { has, .. }) => has.find(&*self.backend).await,
            None => match self.start.position(&*self.backend).await {
                Ok(position) => Has { position, event: None }.find(&*self.backend).await,
                Err(error) => Err(error),
            },
        };
        let (has, lost) = found.inspect_err(|_| self.follower.leave_generation())?;
        let place = Place { read_to: has.position, has };
        (self.place, self.is_live, self.is_caught_up) = (Some(place), false, false);
        lost.map_or(Ok(place), Err)
    }

    async fn live(&mut self, mut place: Place, events: Vec<Arc<Recorded>>) -> Result<Vec<Followed>> {
        let since = self.start.since();
        let mut items = Vec::new();
        for event in events {
            let end = End::from(&*event);
            if self.query.matches(&event) && since.is_none_or(|since| event.created_at >= since) {
                match self.backend.opened(event).await {
                    Ok(event) => items.push(Followed::Event(Arc::unwrap_or_clone(event))),
                    // It is not skipped: the cause, such as a missing key, may be mended.
                    Err(error) if items.is_empty() => return Err(error),
                    Err(_) => break,
                }
                place.has = Has::from(end);
            }
            place.read_to = end.head;
            self.place = Some(place);
        }
        Ok(items)
    }

    async fn page(&mut self, place: Place) -> Result<Vec<Followed>> {
        let range = Range { after: place.read_to, since: self.start.since(), ..Range::default() };
        let page = match self.backend.read(&self.query, range, STREAM_PAGE).await {
            Ok(page) => page,
            Err(error) => {
                self.is_live = false;
                return Err(error);
            }
        };
        if self.backend.tail().generation() != self.follower.generation() {
            // Its events may not follow those that the consumer has.
            return Ok(Vec::new());
        }
        let has = page.events.last().map_or(place.has, |last| Has::from(End::from(last)));
        self.place = Some(Place { read_to: page.next, has });
        self.is_live = !page.more;
        let mut items: Vec<_> = page.events.into_iter().map(Followed::Event).collect();
        // A page that was cut short means that the stream is behind.
        if self.is_live && !self.is_caught_up {
            items.push(Followed::CaughtUp(page.next));
        }
        self.is_caught_up = self.is_live;
        Ok(items)
    }
}

impl From<End> for Has {
    fn from(end: End) -> Self {
        Self { position: end.head, event: Some(end.mark()) }
    }
}

impl Has {
    /// Finds this event in the log. If it is gone: where to continue, and the error to yield.
    async fn find(self, backend: &dyn Backend) -> Result<(Self, Option<Error>)> {
        let Some(found) = self.event_in(backend).await? else {
            let head = backend.head().await?;
            let next = Self { position: head.min(Position(self.position.0 - 1)), event: None };
            let event = next.event_in(backend).await?.flatten();
            return Ok((Self { event, ..next }, Some(Error::WentBack { known: self.position, head })));
        };
        Ok((Self { event: found, ..self }, None))
    }

    /// The event at the position, and nothing at the beginning. `None` when there is no such event.
    async fn event_in(self, backend: &dyn Backend) -> Result<Option<Option<Mark>>> {
        if self.position <= Position(0) {
            return Ok(Some(None));
        }
        let range = Range::between(Position(self.position.0 - 1), self.position);
        let page = match backend.read(&Query::all(), range, 1).await {
            // It is there, and cannot be opened.
            Err(Error::Veil(_)) => return Ok(Some(self.event)),
            page => page?,
        };
        let found = page.events.first().map(|found| End::from(found).mark());
        let is_known = |found: &Mark| self.event.is_none_or(|event| event == *found);
        Ok(found.filter(is_known).map(Some))
    }
}

/// All matching events of a range, as they stand in the log. Whoever takes them may work for long between two, and read
/// the log meanwhile, so that no page is read before it is wanted.
pub(crate) fn records_of(
    backend: Arc<dyn Backend>,
    query: Query,
    range: Range,
    generation: u64,
) -> impl Stream<Item = Result<Recorded>> {
    async_stream::try_stream! {
        query.check()?;
        let mut rest = Some(range);
        while let Some(range) = rest {
            let page = backend.read(&query, range, STREAM_PAGE).await?;
            backend.tail().check(Some(generation))?;
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
