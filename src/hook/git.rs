//! Queries git for hooks: ignored files, and the files of a commit or a push.

use std::collections::BTreeSet;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// The time limit for git.
const WAIT: Duration = Duration::from_secs(2);

/// The paths, relative to the root of a worktree, that git ignores. A tracked file is never ignored; without git or a
/// repository no file is.
pub async fn ignored(root: &Path, paths: &BTreeSet<&str>) -> BTreeSet<String> {
    if paths.is_empty() {
        return BTreeSet::new();
    }
    // The prefix `./` keeps git from treating a path as a pathspec with magic.
    let input: String = paths.iter().flat_map(|path| ["./", path, "\0"]).collect();
    // A failure of git must not hide a lease.
    let ignored = names(root, "check-ignore --stdin -z", &input).await.unwrap_or_default().into_iter();
    ignored.filter_map(|path| path.strip_prefix("./").map(str::to_owned)).collect()
}

/// The files in the index that differ from the last commit, relative to the worktree's root; both names of a rename.
pub async fn staged(folder: &Path) -> io::Result<Vec<String>> {
    names(folder, "diff --cached --name-only --no-renames -z", "").await
}

/// The files of the commits that a remote does not have yet; `commits` are ids separated by blanks.
pub async fn pushed(folder: &Path, commits: &str) -> io::Result<Vec<String>> {
    names(folder, &format!("log --format= --name-only --no-renames -z {commits} --not --remotes --"), "").await
}

/// The files that git reports as changed or new, relative to the root of the worktree.
pub async fn changed(root: &Path) -> io::Result<Vec<String>> {
    let lines = names(root, "status --porcelain --no-renames --untracked-files=all -z", "").await?;
    Ok(lines.into_iter().filter_map(|line| line.get(3..).map(str::to_owned)).collect())
}

/// The files of the worktree that git does not ignore.
pub async fn files(root: &Path) -> io::Result<Vec<String>> {
    names(root, "ls-files --cached --others --exclude-standard -z", "").await
}

/// The id of the last commit.
pub async fn head(folder: &Path) -> io::Result<String> {
    let lines = names(folder, "rev-parse HEAD", "").await?;
    Ok(lines.first().map(|line| line.trim().to_owned()).unwrap_or_default())
}

/// The files that differ between two commits, or those of the last commit.
pub async fn of_change(folder: &Path, range: Option<(&str, &str)>) -> io::Result<Vec<String>> {
    let words = match range {
        Some((before, after)) => format!("diff --name-only --no-renames -z {before} {after} --"),
        None => "log -1 --format= --name-only --no-renames -m --first-parent -z HEAD --".to_owned(),
    };
    names(folder, &words, "").await
}

/// The content of a file in the last commit; `None` if it has none.
pub async fn committed(root: &Path, path: &str) -> Option<Vec<u8>> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["cat-file", "--filters", &format!("HEAD:{path}")]).kill_on_drop(true);
    let ran = timeout(WAIT, git.output()).await.ok()?.ok()?;
    ran.status.success().then_some(ran.stdout)
}

/// The names printed by git, which end with NUL. An empty result is not an error: `check-ignore` then exits with 1.
async fn names(folder: &Path, words: &str, input: &str) -> io::Result<Vec<String>> {
    let mut stdin = tempfile::tempfile()?;
    stdin.write_all(input.as_bytes())?;
    stdin.rewind()?;
    let mut git = Command::new("git");
    git.current_dir(folder).args(words.split_whitespace()).env("GIT_OPTIONAL_LOCKS", "0").kill_on_drop(true);
    let ran = timeout(WAIT, git.stdin(stdin).output()).await??;
    if !matches!(ran.status.code(), Some(0 | 1)) {
        return Err(io::Error::other(format!("git failed: {}", String::from_utf8_lossy(&ran.stderr).trim())));
    }
    let names = ran.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}
