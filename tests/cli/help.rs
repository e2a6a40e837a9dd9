//! The help of every command, and completion in a shell.

use std::fs;
use std::process::Command;

use super::scene::{Running, Scene};

const HEADINGS: [(&str, &[&str]); 3] = [
    ("Plans:", &["run", "work", "ls", "show", "logs", "resume", "pause", "cancel", "retry", "plan", "task"]),
    (
        "Crew:",
        &["init", "doctor", "inbox", "agree", "answer", "send", "agents", "lease", "leases", "why", "top", "serve"],
    ),
    ("Log:", &["events", "replay", "diff", "fork", "stats", "export", "keys"]),
];
const HIDDEN: [&[&str]; 8] = [
    &["brief"],
    &["status"],
    &["hook"],
    &["supervise"],
    &["groups"],
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
    assert!(help(&scene, &[], "-h").contains("\nAlso: mcp serves one agent by MCP, completions prints "));
    for words in HIDDEN {
        let (word, above) = words.split_last().expect("a word");
        assert!(!help(&scene, above, "-h").lines().any(|line| line.trim().starts_with(word)), "{word}");
    }
}

#[test]
fn the_short_help_of_every_command_fits_on_40_lines() {
    let scene = Scene::new();
    let mut left = vec![Vec::<String>::new()];
    left.extend(HEADINGS.iter().flat_map(|(_, commands)| *commands).map(|command| vec![(*command).to_owned()]));
    left.extend(["mcp", "completions", "demo", "db", "import", "blame"].map(|command| vec![command.to_owned()]));
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

#[test]
fn what_users_of_git_gh_and_kubectl_type_is_understood() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Run `echo one`\n2. Run `echo two`\n");
    for (typed, meant) in [
        (&["list"] as &[&str], &["ls"] as &[&str]),
        (&["log", &plan], &["events", &plan]),
        (&["task", "ls"], &["show"]),
        (&["task", "list", &plan], &["show", &plan]),
        (&["plan", "ls"], &["ls"]),
        (&["plan", "list"], &["ls"]),
        (&["plan", "show", &plan], &["show", &plan]),
        (&["messages"], &["inbox"]),
        (&["tokens"], &["serve", "tokens"]),
        (&["conflicts", "--all"], &["leases", "--conflicts", "--all"]),
        (&["checkpoint", &plan], &["plan", "checkpoint", &plan]),
        (&["completion", "bash"], &["completions", "bash"]),
        (&["version"], &["--version"]),
    ] {
        // Also after options.
        for first in [&["-o", "json"] as &[&str], &["--store", ".crewlog/log.db", "-o", "json"]] {
            let [typed, meant] = [typed, meant].map(|words| scene.run(&[first, words].concat()).expect(0).stdout);
            assert_eq!(typed, meant);
        }
    }
    for (typed, unknown) in [(&["db", "list"] as &[&str], "list"), (&["task", "log"], "log"), (&["rm"], "rm")] {
        scene.run(typed).expect(2).says(&[&format!("unrecognized subcommand '{unknown}'")]);
    }
}

#[test]
fn events_are_limited_to_the_last_ones() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Run `echo one`\n2. Run `echo two`\n");
    scene.plan("1. Run `echo three`\n").1.expect(0);
    let lines = |words: &[&str]| {
        let ran = scene.run(&[&["events", "-o", "jsonl"], words].concat());
        ran.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for filter in [&[] as &[&str], &[&plan], &["--stream", "task"], &["--up-to", "9"], &["--after", "8"]] {
        let all = lines(filter);
        for n in [1, 3, 500] {
            let typed = n.to_string();
            let last = all[all.len() - n.min(all.len())..].to_vec();
            assert_eq!(lines(&[filter, &["-n", &typed]].concat()), last, "{filter:?} {n}");
            let reversed = lines(&[filter, &["--last", &typed, "--reverse"]].concat());
            assert_eq!(reversed.into_iter().rev().collect::<Vec<_>>(), last, "{filter:?} {n}");
        }
    }
    let all = lines(&[]);
    let mut follow = scene.start(&["events", "-o", "jsonl", "-f", "-n", "2"]);
    follow.stdout.until_it(|output| output.contains(&all[all.len() - 1]));
    assert_eq!(follow.stdout.text().lines().collect::<Vec<_>>(), all[all.len() - 2..]);
    follow.signal(rustix::process::Signal::INT);
    follow.finish().expect(130);
    scene.run(&["events", "-n", "0"]).expect(2);
}

#[test]
fn a_status_shows_the_plans_and_what_waits() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("# Ship\n1. Run `echo one`\n2. Which colour is it?\n");
    let ran = scene.run(&["status"]).expect(0);
    let shown = ran.stdout.lines().collect::<Vec<_>>();
    assert!(
        shown[0].starts_with(&format!("{plan}  waiting for you    1/2  ")) && shown[0].ends_with("  Ship"),
        "{shown:?}"
    );
    assert!(shown[1].starts_with(&format!("{plan}/q1  question  {plan}  ")), "{shown:?}");
    let json = scene.run(&["status", "-o", "json"]).expect(0).json();
    assert_eq!((&json["plans"][0]["plan"], &json["items"][0]["kind"]), (&plan.into(), &"question".into()));
}

#[test]
fn crewlog_alone_says_what_waits_and_what_happened_since_the_last_look() {
    let scene = Scene::new();
    scene.run(&[]).expect(0).says(&[]);
    assert!(scene.run(&[]).stdout.starts_with("no log here yet\n"));
    let (plan, _) = scene.plan("# Ship\n1. Run `echo one`\n2. Which colour is it?\n3. Run `exit 3`\n");
    let n_events = scene.events().len();
    let first = scene.run(&[]).expect(0).stdout;
    let answer = format!("crewlog answer {plan}/q1 \"...\"\n");
    assert!(
        first.contains(&answer) && first.lines().last().is_some_and(|last| last.ends_with(": 1 task done")),
        "{first}"
    );
    let second = scene.run(&[]).expect(0).stdout;
    assert!(second.contains(&answer) && second.ends_with("nothing has ended since you last looked\n"), "{second}");
    assert_eq!(scene.events().len(), n_events, "looking appends nothing");
    scene.run(&["answer", &plan, "red"]).expect(0);
    scene.run(&["resume", &plan, "--yes"]).expect(100);
    let third = scene.run(&[]).expect(0).stdout;
    assert!(
        third.starts_with("nothing waits for you\nsince ")
            && third.contains("1 task done, 1 task failed, 1 plan failed"),
        "{third}"
    );
}

#[test]
fn a_port_alone_is_an_address_to_serve_on() {
    let scene = Scene::new();
    scene.run(&["init", "--no-hosts"]).expect(0);
    let mut serving = scene.start(&["serve", "--port", "0"]);
    serving.stdout.until("http://127.0.0.1:");
    serving.signal(rustix::process::Signal::TERM);
    serving.finish().expect(0);
    for (listen, says) in [("localhost:8080", "write 127.0.0.1:8080"), ("here", "write 127.0.0.1:7777")] {
        scene.run(&["serve", "--listen", listen]).expect(2).says(&[says]);
    }
}
