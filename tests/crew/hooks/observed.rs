//! The state of sessions as their programs show it: activity, context, cost, limits, and the health that follows.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::rig::{HOSTS, Rig, claude, edit, with};
use crate::cli::scene::{Ran, Running};

/// The agent of a rig.
fn agent(rig: &Rig, name: &str) -> Value {
    let shown = rig.0.run(&["agents", "-o", "json"]).expect(0).json();
    shown["agents"].as_array().unwrap().iter().find(|agent| agent["agent"] == name).cloned().unwrap_or_default()
}

fn state(rig: &Rig) -> String {
    let agent = agent(rig, "ann");
    let doing = agent["doing"].as_str().map_or_else(String::new, |doing| format!(" {doing}"));
    format!("{}{doing}", agent["activity"].as_str().unwrap_or("-"))
}

/// The changes of health that were recorded: `health reason`.
fn changes(rig: &Rig) -> Vec<String> {
    let events = rig.0.events_of_type("AgentHealthChanged");
    let shown = |event: &Value| format!("{} {}", event["health"].as_str().unwrap(), event["reason"].as_str().unwrap());
    events.iter().map(shown).collect()
}

/// An input of a host, with its own name for the event.
fn of(rig: &Rig, host: &str, event: &str) -> Value {
    let named = match (host, event) {
        ("gemini", "UserPromptSubmit") => "BeforeAgent",
        ("gemini", "Stop") => "AfterAgent",
        _same => event,
    };
    let mut input = edit(host, rig.0.folder(), "a.txt");
    let fields = input.as_object_mut().unwrap();
    fields.remove("tool_name");
    fields.remove("tool_input");
    with(input, json!({ "hook_event_name": named }))
}

#[test]
fn hooks_of_each_program_show_what_its_agent_does() {
    for host in HOSTS {
        let rig = Rig::new();
        let check = |input: Value, expected: &str| {
            rig.hook("ann", &input);
            assert_eq!(state(&rig), expected, "{host}: {input}");
        };
        check(of(&rig, host, "SessionStart"), "idle");
        check(of(&rig, host, "UserPromptSubmit"), "working");
        let path = edit(host, rig.0.folder(), "a.txt");
        let tool = path["tool_name"].as_str().unwrap();
        rig.hook("ann", &path);
        assert!(state(&rig).starts_with(&format!("working {tool}: ")), "{host}: {}", state(&rig));
        if host != "opencode" {
            let asks = if host == "gemini" { "Notification" } else { "PermissionRequest" };
            let wait = json!({ "notification_type": "ToolPermission" });
            rig.0.write("crewlog.toml", "[hooks]\npermission_wait = \"off\"\n");
            rig.hook("ann", &with(of(&rig, host, asks), wait));
            assert!(state(&rig).starts_with("waiting"), "{host}: {}", state(&rig));
        }
        check(of(&rig, host, "Stop"), "idle");
    }
}

#[test]
fn a_command_is_shown_by_its_first_words_without_secrets() {
    let rig = Rig::new();
    rig.0.write("crewlog.toml", "[secrets]\npatterns = [\"hunter[0-9]\"]\n");
    rig.asks("ann", "SessionStart");
    for (command, expected) in [
        ("cargo test --workspace --all-features -- --nocapture", "working Bash: cargo test --workspace"),
        ("TOKEN=abc123 deploy hunter2", "working Bash: deploy [redacted]"),
    ] {
        rig.asks("ann", "Stop");
        assert_eq!(rig.shell("ann", command), "");
        assert_eq!(state(&rig), expected);
    }
}

#[test]
fn errors_and_notifications_of_claude_code_change_its_state() {
    let rig = Rig::new();
    rig.asks("ann", "SessionStart");
    let event = |event: &str, fields: Value| rig.hook("ann", &with(claude(rig.0.folder(), event), fields));
    for (name, fields, expected) in [
        ("UserPromptSubmit", json!({}), "working"),
        ("Notification", json!({ "notification_type": "auth_success", "message": "m" }), "working"),
        ("Notification", json!({ "notification_type": "permission_prompt", "message": "m" }), "waiting"),
        ("UserPromptSubmit", json!({}), "working"),
        ("PreCompact", json!({ "trigger": "auto" }), "working compacts its context"),
        ("PostCompact", json!({ "trigger": "auto", "compact_summary": "s" }), "working"),
        ("StopFailure", json!({ "error": "overloaded" }), "error"),
        ("UserPromptSubmit", json!({}), "working"),
    ] {
        assert_eq!(event(name, fields.clone()), "", "{name}");
        assert_eq!(state(&rig), expected, "{name} {fields}");
    }
    assert_eq!(changes(&rig), ["error overloaded", "healthy "]);
}

