//! Reads and writes the files that `init` edits, and remembers what they were before.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::entry::Wrong;
use super::trust::sha256;
use crate::failure::Failure;

const FILE: &str = "init.json";

/// The text of a file; none where there is no file.
pub fn read(path: &Path) -> Result<Option<String>, Wrong> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Wrong::at_all(format!("it cannot be read: {error}"))),
    };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let (line, rest) = (before.matches('\n').count() + 1, before.rsplit('\n').next().unwrap_or_default());
        Wrong { at: Some((line, rest.chars().count() + 1)), what: "it is not UTF-8".to_owned() }
    })
}

/// Replaces a file at once and keeps its mode; makes its folder first.
pub fn write(path: &Path, text: &str, content: &Content) -> Result<(), Wrong> {
    replace(path, text, content.is_script(), 0o666).map_err(cannot_write)
}

/// Deletes a file, and the folders in `root` that are empty then.
pub fn delete(path: &Path, root: &Path) -> Result<(), Wrong> {
    fs::remove_file(path).map_err(cannot_write)?;
    let is_inside = |folder: &&Path| folder.starts_with(root) && *folder != root && !folder.ends_with(".git/hooks");
    // A folder that has something else in it is not removed.
    path.ancestors().skip(1).take_while(is_inside).take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "it is an argument of map_err")]
fn cannot_write(error: io::Error) -> Wrong {
    Wrong::at_all(format!("it cannot be written: {error}"))
}

fn replace(path: &Path, text: &str, is_script: bool, mode_of_new: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let existing = fs::metadata(path).ok();
    let mut beside = tempfile::Builder::new().permissions(Permissions::from_mode(mode_of_new)).tempfile_in(folder)?;
    beside.write_all(text.as_bytes())?;
    let made = beside.as_file().metadata()?;
    let mode = existing.as_ref().unwrap_or(&made).permissions().mode();
    // Whoever may read a script may run it.
    let mode = if is_script { mode | ((mode & 0o444) >> 2) } else { mode };
    beside.as_file().set_permissions(Permissions::from_mode(mode))?;
    beside.as_file().sync_all()?;
    beside.persist(path)?;
    Ok(())
}

/// The originals of the files that `init` changed, kept beside the log.
#[derive(Debug)]
pub struct Originals {
    file: PathBuf,
    files: BTreeMap<PathBuf, Original>,
}

/// A file before `init`.
#[derive(Debug, Serialize, Deserialize)]
struct Original {
    /// Its text; null where there was no file.
    text: Option<String>,
    /// The SHA-256 of the text that `init` left.
    left: String,
}

impl Originals {
    /// Reads them from the folder of the log.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join(FILE);
        let cannot = |what: &str| Failure::user(format!("{}: {what}", file.display()));
        let text = read(&file).map_err(|wrong| cannot(&wrong.what))?;
        let files = text.map_or(Ok(BTreeMap::new()), |text| serde_json::from_str(&text)).map_err(|error| {
            cannot(&format!("it does not hold what `crewlog init` remembers: {error}"))
                .hint("delete it; `crewlog init --remove` then takes out entries, and restores no file as a whole")
        })?;
        Ok(Self { file, files })
    }

    /// Remembers a change that is about to be made. The text before the first change stays, unless a person changed the
    /// file since.
    pub fn keep(&mut self, path: &Path, before: Option<&str>, after: &str, content: &Content) -> Result<(), Failure> {
        let known = self.files.remove(path).filter(|known| before.is_some_and(|text| known.left == sha256(text)));
        let text = match (known, before) {
            (Some(known), _) => known.text,
            // What an earlier version left in the file must not come back.
            (None, before) => before.map(|text| content.without(text).unwrap_or_else(|_| text.to_owned())),
        };
        self.files.insert(path.to_owned(), Original { text, left: sha256(after) });
        self.write()
    }

    /// The text of a file before `init`, if it is as `init` left it; none inside where there was no file.
    pub fn original(&self, path: &Path, text: &str) -> Option<Option<&str>> {
        let known = self.files.get(path).filter(|known| known.left == sha256(text))?;
        Some(known.text.as_deref())
    }

    /// True where `init` made the file, or knows nothing of it.
    pub fn may_delete(&self, path: &Path) -> bool {
        self.files.get(path).is_none_or(|known| known.text.is_none())
    }

    /// Forgets a file that `init` no longer has anything in.
    pub fn forget(&mut self, path: &Path) -> Result<(), Failure> {
        if self.files.remove(path).is_none() { Ok(()) } else { self.write() }
    }

    fn write(&self) -> Result<(), Failure> {
        let written = match self.files.is_empty() {
            true => fs::remove_file(&self.file),
            // Configuration of the user may be secret.
            false => serde_json::to_string_pretty(&self.files)
                .map_err(io::Error::from)
                .and_then(|text| replace(&self.file, &text, false, 0o600)),
        };
        written.map_err(|error| Failure::user(format!("{} cannot be written: {error}", self.file.display())))
    }
}
