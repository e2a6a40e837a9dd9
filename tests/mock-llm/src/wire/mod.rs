//! The protocols of model providers on the wire: parses requests and encodes replies, whose content is from the script.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::fmt::Debug;

use serde_json::{Value, json};

use crate::Asked;
use crate::script::{Reply, Usage};

pub(crate) use anthropic::Anthropic;
pub(crate) use chat::Chat;
pub(crate) use gemini::Gemini;
pub(crate) use responses::Responses;

/// The number of characters of a stream chunk.
const PIECE_CHARS: usize = 12;

pub(crate) trait Wire: Debug + Send + Sync {
    /// The recorded name.
    fn name(&self) -> &'static str;

    /// The requested model, and true if streaming is requested.
    fn model_and_stream(&self, _path: &str, body: &Value) -> (String, bool) {
        (body["model"].as_str().unwrap_or_default().to_owned(), body["stream"] == true)
    }

    /// The system prompt and messages, one after the other; and the results of tools: `call` (its id; a name with
    /// Gemini), `text`, and optionally `is_error`.
    fn read(&self, body: &Value) -> (Vec<String>, Vec<Value>);

    /// The body of an error.
    fn error(&self, kind: &str, message: &str) -> Value {
        json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } })
    }

    /// The body of a whole reply.
    fn whole(&self, asked: &Asked, reply: &Reply, n: usize) -> Value;

    /// A whole reply in chunks, as server-sent events.
    fn pieces(&self, whole: &Value) -> Vec<String>;
}

/// The text of a content, either a text or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// The elements of a list, none where there is no list.
fn list<'a>(body: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    body.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// An event of a stream whose events have names.
fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

/// The stream chunks of a text.
fn chunks(text: &Value) -> Vec<String> {
    let chars = text.as_str().unwrap_or_default().chars().collect::<Vec<_>>();
    chars.chunks(PIECE_CHARS).map(|piece| piece.iter().collect()).collect()
}

/// The id of a call, which its result repeats: made from the number of the request and the index in the reply.
fn call_id(n: usize, place: usize) -> String {
    format!("call_{n}_{place}")
}

/// The tokens of the fixture, else one per four characters.
fn usage(asked: &Asked, reply: &Reply) -> Usage {
    let tokens = |text: &str| u32::try_from(text.chars().count().div_ceil(4)).unwrap_or(u32::MAX);
    reply.usage.unwrap_or_else(|| Usage { input: tokens(&asked.prompt), output: tokens(reply.text()) })
}
