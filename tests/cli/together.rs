//! Several processes on one plan, and a run that is asked to end.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::scene::{Gate, Ran, Running, Scene, named_pipe};

/// The longest a run takes to end while the log accepts nothing.
const BOUND: Duration = Duration::from_secs(40);

/// A plan whose first command waits, with the gate it has passed and the pipe that releases it.
struct Waiting {
    scene: Scene,
    plan: String,
    running: Running,
    gate: Gate,
}

impl Waiting {
    fn at(rest: &str) -> Self {
        Self::at_with(rest, &[])
    }

    fn at_with(rest: &str, options: &[&str]) -> Self {
        let scene = Scene::new();
        let mut gate = Gate::new(&scene, "gate");
        named_pipe(&scene, "go");
        let wait = format!("echo 1 >> side; {}; read line < go; echo waited", Gate::pass("gate"));
        scene.write("plan.md", format!("1. Run `{wait}`\n{rest}"));
        let mut running = scene.start(&[&["run", "plan.md", "--yes"], options].concat());
        gate.wait();
        running.stdout.until("\n");
        let plan =
            scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
        Self { scene, plan, running, gate }
    }

    fn let_go(self) -> (Scene, String, Ran) {
        std::fs::write(self.scene.path("go"), "go\n").expect("the command reads it");
        (self.scene, self.plan, self.running.finish())
    }
}

fn statuses(shown: &Value) -> Vec<&str> {
    shown["tasks"].as_array().expect("tasks").iter().filter_map(|task| task["state"].as_str()).collect()
}

#[test]
fn an_interrupted_run_releases_its_task_and_says_how_to_continue() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let Waiting { scene, plan, running, gate } = Waiting::at("2. Run `echo second`\n");
        running.signal(signal);
        let ran = running.finish().expect(130);
        ran.says(&[
            "interrupted: stopping the running tasks",
            &format!("to continue: crewlog resume {plan}"),
            "STOPPED",
        ]);
        gate.wait_until_free();
        assert_eq!(scene.events_of_type("TaskReleased").len(), 1, "{signal:?}");
        std::fs::remove_file(scene.path("gate")).expect("it is there");
        let mut gate = Gate::new(&scene, "gate");
        let resumed = scene.start(&["resume", &plan]);
        gate.wait();
        let (scene, plan, ran) = Waiting { scene, plan, running: resumed, gate }.let_go();
        ran.expect(0);
        assert_eq!(scene.read("side"), "1\n1\n", "it was begun again, once");
        assert_eq!(statuses(&scene.show(&plan)), ["done", "done"]);
    }
}

/// Only `resume` is the person's yes.
#[test]
fn a_command_that_was_cut_short_is_asked_about_and_not_run_again() {
    for cut_short in [Some(Signal::INT), Some(Signal::TERM), Some(Signal::HUP), None] {
        let limit: &[&str] = if cut_short.is_none() { &["--timeout", "1s"] } else { &[] };
        let Waiting { scene, plan, running, gate } = Waiting::at_with("2. Run `echo second`\n", limit);
        cut_short.into_iter().for_each(|signal| running.signal(signal));
        running.finish().expect(if cut_short.is_some() { 130 } else { 8 });
        gate.wait_until_free();
        assert_eq!(statuses(&scene.show(&plan))[0], "interrupted", "{cut_short:?}");
        let item = &scene.run(&["inbox", "-o", "json"]).expect(0).json()["items"][0];
        assert_eq!(item["kind"], "interrupted", "{item}");
        scene.run(&["work", "--until-idle"]).expect(5);
        let question = &scene.show(&plan)["questions"][0]["question"];
        let asked = question.as_str().expect("a question");
        assert!(asked.contains("unknown whether task 1 did its work: its run by shell@"), "{cut_short:?}: {asked}");
        assert_eq!(scene.read("side"), "1\n", "{cut_short:?}");
    }
}

/// A command that a shell starts with SIGHUP ignored, like `nohup`.
fn ignoring_hangups(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(command.get_current_dir().expect("it has a folder")).stdin(Stdio::null());
    shell
}

#[test]
fn a_run_that_ignores_hangups_continues_and_can_still_be_interrupted() {
    for (then, code) in [(None, 0), (Some(Signal::TERM), 130)] {
        let scene = Scene::new();
        let (mut gate, go) = (Gate::new(&scene, "gate"), named_pipe(&scene, "go"));
        // Opened for both, so that it takes a line whether or not the command still reads.
        let mut go = File::options().read(true).write(true).open(go).expect("the pipe opens");
        scene.write("plan.md", format!("Run `{}; read line < go; echo waited`", Gate::pass("gate")));
        let running = Running::start(&mut ignoring_hangups(&scene.crewlog(&["run", "plan.md", "--yes"])));
        gate.wait();
        running.signal(Signal::HUP);
        assert_eq!(scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["status"], "running");
        match then {
            Some(signal) => running.signal(signal),
            None => go.write_all(b"go\n").expect("the pipe takes a line"),
        }
        let ran = running.finish().expect(code);
        gate.wait_until_free();
        let n_released = scene.events_of_type("TaskReleased").len();
        assert_eq!(n_released, usize::from(then.is_some()), "{then:?}: {}", ran.stderr);
    }
}

