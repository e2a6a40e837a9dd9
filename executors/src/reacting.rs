//! Hosts the processes that react to the log ([`Reactor`]): it reads, asks what is due, and appends that.
//!
//! A host begins where the process was left off: it folds the log from the newest snapshot on, else from the beginning, and
//! appends nothing up to the cause of the newest event that the process has appended. The ids of what it appends derive
//! from the cause, so a host that repeats another's work, after a crash or beside it, appends nothing twice. It decides
//! nothing.
//!
//! It reads events as they stand in the log: what follows from sealed texts would differ with who has their key, and would
//! tell of them in snapshots and in what is appended.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use crewlog_mq::{
    Append, Cause, Error, EventStore, Expected, Last, NewEvent, Position, Query, Range, Recorded, Snapshots, Start,
    derived_event_id,
};
use crewlog_planner::crew::{Emitted, Reactor};
use futures::StreamExt;
use tokio::sync::watch;

use crate::backoff::Backoff;
use crate::liveness::LeaderLock;
use crate::run::is_set;

/// Events read at a time.
const PAGE: usize = 500;
/// Events read at a time to find where a process left off: it is almost always the newest of its stream.
const LEFT_OFF_PAGE: usize = 16;
/// How long a stopping host may take to handle the events already in the log.
const LAST_CATCH_UP_MAX: Duration = Duration::from_secs(5);
/// How many events a host that is to end may still have to fold before it has anything to append: about half of what
/// fits into that time. What it folds beyond would be thrown away.
const LAST_FOLD_EVENTS_MAX: i64 = 250_000;

/// Hosts a process until `stop` is set. On one machine and for one `folder` one host at a time is active; the others
/// wait, and one of them takes over when it ends or dies. Before it ends it takes in what is in the log by then, as far
/// as a few seconds suffice. It ends at once when too much is left to fold of what its predecessors have spoken of: then
/// only a host that lives longer brings the process up to date.
///
/// # Errors
/// When the file of the leader lock cannot be written. Transient errors of the log are retried.
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
            "it ends before it has taken in all; the next host begins anew, and says the rest when it lives long enough"
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
    /// Set once it is known where the process was left off.
    has_begun: bool,
}

/// How far a process has read, and its pending output.
struct Reading<R: Reactor> {
    reactor: R,
    read_to: Position,
    /// The process has emitted all that follows from the log up to here.
    emitted_up_to: Position,
    /// The last event that was read, when its append ends with it: only then is the state one of the log's.
    end: Option<Last>,
    /// An event was passed over that a newer program may be able to read: the state lacks it, and must not outlive this one.
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
    /// Takes in one page, whole or not at all, and says of how many events.
    async fn next_page(&mut self, store: &EventStore, up_to: Option<Position>) -> Result<usize, Error> {
        let page = store.read(&Query::all(), Range { after: self.read_to, up_to, ..Range::default() }, PAGE).await?;
        let Some(last) = page.events.last() else { return Ok(0) };
        let n_events = page.events.len();
        // The page does not show whether the last append in it is complete.
        let last_is_end = store.whole(last.position).await? == last.position;
        let mut events = page.events.into_iter().peekable();
        while let Some(recorded) = events.next() {
            if let Err(error) = self.reactor.handle(&recorded) {
                tracing::warn!(process = R::NAME, %error, "an event is passed over");
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

    /// Takes in the log up to a position, or up to its head, and appends what follows.
    ///
    /// # Errors
    /// A fault of the log; another call continues from there.
    pub async fn catch_up(&mut self, up_to: Option<Position>) -> Result<(), Error> {
        self.begin(up_to).await?;
        loop {
            self.append_due().await?;
            // All that follows from what the state holds is in the log now, so another host may go on with it.
            if let Some(last) = self.reading.end.filter(|_| !self.reading.lacks_some) {
                self.snapshots.keep(&self.reading.reactor, last).await;
            }
            match self.reading.next_page(&self.store, up_to).await? {
                0 => return Ok(()),
                n_events => self.snapshots.fold(n_events),
            }
        }
    }

    /// Finds out where the process was left off, once; a snapshot that is ahead of `up_to` is of no use.
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

    /// Takes in the log until it is closed or has gone back, and survives its other faults.
    async fn follow(&mut self) {
        while self.catch_up_with_retry(None).await {
            // It only says when to read on: pages tell more of appends than single events do.
            let mut news = pin!(self.store.follow(&Query::all(), Start::After(self.reading.read_to)));
            while let Some(Err(error)) = news.next().await {
                if error.is_final() {
                    return;
                }
            }
        }
    }

    /// Takes in what is in the log now. False when so much is left to fold first that it does not begin to.
    async fn finish(mut self) -> bool {
        let mut backoff = Backoff::new();
        let head = loop {
            match self.head_in_reach().await {
                Ok(Some(head)) => break head,
                Ok(None) => return false,
                Err(error) if error.is_final() => return false,
                Err(error) => back_off::<R>(&error, &mut backoff).await,
            }
        };
        self.catch_up_with_retry(Some(head)).await
    }

    /// The head of the log; nothing when the process was left off too far ahead.
    async fn head_in_reach(&mut self) -> Result<Option<Position>, Error> {
        self.begin(None).await?;
        let reach = Position(self.reading.read_to.0 + LAST_FOLD_EVENTS_MAX);
        if self.reading.emitted_up_to > reach { Ok(None) } else { self.store.head().await.map(Some) }
    }

    /// False when the log can be used no more.
    async fn catch_up_with_retry(&mut self, up_to: Option<Position>) -> bool {
        let mut backoff = Backoff::new();
        while let Err(error) = self.catch_up(up_to).await {
            if error.is_final() {
                return false;
            }
            back_off::<R>(&error, &mut backoff).await;
        }
        true
    }

    /// Appends what is due, all that follows from one cause in one append.
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
                    tracing::warn!(process = R::NAME, cause = %cause.position, %error, "a reaction is passed over");
                }
                Err(error) => return Err(error),
            }
            self.reading.due.pop_front();
        }
        Ok(())
    }
}

/// Up to where a process has said what follows, as the log knows it: the cause of the newest event that it has appended.
async fn emitted_up_to<R: Reactor>(store: &EventStore) -> Result<Position, Error> {
    let own = Query::stream(R::STREAM);
    let mut rest = Some(Range::default().backwards());
    while let Some(range) = rest {
        let page = store.read(&own, range, LEFT_OFF_PAGE).await?;
        for recorded in &page.events {
            // An event without a cause is not from this process.
            let Some(cause) = recorded.metadata().ok().and_then(|metadata| metadata.causation_id) else { continue };
            let found = store.read(&Query::event(cause), Range::default(), 1).await?;
            // A cause comes before its consequences, so all up to there was seen even if it is not in the log.
            return Ok(found.events.first().map_or(recorded.position, |cause| cause.position.min(recorded.position)));
        }
        rest = range.rest(&page);
    }
    Ok(Position(0))
}

async fn back_off<R: Reactor>(error: &Error, backoff: &mut Backoff) {
    tracing::warn!(process = R::NAME, %error, "the log failed and is tried again");
    backoff.wait().await;
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
