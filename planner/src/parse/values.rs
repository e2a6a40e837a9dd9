//! Values as other programs write them, each with its place in the text: what JSON and YAML have in common. What the
//! fields mean is for `formats`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::plan::Span;

/// Values within values are read to this depth.
pub(super) const DEPTH_MAX: usize = 24;

#[derive(Debug)]
pub(super) enum Node {
    /// Null, or what stands too deep.
    Nothing,
    Flag(bool),
    /// A text or a number.
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) span: Span,
    pub(super) node: Node,
}

impl Value {
    /// Reads a part of a text as JSON.
    pub(super) fn json(source: &str, part: &str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(part).ok().map(|raw| json(source, raw, 0))
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        match &self.node {
            Node::List(values) => Some(values),
            Node::Nothing | Node::Flag(_) | Node::Text(_) | Node::Map(_) => None,
        }
    }

    pub(super) fn fields(&self) -> Option<&[(String, Self)]> {
        match &self.node {
            Node::Map(fields) => Some(fields),
            Node::Nothing | Node::Flag(_) | Node::Text(_) | Node::List(_) => None,
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        self.fields()?.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// A text that is not blank, or a number.
    pub(super) fn word(&self) -> Option<&str> {
        match &self.node {
            Node::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
            Node::Nothing | Node::Flag(_) | Node::List(_) | Node::Map(_) => None,
        }
    }

    /// The text of a field; of a list its lines.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let value = self.field(name)?;
        match value.list() {
            Some(lines) => {
                let lines = lines.iter().filter_map(Self::word).collect::<Vec<_>>();
                (!lines.is_empty()).then(|| lines.join("\n"))
            }
            None => value.word().map(str::to_owned),
        }
    }
}

/// Where a part of a text begins.
pub(super) fn offset(source: &str, part: &str) -> usize {
    part.as_ptr() as usize - source.as_ptr() as usize
}

/// What is wrong with a text that begins as JSON and is broken, and where; nothing for any other text.
/// Of lines of which each is a value the first is at fault, in the words given.
pub(super) fn broken(source: &str, body: &str, no_entry: &str) -> Option<(usize, String)> {
    let inner = body.trim_start_matches(['[', '{', ' ', '\t', '\r', '\n']);
    let braces = body[..body.len() - inner.len()].contains('{') && inner.starts_with('"');
    let mut values = serde_json::Deserializer::from_str(body).into_iter::<&RawValue>();
    let whole = values.next().is_some_and(|first| first.is_ok());
    let rest = body.get(values.byte_offset()..).unwrap_or("").trim_start();
    if !braces || whole && !rest.starts_with(['{', '[', '}', ']', ',']) {
        return None;
    }
    // What stands one value a line is judged by its lines.
    let by_line = whole && rest.starts_with('{');
    let part = if by_line {
        let mut lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.find(|line| serde_json::from_str::<&RawValue>(line).is_err())
    } else {
        Some(body)
    };
    let Some(part) = part else {
        return Some((offset(source, body), no_entry.into()));
    };
    let error = serde_json::from_str::<&RawValue>(part).err()?;
    let line: usize = part.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let mut at = (line + error.column().saturating_sub(1)).min(part.len());
    while !part.is_char_boundary(at) {
        at -= 1;
    }
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or("it is broken").to_owned();
    Some((offset(source, part) + at, said))
}

fn json(source: &str, raw: &RawValue, depth: usize) -> Value {
    let text = raw.get();
    let start = offset(source, text);
    let node = match text.as_bytes().first() {
        Some(b'{' | b'[') if depth >= DEPTH_MAX => Node::Nothing,
        Some(b'{') => {
            let fields = serde_json::from_str::<BTreeMap<String, &RawValue>>(text).unwrap_or_default();
            Node::Map(fields.into_iter().map(|(name, value)| (name, json(source, value, depth + 1))).collect())
        }
        Some(b'[') => {
            let values = serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default();
            Node::List(values.into_iter().map(|value| json(source, value, depth + 1)).collect())
        }
        Some(b'"') => Node::Text(serde_json::from_str(text).unwrap_or_default()),
        Some(b't' | b'f') => Node::Flag(text == "true"),
        Some(b'n') | None => Node::Nothing,
        Some(_) => Node::Text(text.to_owned()),
    };
    Value { span: Span { start, end: start + text.len() }, node }
}
