//! Sealed plans on the command line: with the operator's key, without it, and after the plan's own key is destroyed.

use std::os::unix::fs::PermissionsExt;

use super::scene::{Scene, named_pipe};

/// Occurs only in texts of the plan.
const MARK: &str = "xyzzy";

/// Texts of every kind, and a question in the middle.
const TEXT: &str = "\
# Find xyzzy

1. Run `echo xyzzy`
2. Which xyzzy is it?
3. Run `echo xyzzy >&2; exit 3` (after 1, 2)
";

/// A scene with the operator's keys `a.key` and `b.key`.
fn scene() -> Scene {
    let scene = Scene::new();
    for name in ["a.key", "b.key"] {
        let made = scene.run(&["keys", "new", name]).expect(0);
        assert!(made.stdout.starts_with(&format!("made {name} (operator key ")), "{}", made.stdout);
    }
    scene
}

fn with<'a>(key: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&["--key-file", key], words].concat()
}

/// Runs the plan to its question, answers it, and continues the plan in another process to its end.
fn sealed_plan(scene: &Scene) -> String {
    scene.write("plan.md", TEXT);
    let plan = scene.run(&with("a.key", &["run", "plan.md", "--yes"])).expect(5).stdout.trim().to_owned();
    scene.run(&with("a.key", &["answer", &format!("{plan}/q1"), "the xyzzy of old"])).expect(0);
    scene.run(&with("a.key", &["resume", &plan])).expect(100);
    plan
}

/// Every file below a folder that contains the mark.
fn marked_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder can be listed");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let marked = |path: std::path::PathBuf| match path.is_dir() {
        true => marked_files(&path),
        false => {
            let bytes = std::fs::read(&path).expect("a file can be read");
            let holds = bytes.windows(MARK.len()).any(|bytes| bytes == MARK.as_bytes());
            if holds { vec![path] } else { Vec::new() }
        }
    };
    paths.flat_map(marked).collect()
}

/// It is in `runs` next to the log, which has no clear text: see the scene below.
#[test]
fn the_output_of_a_sealed_plan_is_read_with_its_key_alone() {
    let scene = scene();
    let plan = sealed_plan(&scene);
    let (first, third) = (format!("{plan}/1"), format!("{plan}/3"));
    let logs = |task: &str| scene.run(&with("a.key", &["logs", task])).expect(0).stdout;
    assert_eq!((logs(&first), logs(&third)), ("xyzzy\n".to_owned(), "xyzzy\n".to_owned()));
    assert_eq!(scene.run(&with("a.key", &["logs", &first, "--follow"])).expect(0).stdout, "xyzzy\n");
    scene
        .run(&["logs", &first])
        .expect(1)
        .says(&["it is encrypted, and its key is destroyed or not here", "--key-file"]);
    assert!(!scene.run(&["show", &third]).expect(0).stdout.contains(MARK));
    scene.run(&with("a.key", &["keys", "destroy", &plan, "--yes"])).expect(0);
    scene.run(&with("a.key", &["logs", &first])).expect(1).says(&["it is encrypted, and its key is destroyed"]);
}

