//! Detects commits of other processes by notifications of the server, with polling as the fallback.
//!
//! It ends only with the log: failures are reported to all followers, and retried.

use std::sync::{Arc, Weak};

use futures::FutureExt;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::task::JoinSet;

use super::log::{LOOKING, Log};
use super::read::{self, Asked};
use super::server::{Server, is_loss};
use crate::backoff::Backoff;
use crate::error::Result;
use crate::limits::{BACKOFF, POLL_INTERVAL};
use crate::query::{Query, Range};
use crate::tail::{Deed, Look, Tail};

/// The most events that are read for all followers.
const EVENTS_MAX: usize = 1000;

/// Looks for commits until the log is closed. Notifications are received as well, from the first follower on.
pub(super) async fn look(log: Weak<Log>, tail: Arc<Tail>) {
    let (mut backoff, mut listener) = (Backoff::new(), JoinSet::new());
    // Opening the log was a look.
    let _ = tokio::time::timeout(POLL_INTERVAL, tail.asked()).await;
    loop {
        let Some(strong) = log.upgrade() else { return };
        // It ends only by a fault in itself.
        while listener.try_join_next().is_some() {}
        if listener.is_empty() && tail.is_followed() && !strong.server.is_pooled {
            listener.spawn(listen(strong.server.clone(), strong.channel.clone(), Arc::clone(&tail)));
        }
        let outcome = look_once(&strong).await;
        drop(strong);
        tail.tried(Deed::Poll, &outcome);
        match outcome {
            Ok(()) => {
                backoff = Backoff::new();
                // A hint that arrived meanwhile is kept.
                let _ = tokio::time::timeout(POLL_INTERVAL, tail.asked()).await;
            }
            Err(error) => {
                tail.failed(error);
                tokio::time::sleep(backoff.pause()).await;
            }
        }
    }
}

/// Reads new events, once for all followers.
async fn look_once(log: &Arc<Log>) -> Result<()> {
    let known = log.tail.head();
    let Look { end, generation, .. } = log.head(("looking for new events", LOOKING)).await?;
    let n_new = usize::try_from(end.head.0 - known.0).unwrap_or(0);
    // A follower that is far behind reads pages anyway.
    if log.tail.is_followed() && (1..=EVENTS_MAX).contains(&n_new) {
        let asked = Asked { query: Query::all(), range: Range::between(known, end.head), limit: n_new };
        let turn = ("reading new events", LOOKING);
        let page = log.read(turn, asked, |snapshot, asked| read::page(snapshot, asked).boxed()).await?;
        log.tail.publish(generation, page.events);
    }
    log.tail.grew(generation, end);
    Ok(())
}

/// Receives the server's notifications of commits. Commits whose notification is lost are found by polling.
async fn listen(server: Server, channel: String, tail: Arc<Tail>) {
    let mut backoff = Backoff::new();
    loop {
        let pool =
            PgPoolOptions::new().max_connections(1).acquire_timeout(BACKOFF.1).connect_lazy_with(server.options());
        match listen_once(&pool, &channel, &tail, &mut backoff).await {
            Ok(()) => tracing::debug!("the connection that listens for new events was lost"),
            Err(error) => tail.failed(server.fault("listening for new events", error)),
        }
        pool.close().await;
        tokio::time::sleep(backoff.pause()).await;
    }
}

async fn listen_once(pool: &sqlx::PgPool, channel: &str, tail: &Tail, backoff: &mut Backoff) -> sqlx::Result<()> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.eager_reconnect(false);
    listener.ignore_pool_close_event(true);
    match listener.listen(channel).await {
        // The server may end the session at any time. Followers lose nothing: polling continues.
        Err(error) if is_loss(&error) => return Ok(()),
        listened => listened?,
    }
    *backoff = Backoff::new();
    // Finds what was committed before listening began.
    tail.ask();
    loop {
        match listener.try_recv().await {
            // A known commit, such as this process's own, needs no look.
            Ok(Some(news)) if news.payload().parse().is_ok_and(|head: i64| head <= tail.head().0) => {}
            Ok(Some(_)) => tail.ask(),
            Ok(None) => return Ok(()),
            Err(error) if is_loss(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
