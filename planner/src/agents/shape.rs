//! What a form consists of, as data: its fields, of what kind each is and what it says. A plan is held to it before it is
//! read, and the schema of the form is made of it. Kinds alone are judged here, and no rule beyond them.

use serde_json::{Map, Value};

use crate::json::{NoJson, quoted};
use crate::protocol::AgentType;

/// A field of a form.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) is_needed: bool,
    pub(super) shape: &'static Shape,
    /// The end of a sentence that begins with "it says".
    says: &'static str,
    /// As JSON.
    example: &'static str,
}

/// A field that must be there.
pub(super) const fn needed(
    name: &'static str,
    shape: &'static Shape,
    says: &'static str,
    example: &'static str,
) -> Field {
    Field { name, is_needed: true, shape, says, example }
}

/// A field that may be left out.
pub(super) const fn may(name: &'static str, shape: &'static Shape, says: &'static str, example: &'static str) -> Field {
    Field { name, is_needed: false, shape, says, example }
}

/// Of what kind something is.
pub(super) enum Shape {
    /// A text.
    Text,
    /// A line for the shell.
    Line,
    /// A name by which the rest of the plan names something.
    Id,
    /// The name of a tool.
    Tool,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A type of agent, in some relation to the one whose plan it is.
    Agent(Whom),
    /// How often something is tried again.
    Tries,
    /// Milliseconds, so many at the most.
    Millis(u64),
    /// How much there is of something.
    Amount,
    /// Any number of these.
    List(&'static Shape),
    /// These fields.
    Fields(&'static [Field]),
    /// By the name of a step, or another: one of these.
    ByName(&'static Shape),
    /// Exactly one of these fields.
    OneOf(&'static [Field]),
}

/// Which types of agent.
pub(super) enum Whom {
    /// Every one.
    Any,
    /// Those that may be asked.
    Asked,
    /// Those that work may be left to.
    Below,
}

/// What is not of its form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It is no JSON.
    #[error("{0}")]
    NoJson(#[from] NoJson),
    /// A field is missing.
    #[error("{}{field:?} is missing: it says {says}; write {field:?}: {example}", place(at))]
    Missing {
        /// Where.
        at: String,
        /// The field.
        field: &'static str,
        /// What it says.
        says: &'static str,
        /// What it could be, as JSON.
        example: &'static str,
    },
    /// Something is of another kind.
    #[error("{}{found} is no {wanted}: {field:?} says {says}; write {field:?}: {example}", place(at))]
    Kind {
        /// Where.
        at: String,
        /// What is there, or of which kind it is.
        found: String,
        /// Of which kind it must be.
        wanted: String,
        /// The field that it is, or stands in.
        field: &'static str,
        /// What that says.
        says: &'static str,
        /// What that could be, as JSON.
        example: &'static str,
    },
    /// It is no object at all.
    #[error("{found} is no plan: a plan is an object with the fields {}", known.join(", "))]
    NoPlan {
        /// Of which kind it is.
        found: String,
        /// The fields that a plan has.
        known: Vec<&'static str>,
    },
    /// There is no such field.
    #[error("{}nothing here is called {field}; what may stand here is {}", place(at), known.join(", "))]
    Unknown {
        /// Where.
        at: String,
        /// As written, between quotes.
        field: String,
        /// The fields that there are.
        known: Vec<&'static str>,
    },
}

/// How a place begins a message; the whole needs no name.
fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("{at}: ") }
}

/// The same plan without what is null, where that may be left out: it says nothing.
pub(super) fn fitted(plan: Value, fields: &'static [Field]) -> Result<Value, Misfit> {
    match plan {
        Value::Object(object) => Ok(Value::Object(fit_fields(object, fields, "")?)),
        other => Err(Misfit::NoPlan { found: kind_of(&other), known: names(fields) }),
    }
}

/// The field that something stands in, and its place.
#[derive(Clone, Copy)]
struct Within<'a> {
    field: &'static Field,
    at: &'a str,
}

impl Within<'_> {
    fn misfit(self, found: &Value, wanted: impl Into<String>) -> Misfit {
        let Field { name, says, example, .. } = *self.field;
        let found = kind_of(found);
        Misfit::Kind { at: self.at.to_owned(), found, wanted: wanted.into(), field: name, says, example }
    }
}