#[test]
fn a_sealed_plan_runs_and_its_texts_are_in_neither_log_export_nor_backup() {
    let scene = scene();
    let plan = sealed_plan(&scene);
    assert!(plan.starts_with("plan-"), "its id tells nothing of its text: {plan}");
    let shown = scene.run(&with("a.key", &["show", &plan])).expect(0).stdout;
    let replayed = scene.run(&with("a.key", &["replay", &plan])).expect(0).stdout;
    for text in ["Find xyzzy", "Which xyzzy is it?", "the xyzzy of old", "echo xyzzy >&2; exit 3", "exit code 3"] {
        assert!(shown.contains(text) && replayed.contains(text), "{text:?} is not shown:\n{shown}\n{replayed}");
    }

    assert_eq!(marked_files(&scene.path(".crewlog")), Vec::<std::path::PathBuf>::new());
    scene.run(&with("a.key", &["export", "--to", "export.jsonl"])).expect(0);
    scene.run(&with("a.key", &["db", "backup", "backup.db"])).expect(0);
    std::fs::remove_file(scene.path("plan.md")).expect("it is there");
    assert_eq!(marked_files(scene.folder()), Vec::<std::path::PathBuf>::new());
    for key in [None, Some("a.key")] {
        let words = key.map_or(vec!["db", "check"], |key| with(key, &["db", "check"]));
        scene.run(&words).expect(0);
    }
    // An imported copy opens with the same keys, which must be copied to it.
    scene.run(&["--store", "copy.db", "import", "export.jsonl"]).expect(0);
    let show = ["--store", "copy.db", "--key-file", "a.key", "show", plan.as_str()];
    let closed = scene.run(&show).expect(0);
    assert!(!closed.stdout.contains(MARK));
    closed.says(&["CREWLOG_KEYS"]);
    let opened = scene.run(&[&["--keys", ".crewlog/log.db-keys"], &show[..]].concat()).expect(0);
    assert!(opened.stdout.contains(MARK), "{}", opened.stdout);
}

