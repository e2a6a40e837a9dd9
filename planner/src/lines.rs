//! Lines and columns of a text.

/// A line and a column, counted from 1 in characters; `None` if there is no text to point to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At(pub Option<(usize, usize)>);

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |(line, column)| write!(f, " (line {line}, column {column})"))
    }
}

/// Farther into a line than this, columns count bytes, so that one lookup never reads a huge line again and again.
const LINE_BYTES_MAX: usize = 10_000;

/// Finds the line and column of a byte.
#[derive(Debug)]
pub struct Lines<'a> {
    /// The text.
    pub text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Finds where the lines of a text begin.
    pub fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// The line and column of a byte, counted from 1. Columns are characters, or bytes far into a very long line.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let before = self.text.get(self.starts[line - 1]..at.min(self.text.len())).unwrap_or("");
        let column = if before.len() > LINE_BYTES_MAX { before.len() } else { before.chars().count() };
        (line, column + 1)
    }

    /// The same place, for an error.
    pub fn at(&self, at: usize) -> At {
        At(Some(self.place(at)))
    }

    /// The text of a line, counted from 1, without its end.
    pub fn line(&self, line: usize) -> &'a str {
        let start = line.checked_sub(1).and_then(|before| self.starts.get(before).copied());
        start.and_then(|start| self.text[start..].lines().next()).unwrap_or("")
    }
}
