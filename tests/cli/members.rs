//! Runs of tasks as agents of the crew: their leases, the waits for these, and how they leave.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::scene::{Gate, Running, Scene, named_pipe};
use super::server::on_server;
use crewlog_stage::cluster::Database;

/// A repository on a file and on a server.
fn scenes() -> Vec<(Scene, Option<Database>)> {
    let database = Database::new();
    let on = on_server(&database);
    on.git(&["init", "-q", "."]);
    vec![(Scene::with_repository(), None), (on, Some(database))]
}

fn leases(scene: &Scene) -> Vec<Value> {
    scene.run(&["leases", "-o", "json"]).json()["leases"].as_array().expect("a list").clone()
}

/// A plan whose only step has a file, and stops until it is let go.
fn holding(scene: &Scene) -> (Running, Gate, String) {
    let mut gate = Gate::new(scene, "gate");
    named_pipe(scene, "go");
    let command = format!("{}; read x < go; echo one >> notes.txt", Gate::pass("gate"));
    scene.write("one.md", format!("# One\n1. Run `{command}` (files: notes.txt)\n"));
    let running = scene.start(&["run", "one.md", "--yes", "-q"]);
    gate.wait();
    let plan = scene.run(&["ls", "-o", "json"]).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    (running, gate, plan)
}

#[test]
fn a_step_leases_its_files_and_another_one_waits_for_them() {
    for (scene, _on) in scenes() {
        let (first, _gate, one) = holding(&scene);
        let held = leases(&scene);
        let step = format!("{one}/1");
        assert_eq!((&held[0]["agent"], &held[0]["task"]), (&json!(step), &json!(step)), "{held:?}");
        assert_eq!((held.len(), &held[0]["path"]), (1, &json!("notes.txt")));

        scene.write("two.md", "# Two\n1. Run `echo two >> notes.txt` (files: notes.txt)\n");
        let mut second = scene.start(&["run", "two.md", "--yes"]);
        let two = second.stdout.line().trim().to_owned();
        second.stderr.until(&format!("{two}/1 waits for its files: notes.txt is held by {step}"));
        let shown = scene.show(&two);
        let waiting = (&shown["tasks"][0]["state"], &shown["tasks"][0]["waits_for"]);
        assert_eq!(waiting, (&json!("waiting"), &json!(format!("notes.txt is held by {step}"))), "{shown:#}");
        let told = scene.run(&["show", &two]).expect(0).stdout;
        assert!(told.contains(&format!("waits for its files: notes.txt is held by {step}")), "{told}");

        fs::write(scene.path("go"), "go\n").expect("it is read");
        first.finish().expect(0);
        second.finish().expect(0);
        assert_eq!(scene.read("notes.txt"), "one\ntwo\n");
        assert_eq!(leases(&scene), Vec::<Value>::new());
        let conflicts = scene.run(&["leases", "--conflicts", "--all", "-o", "json"]).json();
        assert_eq!(conflicts["conflicts"], json!([]), "leases prevent it");
    }
}

#[test]
fn the_leases_of_a_worker_that_is_killed_end_with_its_claim() {
    for (scene, _on) in scenes() {
        let (killed, gate, one) = holding(&scene);
        killed.signal(Signal::KILL);
        let _ = killed.finish();
        gate.wait_until_free();
        fs::remove_file(scene.path("go")).expect("it is there");
        scene.write("go", "go\n");
        fs::remove_file(scene.path("gate")).expect("it is there");
        scene.run(&["resume", &one, "--yes"]).expect(0);
        assert_eq!(scene.read("notes.txt"), "one\n");
        assert_eq!(leases(&scene), Vec::<Value>::new());
    }
}

