//! The tools: their names, and their descriptions in `tools.toml`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use rmcp::model::{JsonObject, Tool as McpTool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Value, json};
use strum::{EnumCount, IntoEnumIterator};

use super::schema::{Field, object, outline};

/// A tool, in the order in which they are listed and described.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString, strum::EnumIter, strum::EnumCount,
)]
#[strum(serialize_all = "snake_case")]
pub enum Tool {
    Join,
    Leave,
    Report,
    CheckPaths,
    ReservePaths,
    RenewPaths,
    ReleasePaths,
    NextTask,
    ClaimTask,
    UpdateTask,
    CreateTasks,
    ListTasks,
    ListLeases,
    SendMessage,
    ReadInbox,
    AckMessage,
    WaitForEvents,
    GetStatus,
    AskPerson,
}

/// `tools.toml`.
#[derive(Deserialize)]
struct Descriptions {
    /// The handle of an agent, and the idempotency key.
    shared: [Field; 2],
    /// What every result may have.
    result: String,
    types: BTreeMap<String, String>,
    tools: [Description; Tool::COUNT],
}

/// What a tool is to clients.
#[derive(Deserialize)]
struct Description {
    name: String,
    title: String,
    effect: Effect,
    description: String,
    input: Vec<Field>,
    output: String,
}

/// What a call does to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Effect {
    /// Nothing.
    Reads,
    /// The same if it is repeated.
    Sets,
    /// More with each call.
    Adds,
}

static DESCRIPTIONS: LazyLock<Descriptions> = LazyLock::new(|| {
    let descriptions: Descriptions = toml::from_str(include_str!("tools.toml")).expect("a test reads it");
    for (tool, described) in Tool::iter().zip(&descriptions.tools) {
        assert_eq!(tool.name(), described.name, "the order is that of the names");
    }
    descriptions
});

impl Tool {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it takes an idempotency key. `join` takes none: its result may hold a handle, which is stored nowhere.
    pub fn takes_key(self) -> bool {
        self.description().effect != Effect::Reads && self != Self::Join
    }

    /// Its arguments.
    pub fn input(self) -> impl Iterator<Item = &'static Field> + Clone {
        let [agent, key] = &DESCRIPTIONS.shared;
        let agent = (self != Self::Join).then_some(agent);
        self.description().input.iter().chain(agent).chain(self.takes_key().then_some(key))
    }

    fn description(self) -> &'static Description {
        &DESCRIPTIONS.tools[self as usize]
    }

    fn listed(self) -> McpTool {
        let Description { title, effect, description, output, .. } = self.description();
        let hints = ToolAnnotations::with_title(title)
            .read_only(*effect == Effect::Reads)
            .destructive(false)
            .idempotent(*effect != Effect::Adds)
            .open_world(false);
        let mut result = outline(&format!("{} {output}", DESCRIPTIONS.result), &DESCRIPTIONS.types);
        result["required"] = json!(["status"]);
        McpTool::new(self.name(), description.as_str(), schema(object(self.input())))
            .with_title(title)
            .with_raw_output_schema(schema(result))
            .with_annotations(hints)
    }
}

/// All tools, as clients get them.
pub fn listed() -> Vec<McpTool> {
    Tool::iter().map(Tool::listed).collect()
}

fn schema(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(object) => Arc::new(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Arc::default(),
    }
}
