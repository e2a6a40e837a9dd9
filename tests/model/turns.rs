//! Agents of a script: their turns and calls of tools in all protocols, as requested by their programs.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use crewlog_mock_llm::{MockLlm, Script};
use serde_json::{Value, json};

/// A request with these tool results, as (call, text).
type Body = fn(&[(&str, &str)]) -> Value;

/// How each program asks: protocol, path, header of the key, a streaming request with a tool and these results so far.
const PROGRAMS: [(&str, &str, &str, Body); 4] = [
    ("anthropic", "/v1/messages?beta=true", "x-api-key: ", |results| {
        let result = |(call, text): &(&str, &str)| json!({ "type": "tool_result", "tool_use_id": call, "content": [{ "type": "text", "text": text }] });
        let messages = results.iter().map(|one| json!({ "role": "user", "content": [result(one)] }));
        json!({ "model": "m", "stream": true, "tools": [{}], "messages": messages.collect::<Value>() })
    }),
    ("responses", "/v1/responses", "authorization: Bearer ", |results| {
        let result =
            |(call, text): &(&str, &str)| json!({ "type": "function_call_output", "call_id": call, "output": text });
        json!({ "model": "m", "stream": true, "tools": [{}], "input": results.iter().map(result).collect::<Value>() })
    }),
    ("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", "x-goog-api-key: ", |results| {
        let result = |(call, text): &(&str, &str)| json!({ "functionResponse": { "name": call, "response": { "output": text } } });
        let parts = results.iter().map(result).collect::<Value>();
        json!({ "tools": [{}], "contents": [{ "role": "user", "parts": parts }] })
    }),
    ("openai", "/v1/chat/completions", "authorization: Bearer ", |results| {
        let result = |(call, text): &(&str, &str)| json!({ "role": "tool", "tool_call_id": call, "content": text });
        json!({ "model": "m", "stream": true, "tools": [{}], "messages": results.iter().map(result).collect::<Value>() })
    }),
];

fn start(script: &Value) -> MockLlm {
    MockLlm::start(Script::parse("script", &script.to_string()).expect("it is a script")).expect("a port is free")
}

/// The status and the body of an answer.
fn ask(address: &str, path: &str, key: &str, body: &Value) -> (u16, String) {
    received(send(address, path, key, body))
}

fn send(address: &str, path: &str, key: &str, body: &Value) -> TcpStream {
    let host = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let body = body.to_string();
    write!(stream, "POST {path} HTTP/1.0\r\nhost: {host}\r\n{key}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .expect("it reads");
    stream
}

fn received(mut stream: TcpStream) -> (u16, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), body.to_owned())
}

/// The data of the events of a stream, without the last word of chat completions.
fn data(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).expect("it is JSON")).collect()
}

/// A model's answer: its text, its calls as (id, name, arguments), and the reason for its end.
fn said(protocol: &str, events: &[Value]) -> (String, Vec<Value>, String) {
    let (mut text, mut calls, mut end) = (String::new(), Vec::new(), String::new());
    let json_of = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap_or("null")).expect("it is JSON");
    let mut input = String::new();
    for event in events {
        match protocol {
            "anthropic" => {
                text += event["delta"]["text"].as_str().unwrap_or_default();
                input += event["delta"]["partial_json"].as_str().unwrap_or_default();
                end += event["delta"]["stop_reason"].as_str().unwrap_or_default();
                let block = &event["content_block"];
                if block["type"] == "tool_use" {
                    calls.push(json!([block["id"], block["name"], {}]));
                } else if event["type"] == "content_block_stop" && !input.is_empty() {
                    calls.last_mut().expect("it has begun")[2] = json_of(&json!(std::mem::take(&mut input)));
                }
            }
            "responses" => {
                let item = &event["item"];
                text += item["content"][0]["text"].as_str().unwrap_or_default();
                end += event["response"]["status"].as_str().filter(|one| *one != "in_progress").unwrap_or_default();
                match item["type"].as_str() {
                    Some("function_call") => {
                        calls.push(json!([item["call_id"], item["name"], json_of(&item["arguments"])]));
                    }
                    Some("custom_tool_call") => calls.push(json!([item["call_id"], item["name"], item["input"]])),
                    _other => {}
                }
            }
            "gemini" => {
                let candidate = &event["candidates"][0];
                end += candidate["finishReason"].as_str().unwrap_or_default();
                for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
                    text += part["text"].as_str().unwrap_or_default();
                    let call = &part["functionCall"];
                    calls.extend(call.is_object().then(|| json!([call["id"], call["name"], call["args"]])));
                }
            }
            _openai => {
                let choice = &event["choices"][0];
                text += choice["delta"]["content"].as_str().unwrap_or_default();
                end += choice["finish_reason"].as_str().unwrap_or_default();
                for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    calls.push(json!([call["id"], function["name"], json_of(&function["arguments"])]));
                }
            }
        }
    }
    (text, calls, end)
}

