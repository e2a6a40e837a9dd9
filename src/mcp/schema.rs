//! The shapes of arguments and results, and the check of arguments against them.
//!
//! A client may drop `default`, `minimum` and `maximum`, so the descriptions repeat them. There is no `anyOf`, `$ref` or nullable
//! type, because some clients drop these too.

use std::collections::BTreeMap;

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};

/// An argument.
#[derive(Debug, Clone, Deserialize)]
pub struct Field {
    pub name: String,
    #[serde(flatten)]
    kind: Kind,
    #[serde(default, rename = "required")]
    is_required: bool,
    about: String,
}

/// The type of an argument.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Kind {
    /// Words of an agent; secrets are redacted.
    Text,
    /// A name, an id or a path, kept as it is.
    Word,
    Flag {
        default: bool,
    },
    Number {
        #[serde(default)]
        min: i64,
        #[serde(default = "number_max")]
        max: i64,
        default: Option<i64>,
    },
    Choice {
        of: Vec<String>,
        default: Option<String>,
    },
    Words {
        max: usize,
    },
    Texts {
        max: usize,
    },
    Numbers {
        max: usize,
    },
    Items {
        max: usize,
        items: Vec<Field>,
    },
}

/// The largest integer that every client can write.
const fn number_max() -> i64 {
    (1 << 53) - 1
}

impl Field {
    fn schema(&self) -> Value {
        let mut schema = match &self.kind {
            Kind::Text | Kind::Word => json!({ "type": "string" }),
            Kind::Flag { .. } => json!({ "type": "boolean" }),
            Kind::Number { min, max, .. } => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Kind::Choice { of, .. } => json!({ "type": "string", "enum": of }),
            Kind::Words { max } | Kind::Texts { max } => {
                json!({ "type": "array", "maxItems": max, "items": { "type": "string" } })
            }
            Kind::Numbers { max } => json!({ "type": "array", "maxItems": max, "items": { "type": "integer" } }),
            Kind::Items { max, items } => json!({ "type": "array", "maxItems": max, "items": object(items) }),
        };
        schema["description"] = json!(self.description());
        if let Some(default) = self.default() {
            schema["default"] = default;
        }
        schema
    }

    pub fn default(&self) -> Option<Value> {
        match &self.kind {
            Kind::Flag { default } => Some(json!(default)),
            Kind::Number { default, .. } => default.map(Value::from),
            Kind::Choice { default, .. } => default.clone().map(Value::from),
            Kind::Text
            | Kind::Word
            | Kind::Words { .. }
            | Kind::Texts { .. }
            | Kind::Numbers { .. }
            | Kind::Items { .. } => None,
        }
    }

    fn description(&self) -> String {
        let range = match &self.kind {
            Kind::Number { max, .. } if *max == number_max() => None,
            Kind::Number { min, max, .. } => Some(format!("{min} to {max}")),
            Kind::Words { max } | Kind::Texts { max } | Kind::Numbers { max } | Kind::Items { max, .. } => {
                Some(format!("at most {max}"))
            }
            Kind::Text | Kind::Word | Kind::Flag { .. } | Kind::Choice { .. } => None,
        };
        let default = self.default().map(|default| format!("default {}", default.to_string().trim_matches('"')));
        let facts: Vec<_> = range.into_iter().chain(default).collect();
        if facts.is_empty() { self.about.clone() } else { format!("{} ({})", self.about, facts.join("; ")) }
    }

    /// Why a value is none of this argument.
    fn fault(&self, value: &Value) -> Option<String> {
        let name = &self.name;
        let unless = |is_so: bool, what: &str| (!is_so).then(|| format!("{name} is {what}"));
        let list = |max: usize, what: &str, is_one: fn(&Value) -> bool| match value.as_array() {
            Some(list) if list.len() > max => Some(format!("{name} has {} entries; at most {max}", list.len())),
            Some(list) => unless(list.iter().all(is_one), what),
            None => unless(false, what),
        };
        match &self.kind {
            Kind::Text | Kind::Word => unless(value.is_string(), "a string"),
            Kind::Flag { .. } => unless(value.is_boolean(), "true or false"),
            Kind::Number { min, max, .. } => {
                let is_in = integer(value).is_some_and(|number| (*min..=*max).contains(&number));
                unless(is_in, &format!("an integer from {min} to {max}"))
            }
            Kind::Choice { of, .. } => {
                let is_one = value.as_str().is_some_and(|value| of.iter().any(|choice| choice == value));
                unless(is_one, &format!("one of {}", of.join(", ")))
            }
            Kind::Words { max } | Kind::Texts { max } => list(*max, "a list of strings", Value::is_string),
            Kind::Numbers { max } => list(*max, "a list of integers", |value| integer(value).is_some()),
            Kind::Items { max, items } => list(*max, "a list of objects", Value::is_object).or_else(|| {
                let mut objects = value.as_array()?.iter().filter_map(Value::as_object);
                objects.find_map(|object| fault(items, object)).map(|why| format!("{name}: {why}"))
            }),
        }
    }

    fn redact(&self, value: &mut Value, redacted: &dyn Fn(&str) -> String) {
        match (&self.kind, value) {
            (Kind::Text, Value::String(text)) => *text = redacted(text),
            (Kind::Texts { .. }, Value::Array(texts)) => {
                for text in texts {
                    *text = json!(redacted(text.as_str().unwrap_or_default()));
                }
            }
            (Kind::Items { items, .. }, Value::Array(objects)) => {
                objects.iter_mut().filter_map(Value::as_object_mut).for_each(|object| redact(items, object, redacted));
            }
            (_, _) => {}
        }
    }
}

/// The schema of arguments. Unknown ones are allowed.
pub fn object<'a>(fields: impl IntoIterator<Item = &'a Field> + Clone) -> Value {
    let required: Vec<_> =
        fields.clone().into_iter().filter(|field| field.is_required).map(|field| &field.name).collect();
    let properties: JsonObject = fields.into_iter().map(|field| (field.name.clone(), field.schema())).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Why an object has not this shape.
pub fn fault<'a>(fields: impl IntoIterator<Item = &'a Field>, object: &JsonObject) -> Option<String> {
    fields.into_iter().find_map(|field| match object.get(&field.name) {
        None | Some(Value::Null) => field.is_required.then(|| format!("{} is missing", field.name)),
        Some(value) => field.fault(value),
    })
}

/// Redacts the texts of an object.
pub fn redact<'a>(
    fields: impl IntoIterator<Item = &'a Field>,
    object: &mut JsonObject,
    redacted: &dyn Fn(&str) -> String,
) {
    for field in fields {
        if let Some(value) = object.get_mut(&field.name) {
            field.redact(value, redacted);
        }
    }
}

/// An integer, also when it is written as `60.0`.
pub fn integer(value: &Value) -> Option<i64> {
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
    value.as_i64().or_else(|| value.as_f64().filter(whole).map(|number| number as i64))
}

/// The schema of a result, written as `name:type` pairs. It has types alone: a model pays for each listing of the tools.
pub fn outline(written: &str, types: &BTreeMap<String, String>) -> Value {
    let of_type = |name: &str| match types.get(name) {
        Some(written) => outline(written, types),
        None => json!({ "type": name }),
    };
    let property = |(name, kind): (&str, &str)| {
        let items = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']'));
        let schema = items.map_or_else(|| of_type(kind), |items| json!({ "type": "array", "items": of_type(items) }));
        (name.to_owned(), schema)
    };
    let properties: JsonObject =
        written.split_whitespace().filter_map(|pair| pair.split_once(':')).map(property).collect();
    json!({ "type": "object", "properties": properties })
}
