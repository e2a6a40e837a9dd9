//! The program of `[inbox] notify`: started once for each new item, by one process, and only after a person has agreed.

use std::time::Instant;

use super::scene::{DEADLINE, Ran, Scene};

/// Writes a line about each notice.
const NOTIFY: &str = r#"[inbox]
notify = ["sh", "-c", "echo \"$CREWLOG_KIND $CREWLOG_NEW of $CREWLOG_WAITING $CREWLOG_ITEM: $CREWLOG_TEXT\" >> notices"]
"#;

fn notices(scene: &Scene) -> Vec<String> {
    scene.read_if_any("notices").unwrap_or_default().lines().map(str::to_owned).collect()
}

/// How many items all notices together are about.
fn n_noticed(scene: &Scene) -> usize {
    let n_new = |line: &String| line.split(' ').nth(1).and_then(|n_new| n_new.parse::<usize>().ok());
    notices(scene).iter().filter_map(n_new).sum()
}

#[track_caller]
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < DEADLINE, "{what} did not come");
        std::thread::yield_now();
    }
}

fn ask(scene: &Scene, question: &str) -> Ran {
    scene.run(&["task", "add", "--yes", question]).expect(0)
}

#[test]
fn a_program_of_a_repository_runs_after_a_person_agreed_and_once_for_each_item() {
    let scene = Scene::new();
    scene.write("crewlog.toml", NOTIFY);
    let (_, ran) = scene.plan("# First\n1. Which colour is it?\n");
    ran.expect(5).says(&["starts a program when the inbox grows: sh -c", "until a person agrees: crewlog agree"]);
    assert!(notices(&scene).is_empty(), "nobody has agreed");
    // An agent may not agree.
    scene.run(&["init", "--no-hosts"]).expect(0);
    let mut by_agent = scene.crewlog(&["agree", "--yes"]);
    super::scene::Running::start(by_agent.env("AGENT_ID", "ann")).finish().expect(11);
    let agreed = scene.run(&["agree", "--yes"]).expect(0);
    assert_eq!(agreed.stdout, "agreed to the program for notices of crewlog.toml\n");
    // The next process gives notice of what waits already, and the new question.
    let (second, ran) = scene.plan("# Second\n1. Which size is it?\n");
    ran.expect(5);
    // One that comes too soon after another notice is left to the next process; after that there is no news.
    for name in ["Third", "Fourth"] {
        scene.plan(&format!("# {name}\n1. Run `true`\n")).1.expect(0);
        assert_eq!(n_noticed(&scene), 2, "{name}: {:?}", notices(&scene));
    }
    scene.run(&["answer", &format!("{second}/q1"), "9"]).expect(0);
    // A change of the file needs an agreement again.
    scene.write("crewlog.toml", NOTIFY.replace("notices", "others"));
    scene.plan("# Fifth\n1. Which taste is it?\n").1.expect(5).says(&["until a person agrees"]);
    assert_eq!((n_noticed(&scene), scene.read_if_any("others")), (2, None));
}

#[test]
fn of_several_processes_one_starts_the_program() {
    let scene = Scene::new();
    let user = scene.around().join("home/.config/crewlog");
    std::fs::create_dir_all(&user).expect("a folder can be made");
    std::fs::write(user.join("crewlog.toml"), NOTIFY).expect("a file can be written");
    // A repository cannot turn off what a person has chosen for all of them.
    scene.write("crewlog.toml", "[inbox]\nnotify = [\"false\"]\n");
    scene.run(&["init", "--no-hosts"]).expect(0);
    let mut serving = scene.start(&["serve", "--listen", "127.0.0.1:0"]);
    serving.stdout.until("Page:");
    let mut working = scene.start(&["work"]);
    working.stderr.until("running the tasks of all plans");
    ask(&scene, "Which colour is it?");
    until("the first notice", || n_noticed(&scene) == 1);
    assert_eq!(notices(&scene), ["question 1 of 1 backlog/q1: Which colour is it?"]);
    // Within five seconds there is one notice for all.
    ask(&scene, "Which size is it?");
    ask(&scene, "Which taste is it?");
    until("the second notice", || n_noticed(&scene) >= 3);
    assert_eq!(
        notices(&scene).get(1).map(String::as_str),
        Some("question 2 of 3 backlog/q2: Which size is it? (and 1 more)")
    );
    // The other process continues when one ends, and repeats nothing.
    serving.killed();
    ask(&scene, "Which smell is it?");
    until("the third notice", || n_noticed(&scene) >= 4);
    assert_eq!(notices(&scene).len(), 3, "{:?}", notices(&scene));
    working.killed();
}

#[test]
fn a_program_that_fails_or_hangs_is_a_warning() {
    for (program, says) in [
        (r#"["sh", "-c", "echo no bus >&2; exit 3"]"#, "exit code 3 no bus"),
        (r#"["no-such-program"]"#, "no-such-program"),
        (r#"["sh", "-c", "echo x > begun; sleep 100"]"#, "killed after 10 s"),
    ] {
        let scene = Scene::new();
        scene.write("notices.toml", format!("[inbox]\nnotify = {program}\n"));
        scene.write("plan.md", "1. Which colour is it?\n");
        let ran = scene.run(&["run", "plan.md", "--yes", "--config", "notices.toml"]);
        ran.expect(5).says(&["no notice of new items of the inbox", says]);
    }
}

#[test]
fn a_program_without_a_name_is_refused() {
    let scene = Scene::new();
    scene.run(&["init", "--no-hosts"]).expect(0);
    for (notify, says) in [("[]", "the command is empty"), ("\"notify-send\"", "invalid type")] {
        scene.write("crewlog.toml", format!("[inbox]\nnotify = {notify}\n"));
        let ran = scene.run(&["inbox"]).expect(1);
        ran.says(&["crewlog.toml:2:", says]);
    }
}
