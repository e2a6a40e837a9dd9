//! What each tool does: arguments to calls of the [`Crew`](crewlog_executors::crew::Crew), and its answers to JSON.

mod leases;
mod messages;
mod presence;
mod tasks;
mod waiting;

use rmcp::model::JsonObject;
use serde_json::Value;

/// The object of a `json!` literal.
fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => without_null(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => JsonObject::new(),
    }
}

/// Absent properties are left out: no schema allows null.
fn without_null(object: JsonObject) -> JsonObject {
    object.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// The same as a value, for entries of lists.
fn entry(value: Value) -> Value {
    Value::Object(object(value))
}
