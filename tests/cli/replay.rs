//! Stepping through a plan and comparing plans: the output for each event, the commands, and that nothing is
//! executed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::scene::{Ran, Running, Scene};

const PAGE: &str = include_str!("../../docs/json.md");

/// A plan with every kind of event: it fails, is answered, done, paused, retried and cancelled. Another plan runs in between.
fn rich(scene: &Scene) -> String {
    let text = "# Ship\n1. [P] Run `echo built >> side; test -e fixed`\n2. [P] Paint it\n3. [P] Which colour is it?\n4. Run `echo never` (after 1)\n";
    let (plan, ran) = scene.plan(text);
    ran.expect(5);
    scene.run(&["run", "plan.md", "--yes", "-q"]).expect(5);
    scene.run(&["pause", &plan, "--reason", "lunch"]).expect(0);
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    scene.run(&["resume", &plan]).expect(5);
    scene.run(&["task", "done", &format!("{plan}/2"), "it is painted"]).expect(0);
    scene.run(&["resume", &plan]).expect(100);
    scene.write("fixed", "");
    scene.run(&["retry", &plan]).expect(0);
    scene.run(&["cancel", &format!("{plan}/4"), "--reason", "not wanted"]).expect(0);
    scene.run(&["resume", &plan]).expect(100);
    plan
}

/// Runs a replay that reads these commands.
fn stepping(scene: &Scene, words: &[&str], orders: &str) -> Ran {
    let mut running = Running::start(scene.crewlog(&[&["replay", "--step"], words].concat()).stdin(Stdio::piped()));
    for order in orders.lines() {
        running.types(order);
    }
    running.close_input();
    running.finish()
}

/// The printed steps, by their first line: position and text.
fn steps(text: &str) -> Vec<(i64, String)> {
    let mut steps: Vec<(i64, String)> = Vec::new();
    for line in text.lines() {
        match line.split_whitespace().next().and_then(|word| word.parse().ok()) {
            Some(position) if !line.starts_with("        ") => steps.push((position, format!("{line}\n"))),
            Some(_) | None => steps.last_mut().expect("a step begins with its position").1 += &format!("{line}\n"),
        }
    }
    steps
}