fn fit_fields(
    mut object: Map<String, Value>,
    fields: &'static [Field],
    at: &str,
) -> Result<Map<String, Value>, Misfit> {
    if let Some(name) = object.keys().find(|name| !fields.iter().any(|field| field.name == *name)) {
        return Err(Misfit::Unknown { at: at.to_owned(), field: quoted(name), known: names(fields) });
    }
    let mut fitted = Map::new();
    for field in fields {
        match object.remove(field.name) {
            None | Some(Value::Null) if !field.is_needed => {}
            None => {
                let Field { name, says, example, .. } = *field;
                return Err(Misfit::Missing { at: at.to_owned(), field: name, says, example });
            }
            Some(value) => {
                let at = format!("{at}/{}", field.name);
                fitted.insert(field.name.to_owned(), fit(value, field.shape, Within { field, at: &at })?);
            }
        }
    }
    Ok(fitted)
}

/// A value that is of its kind, without what says nothing.
fn fit(value: Value, shape: &'static Shape, within: Within<'_>) -> Result<Value, Misfit> {
    let is_of_kind = match (shape, &value) {
        (Shape::Text | Shape::Line | Shape::Id | Shape::Tool, Value::String(_)) => true,
        (Shape::Word(_) | Shape::Agent(_), Value::String(word)) => words(shape).contains(&&**word),
        // More could not even be counted; what is too much is another rule's.
        (Shape::Tries, Value::Number(number)) => number.as_u64().is_some_and(|n| u32::try_from(n).is_ok()),
        (Shape::Millis(_) | Shape::Amount, Value::Number(number)) => number.is_u64(),
        (Shape::List(_), Value::Array(_)) => true,
        (Shape::Fields(_) | Shape::ByName(_), Value::Object(_)) => true,
        (Shape::OneOf(_), Value::Object(object)) => object.len() == 1,
        _another => false,
    };
    if !is_of_kind {
        return Err(within.misfit(&value, wanted(shape)));
    }
    let inner = |key: &dyn std::fmt::Display| format!("{}/{key}", within.at);
    Ok(match (shape, value) {
        (Shape::List(items), Value::Array(list)) => {
            let fitted =
                list.into_iter().enumerate().map(|(n, item)| fit(item, items, Within { at: &inner(&n), ..within }));
            Value::Array(fitted.collect::<Result<_, _>>()?)
        }
        (Shape::ByName(of), Value::Object(object)) => {
            let fitted = object.into_iter().map(|(name, value)| {
                let at = inner(&name);
                Ok((name, fit(value, of, Within { at: &at, ..within })?))
            });
            Value::Object(fitted.collect::<Result<_, Misfit>>()?)
        }
        (Shape::Fields(fields), Value::Object(object)) => Value::Object(fit_fields(object, fields, within.at)?),
        // Of the others none is missing: they are not wanted beside the one.
        (Shape::OneOf(fields), Value::Object(object)) => {
            let only = fields.iter().find(|field| object.contains_key(field.name));
            let only = only.map_or(*fields, std::slice::from_ref);
            Value::Object(fit_fields(object, only, within.at)?)
        }
        (_one, value) => value,
    })
}

fn names(fields: &'static [Field]) -> Vec<&'static str> {
    fields.iter().map(|field| field.name).collect()
}

/// The words of which one may stand there.
fn words(shape: &'static Shape) -> Vec<&'static str> {
    match shape {
        Shape::Word(words) => words.to_vec(),
        // Which of them may stand there is told by the rule that forbids the others.
        Shape::Agent(_) => AgentType::ALL.map(AgentType::as_str).to_vec(),
        Shape::Text
        | Shape::Line
        | Shape::Id
        | Shape::Tool
        | Shape::Tries
        | Shape::Millis(_)
        | Shape::Amount
        | Shape::List(_)
        | Shape::Fields(_)
        | Shape::ByName(_)
        | Shape::OneOf(_) => Vec::new(),
    }
}

/// Of which kind something must be.
fn wanted(shape: &'static Shape) -> String {
    match shape {
        Shape::Text | Shape::Line => "text".into(),
        Shape::Id => "id, which is a text".into(),
        Shape::Tool => "name of a tool".into(),
        Shape::Word(_) => format!("word that is known here ({})", words(shape).join(", ")),
        Shape::Agent(_) => format!("type of agent ({})", words(shape).join(", ")),
        Shape::Tries => "number of tries".into(),
        Shape::Millis(_) => "number of milliseconds".into(),
        Shape::Amount => "whole number".into(),
        Shape::List(_) => "list".into(),
        Shape::Fields(fields) => format!("object with the fields {}", names(fields).join(", ")),
        Shape::ByName(_) => "object".into(),
        Shape::OneOf(fields) => format!("object with exactly one of {}", names(fields).join(", ")),
    }
}

/// What is there, in a word or two.
fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(_) => "a list".into(),
        Value::Object(object) if object.is_empty() => "an empty object".into(),
        Value::Object(object) => {
            format!("an object with {}", quoted(&object.keys().cloned().collect::<Vec<_>>().join(", ")))
        }
    }
}
