//! Printing the stable JSON of the command line (`docs/json.md`). All keys are always there; absent values are null or empty.

use std::io::{self, Write};

use serde::Serialize;

pub fn print_pretty(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut to, value)?;
    writeln!(to)
}

pub fn print_line(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut to, value)?;
    writeln!(to)
}
