//! The two protocols on the wire: OpenAI's chat completions and Anthropic's messages. It decides
//! nothing: the content comes from the script.

use serde_json::{Value, json};

use crate::Asked;
use crate::script::{Finish, Reply, Usage};

/// The number of characters of a stream chunk.
const PIECE_CHARS: usize = 12;

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
}

impl Protocol {
    /// The recorded name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// The content of a request body.
    pub fn asked(self, body: Value) -> Asked {
        let text = |key: &str| body.get(key).map(text_of).unwrap_or_default();
        let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
        let said = messages.map(|message| message.get("content").map(text_of).unwrap_or_default());
        let prompt = [text("system")].into_iter().chain(said).collect::<Vec<_>>().join("\n\n");
        let is_stream = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
        Asked { protocol: self, model: text("model"), is_stream, prompt, body }
    }

    /// The body of an error.
    pub fn error(self, kind: &str, message: &str) -> Value {
        match self {
            Self::OpenAi => json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } }),
            Self::Anthropic => json!({ "type": "error", "error": { "type": kind, "message": message } }),
        }
    }

    /// The body of a whole reply.
    pub fn whole(self, asked: &Asked, reply: &Reply, n: usize) -> Value {
        let Usage { input, output } = usage(asked, reply);
        let finish = self.finish(reply.finish);
        match self {
            Self::OpenAi => json!({
                "id": format!("chatcmpl-{n}"), "object": "chat.completion", "created": 0, "model": asked.model,
                "choices": [{
                    "index": 0, "message": { "role": "assistant", "content": reply.text }, "finish_reason": finish
                }],
                "usage": { "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output },
            }),
            Self::Anthropic => json!({
                "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": asked.model,
                "content": [{ "type": "text", "text": reply.text }],
                "stop_reason": finish, "stop_sequence": null,
                "usage": { "input_tokens": input, "output_tokens": output },
            }),
        }
    }

    /// A reply in chunks, as server-sent events.
    pub fn pieces(self, asked: &Asked, reply: &Reply, n: usize) -> Vec<String> {
        let Usage { input, output } = usage(asked, reply);
        let finish = self.finish(reply.finish);
        let chars = reply.text.chars().collect::<Vec<_>>();
        let texts = chars.chunks(PIECE_CHARS).map(|piece| piece.iter().collect::<String>());
        match self {
            Self::OpenAi => {
                let chunk = |choices: Value, usage: Value| {
                    let id = format!("chatcmpl-{n}");
                    let data = json!({
                        "id": id, "object": "chat.completion.chunk", "created": 0, "model": asked.model,
                        "choices": choices, "usage": usage,
                    });
                    format!("data: {data}\n\n")
                };
                let choice =
                    |delta: Value, finish: Value| json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
                let mut pieces = texts
                    .map(|text| {
                        chunk(choice(json!({ "role": "assistant", "content": text }), Value::Null), Value::Null)
                    })
                    .collect::<Vec<_>>();
                pieces.push(chunk(choice(json!({}), json!(finish)), Value::Null));
                let used =
                    json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
                pieces.push(chunk(json!([]), used));
                pieces.push("data: [DONE]\n\n".into());
                pieces
            }
            Self::Anthropic => {
                let event = |name: &str, data: Value| format!("event: {name}\ndata: {data}\n\n");
                let begun = json!({
                    "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": asked.model, "content": [],
                    "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": input, "output_tokens": 1 },
                });
                let block = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
                let mut pieces = vec![
                    event("message_start", json!({ "type": "message_start", "message": begun })),
                    event("content_block_start", block),
                    event("ping", json!({ "type": "ping" })),
                ];
                pieces.extend(texts.map(|text| {
                    let delta = json!({ "type": "text_delta", "text": text });
                    event("content_block_delta", json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
                }));
                let ended = json!({ "stop_reason": finish, "stop_sequence": null });
                let used = json!({ "output_tokens": output });
                pieces.push(event("content_block_stop", json!({ "type": "content_block_stop", "index": 0 })));
                pieces.push(event("message_delta", json!({ "type": "message_delta", "delta": ended, "usage": used })));
                pieces.push(event("message_stop", json!({ "type": "message_stop" })));
                pieces
            }
        }
    }

    /// A stream chunk that is not JSON.
    pub const fn broken_piece(self) -> &'static str {
        match self {
            Self::OpenAi => "data: {\"broken\n\n",
            Self::Anthropic => "event: content_block_delta\ndata: {\"broken\n\n",
        }
    }

    fn finish(self, finish: Finish) -> &'static str {
        match (self, finish) {
            (Self::OpenAi, Finish::Stop) => "stop",
            (Self::OpenAi, Finish::Length) => "length",
            (Self::OpenAi, Finish::Refusal) => "content_filter",
            (Self::Anthropic, Finish::Stop) => "end_turn",
            (Self::Anthropic, Finish::Length) => "max_tokens",
            (Self::Anthropic, Finish::Refusal) => "refusal",
        }
    }
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

/// The tokens of the fixture, else one per four characters.
fn usage(asked: &Asked, reply: &Reply) -> Usage {
    let tokens = |text: &str| u32::try_from(text.chars().count().div_ceil(4)).unwrap_or(u32::MAX);
    reply.usage.unwrap_or_else(|| Usage { input: tokens(&asked.prompt), output: tokens(&reply.text) })
}
