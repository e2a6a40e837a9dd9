//! Open sessions are offered the ready steps of plans.

use crewlog_planner::claim::{Ending, TaskProgress};
use crewlog_planner::crew::leases::Which;
use rustix::process::Signal;
use serde_json::json;

use super::rig::{Rig, claude, context, edit, join, with};
use crate::cli::scene::Running;
use crate::crew::team::letter;

const PLAN: &str = "1. Write the lexer\n2. Write the parser\n3. Write the tests\n";
const EXECUTOR: &str = "[executors.robot]\ncommand = ['cat']\n";

fn plan(rig: &Rig, text: &str) -> String {
    rig.0.write("p.md", text);
    rig.0.run(&["run", "p.md", "--yes", "--detach", "--quiet"]).expect(0).stdout.trim().to_owned()
}

/// A session claims the next task and ends it.
fn does_the_next(rig: &Rig, agent: &str) -> Option<String> {
    rig.with_crew(async |crew, worktree| {
        let caller = join(crew, agent, worktree).await.caller;
        let (claimed, _) = crew.next_task(&caller, None).await.unwrap();
        let id = claimed?.id;
        let done = Ending::Completed { result: "done".to_owned(), run: None };
        crew.update_task(&caller, &id, TaskProgress::default(), Some(done)).await.unwrap();
        Some(id)
    })
}

/// By plan and configuration: the step that is named, `None` for no line.
#[test]
fn a_session_is_told_of_the_steps_that_are_for_it() {
    for (text, config, sessions, offered) in [
        (PLAN, "", false, Some("1 \\\"Write the lexer\\\"")),
        ("- [ ] [P] Write the lexer\n- [ ] [P] Write the parser @ann\n", "", false, Some("2 \\\"Write the parser\\\"")),
        ("- [ ] Write the lexer @bob\n", "", false, None),
        ("1. Run `true`\n", "", false, None),
        (PLAN, EXECUTOR, false, None),
        (PLAN, EXECUTOR, true, Some("1 \\\"Write the lexer\\\"")),
        (
            PLAN,
            "[executors.robot]\ncommand = ['cat']\nkinds = ['UnitTest']\n",
            false,
            Some("1 \\\"Write the lexer\\\""),
        ),
    ] {
        let rig = Rig::new();
        rig.0.write("crewlog.toml", config);
        let plan = plan(&rig, text);
        if sessions {
            rig.0.run(&["plan", "set", &plan, "sessions=true"]).expect(0);
        }
        let line = |said: &str| said.split("crewlog: ready for you: ").nth(1).map(str::to_owned);
        for event in ["SessionStart", "UserPromptSubmit"] {
            let said = rig.asks("ann", event);
            let found = line(&said);
            match offered {
                None => assert_eq!(found, None, "{text} {config} {event}"),
                Some(step) => {
                    let found = found.unwrap_or_else(|| panic!("{text} {config} {event}: {said}"));
                    assert!(found.contains(&format!("{plan}/{step}")), "{text} {config} {event}: {found}");
                    assert!(found.contains("; next_task claims the first."), "{found}");
                }
            }
        }
    }
}

#[test]
fn the_end_of_a_turn_offers_each_next_step_once_to_a_session_that_works_on_the_plan() {
    let rig = Rig::new();
    let plan = plan(&rig, PLAN);
    assert!(context(&rig.asks("ann", "SessionStart")).contains("ready for you"));
    assert_eq!(rig.asks("ann", "Stop"), "", "it has taken no step");
    assert_eq!(does_the_next(&rig, "ann"), Some(format!("{plan}/1")));
    let offered = rig.asks("ann", "Stop");
    let expected = format!(
        "crewlog: ready for you: {plan}/2 \\\"Write the parser\\\"; next_task claims the first. Or end your turn"
    );
    assert!(offered.starts_with("{\"decision\":\"block\"") && offered.contains(&expected), "{offered}");
    let again = with(claude(rig.0.folder(), "Stop"), json!({ "stop_hook_active": true }));
    assert_eq!(rig.hook("ann", &again), "", "in the same turn");
    assert_eq!(rig.asks("ann", "Stop"), "", "in a later one");
    assert_eq!(does_the_next(&rig, "bob"), Some(format!("{plan}/2")));
    assert!(rig.asks("ann", "Stop").contains(&format!("{plan}/3")), "another step is offered");
    assert_eq!(does_the_next(&rig, "bob"), Some(format!("{plan}/3")));
    assert_eq!((rig.asks("ann", "Stop"), rig.asks("bob", "Stop")), (String::new(), String::new()));
}

