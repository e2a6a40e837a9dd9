//! The tools: their names, descriptions, hints and schemas, in a fixed order.

mod fields;
mod table;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool as McpTool, ToolAnnotations};
use serde_json::Value;
use strum::IntoEnumIterator;

use self::fields::{AGENT, KEY, RESULT};
use super::schema::{Field, object};

/// A tool, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::EnumString, strum::EnumIter)]
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

/// What a tool is to clients.
pub struct Description {
    title: &'static str,
    text: &'static str,
    effect: Effect,
    input: &'static [Field],
    output: &'static [Field],
}

/// What a call does to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Reads,
    /// The same if it is repeated.
    Sets,
    /// More with each call.
    Adds,
}

impl Tool {
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn is_read_only(self) -> bool {
        self.describe().effect == Effect::Reads
    }

    /// Whether it takes an idempotency key. `join` takes none: its result may hold a handle, which is stored nowhere.
    pub fn takes_key(self) -> bool {
        !self.is_read_only() && self != Self::Join
    }

    /// The properties of its arguments.
    pub fn input(self) -> impl Iterator<Item = &'static Field> + Clone {
        let agent = (self != Self::Join).then_some(&AGENT);
        self.describe().input.iter().chain(agent).chain(self.takes_key().then_some(&KEY))
    }

    fn listed(self) -> McpTool {
        let Description { title, text, effect, output, .. } = self.describe();
        let hints = ToolAnnotations::with_title(*title)
            .read_only(*effect == Effect::Reads)
            .destructive(false)
            .idempotent(*effect != Effect::Adds)
            .open_world(false);
        McpTool::new(self.name(), *text, schema(object(self.input())))
            .with_title(*title)
            .with_raw_output_schema(schema(object(RESULT.iter().chain(*output))))
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
