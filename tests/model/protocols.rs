//! Both protocols against the mock server, with and without streaming.

use crewlog_executors::model::{Model, Reply};
use crewlog_planner::event::Usage;
use crewlog_planner::model::{plan_request, repair};
use serde_json::{Value, json};

use super::rig::{Mock, WAYS, parameters, question};

#[tokio::test]
async fn both_protocols_answer_with_and_without_streaming() {
    let said = "Zwölf Boxkämpfer jagen Viktor — quer über den großen Sylter Deich. \"So\" {it} is.";
    for (provider, stream) in WAYS {
        let mock = Mock::new(&json!([{ "text": said, "usage": { "input": 1000, "output": 201 } }]));
        let reply = mock.client(provider, stream).ask(&question("Say it.")).await.expect("it answers");
        let usage = Usage { input_tokens: 1000, output_tokens: 201, cost_micros: 6_015, ..Usage::default() };
        let expected = Reply { text: said.into(), usage, model: "mock-1".into() };
        assert_eq!(reply, expected, "{provider} {stream}");
        let asked = mock.requests().remove(0);
        let path = if provider == "openai" { "/v1/chat/completions" } else { "/v1/messages" };
        assert_eq!((&asked["path"], &asked["stream"]), (&json!(path), &json!(stream)));
    }
}

/// The text of a message's content, either a text or a list of parts.
fn text(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    content.as_str().map_or_else(|| parts.collect(), str::to_owned)
}

#[tokio::test]
async fn the_prompt_the_schema_and_the_parameters_reach_the_provider() {
    let first = plan_request(&parameters(), "Build the shed").expect("it is short");
    let second = repair(&first, "no", "it is not JSON");
    for (provider, stream) in WAYS {
        let mock = Mock::new(&json!([{ "text": "{}" }]));
        mock.client(provider, stream).ask(&second).await.expect("it answers");
        let body = mock.requests().remove(0)["body"].clone();
        assert_eq!((&body["model"], &body["max_tokens"]), (&json!("mock-1"), &json!(500)), "{body}");
        assert_eq!(body["temperature"], json!(0.5));
        let mut messages = body["messages"].as_array().expect("messages").clone();
        let (system, schema) = if provider == "openai" {
            (text(&messages.remove(0)["content"]), &body["response_format"]["json_schema"]["schema"])
        } else {
            (text(&body["system"]), &body["output_config"]["format"]["schema"])
        };
        assert_eq!(system, second.system);
        let said =
            messages.iter().map(|message| (message["role"].as_str().expect("a role"), text(&message["content"])));
        let expected =
            ["user", "assistant", "user"].into_iter().zip(second.messages.iter().map(|one| one.text.clone()));
        assert_eq!(said.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        let kinds = &schema["properties"]["tasks"]["items"]["properties"]["kind"]["enum"];
        assert_eq!(kinds.as_array().map(Vec::len), Some(8), "{schema}");
    }
}