#[test]
fn without_the_key_everything_but_the_texts_is_shown_with_one_notice() {
    let scene = scene();
    let plan = sealed_plan(&scene);
    let open = scene.run(&with("a.key", &["show", &plan, "-o", "json"])).expect(0).json();
    let closed = scene.run(&["show", &plan, "-o", "json"]).expect(0);
    assert_eq!(closed.stderr.matches("no operator key is given").count(), 1, "{}", closed.stderr);
    let closed = closed.json();
    assert_eq!((&closed["status"], &closed["tasks"][0]["result"]), (&open["status"], &"[sealed]".into()));
    assert_eq!(scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["title"], "[sealed]");
    let column = |plan: &serde_json::Value, name: &str| {
        let tasks = plan["tasks"].as_array().expect("tasks").clone();
        tasks.into_iter().map(|task| task[name].clone()).collect::<Vec<_>>()
    };
    for name in ["id", "kind", "status", "attempts", "depends_on", "executor", "ended_at"] {
        assert_eq!(column(&closed, name), column(&open, name), "{name}");
    }
    for words in [&["events"][..], &["events", "-o", "json"], &["replay", &plan], &["ls"], &["diff", &plan, &plan]] {
        let ran = scene.run(words);
        assert!(!ran.stdout.contains(MARK), "{words:?}: {}", ran.stdout);
        assert!(ran.stderr.matches("no operator key is given").count() <= 1, "{words:?}: {}", ran.stderr);
    }
    let figures = |words: &[&str]| scene.run(words).expect(0).stdout;
    assert_eq!(figures(&["stats"]), figures(&with("a.key", &["stats"])));

    for words in [&["resume", &plan][..], &["retry", &plan], &["pause", &plan, "--reason", "why"]] {
        let refused = scene.run(words);
        assert!(matches!(refused.status.code(), Some(1 | 9)), "{words:?}: {refused:?}");
        if words[0] == "resume" {
            refused.says(&["--key-file"]);
        }
    }
    let quiet = scene.run(&["show", &plan, "-q"]).expect(0);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn a_worker_without_the_key_leaves_sealed_tasks_to_others() {
    let scene = scene();
    scene.write("plan.md", "Run `echo ran >> side`\n");
    let plan = scene.run(&with("a.key", &["run", "plan.md", "--yes", "--detach"])).expect(0).stdout;
    let (open, _) = scene.plan("Run `echo open >> side`\n");
    assert!(!open.is_empty());
    scene.run(&["work", "--until-idle"]).expect(5).says(&["skipped: the task's text is sealed"]);
    assert_eq!(scene.read("side"), "open\n", "nothing was done that nobody could read");
    scene.run(&with("a.key", &["work", "--until-idle"])).expect(0);
    assert_eq!(scene.read("side"), "open\nran\n", "{plan}");
}

#[test]
fn another_operators_key_is_refused_by_name_and_shows_no_text() {
    let scene = scene();
    let plan = sealed_plan(&scene);
    let shown = scene.run(&with("b.key", &["show", &plan])).expect(0);
    shown.says(&["the key of", "b.key holds", "name the file of the right key"]);
    assert!(shown.stdout.contains("[sealed]") && !shown.stdout.contains(MARK), "{}", shown.stdout);
    let refused = scene.run(&with("b.key", &["pause", &plan, "--reason", "why"]));
    assert_ne!(refused.status.code(), Some(0), "{refused:?}");
    scene.run(&with("b.key", &["resume", &plan])).expect(1).says(&["error: the key of", "b.key holds"]);
    scene.run(&with("nowhere.key", &["ls"])).expect(1).says(&["nowhere.key"]);
    scene.run(&with("plan.md", &["ls"])).expect(1).says(&["plan.md is not an operator key", "crewlog keys new"]);
}

#[test]
fn keys_are_listed_and_wrapped_under_another_operators_key() {
    let scene = scene();
    let plan = sealed_plan(&scene);
    let listed = |key: &str| scene.run(&with(key, &["keys", "ls", "-o", "json"])).expect(0).json()["keys"].clone();
    let before = listed("a.key");
    assert_eq!((&before[0]["plan"], &before[0]["state"]), (&plan.as_str().into(), &"ready".into()));
    assert_eq!(listed("b.key")[0]["state"], "wrapped");
    let wrapped_by = listed("b.key")[0]["operator"].clone();

    scene.run(&["keys", "rotate", "--to", "b.key"]).expect(1).says(&["--key-file"]);
    let rotated = scene.run(&with("a.key", &["keys", "rotate", "--to", "b.key", "-o", "json"])).expect(0).json();
    assert_eq!((&rotated["wrapped"], &rotated["left"]), (&1.into(), &0.into()));
    assert_ne!(rotated["operator"], wrapped_by);
    assert!(scene.run(&with("b.key", &["show", &plan])).expect(0).stdout.contains(MARK));
    assert!(!scene.run(&with("a.key", &["show", &plan])).expect(0).stdout.contains(MARK));
    let again = scene.run(&with("b.key", &["keys", "rotate", "--to", "a.key"])).expect(0);
    assert!(again.stdout.starts_with("1 key wrapped under operator key"), "{}", again.stdout);
    scene.run(&with("b.key", &["keys", "rotate", "--to", "b.key"])).expect(1).says(&["keys of these", &plan]);
}

#[test]
fn a_destroyed_key_shreds_its_plan_and_nothing_else_and_the_log_says_so() {
    let scene = scene();
    let (plan, other) = (sealed_plan(&scene), sealed_plan(&scene));
    let open = scene.run(&with("a.key", &["show", &plan, "-o", "json"])).expect(0).json();
    let of_other = scene.run(&with("a.key", &["show", &other])).expect(0).stdout;
    scene.run(&["keys", "destroy", &plan]).expect(1).says(&["nothing was destroyed", "--yes"]);
    scene.run(&["keys", "destroy", "no-such-plan", "--yes"]).expect(4);

    let destroyed = scene.run(&["keys", "destroy", &plan, "--yes", "-o", "json"]).expect(0).json();
    assert_eq!((&destroyed["plan"], &destroyed["was_destroyed"]), (&plan.as_str().into(), &false.into()));
    let again = scene.run(&["keys", "destroy", &plan, "--yes", "-o", "json"]).expect(0).json();
    assert_eq!(again["was_destroyed"], true);

    let shown = scene.run(&with("a.key", &["show", &plan, "-o", "json"])).expect(0).json();
    assert_eq!((&shown["status"], &shown["tasks"][0]["result"]), (&open["status"], &"[shredded]".into()));
    assert!(!shown.to_string().contains(MARK));
    let rest = scene.run(&with("a.key", &["show", &other])).expect(0).stdout;
    assert_eq!(rest.split_once('\n').map(|(_, rest)| rest), of_other.split_once('\n').map(|(_, rest)| rest));
    let said = scene.run(&["events", "--stream", "keys", "-o", "jsonl"]).expect(0).stdout;
    let said = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<serde_json::Value>>();
    assert_eq!(said.len(), 1, "it is said once");
    assert_eq!((&said[0]["event_type"], &said[0]["aggregate_id"]), (&"KeyDestroyed".into(), &plan.as_str().into()));
    assert_eq!(said[0]["data"]["plans"], serde_json::json!([plan]));
    scene.run(&["db", "check"]).expect(0);

    let keys = scene.run(&with("a.key", &["keys", "ls"])).expect(0).stdout;
    assert!(keys.contains("destroyed") && keys.contains("ready"), "{keys}");
    scene.run(&with("a.key", &["resume", &plan])).expect(1).says(&["was destroyed"]);
    scene.run(&with("a.key", &["retry", &plan])).expect(1).says(&["was destroyed"]);
    let (open, _) = scene.plan("1. What is it?\n");
    scene.run(&["keys", "destroy", &open, "--yes"]).expect(4).says(&["is not sealed"]);
}

#[test]
fn an_unfinished_shredded_plan_can_still_be_cancelled() {
    let scene = scene();
    scene.write("plan.md", TEXT);
    let plan = scene.run(&with("a.key", &["run", "plan.md", "--yes"])).expect(5).stdout.trim().to_owned();
    scene.run(&["keys", "destroy", &plan, "--yes"]).expect(0);
    let n_events = || scene.run(&["events", "-o", "jsonl"]).expect(0).stdout.lines().count();
    let before = n_events();
    for words in [
        &["answer", &format!("{plan}/q1"), "that one"][..],
        &["task", "add", "Look again", "--plan", &plan, "--yes"],
        &["task", "add", "Look again", "--plan", &plan, "--yes"],
        &["fork", &plan, "--at", "before:2", "--reason", "why"],
    ] {
        scene.run(&with("a.key", words)).expect(1).says(&["was destroyed"]);
    }
    assert_eq!(n_events(), before, "what is refused is not in the log");
    scene.run(&["cancel", &plan, "--reason", "about xyzzy"]).expect(0);
    assert_eq!(scene.show(&plan)["status"], "cancelled");
    assert_eq!(marked_files(&scene.path(".crewlog")), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_run_whose_key_is_destroyed_ends_and_says_why() {
    let scene = scene();
    named_pipe(&scene, "go");
    scene.write("plan.md", "1. Run `read line < go`\n2. Run `echo ran > side`\n");
    let mut running = scene.start(&with("a.key", &["run", "plan.md", "--yes"]));
    let plan = running.stdout.line().trim().to_owned();
    running.stderr.until("START");
    scene.run(&["keys", "destroy", &plan, "--yes"]).expect(0);
    std::fs::write(scene.path("go"), "go\n").expect("the command reads it");
    running.finish().expect(1).says(&["error: the key of", "was destroyed"]);
    assert_eq!(scene.read_if_any("side"), None, "nothing was done that nobody could read");
}

#[test]
fn a_worker_does_not_wait_for_a_plan_whose_key_is_destroyed() {
    let scene = scene();
    named_pipe(&scene, "go");
    scene.write("plan.md", "1. Run `read line < go`\n2. Run `echo ran > side`\n");
    let left = scene.run(&with("a.key", &["run", "plan.md", "--yes", "--detach"])).expect(0);
    let mut working = scene.start(&with("a.key", &["work", "--until-idle"]));
    working.stderr.until("START");
    scene.run(&["keys", "destroy", left.stdout.trim(), "--yes"]).expect(0);
    working.finish().expect(5).says(&["STOPPED", "[shredded]"]);
    assert_eq!(scene.read_if_any("side"), None, "nothing was done that nobody could read");
}

#[test]
fn destroying_a_key_lists_its_unfinished_plans_and_forks() {
    let scene = scene();
    scene.write("plan.md", TEXT);
    let plan = scene.run(&with("a.key", &["run", "plan.md", "--yes"])).expect(5).stdout.trim().to_owned();
    let fork = scene.run(&with("a.key", &["fork", &plan])).expect(0).stdout.trim().to_owned();
    scene.run(&with("a.key", &["cancel", &plan])).expect(0);
    let destroyed = scene.run(&["keys", "destroy", &plan, "--yes"]).expect(0);
    destroyed.says(&[&format!("{fork} has not ended"), &format!("cancel {fork}")]);
    assert!(!destroyed.stderr.contains(&format!("{plan} has not ended")), "{}", destroyed.stderr);
    scene.run(&["cancel", &fork]).expect(0);
    assert_eq!(scene.show(&fork)["status"], "cancelled");
}

#[test]
fn plans_created_without_keys_can_still_be_read_and_continued() {
    let scene = scene();
    let (plan, _) = scene.plan(TEXT);
    let before = scene.show(&plan);
    assert_eq!(scene.run(&with("a.key", &["show", &plan, "-o", "json"])).expect(0).json(), before);
    scene.run(&with("a.key", &["answer", &format!("{plan}/q1"), "an answer"])).expect(0);
    scene.run(&with("a.key", &["resume", &plan])).expect(100);
    let ended = scene.run(&["show", &plan]).expect(0);
    assert!(ended.stdout.contains("an answer"), "{}", ended.stdout);
    assert_eq!(ended.stderr, "");
    assert_eq!(scene.run(&["keys", "ls"]).expect(0).stdout, "", "no key was made");
}

#[test]
fn verify_skips_sealed_and_shredded_appends_and_finds_a_later_difference() {
    let scene = scene();
    let plan = sealed_plan(&scene);
    let (open, _) = scene.plan("1. Run `echo built`\n");
    let verify = ["replay", "--verify", "-o", "json"];
    let whole = scene.run(&with("a.key", &verify)).expect(0).json();
    assert_eq!((&whole["sealed"], &whole["shredded"]), (&0.into(), &0.into()));

    let closed = scene.run(&verify).expect(0).json();
    let n_sealed = closed["sealed"].as_u64().expect("a number");
    assert!(n_sealed > 3 && closed["commands"].as_u64() > Some(3), "what has no text is decided: {closed}");
    let said = scene.run(&["replay", &plan, "--verify"]).expect(0).stdout;
    assert!(said.contains(&format!("{n_sealed} appends sealed, and not decided again")), "{said}");
    assert_eq!(said.matches("--key-file FILE").count(), 1, "{said}");

    // A later decision has been changed.
    let export = scene.run(&["export"]).expect(0).stdout;
    let (from, to) = (r#""status":"Completed","result":"built""#, r#""status":"Completed","result":"other""#);
    assert!(export.contains(from), "{open} was built");
    scene.write("export.jsonl", export.replacen(from, to, 1));
    scene.run(&["--store", "copy.db", "import", "export.jsonl"]).expect(0);
    let found = scene.run(&[&["--store", "copy.db"], &verify[..]].concat()).expect(10).json();
    assert_eq!(found["difference"]["aggregate_id"], open);
    // Also in the sealed plan itself, where it shows without any text.
    let claimed = r#","epoch":1}"#;
    assert!(export.contains(claimed));
    scene.write("export.jsonl", export.replacen(claimed, r#","epoch":3}"#, 1));
    scene.run(&["--store", "other.db", "import", "export.jsonl"]).expect(0);
    let found = scene.run(&[&["--store", "other.db"], &verify[..]].concat()).expect(10).json();
    assert!(found["difference"]["aggregate_id"].as_str().is_some_and(|id| id.starts_with(&plan)), "{found}");

    scene.run(&["keys", "destroy", &plan, "--yes"]).expect(0);
    let gone = scene.run(&with("a.key", &verify)).expect(0).json();
    assert_eq!((&gone["sealed"], &gone["shredded"]), (&0.into(), &n_sealed.into()));
    let said = scene.run(&with("a.key", &["replay", "--verify"])).expect(0).stdout;
    assert!(said.contains(&format!("{n_sealed} appends shredded")), "{said}");
}

#[test]
fn an_operators_key_readable_by_others_gives_a_warning() {
    let scene = scene();
    let file = scene.path("a.key");
    let set = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    scene.plan("1. What is it?\n").1.expect(5);
    set(0o644);
    scene.run(&with("a.key", &["ls"])).expect(0).says(&["a.key", "readable by other users", "chmod 600"]);
    set(0o600);
    assert_eq!(scene.run(&with("a.key", &["ls"])).expect(0).stderr, "");

    // The hint must not suggest closing an arbitrary file.
    std::fs::write(&file, "no key").expect("it is ours");
    set(0o644);
    let said = scene.run(&with("a.key", &["ls"])).expect(1).stderr;
    assert!(said.contains("is not an operator key") && !said.contains("readable by other users"), "{said}");
}

#[test]
fn a_damaged_key_locks_only_its_own_plan_and_is_named() {
    let scene = scene();
    let (plan, other) = (sealed_plan(&scene), sealed_plan(&scene));
    let keys = scene.run(&with("a.key", &["keys", "ls", "-o", "json"])).expect(0).json()["keys"].clone();
    let of_plan = keys.as_array().and_then(|keys| keys.iter().find(|key| key["plan"] == plan.as_str()));
    let name = of_plan.and_then(|key| key["key"].as_str()).expect("it is listed");
    let file = format!(".crewlog/log.db-keys/{name}.json");
    std::fs::write(scene.path(&file), "nonsense").expect("it is ours");
    let listed = scene.run(&with("a.key", &["ls"])).expect(0);
    listed.says(&[&format!("{name}.json is damaged"), "shown as [sealed]"]);
    assert!(scene.run(&with("a.key", &["show", &other])).expect(0).stdout.contains(MARK));
    let shown = scene.run(&with("a.key", &["show", &plan])).expect(0).stdout;
    assert!(shown.contains("[sealed]") && !shown.contains("[shredded]") && !shown.contains(MARK), "{shown}");
}

#[test]
fn a_planning_failure_of_an_agent_is_sealed_and_its_key_can_be_destroyed() {
    let scene = scene();
    let plan = r#"{"xyzzy": [], "steps": []}"#;
    scene.write("plan.json", plan);
    let refused = scene.run(&with("a.key", &["plan", "propose", "plan.json", "--agent", "tactical"])).expect(3);
    refused.says(&["xyzzy"]);
    std::fs::remove_file(scene.path("plan.json")).expect("it is there");
    assert_eq!(marked_files(scene.folder()), Vec::<std::path::PathBuf>::new(), "its error quotes the text");
    let failed = |key: Option<&str>| {
        let events = ["events", "--stream", "planning", "-o", "json"];
        let ran = scene.run(&key.map_or(events.to_vec(), |key| with(key, &events))).expect(0);
        ran.stdout
    };
    assert!(failed(Some("a.key")).contains(MARK) && !failed(None).contains(MARK));
    let keys = scene.run(&with("a.key", &["keys", "ls", "-o", "json"])).expect(0).json()["keys"].clone();
    let session = keys[0]["plan"].as_str().expect("it is listed").to_owned();
    assert!(session.starts_with("text-"), "{session}");
    let destroyed = scene.run(&["keys", "destroy", &session, "--yes", "-o", "json"]).expect(0).json();
    assert_eq!((&destroyed["plan"], &destroyed["plans"]), (&keys[0]["plan"], &serde_json::json!([session])));
    assert!(failed(Some("a.key")).contains("[shredded]"));
    scene.run(&["keys", "destroy", "text-nothing", "--yes"]).expect(4);
    let name = keys[0]["key"].as_str().expect("it has one");
    let again = scene.run(&["keys", "destroy", name, "--yes", "-o", "json"]).expect(0).json();
    assert_eq!((&again["plan"], &again["was_destroyed"]), (&keys[0]["plan"], &true.into()));
}