#[test]
fn an_agents_turns_call_tools_and_end_in_each_protocol() {
    for (protocol, path, key, body) in PROGRAMS {
        let mock = start(&json!({ "agents": { "a": [
            { "text": "I reserve two.", "calls": [
                { "name": "reserve", "args": { "paths": ["ä.txt"] } }, { "name": "list" },
            ] },
            { "calls": [{ "name": "release", "args": { "lease": "{{lease}}", "deep": [{ "n": "{{n}}" }] } }] },
            { "text": "Done." },
        ] } }));
        let next = |results: &[(&str, &str)]| {
            let (status, stream) = ask(mock.address(), path, &format!("{key}a"), &body(results));
            assert_eq!(status, 200, "{protocol}: {stream}");
            said(protocol, &data(&stream))
        };
        let (called, stopped) = match protocol {
            "anthropic" => ("tool_use", "end_turn"),
            "responses" => ("completed", "completed"),
            "gemini" => ("STOP", "STOP"),
            _openai => ("tool_calls", "stop"),
        };
        let first = vec![json!(["call_1_0", "reserve", { "paths": ["ä.txt"] }]), json!(["call_1_1", "list", {}])];
        assert_eq!(next(&[]), ("I reserve two.".into(), first, called.into()), "{protocol}");
        // Clients wrap results in words of their own.
        let results = [
            ("call_1_0", "Output:\n{\"lease\": \"old\"}"),
            ("call_1_1", "<it>\n{\"lease\": \"l6\"}, {\"lease\":\"l7\", \"n\": 3}\n</it>"),
        ];
        let second = vec![json!(["call_2_0", "release", { "lease": "l7", "deep": [{ "n": 3 }] }])];
        assert_eq!(next(&results), (String::new(), second, called.into()), "{protocol}");
        assert_eq!(next(&results), ("Done.".into(), vec![], stopped.into()), "{protocol}");
        let recorded = mock.requests();
        let of = |key: &str| recorded.iter().map(|one| one[key].clone()).collect::<Vec<_>>();
        assert_eq!((of("turn"), of("protocol")), (vec![json!(1), json!(2), json!(3)], vec![json!(protocol); 3]));
        assert_eq!((&recorded[1]["agent"], &recorded[1]["model"]), (&json!("a"), &json!("m")));
        let texts = recorded[2]["results"].as_array().expect("results").iter().map(|one| (&one["call"], &one["text"]));
        let expected = results.map(|(call, text)| (json!(call), json!(text)));
        assert!(texts.eq(expected.iter().map(|(call, text)| (call, text))), "{protocol}: {}", recorded[2]["results"]);
    }
}

#[test]
fn a_request_without_tools_takes_no_turn() {
    for (protocol, path, key, body) in PROGRAMS {
        let mock = start(&json!({ "agents": { "a": [{ "text": "First." }] } }));
        let key = format!("{key}a");
        let mut side = body(&[]);
        side["tools"] = json!([]);
        let (_, stream) = ask(mock.address(), path, &key, &side);
        let titles = serde_json::from_str::<Value>(&said(protocol, &data(&stream)).0).expect("it is JSON");
        assert!(titles["title"].is_string() && titles["complexity_score"].is_number(), "{protocol}: {titles}");
        let (_, stream) = ask(mock.address(), path, &key, &body(&[]));
        assert_eq!(said(protocol, &data(&stream)).0, "First.", "{protocol}");
        let turns = mock.requests().iter().map(|one| (one["turn"].clone(), one["is_side"].clone())).collect::<Vec<_>>();
        assert_eq!(turns, [(json!(0), json!(true)), (json!(1), json!(false))], "{protocol}");
    }
}

