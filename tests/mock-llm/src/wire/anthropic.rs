//! Anthropic's messages.

use serde_json::{Value, json};

use super::{Wire, call_id, chunks, event, list, text_of, usage};
use crate::Asked;
use crate::script::{Call, Reply, Usage};

#[derive(Debug)]
pub(crate) struct Anthropic;

impl Wire for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn read(&self, body: &Value) -> (Vec<String>, Vec<Value>) {
        let messages = list(body, "messages").map(|message| text_of(&message["content"]));
        let texts = [text_of(&body["system"])].into_iter().chain(messages).collect();
        let parts = list(body, "messages").flat_map(|message| list(message, "content"));
        let results = parts.filter(|part| part["type"] == "tool_result");
        let plain = |part: &Value| {
            let is_error = part["is_error"] == true;
            json!({ "call": part["tool_use_id"], "text": text_of(&part["content"]), "is_error": is_error })
        };
        (texts, results.map(plain).collect())
    }

    fn error(&self, kind: &str, message: &str) -> Value {
        json!({ "type": "error", "error": { "type": kind, "message": message } })
    }

    fn whole(&self, asked: &Asked, reply: &Reply, n: usize) -> Value {
        let Usage { input, output } = usage(asked, reply);
        let text = reply.has_text().then(|| json!({ "type": "text", "text": reply.text() }));
        let call = |(place, call): (usize, &Call)| json!({ "type": "tool_use", "id": call_id(n, place), "name": call.name, "input": call.args });
        let calls = reply.calls.iter().enumerate().map(call);
        let stop = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
        let finish = reply.finish.named([stop, "max_tokens", "refusal"]);
        json!({
            "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": asked.model,
            "content": text.into_iter().chain(calls).collect::<Value>(), "stop_reason": finish, "stop_sequence": null,
            "usage": { "input_tokens": input, "output_tokens": output },
        })
    }

    fn pieces(&self, whole: &Value) -> Vec<String> {
        let mut begun = whole.clone();
        begun["content"] = json!([]);
        begun["stop_reason"] = Value::Null;
        begun["usage"]["output_tokens"] = 1.into();
        let mut pieces = vec![json!({ "type": "message_start", "message": begun }), json!({ "type": "ping" })];
        for (index, block) in list(whole, "content").enumerate() {
            let mut begun = block.clone();
            let (kind, part, text) = if block["type"] == "text" {
                begun["text"] = "".into();
                ("text_delta", "text", block["text"].clone())
            } else {
                begun["input"] = json!({});
                ("input_json_delta", "partial_json", block["input"].to_string().into())
            };
            pieces.push(json!({ "type": "content_block_start", "index": index, "content_block": begun }));
            pieces.extend(chunks(&text).into_iter().map(
                |text| json!({ "type": "content_block_delta", "index": index, "delta": { "type": kind, part: text } }),
            ));
            pieces.push(json!({ "type": "content_block_stop", "index": index }));
        }
        let ended = json!({ "stop_reason": whole["stop_reason"], "stop_sequence": null });
        let used = json!({ "output_tokens": whole["usage"]["output_tokens"] });
        pieces.push(json!({ "type": "message_delta", "delta": ended, "usage": used }));
        pieces.push(json!({ "type": "message_stop" }));
        pieces.iter().map(event).collect()
    }
}
