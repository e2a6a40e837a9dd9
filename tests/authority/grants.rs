//! Grants: a person lets tasks run that are not known yet.

use crewlog_stage::cluster::Database;
use serde_json::{Value, json};

use crate::cli::scene::{Ran, Running, Scene};
use crate::cli::server::on_server;

fn by_agent(scene: &Scene, words: &[&str]) -> Ran {
    Running::start(scene.crewlog(words).env("AGENT_ID", "ann")).finish()
}

fn adds(scene: &Scene, plan: &str, task: &str) {
    by_agent(scene, &["task", "add", task, "--plan", plan, "--yes"]).expect(0);
}

fn granted(scene: &Scene, words: &[&str]) -> String {
    let said = scene.run(&[&["agree", "-o", "json"], words].concat()).expect(0).json();
    said["grant"].as_str().unwrap().to_owned()
}

/// The agreements that rest on a grant.
fn resting(scene: &Scene, grant: &str) -> usize {
    let of = |event: &&Value| event["grant"] == grant && event["how"] == "grant";
    scene.events_of_type("Agreed").iter().filter(of).count()
}

fn waiting(scene: &Scene) -> Vec<String> {
    let items = scene.run(&["inbox", "-o", "json"]).json()["items"].take();
    let items = items.as_array().unwrap().iter().filter(|item| item["kind"] == "consent");
    items.map(|item| item["text"].as_str().unwrap().to_owned()).collect()
}

fn works(scene: &Scene) {
    let _any = scene.run(&["work", "--until-idle"]);
}

#[test]
fn a_command_of_an_agent_runs_if_its_words_are_granted_in_this_repository() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "Which colour?", "--new", "--plan", "side", "--yes"]).expect(0);
    let grant = granted(&scene, &["--always", "touch *"]);
    for task in ["Run `touch one two`", "Run `touch three; touch four`", "Run `touched five`"] {
        adds(&scene, "side", task);
    }
    works(&scene);
    let made = |name: &str| scene.path(name).exists();
    assert_eq!((made("one"), made("two"), made("three"), made("four")), (true, true, false, false));
    assert_eq!(resting(&scene, &grant), 1);
    assert_eq!(waiting(&scene), ["touch three; touch four", "touched five"]);
    // Another repository on the same log has its own grants.
    let elsewhere = scene.around().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    scene.git(&["init", "-q", "../elsewhere"]);
    let log = scene.path(".crewlog/log.db").to_string_lossy().into_owned();
    let words = ["--store", &log, "task", "add", "Run `touch six`", "--new", "--plan", "other", "--yes"];
    Running::start(scene.crewlog_in(&elsewhere, &words).env("AGENT_ID", "ann")).finish().expect(0);
    works(&scene);
    assert!(!elsewhere.join("six").exists());
    scene.run(&["agree", "--revoke", &grant]).expect(0);
    adds(&scene, "side", "Run `touch seven`");
    works(&scene);
    assert!(!made("seven"));
    scene.run(&["agree", "--revoke", &grant]).expect(4).says(&["there is no open grant"]);
}

#[test]
fn texts_for_an_agent_run_up_to_the_limits_of_their_grant() {
    let scene = Scene::with_repository();
    let config =
        "[executors.writer]\ncommand = 'cat > /dev/null; echo ran >> told'\n[executors.other]\ncommand = 'true'\n";
    scene.write("named.toml", config);
    let scene = {
        let named = scene.path("named.toml").to_string_lossy().into_owned();
        scene.with_env("CREWLOG_CONFIG", named)
    };
    for plan in ["side", "apart"] {
        scene.run(&["task", "add", "Which colour?", "--new", "--plan", plan, "--yes"]).expect(0);
    }
    let grant = granted(&scene, &["--tasks", "@writer", "--plan", "side", "--max", "2", "--for", "8h"]);
    adds(&scene, "apart", "Write about red @writer");
    for task in
        ["Write about blue @other", "Write about green @writer", "Write about grey @writer", "Write a poem @writer"]
    {
        adds(&scene, "side", task);
    }
    works(&scene);
    assert_eq!((scene.read("told"), resting(&scene, &grant)), ("ran\nran\n".to_owned(), 2));
    assert_eq!(waiting(&scene).len(), 3, "{:?}", waiting(&scene));
    // It is used up.
    assert_eq!(scene.run(&["agree", "--list", "-o", "json"]).expect(0).json()["grants"], json!([]));
}

