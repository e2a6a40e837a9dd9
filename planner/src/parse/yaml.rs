//! YAML as people and programs write lists of tasks in it: maps and lists by indentation, lists between brackets, quoted
//! texts and blocks of text. What else YAML has (anchors, tags, several documents) is not read, and no text is taken for
//! YAML that is not all of it.

use std::collections::HashSet;

use super::values::{DEPTH_MAX, Node, Value, offset};
use crate::plan::Span;

/// Reads a part of a text; nothing when it is not YAML of this sort.
pub(super) fn read(source: &str, part: &str) -> Option<Value> {
    let begin = offset(source, part);
    let mut lines = Vec::new();
    let mut at = begin;
    for line in part.split_inclusive('\n') {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        let content = content.trim_end();
        if !content.is_empty() {
            if content.starts_with('\t') {
                return None;
            }
            lines.push(Line { start: at + indent, end: at + indent + content.len(), indent });
        }
        at += line.len();
    }
    let mut reader = Reader { source, lines, at: 0 };
    reader.skip();
    let value = reader.block(0, 0)?;
    (reader.at == reader.lines.len()).then_some(value)
}

/// A line that is not blank, without its end.
#[derive(Debug, Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
    indent: usize,
}

struct Reader<'t> {
    source: &'t str,
    lines: Vec<Line>,
    at: usize,
}

impl<'t> Reader<'t> {
    fn text(&self, line: Line) -> &'t str {
        &self.source[line.start..line.end]
    }

    /// The line that is next, comments left out.
    fn next(&self) -> Option<Line> {
        self.lines.get(self.at).copied()
    }

    fn skip(&mut self) {
        while self.next().is_some_and(|line| self.text(line).starts_with('#')) {
            self.at += 1;
        }
    }

    fn step(&mut self) {
        self.at += 1;
        self.skip();
    }

    /// A value that begins in the next line, which stands at least so deep.
    fn block(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let line = self.next().filter(|line| line.indent >= indent && depth < DEPTH_MAX)?;
        let text = self.text(line);
        if text == "-" || text.starts_with("- ") {
            return self.list(line, depth);
        }
        if key(text).is_some() {
            return self.map(line, depth);
        }
        let value = scalar(self.source, line.start, line.end, depth);
        self.step();
        value
    }

    fn list(&mut self, first: Line, depth: usize) -> Option<Value> {
        let mut values = Vec::new();
        while let Some(line) = self.next().filter(|line| line.indent == first.indent) {
            let text = self.text(line);
            if text == "-" {
                self.step();
                values.push(self.block(first.indent + 1, depth + 1)?);
                continue;
            }
            let Some(rest) = text.strip_prefix("- ") else { break };
            let skip = text.len() - rest.trim_start().len();
            // What stands behind the dash is a line of its own, so much deeper.
            let inner = Line { start: line.start + skip, indent: line.indent + skip, ..line };
            *self.lines.get_mut(self.at)? = inner;
            let mut value = self.block(inner.indent, depth + 1)?;
            if matches!(value.node, Node::Text(_)) {
                self.goes_on(&mut value, first.indent);
            }
            value.span.start = line.start;
            values.push(value);
        }
        self.end(first, Node::List(values))
    }

    fn map(&mut self, first: Line, depth: usize) -> Option<Value> {
        let mut fields: Vec<(String, Value)> = Vec::new();
        let mut names = HashSet::new();
        while let Some(line) = self.next().filter(|line| line.indent == first.indent) {
            let text = self.text(line);
            let Some((name, skip)) = key(text) else { break };
            let rest = text[skip..].trim_start();
            let start = line.end - rest.len();
            let value = if rest.is_empty() || rest.starts_with('#') {
                self.step();
                let deeper = |line: &Line| {
                    let listed = line.indent == first.indent && self.text(*line).starts_with("- ");
                    line.indent > first.indent || listed
                };
                match self.next().filter(deeper) {
                    Some(next) => self.block(next.indent, depth + 1)?,
                    None => Value { span: Span { start, end: line.end }, node: Node::Nothing },
                }
            } else if rest.starts_with(['|', '>']) && rest.len() <= 3 {
                self.literal(line, first.indent, rest.starts_with('|'))
            } else {
                let mut value = scalar(self.source, start, line.end, depth)?;
                self.step();
                self.goes_on(&mut value, first.indent);
                value
            };
            if !names.insert(name.clone()) {
                return None;
            }
            fields.push((name, value));
        }
        self.end(first, Node::Map(fields))
    }

    fn end(&self, first: Line, node: Node) -> Option<Value> {
        let last = self.lines.get(self.at.checked_sub(1)?)?;
        Some(Value { span: Span { start: first.start, end: last.end.max(first.start) }, node })
    }

    /// `|` and `>`: the lines that stand deeper are the text.
    fn literal(&mut self, head: Line, indent: usize, by_line: bool) -> Value {
        self.at += 1;
        let mut parts = Vec::new();
        let mut end = head.end;
        while let Some(line) = self.next().filter(|line| line.indent > indent) {
            parts.push(self.text(line));
            end = line.end;
            self.at += 1;
        }
        self.skip();
        let text = parts.join(if by_line { "\n" } else { " " });
        Value { span: Span { start: head.start, end }, node: Node::Text(text) }
    }

    /// A text without quotes may go on in lines that stand deeper.
    fn goes_on(&mut self, value: &mut Value, indent: usize) {
        let Node::Text(text) = &mut value.node else { return };
        while let Some(line) = self.next().filter(|line| line.indent > indent) {
            text.push(' ');
            text.push_str(self.text(line));
            value.span.end = line.end;
            self.step();
        }
    }
}

