//! A worker of a group: declares its version, takes its fair share of the partitions, and promotes a new version. It
//! judges other workers only by their cells, and time by log time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use super::control::{self, Known};
use super::delivery::GroupHandler;
use super::event::GROUPS_STREAM;
use super::held::{Left, Partition, Shared};
use super::pages::Pages;
use super::partition::{Progress, key, partition_of, partitions, space, workers_space};
use super::state::{GroupCommand, GroupError, GroupVersion, PARKED_MAX};
use crate::append::Append;
use crate::cell::{Cell, CellChange};
use crate::error::{Error, Result};
use crate::executed::ExecuteError;
use crate::expected::CellExpected;
use crate::limits::LEASE_MAX;
use crate::position::Position;
use crate::query::Query;
use crate::store::EventStore;
use crate::stream::Start;

/// The most workers counted in one version of a group.
const WORKERS_MAX: usize = 1024;
/// The longest interval between checks of the other workers.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The interval at which a rebuilding version checks the progress of the active one.
const REBUILD_INTERVAL: Duration = Duration::from_millis(100);
/// How long it then tries to reach that point, before it checks again.
const TARGET_TIME: Duration = Duration::from_secs(2);
/// Waiting for a group polls at intervals that grow from the first to the second.
const WAIT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// A durable subscription, as one of its workers sees it: a named group over a query, whose workers share its
/// partitions.
///
/// The first worker declares the name, version, query and partitions in the log, for all of them; the other settings
/// here apply to this worker only.
#[derive(Debug, Clone)]
pub struct Group {
    pub(super) store: EventStore,
    pub(super) name: String,
    pub(super) version: u32,
    query: Query,
    n_partitions: u16,
    start: Start,
    pub(super) lease: Duration,
    pub(super) backoff: (Duration, Duration),
    pub(super) park_after: u32,
    pub(super) parked_max: usize,
    n_concurrent: usize,
}

/// The reason why a worker ended without a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was stopped.
    Stopped,
    /// The version has ended: a newer one has replaced it, or a person has retired it.
    Retired,
}

impl EventStore {
    /// A durable subscription with this name.
    #[must_use]
    pub fn group(&self, name: &str) -> Group {
        Group {
            store: self.clone(),
            name: name.to_owned(),
            version: 1,
            query: Query::all(),
            n_partitions: 16,
            start: Start::Beginning,
            lease: Duration::from_secs(30),
            backoff: (Duration::from_millis(100), Duration::from_secs(30)),
            park_after: 5,
            parked_max: PARKED_MAX,
            n_concurrent: 16,
        }
    }
}

impl Group {
    /// Sets the version; default 1. A new version with other events, partitions or another handler rebuilds without
    /// effects until it reaches the active one, then replaces it.
    #[must_use]
    pub fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// Sets the events; default: all but those of stream `groups`.
    #[must_use]
    pub fn query(self, query: Query) -> Self {
        Self { query, ..self }
    }

    /// Sets the number of partitions; default 16, at most 1024.
    #[must_use]
    pub fn partitions(self, n_partitions: u16) -> Self {
        Self { n_partitions, ..self }
    }

    /// Sets the start of a newly declared version; default: the first event.
    #[must_use]
    pub fn start(self, start: Start) -> Self {
        Self { start, ..self }
    }

    /// Sets the lease duration; default 30 s. A worker that does not renew in time loses its partitions.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the waits before retries, which grow from the first to the second; default 100 ms to 30 s.
    #[must_use]
    pub fn backoff(self, first: Duration, max: Duration) -> Self {
        Self { backoff: (first, max), ..self }
    }

    /// Sets the number of attempts after which an event is parked; default 5.
    #[must_use]
    pub fn park_after(self, n_attempts: u32) -> Self {
        Self { park_after: n_attempts.max(1), ..self }
    }

    /// Sets how many aggregates may be parked at once before partitions stop; default and maximum 1000.
    #[must_use]
    pub fn parked_max(self, n_aggregates: usize) -> Self {
        Self { parked_max: n_aggregates, ..self }
    }