#[test]
fn a_reopened_task_does_not_count_as_ended() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Run `test -e fixed`\n2. Run `echo ok`\n");
    ran.expect(100);
    let ended = |shown: &Value| {
        let tasks = shown["tasks"].as_array().expect("tasks").iter();
        tasks.map(|task| !task["ended_at"].is_null()).collect::<Vec<_>>()
    };
    assert_eq!(ended(&scene.show(&plan)), [true, true]);
    scene.write("fixed", "");
    scene.run(&["retry", &plan]).expect(0);
    assert_eq!(ended(&scene.show(&plan)), [false, false]);
    scene.run(&["resume", &plan]).expect(0);
    assert_eq!(ended(&scene.show(&plan)), [true, true]);
}

#[test]
fn a_second_resume_joins_and_each_task_runs_once() {
    let scene = Scene::new();
    let steps = (1..=12).map(|n| format!("- Run `echo {n} >> side`\n")).collect::<String>();
    let (plan, _) = scene.plan(&format!("1. Shall it begin?\n2. In parallel:\n{}", steps.replace("- ", "   - ")));
    scene.run(&["answer", &format!("{plan}/q1"), "yes"]).expect(0);
    let resumed = [0; 3].map(|_| scene.start(&["resume", &plan]));
    for running in resumed {
        running.finish().expect(0);
    }
    let mut side = scene.read("side").lines().map(|line| line.parse().expect("a number")).collect::<Vec<u32>>();
    side.sort_unstable();
    assert_eq!(side, (1..=12).collect::<Vec<_>>());
    assert_eq!(scene.events_of_type("PlanningCompleted").len(), 1);
    assert_eq!(scene.events_of_type("TaskCompleted").len(), 12);
}

#[test]
fn an_answer_from_another_process_reaches_the_run() {
    let rest = "2. Which colour is it?\n3. Run `echo \"got $CREWLOG_ANSWER\"` (after 1, 2)\n";
    let waiting = Waiting::at_with(rest, &["--parallel"]);
    let questions = waiting.scene.show(&waiting.plan)["questions"].clone();
    assert_eq!(questions[0]["id"], "q1", "it is asked beside the command: {questions}");
    waiting.scene.run(&["answer", &format!("{}/q1", waiting.plan), "blue"]).expect(0);
    let (scene, plan, ran) = waiting.let_go();
    ran.expect(0);
    assert_eq!(scene.show(&plan)["tasks"][2]["result"], "got blue");
}

#[test]
fn a_task_held_by_a_worker_cannot_be_reported_by_others() {
    let waiting = Waiting::at("");
    for words in [
        &["task", "done", &format!("{}/1", waiting.plan)] as &[&str],
        &["task", "fail", &format!("{}/1", waiting.plan), "no"],
    ] {
        waiting.scene.run(words).expect(9).says(&["claimed by shell@"]);
    }
    let (scene, plan, ran) = waiting.let_go();
    ran.expect(0);
    assert_eq!(scene.show(&plan)["tasks"][0]["result"], "waited");
}

#[test]
fn a_cancelled_task_is_stopped_and_the_rest_continues() {
    let Waiting { scene, plan, running, gate } = Waiting::at_with("2. Run `echo beside`\n", &["--parallel"]);
    scene.run(&["cancel", &format!("{plan}/1"), "--reason", "not needed"]).expect(0);
    running.finish().expect(100).says(&["CANCEL", "not needed"]);
    gate.wait_until_free();
    let shown = scene.show(&plan);
    assert_eq!((&shown["tasks"][0]["state"], &shown["tasks"][0]["error"]), (&"cancelled".into(), &"not needed".into()));
    assert_eq!(shown["tasks"][1]["result"], "beside");
    assert_eq!(scene.events_of_type("TaskStopped").len(), 1);
}

#[test]
fn cancelling_a_plan_stops_its_run() {
    let Waiting { scene, plan, running, gate } = Waiting::at("2. Run `echo second`\n");
    assert_eq!(scene.run(&["cancel", &plan]).expect(0).stdout, format!("{plan} is cancelled\n"));
    running.finish().expect(100).says(&["the plan is cancelled: by a person"]);
    gate.wait_until_free();
    assert_eq!(statuses(&scene.show(&plan)), ["cancelled", "cancelled"]);
}

