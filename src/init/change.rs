//! Adds our content to one file or removes it, and keeps the original.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::content::Content;
use super::places::Places;
use super::target::{Target, read};
use crewlog_executors::crew::worktree::real;

use crate::consent::confirm;
use crate::context::Session;
use crate::ui::failure::Failure;
use crate::ui::terminal::say;
use crate::ui::text::{sha256, visible};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Add,
    /// Restores the file if nobody has changed it since, else removes our content.
    TakeOut,
}

/// The result for one file.
#[derive(Debug, Serialize)]
pub struct Row {
    pub path: String,
    pub outcome: Outcome,
    /// The error, the lines to add or remove by hand, or a note on other users of the file.
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::AsRefStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Outcome {
    Wrote,
    Unchanged,
    /// Not written, since it is outside the repository: the lines are printed instead.
    Printed,
    /// Deleted, since it contained only our content.
    Deleted,
    Failed,
}

impl Row {
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{:<9}  {}", self.outcome.as_ref(), visible(&self.path))?;
        self.text.iter().flat_map(|text| text.lines()).try_for_each(|line| writeln!(out, "    {}", visible(line)))
    }
}

/// The note when a hook of git is removed.
const OF_ALL: &str = "removed for all worktrees of the repository; `crewlog init` in one of them adds it again";

/// The files that `init` changes, and their originals, which it stores next to the log.
pub struct Files<'a> {
    session: &'a Session,
    places: &'a Places,
    originals_file: PathBuf,
    originals: BTreeMap<PathBuf, Original>,
}

/// A file without crewlog's content.
#[derive(Debug, Serialize, Deserialize)]
struct Original {
    /// Its text; null if the file did not exist.
    text: Option<String>,
    /// The SHA-256 of the text that `init` wrote.
    left: String,
}

impl<'a> Files<'a> {
    pub fn open(session: &'a Session, places: &'a Places) -> Result<Self, Failure> {
        let file = session.place.beside("init.json");
        let text = read(&file).map(|text| text.unwrap_or("{}".to_owned()));
        let originals = text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        let originals = originals.map_err(|error| Failure::user(format!("{}: {error}", file.display())))?;
        Ok(Self { session, places, originals_file: file, originals })
    }

    /// Changes one file, with the user's consent where it is outside the repository.
    pub fn change(&mut self, target: &Target, change: Change) -> Row {
        let is_shared = change == Change::TakeOut && self.places.is_shared(&target.path);
        let (outcome, text) = match self.try_change(target, change) {
            Ok(Outcome::Printed) => (Outcome::Printed, Some(target.content.alone())),
            Ok(outcome @ (Outcome::Wrote | Outcome::Deleted)) if is_shared => (outcome, Some(OF_ALL.to_owned())),
            Ok(outcome) => (outcome, None),
            Err(reason) => (Outcome::Failed, Some(reason)),
        };
        Row { path: self.places.shown(&target.path), outcome, text }
    }

    fn try_change(&mut self, Target { path, content }: &Target, change: Change) -> Result<Outcome, String> {
        let (shown, path) = (self.places.shown(path), real(path));
        let before = read(&path)?;
        if change == Change::Add {
            content.check_mode(&path)?;
        }
        let original = before.as_ref().map_or(Ok(None), |before| self.original(&path, before, content))?;
        let (after, verb) = match change {
            Change::Add => (Some(content.with(before.as_deref().unwrap_or_default())?), "add to"),
            Change::TakeOut => (original.clone(), "remove from"),
        };
        if after == before {
            return Ok(Outcome::Unchanged);
        }
        if !self.agrees(&path, &format!("{verb} {shown}:\n{}", content.alone())) {
            return Ok(Outcome::Printed);
        }
        if let (Change::Add, Some(after)) = (change, &after) {
            self.originals.insert(path.clone(), Original { text: original, left: sha256(after) });
            self.keep_originals()?;
        }
        let mode_of_new = if matches!(content, Content::Script(_)) { 0o777 } else { 0o666 };
        let written = match &after {
            Some(text) => replace(&path, text, mode_of_new),
            None => delete(&path, &self.places.root),
        };
        written.map_err(|error| format!("it cannot be written: {error}"))?;
        if change == Change::TakeOut && self.originals.remove(&path).is_some() {
            self.keep_originals()?;
        }
        Ok(if after.is_some() { Outcome::Wrote } else { Outcome::Deleted })
    }

    /// The text before `init` if nobody changed the file since, else the text without our content; `None` for no file.
    fn original(&self, path: &Path, text: &str, content: &Content) -> Result<Option<String>, String> {
        match self.originals.get(path) {
            Some(known) if known.left == sha256(text) => Ok(known.text.clone()),
            Some(_) | None => content.without(text),
        }
    }

    fn keep_originals(&self) -> Result<(), String> {
        let (file, text) = (&self.originals_file, serde_json::to_string_pretty(&self.originals));
        // The user's configuration may contain secrets.
        let written = text.map_err(io::Error::from).and_then(|text| replace(file, &text, 0o600));
        written.map_err(|error| format!("{} cannot be written: {error}", file.display()))
    }

    /// Asks before a file outside the repository is changed.
    fn agrees(&self, path: &Path, change: &str) -> bool {
        let Self { session, places, .. } = self;
        let may = session.yes || places.is_inside(path);
        if may || !session.terminal.is_interactive {
            return may;
        }
        say(&visible(change));
        confirm(session, "This file is outside the repository. Change it?", "").is_ok()
    }
}

/// Replaces a file atomically and keeps its mode; creates its folder if necessary.
fn replace(path: &Path, text: &str, mode_of_new: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut beside = tempfile::Builder::new().permissions(Permissions::from_mode(mode_of_new)).tempfile_in(folder)?;
    beside.write_all(text.as_bytes())?;
    let existing = fs::metadata(path).ok();
    existing.as_ref().map_or(Ok(()), |existing| beside.as_file().set_permissions(existing.permissions()))?;
    beside.as_file().sync_all()?;
    // A file that somebody else has just created is not overwritten.
    let replaced = if existing.is_some() { beside.persist(path) } else { beside.persist_noclobber(path) };
    replaced?;
    Ok(())
}

/// Deletes a file, and the folders in `root` that are empty then.
fn delete(path: &Path, root: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    let is_inside = |folder: &&Path| folder.starts_with(root) && *folder != root;
    // A folder that contains anything else is not removed.
    path.ancestors().skip(1).take_while(is_inside).take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
    Ok(())
}
