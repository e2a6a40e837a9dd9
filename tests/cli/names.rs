//! The names that an author writes (`T001`, `2.1`), and the addresses that replace duplicates, in every command.

use serde_json::Value;

use super::scene::Scene;

/// Two named tasks, a question with a number, and two tasks with one name.
const TEXT: &str = "\
# Shop
## Build
- [ ] T001 Paint the door
- [ ] 2.1 Run `test -e fixed`
## Deploy
- [ ] 7. Which colour is it?
- [ ] T003 Upload it
- [ ] T003 Announce it
";

fn waiting(scene: &Scene) -> String {
    let (plan, ran) = scene.plan(TEXT);
    ran.expect(5).says(&["duplicate names: T003 on lines 7 and 8", "task T001 waits for you"]);
    plan
}

/// The tasks as `name status`.
fn tasks(scene: &Scene, plan: &str) -> Vec<String> {
    let shown = scene.show(plan);
    let text = |task: &Value, key: &str| task[key].as_str().expect("text").to_owned();
    shown["tasks"].as_array().expect("tasks").iter().map(|task| text(task, "id") + " " + &text(task, "state")).collect()
}

#[test]
fn a_plan_runs_under_its_authors_task_names() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    let said = scene.run(&["task", "done", &format!("{plan}/T001"), "it is red"]).expect(0).stdout;
    assert_eq!(said, "task T001 is done\n");
    scene.run(&["resume", &plan]).expect(100).says(&["FAIL", " 2.1  "]);
    scene.write("fixed", "");
    scene.run(&["retry", &format!("{plan}/2.1")]).expect(0);
    scene.run(&["resume", &plan]).expect(5);
    scene.run(&["answer", &format!("{plan}/7"), "blue"]).expect(0);
    scene
        .run(&["resume", &plan])
        .expect(5)
        .says(&["task Deploy/2 waits for you", &format!("task done {plan}/Deploy/2")]);
    scene.run(&["task", "done", &format!("{plan}/Deploy/2")]).expect(0);
    scene.run(&["resume", &plan]).expect(5);
    scene.run(&["task", "fail", &format!("{plan}/Deploy/3"), "nobody listens"]).expect(0);
    let expected = ["T001 done", "2.1 done", "7 done", "Deploy/2 done", "Deploy/3 failed"];
    assert_eq!(tasks(&scene, &plan), expected);
    let shown = scene.run(&["show", &plan]).expect(0).stdout;
    let replayed = scene.run(&["replay", &plan]).expect(0).stdout;
    for name in ["T001", "2.1", "7", "Deploy/2", "Deploy/3"] {
        assert!(shown.contains(&format!("{name}  ")) && replayed.contains(&format!("task {name} is new: ")), "{name}");
    }
}

#[test]
fn a_plan_is_amended_by_its_authors_task_names() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    let change = |words: &[&str]| scene.run(&[&["task"], words, &["--yes"]].concat()).expect(0);
    scene.run(&["pause", &format!("{plan}/2.1")]).expect(0);
    assert_eq!(scene.show(&plan)["tasks"][1]["is_paused"], true);
    scene.run(&["resume", &format!("{plan}/2.1")]).expect(0);
    assert_eq!(scene.show(&plan)["tasks"][1]["is_paused"], false);
    change(&["edit", &format!("{plan}/2.1"), "priority=high"]);
    change(&["move", &format!("{plan}/Deploy/3"), "--after", "T001,2.1"]);
    change(&["skip", &format!("{plan}/Deploy/2")]);
    change(&["add", "- [ ] T004 Sweep (after Deploy/3)", "--plan", &plan]);
    change(&["add", "- [ ] T005 Lock the door", "--plan", &plan, "--after", "T004"]);
    let shown = scene.show(&plan);
    let edges = |place: usize| shown["tasks"][place]["depends_on"].clone();
    assert_eq!(shown["tasks"][1]["priority"], "high");
    let expected = [["T001", "2.1"].as_slice(), &["Deploy/3"], &["T004"]];
    assert_eq!([edges(4), edges(5), edges(6)], expected.map(|names| serde_json::json!(names)));
    scene.run(&["task", "ask", &format!("{plan}/T005"), "Which lock?"]).expect(0);
    scene.run(&["cancel", &format!("{plan}/T005"), "--reason", "no lock"]).expect(0);
    assert_eq!(tasks(&scene, &plan)[3..], ["Deploy/2 skipped", "Deploy/3 planned", "T004 planned", "T005 cancelled"]);
    let fork = scene.run(&["fork", &plan, "--at", "before:T001"]).expect(0).stdout.trim().to_owned();
    assert_eq!(tasks(&scene, &fork)[0], "T001 paused");
}

