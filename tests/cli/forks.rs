//! Forks and checkpoints on the command line.

use crewlog_mq::{Cause, EventStore, Runner};
use crewlog_planner::claim::{self, Claim, Ending, Executor, TaskCommand, TaskLease};
use crewlog_planner::event::plan_tag;
use crewlog_planner::plan::TaskId;
use serde_json::Value;

use super::scene::{Gate, Scene, named_pipe};
use crate::crew::recorded::Scripted;

/// The statuses of a plan's tasks.
fn statuses(scene: &Scene, plan: &str) -> Vec<String> {
    let shown = scene.show(plan);
    let tasks = shown["tasks"].as_array().expect("tasks");
    tasks.iter().map(|task| task["state"].as_str().expect("text").to_owned()).collect()
}

/// Forks a plan; the id of the fork.
#[track_caller]
fn fork(scene: &Scene, words: &[&str]) -> String {
    scene.run(&[&["fork"], words].concat()).expect(0).stdout.trim().to_owned()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

const FAILING: &str = "# Ship\n1. Run `echo built >> side`\n2. Run `test -e fixed`\n3. Run `echo shipped >> side`\n";

#[test]
fn a_fork_before_a_failure_reruns_the_failed_task_and_leaves_its_parent_unchanged() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan(FAILING);
    ran.expect(100);
    let before = scene.run(&["events", &plan, "-o", "jsonl"]).expect(0).stdout;
    scene.write("fixed", "");
    let fork = fork(&scene, &["--at", "failure", &plan, "--reason", "it is there now"]);
    scene.run(&["resume", &fork]).expect(0);
    assert!(fork.starts_with("ship-fork-"), "{fork}");
    assert_eq!(statuses(&scene, &fork), ["done", "done", "done"]);
    assert_eq!(statuses(&scene, &plan), ["done", "failed", "skipped"]);
    assert_eq!(scene.read("side"), "built\nshipped\n", "what had completed is not run again");
    assert_eq!(scene.run(&["events", &plan, "-o", "jsonl"]).expect(0).stdout, before);
    // Both name each other.
    let (shown, parent) = (scene.show(&fork), scene.show(&plan));
    assert_eq!(shown["parent"]["plan"], plan.as_str());
    assert_eq!(shown["parent"]["reason"], "it is there now");
    assert_eq!(parent["parent"], Value::Null);
    assert_eq!(parent["forks"][0]["plan"], fork.as_str());
    let text = scene.run(&["show", &fork]).expect(0).stdout;
    assert!(text.contains(&format!("a fork of {plan} at position")), "{text}");
    let text = scene.run(&["show", &plan]).expect(0).stdout;
    assert!(text.contains(&format!("as {fork}: it is there now")), "{text}");
    let listed = scene.run(&["ls"]).expect(0).stdout;
    assert_eq!(listed.lines().filter(|line| line.contains(&format!("(a fork of {plan} at "))).count(), 1, "{listed}");
    scene.run(&["db", "check"]).expect(0);
}

#[test]
fn a_fork_before_a_task_includes_its_completed_dependencies_but_not_its_start() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan(FAILING);
    ran.expect(100);
    let first = fork(&scene, &[&plan, "--at", "before:1"]);
    assert_eq!(statuses(&scene, &first), ["paused", "planned", "planned"]);
    let second = fork(&scene, &[&plan, "--at", "before:2"]);
    assert_eq!(statuses(&scene, &second), ["done", "paused", "planned"]);
    scene.run(&["fork", &plan, "--at", "before:3"]).expect(4).says(&["has not begun yet"]);
    scene.run(&["fork", &plan, "--at", "before:9"]).expect(4).says(&["has no task"]);
    scene.run(&["fork", &plan, "--at", "before:1", "--at", "3"]).expect(2);
    scene.run(&["fork", "nothing"]).expect(4);
}

#[test]
fn a_fork_beyond_the_log_or_with_ineffective_options_is_refused() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan(FAILING);
    ran.expect(100);
    let head = scene.run(&["events", "-o", "jsonl"]).expect(0).stdout.lines().count();
    let beyond = scene.run(&["fork", &plan, "--at", "99999"]).expect(4);
    beyond.says(&["does not reach position 99999", &format!("its last is {head}")]);
    scene.run(&["fork", &plan, "--at", "before:"]).expect(2).says(&["write before:TASK"]);
    assert_eq!(scene.run(&["events", "-o", "jsonl"]).expect(0).stdout.lines().count(), head, "nothing was made");
    // With all tasks ended, resuming it would do nothing.
    scene.run(&["fork", &plan]).expect(0).says(&[
        "0 tasks to go",
        "it is paused; to continue: crewlog retry",
        "then: crewlog resume",
    ]);
    scene.run(&["fork", &plan, "--at", "before:2"]).expect(0).says(&["crewlog resume"]);
}

