//! The help of every command, and completion in a shell.

use std::fs;
use std::process::Command;

use super::scene::{Running, Scene};

const HEADINGS: [(&str, [&str; 10]); 3] = [
    ("Plans:", ["run", "work", "ls", "show", "resume", "pause", "cancel", "retry", "plan", "task"]),
    ("Crew:", ["init", "doctor", "inbox", "answer", "send", "agents", "leases", "why", "top", "serve"]),
    ("Log:", ["events", "replay", "diff", "fork", "stats", "export", "import", "db", "keys", "demo"]),
];
const HIDDEN: [&[&str]; 8] = [
    &["mcp"],
    &["hook"],
    &["supervise"],
    &["groups"],
    &["completions"],
    &["plan", "propose"],
    &["plan", "draft"],
    &["plan", "schema"],
];

fn help(scene: &Scene, words: &[&str], option: &str) -> String {
    scene.run(&[words, &[option]].concat()).expect(0).stdout
}

/// The first words of the lines below a heading.
fn listed<'a>(help: &'a str, heading: &str) -> Vec<&'a str> {
    let below = help.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| line.starts_with("  "));
    below.filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn the_help_lists_the_commands_under_three_headings_and_options_last() {
    let scene = Scene::new();
    for option in ["-h", "--help"] {
        let shown = help(&scene, &[], option);
        for (heading, commands) in HEADINGS {
            assert_eq!(listed(&shown, heading), commands, "{shown}");
        }
        let headings = shown.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect::<Vec<_>>();
        assert_eq!(headings, ["Plans:", "Crew:", "Log:", "Global options:"], "{shown}");
    }
    assert!(help(&scene, &[], "--help").contains("Exit codes: 0 done"));
    for words in HIDDEN {
        let (word, above) = words.split_last().expect("a word");
        assert!(!help(&scene, above, "-h").lines().any(|line| line.trim().starts_with(word)), "{word}");
    }
}

#[test]
fn the_short_help_of_every_command_fits_on_40_lines() {
    let scene = Scene::new();
    let mut left = vec![Vec::<String>::new()];
    left.extend(HEADINGS.iter().flat_map(|(_, commands)| commands).map(|command| vec![(*command).to_owned()]));
    left.extend(HIDDEN.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()));
    let mut n_seen = 0;
    while let Some(words) = left.pop() {
        let typed = words.iter().map(String::as_str).collect::<Vec<_>>();
        let shown = help(&scene, &typed, "-h");
        let n_lines = shown.lines().map(|line| line.chars().count().div_ceil(100).max(1)).sum::<usize>();
        assert!(n_lines <= 40, "{typed:?} has {n_lines} lines:\n{shown}");
        let last = shown.lines().rfind(|line| line.ends_with(':') && !line.starts_with(' '));
        assert_eq!(last, Some("Global options:"), "{typed:?}:\n{shown}");
        assert!(help(&scene, &typed, "--help").len() > shown.len(), "{typed:?}");
        let below = listed(&shown, "Commands:").into_iter().map(str::to_owned);
        left.extend(below.map(|below| [&words[..], &[below]].concat()));
        n_seen += 1;
    }
    assert!(n_seen > 60, "{n_seen}");
}

