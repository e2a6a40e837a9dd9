//! Hostile input: the program handles it or refuses it with a reason, and never panics or does half of it.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::scene::{Gate, Running, Scene};

#[test]
fn unread_standard_error_does_not_stop_work() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Run `echo first >> side`\n2. Run `echo second >> side; exit 3`\n");
    let ran = Running::start_with_closed_stderr(&mut scene.crewlog(&["run", "plan.md", "--yes"])).finish().expect(100);
    assert_eq!(scene.show(ran.stdout.trim())["status"], "failed");
    assert_eq!(scene.read("side"), "first\nsecond\n");
    let mut talkative = scene.crewlog(&["run", "plan.md", "--yes"]);
    Running::start_with_closed_stderr(talkative.env("CREWLOG_LOG", "trace")).finish().expect(100);
    Running::start_with_closed_stderr(&mut scene.crewlog(&["show", "nope"])).finish().expect(4);
    Running::start_with_closed_stderr(&mut scene.crewlog(&["nonsense"])).finish().expect(2);
}

#[test]
fn a_run_that_loses_its_terminal_releases_its_task() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    scene.write("plan.md", format!("Run `{}; exec sleep 1000`", Gate::pass("gate")));
    let running = Running::start_with_closed_stderr(&mut scene.crewlog(&["run", "plan.md", "--yes"]));
    gate.wait();
    running.signal(Signal::HUP);
    running.finish().expect(130);
    gate.wait_until_free();
    assert_eq!(scene.events_of_type("TaskReleased").len(), 1);
}

/// In a namespace of its own a small disk is mounted, which the first task fills until the log cannot grow.
#[test]
fn a_task_that_ended_on_a_full_disk_is_recorded_once_there_is_room() {
    let script = "mount -t tmpfs -o size=600k disk disk || exit 7
        crewlog --store disk/log.db run plan.md --yes 2>&1 >plan | while IFS= read -r line; do
            case $line in *'no space is left'*) echo \"$line\"; rm -f disk/filler ;; esac
        done
        crewlog --store disk/log.db show \"$(cat plan)\" -o json >&2";
    let scene = Scene::new();
    std::fs::create_dir(scene.path("disk")).unwrap();
    // The filler leaves no block of the disk free, and its writer does not mind.
    scene.write("plan.md", "1. Run `cat /dev/zero > disk/filler 2>/dev/null || echo one`\n2. Run `echo two`\n");
    let crewlog = scene.crewlog(&[]);
    let program = std::path::Path::new(crewlog.get_program()).parent().unwrap().to_owned();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).current_dir(scene.folder());
    command.envs(crewlog.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let ran = Running::start(command.env("PATH", path).stdin(Stdio::null())).finish().expect(0);
    assert!(ran.stdout.contains("make room and try again"), "{}", ran.stdout);
    let shown: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(shown["status"], "done", "{shown}");
    assert_eq!((shown["tasks"][0]["attempts"].clone(), shown["tasks"][0]["result"].clone()), (1.into(), "one".into()));
}

#[test]
fn unread_standard_output_does_not_stop_work() {
    for form in ["text", "json", "jsonl"] {
        let scene = Scene::new();
        scene.write("plan.md", "1. Run `echo first >> side`\n2. Run `echo second >> side; exit 3`\n");
        let run = &["run", "plan.md", "--yes", "-o", form];
        Running::start_with_closed_stdout(&mut scene.crewlog(run)).finish().expect(100).says(&["1 done, 1 failed"]);
        assert_eq!(scene.read("side"), "first\nsecond\n", "{form}");
    }
}