fn positions(steps: &[(i64, String)]) -> Vec<i64> {
    steps.iter().map(|(position, _)| *position).collect()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

fn position_of(event: &Value) -> i64 {
    event["position"].as_i64().expect("a number")
}

/// The positions of a plan's events.
fn events_of(scene: &Scene, plan: &str) -> Vec<i64> {
    lines(&scene.run(&["events", plan, "-o", "jsonl"]).expect(0).stdout).iter().map(position_of).collect()
}

#[test]
fn stepping_forward_and_back_prints_the_same_text() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let all = steps(&scene.run(&["replay", &plan]).expect(0).stdout);
    let known = events_of(&scene, &plan);
    assert_eq!(positions(&all), known, "each event is a step");
    let n = known.len();
    let orders = format!("n {n}\nb\nb 3\n\nnext\nfirst\nlast\ng {}\nn 2\nback {n}\nb\nlast\nn\nq\nn\n", known[6]);
    let ran = stepping(&scene, &[&plan], &orders).expect(0);
    let walked = steps(&ran.stdout);
    let ends = [known[0], known[n - 1]];
    let way = [&known[..], &[known[n - 2], known[n - 5], known[n - 4], known[n - 3]], &ends, &known[6..9], &ends];
    assert_eq!(positions(&walked), way.concat());
    for step in &walked {
        assert!(all.contains(step), "another text than on the whole way:\n{}", step.1);
    }
    let said = "this is the last event\nthis is the first event\nthis is the first event\nthis is the last event\n";
    assert_eq!(ran.stderr, said, "beyond the ends it stays there and says so");
    let text = &scene.run(&["replay", &plan]).expect(0).stdout;
    for part in [
        "  plan title: Ship  (by ",
        "        task 2 is new: Paint it\n",
        "  task 1 executor: shell@",
        "task 1 state: running -> failed",
        "task 4 state: planned -> skipped",
        "  question q1 is new: Which colour is it?  (by ",
        "question q1 answer: blue",
        "  plan status: waiting_for_you -> paused  (by ",
        "/1: task failed\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn a_position_between_events_of_the_plan_selects_the_previous_one() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let known = events_of(&scene, &plan);
    let gap = known.windows(2).find(|pair| pair[1] > pair[0] + 2).expect("the other plan stands between")[0];
    let head = scene.events().len() as i64;
    let orders = format!("g {}\ng {gap}\nto {}\ng {}\ng 0\nto {}\n", gap + 1, gap + 2, known[3], head + 100);
    let ran = stepping(&scene, &[&plan], &orders).expect(0);
    assert_eq!(positions(&steps(&ran.stdout)), [known[0], gap, known[3], known[0], *known.last().expect("events")]);
    ran.says(&["this is the first event", "this is the last event"]);
}

#[test]
fn replay_jumps_to_the_next_and_previous_failure() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let events = lines(&scene.run(&["events", &plan, "-o", "jsonl"]).expect(0).stdout);
    let fails = |event: &&Value| {
        let status = event["data"]["status"].as_str();
        event["event_type"] == "TaskFailed" || matches!(status, Some("Failed" | "TimedOut" | "Cancelled"))
    };
    let failures = events.iter().filter(fails).map(position_of).collect::<Vec<_>>();
    assert!(failures.len() >= 3, "{failures:?}");
    let orders = "f\n".repeat(failures.len() + 1) + &"F\n".repeat(failures.len());
    let ran = stepping(&scene, &[&plan], &orders).expect(0);
    let back = failures.iter().rev().skip(1).copied().collect::<Vec<_>>();
    assert_eq!(positions(&steps(&ran.stdout)), [&[position_of(&events[0])], &failures[..], &back].concat());
    assert_eq!(ran.stderr, "nothing fails after this event\nnothing fails before this event\n");
    let printed = scene.run(&["replay", &plan, "--failure"]).expect(0).stdout;
    assert_eq!(positions(&steps(&printed)), failures);
    let (from, to) = (failures[1].to_string(), failures[2].to_string());
    let printed = scene.run(&["replay", &plan, "--failure", "--from", &from, "--to", &to]).expect(0).stdout;
    assert_eq!(positions(&steps(&printed)), failures[1..=2]);
}

#[test]
fn a_replay_can_be_limited_by_positions_and_exits_with_4_if_empty() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let known = events_of(&scene, &plan);
    let bounds = [known[2].to_string(), known[5].to_string()];
    let words = [&plan, "--from", &bounds[0], "--to", &bounds[1]] as [&str; 5];
    let printed = scene.run(&[&["replay"], &words[..]].concat()).expect(0).stdout;
    assert_eq!(positions(&steps(&printed)), known[2..=5]);
    let all = scene.run(&["replay", &plan]).expect(0).stdout;
    assert!(all.contains(&printed), "the same text as on the whole way");
    let ran = stepping(&scene, &words, "last\nn\nfirst\nb\ng 1\n").expect(0);
    assert_eq!(positions(&steps(&ran.stdout)), [known[2], known[5], known[2]]);
    let past = (scene.events().len() + 1).to_string();
    scene.run(&["replay", &plan, "--from", &past]).expect(4).says(&["does not reach position"]);
    let none = [&plan, "--from", &bounds[1], "--to", &bounds[0]] as [&str; 5];
    let empty = scene.run(&[&["replay", "-o", "json"], &none[..]].concat()).expect(4).json();
    assert_eq!(empty, serde_json::json!({"plan": plan, "steps": []}));
    stepping(&scene, &none, "n\n").expect(4).says(&["has no event from position"]);
    scene.run(&["replay", "nonesuch"]).expect(4).says(&["in its id"]);
    scene.run(&["replay", &plan, "--from", "0"]).expect(2);
    scene.run(&["replay", &plan, "--step", "--failure"]).expect(2);
}

