//! Over standard input and output.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crewlog_executors::crew::Crew;
use crewlog_executors::liveness::LivenessLock;
use crewlog_mq::EventStore;
use crewlog_planner::crew::asks::Answer;
use serde_json::{Value, json};

use super::{Client, assert_has, until};
use crate::cli::scene::{DEADLINE, Gate, Scene, named_pipe};

const TOOLS: [&str; 20] = [
    "join",
    "leave",
    "report",
    "check_paths",
    "reserve_paths",
    "release_paths",
    "request_release",
    "answer_release",
    "handoff",
    "next_task",
    "update_task",
    "create_tasks",
    "list_tasks",
    "list_leases",
    "send_message",
    "read_inbox",
    "wait_for_events",
    "get_brief",
    "get_status",
    "ask_person",
];

#[test]
fn tools_have_hints_and_flat_described_schemas() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "a");
    let listed = agent.request("tools/list", json!({}));
    assert_eq!(listed, {
        let mut again = agent.request("tools/list", json!({}));
        again["id"] = listed["id"].clone();
        again
    });
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS);
    for tool in tools {
        let hints = &tool["annotations"];
        assert!(hints["readOnlyHint"] == true || hints["destructiveHint"] == false, "{hints}");
        assert!(tool["description"].as_str().unwrap().starts_with("Call this"), "{}", tool["name"]);
        check_flat(&tool["inputSchema"]);
        assert_eq!(tool["outputSchema"], Value::Null);
    }
    assert!(listed.to_string().len() <= 12 * 1024, "the tools cost {} bytes", listed.to_string().len());
    // Each is carried out, or reports the missing argument.
    for tool in TOOLS {
        agent.call(tool, json!({ "timeout_seconds": 0 }));
    }
}

fn check_flat(schema: &Value) {
    for refused in ["anyOf", "oneOf", "allOf", "$ref", "$defs", "additionalProperties", "nullable"] {
        assert!(schema.get(refused).is_none(), "{refused} in {schema}");
    }
    assert!(schema["type"].is_string(), "{schema}");
    for property in schema["properties"].as_object().into_iter().flat_map(|properties| properties.values()) {
        check_flat(property);
    }
    if let Some(items) = schema.get("items") {
        check_flat(items);
    }
}

