//! The traces of a run that was cut short: its progress, and the files that changed since it began. Its successor reads of them
//! in the last section of its prompt.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crewlog_mq::Timestamp;
use crewlog_planner::claim::{Executor, TaskProgress};
use crewlog_planner::text::{millis, single_line};
use tokio::process::Command;

/// The most files and commits that are listed.
const LISTED_MAX: usize = 30;
/// The most entries of a folder outside of a repository that are looked at.
const VISITED_MAX: usize = 20_000;
/// How long git may take.
const WAIT: Duration = Duration::from_secs(10);
/// The most characters of a progress report's line.
const PROGRESS_CHARS_MAX: usize = 500;
/// Clocks of file systems may lag behind.
const SLACK: Duration = Duration::from_secs(1);

/// A run that was cut short.
pub(crate) struct Interruption<'a> {
    pub(crate) executor: &'a Executor,
    pub(crate) progress: Option<&'a TaskProgress>,
    /// In log time.
    pub(crate) began_at: Option<Timestamp>,
}

impl<'a> Interruption<'a> {
    /// A run of which only the executor is known.
    pub(crate) const fn by(executor: &'a Executor) -> Self {
        Self { executor, progress: None, began_at: None }
    }

    /// The section without the files.
    pub(crate) fn head(&self) -> String {
        let began = self.began_at.and_then(|at| jiff::Timestamp::from_microsecond(at.0).ok());
        let when = began.map(|at| format!(", which began at {},", at.strftime("%Y-%m-%d %H:%M:%S UTC")));
        let mut text = format!(
            "\n## Cut short\n\nAn earlier run of this task by {}{} was cut short, and may have left its work half done. Look at \
             what is there before you begin.\n",
            self.executor,
            when.unwrap_or_default()
        );
        let progress = self.progress.iter().flat_map(|progress| {
            [("Its step", &progress.step), ("Its next step", &progress.next_step), ("Its note", &progress.note)]
        });
        for (name, said) in progress.filter_map(|(name, said)| Some((name, said.as_ref()?))) {
            text.push_str(&format!("\n{name}: {}\n", single_line(said, PROGRESS_CHARS_MAX)));
        }
        text
    }

    /// The section for its successor, which runs in a folder.
    pub(crate) async fn section(&self, folder: Option<&str>) -> String {
        let mut text = self.head();
        let folder = folder.map_or_else(|| std::env::current_dir().unwrap_or_default(), PathBuf::from);
        let Some(began_at) = self.began_at else { return text };
        let since = SystemTime::UNIX_EPOCH + began_at.since(Timestamp(0)).saturating_sub(SLACK);
        let (files, commits) = match git(&folder, &["status", "--porcelain", "-z", "-uall", "--no-renames", "."]).await
        {
            Some(status) => (changed(&folder, &status, since).await, commits_since(&folder, began_at).await),
            None => (visited(&folder, since), Vec::new()),
        };
        text.push_str(&list("Changed on disk since it began", &files));
        text.push_str(&list("Committed since it began", &commits));
        text
    }
}

fn list(heading: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let more = items.len().saturating_sub(LISTED_MAX);
    let more = (more > 0).then(|| format!("- and {more} more\n"));
    let lines = items.iter().take(LISTED_MAX).map(|item| format!("- {item}\n"));
    format!("\n{heading}:\n{}", lines.chain(more).collect::<String>())
}

/// The output of a command of git, which runs no program that the repository names.
async fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "core.fsmonitor=false"]).args(words).env("GIT_OPTIONAL_LOCKS", "0");
    git.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let ran = tokio::time::timeout(WAIT, git.output()).await.ok()?.ok()?;
    ran.status.success().then(|| String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// Of the files that git shows as changed, those that changed since then, and those that are gone.
async fn changed(folder: &Path, status: &str, since: SystemTime) -> Vec<String> {
    let root = git(folder, &["rev-parse", "--show-toplevel"]).await.unwrap_or_default();
    let root = Path::new(root.trim_end_matches('\n'));
    let told = status.split('\0').filter_map(|entry| Some((entry.get(..2)?, entry.get(3..)?)));
    let files = told.filter_map(|(state, path)| {
        let path = root.join(path);
        let (is_gone, shown) = (state.contains('D'), path.strip_prefix(folder).unwrap_or(&path).display());
        match is_gone {
            true => Some(format!("{shown} (deleted)")),
            false => has_changed(&path, since).then(|| shown.to_string()),
        }
    });
    files.collect()
}

async fn commits_since(folder: &Path, since: Timestamp) -> Vec<String> {
    let since = format!("--since=@{}", millis(since.since(Timestamp(0))) / 1_000);
    let log = git(folder, &["log", "--format=%h %s", "--max-count=100", &since]).await;
    log.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The files below a folder that changed since then, without hidden ones.
fn visited(folder: &Path, since: SystemTime) -> Vec<String> {
    let (mut found, mut open, mut n_visited) = (BTreeSet::new(), vec![folder.to_owned()], 0);
    while let Some(below) = open.pop() {
        for entry in std::fs::read_dir(below).into_iter().flatten().flatten() {
            n_visited += 1;
            if n_visited > VISITED_MAX {
                return found.into_iter().collect();
            }
            let (path, is_hidden) = (entry.path(), entry.file_name().to_string_lossy().starts_with('.'));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_hidden => open.push(path),
                Ok(kind) if kind.is_file() && !is_hidden && has_changed(&path, since) => {
                    found.insert(path.strip_prefix(folder).unwrap_or(&path).display().to_string());
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    found.into_iter().collect()
}

fn has_changed(path: &Path, since: SystemTime) -> bool {
    std::fs::symlink_metadata(path).and_then(|found| found.modified()).is_ok_and(|at| at >= since)
}