#[test]
fn a_checkpoint_name_is_accepted_wherever_a_position_is() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("# Ask\n1. Which colour is it?\n2. Run `echo \"$CREWLOG_ANSWER\"`\n");
    ran.expect(5);
    let named = scene.run(&["plan", "checkpoint", &plan, "unasked", "-o", "json"]).expect(0).json();
    let at = named["at"].to_string();
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
    scene.run(&["plan", "checkpoint", &plan, "unasked"]).expect(9).says(&["already has a checkpoint \"unasked\""]);
    scene.run(&["plan", "checkpoint", &plan, "17"]).expect(1).says(&["is not a valid checkpoint name"]);
    let listed = scene.run(&["plan", "checkpoint", &plan, "-o", "json"]).expect(0).json();
    assert_eq!(listed["checkpoints"][0]["name"], "unasked");
    assert_eq!(listed["checkpoints"][0]["at"], named["at"]);
    let same = |by_name: &[&str], by_position: &[&str]| {
        let (one, other) = (scene.run(by_name).expect(0), scene.run(by_position).expect(0));
        assert_eq!(one.stdout, other.stdout);
        assert!(!one.stdout.is_empty());
    };
    same(&["show", &plan, "--at", "unasked"], &["show", &plan, "--at", &at]);
    same(&["replay", &plan, "--to", "unasked"], &["replay", &plan, "--to", &at]);
    same(&["replay", &plan, "--from", "unasked"], &["replay", &plan, "--from", &at]);
    same(&["diff", &format!("{plan}@unasked"), &plan], &["diff", &format!("{plan}@{at}"), &plan]);
    scene.run(&["show", &plan, "--at", "never"]).expect(4).says(&["has no checkpoint \"never\""]);
    let fork = fork(&scene, &[&plan, "--at", "unasked"]);
    scene.run(&["resume", &fork]).expect(5);
    let open = scene.show(&fork)["questions"][1].clone();
    assert_eq!((open["id"].as_str(), open["answer"].as_str()), (Some("q2"), None), "it is asked anew");
    scene.run(&["answer", &format!("{fork}/q2"), "red"]).expect(0);
    scene.run(&["resume", &fork]).expect(0);
    let results = |plan: &str| scene.show(plan)["tasks"][1]["result"].clone();
    assert_eq!((results(&plan), results(&fork)), ("blue".into(), "red".into()));
    assert_eq!(
        scene.run(&["plan", "checkpoint", &fork]).expect(0).stdout.lines().count(),
        1,
        "it is of the shared history"
    );
}

#[test]
fn a_fork_can_be_viewed_from_its_first_event_and_exported_completely() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan(FAILING);
    ran.expect(100);
    scene.write("fixed", "");
    let fork = fork(&scene, &[&plan, "--at", "failure"]);
    scene.run(&["resume", &fork]).expect(0);
    let events = lines(&scene.run(&["events", &fork, "-o", "jsonl"]).expect(0).stdout);
    let of = |event: &Value| event["aggregate_id"].as_str().expect("text").to_owned();
    let types = events.iter().map(|event| event["event_type"].as_str().expect("text")).collect::<Vec<_>>();
    assert_eq!(types[0], "TasksPlanned");
    let forked = types.iter().position(|event_type| *event_type == "PlanForked").expect("it says what it is");
    assert!(events[..forked].iter().all(|event| of(event).starts_with(&plan)));
    assert!(events[forked..].iter().all(|event| of(event).starts_with(&fork)));
    let at = scene.show(&fork)["parent"]["at"].as_i64().expect("a number");
    assert!(events[..forked].iter().all(|event| event["position"].as_i64() <= Some(at)));
    let position = |event: &Value| event["position"].as_i64();
    let steps = scene.run(&["replay", &fork, "-o", "jsonl"]).expect(0).stdout;
    assert_eq!(lines(&steps).iter().map(position).collect::<Vec<_>>(), events.iter().map(position).collect::<Vec<_>>());
    let exported = lines(&scene.run(&["export", &fork]).expect(0).stdout);
    assert_eq!(exported[1..].iter().map(position).collect::<Vec<_>>(), events.iter().map(position).collect::<Vec<_>>());
    let reversed = lines(&scene.run(&["events", &fork, "--reverse", "-o", "jsonl"]).expect(0).stdout);
    assert!(reversed.iter().rev().eq(&events));
    let none = scene.run(&["diff", &format!("{fork}@{at}"), &format!("{plan}@{at}")]).expect(0).stdout;
    assert!(none.contains("no difference"), "{none}");
}

