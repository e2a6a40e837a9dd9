//! Verification of a log: replay makes the same decisions, or names the first difference.

use serde_json::Value;

use super::scene::{Ran, Scene};

/// A plan that failed, was forked at the failure, and continued differently; both ids.
fn two_plans(scene: &Scene) -> (String, String) {
    let (plan, ran) = scene.plan("# Ship\n1. Run `echo built`\n2. Run `test -e fixed`\n3. Which colour is it?\n");
    ran.expect(100);
    scene.write("fixed", "");
    scene.run(&["plan", "checkpoint", &plan, "failed"]).expect(0);
    let fork = scene.run(&["fork", &plan, "--at", "failure"]).expect(0).stdout.trim().to_owned();
    scene.run(&["plan", "set", &fork, "parallelism=1"]).expect(0);
    scene.run(&["resume", &fork]).expect(5);
    let question = scene.show(&fork)["questions"][0]["id"].as_str().expect("text").to_owned();
    scene.run(&["answer", &format!("{fork}/{question}"), "blue"]).expect(0);
    scene.run(&["resume", &fork]).expect(0);
    (plan, fork)
}

fn verified(ran: &Ran) -> Value {
    ran.json()
}

#[test]
fn verify_replays_each_plan_and_the_whole_log_of_this_version() {
    let scene = Scene::new();
    let (plan, fork) = two_plans(&scene);
    let n_events = scene.events().len();
    let all = verified(&scene.run(&["replay", "--verify", "-o", "json"]).expect(0));
    assert_eq!((&all["plans"], &all["given"], &all["difference"]), (&2.into(), &0.into(), &Value::Null));
    let of = |plan: &str| verified(&scene.run(&["replay", plan, "--verify", "-o", "json"]).expect(0));
    let n = |of: &Value, key: &str| of[key].as_u64().expect("a number");
    let (parent, whole) = (of(&plan), of(&fork));
    assert!(n(&whole, "events") > n(&all, "events") - n(&parent, "events"), "a fork's has what it shares");
    assert!(n(&parent, "reactions") >= 2 && n(&parent, "commands") >= 3, "{parent}");
    let said = scene.run(&["replay", &plan, "--verify"]).expect(0).stdout.clone();
    assert!(said.starts_with("verified: 1 plan, "), "{said}");
    assert_eq!(scene.events().len(), n_events, "nothing was appended");
    scene.run(&["replay"]).expect(2);
    scene.run(&["replay", &plan, "--verify", "--failure"]).expect(2);
    scene.run(&["replay", "nothing", "--verify"]).expect(4);
}

/// The same log with one text of its export replaced, verified.
fn falsified(scene: &Scene, store: &str, from: &str, to: &str) -> Ran {
    let export = scene.run(&["export"]).expect(0).stdout.clone();
    assert!(export.contains(from), "{from} is not in the log");
    scene.write("export.jsonl", export.replacen(from, to, 1));
    scene.run(&["import", "export.jsonl", "--store", store]).expect(0);
    scene.run(&["replay", "--verify", "--store", store, "-o", "json"])
}

#[test]
fn verify_names_the_first_different_decision_and_exits_with_10() {
    let scene = Scene::new();
    two_plans(&scene);
    // The planner did not process the report.
    let ran = falsified(
        &scene,
        "a.db",
        r#""status":"Completed","result":"built""#,
        r#""status":"Completed","result":"other""#,
    );
    let difference = &verified(&ran.expect(10))["difference"];
    assert!(difference["log"].as_str().expect("text").contains("other"), "{difference}");
    assert!(difference["decided"].as_str().expect("text").contains("built"), "{difference}");
    assert_eq!(difference["command"], "what a task reported");
    let position = difference["position"].as_i64().expect("a number");
    let found = scene.events().into_iter().find(|event| event["position"] == position).expect("it is in the log");
    assert_eq!(found["event_type"], "TaskStatusUpdated");
    // A command that cannot have led to these events.
    let ran = falsified(&scene, "b.db", r#""epoch":1,"result":"built""#, r#""epoch":9,"result":"built""#);
    let difference = &verified(&ran.expect(10))["difference"];
    assert!(difference["what"].as_str().expect("text").contains("this version refuses it"), "{difference}");
    // An unknown command.
    let ran = falsified(&scene, "c.db", r#"{"End":{}}"#, r#"{"Finish":{}}"#);
    let difference = &verified(&ran.expect(10))["difference"];
    assert!(difference["what"].as_str().expect("text").contains("has an unknown form"), "{difference}");
    let said = scene.run(&["replay", "--verify", "--store", "c.db"]).expect(10).stdout.clone();
    assert!(said.starts_with(&format!("at position {}, task ship-", difference["position"])), "{said}");
}

#[test]
fn verify_reports_an_agents_plan_without_its_recorded_command() {
    let scene = Scene::new();
    scene.write("plan.json", r#"{"steps": [{"id": "a", "description": "Look at it", "tool": "look_up"}]}"#);
    scene.run(&["plan", "propose", "plan.json", "--agent", "tactical", "--yes"]).expect(0);
    scene.run(&["replay", "--verify"]).expect(0);
    let export = scene.run(&["export"]).expect(0).stdout.clone();
    let line = export.lines().find(|line| line.contains("TasksPlanned")).expect("it is planned");
    let mut planned: Value = serde_json::from_str(line).expect("JSON");
    let extra = planned["metadata"]["extra"].as_object_mut().expect("it has an author and a command");
    extra.remove("command").expect("its command is kept");
    scene.write("export.jsonl", export.replacen(line, &planned.to_string(), 1));
    scene.run(&["import", "export.jsonl", "--store", "stripped.db"]).expect(0);
    let ran = scene.run(&["replay", "--verify", "--store", "stripped.db", "-o", "json"]).expect(10);
    let what = verified(&ran)["difference"]["what"].as_str().expect("text").to_owned();
    assert!(what.contains("its command was not recorded"), "{what}");
}