#[test]
fn instructions_fit_and_first_sentence_says_when() {
    let scene = Scene::with_repository();
    let mut client = Client::of(&scene);
    let answer = client.initialize("2025-11-25", "opencode");
    let instructions = answer["instructions"].as_str().unwrap();
    assert!(instructions.len() <= 1_024, "{}", instructions.len());
    let first = instructions.split_once(". ").unwrap().0;
    assert!(first.contains("before you edit files"), "{first}");
    let capabilities: BTreeSet<_> = answer["capabilities"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(capabilities, ["resources", "tools"].map(str::to_owned).into());
}

#[test]
fn two_agents_share_files_messages_tasks_and_answers() {
    let scene = Scene::with_repository();
    let (mut ada, mut bob) = (Client::named(&scene, "ada"), Client::named(&scene, "bob"));
    assert_has(&ada.call("join", json!({})), &json!({ "status": "joined", "agent": "ada", "resumed": false }));
    assert_has(&ada.call("join", json!({ "model": "m" })), &json!({ "status": "resumed", "agent": "ada" }));
    let granted = ada.call("reserve_paths", json!({ "paths": ["src/a.rs"], "wait_for_previous": false }));
    assert_has(&granted, &json!({ "status": "granted" }));
    assert_has(&granted["granted"][0], &json!({ "path": "src/a.rs", "holder": "ada", "exclusive": true }));
    let denied = bob.call("reserve_paths", json!({ "paths": ["src/**", "b.rs"] }));
    assert_has(&denied, &json!({ "status": "denied", "code": "held", "retryable": true }));
    assert_has(&denied["denied"][0], &json!({ "path": "src/**", "holder": "ada", "pattern": "src/a.rs" }));
    let partial = bob.call("reserve_paths", json!({ "paths": ["src/**", "b.rs"], "all_or_nothing": false }));
    assert_has(&partial, &json!({ "status": "partial" }));
    assert_has(&partial["granted"][0], &json!({ "path": "b.rs" }));
    let checked = bob.call("check_paths", json!({ "paths": ["b.rs", "c.rs", "src/a.rs"] }));
    assert_has(&checked, &json!({ "free": ["c.rs"], "mine": ["b.rs"] }));
    assert_eq!(checked["blocked"][0]["holder"], "ada");

    let letter = json!({ "to": ["ada"], "subject": "files", "body": "please release src", "ack_required": true });
    let sent = bob.call("send_message", letter);
    let inbox = ada.call("read_inbox", json!({}));
    assert_has(&inbox["messages"][0], &json!({ "from": "bob", "sender": "agent", "body": "please release src" }));
    assert_eq!(inbox["acks_due"], json!([sent["message_id"]]));
    ada.call("read_inbox", json!({ "ack": [sent["message_id"]] }));
    assert_eq!(ada.call("read_inbox", json!({}))["messages"], json!([]));
    let position = bob.call("get_status", json!({}))["position"].clone();
    bob.call("reserve_paths", json!({ "paths": ["src/**"], "wait_seconds": 1 }));
    assert_has(&ada.call("release_paths", json!({ "paths": ["src/a.rs"] })), &json!({ "released": [1] }));
    let events = bob.call("wait_for_events", json!({ "kinds": ["lease"], "since": position }));
    assert_has(&events["events"][0], &json!({ "summary": "your waiting request was granted: src/**" }));

    let tasks = json!([{ "key": "one", "title": "first", "files": ["x.rs"] }, { "key": "two", "title": "second", "depends_on": ["one"] }]);
    assert_has(&ada.call("create_tasks", json!({ "tasks": tasks })), &json!({ "status": "created" }));
    let event = bob.call("wait_for_events", json!({ "kinds": ["task"], "since": 0, "timeout_seconds": 20 }));
    assert!(event["events"][0]["summary"].as_str().unwrap_or_default().contains("backlog/1 is ready"), "{event}");
    let claimed = bob.call("next_task", json!({}));
    assert_has(&claimed, &json!({ "status": "claimed" }));
    assert_has(&claimed["leases"][0], &json!({ "path": "x.rs", "task": "backlog/1" }));
    assert_has(
        &ada.call("next_task", json!({ "id": "backlog/1" })),
        &json!({ "code": "taken", "message": "bob has the task" }),
    );
    assert_has(&ada.call("next_task", json!({ "id": "backlog/2" })), &json!({ "code": "not_ready" }));
    bob.call("update_task", json!({ "id": "backlog/1", "status": "progress", "step": "half", "next_step": "rest" }));
    let done = bob.call("update_task", json!({ "id": "backlog/1", "status": "done", "note": "it works" }));
    assert_eq!(done["leases_released"], json!([claimed["leases"][0]["lease_id"]]));
    let next = until(|| ada.call("next_task", json!({})), |next| next["status"] == "claimed");
    assert_eq!(next["task"]["id"], "backlog/2");

    let asked = ada.call("ask_person", json!({ "text": "may I push?", "kind": "permission" }));
    assert_has(&asked, &json!({ "status": "open", "number": 1 }));
    assert_eq!(ada.call("ask_person", json!({ "text": "may I push?", "kind": "permission" }))["number"], 1);
    assert_has(&bob.call("ask_person", json!({ "question": 1 })), &json!({ "code": "not_found" }));
    ada.close();
    let left = scene.events_of_type("AgentLeft");
    assert_has(&left[0], &json!({ "agent": "ada", "note": "its program ended" }));
    bob.close();
}

/// Of a task that a worker runs, one that failed, one of an agent, and one that is not there.
#[test]
fn an_agent_sees_one_task_whole_with_the_output_of_its_run() {
    let scene = Scene::with_repository();
    let mut gate = Gate::new(&scene, "gate");
    let go = named_pipe(&scene, "go");
    let command = format!("echo one; echo two >&2; {}; read x < go", Gate::pass("gate"));
    scene.write("plan.md", format!("- [P] Run:\n\n  ```sh\n  {command}\n  ```\n- [P] Run `echo no; exit 3`\n"));
    let running = scene.start(&["run", "plan.md", "--yes", "-q", "--set", "on-failure=continue"]);
    gate.wait();
    let plan = scene.run(&["ls", "-o", "json"]).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    let mut ada = Client::named(&scene, "ada");
    let mut get = |task: &str| ada.call("list_tasks", json!({ "id": task }));
    let running_task = until(|| get(&format!("{plan}/1")), |got| got["task"]["output"] == "one\ntwo");
    assert_has(&running_task["task"], &json!({ "state": "running", "attempts": 1, "command": command }));
    assert!(running_task["task"]["output_at"].is_string(), "{running_task}");
    let failed = until(|| get(&format!("{plan}/2")), |got| got["task"]["state"] == "failed");
    assert_has(&failed["task"], &json!({ "output": "no", "error": "exit code 3\nno", "result": null }));
    assert_has(&get(&format!("{plan}/3")), &json!({ "code": "refused" }));
    std::fs::write(go, "go\n").expect("it is read");
    running.finish().expect(100);
    let tasks = json!([{ "key": "a", "title": "Sort", "description": "by name", "files": ["list"] }]);
    assert_has(&ada.call("create_tasks", json!({ "tasks": tasks })), &json!({ "status": "created" }));
    let made = ada.call("list_tasks", json!({ "id": "backlog/1" }));
    assert_has(&made["task"], &json!({ "title": "Sort", "notes": "by name", "files": ["list"], "output": null }));
}

#[test]
fn one_session_is_one_agent_and_no_other_gets_its_name() {
    let scene = Scene::with_repository();
    scene.run(&["init", "--no-hosts"]).expect(0);
    let mut first = Client::start(scene.crewlog(&["mcp"]).env("AGENT_ID", "ada"));
    first.initialize("2025-06-18", "codex-mcp-client");
    first.meta = json!({ "x-codex-turn-metadata": { "session_id": "one" } });
    first.call("reserve_paths", json!({ "paths": ["a"] }));
    let mut same = Client::named(&scene, "ada");
    same.meta = first.meta.clone();
    assert_has(&same.call("join", json!({})), &json!({ "resumed": true }));
    assert_has(&first.call("report", json!({ "state": "working" })), &json!({ "status": "ok" }));
    // A program of its own: a new session of the same program keeps its name.
    let mut other = Client::of_another_program(&scene, "ada");
    other.meta = json!({ "x-codex-turn-metadata": { "session_id": "two" } });
    assert_has(&other.call("join", json!({})), &json!({ "agent": "ada-2", "resumed": false }));
    let mut asks = Client::of_another_program(&scene, "other");
    asks.meta = json!({ "x-codex-turn-metadata": { "session_id": "three" } });
    let refused = asks.call("join", json!({ "name": "ada" }));
    assert_has(&refused, &json!({ "status": "denied", "code": "name_taken", "retryable": false }));
    assert_has(&first.call("reserve_paths", json!({ "paths": ["b"] })), &json!({ "status": "granted" }));
    let joined = scene.events_of_type("AgentJoined");
    assert_eq!(
        joined.iter().map(|event| event["profile"]["program"].as_str().unwrap()).collect::<Vec<_>>(),
        ["codex", "claude-code"]
    );
    assert_eq!(joined.iter().map(|event| &event["agent"]).collect::<Vec<_>>(), ["ada", "ada-2"]);
}

#[test]
fn without_a_name_the_program_names_the_agent() {
    for (program, name) in [("gemini-cli-mcp-client", "geminicli-1"), ("opencode", "opencode-1")] {
        let scene = Scene::with_repository();
        let mut client = Client::of(&scene);
        client.initialize("2025-06-18", program);
        assert_eq!(client.call("get_status", json!({}))["you"], name);
    }
}

#[test]
fn restarted_server_goes_on_as_the_same_agent() {
    let scene = Scene::with_repository();
    let (mut first, mut second) = (Client::of(&scene), Client::of(&scene));
    first.initialize("2025-06-18", "claude-code");
    first.call("reserve_paths", json!({ "paths": ["a"] }));
    second.initialize("2025-06-18", "claude-code");
    assert_has(&second.call("check_paths", json!({ "paths": ["a"] })), &json!({ "mine": ["a"] }));
    // The old server ends after the new one has begun: the session continues under its name.
    first.close();
    assert_eq!(second.call("get_status", json!({}))["you"], "claudecode-1");
}

#[test]
fn subagent_gets_a_handle_of_its_own() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ada");
    agent.call("join", json!({}));
    let handle = agent.call("join", json!({ "name": "scout", "parent": "ada" }))["agent"].clone();
    assert_eq!(agent.call("get_status", json!({ "agent": handle }))["you"], "ada/scout");
    assert_eq!(agent.call("get_status", json!({}))["you"], "ada");
    assert_has(&agent.call("get_status", json!({ "agent": "x" })), &json!({ "code": "unknown_agent" }));
    let mut bob = Client::named(&scene, "bob");
    bob.call("join", json!({}));
    for parent in ["ada", "ada/scout", "nobody"] {
        let refused = bob.call("join", json!({ "name": "spy", "parent": parent }));
        assert_has(&refused, &json!({ "status": "invalid" }));
    }
}