#[test]
fn a_refused_stop_leaves_the_agent_working_and_its_report_counts_in_its_turn() {
    let rig = Rig::new();
    rig.asks("ann", "SessionStart");
    rig.asks("ann", "UserPromptSubmit");
    rig.0.run(&["send", "ann", "--subject", "hello"]).expect(0);
    assert!(rig.asks("ann", "Stop").contains("block"));
    assert_eq!(state(&rig), "working");
    rig.with_crew(async |crew, _| {
        let report = crewlog_planner::crew::agents::Report {
            activity: crewlog_planner::crew::agents::Activity::Blocked,
            ..Default::default()
        };
        let caller = crew.caller("ann").await.unwrap();
        crew.report(&caller, report).await.unwrap();
    });
    rig.hook("ann", &with(claude(rig.0.folder(), "Stop"), json!({ "stop_hook_active": true })));
    assert_eq!(state(&rig), "blocked");
    rig.asks("ann", "UserPromptSubmit");
    assert_eq!(state(&rig), "working");
}

#[test]
fn transcripts_show_the_use_of_the_context_and_unknown_stays_unknown() {
    for (host, expected) in [
        ("claude", json!([null, 5535, 0.129_308])),
        ("codex", json!([2, 7349, null])),
        ("gemini", json!([null, 7081, null])),
        ("opencode", json!([null, null, null])),
    ] {
        let rig = Rig::new();
        rig.hook("ann", &of(&rig, host, "SessionStart"));
        rig.hook("ann", &of(&rig, host, "UserPromptSubmit"));
        let name = if host == "codex" { "rollout-1.jsonl" } else { "transcript.jsonl" };
        let mut stop = of(&rig, host, "Stop");
        if host != "opencode" {
            let recorded = format!("{}/tests/fixtures/transcripts/{host}.jsonl", env!("CARGO_MANIFEST_DIR"));
            // A long transcript is read from its end only, and not from the middle of a line.
            let text = format!("{}\n{}", "x".repeat(300 << 10), fs::read_to_string(recorded).unwrap());
            rig.0.write(name, text);
            stop["transcript_path"] = json!(rig.0.path(name));
        }
        rig.hook("ann", &stop);
        let ann = agent(&rig, "ann");
        assert_eq!(json!([ann["context_usage"], ann["tokens"], ann["cost_usd"]]), expected, "{host}: {ann}");
    }
}

#[test]
fn a_transcript_that_cannot_be_read_changes_nothing() {
    let rig = Rig::new();
    rig.asks("ann", "SessionStart");
    rig.0.write(
        "odd.jsonl",
        "{\"message\":{\"usage\":7}}\n\"usage\"\n{\"tokens\":{\"total\":-1},\"type\":\"gemini\"}\n",
    );
    for path in [rig.0.path("none.jsonl"), rig.0.path("odd.jsonl"), rig.0.folder().to_owned(), "/dev/zero".into()] {
        let stop = with(claude(rig.0.folder(), "Stop"), json!({ "transcript_path": path }));
        assert_eq!(rig.hook("ann", &stop), "", "{path:?}");
        assert_eq!((agent(&rig, "ann")["tokens"].clone(), state(&rig)), (Value::Null, "idle".to_owned()), "{path:?}");
    }
}

/// Draws the status line of ann's session.
fn status_line(rig: &Rig, words: &[&str], fields: Value) -> Ran {
    let input = with(json!({ "session_id": "ann-c1", "cwd": rig.0.folder(), "model": { "id": "m" } }), fields);
    rig.0.write("input.json", input.to_string());
    let mut command = rig.command(rig.0.folder(), &[&["hook", "status-line"], words].concat());
    command.env("HOME", rig.0.path("home")).env_remove("CLAUDE_CONFIG_DIR");
    let file = fs::File::open(rig.0.path("input.json")).unwrap();
    Running::start(command.stdin(Stdio::from(file))).finish()
}

fn used(context: f64, five_hour: u64, until: i64) -> Value {
    json!({ "context_window": { "used_percentage": context }, "cost": { "total_cost_usd": 1.25 },
            "rate_limits": { "five_hour": { "used_percentage": five_hour, "resets_at": until } } })
}

