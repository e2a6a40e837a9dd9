//! A file, and the content of crewlog in it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::content::Content;

/// A file, and crewlog's content in it.
#[derive(Debug)]
pub struct Target {
    pub path: PathBuf,
    pub content: Content,
}

impl Target {
    /// The file's current text, if it exists, and the text that `init` would write.
    pub fn before_and_after(&self) -> Result<(Option<String>, String), String> {
        let before = read(&self.path)?;
        self.content.check_mode(&self.path)?;
        let after = self.content.with(before.as_deref().unwrap_or_default())?;
        Ok((before, after))
    }

    /// True if the file has crewlog's content.
    pub fn has_ours(&self) -> bool {
        let Ok(Some(text)) = read(&self.path) else { return false };
        self.content.without(&text).is_ok_and(|left| left.as_ref() != Some(&text))
    }
}

/// The text of a file; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<String>, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("it cannot be read: {error}")),
    }
}