#[test]
fn paths_begin_at_the_root_and_each_name_of_a_file_is_that_file() {
    let scene = Scene::with_repository();
    let folder = scene.folder().join("dir");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("dir", scene.folder().join("ln")).unwrap();
    scene.run(&["init", "--no-hosts"]).expect(0);
    let mut below = Client::start(scene.crewlog(&["mcp"]).env("AGENT_ID", "ada").current_dir(&folder));
    below.initialize("2025-06-18", "claude-code");
    let mut bob = Client::named(&scene, "bob");
    assert_has(&below.call("reserve_paths", json!({ "paths": ["dir/a"] }))["granted"][0], &json!({ "path": "dir/a" }));
    let of = |file: &str| json!({ "tasks": [{ "key": "k", "title": "t", "files": [file] }] });
    for unleasable in ["**", "../x", ".", "", "a\u{1}"] {
        assert_has(&bob.call("create_tasks", of(unleasable)), &json!({ "status": "invalid" }));
    }
    let absolute = folder.join("b");
    for file in ["ln/b", "dir/b", absolute.to_str().unwrap()] {
        assert_has(&bob.call("create_tasks", of(file)), &json!({ "status": "created" }));
    }
    let claimed = below.call("next_task", json!({}));
    assert_has(&claimed["leases"][0], &json!({ "path": "dir/b", "holder": "ada" }));
    let none = bob.call("next_task", json!({}));
    assert_eq!((none["status"].as_str(), none["why_not"].as_array().unwrap().len()), (Some("none"), 2), "{none}");
}

