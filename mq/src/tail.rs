//! The end of a log as one process knows it: what was appended last, and that more has come. All live subscribers of the
//! process share it. It is fed by the backend and asks nothing of the database; who finds no answer here reads a page.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::error::Error;
use crate::position::Position;
use crate::recorded::Recorded;

/// The most events that are kept.
const EVENTS_MAX: usize = 2048;
/// About the most bytes that are kept.
const BYTES_MAX: usize = 8 << 20;

/// A wake-up for a follower: read again.
#[derive(Debug, Clone, Default)]
pub(crate) struct News {
    /// The last known position.
    pub(crate) head: Position,
    /// How often looking for new events has failed so far.
    pub(crate) n_faults: u64,
    /// Why it failed the last time.
    pub(crate) fault: Option<Error>,
}

/// The tail of a log. A backend makes one, and tells it of every commit that it makes or learns of.
#[derive(Debug)]
pub struct Tail {
    news: watch::Sender<News>,
    recent: Mutex<Recent>,
    n_followers: AtomicUsize,
    /// Wakes the one that looks for the commits of others.
    look: Notify,
}

/// The last events, without gap.
#[derive(Debug, Default)]
struct Recent {
    events: VecDeque<Arc<Recorded>>,
    n_bytes: usize,
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            news: watch::Sender::new(News::default()),
            recent: Mutex::default(),
            n_followers: AtomicUsize::new(0),
            look: Notify::new(),
        }
    }
}

impl Tail {
    /// Takes in events that were committed, in order and without gap, when somebody follows; then says that the log has
    /// grown. Who knows a new head only says [`Tail::grew`].
    pub fn publish(&self, events: Vec<Recorded>) {
        let Some(head) = events.last().map(|event| event.position) else { return };
        if self.is_followed() {
            self.recent().take_in(events);
        }
        self.grew(head);
    }

    /// Says that the log reaches to `head` at least.
    pub fn grew(&self, head: Position) {
        self.news.send_if_modified(|news| {
            let grew = head > news.head;
            news.head = news.head.max(head);
            grew
        });
    }

    /// Says that looking for new events failed; it is tried again.
    pub fn failed(&self, error: Error) {
        self.news.send_modify(|news| {
            news.n_faults += 1;
            news.fault = Some(error);
        });
    }

    /// The last known position.
    #[must_use]
    pub fn head(&self) -> Position {
        self.news.borrow().head
    }

    /// Whether anybody wants the events themselves.
    #[must_use]
    pub fn is_followed(&self) -> bool {
        self.n_followers.load(Ordering::Relaxed) > 0
    }

    /// Asks the backend to look for the commits of others now. Several questions may have one answer.
    pub fn ask(&self) {
        self.look.notify_one();
    }

    /// Waits until the backend is to look: somebody has asked, or begins to follow where nobody did.
    pub async fn asked(&self) {
        self.look.notified().await;
    }

    /// Starts to follow. A wake-up is a hint: it may come late, and says nothing about events missed before.
    pub(crate) fn follow(self: &Arc<Self>) -> Follower {
        if self.n_followers.fetch_add(1, Ordering::Relaxed) == 0 {
            self.ask();
        }
        let news = self.news.subscribe();
        let n_faults = news.borrow().n_faults;
        Follower { tail: Arc::clone(self), news, n_faults }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    fn take_in(&mut self, events: Vec<Recorded>) {
        for event in events {
            let expected = self.events.back().map(|last| Position(last.position.0 + 1));
            match expected {
                // It is known already.
                Some(expected) if event.position < expected => continue,
                // A gap: what was before it is of no use to anybody who keeps up.
                Some(expected) if event.position > expected => self.clear(),
                Some(_) | None => {}
            }
            self.n_bytes += size_of(&event);
            self.events.push_back(Arc::new(event));
        }
        while self.events.len() > EVENTS_MAX || self.n_bytes > BYTES_MAX {
            let Some(first) = self.events.pop_front() else { break };
            self.n_bytes -= size_of(&first);
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

fn size_of(event: &Recorded) -> usize {
    event.data.len() + event.metadata.len()
}

/// One who follows a tail. Without any, the tail keeps no events.
#[derive(Debug)]
pub(crate) struct Follower {
    tail: Arc<Tail>,
    news: watch::Receiver<News>,
    n_faults: u64,
}

impl Follower {
    /// Up to `limit` events behind a position, when memory has the first of them.
    pub(crate) fn after(&self, position: Position, limit: usize) -> Option<Vec<Arc<Recorded>>> {
        let recent = self.tail.recent();
        let first = recent.events.front()?.position;
        let index = usize::try_from(position.0.saturating_add(1).saturating_sub(first.0)).ok()?;
        (index < recent.events.len()).then(|| recent.events.range(index..).take(limit).cloned().collect())
    }

    /// Waits until there is news behind `read_to`, or until looking for it failed.
    ///
    /// # Errors
    /// Why it failed, once for each time.
    pub(crate) async fn wait(&mut self, read_to: Position) -> Result<(), Error> {
        let seen = self.n_faults;
        let told =
            self.news.wait_for(|news| news.head > read_to || news.n_faults > seen).await.map(|news| news.clone());
        // It cannot end while this holds the tail.
        let Ok(news) = told else { return Err(Error::Closed) };
        match news.fault {
            Some(fault) if news.n_faults > seen => {
                self.n_faults = news.n_faults;
                Err(fault)
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.tail.n_followers.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.tail.recent().clear();
        }
    }
}
