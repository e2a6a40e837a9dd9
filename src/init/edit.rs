//! Changes one file, and says what became of it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::entry::Wrong;
use super::files::{self, Originals};
use super::hosts::Target;
use super::places::{Places, followed};
use crate::consent::confirm;
use crate::failure::Failure;
use crate::session::Session;
use crate::terminal::say;
use crate::text::visible;

/// What became of one file.
#[derive(Debug, Serialize)]
pub struct Row {
    path: String,
    pub outcome: Outcome,
    /// Why it was not written.
    pub reason: Option<String>,
    /// What to write in it.
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::AsRefStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Outcome {
    Wrote,
    Unchanged,
    /// Not written: the lines are printed instead.
    Printed,
    /// As it was before `init`.
    Restored,
    /// Deleted, since `init` had made it.
    Deleted,
    Failed,
}

impl Row {
    fn new(path: String, outcome: Outcome) -> Self {
        Self { path, outcome, reason: None, text: None }
    }

    fn printed(path: String, reason: Option<String>, text: String) -> Self {
        Self { path, outcome: Outcome::Printed, reason, text: Some(text) }
    }

    fn failed(path: String, wrong: &Wrong) -> Self {
        let reason = Some(wrong.of(&path));
        Self { path, outcome: Outcome::Failed, reason, text: None }
    }
}

/// One file, as it is and as it is to become.
pub struct Edit<'a> {
    target: &'a Target,
    /// The file itself, where the target is a link to it.
    path: PathBuf,
    pub shown: String,
    before: Option<String>,
}

impl<'a> Edit<'a> {
    pub fn of(places: &Places, target: &'a Target) -> Result<Self, Row> {
        let (path, shown) = (followed(&target.path), places.shown(&target.path));
        match files::read(&path) {
            Ok(before) => Ok(Self { target, path, shown, before }),
            Err(wrong) => Err(Row::failed(shown, &wrong)),
        }
    }

    /// True of a file that has our content, as `init` would write it.
    pub fn is_done(&self) -> Result<bool, Wrong> {
        Ok(self.before.as_ref() == Some(&self.after()?))
    }

    fn after(&self) -> Result<String, Wrong> {
        self.target.content.with(self.text())
    }

    fn text(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    fn failed(self, wrong: &Wrong) -> Row {
        Row::failed(self.shown, wrong)
    }

    /// Only our content: what else the file holds is not printed.
    pub fn print(self) -> Row {
        let content = &self.target.content;
        match self.is_done() {
            Ok(true) => Row::new(self.shown, Outcome::Unchanged),
            Err(wrong) if !content.is_foreign(self.text()) => self.failed(&wrong),
            Ok(false) | Err(_) => Row::printed(self.shown, None, content.alone()),
        }
    }

    /// Writes our content, with the user's consent where the file is outside the repository.
    pub fn write(self, session: &Session, places: &Places, originals: &mut Originals) -> Result<Row, Failure> {
        let content = &self.target.content;
        let after = match self.after() {
            Ok(after) => after,
            Err(wrong) if content.is_foreign(self.text()) => {
                let reason = format!("{}; add this line to it", wrong.what);
                return Ok(Row::printed(self.shown, Some(reason), content.alone()));
            }
            Err(wrong) => return Ok(self.failed(&wrong)),
        };
        if self.before.as_ref() == Some(&after) {
            return Ok(Row::new(self.shown, Outcome::Unchanged));
        }
        if !agrees(session, places, &self.path, &format!("add to {}:\n{}", self.shown, content.alone())) {
            let reason = "it is outside the repository; add these lines, or use --yes".to_owned();
            return Ok(Row::printed(self.shown, Some(reason), content.alone()));
        }
        originals.keep(&self.path, self.before.as_deref(), &after, content)?;
        Ok(match files::write(&self.path, &after, content) {
            Ok(()) => Row::new(self.shown, Outcome::Wrote),
            Err(wrong) => self.failed(&wrong),
        })
    }

    /// Restores the file where nobody changed it since, else takes out our content. None where there was nothing of ours.
    pub fn undo(self, session: &Session, places: &Places, originals: &mut Originals) -> Result<Option<Row>, Failure> {
        let Some(before) = self.before.as_deref() else {
            originals.forget(&self.path)?;
            return Ok(None);
        };
        let content = &self.target.content;
        let (text, outcome) = match (originals.original(&self.path, before), content.without(before)) {
            (Some(Some(text)), _) => (Some(text.to_owned()), Outcome::Restored),
            (Some(None), _) => (None, Outcome::Deleted),
            (None, Err(wrong)) => return Ok(Some(self.failed(&wrong))),
            (None, Ok(text)) if text == before => (Some(text), Outcome::Unchanged),
            (None, Ok(text)) if content.is_nothing(&text) && originals.may_delete(&self.path) => {
                (None, Outcome::Deleted)
            }
            (None, Ok(text)) => (Some(text), Outcome::Wrote),
        };
        if outcome != Outcome::Unchanged {
            if !agrees(session, places, &self.path, &format!("take out of {}:\n{}", self.shown, content.alone())) {
                let reason = "it is outside the repository; take out these lines, or use --yes".to_owned();
                return Ok(Some(Row::printed(self.shown, Some(reason), content.alone())));
            }
            let undone = match &text {
                Some(text) => files::write(&self.path, text, content),
                None => files::delete(&self.path, &places.root),
            };
            if let Err(wrong) = undone {
                return Ok(Some(self.failed(&wrong)));
            }
        }
        originals.forget(&self.path)?;
        Ok((outcome != Outcome::Unchanged).then(|| Row::new(self.shown, outcome)))
    }
}

/// Asks before a file outside the repository is changed.
fn agrees(session: &Session, places: &Places, path: &Path, change: &str) -> bool {
    if places.is_inside(path) || session.yes {
        return true;
    }
    if !session.terminal.is_interactive {
        return false;
    }
    say(&visible(change));
    confirm(session, "This file is outside the repository. Change it?", "").is_ok()
}

/// One line for each file, and the lines to write in it.
pub fn print_rows(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    for Row { path, outcome, reason, text } in rows {
        let reason = reason.as_ref().filter(|_| *outcome == Outcome::Printed);
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        writeln!(out, "{:<9}  {}", outcome.as_ref(), visible(&format!("{path}{reason}")))?;
        for line in text.iter().flat_map(|text| text.lines()) {
            writeln!(out, "    {}", visible(line))?;
        }
    }
    Ok(())
}
