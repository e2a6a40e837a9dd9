//! OpenAI's chat completions.

use serde_json::{Value, json};

use super::{Wire, call_id, chunks, list, text_of, usage};
use crate::Asked;
use crate::script::{Reply, Usage};

#[derive(Debug)]
pub(crate) struct Chat;

impl Wire for Chat {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn read(&self, body: &Value) -> (Vec<String>, Vec<Value>) {
        let (results, texts) = list(body, "messages").partition::<Vec<_>, _>(|message| message["role"] == "tool");
        let plain = |said: &Value| json!({ "call": said["tool_call_id"], "text": text_of(&said["content"]) });
        let texts = texts.into_iter().map(|message| text_of(&message["content"])).collect();
        (texts, results.into_iter().map(plain).collect())
    }

    fn whole(&self, asked: &Asked, reply: &Reply, n: usize) -> Value {
        let Usage { input, output } = usage(asked, reply);
        let mut message = json!({ "role": "assistant", "content": reply.text() });
        let calls = reply.calls.iter().enumerate().map(|(place, call)| {
            let function = json!({ "name": call.name, "arguments": json!(call.args).to_string() });
            json!({ "index": place, "id": call_id(n, place), "type": "function", "function": function })
        });
        if !reply.calls.is_empty() {
            message["tool_calls"] = calls.collect();
        }
        let stop = if reply.calls.is_empty() { "stop" } else { "tool_calls" };
        let finish = reply.finish.named([stop, "length", "content_filter"]);
        json!({
            "id": format!("chatcmpl-{n}"), "object": "chat.completion", "created": 0, "model": asked.model,
            "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
            "usage": { "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output },
        })
    }

    fn pieces(&self, whole: &Value) -> Vec<String> {
        let chunk = |choices: Value, usage: &Value| {
            let mut data = whole.clone();
            data["object"] = "chat.completion.chunk".into();
            data["choices"] = choices;
            data["usage"] = usage.clone();
            format!("data: {data}\n\n")
        };
        let choice = |delta: Value, finish: &Value| {
            chunk(json!([{ "index": 0, "delta": delta, "finish_reason": finish }]), &Value::Null)
        };
        let said = &whole["choices"][0];
        let texts = chunks(&said["message"]["content"]).into_iter().map(|text| json!({ "content": text }));
        let calls = said["message"].get("tool_calls").map(|calls| json!({ "tool_calls": calls }));
        let mut pieces = texts.chain(calls).map(|delta| choice(delta, &Value::Null)).collect::<Vec<_>>();
        pieces.push(choice(json!({}), &said["finish_reason"]));
        pieces.push(chunk(json!([]), &whole["usage"]));
        pieces.push("data: [DONE]\n\n".into());
        pieces
    }
}
