//! `docs/json.md` is the snapshot: every example in it is compared with what the program prints.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::scene::Scene;

const PAGE: &str = include_str!("../../docs/json.md");

/// The page's fenced blocks, by the word behind the language.
fn blocks() -> BTreeMap<&'static str, &'static str> {
    let mut blocks = BTreeMap::new();
    let mut rest = PAGE;
    while let Some((_, fence)) = rest.split_once("\n```") {
        let (head, body) = fence.split_once('\n').expect("a fence has lines");
        let (body, after) = body.split_once("\n```\n").expect("a fence ends");
        if let Some((_, name)) = head.split_once(' ') {
            blocks.insert(name, body);
        }
        rest = after;
    }
    blocks
}

/// Replaces values that differ each time.
fn redacted(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(map.iter().map(redacted_pair).collect::<Map<_, _>>()),
        Value::Array(values) => values.iter().map(redacted).collect(),
        Value::String(text) => Value::String(redacted_text(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn redacted_pair((key, value): (&String, &Value)) -> (String, Value) {
    let value = match (key.as_str(), value) {
        // The position of an event depends on what other processes append in the meantime.
        ("duration_ms" | "lease_until" | "at" | "position" | "head" | "append_start", Value::Number(_)) => 0.into(),
        ("host" | "worker", Value::String(_)) => "".into(),
        ("store" | "config", Value::String(path)) => path.rsplit('/').next().into(),
        ("executor", Value::String(executor)) => executor.split('@').next().into(),
        (_, value) => redacted(value),
    };
    (key.clone(), value)
}

fn redacted_text(text: &str) -> String {
    let is_moment = text.len() == 27 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
    let is_uuid = text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    match text.split_once("release-") {
        _ if is_moment => "a moment".into(),
        _ if is_uuid => "an id".into(),
        Some((before, after)) if after.len() >= 4 => format!("{before}release-{}", &after[4..]),
        Some(_) | None if text.starts_with("project:") => "project:".into(),
        Some(_) | None => text.to_owned(),
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[track_caller]
fn compare(name: &str, printed: &Value) {
    let documented: Value = serde_json::from_str(blocks()[name]).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(
        redacted(printed),
        redacted(&documented),
        "docs/json.md, {name}; the program prints:\n{}",
        serde_json::to_string_pretty(printed).expect("it is JSON")
    );
}

#[test]
fn the_program_prints_every_documented_example() {
    let scene = Scene::new();
    scene.write("plan.md", blocks()["plan"]);
    compare("check", &scene.run(&["plan", "check", "plan.md", "-o", "json"]).expect(0).json());
    scene.write("chain.md", blocks()["chain"]);
    compare("graph", &scene.run(&["plan", "check", "chain.md", "-o", "json"]).expect(0).json()["graph"]);
    compare("init", &scene.run(&["init", "--no-hosts", "-o", "json"]).expect(0).json());
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    compare("said", &scene.run(&["task", "done", &format!("{plan}/1/2"), "it is fine", "-o", "json"]).expect(0).json());
    scene.run(&["answer", &format!("{plan}/q1"), "1.2"]).expect(0);
    scene.run(&["resume", &plan]).expect(5);
    scene.run(&["answer", &format!("{plan}/q2"), "yes"]).expect(0);
    let ended = scene.run(&["resume", &plan, "-o", "json"]).expect(100).json();
    compare("show", &ended);
    assert_eq!(scene.show(&plan), ended, "what a run prints at its end is what show prints");
    compare("ls", &scene.run(&["ls", "-o", "json"]).expect(0).json());
    let completed = |text: &str| lines(text).into_iter().find(|event| event["event_type"] == "TaskCompleted");
    let events = scene.run(&["events", "-o", "jsonl"]).expect(0).stdout;
    compare("events", &completed(&events).expect("a task was completed"));
    let export = scene.run(&["export"]).expect(0).stdout;
    compare("export", &lines(&export)[0]);
    compare("exported", &completed(&export).expect("a task was completed"));
    compare("detached", &scene.run(&["run", "plan.md", "--yes", "--detach", "-o", "json"]).expect(0).json());
    scene.write("crewlog.toml", blocks()["config"]);
    compare("executors", &scene.run(&["agents", "--configured", "-o", "json"]).expect(0).json());
    assert_eq!(blocks().len(), 14, "each of the page's examples is compared: {:?}", blocks().keys());
}

#[test]
fn json_and_jsonl_output_and_exports_agree() {
    let scene = Scene::new();
    scene.write("plan.md", blocks()["plan"]);
    let ran = scene.run(&["run", "plan.md", "--yes", "-o", "jsonl"]).expect(5);
    let events = scene.run(&["events", "-o", "jsonl"]).expect(0).stdout;
    let plan = lines(&events)[1]["aggregate_id"].as_str().expect("a plan").to_owned();
    let of_plan = scene.run(&["events", &plan, "-o", "jsonl"]).expect(0).stdout;
    assert_eq!(ran.stdout, of_plan, "a run prints all its events, once");
    let listed = scene.run(&["events", "-o", "json"]).expect(0).json()["events"].clone();
    assert_eq!(listed, Value::Array(lines(&events)));
    let exported = scene.run(&["export"]).expect(0).stdout;
    let exported = lines(&exported).into_iter().skip(1).map(|mut event| {
        event.as_object_mut().and_then(|event| event.remove("append_start")).expect("exports have it");
        event
    });
    assert_eq!(exported.collect::<Vec<_>>(), lines(&events));
    let checked = scene.run(&["plan", "check", "plan.md", "-o", "json"]).expect(0).json();
    let on_a_line = scene.run(&["plan", "check", "plan.md", "-o", "jsonl"]).expect(0).stdout;
    assert_eq!([checked], lines(&on_a_line)[..]);
    let plans = scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"].clone();
    assert_eq!(plans, Value::Array(lines(&scene.run(&["ls", "-o", "jsonl"]).expect(0).stdout)));
    let resumed = scene.run(&["task", "done", &format!("{plan}/1/2"), "-q"]).expect(0);
    assert_eq!(resumed.stderr, "");
    let after = scene.run(&["resume", &plan, "-o", "jsonl", "--no-input"]).expect(5).stdout;
    assert_eq!(after, "", "a resume prints what happens from then on");
    let range = scene.run(&["events", "--after", "2", "--up-to", "4", "-o", "jsonl"]).expect(0).stdout;
    assert_eq!(lines(&range).iter().map(|event| event["position"].as_i64()).collect::<Vec<_>>(), [Some(3), Some(4)]);
}

#[test]
fn every_position_can_be_shown_without_changing_the_log() {
    let scene = Scene::new();
    let (plan, _) =
        scene.plan("1. Run `echo once >> side`\n2. Run `echo twice >> side; exit 3` (retry 1)\n3. Run `echo no`\n");
    let n_events = scene.events().len();
    let shown = |at: usize| scene.run(&["show", &plan, "--at", &at.to_string(), "-o", "json"]).expect(0).json();
    let mut statuses = Vec::new();
    for at in 3..=n_events {
        let shown = shown(at);
        assert!(shown["at"].as_u64().is_some_and(|shown| shown <= at as u64));
        let tasks = shown["tasks"].as_array().expect("tasks");
        let now = tasks.iter().map(|task| task["state"].as_str().expect("text").to_owned()).collect::<Vec<_>>();
        if statuses.last() != Some(&now) {
            statuses.push(now);
        }
    }
    assert_eq!(
        statuses,
        [
            ["ready", "planned", "planned"],
            ["running", "planned", "planned"],
            ["done", "ready", "planned"],
            ["done", "running", "planned"],
            ["done", "waiting", "planned"],
            ["done", "ready", "planned"],
            ["done", "running", "planned"],
            ["done", "failed", "skipped"],
        ]
    );
    assert_eq!(shown(n_events), scene.show(&plan));
    let beyond = (n_events + 1_000).to_string();
    scene.run(&["show", &plan, "--at", &beyond]).expect(4).says(&["the log does not reach position"]);
    assert_eq!(scene.events().len(), n_events, "nothing was appended");
    assert_eq!(scene.read("side"), "once\ntwice\ntwice\n", "nothing was run");
}

#[test]
fn a_due_retry_and_the_task_that_stopped_the_plan_are_shown() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Run `exit 3` (retry 1)\n2. Run `echo never` (after 1)\n");
    let ran = scene.run(&["run", "plan.md", "--yes", "--set", "on-failure=stop"]).expect(100);
    let plan = ran.stdout.trim().to_owned();
    let timer =
        scene.events().into_iter().find(|event| event["event_type"] == "TimerSet").expect("a retry has a timer");
    assert_eq!(timer["data"]["timer"]["Retry"], 1, "{timer}");
    let due = timer["data"]["due"].as_i64().and_then(|due| jiff::Timestamp::from_microsecond(due).ok());
    let due = format!("{:.6}", due.expect("a moment"));
    let at = timer["position"].to_string();
    let waiting = scene.run(&["show", &plan, "--at", &at, "-o", "json"]).expect(0).json();
    assert_eq!((&waiting["tasks"][0]["retry_at"], &waiting["stopped_by"]), (&due.into(), &Value::Null));
    let text = scene.run(&["show", &plan, "--at", &at]).expect(0).stdout;
    assert!(text.contains("  retry at "), "{text}");
    let stopped = scene.show(&plan);
    assert_eq!((&stopped["tasks"][0]["retry_at"], &stopped["stopped_by"]), (&Value::Null, &"1".into()));
    let text = scene.run(&["show", &plan]).expect(0).stdout;
    assert!(text.contains("\nstopped: task 1 failed\n"), "{text}");
}

#[test]
fn every_key_of_every_event_is_documented() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Which colour is it?\n2. Run `test -e fixed`\n3. Paint it\n");
    scene.run(&["pause", &plan]).expect(0);
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    scene.run(&["resume", &plan]).expect(100);
    scene.write("fixed", "");
    scene.run(&["retry", &plan]).expect(0);
    scene.run(&["resume", &plan]).expect(5);
    scene.run(&["cancel", &plan]).expect(0);
    let (other, _) = scene.plan("Run `sleep 1000` (timeout 1ms) (retry 0)\n");
    assert!(!other.is_empty());
    let mut seen = std::collections::BTreeSet::new();
    for event in scene.events() {
        let event_type = event["event_type"].as_str().expect("text").to_owned();
        let row = PAGE.lines().find(|line| line.contains(&format!("| `{event_type}` |")));
        let row = row.unwrap_or_else(|| panic!("{event_type} is not in docs/json.md"));
        assert!(row.contains(&format!("| `{}` |", event["stream_id"].as_str().expect("text"))), "{row}");
        for key in event["data"].as_object().expect("an object").keys() {
            assert!(row.contains(&format!("`{key}`")), "`{key}` is not in: {row}");
        }
        seen.insert(event_type);
    }
    assert!(seen.len() >= 13, "too few were seen: {seen:?}");
}

#[test]
fn every_exit_code_is_documented_and_in_the_help() {
    let scene = Scene::new();
    let help = scene.run(&["--help"]).expect(0).stdout.replace('\n', " ");
    let (_, table) = PAGE.split_once("## Exit codes").expect("the page has the section");
    let rows = table.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let codes =
        rows.filter_map(|row| row.strip_prefix("| ")?.split_once(' ')?.0.parse::<u8>().ok()).collect::<Vec<_>>();
    assert!(codes.len() > 10, "{codes:?}");
    for code in codes {
        assert!(help.contains(&format!(" {code} ")), "{code} is not in the help:\n{help}");
    }
}
