//! `logs`: the output of a run, while it runs and after.

use std::fs;

use super::scene::{Gate, Running, Scene, named_pipe};
use super::server::on_server;
use crate::views::Api;
use crewlog_stage::cluster::Database;
use reqwest::Method;

/// The logs of a file and of a server.
fn scenes() -> Vec<(Scene, Option<Database>)> {
    let database = Database::new();
    vec![(Scene::new(), None), (on_server(&database), Some(database))]
}

fn logs(scene: &Scene, words: &[&str]) -> String {
    scene.run(&[&["logs"], words].concat()).expect(0).stdout.clone()
}

#[test]
fn an_output_is_seen_while_its_task_runs_and_after() {
    for (scene, _on) in scenes() {
        let mut gate = Gate::new(&scene, "gate");
        let (go, pass) = (named_pipe(&scene, "go"), Gate::pass("gate"));
        let command = format!("echo one; echo two >&2; printf thr; {pass}; read x < go; echo ee; echo four >&2");
        scene.write("plan.md", format!("1. Run:\n\n   ```sh\n   {command}\n   ```\n2. Run `true`\n"));
        let running = scene.start(&["run", "plan.md", "--yes", "-q"]);
        gate.wait();
        let plan = scene.run(&["ls", "-o", "json"]).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
        let task = format!("{plan}/1");
        let mut following = Running::start(&mut scene.crewlog(&["logs", &task, "-f"]));
        following.stdout.until("one\ntwo\n");
        assert!(logs(&scene, &[&task]).starts_with("one\ntwo\n"), "in the order of the program");
        let shown = scene.run(&["show", &task, "-o", "json"]).json()["task"]["last_output"].clone();
        assert!(["two", "thr"].map(Some).contains(&shown["line"].as_str()) && shown["at"].is_string(), "{shown}");
        let shown = scene.run(&["show", &task]).expect(0).stdout;
        assert!(shown.contains("last output: ") && shown.contains("line: t"), "{shown}");
        fs::write(go, "go\n").expect("it is read");
        gate.wait_until_free();
        running.finish().expect(0);
        let all = "one\ntwo\nthree\nfour\n";
        assert_eq!(following.finish().expect(0).stdout, "three\nfour\n", "the rest");
        assert_eq!((logs(&scene, &[&task]), logs(&scene, &[&task, "--follow"])), (all.to_owned(), all.to_owned()));
        let json = scene.run(&["logs", &task, "-o", "json"]).json();
        assert_eq!((json["output"].as_str(), json["n_bytes"].as_u64()), (Some(all), Some(all.len() as u64)));
        let ended = scene.events_of_type("TaskCompleted")[0]["run"]["output"].clone();
        assert_eq!(ended["n_bytes"].as_u64(), Some(all.len() as u64));
        assert!(ended["host"].is_string() && ended["sha256"].as_str().is_some_and(|hash| hash.len() == 64), "{ended}");
        let silent = scene.run(&["logs", &format!("{plan}/2")]).expect(4);
        silent.says(&["no output of attempt 1 of task 2", "printed nothing"]);
    }
}

#[test]
fn each_attempt_has_its_output() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Run `echo attempt $CREWLOG_ATTEMPT; test $CREWLOG_ATTEMPT = 2` (retry 1)\n");
    let plan = scene.run(&["run", "plan.md", "--yes", "-q"]).expect(0).stdout.trim().to_owned();
    let task = format!("{plan}/1");
    for (words, expected) in [(&[&*task] as &[&str], "attempt 2\n"), (&[&task, "--attempt", "1"], "attempt 1\n")] {
        assert_eq!(logs(&scene, words), expected);
    }
    for (words, code, says) in [
        (&[&*task, "--attempt", "3"] as &[&str], 4, "no output of attempt 3"),
        (&[&plan], 2, "PLAN/TASK"),
        (&[&format!("{plan}/9")], 4, "no task"),
        (&[&task, "-f", "-o", "json"], 1, "leave out one of them"),
    ] {
        scene.run(&[&["logs"], words].concat()).expect(code).says(&[says]);
    }
    let file = scene.events_of_type("TaskCompleted")[0]["run"]["output"].clone();
    fs::remove_dir_all(scene.path(".crewlog/runs")).expect("it is there");
    scene.run(&["logs", &task]).expect(4).says(&["it was removed, by hand or to make room"]);
    let here = file["host"].as_str().expect("a name");
    let exported =
        scene.run(&["export"]).expect(0).stdout.replace(&format!("\"host\":\"{here}\""), "\"host\":\"attic\"");
    scene.write("export.jsonl", exported);
    scene.run(&["import", "export.jsonl", "--store", "other.db"]).expect(0);
    scene.run(&["logs", &task, "--store", "other.db"]).expect(4).says(&["attic has it"]);
}

