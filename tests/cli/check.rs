//! `plan check`: how a plan file is read, which code runs and why the rest does not.

use serde_json::{Value, json};

use super::crew::keys;
use super::scene::{Ran, Running, Scene};

/// A plan with a command of each form, code that does not run, and a section that is left out.
const TEXT: &str = "# Release

1. Run `make all` (deadline 2h) (undo: `make clean`) @ann
2. [P] Lint: `npm run lint`
3. [P] Write the guide
4. Publish:
   ```sh
   npm publish
   ```
5. Check the tag (`$ git describe`) (after 1)
6. Run `make tag` when it is green
7. Look into `cargo doc --open`
   - run `cargo test -q` again

## Out of scope
- A mobile app
";

const READ: &str = r#"read as markdown
1:1  heading: # Release
3:1  1  ToolCall  Run `make all`
        command: make all
        assignee: ann
        deadline: 2 h
        undone by: make clean
        code at 3:8: runs: it follows Run or Execute
4:1  2  ToolCall  Lint: `npm run lint`
        follows: 1
        command: npm run lint
        code at 4:14: runs: it follows an order with a colon
5:1  3  Processing  Write the guide
        follows: 1
6:1  4  ToolCall  Publish
        follows: 2, 3
        command: npm publish
        code at 7:4: runs: a fence of commands
10:1  5  ToolCall  Check the tag (`$ git describe`)
        waits for: 1
        command: git describe
        code at 10:19: runs: it begins with `$ `
11:1  6  ToolCall  Run `make tag` when it is green
        follows: 4, 5
        code at 11:8: does not run: its line says "when"
12:1  7  Retrieval  Look into `cargo doc --open`
        follows: 6
        note: run `cargo test -q` again
        code at 12:14: text: it has none of the forms of a command
        code at 13:10: does not run: it is in a note
15:1  heading: ## Out of scope
16:1  left out: - A mobile app
11:8: warning: this code does not run: its line says "when"
   11 | 6. Run `make tag` when it is green
      |        ^
      fix: to run it, write a step that says only: Run `...`
12:14: warning: this code is text and does not run
   12 | 7. Look into `cargo doc --open`
      |              ^
      fix: if it is a command, begin the step with it: Run `...`, or put it into a fence marked sh
13:10: warning: this code does not run: it is in a note
   13 |    - run `cargo test -q` again
      |          ^
      fix: to run it, make it a step of its own
15:1: warning: this section has no steps and is left out
   15 | ## Out of scope
      | ^
      fix: rename the heading if the section has steps
7 tasks in 5 steps, at most 3 at once
  step 1: 1
  step 2: 2, 3, 5
  step 3: 4
  step 4: 6
  step 5: 7
the longest chain: 1 -> 2 -> 4 -> 6 -> 7
bottleneck: 1 (3 tasks depend on it)
--parallel saves 3 steps: only the order of the file requires them
"#;

#[test]
fn plan_check_shows_each_task_with_line_name_dependencies_and_code() {
    let scene = Scene::new();
    scene.write("plan.md", TEXT);
    assert_eq!(scene.run(&["plan", "check", "plan.md"]).expect(0).stdout, READ);
    assert!(!scene.path(".crewlog").exists(), "nothing is made");
}

fn checked(scene: &Scene, words: &[&str]) -> Value {
    scene.run(&[&["plan", "check", "-o", "json"], words].concat()).expect(0).json()
}

#[test]
fn each_piece_of_code_shows_its_form_or_why_it_does_not_run() {
    let scene = Scene::new();
    scene.write("plan.md", TEXT);
    let code = checked(&scene, &["plan.md"])["code"].as_array().expect("a list").clone();
    let verdicts = code.iter().map(|code| json!([code["task"], code["form"], code["withheld"]]));
    let expected = [
        json!(["1", 3, null]),
        json!(["2", 4, null]),
        json!(["4", 1, null]),
        json!(["5", 2, null]),
        json!(["6", null, "its line says \"when\""]),
        json!(["7", null, null]),
        json!(["7", null, "it is in a note"]),
    ];
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);
}