#[test]
fn agent_that_has_a_name_gets_another_only_after_it_left() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ada");
    agent.call("get_status", json!({}));
    let refused = agent.call("join", json!({ "name": "bob" }));
    assert_has(&refused, &json!({ "status": "denied", "code": "named", "message": "your session is ada already" }));
    assert_has(&agent.call("join", json!({ "name": "ada" })), &json!({ "status": "resumed", "name": "ada" }));
    agent.call("leave", json!({}));
    assert_has(&agent.call("join", json!({ "name": "bob" })), &json!({ "status": "joined", "name": "bob" }));
}

#[cfg(feature = "sealing")]
#[test]
fn result_kept_for_a_key_has_no_text_of_a_sealed_task() {
    let scene = Scene::with_repository();
    let key = scene.path("a.key").to_str().unwrap().to_owned();
    scene.run(&["keys", "new", &key]).expect(0);
    let scene = scene.with_env("CREWLOG_KEY_FILE", key);
    let mut agent = Client::named(&scene, "ada");
    let tasks = json!([{ "key": "k", "title": "find xyzzy", "description": "xyzzy is hidden" }]);
    agent.call("create_tasks", json!({ "tasks": tasks, "idempotency_key": "c" }));
    let claim = json!({ "idempotency_key": "n" });
    let claimed = until(|| agent.call("next_task", claim.clone()), |next| next["status"] == "claimed");
    assert_has(&claimed["task"], &json!({ "title": "find xyzzy", "notes": "xyzzy is hidden" }));
    let again = agent.call("next_task", claim);
    assert_eq!((&again["status"], &again["task"]), (&claimed["status"], &json!({ "id": "backlog/1" })));
    assert!(again["note"].as_str().unwrap().contains("next_task"), "{again}");
    assert_has(&agent.call("next_task", json!({ "id": "backlog/1" }))["task"], &json!({ "title": "find xyzzy" }));
    assert_no_file_has(&scene, "xyzzy");
}

