//! A marked section of a text that people wrote: instructions for agents, and git hooks.

use super::entry::Wrong;

/// The lines between two markers.
#[derive(Debug, Clone)]
pub struct Section {
    /// The whole first line.
    pub begin: &'static str,
    /// The whole last line.
    pub end: &'static str,
    /// The lines between, each ended by a line end.
    pub body: String,
    /// True in scripts: the section follows the first line, since a script may end early by `exit` or `exec`.
    pub is_first: bool,
}

impl Section {
    /// The text with the section in place of an older one, else at its place.
    pub fn with(&self, text: &str) -> Result<String, Wrong> {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let section = format!("{}\n{}{}\n", self.begin, self.body, self.end).replace('\n', line_end);
        if let Some((before, after)) = self.around(text)? {
            return Ok(format!("{before}{section}{after}"));
        }
        if self.is_first {
            let interpreter = text.split_inclusive('\n').next().filter(|line| line.starts_with("#!"));
            let (first, rest) = text.split_at(interpreter.map_or(0, str::len));
            let first = if text.is_empty() { "#!/bin/sh\n" } else { first };
            let ended = if first.is_empty() || first.ends_with('\n') { "" } else { "\n" };
            return Ok(format!("{first}{ended}{section}{rest}"));
        }
        let ended = if text.is_empty() || text.ends_with('\n') { "" } else { line_end };
        let blank = if text.trim().is_empty() { "" } else { line_end };
        Ok(format!("{text}{ended}{blank}{section}"))
    }

    /// The text without the section and the blank line that set it apart.
    pub fn without(&self, text: &str) -> Result<String, Wrong> {
        let Some((before, after)) = self.around(text)? else { return Ok(text.to_owned()) };
        let is_apart = !self.is_first && (before.ends_with("\n\n") || before.ends_with("\n\r\n"));
        let apart = before.strip_suffix("\r\n").or(before.strip_suffix('\n')).filter(|_| is_apart);
        Ok(format!("{}{after}", apart.unwrap_or(before)))
    }

    /// What comes before and after the section; none where there is no section.
    fn around<'a>(&self, text: &'a str) -> Result<Option<(&'a str, &'a str)>, Wrong> {
        let (mut start, mut end, mut at) = (None, None, 0);
        for (i, line) in text.split_inclusive('\n').enumerate() {
            let is_marker = |marker: &str| line.trim_end() == marker;
            let is_expected = (is_marker(self.begin), is_marker(self.end));
            match is_expected {
                (true, _) if start.is_none() => start = Some(at),
                (_, true) if start.is_some() && end.is_none() => end = Some(at + line.len()),
                (false, false) => {}
                _ => {
                    return Err(Wrong {
                        at: Some((i + 1, 1)),
                        what: "it has a marker of crewlog's out of order".into(),
                    });
                }
            }
            at += line.len();
        }
        match (start, end) {
            (Some(start), Some(end)) => Ok(text.get(..start).zip(text.get(end..))),
            (None, _) => Ok(None),
            (Some(_), None) => Err(Wrong::at_all(format!("it has no line `{}`", self.end))),
        }
    }
}
