//! A partition that is held, and what its worker writes: effects with the acknowledgement, decisions with how far it then
//! is, the acknowledgement alone. Each is refused when another holds the partition.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::control::Known;
use super::delivery::{Delivery, GroupHandler, Lease};
use super::event::{AggregateName, GROUPS_STREAM};
use super::pages::{Batch, Pages};
use super::partition::Progress;
use super::state::{GroupCommand, GroupError, GroupVersion};
use crate::append::{Append, Appended, NewEvent, Write};
use crate::cell::CellChange;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::expected::{CellExpected, Expected};
use crate::handler::{Cause, Handler};
use crate::position::Position;
use crate::query::Query;
use crate::store::EventStore;
use crate::tail::Follower;

/// Acknowledged at the latest after so many events.
pub(super) const ACK_EVENTS_MAX: usize = 100;
/// The wait after a fault of the database.
pub(super) const FAULT_WAIT: Duration = Duration::from_millis(100);
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
        append.none_matching(self.said(), known.position)
    }

    pub(super) fn said(&self) -> Query {
        Query::aggregate(GROUPS_STREAM, &self.settings.name).of_types(["Reset", "Promoted", "Retired"])
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
pub(super) enum Attempt {
    Handled(Box<Delivery>),
    Failed {
        error: String,
        is_last: bool,
    },
    /// A group event must be processed first: the attempt did not start, or its acknowledgement came too late. It does not count.
    Undecided,
}

/// A partition that is held.
pub(super) struct Partition<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) number: u16,
    pub(super) lease: Lease,
    pub(super) progress: Progress,
    /// How many events are handled and not acknowledged; set also when only the checkpoint has moved.
    pub(super) n_unacknowledged: usize,
    pub(super) is_changed: bool,
    pub(super) acknowledged_at: Instant,
    pub(super) due: HashMap<AggregateName, Instant>,
    pub(super) batch: Option<Arc<Batch>>,
    pub(super) follower: Follower,
    pub(super) known: watch::Receiver<Arc<Known>>,
    /// The part of it that has been acted upon.
    pub(super) heard: Arc<Known>,
    pub(super) up_to: watch::Receiver<Option<Position>>,
    pub(super) release: watch::Receiver<bool>,
    /// Whether those behind are next, or those ahead.
    pub(super) behind_is_next: bool,
}

/// The outcome of an append of effects.
pub(super) enum Committed {
    Done,
    /// Something was said of the group that comes first.
    AgainLater,
    Refused(Error),
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

    /// Records a decision in the log together with how far the partition then is. `Some` when the group refuses.
    pub(super) async fn record(&mut self, command: GroupCommand, after: Progress) -> Result<Option<GroupError>, Left> {
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
                    // The changes must be acted upon as well.
                    self.known.mark_changed();
                }
                Err(error) => self.fault(&error, self.lease.until).await?,
            }
        }
    }

    /// Appends effects and the acknowledgement in one.
    pub(super) async fn commit(&mut self, writes: Vec<Write>, after: &Progress) -> Result<Committed, Left> {
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
                    self.hear(position).await?;
                    return Ok(Committed::AgainLater);
                }
                Err(error @ (Error::IdReused { .. } | Error::PartlyKnown { .. })) => {
                    tracing::warn!(%error, "this effect is in the log with other content; it is left as it is");
                }
                Err(error) if is_refusal(&error) => return Ok(Committed::Refused(error)),
                Err(error) => {
                    self.fault(&error, self.lease.until).await?;
                    continue;
                }
            }
            self.repeated();
            return Ok(Committed::Done);
        }
    }

    pub(super) async fn acknowledge(&mut self) -> Result<(), Left> {
        loop {
            match self.shared.store.append(Append::default().cell(self.change(&self.progress))).await {
                Ok(appended) => {
                    self.renewed(&appended);
                    return Ok(());
                }
                Err(Error::CellMismatch { .. }) => return Err(Left::Lost),
                Err(error) => self.fault(&error, self.lease.until).await?,
            }
        }
    }

    /// Waits until the group's state includes this position; it is acted upon next.
    pub(super) async fn hear(&mut self, position: Position) -> Result<(), Left> {
        let heard = self.known.wait_for(|known| known.position >= position);
        heard.await.map_err(|_| Left::Released)?;
        self.known.mark_changed();
        Ok(())
    }

    pub(super) async fn give_back(&mut self) -> Left {
        let free = CellChange { hold: None, ..self.change(&self.progress) };
        match self.shared.store.append(Append::default().cell(free)).await {
            Ok(_) => Left::Released,
            // It is over by itself in time.
            Err(_) => Left::Lost,
        }
    }

    pub(super) fn change(&self, progress: &Progress) -> CellChange {
        let Settings { space, lease, .. } = &self.shared.settings;
        progress.change(space, self.number, CellExpected::Held(self.lease.version), Some(*lease))
    }

    /// The lease starts again, and nothing is left to acknowledge.
    pub(super) fn renewed(&mut self, appended: &Appended) {
        self.lease = Lease::of(appended, self.shared.settings.lease);
        (self.n_unacknowledged, self.is_changed, self.acknowledged_at) = (0, false, Instant::now());
    }

    /// The effects are in the log already, and a repetition changes no cell: the acknowledgement goes by itself, and soon.
    pub(super) fn repeated(&mut self) {
        (self.n_unacknowledged, self.is_changed) = (ACK_EVENTS_MAX, true);
    }

    /// Waits after a fault of the database, unless the lease is over.
    pub(super) async fn fault(&self, error: &Error, until: Timestamp) -> Result<(), Left> {
        if matches!(error, Error::Closed | Error::WentBack { .. }) {
            return Err(Left::Lost);
        }
        tracing::warn!(group = self.shared.settings.name, %error, "an append for a group failed and is tried again");
        tokio::time::sleep(FAULT_WAIT).await;
        if self.shared.store.now() >= until { Err(Left::Lost) } else { Ok(()) }
    }
}

/// The log has refused and would refuse again: the handler must decide again.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::SequenceMismatch { .. } | Error::InvalidAppend { .. } | Error::LimitPassed { .. } | Error::Encode { .. }
    )
}

impl Lease {
    /// The lease that begins with an append whose last change is that of the partition's cell.
    pub(super) fn of(appended: &Appended, lease: Duration) -> Self {
        Self {
            version: appended.cells.last().copied().unwrap_or_default(),
            until: appended.created_at.plus(lease),
            renew_at: Instant::now() + lease / 3,
            is_given: false,
        }
    }
}
