//! The inputs of the four hosts, and inputs that none of them sends.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::dialect::{Call, Moment, SubAgent, parse};
use super::super::touches::Edits;
use super::shown;
use crate::cli::programs::Host;

fn claude(event: &str) -> Value {
    json!({ "session_id": "600e", "transcript_path": "/h/.claude/projects/r/600e.jsonl", "cwd": "/repo", "hook_event_name": event })
}

fn codex(event: &str) -> Value {
    json!({ "session_id": "01a2", "turn_id": "01a3", "transcript_path": "/h/.codex/sessions/rollout-2026-01a2.jsonl", "cwd": "/repo",
            "hook_event_name": event, "model": "gpt-5.5", "permission_mode": "bypassPermissions" })
}

fn gemini(event: &str) -> Value {
    json!({ "session_id": "e50e", "transcript_path": "/h/.gemini/tmp/x/chats/session-1.jsonl", "cwd": "/repo", "hook_event_name": event,
            "timestamp": "2026-11-22T22:30:01.588Z" })
}

fn opencode(event: &str) -> Value {
    json!({ "hook_event_name": event, "session_id": "ses_1", "cwd": "/repo" })
}

fn with(mut input: Value, fields: &Value) -> Value {
    let (Some(input_fields), Some(fields)) = (input.as_object_mut(), fields.as_object()) else {
        panic!("both are objects");
    };
    input_fields.extend(fields.clone());
    input
}

fn calls(input: Value, tool: &str, arguments: &Value) -> Value {
    with(input, &json!({ "tool_name": tool, "tool_input": arguments, "tool_use_id": "t1" }))
}

fn read(input: &Value) -> Call {
    parse(input.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}: {input}"))
}

/// The changes of a tool call.
fn changes(call: &Call) -> String {
    match &call.moment {
        Moment::Before(edits) | Moment::After(edits) => shown(edits),
        other => {
            assert_eq!(*other, Moment::Other);
            String::new()
        }
    }
}

#[test]
fn each_host_and_moment_is_recognised_by_its_fields() {
    let started = || Moment::Start;
    let stop = || Moment::Stop { is_repeated: false };
    let after = || Moment::After(Edits::default());
    let source = json!({ "source": "startup" });
    let compact = json!({ "source": "compact" });
    let no_turn = |event| {
        let mut input = codex(event);
        input.as_object_mut().expect("an object").remove("turn_id");
        input
    };
    let no_model = |event| {
        let mut input = no_turn(event);
        input.as_object_mut().expect("an object").remove("model");
        input
    };
    let tool = json!({ "tool_name": "Read", "tool_input": {} });
    let cases = [
        (with(claude("SessionStart"), &source), Host::Claude, started()),
        (with(claude("SessionStart"), &compact), Host::Claude, Moment::Start),
        // Claude Code names its model here, as Codex does.
        (with(claude("SessionStart"), &json!({ "source": "startup", "model": "m" })), Host::Claude, started()),
        (claude("SessionStart"), Host::Claude, started()),
        (claude("UserPromptSubmit"), Host::Claude, Moment::Prompt),
        (with(claude("PreToolUse"), &tool), Host::Claude, Moment::Other),
        (with(claude("PostToolUse"), &tool), Host::Claude, after()),
        (claude("Stop"), Host::Claude, stop()),
        (claude("SessionEnd"), Host::Claude, Moment::End),
        (claude("SubagentStop"), Host::Claude, Moment::Other),
        (claude("Notification"), Host::Claude, Moment::Other),
        (with(no_turn("SessionStart"), &source), Host::Codex, started()),
        (no_model("SessionEnd"), Host::Codex, Moment::End),
        (
            with(no_turn("SessionStart"), &json!({ "source": "startup", "transcript_path": null })),
            Host::Codex,
            started(),
        ),
        (json!({ "session_id": "s", "cwd": "/r", "hook_event_name": "Stop", "model": "m" }), Host::Codex, stop()),
        (codex("UserPromptSubmit"), Host::Codex, Moment::Prompt),
        (with(codex("PreToolUse"), &tool), Host::Codex, Moment::Other),
        (with(codex("PostToolUse"), &tool), Host::Codex, after()),
        (codex("Stop"), Host::Codex, stop()),
        (with(codex("Stop"), &json!({ "transcript_path": "/moved.jsonl" })), Host::Codex, stop()),
        (codex("PermissionRequest"), Host::Codex, Moment::Other),
        (with(gemini("SessionStart"), &source), Host::Gemini, started()),
        (gemini("BeforeAgent"), Host::Gemini, Moment::Prompt),
        (with(gemini("BeforeTool"), &tool), Host::Gemini, Moment::Other),
        (with(gemini("AfterTool"), &tool), Host::Gemini, after()),
        (gemini("AfterAgent"), Host::Gemini, stop()),
        (gemini("SessionEnd"), Host::Gemini, Moment::End),
        (gemini("BeforeToolSelection"), Host::Gemini, Moment::Other),
        (gemini("PreCompress"), Host::Gemini, Moment::Other),
        (with(opencode("SessionStart"), &source), Host::Opencode, started()),
        (with(opencode("PreToolUse"), &tool), Host::Opencode, Moment::Other),
        (with(opencode("PostToolUse"), &tool), Host::Opencode, after()),
        (opencode("PermissionRequest"), Host::Opencode, Moment::Permission),
        (opencode("PermissionReplied"), Host::Opencode, Moment::Answered),
        (claude("PermissionReplied"), Host::Claude, Moment::Other),
    ];
    for (input, host, moment) in cases {
        let call = read(&input);
        assert_eq!((call.host, call.moment), (host, moment), "{input}");
        assert_eq!(call.cwd.to_str(), input["cwd"].as_str());
        assert_eq!(Some(call.session.as_str()), input["session_id"].as_str());
    }
}

