//! The text of the crew's views: the fields of their JSON, line by line.

use std::io::{self, Write};

use serde_json::Value;

use crate::text::{one_line, visible};

/// The longest value on a line, in characters.
const CHARS_MAX: usize = 400;

/// Prints an item: its field `name` as heading, and the others below it as `key: value`. Each entry of a list has a line of its
/// own. Fields without a value are left out.
pub fn print(mut to: impl Write, item: &Value, name: &str) -> io::Result<()> {
    writeln!(to, "{}", text(&item[name]))?;
    for (key, value) in fields(item).filter(|(key, _)| *key != name) {
        match value {
            Value::Array(entries) => {
                writeln!(to, "  {key}:")?;
                entries.iter().try_for_each(|entry| writeln!(to, "    {}", text(entry)))?;
            }
            Value::String(long) if long.contains('\n') => {
                writeln!(to, "  {key}:")?;
                visible(long).lines().try_for_each(|line| writeln!(to, "    {line}"))?;
            }
            value => writeln!(to, "  {key}: {}", text(value))?,
        }
    }
    Ok(())
}

fn fields(item: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => false,
    };
    item.as_object().into_iter().flatten().filter(move |(_, value)| !is_empty(value))
}

/// A value in one line.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text, CHARS_MAX),
        Value::Array(entries) => entries.iter().map(text).collect::<Vec<_>>().join(" "),
        Value::Object(_) => {
            fields(value).map(|(key, value)| format!("{key}: {}", text(value))).collect::<Vec<_>>().join(", ")
        }
        value => value.to_string(),
    }
}
