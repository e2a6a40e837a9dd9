//! Rewrites the indentation and the signs of lists that CommonMark would read differently than people do.
//!
//! - Parts of `1. step` are often indented by two or four columns: they move to the column of their parent's text.
//! - `•`, `–`, `(1)`, `a)` and `Step 1:` also begin items: each becomes a sign that CommonMark knows. A hard space after a
//!   sign becomes a space.
//!
//! The number of lines and everything after the beginning of a line stay the same, so every byte maps to its place.

use std::sync::LazyLock;

use regex::Regex;

/// The most levels of lists; deeper items move to the last level.
pub(super) const DEPTH_MAX: usize = 32;

/// A space that editors write after a sign.
const HARD_SPACE: char = '\u{a0}';

/// A text with repaired lists, and the map to its original bytes.
#[derive(Default)]
pub(super) struct Repaired {
    pub text: String,
    lines: Vec<RepairedLine>,
}

/// A line: its start, the start of its unchanged rest here and in the file, and its first visible byte in the file.
struct RepairedLine {
    start: usize,
    rest: usize,
    rest_in_file: usize,
    visible_in_file: usize,
}

impl Repaired {
    /// The byte of the file for a byte of the repaired text.
    pub fn in_file(&self, at: usize) -> usize {
        let Some(line) = self.line(at) else { return at };
        if at >= line.rest { line.rest_in_file + (at - line.rest) } else { line.visible_in_file }
    }

    /// The end of a range in the file, for its end in the repaired text.
    pub fn end_in_file(&self, at: usize) -> usize {
        let Some(line) = self.line(at.saturating_sub(1)) else { return at };
        line.rest_in_file + at.saturating_sub(line.rest)
    }

    fn line(&self, at: usize) -> Option<&RepairedLine> {
        self.lines[..self.lines.partition_point(|line| line.start <= at)].last()
    }
}

/// An open item: its column in the file, and the columns of its text in the file and after repair.
struct OpenItem {
    column: usize,
    text_column: usize,
    new_text_column: usize,
}

#[derive(Default)]
struct Repairer<'a> {
    repaired: Repaired,
    open: Vec<OpenItem>,
    /// The sign and the length of an open fence, and the columns by which it moved.
    fence: Option<(u8, usize, isize)>,
    in_comment: bool,
    after_blank: bool,
    /// The previous line begins like `Step 1:`.
    after_step: bool,
    line: &'a str,
    /// The first byte of the line in the file.
    at: usize,
    /// Its first visible byte, relative to `at`.
    visible: usize,
}

/// Repairs a text that begins at a byte of the file.
pub(super) fn repair(text: &str, offset: usize) -> Repaired {
    let mut repairer = Repairer { after_blank: true, ..Repairer::default() };
    repairer.repaired.text.reserve(text.len() + text.len() / 8);
    repairer.at = offset;
    for line in text.split_inclusive('\n') {
        repairer.line = line;
        repairer.take();
        repairer.at += line.len();
    }
    repairer.repaired
}