#[test]
fn an_unknown_replay_command_prints_a_message_and_continues() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let long = "n".repeat(10_000);
    let orders = format!("fly\nn x\nb 0\ng\ng -1\n{long}\n\u{1b}[31mred\nh\nn\n");
    let ran = stepping(&scene, &[&plan], &orders).expect(0);
    assert_eq!(steps(&ran.stdout).len(), 2, "it goes on");
    let (wrong, help) = ran.stderr.split_once("n, next").expect("the help is told");
    assert_eq!(wrong.lines().count(), 7, "{wrong}");
    assert!(wrong.lines().all(|line| line.ends_with("; h lists the orders")), "{wrong}");
    assert!(!wrong.contains('\u{1b}'), "{wrong}");
    for word in ["b, back", "g, to", "f, failure", "F, previous", "s, show", "first, last", "q, quit"] {
        assert!(help.contains(word), "{word} is not in the help:\n{help}");
    }
    let mut command = scene.crewlog(&["replay", &plan, "--step"]);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    running.types("q");
    running.stdout.until("plan title: Ship");
    running.finish().expect(0);
}

#[test]
fn the_plan_is_shown_as_of_an_event() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let exported = lines(&scene.run(&["export", &plan]).expect(0).stdout);
    let mut n_compared = 0;
    for pair in exported[1..].windows(2).filter(|pair| pair[0]["append_start"] != pair[1]["append_start"]) {
        let at = position_of(&pair[0]).to_string();
        let shown = scene.run(&["show", &plan, "--at", &at]).expect(0).stdout;
        let stepped = stepping(&scene, &[&plan, "--from", &at], "s\n").expect(0).stdout;
        let (_, stepped) = stepped.split_once(&format!("\n{plan}  ")).expect("the plan is shown");
        assert!(shown.starts_with(&format!("{plan}  {stepped}")), "{shown}\n{stepped}");
        let json = stepping(&scene, &[&plan, "--from", &at, "-o", "jsonl"], "s\n").expect(0).stdout;
        assert_eq!(lines(&json)[1], scene.run(&["show", &plan, "--at", &at, "-o", "json"]).expect(0).json());
        n_compared += 1;
    }
    assert!(n_compared > 10, "{n_compared}");
    let first = stepping(&scene, &[&plan], "s\n").expect(0).stdout;
    assert!(first.contains("ready  made just now, as of position 2\n"), "also in the middle of an append:\n{first}");
}

#[test]
fn a_replay_appends_and_executes_nothing() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let (side, events) = (scene.read("side"), scene.events());
    assert_eq!(side.lines().count(), 3, "it ran twice, and once for the other plan");
    for output in ["text", "json", "jsonl"] {
        scene.run(&["replay", &plan, "-o", output]).expect(0);
        scene.run(&["diff", &format!("{plan}@1"), &plan, "-o", output]).expect(0);
        stepping(&scene, &[&plan, "-o", output], "last\nf\nF\ns\nb 3\nn 3\nfirst\n").expect(0);
    }
    assert_eq!((scene.read("side"), scene.events()), (side, events));
}

/// The first and the last value of each fact, where they differ.
fn sum<'a>(changes: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, (Value, Value)> {
    let mut summed: BTreeMap<String, (Value, Value)> = BTreeMap::new();
    for change in changes {
        let key = format!("{} {} {}", change["of"], change["name"], change["field"]);
        let sides = summed.entry(key).or_insert((change["from"].clone(), change["from"].clone()));
        assert_eq!(sides.1, change["from"], "each begins where the one before ended");
        sides.1 = change["to"].clone();
    }
    summed.retain(|_, (from, to)| from != to);
    summed
}

fn changes(document: &Value) -> &Vec<Value> {
    document["changes"].as_array().expect("an array")
}

#[test]
fn the_changes_of_replay_steps_add_up_to_the_diff_of_any_two_positions() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let steps = lines(&scene.run(&["replay", &plan, "-o", "jsonl"]).expect(0).stdout);
    let exported = lines(&scene.run(&["export", &plan]).expect(0).stdout);
    let starts = exported[1..].iter().map(|event| event["append_start"].as_i64().expect("a number") - 1);
    let ends = starts.chain([scene.events().len() as i64]).collect::<BTreeSet<_>>();
    let ends = ends.into_iter().step_by(4).collect::<Vec<_>>();
    assert!(ends.len() > 3);
    for (n, from) in ends.iter().enumerate() {
        for to in &ends[n..] {
            let sides = [format!("{plan}@{from}"), format!("{plan}@{to}")];
            let diff = scene.run(&["diff", &sides[0], &sides[1], "-o", "json"]).expect(0).json();
            assert_eq!((&diff["from"]["at"], &diff["to"]["at"]), (&Value::from(*from), &Value::from(*to)));
            let between = steps.iter().filter(|step| (*from + 1..=*to).contains(&position_of(step)));
            assert_eq!(sum(between.flat_map(changes)), sum(changes(&diff)), "from {from} to {to}");
        }
    }
    let document = scene.run(&["replay", &plan, "-o", "json"]).expect(0).json();
    assert_eq!(document, serde_json::json!({"plan": plan, "steps": steps}), "the forms agree");
    let stepped = stepping(&scene, &[&plan, "-o", "jsonl"], &format!("n {}\n", steps.len())).expect(0).stdout;
    assert_eq!(lines(&stepped), steps);
}

