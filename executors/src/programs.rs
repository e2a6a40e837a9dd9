//! Programs that the configuration of a repository names. They start once a person of this machine has agreed to them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use crate::caller::host;
use crate::private::make_folder;

/// The agreement to a program, a file of the person's on this machine. Clones share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramConsent {
    file: PathBuf,
    given: Arc<OnceLock<()>>,
}

impl ProgramConsent {
    /// The agreement to a program with these parts. `folder` holds those of the person, and `project` is the folder whose
    /// configuration names the program.
    #[must_use]
    pub fn new(folder: &Path, project: &Path, parts: impl IntoIterator<Item = String>) -> Self {
        let project = project.to_string_lossy().into_owned();
        let parts: Vec<_> = [host(), project].into_iter().chain(parts).collect();
        Self { file: folder.join(digest(&parts)), given: Arc::default() }
    }

    /// True if a person has agreed.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.given.get().is_some() || (self.file.exists() && self.given.set(()).is_ok())
    }

    /// Agrees for this process alone.
    pub fn give_here(&self) {
        // Another thread may have been first.
        let _ = self.given.set(());
    }

    /// Agrees for this machine.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn give(&self) -> io::Result<()> {
        make_folder(self.file.parent().unwrap_or(Path::new(".")))?;
        fs::write(&self.file, "")?;
        self.give_here();
        Ok(())
    }

    /// The digest of the program, in hexadecimal.
    #[must_use]
    pub fn digest(&self) -> String {
        self.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// A digest over parts, each with its length, in hexadecimal.
pub(crate) fn digest(parts: &[String]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()[..16])
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
