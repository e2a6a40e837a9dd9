//! The reasons why a plan waits, and the remedies for a refusal.

use super::scene::Scene;

/// A plan that is left to workers; its id.
fn detached(scene: &Scene, text: &str) -> String {
    scene.write("plan.md", text);
    scene.run(&["run", "plan.md", "--yes", "--detach", "--quiet"]).expect(0).stdout.trim().to_owned()
}

#[test]
fn a_paused_plan_says_why_and_how_it_goes_on() {
    let scene = Scene::new();
    let plan = detached(&scene, "1. Run `echo one`\n");
    scene.run(&["pause", &plan, "--reason", "lunch"]).expect(0);
    let waits = format!("plan {plan} is paused: lunch\n  crewlog resume {plan}");
    scene.run(&["work", "--until-idle"]).expect(6).says(&[&waits]);
    let shown = scene.run(&["show", &plan]).expect(0).stdout;
    assert!(shown.contains(&waits), "{shown}");
}

#[test]
fn a_plan_whose_budget_was_raised_says_how_it_goes_on() {
    let scene = Scene::new();
    scene
        .write("crewlog.toml", "[executors.poet]\ncommand = ['sh', '-c', 'echo done; echo \"USAGE: $(cat usage)\"']\n");
    scene.write("usage", r#"{"input_tokens": 900, "output_tokens": 100}"#);
    scene.write("plan.md", "1. Write poem one\n2. Write poem two\n");
    let ran = scene.run(&["run", "plan.md", "--yes", "--set", "budget.tokens=1000"]).expect(7);
    let plan = ran.stdout.trim();
    scene.run(&["plan", "set", plan, "budget.tokens=9000"]).expect(0);
    let words = "the budget of 1000 tokens is used up: 1000 tokens spent";
    let waits = format!("plan {plan} is paused: {words}\n  crewlog resume {plan}");
    scene.run(&["work", "--until-idle"]).expect(6).says(&[&waits]);
    let shown = scene.run(&["show", plan]).expect(0).stdout;
    assert!(shown.contains(&waits), "{shown}");
}

#[test]
fn a_report_that_loses_to_a_skip_is_refused() {
    let scene = Scene::new();
    let plan = detached(&scene, &"- [P] Paint the door\n".repeat(12));
    for task in 1..=12 {
        let task = task.to_string();
        let done = scene.start(&["task", "done", &format!("{plan}/{task}"), "GOOD"]);
        let skipped = scene.start(&["task", "skip", &format!("{plan}/{task}")]);
        let (done, _) = (done.finish(), skipped.finish());
        let shown = scene.show(&plan)["tasks"].as_array().expect("tasks").clone();
        let shown = shown.iter().find(|shown| shown["id"] == task.as_str()).expect("it is there");
        let code = if shown["state"] == "done" { 0 } else { 9 };
        let done = done.expect(code);
        assert!(code == 0 || done.stderr.contains("is skipped"), "{}", done.stderr);
    }
}

#[test]
fn the_path_of_a_file_becomes_no_task() {
    let scene = Scene::new();
    scene.write("there.md", "- Paint the door\n");
    for path in ["./nofile.md", "x/nofile.md", "/tmp/xx.md", "nofile.json", "there.md"] {
        let refused = scene.run(&["task", "add", path]).expect(1);
        refused.says(&[&format!("{path:?} looks like a path"), "crewlog run FILE"]);
    }
    assert_eq!(scene.events_if_any(), None, "no log was made");
}

#[test]
fn a_task_of_a_sub_plan_is_not_retried_after_the_task_above_it() {
    let scene = Scene::new();
    scene.write("team.json", r#"{"steps": [{"id": "a", "description": "Write the alpha", "agent": "tactical"}]}"#);
    let proposed = scene.run(&["plan", "propose", "team.json", "--agent", "orchestrator", "--yes"]).expect(0);
    let plan = proposed.stdout.trim();
    let within = format!("{plan}.1-1");
    scene.run(&["resume", plan]).expect(5);
    scene.run(&["task", "fail", &format!("{within}/step-1"), "no alpha"]).expect(0);
    scene.run(&["resume", plan]).expect(100);
    for words in [&["retry", &format!("{within}/step-1")][..], &["retry", &within]] {
        let refused = scene.run(words).expect(9);
        refused.says(&[&format!("task {plan}/a has ended"), &format!("crewlog retry {plan}/a")]);
    }
    assert_eq!(scene.show(&within)["status"], "failed");
}

#[test]
fn durations_are_those_of_plans() {
    let scene = Scene::new();
    let plan = detached(&scene, "1. Paint the door\n");
    for typed in ["1d", "36h", "90000ms"] {
        scene.run(&["plan", "set", &plan, &format!("deadline={typed}")]).expect(0);
    }
    for typed in ["soon", "0s", "PT1H", "-5m", "5"] {
        let refused = scene.run(&["plan", "set", &plan, &format!("deadline={typed}")]).expect(2);
        refused.says(&["use a number above 0 with its unit, such as 500ms, 30s, 10m, 2h or 1d"]);
    }
}

#[test]
fn a_fork_of_a_completed_plan_names_a_command_that_goes_on() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Run `echo one`\n");
    ran.expect(0);
    let forked = scene.run(&["fork", &plan]).expect(0);
    let fork = forked.stdout.trim();
    forked.says(&[&format!("to continue: crewlog task add \"...\" --plan {fork}")]);
    scene.run(&["task", "add", "Run `echo two > two.txt`", "--plan", fork, "--yes"]).expect(0);
    scene.run(&["resume", fork, "--yes"]).expect(0);
    assert_eq!(scene.read("two.txt"), "two\n");
}

#[test]
fn the_help_and_the_error_of_a_limit_say_how_to_remove_it() {
    let scene = Scene::new();
    let plan = detached(&scene, "1. Paint the door\n");
    assert!(scene.run(&["plan", "set", "--help"]).expect(0).stdout.contains("KEY=none unsets a key"));
    scene.run(&["plan", "set", &plan, "parallelism.@ann="]).expect(2).says(&["or parallelism.@ann=none to unset it"]);
    scene.run(&["plan", "set", &plan, "parallelism.@ann=none"]).expect(0);
}

#[test]
fn a_task_that_waits_for_its_retry_says_so() {
    let scene = Scene::new();
    let plan = detached(&scene, "1. Paint the door (retry 3)\n");
    scene.run(&["task", "fail", &format!("{plan}/1"), "no paint"]).expect(0);
    scene.run(&["task", "fail", &format!("{plan}/1"), "no paint"]).expect(9).says(&["it waits for its retry", "--now"]);
}
