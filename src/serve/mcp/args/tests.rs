//! Tests of the limits of arguments: every text and list has one.

use rmcp::model::object;
use serde_json::json;

use super::super::tools::listed;
use super::*;

/// Puts a value in its place in the arguments.
type Put<'a> = &'a dyn Fn(Value) -> Value;

/// Calls `look` for each text and list below a schema, with a way to put a value in its place.
fn each(schema: &Value, path: &str, put: Put<'_>, look: &mut dyn FnMut(&Value, &str, Put<'_>)) {
    match schema["type"].as_str() {
        Some("string") if schema["enum"].is_null() => look(schema, path, put),
        Some("array") => {
            look(schema, path, put);
            each(&schema["items"], path, &|value| put(json!([value])), look);
        }
        Some("object") => {
            for (name, one) in schema["properties"].as_object().into_iter().flatten() {
                each(one, &format!("{path}.{name}"), &|value| put(json!({ name: value })), look);
            }
        }
        _other => {}
    }
}

#[test]
fn every_text_and_list_of_every_tool_has_a_limit() {
    let mut n_checked = 0;
    for tool in listed() {
        // The list leaves the limits out.
        let schema = json!({ "type": "object", "properties": Tool::named(&tool.name).unwrap().arguments });
        each(&schema, &tool.name, &|value| value, &mut |schema, path, put| {
            let is_text = schema["type"] == "string";
            let max = if is_text { &schema["maxLength"] } else { &schema["maxItems"] };
            let max = usize::try_from(max.as_u64().unwrap_or_else(|| panic!("{path} has no limit"))).unwrap();
            let of = |n: usize| if is_text { json!("é".repeat(n)) } else { json!(vec![valid(&schema["items"]); n]) };
            let checked = |n| Args::check(&tool.name, Some(object(with_required(&tool.name, put(of(n))))));
            assert!(checked(max).is_ok(), "{path}: {:?}", checked(max).err());
            let refused = checked(max + 1).err().unwrap_or_else(|| panic!("{path} takes {} parts", max + 1));
            assert!(refused.message.contains("does not fit"), "{path}: {}", refused.message);
            n_checked += 1;
        });
    }
    assert!(n_checked > 50, "{n_checked}");
}

fn valid(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("integer") => json!(1),
        Some("object") => json!({}),
        _text => schema["enum"].get(0).cloned().unwrap_or(json!("x")),
    }
}

/// The arguments with values for those that the tool requires.
fn with_required(tool: &str, mut arguments: Value) -> Value {
    let tool = Tool::named(tool).unwrap();
    for name in &tool.required {
        if arguments[name].is_null() {
            arguments[name] =
                if tool.arguments[name]["type"] == "array" { json!([]) } else { valid(&tool.arguments[name]) };
        }
    }
    arguments
}
