//! A handler's controls for an event: appends that commit with the acknowledgement, or the acknowledgement itself.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::partition::Progress;
use super::worker::Group;
use crate::append::{Append, Appended, NewEvent, Write};
use crate::clock::Timestamp;
use crate::event::Event;
use crate::expected::{CellExpected, Expected};
use crate::handler::Cause;
use crate::ids::derived_event_id;
use crate::position::Position;
use crate::recorded::Recorded;

/// Why an event could not be handled: any error.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// Handles the events of a group: a type of the caller's, or a closure through [`group_handler`].
pub trait GroupHandler: Sync {
    /// Handles one event. After an error it is delivered again later, and finally parked.
    fn handle<'a>(&'a self, event: &'a Recorded, delivery: &'a mut Delivery)
    -> BoxFuture<'a, Result<(), HandlerError>>;
}

impl<F> GroupHandler for F
where
    F: for<'a> Fn(&'a Recorded, &'a mut Delivery) -> BoxFuture<'a, Result<(), HandlerError>> + Sync,
{
    fn handle<'a>(
        &'a self,
        event: &'a Recorded,
        delivery: &'a mut Delivery,
    ) -> BoxFuture<'a, Result<(), HandlerError>> {
        self(event, delivery)
    }
}

/// Makes a handler from a closure: `group_handler(|event, delivery| Box::pin(async move { ... Ok(()) }))`.
pub fn group_handler<F>(handle: F) -> impl GroupHandler + use<F>
where
    F: for<'a> Fn(&'a Recorded, &'a mut Delivery) -> BoxFuture<'a, Result<(), HandlerError>> + Sync,
{
    handle
}

/// The lease of a partition, as its worker and the handler of one event see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    /// The version of the partition's cell: the fencing epoch.
    pub(super) version: i64,
    /// The time when it expires.
    pub(super) until: Timestamp,
    pub(super) renew_at: Instant,
    /// True once a handler has asked for an acknowledgement: the version then stays the same until the handler ends.
    pub(super) is_given: bool,
}

/// One attempt at one event.
#[derive(Debug)]
pub struct Delivery {
    pub(super) group: Arc<Group>,
    pub(super) event: Arc<Recorded>,
    pub(super) partition: u16,
    pub(super) n_attempts: u32,
    pub(super) has_effects: bool,
    pub(super) writes: Vec<Write>,
    pub(super) n_derived: usize,
    pub(super) is_last_attempt: bool,
    pub(super) acknowledged: Option<Appended>,
    /// The worker has processed the group's own events up to here.
    pub(super) heard_to: Position,
    /// True if later group events can invalidate the acknowledgement.
    pub(super) is_guarded: bool,
    /// The progress once the event is handled.
    pub(super) after: Progress,
    pub(super) lease: Arc<Mutex<Lease>>,
}

impl Delivery {
    /// The number of this attempt at the event: 1, 2, 3 ...
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.n_attempts
    }

    /// The partition of the event's aggregate.
    #[must_use]
    pub fn partition(&self) -> u16 {
        self.partition
    }

    /// False while a new version of a group rebuilds: appends through this delivery are dropped, and the handler
    /// should do nothing else that others can see.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        self.has_effects
    }

    /// Appends an event together with the acknowledgement, atomically. Its id derives from the group's name and the
    /// handled event, so it is in the log once, even if the event is handled again.
    /// # Errors
    /// [`crate::Error::Encode`] if the event cannot be written as JSON.
    pub fn append<T: Event>(
        &mut self,
        stream_id: &str,
        aggregate_id: &str,
        expected: Expected,
        event: &T,
    ) -> crate::Result<()> {
        let process = format!("group/{}", self.group.name);
        let id = derived_event_id(&process, self.event.created_at, self.event.event_id, self.n_derived);
        let event = NewEvent::of(event, Cause::event(&self.event).metadata())?.with_id(id);
        self.n_derived += 1;
        self.write(stream_id, aggregate_id, expected, vec![event]);
        Ok(())
    }

    /// Appends prepared events together with the acknowledgement. The caller chooses their ids: with new ones, the
    /// effects repeat if the event is handled again because its checkpoint was lost or reset.
    ///
    /// Several calls for one aggregate are one write: the first `expected` counts, and refers to
    /// the aggregate before all of them. Later ones are ignored.
    pub fn write(&mut self, stream_id: &str, aggregate_id: &str, expected: Expected, events: Vec<NewEvent>) {
        let is_it = |write: &&mut Write| write.stream_id == stream_id && write.aggregate_id == aggregate_id;
        match self.writes.iter_mut().find(is_it) {
            Some(write) => write.events.extend(events),
            None => {
                let (stream_id, aggregate_id) = (stream_id.to_owned(), aggregate_id.to_owned());
                self.writes.push(Write { stream_id, aggregate_id, expected, events });
            }
        }
    }

    /// If this attempt fails, the event is parked at once, because a retry would not help.
    pub fn park_on_failure(&mut self) {
        self.is_last_attempt = true;
    }

    /// Adds the acknowledgement of this event and all earlier ones to the handler's own append, so that both commit
    /// or neither does. It is refused if the worker no longer holds the partition, or if the group was reset or
    /// another version took over in the meantime; the handler then returns that error. An append with its own
    /// condition ([`Append::none_matching`]) depends only on that, and is refused only if the worker no longer holds
    /// the partition.
    ///
    /// Report the result of the append with [`Delivery::acknowledged`]; the change of the partition's cell must stay its
    /// last one. The lease is not renewed from here until the handler ends.
    pub async fn acknowledge(&mut self, append: Append) -> Append {
        let mut lease = self.lease.lock().await;
        lease.is_given = true;
        let change = self.group.change(self.partition, &self.after, CellExpected::Held(lease.version));
        // The group's store is pinned to the log that the event was read from.
        let append = append.cell(change).decided_in(self.group.store.generation());
        if append.none_matching.is_some() {
            return append;
        }
        self.is_guarded = true;
        self.group.guarded(append, self.heard_to)
    }

    /// Reports that the append from [`Delivery::acknowledge`] is in the log, with its result.
    pub fn acknowledged(&mut self, appended: &Appended) {
        self.acknowledged = Some(appended.clone());
    }
}
