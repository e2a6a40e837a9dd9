//! The tools as clients see them: read from `tools.toml`.

use std::sync::LazyLock;

use rmcp::model::{JsonObject, Tool as McpTool, ToolAnnotations, object};
use serde::Deserialize;
use serde_json::{Value, json};

/// The argument that makes a repeated call harmless.
pub const KEY: &str = "idempotency_key";
/// The longest name, id or key of an argument, in characters.
const NAME_CHARS_MAX: usize = 200;
/// The tool that gives a caller its identity.
pub const JOIN: &str = "join";

/// `tools.toml`.
#[derive(Deserialize)]
struct Tools {
    /// The arguments that most tools share.
    shared: JsonObject,
    tools: Vec<Tool>,
}

#[derive(Debug, Deserialize)]
pub struct Tool {
    pub name: String,
    effect: Effect,
    description: String,
    #[serde(default)]
    pub required: Vec<String>,
    /// The schema of each argument.
    #[serde(rename = "input")]
    pub arguments: JsonObject,
}

/// The effect of a call on the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Effect {
    /// None.
    Reads,
    /// The same effect when repeated.
    Sets,
    /// A further effect with each call.
    Adds,
}

static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
    let mut tools: Tools = toml::from_str(include_str!("tools.toml")).expect("a test reads it");
    for tool in tools.tools.iter_mut().filter(|tool| tool.name != JOIN) {
        let takes = |name: &str| name != KEY || tool.effect != Effect::Reads;
        let shared = tools.shared.iter().filter(|(name, _)| takes(name));
        tool.arguments.extend(shared.map(|(name, schema)| (name.clone(), schema.clone())));
    }
    tools.tools.iter_mut().flat_map(|tool| tool.arguments.values_mut()).for_each(bound);
    tools
});

/// Limits the texts of a schema that have no limit yet.
fn bound(schema: &mut Value) {
    match schema["type"].as_str() {
        Some("string") if schema["enum"].is_null() && schema["maxLength"].is_null() => {
            schema["maxLength"] = json!(NAME_CHARS_MAX);
        }
        Some("array") => bound(&mut schema["items"]),
        Some("object") => schema["properties"].as_object_mut().into_iter().flatten().for_each(|(_, one)| bound(one)),
        _other => {}
    }
}

impl Tool {
    pub fn named(name: &str) -> Option<&'static Self> {
        TOOLS.tools.iter().find(|tool| tool.name == name)
    }

    fn listed(&'static self) -> McpTool {
        let hints = match self.effect {
            Effect::Reads => ToolAnnotations::new().read_only(true),
            Effect::Sets => ToolAnnotations::new().destructive(false).idempotent(true),
            Effect::Adds => ToolAnnotations::new().destructive(false),
        };
        // Clients that cannot repeat a call by its key need not know of it where nothing is done twice.
        let is_shown = |name: &str| name != KEY || self.effect == Effect::Adds;
        let shown = self.arguments.iter().filter(|(name, _)| is_shown(name));
        let properties: JsonObject = shown.map(|(name, schema)| (name.clone(), without_limits(schema))).collect();
        let mut arguments = json!({ "type": "object", "properties": properties });
        if !self.required.is_empty() {
            arguments["required"] = json!(self.required);
        }
        McpTool::new(self.name.as_str(), self.description.as_str(), object(arguments)).with_annotations(hints)
    }
}

/// A schema without its limits and defaults: models pay for each listing, and a refusal names them.
fn without_limits(schema: &Value) -> Value {
    const LIMITS: [&str; 6] = ["maxLength", "maxItems", "minimum", "maximum", "default", "minLength"];
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, field)| !LIMITS.contains(&name.as_str()) || field.is_object());
            kept.map(|(name, field)| (name.clone(), without_limits(field))).collect()
        }
        Value::Array(list) => list.iter().map(without_limits).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

/// All tools, as clients get them.
pub fn listed() -> Vec<McpTool> {
    TOOLS.tools.iter().map(Tool::listed).collect()
}