#[test]
fn each_tool_changes_what_its_arguments_say() {
    let pre = [claude("PreToolUse"), codex("PreToolUse"), gemini("BeforeTool"), opencode("PreToolUse")];
    let [claude, codex, gemini, opencode] = &pre;
    let patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-x\n+y\n*** End Patch";
    let cases = [
        (claude, "Write", json!({ "file_path": "/repo/d.txt", "content": "d" }), "/repo/d.txt"),
        (claude, "Edit", json!({ "file_path": "/repo/a", "old_string": "x", "new_string": "y" }), "/repo/a"),
        (claude, "NotebookEdit", json!({ "notebook_path": "/repo/n.ipynb", "new_source": "" }), "/repo/n.ipynb"),
        (claude, "Bash", json!({ "command": "sed -i s/base/x/ a.txt", "timeout": 5 }), "a.txt"),
        (claude, "Bash", json!({ "command": "cargo test" }), ""),
        (claude, "Bash", json!({ "command": "git commit -m x" }), "commit"),
        (claude, "Read", json!({ "file_path": "/repo/a" }), ""),
        (claude, "mcp__crewlog__reserve_paths", json!({ "paths": ["a"] }), ""),
        (claude, "mcp__plugin_crewlog_crewlog__reserve_paths", json!({ "paths": ["a"] }), ""),
        (claude, "mcp__other__write", json!({ "file_path": "a" }), ""),
        (codex, "apply_patch", json!({ "command": patch }), "a.txt, b.txt"),
        (codex, "Bash", json!({ "command": "sed -i s/base/x/ a.txt" }), "a.txt"),
        // Codex takes this patch out of the command: it arrives as a call of `apply_patch`, or as it is.
        (codex, "Bash", json!({ "command": format!("apply_patch <<'EOF'\n{patch}\nEOF") }), "a.txt, b.txt"),
        (codex, "exec_command", json!({ "cmd": "rm a", "workdir": "sub" }), "sub/a"),
        (codex, "mcp__crewlog__claim_task", json!({}), ""),
        (
            gemini,
            "replace",
            json!({ "file_path": "a.txt", "instruction": "i", "old_string": "", "new_string": "" }),
            "a.txt",
        ),
        (gemini, "write_file", json!({ "file_path": "d/a.txt", "content": "" }), "d/a.txt"),
        (gemini, "run_shell_command", json!({ "command": "echo > a", "dir_path": "sub" }), "sub/a"),
        (gemini, "mcp_crewlog_reserve_paths", json!({ "wait_for_previous": true }), ""),
        (opencode, "edit", json!({ "filePath": "/repo/a", "oldString": "", "newString": "" }), "/repo/a"),
        (opencode, "write", json!({ "filePath": "/repo/a", "content": "" }), "/repo/a"),
        (opencode, "apply_patch", json!({ "patchText": patch }), "a.txt, b.txt"),
        (opencode, "bash", json!({ "command": "rm a", "workdir": "/repo/sub" }), "/repo/sub/a"),
        (opencode, "bash", json!({ "command": "rm a", "workdir": null }), "a"),
        (opencode, "crewlog_reserve_paths", json!({}), ""),
        (opencode, "read", json!({ "filePath": "/repo/a" }), ""),
    ];
    for (input, tool, arguments, expected) in cases {
        let call = read(&calls(input.clone(), tool, &arguments));
        assert_eq!(changes(&call), expected, "{tool} {arguments}");
    }
}

#[test]
fn after_a_tool_call_the_same_paths_are_named() {
    let arguments = json!({ "file_path": "/repo/d.txt", "content": "d" });
    let response = json!({ "tool_response": { "type": "create", "originalFile": null }, "duration_ms": 3 });
    let call = read(&with(calls(claude("PostToolUse"), "Write", &arguments), &response));
    assert!(matches!(call.moment, Moment::After(_)), "{call:?}");
    assert_eq!(changes(&call), "/repo/d.txt");
}