#[test]
fn events_of_a_plan_and_its_fork_can_be_followed() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Look into it\n2. Look further\n");
    let plan = scene.run(&["run", "plan.md", "--detach"]).expect(0).stdout.trim().to_owned();
    let fork = fork(&scene, &[&plan]);
    let followings = [&plan, &fork].map(|followed| {
        let events = scene.run(&["events", followed, "-o", "jsonl"]).expect(0).stdout;
        let mut following = scene.start(&["events", followed, "--follow", "-o", "jsonl"]);
        for event in events.lines() {
            assert_eq!(following.stdout.line().trim_end(), event);
        }
        (followed, following)
    });
    for plan in [&fork, &plan] {
        scene.run(&["cancel", plan]).expect(0);
    }
    for (followed, mut following) in followings {
        let next = lines(&following.stdout.line());
        assert_eq!(
            (&next[0]["aggregate_id"], &next[0]["event_type"]),
            (&followed.as_str().into(), &"PlanCancelled".into())
        );
    }
}

#[test]
fn a_fork_does_not_affect_the_running_parent() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    scene.write(
        "plan.md",
        format!("1. Run `{}; cat hold; echo x >> side`\n2. Run `echo y >> side`\n", Gate::pass("gate")),
    );
    let hold = super::scene::named_pipe(&scene, "hold");
    let mut running = scene.start(&["run", "plan.md", "--yes"]);
    running.stdout.until("\n");
    gate.wait();
    let plan = scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["plan"].as_str().expect("text").to_owned();
    let fork = fork(&scene, &[&plan]);
    assert_eq!(statuses(&scene, &fork), ["paused", "planned"]);
    let shown = scene.show(&fork);
    assert_eq!(shown["tasks"][0]["executor"], Value::Null, "nobody holds the fork's");
    assert_eq!(scene.events_of_type("TaskClaimed").len(), 1, "the other's worker takes none of its tasks");
    std::fs::write(hold, "").expect("it is read");
    running.finish().expect(0);
    assert_eq!(statuses(&scene, &plan), ["done", "done"]);
    assert_eq!(statuses(&scene, &fork), ["paused", "planned"]);
    assert_eq!(scene.read("side"), "x\ny\n");
    scene.run(&["cancel", &fork]).expect(0);
    assert_eq!(statuses(&scene, &plan), ["done", "done"]);
}

#[test]
fn compare_shows_two_forks_of_one_point_and_refuses_unrelated_plans() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("# Ship\n1. Run `echo built`\n2. Run `cat way`\n3. Run `echo shipped`\n");
    ran.expect(100);
    scene.write("way", "by train");
    let train = fork(&scene, &[&plan, "--at", "failure"]);
    scene.run(&["resume", &train]).expect(0);
    scene.write("way", "by boat");
    let boat = fork(&scene, &[&plan, "--at", "failure"]);
    scene.run(&["resume", &boat]).expect(0);
    let compare =
        |one: &str, other: &str| scene.run(&["diff", "--outcomes", one, other, "-o", "json"]).expect(0).json();
    let siblings = compare(&train, &boat);
    assert_eq!(siblings["parted"]["plan"], plan.as_str());
    assert_eq!(siblings["parted"]["event_type"], "TaskFailed", "the last event of the plan that both know");
    let changed = siblings["changes"].as_array().expect("changes").iter();
    let changed = changed.map(|change| [&change["name"], &change["field"], &change["from"], &change["to"]]);
    let result: [Value; 4] = ["2", "result", "by boat", "by train"].map(Into::into);
    assert_eq!(changed.collect::<Vec<_>>(), [result.each_ref()], "whatever time each took");
    assert_eq!((&siblings["one"]["status"], &siblings["other"]["status"]), (&"done".into(), &"done".into()));
    assert!(siblings["one"]["duration_ms"].is_u64());
    // A plan and its fork, in both directions.
    let with_parent = compare(&plan, &boat);
    assert_eq!(with_parent["parted"], siblings["parted"]);
    assert_eq!(with_parent["one"]["status"], "failed");
    assert_eq!(compare(&boat, &plan)["other"], with_parent["one"]);
    // Cousins diverge where their ancestors do.
    let of_train = fork(&scene, &[&train]);
    assert_eq!(compare(&of_train, &boat)["parted"], siblings["parted"]);
    assert_eq!(compare(&of_train, &train)["parted"]["plan"], train.as_str());
    let text = scene.run(&["diff", "--outcomes", &train, &boat]).expect(0).stdout;
    for part in ["diverged after position", "task 2 result: by boat -> by train\n"] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    let (stranger, _) = scene.plan("1. Run `true`\n");
    scene.run(&["diff", "--outcomes", &plan, &stranger]).expect(4).says(&["share no history", "crewlog diff"]);
    scene.run(&["diff", "--outcomes", &plan, &plan]).expect(1).says(&["this is one plan"]);
}

