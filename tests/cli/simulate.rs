//! `plan simulate`: graphs whose durations are known, and files that are none.

use serde_json::json;

use super::crew::{form, keys};
use super::scene::Scene;

/// A diamond, a chain beside a single task, and nothing at all to wait for; 1, 2 and 2 hours.
const GRAPHS: &str = r#"{"depends_on": [[], [1], [1], [2, 3]], "seconds": [600, 1200, 300, 1800], "critical_path_seconds": 3600}
{"depends_on": [[], [], [2]], "seconds": [7200, 3600.5, 3599.5], "critical_path_seconds": 7200}

{"depends_on": [[], []], "seconds": [7200, 0], "critical_path_seconds": 7200}
"#;

#[test]
fn with_executors_enough_a_plan_takes_as_long_as_its_critical_path() {
    let scene = Scene::new();
    scene.write("graphs.jsonl", GRAPHS);
    let ran = scene.run(&["plan", "simulate", "graphs.jsonl", "--executors", "1,2", "-o", "json"]).expect(0).json();
    assert_eq!((&ran["graphs"], &ran["exact"], &ran["differences"]), (&json!(3), &json!(3), &json!([])));
    assert_eq!(keys(&ran), keys(&form("`plan simulate FILE`")));
    let one = &ran["executors"][0];
    assert_eq!((&one["within_bound"], &one["within_bound_by_critical_path"]), (&json!(3), &json!(3)));
    // With one executor all wait for it, whatever their order: 3900 s of 3600, 14400 of 7200, 7200 of 7200.
    let mean = (3900.0 / 3600.0 + 2.0 + 1.0) / 3.0;
    for order in ["mean_by_place", "mean_by_critical_path"] {
        assert!((one[order].as_f64().unwrap() - mean).abs() < 1e-9, "{one}");
    }
    assert_eq!(ran["executors"][1]["mean_by_place"], 1.0);
    let told = scene.run(&["plan", "simulate", "graphs.jsonl"]).expect(0);
    assert!(told.stdout.starts_with("3 of 3 graphs end with their critical path"), "{}", told.stdout);
}

#[test]
fn a_plan_that_takes_another_time_than_was_said_is_told_with_its_line() {
    let scene = Scene::new();
    scene.write("graphs.jsonl", GRAPHS.replace("\"critical_path_seconds\": 3600", "\"critical_path_seconds\": 3601"));
    let ran = scene.run(&["plan", "simulate", "graphs.jsonl"]).expect(1);
    assert!(
        ran.stdout.contains("2 of 3 graphs") && ran.stdout.contains("line 1: 3600 s, and the critical path is 3601 s")
    );
}

#[test]
fn a_file_of_no_graphs_is_refused_with_the_line_and_what_a_line_is() {
    let scene = Scene::new();
    let refused = |text: &str, parts: &[&str]| {
        scene.write("graphs.jsonl", text);
        scene.run(&["plan", "simulate", "graphs.jsonl"]).expect(1).says(parts);
    };
    refused("{}\n", &["graphs.jsonl:1:", "depends_on"]);
    let line = |depends_on: &str, seconds: &str| {
        format!("\n{{\"depends_on\": {depends_on}, \"seconds\": {seconds}, \"critical_path_seconds\": 1}}\n")
    };
    refused(&line("[[], []]", "[1]"), &["graphs.jsonl:2:", "2 tasks have 1 durations"]);
    refused(&line("[[]]", "[-1]"), &["graphs.jsonl:2:", "-1 s is no duration"]);
    refused(&line("[[2], [1]]", "[1, 1]"), &["graphs.jsonl:2:", "in a circle: 1 -> 2 -> 1"]);
    refused(&line("[[3]]", "[1]"), &["graphs.jsonl:2:", "no task is called 3"]);
    refused(&line("[]", "[]"), &["graphs.jsonl:2:", "the plan is empty"]);
    scene.run(&["plan", "simulate", "nowhere.jsonl"]).expect(1).says(&["nowhere.jsonl"]);
}