#[test]
fn a_question_right_after_a_step_is_named_after_it() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Paint the door. Which colour?\n2. Look at it\n");
    ran.expect(5).says(&["q1 asks: Which colour?"]);
    assert_eq!(tasks(&scene, &plan), ["1 planned", "1/question waiting_for_you", "2 planned"]);
    scene.run(&["answer", &format!("{plan}/1/question"), "red"]).expect(0);
    scene.run(&["resume", &plan]).expect(5).says(&["task 1 waits for you"]);
    scene.run(&["task", "done", &format!("{plan}/1")]).expect(0);
    scene.run(&["task", "done", &format!("{plan}/2")]).expect(0);
}

#[test]
fn a_task_without_a_name_uses_its_number_unless_taken() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("- Paint the door\n- Paint the wall\n");
    assert_eq!(tasks(&scene, &plan), ["1 waiting_for_you", "2 planned"]);
    let (plan, _) = scene.plan("# Shop\n- [ ] 2. Paint the door\n- [ ] Paint the wall\n- [ ] Paint the roof\n");
    assert_eq!(tasks(&scene, &plan), ["2 waiting_for_you", "Shop/2 planned", "Shop/3 planned"]);
    scene.run(&["task", "done", &format!("{plan}/2")]).expect(0);
    scene.run(&["task", "done", &format!("{plan}/Shop/2")]).expect(0);
    scene.run(&["task", "done", &format!("{plan}/Shop/3")]).expect(0);
}

#[test]
fn an_address_with_spaces_is_quoted_in_hints() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("## Set it up\n- [ ] 1. Paint it\n## Go on\n- [ ] 1. Look at it\n");
    ran.expect(5).says(&[&format!("crewlog task done '{plan}/Set it up/1' ")]);
    scene.run(&["task", "done", &format!("{plan}/Set it up/1")]).expect(0);
    scene.run(&["task", "done", &format!("{plan}/Go on/1")]).expect(0);
}

#[test]
fn an_unknown_task_name_is_reported_with_candidates() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    for (name, candidates) in [
        ("Deploy/9", "T001, 2.1, 7, Deploy/2, Deploy/3"),
        ("T00", "T001, 2.1, 7, Deploy/2, Deploy/3"),
        ("deploy", "T001, 2.1, 7, Deploy/2, Deploy/3"),
        ("T003", "T001, 2.1, 7, Deploy/2, Deploy/3"),
    ] {
        let said = format!("{plan} has no task {name:?}; its tasks are {candidates}\n");
        for words in [
            &["task", "done", &format!("{plan}/{name}")] as &[&str],
            &["task", "skip", &format!("{plan}/{name}")],
            &["fork", &plan, "--at", &format!("before:{name}")],
        ] {
            scene.run(words).expect(4).says(&[&said]);
        }
    }
}

#[test]
fn task_names_ignore_letter_case() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    scene.run(&["task", "done", &format!("{plan}/t001")]).expect(0);
}

#[test]
fn an_unknown_task_name_changes_nothing() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    let n_events = scene.events().len();
    // The number of a named task, a duplicate name, an unknown address, a part of a name.
    for name in ["1", "T003", "Deploy/9", "T00", "2"] {
        let says = [format!("has no task {name:?}"), format!("crewlog show {plan}")];
        for words in [
            &["task", "done", &format!("{plan}/{name}")] as &[&str],
            &["task", "fail", &format!("{plan}/{name}"), "no"],
            &["retry", &format!("{plan}/{name}")],
            &["cancel", &format!("{plan}/{name}")],
            &["pause", &format!("{plan}/{name}")],
            &["task", "ask", &format!("{plan}/{name}"), "Why?"],
            &["task", "skip", &format!("{plan}/{name}")],
            &["task", "add", "- [ ] Sweep", "--plan", &plan, "--after", name],
            &["fork", &plan, "--at", &format!("before:{name}")],
        ] {
            scene.run(words).expect(4).says(&[&says[0], &says[1]]);
        }
        scene
            .run(&["answer", &format!("{plan}/{name}"), "blue"])
            .expect(4)
            .says(&[&format!("has no question {name:?}")]);
    }
    let added = scene.run(&["task", "add", "- [ ] Sweep (after T003)", "--plan", &plan]).expect(3);
    added.says(&["no task is called T003", "[UnknownId]"]);
    assert_eq!(scene.events().len(), n_events);
}
