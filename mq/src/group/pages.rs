//! The events that the partitions of one worker read: partitions at about the same place share each page, and new
//! events come from the in-memory tail.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::event::GROUPS_STREAM;
use crate::error::Result;
use crate::position::Position;
use crate::query::{Query, Range};
use crate::recorded::Recorded;
use crate::store::EventStore;
use crate::tail::Follower;

/// The page size.
const PAGE: usize = 500;
/// The most pages that are kept for partitions further back.
const PAGES_MAX: usize = 4;

/// The matching events of a part of the log.
pub(super) struct Batch {
    /// The events come after this position.
    after: Position,
    /// All matching events up to this position are in the batch.
    pub(super) next: Position,
    pub(super) events: Vec<Arc<Recorded>>,
}

/// The reader of one worker.
pub(super) struct Pages {
    store: EventStore,
    query: Query,
    read: Mutex<Read>,
}

struct Read {
    follower: Follower,
    pages: VecDeque<Arc<Batch>>,
}

impl Pages {
    pub(super) fn new(store: EventStore, query: Query) -> Self {
        let read = Mutex::new(Read { follower: store.backend().tail().follow(), pages: VecDeque::new() });
        Self { store, query, read }
    }

    /// A batch that reaches beyond `position` and may begin before it, or one without events if there are no new ones.
    pub(super) async fn after(&self, position: Position, up_to: Option<Position>) -> Result<Arc<Batch>> {
        // Held while reading: another partition that wants the same page waits for it instead of reading it again.
        let mut read = self.read.lock().await;
        let within = |batch: &&Arc<Batch>| batch.after <= position && position < batch.next;
        if let Some(found) = read.pages.iter().find(within) {
            return Ok(Arc::clone(found));
        }
        let batch = Arc::new(match read.follower.after(position, PAGE) {
            Some(live) => self.of_memory(position, up_to, live).await?,
            None => {
                let range = Range { after: position, up_to, ..Range::default() };
                let page = self.store.read(&self.query, range, PAGE).await?;
                let events = page.events.into_iter().filter(is_given).map(Arc::new).collect();
                Batch { after: position, next: page.next.max(position), events }
            }
        });
        if batch.next > position {
            if read.pages.len() == PAGES_MAX {
                read.pages.pop_front();
            }
            read.pages.push_back(Arc::clone(&batch));
        }
        Ok(batch)
    }

    async fn of_memory(&self, after: Position, up_to: Option<Position>, live: Vec<Arc<Recorded>>) -> Result<Batch> {
        let is_within = |event: &Arc<Recorded>| up_to.is_none_or(|up_to| event.position <= up_to);
        let mut batch = Batch { after, next: after, events: Vec::new() };
        for event in live.into_iter().take_while(is_within) {
            batch.next = event.position;
            if self.query.matches(&event) && is_given(&event) {
                batch.events.push(self.store.backend().opened(event).await?);
            }
        }
        Ok(batch)
    }
}

/// Events of groups are not delivered to groups: a group of all events would feed itself.
pub(super) fn is_given(event: &Recorded) -> bool {
    event.stream_id != GROUPS_STREAM
}
