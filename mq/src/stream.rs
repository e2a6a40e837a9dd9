//! Following a log: history in pages, then live, by one loop.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use crate::backoff::Backoff;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::event::{Envelope, FromRecorded};
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::Recorded;
use crate::store::EventStore;
use crate::tail::{End, Follower};

/// The page size of a stream; also the most events that it holds.
const STREAM_PAGE: usize = 500;

impl EventStore {
    /// Follows the matching events: all of the history, then new ones.
    ///
    /// # Errors
    /// [`Error::LimitPassed`] for a query with too many tags.
    pub fn subscribe<T: FromRecorded>(&self, query: &Query) -> Result<EventStream<T>> {
        self.subscribe_from(query, Start::Beginning)
    }

    /// Follows the matching events from a given start.
    ///
    /// # Errors
    /// As for [`EventStore::subscribe`].
    pub fn subscribe_from<T: FromRecorded>(&self, query: &Query, start: Start) -> Result<EventStream<T>> {
        query.check()?;
        Ok(EventStream { envelopes: self.follow(query, start).map(|item| item.and_then(Envelope::of)).boxed() })
    }

    /// Follows records as stored, of any type. If the query exceeds a limit, the stream yields that error and ends.
    pub fn follow(&self, query: &Query, start: Start) -> impl Stream<Item = Result<Recorded>> + Send + use<> {
        self.follow_marked(query, start).filter_map(async |item| match item {
            Ok(Followed::Event(recorded)) => Some(Ok(recorded)),
            Ok(Followed::CaughtUp(_)) => None,
            Err(error) => Some(Err(error)),
        })
    }

    /// [`EventStore::follow`] with markers: when history has been read, and each time the stream has caught up again.
    pub fn follow_marked(&self, query: &Query, start: Start) -> impl Stream<Item = Result<Followed>> + Send + use<> {
        marked(self.clone(), query.clone(), start)
    }

    /// All matching records of a range as stored, then the end. It holds one page, and no database resources between
    /// reads. After an error it ends.
    pub fn records(&self, query: &Query, range: Range) -> impl Stream<Item = Result<Recorded>> + Send + use<> {
        records_of(self.pinned(), query.clone(), range)
    }

    /// Waits until this process knows of the event at a position, so that later reads include it. To wait for a group's
    /// work on it, use [`crate::Group::wait_until`].
    ///
    /// # Errors
    /// A fault of the database, or of the search for new events.
    pub async fn wait_until(&self, position: Position) -> Result<()> {
        let mut follower = self.backend().tail().follow();
        if self.head().await? < position {
            follower.wait(Position(position.0 - 1)).await?;
        }
        self.still(())
    }
}

/// The start of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the first event of the log.
    Beginning,
    /// After this position.
    After(Position),
    /// With the first event made at this time or later.
    At(Timestamp),
    /// After the head of the log at the time of the first read.
    Now,
}

impl Start {
    /// The position after which it begins. A time in the future resolves to the current head.
    pub(crate) async fn position(self, store: &EventStore) -> Result<Position> {
        match self {
            Self::Beginning => Ok(Position(0)),
            Self::After(position) => Ok(position.max(Position(0))),
            Self::At(since) => {
                let range = Range { since: Some(since), ..Range::default() };
                let page = store.read(&Query::all(), range, 1).await?;
                Ok(page.events.first().map_or(page.next, |first| Position(first.position.0 - 1)))
            }
            Self::Now => store.head().await,
        }
    }

    /// The earliest time of its events, if it has one.
    fn since(self) -> Option<Timestamp> {
        match self {
            Self::At(since) => Some(since),
            Self::Beginning | Self::After(_) | Self::Now => None,
        }
    }
}

/// An item of a stream with markers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly every item is an event")]
pub enum Followed {
    /// The next event that matches.
    Event(Recorded),
    /// All events up to here have been yielded; later ones are live. It comes again whenever the stream has
    /// fallen behind, had to read pages, and has caught up again. It never falls, except after [`Error::WentBack`].
    CaughtUp(Position),
}

/// The events that match a query, from a start in the log on, without end.
///
/// Each event comes once, in log order. An event that cannot be decoded is an `Err` item with its position, and a
/// failed read is an `Err` item too; in both cases the stream continues. If the log went back and may have lost events
/// that the stream has yielded or caught up with, the stream yields [`Error::WentBack`] once and continues with the log
/// as it is now: after the last event that it yielded; or, if that is lost, after the head or the position before that
/// event, whichever is lower. After [`Error::Closed`] it ends.
pub struct EventStream<T> {
    envelopes: BoxStream<'static, Result<Envelope<T>>>,
}

impl<T: FromRecorded> Stream for EventStream<T> {
    type Item = Result<Envelope<T>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.envelopes.poll_next_unpin(cx)
    }
}

/// The events of a stream, with markers when it has caught up. On a pinned store it ends when the log goes back.
fn marked(store: EventStore, query: Query, start: Start) -> impl Stream<Item = Result<Followed>> {
    async_stream::stream! {
        if let Err(error) = query.check() {
            yield Err(error);
            return;
        }
        // Starts to follow before the first read, so that no event is missed between it and the first wait.
        let follower = store.backend().tail().follow();
        let (place, is_live, is_caught_up) = (None, false, false);
        let mut cursor = Cursor { store, query, start, follower, place, is_live, is_caught_up };
        let mut backoff = Backoff::new();
        loop {
            match cursor.next().await {
                Ok(items) => {
                    backoff = Backoff::new();
                    for item in items {
                        yield Ok(item);
                    }
                }
                Err(error) => {
                    let is_pinned = cursor.store.generation.is_some();
                    let is_last = matches!(error, Error::Closed) || is_pinned && matches!(error, Error::WentBack { .. });
                    yield Err(error);
                    if is_last {
                        return;
                    }
                    cursor.follower.pause(backoff.pause()).await;
                }
            }
        }
    }
}

