//! Watches a worktree and records changed files that no hook has seen: without a lease, or under the lease of an agent whose
//! hooks have not run. It knows the path of a change, but not its author.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crewlog_executors::crew::worktree::Worktree;
use crewlog_executors::crew::{Crew, Refusal};
use crewlog_planner::crew::leases::{ForeignEdit, LeaseCommand};
use crewlog_planner::crew::target::Target;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::calls::CallLog;
use super::git;
use super::witness::violated;

/// How long changes are collected.
const DEBOUNCE: Duration = Duration::from_millis(500);
/// The interval for comparing a worktree that cannot be watched.
const COMPARE_EVERY: Duration = Duration::from_secs(60);
/// How long a recorded path is not recorded again.
const QUIET: Duration = Duration::from_secs(60);
/// The most queued events, and the most paths recorded at a time and remembered.
const EVENTS_MAX: usize = 4_096;
const RECORDS_MAX: usize = 100;
const PATHS_MAX: usize = 10_000;

/// Records changes of a worktree: git compares it with its last commit on each change that the file system reports, or
/// every minute if it reports none. The files of the log, which begin with its path, are nobody's edits.
///
/// # Errors
/// If git cannot list changes: outside of a repository there is nothing to watch.
pub async fn watch(crew: &Crew, worktree: &Worktree, log: &Path, notes: &Path) -> io::Result<()> {
    let (root, calls) = (&worktree.root, CallLog::of(notes, worktree));
    let mut seen = Seen::default();
    seen.compare(root, git::changed(root).await?, false);
    let (sender, mut events) = mpsc::channel(EVENTS_MAX);
    let mut watcher = watched(root, sender).await.map_err(|error| report(&error)).ok();
    loop {
        let (mut batch, wait) = (Vec::new(), if watcher.is_some() { Duration::MAX } else { COMPARE_EVERY });
        tokio::select! {
            Some(event) = events.recv() => batch.push(event),
            () = sleep(wait) => {}
        }
        if let Some(watching) = &mut watcher {
            sleep(DEBOUNCE).await;
            batch.extend(std::iter::from_fn(|| events.try_recv().ok()));
            if let Err(error) = watch_new(watching, root, batch).await {
                report(&error);
                watcher = None;
            }
        }
        // Git may be busy; the next comparison sees the rest.
        let Ok(changed) = git::changed(root).await else { continue };
        let is_of_log = |path: &String| root.join(path).as_os_str().as_bytes().starts_with(log.as_os_str().as_bytes());
        let news = seen.compare(root, changed, true);
        for (path, is_reverted) in news.into_iter().filter(|(path, _)| !is_of_log(path)) {
            match record(crew, worktree, &calls, &path, is_reverted).await {
                Ok(true) => seen.recorded(&path),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "a changed file was not recorded"),
            }
        }
    }
}

/// Records a changed file, unless the holder of a lease on it may have changed it. A file without a lease may be reverted.
async fn record(
    crew: &Crew,
    worktree: &Worktree,
    calls: &CallLog,
    path: &str,
    is_reverted: bool,
) -> Result<bool, Refusal> {
    let Ok(path) = Target::literal(path) else { return Ok(false) };
    let Some(lease) = violated(crew, calls, worktree, &path).await? else { return Ok(false) };
    let (worktree, agent, is_at_risk) = (worktree.name.clone(), None, false);
    match lease {
        Some(lease) => {
            let edit = ForeignEdit { worktree, path, agent, lease, is_at_risk };
            crew.record_edit(|now| LeaseCommand::SeeForeignEdit { edit, now }).await?;
        }
        None if is_reverted => return Ok(false),
        None => crew.record_edit(|now| LeaseCommand::SeeEdit { worktree, path, agent, now }).await?,
    }
    Ok(true)
}

fn report(error: &notify::Error) {
    let every = COMPARE_EVERY.as_secs();
    tracing::warn!(%error, "the worktree cannot be watched: it is compared by git every {every} s instead");
}

/// Watches the folders with files that git does not ignore.
async fn watched(root: &Path, sender: mpsc::Sender<notify::Result<Event>>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        let is_read = event.as_ref().is_ok_and(|event| matches!(event.kind, EventKind::Access(_)));
        if !is_read {
            // If the queue is full, a comparison is due anyway.
            let _ = sender.try_send(event);
        }
    })?;
    let files = git::files(root).await.unwrap_or_default();
    let mut folders = BTreeSet::from([Path::new("")]);
    folders.extend(files.iter().flat_map(|file| Path::new(file).ancestors().skip(1)));
    for folder in folders.into_iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir()) {
        watcher.watch(&folder, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// Watches new folders among the changes.
async fn watch_new(
    watcher: &mut RecommendedWatcher,
    root: &Path,
    batch: Vec<notify::Result<Event>>,
) -> notify::Result<()> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for event in batch {
        paths.extend(event?.paths.into_iter().filter(|path| path.is_dir() && !path.ends_with(".git")));
    }
    let below = |path: &PathBuf| path.strip_prefix(root).ok()?.to_str().map(str::to_owned);
    let folders: BTreeSet<_> = paths.iter().filter_map(below).filter(|path| !path.is_empty()).collect();
    let ignored = git::ignored(root, &folders.iter().map(String::as_str).collect()).await;
    for folder in folders.difference(&ignored) {
        watcher.watch(&root.join(folder), RecursiveMode::NonRecursive)?;
    }
    Ok(())
}

/// The changed files of the last comparison: the time of each write, and of its last record.
#[derive(Default)]
struct Seen(BTreeMap<String, (Option<SystemTime>, Option<Instant>)>);

impl Seen {
    /// The changed files that were written since the last comparison and not recorded lately, and true with those that were
    /// written as they are in the last commit. The first comparison has no news.
    fn compare(&mut self, root: &Path, changed: Vec<String>, has_news: bool) -> Vec<(String, bool)> {
        let (mut before, mut news) = (std::mem::take(&mut self.0), Vec::new());
        let written = |path: &str| root.join(path).symlink_metadata().and_then(|found| found.modified()).ok();
        let is_due = |recorded: Option<Instant>| recorded.is_none_or(|at| at.elapsed() >= QUIET);
        for path in changed.into_iter().take(PATHS_MAX) {
            let (known, written) = (before.remove(&path), written(&path));
            let (last_written, recorded) = known.unwrap_or((None, None));
            let is_same = known.is_some() && written == last_written;
            if has_news && !is_same && is_due(recorded) && news.len() < RECORDS_MAX {
                news.push((path.clone(), false));
            }
            self.0.insert(path, (written, recorded));
        }
        // A commit leaves the files as they are.
        for (path, (last_written, recorded)) in before {
            let written = written(&path).filter(|_| has_news && is_due(recorded) && news.len() < RECORDS_MAX);
            if written.is_some() && written != last_written {
                news.push((path, true));
            }
        }
        news
    }

    fn recorded(&mut self, path: &str) {
        self.0.get_mut(path).into_iter().for_each(|(_, recorded)| *recorded = Some(Instant::now()));
    }
}