#[test]
fn subagents_and_repeated_stops_are_seen() {
    let agent =
        read(&with(claude("Stop"), &json!({ "agent_id": "a1", "agent_type": "Explore", "stop_hook_active": true })));
    assert_eq!(agent.agent, Some(SubAgent { id: "a1".into(), kind: Some("Explore".into()) }));
    assert_eq!(agent.moment, Moment::Stop { is_repeated: true });
    // A session that runs as a named agent is not a subagent.
    let plain = read(&with(claude("Stop"), &json!({ "agent_type": "Explore", "stop_hook_active": false })));
    assert_eq!((plain.agent, plain.moment), (None, Moment::Stop { is_repeated: false }));
    let nulls = read(&with(claude("Stop"), &json!({ "agent_id": null, "stop_hook_active": null })));
    assert_eq!((nulls.agent, nulls.moment), (None, Moment::Stop { is_repeated: false }));
}

#[test]
fn input_that_no_host_sends_is_refused() {
    let write = |arguments: Value| calls(claude("PreToolUse"), "Write", &arguments);
    let cases = [
        (json!({}), "missing field `hook_event_name`"),
        (json!({ "hook_event_name": 5 }), "expected a string"),
        (json!({ "hook_event_name": "Stop", "session_id": "s" }), "missing field `cwd`"),
        (with(claude("Stop"), &json!({ "cwd": "repo" })), "`cwd` is not an absolute path"),
        (with(claude("Stop"), &json!({ "session_id": null })), "expected a string"),
        (with(claude("Stop"), &json!({ "agent_id": ["a"] })), "expected a string"),
        (with(claude("Stop"), &json!({ "stop_hook_active": "yes" })), "expected a boolean"),
        (claude("PreToolUse"), "missing field `tool_name`"),
        (with(claude("PreToolUse"), &json!({ "tool_name": "Write" })), "expected struct Write"),
        (write(json!("a")), "expected struct Write"),
        (write(json!({})), "missing field `file_path`"),
        (write(json!({ "file_path": ["a"] })), "expected path string"),
        (calls(codex("PreToolUse"), "apply_patch", &json!({ "command": ["a"] })), "expected a string"),
        (calls(opencode("PreToolUse"), "bash", &json!({ "command": "a", "workdir": 1 })), "expected path string"),
    ];
    for (input, expected) in cases {
        let error = parse(input.to_string().as_bytes()).expect_err(expected).to_string();
        assert!(error.contains(expected), "{input}: {error}");
    }
    let deep = "[".repeat(1_000_000);
    for input in [&b""[..], b" ", b"null", b"[]", b"{", b"{\"a\":\xff}", b"{\"cwd\":\"\xff\"}", deep.as_bytes()] {
        parse(input).expect_err("it is no object of JSON");
    }
}

#[test]
fn unneeded_fields_are_not_checked() {
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let input = format!(
        r#"{{"session_id":"s","cwd":"/r","hook_event_name":"PreToolUse","transcript_path":"/t.jsonl","tool_name":"Write",
            "tool_input":{{"file_path":"a","content":"\ud800","more":{nested}}},"else":{nested}}}"#
    );
    let call = parse(input.as_bytes()).expect("only the path is read");
    assert_eq!(changes(&call), "a");
    // The arguments of other tools are skipped.
    let read = r#"{"session_id":"s","cwd":"/r","hook_event_name":"PreToolUse","tool_name":"mcp__x__y","tool_input":7}"#;
    assert_eq!(parse(read.as_bytes()).expect("it is read").moment, Moment::Other);
}

#[test]
fn a_large_written_file_is_passed_over() {
    let input = calls(
        claude("PreToolUse"),
        "Write",
        &json!({ "file_path": "/repo/a", "content": "x".repeat(8 * 1024 * 1024) }),
    );
    assert_eq!(changes(&read(&input)), "/repo/a");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_fail(input in prop::collection::vec(any::<u8>(), 0..300)) {
        drop(parse(&input));
    }

    #[test]
    fn no_arguments_fail(
        event in prop::sample::select(vec!["PreToolUse", "AfterTool", "Stop", "SessionStart"]),
        tool in prop::sample::select(vec!["Write", "edit", "NotebookEdit", "apply_patch", "Bash", "exec_command", "crewlog_"]),
        name in prop::sample::select(vec!["file_path", "filePath", "notebook_path", "command", "cmd", "patchText", "workdir"]),
        text in ".*",
    ) {
        let input = with(opencode(event), &json!({ "tool_name": tool, "tool_input": { (name): text } }));
        if let Ok(Call { moment: Moment::Before(edits), .. }) = parse(input.to_string().as_bytes()) {
            prop_assert_ne!(edits, Edits::default());
        }
    }
}
