//! The traces of a run that was cut short: its progress, and the files that changed since it began. Its successor reads of them
//! in the last section of its prompt.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
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
const VISITED_MAX: usize = 100_000;
/// How long git may take.
const WAIT: Duration = Duration::from_secs(10);
/// The most characters of a progress report's line.
const PROGRESS_CHARS_MAX: usize = 500;
/// The most characters of a name or of the first line of a commit.
const NAME_CHARS_MAX: usize = 200;
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
        let by = (*self.executor != Executor::default()).then(|| format!(" by {}", self.executor));
        let mut text = format!(
            "\n## Cut short\n\nAn earlier run of this task{}{} was cut short, and may have left its work half done. Look at what \
             is there before you begin.\n",
            by.unwrap_or_default(),
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
        let names = git(&folder, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).await;
        let Traces { changed, gone, is_whole } = match &names {
            Some(names) => of_names(&folder, names, since),
            None => visited(&folder, since),
        };
        text.push_str(&list("Changed on disk since it began", changed.iter().map(OsString::as_os_str)));
        text.push_str(&list("Deleted, and not yet committed", gone.iter().map(OsString::as_os_str)));
        if !is_whole {
            text.push_str("\nThere are too many files to look at all of them.\n");
        }
        let since = format!("--since=@{}", millis(began_at.since(Timestamp(0))) / 1_000);
        let log = ["-c", "log.showSignature=false", "log", "--format=%h %s", "-z", "--max-count=100", &since];
        let commits = git(&folder, &log).await.unwrap_or_default();
        text.push_str(&list("Committed since it began", of_nul(&commits)));
        text
    }
}

/// The files that changed, and those that are gone.
struct Traces {
    changed: BTreeSet<OsString>,
    gone: BTreeSet<OsString>,
    /// True if all were looked at.
    is_whole: bool,
}

/// Names, each in one line: none of them is a text of the prompt.
fn list<'a>(heading: &str, items: impl Iterator<Item = &'a OsStr>) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().collect() } else { c.to_string() };
    let items = items.map(|item| {
        let name = item.to_string_lossy().chars().take(NAME_CHARS_MAX).map(shown).collect::<String>();
        format!("- {name}\n")
    });
    let items = items.collect::<Vec<_>>();
    if items.is_empty() {
        return String::new();
    }
    let more = items.len().saturating_sub(LISTED_MAX);
    let more = (more > 0).then(|| format!("- and {more} more\n"));
    format!("\n{heading}:\n{}", items.into_iter().take(LISTED_MAX).chain(more).collect::<String>())
}

/// The output of a command of git that reads no content of files, so that it runs none of the programs that a repository names.
async fn git(folder: &Path, words: &[&str]) -> Option<Vec<u8>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "core.fsmonitor=false"]).args(words);
    git.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
    git.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let ran = tokio::time::timeout(WAIT, git.output()).await.ok()?.ok()?;
    ran.status.success().then_some(ran.stdout)
}

fn of_nul(text: &[u8]) -> impl Iterator<Item = &OsStr> {
    text.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(OsStr::from_bytes)
}

/// Of the files that git knows or would add.
fn of_names(folder: &Path, names: &[u8], since: SystemTime) -> Traces {
    let (mut changed, mut gone) = (BTreeSet::new(), BTreeSet::new());
    for name in of_nul(names) {
        match std::fs::symlink_metadata(folder.join(name)).and_then(|found| found.modified()) {
            Ok(at) if at >= since => _ = changed.insert(name.to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => _ = gone.insert(name.to_owned()),
            Ok(_) | Err(_) => {}
        }
    }
    Traces { changed, gone, is_whole: true }
}

/// The files below a folder that changed since then.
fn visited(folder: &Path, since: SystemTime) -> Traces {
    let (mut changed, mut open, mut n_visited) = (BTreeSet::new(), vec![folder.to_owned()], 0);
    while let Some(below) = open.pop() {
        for entry in std::fs::read_dir(below).into_iter().flatten().flatten() {
            n_visited += 1;
            if n_visited > VISITED_MAX {
                return Traces { changed, gone: BTreeSet::new(), is_whole: false };
            }
            let (path, name) = (entry.path(), entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && ![".git", ".crewlog"].iter().any(|own| name == *own) => open.push(path),
                Ok(kind) if kind.is_file() => {
                    let is_new = entry.metadata().and_then(|found| found.modified()).is_ok_and(|at| at >= since);
                    is_new.then(|| changed.insert(path.strip_prefix(folder).unwrap_or(&path).into()));
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    Traces { changed, gone: BTreeSet::new(), is_whole: true }
}
