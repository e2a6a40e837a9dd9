//! OpenAI's responses.

use serde_json::{Value, json};

use super::{Wire, call_id, event, list, text_of, usage};
use crate::Asked;
use crate::script::{Reply, Usage};

#[derive(Debug)]
pub(crate) struct Responses;

impl Wire for Responses {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn read(&self, body: &Value) -> (Vec<String>, Vec<Value>) {
        // The input is one text, or a list of items.
        let said = list(body, "input").map(|item| text_of(&item["content"]));
        let plain = body["input"].as_str().map(str::to_owned);
        let texts = [text_of(&body["instructions"])].into_iter().chain(plain).chain(said).collect();
        let is_result = |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("call_output"));
        let plain = |item: &Value| json!({ "call": item["call_id"], "text": text_of(&item["output"]) });
        (texts, list(body, "input").filter(is_result).map(plain).collect())
    }

    fn whole(&self, asked: &Asked, reply: &Reply, n: usize) -> Value {
        let Usage { input, output } = usage(asked, reply);
        let content = json!([{ "type": "output_text", "text": reply.text(), "annotations": [] }]);
        let text = json!({ "type": "message", "id": format!("msg_{n}"), "role": "assistant", "content": content });
        let text = reply.has_text().then_some(text);
        let calls = reply.calls.iter().enumerate().map(|(place, call)| {
            let (id, name) = (call_id(n, place), &call.name);
            match &call.input {
                Some(input) => json!({ "type": "custom_tool_call", "call_id": id, "name": name, "input": input }),
                None => json!({
                    "type": "function_call", "call_id": id, "name": name, "namespace": call.namespace,
                    "arguments": json!(call.args).to_string(),
                }),
            }
        });
        let why = reply.finish.named(["", "max_output_tokens", "content_filter"]);
        let why = (!why.is_empty()).then(|| json!({ "reason": why }));
        json!({
            "id": format!("resp_{n}"), "object": "response", "created_at": 0, "model": asked.model,
            "status": if why.is_none() { "completed" } else { "incomplete" }, "incomplete_details": why,
            "output": text.into_iter().chain(calls).collect::<Value>(),
            "usage": { "input_tokens": input, "output_tokens": output, "total_tokens": input + output },
        })
    }

    /// Items come complete: their deltas are only for display.
    fn pieces(&self, whole: &Value) -> Vec<String> {
        let begun = json!({ "id": whole["id"], "object": "response", "status": "in_progress", "output": [] });
        let items = list(whole, "output")
            .enumerate()
            .map(|(place, item)| json!({ "type": "response.output_item.done", "output_index": place, "item": item }));
        let ended = format!("response.{}", whole["status"].as_str().unwrap_or_default());
        let all = [json!({ "type": "response.created", "response": begun })].into_iter().chain(items);
        all.chain([json!({ "type": ended, "response": whole })]).map(|data| event(&data)).collect()
    }
}
