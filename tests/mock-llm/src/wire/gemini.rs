//! Gemini's `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use super::{Wire, call_id, list, text_of, usage};
use crate::Asked;
use crate::script::{Reply, Usage};

#[derive(Debug)]
pub(crate) struct Gemini;

impl Wire for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    /// Both are in the path: `.../models/MODEL:METHOD`.
    fn model_and_stream(&self, path: &str, _body: &Value) -> (String, bool) {
        let (model, method) = path.rsplit('/').next().and_then(|call| call.split_once(':')).unwrap_or_default();
        (model.to_owned(), method == "streamGenerateContent")
    }

    fn read(&self, body: &Value) -> (Vec<String>, Vec<Value>) {
        let said = list(body, "contents").map(|content| text_of(&content["parts"]));
        let texts = [text_of(&body["systemInstruction"]["parts"])].into_iter().chain(said).collect();
        let parts = list(body, "contents").flat_map(|content| list(content, "parts"));
        let results = parts.filter_map(|part| part.get("functionResponse"));
        let plain = |result: &Value| {
            let response = &result["response"];
            let (error, output) = (response.get("error"), response.get("output"));
            let said = error.or(output).unwrap_or(response);
            let text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
            json!({ "call": result["name"], "text": text, "is_error": error.is_some() })
        };
        (texts, results.map(plain).collect())
    }

    fn whole(&self, asked: &Asked, reply: &Reply, n: usize) -> Value {
        let Usage { input, output } = usage(asked, reply);
        let text = reply.has_text().then(|| json!({ "text": reply.text() }));
        let calls = reply.calls.iter().enumerate().map(
            |(place, call)| json!({ "functionCall": { "id": call_id(n, place), "name": call.name, "args": call.args } }),
        );
        let parts = text.into_iter().chain(calls).collect::<Value>();
        let finish = reply.finish.named(["STOP", "MAX_TOKENS", "SAFETY"]);
        let used =
            json!({ "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output });
        json!({
            "candidates": [{ "index": 0, "content": { "role": "model", "parts": parts }, "finishReason": finish }],
            "usageMetadata": used, "modelVersion": asked.model,
        })
    }

    /// One event may have all.
    fn pieces(&self, whole: &Value) -> Vec<String> {
        vec![format!("data: {whole}\n\n")]
    }
}