/// `name:` at the start of a line, and its length.
fn key(text: &str) -> Option<(String, usize)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let body = quote.map_or(text, |_| &text[1..]);
    let length =
        body.bytes().take(65).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')).count();
    let name = body.get(..length).filter(|name| !name.is_empty() && name.len() <= 64)?;
    let rest = &body[length..];
    let rest = quote.map_or(Some(rest), |quote| rest.strip_prefix(quote))?.strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| (name.to_owned(), text.len() - rest.len()))
}

fn scalar(source: &str, start: usize, end: usize, depth: usize) -> Option<Value> {
    if depth >= DEPTH_MAX {
        return None;
    }
    let text = &source[start..end];
    let span = Span { start, end };
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']')?;
        let mut values = Vec::new();
        for part in inner.split(',') {
            let part = part.trim();
            let start = offset(source, part);
            if !part.is_empty() {
                values.push(scalar(source, start, start + part.len(), depth + 1)?);
            }
        }
        return Some(Value { span, node: Node::List(values) });
    }
    if text.starts_with(['{', '&', '*', '!', '%', '@', '`']) {
        return None;
    }
    let quoted =
        |quote: char| text.strip_prefix(quote)?.rsplit_once(quote).map(|(inner, rest)| (inner, rest.trim_start()));
    if let Some((inner, rest)) = quoted('\'') {
        return (rest.is_empty() || rest.starts_with('#'))
            .then(|| Value { span, node: Node::Text(inner.replace("''", "'")) });
    }
    if let Some((inner, rest)) = quoted('"') {
        let read = serde_json::from_str(&format!("\"{inner}\"")).ok()?;
        return (rest.is_empty() || rest.starts_with('#')).then_some(Value { span, node: Node::Text(read) });
    }
    let plain = text.split(" #").next().unwrap_or(text).trim_end();
    let node = match plain {
        "true" | "yes" | "True" => Node::Flag(true),
        "false" | "no" | "False" => Node::Flag(false),
        "" | "~" | "null" => Node::Nothing,
        _ => Node::Text(plain.to_owned()),
    };
    Some(Value { span, node })
}