/// Only a person gives a plan to sessions, by an order of its own: a file may be anybody's.
#[test]
fn neither_an_agent_nor_a_file_gives_a_plan_to_sessions() {
    let rig = Rig::new();
    let plan = plan(&rig, PLAN);
    rig.0.write("given.md", format!("---\ncrewlog: sessions=true\n---\n{PLAN}"));
    for words in [
        &["plan", "set", &plan, "sessions=true"] as &[&str],
        &["run", "p.md", "--set", "sessions=true", "--yes", "--detach"],
    ] {
        let ran = Running::start(rig.command(rig.0.folder(), words).env("AGENT_ID", "ann")).finish().expect(11);
        assert!(ran.stderr.contains("an agent may not give plans to sessions"), "{}", ran.stderr);
    }
    let refused = "sessions is not set in a file: a person gives a plan to sessions";
    assert!(rig.0.run(&["run", "given.md", "--yes"]).expect(3).stderr.contains(refused));
    rig.0.write("crewlog.toml", "[plan]\nsessions = true\n");
    assert!(rig.0.run(&["run", "p.md", "--yes"]).expect(1).stderr.contains(refused));
}

/// By the assignee: whether a run on a terminal stays for the open session.
#[test]
fn a_run_on_a_terminal_stays_only_for_steps_that_an_open_session_may_take() {
    for (text, stays) in [("- [ ] Write the lexer @zed\n", false), ("- [ ] Write the lexer @Ann\n", true)] {
        let rig = Rig::new();
        open(&rig, "ann");
        rig.0.write("p.md", text);
        let mut running = Running::start_on_terminal(&mut rig.command(rig.0.folder(), &["run", "p.md", "--yes"]));
        if stays {
            running.stderr.until("1 step is for 1 open session: ann (");
            running.signal(Signal::INT);
        }
        running.finish().expect(if stays { 130 } else { 5 });
    }
    let rig = Rig::new();
    open(&rig, "ann");
    rig.0.write("p.md", "- [ ] Write the lexer\n");
    let mut by_itself = rig.command(rig.0.folder(), &["run", "p.md", "--yes"]);
    Running::start_on_terminal(by_itself.env("AGENT_ID", "ann")).finish().expect(5);
}

/// A step whose files others lease is not offered, and the offer of it is not used up.
#[test]
fn a_step_is_offered_once_its_files_are_free() {
    let rig = Rig::new();
    let plan = plan(&rig, "1. Write the lexer\n2. Write the parser (files: src/a.txt)\n");
    rig.asks("ann", "SessionStart");
    assert_eq!(does_the_next(&rig, "ann"), Some(format!("{plan}/1")));
    rig.reserves("bob", "src/**", "");
    assert_eq!((rig.asks("ann", "Stop"), rig.asks("ann", "UserPromptSubmit")), (String::new(), String::new()));
    rig.with_crew(async |crew, worktree| {
        let bob = join(crew, "bob", worktree).await.caller;
        crew.release(&bob, Which::All).await.unwrap();
    });
    assert!(rig.asks("ann", "Stop").contains(&format!("{plan}/2")));
}

/// By the sender: whether the end of a turn is refused, once.
#[test]
fn the_end_of_a_turn_is_refused_once_for_new_messages_of_people() {
    let rig = Rig::new();
    rig.asks("ann", "SessionStart");
    rig.with_crew(async |crew, _| drop(crew.deliver(letter("bob", "ann", "agent")).await.unwrap()));
    assert_eq!(rig.asks("ann", "Stop"), "", "agents could answer each other without end");
    rig.0.run(&["send", "ann", "--subject", "Freeze", "--body", "now"]).expect(0);
    assert_eq!(
        rig.asks("ann", "Stop"),
        "{\"decision\":\"block\",\"reason\":\"crewlog: 2 unread messages; read_inbox shows them.\"}"
    );
    assert_eq!(rig.asks("ann", "Stop"), "");
}

