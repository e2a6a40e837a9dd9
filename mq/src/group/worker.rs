//! A worker of a group: declares its version, takes its fair share of the partitions, and brings a new version in. It judges
//! others by their cells alone, and time by log time.

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

/// The most workers of one version of a group that are counted.
const WORKERS_MAX: usize = 1024;
/// How often a worker looks at the others, at the least.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a version that rebuilds asks how far the active one is.
const REBUILD_INTERVAL: Duration = Duration::from_millis(100);
/// For how long it then tries to come as far as that, before it asks for more.
const TARGET_TIME: Duration = Duration::from_secs(2);
/// The waits of who waits for a group grow from the first to the second.
const WAIT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// A durable subscription, as one of its workers sees it: a named group over a query, with partitions that its workers share.
///
/// Its name, version, query and partitions are declared in the log by whoever runs it first, and are then the same for all;
/// what else is set here is this worker's own.
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

/// Why a worker ended without a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// The version is over: a newer one has taken its place, or a person has ended it.
    Retired,
}

impl EventStore {
    /// A durable subscription by this name.
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
    /// Which version of it: 1 unless set. A new version with other events, partitions or another handler rebuilds without
    /// effects up to where the active one is, and then takes its place.
    #[must_use]
    pub fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// Which events: all but those of stream `groups` unless set.
    #[must_use]
    pub fn query(self, query: Query) -> Self {
        Self { query, ..self }
    }

    /// Among how many partitions aggregates are divided: 16 unless set, 1024 at the most.
    #[must_use]
    pub fn partitions(self, n_partitions: u16) -> Self {
        Self { n_partitions, ..self }
    }

    /// Where it begins when it is declared: with the first event unless set.
    #[must_use]
    pub fn start(self, start: Start) -> Self {
        Self { start, ..self }
    }

    /// The duration of a lease, 30 s unless set: a worker that does not renew in time loses its partitions.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// The waits before an event is tried again grow from the first to the second: 100 ms to 30 s unless set.
    #[must_use]
    pub fn backoff(self, first: Duration, max: Duration) -> Self {
        Self { backoff: (first, max), ..self }
    }

    /// After how many attempts an event is parked: 5 unless set.
    #[must_use]
    pub fn park_after(self, n_attempts: u32) -> Self {
        Self { park_after: n_attempts.max(1), ..self }
    }

    /// How many aggregates may be parked at once before partitions stand still: 1000 unless set, and at the most.
    #[must_use]
    pub fn parked_max(self, n_aggregates: usize) -> Self {
        Self { parked_max: n_aggregates, ..self }
    }

    /// How many events this worker handles at once, of as many partitions: 16 unless set.
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

