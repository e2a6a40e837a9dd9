//! One partition in the hands of one worker: hands over its events one by one, tries again, parks, acknowledges, and keeps
//! the lease. It ends when the lease is lost or given back; it never acts on one that is over.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::Instant;

use super::control::Known;
use super::delivery::{Delivery, GroupHandler, HandlerError, Lease};
use super::event::{AggregateName, GROUPS_STREAM};
use super::pages::{Batch, Pages, is_given};
use super::partition::{BEHIND_MAX, Behind, Progress, partition_of};
use super::state::{GroupCommand, GroupError, GroupVersion, PARKED_MAX};
use crate::cell::{CellChange, CellExpected};
use crate::error::Error;
use crate::handler::{Cause, Handler};
use crate::position::{Expected, Position};
use crate::query::{Query, Range};
use crate::record::{Append, Appended, NewEvent, Recorded, Write};
use crate::store::EventStore;
use crate::tail::Follower;

/// Acknowledged at the latest after so many events,
const ACK_EVENTS_MAX: usize = 100;
/// and after so long.
const ACK_INTERVAL: Duration = Duration::from_millis(100);
/// The wait after a fault of the database.
const FAULT_WAIT: Duration = Duration::from_millis(100);
/// How many events of an aggregate that is behind are read at a time.
const BEHIND_PAGE: usize = 32;
/// The longest error that is kept.
const ERROR_BYTES_MAX: usize = 1000;

/// How a worker goes about its work.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) version: u32,
    pub(super) space: String,
    pub(super) owner: String,
    pub(super) lease: Duration,
    pub(super) backoff: (Duration, Duration),
    pub(super) park_after: u32,
    pub(super) parked_max: usize,
}

/// What all partitions of a worker share.
pub(super) struct Shared<'a> {
    pub(super) store: &'a EventStore,
    pub(super) settings: Settings,
    pub(super) handler: &'a dyn GroupHandler,
    pub(super) pages: Pages,
    pub(super) permits: Semaphore,
    pub(super) known: watch::Receiver<Arc<Known>>,
    /// How far a version may go that rebuilds; all the way when unset.
    pub(super) up_to: watch::Receiver<Option<Position>>,
}

impl Shared<'_> {
    /// Nothing was said of the group that this worker has not heard and that would take its right to act.
    pub(super) fn guarded(&self, append: Append, known: &Known) -> Append {
        let said = Query::aggregate(GROUPS_STREAM, &self.settings.name).of_types(["Reset", "Promoted", "Retired"]);
        append.none_matching(said, known.position)
    }
}

/// Why a partition is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// It was given back.
    Released,
    /// Another holds it, or may.
    Lost,
    /// The version is over.
    Retired,
}

/// How an attempt ended.
enum Attempt {
    Handled(Box<Delivery>),
    Failed { error: String, is_last: bool },
}

/// A partition that is held.
pub(super) struct Partition<'a> {
    shared: &'a Shared<'a>,
    number: u16,
    lease: Lease,
    progress: Progress,
    /// How many events are handled and not acknowledged; set also when only the checkpoint has moved.
    n_unacknowledged: usize,
    is_changed: bool,
    acknowledged_at: Instant,
    due: HashMap<AggregateName, Instant>,
    batch: Option<Arc<Batch>>,
    follower: Follower,
    known: watch::Receiver<Arc<Known>>,
    /// What of it has been acted upon.
    heard: Arc<Known>,
    up_to: watch::Receiver<Option<Position>>,
    release: watch::Receiver<bool>,
    /// Whether those behind are next, or those ahead.
    behind_is_next: bool,
}