#[test]
fn compare_shows_duration_usage_and_failures_of_two_strategies() {
    let scene = Scene::new();
    let usage = r#"echo done; echo "USAGE: $(cat usage)""#;
    let agent = format!("[executors.writer]\ncommand = ['sh', '-c', '{usage}']\nkinds = [\"Processing\"]\n");
    scene.write("crewlog.toml", agent);
    scene.write("usage", r#"{"input_tokens": 9, "output_tokens": 1, "cost": 0.5}"#);
    let (plan, ran) = scene.plan("# Ship\n1. Run `test -e way` (retry 1)\n2. Write the poem\n");
    ran.expect(100);
    scene.write("way", "");
    let short = fork(&scene, &[&plan, "--at", "before:1"]);
    scene.run(&["resume", &short, "--yes"]).expect(0);
    let compared = scene.run(&["diff", "--outcomes", &short, &plan, "-o", "json"]).expect(0).json();
    let side = |side: &str, key: &str| compared[side][key].clone();
    assert_eq!((side("one", "failures"), side("other", "failures")), (0.into(), 2.into()), "{compared}");
    let (work, took) = (side("one", "work_ms").as_u64(), side("one", "duration_ms").as_u64());
    assert!(work.is_some_and(|work| work > 0) && work <= took, "{compared}");
    assert_eq!(side("one", "usage")["cost_micros"], 500_000, "{compared}");
    let text = scene.run(&["diff", "--outcomes", &short, &plan]).expect(0).stdout;
    let parts = [", worked on for ", "0 failures, 10 tokens, a cost of 0.500000", "2 failures"];
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn db_check_finds_a_fork_without_its_parent_and_import_refuses_its_lone_export() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Run `true`\n2. Which colour is it?\n");
    let fork = fork(&scene, &[&plan]);
    let export = scene.run(&["export"]).expect(0).stdout;
    let (parent, stranger) = (format!("\"parent\":\"{plan}\""), format!("\"parent\":\"{plan}-gone\""));
    assert!(export.contains(&parent));
    scene.write("export.jsonl", export.replace(&parent, &stranger));
    scene.run(&["import", "export.jsonl", "--store", "other.db"]).expect(0);
    let checked = scene.run(&["db", "check", "--store", "other.db"]).expect(1).stdout;
    assert!(
        checked.contains(&format!("this is a fork of {plan}-gone, and there is no such plan before it")),
        "{checked}"
    );
    scene.run(&["show", &fork, "--store", "other.db"]).expect(0);
    scene.run(&["resume", &fork, "--store", "other.db"]).expect(4).says(&["there is no such plan"]);
    // The export of one plan can be read, but is refused as a log.
    let (other, _) = scene.plan("1. Run `echo between`\n");
    let late = scene.run(&["fork", &other]).expect(0).stdout.trim().to_owned();
    scene.write("fork.jsonl", scene.run(&["export", &late]).expect(0).stdout);
    scene.run(&["import", "fork.jsonl", "--store", "third.db"]).expect(1).says(&["the export of one plan"]);
}

#[test]
fn a_fork_is_changed_by_the_commands_of_any_plan_before_it_runs() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("# Ship\n1. Run `echo built`\n2. Run `echo wrong; exit 1`\n3. Run `echo shipped`\n");
    ran.expect(100);
    let forked = scene.run(&["fork", &plan, "--at", "before:2"]).expect(0);
    let fork = forked.stdout.trim().to_owned();
    forked.says(&["it is paused; change it, then: ", &format!("crewlog resume {fork}")]);
    // Other workers leave it alone.
    scene.run(&["work", "--until-idle"]).expect(6).says(&["a fork begins paused"]);
    let second = format!("{fork}/2");
    let edit = ["task", "edit", &second, "command=echo right", "timeout=1m"];
    scene.run(&edit).expect(1).says(&["1 task, 1 with a command", "echo right", "nothing was run"]);
    scene.run(&[&edit[..], &["--yes"]].concat()).expect(0);
    scene.run(&["task", "skip", &format!("{fork}/3")]).expect(0);
    scene.run(&["task", "add", "Run `echo checked`", "--plan", &fork, "--after", "2", "--yes"]).expect(0);
    scene.run(&["plan", "set", &fork, "parallelism=1"]).expect(0);
    assert_eq!(statuses(&scene, &fork), ["done", "paused", "skipped", "planned"]);
    scene.run(&["resume", &fork]).expect(0);
    let shown = scene.show(&fork);
    let results = [0, 1, 2, 3].map(|task| shown["tasks"][task]["result"].clone());
    assert_eq!(results, ["built".into(), "right".into(), serde_json::Value::Null, "checked".into()]);
    let events = lines(&scene.run(&["events", &fork, "-o", "jsonl"]).expect(0).stdout);
    let made = events.iter().filter(|event| event["aggregate_id"] == *fork).take(2);
    let made = made.map(|event| (event["event_type"].as_str(), event["append_start"].as_i64())).collect::<Vec<_>>();
    assert_eq!((made[0].0, made[1].0), (Some("PlanForked"), Some("PlanPaused")));
    assert_eq!(made[0].1, made[1].1, "one append makes it and pauses it");
    scene.run(&["replay", &fork, "--verify"]).expect(0);
    scene.run(&["task", "edit", &format!("{fork}/1"), "command=x", "--yes"]).expect(9);
}

