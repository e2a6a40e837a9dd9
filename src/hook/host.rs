//! What a resident process does for the hooks of its project: it answers them, and watches its worktree.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::crew::Crew;
use crewlog_executors::liveness::LeaderLock;
use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use super::socket::{self, Socket};
use super::watch::watch;
use crate::crew::worktree::Worktree;
use crate::place::Place;

/// How often a process looks whether another one has ended.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// Answers the hooks of a project and watches a worktree, until `stop` is set. Of all processes with the same log one
/// listens and one watches each worktree. A fault is a warning: hooks then open the log themselves.
pub fn host(
    crew: &Arc<Crew>,
    place: &Place,
    worktree: Worktree,
    stop: watch::Receiver<bool>,
) -> impl Future<Output = ()> + Send + 'static {
    let (socket, locks) = (Socket::of(place, crew.project()), place.workers_folder());
    let watching = format!("watch-{}", Uuid::new_v5(&Uuid::NAMESPACE_URL, worktree.name().as_bytes()).simple());
    let (listener, watcher) = (Arc::clone(crew), Arc::clone(crew));
    async move {
        let answered = socket::serve(listener, socket, stop.clone());
        let watched = lead(&locks, &watching, stop.clone(), || watch(watcher, worktree, stop.clone()));
        let (answered, watched) = tokio::join!(answered, watched);
        if let Err(error) = answered {
            tracing::warn!(%error, "this process does not answer hooks: each opens the log itself");
        }
        if let Err(error) = watched {
            tracing::debug!(%error, "this process does not watch the worktree");
        }
    }
}

/// Does the work of one process at a time, once no other does it.
pub async fn lead<W: Future<Output = io::Result<()>>>(
    locks: &Path,
    name: &str,
    mut stop: watch::Receiver<bool>,
    work: impl FnOnce() -> W,
) -> io::Result<()> {
    let _leader = loop {
        match LeaderLock::take(locks, name)? {
            Some(lock) => break lock,
            None => tokio::select! {
                () = sleep(TRY_EVERY) => {}
                _ = stop.wait_for(|is_set| *is_set) => return Ok(()),
            },
        }
    };
    work().await
}