/// Searches the files of the log.
fn assert_no_file_has(scene: &Scene, text: &str) {
    let files = std::fs::read_dir(scene.path(".crewlog")).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|file| file.is_file()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "{}", file.display());
    }
}

#[test]
fn repeated_key_gives_the_first_result() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ada");
    let letter = |body: &str| json!({ "to": ["ada"], "subject": "s", "body": body, "idempotency_key": "k" });
    let first = agent.call("send_message", letter("one"));
    assert_eq!(agent.call("send_message", letter("one")), first);
    assert_has(&agent.call("send_message", letter("two")), &json!({ "status": "denied", "code": "key_reused" }));
    assert_eq!(scene.events_of_type("MessageSent").len(), 1);
    // A refused call does not use up its key.
    let bad = json!({ "to": ["nobody"], "subject": "s", "body": "b", "idempotency_key": "l" });
    assert_has(&agent.call("send_message", bad), &json!({ "code": "refused" }));
    let good = json!({ "to": ["ada"], "subject": "s", "body": "b", "idempotency_key": "l" });
    assert_has(&agent.call("send_message", good), &json!({ "status": "sent" }));
}

#[test]
fn racing_calls_with_one_key_have_one_effect_and_one_result() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ada");
    agent.call("join", json!({}));
    let letter = json!({ "to": ["ada"], "subject": "s", "body": "b", "idempotency_key": "k" });
    let call = json!({ "name": "send_message", "arguments": letter });
    for id in 0..8 {
        agent.write(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }).to_string());
    }
    let results: Vec<_> = (0..8).map(|_| super::checked(&agent.read())["structuredContent"].clone()).collect();
    assert_has(&results[0], &json!({ "status": "sent" }));
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    assert_eq!(scene.events_of_type("MessageSent").len(), 1);
}

/// The server is killed at all moments of a call: its key is settled at once by the proof that it is dead.
#[test]
fn a_call_of_a_killed_server_has_one_effect_and_its_key_is_settled_at_once() {
    let scene = Scene::with_repository();
    let mut lost = 0;
    for round in 0..24_u64 {
        let mut agent = Client::named(&scene, "ada");
        agent.call("join", json!({}));
        let letter = json!({ "to": ["ada"], "subject": format!("s{round}"), "body": "b", "idempotency_key": format!("k{round}") });
        let call = json!({ "name": "send_message", "arguments": letter });
        agent.write(&json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": call }).to_string());
        std::thread::park_timeout(Duration::from_micros(round * 500));
        agent.kill();
        let mut again = Client::named(&scene, "ada");
        let result = again.call("send_message", letter);
        lost += usize::from(result["code"] == "done");
        assert!(result["status"] == "sent" || result["code"] == "done", "{result}");
        again.close();
        let sent = scene.events_of_type("MessageSent");
        let subject = json!(format!("s{round}"));
        assert_eq!(sent.iter().filter(|event| event["message"]["subject"] == subject).count(), 1, "round {round}");
    }
    assert!(lost < 24, "not every moment is after the effect");
}

#[test]
fn results_stay_small_with_a_thousand_leases() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ada");
    for folder in 0..5 {
        let paths: Vec<_> = (0..200).map(|file| format!("a-long-name-of-a-folder-{folder}/file-{file}.rs")).collect();
        assert_has(&agent.call("reserve_paths", json!({ "paths": paths })), &json!({ "status": "granted" }));
    }
    let (mut numbers, mut cursor) = (BTreeSet::new(), json!(0));
    while !cursor.is_null() {
        let page = agent.call("list_leases", json!({ "cursor": cursor, "limit": 200 }));
        numbers.extend(page["leases"].as_array().unwrap().iter().map(|lease| lease["lease_id"].as_u64().unwrap()));
        cursor = page["next_cursor"].clone();
    }
    assert_eq!(numbers.len(), 1_000);
    let long = json!({ "to": ["ada"], "subject": "long", "body": "ä".repeat(8_000) });
    agent.call("send_message", long);
    let mail = agent.call("read_inbox", json!({}));
    assert!(mail["messages"][0]["body"].as_str().unwrap().contains("for the rest"), "{mail}");
    assert_has(&agent.call("join", json!({})), &json!({ "status": "resumed" }));
    agent.call("get_status", json!({ "view": "agents" }));
    agent.call("release_paths", json!({}));
}