#[test]
fn the_status_line_shows_the_persons_own_and_records_context_cost_and_limits() {
    let rig = Rig::new();
    rig.asks("ann", "SessionStart");
    rig.reserves("bob", "b.txt", "works");
    let drawn = |words: &[&str]| status_line(&rig, words, used(62.9, 40, 2_000_000_000)).expect(0).stdout;
    assert_eq!(drawn(&[]), "ann · 0 leases · 0 unread");
    let ann = agent(&rig, "ann");
    assert_eq!(
        (&ann["context_usage"], &ann["cost_usd"], &ann["limits"]),
        (&json!(62), &json!(1.25), &json!({ "five_hour": 40 }))
    );
    assert!(rig.0.run(&["agents"]).expect(0).stdout.contains("ann  alive  idle  62 %"));
    assert_eq!(drawn(&["--then", "cat | grep -c session_id"]), "1\n");
    fs::create_dir_all(rig.0.path("home/.claude")).unwrap();
    rig.0.write("home/.claude/settings.json", r#"{"statusLine":{"type":"command","command":"echo mine"}}"#);
    assert_eq!(drawn(&[]), "mine\n");
    // Its own failure and output that is not JSON are the program's to show.
    status_line(&rig, &["--then", "exit 3"], json!({})).expect(3);
    assert_eq!(changes(&rig), [""; 0]);
}

#[test]
fn a_full_context_is_one_event_until_it_is_compacted() {
    let rig = Rig::new();
    rig.asks("ann", "SessionStart");
    for _ in 0..2 {
        status_line(&rig, &[], used(85.9, 100, 1)).expect(0);
    }
    assert_eq!(changes(&rig), [""; 0], "85 is not over 85, and the limit is over");
    for _ in 0..2 {
        status_line(&rig, &[], used(86.0, 99, 2_000_000_000)).expect(0);
    }
    assert_eq!(changes(&rig), ["context its context is 86 % full"]);
    rig.asks("ann", "PostCompact");
    assert_eq!(agent(&rig, "ann")["context_usage"], Value::Null, "unknown until the next answer");
    assert_eq!(changes(&rig), ["context its context is 86 % full", "healthy "]);
}

#[test]
fn an_agent_whose_context_is_nearly_full_is_asked_once_to_write_down_where_to_continue() {
    for (used_up, expected) in [(79.9, [false, false]), (80.0, [true, false])] {
        let rig = Rig::new();
        rig.asks("ann", "SessionStart");
        status_line(&rig, &[], used(used_up, 0, 1)).expect(0);
        let advised = || rig.asks("ann", "UserPromptSubmit").contains("your context is nearly full");
        assert_eq!([advised(), advised()], expected, "{used_up}");
    }
}

#[test]
fn a_session_at_its_limit_opens_the_breaker_of_its_program_only() {
    let rig = Rig::new();
    let agents = "[executors.runs-claude]\ncommand = [\"/opt/bin/claude\", \"-p\"]\n\
                  [executors.runs-codex]\ncommand = [\"codex\", \"exec\"]\n";
    rig.0.write("crewlog.toml", agents);
    rig.asks("ann", "SessionStart");
    for _ in 0..2 {
        status_line(&rig, &[], used(10.0, 100, 4_000_000_000)).expect(0);
        rig.hook("ann", &with(claude(rig.0.folder(), "StopFailure"), json!({ "error": "rate_limit" })));
    }
    let opened: Vec<_> = rig.0.events().into_iter().filter(|event| event["event_type"] == "BreakerOpened").collect();
    assert_eq!(opened.len(), 1, "{opened:#?}");
    assert!(opened[0]["aggregate_id"].as_str().unwrap().starts_with("runs-claude@"), "{opened:#?}");
    assert_eq!(changes(&rig), ["limited its limit five_hour"]);
    let ann = agent(&rig, "ann");
    assert!(ann["limited_until"].as_str().unwrap().starts_with("2096-10-02T07:06:40"), "{ann}");
    assert_eq!(rig.0.run(&["inbox", "-o", "json"]).expect(0).json()["items"], json!([]), "nobody can act");
}

#[test]
fn an_error_waits_in_the_inbox_until_the_session_goes_on() {
    let rig = Rig::new();
    rig.asks("ann", "SessionStart");
    rig.hook("ann", &with(claude(rig.0.folder(), "StopFailure"), json!({ "error": "server_error" })));
    let items = rig.0.run(&["inbox", "-o", "json"]).expect(0).json()["items"].clone();
    assert_eq!((&items[0]["kind"], &items[0]["id"]), (&json!("health"), &json!("ann")), "{items}");
    assert!(items[0]["text"].as_str().unwrap().contains("server_error"), "{items}");
    rig.asks("ann", "UserPromptSubmit");
    assert_eq!(rig.0.run(&["inbox", "-o", "json"]).expect(0).json()["items"], json!([]));
}

#[test]
fn a_session_that_moves_to_another_worktree_works_there() {
    let rig = Rig::new();
    rig.0.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    rig.0.git(&["worktree", "add", "-q", "../moved-tree"]);
    rig.asks("ann", "SessionStart");
    let tree = rig.0.folder().parent().unwrap().join("moved-tree");
    let moved = json!({ "old_cwd": rig.0.folder(), "new_cwd": tree });
    let before = agent(&rig, "ann")["worktree"].clone();
    rig.hook("ann", &with(claude(rig.0.folder(), "CwdChanged"), moved));
    let after = agent(&rig, "ann")["worktree"].clone();
    assert!(before != after && after.as_str().unwrap().ends_with("moved-tree"), "{before} {after}");
}
