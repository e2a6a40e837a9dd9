//! Folders for this account alone, and files that are written whole: no reader sees half of one.

use std::fs::{DirBuilder, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

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
