//! The content that crewlog keeps in a file, by the kind of file: adds it to a text, and removes it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::wanted::Wanted;
use super::{json, toml};

/// The content that crewlog keeps in a file.
#[derive(Debug)]
pub enum Content {
    /// Members in JSON, with or without comments.
    Json(Wanted),
    Toml(Wanted),
    /// A section at the end of a text for agents: lines, each with a line end.
    Text(&'static str),
    /// A section at the start of a shell script, since a script may end early by `exit` or `exec`.
    Script(Script),
    /// A whole file of crewlog. Its first line identifies it.
    Whole(&'static str),
}

/// Our section in a hook of git.
#[derive(Debug)]
pub struct Script {
    pub body: String,
    /// The command that a script in another language has to run.
    pub command: String,
    /// True if git runs the file itself, and skips it unless it is executable.
    pub is_run_by_git: bool,
}

/// The names of shells that can run a section.
const SHELLS: [&str; 6] = ["sh", "ash", "bash", "dash", "ksh", "zsh"];

/// The first and last line of a section.
const TEXT_MARKS: [&str; 2] = ["<!-- crewlog: begin; `crewlog init` writes this section -->", "<!-- crewlog: end -->"];

/// Some editors begin a text with it.
const BYTE_ORDER_MARK: char = '\u{feff}';

const SCRIPT_MARKS: [&str; 2] = ["# crewlog: begin; `crewlog init` writes this section", "# crewlog: end"];

impl Content {
    /// The text with the content; an empty text stands for a missing file.
    pub fn with(&self, text: &str) -> Result<String, String> {
        if let Some(text) = text.strip_prefix(BYTE_ORDER_MARK) {
            return Ok(format!("{BYTE_ORDER_MARK}{}", self.with(text)?));
        }
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let missing = if text.is_empty() || text.ends_with('\n') { "" } else { line_end };
        let (given, text) = (text, format!("{text}{missing}"));
        let section = |marks: [&str; 2], body: &str, at: usize| {
            let (before, after) = around(&text, marks, at)?;
            let section = format!("{}\n{body}{}\n", marks[0], marks[1]).replace('\n', line_end);
            Ok(format!("{before}{section}{after}"))
        };
        let after = match self {
            Self::Json(wanted) => json::with(&text, wanted),
            Self::Toml(wanted) => toml::with(&text, wanted),
            Self::Text(body) => section(TEXT_MARKS, body, text.len()),
            Self::Script(_) if text.is_empty() => self.with("#!/bin/sh\n"),
            Self::Script(_) if runs(&text, "lefthook") => {
                Err("lefthook writes it anew: let its pre-commit run `crewlog hook pre-commit </dev/null`, and its pre-push \
                     `crewlog hook pre-push {0}`"
                    .to_owned())
            }
            Self::Script(Script { body, command, .. }) => {
                let interpreter = text.split_inclusive('\n').next().filter(|line| line.starts_with("#!"));
                // Without such a line git runs it by `sh` too.
                match interpreter.is_none_or(is_shell) {
                    true => section(SCRIPT_MARKS, body, interpreter.map_or(0, str::len)),
                    false if runs(&text, command) => Ok(text.clone()),
                    false => Err(format!("it is not a shell script; run this in it: {command}")),
                }
            }
            Self::Whole(whole) if text.is_empty() || is_made_here(&text, whole) => Ok((*whole).to_owned()),
            Self::Whole(_) => Err("crewlog did not make it, and does not overwrite it".to_owned()),
        }?;
        // A file that only lacks its last line end stays as it is.
        Ok(if after == text { given.to_owned() } else { after })
    }

    /// The text without the content; `None` if nothing else is left.
    pub fn without(&self, text: &str) -> Result<Option<String>, String> {
        if let Some(text) = text.strip_prefix(BYTE_ORDER_MARK) {
            return Ok(self.without(text)?.map(|left| format!("{BYTE_ORDER_MARK}{left}")));
        }
        let section = |marks| around(text, marks, 0).map(|(before, after)| format!("{before}{after}"));
        let left = match self {
            Self::Json(wanted) => json::without(text, wanted)?,
            Self::Toml(wanted) => toml::without(text, wanted)?,
            Self::Text(_) => section(TEXT_MARKS)?,
            Self::Script(_) => section(SCRIPT_MARKS)?,
            Self::Whole(whole) if is_made_here(text, whole) => String::new(),
            Self::Whole(_) => text.to_owned(),
        };
        let is_nothing = matches!(left.split_whitespace().collect::<String>().as_str(), "" | "{}" | "#!/bin/sh");
        Ok(Some(left).filter(|left| left == text || !is_nothing))
    }

    /// Fails for a hook that git would skip.
    pub fn check_mode(&self, path: &Path) -> Result<(), String> {
        let mode = path.metadata().map_or(0o111, |found| found.permissions().mode());
        if matches!(self, Self::Script(Script { is_run_by_git: true, .. })) && mode & 0o111 == 0 {
            return Err("git skips it, since it is not executable: chmod +x it".to_owned());
        }
        Ok(())
    }

    /// The content alone, as a person would add it.
    pub fn alone(&self) -> String {
        self.with("").expect("an empty text can hold anything")
    }
}

/// The text before and after a section; if there is no section, before and after its place.
fn around<'a>(text: &'a str, [begin, end]: [&str; 2], place: usize) -> Result<(&'a str, &'a str), String> {
    let Some((before, rest)) = text.split_once(begin) else { return Ok(text.split_at(place)) };
    let (_, after) = rest.split_once(end).ok_or_else(|| format!("it has no line `{end}`"))?;
    Ok((before, after.split_once('\n').map_or("", |(_, after)| after)))
}

/// True for the first line of a script that a shell like `sh` runs.
fn is_shell(interpreter: &str) -> bool {
    let words = interpreter.trim_start_matches("#!").split_whitespace();
    let mut names = words.map(|word| word.rsplit('/').next().unwrap_or_default()).skip_while(|name| *name == "env");
    names.find(|name| !name.starts_with('-')).is_some_and(|name| SHELLS.contains(&name))
}

/// True if a script has a command outside of its comment lines.
fn runs(script: &str, command: &str) -> bool {
    let is_comment = |line: &str| ["#", "//"].iter().any(|mark| line.trim_start().starts_with(mark));
    script.lines().any(|line| line.contains(command) && !is_comment(line))
}

fn is_made_here(text: &str, whole: &str) -> bool {
    text.lines().next() == whole.lines().next()
}
