//! Prints the crew's views as text: the fields of their JSON, line by line, in words.

use std::io;
use std::io::Write;

use crewlog_executors::agent::Agent;
use crewlog_mq::Timestamp;
use crewlog_planner::text::money;
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::Session;
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::Output;
use crate::ui::text::{ago, date_time, duration, moment_of, one_line, visible};

/// The end of a key whose value is a duration.
const MS: &str = "_ms";
/// The longest value on a line, in characters.
const CHARS_MAX: usize = 400;

/// The most items of a list that are printed as text.
const ITEMS_MAX: usize = 500;

/// Prints a list of a view: as JSON, or each item as `print` does, with ages as of `now`.
pub fn print_list<T: Serialize>(
    session: &Session,
    key: &str,
    facts: Value,
    items: &[T],
    [heading, below]: [&[&str]; 2],
    now: Timestamp,
) -> Result<Code, Failure> {
    let shown = if session.output == Output::Text { &items[..items.len().min(ITEMS_MAX)] } else { items };
    let n_more = items.len() - shown.len();
    (n_more > 0).then(|| session.suggest(&format!("{n_more} more: -o json lists all of them")));
    session.print_list(key, facts, shown, |item| item, |to, item| print(to, &json!(item), [heading, below], Some(now)))
}

/// Prints an item: the values of some fields as its heading, and below it others as `key: value`, or all others if none
/// are named. Each entry of a list has its own line. Fields without a value are omitted. With `now`, ages are printed in
/// place of times.
pub fn print(
    mut to: impl Write,
    item: &Value,
    [heading, below]: [&[&str]; 2],
    now: Option<Timestamp>,
) -> io::Result<()> {
    let values = heading.iter().filter_map(|wanted| fields(item).find(|(key, _)| key == wanted));
    let values: Vec<_> = values.map(|(key, value)| words(key, value, now)).collect();
    writeln!(to, "{}", values.join("  "))?;
    let is_below = |key: &str| !heading.contains(&key) && (below.is_empty() || below.contains(&key));
    for (key, value) in fields(item).filter(|(key, _)| is_below(key)) {
        let label = label(key);
        match value {
            Value::Array(entries) => {
                writeln!(to, "  {label}:")?;
                entries.iter().try_for_each(|entry| writeln!(to, "    {}", words(key, entry, now)))?;
            }
            Value::String(long) if long.contains('\n') => {
                writeln!(to, "  {label}:")?;
                visible(long).lines().try_for_each(|line| writeln!(to, "    {line}"))?;
            }
            value => writeln!(to, "  {label}: {}", words(key, value, now))?,
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

/// The words for a key: `is_exclusive` is exclusive, `started_at` is started, `depends_on` is depends on.
fn label(key: &str) -> String {
    let ends = ["is_", "n_"].into_iter().find_map(|start| key.strip_prefix(start)).unwrap_or(key);
    let ends = [MS, "_at"].into_iter().find_map(|end| ends.strip_suffix(end)).unwrap_or(ends);
    ends.replace('_', " ")
}

fn words(key: &str, value: &Value, now: Option<Timestamp>) -> String {
    match value {
        Value::String(text) => match (moment_of(text), now) {
            (Some(moment), Some(now)) => ago(moment, now),
            (Some(moment), None) => date_time(moment),
            (None, _) => one_line(text, CHARS_MAX),
        },
        Value::Array(entries) => entries.iter().map(|entry| words(key, entry, now)).collect::<Vec<_>>().join(" "),
        Value::Object(_) => {
            let fields = fields(value).map(|(key, value)| format!("{}: {}", label(key), words(key, value, now)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Value::Number(number) if key.ends_with(MS) => number.as_u64().map_or_else(|| number.to_string(), duration),
        Value::Number(percent) if key.ends_with("_usage") => format!("{percent} %"),
        Value::Bool(true) => "yes".to_owned(),
        value => value.to_string(),
    }
}

/// A configured executor as JSON. Of its environment only the names: the values may be secret.
pub fn configured(agent: &Agent) -> Value {
    json!({
        "name": agent.name,
        "kinds": agent.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(),
        "command": agent.program.argv(None),
        "prompt": agent.prompt,
        "resume": agent.resume,
        "env": agent.env.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "passes": agent.passes,
        "timeout_ms": agent.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        "jobs": agent.jobs,
        "rate_limited": agent.rate_limited,
        "for_person": agent.for_person,
        "budget_per_day": agent.budget_per_day.map(money),
    })
}
