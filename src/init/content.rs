//! What crewlog keeps in one file, by the kind of the file.

use super::entry::{Entry, Wrong};
use super::section::Section;
use super::{json, toml};

/// What crewlog keeps in a file.
#[derive(Debug)]
pub enum Content {
    /// Entries in JSON, with or without comments.
    Json(Vec<Entry>),
    /// Entries in TOML.
    Toml(Vec<Entry>),
    /// A marked section of a text for agents, or of a shell script.
    Section(Section),
    /// A whole file of crewlog's own. Its first line shows whose it is.
    Whole(&'static str),
}

impl Content {
    /// The text with the content; an empty text stands for a file that is missing.
    pub fn with(&self, text: &str) -> Result<String, Wrong> {
        let text = match self {
            Self::Json(entries) => json::with(text, entries)?,
            Self::Toml(entries) => toml::with(text, entries)?,
            Self::Section(_) if self.is_foreign(text) => return Err(Wrong::at_all("it is not a shell script")),
            Self::Section(section) => section.with(text)?,
            Self::Whole(whole) if text.is_empty() || is_made_here(text, whole) => (*whole).to_owned(),
            Self::Whole(_) => return Err(Wrong::at_all("crewlog did not make it, and does not overwrite it")),
        };
        let is_ended = text.is_empty() || text.ends_with('\n');
        Ok(if is_ended { text } else { format!("{text}\n") })
    }

    /// The text without the content.
    pub fn without(&self, text: &str) -> Result<String, Wrong> {
        match self {
            Self::Json(entries) => json::without(text, entries),
            Self::Toml(entries) => toml::without(text, entries),
            Self::Section(section) => section.without(text),
            Self::Whole(whole) if is_made_here(text, whole) => Ok(String::new()),
            Self::Whole(_) => Ok(text.to_owned()),
        }
    }

    /// True of a text that is as good as no file.
    pub fn is_nothing(&self, text: &str) -> bool {
        match self {
            Self::Json(_) => json::is_nothing(text),
            Self::Section(_) if self.is_script() => matches!(text.trim(), "" | "#!/bin/sh"),
            Self::Toml(_) | Self::Section(_) | Self::Whole(_) => text.trim().is_empty(),
        }
    }

    /// The content alone, as a person would add it.
    pub fn alone(&self) -> String {
        match self {
            Self::Section(section) if section.is_first => section.body.clone(),
            Self::Json(_) | Self::Toml(_) | Self::Section(_) | Self::Whole(_) => {
                self.with("").expect("an empty text can hold anything")
            }
        }
    }

    /// True where the content belongs in a shell script, and the text is a script of another kind.
    pub fn is_foreign(&self, text: &str) -> bool {
        self.is_script() && !is_shell_script(text)
    }

    /// True of a section in a script.
    pub fn is_script(&self) -> bool {
        matches!(self, Self::Section(section) if section.is_first)
    }
}

fn is_made_here(text: &str, whole: &str) -> bool {
    text.lines().next() == whole.lines().next()
}

/// True of a script that a shell runs: git runs those without a first line of this kind by `sh` too.
fn is_shell_script(text: &str) -> bool {
    let Some(interpreter) = text.lines().next().and_then(|line| line.strip_prefix("#!")) else { return true };
    let mut words = interpreter.split_whitespace().filter_map(|word| word.rsplit('/').next());
    let program = words.find(|word| *word != "env" && !word.starts_with('-'));
    matches!(program, Some("sh" | "bash" | "dash" | "zsh" | "ksh"))
}
