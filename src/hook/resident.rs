//! What a resident process does for the hooks of its project: it answers them, and watches its worktree.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::crew::Crew;
use crewlog_executors::liveness::LeaderLock;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::socket::{self, Socket};
use super::watch::watch;
use crate::crew::worktree::Worktree;
use crate::place::Place;

/// How often a process looks whether another one has ended.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// How long the end may take.
const END_WAIT: Duration = Duration::from_secs(1);

/// The resident side of hooks in this process, until it is dropped or ended.
pub struct Resident {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Resident {
    /// Answers the hooks of a project and watches a worktree. Of all processes with the same log one listens, and one
    /// watches each worktree; another takes over. A fault is a warning: hooks then open the log themselves.
    pub fn start(crew: &Arc<Crew>, place: &Place, worktree: Worktree) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (socket, locks) = (Socket::of(place, crew.project()), place.workers_folder());
        let watching = format!("watch-{}", Uuid::new_v5(&Uuid::NAMESPACE_URL, worktree.name().as_bytes()).simple());
        let (listener, watcher) = (Arc::clone(crew), Arc::clone(crew));
        let task = tokio::spawn(async move {
            let answered = socket::serve(listener, socket, stopped.clone());
            let watched = lead(&locks, &watching, stopped.clone(), || watch(watcher, worktree, stopped.clone()));
            let (answered, watched) = tokio::join!(answered, watched);
            if let Err(error) = answered {
                tracing::warn!(%error, "this process does not answer hooks: each opens the log itself");
            }
            if let Err(error) = watched {
                tracing::debug!(%error, "this process does not watch the worktree");
            }
        });
        Self { stop, task }
    }

    /// Stops, and lets another process take over.
    pub async fn end(self) {
        self.stop.send_replace(true);
        // What still hangs ends with the process.
        let _ = timeout(END_WAIT, self.task).await;
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