#[test]
fn a_session_with_a_task_and_a_subagent_are_offered_nothing() {
    let rig = Rig::new();
    plan(&rig, "- [ ] [P] Write the lexer\n- [ ] [P] Write the parser\n");
    rig.asks("ann", "SessionStart");
    let below = json!({ "agent_id": "a1b2", "agent_type": "Explore" });
    rig.hook("ann", &with(edit("claude", rig.0.folder(), "a.txt"), below));
    rig.with_crew(async |crew, worktree| {
        assert!(crew.agents().await.unwrap().get("ann/explore-a1b2").is_some());
        assert_eq!(crew.offers("ann/explore-a1b2", false).await.unwrap(), []);
        let caller = join(crew, "ann", worktree).await.caller;
        assert!(crew.next_task(&caller, None).await.unwrap().0.is_some());
    });
    assert_eq!(rig.asks("ann", "UserPromptSubmit"), "");
    assert!(rig.asks("bob", "SessionStart").contains("Write the parser"));
}

/// A session that has joined, as a person opens it.
fn open(rig: &Rig, agent: &str) {
    rig.with_crew(async |crew, worktree| drop(join(crew, agent, worktree).await));
}

#[test]
fn a_run_on_a_terminal_stays_while_sessions_take_its_steps_and_shows_who_does_which() {
    let rig = Rig::new();
    open(&rig, "ann");
    rig.0.write("p.md", "1. Write the lexer\n2. Write the parser\n");
    let mut running = Running::start_on_terminal(&mut rig.command(rig.0.folder(), &["run", "p.md", "--yes"]));
    running.stderr.until("1 step is for 1 open session: ann (");
    open(&rig, "bob");
    running.stderr.until("1 step is for 2 open sessions: ann (");
    assert!(does_the_next(&rig, "ann").is_some());
    running.stderr.until("Write the lexer (ann)");
    assert!(does_the_next(&rig, "bob").is_some());
    running.stderr.until("Write the parser (bob)");
    running.finish().expect(0);
}

#[test]
fn a_run_that_nobody_watches_says_who_could_go_on() {
    let rig = Rig::new();
    rig.0.write("p.md", "- [ ] [P] Write the lexer\n- [ ] [P] Write the parser\n");
    let alone = rig.0.run(&["run", "p.md", "--yes"]).expect(5).stderr;
    assert!(!alone.contains("open session"), "{alone}");
    open(&rig, "ann");
    let ran = rig.0.run(&["resume", "p", "--yes"]).expect(5).stderr;
    assert!(ran.contains("2 steps are for 1 open session: ann ("), "{ran}");
    let mut worker = rig.0.start(&["work"]);
    worker.stderr.until("1 open session: ann (");
    worker.signal(Signal::TERM);
    worker.finish().expect(130);
}

#[test]
fn a_person_is_asked_once_whether_sessions_get_the_steps_of_executors() {
    for (answer, is_given) in [("y", true), ("", false)] {
        let rig = Rig::new();
        rig.0.write("crewlog.toml", EXECUTOR);
        rig.0.write("p.md", "1. Write the lexer\n");
        let run = |rig: &Rig| Running::start_on_terminal(&mut rig.command(rig.0.folder(), &["run", "p.md"]));
        open(&rig, "ann");
        let mut running = run(&rig);
        running.stderr.until("Run them? [y/N]");
        running.types("y");
        running.stderr.until("offer them the 1 step of configured executors too? [y/N]");
        running.types(answer);
        running.finish().expect(0);
        let made = rig.0.events_of_type("TasksPlanned").remove(0);
        assert_eq!(made["config"]["sessions"] == true, is_given, "{made}");
    }
}
