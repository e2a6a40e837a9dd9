//! Planning by a model on the command line: `run --model`, the resulting log, and its failures.

use serde_json::{Value, json};

use super::rig::{Mock, WAYS};
use crate::cli::scene::{Ran, Scene};

const TEXT: &str = "# The door\n\n1. Run `echo brush`\n2. Run `echo swept`\n3. Run `echo red`\n";

fn task(id: &str, description: &str, command: Option<&str>, depends_on: &[&str]) -> Value {
    json!({
        "id": id, "description": description, "kind": "ToolCall", "depends_on": depends_on, "command": command,
        "condition": null, "notes": [], "files": [], "assignee": null, "priority": null
    })
}

/// The model notices that sweeping needs no brush.
fn door() -> Value {
    let tasks = [
        task("1", "Fetch the brush", Some("echo brush"), &[]),
        task("2", "Sweep the floor", Some("echo swept"), &[]),
        task("3", "Paint the door", Some("echo red"), &["1", "2"]),
    ];
    json!({ "title": "The door", "tasks": tasks, "questions": [] })
}

fn run(mock: &Mock, words: &[&str]) -> Ran {
    mock.scene.write("plan.md", TEXT);
    mock.scene.run(&[&["run", "plan.md"], words].concat())
}

/// The description and dependencies of each task.
fn tasks(scene: &Scene, plan: &str) -> Vec<(String, Vec<String>)> {
    let shown = scene.show(plan);
    let of = |task: &Value| {
        let waits = task["depends_on"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        (task["description"].as_str().unwrap_or_default().to_owned(), waits.collect())
    };
    shown["tasks"].as_array().into_iter().flatten().map(of).collect()
}

fn door_tasks() -> Vec<(String, Vec<String>)> {
    let waits = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    [("Fetch the brush", waits(&[])), ("Sweep the floor", waits(&[])), ("Paint the door", waits(&["1", "2"]))]
        .map(|(description, waits)| (description.to_owned(), waits))
        .into()
}

#[test]
fn a_configured_model_plans_in_both_protocols_and_the_plan_names_the_request() {
    for (provider, stream) in WAYS {
        let mock = Mock::new(&json!([{ "json": door(), "usage": { "input": 900, "output": 100 } }]));
        let prices = "price_per_million_input = 3\nprice_per_million_output = 15";
        mock.configure(provider, &format!("stream = {stream}\n{prices}"));
        let ran = run(&mock, &["--yes"]).expect(0);
        ran.says(&["mock-1 gave plan (900 + 100 tokens, cost 0.004200", "3 tasks, 0 of them for a person"]);
        let plan = ran.stdout.trim();
        assert!(plan.starts_with("the-door-"), "{plan}");
        assert_eq!(tasks(&mock.scene, plan), door_tasks());
        let events = mock.scene.events();
        let of_model = events.iter().filter(|event| event["stream_id"] == "model").collect::<Vec<_>>();
        let types = of_model.iter().map(|event| event["event_type"].clone()).collect::<Vec<_>>();
        assert_eq!(types, ["ModelAsked", "ModelAnswered"]);
        assert!(of_model.iter().all(|event| event["aggregate_id"] == plan));
        let request = of_model[1]["data"]["request"].as_str().expect("a hash");
        assert_eq!(of_model[1]["data"]["answer"]["usage"]["cost_micros"], 4200);
        let planned = &mock.scene.events_of_type("TasksPlanned")[0];
        assert_eq!(planned["origin"]["planned_by"], format!("request:{request}"));
        assert_eq!(planned["source"], TEXT, "what people wrote is kept");
    }
}

#[test]
fn an_invalid_plan_gets_one_repair_turn_that_quotes_the_error() {
    let mut round = door();
    round["tasks"][0]["depends_on"] = json!(["3"]);
    let mock = Mock::new(&json!([
        { "json": round },
        { "when": { "prompt": "dependency cycle: 1 -> 3 -> 1; remove one of these dependencies [DependencyCycle]" }, "json": door() }
    ]));
    mock.configure("openai", "");
    let ran = run(&mock, &["--yes"]).expect(0);
    assert_eq!(tasks(&mock.scene, ran.stdout.trim()), door_tasks());
    let failed = mock.scene.events_of_type("ModelFailed");
    assert_eq!((failed.len(), &failed[0]["class"]), (1, &json!("NotUnderstood")));
}

#[test]
fn any_model_failure_falls_back_to_the_parser_with_a_warning() {
    let wrong = json!({ "plan": "paint it" });
    for (replies, more, says) in [
        (json!([{ "json": wrong }, { "json": wrong }]), "", "refused twice: the JSON does not follow the schema"),
        (json!([{ "text": "Sure! I will paint it." }, { "text": "" }]), "", "refused twice: it is not JSON: EOF"),
        (json!([{ "fault": "unauthorized" }]), "", "refused: HTTP 401: this key is not known"),
        (json!([{ "fault": "rate_limited", "retry_after": 3600 }]), "", "is rate limited for 1 h"),
        (json!([{ "fault": "overloaded", "times": 2 }]), "retries = 1", "the model is overloaded"),
        (json!([{ "fault": "server_error", "times": 2 }]), "retries = 1", "provider failed (HTTP 500)"),
        (json!([{ "fault": "cut", "json": door() }]), "retries = 0", "cut off"),
        (json!([{ "fault": "malformed_json" }]), "retries = 0\nstream = false", "sent an invalid answer"),
        (json!([{ "fault": "time_out" }]), "retries = 0\ntimeout = \"50ms\"", "did not answer within 50 ms"),
        (json!([]), "retries = 0\napi_key_env = \"NO_KEY_AT_ALL\"", "NO_KEY_AT_ALL with the API key is not set"),
    ] {
        let mock = Mock::new(&replies);
        mock.configure("anthropic", more);
        let ran = run(&mock, &["--yes", "--quiet"]).expect(0);
        ran.says(&["warning: mock-1 gave no plan: ", says, "; the text is parsed instead"]);
        let found = tasks(&mock.scene, ran.stdout.trim());
        assert_eq!(found[2].1, ["2"], "in the order of the text: {found:?}");
        assert_eq!(mock.scene.events_of_type("TasksPlanned")[0]["origin"], json!({}));
        let class = mock.scene.events_of_type("ModelFailed").last().map(|failed| failed["class"].clone());
        assert_eq!(class.is_none(), says.starts_with("NO_KEY"), "{class:?}");
    }
}

#[test]
fn a_rate_limited_request_is_retried() {
    let mock = Mock::new(&json!([
        { "fault": "rate_limited", "retry_after": 0.01 },
        { "fault": "overloaded" },
        { "json": door(), "delay_ms": 1 }
    ]));
    mock.configure("openai", "");
    let ran = run(&mock, &["--yes"]).expect(0);
    assert_eq!(tasks(&mock.scene, ran.stdout.trim()), door_tasks());
    let classes =
        mock.scene.events_of_type("ModelFailed").iter().map(|failed| failed["class"].clone()).collect::<Vec<_>>();
    assert_eq!(classes, ["RateLimited", "Overloaded"]);
}

#[test]
fn an_answer_recorded_before_a_crash_or_check_is_used_without_network() {
    let mock = Mock::new(&json!([{ "json": door() }]));
    mock.configure("openai", "");
    // It ends between the answer and the plan: the commands are not confirmed.
    run(&mock, &[]).expect(1).says(&["3 tasks, 3 with a command", "with --yes"]);
    let scene = mock.stop();
    assert_eq!(scene.run(&["ls"]).expect(0).stdout, "", "nothing is planned");
    let ran = scene.run(&["run", "plan.md", "--yes"]).expect(0);
    ran.says(&["mock-1 gave plan (answered from the log)"]);
    assert_eq!(tasks(&scene, ran.stdout.trim()), door_tasks());
    let parsed = scene.run(&["plan", "check", "plan.md", "--model", "-o", "json"]).expect(0).json();
    assert_eq!(parsed["tasks"][2]["depends_on"], json!(["1", "2"]));
    scene.write("plan.md", "Clean the hall.\n");
    let ran = scene.run(&["plan", "check", "plan.md", "--model"]).expect(0);
    ran.says(&["cannot be reached", "the text is parsed instead"]);
    assert_eq!(scene.events_of_type("ModelAsked").len(), 2);
}

#[test]
fn run_uses_the_model_plan_that_plan_check_showed() {
    let mock = Mock::new(&json!([{ "json": door() }]));
    mock.configure("openai", "plan = false");
    mock.scene.write("plan.md", TEXT);
    let parsed = mock.scene.run(&["plan", "check", "plan.md"]).expect(0);
    assert!(parsed.stdout.contains("Run `echo red`"), "no model is asked unless it is said: {}", parsed.stdout);
    let parsed = mock.scene.run(&["plan", "check", "plan.md", "--model"]).expect(0);
    assert!(parsed.stdout.contains("Sweep the floor"), "{}", parsed.stdout);
    let ran = run(&mock, &["--yes", "--model"]).expect(0);
    assert_eq!(tasks(&mock.scene, ran.stdout.trim()), door_tasks());
    let ran = run(&mock, &["--yes"]).expect(0);
    assert_eq!(tasks(&mock.scene, ran.stdout.trim())[2].1, ["2"], "as configured: the parser");
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn no_model_skips_the_model_and_model_requires_a_configured_one() {
    let mock = Mock::new(&json!([]));
    mock.configure("openai", "");
    run(&mock, &["--yes", "--no-model"]).expect(0);
    assert_eq!(mock.requests().len(), 0);
    run(&mock, &["--yes", "--no-model", "--model"]).expect(2);
    mock.scene.write("crewlog.toml", "");
    run(&mock, &["--yes", "--model"]).expect(1).says(&["no model is configured", "[model] with name"]);
}

#[test]
fn a_model_can_plan_a_text_that_the_parser_refuses() {
    let text = "1. Fetch the brush (depends on 2)\n2. Paint the door (depends on 1)\n";
    let tasks = [task("1", "Fetch the brush", None, &[]), task("2", "Paint the door", None, &["1"])];
    let mock = Mock::new(&json!([{ "json": { "title": "Door", "tasks": tasks, "questions": [] } }]));
    mock.configure("openai", "retries = 0");
    mock.scene.write("round.md", text);
    let parsed = mock.scene.run(&["plan", "check", "round.md", "--model", "-o", "json"]).expect(0).json();
    assert_eq!(parsed["tasks"][1]["depends_on"], json!(["1"]));
    mock.scene.write("round.md", format!("{text}3. Sweep\n"));
    let ran = mock.scene.run(&["run", "round.md", "--yes"]).expect(3);
    ran.says(&["mock-1 gave no plan", "[DependencyCycle]"]);
    assert_eq!(mock.scene.events_of_type("TasksPlanned").len(), 0);
}

#[test]
fn a_text_too_long_for_one_model_request_is_parsed() {
    let mock = Mock::new(&json!([]));
    mock.configure("openai", "");
    mock.scene.write("long.md", format!("<!-- {} -->\n1. Sweep\n", "x".repeat(400_000)));
    let ran = mock.scene.run(&["plan", "check", "long.md", "--model"]).expect(0);
    ran.says(&["over the maximum of 400000; split the text", "the text is parsed instead"]);
    assert!(ran.stdout.contains("Sweep") && mock.requests().is_empty(), "{}", ran.stdout);
}

#[test]
fn a_models_questions_are_asked_before_the_tasks_they_block() {
    let mut asks = door();
    asks["questions"] = json!([{ "question": "Which colour?", "blocks": ["3"] }]);
    let mock = Mock::new(&json!([{ "json": asks }]));
    mock.configure("anthropic", "");
    let ran = run(&mock, &["--yes"]).expect(5);
    let plan = ran.stdout.trim().to_owned();
    ran.says(&["Which colour?", &format!("crewlog answer {plan}/q1")]);
    let status = |task: usize| mock.scene.show(&plan)["tasks"][task]["state"].clone();
    assert_eq!([status(0), status(1), status(2)], ["done", "done", "planned"]);
    mock.scene.run(&["answer", &format!("{plan}/q1"), "red"]).expect(0);
    mock.scene.run(&["resume", &plan]).expect(0);
    assert_eq!(status(2), "done");
}

#[test]
fn a_model_cannot_invent_a_command_missing_from_the_text() {
    let mut evil = door();
    evil["tasks"][1]["command"] = json!("touch evil");
    let mock = Mock::new(&json!([{ "json": evil, "times": 2 }]));
    mock.configure("openai", "");
    run(&mock, &["--yes"]).expect(0).says(&["the command \"touch evil\" of task 2 is not in the text as code"]);
    assert!(!mock.scene.path("evil").exists());
}

/// The provider repeats the key in every possible way; nothing here prints it.
#[test]
fn the_api_key_is_sent_but_never_logged_or_printed() {
    const SECRET: &str = "sk-4711-very-secret";
    let mut telling = door();
    telling["tasks"][0]["description"] = json!(format!("Fetch {SECRET}"));
    for (provider, stream) in WAYS {
        let scene = Scene::new().with_env("THE_KEY", SECRET).with_env("CREWLOG_LOG", "debug");
        let mock = Mock::within(
            scene,
            &json!([
                { "fault": "overloaded", "message": format!("too busy for {SECRET}") },
                { "json": telling },
                { "fault": "unauthorized", "message": format!("incorrect key: {SECRET}") }
            ]),
        );
        mock.configure(provider, &format!("stream = {stream}\napi_key_env = \"THE_KEY\""));
        let planned = run(&mock, &["--yes"]).expect(0);
        mock.scene.write("other.md", "Clean the hall.\n");
        let refused = mock.scene.run(&["plan", "check", "other.md", "--model"]).expect(0);
        refused.says(&["incorrect key: [key]"]);
        assert!(mock.requests().iter().all(|request| request["has_key"] == true));
        let exported = mock.scene.run(&["export"]).expect(0).stdout;
        assert!(exported.contains("Fetch [key]") && exported.contains("too busy for [key]"));
        for said in [planned.stdout, planned.stderr, refused.stdout, refused.stderr, exported] {
            assert!(!said.contains(SECRET), "{provider} {stream}: {said}");
        }
    }
}

#[test]
fn model_requests_and_answers_are_sealed_with_the_plan_and_need_its_key() {
    let mock = Mock::new(&json!([{ "json": door() }, { "json": door() }]));
    mock.configure("openai", "retries = 0");
    mock.scene.run(&["keys", "new", "operator.key"]).expect(0);
    let sealed = ["--yes", "--key-file", "operator.key"];
    run(&mock, &sealed).expect(0);
    mock.scene.write("other.md", format!("{TEXT}4. Lock up\n"));
    mock.scene.run(&["plan", "check", "other.md", "--model", "--key-file", "operator.key"]).expect(0);
    let scene = mock.stop();
    for file in ["log.db", "log.db-wal"] {
        let bytes = std::fs::read(scene.path(".crewlog").join(file)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for said in ["Sweep the floor", "Fetch the brush", "Lock up", "echo swept"] {
            assert!(!text.contains(said), "{file} has {said:?}");
        }
    }
    let again = scene.run(&[&["run", "plan.md"][..], &sealed].concat()).expect(0);
    again.says(&["answered from the log"]);
    let parsed = scene.run(&["plan", "check", "other.md", "--model", "--key-file", "operator.key"]).expect(0);
    parsed.says(&["answered from the log"]);
    let without = scene.run(&["run", "plan.md", "--yes"]).expect(0);
    without.says(&["cannot be reached", "the text is parsed instead"]);
}

#[test]
fn destroying_a_plans_key_names_the_separately_keyed_plan_text() {
    let mock = Mock::new(&json!([{ "json": door() }]));
    mock.configure("openai", "retries = 0");
    mock.scene.run(&["keys", "new", "operator.key"]).expect(0);
    mock.scene.write("plan.md", TEXT);
    mock.scene.run(&["plan", "check", "plan.md", "--model", "--key-file", "operator.key"]).expect(0);
    let plan = run(&mock, &["--yes", "--key-file", "operator.key"]).expect(0).stdout.trim().to_owned();
    let destroyed = mock.scene.run(&["keys", "destroy", &plan, "--yes"]).expect(0);
    let text = destroyed.stderr.split("crewlog keys destroy ").nth(1).expect("it is named").trim().to_owned();
    assert!(text.starts_with("text-"), "{text}");
    let asked = |words: &[&str]| {
        let events = mock.scene.run(&[words, &["events", "--stream", "model", "-o", "json"]].concat());
        events.expect(0).stdout
    };
    assert!(asked(&["--key-file", "operator.key"]).contains("Sweep the floor"), "the answer is the text's");
    mock.scene.run(&["keys", "destroy", &text, "--yes"]).expect(0);
    assert!(!asked(&["--key-file", "operator.key"]).contains("Sweep the floor"));
}

#[test]
fn plan_check_prints_groups_critical_path_bottlenecks_and_time_saved() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Fetch the key\n2. Open the door\n3. Sweep (depends on 2)\n4. Paint (depends on 2)\n");
    let checked = scene.run(&["plan", "check", "plan.md", "-o", "json"]).expect(0).json();
    let expected = json!({
        "tasks": 4, "steps": 3, "at_once": 2, "groups": [["1"], ["2"], ["3", "4"]], "critical_path": ["1", "2", "3"],
        "bottlenecks": [{ "task": "2", "waiting": 2 }], "saving_relaxed": 1
    });
    assert_eq!((&checked["graph"], &checked["advice"]), (&expected, &Value::Null));
    let text = scene.run(&["plan", "check", "plan.md"]).expect(0).stdout;
    for says in [
        "4 tasks in 3 steps, at most 2 at once",
        "step 3: 3, 4",
        "longest chain: 1 -> 2 -> 3",
        "bottleneck: 2 (2 tasks depend on it)",
    ] {
        assert!(text.contains(says), "{text}");
    }
    assert!(text.contains("--parallel saves 1 step"), "{text}");
    scene.write("empty.md", "");
    scene.run(&["plan", "check", "empty.md"]).expect(3);
}

#[test]
fn advice_of_a_model_is_checked_and_shown() {
    let advice = |first: &[&str], third: &[&str]| {
        let task = |id, kind, after: &[&str]| json!({ "id": id, "kind": kind, "depends_on": after });
        json!({ "tasks": [task("1", "ToolCall", first), task("2", "ToolCall", &[]), task("3", "UnitTest", third)] })
    };
    let mock = Mock::new(&json!([
        { "when": { "prompt": "You classify the tasks of a plan" }, "json": advice(&["3"], &["1"]) },
        { "when": { "prompt": "dependency cycle: 1 -> 3 -> 1" }, "json": advice(&[], &["1", "2"]) },
    ]));
    mock.configure("openai", "plan = false");
    mock.scene.write("plan.md", TEXT);
    let checked = mock.scene.run(&["plan", "check", "plan.md", "--advice", "-o", "json"]).expect(0).json();
    assert_eq!(checked["graph"]["steps"], 3);
    let proposed = &checked["advice"];
    assert_eq!(
        proposed["dependencies"]["edges"],
        json!([{ "task": "3", "after": "1" }, { "task": "3", "after": "2" }])
    );
    assert_eq!((&proposed["dependencies"]["saving"], &proposed["dependencies"]["steps"]), (&json!(1), &json!(2)));
    assert_eq!(proposed["kinds"], json!([{ "task": "3", "kind": "UnitTest", "was": "ToolCall" }]));
    let text = mock.scene.run(&["plan", "check", "plan.md", "--advice"]).expect(0);
    text.says(&["answered from the log"]);
    for says in ["steps saved: 1", "3 after 2", "the model calls 3 UnitTest, not ToolCall"] {
        assert!(text.stdout.contains(says), "{}", text.stdout);
    }
    mock.scene.write("plan.md", "Clean the hall.\n");
    let ran = mock.scene.run(&["plan", "check", "plan.md", "--advice", "-o", "json"]).expect(0);
    ran.says(&["gave no advice", "it is left out"]);
    assert_eq!(ran.json()["advice"], json!({ "dependencies": null, "kinds": null }));
}

/// A strategic plan with one part for a tactical agent.
const STRATEGIC: &str = r#"{"steps": [
    {"id": "hello", "description": "Run `echo hello >> said`", "agent": "tactical"}
]}"#;

