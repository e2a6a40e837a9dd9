//! `stats` and `conflicts`: their output for a plan with conflicting tasks, as text and in the documented form.

use serde_json::Value;

use super::scene::{Gate, Scene};

const PAGE: &str = include_str!("../../docs/json.md");

/// The keys of an object, and of the first of each list in it, as `a.b`.
pub fn keys(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| {
                let below = keys(value).into_iter().map(|below| format!("{key}.{below}")).collect::<Vec<_>>();
                [vec![key.clone()], below].concat()
            })
            .collect(),
        Value::Array(values) => values.first().map(keys).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The JSON form under a heading of the page.
#[track_caller]
pub fn form(heading: &str) -> Value {
    let (_, section) = PAGE.split_once(&format!("\n## {heading}\n")).expect("the page has the section");
    let (_, form) = section.split_once("\n```json\n").expect("it shows the form");
    serde_json::from_str(form.split_once("\n```").expect("it ends").0).expect("the form is JSON")
}

/// A command and an agent on one file that certainly overlap: each waits for the other to start.
fn two_that_meet(scene: &Scene) -> String {
    super::scene::named_pipe(scene, "one");
    scene.write("crewlog.toml", "[executors.shaper]\ncommand = ['sh', '-c', 'read a < one; echo done']\n");
    let text = "- [P] Run `echo a > one; touch shared.txt`\n- [P] Shape shared.txt\n";
    let (plan, ran) = scene.plan(text);
    ran.expect(0);
    plan
}

#[test]
fn a_conflict_is_printed_with_its_holders_and_resolution() {
    let scene = Scene::new();
    let plan = two_that_meet(&scene);
    assert_eq!(scene.run(&["leases", "--conflicts"]).expect(0).stdout, "", "none is open");
    let none = scene.run(&["leases", "--conflicts", "-o", "json"]).expect(0).json();
    assert_eq!(none["conflicts"], Value::Array(Vec::new()));
    let all = scene.run(&["leases", "--conflicts", "--plan", &plan, "--all", "-o", "json"]).expect(0).json();
    let found = &all["conflicts"][0];
    assert_eq!(keys(&all), keys(&form("`leases --conflicts`")), "{all:#}");
    assert_eq!(found["conflict"], 1);
    let patterns = found["holders"].as_array().expect("holders").iter().map(|holder| holder["patterns"].clone());
    assert!(
        patterns
            .clone()
            .all(|patterns| patterns.as_array().is_some_and(|of_one| of_one.contains(&"shared.txt".into())))
    );
    assert_eq!((patterns.count(), &found["n_holders"]), (2, &2.into()));
    assert_eq!(found["resolved"]["resolution"], "TaskCompleted");

    let position = found["position"].as_i64().expect("a position");
    let at = |position: i64| {
        let shown = scene.run(&["leases", "--conflicts", "--at", &position.to_string(), "-o", "json"]).expect(0).json();
        shown["conflicts"].as_array().expect("a list").len()
    };
    assert_eq!((at(position - 1), at(position)), (0, 1), "it is there from its position on");
    let resolved = found["resolved"]["position"].as_i64().expect("a position");
    assert_eq!((at(resolved - 1), at(resolved)), (1, 0));
    let lines = scene.run(&["leases", "--conflicts", "--all", "-o", "jsonl"]).expect(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(lines.trim()).expect("a line is JSON"), *found);

    let text = scene.run(&["leases", "--conflicts", "--all"]).expect(0).stdout;
    for part in ["shared.txt", "task: 1", "task: 2", "executor: shell@", "resolution: TaskCompleted", &plan] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    scene.run(&["leases", "--conflicts", "--plan", "nothing-like-it"]).expect(4);
}