impl Repairer<'_> {
    fn take(&mut self) {
        let (column, visible) = indentation(self.line);
        self.visible = visible;
        let body = &self.line[visible..];
        let is_blank = body.trim_end().is_empty();
        if let Some((sign, length, shift)) = self.fence {
            let closes =
                fence(body).is_some_and(|(other, n, rest)| other == sign && n >= length && rest.trim().is_empty());
            let leaves = !is_blank && self.open.last().is_some_and(|item| column < item.column + 2);
            if closes || leaves {
                self.fence = None;
            }
            if !leaves {
                let column = if is_blank { 0 } else { column.saturating_add_signed(shift) };
                return self.put(visible, column, "");
            }
        }
        if self.in_comment || is_blank {
            self.in_comment &= !body.contains("-->");
            self.after_blank |= is_blank;
            return self.put(0, 0, "");
        }
        let (after_blank, after_step) = (std::mem::take(&mut self.after_blank), std::mem::take(&mut self.after_step));
        let is_step = body.starts_with(['S', 's']) && !body[1..].starts_with(')');
        let may_begin = (column < 4 || !self.open.is_empty()) && (!is_step || after_blank || after_step);
        if let Some((length, sign)) = sign(body).filter(|_| may_begin) {
            self.after_step = is_step;
            return self.item(column, length, &sign);
        }
        self.in_comment = body.starts_with("<!--") && !body.contains("-->");
        let opened = fence(body).filter(|(sign, _, rest)| *sign == b'~' || !rest.contains('`'));
        let interrupts = after_blank || opened.is_some() || body.starts_with('#');
        let depth = self.open.iter().take_while(|item| column >= item.column + 2).count();
        if interrupts {
            self.open.truncate(depth);
        }
        let column_now = match self.open[..depth].last() {
            Some(item) => item.new_text_column + column.saturating_sub(item.text_column),
            None => column,
        };
        if let Some((sign, length, _)) = opened {
            self.fence = Some((sign, length, column_now as isize - column as isize));
        }
        self.put(visible, column_now, "");
    }

    fn item(&mut self, column: usize, length: usize, sign: &str) {
        let depth = self.open.iter().take_while(|item| column >= item.column + 2).count().min(DEPTH_MAX - 1);
        self.open.truncate(depth);
        let new_column = self.open.last().map_or(0, |item| item.new_text_column);
        let body = &self.line[self.visible + length..];
        let spaces = body.len() - body.trim_start_matches([' ', HARD_SPACE]).len();
        let text_column = column + length + spaces;
        let new_text_column = new_column + sign.len() + 1;
        self.open.push(OpenItem { column, text_column, new_text_column });
        self.put(self.visible + length + spaces, new_column, &format!("{sign} "));
    }

    /// Writes the rest of the line, from a byte of it, after new indentation and a marker.
    fn put(&mut self, from: usize, column: usize, marker: &str) {
        let start = self.repaired.text.len();
        self.repaired.text.extend(std::iter::repeat_n(' ', column));
        self.repaired.text.push_str(marker);
        let rest = self.repaired.text.len();
        self.repaired.text.push_str(&self.line[from..]);
        let (rest_in_file, visible_in_file) = (self.at + from, self.at + self.visible);
        self.repaired.lines.push(RepairedLine { start, rest, rest_in_file, visible_in_file });
    }
}

/// The column of the first visible character, with tabs to every fourth column, and its byte.
fn indentation(line: &str) -> (usize, usize) {
    let mut column = 0;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b' ' => column += 1,
            b'\t' => column = column / 4 * 4 + 4,
            _visible => return (column, at),
        }
    }
    (column, line.len())
}

/// The sign and length of a fence, and the text after it.
fn fence(body: &str) -> Option<(u8, usize, &str)> {
    let sign = *body.as_bytes().first().filter(|sign| matches!(sign, b'`' | b'~'))?;
    let length = body.bytes().take_while(|byte| *byte == sign).count();
    (length >= 3).then(|| (sign, length, &body[length..]))
}

/// The sign of an item: its length, and its replacement in CommonMark.
fn sign(body: &str) -> Option<(usize, String)> {
    static SIGN: LazyLock<Regex> = LazyLock::new(|| {
        let signs = r"([-*+]|[0-9]{1,9}[.)])|[•–]|\(([0-9]{1,4})\)|([a-z])\)|(?i:step) ([0-9]{1,9}):";
        Regex::new(&format!("^(?:{signs})(?:[ \t\r\n]|{HARD_SPACE}|$)")).expect("it is a constant")
    });
    let found = SIGN.captures(body)?;
    let first = body.chars().next()?;
    let is_rule = body.trim_end().chars().all(|c| c == first || c == ' ') && body.matches(first).nth(2).is_some();
    let part = |n: usize| found.get(n).map(|part| part.as_str());
    let sign = match (part(1), part(2), part(3), part(4)) {
        (Some(_), ..) if is_rule => return None,
        (Some(plain), ..) => plain.to_owned(),
        (_, Some(number), ..) => format!("{number})"),
        (_, _, Some(letter), _) => format!("{})", letter.as_bytes()[0] - b'a' + 1),
        (_, _, _, Some(number)) => format!("{number}."),
        (None, None, None, None) => "-".to_owned(),
    };
    Some((found[0].trim_end().len(), sign))
}
