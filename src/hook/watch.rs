//! Watches a worktree and records changed files on which nobody holds a lease: what no hook has seen. It knows a path,
//! never who changed it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crewlog_executors::crew::Crew;
use crewlog_planner::crew::leases::LeaseCommand;
use crewlog_planner::crew::target::Target;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::git;
use crate::crew::worktree::Worktree;

/// How long changes are gathered.
const DEBOUNCE: Duration = Duration::from_millis(500);
/// How often the worktree is compared when it cannot be watched.
const COMPARE_EVERY: Duration = Duration::from_secs(60);
/// How long a path that was recorded is not recorded again.
const QUIET: Duration = Duration::from_secs(60);
/// The most changes that wait, and the most paths that are recorded at a time and remembered.
const CHANGES_MAX: usize = 4_096;
const RECORDS_MAX: usize = 100;
const PATHS_MAX: usize = 10_000;

/// Records changes of a worktree until `stop` is set.
///
/// # Errors
/// When git cannot say what has changed: outside of a repository there is nothing to watch.
pub async fn watch(crew: Arc<Crew>, worktree: Worktree, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    let (sender, mut changes) = mpsc::channel(CHANGES_MAX);
    let mut seen = Seen { known: git::changed(worktree.root()).await?.into_iter().collect(), ..Seen::default() };
    let mut watched = Watched::of(worktree.root(), sender).await;
    loop {
        let wait = if watched.is_some() { Duration::MAX } else { COMPARE_EVERY };
        let mut batch = Vec::new();
        tokio::select! {
            _ = changes.recv_many(&mut batch, CHANGES_MAX) => {}
            () = sleep(wait) => {}
            _ = stop.wait_for(|is_set| *is_set) => return Ok(()),
        }
        if watched.is_some() {
            sleep(DEBOUNCE).await;
        }
        while let Ok(change) = changes.try_recv() {
            batch.push(change);
        }
        let touched = watched.is_some().then(|| below(worktree.root(), &batch));
        if let Some(found) = &mut watched
            && !found.keep_up(worktree.root(), &batch).await
        {
            watched = None;
        }
        // Git may be busy; the next batch sees the rest.
        let Ok(changed) = git::changed(worktree.root()).await else { continue };
        for path in seen.fresh(changed, touched.as_ref()) {
            let Ok(path) = Target::literal(&path) else { continue };
            let worktree = worktree.name().to_owned();
            if let Err(error) = crew.record_edit(|now| LeaseCommand::SeeEdit { worktree, path, agent: None, now }).await
            {
                tracing::warn!(%error, "a changed file was not recorded");
            }
        }
    }
}

/// The paths of a batch as git names them; changes in git's own folder are none.
fn below(root: &Path, batch: &[Change]) -> BTreeSet<String> {
    let paths = batch.iter().flat_map(|change| match change {
        Change::Paths(paths) => paths.as_slice(),
        Change::Failed(_) => &[],
    });
    let below = paths.filter_map(|path| path.strip_prefix(root).ok()?.to_str()).map(str::to_owned);
    below.filter(|path| !path.starts_with(".git/")).collect()
}

/// What the file system tells.
enum Change {
    Paths(Vec<PathBuf>),
    Failed(notify::Error),
}

/// The watched folders: those with files that git does not ignore.
struct Watched {
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
}

impl Watched {
    async fn of(root: &Path, sender: mpsc::Sender<Change>) -> Option<Self> {
        let tell = move |event: notify::Result<Event>| {
            let change = match event {
                Ok(Event { kind: EventKind::Access(_), .. }) => return,
                Ok(event) => Change::Paths(event.paths),
                Err(error) => Change::Failed(error),
            };
            // A full queue has changes enough for a comparison.
            let _ = sender.try_send(change);
        };
        let watcher = notify::recommended_watcher(tell).map_err(|error| report(&error)).ok()?;
        let mut watched = Self { watcher, folders: BTreeSet::new() };
        watched.add_folders(root).await.then_some(watched)
    }

    /// Watches new folders too. False when watching is over: too many folders, or a fault.
    async fn keep_up(&mut self, root: &Path, batch: &[Change]) -> bool {
        let mut has_folder = false;
        for change in batch {
            match change {
                Change::Paths(paths) => has_folder |= paths.iter().any(|path| path.is_dir()),
                Change::Failed(error) => {
                    report(error);
                    return false;
                }
            }
        }
        !has_folder || self.add_folders(root).await
    }

    async fn add_folders(&mut self, root: &Path) -> bool {
        let files = git::files(root).await.unwrap_or_default();
        let mut folders = BTreeSet::from([root.to_owned()]);
        for file in files {
            let above = Path::new(&file).ancestors().skip(1).map(|folder| root.join(folder));
            folders.extend(above.take_while(|folder| folder.starts_with(root)));
        }
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            if self.folders.contains(&folder) {
                continue;
            }
            if let Err(error) = self.watcher.watch(&folder, RecursiveMode::NonRecursive) {
                report(&error);
                return false;
            }
            self.folders.insert(folder);
        }
        true
    }
}

fn report(error: &notify::Error) {
    let every = COMPARE_EVERY.as_secs();
    tracing::warn!(%error, "the worktree cannot be watched: it is compared by git every {every} s instead");
}

/// What was seen before.
#[derive(Default)]
struct Seen {
    /// The changed files at the last comparison.
    known: BTreeSet<String>,
    recorded: BTreeMap<String, Instant>,
}

impl Seen {
    /// The changed files that are news: those that were touched, or without a watch those that had not changed before.
    fn fresh(&mut self, changed: Vec<String>, touched: Option<&BTreeSet<String>>) -> Vec<String> {
        let changed: BTreeSet<_> = changed.into_iter().take(PATHS_MAX).collect();
        let known = std::mem::replace(&mut self.known, changed);
        self.recorded.retain(|_, at| at.elapsed() < QUIET);
        let is_news = |path: &&String| match touched {
            Some(touched) => touched.contains(*path),
            None => !known.contains(*path),
        };
        let fresh = self.known.iter().filter(is_news).filter(|path| !self.recorded.contains_key(*path));
        let fresh: Vec<_> = fresh.take(RECORDS_MAX).cloned().collect();
        self.recorded.extend(fresh.iter().map(|path| (path.clone(), Instant::now())));
        fresh
    }
}
