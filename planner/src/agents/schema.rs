//! The JSON schema of an agent's plan, made from its role and its tools; plans are checked against it.

use serde_json::{Value, json};

use crate::agents::registry::{TOOL_COMMAND_CHARS_MAX, ToolRegistry};
use crate::agents::role::FormPart;
use crate::agents::{ID_CHARS_MAX, PlanError, Role, STEP_TIMEOUT_MS_MAX, STEPS_MAX};
use crate::plan::RETRIES_MAX;
use crate::protocol::{AgentType, REQUEST_CHARS_MAX, REQUEST_TIMEOUT_MS_MAX};

/// The schema of the plans of a type of agent.
pub fn schema(agent: AgentType, registry: &ToolRegistry) -> Value {
    let role = Role::of(agent);
    let goal = json!({ "id": id(), "description": text(), "done_when": text() });
    let constraint = json!({ "description": text(), "goals": list(&text()) });
    let resources = json!({
        "files": map(&list(&text())),
        "agent_types": list(&json!({ "enum": AgentType::ALL })),
        "capacities": map(&json!({ "type": "integer", "minimum": 0 })),
    });
    let mut by = list(&json!({ "enum": ["path", "symbol", "text"] }));
    by["minItems"] = 1.into();
    let resolution = json!({ "by": by, "ambiguous": { "enum": ["all", "first", "ask"] } });
    let steps = list(&object(&["id", "description"], &step(role, registry)));
    let mut fields = json!({ "steps": steps, "dependencies": map(&list(&text())) });
    for part in role.parts {
        let (name, part) = match part {
            FormPart::Goals => ("goals", list(&object(&["id", "description"], &goal))),
            FormPart::Constraints => ("constraints", list(&object(&["description"], &constraint))),
            FormPart::Updates => ("updates", steps.clone()),
            FormPart::Resources => ("resources", object(&[], &resources)),
            FormPart::Resolution => ("resolution", object(&["by"], &resolution)),
        };
        fields[name] = part;
    }
    object(&["steps"], &fields)
}

/// The fields of a step.
fn step(role: &Role, registry: &ToolRegistry) -> Value {
    let tools = || registry.tools_of(role.agent);
    let names = tools().map(|tool| tool.name.as_str()).collect::<Vec<_>>();
    let command = json!({ "type": "string", "minLength": 1, "maxLength": TOOL_COMMAND_CHARS_MAX });
    let mut fields = json!({
        "id": id(),
        "description": text(),
        "timeout_ms": number(1, STEP_TIMEOUT_MS_MAX),
        "retry": number(0, RETRIES_MAX.into()),
        "deadline_ms": number(1, STEP_TIMEOUT_MS_MAX),
    });
    if role.has(FormPart::Goals) {
        fields["goals"] = list(&text());
    }
    if !names.is_empty() {
        fields["tool"] = json!({ "enum": names });
    }
    if tools().any(|tool| tool.command.is_some()) {
        fields["args"] = list(&json!({ "type": "string" }));
    }
    if tools().any(|tool| tool.takes_command) {
        fields["command"] = command.clone();
        fields["undo"] = command;
    }
    if !role.delegates_to.is_empty() {
        fields["agent"] = json!({ "enum": role.delegates_to });
    }
    if !role.asks.is_empty() {
        fields["request"] = request(role);
    }
    fields
}

fn request(role: &Role) -> Value {
    let about = json!({ "type": "string", "minLength": 1, "maxLength": REQUEST_CHARS_MAX });
    let of = |field: &str| object(&[field], &json!({ field: about }));
    let mut kinds = object(&[], &json!({ "analyse": of("text"), "extract": of("context"), "locate": of("entity") }));
    kinds["minProperties"] = 1.into();
    kinds["maxProperties"] = 1.into();
    let (target, time) = (json!({ "enum": role.asks }), number(1, REQUEST_TIMEOUT_MS_MAX));
    let required = ["target_agent", "request", "timeout_ms"];
    object(&required, &json!({ "target_agent": target, "request": kinds, "timeout_ms": time }))
}

fn object(required: &[&str], fields: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": fields })
}

fn map(of: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": of })
}

fn list(of: &Value) -> Value {
    json!({ "type": "array", "maxItems": STEPS_MAX, "items": of })
}

fn text() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn id() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": ID_CHARS_MAX })
}

fn number(min: u64, max: u64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

/// True if a text can be the id of a step or a goal.
pub(super) fn is_id(id: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    (1..=ID_CHARS_MAX).contains(&id.len()) && id.chars().all(is_plain)
}

/// Checks a part of a plan at a place by its schema. Types and required fields are checked where the plan is read.
pub(super) fn check(agent: AgentType, value: &Value, schema: &Value, at: &str) -> Result<(), PlanError> {
    let rule = |rule: String| Err(PlanError::Rule(at.to_owned(), rule));
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            let (min, max) = (schema["minimum"].as_u64().unwrap_or(0), schema["maximum"].as_u64().unwrap_or(u64::MAX));
            if !number.as_u64().is_some_and(|number| (min..=max).contains(&number)) {
                return rule(format!("{number} is not allowed: {min} to {max}"));
            }
        }
        Value::String(text) => {
            if let Some(broken) = broken_by_text(text, schema) {
                return rule(broken);
            }
        }
        Value::Array(items) => {
            let (min, max) =
                (schema["minItems"].as_u64().unwrap_or(0), schema["maxItems"].as_u64().unwrap_or(u64::MAX));
            if !(min..=max).contains(&(items.len() as u64)) {
                return rule(format!("{} entries are not allowed: {min} to {max}", items.len()));
            }
            for (n, item) in items.iter().enumerate() {
                check(agent, item, &schema["items"], &format!("{at}/{n}"))?;
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let at = format!("{at}/{name}");
                let of_map = Some(&schema["additionalProperties"]).filter(|schema| schema.is_object());
                match schema["properties"].get(name).or(of_map) {
                    Some(schema) => check(agent, value, schema, &at)?,
                    None => return Err(PlanError::Rule(at, format!("a {agent} plan does not have this field"))),
                }
            }
        }
    }
    Ok(())
}

fn broken_by_text(text: &str, schema: &Value) -> Option<String> {
    let max = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().filter_map(Value::as_str).collect::<Vec<_>>();
        return (!values.contains(&text)).then(|| format!("{text:?} is not one of {}", values.join(", ")));
    }
    if schema.get("pattern").is_some() && !is_id(text) {
        return Some(format!("{text:?} is not an id: 1 to {ID_CHARS_MAX} letters, digits, - and _"));
    }
    if schema.get("minLength").is_some() && text.trim().is_empty() {
        return Some("this is empty".into());
    }
    let n_chars = text.chars().count() as u64;
    if n_chars > max {
        return Some(format!("{n_chars} characters are not allowed: 1 to {max}"));
    }
    text.contains('\0').then(|| "a text holds no NUL".into())
}
