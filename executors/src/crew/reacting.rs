//! Hosts the processes that react to the log ([`Reactor`]): reads events, and appends the output of the process.
//!
//! A host continues from the newest snapshot, or else from the beginning, and appends nothing up to the cause of the
//! process's newest event. The ids of its events derive from their causes, so a host that repeats another's work, after
//! a crash or concurrently, appends nothing twice. All decisions are the process's.
//!
//! It reads events as stored: output that depends on sealed texts would differ with the keys at hand, and would leak
//! them into snapshots and events.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use crewlog_mq::{
    Append, Backoff, Cause, Error, EventStore, Expected, Last, NewEvent, Position, Query, Range, Recorded, Snapshots,
    Start, derived_event_id,
};
use crewlog_planner::crew::{Emitted, Reactor};
use futures::StreamExt;
use tokio::sync::watch;

use crate::liveness::LeaderLock;
use crate::run::is_set;

/// Events read at a time.
const PAGE: usize = 500;
/// The page size for finding where a process stopped: it is almost always the newest event of its stream.
const LEFT_OFF_PAGE: usize = 16;
/// The time limit for a stopping host to handle the events already in the log.
const LAST_CATCH_UP_MAX: Duration = Duration::from_secs(5);
/// The most events that a stopping host may still have to fold before its first append: about half of what fits into
/// that time. Beyond that, the work would be thrown away.
const LAST_FOLD_EVENTS_MAX: i64 = 250_000;

/// Hosts a process until `stop` is set. On one machine and for one `folder` one host is active at a time; the others
/// wait, and one of them takes over when it ends or dies. Before it ends, it handles the events in the log, as far as a
/// few seconds suffice. It ends at once if too many events that its predecessors have already handled are left to fold:
/// a longer-lived host will bring the process up to date.
///
/// # Errors
/// If the file of the leader lock is not writable. Transient errors of the log are retried.
pub async fn host<R: Reactor>(store: EventStore, folder: PathBuf, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    let leader_lock = tokio::select! {
        leader_lock = LeaderLock::wait(&folder, R::NAME) => leader_lock?,
        () = is_set(&mut stop) => return Ok(()),
    };
    let mut reacting = Reacting::<R>::new(store);
    tokio::select! {
        () = reacting.follow() => {}
        () = is_set(&mut stop) => {}
    }
    if tokio::time::timeout(LAST_CATCH_UP_MAX, reacting.finish()).await != Ok(true) {
        tracing::warn!(
            process = R::NAME,
            "stopped before it caught up; the next host continues from the last snapshot"
        );
    }
    drop(leader_lock);
    Ok(())
}

/// Folds the log up to a position without appending: `tell` gets each output of the process with its cause.
///
/// # Errors
/// A fault of the log.
pub async fn fold<R: Reactor>(
    store: &EventStore,
    up_to: Position,
    mut tell: impl FnMut(&Recorded, Emitted<R::Event>),
) -> Result<R, Error> {
    let (store, mut reading) = (store.clone().as_stored(), Reading::<R>::default());
    while reading.next_page(&store, Some(up_to)).await? > 0 {
        for (cause, emitted) in std::mem::take(&mut reading.due) {
            emitted.into_iter().for_each(|emitted| tell(&cause, emitted));
        }
    }
    Ok(reading.reactor)
}

/// A process on a log. Its futures may be dropped at any time; the next call continues where the last one stopped.
pub struct Reacting<R: Reactor> {
    store: EventStore,
    reading: Reading<R>,
    snapshots: Snapshots<R>,
    /// True once the host knows where the process stopped.
    has_begun: bool,
}

/// How far a process has read, and its pending output.
struct Reading<R: Reactor> {
    reactor: R,
    read_to: Position,
    /// The process has emitted everything for the log up to here.
    emitted_up_to: Position,
    /// The last event read, if its append ends with it: only then is the state a valid one.
    end: Option<Last>,
    /// True if an event was skipped that a newer program may be able to read: the state is incomplete and must not be
    /// stored.
    lacks_some: bool,
    due: VecDeque<(Recorded, Vec<Emitted<R::Event>>)>,
}

