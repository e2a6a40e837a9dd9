//! The folder of session keys: one file for each, wrapped under the operator's key. Keys are never in the log, so that
//! they can be destroyed for good. Writes are atomic.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::cipher;
use super::error::KeyError;
use crate::private::make_folder;

/// The version of a key file's form.
const FORM: u32 = 1;
/// The suffix of a key file's name.
const ENDING: &str = ".json";
/// The most bytes of a file with a key.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The prefix of a temporary file's name.
const UNPLACED: &str = "new-";
/// The first bytes of each key file. An operator's key file never begins with them.
const BEGINNING: &[u8] = b"{\"form\":";
/// Characters in a key's name: letters and digits.
const NAME_BYTES: usize = 32;

/// A session's key in its stored form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyFile {
    form: u32,
    /// The first plan of the session.
    pub(super) session: String,
    /// The log of that plan.
    pub(super) log: Uuid,
    /// Unset if the key was destroyed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) wrapped: Option<Wrapped>,
}

/// A wrapped key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wrapped {
    /// The fingerprint of the operator's key.
    pub(super) operator: String,
    pub(super) key: String,
}

impl KeyFile {
    pub(super) fn new(session: String, log: Uuid, wrapped: Option<Wrapped>) -> Self {
        Self { form: FORM, session, log, wrapped }
    }

    /// True if the file holds the key of this name: a destroyed key must not pass for another. For a damaged key that
    /// was destroyed, the log is unknown.
    fn is_called(&self, name: &str) -> bool {
        let is_destroyed_wreck = self.log.is_nil() && self.wrapped.is_none();
        is_destroyed_wreck || cipher::name_of(&[self.log.as_bytes(), self.session.as_bytes()]) == name
    }
}

/// A stamp that changes when the file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    inode: u64,
    changed: (i64, i64),
    n_bytes: u64,
}

