//! Queues appends for the one writer of a process: all queued appends go into one commit.
//!
//! There is no timer: the next batch queues while the previous one commits.

use std::sync::Arc;

use tokio::sync::mpsc::error::{SendError, TrySendError};
use tokio::sync::{mpsc, oneshot};

#[cfg(feature = "sqlite")]
use crate::append::Write;
use crate::append::{Append, Appended};
use crate::error::{Error, Result};
#[cfg(feature = "sqlite")]
use crate::recorded::Recorded;
#[cfg(feature = "sqlite")]
use crate::tail::End;

/// The most appends that may wait for the writer; further ones wait in separate tasks.
pub(crate) const QUEUE_APPENDS_MAX: usize = 1024;
/// The most appends of one commit.
const BATCH_APPENDS_MAX: usize = 512;
/// The approximate maximum size of one commit, in bytes.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// A queued append.
pub(crate) struct Request {
    pub(crate) append: Append,
    pub(crate) reply: oneshot::Sender<Result<Appended>>,
}

/// Hands an append to the writer and waits for the answer. If the queue is full, a separate task waits for a place: an
/// unpolled future that holds a place would keep the log from being closed.
pub(crate) async fn request(requests: &mpsc::Sender<Request>, append: Append) -> Result<Appended> {
    let (reply, answer) = oneshot::channel();
    match requests.try_send(Request { append, reply }) {
        Ok(()) => {}
        Err(TrySendError::Closed(_)) => return Err(Error::Closed),
        Err(TrySendError::Full(request)) => {
            let requests = requests.clone();
            tokio::spawn(async move {
                if let Err(SendError(request)) = requests.send(request).await {
                    // Its caller may have gone.
                    let _ = request.reply.send(Err(Error::Closed));
                }
            });
        }
    }
    answer.await.map_err(|error| Error::NotAcknowledged { source: Arc::new(error) })?
}

/// All appends queued after `first`, up to the size of a batch.
pub(crate) fn drain(first: Request, queue: &mut mpsc::Receiver<Request>) -> Vec<Request> {
    let size = |request: &Request| -> usize {
        let events = request.append.writes.iter().flat_map(|write| &write.events);
        let events = events.map(|event| event.data.len() + event.metadata.len());
        let cells = request.append.cells.iter().map(|change| change.value.as_ref().map_or(0, String::len));
        events.chain(cells).sum()
    };
    let mut n_bytes = size(&first);
    let mut batch = vec![first];
    while batch.len() < BATCH_APPENDS_MAX && n_bytes < BATCH_BYTES_MAX {
        let Ok(request) = queue.try_recv() else { break };
        n_bytes += size(&request);
        batch.push(request);
    }
    batch
}

/// Answers the callers of a batch. If there is a fault, all of them get it, and it is returned.
pub(crate) fn answer(
    replies: Vec<oneshot::Sender<Result<Appended>>>,
    outcomes: Result<Vec<Result<Appended>>>,
) -> Option<Error> {
    let (outcomes, fault) = match outcomes {
        Ok(outcomes) => (outcomes, None),
        Err(error) => (vec![Err(error.clone()); replies.len()], Some(error)),
    };
    for (reply, outcome) in replies.into_iter().zip(outcomes) {
        // A caller that went away does not undo its append.
        let _ = reply.send(outcome);
    }
    fault
}

/// The last event of a batch that is now in the log.
#[cfg(feature = "sqlite")]
pub(crate) fn last_of(appends: &[Append], outcomes: &[Result<Appended>]) -> Option<End> {
    appends.iter().zip(outcomes).rev().find_map(|(append, outcome)| {
        let Ok(Appended { places, created_at, repeated: false, .. }) = outcome else { return None };
        let event = append.writes.iter().rev().find_map(|write| write.events.last())?;
        Some(End { head: places.last()?.position, event_id: event.event_id, created_at: *created_at })
    })
}

/// The events of a batch as recorded in the log.
#[cfg(feature = "sqlite")]
pub(crate) fn recorded(appends: Vec<Append>, outcomes: &[Result<Appended>]) -> Vec<Recorded> {
    let mut events = Vec::new();
    for (append, outcome) in appends.into_iter().zip(outcomes) {
        let Ok(Appended { places, created_at, repeated: false, .. }) = outcome else { continue };
        let Some(first) = places.first() else { continue };
        let mut places = places.iter();
        for Write { stream_id, aggregate_id, events: written, .. } in append.writes {
            for (event, place) in written.into_iter().zip(&mut places) {
                let aggregate = (stream_id.clone(), aggregate_id.clone());
                events.push(event.recorded(aggregate, *place, first.position, *created_at));
            }
        }
    }
    events
}
