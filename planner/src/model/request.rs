//! What a model is asked, as data. Nothing here says what the answer means.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The most bytes of what is asked at once: system prompt and messages together.
pub const PROMPT_BYTES_MAX: usize = 400_000;
/// So many bytes of an answer that was not understood are quoted when it is asked for again.
pub const ANSWER_QUOTED_BYTES_MAX: usize = 32_000;

/// What an answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// A plan of a text.
    Plan,
    /// The kinds of tasks.
    Kinds,
    /// What depends on what.
    Dependencies,
    /// A summary of a part of a plan's history.
    Summary,
    /// A plan of an agent.
    AgentPlan,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Who asks.
    User,
    /// The model, earlier.
    Assistant,
}

/// One message of what is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What.
    pub text: String,
}

/// Which model is asked, and how, whatever the purpose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The model's name, as its provider knows it.
    pub model: String,
    /// The most tokens of an answer; the provider's own limit when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How freely it chooses its words; the provider's own value when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

/// What a model is asked. The same request is the same bytes as JSON, so that an answer can be found again by their hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What the answer is for.
    pub purpose: Purpose,
    /// Which model, and how.
    pub terms: Terms,
    /// The system prompt.
    pub system: String,
    /// In order; the last is of the user.
    pub messages: Vec<Message>,
    /// The JSON schema of the answer; none where the answer is prose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

/// A request with more bytes than are allowed at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes are more than {PROMPT_BYTES_MAX}, the most that a model is asked at once; split the text")]
pub struct TooLong(pub usize);

impl Request {
    /// A first question: a system prompt and one message.
    ///
    /// # Errors
    /// [`TooLong`] when both are longer than [`PROMPT_BYTES_MAX`].
    pub fn new(
        purpose: Purpose,
        terms: &Terms,
        system: impl Into<String>,
        message: impl Into<String>,
        schema: Option<&Value>,
    ) -> Result<Self, TooLong> {
        let (system, text) = (system.into(), message.into());
        let n_bytes = system.len() + text.len();
        if n_bytes > PROMPT_BYTES_MAX {
            return Err(TooLong(n_bytes));
        }
        let messages = vec![Message { role: Role::User, text }];
        Ok(Self { purpose, terms: terms.clone(), system, messages, schema: schema.map(sorted) })
    }
}

/// The same question once more, with the answer that was refused and why.
#[must_use]
pub fn repair(request: &Request, answer: &str, error: &str) -> Request {
    let mut again = request.clone();
    let cut = answer.floor_char_boundary(ANSWER_QUOTED_BYTES_MAX);
    let refused = if answer.trim().is_empty() { "(nothing)" } else { &answer[..cut] };
    again.messages.push(Message { role: Role::Assistant, text: refused.to_owned() });
    let text = format!(
        "That answer was refused: {error}.\nAnswer the whole question again, with that mended. Write one JSON object by the \
         schema and nothing else."
    );
    again.messages.push(Message { role: Role::User, text });
    again
}

/// A text of others within a prompt: between marks, so that the model tells it from the question.
pub(super) fn quoted(name: &str, text: &str) -> String {
    format!("<{name}>\n{}\n</{name}>", text.trim_end())
}

/// JSON with its keys in order, so that the same is asked whether or not a build keeps them as they were made: answers are found
/// again by the bytes of the request.
pub(super) fn sorted(json: &Value) -> String {
    match json {
        Value::Object(fields) => {
            let fields = fields.iter().collect::<BTreeMap<_, _>>();
            let field = |(key, value): (&String, &Value)| format!("{}:{}", Value::from(key.as_str()), sorted(value));
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(values) => format!("[{}]", values.iter().map(sorted).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json.to_string(),
    }
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