impl<'a> Partition<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        number: u16,
        progress: Progress,
        claimed: &Appended,
        release: watch::Receiver<bool>,
    ) -> Self {
        Self {
            shared,
            number,
            lease: Lease::of(claimed, shared.settings.lease),
            progress,
            n_unacknowledged: 0,
            is_changed: false,
            acknowledged_at: Instant::now(),
            due: HashMap::new(),
            batch: None,
            follower: shared.store.backend().tail().follow(),
            known: shared.known.clone(),
            heard: shared.known.borrow().clone(),
            up_to: shared.up_to.clone(),
            release,
            behind_is_next: false,
        }
    }

    /// Works until the partition is left; then how far it came.
    pub(super) async fn run(mut self) -> (u16, Left, Progress) {
        self.known.mark_changed();
        let left = loop {
            if let Err(left) = self.step().await {
                break left;
            }
        };
        (self.number, left, self.progress)
    }

    async fn step(&mut self) -> Result<(), Left> {
        if *self.release.borrow() {
            return Err(self.give_back().await);
        }
        self.listen()?;
        self.keep().await?;
        let heard = Arc::clone(&self.heard);
        // Who held the partition before may have parked what is not heard of yet.
        if heard.group.is_paused() || heard.sequence < self.progress.read_group_to {
            return self.wait(None, false).await;
        }
        let version = heard.group.version(self.shared.settings.version).map_err(|_| Left::Retired)?;
        let due = self.next_due(version);
        if let Ok(aggregate) = &due
            && (self.behind_is_next || self.is_full())
        {
            self.behind_is_next = false;
            return self.catch_up(aggregate, version).await;
        }
        self.behind_is_next = true;
        if !self.is_full() {
            match self.next_event(version).await {
                Next::Event(event) => return self.take(event).await,
                Next::Moved => return Ok(()),
                Next::Nothing => {}
            }
        }
        match due {
            Ok(_behind) => Ok(()),
            Err(next) => self.wait(next, !self.is_full()).await,
        }
    }

    /// Takes in what was said of the group.
    fn listen(&mut self) -> Result<(), Left> {
        if !self.known.has_changed().unwrap_or(true) {
            return Ok(());
        }
        let heard = self.known.borrow_and_update().clone();
        self.heard = Arc::clone(&heard);
        let version = heard.group.version(self.shared.settings.version).map_err(|_| Left::Retired)?;
        if version.n_resets > self.progress.n_resets {
            let Progress { read_group_to, owner, .. } = std::mem::take(&mut self.progress);
            self.progress = Progress { read_group_to, owner, ..Progress::start(version) };
            (self.batch, self.is_changed) = (None, true);
        }
        self.is_changed |= self.progress.stopped.take().is_some();
        // What is parked waits for a person, and what a person gave up is not waited for.
        self.progress.behind.retain_mut(|behind| match version.parked.get(&behind.aggregate) {
            Some(parked) if parked.is_replayed => {
                behind.from = behind.from.max(parked.from);
                true
            }
            Some(_) => false,
            None => true,
        });
        self.take_up_replays(version);
        Ok(())
    }

    /// Half of the places are kept for events that fail.
    fn take_up_replays(&mut self, version: &GroupVersion) {
        for (aggregate, parked) in version.parked.iter().filter(|(_, parked)| parked.is_replayed) {
            let is_mine = partition_of(&aggregate.stream_id, &aggregate.aggregate_id, version.n_partitions);
            if self.progress.behind.len() >= BEHIND_MAX / 2 {
                return;
            }
            if is_mine == self.number && self.progress.behind(aggregate).is_none() {
                let (aggregate, from) = (aggregate.clone(), parked.from);
                self.progress.behind.push(Behind { aggregate, from, n_attempts: 0, error: String::new() });
                self.is_changed = true;
            }
        }
    }

    fn is_full(&self) -> bool {
        self.progress.stopped.is_some() || self.progress.behind.len() >= BEHIND_MAX
    }

    /// The aggregate behind that is to be tried now, or when there will be one.
    fn next_due(&self, version: &GroupVersion) -> Result<AggregateName, Option<Instant>> {
        let now = Instant::now();
        let mut next = None;
        for behind in &self.progress.behind {
            match self.due.get(&behind.aggregate) {
                Some(due) if *due > now => next = Some(next.map_or(*due, |next: Instant| next.min(*due))),
                Some(_) | None => {
                    let is_parked = version.parked.get(&behind.aggregate).is_some_and(|parked| !parked.is_replayed);
                    if !is_parked {
                        return Ok(behind.aggregate.clone());
                    }
                }
            }
        }
        Err(next)
    }

    /// The next event of the partition that is to be handled now; passes over all others.
    async fn next_event(&mut self, version: &GroupVersion) -> Next {
        let up_to = *self.up_to.borrow_and_update();
        let checkpoint = self.progress.checkpoint;
        if up_to.is_some_and(|up_to| up_to <= checkpoint) {
            return Next::Nothing;
        }
        let batch = match &self.batch {
            Some(batch) if batch.next > checkpoint => Arc::clone(batch),
            Some(_) | None => match self.shared.pages.after(checkpoint, up_to).await {
                Ok(batch) => batch,
                Err(error) => {
                    tracing::warn!(%error, "a read for a group failed and is tried again");
                    tokio::time::sleep(FAULT_WAIT).await;
                    return Next::Moved;
                }
            },
        };
        let first = batch.events.partition_point(|event| event.position <= checkpoint);
        for event in &batch.events[first..] {
            if partition_of(&event.stream_id, &event.aggregate_id, version.n_partitions) == self.number {
                let aggregate = AggregateName::of(event);
                if self.progress.behind(&aggregate).is_none() && !version.parked.contains_key(&aggregate) {
                    self.batch = Some(Arc::clone(&batch));
                    return Next::Event(Arc::clone(event));
                }
            }
        }
        if batch.next > checkpoint {
            self.progress.checkpoint = batch.next;
            self.is_changed = true;
            self.batch = None;
            return Next::Moved;
        }
        Next::Nothing
    }

    /// Handles the next event ahead, or puts its aggregate behind.
    async fn take(&mut self, event: Arc<Recorded>) -> Result<(), Left> {
        let after = Progress { checkpoint: event.position, ..self.progress.clone() };
        match self.attempt(&event, 1, after.clone()).await? {
            Attempt::Handled(delivery) => self.settle(&event, 1, *delivery).await,
            Attempt::Failed { error, is_last } => {
                self.progress = after;
                self.failed(&event, 1, error, is_last).await
            }
        }
    }

    /// Handles the next event of an aggregate that is behind, or lets it flow again.
    async fn catch_up(&mut self, aggregate: &AggregateName, version: &GroupVersion) -> Result<(), Left> {
        let Some(index) = self.progress.behind(aggregate) else { return Ok(()) };
        let Behind { from, n_attempts, .. } = self.progress.behind[index];
        let range = Range::between(Position(from.0 - 1), self.progress.checkpoint);
        let query = Query::aggregate(&aggregate.stream_id, &aggregate.aggregate_id);
        let page = match self.shared.store.read(&query, range, BEHIND_PAGE).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "a read for a group failed and is tried again");
                self.due.insert(aggregate.clone(), Instant::now() + FAULT_WAIT);
                return Ok(());
            }
        };
        let is_wanted = |event: &Recorded| version.query.matches(event) && is_given(event);
        let (next, more) = (page.next, page.more);
        let mut after = Progress { stopped: None, ..self.progress.clone() };
        match page.events.into_iter().find(is_wanted) {
            Some(event) => {
                let event = Arc::new(event);
                let n_attempts = if event.position == from { n_attempts + 1 } else { 1 };
                let (from, error) = (Position(event.position.0 + 1), String::new());
                after.behind[index] = Behind { aggregate: aggregate.clone(), from, n_attempts: 0, error };
                match self.attempt(&event, n_attempts, after).await? {
                    Attempt::Handled(delivery) => self.settle(&event, n_attempts, *delivery).await,
                    Attempt::Failed { error, is_last } => self.failed(&event, n_attempts, error, is_last).await,
                }
            }
            None if more => {
                self.progress.behind[index].from = Position(next.0 + 1);
                self.is_changed = true;
                Ok(())
            }
            None => {
                after.behind.remove(index);
                let (version, up_to) = (self.shared.settings.version, after.checkpoint);
                let ended = GroupCommand::EndReplay { version, aggregate: aggregate.clone(), up_to };
                self.record(ended, after).await.map(|_refused| ())
            }
        }
    }

    /// Has the handler handle an event, and keeps the lease meanwhile.
    async fn attempt(&mut self, event: &Arc<Recorded>, n_attempts: u32, after: Progress) -> Result<Attempt, Left> {
        let Shared { handler, permits, store, settings, .. } = self.shared;
        let _permit = loop {
            tokio::select! {
                permit = permits.acquire() => break permit,
                () = tokio::time::sleep_until(self.lease.renew_at) => self.acknowledge().await?,
            }
        };
        if store.now() >= self.lease.until {
            return Err(Left::Lost);
        }
        let lease = Arc::new(Mutex::new(Lease { is_given: false, ..self.lease }));
        let mut delivery = Delivery {
            group: settings.name.clone(),
            cause: Cause::event(event),
            event: Arc::clone(event),
            partition: self.number,
            n_attempts,
            has_effects: self.heard.group.active() == Some(settings.version),
            writes: Vec::new(),
            n_derived: 0,
            is_last_attempt: false,
            acknowledged: None,
            after,
            lease: Arc::clone(&lease),
            space: settings.space.clone(),
            hold: settings.lease,
        };
        let handled = {
            // Both are polled all the time: a handler that holds what the renewal needs must be able to go on.
            let mut renewing = std::pin::pin!(self.renew(&lease));
            let handled = {
                // It may panic before it gives a future.
                let handling = async { handler.handle(event, &mut delivery).await };
                let mut handling = std::pin::pin!(AssertUnwindSafe(handling).catch_unwind());
                tokio::select! {
                    biased;
                    handled = &mut handling => handled,
                    left = &mut renewing => return Err(left),
                }
            };
            // A renewal that has begun is waited for: it changes the version.
            tokio::select! {
                biased;
                left = &mut renewing => return Err(left),
                _done = lease.lock() => {}
            }
            handled
        };
        self.lease = *lease.lock().await;
        let error: HandlerError = match handled {
            Ok(Ok(())) => return Ok(Attempt::Handled(Box::new(delivery))),
            Ok(Err(error)) if delivery.acknowledged.is_some() => {
                tracing::warn!(%error, position = %event.position, "a handler failed after it had acknowledged");
                return Ok(Attempt::Handled(Box::new(delivery)));
            }
            Ok(Err(error)) => error,
            Err(panic) => format!("the handler panicked: {}", what_it_said(&*panic)).into(),
        };
        let is_undecodable = matches!(error.downcast_ref(), Some(Error::Decode { .. }));
        Ok(Attempt::Failed { error: error.to_string(), is_last: delivery.is_last_attempt || is_undecodable })
    }

    /// Renews the lease while a handler works, unless that has the acknowledgement in its own hands.
    async fn renew(&self, lease: &Mutex<Lease>) -> Left {
        loop {
            let renew_at = lease.lock().await.renew_at;
            tokio::time::sleep_until(renew_at).await;
            let mut held = lease.lock().await;
            if held.is_given {
                drop(held);
                return std::future::pending().await;
            }
            let Settings { space, lease, .. } = &self.shared.settings;
            let expected = CellExpected::Held(held.version);
            let change = self.progress.change(space, self.number, expected, Some(*lease));
            match self.shared.store.append(Append::default().cell(change)).await {
                Ok(appended) => *held = Lease::of(&appended, *lease),
                Err(Error::CellMismatch { .. }) => return Left::Lost,
                Err(error) => match self.fault(&error).await {
                    Ok(()) => {}
                    Err(left) => return left,
                },
            }
        }
    }

    /// Commits the effects of an event that was handled, and acknowledges it.
    async fn settle(&mut self, event: &Arc<Recorded>, n_attempts: u32, delivery: Delivery) -> Result<(), Left> {
        let Delivery { writes, after, acknowledged, has_effects, .. } = delivery;
        if let Some(appended) = acknowledged {
            self.progress = after;
            self.renewed(&appended);
        } else if has_effects && !writes.is_empty() {
            match self.commit(writes, &after).await? {
                Committed::Done => self.progress = after,
                Committed::AgainLater => return Ok(()),
                Committed::Refused(error) => {
                    // Of an event ahead the aggregate is now behind.
                    self.progress.checkpoint = after.checkpoint;
                    return self.failed(event, n_attempts, error.to_string(), false).await;
                }
            }
        } else {
            self.progress = after;
            self.is_changed = true;
            self.n_unacknowledged += 1;
        }
        self.due.remove(&AggregateName::of(event));
        Ok(())
    }

    /// Puts the aggregate of an event that failed behind, or parks it.
    async fn failed(
        &mut self,
        event: &Arc<Recorded>,
        n_attempts: u32,
        error: String,
        is_last: bool,
    ) -> Result<(), Left> {
        let settings = &self.shared.settings;
        let (aggregate, position) = (AggregateName::of(event), event.position);
        let error = shortened(error);
        tracing::warn!(group = settings.name, %position, n_attempts, error, "an event could not be handled");
        let behind = Behind { aggregate: aggregate.clone(), from: position, n_attempts, error: error.clone() };
        match self.progress.behind(&aggregate) {
            Some(index) => self.progress.behind[index] = behind,
            None => self.progress.behind.push(behind),
        }
        self.is_changed = true;
        let mut wait = doubled(settings.backoff, n_attempts);
        if is_last || n_attempts >= settings.park_after {
            let mut after = self.progress.clone();
            after.behind.retain(|behind| behind.aggregate != aggregate);
            let (version, event_id, parked_max) =
                (settings.version, event.event_id, settings.parked_max.min(PARKED_MAX));
            let aggregate = aggregate.clone();
            let park = GroupCommand::Park { version, aggregate, position, event_id, n_attempts, error, parked_max };
            let Some(refusal) = self.record(park, after).await? else { return Ok(()) };
            self.progress.stopped = Some(refusal.to_string());
            wait = settings.backoff.1;
        }
        self.due.insert(aggregate, Instant::now() + wait);
        Ok(())
    }

    /// Records a decision in the log together with how far the partition then is. `Some` when the group refuses.
    async fn record(&mut self, command: GroupCommand, after: Progress) -> Result<Option<GroupError>, Left> {
        loop {
            let known = self.known.borrow().clone();
            let is_reset = |version: &GroupVersion| version.n_resets > self.progress.n_resets;
            if known.group.version(self.shared.settings.version).is_ok_and(is_reset) {
                // All of this is done again.
                self.known.mark_changed();
                return Ok(None);
            }
            let decided = match known.group.clone().process(command.clone()) {
                Ok(decided) => decided,
                Err(GroupError::Retired { .. } | GroupError::UnknownVersion { .. }) => return Err(Left::Retired),
                Err(refusal) => return Ok(Some(refusal)),
            };
            if decided.is_empty() {
                (self.progress, self.is_changed) = (after, true);
                return Ok(None);
            }
            let events = decided.iter().map(|event| NewEvent::of(event, Cause::request().metadata()));
            let events = events.collect::<Result<Vec<_>, _>>().expect("they are of strings and numbers");
            let n_events = i64::try_from(events.len()).unwrap_or(0);
            let after = Progress { read_group_to: known.sequence + n_events, ..after.clone() };
            let expected = Expected::Sequence(known.sequence);
            let append = Append::to(GROUPS_STREAM, &self.shared.settings.name, expected, events);
            match self.shared.store.append(append.cell(self.change(&after))).await {
                Ok(appended) => {
                    self.progress = after;
                    self.renewed(&appended);
                    return Ok(None);
                }
                Err(Error::CellMismatch { .. }) => return Err(Left::Lost),
                Err(Error::SequenceMismatch { actual, .. }) => {
                    let heard = self.known.wait_for(|known| known.sequence >= actual);
                    heard.await.map_err(|_| Left::Released)?;
                    // What was said is to be listened to as well.
                    self.known.mark_changed();
                }
                Err(error) => self.fault(&error).await?,
            }
        }
    }

    /// Appends effects and the acknowledgement in one.
    async fn commit(&mut self, writes: Vec<Write>, after: &Progress) -> Result<Committed, Left> {
        let effects = Append { writes, ..Append::default() };
        loop {
            let append = self.shared.guarded(effects.clone().cell(self.change(after)), &self.heard);
            match self.shared.store.append(append).await {
                Ok(appended) if !appended.repeated => {
                    self.renewed(&appended);
                    return Ok(Committed::Done);
                }
                Ok(_repeated) => {}
                Err(Error::CellMismatch { .. }) => return Err(Left::Lost),
                Err(Error::MatchFound { position, .. }) => {
                    let heard = self.known.wait_for(|known| known.position >= position);
                    heard.await.map_err(|_| Left::Released)?;
                    self.known.mark_changed();
                    return Ok(Committed::AgainLater);
                }
                Err(error @ (Error::IdReused { .. } | Error::PartlyKnown { .. })) => {
                    tracing::warn!(%error, "this effect is in the log with other content; it is left as it is");
                }
                Err(error) if is_refusal(&error) => return Ok(Committed::Refused(error)),
                Err(error) => {
                    self.fault(&error).await?;
                    continue;
                }
            }
            // The effects are there; the acknowledgement goes with the next ones.
            self.is_changed = true;
            self.n_unacknowledged = ACK_EVENTS_MAX;
            return Ok(Committed::Done);
        }
    }

    /// Acknowledges and renews the lease, as it becomes time.
    async fn keep(&mut self) -> Result<(), Left> {
        let now = Instant::now();
        let is_due =
            self.is_changed && (self.n_unacknowledged >= ACK_EVENTS_MAX || now >= self.acknowledged_at + ACK_INTERVAL);
        if is_due || now >= self.lease.renew_at { self.acknowledge().await } else { Ok(()) }
    }

    async fn acknowledge(&mut self) -> Result<(), Left> {
        loop {
            match self.shared.store.append(Append::default().cell(self.change(&self.progress))).await {
                Ok(appended) => {
                    self.renewed(&appended);
                    return Ok(());
                }
                Err(Error::CellMismatch { .. }) => return Err(Left::Lost),
                Err(error) => self.fault(&error).await?,
            }
        }
    }

    async fn give_back(&mut self) -> Left {
        let free = CellChange { hold: None, ..self.change(&self.progress) };
        match self.shared.store.append(Append::default().cell(free)).await {
            Ok(_) => Left::Released,
            // It is over by itself in time.
            Err(_) => Left::Lost,
        }
    }

    fn change(&self, progress: &Progress) -> CellChange {
        let Settings { space, lease, .. } = &self.shared.settings;
        progress.change(space, self.number, CellExpected::Held(self.lease.version), Some(*lease))
    }

    /// The lease runs anew, and nothing is left to acknowledge.
    fn renewed(&mut self, appended: &Appended) {
        self.lease = Lease::of(appended, self.shared.settings.lease);
        (self.n_unacknowledged, self.is_changed, self.acknowledged_at) = (0, false, Instant::now());
    }

    /// Waits after a fault of the database, unless the lease is over.
    async fn fault(&self, error: &Error) -> Result<(), Left> {
        tracing::warn!(group = self.shared.settings.name, %error, "an append for a group failed and is tried again");
        tokio::time::sleep(FAULT_WAIT).await;
        if self.shared.store.now() >= self.lease.until { Err(Left::Lost) } else { Ok(()) }
    }

    /// Waits until something may be done.
    async fn wait(&mut self, due: Option<Instant>, goes_on: bool) -> Result<(), Left> {
        let mut until = self.lease.renew_at;
        if self.is_changed {
            until = until.min(self.acknowledged_at + ACK_INTERVAL);
        }
        let until = due.map_or(until, |due| until.min(due));
        let read_to = self.progress.checkpoint;
        let is_idle = goes_on && self.up_to.borrow().is_none();
        tokio::select! {
            _ = self.known.changed() => self.known.mark_changed(),
            _ = self.up_to.changed() => {}
            _ = self.release.changed() => {}
            // What kept the backend from looking is told by it; it goes on looking.
            _ = self.follower.wait(read_to), if is_idle => {}
            () = tokio::time::sleep_until(until) => {}
        }
        Ok(())
    }
}

