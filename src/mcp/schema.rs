//! The shapes of arguments and results as flat JSON schemas, and the check of arguments against them.
//!
//! A client may drop `default`, `minimum` and `maximum`, so the descriptions repeat them. There is no `anyOf`, `$ref` or nullable
//! type, because some clients drop these too.

use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// A property of arguments or of a result.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    pub is_required: bool,
    pub about: &'static str,
}

/// The type of a property.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Words of an agent; secrets are redacted.
    Text,
    /// A name, an id or a path, kept as it is.
    Word,
    Flag(Option<bool>),
    Number {
        min: i64,
        max: i64,
        default: Option<i64>,
    },
    Choice(&'static [&'static str], Option<&'static str>),
    /// At most so many names, ids or paths.
    Words(usize),
    /// At most so many texts.
    Texts(usize),
    /// At most so many numbers.
    Numbers(usize),
    /// An object.
    Item(&'static [Field]),
    /// At most so many objects.
    Items(&'static [Field], usize),
}

/// The largest position of a log.
pub const POSITION_MAX: i64 = i64::MAX >> 10;

impl Field {
    pub const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, is_required: false, about }
    }

    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Text | Kind::Word => json!({ "type": "string" }),
            Kind::Flag(_) => json!({ "type": "boolean" }),
            Kind::Number { min, max, .. } => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Kind::Choice(choices, _) => json!({ "type": "string", "enum": choices }),
            Kind::Words(max) | Kind::Texts(max) => {
                json!({ "type": "array", "maxItems": max, "items": { "type": "string" } })
            }
            Kind::Numbers(max) => json!({ "type": "array", "maxItems": max, "items": { "type": "integer" } }),
            Kind::Item(fields) => object(fields.iter()),
            Kind::Items(fields, max) => json!({ "type": "array", "maxItems": max, "items": object(fields.iter()) }),
        };
        schema["description"] = json!(self.description());
        if let Some(default) = self.default() {
            schema["default"] = default;
        }
        schema
    }

    pub fn default(&self) -> Option<Value> {
        match self.kind {
            Kind::Flag(default) => default.map(Value::from),
            Kind::Number { default, .. } => default.map(Value::from),
            Kind::Choice(_, default) => default.map(Value::from),
            Kind::Text
            | Kind::Word
            | Kind::Words(_)
            | Kind::Texts(_)
            | Kind::Numbers(_)
            | Kind::Item(_)
            | Kind::Items(..) => None,
        }
    }

    fn description(&self) -> String {
        let default = self.default().map(|default| format!("default {}", default.to_string().trim_matches('"')));
        let range = match self.kind {
            Kind::Number { min: 0, max: POSITION_MAX, .. } => None,
            Kind::Number { min, max, .. } => Some(format!("{min} to {max}")),
            Kind::Words(max) | Kind::Texts(max) | Kind::Numbers(max) | Kind::Items(_, max) => {
                Some(format!("at most {max}"))
            }
            Kind::Text | Kind::Word | Kind::Flag(_) | Kind::Choice(..) | Kind::Item(_) => None,
        };
        let facts: Vec<_> = range.into_iter().chain(default).collect();
        if facts.is_empty() { self.about.to_owned() } else { format!("{} ({})", self.about, facts.join("; ")) }
    }

    /// Why a value is none of this field.
    fn fault(&self, value: &Value) -> Option<String> {
        let name = self.name;
        let many = |max: usize, what: &str, is_one: &dyn Fn(&Value) -> bool| match value.as_array() {
            Some(list) if list.len() > max => Some(format!("{name} has {} entries; at most {max}", list.len())),
            Some(list) if list.iter().all(is_one) => None,
            Some(_) | None => Some(format!("{name} is a list of {what}")),
        };
        match self.kind {
            Kind::Text | Kind::Word => (!value.is_string()).then(|| format!("{name} is a string")),
            Kind::Flag(_) => (!value.is_boolean()).then(|| format!("{name} is true or false")),
            Kind::Number { min, max, .. } => {
                let is_in = integer(value).is_some_and(|number| (min..=max).contains(&number));
                (!is_in).then(|| format!("{name} is an integer from {min} to {max}"))
            }
            Kind::Choice(choices, _) => {
                let is_one = value.as_str().is_some_and(|value| choices.contains(&value));
                (!is_one).then(|| format!("{name} is one of {}", choices.join(", ")))
            }
            Kind::Words(max) | Kind::Texts(max) => many(max, "strings", &Value::is_string),
            Kind::Numbers(max) => many(max, "integers", &|value| integer(value).is_some()),
            Kind::Item(fields) => match value.as_object() {
                Some(object) => fault(fields.iter(), object).map(|why| format!("{name}: {why}")),
                None => Some(format!("{name} is an object")),
            },
            Kind::Items(fields, max) => many(max, "objects", &Value::is_object).or_else(|| {
                let mut objects = value.as_array()?.iter().filter_map(Value::as_object);
                objects.find_map(|object| fault(fields.iter(), object)).map(|why| format!("{name}: {why}"))
            }),
        }
    }
}

/// The schema of an object. Unknown properties are allowed.
pub fn object<'a>(fields: impl Iterator<Item = &'a Field> + Clone) -> Value {
    let required: Vec<_> = fields.clone().filter(|field| field.is_required).map(|field| field.name).collect();
    let properties: JsonObject = fields.map(|field| (field.name.to_owned(), field.schema())).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Why an object has not this shape.
pub fn fault<'a>(mut fields: impl Iterator<Item = &'a Field>, object: &JsonObject) -> Option<String> {
    fields.find_map(|field| match object.get(field.name) {
        None | Some(Value::Null) => field.is_required.then(|| format!("{} is missing", field.name)),
        Some(value) => field.fault(value),
    })
}

/// Changes the free texts of an object.
pub fn map_texts<'a>(
    fields: impl Iterator<Item = &'a Field>,
    object: &mut JsonObject,
    change: &dyn Fn(&str) -> String,
) {
    let change_one = |value: &mut Value| {
        if let Value::String(text) = value {
            *text = change(text);
        }
    };
    for field in fields {
        let Some(value) = object.get_mut(field.name) else { continue };
        match field.kind {
            Kind::Text => change_one(value),
            Kind::Texts(_) => value.as_array_mut().into_iter().flatten().for_each(change_one),
            Kind::Item(fields) => {
                value.as_object_mut().into_iter().for_each(|object| map_texts(fields.iter(), object, change));
            }
            Kind::Items(fields, _) => {
                let objects = value.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
                objects.for_each(|object| map_texts(fields.iter(), object, change));
            }
            Kind::Word | Kind::Flag(_) | Kind::Number { .. } | Kind::Choice(..) | Kind::Words(_) | Kind::Numbers(_) => {
            }
        }
    }
}

/// An integer, also when it is written as `60.0`.
pub fn integer(value: &Value) -> Option<i64> {
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    value.as_i64().or_else(|| value.as_f64().filter(whole).map(|number| number as i64))
}
