//! JSON as agents and models give it: one value, each of its fields once. Errors name the place, in words
//! that say what to mend. It knows no form.

use std::cell::Cell;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How deep lists and objects may stand within each other.
pub const JSON_DEPTH_MAX: usize = 32;

/// Why a text is not one JSON value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct NoJson {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub why: String,
}

/// Reads one value.
///
/// # Errors
/// [`NoJson`] with the first place that is wrong.
pub(crate) fn read(text: &str) -> Result<Value, NoJson> {
    // Editors set it before a text; no reader is to mind it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let ours = Cell::new(None);
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Node { depth: 0, ours: &ours }.deserialize(&mut json);
    value.and_then(|value| json.end().map(|()| value)).map_err(|error| {
        let at = offset(text, &error);
        let (line, column) = place(text, at);
        let why = ours.take().unwrap_or_else(|| why(text, at, error.is_eof()));
        NoJson { line, column, why }
    })
}

/// Place of the wrong character, or the end of the text when one is missing.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let line = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let at = if error.is_eof() { text.len() } else { (line + error.column()).saturating_sub(1) };
    text.floor_char_boundary(at)
}

/// The line and the column of a place, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// What is wrong with JSON that cannot go on as it does at a place.
fn why(text: &str, at: usize, is_eof: bool) -> String {
    let (before, rest) = text.split_at(at);
    let last = before.trim_end().chars().last();
    let said = match (rest.chars().next(), last) {
        _ if text.trim().is_empty() => "there is nothing",
        _ if is_eof => "it ends in the middle: a quote, a bracket or a brace is not closed",
        _ if serde_json::from_str::<IgnoredAny>(before).is_ok() => "something stands behind its end: leave that out",
        (Some('}' | ']'), Some(',')) => "the comma before this is one too many: leave it out",
        (Some('\''), _) => "texts and names stand between double quotes, \"so\"",
        (Some('/' | '#'), _) => "there are no comments in JSON: leave it out",
        (Some('\n' | '\r'), _) => "a line does not end within a text: write \\n there, or close the quote",
        (Some(char), _) if char.is_control() => "a text has no control characters: write \\t or \\u0000 and the like",
        (Some('"' | '{' | '['), Some('"' | '}' | ']')) => "a comma or a colon is missing before this",
        (Some(char), None) => {
            return format!("JSON does not begin with {char:?}: give it alone, without words or a fence around it");
        }
        (Some(char), Some(_)) => return format!("JSON cannot go on with {char:?} here"),
        (None, _) => "JSON cannot end so",
    };
    said.to_owned()
}

/// A value on its way, at a depth. What is wrong beyond what JSON forbids goes into `ours`.
#[derive(Clone, Copy)]
struct Node<'a> {
    depth: usize,
    ours: &'a Cell<Option<String>>,
}

impl Node<'_> {
    fn below<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == JSON_DEPTH_MAX {
            return Err(self.refused(format!("lists and objects stand more than {JSON_DEPTH_MAX} deep in each other")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn refused<E: serde::de::Error>(self, why: String) -> E {
        self.ours.set(Some(why));
        E::custom("refused")
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let (below, mut list) = (self.below()?, Vec::new());
        while let Some(item) = items.next_element_seed(below)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let (below, mut object) = (self.below()?, Map::new());
        while let Some(name) = fields.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(self.refused(format!("{} stands here a second time: keep one of them", quoted(&name))));
            }
            let value = fields.next_value_seed(below)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

/// The most characters of the input that an error quotes.
const QUOTED_CHARS_MAX: usize = 40;

/// A text that was given, between quotes, and not all of a long one.
pub(crate) fn quoted(text: &str) -> String {
    let shown = text.chars().take(QUOTED_CHARS_MAX).collect::<String>();
    if shown.len() < text.len() { format!("{:?}", shown + "…") } else { format!("{shown:?}") }
}
