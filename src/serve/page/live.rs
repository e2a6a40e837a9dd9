//! Live updates of the page as server-sent events: one task renders for all readers of an address, and each gets the
//! parts that differ from its own.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use crewlog_mq::{Query, Start};
use futures::{FutureExt, Stream, StreamExt, stream};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::asked::Asked;
use super::document::Rendered;
use super::look::{NoPage, Site};
use crate::ui::failure::Failure;

/// The shortest time between two renderings.
const EVERY: Duration = Duration::from_millis(150);
/// The page is rendered at least this often, since bars grow with time.
const AT_REST: Duration = Duration::from_secs(20);
/// The same with a task open, whose program may print something.
const WATCHED: Duration = Duration::from_secs(2);
/// The most addresses rendered at a time, and the most readers.
const ADDRESSES_MAX: usize = 64;
const READERS_MAX: usize = 256;

type Latest = Option<Arc<Rendered>>;

pub struct Lives {
    site: Arc<Site>,
    by_address: Mutex<HashMap<String, watch::Sender<Latest>>>,
    free: Arc<Semaphore>,
}

impl Lives {
    pub fn new(site: Arc<Site>) -> Self {
        Self { site, by_address: Mutex::default(), free: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// Follows an address. `seen` is the position of the reader's content. The past does not change: its reader gets no
    /// content and does not reconnect.
    pub fn follow(
        self: &Arc<Self>,
        asked: &Asked,
        seen: Option<i64>,
    ) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>, StatusCode> {
        if asked.number("at").is_some() {
            return Err(StatusCode::NO_CONTENT);
        }
        let permit = self.free.clone().try_acquire_owned().map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        let latest = self.subscribe(asked).ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
        let reader = Reader { latest, has: None, seen, _permit: permit };
        Ok(Sse::new(stream::unfold(reader, Reader::next)).keep_alive(KeepAlive::default()))
    }

    /// Subscribes to an address, and starts rendering it if necessary; `None` if too many addresses are followed.
    fn subscribe(self: &Arc<Self>, asked: &Asked) -> Option<watch::Receiver<Latest>> {
        let asked = asked.but(&[("said", "")]);
        let address = asked.link(&[]);
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = by_address.get(&address) {
            return Some(running.subscribe());
        }
        if by_address.len() >= ADDRESSES_MAX {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        by_address.insert(address.clone(), sender.clone());
        tokio::spawn(self.clone().run(asked, address, sender));
        Some(receiver)
    }

    /// Renders an address whenever the log grows, until nobody follows it.
    async fn run(self: Arc<Self>, asked: Asked, address: String, sender: watch::Sender<Latest>) {
        let at_rest = if asked.get("task").is_some() { WATCHED } else { AT_REST };
        while !self.ends(&address, &sender) {
            let head = match self.site.views.as_of(None).await {
                Ok(head) => head,
                Err(failure) => {
                    rest(&sender, &failure).await;
                    continue;
                }
            };
            // The stream ends if another log replaces this one.
            let mut records = pin!(head.store().follow(&Query::all(), Start::After(head.at)));
            while !self.ends(&address, &sender) {
                let rendered_at = Instant::now();
                match self.site.render(&asked).await {
                    Ok(rendered) => drop(sender.send_replace(Some(Arc::new(rendered)))),
                    Err(NoPage::Failed(failure)) => rest(&sender, &failure).await,
                    // A log that went back no longer has it.
                    Err(NoPage::Missing { .. }) => return,
                }
                let next = async { records.next().await.is_some() };
                let is_on = tokio::select! {
                    next = timeout(at_rest, next) => next.unwrap_or(true),
                    () = sender.closed() => true,
                };
                if !is_on {
                    break;
                }
                sleep_until(rendered_at + EVERY).await;
                while let Some(Some(_)) = records.next().now_or_never() {}
            }
        }
    }

    /// True if nobody follows an address any more; it is then removed.
    fn ends(&self, address: &str, sender: &watch::Sender<Latest>) -> bool {
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = sender.receiver_count() == 0;
        if is_over {
            by_address.remove(address);
        }
        is_over
    }
}

/// Waits after a failure; the readers keep their content.
async fn rest(sender: &watch::Sender<Latest>, failure: &Failure) {
    tracing::warn!(%failure, "the page cannot be rendered");
    let _ = timeout(Duration::from_secs(1), sender.closed()).await;
}

/// A reader of an address.
struct Reader {
    latest: watch::Receiver<Latest>,
    has: Latest,
    seen: Option<i64>,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// The next message, once there are changes.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            let latest = self.latest.borrow_and_update().clone();
            if let Some(page) = latest {
                let is_seen = self.has.is_none() && self.seen == Some(page.at.0);
                let message = if is_seen { None } else { message(self.has.as_deref(), &page) };
                self.has = Some(page);
                if let Some(message) = message {
                    return Some((Ok(message), self));
                }
            }
            self.latest.changed().await.ok()?;
        }
    }
}

/// The parts that differ from a reader's; `None` if it has them all.
fn message(has: Option<&Rendered>, page: &Rendered) -> Option<Event> {
    let known: HashMap<_, _> = has.into_iter().flat_map(|has| &has.parts).map(|(id, markup)| (*id, markup)).collect();
    let changed = page.parts.iter().filter(|(id, markup)| known.get(id) != Some(&markup));
    let parts: serde_json::Map<_, _> = changed.map(|(id, markup)| ((*id).to_owned(), json!(markup.0))).collect();
    if parts.is_empty() && has.is_some_and(|has| has.at == page.at) {
        return None;
    }
    let gone: Vec<_> = known.keys().filter(|id| !page.parts.iter().any(|(shown, _)| shown == *id)).collect();
    let data = json!({ "at": page.at, "now": page.now_us, "title": page.title, "parts": parts, "gone": gone });
    Some(Event::default().id(page.at.to_string()).data(data.to_string()))
}
