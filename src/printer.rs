//! Prints lists that are too long to be held in memory.

use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;

use crate::cli::Output;
use crate::failure::{Code, Failure};
use crate::json::print_line;
use crate::session::Session;

/// Prints a list item by item: lines of text or JSON, or one JSON document that ends with the list.
pub struct ListPrinter<'a> {
    session: &'a Session,
    stdout: BufWriter<Stdout>,
    n_printed: usize,
}

impl<'a> ListPrinter<'a> {
    /// Begins the document with these keys; the list is the value of the last.
    pub fn begin(session: &'a Session, keys: &str) -> io::Result<Self> {
        let mut stdout = BufWriter::new(io::stdout());
        if session.output == Output::Json {
            write!(stdout, "{{{keys}: [")?;
        }
        Ok(Self { session, stdout, n_printed: 0 })
    }

    /// Prints an item, as JSON or as `text` writes it.
    pub fn print(
        &mut self,
        json: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.session.output {
            Output::Jsonl => print_line(&mut self.stdout, json)?,
            Output::Json => {
                write!(self.stdout, "{}\n  ", if self.n_printed == 0 { "" } else { "," })?;
                serde_json::to_writer(&mut self.stdout, json)?;
            }
            Output::Text => text(&mut self.stdout)?,
        }
        self.n_printed += 1;
        Ok(())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }

    /// Ends the document; an empty list gets a message and an exit code of its own.
    pub fn end(mut self, if_empty: &str) -> Result<Code, Failure> {
        if self.session.output == Output::Json {
            writeln!(self.stdout, "\n]}}")?;
        }
        self.stdout.flush()?;
        if self.n_printed > 0 {
            return Ok(Code::Done);
        }
        self.session.remark(if_empty);
        Ok(Code::Nothing)
    }
}
