//! Folders for this account alone, and files that are written whole: no reader sees half of one.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// For this account alone.
pub const PRIVATE: u32 = 0o600;

/// Makes a folder for this account alone, and those above it. One that is there stays as it is.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file with these permissions. False if it is there and stays.
///
/// # Errors
/// It cannot be written.
pub fn write_whole(file: &Path, text: &str, mode: u32, replaces: bool) -> io::Result<bool> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut made = tempfile::Builder::new().permissions(Permissions::from_mode(mode)).tempfile_in(folder)?;
    made.write_all(text.as_bytes())?;
    let written = if replaces { made.persist(file) } else { made.persist_noclobber(file) };
    match written.map_err(|error| error.error) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Replaces a file atomically unless it has changed; its mode and a symbolic link to it stay. The lock on the old file
/// orders its writers; a file that a killed one left over is written again.
///
/// # Errors
/// It cannot be read or written.
pub fn replace_known(path: &Path, known: &str, text: &str) -> io::Result<bool> {
    let path = fs::canonicalize(path)?;
    let (old, folder) = (File::open(&path)?, path.parent().unwrap_or(&path));
    old.lock()?;
    let owner = old.metadata()?;
    if owner.ino() != fs::metadata(&path)?.ino() {
        return Ok(false);
    }
    let beside = folder.join(format!(".{}.crewlog", path.file_name().unwrap_or_default().to_string_lossy()));
    let _ = fs::remove_file(&beside);
    let mut new = File::create_new(&beside)?;
    // Only an administrator may give it to somebody else.
    let _ = fchown(&new, Some(owner.uid()), Some(owner.gid()));
    let written = new.set_permissions(owner.permissions()).and_then(|()| new.write_all(text.as_bytes()));
    let written = written.and_then(|()| new.sync_all()).and_then(|()| fs::read(&path));
    let is_known = written.as_ref().is_ok_and(|now| now == known.as_bytes());
    if is_known { fs::rename(&beside, &path) } else { fs::remove_file(&beside) }?;
    File::open(folder)?.sync_all()?;
    written.map(|_| is_known)
}

/// The user's state folder, for the files of logs on servers and of people; `None` without a home.
#[must_use]
pub fn state_folder() -> Option<PathBuf> {
    user_folder("XDG_STATE_HOME", ".local/state")
}

/// The folder of crewlog in one of the user's folders, which a variable names, else its place in the home.
#[must_use]
pub fn user_folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(in_home));
    named.or_else(home).map(|folder| folder.join("crewlog"))
}
