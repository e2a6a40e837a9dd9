//! One attempt at one event: runs the handler, and renews the lease meanwhile.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::{Mutex, watch};

use super::delivery::{Delivery, HandlerError, Lease};
use super::held::{Left, Partition, Shared};
use super::partition::Progress;
use crate::append::Append;
use crate::error::Error;
use crate::expected::CellExpected;
use crate::recorded::Recorded;

impl Partition<'_> {
    /// Passes an event to the handler while keeping the lease. `after` is the progress once it is handled. A worker
    /// that must process a group event first handles nothing, and the attempt does not count.
    pub(super) async fn attempt(&mut self, event: Arc<Recorded>, n_attempts: u32, after: Progress) -> Result<(), Left> {
        let Shared { group, handler, permits, .. } = self.shared;
        // A worker that has to stop, pause or take over starts no further attempt, even when its turn comes.
        let permit = loop {
            tokio::select! {
                biased;
                _ = self.release.changed() => return Ok(()),
                () = said(&mut self.known) => return Ok(()),
                permit = permits.acquire() => break permit,
                () = tokio::time::sleep_until(self.lease.renew_at) => self.acknowledge().await?,
            }
        };
        if group.store.now() >= self.lease.until {
            return Err(Left::Lost);
        }
        let lease = Arc::new(Mutex::new(Lease { is_given: false, ..self.lease }));
        let mut delivery = Delivery {
            group: Arc::clone(group),
            event: Arc::clone(&event),
            partition: self.number,
            n_attempts,
            has_effects: self.heard.group.active() == Some(group.version),
            writes: Vec::new(),
            n_derived: 0,
            is_last_attempt: false,
            acknowledged: None,
            after,
            heard_to: self.heard.position,
            is_guarded: false,
            lease: Arc::clone(&lease),
        };
        let handled = {
            // Both are always polled: a handler that holds a resource needed by the renewal must be able to finish.
            let mut renewing = std::pin::pin!(self.renew(&lease));
            let handled = {
                // The handler may panic before it returns a future.
                let handling = async { handler.handle(&event, &mut delivery).await };
                let mut handling = std::pin::pin!(AssertUnwindSafe(handling).catch_unwind());
                tokio::select! {
                    biased;
                    handled = &mut handling => handled,
                    left = &mut renewing => return Err(left),
                }
            };
            // Waits for a renewal that has begun: it changes the version.
            tokio::select! {
                biased;
                left = &mut renewing => return Err(left),
                _done = lease.lock() => {}
            }
            handled
        };
        drop(permit);
        self.lease = *lease.lock().await;
        let error: HandlerError = match handled {
            Ok(Ok(())) => return self.settle(delivery).await,
            Ok(Err(error)) if delivery.acknowledged.is_some() => {
                tracing::warn!(%error, position = %event.position, "a handler failed after it had acknowledged");
                return self.settle(delivery).await;
            }
            Ok(Err(error)) => {
                if let (true, Some(Error::MatchFound { position, .. })) = (delivery.is_guarded, error.downcast_ref()) {
                    return self.hear(|known| known.position >= *position).await;
                }
                error
            }
            Err(panic) => format!("the handler panicked: {}", what_it_said(&*panic)).into(),
        };
        let is_undecodable = matches!(error.downcast_ref(), Some(Error::Decode { .. }));
        self.failed(&event, n_attempts, error.to_string(), delivery.is_last_attempt || is_undecodable).await
    }

    /// Renews the lease while a handler works, unless the handler controls the acknowledgement itself.
    async fn renew(&self, lease: &Mutex<Lease>) -> Left {
        loop {
            let renew_at = lease.lock().await.renew_at;
            tokio::time::sleep_until(renew_at).await;
            let mut held = lease.lock().await;
            if held.is_given {
                drop(held);
                return std::future::pending().await;
            }
            let group = &self.shared.group;
            let change = group.change(self.number, &self.progress, CellExpected::Held(held.version));
            match group.store.append(Append::default().cell(change)).await {
                Ok(appended) => *held = Lease::of(&appended, group.lease),
                Err(error) => {
                    if let Err(left) = self.fault(&error, held.until).await {
                        return left;
                    }
                }
            }
        }
    }
}

/// Waits until the group has news, without consuming it.
async fn said<T>(known: &mut watch::Receiver<T>) {
    // Also returns when the worker ends, which is handled elsewhere.
    let _ended = known.changed().await;
    known.mark_changed();
}

fn what_it_said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it did not say why")
}