#[test]
fn a_command_finds_the_log_and_can_add_to_it() {
    let scene = Scene::new();
    let crewlog = env!("CARGO_BIN_EXE_crewlog");
    let add = format!("mkdir elsewhere; cd elsewhere; {crewlog} show \"$CREWLOG_PLAN\" -o jsonl");
    scene.write("plan.md", format!("Run `{add}`"));
    let plan = scene.run(&["--store", "here.db", "run", "plan.md", "--yes"]).expect(0).stdout.trim().to_owned();
    let shown = scene.run(&["--store", "here.db", "show", &plan, "-o", "json"]).expect(0).json();
    let seen: Value = serde_json::from_str(shown["tasks"][0]["result"].as_str().expect("text")).expect("JSON");
    assert_eq!((&seen["plan"], &seen["tasks"][0]["state"]), (&shown["plan"], &"running".into()));
}

#[test]
fn workers_see_each_other_under_two_names_of_one_log() {
    let Waiting { scene, plan, running, gate } = Waiting::at("2. Run `echo 2 >> side`\n");
    std::os::unix::fs::symlink(scene.path(".crewlog/log.db"), scene.path("link.db")).expect("a link can be made");
    let mut other = scene.start(&["--store", "link.db", "resume", &plan, "--timeout", "2s"]);
    other.stderr.until("stopped after its --timeout");
    other.finish().expect(8);
    assert_eq!(scene.events_of_type("TaskClaimed").len(), 1, "who works is not taken for dead");
    let (scene, _, ran) = Waiting { scene, plan, running, gate }.let_go();
    ran.expect(0);
    assert_eq!(scene.read("side"), "1\n2\n");
}

#[test]
fn a_worker_killed_under_one_name_of_a_log_is_dead_under_the_other() {
    let scene = Scene::new();
    scene.run(&["init", "--no-hosts"]).expect(0);
    std::os::unix::fs::symlink(scene.path(".crewlog/log.db"), scene.path("link.db")).expect("a link can be made");
    for (name, ran_on, asked_of) in [("one", "link.db", ".crewlog/log.db"), ("two", ".crewlog/log.db", "link.db")] {
        let mut gate = Gate::new(&scene, name);
        scene.write("plan.md", format!("# {name}\n\nRun `{}; exec sleep 1000`\n", Gate::pass(name)));
        let running = scene.start(&["--store", ran_on, "run", "plan.md", "--yes"]);
        gate.wait();
        running.killed();
        gate.wait_until_free();
        let plans = scene.run(&["--store", asked_of, "ls", "-o", "json"]).expect(0).json();
        let is_it = |plan: &&Value| plan["title"] == name;
        let plan = plans["plans"].as_array().and_then(|plans| plans.iter().find(is_it)).expect("it is there");
        assert_eq!(plan["status"], "interrupted", "run on {ran_on}");
    }
}

#[test]
fn a_run_ends_in_bounded_time_while_another_process_holds_the_append_lock() {
    let Waiting { scene, plan, running, gate } = Waiting::at_with("", &["--timeout", "1s"]);
    let lock = File::options().write(true).open(scene.path(".crewlog/log.db-lock")).expect("the log has a lock");
    lock.lock().expect("it can be had");
    let began = Instant::now();
    running.finish().expect(8).says(&["the worker did not stop in time"]);
    let took = began.elapsed();
    assert!(took < BOUND, "{took:?}");
    gate.wait_until_free();
    drop(lock);
    assert_eq!(scene.show(&plan)["tasks"][0]["state"], "interrupted", "nobody could say how it ended");
}

#[test]
fn thirty_concurrent_additions_to_a_plan_all_succeed() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Which colour is it?\n");
    ran.expect(5);
    let adding =
        (0..30).map(|n| scene.start(&["task", "add", &format!("- Weed bed {n}"), "--plan", &plan])).collect::<Vec<_>>();
    for one in adding {
        one.finish().expect(0);
    }
    assert_eq!(statuses(&scene.show(&plan)).len(), 31);
}

#[test]
fn an_interrupted_reader_of_events_exits_with_130_and_closes_the_log() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("Run `echo ok`");
    for words in [&["events", "--follow"] as &[&str], &["events", &plan, "--follow"]] {
        for signal in [Signal::INT, Signal::TERM] {
            let mut following = scene.start(words);
            following.stdout.until("PlanningCompleted");
            following.signal(signal);
            assert_eq!(following.finish().expect(130).stderr, "");
            assert!(!scene.path(".crewlog/log.db-wal").exists(), "{words:?}");
        }
    }
}