impl<R: Reactor> Default for Reading<R> {
    fn default() -> Self {
        let (reactor, read_to, emitted_up_to, due) = (R::default(), Position(0), Position(0), VecDeque::new());
        Self { reactor, read_to, emitted_up_to, end: None, lacks_some: false, due }
    }
}

impl<R: Reactor> Reading<R> {
    /// Reads one page, atomically, and returns its number of events.
    async fn next_page(&mut self, store: &EventStore, up_to: Option<Position>) -> Result<usize, Error> {
        let page = store.read(&Query::all(), Range { after: self.read_to, up_to, ..Range::default() }, PAGE).await?;
        let Some(last) = page.events.last() else { return Ok(0) };
        let n_events = page.events.len();
        // The page does not show whether the last append in it is complete.
        let last_is_end = store.whole(last.position).await? == last.position;
        let mut events = page.events.into_iter().peekable();
        while let Some(recorded) = events.next() {
            if let Err(error) = self.reactor.handle(&recorded) {
                tracing::warn!(process = R::NAME, %error, "skipped an unreadable event");
                self.lacks_some = true;
            }
            self.read_to = recorded.position;
            let is_end = events.peek().map_or(last_is_end, |next| next.append_start != recorded.append_start);
            self.end = is_end.then(|| Last::from(&recorded));
            if is_end {
                let emitted = self.reactor.emit();
                if !emitted.is_empty() && recorded.position > self.emitted_up_to {
                    self.due.push_back((recorded, emitted));
                }
            }
        }
        Ok(n_events)
    }
}

impl<R: Reactor> Reacting<R> {
    /// A process that has read nothing yet.
    pub fn new(store: EventStore) -> Self {
        let store = store.as_stored().pinned();
        let snapshots = Snapshots::of(&store, &Query::all());
        Self { store, reading: Reading::default(), snapshots, has_begun: false }
    }

    /// Reads the log up to a position, or up to its head, and appends the output.
    ///
    /// # Errors
    /// A fault of the log; another call continues from there.
    pub async fn catch_up(&mut self, up_to: Option<Position>) -> Result<(), Error> {
        self.begin(up_to).await?;
        loop {
            self.append_due().await?;
            // All output for this state is now in the log, so another host may continue from it.
            if let Some(last) = self.reading.end.filter(|_| !self.reading.lacks_some) {
                self.snapshots.keep(&self.reading.reactor, last).await;
            }
            match self.reading.next_page(&self.store, up_to).await? {
                0 => return Ok(()),
                n_events => self.snapshots.fold(n_events),
            }
        }
    }

    /// Determines once where the process stopped; a snapshot ahead of `up_to` is ignored.
    async fn begin(&mut self, up_to: Option<Position>) -> Result<(), Error> {
        if self.has_begun {
            return Ok(());
        }
        let emitted_up_to = emitted_up_to::<R>(&self.store).await?;
        let newest =
            self.snapshots.newest().await?.filter(|(_, last)| up_to.is_none_or(|up_to| last.position <= up_to));
        if let Some((reactor, last)) = newest {
            self.reading = Reading { reactor, read_to: last.position, end: Some(last), ..Reading::default() };
        }
        self.reading.emitted_up_to = emitted_up_to;
        self.has_begun = true;
        Ok(())
    }

    /// Follows the log until it is closed or has gone back; other faults are retried.
    async fn follow(&mut self) {
        while self.catch_up_with_retry(None).await {
            // Used only as a wake-up: pages show the ends of appends, single events do not.
            let mut news = pin!(self.store.follow(&Query::all(), Start::After(self.reading.read_to)));
            while let Some(Err(error)) = news.next().await {
                if error.is_final() {
                    return;
                }
            }
        }
    }

