//! The programs that a crewlog.toml names start only after a person of this machine agreed to them.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::cli::scene::{Ran, Running, Scene};

const PLAN: &str = "- Write a poem\n";

fn writer(more: &str) -> String {
    format!("[executors.writer]\ncommand = ['sh', '-c', 'echo ran >> told']\n{more}")
}

fn scene(config: &str) -> Scene {
    let scene = Scene::with_repository();
    scene.write("crewlog.toml", config);
    scene.write("plan.md", PLAN);
    scene
}

fn n_started(scene: &Scene) -> usize {
    scene.read_if_any("told").map_or(0, |told| told.lines().count())
}

fn agreements(scene: &Scene) -> PathBuf {
    scene.around().join("home/.local/state/crewlog/programs")
}

fn runs(scene: &Scene) -> Ran {
    scene.run(&["run", "plan.md"])
}

#[test]
fn a_program_is_agreed_to_by_its_content_and_asks_again_when_that_changes() {
    let scene = scene(&writer(""));
    runs(&scene).expect(1).says(&["writer  starts: sh -c 'echo ran >> told'  (new in crewlog.toml)", "no terminal"]);
    scene.run(&["run", "plan.md", "--yes"]).expect(0);
    assert_eq!(agreements(&scene).metadata().unwrap().permissions().mode() & 0o777, 0o700);
    runs(&scene).expect(0);
    assert_eq!(n_started(&scene), 2);
    for same in ["jobs = 2\n", "timeout = '1m'\n", "kinds = ['CodeImplementation', 'Processing', 'ToolCall']\n"] {
        scene.write("crewlog.toml", writer(same));
        assert!(!runs(&scene).expect(0).stderr.contains("new in crewlog.toml"), "{same}");
    }
    let changed = [
        (writer("prompt = \"argument\"\n"), "starts: sh"),
        (writer("env = { LD_PRELOAD = \"./evil.so\" }\n"), "starts: LD_PRELOAD=./evil.so sh"),
        (writer("").replace("echo ran", "echo evil"), "echo evil"),
        (writer("").replace("['sh', '-c', 'echo ran >> told']", "'echo ran >> told'"), "starts: echo ran >> told"),
        (writer("").replace("writer", "other"), "other  starts: sh"),
        // The same words, divided in another way.
        (writer("env = { sh = \"1\" }\n").replace("['sh', '-c'", "['-c'"), "starts: sh=1 -c"),
        (writer("").replace("'sh', '-c', ", "'sh', '-c', '', "), "starts: sh -c ''"),
    ];
    for (config, says) in changed {
        scene.write("crewlog.toml", &config);
        runs(&scene).expect(1).says(&[says, "(new in crewlog.toml)", "no terminal to ask on"]);
    }
    assert!(!scene.read("told").contains("evil"));
}

#[test]
fn worktrees_of_a_repository_share_an_agreement_and_clones_do_not() {
    let scene = scene(&writer(""));
    scene.git(&["add", "."]);
    scene.git(&["commit", "-qm", "all"]);
    scene.run(&["run", "plan.md", "--yes"]).expect(0);
    scene.git(&["worktree", "add", "-q", "../linked"]);
    scene.git(&["clone", "-q", ".", "../cloned"]);
    let in_folder = |name: &str| {
        let folder = scene.around().join(name);
        Running::start(&mut scene.crewlog_in(&folder, &["run", "plan.md"])).finish()
    };
    in_folder("linked").expect(0);
    in_folder("cloned").expect(1).says(&["(new in crewlog.toml)"]);
}

#[test]
fn a_program_that_changed_is_not_started_between_run_and_resume() {
    let scene = scene(&writer(""));
    scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0);
    scene.write("crewlog.toml", writer("").replace("echo ran", "echo changed"));
    for words in [&["work", "--until-idle"][..], &["resume"], &["resume", "--sync"]] {
        let ran = scene.run(words);
        assert!(scene.read_if_any("told").is_none() && ran.stderr.contains("echo changed"), "{words:?} {}", ran.stderr);
    }
    let waits = scene.run(&["inbox"]).expect(0).stdout;
    assert!(waits.contains("writer starts: sh -c 'echo changed >> told'  (new in crewlog.toml)"), "{waits}");
    // A worker that already waits takes it up.
    let mut work = scene.start(&["work"]);
    work.stderr.until("running the tasks");
    let agent = Running::start(scene.crewlog(&["agree", "--yes"]).env("AGENT_ID", "ann")).finish();
    agent.expect(11).says(&["an agent may not agree to what runs"]);
    scene.run(&["agree", "--yes"]).expect(0);
    work.stderr.until("DONE");
    work.signal(Signal::INT);
    let _ended = work.finish();
    assert_eq!(scene.read("told"), "changed\n");
}

