//! The program with a log on a PostgreSQL server: every command works as on a file.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use super::scene::{Running, Scene, named_pipe};
use crewlog_stage::cluster::{Cluster, Database, Relay};

/// A scene whose log is on the server.
pub fn on_server(database: &Database) -> Scene {
    let scene = Scene::new().with_env("CREWLOG_STORE", database.url());
    let state = scene.path("state").to_string_lossy().into_owned();
    scene.with_env("XDG_STATE_HOME", state)
}

const TEXT: &str =
    "1. Run `echo one > one`\n2. Run `cat one` (retry 1)\n3. Which colour is it?\n4. Run `echo $CREWLOG_ANSWER`\n";

/// A plan that asks, is answered and continues.
fn carried_out(scene: &Scene) -> String {
    scene.write("plan.md", TEXT);
    let ran = scene.run(&["run", "plan.md", "--yes"]).expect(5);
    let plan = ran.stdout.lines().next().expect("it tells the plan").to_owned();
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
    plan
}

/// The plan of a tactical agent: a command, then a question to another agent.
const AGENTS_PLAN: &str = r#"{
  "steps": [
    { "id": "run", "description": "Run it", "tool": "run_command", "command": "echo ran", "retry": 1 },
    { "id": "ask", "description": "Ask", "request": {
      "target_agent": "perception", "request": { "locate": { "entity": "struct User" } }, "timeout_ms": 60000 } }
  ],
  "dependencies": { "ask": ["run"] },
  "resources": { "agent_types": ["perception"] }
}"#;

#[test]
fn a_proposed_plan_runs_and_asks_on_a_server_as_in_a_file() {
    let database = Database::new();
    let finder = "[executors.finder]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo in src/user.rs\"]\n";
    let carried_out = |scene: &Scene| {
        scene.write("crewlog.toml", finder);
        scene.write("plan.json", AGENTS_PLAN);
        let ran = scene.run(&["plan", "propose", "plan.json", "--agent", "tactical", "--run", "--yes"]).expect(0);
        let plan = ran.stdout.lines().next().expect("it tells the plan").to_owned();
        let tasks = scene.show(&plan)["tasks"].clone();
        assert!(tasks[1]["result"].as_str().is_some_and(|told| told.contains("in src/user.rs")), "{tasks}");
        let exported = scene.run(&["export"]).expect(0).stdout.clone();
        history(&exported).into_iter().map(|(_, event_type)| event_type).collect::<Vec<_>>()
    };
    assert_eq!(carried_out(&on_server(&database)), carried_out(&Scene::new()));
}

/// Stream, type and data of the events of a log, without values that differ each time.
fn history(exported: &str) -> Vec<(String, String)> {
    let events = exported.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    let text = |event: &Value, key: &str| event[key].as_str().expect("text").to_owned();
    let of_plan = events.filter(|event| event["stream_id"] == "planner");
    of_plan.map(|event| (text(&event, "stream_id"), text(&event, "event_type"))).collect()
}

#[test]
fn a_plan_on_a_server_runs_like_one_in_a_file() {
    let database = Database::new();
    let (scene, file) = (on_server(&database), Scene::new());
    let plan = carried_out(&scene);
    carried_out(&file);
    let (exported, of_file) = (scene.run(&["export"]).expect(0).stdout, file.run(&["export"]).expect(0).stdout);
    assert_eq!(history(&exported), history(&of_file));
    assert_eq!(scene.show(&plan)["tasks"][3]["result"], "blue");
    for words in [
        &["ls"] as &[&str],
        &["show", &plan, "--at", "5"],
        &["events", &plan],
        &["replay", &plan],
        &["diff", &format!("{plan}@3"), &plan],
        &["stats"],
        &["leases", "--conflicts", "--all"],
        &["agents", "--configured"],
        &["db", "check"],
        &["db", "migrate"],
        &["db", "info"],
        &["groups", "ls"],
    ] {
        scene.run(words).expect(0);
    }
    assert!(!scene.path(".crewlog/log.db").exists(), "nothing of the log is in the folder");
}

#[test]
fn an_export_has_the_same_bytes_from_a_server_and_from_a_file() {
    let (from, to) = (Database::new(), Database::new());
    let scene = on_server(&from);
    carried_out(&scene);
    let exported = scene.run(&["export"]).expect(0).stdout;
    scene.write("log.jsonl", &exported);
    scene.run(&["--store", "copy.db", "import", "log.jsonl"]).expect(0);
    assert_eq!(scene.run(&["--store", "copy.db", "export"]).expect(0).stdout, exported, "in a file");
    scene.run(&["--store", &to.url(), "import", "log.jsonl"]).expect(0);
    scene.run(&["--store", &to.url(), "import", "log.jsonl"]).expect(0);
    assert_eq!(scene.run(&["--store", &to.url(), "export"]).expect(0).stdout, exported, "on another server");
    scene.run(&["db", "backup", "backup.db"]).expect(0);
    assert_eq!(scene.run(&["--store", "backup.db", "export"]).expect(0).stdout, exported, "in a backup");
    // A diverged copy is refused.
    scene.run(&["--store", &to.url(), "run", "plan.md", "--yes", "--detach"]).expect(0);
    scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0);
    let forked = scene.run(&["export"]).expect(0).stdout;
    scene.write("forked.jsonl", forked);
    scene.run(&["--store", &to.url(), "import", "forked.jsonl"]).expect(9).says(&["differ at position"]);
}