#[test]
fn answers_the_revision_that_was_asked_for() {
    let scene = Scene::with_repository();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::of(&scene);
        assert_eq!(client.initialize(revision, "claude-code")["protocolVersion"], revision);
        client.call("get_status", json!({}));
    }
    let scene = Scene::with_repository();
    let mut client = Client::of(&scene);
    client.meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "codex-mcp-client", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.request("server/discover", json!({}))["result"].clone();
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    let listed = client.request("tools/list", json!({}))["result"].clone();
    assert_has(&listed, &json!({ "resultType": "complete" }));
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"].is_string(), "{}", listed["ttlMs"]);
    let result = client.raw_call("join", json!({}));
    assert_eq!((&result["resultType"], &result["structuredContent"]["name"]), (&json!("complete"), &json!("codex-1")));
}

#[test]
fn hostile_input_is_refused_and_the_server_lives() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ada");
    let unknown = agent.call("check_paths", json!({ "paths": ["a"], "idempotency_key": 5, "task": null, "x": {} }));
    assert_has(&unknown, &json!({ "status": "ok", "free": ["a"] }));
    for (tool, arguments) in [
        ("reserve_paths", json!({})),
        ("reserve_paths", json!({ "paths": "a" })),
        ("reserve_paths", json!({ "paths": [1] })),
        ("reserve_paths", json!({ "paths": ["a"], "ttl_seconds": 1e300 })),
        ("reserve_paths", json!({ "paths": ["a"], "ttl_seconds": -1 })),
        ("reserve_paths", json!({ "paths": vec!["a"; 201] })),
        ("reserve_paths", json!({ "paths": [null] })),
        ("create_tasks", json!({ "tasks": [{ "key": 1, "title": "one" }] })),
        ("read_inbox", json!({ "since": u64::MAX })),
        ("create_tasks", json!({ "tasks": [] })),
        ("update_task", json!({ "id": "backlog/1", "status": "deleted" })),
        ("wait_for_events", json!({ "kinds": ["everything"] })),
        ("drop_all", json!({})),
    ] {
        let result = agent.raw_call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert_has(&result["structuredContent"], &json!({ "status": "invalid", "retryable": false }));
    }
    for (tool, arguments, code) in [
        ("reserve_paths", json!({ "paths": ["../x"] }), "invalid"),
        ("check_paths", json!({ "paths": ["a", "/etc/x"] }), "invalid"),
        ("reserve_paths", json!({ "paths": ["a\u{0}b"] }), "invalid"),
        ("reserve_paths", json!({ "paths": [""] }), "invalid"),
        ("reserve_paths", json!({ "paths": [] }), "refused"),
        ("answer_release", json!({ "request": 9, "answer": "keep" }), "refused"),
        ("handoff", json!({ "action": "offer", "to": "nobody" }), "refused"),
        ("handoff", json!({ "action": "accept", "number": 9 }), "refused"),
        ("next_task", json!({ "id": "\u{202e}/9" }), "refused"),
        ("read_inbox", json!({ "ack": [9] }), "refused"),
        ("ask_person", json!({}), "refused"),
        ("join", json!({ "name": "a b" }), "named"),
        ("join", json!({ "worktree": "/" }), "invalid"),
        ("report", json!({ "state": "working", "note": "x".repeat(300_000) }), "invalid"),
        ("reserve_paths", json!({ "paths": ["a"], "reason": "x".repeat(900_000) }), "invalid"),
    ] {
        let result = agent.call(tool, arguments);
        assert_eq!(result["code"].as_str().unwrap_or_default(), code, "{tool}: {result}");
    }
    for line in ["", "{", "[]", "null", "\u{0}\u{1}", &"[".repeat(5_000), &format!("\"{}\"", "x".repeat(2 << 20))] {
        agent.write(line);
    }
    agent.write(&json!({ "jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": { "name": "get_status", "arguments": 7 } }).to_string());
    let begun = Instant::now();
    while agent.read()["id"] != "last" && begun.elapsed() < Duration::from_secs(30) {
        agent.write(&json!({ "jsonrpc": "2.0", "id": "last", "method": "ping" }).to_string());
    }
    agent.close();
}