    /// Sets how many events this worker handles at once, each from another partition; default 16.
    #[must_use]
    pub fn concurrency(self, n_events: usize) -> Self {
        Self { n_concurrent: n_events.max(1), ..self }
    }

    /// Works without end; see [`Group::run_until`].
    ///
    /// # Errors
    /// As for [`Group::run_until`].
    pub async fn run(&self, handler: impl GroupHandler) -> Result<Ended, ExecuteError<GroupError>> {
        self.run_until(handler, std::future::pending()).await
    }

    /// Delivers the events of this worker's share of the partitions to a handler, one by one in each aggregate, until
    /// it is stopped or the version is retired. When stopped, it finishes and acknowledges the current events and
    /// releases the partitions; when dropped instead, the leases expire.
    ///
    /// Each event is handled at least once; appends through [`super::Delivery`] are in the log exactly once. Errors
    /// and panics of the handler never end the worker; faults of the database are retried.
    ///
    /// # Errors
    /// A refused declaration, a fault while declaring, an unreadable event of the group, [`Error::Closed`], or
    /// [`Error::WentBack`]: after that one run it again, and it continues from the positions in the log.
    pub async fn run_until(
        &self,
        handler: impl GroupHandler,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Ended, ExecuteError<GroupError>> {
        // If the log goes back, the worker's cached state is invalid.
        let group = Arc::new(Self { store: self.store.pinned(), ..self.clone() });
        let (store, tail) = (&group.store, group.store.backend().tail());
        group.declare().await?;
        let known = Known::read(store, &group.name).await?;
        let query = known.group.version(group.version).map_err(ExecuteError::Refused)?.query.clone();
        let is_active = known.group.active() == Some(group.version);
        let (tell, known) = watch::channel(Arc::new(known));
        let (tell_up_to, up_to) = watch::channel((!is_active).then_some(Position(0)));
        let shared = Shared {
            group: Arc::clone(&group),
            owner: format!("{}-{}", std::process::id(), Uuid::now_v7().simple()),
            handler: &handler,
            pages: Pages::new(store.clone(), query),
            permits: Semaphore::new(group.n_concurrent.min(Semaphore::MAX_PERMITS)),
            known,
            up_to,
        };
        let (begin, begun) = mpsc::unbounded_channel();
        let (end, left) = mpsc::unbounded_channel();
        let (held, remembered) = (BTreeMap::new(), BTreeMap::new());
        let mut worker = Worker { shared: &shared, begin, left, held, remembered, registered_at: None, target: None };
        // Pinned here, since moving it into `work` would make both futures larger.
        let stop = std::pin::pin!(stop);
        // All three are always polled: each may hold a resource that another one needs.
        let mut partitions = std::pin::pin!(run_all(begun, end));
        let ended = {
            let followed = control::follow(store, &group.name, &tell);
            let worked = worker.work(stop, &tell_up_to);
            tokio::select! {
                error = followed => Err(error.into()),
                ended = worked => ended,
                () = &mut partitions => Err(Error::Closed.into()),
                error = tail.ended(store.generation()) => Err(error.into()),
            }
        };
        // No partition should wait for news of the group any more: they are only released.
        drop(tell);
        tokio::select! {
            // First, so that a partition learns of its release before the channel of events closes.
            biased;
            () = worker.leave() => {}
            () = &mut partitions => {}
            // Leases cannot be released any more, even if a handler is still running.
            _over = tail.ended(store.generation()) => {}
        }
        ended
    }

    /// Waits until all partitions have handled every event up to a position, except parked ones. After that a writer
    /// can read the group's results for its own events.
    ///
    /// # Errors
    /// The group or the version does not exist or is retired, [`Error::WentBack`], or a fault of the database.
    pub async fn wait_until(&self, position: Position) -> Result<(), ExecuteError<GroupError>> {
        let group = Self { store: self.store.pinned(), ..self.clone() };
        let mut wait = WAIT.0;
        loop {
            if group.floor().await? >= position {
                return Ok(());
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(WAIT.1);
        }
    }

    /// All events up to here are handled, except parked ones.
    ///
    /// # Errors
    /// As for [`Group::wait_until`].
    pub async fn floor(&self) -> Result<Position, ExecuteError<GroupError>> {
        let known = Known::read(&self.store, &self.name).await?;
        let version = known.group.version(self.version).map_err(ExecuteError::Refused)?;
        Ok(floor(&self.store, &self.name, self.version, version).await?)
    }

    /// Declares the version in the log, unless it is already declared.
    ///
    /// # Errors
    /// [`GroupError::DeclaredOtherwise`] and other refusals, or a fault of the database.
    pub async fn declare(&self) -> Result<(), ExecuteError<GroupError>> {
        if self.lease.is_zero() || self.lease > LEASE_MAX {
            let reason = format!("a lease is for more than nothing and for {} s at the most", LEASE_MAX.as_secs());
            return Err(ExecuteError::Refused(GroupError::Invalid { reason }));
        }
        self.query.check()?;
        let start = self.start.position(&self.store).await?;
        let (version, query, n_partitions) = (self.version, self.query.clone(), self.n_partitions);
        let declared = GroupCommand::Declare { version, query, n_partitions, start };
        control::execute(&self.store, &self.name, declared).await.map(|_| ())
    }

    /// Sets a partition's cell to this progress, which renews its lease.
    pub(super) fn change(&self, number: u16, progress: &Progress, expected: CellExpected) -> CellChange {
        let value = serde_json::to_string(progress).expect("it is of strings and numbers");
        let change = CellChange::set(&space(&self.name, self.version), &key(number), value);
        change.expecting(expected).held_for(self.lease)
    }

    /// Adds a condition: the append is refused if a later event of the group may have revoked the right to act.
    pub(super) fn guarded(&self, append: Append, heard_to: Position) -> Append {
        let ends = Query::aggregate(GROUPS_STREAM, &self.name).of_types(["Reset", "Promoted", "Retired"]);
        append.none_matching(ends, heard_to)
    }
}

/// The position up to which all partitions of a version have handled every event, except parked ones.
async fn floor(store: &EventStore, name: &str, number: u32, version: &GroupVersion) -> Result<Position> {
    let partitions = partitions(store, name, number, version).await?.into_iter();
    let floors = partitions.map(|(_, progress)| progress.map_or(version.start, |progress| progress.floor()));
    Ok(floors.min().unwrap_or(version.start))
}

/// The position at which a rebuilding version takes over: one that the active version has reached. It is kept for a
/// moment, so that it can be reached while the active one advances, and then moves up; it never falls.
fn target(before: Option<(Position, Instant)>, next: Position, now: Instant) -> (Position, Instant) {
    match before {
        Some((before, since)) if next <= before || now < since + TARGET_TIME => (before, since),
        Some(_) | None => (next, now),
    }
}

type Run<'a> = BoxFuture<'a, (u16, Left, Progress)>;

/// Runs partitions as they arrive, and reports each one that was left with its progress. At most one run per
/// partition arrives.
async fn run_all(mut begun: mpsc::UnboundedReceiver<Run<'_>>, end: mpsc::UnboundedSender<(u16, Progress)>) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            begun = begun.recv() => match begun {
                Some(run) => running.push(run),
                None => return,
            },
            Some((number, left, progress)) = running.next() => {
                tracing::debug!(number, ?left, "a partition was left");
                if end.send((number, progress)).is_err() {
                    return;
                }
            }
        }
    }
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    begin: mpsc::UnboundedSender<Run<'a>>,
    left: mpsc::UnboundedReceiver<(u16, Progress)>,
    /// Tells each held partition to release itself.
    held: BTreeMap<u16, watch::Sender<bool>>,
    /// The progress of partitions that this worker has left: if a cell is deleted, less work is repeated.
    remembered: BTreeMap<u16, Progress>,
    registered_at: Option<Instant>,
    /// The position at which the version takes over, and the time when it was chosen.
    target: Option<(Position, Instant)>,
}

