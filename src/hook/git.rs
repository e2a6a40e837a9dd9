//! What git tells a hook: which files are ignored, which ones a commit has, and which ones a push has.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

/// How long git may take.
const WAIT: Duration = Duration::from_secs(2);
/// Set by git for its own hooks: a resident process must not hand down those of another repository.
const OWN_VARIABLES: [&str; 4] = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE"];

/// Those of the paths, relative to the root of a worktree, that git ignores. A tracked file is never ignored; without git
/// or a repository nothing is.
pub async fn ignored(root: &Path, paths: &BTreeSet<&str>) -> BTreeSet<String> {
    // With `./` before it, no path is taken for a pathspec with magic.
    let input: String = paths.iter().flat_map(|path| ["./", path, "\0"]).collect();
    let mut git = in_folder(root);
    git.args(["check-ignore", "--stdin", "-z"]);
    // A failure of git must not hide a lease.
    let ignored = run(git, input.as_bytes()).await.unwrap_or_default().into_iter();
    ignored.filter_map(|path| path.strip_prefix("./").map(str::to_owned)).collect()
}

/// The files in the index that differ from the last commit, from the root of the worktree; of a rename both names.
/// `is_hook` keeps the index that git has named to its own hook.
pub async fn staged(folder: &Path, is_hook: bool) -> io::Result<Vec<String>> {
    let mut git = if is_hook { Command::new("git") } else { in_folder(folder) };
    git.current_dir(folder).args(["diff", "--cached", "--name-only", "--no-renames", "-z"]);
    run(git, b"").await
}

/// The files of the commits that a remote does not have yet.
pub async fn pushed(folder: &Path, commit: &str) -> io::Result<Vec<String>> {
    let mut git = in_folder(folder);
    git.args(["log", "--format=", "--name-only", "--no-renames", "-z", commit, "--not", "--remotes", "--"]);
    run(git, b"").await
}

/// The files that git sees as changed or new, from the root of the worktree.
pub async fn changed(root: &Path) -> io::Result<Vec<String>> {
    let mut git = in_folder(root);
    git.args(["status", "--porcelain", "--no-renames", "--untracked-files=all", "-z"]);
    Ok(run(git, b"").await?.into_iter().filter_map(|line| line.get(3..).map(str::to_owned)).collect())
}

/// The files of the worktree that git does not ignore.
pub async fn files(root: &Path) -> io::Result<Vec<String>> {
    let mut git = in_folder(root);
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
    run(git, b"").await
}

fn in_folder(folder: &Path) -> Command {
    let mut git = Command::new("git");
    for name in OWN_VARIABLES {
        git.env_remove(name);
    }
    git.current_dir(folder);
    git
}

/// The names that git prints, which end with NUL. That it finds none is no failure: `check-ignore` then exits with 1.
async fn run(mut git: Command, input: &[u8]) -> io::Result<Vec<String>> {
    git.env("GIT_OPTIONAL_LOCKS", "0").kill_on_drop(true);
    let mut child = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    let written = async {
        if let Some(mut stdin) = stdin {
            // A git that ended early says why.
            let _ = stdin.write_all(input).await;
        }
    };
    let (_, ran) = timeout(WAIT, async { tokio::join!(written, child.wait_with_output()) }).await?;
    let ran = ran?;
    if !matches!(ran.status.code(), Some(0 | 1)) {
        return Err(io::Error::other(format!("git failed: {}", String::from_utf8_lossy(&ran.stderr).trim())));
    }
    let names = ran.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}