#[test]
fn code_that_does_not_run_is_shown_with_the_reason() {
    let scene = Scene::new();
    for (text, reason) in [
        ("1. Run `make all` when it fails\n", "its line says \"when\""),
        ("1. Run `make all` but slowly\n", "other text follows it"),
        ("1. Run `make all`. It takes long.\n", "its step says more than to run it"),
        ("1. Run `make a` with `make b`\n", "its step has more than one piece of code"),
        ("1. Run `make all`?\n", "its step is a question"),
        ("1. Run `make <target>`\n", "it has a placeholder: <target>"),
        ("1. [Run `make all`](a.md)\n", "it is the text of a link"),
        ("1. Run `make all`\n   - never on a Friday\n", "the text around it says \"never\""),
        ("1. Build it\n   - run `make all`\n", "it is in a note"),
        ("- [x] Run `make all`\n", "its step is done"),
        ("- [-] Run `make all`\n", "its step was cancelled"),
        ("- [ ] Run `make all`\n  - [ ] Look at it\n", "its step has substeps"),
        ("## How to undo it\n- [ ] Run `make all`\n", "its section has no commands"),
        ("Run `make all`. We like cats.\n", "not every sentence around it is a step"),
        ("1. Build it:\n\n   ```sh\n   make\n   ```\n\n   Look at it\n", "it is not the last thing below its step"),
        ("1. Create the script:\n   ```sh\n   make\n   ```\n", "it looks like the content of a file"),
        ("1. Build it:\n   ```console\n   make\n   ```\n", "none of its lines begins with `$ `"),
        ("1. Build it:\n   ```\n   $ make\n   done\n   ```\n", "it shows output too"),
    ] {
        scene.write("plan.md", text);
        let read = checked(&scene, &["plan.md"]);
        assert_eq!((&read["code"][0]["form"], &read["code"][0]["withheld"]), (&Value::Null, &reason.into()), "{text}");
        assert!(read["tasks"].as_array().is_some_and(|tasks| tasks.iter().all(|task| task["command"].is_null())));
        let shown = scene.run(&["plan", "check", "plan.md"]).expect(0).stdout;
        let said = if reason.contains("substeps") { "this code does not run: " } else { ": does not run: " };
        assert!(shown.contains(&format!("{said}{reason}\n")), "{text}:\n{shown}");
    }
}

#[test]
fn an_invalid_plan_file_is_reported_with_line_and_column() {
    let scene = Scene::new();
    scene.write("plan.md", "- A: Build it\n- B: Ship it (needs T9)\n");
    let ran = scene.run(&["plan", "check", "plan.md"]).expect(3);
    ran.says(&[
        "    2 | - B: Ship it (needs T9)\n      |                     ^\n",
        "no task is called T9 (line 2, column 21)",
    ]);
    let read = scene.run(&["plan", "check", "plan.md", "-o", "json"]).expect(3).json();
    let error = &read["error"];
    assert_eq!((&error["name"], &error["line"], &error["column"]), (&json!("UnknownId"), &json!(2), &json!(21)));
    scene.write("good.md", "- A: Build it\n");
    let top = |read: &Value| read.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(top(&read), top(&checked(&scene, &["good.md"])), "every key is there");
    for key in ["tasks", "code", "warnings"] {
        assert_eq!(read[key], json!([]));
    }
    for key in ["format", "title", "graph", "advice"] {
        assert_eq!(read[key], Value::Null);
    }
}

#[test]
fn an_error_about_the_whole_file_has_no_line() {
    let scene = Scene::new();
    scene.write("empty.md", "\n");
    let read = scene.run(&["plan", "check", "empty.md", "-o", "json"]).expect(3).json();
    assert_eq!(
        json!([read["error"]["name"], read["error"]["line"], read["error"]["column"]]),
        json!(["EmptyPlan", null, null])
    );
}

#[test]
fn settings_and_states_are_shown() {
    let scene = Scene::new();
    scene.write("boxes.md", "- [x] Add a\n- [-] Add b\n- [~] Add c\n- [ ] Add d (on failure: stop) (retry 2) (~2h)\n");
    let shown = scene.run(&["plan", "check", "boxes.md"]).expect(0).stdout;
    let said = shown.lines().filter(|line| line.starts_with("        ")).map(str::trim).collect::<Vec<_>>();
    let expected = [
        "status: Completed",
        "follows: 1",
        "status: Cancelled",
        "follows: 2",
        "status: Running",
        "follows: 3",
        "retries: 2",
        "estimate: 2 h",
        "when it fails: stop",
    ];
    assert_eq!(said, expected, "in:\n{shown}");
}

#[test]
fn plan_check_prints_the_verbs_by_kind() {
    let scene = Scene::new();
    let printed = scene.run(&["plan", "check", "--verbs"]).expect(0).stdout;
    let kinds = printed.lines().map(|line| line.split_once(": ").expect("a kind and its verbs"));
    let kinds = kinds.collect::<std::collections::BTreeMap<_, _>>();
    for (verb, kind) in [("fetch", "Retrieval"), ("rename", "Refactor"), ("deploy", "ToolCall"), ("review", "Analysis")]
    {
        assert!(kinds[kind].split(' ').any(|known| known == verb), "{verb} is no {kind}:\n{printed}");
        scene.write("plan.md", format!("{verb} the page\n"));
        assert_eq!(checked(&scene, &["plan.md"])["tasks"][0]["kind"], kind);
    }
    scene.write("plan.md", "Paint the page\n");
    scene.run(&["plan", "check", "plan.md"]).expect(3).says(&["the plan has no tasks"]);
    scene.run(&["plan", "check"]).expect(2);
}