impl Worker<'_> {
    async fn work(
        &mut self,
        stop: impl Future<Output = ()> + Send,
        up_to: &watch::Sender<Option<Position>>,
    ) -> Result<Ended, ExecuteError<GroupError>> {
        let ticker = |every| {
            let mut ticker = tokio::time::interval(every);
            ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticker
        };
        let group = &self.shared.group;
        let mut look = ticker((group.lease / 3).min(LOOK_INTERVAL).max(Duration::from_millis(1)));
        let mut rebuild = ticker(REBUILD_INTERVAL);
        let mut known = self.shared.known.clone();
        let mut stop = std::pin::pin!(stop);
        loop {
            if known.borrow_and_update().group.version(group.version).is_err() {
                return Ok(Ended::Retired);
            }
            tokio::select! {
                biased;
                () = &mut stop => return Ok(Ended::Stopped),
                _ = known.changed() => {}
                Some((number, progress)) = self.left.recv() => {
                    self.held.remove(&number);
                    self.remembered.insert(number, progress);
                }
                _ = look.tick() => {
                    if let Err(error) = self.balance().await {
                        tracing::warn!(group = group.name, %error, "sharing the partitions failed and is tried again");
                    }
                }
                _ = rebuild.tick(), if up_to.borrow().is_some() => {
                    if let Err(error) = self.rebuild(up_to).await {
                        tracing::warn!(group = group.name, %error, "taking over failed and is tried again");
                    }
                }
            }
        }
    }

    /// Releases partitions beyond the fair share, or acquires free ones up to it.
    async fn balance(&mut self) -> Result<()> {
        self.register().await?;
        let n_workers = self.n_workers().await?;
        let known = self.shared.known.borrow().clone();
        let Shared { group, owner, .. } = self.shared;
        let Ok(version) = known.group.version(group.version) else { return Ok(()) };
        let share = usize::from(version.n_partitions).div_ceil(n_workers);
        if self.held.len() >= share {
            for release in self.held.values().skip(share) {
                release.send_replace(true);
            }
            return Ok(());
        }
        let mut partitions = partitions(&group.store, &group.name, group.version, version).await?;
        // Workers that start at the same time should not all try the same partitions first.
        let first = partition_of("", owner, version.n_partitions);
        for number in (first..version.n_partitions).chain(0..first) {
            if self.held.len() >= share {
                break;
            }
            if !self.held.contains_key(&number) {
                let (cell, found) = std::mem::take(&mut partitions[usize::from(number)]);
                self.claim(number, cell, found, version, known.position).await?;
            }
        }
        Ok(())
    }

    async fn claim(
        &mut self,
        number: u16,
        cell: Option<Cell>,
        found: Option<Progress>,
        version: &GroupVersion,
        known_to: Position,
    ) -> Result<()> {
        let Shared { group, owner, .. } = self.shared;
        let is_mine = found.as_ref().is_some_and(|progress| progress.owner == *owner);
        let held_until = cell.as_ref().and_then(|cell| cell.held_until);
        if !is_mine && held_until.is_some_and(|until| group.store.now() < until) {
            return Ok(());
        }
        let remembered = self.remembered.get(&number).filter(|progress| progress.n_resets >= version.n_resets);
        let progress = found.or_else(|| remembered.cloned()).unwrap_or_else(|| Progress::start(version));
        let progress = Progress { owner: owner.clone(), ..progress };
        // If another worker created and released the cell meanwhile, its progress must not be overwritten.
        let expected = cell.map_or(CellExpected::Absent, |cell| CellExpected::Version(cell.version));
        let change = group.change(number, &progress, expected);
        match group.store.append(group.guarded(Append::default().cell(change), known_to)).await {
            Ok(claimed) => {
                let (release, released) = watch::channel(false);
                let run = Partition::new(self.shared, number, progress, &claimed, released).run().boxed();
                // Fails only if this worker is about to end.
                if self.begin.send(run).is_ok() {
                    self.held.insert(number, release);
                }
            }
            // Another worker was faster, or there is news of the group to read first.
            Err(Error::CellMismatch { .. } | Error::MatchFound { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Renews this worker's registration.
    async fn register(&mut self) -> Result<()> {
        let group = &self.shared.group;
        if self.registered_at.is_some_and(|at| at.elapsed() < group.lease / 3) {
            return Ok(());
        }
        let sign = self.sign().held_for(group.lease);
        group.store.append(Append::default().cell(sign)).await?;
        self.registered_at = Some(Instant::now());
        Ok(())
    }

    fn sign(&self) -> CellChange {
        let Shared { group, owner, .. } = self.shared;
        CellChange::set(&workers_space(&group.name, group.version), owner, "{}".to_owned())
    }

    /// The number of live workers, including this one. Deletes expired registrations of others.
    async fn n_workers(&mut self) -> Result<usize> {
        let Shared { group, owner, .. } = self.shared;
        let space = workers_space(&group.name, group.version);
        let signs = group.store.cells(&space, "", WORKERS_MAX).await?;
        let now = group.store.now();
        let (live, over): (Vec<_>, Vec<_>) =
            signs.into_iter().partition(|sign| sign.held_until.is_some_and(|until| now < until));
        for sign in over.into_iter().filter(|sign| sign.key != *owner) {
            let gone = CellChange::delete(&space, &sign.key).expecting(CellExpected::Version(sign.version));
            match group.store.append(Append::default().cell(gone)).await {
                Ok(_) | Err(Error::CellMismatch { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(live.len().max(1))
    }

    /// Advances a version that is still without effects. It never goes beyond the progress of the active one, so that
    /// no event stays without effects; once it reaches a recent position of the active one, it takes over. A replay
    /// or a reset may move the active one back; that does not delay the take-over, since the repeated events have had
    /// their effects.
    async fn rebuild(&mut self, up_to: &watch::Sender<Option<Position>>) -> Result<(), ExecuteError<GroupError>> {
        let Group { store, name, version, .. } = &*self.shared.group;
        let known = Known::read(store, name).await?;
        let active = known.group.active().filter(|active| active != version);
        let Some((active, state)) = active.and_then(|active| Some((active, known.group.version(active).ok()?))) else {
            if known.group.active() != Some(*version) {
                control::execute(store, name, GroupCommand::Promote { version: *version }).await?;
            }
            // Events that the active version has not yet handled must not be handled without effects.
            if self.shared.known.borrow().group.active() == Some(*version) {
                up_to.send_replace(None);
            }
            return Ok(());
        };
        let own = known.group.version(*version).map_err(ExecuteError::Refused)?;
        let next = floor(store, name, active, state).await?;
        let target = target(self.target, next, Instant::now());
        let is_asked = self.target.replace(target) == Some(target);
        if is_asked && next >= own.start && floor(store, name, *version, own).await? >= target.0 {
            control::execute(store, name, GroupCommand::Promote { version: *version }).await?;
        }
        up_to.send_if_modified(|up_to| up_to.replace(next) != Some(next));
        Ok(())
    }

    /// Releases all partitions.
    async fn leave(&mut self) {
        for release in self.held.values() {
            release.send_replace(true);
        }
        while !self.held.is_empty()
            && let Some((number, _progress)) = self.left.recv().await
        {
            self.held.remove(&number);
        }
        let gone = CellChange { value: None, ..self.sign() };
        let group = &self.shared.group;
        if let Err(error) = group.store.append(Append::default().cell(gone)).await {
            tracing::warn!(group = group.name, %error, "a worker could not say that it leaves; its sign ends by itself");
        }
    }
}
