//! `db stats`, `db backup`, `db migrate`: their output and files, and that they change nothing.

use serde_json::Value;

use super::scene::Scene;

const PAGE: &str = include_str!("../../docs/json.md");

/// The keys of the JSON form under a heading of the page.
#[track_caller]
fn keys_of_form(heading: &str) -> Vec<String> {
    let (_, section) = PAGE.split_once(&format!("\n## {heading}\n")).expect("the page has the section");
    let (_, form) = section.split_once("\n```json\n").expect("it shows the form");
    let form: Value = serde_json::from_str(form.split_once("\n```").expect("it ends").0).expect("the form is JSON");
    keys(&form)
}

fn keys(value: &Value) -> Vec<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn a_backup_is_an_identical_log_in_one_file() {
    let scene = Scene::new();
    scene.plan("- Run `echo one`\n- Run `echo two`\n").1.expect(0);
    let made = scene.run(&["-o", "json", "db", "backup", "copy.db"]).expect(0).json();
    assert_eq!(keys(&made), keys_of_form("`db backup FILE`"));
    assert_eq!(made["head"], scene.events().len());

    // The one file contains the whole log.
    scene.run(&["init"]).expect(0);
    std::fs::create_dir(scene.path("elsewhere")).expect("a folder can be made");
    std::fs::copy(scene.path("copy.db"), scene.path("elsewhere/log.db")).expect("it can be copied");
    let exported = scene.run(&["export"]).expect(0).stdout;
    assert_eq!(scene.run(&["--store", "elsewhere/log.db", "export"]).expect(0).stdout, exported);
    let checked = scene.run(&["--store", "elsewhere/log.db", "db", "check"]).expect(0).stdout;
    assert!(checked.starts_with("ok:"), "{checked}");
}

#[test]
fn a_backup_overwrites_nothing_and_leaves_no_partial_file() {
    let scene = Scene::new();
    scene.plan("Run `true`").1.expect(0);
    scene.write("there.db", "precious");
    scene
        .run(&["db", "backup", "there.db"])
        .expect(1)
        .says(&["there.db cannot be made", "name a file that does not exist"]);
    assert_eq!(scene.read("there.db"), "precious");
    scene.run(&["db", "backup", "no/such/folder.db"]).expect(1).says(&["folder.db cannot be made"]);
    scene.run(&["--store", "absent.db", "db", "backup", "new.db"]).expect(1).says(&["there is no log at"]);
    assert!(!scene.path("new.db").exists());
}

#[test]
fn db_stats_count_the_contents_of_the_log() {
    let scene = Scene::new();
    scene.plan("- Run `true`\n- Run `true`\n").1.expect(0);
    let stats = scene.run(&["-o", "json", "db", "info"]).expect(0).json();
    assert_eq!(keys(&stats), keys_of_form("`db info`"));
    let events = scene.events();
    assert_eq!(stats["head"], events.len());
    for kind in stats["kinds"].as_array().expect("a list") {
        let is_it =
            |event: &&Value| (&event["stream_id"], &event["event_type"]) == (&kind["stream_id"], &kind["event_type"]);
        assert_eq!(kind["events"], events.iter().filter(is_it).count(), "{kind}");
    }
    let text = scene.run(&["db", "info"]).expect(0).stdout;
    assert!(text.contains("planner TasksPlanned"), "{text}");
    assert_eq!(scene.events().len(), events.len(), "nothing was appended");
}

#[test]
fn migrating_an_up_to_date_log_changes_nothing() {
    let scene = Scene::new();
    scene.plan("Run `true`").1.expect(0);
    let before = scene.run(&["export"]).expect(0).stdout;
    let migrated = scene.run(&["-o", "json", "db", "migrate"]).expect(0).json();
    assert_eq!(keys(&migrated), keys_of_form("`db migrate`"));
    assert_eq!(scene.run(&["export"]).expect(0).stdout, before);
    scene.run(&["--store", "absent.db", "db", "migrate"]).expect(1).says(&["there is no log at"]);
}

#[test]
fn the_password_of_a_server_is_never_printed() {
    let scene = Scene::new();
    let url = "postgres://crew:s3cret@127.0.0.1:1/log";
    for words in [&["ls"] as &[&str], &["init"], &["work"], &["db", "info"], &["run", "plan.md", "--yes"]] {
        scene.write("plan.md", "Run `true`");
        let ran = scene.run(&[&["--store", url], words].concat()).expect(1);
        assert!(!ran.stdout.contains("s3cret") && !ran.stderr.contains("s3cret"), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn every_command_leaves_the_log_in_one_file_even_if_it_fails() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Run `true`\n2. Which colour is it?\n");
    scene.write("failing.md", "Run `false`");
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    let cases: [(&[&str], i32, &str); 9] = [
        (&["ls"], 0, ""),
        (&["init"], 0, ""),
        (&["show", "nope"], 4, "in its id"),
        (&["answer", &format!("{plan}/q7"), "x"], 4, "has no question"),
        (&["answer", &format!("{plan}/q1"), "blue"], 0, ""),
        (&["run", "failing.md", "--yes"], 100, "1 failed"),
        (&["work", "--until-idle", "--yes"], 0, ""),
        (&["db", "check"], 0, ""),
        (&["import", "plan.md"], 1, "nothing was imported"),
    ];
    for (words, code, said) in cases {
        scene.run(words).expect(code).says(&[said]);
        assert!(!scene.path(".crewlog/log.db-wal").exists(), "after {words:?}");
    }
}