#[test]
fn compare_counts_a_task_running_at_the_fork_point_from_there() {
    let scene = Scene::new();
    named_pipe(&scene, "go");
    scene.write("plan.md", "1. Run `read line < go`\n");
    let mut running = scene.start(&["run", "plan.md", "--yes"]);
    let plan = running.stdout.line().trim().to_owned();
    running.stderr.until("START");
    let other = fork(&scene, &[&plan]);
    std::fs::write(scene.path("go"), "go\n").expect("the command reads it");
    running.finish().expect(0);
    let compare =
        |one: &str, other: &str| scene.run(&["diff", "--outcomes", one, other, "-o", "json"]).expect(0).json();
    let compared = compare(&plan, &other);
    let (work, took) = (compared["one"]["work_ms"].as_u64(), compared["one"]["duration_ms"].as_u64());
    assert!(work > Some(0) && work <= took, "{compared}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_between_an_expired_lease_and_the_next_claim_is_no_work() {
    let scene = Scene::new();
    let (plan, _waits) = scene.plan("1. Decide it\n");
    let other = fork(&scene, &[&plan]);
    let (url, clock) = (scene.path(".crewlog/log.db").to_str().expect("text").to_owned(), Scripted::default());
    clock.set(EventStore::open(&url).await.expect("a log").now());
    let store = EventStore::open_with(&url, clock.options()).await.expect("a log");
    let aggregate = claim::aggregate_id(&plan, TaskId(1));
    let mut lease = Runner::<TaskLease>::new(store.clone(), claim::STREAM, &aggregate, vec![plan_tag(&plan)]);
    let executor = Executor { name: "ana".into(), host: "h".into(), worker: "w".into() };
    let claim = |now| TaskCommand::Claim(Claim { attempt: 1, executor: executor.clone(), now, ..Claim::default() });
    let mut order = async |ms: i64, command: &dyn Fn(crewlog_mq::Timestamp) -> TaskCommand| {
        clock.pass(ms);
        lease.execute(command(store.now()), &Cause::request()).await.expect("the task takes it");
    };
    let ending = Ending::Completed { result: "so".into(), run: None };
    order(1, &claim).await;
    order(180_000, &|now| TaskCommand::FireTimer { epoch: 1, now, is_dead: false }).await;
    order(600_000, &claim).await;
    order(1_000, &|_| TaskCommand::End { epoch: 2, usage: Default::default(), ending: ending.clone() }).await;
    let compared = scene.run(&["diff", "--outcomes", &plan, &other, "-o", "json"]).expect(0).json();
    assert_eq!(compared["one"]["work_ms"], 181_000, "{compared}");
}
