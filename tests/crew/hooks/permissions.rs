//! A permission that Claude Code asks its person for is also in the inbox; the first answer counts.

use std::process::Stdio;

use crewlog_planner::crew::asks::Answer;
use serde_json::{Value, json};

use super::rig::{Rig, claude, with};
use crate::cli::scene::Running;

/// A running hook of a session that asks whether it may run a command.
fn asks(rig: &Rig, agent: &str, command: &str) -> Running {
    let file = rig.0.around().join(format!("{agent}.json"));
    std::fs::write(&file, call(rig, agent, "PermissionRequest", command).to_string()).unwrap();
    let mut hook = rig.command(rig.0.folder(), &["hook"]);
    hook.env("AGENT_ID", agent).stdin(Stdio::from(std::fs::File::open(file).unwrap()));
    Running::start(&mut hook)
}

fn call(rig: &Rig, agent: &str, event: &str, command: &str) -> Value {
    let tool = json!({ "tool_name": "Bash", "tool_input": { "command": command, "description": "d" } });
    with(with(claude(rig.0.folder(), event), tool), json!({ "session_id": format!("{agent}-s") }))
}

/// Waits until the inbox has `n` items, and returns them.
fn items(rig: &Rig, n: usize) -> Vec<Value> {
    loop {
        let items = rig.0.run(&["inbox", "-o", "json"]).expect(0).json()["items"].as_array().unwrap().clone();
        if items.len() == n {
            return items;
        }
    }
}

fn answer(rig: &Rig, number: u64, text: &str, is_granted: bool) {
    rig.with_crew(async |crew, _| {
        let answer = Answer { by: "eve".into(), text: text.into(), is_granted: Some(is_granted) };
        crew.answer(number, answer).await.unwrap();
    });
}

#[test]
fn a_permission_is_answered_from_the_inbox_in_the_words_of_the_person() {
    let rig = Rig::new();
    let [allow, deny] = [
        json!({ "hookEventName": "PermissionRequest", "decision": { "behavior": "allow" } }),
        json!({ "hookEventName": "PermissionRequest", "decision": { "behavior": "deny", "message": "eve: use the test database" } }),
    ];
    for (number, text, is_granted, expected) in [(1, "allow", true, allow), (2, "use the test database", false, deny)] {
        let hook = asks(&rig, "ann", "cargo test\n  commands:");
        let item = items(&rig, 1).remove(0);
        let shown = format!("Bash: cargo test ⏎   commands:\n(in {})", rig.0.folder().display());
        assert!(item["text"].as_str().unwrap().contains(&shown), "{item}");
        let commands = ["allow", "deny"].map(|answer| format!("crewlog answer a{number} {answer}"));
        assert_eq!((&item["from"], &item["commands"]), (&json!("ann"), &json!(commands)), "{item}");
        answer(&rig, number, text, is_granted);
        let said: Value = serde_json::from_str(&hook.finish().expect(0).stdout).unwrap();
        assert_eq!(said["hookSpecificOutput"], expected);
        items(&rig, 0);
    }
}

/// By the event of the session that shows that its person has answered there: the entry goes, and the hook says nothing.
#[test]
fn an_answer_in_the_program_ends_the_entry() {
    for (event, command) in
        [("PostToolUse", "cargo test"), ("PostToolUseFailure", "cargo test"), ("Stop", ""), ("UserPromptSubmit", "")]
    {
        let rig = Rig::new();
        let hook = asks(&rig, "ann", "cargo test");
        items(&rig, 1);
        if event == "PostToolUse" {
            rig.raw(call(&rig, "ann", event, "another command").to_string().as_bytes(), Some("ann")).expect(0);
            items(&rig, 1);
        }
        rig.raw(call(&rig, "ann", event, command).to_string().as_bytes(), Some("ann")).expect(0);
        items(&rig, 0);
        assert_eq!(hook.finish().expect(0).stdout, "", "{event}");
    }
}

#[test]
fn without_an_answer_in_time_or_without_a_wait_the_dialog_stays() {
    for (wait, command, n_asked) in [
        ("1s", "cargo test", 1),
        ("off", "cargo test", 0),
        ("9m", &*"true; ".repeat(1_400), 0),
        ("1s", "printf 'a\nb'", 1),
    ] {
        let rig = Rig::new();
        rig.0.write("crewlog.toml", format!("[hooks]\npermission_wait = '{wait}'\n"));
        let hook = asks(&rig, "ann", command);
        assert_eq!(hook.finish().expect(0).stdout, "", "{wait}");
        assert_eq!(rig.0.events_of_type("PersonAsked").len(), n_asked, "{wait}");
        items(&rig, 0);
    }
}