#[test]
fn a_plan_is_compared_with_itself_and_with_another() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let text = |before: &str, after: &str| scene.run(&["diff", before, after]).expect(0).stdout;
    let head = scene.events().len();
    let same = text(&plan, &plan);
    assert_eq!(same, format!("{plan}@{head} -> {plan}@{head}\nno difference\n"));
    let new = text(&format!("{plan}@0"), &plan);
    for part in ["plan title: Ship\n", "\ntask 1 is new: Run ", "\nquestion q1 is new: "] {
        assert!(new.contains(part), "{part:?} is not in:\n{new}");
    }
    assert!(text(&plan, &format!("{plan}@0")).contains("task 4 is gone: "), "and the other way round");
    let (other, _) = scene.plan("# Ship\n1. Run `echo other`\n2. Paint it\n");
    let between = text(&plan, &other);
    for part in ["task 1 command: echo built >> side; test -e fixed -> echo other", "task 4 is gone: "] {
        assert!(between.contains(part), "{part:?} is not in:\n{between}");
    }
    assert!(!between.contains("Paint it"), "what is the same is not told:\n{between}");
    for typed in ["p@x y", "p@", "p@-1", "@3", "", "p@1@2"] {
        let ran = scene.run(&["diff", typed, &plan]).expect(2);
        ran.says(&["PLAN@NUMBER"]);
    }
    scene.run(&["diff", "nonesuch@3", &plan]).expect(4).says(&["in its id"]);
    let past = format!("{plan}@{}", head + 1_000);
    scene.run(&["diff", &plan, &past]).expect(4).says(&["does not reach position"]);
}

#[test]
fn replay_names_the_cause_of_every_append() {
    let scene = Scene::new();
    let plan = rich(&scene);
    scene.run(&["cancel", &plan]).expect(0);
    scene.run(&["retry", &format!("{plan}/4")]).expect(0);
    scene.run(&["cancel", &plan, "--reason", "enough"]).expect(0);
    let exported = lines(&scene.run(&["export"]).expect(0).stdout);
    let by_id = exported[1..].iter().map(|event| (event["event_id"].as_str().expect("an id"), event));
    let by_id = by_id.collect::<BTreeMap<_, _>>();
    let mut seen = BTreeSet::new();
    for event in exported[1..].iter().filter(|event| event["position"] == event["append_start"]) {
        let cause = event["metadata"]["causation_id"].as_str().and_then(|cause| by_id.get(cause));
        let command = &event["metadata"]["extra"]["command"];
        match event["stream_id"].as_str() {
            Some("planner") if cause.is_some_and(|cause| cause["stream_id"] == "task") => {
                assert_eq!(*command, Value::Null, "what follows from a report keeps no command: {event}");
            }
            Some("planner") => assert!(command.is_object() && cause.is_none(), "{event}"),
            Some("task") => assert!(command.is_object(), "{event}"),
            Some(_) | None => continue,
        }
        for (name, fields) in command.as_object().into_iter().flatten() {
            let is_named = |row: &&str| row.split(" | ").next().is_some_and(|cell| cell.contains(&format!("`{name}`")));
            let keys = || fields.as_object().into_iter().flat_map(serde_json::Map::keys);
            let has_keys = |row: &str| keys().all(|key| row.contains(&format!("`{key}`")));
            assert!(PAGE.lines().filter(is_named).any(has_keys), "docs/json.md has no row for {name} {fields}");
            seen.insert(name.clone());
        }
    }
    let expected = ["Answer", "Cancel", "Claim", "End", "Initialize", "Pause", "Report", "Resume", "Retry"];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
    let steps = lines(&scene.run(&["replay", &plan, "-o", "jsonl"]).expect(0).stdout);
    for step in steps.iter().filter(|step| !step["cause"].is_null()) {
        let cause = by_id[step["cause"]["event_id"].as_str().expect("an id")];
        assert_eq!(step["cause"]["position"], cause["position"]);
        assert_eq!(step["cause"]["event_type"], cause["event_type"]);
    }
}

