//! `work`: processes that share the tasks of one log, and readers that follow it.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;

use super::scene::{Gate, Running, Scene, named_pipe};

/// A command that passes the gate of its task and then waits for its release.
pub fn waits(task: u32) -> String {
    format!("echo {task} >> side; {}; read line < go{task}; echo done {task}", Gate::pass(&format!("gate{task}")))
}

pub fn gates<const N: usize>(scene: &Scene) -> [Gate; N] {
    std::array::from_fn(|n| {
        named_pipe(scene, &format!("go{}", n + 1));
        Gate::new(scene, &format!("gate{}", n + 1))
    })
}

pub fn let_go(scene: &Scene, task: u32) {
    std::fs::write(scene.path(format!("go{task}")), "go\n").expect("the command reads it");
}

/// Leaves a plan to workers; its id.
pub fn leave(scene: &Scene, text: &str) -> String {
    scene.write("plan.md", text);
    scene.run(&["run", "plan.md", "--yes", "--detach", "--quiet"]).expect(0).stdout.trim().to_owned()
}

fn workers_of(claims: &[Value]) -> BTreeSet<&str> {
    claims.iter().filter_map(|claim| claim["executor"]["worker"].as_str()).collect()
}

#[test]
fn a_detached_plan_runs_nothing_until_a_worker_starts() {
    let scene = Scene::new();
    let plan = leave(&scene, "1. Run `echo one >> side`\n2. Run `echo two >> side`\n");
    assert_eq!(scene.read_if_any("side"), None);
    assert_eq!(scene.show(&plan)["tasks"][0]["state"], "ready", "it is dispatched, and nobody holds it");
    let ran = scene.run(&["work", "--until-idle"]).expect(0);
    ran.says(&[
        "open now: 1 plan",
        &format!("START [         ] {plan} 1"),
        &format!("{plan} has ended: 2 tasks: 2 completed"),
    ]);
    assert_eq!(scene.read("side"), "one\ntwo\n");
    assert_eq!(scene.show(&plan)["status"], "done");
}

#[test]
fn several_workers_share_the_tasks_of_a_log_and_each_task_runs_once() {
    let scene = Scene::new();
    let mut gates: [Gate; 3] = gates(&scene);
    let items = (1..=3).map(|task| format!("- [P] Run `{}`\n", waits(task))).collect::<String>();
    let plan = leave(&scene, &items);
    let workers = [(); 3].map(|()| scene.start(&["work", "--jobs", "1", "--until-idle"]));
    // Each runs one task at a time, so three passed gates mean that all three work.
    gates.iter_mut().for_each(Gate::wait);
    for task in 1..=3 {
        let_go(&scene, task);
    }
    for worker in workers {
        worker.finish().expect(0);
    }
    let claims = scene.events_of_type("TaskClaimed");
    assert_eq!((claims.len(), workers_of(&claims).len()), (3, 3));
    let mut side = scene.read("side").lines().map(str::to_owned).collect::<Vec<_>>();
    side.sort();
    assert_eq!(side, ["1", "2", "3"]);
    assert_eq!(scene.show(&plan)["status"], "done");
}

#[test]
fn a_running_worker_takes_tasks_planned_later_by_others() {
    let scene = Scene::new();
    let mut worker = scene.start(&["work"]);
    worker.stderr.until("open now: 0 plans");
    let plans = ["one", "two"].map(|word| {
        let plan = leave(&scene, &format!("Run `echo {word} >> side`\n"));
        worker.stderr.until(&format!("{plan} has ended: 1 task: 1 completed"));
        plan
    });
    worker.signal(Signal::TERM);
    worker.finish().expect(130);
    assert!(plans.iter().all(|plan| scene.show(plan)["status"] == "done"));
}

#[test]
fn followers_of_a_log_see_the_same_events_and_a_late_one_sees_the_rest() {
    let scene = Scene::new();
    let mut gates: [Gate; 2] = gates(&scene);
    let mut early = [(); 2].map(|()| scene.start(&["work", "-o", "jsonl", "--jobs", "1"]));
    early.iter_mut().for_each(|worker| worker.stderr.until("open now"));
    let plan = leave(&scene, &format!("1. Run `{}`\n2. Run `{}`\n3. Run `echo end`\n", waits(1), waits(2)));
    gates[0].wait();
    let of_plans = |event: &&Value| event["stream_id"] == "planner" || event["stream_id"] == "task";
    let seen_by_then = scene.events().iter().filter(of_plans).count();
    let mut late = scene.start(&["work", "-o", "jsonl", "--jobs", "1"]);
    late.stderr.until("open now");
    let_go(&scene, 1);
    gates[1].wait();
    let_go(&scene, 2);
    let mut followers = early.into_iter().chain([late]).collect::<Vec<Running>>();
    for follower in &mut followers {
        follower.stderr.until(&format!("{plan} has ended: 3 tasks: 3 completed"));
        follower.signal(Signal::TERM);
    }
    let seen = followers.into_iter().map(|follower| follower.finish().expect(130).stdout).collect::<Vec<_>>();
    let all = scene.events().iter().filter(of_plans).map(Value::to_string).collect::<Vec<_>>();
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON").to_string()).collect()
    };
    assert_eq!(lines(&seen[0]), all);
    assert_eq!(lines(&seen[1]), all);
    let late = lines(&seen[2]);
    assert!(late.len() <= all.len() && all.len() - late.len() == seen_by_then, "it begins where it came");
    assert_eq!(late, all[all.len() - late.len()..], "and misses nothing from there on");
}

