//! Requests to a model, as data.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The most bytes of a request: system prompt and messages together.
pub const PROMPT_BYTES_MAX: usize = 400_000;
/// The most bytes of a refused answer that the repair turn quotes.
const ANSWER_QUOTED_BYTES_MAX: usize = 32_000;

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestPurpose {
    /// A plan of a text.
    Plan,
    /// The kinds and dependencies of tasks.
    Advice,
    /// A plan of an agent.
    AgentPlan,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    /// The program that asks.
    User,
    /// The model.
    Assistant,
}

/// One message of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelMessage {
    /// The sender.
    pub role: MessageRole,
    /// The text.
    pub text: String,
}

/// The model and the parameters of its answers.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelParameters {
    /// The model's name, as its provider knows it.
    pub model: String,
    /// The most tokens of an answer; the provider's own limit when unset.
    pub max_tokens: Option<u32>,
    /// The sampling temperature; the provider's own value when unset.
    pub temperature: Option<f64>,
}

/// A request. Equal requests are equal bytes as JSON, so that their hash finds the answer in the log.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The purpose of the answer.
    pub purpose: RequestPurpose,
    /// The model and its parameters.
    pub parameters: ModelParameters,
    /// The system prompt.
    pub system: String,
    /// In order; the last is of the user.
    pub messages: Vec<ModelMessage>,
    /// The JSON schema of the answer; none where the answer is prose.
    pub schema: Option<String>,
}

/// A request with more bytes than a model is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the prompt has {0} bytes, over the maximum of {PROMPT_BYTES_MAX}; split the text")]
pub struct TooLong(pub usize);

impl ModelRequest {
    /// A request with one message.
    ///
    /// # Errors
    /// [`TooLong`] when both are longer than [`PROMPT_BYTES_MAX`].
    pub fn new(
        purpose: RequestPurpose,
        parameters: &ModelParameters,
        system: impl Into<String>,
        message: impl Into<String>,
        schema: Option<&Value>,
    ) -> Result<Self, TooLong> {
        let (system, text) = (system.into(), message.into());
        let n_bytes = system.len() + text.len();
        if n_bytes > PROMPT_BYTES_MAX {
            return Err(TooLong(n_bytes));
        }
        let messages = vec![ModelMessage { role: MessageRole::User, text }];
        Ok(Self { purpose, parameters: parameters.clone(), system, messages, schema: schema.map(sorted) })
    }
}

/// The repair turn: the same request with the refused answer and the reason.
pub fn repair(request: &ModelRequest, answer: &str, error: &str) -> ModelRequest {
    let mut again = request.clone();
    let cut = answer.floor_char_boundary(ANSWER_QUOTED_BYTES_MAX);
    let refused = if answer.trim().is_empty() { "(nothing)" } else { &answer[..cut] };
    again.messages.push(ModelMessage { role: MessageRole::Assistant, text: refused.to_owned() });
    let text = format!(
        "That answer was refused: {error}.\nSend the complete corrected JSON object. It must follow the schema; write nothing else."
    );
    again.messages.push(ModelMessage { role: MessageRole::User, text });
    again
}

/// A quoted text within a prompt: between marks, so that the model tells it from its instructions.
pub(super) fn quoted(name: &str, text: &str) -> String {
    format!("<{name}>\n{}\n</{name}>", text.trim_end())
}

/// JSON with sorted keys, so that a request has the same bytes even if `serde_json` is built to keep the order of keys.
pub(super) fn sorted(json: &Value) -> String {
    let mut json = json.clone();
    json.sort_all_objects();
    json.to_string()
}

/// The schema of an object: all its fields, and no others.
pub(super) fn object(fields: &[(&str, Value)]) -> Value {
    let required = fields.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let fields = fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect::<Map<_, _>>();
    json!({ "type": "object", "required": required, "additionalProperties": false, "properties": fields })
}

pub(super) fn list(of: &Value) -> Value {
    json!({ "type": "array", "items": of })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}