#[test]
fn agents_plan_with_the_model_during_a_run_and_by_rule_with_no_model() {
    let step = json!({ "id": "greet", "description": "Greet everybody", "tool": "run_command", "command": "echo hello >> said" });
    let mock = Mock::new(&json!([{ "when": { "prompt": "You are tactical" }, "json": { "steps": [step] } }]));
    mock.configure("openai", "retries = 0");
    mock.scene.write("plan.json", STRATEGIC);
    let propose = ["plan", "propose", "plan.json", "--agent", "strategic", "--run", "--yes"];
    let plan =
        mock.scene.run(&propose).expect(5).says(&["runs once you agree: echo hello >> said"]).stdout.trim().to_owned();
    let below = format!("{plan}.1-1");
    mock.scene.run(&["agree", "--yes"]).expect(0);
    mock.scene.run(&["resume", &plan]).expect(0);
    assert_eq!(tasks(&mock.scene, &below), [("Greet everybody".to_owned(), Vec::new())]);
    let asked = mock.scene.events().into_iter().filter(|event| event["stream_id"] == "model").collect::<Vec<_>>();
    assert_eq!(asked.len(), 2, "{asked:?}");
    let tags = asked[0]["tags"].to_string();
    assert_eq!(asked[0]["aggregate_id"], below);
    assert!(tags.contains(&format!("plan:{below}")) && tags.contains(&format!("ancestor:{plan}")), "{tags}");
    assert_eq!(mock.requests().len(), 1);

    let by_rule = mock.scene.run(&[&propose[..], &["--no-model"]].concat()).expect(0).stdout.trim().to_owned();
    assert_ne!(tasks(&mock.scene, &format!("{by_rule}.1-1"))[0].0, "Greet everybody");
    assert_eq!(mock.requests().len(), 1, "nobody was asked");
    mock.scene.run(&["replay", "--verify"]).expect(0);
}

#[test]
fn verify_also_replays_model_requests_of_a_text_without_a_plan() {
    let mock = Mock::new(&json!([{ "json": door() }]));
    mock.configure("openai", "retries = 0");
    mock.scene.write("plan.md", TEXT);
    mock.scene.run(&["plan", "check", "plan.md", "--model"]).expect(0);
    let verified = mock.scene.run(&["replay", "--verify", "-o", "json"]).expect(0).json();
    assert_eq!((&verified["plans"], &verified["commands"], &verified["given"]), (&0.into(), &2.into(), &0.into()));
}
