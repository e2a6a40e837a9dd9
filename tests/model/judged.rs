//! The parsing of a model's answers: valid ones, and refused ones.

use crewlog_planner::model::{
    ModelRequest, RequestPurpose, advice_request, plan_request, read_advice, read_plan, repair,
};
use crewlog_planner::parse::{self, ReadOptions};
use crewlog_planner::plan::{AttachmentKind, DefaultAnswer, FailurePolicy, NodeKind, TaskPlan};
use serde_json::{Value, json};

use super::rig::parameters;

const NO_COMMANDS: &[TaskPlan] = &[];

fn task(id: &str, description: &str, kind: &str, depends_on: &[&str]) -> Value {
    json!({ "id": id, "description": description, "kind": kind, "depends_on": depends_on })
}

fn plan(tasks: &[Value]) -> String {
    json!({ "title": null, "tasks": tasks, "questions": [] }).to_string()
}

fn waits_for(tasks: &[TaskPlan]) -> Vec<Vec<u64>> {
    tasks.iter().map(|task| task.depends_on.iter().map(|one| one.task.0).collect()).collect()
}

fn parsed(text: &str) -> Vec<TaskPlan> {
    parse::read(text, ReadOptions::default()).expect("it is a plan").tasks
}

#[test]
fn a_model_plan_of_four_tasks_passes_the_parsers_validator() {
    let answer = plan(&[
        task("1", "Read the spec and extract its constraints", "Analysis", &[]),
        task("2", "Implement the login of the backend", "CodeImplementation", &["1"]),
        task("3", "Build the form of the frontend and wire it up", "CodeImplementation", &["1"]),
        task("4", "Write and run the tests", "UnitTest", &["2", "3"]),
    ]);
    let proposed = read_plan(&answer, NO_COMMANDS).unwrap();
    assert_eq!(crewlog_planner::validity::validate(&proposed.tasks), Ok(()));
    assert_eq!(waits_for(&proposed.tasks), [vec![], vec![1], vec![1], vec![2, 3]]);
    let kinds = proposed.tasks.iter().map(|task| task.kind).collect::<Vec<_>>();
    let code = NodeKind::CodeImplementation;
    assert_eq!(kinds, [NodeKind::Analysis, code, code, NodeKind::UnitTest]);
    assert!(proposed.tasks.iter().all(|task| task.label.is_none()), "a number is no name of its own");
}

#[test]
fn a_proposed_task_keeps_all_its_fields_in_the_plan() {
    let command = "cargo test -- --quiet";
    let answer = json!({
        "title": "  The door  ",
        "tasks": [{
            "id": "T7", "description": " Run the tests ", "kind": "UnitTest", "depends_on": [], "command": command,
            "condition": "the door is open", "notes": ["quietly"], "files": ["src/**"], "assignee": "@ana",
            "priority": "P1"
        }],
        "questions": []
    });
    let of_text = parsed(&format!("Run `{command}` (retry 2) (timeout 90s)"));
    let proposed = read_plan(&answer.to_string(), &of_text).unwrap();
    assert_eq!(proposed.title.as_deref(), Some("The door"));
    let task = &proposed.tasks[0];
    assert_eq!((task.label.as_deref(), task.description.as_str()), (Some("T7"), "Run the tests"));
    assert_eq!((task.command.as_deref(), task.retry, task.timeout_ms), (Some(command), Some(2), Some(90_000)));
    assert_eq!(task.condition.as_ref().map(|condition| condition.text.as_str()), Some("the door is open"));
    assert_eq!((task.notes.join(""), task.files.join("")), ("quietly".into(), "src/**".into()));
    assert_eq!((task.assignee.as_deref(), task.priority.as_deref()), (Some("ana"), Some("P1")));
}

/// A text with every possible setting.
const SETTING: &str = "\
1. Bring up the stack (undo: `make down`) (deadline: 2h) (on failure: stop) (rerun: safe)
   ```sh
   make up
   ```
2. Which region? (default: eu after 10m)
3. Measure the latency (~30m) (retry 2) (timeout 5m)
";

