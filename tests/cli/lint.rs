//! `plan lint` and `plan corpus`: what was understood of a text, what is odd about it, and how well texts of known
//! meaning are read.

use serde_json::json;

use super::crew::{form, keys};
use super::scene::Scene;

const TEXT: &str = "# Release

1. Build it with `make` (deadline 2h, undo: `make clean`) @ann
2. Use Redis or Memcached
   - see https://example.org/cache

We like cats very much.

## Out of scope
- A mobile app
";

#[test]
fn what_was_understood_is_said_place_by_place_and_what_is_odd_with_a_caret_and_a_fix() {
    let scene = Scene::new();
    scene.write("plan.md", TEXT);
    let told = scene.run(&["plan", "lint", "plan.md"]).expect(0).stdout;
    for part in [
        "3:1  1  ToolCall  Build it with make\n        command: make\n        assignee: ann\n",
        "deadline: 7200 s\n        undone by: make clean\n",
        "4:1  2  Processing  Use Redis or Memcached\n        follows: 1\n",
        "4:1: warning: task 2 leaves open which of two is meant\n    4 | 2. Use Redis or Memcached\n      | ^\n      fix: write it as a question",
        "7:1: warning: this is read as context and is no task\n    7 | We like cats very much.\n      | ^\n      fix: ",
        "10:1: warning: this is out of scope and is not planned\n",
    ] {
        assert!(told.contains(part), "{part:?} is not in:\n{told}");
    }
    let told = scene.run(&["plan", "lint", "plan.md", "-o", "json"]).expect(0).json();
    assert_eq!(keys(&told), keys(&form("`plan lint FILE`")), "{told:#}");
    assert_eq!(told["warnings"][0]["excerpt"], "2. Use Redis or Memcached");
    scene.write("boxes.md", "- [x] Add a\n- [-] Add b\n- [ ] Add c (on failure: stop)\n");
    let told = scene.run(&["plan", "lint", "boxes.md"]).expect(0).stdout;
    let said: Vec<_> = told.lines().filter(|line| line.starts_with("        ")).map(str::trim).collect();
    assert_eq!(said, ["status: Completed", "status: Cancelled", "when it fails: stop"], "in:\n{told}");
}

#[test]
fn a_corpus_without_texts_or_with_words_that_nobody_knows_is_refused() {
    let scene = Scene::new();
    for nothing in ["", "[]", "\n\n"] {
        scene.write("none.json", nothing);
        scene.run(&["plan", "corpus", "none.json"]).expect(1).says(&["none.json has no texts", "\"input\""]);
    }
    let cases = r#"[{"input": "1. Do it", "expect": {"tasks": [{"descripton_contains": "Do"}]}}]"#;
    scene.write("cases.json", cases);
    scene.run(&["plan", "corpus", "cases.json"]).expect(1).says(&["unknown field `descripton_contains`"]);
    scene.write("cases.json", r#"[{"input": "1. Do it", "expect": {"task": []}}]"#);
    scene.run(&["plan", "corpus", "cases.json"]).expect(1).says(&["unknown field `task`"]);
}

#[test]
fn a_text_that_is_no_plan_is_shown_where_it_is_wrong() {
    let scene = Scene::new();
    scene.write("plan.md", "- A: Build it\n- B: Ship it (needs T9)\n");
    let ran = scene.run(&["plan", "lint", "plan.md"]).expect(3);
    ran.says(&[
        "    2 | - B: Ship it (needs T9)\n      |                     ^\n",
        "no task is called T9 (line 2, column 21)",
    ]);
    let told = scene.run(&["plan", "lint", "plan.md", "-o", "json"]).expect(3).json();
    let error = &told["error"];
    assert_eq!((&error["name"], &error["line"], &error["column"]), (&json!("UnknownId"), &json!(2), &json!(21)));
}

#[test]
fn worked_cases_that_hold_and_that_do_not_are_distinguished() {
    let scene = Scene::new();
    let cases = |command: &str| {
        json!([
            {"name": "steps", "source": "own", "input": "1. Run `make`\n2. Ship it. Use rsync.", "expect": {"tasks": [
                {"description_contains": "make", "kind": ["ToolCall", "Analysis"], "attachments": [], "depends_on": [], "command": command},
                {"description_contains": "Ship", "kind": "ToolCall", "depends_on": [0], "details_contain": ["rsync"]}
            ]}},
            {"name": "nothing", "source": "own", "input": " ", "expect": {"tasks": [], "error": "EmptyPlan"}}
        ])
        .to_string()
    };
    scene.write("cases.json", cases("make"));
    let told = scene.run(&["plan", "corpus", "cases.json", "-o", "json"]).expect(0).json();
    assert_eq!(keys(&told["sources"]), keys(&form("`plan corpus FILE`")["sources"]), "{told:#}");
    assert_eq!((&told["sources"][0]["right"], &told["differences"]), (&json!(2), &json!([])));
    scene.write("cases.json", cases("make all"));
    let ran = scene.run(&["plan", "corpus", "cases.json"]).expect(1);
    let wrong = "steps: task 1: its command is Some(\"make\"), expected Some(\"make all\")";
    assert!(ran.stdout.contains(wrong) && ran.stdout.contains("50.0 %"), "{}", ran.stdout);
    let told = scene.run(&["plan", "corpus", "cases.json", "-o", "json"]).expect(1).json();
    assert_eq!(keys(&told["differences"]), keys(&form("`plan corpus FILE`")["differences"]));
}

#[test]
fn texts_with_a_list_of_tasks_and_without_are_counted_by_source() {
    let scene = Scene::new();
    let lines = [
        json!({"source": "a", "input": "Add a. Fix b.", "tasks": [{"i": 1}, {"i": 2}]}),
        json!({"source": "a", "input": "Add a.", "tasks": [{"i": 1}, {"i": 2}]}),
        json!({"source": "b", "input": "Please add a."}),
    ];
    scene.write("texts.jsonl", lines.map(|line| format!("{line}\n")).concat());
    let told = scene.run(&["plan", "corpus", "texts.jsonl", "-o", "json"]).expect(0).json();
    let a = &told["sources"][0];
    let counts =
        ["texts", "read", "deterministic", "accounted", "counted", "exact", "within_one", "cases"].map(|key| &a[key]);
    assert_eq!(counts, [2, 2, 2, 2, 2, 1, 2, 0]);
    assert_eq!((&told["sources"][1]["texts"], &told["sources"][1]["counted"]), (&json!(1), &json!(0)));
    scene.write("texts.jsonl", "{\"input\": \"Add a.\"}\n{}\n");
    scene.run(&["plan", "corpus", "texts.jsonl"]).expect(1).says(&["texts.jsonl is not a corpus: line 2", "input"]);
}

#[test]
fn of_many_warnings_the_first_are_told_and_how_to_see_the_rest() {
    let scene = Scene::new();
    let text = (1..=30).map(|n| format!("- Do part {n} (timeout soon)\n")).collect::<String>();
    scene.write("plan.md", text);
    let ran = scene.run(&["plan", "parse", "plan.md"]);
    let told = ran.stderr.matches("warning: ").count();
    assert_eq!(told, 20, "{}", ran.stderr);
    assert!(ran.stderr.contains("and 10 more: `crewlog plan lint plan.md`"), "{}", ran.stderr);
}