#[test]
fn only_a_person_grants_and_an_agent_may_look() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "Which colour?", "--yes"]).expect(0);
    let grant = granted(&scene, &["--always", "cargo test *", "--max", "3"]);
    for words in [&["--always", "ls *"][..], &["--tasks", "@claude"], &["--revoke", &grant]] {
        by_agent(&scene, &[&["agree"], words].concat()).expect(11).says(&["an agent may not agree"]);
    }
    let listed = by_agent(&scene, &["agree", "--list"]).expect(0).stdout.clone();
    assert_eq!(
        listed,
        format!("{grant}  cargo test * runs in {}, at most 3 tasks; so far 0\n", scene.folder().display())
    );
    for (words, says) in [
        (&["--always", "* x"][..], "its first word is not *"),
        (&["--always", "sh -c 'x'"], "letters, digits"),
        (&["--tasks", "@nobody"], "no executor is called \"nobody\""),
        (&["--tasks", "@shell"], "--always"),
        (&["--max", "3"], "limits of a grant"),
        (&["--for", "3h"], "limits of a grant"),
    ] {
        scene.run(&[&["agree"], words].concat()).expect(1).says(&[says]);
    }
}

#[test]
fn workers_together_use_a_grant_no_more_often_than_it_says() {
    let database = Database::new();
    for scene in [Scene::with_repository(), on_server(&database)] {
        scene.run(&["init", "--no-hosts"]).expect(0);
        scene.run(&["task", "add", "Which colour?", "--new", "--plan", "side", "--yes"]).expect(0);
        let grant = granted(&scene, &["--always", "touch *", "--max", "3"]);
        for n in 0..8 {
            adds(&scene, "side", &format!("Run `touch made-{n}`"));
        }
        let workers: Vec<_> = (0..3).map(|_| scene.start(&["work", "--until-idle"])).collect();
        workers.into_iter().for_each(|worker| drop(worker.finish()));
        let n_made = (0..8).filter(|n| scene.path(format!("made-{n}")).exists()).count();
        // Three items, and one that counts two more tasks.
        assert_eq!((n_made, resting(&scene, &grant), waiting(&scene).len()), (3, 3, 3 + 1));
    }
}

#[test]
fn a_command_of_a_tool_that_came_with_a_repository_waits() {
    let scene = Scene::with_repository();
    scene.write(
        "crewlog.toml",
        "[[tools]]\nname = \"a_x\"\ndescription = \"x\"\nkind = \"Retrieval\"\ncommand = \"echo evil >> ran\"\n\
         [agents.perception]\ntools = [\"a_x\"]\n",
    );
    scene.write(
        "plan.json",
        r#"{ "steps": [{ "id": "ask", "description": "Ask", "request": { "target_agent": "perception",
            "request": { "locate": { "entity": "struct User" } }, "timeout_ms": 60000 } }],
            "dependencies": {}, "resources": { "agent_types": ["perception"] } }"#,
    );
    let ran = scene.run(&["plan", "propose", "plan.json", "--agent", "tactical", "--run", "--yes"]);
    assert_eq!(scene.read_if_any("ran"), None, "{}", ran.stderr);
    assert!(ran.stderr.contains("runs once you agree: echo evil >> ran"), "{}", ran.stderr);
    scene.run(&["agree", "--yes"]).expect(0);
    let _any = scene.run(&["work", "--until-idle"]);
    assert_eq!(scene.read("ran"), "evil struct User\n");
}