#[test]
fn settings_in_the_text_apply_to_a_model_plan_that_omits_them() {
    let of_text = parsed(SETTING);
    let mut up = task("1", "Start all services", "ToolCall", &[]);
    up["command"] = json!("make up");
    let asked = json!({ "question": "Which region?", "blocks": ["2"] });
    let measure = task("2", "Measure the latency of each service", "Analysis", &["1"]);
    let answer = json!({ "title": null, "tasks": [up, measure], "questions": [asked] }).to_string();
    let tasks = read_plan(&answer, &of_text).unwrap().tasks;
    assert_eq!((tasks[0].compensate.as_deref(), tasks[0].deadline_ms), (Some("make down"), Some(7_200_000)));
    assert_eq!((tasks[0].on_failure, tasks[0].rerun_safe), (Some(FailurePolicy::Stop), true));
    assert_eq!((tasks[1].estimate_ms, tasks[1].retry, tasks[1].timeout_ms), (Some(1_800_000), Some(2), Some(300_000)));
    assert_eq!(tasks[2].default_answer, Some(DefaultAnswer { answer: "eu".into(), after_ms: 600_000 }));
}

#[test]
fn an_answer_that_drops_a_step_with_settings_is_refused() {
    let of_text = parsed(SETTING);
    let asked = json!({ "question": "Which region?", "blocks": [] });
    let tasks = [task("1", "Measure the latency", "Analysis", &[])];
    let answer = json!({ "title": null, "tasks": tasks, "questions": [asked] }).to_string();
    let refusal = read_plan(&answer, &of_text).unwrap_err().to_string();
    let says = "the text has settings for the step \"Bring up the stack";
    assert!(refusal.starts_with(says), "{refusal}");
    // A step that is already done is no longer part of the plan.
    let done = parsed("- [x] Bring up the stack (undo: `make down`)\n- [ ] Measure the latency\n");
    assert!(read_plan(&answer, &done).is_ok());
}

#[test]
fn settings_of_one_step_are_never_applied_to_another() {
    let of_text = parsed("1. Deploy to staging (undo: `make rollback-staging`) (retry 3)\n2. Deploy to production\n");
    let answer =
        |first| plan(&[task("1", first, "ToolCall", &[]), task("2", "Deploy to production", "ToolCall", &["1"])]);
    let refusal = read_plan(&answer("Roll out on the test system"), &of_text).unwrap_err().to_string();
    assert!(refusal.contains("settings for the step \"Deploy to staging"), "{refusal}");
    let tasks = read_plan(&answer("Deploy to the staging system"), &of_text).unwrap().tasks;
    let set = tasks.iter().map(|task| (task.compensate.as_deref(), task.retry)).collect::<Vec<_>>();
    assert_eq!(set, [(Some("make rollback-staging"), Some(3)), (None, None)]);
}

#[test]
fn attachments_are_extracted_from_the_descriptions() {
    let description = "Look at [the guide](https://example.org/guide), src/main.rs and docs/door.png";
    let proposed = read_plan(&plan(&[task("1", description, "Analysis", &[])]), NO_COMMANDS).unwrap();
    let kinds = proposed.tasks[0].attachments.iter().map(|one| one.kind.clone()).collect::<Vec<_>>();
    let link = AttachmentKind::Link("https://example.org/guide".into());
    let (file, image) =
        (AttachmentKind::FileRef("src/main.rs".into()), AttachmentKind::ImageRef("docs/door.png".into()));
    assert_eq!(kinds, [link, file, image]);
}

