//! Printed commands that can be pasted, the names of tasks, and errors.

use std::collections::BTreeSet;
use std::process::Command;

use super::scene::{Gate, Ran, Running, Scene, named_pipe};

/// Runs a printed command line in a shell with the environment of the scene.
fn paste(scene: &Scene, line: &str) -> Ran {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_crewlog")).parent().expect("it is in a folder");
    let typed = scene.crewlog(&[]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", line])
        .current_dir(scene.folder())
        .envs(typed.get_envs().filter_map(|(name, value)| Some((name, value?))));
    typed.get_envs().filter(|(_, value)| value.is_none()).for_each(|(name, _)| _ = shell.env_remove(name));
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    Running::start(shell.env("PATH", path)).finish()
}

/// A plan that asks; then both printed commands are pasted, which answers and ends it.
#[track_caller]
fn is_pastable(scene: &Scene, typed: &[&str], printed: &str) {
    scene.write("plan.md", "1. Which colour is it?\n");
    let ran = scene.run(&[typed, &["run", "plan.md", "--yes"]].concat()).expect(5);
    let plan = ran.stdout.trim();
    let expected = [format!("crewlog{printed} answer {plan}/q1 \"...\""), format!("crewlog{printed} resume {plan}")];
    for line in &expected {
        ran.says(&[&format!(" {line}\n")]);
    }
    assert!(!ran.stderr.contains("***"), "{}", ran.stderr);
    expected.iter().for_each(|line| drop(paste(scene, line).expect(0)));
    let missing = scene.run(&[typed, &["cancel", "nothing"]].concat()).expect(4);
    assert!(!missing.stderr.contains("***"), "{}", missing.stderr);
}

#[test]
fn a_printed_command_names_only_what_the_environment_does_not() {
    let scene = || {
        let scene = Scene::new();
        scene.write("other.toml", "");
        scene.write("here.db", "");
        scene.run(&["--store", "here.db", "init", "--no-hosts"]).expect(0);
        scene
    };
    is_pastable(&scene(), &[], "");
    is_pastable(&scene(), &["--store", "here.db"], " --store here.db");
    is_pastable(&scene(), &["--store=here.db", "--config", "other.toml"], " --store here.db --config other.toml");
    let of_environment = || scene().with_env("CREWLOG_STORE", "here.db").with_env("CREWLOG_CONFIG", "other.toml");
    is_pastable(&of_environment(), &[], "");
    is_pastable(&of_environment(), &["--store", "here.db"], "");
    is_pastable(&of_environment(), &["--store", "sqlite:here.db"], " --store sqlite:here.db");
}

#[cfg(feature = "sealing")]
#[test]
fn a_printed_command_names_keys_that_the_environment_does_not() {
    let scene = Scene::new();
    scene.run(&["init", "--no-hosts"]).expect(0);
    scene.run(&["keys", "new", "operator.key"]).expect(0);
    is_pastable(&scene, &["--key-file", "operator.key", "--keys", "here"], " --key-file operator.key --keys here");
    let scene = scene.with_env("CREWLOG_KEY_FILE", "operator.key").with_env("CREWLOG_KEYS", "here");
    is_pastable(&scene, &[], "");
}

#[test]
fn a_printed_command_has_no_password() {
    let server = std::env::var("CREWLOG_TEST_POSTGRES").expect("./test names a server that takes any password");
    let schema = format!("pasted_{}", uuid::Uuid::new_v4().simple());
    let (user, host) = server.trim_start_matches("postgres://").split_once('@').expect("a user and a host");
    let with_password = format!("postgres://{user}:se%3Acret@{host}?schema={schema}&password=hidden");
    let scene = Scene::new();
    scene.run(&["--store", &with_password, "init", "--no-hosts"]).expect(0);
    is_pastable(&scene, &["--store", &with_password], &format!(" --store 'postgres://{user}@{host}?schema={schema}'"));
    let said = scene.run(&["--store", &with_password, "show", "nothing"]).expect(4);
    assert!(!said.stderr.contains("cret") && !said.stderr.contains("hidden"), "{}", said.stderr);
    scene
        .run(&["--store", &with_password, "fork", "plan", "--at", "before:9"])
        .expect(4)
        .says(&["leave out the password of --store: set CREWLOG_STORE or PGPASSWORD"]);
    let scene = scene.with_env("CREWLOG_STORE", with_password);
    is_pastable(&scene, &[], "");
    // The first command that needs the folder for the log's own files.
    scene.run(&["serve", "tokens", "add", "ann"]).expect(0);
}

/// The label of each task here is another number than its own.
#[test]
fn tasks_have_their_labels_in_all_texts() {
    let scene = Scene::with_repository();
    let pipes = ["one", "two", "three"].map(|name| named_pipe(&scene, &format!("go-{name}")));
    let mut gates = ["one", "two", "three"].map(|name| Gate::new(&scene, name));
    let wait = |name: &str| format!("{}; read line < go-{name}", Gate::pass(name));
    let [one, two, three] = ["one", "two", "three"].map(wait);
    let parallel = format!("   - Run `{one}; echo >> notes.txt`\n   - Mend notes.txt\n");
    scene.write("crewlog.toml", format!("[executors.mender]\ncommand = '{two}'\n"));
    scene.write("plan.md", format!("# Ship\n1. Run `true`\n2. In parallel:\n{parallel}3. Run `{three}; exit 3`\n"));
    let mut running = scene.start(&["run", "plan.md", "--yes"]);
    let plan = running.stdout.line().trim().to_owned();
    running.stderr.until("CONFLICT");
    let held = running.stderr.line();
    let orders = [("2/1", "2/2"), ("2/2", "2/1")];
    let orders = orders.map(|(one, other)| format!(" 1: notes.txt is held by {plan}/{one}, {plan}/{other}"));
    assert!(orders.iter().any(|said| held.ends_with(said)), "{held}");
    gates[..2].iter_mut().for_each(Gate::wait);
    pipes[..2].iter().for_each(|pipe| std::fs::write(pipe, "go\n").expect("the command reads it"));
    running.stderr.until("RESOLVED");
    running.stderr.until(&format!(" 1: {plan}/2/"));
    std::fs::write(&pipes[2], "go\n").expect("the command reads it");
    running.finish().expect(100);
    for (command, before, after) in [("events", " task ", " "), ("replay", "  ", ": task ")] {
        let text = scene.run(&[command, &plan]).expect(0).stdout;
        for name in ["1", "2/1", "2/2", "3"] {
            assert!(text.contains(&format!("{before}{plan}/{name}{after}")), "{name}: {text}");
        }
        assert!(!text.contains(&format!("{before}{plan}/4")), "{text}");
    }
    let failed = scene.run(&["events", "--type", "TaskStatusUpdated"]).expect(0).stdout;
    assert!(failed.contains(&format!(" planner {plan}/3 ")), "{failed}");
    let conflicts = scene.run(&["leases", "--conflicts", "--all", "-o", "json"]).expect(0).json();
    let holders = conflicts["conflicts"][0]["holders"].as_array().expect("a list").iter();
    let tasks = holders.filter_map(|holder| holder["task"].as_str()).collect::<BTreeSet<_>>();
    assert_eq!(tasks, BTreeSet::from(["2/1", "2/2"]), "{conflicts}");
    assert!(conflicts["conflicts"][0]["resolved"]["task"].as_str().is_some_and(|task| task.starts_with("2/")));
}

#[test]
fn an_error_names_what_failed_and_its_code() {
    let scene = Scene::new();
    let unknown = "0197f7a0-0000-7000-8000-000000000000";
    scene.run(&["serve", "tokens", "add", "ann"]).expect(1).says(&["there is no log at", "crewlog init"]);
    scene.plan("1. Which colour is it?\n").1.expect(5);
    for (words, code, says) in [
        (&["answer", "a999", "yes"][..], 4, "no agent has asked a question a999"),
        (&["leases", "--force", "999", "--reason", "it is old"], 4, "lease 999 does not exist or has ended"),
        (&["-o", "json", "events", "--causes", unknown], 4, "no event has the id"),
        (&["-o", "json", "events", "nothing"], 4, "no plan has"),
        (&["-q", "hook", "--x"], 1, "unexpected argument '--x'"),
        (&["-o", "json", "--color=never", "hook", "--x"], 1, "unexpected argument '--x'"),
        (&["run", "hook", "--x"], 2, "unexpected argument '--x'"),
        (&["serve", "--listen", "localhost:8080"], 2, "write 127.0.0.1:8080"),
        (&["serve", "--listen", "8080"], 2, "write 127.0.0.1:8080"),
        (&["serve", "--listen", "localhost"], 2, "write 127.0.0.1:7777"),
        (&["db", "backup", "no/such/folder.db"], 1, "hint: make its folder first"),
        (&["export", "--to", "no/such/folder.jsonl"], 1, "hint: make its folder first"),
        (&["export", "--to", "plan.md"], 1, "hint: name a file that does not exist"),
    ] {
        let ran = scene.run(words).expect(code);
        ran.says(&[says]);
        assert_eq!(ran.stdout, "", "{words:?}");
        assert!(!ran.stderr.contains("the output could not be written"), "{}", ran.stderr);
    }
}
