//! The files that are believed: those of this account and of root, and below `sudo` those of the account that called it.
//! Files name the commands to run, so one that another account owns, or that everybody may write, counts only if it was
//! named.

use std::env;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long git's answer counts.
const SAFE_FOR: Duration = Duration::from_secs(1);
/// The permission to write for everybody.
const BY_EVERYBODY: u32 = 0o002;

/// True unless it is certain that there is nothing at a path.
#[must_use]
pub fn is_there(path: &Path) -> bool {
    let gone = |error: &io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    !path.symlink_metadata().is_err_and(|error| gone(&error))
}

/// The reason why a file or folder is not believed, if there is one. Links count like files; a missing file is believed, and so
/// is a folder that git trusts.
#[must_use]
pub fn distrusted(path: &Path) -> Option<String> {
    let link = path.symlink_metadata().ok().filter(Metadata::is_symlink);
    let why = link.as_ref().and_then(why_of_owner).or_else(|| path.metadata().ok().as_ref().and_then(why_of))?;
    (!is_safe_for_git(path)).then(|| format!("{} {why}", path.display()))
}

fn why_of(found: &Metadata) -> Option<String> {
    let is_open = found.mode() & BY_EVERYBODY != 0 && (found.is_file() || found.is_dir());
    why_of_owner(found).or_else(|| is_open.then(|| "can be written by everybody".to_owned()))
}

fn why_of_owner(found: &Metadata) -> Option<String> {
    let (owner, own) = (found.uid(), rustix::process::geteuid().as_raw());
    let by_sudo = || env::var("SUDO_UID").ok().filter(|_| own == 0).and_then(|id| id.parse().ok());
    let is_trusted = owner == own || owner == 0 || by_sudo() == Some(owner);
    (!is_trusted).then(|| format!("belongs to another account (user id {owner})"))
}

/// Git's `safe.directory`. A command asks for several paths in a row, and git takes a few milliseconds to start.
fn safe_directories() -> Vec<u8> {
    static KNOWN: Mutex<Option<(Instant, Vec<u8>)>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, told)) = known.as_ref().filter(|(read_at, _)| read_at.elapsed() < SAFE_FOR) {
        return told.clone();
    }
    let mut git = Command::new("git");
    git.args(["config", "--null", "--get-all", "safe.directory"]).current_dir("/");
    let told = git.stdin(Stdio::null()).stderr(Stdio::null()).output().map(|ran| ran.stdout).unwrap_or_default();
    *known = Some((Instant::now(), told.clone()));
    told
}

/// True if git's `safe.directory` has the path or a folder above it. Only what no repository can set is read.
fn is_safe_for_git(path: &Path) -> bool {
    let told = safe_directories();
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    told.strip_suffix(b"\0").unwrap_or_default().split(|byte| *byte == 0).fold(false, |is_safe, told| match told {
        // An empty one takes back all before it.
        [] => false,
        b"*" => true,
        told => {
            let told = PathBuf::from(OsString::from_vec(told.to_vec()));
            let all_below = told.ends_with("*").then(|| told.parent().map(Path::to_owned)).flatten();
            is_safe || path.starts_with(all_below.unwrap_or(told))
        }
    })
}