#[test]
fn a_run_of_an_agent_is_in_the_crew_and_leaves_with_how_it_ended() {
    for (scene, _on) in scenes() {
        scene.write(
            "paint.sh",
            "read -r x\necho \"$AGENT_ID\"\ntest \"$CREWLOG_TASK\" != 2 || { echo no paint; exit 3; }\n",
        );
        scene.write("crewlog.toml", "[executors.painter]\ncommand = ['sh', 'paint.sh']\n");
        scene.write("plan.md", "# Doors\n1. Paint the door\n2. Paint the wall\n");
        let ran = scene.run(&["run", "plan.md", "--yes", "-q"]).expect(100);
        let plan = ran.stdout.trim();
        assert_eq!(scene.show(plan)["tasks"][0]["result"], format!("{plan}/1"), "its program knows its name");
        let joined = scene.events_of_type("AgentJoined");
        let names: Vec<_> =
            joined.iter().map(|event| (event["agent"].clone(), event["profile"]["program"].clone())).collect();
        assert_eq!(names, [1, 2].map(|n| (json!(format!("{plan}/{n}")), json!("painter"))));
        let left = scene.events_of_type("AgentLeft");
        let outcomes: Vec<_> = left.iter().map(|event| event["outcome"].clone()).collect();
        assert_eq!(outcomes, ["success", "failure"]);
        assert!(left[1]["note"].as_str().is_some_and(|note| note.contains("exit code 3")), "{left:?}");
    }
}

/// A hook of Claude Code before an edit.
fn edit(scene: &Scene, session: &str, file: &str) -> String {
    let file = scene.folder().join(file);
    let call = json!({ "tool_name": "Edit", "tool_input": { "file_path": file } });
    let base = json!({ "session_id": session, "cwd": scene.folder(), "hook_event_name": "PreToolUse" });
    let all = base.as_object().into_iter().chain(call.as_object()).flatten();
    Value::Object(all.map(|(key, value)| (key.clone(), value.clone())).collect()).to_string()
}

#[test]
fn the_agent_of_a_task_edits_under_its_lease_and_nobody_else_does() {
    for (scene, _on) in scenes() {
        let mut gate = Gate::new(&scene, "gate");
        let go = named_pipe(&scene, "go");
        scene.write("own.json", edit(&scene, "of-the-run", "door.txt"));
        let program = env!("CARGO_BIN_EXE_crewlog");
        let script =
            format!("read -r x\n'{program}' hook < own.json\n{}; read y < go; echo painted\n", Gate::pass("gate"));
        scene.write("paint.sh", script);
        scene.write("crewlog.toml", "[executors.painter]\ncommand = ['sh', 'paint.sh']\n");
        scene.write("plan.md", "# Doors\n1. Paint the door (files: door.txt)\n");
        let running = scene.start(&["run", "plan.md", "--yes", "-q"]);
        gate.wait();
        scene.write("other.json", edit(&scene, "of-another", "door.txt"));
        let mut other = scene.crewlog(&["hook"]);
        other.stdin(fs::File::open(scene.path("other.json")).expect("it is there"));
        let refused = Running::start(&mut other).finish().stdout;
        assert!(refused.contains("deny") && refused.contains("/1"), "{refused}");
        fs::write(go, "go\n").expect("it is read");
        let plan = running.finish().expect(0).stdout.trim().to_owned();
        assert_eq!(scene.show(&plan)["tasks"][0]["result"], "painted", "its own edit is allowed without a word");
    }
}

#[test]
fn a_plan_that_a_step_runs_may_change_the_files_of_that_step() {
    for (scene, _on) in scenes() {
        scene.write("inner.md", "# Inner\n1. Run `echo inner >> notes.txt` (files: notes.txt)\n");
        let program = env!("CARGO_BIN_EXE_crewlog");
        scene.write("outer.sh", format!("'{program}' run inner.md --yes -q && echo outer >> notes.txt\n"));
        scene.write("outer.md", "# Outer\n1. Run `sh outer.sh` (files: notes.txt)\n");
        scene.run(&["run", "outer.md", "--yes", "-q"]).expect(0);
        assert_eq!(scene.read("notes.txt"), "inner\nouter\n");
        assert_eq!(leases(&scene), Vec::<Value>::new());
    }
}

#[test]
fn a_step_with_too_many_files_fails_and_says_so() {
    let scene = Scene::with_repository();
    let files: Vec<_> = (0..201).map(|n| format!("f{n}.txt")).collect();
    scene.write("plan.md", format!("1. Run `true` (files: {})\n", files.join(", ")));
    let plan = scene.run(&["run", "plan.md", "--yes", "-q"]).expect(100).stdout.trim().to_owned();
    let error = scene.show(&plan)["tasks"][0]["error"].as_str().expect("it failed").to_owned();
    assert!(error.contains("declares 201 files, and 200 can be leased"), "{error}");
}
