//! The tools as clients see them: read from `tools.toml`.

use std::collections::BTreeMap;
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
    /// The properties that every result may have.
    result: String,
    types: BTreeMap<String, String>,
    tools: Vec<Tool>,
}

#[derive(Debug, Deserialize)]
pub struct Tool {
    pub name: String,
    title: String,
    effect: Effect,
    description: String,
    #[serde(default)]
    pub required: Vec<String>,
    /// The schema of each argument.
    #[serde(rename = "input")]
    pub arguments: JsonObject,
    output: String,
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
        let hints = ToolAnnotations::with_title(&self.title)
            .read_only(self.effect == Effect::Reads)
            .destructive(false)
            .idempotent(self.effect != Effect::Adds)
            .open_world(false);
        let arguments = json!({ "type": "object", "properties": self.arguments, "required": self.required });
        let mut result = outline(&format!("{} {}", TOOLS.result, self.output));
        result["required"] = json!(["status"]);
        McpTool::new(self.name.as_str(), self.description.as_str(), object(arguments))
            .with_title(&self.title)
            .with_raw_output_schema(object(result).into())
            .with_annotations(hints)
    }
}

/// All tools, as clients get them.
pub fn listed() -> Vec<McpTool> {
    TOOLS.tools.iter().map(Tool::listed).collect()
}

/// The schema of a result, written as `name:type` pairs. Only types, since a model pays for each listing of the tools.
fn outline(written: &str) -> Value {
    let of_type =
        |name: &str| TOOLS.types.get(name).map_or_else(|| json!({ "type": name }), |written| outline(written));
    let property = |(name, kind): (&str, &str)| {
        let items = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']'));
        let schema = items.map_or_else(|| of_type(kind), |items| json!({ "type": "array", "items": of_type(items) }));
        (name.to_owned(), schema)
    };
    let pairs = written.split_whitespace().filter_map(|pair| pair.split_once(':'));
    json!({ "type": "object", "properties": pairs.map(property).collect::<JsonObject>() })
}