/// The candidates in bash for the last of the typed words.
fn completed(scene: &Scene, words: &[&str]) -> Vec<String> {
    let index = words.len().to_string();
    let mut command = scene.crewlog(&[&["--", "crewlog"], words].concat());
    let ran =
        Running::start(command.env("CREWLOG_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", index)).finish().expect(0);
    assert_eq!(ran.stderr, "");
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_plans_tasks_questions_and_keys() {
    let scene = Scene::new();
    let (one, _) = scene.plan("# Ship\n- [ ] T001 Which colour is it?\n- [ ] T002 Paint it\n");
    let (other, _) = scene.plan("# Sell\n- Paint it\n");
    assert_eq!(completed(&scene, &["show", "ship"]), [one.as_str()]);
    assert_eq!(completed(&scene, &["resume", "s"]), [other.as_str(), &one]);
    assert_eq!(completed(&scene, &["fork", &one[2..]]), [one.as_str()], "a part of an id is enough");
    for command in [&["pause"] as &[&str], &["task", "done"], &["task", "skip", "sell/1"]] {
        let tasks = ["T001", "T002"].map(|task| format!("{one}/{task}"));
        assert_eq!(completed(&scene, &[command, &[&format!("{one}/")]].concat()), tasks);
    }
    assert_eq!(completed(&scene, &["answer", "ship/"]), ["ship/q1"]);
    assert_eq!(completed(&scene, &["task", "withdraw", "ship/q"]), ["ship/q1"]);
    assert_eq!(
        completed(&scene, &["plan", "set", "ship", "budget."]),
        ["budget.tokens=", "budget.cost=", "budget.time="]
    );
    assert_eq!(completed(&scene, &["task", "edit", "ship/T001", "prio"]), ["priority="]);
    assert_eq!(completed(&scene, &["task", "wi"]), ["withdraw"]);
    scene.write("plan.md", "- Paint it\n");
    let files = completed(&scene, &["run", ""]);
    assert!(files.contains(&"plan.md".to_owned()) && !files.iter().any(|file| file.starts_with('-')), "{files:?}");
    assert_eq!(completed(&scene, &["run", "--det"]), ["--detach"]);
    assert_eq!(completed(&scene, &["show", "nothing/"]), [""; 0]);
}

#[test]
fn help_of_a_command_and_hints_of_arguments() {
    let scene = Scene::new();
    let help = scene.run(&["help", "plan", "set"]).expect(0).stdout;
    assert_eq!(help, scene.run(&["plan", "set", "--help"]).expect(0).stdout);
    assert!(scene.run(&["diff", "-h"]).expect(0).stdout.contains("<BEFORE> <AFTER>"));
    let global = scene.run(&["--help"]).expect(0).stdout;
    assert!(global.contains("[env: CREWLOG_CONFIG]"), "{global}");
    scene.run(&["serve", "--listen", "8888"]).expect(2).says(&["write 127.0.0.1:8888"]);
}

#[test]
fn a_variable_of_completion_alone_replaces_no_command() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("- Paint it\n");
    for (name, value) in [("COMPLETE", "1"), ("CREWLOG_COMPLETE", "1"), ("CREWLOG_COMPLETE", "bash")] {
        let listed = Running::start(scene.crewlog(&["ls"]).env(name, value)).finish().expect(0);
        assert!(listed.stdout.contains(&plan), "{name}={value}: {}", listed.stdout);
    }
}

#[test]
fn completion_makes_no_log_and_says_no_error() {
    let scene = Scene::new();
    assert!(completed(&scene, &["show", "s"]).is_empty());
    assert!(!scene.path(".crewlog").exists());
    scene.write("broken.db", "this is no log");
    assert!(completed(&scene, &["--store", "broken.db", "show", "s"]).is_empty());
    assert!(completed(&scene, &["--store", "postgres://127.0.0.1:1/none", "show", "s"]).is_empty());
    let (plan, _) = scene.plan("- Paint it\n");
    fs::rename(scene.path(".crewlog/log.db"), scene.path("moved.db")).expect("it is there");
    assert_eq!(completed(&scene, &["--store", "moved.db", "show", "p"]), [plan.as_str()]);
    assert_eq!(completed(&scene, &["--store=moved.db", "show", "p"]), [plan.as_str()]);
}

#[test]
fn the_script_of_each_shell_registers_the_program() {
    let scene = Scene::new();
    for (shell, registers) in
        [("bash", "complete -o nospace"), ("zsh", "#compdef crewlog"), ("fish", "--command crewlog")]
    {
        let script = scene.run(&["completions", shell]).expect(0).stdout.replace('"', "");
        assert!(script.contains(registers) && script.contains(&format!("CREWLOG_COMPLETE={shell}")), "{script}");
    }
    let bash = scene.run(&["completions", "bash"]).expect(0).stdout;
    scene.write("crewlog.bash", bash);
    let checked = Command::new("bash").arg("-n").arg(scene.path("crewlog.bash")).status().expect("bash runs");
    assert!(checked.success());
    scene.run(&["completions", "tcsh"]).expect(2);
}
