//! The person at the terminal: whether there is one, what it looks like, and asking.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::cli::{Color, Global};

/// How to talk to the person.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    pub is_interactive: bool,
    /// Progress may be redrawn.
    pub is_live: bool,
    /// Progress is wanted at all.
    pub is_quiet: bool,
    /// Colours may be used on standard error.
    pub has_colour: bool,
}

impl Terminal {
    pub fn new(global: &Global) -> Self {
        let stderr_is_terminal = io::stderr().is_terminal();
        let has_colour = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => stderr_is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        Self {
            is_interactive: io::stdin().is_terminal() && stderr_is_terminal && !global.no_input,
            is_live: stderr_is_terminal && !global.quiet && std::env::var_os("CI").is_none(),
            is_quiet: global.quiet,
            has_colour,
        }
    }

    /// The text in a colour, by its ANSI number, where colours are used.
    pub fn colour(&self, number: u8, text: &str) -> String {
        if self.has_colour { format!("\u{1b}[{number}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Puts a question on standard error.
pub fn prompt(text: &str) {
    let mut stderr = io::stderr();
    // Without a terminal nobody can answer.
    let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
}

/// A line that was typed; `None` at the end of input.
pub fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let n_read = io::stdin().lock().read_line(&mut line)?;
    Ok((n_read > 0).then(|| line.trim().to_owned()))
}

/// Writes a line on standard error. A closed terminal must not end the work, as `eprintln!` would.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The result of writing to standard output, ignoring that the reader closed it: the work continues.
pub fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
