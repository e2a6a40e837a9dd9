//! The person at the terminal: whether there is one, what it looks like, and asking.

use std::io;
use std::io::{BufRead, IsTerminal, Stdout, Write};
use std::sync::LazyLock;

use clap::{Args, ColorChoice as Color, ValueEnum};
use indicatif::{MultiProgress, ProgressDrawTarget};

use crate::ui::text::visible;

/// The live block below the lines on standard error; hidden at first.
pub static BLOCK: LazyLock<MultiProgress> =
    LazyLock::new(|| MultiProgress::with_draw_target(ProgressDrawTarget::hidden()));

/// How to print and to ask.
#[derive(Debug, Clone, Args)]
pub struct TerminalArgs {
    /// The format of standard output
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORMAT", hide_default_value = true)]
    pub output: Output,
    /// When to colour the output; auto does on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, hide_short_help = true)]
    pub color: Color,
    /// Print no progress
    #[arg(short, long, global = true, hide_short_help = true)]
    pub quiet: bool,
    /// Ask nothing, even on a terminal
    #[arg(long, global = true, hide_short_help = true)]
    pub no_input: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// One JSON document a line
    Jsonl,
}

/// How to talk to the person.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    pub is_interactive: bool,
    /// The live block may be drawn.
    pub is_live: bool,
    /// Progress is wanted at all.
    pub is_quiet: bool,
    /// A person sees standard output.
    pub shows_results: bool,
    /// Colours may be used on standard error.
    pub has_colour: bool,
}

impl Terminal {
    pub fn new(args: &TerminalArgs) -> Self {
        let stderr_is_terminal = io::stderr().is_terminal();
        let has_cursor = stderr_is_terminal && !console::is_dumb();
        // JSON on the same terminal would run into the block.
        let shows_results = io::stdout().is_terminal();
        let is_apart = args.output == Output::Text || !shows_results;
        let has_colour = match args.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => has_cursor && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        Self {
            is_interactive: io::stdin().is_terminal() && stderr_is_terminal && !args.no_input,
            is_live: has_cursor && is_apart && !args.quiet && std::env::var_os("CI").is_none(),
            is_quiet: args.quiet,
            shows_results,
            has_colour,
        }
    }

    /// The text in a colour, by its ANSI number, where colours are used.
    pub fn colour(&self, number: u8, text: &str) -> String {
        if self.has_colour { format!("\u{1b}[{number}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Standard output. Text for people is escaped, also in a pipe to a pager; what programs read is escaped only on a terminal.
pub struct Results {
    escapes: bool,
    to: Stdout,
}

impl Results {
    pub fn new(output: Output) -> Self {
        let exact = Self::exact();
        Self { escapes: exact.escapes || output == Output::Text, ..exact }
    }

    /// For a text that programs read.
    pub fn exact() -> Self {
        let stdout = io::stdout();
        Self { escapes: stdout.is_terminal(), to: stdout }
    }
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.escapes {
            true => self.to.write_all(visible(&String::from_utf8_lossy(bytes)).as_bytes())?,
            false => self.to.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Answers the program that called: it reads exactly these bytes. One that is gone needs no answer.
pub fn answer(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// The rows and columns of the terminal.
pub fn size() -> (u16, u16) {
    console::Term::stderr().size()
}

/// Shows the live block, or hides it.
pub fn show_block(is_shown: bool) {
    BLOCK.set_draw_target(if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() });
}

pub fn prompt(text: &str) {
    let mut stderr = io::stderr();
    // Without a terminal nobody can answer.
    let _ = write!(stderr, "{}", visible(text)).and_then(|()| stderr.flush());
}

/// A line that was typed; `None` at the end of input.
pub fn read_line() -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let n_read = io::stdin().lock().read_until(b'\n', &mut line)?;
    Ok((n_read > 0).then(|| String::from_utf8_lossy(&line).trim().to_owned()))
}

/// Asks a question at the terminal. Only a yes counts as one.
pub fn says_yes(question: &str) -> io::Result<bool> {
    prompt(&format!("{question} [y/N] "));
    Ok(matches!(read_line()?.as_deref(), Some("y" | "Y" | "yes" | "Yes")))
}

/// Writes a line on standard error, above the live block. A closed terminal must not end the work, as `eprintln!` would.
pub fn say(line: &str) {
    let line = escaped(line);
    if BLOCK.is_hidden() || BLOCK.println(&line).is_err() {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// The colours of the program, and the end of one.
const COLOURS: [&str; 6] = ["0", "31", "32", "33", "34", "90"];

/// The text without control characters, except those of [`Terminal::colour`].
fn escaped(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut shown = visible(parts.next().unwrap_or_default());
    for part in parts {
        let (number, rest) = part.split_at(part.bytes().take_while(u8::is_ascii_digit).count());
        match rest.strip_prefix('m').filter(|_| COLOURS.contains(&number)) {
            Some(rest) => shown.push_str(&format!("\u{1b}[{number}m{}", visible(rest))),
            None => shown.push_str(&visible(&format!("\u{1b}[{part}"))),
        }
    }
    shown
}

/// A writer of whole lines on standard error, for the program's own log.
pub struct Lines;

impl Write for Lines {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        say(String::from_utf8_lossy(lines).trim_end());
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
