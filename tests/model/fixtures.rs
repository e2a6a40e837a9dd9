//! The mock model itself: its script, the requests it records, and its answer without a reply.

use serde_json::json;

use super::rig::{Mock, question};
use crewlog_executors::model::Model;
use crewlog_mock_llm::Script;

#[test]
fn an_invalid_fixture_file_is_refused_with_line_and_reason() {
    for (text, says) in [
        ("", "fixtures.json:1:0: EOF while parsing a value"),
        ("{\"replies\": [\n{\"text\": \"a\",}\n]}", "fixtures.json:2:14: key must be a string"),
        ("{\"replies\": [\n{\"text\": \"a\"},\n{\"reply\": \"b\"}\n]}", "fixtures.json:3:8: unknown field `reply`"),
        (
            "{\"replies\": [\n\n{\"times\": 2}\n]}",
            "fixtures.json:3:1: a reply has \"text\", \"json\", \"calls\" or \"fault\"",
        ),
        (
            "{\"replies\": [{\"text\": \"a\", \"json\": {}}]}",
            "fixtures.json:1:14: a reply has \"text\" or \"json\", not both",
        ),
        ("{\"replies\": [{\"text\": \"a\", \"fault\": \"overloaded\"}]}", "with this fault no text comes"),
        ("{\"replies\": [{\"fault\": \"rain\"}]}", "unknown variant `rain`"),
        ("{\"replies\": [{\"text\": \"a\", \"retry_after\": 1}]}", "belongs to the faults rate_limited and overloaded"),
        ("{\"replies\": [{\"fault\": \"overloaded\", \"retry_after\": -1}]}", "0 to 86400 seconds"),
        ("{\"replies\": [{\"text\": \"a\", \"times\": 0}]}", "times is a number from 1, or \"always\""),
        ("{\"replies\": [{\"text\": \"a\", \"delay_ms\": 3600001}]}", "\"delay_ms\" is at most 3600000"),
        ("{\"replies\": [{\"text\": \"a\", \"message\": \"b\"}]}", "\"message\" belongs to a fault of HTTP"),
        ("{\"replies\": [{\"fault\": \"time_out\", \"message\": \"b\"}]}", "\"message\" belongs to a fault of HTTP"),
    ] {
        let refused = Script::parse("fixtures.json", text).expect_err(text);
        assert!(refused.contains(says) && refused.contains("the form is"), "{refused}");
    }
}

#[tokio::test]
async fn fixtures_match_by_order_prompt_or_model_and_repeat_as_configured() {
    let mock = Mock::new(&json!([
        { "when": { "prompt": "colour" }, "text": "red" },
        { "when": { "model": "another" }, "text": "never" },
        { "when": { "model": "mock-1", "prompt": "many" }, "text": "twelve", "times": 2 },
        { "text": "first" },
        { "when": { "prompt": "still there" }, "text": "yes", "times": "always" },
    ]));
    let client = mock.client("openai", false);
    let mut said = Vec::new();
    for text in ["Hello", "how many?", "still there?", "how many?", "colour?", "still there?", "Hello", "how many?"] {
        said.push(client.ask(&question(text)).await.map_or_else(|error| error.to_string(), |reply| reply.text));
    }
    let none = "the model's provider refused: HTTP 400: the fixtures have no reply left for this request to \"mock-1\"";
    assert_eq!(said, ["first", "twelve", "yes", "twelve", "red", "yes", none, none]);
    let recorded = mock.requests();
    assert_eq!((recorded.len(), &recorded[0]["n"], &recorded[0]["protocol"]), (8, &json!(1), &json!("openai")));
    assert_eq!((&recorded[0]["is_scripted"], &recorded[7]["is_scripted"]), (&json!(true), &json!(false)));
    assert_eq!(recorded[0]["has_key"], false, "the word none is no key");
    assert_eq!(recorded[1]["body"]["messages"][1]["content"], "how many?");
}