#[test]
fn an_output_is_kept_within_its_limits_and_never_with_a_secret() {
    let scene = Scene::new().with_env("DEPLOY_TOKEN", "hunter2-super-secret");
    scene.write(
        "crewlog.toml",
        "runs_bytes_max = 1000000\n[secrets]\nenv = [\"DEPLOY_TOKEN\"]\npatterns = [\"key-[a-z]{8}\"]\n",
    );
    let loud = "echo start; yes \"x $DEPLOY_TOKEN key-abcdefgh y\" | head -c 30000000; echo; echo end";
    scene.write("plan.md", format!("1. Run `{loud}`\n2. Run `printf '\\377\\000\\033[31mred'`\n"));
    let plan = scene.run(&["run", "plan.md", "--yes", "-q"]).expect(0).stdout.trim().to_owned();
    let text = logs(&scene, &[&format!("{plan}/1")]);
    assert!(text.starts_with("start\nx [redacted] [redacted] y\n") && text.ends_with("\nend\n"), "{}", &text[..90]);
    assert!(text.contains(" bytes dropped ...\n") && (16_000_000..17_000_000).contains(&text.len()), "{}", text.len());
    assert!(!text.contains("hunter2") && !text.contains("abcdefgh"));
    assert_eq!(logs(&scene, &[&format!("{plan}/2")]), "\u{fffd}\\u{0}\\u{1b}[31mred\n", "nothing for a terminal");
    // A file that has just changed is left alone.
    let file = fs::File::options().append(true).open(scene.path(format!(".crewlog/runs/{plan}/1-1-1.log")));
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(600);
    file.and_then(|file| file.set_modified(old)).expect("it is there");
    scene.run(&["run", "plan.md", "--yes", "-q"]).expect(0);
    scene.run(&["logs", &format!("{plan}/1")]).expect(4).says(&["removed, by hand or to make room (runs_bytes_max)"]);
}

#[test]
fn a_file_that_cannot_be_written_costs_the_output_and_not_the_result() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path(".crewlog")).expect("it can be made");
    scene.write(".crewlog/runs", "no folder");
    scene.write("plan.md", "1. Run `echo one`\n");
    let plan = scene.run(&["run", "plan.md", "--yes", "-q"]).expect(0).stdout.trim().to_owned();
    assert_eq!(scene.show(&plan)["tasks"][0]["result"], "one");
    scene.run(&["logs", &format!("{plan}/1")]).expect(4);
}

#[test]
fn the_output_of_an_agent_is_a_transcript() {
    let scene = Scene::new();
    let said = [
        r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m"}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I run it."},{"type":"tool_use","name":"Bash","input":{"command":"make"}}]}}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"built","usage":{"input_tokens":9,"output_tokens":2},"total_cost_usd":0.25}"#,
    ];
    scene.write("said", said.join("\n"));
    scene.write(
        "crewlog.toml",
        "[executors.claude]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; cat said; echo a warning >&2\"]\n",
    );
    scene.write("plan.md", "1. Build it\n");
    let plan = scene.run(&["run", "plan.md", "--yes", "-q"]).expect(0).stdout.trim().to_owned();
    let shown = logs(&scene, &[&format!("{plan}/1")]);
    let lines = ["session s-1", "I run it.", "> Bash make", "= success 9 tokens in, 2 out, cost 0.25"];
    assert_eq!(shown.lines().filter(|line| lines.contains(line)).collect::<Vec<_>>(), lines, "{shown}");
    assert!(shown.lines().any(|line| line == "a warning"), "{shown}");
    assert_eq!(scene.show(&plan)["tasks"][0]["result"], "built");
}