#[test]
fn an_invalid_answer_is_refused_with_what_to_fix() {
    let one = || task("1", "Paint the door", "Processing", &[]);
    let check = |answer: String, says: &str| {
        let refusal = read_plan(&answer, NO_COMMANDS).expect_err(&answer).to_string();
        assert!(refusal.contains(says), "{answer}\n{refusal}");
        assert!(!refusal.contains("line 0"), "{refusal}");
    };
    let with = |key: &str, value: Value| {
        let mut task = one();
        task[key] = value;
        plan(&[task])
    };
    check(String::new(), "it is not JSON: EOF while parsing a value");
    check("I would begin with the door.".into(), "it is not JSON");
    check("{\"tasks\": [{\"id\": \"1\",".into(), "it is not JSON: EOF while parsing a value at line 1 column 22");
    check(
        "{\"tasks\": 3}".into(),
        "the JSON does not follow the schema: invalid type: integer `3`, expected a sequence",
    );
    check("{\"steps\": []}".into(), "unknown field `steps`");
    check(with("kind", json!("Painting")), "unknown variant `Painting`");
    check(with("colour", json!("red")), "unknown field `colour`");
    check(plan(&[]), "[EmptyPlan]");
    check(
        with("depends_on", json!(["9"])),
        "no task is called 9; name an existing task or remove the dependency [UnknownId]",
    );
    check(with("depends_on", json!(["1"])), "task 1 waits for itself; remove that dependency [SelfDependency]");
    check(plan(&[one(), one()]), "the id 1 is used twice");
    let round = [task("a", "Fetch", "Retrieval", &["b"]), task("b", "Paint", "Processing", &["a"])];
    check(plan(&round), "dependency cycle: a -> b -> a; remove one of these dependencies");
    check(with("description", json!("  ")), "the description of task 1 has 0 characters");
    check(with("description", json!("x".repeat(4_001))), "has 4001 characters; it needs 1 to 4000");
    check(with("command", json!("rm -rf .")), "the command \"rm -rf .\" of task 1 is not in the text as code");
    let asks =
        |n: usize| json!({ "tasks": [one()], "questions": vec![json!({ "question": "Why?", "blocks": ["1"] }); n] });
    check(asks(6).to_string(), "6 questions are more than 5");
    assert_eq!(read_plan(&asks(5).to_string(), NO_COMMANDS).unwrap().tasks.len(), 6);
}

#[test]
fn a_code_fence_around_an_answer_is_ignored() {
    let bare = plan(&[task("1", "Paint the door", "Processing", &[])]);
    for answer in [format!("\n```json\n{bare}\n```\n"), format!("```\n{bare}```"), format!("  {bare}\n")] {
        assert_eq!(read_plan(&answer, NO_COMMANDS), read_plan(&bare, NO_COMMANDS), "{answer}");
    }
    assert!(read_plan(&format!("Here it is: {bare}"), NO_COMMANDS).is_err());
}

#[test]
fn a_question_becomes_a_task_that_its_blocked_tasks_wait_for() {
    let answer = json!({
        "title": null,
        "tasks": [task("1", "Paint the door", "Processing", &[]), task("2", "Sweep", "Processing", &[])],
        "questions": [{ "question": "Which colour?", "blocks": ["1"] }]
    });
    let tasks = read_plan(&answer.to_string(), NO_COMMANDS).unwrap().tasks;
    assert_eq!(waits_for(&tasks), [vec![3], vec![], vec![]]);
    assert_eq!((tasks[2].kind, tasks[2].description.as_str()), (NodeKind::Clarification, "Which colour?"));
}

#[test]
fn at_most_five_questions_are_allowed_and_they_name_existing_tasks() {
    let asked = |n: usize, blocks: &str| {
        let tasks = [task("1", "Paint the door", "Processing", &[]), task("2", "Sweep", "Processing", &[])];
        let questions = vec![json!({ "question": "Which colour?", "blocks": [blocks] }); n];
        let answer = json!({ "title": null, "tasks": tasks, "questions": questions }).to_string();
        read_plan(&answer, NO_COMMANDS).map(|plan| waits_for(&plan.tasks)).map_err(|refusal| refusal.to_string())
    };
    assert_eq!(asked(2, "2").unwrap(), [vec![], vec![3, 4], vec![], vec![]]);
    assert_eq!(asked(6, "2").unwrap_err(), "6 questions are more than 5; ask only the most important");
    let refusal = asked(1, "7").unwrap_err();
    assert!(refusal.contains("no task is called 7"), "{refusal}");
}

