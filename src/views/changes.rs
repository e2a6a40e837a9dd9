//! A change of a plan, in words.

use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};

use serde::Serialize;
use serde_json::Value;

use crate::ui::text::one_line;

/// The most characters of a value in the words for a change.
const VALUE_CHARS_MAX: usize = 120;

/// Keys of a new task or question that the text for people leaves out.
const PLANNED: [&str; 10] =
    ["kind", "command", "condition", "depends_on", "priority", "assignee", "notes", "files", "task", "compensates"];

/// A value before and after; null where there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// `plan`, `task` or `question`.
    pub of: &'static str,
    /// The task's name or the question's id.
    pub name: Option<String>,
    /// The key in the JSON of `show`.
    pub field: String,
    pub from: Value,
    pub to: Value,
}

impl Change {
    /// True if the change adds or removes a whole task or question.
    fn is_of_whole(&self) -> bool {
        let names_it = matches!((self.of, self.field.as_str()), ("task", "description") | ("question", "question"));
        names_it && (self.from.is_null() || self.to.is_null())
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { of, name, field, from, to } = self;
        let subject = name.as_ref().map_or_else(|| (*of).to_owned(), |name| format!("{of} {name}"));
        let field = field.replace('_', " ");
        match (from.is_null(), to.is_null()) {
            (true, _) if self.is_of_whole() => write!(f, "{subject} is new: {}", words(to)),
            (_, true) if self.is_of_whole() => write!(f, "{subject} is gone: {}", words(from)),
            (true, _) => write!(f, "{subject} {field}: {}", words(to)),
            (false, _) => write!(f, "{subject} {field}: {} -> {}", words(from), words(to)),
        }
    }
}

fn words(value: &Value) -> String {
    let words = match value {
        Value::Null => "none".to_owned(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let said = fields.iter().filter(|(_, value)| !is_nothing(value));
            said.map(|(key, value)| format!("{} {}", key.replace('_', " "), words(value)))
                .collect::<Vec<_>>()
                .join(", ")
        }
    };
    one_line(&words, VALUE_CHARS_MAX)
}

/// The changes for people, without the details of new and removed items.
pub fn in_short(changes: &[Change]) -> impl Iterator<Item = &Change> {
    let whole = changes.iter().filter(|change| change.is_of_whole()).map(|change| (change.of, &change.name));
    let whole = whole.collect::<BTreeSet<_>>();
    changes.iter().filter(move |change| {
        !whole.contains(&(change.of, &change.name))
            || change.is_of_whole()
            || (!change.to.is_null() && change.to != "Planned" && !PLANNED.contains(&change.field.as_str()))
    })
}

/// True for a value that says nothing.
pub fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
    }
}