#[test]
fn a_terminated_worker_releases_its_task_and_another_finishes_it() {
    let scene = Scene::new();
    let [mut gate]: [Gate; 1] = gates(&scene);
    let plan = leave(&scene, &format!("1. Run `{}` (rerun: safe)\n2. Run `echo end`\n", waits(1)));
    let worker = scene.start(&["work"]);
    gate.wait();
    worker.signal(Signal::INT);
    worker.finish().expect(130).says(&["STOPPED", "interrupted: stopping the running tasks"]);
    gate.wait_until_free();
    std::fs::remove_file(scene.path("gate1")).expect("it is there");
    let mut gate = Gate::new(&scene, "gate1");
    let other = scene.start(&["work", "--until-idle"]);
    gate.wait();
    let_go(&scene, 1);
    other.finish().expect(0);
    assert_eq!(scene.show(&plan)["status"], "done");
    assert_eq!(workers_of(&scene.events_of_type("TaskClaimed")).len(), 2);
}

#[test]
fn an_idle_worker_says_whom_the_plans_wait_for() {
    let scene = Scene::new();
    let asks = leave(&scene, "1. Which colour is it?\n2. Run `echo $CREWLOG_ANSWER`\n");
    let yours = leave(&scene, "- Paint the door\n");
    let ran = scene.run(&["work", "--until-idle"]).expect(5);
    ran.says(&[&format!("crewlog answer {asks}/q1"), &format!("crewlog task done {yours}/1")]);
    scene.run(&["answer", &format!("{asks}/q1"), "red"]).expect(0);
    scene.run(&["task", "done", &format!("{yours}/1")]).expect(0);
    scene.run(&["work", "--until-idle", "-o", "json"]).expect(0);
    assert_eq!(scene.show(&asks)["tasks"][1]["result"], "red");
    let failing = leave(&scene, "1. Run `exit 3`\n");
    let ran = scene.run(&["work", "--until-idle", "-o", "json"]).expect(100);
    assert_eq!(ran.json()["plans"][0]["plan"], failing.as_str());
    assert_eq!(ran.json()["plans"][0]["status"], "failed");
}

/// The log ends with a report whose author died before the planner processed it.
#[test]
fn a_worker_processes_unprocessed_reports_before_it_becomes_idle() {
    let (scene, there) = (Scene::new(), Scene::new());
    let plan = leave(&scene, "1. Paint the door\n2. Run `echo fine`\n");
    scene.run(&["task", "done", &format!("{plan}/1")]).expect(0);
    let export = scene.run(&["export"]).expect(0).stdout;
    let n_told = export.lines().position(|line| line.contains("\"TaskCompleted\"")).expect("it is there");
    let head = |n: usize| format!("\"head\":{n}}}");
    let cut_off = export.lines().take(n_told + 1).map(|line| format!("{line}\n")).collect::<String>();
    there.write("log.jsonl", cut_off.replacen(&head(export.lines().count() - 1), &head(n_told), 1));
    there.run(&["import", "log.jsonl"]).expect(0);
    there.run(&["work", "--until-idle"]).expect(5).says(&["task 2 runs once you agree: echo fine"]);
    there.run(&["agree", "--yes"]).expect(0);
    there.run(&["work", "--until-idle"]).expect(0);
    assert_eq!(there.show(&plan)["tasks"][1]["result"], "fine");
}

#[test]
fn an_unreadable_plan_is_named_and_blocks_no_other() {
    let (scene, there) = (Scene::new(), Scene::new());
    let foreign = leave(&scene, "1. Which colour is it?\n");
    let sound = leave(&scene, "Run `echo fine`\n");
    let export = scene.run(&["export"]).expect(0).stdout;
    there.write("log.jsonl", export.replacen("\"ClarificationRequested\"", "\"SomethingOfALaterVersion\"", 1));
    there.run(&["import", "log.jsonl"]).expect(0);
    let said = format!("{foreign} cannot be read and is left out: ");
    there.run(&["agree", "--yes"]).expect(0).says(&[&said]);
    there.run(&["work", "--until-idle"]).expect(0).says(&[&said, "SomethingOfALaterVersion"]);
    assert_eq!(there.show(&sound)["tasks"][0]["result"], "fine");
    let listed = there.run(&["ls", "-o", "json"]).expect(0);
    listed.says(&[&said]);
    assert_eq!(listed.json()["plans"].as_array().map(Vec::len), Some(1));
    there.run(&["show", &foreign]).expect(1).says(&["SomethingOfALaterVersion"]);
}

#[test]
fn a_command_stops_at_the_first_failure_or_unset_variable() {
    let scene = Scene::new();
    let (plan, ran) =
        scene.plan("1. Build it:\n   ```sh\n   echo begun > a.txt\n   false\n   echo on > b.txt\n   ```\n");
    ran.expect(100);
    assert_eq!(scene.read("a.txt"), "begun\n");
    assert!(!scene.path("b.txt").exists(), "{}", scene.show(&plan));
    let (_, ran) = scene.plan("1. Run `test -e nothing; echo on > c.txt`\n");
    ran.expect(100);
    let (_, ran) = scene.plan("1. Run `echo $NOT_SET_ANYWHERE; echo on > c.txt`\n");
    ran.expect(100);
    assert!(!scene.path("c.txt").exists());
}