#[test]
fn the_format_follows_the_path_and_can_be_chosen() {
    let scene = Scene::new();
    let text = "- [~] 1. Set it up\n- [-] 2. Go on\n";
    for folder in [".kiro/specs/shop", "specs/shop", "openspec/changes/shop"] {
        std::fs::create_dir_all(scene.path(folder)).expect("a folder can be made");
        scene.write(format!("{folder}/tasks.md"), text);
    }
    scene.write("tasks.md", text);
    let read = |words: &[&str]| {
        let read = checked(&scene, words);
        json!([read["format"], read["tasks"][0]["status"], read["tasks"][1]["status"]])
    };
    assert_eq!(read(&[".kiro/specs/shop/tasks.md"]), json!(["kiro", "Planned", "Running"]));
    assert_eq!(read(&["tasks.md"]), json!(["markdown", "Running", "Cancelled"]));
    assert_eq!(read(&["tasks.md", "--format", "kiro"]), json!(["kiro", "Planned", "Running"]));
    assert_eq!(checked(&scene, &["specs/shop/tasks.md"])["format"], "speckit");
    assert_eq!(checked(&scene, &["openspec/changes/shop/tasks.md"])["format"], "openspec");
    let shown = scene.run(&["plan", "check", ".kiro/specs/shop/tasks.md"]).expect(0).stdout;
    assert!(shown.starts_with("read as kiro\n"), "{shown}");
    scene.run(&["plan", "check", "tasks.md", "--format", "org"]).expect(2).says(&["taskmaster"]);
}

#[test]
fn a_tag_selects_the_list_of_a_task_master_file() {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.path(".taskmaster/tasks")).expect("a folder can be made");
    let task = |title: &str| json!({"tasks": [{"id": 1, "title": title, "status": "pending", "dependencies": []}]});
    let file = ".taskmaster/tasks/tasks.json";
    scene.write(file, json!({"master": task("Paint"), "shop": task("Sell")}).to_string());
    let first = |words: &[&str]| checked(&scene, &[&[file], words].concat())["tasks"][0]["description"].clone();
    assert_eq!((first(&[]), first(&["--tag", "shop"])), (json!("Paint"), json!("Sell")));
    scene.write(file, "{\"master\": {\"tasks\": [}}");
    scene.run(&["plan", "check", file]).expect(3).says(&["is not valid Task Master", "[BadJson]"]);
}

#[test]
fn parallel_keeps_only_written_dependencies() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Build it\n2. Look at it\n3. Ship it (after 1)\n");
    let edges = |words: &[&str]| {
        let tasks = checked(&scene, &[&["plan.md"], words].concat())["tasks"].clone();
        tasks.as_array().expect("tasks").iter().map(|task| task["depends_on"].clone()).collect::<Value>()
    };
    assert_eq!(edges(&[]), json!([[], ["1"], ["1"]]));
    assert_eq!(edges(&["--parallel"]), json!([[], [], ["1"]]));
}

/// Two sections with steps of the same name.
const DOUBLES: &str = "\
# Names
## Build
- [ ] T001: Compile
## Deploy
- [ ] T002: Upload
- [ ] T001: Announce
";

