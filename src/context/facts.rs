//! Prints the crew's views as text: the fields of their JSON, line by line.

use std::io;
use std::io::Write;

use serde::Serialize;
use serde_json::Value;

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::text::{one_line, visible};

/// The field that holds an age, in milliseconds.
const AGE: &str = "age_ms";
/// The longest value on a line, in characters.
const CHARS_MAX: usize = 400;

/// Prints a list of a view: as JSON, or each item as `print` does.
pub fn print_list(
    session: &Session,
    key: &str,
    facts: Value,
    items: &[impl Serialize],
    heading: &[&str],
    below: &[&str],
) -> Result<Code, Failure> {
    let items = items.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    session.print_list(key, facts, &items, |item| item, |to, item| print(to, item, heading, below))
}

/// Prints an item: the values of some fields as its heading, and below it others as `key: value`, or all others if none
/// are named. Each entry of a list has its own line. Fields without a value are omitted.
pub fn print(mut to: impl Write, item: &Value, heading: &[&str], below: &[&str]) -> io::Result<()> {
    let values = heading.iter().filter_map(|wanted| fields(item).find(|(key, _)| key == wanted));
    let shown = |(key, value): (_, &Value)| value.as_u64().filter(|_| key == AGE).map_or_else(|| text(value), age);
    let values: Vec<_> = values.map(shown).collect();
    writeln!(to, "{}", values.join("  "))?;
    let is_below = |key: &str| !heading.contains(&key) && (below.is_empty() || below.contains(&key));
    for (key, value) in fields(item).filter(|(key, _)| is_below(key)) {
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

/// A waiting time in its largest unit.
pub fn age(millis: u64) -> String {
    let secs = millis / 1_000;
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| secs >= *unit);
    unit.map_or_else(|| format!("{secs} s"), |(unit, name)| format!("{} {name}", secs / unit))
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