#[test]
fn stats_can_be_printed_as_of_any_position() {
    let scene = Scene::new();
    let (_, ran) =
        scene.plan("- [x] Begin\n- [ ] Run `true`\n- [ ] Run `true`\n- [ ] Run `true`\n- [ ] Run `exit 3`\n");
    ran.expect(100);
    let now = scene.run(&["stats", "-o", "json"]).expect(0).json();
    assert_eq!(keys(&now), keys(&form("`stats [PROJECT]`")), "{now:#}");
    let (figures, project) = (&now["projects"][0], scene.read(".crewlog/project"));
    assert_eq!(
        (&figures["project"], &figures["completed"], &figures["failed"]),
        (&project.as_str().into(), &3.into(), &1.into())
    );
    assert_eq!((&figures["success_rate"], &figures["active"]), (&75.0.into(), &0.into()));
    assert_eq!((&figures["mean_iterations"], &figures["most_active_executor"]), (&1.0.into(), &"shell".into()));
    let n_events = scene.events().len();
    assert_eq!(now["at"], n_events);
    let completed = (1..=n_events).map(|at| {
        let then = scene.run(&["stats", "--at", &at.to_string(), "-o", "json"]).expect(0).json();
        assert!(then["at"].as_u64().is_some_and(|shown| shown <= at as u64));
        then["projects"][0]["completed"].as_u64().unwrap_or(0)
    });
    let completed = completed.collect::<Vec<_>>();
    assert!(completed.is_sorted() && completed.contains(&1) && completed.contains(&2), "{completed:?}");
    let lines = scene.run(&["stats", "-o", "jsonl"]).expect(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(lines.trim()).expect("a line is JSON"), *figures);
    let text = scene.run(&["stats"]).expect(0).stdout;
    assert!(text.starts_with("tree\n  tasks: 3 completed, 1 failed (75% succeed), 0 running\n"), "{text}");
    let unknown = scene.run(&["stats", "nowhere", "-o", "json"]).expect(0).json();
    assert_eq!(
        (&unknown["projects"][0]["completed"], &unknown["projects"][0]["project"]),
        (&0.into(), &"nowhere".into())
    );
    assert_eq!(scene.events().len(), n_events, "nothing was appended");
}

#[test]
fn a_fork_counts_the_tasks_its_parent_had_at_the_fork() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Run `true`\n2. Which colour is it?\n");
    ran.expect(5);
    let at = scene.events().len().to_string();
    for _ in 0..3 {
        scene.run(&["task", "add", "Run `true`", "--plan", &plan, "--yes"]).expect(0);
    }
    let finish = |plan: &str| {
        scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
        scene.run(&["resume", plan]).expect(0);
    };
    finish(&plan);
    let fork = scene.run(&["fork", &plan, "--at", &at]).expect(0).stdout.trim().to_owned();
    scene.run(&["resume", &fork]).expect(5);
    let question =
        scene.show(&fork)["questions"].as_array().and_then(|asked| asked.last()).expect("it asks")["id"].clone();
    scene.run(&["answer", &format!("{fork}/{}", question.as_str().expect("an id is text")), "red"]).expect(0);
    scene.run(&["resume", &fork]).expect(0);
    let stats = scene.run(&["stats", "-o", "json"]).expect(0).json();
    assert_eq!(stats["projects"][0]["mean_steps"], 3.5, "of five tasks and of two: {stats:#}");
}

#[test]
fn a_running_task_counts_as_active() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    scene.write("plan.md", format!("Run `{}; exec sleep 1000`\n", Gate::pass("gate")));
    let running = scene.start(&["run", "plan.md", "--yes"]);
    gate.wait();
    let now = scene.run(&["stats", "-o", "json"]).expect(0).json();
    assert_eq!(now["projects"][0]["active"], 1);
    running.signal(rustix::process::Signal::INT);
    running.finish().expect(130);
    let now = scene.run(&["stats", "-o", "json"]).expect(0).json();
    assert_eq!(now["projects"][0]["active"], 0);
}

#[test]
fn every_key_of_conflict_and_statistics_events_is_documented() {
    use crewlog_mq::Event;
    use crewlog_planner::crew::conflicts::{self, ConflictEvent, TaskRef};
    use crewlog_planner::crew::statistics::{self, Figures, StatisticsEvent};
    use crewlog_planner::plan::TaskId;

    let check = |stream: &str, event_type: &str, data: &str| {
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{stream}` | `{event_type}` |")));
        let row = row.unwrap_or_else(|| panic!("{event_type} is not in docs/json.md"));
        let data: Value = serde_json::from_str(data).expect("it is JSON");
        for key in data.as_object().expect("an object").keys() {
            assert!(row.contains(&format!("`{key}`")), "`{key}` is not in: {row}");
        }
    };
    let figures = StatisticsEvent::StatisticsProjected(Figures::default());
    let (pattern, holders) = (String::new(), Vec::new());
    let detected = ConflictEvent::ConflictDetected { conflict: 1, pattern, holders, n_holders: 2 };
    let by = TaskRef { plan: String::new(), task: TaskId(1) };
    let resolved = ConflictEvent::ConflictResolved { conflict: 1, by, resolution: "TaskFailed".to_owned() };
    check(statistics::STREAM, figures.event_type(), &figures.encode().expect("it can be written"));
    for event in [detected, resolved] {
        check(conflicts::STREAM, event.event_type(), &event.encode().expect("it can be written"));
    }
}
