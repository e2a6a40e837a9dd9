//! A held partition, and the writes of its worker: effects with the acknowledgement, decisions with the resulting
//! progress, or the acknowledgement alone. Each is refused if another worker holds the partition.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::control::Known;
use super::delivery::{GroupHandler, Lease};
use super::event::{AggregateName, GROUPS_STREAM};
use super::pages::{Batch, Pages};
use super::partition::Progress;
use super::state::{GroupCommand, GroupError, GroupVersion};
use super::worker::Group;
use crate::append::{Append, Appended, NewEvent};
use crate::cell::CellChange;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::expected::{CellExpected, Expected};
use crate::handler::{Cause, Handler};
use crate::position::Position;
use crate::tail::Follower;

/// The most handled events that may wait for acknowledgement.
pub(super) const ACK_EVENTS_MAX: usize = 100;
/// The wait after a fault of the database.
pub(super) const FAULT_WAIT: Duration = Duration::from_millis(100);

/// State shared by all partitions of a worker.
pub(super) struct Shared<'a> {
    /// On a pinned store.
    pub(super) group: Arc<Group>,
    /// The worker's name in the cells that it holds.
    pub(super) owner: String,
    pub(super) handler: &'a dyn GroupHandler,
    pub(super) pages: Pages,
    pub(super) permits: Semaphore,
    pub(super) known: watch::Receiver<Arc<Known>>,
    /// The limit for a rebuilding version; no limit when unset.
    pub(super) up_to: watch::Receiver<Option<Position>>,
}

/// The reason why a partition was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// It was released.
    Released,
    /// Another worker holds it, or may.
    Lost,
    /// The version has ended.
    Retired,
}

/// A held partition.
pub(super) struct Partition<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) number: u16,
    pub(super) lease: Lease,
    pub(super) progress: Progress,
    /// The number of events that are handled but not acknowledged.
    pub(super) n_unacknowledged: usize,
    /// True if the cell is out of date, even if only the checkpoint has moved.
    pub(super) is_changed: bool,
    pub(super) acknowledged_at: Instant,
    pub(super) due: HashMap<AggregateName, Instant>,
    pub(super) batch: Option<Arc<Batch>>,
    pub(super) follower: Follower,
    pub(super) known: watch::Receiver<Arc<Known>>,
    /// The state of the group that this partition has acted upon.
    pub(super) heard: Arc<Known>,
    pub(super) up_to: watch::Receiver<Option<Position>>,
    pub(super) release: watch::Receiver<bool>,
    /// True if lagging aggregates are next, false if new events are.
    pub(super) behind_is_next: bool,
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
            lease: Lease::of(claimed, shared.group.lease),
            progress,
            n_unacknowledged: 0,
            is_changed: false,
            acknowledged_at: Instant::now(),
            due: HashMap::new(),
            batch: None,
            follower: shared.group.store.backend().tail().follow(),
            known: shared.known.clone(),
            heard: shared.known.borrow().clone(),
            up_to: shared.up_to.clone(),
            release,
            behind_is_next: false,
        }
    }

    /// Records a decision together with the resulting progress, in one append. `Some` if the group refuses it.
    pub(super) async fn record(&mut self, command: GroupCommand, after: Progress) -> Result<Option<GroupError>, Left> {
        loop {
            let known = self.known.borrow().clone();
            let is_reset = |version: &GroupVersion| version.n_resets > self.progress.n_resets;
            if known.group.version(self.shared.group.version).is_ok_and(is_reset) {
                // Makes the next listen process the whole state again.
                self.known.mark_changed();
                return Ok(None);
            }
            let decided = match known.group.decide(command.clone()) {
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
            match self.append(Append::to(GROUPS_STREAM, &self.shared.group.name, expected, events), &after).await? {
                Ok(appended) => {
                    self.progress = after;
                    self.renewed(&appended);
                    return Ok(None);
                }
                Err(Error::SequenceMismatch { actual, .. }) => self.hear(|known| known.sequence >= actual).await?,
                Err(refusal) => {
                    tracing::error!(%refusal, "a decision for a group was refused");
                    return Err(Left::Lost);
                }
            }
        }
    }

    /// Appends, and sets the partition's cell to `progress` with it. After a fault it retries while the lease lasts.
    /// The inner error is a refusal, which a retry would not change.
    pub(super) async fn append(&self, append: Append, progress: &Progress) -> Result<Result<Appended, Error>, Left> {
        let append = append.cell(self.change(progress));
        loop {
            match self.shared.group.store.append(append.clone()).await {
                Err(error) if !is_refusal(&error) => self.fault(&error, self.lease.until).await?,
                outcome => return Ok(outcome),
            }
        }
    }

    pub(super) async fn acknowledge(&mut self) -> Result<(), Left> {
        let appended = self.append(Append::default(), &self.progress).await?.map_err(|refusal| {
            tracing::error!(%refusal, "an acknowledgement was refused");
            Left::Lost
        })?;
        self.renewed(&appended);
        Ok(())
    }

    /// Waits until the group's state satisfies `is_heard`; the partition acts upon it next.
    pub(super) async fn hear(&mut self, is_heard: impl Fn(&Known) -> bool) -> Result<(), Left> {
        self.known.wait_for(|known| is_heard(known)).await.map_err(|_| Left::Released)?;
        self.known.mark_changed();
        Ok(())
    }

    pub(super) async fn give_back(&mut self) -> Left {
        let free = CellChange { hold: None, ..self.change(&self.progress) };
        match self.shared.group.store.append(Append::default().cell(free)).await {
            Ok(_) => Left::Released,
            // The lease expires by itself.
            Err(_) => Left::Lost,
        }
    }

    fn change(&self, progress: &Progress) -> CellChange {
        self.shared.group.change(self.number, progress, CellExpected::Held(self.lease.version))
    }

    /// The lease starts again, and all events are acknowledged. But a repeated append changes no cell.
    pub(super) fn renewed(&mut self, appended: &Appended) {
        if appended.repeated {
            return self.acknowledge_soon();
        }
        self.lease = Lease::of(appended, self.shared.group.lease);
        (self.n_unacknowledged, self.is_changed, self.acknowledged_at) = (0, false, Instant::now());
    }

    /// The effects are already in the log, so the acknowledgement goes separately.
    pub(super) fn acknowledge_soon(&mut self) {
        (self.n_unacknowledged, self.is_changed) = (ACK_EVENTS_MAX, true);
    }

    /// Waits after a fault of the database; an error if the lease expires meanwhile.
    pub(super) async fn fault(&self, error: &Error, until: Timestamp) -> Result<(), Left> {
        if matches!(error, Error::CellMismatch { .. } | Error::Closed | Error::WentBack { .. }) {
            return Err(Left::Lost);
        }
        error.warn("an append for a group failed and is tried again");
        tokio::time::sleep(FAULT_WAIT).await;
        if self.shared.group.store.now() >= until { Err(Left::Lost) } else { Ok(()) }
    }
}

/// True if the log would refuse the same append again.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::SequenceMismatch { .. }
            | Error::MatchFound { .. }
            | Error::IdReused { .. }
            | Error::PartlyKnown { .. }
            | Error::InvalidAppend { .. }
            | Error::LimitPassed { .. }
            | Error::Encode { .. }
    )
}

impl Lease {
    /// The lease from an append whose last change is that of the partition's cell.
    pub(super) fn of(appended: &Appended, lease: Duration) -> Self {
        Self {
            version: appended.cells.last().copied().unwrap_or_default(),
            until: appended.created_at.plus(lease),
            renew_at: Instant::now() + lease / 3,
            is_given: false,
        }
    }
}