#[test]
fn killed_server_frees_its_files_and_its_task() {
    let scene = Scene::with_repository();
    let (mut ada, mut bob) = (Client::named(&scene, "ada"), Client::named(&scene, "bob"));
    ada.call("create_tasks", json!({ "tasks": [{ "key": "one", "title": "first", "files": ["x.rs"] }] }));
    until(|| ada.call("next_task", json!({})), |next| next["status"] == "claimed");
    ada.call("update_task", json!({ "id": "backlog/1", "status": "progress", "next_step": "go on here" }));
    ada.call("reserve_paths", json!({ "paths": ["y.rs"] }));
    assert_has(&bob.call("reserve_paths", json!({ "paths": ["y.rs"] })), &json!({ "status": "denied" }));
    ada.kill();
    assert_has(&bob.call("reserve_paths", json!({ "paths": ["y.rs"] })), &json!({ "status": "granted" }));
    let claimed = bob.call("next_task", json!({}));
    assert_has(&claimed, &json!({ "status": "claimed" }));
    assert_has(&claimed["task"], &json!({ "id": "backlog/1", "next_step": "go on here" }));
    assert_has(&scene.events_of_type("AgentLost")[0], &json!({ "agent": "ada", "is_dead": true }));
}

#[test]
fn server_ends_with_its_program_though_its_input_is_open() {
    let scene = Scene::with_repository();
    let mut agent = Client::of_another_program(&scene, "ada");
    agent.call("reserve_paths", json!({ "paths": ["x.rs"] }));
    agent.server.kill().unwrap();
    assert_eq!(agent.lines.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected));
    assert_has(&scene.events_of_type("AgentLeft")[0], &json!({ "agent": "ada", "note": "its program ended" }));
}

#[test]
fn waiting_request_is_granted_when_files_are_free() {
    let scene = Scene::with_repository();
    let (mut ada, mut bob) = (Client::named(&scene, "ada"), Client::named(&scene, "bob"));
    ada.call("reserve_paths", json!({ "paths": ["x.rs"] }));
    let queued = bob.call("reserve_paths", json!({ "paths": ["x.rs"], "wait_seconds": 1 }));
    assert_has(&queued, &json!({ "status": "queued" }));
    let begun = Instant::now();
    let waiting = json!({ "name": "reserve_paths", "arguments": { "paths": ["x.rs"], "wait_seconds": 45 } });
    bob.write(&json!({ "jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": waiting }).to_string());
    assert_eq!(ada.call("release_paths", json!({}))["now_granted_to"], json!(["bob"]));
    assert_eq!(super::checked(&bob.read())["structuredContent"]["status"], "granted");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn secrets_are_redacted_before_they_are_appended() {
    let scene = Scene::with_repository().with_env("DEPLOY_TOKEN", "hunter2hunter2");
    scene.write("crewlog.toml", "[secrets]\npatterns = [\"sk-[a-z0-9]+\"]\nenv = [\"DEPLOY_TOKEN\"]\n");
    let (mut agent, mut bob) = (Client::named(&scene, "ada"), Client::named(&scene, "bob"));
    agent.call("send_message", json!({ "to": ["ada"], "subject": "keys", "body": "use sk-abc1 or hunter2hunter2" }));
    let asked = agent.call("ask_person", json!({ "text": "is sk-abc1 right?", "choices": ["sk-abc1"] }));
    assert_has(&asked, &json!({ "status": "open", "number": 1 }));
    bob.call("reserve_paths", json!({ "paths": ["x"] }));
    let waiting = json!({ "paths": ["x"], "reason": "sk-abc1", "wait_seconds": 1, "idempotency_key": "sk-abc1" });
    assert_has(&agent.call("reserve_paths", waiting), &json!({ "status": "queued" }));
    assert_eq!(scene.events_of_type("LeasesQueued").len(), 1);
    agent.call("create_tasks", json!({ "tasks": [{ "key": "k", "title": "rotate sk-abc1" }] }));
    assert_eq!(scene.events_of_type("MessageSent")[0]["message"]["body"], "use [redacted] or [redacted]");
    let log = scene.run(&["export"]).expect(0).stdout;
    assert!(!log.contains("sk-abc1") && !log.contains("hunter2"), "{log}");
    assert_no_file_has(&scene, "sk-abc1");
    scene.write("crewlog.toml", "[secrets]\npatterns = [\"x*\"]\n");
    scene.run(&["mcp"]).expect(1).says(&["crewlog.toml:2:12", "matches the empty text"]);
}

#[test]
fn standard_output_carries_the_protocol_only() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ada");
    agent.call("join", json!({}));
    drop(agent.server.stdin.take());
    assert!(agent.server.wait().unwrap().success());
    assert!(agent.lines.recv().is_err());
}