#[test]
fn codex_gets_custom_tools_and_namespaces() {
    let calls =
        json!([{ "name": "apply_patch", "input": "*** Begin" }, { "name": "send", "namespace": "mcp__crewlog" }]);
    let mock = start(&json!({ "agents": { "a": [{ "calls": calls }] } }));
    let (_, path, key, body) = PROGRAMS[1];
    let (_, stream) = ask(mock.address(), path, &format!("{key}a"), &body(&[]));
    let events = data(&stream);
    let expected = vec![json!(["call_1_0", "apply_patch", "*** Begin"]), json!(["call_1_1", "send", {}])];
    assert_eq!(said("responses", &events).1, expected);
    assert_eq!(events[2]["item"]["namespace"], "mcp__crewlog");
}

#[test]
fn agents_have_turns_of_their_own_and_one_waits_for_the_other() {
    let mock = start(&json!({ "agents": {
        "a": [{ "text": "a1" }, { "text": "a2" }],
        "b": [{ "text": "b1", "after": { "a": 2 } }],
        "c": [{ "text": "c1" }],
    } }));
    let (protocol, path, key, body) = PROGRAMS[3];
    let begin = |agent: &str| send(mock.address(), path, &format!("{key}{agent}"), &body(&[]));
    let text = |stream: TcpStream| said(protocol, &data(&received(stream).1)).0;
    let waiting = begin("b");
    while mock.requests().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(text(begin("a")), "a1");
    // The server has one thread: a reply released by the first turn of `a` would come before the next request's answer.
    assert_eq!(text(begin("c")), "c1");
    waiting.set_nonblocking(true).expect("it is a socket");
    let early = (&waiting).read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock), "a has had one turn");
    waiting.set_nonblocking(false).expect("it is a socket");
    assert_eq!(text(begin("a")), "a2");
    assert_eq!(text(waiting), "b1");
}

#[test]
fn a_turn_that_cannot_be_taken_is_refused_with_its_reason() {
    for (turn, reason) in [
        (
            json!({ "calls": [{ "name": "x", "args": { "task": "{{task}}" } }] }),
            "the call of x: no result so far has \\\"task\\\"",
        ),
        (
            json!({ "calls": [{ "name": "x", "input": "t" }] }),
            "the call of x has what only the protocol responses knows",
        ),
        (json!({ "when": { "prompt": "never" }, "text": "t" }), "no reply left"),
    ] {
        let mock = start(&json!({ "replies": [{ "text": "for others" }], "agents": { "a": [turn] } }));
        let (_, path, key, body) = PROGRAMS[3];
        let (status, said) = ask(mock.address(), path, &format!("{key}a"), &body(&[]));
        assert!(status == 400 && said.contains(reason), "{status} {said}");
        assert_eq!(
            ask(mock.address(), path, &format!("{key}other"), &body(&[])).0,
            200,
            "an unknown key has the replies"
        );
    }
    for (script, reason) in [
        (
            r#"{"agents": {"a": [{"text": "t", "after": {"b": 1}}]}}"#,
            "s:1:19: \"after\" has \"b\", which is none of \"agents\"",
        ),
        (r#"{"agents": {"a": [{"calls": [{"args": {}}]}]}}"#, "missing field `name`"),
        (r#"{"agents": {"a": [{"calls": [{"name": "x", "args": 1}]}]}}"#, "invalid type"),
        (r#"{"agents": {"a": [{"calls": [{"name": "x"}], "fault": "overloaded"}]}}"#, "\"calls\" come with no"),
    ] {
        let refused = Script::parse("s", script).expect_err(script);
        assert!(refused.contains(reason), "{refused}");
    }
}
