//! Fills arguments of scripted calls from earlier results of tools, such as the id of a claimed task.

use serde_json::{Deserializer, Value};

/// The arguments, with each text `"{{NAME}}"` replaced by the last member NAME of the results; fails if there is none.
pub(crate) fn fill(args: &Value, results: &[Value]) -> Result<Value, String> {
    match args {
        Value::String(text) => match text.strip_prefix("{{").and_then(|text| text.strip_suffix("}}")) {
            Some(name) => {
                let mut texts = results.iter().rev().filter_map(|result| result["text"].as_str());
                texts.find_map(|text| member(text, name)).ok_or_else(|| format!("no result so far has {name:?}"))
            }
            None => Ok(args.clone()),
        },
        Value::Array(parts) => parts.iter().map(|part| fill(part, results)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| Ok((name.clone(), fill(value, results)?))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(args.clone()),
    }
}

/// The last member with that name in a text that contains JSON: clients wrap results in words of their own.
fn member(text: &str, name: &str) -> Option<Value> {
    let (_, after) = text.rsplit_once(&format!("\"{name}\""))?;
    let value = after.trim_start().strip_prefix(':')?;
    Deserializer::from_str(value).into_iter().next()?.ok()
}