#[test]
fn resource_shows_what_waits_for_the_person() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ada");
    agent.call("ask_person", json!({ "text": "may I push?", "kind": "permission", "task": "backlog/1" }));
    assert_eq!(agent.request("resources/list", json!({}))["result"]["resources"][0]["uri"], "crewlog://inbox");
    let answer = agent.request("resources/read", json!({ "uri": "crewlog://inbox" }));
    let inbox: Value = serde_json::from_str(answer["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    let item = &inbox["items"][0];
    assert_has(item, &json!({ "kind": "permission", "from": "ada", "text": "may I push?", "holds_up": ["backlog/1"] }));
    assert_eq!(item["commands"], json!(["crewlog answer a1 allow", "crewlog answer a1 deny"]));
    assert!(item["age_ms"].is_u64(), "{item}");
    let missing = agent.request("resources/read", json!({ "uri": "crewlog://nothing" }));
    assert_eq!(missing["error"]["code"], -32002);
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_of_the_person_reaches_the_agent_that_waits() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ada");
    let project = agent.call("get_status", json!({}))["project"].as_str().unwrap().to_owned();
    let question = json!({ "text": "may I push?", "kind": "permission" });
    assert_has(&agent.call("ask_person", question.clone()), &json!({ "status": "open", "number": 1 }));
    let waiting = json!({ "name": "ask_person", "arguments": { "question": 1, "wait_seconds": 45 } });
    agent.write(&json!({ "jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": waiting }).to_string());

    let store = EventStore::open(scene.path(".crewlog/log.db").to_str().unwrap()).await.unwrap();
    let life = LivenessLock::begin(&scene.path(".crewlog/log.db-workers")).unwrap();
    let person = Crew::new(&store, &project, Arc::new(life));
    let answer = |text: &str| Answer { by: "eve".into(), text: text.into(), is_granted: Some(true) };
    person.answer(1, answer("yes, once")).await.unwrap();
    let answered = super::checked(&agent.read())["structuredContent"].clone();
    assert_has(&answered, &json!({ "status": "answered", "answer": "yes, once", "is_granted": true }));
    // An answer does not apply to the next question with the same words.
    assert_has(&agent.call("ask_person", question), &json!({ "status": "open", "number": 2 }));
    person.answer(2, answer("again")).await.unwrap();
    let later = agent.call("ask_person", json!({ "question": 2 }));
    assert_has(&later, &json!({ "status": "answered", "number": 2, "answer": "again" }));
}

#[test]
fn agents_add_no_tasks_to_a_backlog_of_a_thousand() {
    let scene = Scene::with_repository();
    let mut agent = Client::named(&scene, "ann");
    let tasks = |n: usize| -> Vec<Value> { (0..n).map(|n| json!({ "key": n.to_string(), "title": "Look" })).collect() };
    for _ in 0..10 {
        assert_eq!(agent.call("create_tasks", json!({ "tasks": tasks(100) }))["status"], "created");
    }
    let refused = agent.call("create_tasks", json!({ "tasks": tasks(1) }));
    assert!(refused["message"].as_str().unwrap().contains("at most 1000 open ones; it has 1000"), "{refused}");
    scene.run(&["task", "add", "One more", "--yes"]).expect(0);
}