    /// Handles the events now in the log. False if too many are left to fold, so that it does not start.
    async fn finish(mut self) -> bool {
        let mut backoff = Backoff::new();
        let head = loop {
            match self.head_in_reach().await {
                Ok(Some(head)) => break head,
                Ok(None) => return false,
                Err(error) if error.is_final() => return false,
                Err(error) => backoff.wait(&error).await,
            }
        };
        self.catch_up_with_retry(Some(head)).await
    }

    /// The head of the log; `None` if the process stopped too far before it.
    async fn head_in_reach(&mut self) -> Result<Option<Position>, Error> {
        self.begin(None).await?;
        let reach = Position(self.reading.read_to.0 + LAST_FOLD_EVENTS_MAX);
        if self.reading.emitted_up_to > reach { Ok(None) } else { self.store.head().await.map(Some) }
    }

    /// False if the log can no longer be used.
    async fn catch_up_with_retry(&mut self, up_to: Option<Position>) -> bool {
        let mut backoff = Backoff::new();
        while let Err(error) = self.catch_up(up_to).await {
            if error.is_final() {
                return false;
            }
            backoff.wait(&error).await;
        }
        true
    }

    /// Appends the pending output, one append for each cause.
    async fn append_due(&mut self) -> Result<(), Error> {
        while let Some((cause, emitted)) = self.reading.due.front() {
            match self.store.append(reaction::<R>(cause, emitted)?).await {
                Ok(_) => {}
                // Every host would be refused alike.
                Err(
                    error @ (Error::IdReused { .. }
                    | Error::PartlyKnown { .. }
                    | Error::InvalidAppend { .. }
                    | Error::LimitPassed { .. }),
                ) => {
                    tracing::warn!(process = R::NAME, cause = %cause.position, %error, "skipped a reaction");
                }
                Err(error) => return Err(error),
            }
            self.reading.due.pop_front();
        }
        Ok(())
    }
}

/// The position up to which a process has emitted everything, according to the log: the cause of its newest event.
async fn emitted_up_to<R: Reactor>(store: &EventStore) -> Result<Position, Error> {
    let own = Query::stream(R::STREAM);
    let mut rest = Some(Range::default().backwards());
    while let Some(range) = rest {
        let page = store.read(&own, range, LEFT_OFF_PAGE).await?;
        for recorded in &page.events {
            // An event without a cause is not from this process.
            let Some(cause) = recorded.metadata().ok().and_then(|metadata| metadata.causation_id) else { continue };
            let found = store.read(&Query::event(cause), Range::default(), 1).await?;
            // A cause comes before its consequences, so everything up to there was handled, even if the log lacks the
            // cause.
            return Ok(found.events.first().map_or(recorded.position, |cause| cause.position.min(recorded.position)));
        }
        rest = range.rest(&page);
    }
    Ok(Position(0))
}

/// The output for one cause as one append, with a write for each project.
fn reaction<R: Reactor>(cause: &Recorded, emitted: &[Emitted<R::Event>]) -> Result<Append, Error> {
    let follows = Cause::reaction(R::NAME, cause);
    let mut writes: Vec<(&str, Vec<NewEvent>)> = Vec::new();
    for (index, Emitted { project, event, tags }) in emitted.iter().enumerate() {
        let id = derived_event_id(R::NAME, cause.created_at, cause.event_id, index);
        let event = NewEvent::of(event, follows.metadata())?.with_id(id).with_tags(tags.iter().cloned());
        match writes.iter_mut().find(|(known, _)| known == project) {
            Some((_, events)) => events.push(event),
            None => writes.push((project, vec![event])),
        }
    }
    let append = |append: Append, (project, events)| append.and(R::STREAM, project, Expected::Any, events);
    Ok(writes.into_iter().fold(Append::default(), append))
}