#[test]
fn a_reader_of_the_output_may_stop_at_any_time() {
    let scene = Scene::new();
    let (plan, _) = scene.plan(&(1..200).map(|n| format!("{n}. [x] Step {n}\n")).collect::<String>());
    for words in [
        &["events"] as &[&str],
        &["events", "-o", "json"],
        &["events", "-o", "jsonl"],
        &["export"],
        &["show", &plan],
        &["show", &plan, "-o", "json"],
        &["plan", "check", "plan.md", "-o", "jsonl"],
        &["ls"],
        &["--help"],
    ] {
        let ran = Running::start_with_closed_stdout(&mut scene.crewlog(words)).finish().expect(0);
        assert_eq!(ran.stderr, "", "{words:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_stored_is_an_error() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("Run `echo first >> side`");
    let full = |words: &[&str]| {
        let line = "exec \"$0\" \"$@\" > /dev/full";
        let mut shell = Command::new("sh");
        shell.args(["-c", line, env!("CARGO_BIN_EXE_crewlog")]).args(words).current_dir(scene.folder());
        shell.env_remove("CREWLOG_STORE").stdin(Stdio::null());
        Running::start(&mut shell).finish().expect(1)
    };
    for words in [&["ls"] as &[&str], &["show", &plan], &["events", "-o", "jsonl"], &["export"]] {
        full(words).says(&["error: the output could not be written: No space left"]);
    }
    let ran = full(&["run", "plan.md", "--yes"]);
    ran.says(&["no task has run yet; to run the plan: crewlog resume plan-"]);
    assert_eq!(scene.read("side"), "first\n", "only the first run ran anything");
    full(&["run", "plan.md", "--yes", "-o", "jsonl"]).says(&["1 task: 1 done"]);
}

#[test]
fn only_code_runs_and_printed_text_has_its_control_characters_escaped() {
    let scene = Scene::new();
    let text = "# Hostile \u{1b}[2J \u{202e}title\n\
        1. Say $(touch pwned1) and \"quotes\" and 'single' and \\ and ; touch pwned2\n\
        2. Run `printf '%s' \"it's \\\"fine\\\" \u{1b}[31m\"; echo ../../etc`\n\
        3. Colour \u{1b}[31mred\u{1b}[0m \u{202e}backwards\u{2066}, <script>alert(1)</script> \u{7}\n";
    scene.write("plan.md", text);
    let ran = scene.run(&["run", "plan.md", "--yes"]).expect(5);
    let plan = ran.stdout.trim().to_owned();
    assert!(plan.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{plan}");
    let said = ran.stderr.clone() + &scene.run(&["show", &plan]).expect(0).stdout + &scene.run(&["ls"]).stdout;
    let said = said + &scene.run(&["plan", "check", "plan.md"]).stdout + &scene.run(&["events"]).stdout;
    assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{2066}']), "{said:?}");
    assert!(!scene.path("pwned1").exists() && !scene.path("pwned2").exists(), "prose is not shell");
    scene.run(&["task", "done", &format!("{plan}/1"), "\u{1b}[31m'\"$(touch pwned3)`touch pwned4`\n../x"]).expect(0);
    scene.run(&["resume", &plan]).expect(5);
    let shown = scene.show(&plan);
    assert_eq!(shown["tasks"][0]["result"], "\u{1b}[31m'\"$(touch pwned3)`touch pwned4`\n../x", "data stays as it is");
    assert_eq!(shown["tasks"][1]["result"], "it's \"fine\" \u{1b}[31m../../etc");
    let left = std::fs::read_dir(scene.folder()).expect("the folder is there").flatten();
    let mut left = left.map(|entry| entry.file_name().into_string().expect("text")).collect::<Vec<_>>();
    left.sort();
    assert_eq!(left, [".crewlog", "plan.md"]);
}

#[test]
fn output_that_is_not_utf_8_is_printed_as_valid_json() {
    let scene = Scene::new();
    scene.write("plan.md", "1. [P] Remember a \u{0} zero \u{1}\u{7f}\n2. [P] Run `printf 'a\\000b\\377c'`\n");
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    let shown = scene.show(&plan);
    let command = shown["tasks"].as_array().expect("tasks").iter().find(|task| task["kind"] == "ToolCall");
    assert_eq!(command.expect("the command")["result"], "a\u{0}b\u{fffd}c", "{shown}");
    assert!(!scene.events().is_empty());
}

#[test]
fn file_names_may_contain_any_characters() {
    let scene = Scene::new();
    for (name, shown) in [
        ("two words.md", "two words.md"),
        ("new\nline.md", "new\nline.md"),
        ("-dash.md", "-dash.md"),
        ("\u{1b}[31mred.md", "\\u{1b}[31mred.md"),
        ("ünï.md", "ünï.md"),
    ] {
        scene.write(name, "Run `echo ok`");
        let path = format!("./{name}");
        scene.run(&["run", &path, "--yes"]).expect(0);
        std::fs::remove_file(scene.path(name)).expect("it was written");
        scene.run(&["run", &path, "--yes"]).expect(1).says(&[&format!("./{shown} cannot be read")]);
    }
    let store = "a 'store' $(touch pwned).db";
    scene.write("plan.md", "Which one is it?");
    let ran = scene.run(&["--store", store, "run", "plan.md"]).expect(5);
    let hint = ran.stderr.lines().find(|line| line.starts_with("  crewlog ")).expect("a command is named");
    let line = hint.trim().replacen("crewlog", env!("CARGO_BIN_EXE_crewlog"), 1);
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(scene.folder()).env_remove("CREWLOG_STORE").stdin(Stdio::null());
    Running::start(&mut shell).finish().expect(0);
    assert!(!scene.path("pwned").exists());
}

#[test]
fn standard_input_can_be_the_plan_but_nothing_else() {
    let scene = Scene::new();
    let with_input = |words: &[&str], text: &str| {
        let mut running = Running::start(scene.crewlog(words).stdin(Stdio::piped()));
        running.types(text);
        running.close_input();
        running.finish()
    };
    with_input(&["plan", "check", "-"], "Run `echo ok`").expect(0);
    with_input(&["run", "-", "--yes"], "Run `echo ok`").expect(0);
    with_input(&["run", "-", "--yes"], "").expect(3);
    with_input(&["run", "-"], "Run `touch ran`").expect(1).says(&["with --yes"]);
    assert!(!scene.path("ran").exists());
}

#[test]
fn a_plan_of_two_thousand_items_is_shown_and_started() {
    let scene = Scene::new();
    let items = (1..=2_000).map(|n| format!("{n}. Write page {n}\n")).collect::<String>();
    let (plan, ran) = scene.plan(&items);
    ran.expect(5).says(&["2000 tasks: 1999 planned, 1 waiting for you"]);
    assert_eq!(scene.show(&plan)["tasks"].as_array().map(Vec::len), Some(2_000));
    scene.run(&["task", "done", &format!("{plan}/1")]).expect(0);
    scene.run(&["cancel", &plan]).expect(0);
    assert_eq!(scene.show(&plan)["tasks"][1_999]["state"], "cancelled");
}

#[test]
fn a_line_of_ten_million_bytes_is_a_task_and_an_overlong_one_an_error() {
    let scene = Scene::new();
    let mut line = b"- Remember ".to_vec();
    line.resize(10_000_000, b'a');
    scene.write("long.md", &line);
    let parsed = scene.run(&["plan", "check", "long.md", "-o", "json"]).expect(0).json();
    assert_eq!(parsed["tasks"].as_array().map(Vec::len), Some(1));
    line.resize((16 << 20) + 1, b'a');
    scene.write("longer.md", &line);
    scene.run(&["run", "longer.md"]).expect(3).says(&["exceeds the limit of 16777216 bytes", "split it"]);
}

#[test]
fn endless_command_output_is_truncated_and_the_command_can_be_stopped() {
    let scene = Scene::new();
    scene.write("plan.md", "Run `yes | head -c 5000000; echo the end`");
    let plan = scene.run(&["run", "plan.md", "--yes"]).expect(0).stdout.trim().to_owned();
    let result = scene.show(&plan)["tasks"][0]["result"].as_str().expect("text").to_owned();
    assert!(
        result.len() < 70_000 && result.contains("bytes dropped") && result.ends_with("the end"),
        "{}",
        result.len()
    );
    scene.write("endless.md", "Run `yes forever`");
    scene.run(&["run", "endless.md", "--yes", "--timeout", "1s"]).expect(8);
}

#[test]
fn an_export_overwrites_nothing_and_leaves_no_partial_file() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("Run `echo ok`");
    scene.write("there.jsonl", "precious");
    scene.run(&["export", "--to", "there.jsonl"]).expect(1).says(&["there.jsonl cannot be made"]);
    assert_eq!(scene.read("there.jsonl"), "precious");
    scene.run(&["export", "nope", "--to", "nope.jsonl"]).expect(4);
    assert!(!scene.path("nope.jsonl").exists());
    scene.run(&["export", &plan, "--to", "new.jsonl"]).expect(0);
    assert_eq!(scene.read("new.jsonl"), scene.run(&["export", &plan]).expect(0).stdout);
}

#[test]
fn the_hidden_subcommand_says_that_it_is_for_workers() {
    let scene = Scene::new();
    let mut running = Running::start(scene.crewlog(&["supervise"]).stdin(Stdio::piped()));
    running.close_input();
    running.finish().expect(1).says(&["this subcommand is for workers"]);
}