    /// Hands the events of this worker's share of the partitions to a handler, one by one in each aggregate, until told to
    /// stop or until the version is retired. When told to stop, events that are being handled are finished and acknowledged
    /// and the partitions given back; when dropped instead, the leases end by themselves.
    ///
    /// Each event is handled at least once; what the handler appends through its [`super::Delivery`] is in the log exactly
    /// once. Errors of the handler, and its panics, never end the worker; faults of the database are tried again.
    ///
    /// # Errors
    /// A refusal of what was declared, a fault while it is declared, an event of the group's own that cannot be read,
    /// [`Error::Closed`], or [`Error::WentBack`]: then run it again, and it continues from the positions in the log.
    pub async fn run_until(
        &self,
        handler: impl GroupHandler,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Ended, ExecuteError<GroupError>> {
        // If the log goes back, everything read or remembered so far is void.
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
        // Polled where it stands: within `work` it would make that future larger, and both hold it then.
        let stop = std::pin::pin!(stop);
        // All three are polled all the time: one that waits for what another holds must not keep that one from going on.
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
        // Nobody is to wait for what will not be heard any more: the partitions are only given back.
        drop(tell);
        tokio::select! {
            // First, so that a partition learns of its release before the channel of events closes.
            biased;
            () = worker.leave() => {}
            () = &mut partitions => {}
            // Nothing can be given back any more, whatever a handler still does.
            _over = tail.ended(store.generation()) => {}
        }
        ended
    }

    /// Waits until all partitions have handled every event up to a position, but for what is parked. That lets who has
    /// appended read what this group makes of it.
    ///
    /// # Errors
    /// The group or the version is not there or retired, [`Error::WentBack`], or a fault of the database.
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

    /// All events up to here are handled, but for what is parked.
    ///
    /// # Errors
    /// As for [`Group::wait_until`].
    pub async fn floor(&self) -> Result<Position, ExecuteError<GroupError>> {
        let known = Known::read(&self.store, &self.name).await?;
        let version = known.group.version(self.version).map_err(ExecuteError::Refused)?;
        Ok(floor(&self.store, &self.name, self.version, version).await?)
    }

    /// Records in the log that there is such a version, unless it does.
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

    /// The change of a partition's cell to this progress, which renews its lease.
    pub(super) fn change(&self, number: u16, progress: &Progress, expected: CellExpected) -> CellChange {
        let value = serde_json::to_string(progress).expect("it is of strings and numbers");
        let change = CellChange::set(&space(&self.name, self.version), &key(number), value);
        change.expecting(expected).held_for(self.lease)
    }

    /// The same append, refused if an event of the group after this position may have taken away the right to act.
    pub(super) fn guarded(&self, append: Append, heard_to: Position) -> Append {
        let ends = Query::aggregate(GROUPS_STREAM, &self.name).of_types(["Reset", "Promoted", "Retired"]);
        append.none_matching(ends, heard_to)
    }
}

/// All partitions of a version have handled every event up to here, but for what is parked.
async fn floor(store: &EventStore, name: &str, number: u32, version: &GroupVersion) -> Result<Position> {
    let partitions = partitions(store, name, number, version).await?.into_iter();
    let floors = partitions.map(|(_, progress)| progress.map_or(version.start, |progress| progress.floor()));
    Ok(floors.min().unwrap_or(version.start))
}

/// Where a version that rebuilds takes over: a place to which the active one had come. It stays for a moment, so that it can
/// be reached while that one goes on, and then follows it; it never falls.
fn target(before: Option<(Position, Instant)>, next: Position, now: Instant) -> (Position, Instant) {
    match before {
        Some((before, since)) if next <= before || now < since + TARGET_TIME => (before, since),
        Some(_) | None => (next, now),
    }
}

type Run<'a> = BoxFuture<'a, (u16, Left, Progress)>;

/// Runs partitions as they come, and tells which has been left and how far it was. At most as many come as there are.
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
    /// How far this worker had brought partitions that it has left: when a cell is deleted, less is repeated.
    remembered: BTreeMap<u16, Progress>,
    registered_at: Option<Instant>,
    /// Where it takes over, and since when that is so.
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

    /// Gives back more than the fair share, or takes what is free up to it.
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
        // Workers that begin at once do not all try the same ones first.
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
        // A cell that another made and released meanwhile has progress that must not be overwritten.
        let expected = cell.map_or(CellExpected::Absent, |cell| CellExpected::Version(cell.version));
        let change = group.change(number, &progress, expected);
        match group.store.append(group.guarded(Append::default().cell(change), known_to)).await {
            Ok(claimed) => {
                let (release, released) = watch::channel(false);
                let run = Partition::new(self.shared, number, progress, &claimed, released).run().boxed();
                // It fails only when this worker is about to end.
                if self.begin.send(run).is_ok() {
                    self.held.insert(number, release);
                }
            }
            // Another was faster, or there is something to be heard first.
            Err(Error::CellMismatch { .. } | Error::MatchFound { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Says that this worker lives.
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

    /// How many workers live, this one among them. The signs of others that are over are cleared away.
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

    /// Brings a version on that has no effects yet. It never goes beyond what the active one has handled, so that no event
    /// stays without effects; once it is as far as that one was a moment ago, it takes over. The active one may fall behind
    /// where it was, by a replay or a reset. The take-over comes no earlier for that: the repeated events have had their effects.
    async fn rebuild(&mut self, up_to: &watch::Sender<Option<Position>>) -> Result<(), ExecuteError<GroupError>> {
        let Group { store, name, version, .. } = &*self.shared.group;
        let known = Known::read(store, name).await?;
        let active = known.group.active().filter(|active| active != version);
        let Some((active, state)) = active.and_then(|active| Some((active, known.group.version(active).ok()?))) else {
            if known.group.active() != Some(*version) {
                control::execute(store, name, GroupCommand::Promote { version: *version }).await?;
            }
            // Nothing may be handled without effects that the active version has not handled with them.
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

    /// Gives everything back.
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