/// The folder.
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a key; `None` for an invalid name, which an import may bring.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let is_name = name.len() == NAME_BYTES && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_name.then(|| self.path_of(name))
    }

    /// The mark of a key's file, if it exists.
    pub(super) fn mark(&self, name: &str) -> Result<Option<Mark>, KeyError> {
        let Some(path) = self.path(name) else { return Ok(None) };
        match fs::metadata(&path) {
            Ok(found) => {
                let changed = (found.mtime(), found.mtime_nsec());
                Ok(Some(Mark { inode: found.ino(), changed, n_bytes: found.len() }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault("looked at", &path)(error)),
        }
    }

    /// A key's file, if it exists.
    pub(super) fn read(&self, name: &str) -> Result<Option<KeyFile>, KeyError> {
        let Some(path) = self.path(name) else { return Ok(None) };
        let bytes = match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(fault("read", &path))?,
        };
        match serde_json::from_slice::<KeyFile>(&bytes) {
            Ok(file) if file.form == FORM && file.is_called(name) => Ok(Some(file)),
            Ok(_) | Err(_) => Err(KeyError::Damaged { path }),
        }
    }

    /// The path of a key's file.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{ENDING}"))
    }

    /// Stores a new key, unless one with this name exists.
    pub(super) fn add(&self, name: &str, file: &KeyFile) -> Result<(), KeyError> {
        let Some(path) = self.path(name) else { return Ok(()) };
        let made = make_folder(&self.folder);
        made.map_err(fault("made", &self.folder))?;
        // Temporary files are removed under the lock.
        let _lock = self.lock()?;
        let new = self.written(file)?;
        let linked = match fs::hard_link(&new, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked.map_err(fault("written", &path)),
        };
        fs::remove_file(&new).map_err(fault("removed", &new))?;
        linked?;
        self.sync()
    }

    /// Replaces a key's file, under the lock.
    pub(super) fn replace(&self, _lock: &Lock, name: &str, file: &KeyFile) -> Result<(), KeyError> {
        let Some(path) = self.path(name) else { return Ok(()) };
        let new = self.written(file)?;
        fs::rename(&new, &path).map_err(fault("written", &path))?;
        self.sync()
    }

    /// Replaces a key by a mark that it was destroyed, and overwrites the old bytes, if the disk does so.
    pub(super) fn destroy(&self, lock: &Lock, name: &str, file: &KeyFile) -> Result<(), KeyError> {
        let Some(path) = self.path(name) else { return Ok(()) };
        let mut old = File::options().write(true).open(&path).map_err(fault("opened", &path))?;
        self.replace(lock, name, &KeyFile { wrapped: None, ..file.clone() })?;
        overwrite(&mut old).map_err(fault("overwritten", &path))
    }

    /// Removes temporary files that a crash left behind: they hold keys that were replaced or destroyed.
    pub(super) fn sweep(&self, _lock: &Lock) -> Result<(), KeyError> {
        for entry in fs::read_dir(&self.folder).map_err(fault("listed", &self.folder))? {
            let entry = entry.map_err(fault("listed", &self.folder))?;
            let path = entry.path();
            if entry.file_name().to_str().is_some_and(is_unplaced) && is_begun(&path).map_err(fault("read", &path))? {
                let mut file = File::options().write(true).open(&path).map_err(fault("opened", &path))?;
                overwrite(&mut file).map_err(fault("overwritten", &path))?;
                fs::remove_file(&path).map_err(fault("removed", &path))?;
            }
        }
        self.sync()
    }

    /// A lock that keeps other processes from replacing a key.
    pub(super) fn lock(&self) -> Result<Lock, KeyError> {
        let path = self.folder.join("lock");
        let opened = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = opened.map_err(fault("opened", &path))?;
        file.lock().map_err(fault("locked", &path))?;
        Ok(Lock { _file: file })
    }

    /// The names of all keys, sorted.
    pub(super) fn names(&self) -> Result<Vec<String>, KeyError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(fault("listed", &self.folder))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(fault("listed", &self.folder))?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(ENDING));
            names.extend(name.filter(|name| self.path(name).is_some()).map(str::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Writes a temporary file to the folder, synced to disk.
    fn written(&self, file: &KeyFile) -> Result<PathBuf, KeyError> {
        let path = self.folder.join(format!("{UNPLACED}{}", crewlog_mq::new_event_id()));
        let text = serde_json::to_string(file).expect("names are JSON") + "\n";
        make(&path, &text).map_err(fault("written", &path))?;
        Ok(path)
    }

    fn sync(&self) -> Result<(), KeyError> {
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(fault("written", &self.folder))
    }
}

/// True for the name of a temporary file.
fn is_unplaced(name: &str) -> bool {
    let id = name.strip_prefix(UNPLACED).and_then(|id| Some((id, Uuid::try_parse(id).ok()?)));
    id.is_some_and(|(id, parsed)| parsed.to_string() == id)
}

/// True for a key file, or a part of one that was written before a crash. People may keep other files here too.
fn is_begun(path: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(false);
    }
    let bytes = read(path)?;
    Ok(bytes.starts_with(BEGINNING) || BEGINNING.starts_with(&bytes))
}

/// Held while keys are replaced.
pub(super) struct Lock {
    _file: File,
}

/// The content of a key file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True if the file system lets others than its owner read or replace a file.
pub(super) fn is_open_to_others(path: &Path) -> bool {
    const OTHERS: u32 = 0o077;
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & OTHERS != 0)
}

/// Overwrites a file's content with blanks, if the disk does so.
fn overwrite(file: &mut File) -> io::Result<()> {
    let n_bytes = file.metadata()?.len();
    io::copy(&mut io::repeat(b' ').take(n_bytes), file)?;
    file.sync_all()
}

/// Creates a file that only the user can read, synced to disk.
pub(super) fn make(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

pub(super) fn fault(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeyError {
    let path = path.to_owned();
    move |source| KeyError::File { doing, path, source }
}
