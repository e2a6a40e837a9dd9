//! The processes hosted by a server, so that a crew needs no worker: timers, hooks, planner, conflicts and statistics.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::crew::reacting;
use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::crew::{self, Crew};
use crewlog_executors::planning;
use crewlog_mq::{Error, Position};
use crewlog_planner::crew::conflicts::Conflicts;
use crewlog_planner::crew::statistics::Statistics;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use crate::context::Session;
use crate::hook::Resident;
use crate::ui::failure::Failure;

/// The time limit for the hosts to end.
const STOP_MAX: Duration = Duration::from_secs(3);

/// The hosts that run in this process. Any number of processes may host the same log: leader locks select one for the
/// timers, conflicts and statistics, and duplicate appends of planners are recognised by their ids.
pub struct Hosting {
    planner: JoinHandle<Result<(), Error>>,
    others: JoinSet<io::Result<()>>,
    hooks: Resident,
    stop: watch::Sender<bool>,
}

impl Hosting {
    pub fn start(session: &Session, crew: &Arc<Crew>) -> Self {
        let (stop, is_stopped) = watch::channel(false);
        let (store, folder) = (crew.store().clone(), session.place.workers_folder());
        let mut others = JoinSet::new();
        others.spawn(reacting::host::<Conflicts>(store.clone(), folder.clone(), is_stopped.clone()));
        others.spawn(reacting::host::<Statistics>(store.clone(), folder.clone(), is_stopped.clone()));
        others.spawn(crew::host(crew.clone(), folder, is_stopped));
        let planner = tokio::spawn(planning::host_all(store.pinned(), watch::channel(Position(0)).0));
        let hooks = Resident::start(crew, &session.place, Worktree::around(&session.folder));
        Self { planner, others, hooks, stop }
    }

    /// Hosts one more process.
    pub fn spawn<F>(&mut self, process: impl FnOnce(watch::Receiver<bool>) -> F)
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        self.others.spawn(process(self.stop.subscribe()));
    }

    /// Resolves when the log is closed, since no call can be answered any more. A log that was replaced or went back
    /// refuses each call, which tells the agents why.
    pub async fn log_closed(&mut self) -> Failure {
        match (&mut self.planner).await {
            Ok(Err(error @ Error::Closed)) => error.into(),
            Ok(Ok(()) | Err(_)) | Err(_) => std::future::pending().await,
        }
    }

    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        self.planner.abort();
        self.hooks.end().await;
        let deadline = Instant::now() + STOP_MAX;
        while let Ok(Some(ended)) = timeout_at(deadline, self.others.join_next()).await {
            if let Err(error) = ended.unwrap_or_else(|error| Err(error.into())) {
                tracing::warn!(%error, "a host failed");
            }
        }
    }
}
