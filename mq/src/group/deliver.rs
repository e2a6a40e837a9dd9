//! The work on one partition: delivers its events one by one, retries, parks, acknowledges. It ends when the lease is
//! lost or released, and never acts under an expired one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::delivery::Delivery;
use super::event::AggregateName;
use super::held::{ACK_EVENTS_MAX, FAULT_WAIT, Left, Partition};
use super::pages::is_given;
use super::partition::{BEHIND_MAX, Behind, Progress, partition_of};
use super::state::{GroupCommand, GroupVersion};
use crate::append::Append;
use crate::error::Error;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::Recorded;

/// The longest delay of an acknowledgement.
const ACK_INTERVAL: Duration = Duration::from_millis(100);
/// The page size for events of a lagging aggregate.
const BEHIND_PAGE: usize = 32;
/// The longest stored error.
const ERROR_BYTES_MAX: usize = 1000;

impl Partition<'_> {
    /// Works until the partition is left, and returns its progress.
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
        self.keep().await?;
        // No await from here until the limit of the next read is known. A take-over in between would raise the limit,
        // and events would be handled without effects.
        self.listen()?;
        let heard = Arc::clone(&self.heard);
        // The previous holder may have parked events, and that news may still be on its way.
        if heard.group.is_paused() || heard.sequence < self.progress.read_group_to {
            return self.wait(None, false).await;
        }
        let version = heard.group.version(self.shared.group.version).map_err(|_| Left::Retired)?;
        let due = self.next_due(version);
        if let Ok(aggregate) = &due
            && (self.behind_is_next || self.is_full())
        {
            self.behind_is_next = false;
            return self.catch_up(aggregate, version).await;
        }
        self.behind_is_next = true;
        if !self.is_full() && self.go_ahead(version).await? {
            return Ok(());
        }
        match due {
            Ok(_behind) => Ok(()),
            Err(next) => self.wait(next, !self.is_full()).await,
        }
    }

    /// Processes news of the group.
    fn listen(&mut self) -> Result<(), Left> {
        if !self.known.has_changed().unwrap_or(true) {
            return Ok(());
        }
        let heard = self.known.borrow_and_update().clone();
        self.heard = Arc::clone(&heard);
        let version = heard.group.version(self.shared.group.version).map_err(|_| Left::Retired)?;
        if version.n_resets > self.progress.n_resets {
            let Progress { read_group_to, owner, .. } = std::mem::take(&mut self.progress);
            self.progress = Progress { read_group_to, owner, ..Progress::start(version) };
            (self.batch, self.is_changed) = (None, true);
        }
        self.is_changed |= self.progress.stopped.take().is_some();
        // Parked aggregates wait for a person; skipped events are not waited for.
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

    /// Half of the places are reserved for events that fail.
    fn take_up_replays(&mut self, version: &GroupVersion) {
        for (aggregate, parked) in version.parked.iter().filter(|(_, parked)| parked.is_replayed) {
            let is_mine = partition_of(&aggregate.stream_id, &aggregate.aggregate_id, version.n_partitions);
            if self.progress.behind.len() >= BEHIND_MAX / 2 {
                return;
            }
            if is_mine == self.number && self.progress.behind(aggregate).is_none() {
                let (aggregate, from) = (aggregate.clone(), parked.from);
                self.progress.behind.push(Behind { aggregate, from, n_attempts: 0 });
                self.is_changed = true;
            }
        }
    }

    fn is_full(&self) -> bool {
        self.progress.stopped.is_some() || self.progress.behind.len() >= BEHIND_MAX
    }

    /// The failed aggregate to retry now, or the time of the next retry.
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

    /// Handles the next event after the checkpoint; skips those of other partitions, and of lagging or parked
    /// aggregates. False if there is no such event.
    async fn go_ahead(&mut self, version: &GroupVersion) -> Result<bool, Left> {
        let up_to = *self.up_to.borrow_and_update();
        let checkpoint = self.progress.checkpoint;
        if up_to.is_some_and(|up_to| up_to <= checkpoint) {
            return Ok(false);
        }
        let batch = match &self.batch {
            Some(batch) if batch.next > checkpoint => Arc::clone(batch),
            Some(_) | None => match self.shared.pages.after(checkpoint, up_to).await {
                Ok(batch) => batch,
                Err(error) => {
                    error.warn("a read for a group failed and is tried again");
                    tokio::time::sleep(FAULT_WAIT).await;
                    return Ok(true);
                }
            },
        };
        let first = batch.events.partition_point(|event| event.position <= checkpoint);
        for event in &batch.events[first..] {
            if partition_of(&event.stream_id, &event.aggregate_id, version.n_partitions) == self.number {
                let aggregate = AggregateName::of(event);
                if self.progress.behind(&aggregate).is_none() && !version.parked.contains_key(&aggregate) {
                    self.batch = Some(Arc::clone(&batch));
                    let after = Progress { checkpoint: event.position, ..self.progress.clone() };
                    self.attempt(Arc::clone(event), 1, after).await?;
                    return Ok(true);
                }
            }
        }
        if batch.next > checkpoint {
            self.progress.checkpoint = batch.next;
            self.is_changed = true;
            self.batch = None;
            return Ok(true);
        }
        Ok(false)
    }

    /// Handles the next event of a lagging aggregate, or returns the aggregate to normal delivery.
    async fn catch_up(&mut self, aggregate: &AggregateName, version: &GroupVersion) -> Result<(), Left> {
        let Some(index) = self.progress.behind(aggregate) else { return Ok(()) };
        let Behind { from, n_attempts, .. } = self.progress.behind[index];
        let range = Range::between(Position(from.0 - 1), self.progress.checkpoint);
        let query = Query::aggregate(&aggregate.stream_id, &aggregate.aggregate_id);
        let page = match self.shared.group.store.read(&query, range, BEHIND_PAGE).await {
            Ok(page) => page,
            Err(error) => {
                error.warn("a read for a group failed and is tried again");
                self.due.insert(aggregate.clone(), Instant::now() + FAULT_WAIT);
                return Ok(());
            }
        };
        let is_wanted = |event: &Recorded| version.query.matches(event) && is_given(event);
        let (next, more) = (page.next, page.more);
        let mut after = Progress { stopped: None, ..self.progress.clone() };
        match page.events.into_iter().find(is_wanted) {
            Some(event) => {
                let n_attempts = if event.position == from { n_attempts + 1 } else { 1 };
                let from = Position(event.position.0 + 1);
                after.behind[index] = Behind { aggregate: aggregate.clone(), from, n_attempts: 0 };
                self.attempt(Arc::new(event), n_attempts, after).await
            }
            None if more => {
                self.progress.behind[index].from = Position(next.0 + 1);
                self.is_changed = true;
                Ok(())
            }
            None => {
                after.behind.remove(index);
                let version = self.shared.group.version;
                let ended = GroupCommand::EndReplay { version, aggregate: aggregate.clone() };
                self.record(ended, after).await.map(|_refused| ())
            }
        }
    }

    /// Commits the effects of a handled event, and acknowledges it.
    pub(super) async fn settle(&mut self, delivery: Delivery) -> Result<(), Left> {
        let Delivery { event, n_attempts, writes, after, acknowledged, has_effects, .. } = delivery;
        match acknowledged {
            Some(appended) => self.renewed(&appended),
            None if has_effects && !writes.is_empty() => {
                let effects = Append { writes, ..Append::default() };
                match self.append(self.shared.group.guarded(effects, self.heard.position), &after).await? {
                    Ok(appended) => self.renewed(&appended),
                    Err(Error::MatchFound { position, .. }) => {
                        return self.hear(|known| known.position >= position).await;
                    }
                    Err(error @ (Error::IdReused { .. } | Error::PartlyKnown { .. })) => {
                        tracing::warn!(%error, "this effect is in the log with other content; it is left as it is");
                        self.acknowledge_soon();
                    }
                    Err(error) => return self.failed(&event, n_attempts, error.to_string(), false).await,
                }
            }
            None => (self.n_unacknowledged, self.is_changed) = (self.n_unacknowledged + 1, true),
        }
        self.progress = after;
        self.due.remove(&AggregateName::of(&event));
        Ok(())
    }

    /// Marks the aggregate of a failed event as lagging, or parks it.
    pub(super) async fn failed(
        &mut self,
        event: &Recorded,
        n_attempts: u32,
        mut error: String,
        is_last: bool,
    ) -> Result<(), Left> {
        let group = &self.shared.group;
        let (aggregate, position) = (AggregateName::of(event), event.position);
        error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
        tracing::warn!(group = group.name, %position, n_attempts, error, "an event could not be handled");
        self.progress.checkpoint = self.progress.checkpoint.max(position);
        let behind = Behind { aggregate: aggregate.clone(), from: position, n_attempts };
        match self.progress.behind(&aggregate) {
            Some(index) => self.progress.behind[index] = behind,
            None => self.progress.behind.push(behind),
        }
        self.is_changed = true;
        let mut wait = doubled(group.backoff, n_attempts);
        if is_last || n_attempts >= group.park_after {
            let mut after = self.progress.clone();
            after.behind.retain(|behind| behind.aggregate != aggregate);
            let (version, event_id, parked_max) = (group.version, event.event_id, group.parked_max);
            let aggregate = aggregate.clone();
            let park = GroupCommand::Park { version, aggregate, position, event_id, n_attempts, error, parked_max };
            let Some(refusal) = self.record(park, after).await? else { return Ok(()) };
            self.progress.stopped = Some(refusal.to_string());
            wait = group.backoff.1;
        }
        self.due.insert(aggregate, Instant::now() + wait);
        Ok(())
    }

    /// Acknowledges and renews the lease when due.
    async fn keep(&mut self) -> Result<(), Left> {
        let now = Instant::now();
        let is_due =
            self.is_changed && (self.n_unacknowledged >= ACK_EVENTS_MAX || now >= self.acknowledged_at + ACK_INTERVAL);
        if is_due || now >= self.lease.renew_at { self.acknowledge().await } else { Ok(()) }
    }

    /// Waits until there is something to do.
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
            // The backend reports its own faults and keeps polling.
            news = self.follower.wait(read_to), if is_idle => {
                if matches!(news, Err(Error::Closed | Error::WentBack { .. })) {
                    return Err(Left::Lost);
                }
            }
            () = tokio::time::sleep_until(until) => {}
        }
        Ok(())
    }
}

fn doubled((first, max): (Duration, Duration), n_attempts: u32) -> Duration {
    let factor = 2_u32.saturating_pow(n_attempts.saturating_sub(1));
    first.saturating_mul(factor).min(max)
}
