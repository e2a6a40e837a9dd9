//! The JSON schema of an agent's plan, made from its role. It names the agent's own tools and no others.

use serde_json::{Map, Value, json};

use crate::agents::registry::ToolRegistry;
use crate::agents::{ID_CHARS_MAX, Part, Role, STEP_TIMEOUT_MS_MAX, STEPS_MAX};
use crate::plan::RETRIES_MAX;
use crate::protocol::{Ability, AgentType, REQUEST_TIMEOUT_MS_MAX};

/// The schema of the plans of a type of agent.
#[must_use]
pub fn schema(agent: AgentType, registry: &ToolRegistry) -> Value {
    let role = Role::of(agent);
    let goal = object(&["id", "description"], [("id", id()), ("description", text()), ("done_when", text())]);
    let constraint = object(&["description"], [("description", text()), ("goals", list(&text()))]);
    let steps = list(&step(role, registry));
    let resources = object(
        &[],
        [
            ("files", by_name(&list(&text()))),
            ("agent_types", list(&json!({ "enum": AgentType::ALL }))),
            ("capacities", by_name(&json!({ "type": "integer", "minimum": 0 }))),
        ],
    );
    let by = list(&json!({ "enum": ["path", "symbol", "text"] }));
    let resolution = object(&["by"], [("by", by), ("ambiguous", json!({ "enum": ["all", "first", "ask"] }))]);
    let parts = [
        (Part::Goals, "goals", list(&goal)),
        (Part::Constraints, "constraints", list(&constraint)),
        (Part::Updates, "updates", steps.clone()),
        (Part::Resources, "resources", resources),
        (Part::Resolution, "resolution", resolution),
    ];
    let parts = parts.into_iter().filter(|(part, ..)| role.has(*part)).map(|(_, name, schema)| (name, schema));
    object(&["steps"], parts.chain([("steps", steps), ("dependencies", by_name(&list(&text())))]))
}

fn step(role: &Role, registry: &ToolRegistry) -> Value {
    let tools = || registry.tools_of(role.agent);
    let (has_shell, has_commands) = (registry.has_shell(role.agent), tools().any(|tool| tool.command.is_some()));
    let names = tools().map(|tool| tool.name.as_str()).collect::<Vec<_>>();
    let fields = [
        (true, "id", id()),
        (true, "description", text()),
        (role.has(Part::Goals), "goals", list(&text())),
        (!names.is_empty(), "tool", json!({ "enum": names })),
        (has_commands, "args", list(&json!({ "type": "string" }))),
        (has_shell, "command", text()),
        (!role.delegates_to.is_empty(), "agent", json!({ "enum": role.delegates_to })),
        (!role.asks.is_empty(), "request", request(role)),
        (true, "timeout_ms", number(1, STEP_TIMEOUT_MS_MAX)),
        (true, "retry", number(0, RETRIES_MAX.into())),
        (true, "deadline_ms", number(1, STEP_TIMEOUT_MS_MAX)),
        (has_shell, "undo", text()),
    ];
    let fields = fields.into_iter().filter(|(is_there, ..)| *is_there).map(|(_, name, schema)| (name, schema));
    object(&["id", "description"], fields)
}

fn request(role: &Role) -> Value {
    let kinds = [(Ability::Analyse, "text"), (Ability::Extract, "context"), (Ability::Locate, "entity")];
    let kinds = kinds.map(|(ability, field)| {
        let name = ability.as_str();
        object(&[name], [(name, object(&[field], [(field, text())]))])
    });
    object(
        &["target_agent", "request", "timeout_ms"],
        [
            ("target_agent", json!({ "enum": role.asks })),
            ("request", json!({ "oneOf": kinds })),
            ("timeout_ms", number(1, REQUEST_TIMEOUT_MS_MAX)),
        ],
    )
}

fn object<'a>(required: &[&str], fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect::<Map<_, _>>();
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": fields })
}

fn by_name(of: &Value) -> Value {
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
