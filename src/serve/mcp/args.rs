//! The arguments of a call, checked against the schema of its tool.

use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::reply::{Refused, drop_nulls};
use super::tools::{KEY, Tool};

/// Checked arguments. A null and an empty text count as absent.
#[derive(Debug, Clone)]
pub struct Args {
    pub tool: &'static Tool,
    values: JsonObject,
}

impl Args {
    /// Checks arguments. Unknown ones are ignored.
    pub fn check(tool: &str, values: Option<JsonObject>) -> Result<Self, Refused> {
        let (tool, mut values) = (Tool::named(tool), values.unwrap_or_default());
        let tool = tool.ok_or_else(|| Refused::invalid("there is no tool of this name"))?;
        values.values_mut().for_each(drop_nulls);
        values.retain(|name, value| tool.arguments.contains_key(name) && !value.is_null() && value != "");
        if let Some(missing) = tool.required.iter().find(|name| !values.contains_key(*name)) {
            return Err(Refused::invalid(format!("{missing} is missing")));
        }
        for (name, value) in &values {
            if let Some(schema) = tool.arguments.get(name).filter(|schema| !fits(schema, value)) {
                return Err(Refused::invalid(format!("{name} does not fit {schema}")));
            }
        }
        Ok(Self { tool, values })
    }

    /// An argument. If it is absent: its default in the schema, else the default of its type.
    pub fn get<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        let value = self.values.get(name).or_else(|| self.tool.arguments.get(name)?.get("default"));
        value.map(|value| T::deserialize(value).expect("its schema allows no other values")).unwrap_or_default()
    }

    /// True if an argument was given.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// A digest of the arguments, without the key and the agent.
    pub fn digest(&self) -> String {
        let mut values = self.values.clone();
        values.retain(|name, _| name != KEY && name != "agent");
        crate::ui::text::sha256(&json!(values).to_string())
    }
}

/// True if a value fits a schema as `tools.toml` uses them. Without a minimum, an integer must be at least 0.
fn fits(schema: &Value, value: &Value) -> bool {
    let is_within = |number: u64, max: &str| {
        let (min, max) = (schema["minimum"].as_u64(), schema[max].as_u64());
        (min.unwrap_or(0)..=max.unwrap_or(i64::MAX.unsigned_abs())).contains(&number)
    };
    match (schema["type"].as_str(), value) {
        (Some("boolean"), Value::Bool(_)) => true,
        (Some("string"), Value::String(text)) => schema["enum"]
            .as_array()
            .map_or_else(|| is_within(text.chars().count() as u64, "maxLength"), |choices| choices.contains(value)),
        (Some("integer"), Value::Number(number)) => number.as_u64().is_some_and(|number| is_within(number, "maximum")),
        (Some("array"), Value::Array(list)) => {
            is_within(list.len() as u64, "maxItems") && list.iter().all(|one| fits(&schema["items"], one))
        }
        (Some("object"), Value::Object(object)) => {
            object.iter().all(|(name, one)| schema["properties"].get(name).is_none_or(|schema| fits(schema, one)))
        }
        (_, _) => false,
    }
}

#[cfg(test)]
mod tests;