#[tokio::test]
async fn a_running_task_shows_its_last_line_and_a_silent_one_is_in_the_inbox() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    let (go, pass) = (named_pipe(&scene, "go"), Gate::pass("gate"));
    scene.write("crewlog.toml", "quiet = \"1ms\"\n");
    scene.write("plan.md", format!("1. Run `echo compiling it; {pass}; read x < go`\n"));
    let running = scene.start(&["run", "plan.md", "--yes", "-q"]);
    gate.wait();
    let plan = scene.run(&["ls", "-o", "json"]).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    let mut following = Running::start(&mut scene.crewlog(&["logs", &format!("{plan}/1"), "-f"]));
    following.stdout.until("compiling it\n");
    let items = scene.run(&["inbox", "-o", "json"]).json()["items"].clone();
    assert_eq!((items[0]["kind"].as_str(), items[0]["id"].as_str()), (Some("silent"), Some(&*format!("{plan}/1"))));
    assert!(items[0]["text"].as_str().is_some_and(|text| text.contains("shell has printed nothing for")), "{items}");
    assert!(items[0]["text"].as_str().is_some_and(|text| text.contains("compiling it")), "{items}");
    let listed = scene.run(&["inbox"]).expect(0).stdout;
    assert!(listed.contains("printed nothing") && listed.contains(&format!("crewlog cancel {plan}/1")), "{listed}");
    let api = Api::start(&scene);
    let needs = api.view("/api/needs").await;
    assert_eq!(needs["items"][0]["kind"], "silent", "{needs}");
    let shown = api.view(&format!("/api/plans/{plan}")).await;
    assert_eq!(shown["tasks"][0]["last_output"]["line"], "compiling it", "{shown}");
    let page = api.bare(Method::GET, &format!("/plans/{plan}?task=1")).header("cookie", api.cookie().await);
    let page = page.send().await.expect("it answers").text().await.expect("it is text");
    assert!(page.contains(">Output<") && page.contains("prints nothing"), "{page}");
    scene.write("crewlog.toml", "");
    let items = scene.run(&["inbox", "-o", "json"]).json()["items"].clone();
    assert_eq!(items, serde_json::json!([]), "ten minutes have not passed");
    fs::write(go, "go\n").expect("it is read");
    running.finish().expect(0);
    following.finish().expect(0);
    assert_eq!(scene.run(&["show", &format!("{plan}/1"), "-o", "json"]).json()["task"].get("last_output"), None);
}

#[test]
fn the_output_of_a_run_whose_worker_died_is_kept_before_that_of_the_next() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    let work = format!("test $CREWLOG_EPOCH != 1 || {{ {}; sleep 1000; }}", Gate::pass("gate"));
    scene.write("plan.md", format!("1. Run `echo run $CREWLOG_EPOCH; {work}`\n"));
    let mut running = scene.start(&["run", "plan.md", "--yes"]);
    let plan = running.stdout.line().trim().to_owned();
    gate.wait();
    let task = format!("{plan}/1");
    let mut following = Running::start(&mut scene.crewlog(&["logs", &task, "-f"]));
    following.stdout.until("run 1\n");
    running.killed();
    following.finish().expect(0).says(&["its worker is gone", &format!("crewlog resume {plan}")]);
    scene.run(&["resume", &plan, "-q"]).expect(0);
    let cut = "\n... the run was cut short; the next one:\n";
    assert_eq!(logs(&scene, &[&task]), format!("run 1\n{cut}run 2\n"));
    assert_eq!(logs(&scene, &[&task, "-f"]), "run 2\n");
}