/// The example in the section of this name.
fn documented(section: &str) -> Value {
    let (_, section) = PAGE.split_once(&format!("\n## {section}\n")).expect("the section is there");
    let (_, example) = section.split_once("\n```json\n").expect("it has an example");
    let (example, _) = example.split_once("\n```\n").expect("the example ends");
    serde_json::from_str(example).expect("the example is JSON")
}

/// The paths of all keys; for arrays those of the first item.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = format!("{path}.{key}");
                keys(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(values) => values.first().into_iter().for_each(|value| keys(value, path, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn replay_steps_and_diffs_have_the_documented_keys() {
    let keys_of = |value: &Value| {
        let mut found = BTreeSet::new();
        keys(value, "", &mut found);
        found
    };
    let scene = Scene::new();
    let plan = rich(&scene);
    let steps = lines(&scene.run(&["replay", &plan, "-o", "jsonl"]).expect(0).stdout);
    let cancel = steps.iter().find(|step| step["command"]["Cancel"].is_object()).expect("it was cancelled");
    assert_eq!(keys_of(cancel), keys_of(&documented("`replay PLAN`")), "{cancel}");
    let caused = steps.iter().find(|step| step["cause"].is_object()).expect("something has a cause");
    assert_eq!(
        keys_of(&caused["cause"]).into_iter().collect::<Vec<_>>(),
        [".event_id", ".event_type", ".position"],
        "{caused}"
    );
    let diff = scene.run(&["diff", &format!("{plan}@2"), &plan, "-o", "jsonl"]).expect(0).json();
    assert_eq!(keys_of(&diff), keys_of(&documented("`diff PLAN@POSITION PLAN@POSITION`")));
    let fields = steps.iter().flat_map(changes).map(|change| change["field"].as_str().expect("text"));
    let row = PAGE.lines().find(|line| line.starts_with("| `field` | ")).expect("it is documented");
    for field in fields.collect::<BTreeSet<_>>() {
        assert!(row.contains(&format!("`{field}`")), "`{field}` is not in: {row}");
    }
}

#[test]
fn replay_prompts_on_a_terminal_and_prints_everything_elsewhere() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let all = scene.run(&["replay", &plan]).expect(0).stdout;
    let known = events_of(&scene, &plan);
    let mut running = Running::start_on_terminal(&mut scene.crewlog(&["replay", &plan]));
    running.stderr.until("h lists the orders");
    running.stderr.until(&format!("{}> ", known[0]));
    running.types("");
    running.stderr.until(&format!("{}> ", known[1]));
    running.types("what?");
    running.stderr.until("is not understood");
    running.stderr.until(&format!("{}> ", known[1]));
    running.types("b");
    running.stderr.until(&format!("{}> ", known[0]));
    running.types("q");
    let shown = steps(&running.finish().expect(0).stdout);
    assert_eq!(positions(&shown), [known[0], known[1], known[0]]);
    for words in [&["--no-input"] as &[&str], &["-o", "text", "--no-input"]] {
        let ran = Running::start_on_terminal(&mut scene.crewlog(&[&["replay", &plan], words].concat())).finish();
        assert_eq!(ran.expect(0).stdout, all);
    }
    let jsonl = Running::start_on_terminal(&mut scene.crewlog(&["replay", &plan, "-o", "jsonl"])).finish();
    assert_eq!(lines(&jsonl.expect(0).stdout).len(), known.len());
}

#[test]
fn control_characters_of_a_plan_are_escaped_on_a_terminal() {
    let scene = Scene::new();
    let trick = "\u{1b}[2Jgone\u{202e}\u{7}";
    let text = format!("# T{trick}\n1. [P] Which colour {trick} is it?\n2. [P] Paint {trick} it\n");
    let (plan, ran) = scene.plan(&text);
    ran.expect(5);
    scene.run(&["answer", &format!("{plan}/q1"), trick]).expect(0);
    scene.run(&["task", "fail", &format!("{plan}/2"), trick]).expect(0);
    let is_safe = |text: &str| !text.contains(['\u{1b}', '\u{202e}', '\u{7}']);
    let printed = scene.run(&["replay", &plan]).expect(0).stdout;
    let stepped = stepping(&scene, &[&plan], "last\ns\n").expect(0).stdout;
    let compared = scene.run(&["diff", &format!("{plan}@0"), &plan]).expect(0).stdout;
    for shown in [&printed, &stepped, &compared] {
        assert!(shown.contains("gone") && is_safe(shown), "{shown:?}");
    }
    let lines = lines(&scene.run(&["replay", &plan, "-o", "jsonl"]).expect(0).stdout);
    let answered = lines.iter().flat_map(changes).find(|change| change["field"] == "answer").expect("an answer");
    assert_eq!(answered["to"], trick, "the data stay as they are");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder can be made");
    for entry in std::fs::read_dir(from).expect("it is a folder").flatten() {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a file can be copied");
        }
    }
}

#[test]
fn the_same_log_replays_to_the_same_bytes_elsewhere() {
    let scene = Scene::new();
    let plan = rich(&scene);
    let elsewhere = scene.around().join("elsewhere");
    copy(&scene.path(".crewlog"), &elsewhere);
    let store = elsewhere.join("log.db");
    let at_first = format!("{plan}@1");
    for (words, orders) in [
        (&["replay", &plan] as &[&str], ""),
        (&["replay", &plan, "-o", "json"], ""),
        (&["replay", &plan, "--step"], "f\ns\nlast\ns\ng 5\n"),
        (&["diff", &at_first, &plan], ""),
        (&["diff", &at_first, &plan, "-o", "json"], ""),
    ] {
        let run = |command: &mut Command| {
            let mut running = Running::start(command.stdin(Stdio::piped()));
            orders.lines().for_each(|order| running.types(order));
            running.close_input();
            running.finish().expect(0)
        };
        let here = run(&mut scene.crewlog(words));
        let mut there = scene.crewlog_in(&elsewhere, words);
        there.arg("--store").arg(&store).env("TZ", "Asia/Tokyo").env("LANG", "de_DE.UTF-8").env("HOSTNAME", "other");
        let there = run(&mut there);
        assert_eq!((here.stdout, here.stderr), (there.stdout, there.stderr), "{words:?}");
    }
}

#[tokio::test]
async fn an_event_of_an_unknown_type_is_a_step_without_changes() {
    use crewlog_mq::{Append, EventStore, Expected, Metadata, NewEvent};
    let scene = Scene::new();
    let plan = rich(&scene);
    let store = EventStore::open(scene.path(".crewlog").join("log.db").to_str().expect("text")).await.expect("a log");
    let extra = Some(serde_json::json!("noted"));
    let metadata = Metadata { causation_id: Some(crewlog_mq::new_event_id()), extra, ..Metadata::default() };
    let noted = NewEvent::from_json("Noted", "7", "[1,\"two\"]".to_owned(), &metadata).expect("JSON");
    let noted = noted.with_tags([format!("plan:{plan}")]);
    store.append(Append::to("notes", "n/1", Expected::Any, vec![noted])).await.expect("it is appended");
    let before = scene.show(&plan);
    let last = lines(&scene.run(&["replay", &plan, "-o", "jsonl"]).expect(0).stdout).pop().expect("steps");
    assert_eq!((&last["event_type"], &last["data"]), (&"Noted".into(), &serde_json::json!([1, "two"])));
    assert_eq!((changes(&last).len(), &last["cause"]["position"], &last["command"]), (0, &Value::Null, &Value::Null));
    let text = scene.run(&["replay", &plan]).expect(0).stdout;
    assert!(text.ends_with("  n/1: noted\n"), "{text}");
    assert_eq!(scene.show(&plan), before);
}