#[test]
fn duplicate_names_are_replaced_by_addresses() {
    let scene = Scene::new();
    scene.write("plan.md", DOUBLES);
    let read = checked(&scene, &["plan.md"]);
    let names = [0, 1, 2].map(|task| read["tasks"][task]["id"].clone());
    assert_eq!(names, ["Build/1", "T002", "Deploy/2"]);
    let warning = &read["warnings"][0];
    assert_eq!(warning["message"], "duplicate names: T001 on lines 3 and 6");
    assert_eq!(read["warnings"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_dependency_on_a_duplicate_name_is_refused_with_candidates() {
    let scene = Scene::new();
    scene.write("plan.md", format!("{DOUBLES}- [ ] Rest (after T001)\n"));
    for words in [&["plan", "check", "plan.md"] as &[&str], &["run", "plan.md", "--yes"]] {
        let ran = scene.run(words).expect(3);
        ran.says(&["T001 (line 7, column 19) is the name of several tasks; write one of Build/1, Deploy/2 instead"]);
    }
    scene.write("plan.md", format!("{DOUBLES}- [ ] Rest (after Deploy/2)\n"));
    assert_eq!(checked(&scene, &["plan.md"])["tasks"][3]["depends_on"], json!(["Deploy/2"]));
}

/// Plain Markdown whose boxes hide two numbered items and a fence.
const LOSING: &str = "\
# Ship

1. Build it
2. Pack it

```sh
touch packed
```

- [ ] Run `touch shipped`
";

#[test]
fn a_run_whose_numbered_steps_are_dropped_for_boxes_needs_confirmation() {
    let scene = Scene::new();
    scene.write("plan.md", LOSING);
    for words in
        [&["run", "plan.md"] as &[&str], &["run", "plan.md", "--yes"], &["run", "plan.md", "--yes", "--detach"]]
    {
        let ran = scene.run(words).expect(1);
        ran.says(&["only boxes are steps", "3 numbered item", "3, 4, 6", "confirm with --format markdown"]);
        assert_eq!(ran.stdout, "");
    }
    assert!(!scene.path(".crewlog").exists() && !scene.path("shipped").exists(), "nothing was done");
    scene.run(&["run", "plan.md", "--yes", "--format", "markdown"]).expect(0);
    assert!(scene.path("shipped").exists() && !scene.path("packed").exists(), "only the box ran");
}

#[test]
fn a_person_sees_which_steps_are_dropped_for_boxes_before_confirming() {
    let scene = Scene::new();
    scene.write("plan.md", LOSING);
    let run = |answer: &str| -> Ran {
        let mut running = Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md"]));
        running.stderr.until("3, 4, 6");
        running.stderr.until("Run them? [y/N] ");
        running.types(answer);
        running.finish()
    };
    run("n").expect(1);
    assert!(!scene.path("shipped").exists());
    run("y").expect(0);
    assert!(scene.path("shipped").exists() && !scene.path("packed").exists());
}

#[test]
fn a_run_prints_the_first_warnings_and_where_to_find_the_rest() {
    let scene = Scene::new();
    let text = (1..=30).map(|n| format!("## Part {n}\n- Look at `cargo doc --open`\n")).collect::<String>();
    scene.write("plan.md", text);
    let ran = scene.run(&["run", "plan.md", "--detach"]).expect(0);
    assert_eq!(ran.stderr.matches("warning: ").count(), 20, "{}", ran.stderr);
    ran.says(&["and 10 more: `crewlog plan check plan.md`"]);
    assert_eq!(checked(&scene, &["plan.md"])["warnings"].as_array().map(Vec::len), Some(30));
}

#[test]
fn the_example_plan_parses_without_warnings() {
    let scene = Scene::new();
    scene.write("plan.md", include_str!("../../examples/release-check.md"));
    let read = checked(&scene, &["plan.md"]);
    assert_eq!(read["warnings"], json!([]));
    let tasks = read["tasks"].as_array().expect("tasks").iter();
    let asks = tasks.clone().filter(|task| task["kind"] == "Clarification").count();
    let runs = tasks.filter(|task| !task["command"].is_null()).count();
    assert_eq!((asks, runs), (1, 5));
    assert!(keys(&read["graph"]).contains(&"critical_path".to_owned()));
}

#[test]
fn the_executors_that_a_plan_lacks_are_named() {
    let scene = Scene::new();
    scene.write(
        "crewlog.toml",
        "[executors.ann]\ncommand = [\"no-such-program\"]\n[executors.bob]\ncommand = [\"sh\"]\n",
    );
    scene.write(
        "plan.md",
        "- [ ] Paint it @ann\n- [ ] Look @bob\n- [ ] Ask @cat\n- [x] Sweep @dan\n- [ ] Run `true` @eve\n",
    );
    let lacking = checked(&scene, &["plan.md"])["lacking"].clone();
    let expected = [
        "executor ann cannot start: no-such-program is not on the PATH",
        "no executor here is called cat: an agent of this name has to take its tasks",
    ];
    assert_eq!(lacking, json!(expected));
    let text = scene.run(&["plan", "check", "plan.md"]).expect(0).stdout;
    assert!(text.contains("warning: executor ann cannot start"), "{text}");
    assert!(text.contains("4 tasks (1 other ended in the file) in 4 steps"), "{text}");
    scene.write("plan.md", "- [x] Paint it\n");
    let text = scene.run(&["plan", "check", "plan.md"]).expect(0).stdout;
    assert!(text.ends_with("0 tasks (1 other ended in the file) in 0 steps, at most 0 at once\n"), "{text}");
}