#[test]
fn workers_share_the_tasks_of_a_log_on_a_server() {
    let database = Database::new();
    let scene = on_server(&database);
    let steps = (0..12).map(|n| format!("- [P] Run `echo {n} >> ran`\n")).collect::<String>();
    scene.write("plan.md", steps);
    scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0);
    let workers: Vec<_> = (0..3).map(|_| scene.start(&["work", "--until-idle"])).collect();
    for worker in workers {
        worker.finish().expect(0);
    }
    let mut ran: Vec<u32> = scene.read("ran").lines().map(|line| line.parse().expect("a number")).collect();
    ran.sort_unstable();
    assert_eq!(ran, (0..12).collect::<Vec<_>>(), "each once");
}

#[test]
fn a_log_behind_a_pooler_works_once_its_schema_exists() {
    let database = Database::new();
    let scene = on_server(&database);
    scene.run(&["init"]).expect(0);
    let pooled = database.pooled_url();
    scene.write("plan.md", TEXT);
    let ran = scene.run(&["--store", &pooled, "run", "plan.md", "--yes"]).expect(5);
    let plan = ran.stdout.lines().next().expect("it tells the plan").to_owned();
    scene.run(&["--store", &pooled, "answer", &format!("{plan}/q1"), "blue"]).expect(0);
    scene.run(&["--store", &pooled, "resume", &plan]).expect(0);
    assert_eq!(scene.show(&plan)["tasks"][3]["result"], "blue", "the same log, seen directly");
}

#[test]
fn a_missing_log_on_a_server_is_reported_and_created_by_init() {
    let database = Database::new();
    let scene = on_server(&database);
    scene.run(&["ls"]).expect(1).says(&["there is no log", "hint: `crewlog init` makes one"]);
    let made = scene.run(&["-o", "json", "init"]).expect(0).json();
    assert_eq!(made["is_new"], true);
    assert_eq!(scene.run(&["-o", "json", "init"]).expect(0).json()["is_new"], false);
    scene.run(&["ls"]).expect(0);
    assert!(!Path::new(&database.url()).exists());
}

#[test]
fn an_ambiguous_or_incomplete_url_is_refused_with_the_reason() {
    let scene = Scene::new();
    for (url, reason) in [
        ("postgres://ada@127.0.0.1:1/log?schema=a&schema=b", "schema is given twice"),
        ("postgres://ada@127.0.0.1:1/log?pooler=none&schema=a&pooler=transaction", "pooler is given twice"),
        ("postgres://ada@127.0.0.1:1/log?sslmode=require&sslmode=disable", "sslmode is given twice"),
        ("postgres://127.0.0.1:1/log", "names no user: write postgres://USER@HOST/DATABASE, or set PGUSER"),
        ("postgres:///log", "names no user"),
    ] {
        let mut command = scene.crewlog(&["--store", url, "ls"]);
        let ran = Running::start(command.env_remove("PGUSER")).finish().expect(1);
        ran.says(&["names no log that can be opened", reason]);
    }
    for (url, user) in [("postgres://127.0.0.1:1/log", Some("ada")), ("postgres://127.0.0.1:1/log?user=ada", None)] {
        let mut command = scene.crewlog(&["--store", url, "ls"]);
        command.env_remove("PGUSER").envs(user.map(|user| ("PGUSER", user)));
        Running::start(&mut command).finish().expect(1).says(&["cannot be reached"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_one_line_when_it_begins_and_one_when_it_ends() {
    for process in ["work", "serve --port 0", "run wait.md --yes"] {
        let cluster = Cluster::start();
        let relay = Relay::to(&cluster).await;
        let scene = Scene::new().with_env("CREWLOG_STORE", relay.url());
        scene.write("wait.md", "1. Run `read line < go`\n2. Run `true`\n");
        named_pipe(&scene, "go");
        scene.run(&["run", "wait.md", "--yes", "--detach"]).expect(0);
        let mut followed = scene.start(&["events", "--follow", "--type", "TaskClaimed"]);
        let mut running = scene.start(&process.split(' ').collect::<Vec<_>>());
        if process == "serve --port 0" {
            running.stdout.until("http");
        } else {
            followed.stdout.until("TaskClaimed");
        }
        for n in 1..=2 {
            relay.switch(None);
            running.stderr.until_it(|said| said.matches("the log cannot be used").count() == n);
            relay.switch(Some(&cluster));
            running.stderr.until_it(|said| said.matches("the log can be used again").count() == n);
        }
        running.signal(Signal::TERM);
        let ended = running.finish();
        let said = ended.stderr.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).count();
        assert_eq!(said, 4, "{process}: {}", ended.stderr);
    }
}