#[test]
fn an_agents_yes_binds_its_own_process() {
    let scene = scene(&writer(""));
    let run = || Running::start(scene.crewlog(&["run", "plan.md", "--yes"]).env("AGENT_ID", "ann")).finish();
    run().expect(0);
    assert_eq!((n_started(&scene), agreements(&scene).exists()), (1, false));
    runs(&scene).expect(1).says(&["(new in crewlog.toml)"]);
}

#[test]
fn a_configuration_that_a_person_named_or_keeps_at_home_needs_no_agreement() {
    let scene = scene("");
    let home = scene.around().join("home/.config/crewlog");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("crewlog.toml"), writer("")).unwrap();
    std::fs::write(scene.path("named.toml"), writer("")).unwrap();
    scene.run(&["--config", "named.toml", "run", "plan.md", "--detach", "--yes"]).expect(0);
    assert!(!agreements(&scene).exists());
    // The same name in the repository is another program; other sections do not hide those at home.
    scene.write("crewlog.toml", "project = \"own\"\n[hooks]\nstrict = true\n");
    runs(&scene).expect(0);
    scene.write("crewlog.toml", writer("").replace("echo ran", "echo evil"));
    runs(&scene).expect(1).says(&["echo evil", "(new in crewlog.toml)"]);
    assert!(!scene.read("told").contains("evil"));
}

#[test]
fn the_model_of_a_repository_gets_no_key_and_no_text_before_a_person_agrees() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    let scene = scene(&format!("[model]\nname = \"m\"\nendpoint = \"{endpoint}\"\napi_key_env = \"AWS_SECRET\"\n"));
    let shown = format!("m at {endpoint}, with the key in AWS_SECRET");
    for words in
        [&["run", "plan.md"][..], &["plan", "check", "--model", "plan.md"], &["plan", "check", "--advice", "plan.md"]]
    {
        scene.run(words).expect(1).says(&[&shown, "no model was asked: no terminal to ask on"]);
    }
    scene.run(&["run", "plan.md", "--no-model", "--detach", "--yes"]).expect(0);
    scene.run(&["work", "--until-idle"]).says(&[&shown, "until a person agrees: crewlog agree"]);
    assert!(listener.accept().is_err(), "nobody has called");
    scene.run(&["agree", "--yes"]).expect(0).says(&[&shown]);
    assert!(!scene.run(&["work", "--until-idle"]).stderr.contains(&shown));
}

#[test]
fn the_values_of_a_programs_variables_are_shown_to_the_person_alone() {
    let scene = scene(&writer("env = { TOKEN = \"hunter2\" }\n"));
    scene.run(&["--config", "crewlog.toml", "run", "plan.md", "--yes", "--detach"]).expect(0);
    for words in [&["inbox"][..], &["inbox", "-o", "json"]] {
        let shown = scene.run(words).expect(0).stdout;
        assert!(shown.contains("writer starts: TOKEN=... sh -c") && !shown.contains("hunter2"), "{shown}");
    }
    scene.run(&["agree"]).expect(1).says(&["in full: TOKEN=hunter2 sh -c"]);
}

#[test]
fn an_agreement_to_a_task_with_a_new_program_uses_no_grant() {
    let scene = scene(&writer(""));
    scene.run(&["task", "add", "Which colour?", "--new", "--plan", "side", "--yes"]).expect(0);
    scene.run(&["agree", "--tasks", "@writer", "--plan", "side", "--max", "1"]).expect(0);
    for task in ["Write about red @writer", "Write about blue @writer"] {
        let words = ["task", "add", task, "--plan", "side", "--yes"];
        Running::start(scene.crewlog(&words).env("AGENT_ID", "ann")).finish().expect(0);
    }
    scene.run(&["agree", "--yes"]).expect(0);
    let _any = scene.run(&["work", "--until-idle"]);
    assert_eq!(
        (n_started(&scene), scene.events_of_type("Agreed").iter().filter(|it| it["how"] == "grant").count()),
        (2, 0)
    );
}