/// The answer that gives each task a kind and the tasks it waits for.
fn advice(tasks: &[(&str, &str, &[&str])]) -> String {
    let tasks = tasks.iter().map(|(id, kind, after)| json!({ "id": id, "kind": kind, "depends_on": after }));
    json!({ "tasks": tasks.collect::<Vec<_>>() }).to_string()
}

#[test]
fn every_task_gets_a_kind_exactly_once() {
    let tasks = parsed("- Wire up the tests of the door\n- Sweep\n");
    let (test, sweep) = (("1", "UnitTest", &[][..]), ("2", "Processing", &[][..]));
    let advised = read_advice(&advice(&[sweep, test]), &tasks).unwrap();
    assert_eq!(advised.iter().map(|task| task.kind).collect::<Vec<_>>(), [NodeKind::UnitTest, NodeKind::Processing]);
    for (answer, says) in [
        (&[test][..], "needs task 2 exactly once"),
        (&[test, test, sweep], "needs task 1 exactly once"),
        (&[test, sweep, ("3", "Processing", &[])], "no task is called 3"),
        (&[("1", "Testing", &[])], "unknown variant `Testing`"),
    ] {
        let refusal = read_advice(&advice(answer), &tasks).expect_err(says).to_string();
        assert!(refusal.contains(says), "{refusal}");
    }
}

#[test]
fn advised_dependencies_replace_list_order_but_keep_written_ones() {
    let tasks = parsed("1. Fetch the brush\n2. Fetch the paint\n3. Paint the door (depends on 1)\n4. Sweep\n");
    assert_eq!(waits_for(&tasks), [vec![], vec![1], vec![1], vec![2, 3]]);
    let found = |after: [&[&str]; 4]| {
        let ids = ["1", "2", "3", "4"].into_iter().zip(after);
        let answer = advice(&ids.map(|(id, after)| (id, "Processing", after)).collect::<Vec<_>>());
        read_advice(&answer, &tasks).map_err(|refusal| refusal.to_string())
    };
    assert_eq!(waits_for(&found([&[], &[], &["2", "2"], &[]]).unwrap()), [vec![], vec![], vec![1, 2], vec![]]);
    for (after, says) in [
        ([&["9"][..], &[], &[], &[]], "no task is called 9"),
        ([&["1"], &[], &[], &[]], "task 1 waits for itself"),
        ([&["4"], &[], &[], &["3"]], "dependency cycle: 1 -> 4 -> 3 -> 1"),
    ] {
        let refusal = found(after).expect_err(says);
        assert!(refusal.contains(says), "{refusal}");
    }
}

fn requests() -> Vec<ModelRequest> {
    let (parameters, tasks) = (parameters(), parsed("1. Fetch the brush\n2. Paint the door\n"));
    let requests = [plan_request(&parameters, "Paint the door"), advice_request(&parameters, &tasks)];
    requests.into_iter().map(|request| request.expect("it is short")).collect()
}

#[test]
fn each_request_has_a_schema_and_keeps_the_plan_text_out_of_the_rules() {
    let purposes = [RequestPurpose::Plan, RequestPurpose::Advice];
    for (request, purpose) in requests().into_iter().zip(purposes) {
        assert_eq!(request.purpose, purpose);
        let schema = request.schema.expect("a schema");
        let schema: Value = serde_json::from_str(&schema).expect("it is JSON");
        assert_eq!(schema["type"], "object");
        assert!(request.messages[0].text.starts_with("<te") || request.messages[0].text.starts_with("<ta"));
        assert!(!request.system.contains("Paint the door"));
    }
    let long = "x".repeat(400_000);
    assert!(plan_request(&parameters(), &long).is_err(), "more than is asked at once");
}

#[test]
fn the_repair_turn_quotes_the_answer_and_the_error() {
    let first = requests().remove(0);
    let again = repair(&first, "no", "it is not JSON: expected ident");
    let texts = again.messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>();
    assert_eq!(texts[..2], [first.messages[0].text.as_str(), "no"]);
    assert!(texts[2].starts_with("That answer was refused: it is not JSON: expected ident.\n"));
    let long = "ä".repeat(100_000);
    assert!(repair(&first, &long, "too long").messages[1].text.len() <= 32_000);
}