impl Lease {
    /// The lease that begins with an append whose last change is that of the partition's cell.
    fn of(appended: &Appended, lease: Duration) -> Self {
        Self {
            version: appended.cells.last().copied().unwrap_or_default(),
            until: appended.created_at.plus(lease),
            renew_at: Instant::now() + lease / 3,
            is_given: false,
        }
    }
}

/// What there is ahead.
enum Next {
    Event(Arc<Recorded>),
    /// It was none of this partition, and there may be more.
    Moved,
    Nothing,
}

/// What came of an append of effects.
enum Committed {
    Done,
    /// Something was said of the group that comes first.
    AgainLater,
    Refused(Error),
}

/// The log has judged and will judge so again: the handler must decide anew.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::SequenceMismatch { .. } | Error::InvalidAppend { .. } | Error::LimitPassed { .. } | Error::Encode { .. }
    )
}

fn doubled((first, max): (Duration, Duration), n_attempts: u32) -> Duration {
    let factor = 2_u32.saturating_pow(n_attempts.saturating_sub(1));
    first.saturating_mul(factor).min(max)
}

fn shortened(mut error: String) -> String {
    if error.len() > ERROR_BYTES_MAX {
        let end = (0..=ERROR_BYTES_MAX).rev().find(|end| error.is_char_boundary(*end)).unwrap_or(0);
        error.truncate(end);
    }
    error
}

fn what_it_said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it did not say why")
}