/// A stream in progress.
struct Cursor {
    store: EventStore,
    query: Query,
    start: Start,
    follower: Follower,
    /// Unset until it has begun.
    place: Option<Place>,
    /// Set once the log has been read to its end: later events are live.
    is_live: bool,
    is_caught_up: bool,
}

/// The progress of a stream, and the part that its consumer knows.
#[derive(Clone, Copy)]
struct Place {
    read_to: Position,
    /// The last event that was yielded, or the one that the stream started after.
    last: End,
    /// The last position that was yielded, of an event or in [`Followed::CaughtUp`].
    told: Position,
}

impl Cursor {
    /// The next items, possibly none.
    async fn next(&mut self) -> Result<Vec<Followed>> {
        if self.is_live
            && let Some(Place { read_to, .. }) = self.place
        {
            match self.follower.wait(read_to).await {
                Ok(()) | Err(Error::WentBack { .. }) => {}
                Err(error) => {
                    // The next read shows whether the problem lasts.
                    self.is_live = false;
                    return Err(error);
                }
            }
        }
        self.store.still(())?;
        let place = self.place().await?;
        // Live events come from memory, shared by all followers of the process.
        match self.follower.after(place.read_to, STREAM_PAGE) {
            Some(events) => self.live(place, events).await,
            None => self.page(place).await,
        }
    }

    /// The place to read from, determined at the start and again after the log went back.
    async fn place(&mut self) -> Result<Place> {
        let went_back = self.follower.enter_generation();
        if let Some(place) = self.place.filter(|_| !went_back) {
            return Ok(place);
        }
        let (last, lost) = self.find().await.inspect_err(|_| self.follower.leave_generation())?;
        let place = Place { read_to: last.head, last, told: last.head };
        (self.place, self.is_live, self.is_caught_up) = (Some(place), false, false);
        lost.map_or(Ok(place), Err)
    }

    /// The event to continue after, and an error to yield if the log no longer has the events that the consumer knows.
    async fn find(&self) -> Result<(End, Option<Error>)> {
        let (mut known, told) = match self.place {
            Some(Place { last, told, .. }) => (Some(last), told),
            None => (None, self.start.position(&self.store).await?),
        };
        let (mut position, mut lost) = (known.map_or(told, |last| last.head), None);
        let last = loop {
            match self.end_at(position).await? {
                Some(found) if known.is_none_or(|known| known == found) => break found,
                Some(_) | None => {
                    let head = self.store.head().await?;
                    lost = Some(Error::WentBack { known: told, head });
                    (known, position) = (None, head.min(Position(position.0 - 1)));
                }
            }
        };
        if lost.is_none() && last.head < told {
            // Later events may have been lost and replaced by others.
            lost = Some(Error::WentBack { known: told, head: self.store.head().await? });
        }
        Ok((last, lost))
    }

    /// The event at a position, in its stored form so that a veil cannot hide it. Position 0 is before the first event.
    async fn end_at(&self, position: Position) -> Result<Option<End>> {
        if position <= Position(0) {
            return Ok(Some(End::default()));
        }
        let range = Range::between(Position(position.0 - 1), position);
        let page = self.store.clone().as_stored().read(&Query::all(), range, 1).await?;
        Ok(page.events.first().map(End::from))
    }

    async fn live(&mut self, mut place: Place, events: Vec<Arc<Recorded>>) -> Result<Vec<Followed>> {
        let since = self.start.since();
        let mut items = Vec::new();
        for event in events {
            let end = End::from(&*event);
            if self.query.matches(&event) && since.is_none_or(|since| event.created_at >= since) {
                match self.store.backend().opened(event).await {
                    Ok(event) => items.push(Followed::Event(Arc::unwrap_or_clone(event))),
                    // The event is not skipped: its problem, such as a missing key, may be temporary.
                    Err(error) if items.is_empty() => return Err(error),
                    Err(_) => break,
                }
                (place.last, place.told) = (end, end.head);
            }
            place.read_to = end.head;
            self.place = Some(place);
        }
        Ok(items)
    }

    async fn page(&mut self, mut place: Place) -> Result<Vec<Followed>> {
        let range = Range { after: place.read_to, since: self.start.since(), ..Range::default() };
        let page = self.store.read(&self.query, range, STREAM_PAGE).await.inspect_err(|_| self.is_live = false)?;
        if self.store.backend().tail().generation() != self.follower.generation() {
            // The events may not continue those that the consumer has.
            return Ok(Vec::new());
        }
        if let Some(last) = page.events.last() {
            place.last = End::from(last);
            place.told = last.position;
        }
        self.is_live = !page.more;
        let mut items: Vec<_> = page.events.into_iter().map(Followed::Event).collect();
        // A page that was cut short means that the stream lags.
        if self.is_live && !self.is_caught_up {
            items.push(Followed::CaughtUp(page.next));
            place.told = page.next;
        }
        self.is_caught_up = self.is_live;
        self.place = Some(Place { read_to: page.next, ..place });
        Ok(items)
    }
}

/// All matching events of a range of a pinned log. Pages are read on demand: the consumer may work for a long time
/// between two events, and read the log meanwhile.
fn records_of(store: EventStore, query: Query, range: Range) -> impl Stream<Item = Result<Recorded>> {
    async_stream::try_stream! {
        let mut rest = Some(range);
        while let Some(range) = rest {
            let page = store.read(&query, range, STREAM_PAGE).await?;
            rest = range.rest(&page);
            for recorded in page.events {
                yield recorded;
            }
        }
    }
}
