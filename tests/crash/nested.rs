//! Plans with sub-plans, and running forks: every process kills itself right before or right after the commit of a given
//! position, and the resumed plan ends like an uninterrupted one.

use std::os::unix::process::ExitStatusExt;

use super::{Scene, Value, at_each, no_process_remains, sampled, side};
use crate::cli::scene::Running;

/// Other processes append events too: by how many events a run may be shorter than another.
const SHORTER_MAX: i64 = 3;
/// Prints whose command ran.
const MARK: &str = "echo $CREWLOG_PLAN $CREWLOG_TASK >> side";

/// The command to start, after the preparation.
struct Case {
    prepare: fn(&Scene) -> Vec<String>,
    /// True for the id of the started plan.
    is_it: fn(&str) -> bool,
    /// The lines that the commands write; the started plan is called `it` in them.
    side: &'static [&'static str],
}

#[test]
fn a_plan_with_sub_plans_killed_at_any_event_ends_like_an_uninterrupted_one() {
    let prepare = |scene: &Scene| {
        let work = |name: &str| format!("1. Run `{MARK}; echo {name}`\n2. Run `{MARK}; echo {name} again`\n");
        let orders = serde_json::json!({ "steps": [
            { "id": "first", "description": work("first"), "agent": "tactical" },
            { "id": "then", "description": work("then"), "agent": "tactical" },
        ], "dependencies": { "then": ["first"] } });
        scene.write("orders.json", orders.to_string());
        words(&["plan", "propose", "orders.json", "--agent", "orchestrator", "--run", "--yes", "-q"])
    };
    let side = &["it.1-1 1", "it.1-1 2", "it.2-1 1", "it.2-1 2"];
    survives_kills_anywhere(&Case { prepare, is_it: |plan| !plan.contains('.'), side });
}

#[test]
fn a_fork_killed_at_any_event_of_its_run_ends_like_an_uninterrupted_one() {
    let prepare = |scene: &Scene| {
        let text = format!("1. Run `{MARK}`\n2. Run `{MARK}; test -e mended`\n3. Run `{MARK}`\n");
        let (plan, ran) = scene.plan(&text);
        ran.expect(100);
        std::fs::remove_file(scene.path("side")).expect("it is there");
        scene.write("mended", "");
        let fork = scene.run(&["fork", &plan, "--at", "failure", "-q"]).expect(0).stdout.trim().to_owned();
        scene.run(&["task", "edit", &format!("{fork}/3"), "text=Ship", "--yes"]).expect(0);
        words(&["resume", &fork, "-q"])
    };
    survives_kills_anywhere(&Case { prepare, is_it: |plan| plan.contains("-fork-"), side: &["it 2", "it 3"] });
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn run(scene: &Scene, words: &[String]) -> String {
    let words = words.iter().map(String::as_str).collect::<Vec<_>>();
    scene.run(&words).expect(0).stdout.trim().to_owned()
}

fn n_events(scene: &Scene) -> i64 {
    let n = if scene.path(".crewlog/log.db").exists() { scene.events().len() } else { 0 };
    i64::try_from(n).expect("a short log")
}

fn survives_kills_anywhere(case: &Case) {
    let reference = Scene::new();
    let begin = (case.prepare)(&reference);
    let before = n_events(&reference);
    run(&reference, &begin);
    let plan = found(case, &reference).expect("it is made");
    let (expected, head) = (shape(&reference, &plan), n_events(&reference));
    assert_eq!(lines(&reference, &plan), case.side);
    let positions = sampled(before + 1..=head);
    let n_deaths = at_each(&positions, |kill| survives(case, kill, &expected));
    let n_reached = positions.iter().filter(|position| **position <= head - SHORTER_MAX).count();
    assert!(n_deaths >= 2 * n_reached, "{n_deaths} deaths at {n_reached} events");
}

/// Kills the started command, resumes it, and compares. True if it died.
fn survives(case: &Case, kill: &str, expected: &str) -> bool {
    let scene = Scene::new();
    let begin = (case.prepare)(&scene);
    let typed = begin.iter().map(String::as_str).collect::<Vec<_>>();
    let ran = Running::start(scene.crewlog(&typed).env("CREWLOG_KILL", kill)).finish();
    let is_dead = ran.status.signal() == Some(9);
    assert!(is_dead || ran.status.success(), "{kill}: {ran:?}");
    let wreck = if n_events(&scene) == 0 { Vec::new() } else { scene.events() };
    let before = side(&scene);
    let plan = match found(case, &scene) {
        Some(plan) => plan,
        None => {
            assert!(before.is_empty(), "{kill}: nothing runs before its plan is in the log");
            run(&scene, &begin)
        }
    };
    if is_dead {
        scene.run(&["resume", &plan, "-q"]).expect(0);
    }
    assert_eq!(scene.events()[..wreck.len()], wreck[..], "{kill}: something acknowledged was lost");
    let after = side(&scene);
    let ended = wreck.iter().filter(|event| event["event_type"] == "TaskCompleted");
    for task in ended.filter_map(|event| Some(event["aggregate_id"].as_str()?.replacen('/', " ", 1))) {
        let count = |lines: &[String]| lines.iter().filter(|line| **line == task).count();
        assert_eq!(count(&after), count(&before), "{kill}: {task} was run again");
    }
    let mut ran = lines(&scene, &plan);
    ran.dedup();
    assert_eq!(ran, case.side, "{kill}: each ran, in its order");
    assert_eq!(shape(&scene, &plan), expected, "{kill}");
    scene.run(&["replay", "--verify", "-q"]).expect(0);
    no_process_remains(&scene, &plan);
    is_dead
}

/// The started plan, if it is in the log.
fn found(case: &Case, scene: &Scene) -> Option<String> {
    let listed = scene.run(&["ls", "-o", "json"]);
    let plans = listed.status.success().then(|| listed.json())?;
    let ids = plans["plans"].as_array()?.iter().filter_map(|plan| plan["plan"].as_str());
    ids.map(str::to_owned).find(|plan| (case.is_it)(plan))
}

/// The output of the commands of the plan and its sub-plans.
fn lines(scene: &Scene, plan: &str) -> Vec<String> {
    side(scene).iter().map(|line| line.replace(plan, "it")).collect()
}

/// The plan and its sub-plans, without values that differ each time.
fn shape(scene: &Scene, plan: &str) -> String {
    let listed = scene.run(&["ls", "-o", "json"]).expect(0).json();
    let all = listed["plans"].as_array().expect("plans").iter().filter_map(|plan| plan["plan"].as_str());
    let mut ids = all.filter(|id| id.starts_with(plan)).map(str::to_owned).collect::<Vec<_>>();
    ids.sort();
    let shown = ids.iter().map(|id| {
        let shown = scene.show(id);
        let tasks = shown["tasks"].as_array().expect("tasks").iter().map(|task| {
            let of = |key: &str| task[key].clone();
            Value::Array([of("status"), of("result"), of("description"), of("sub_plan")].into())
        });
        Value::Array([Value::from(id.as_str()), shown["status"].clone(), tasks.collect()].into())
    });
    let shape = Value::Array(shown.collect()).to_string();
    shape.replace(plan, "it").replace(&parent_of(scene, plan), "parent")
}

/// The plan that a fork was forked from; else the plan itself.
fn parent_of(scene: &Scene, plan: &str) -> String {
    scene.show(plan)["parent"]["plan"].as_str().unwrap_or(plan).to_owned()
}
