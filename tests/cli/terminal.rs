//! With a terminal: consent and questions are asked in place, and only there.

use super::scene::{Gate, Running, Scene};

#[test]
fn commands_are_shown_and_confirmed_once() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Run `touch ran`\n2. Run `touch ran-too`\n");
    for (answer, code) in [("n", 1), ("", 1), ("yes please", 1), ("y", 0)] {
        let mut running = Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md"]));
        running.stderr.until("2  touch ran-too");
        running.stderr.until("Run them? [y/N]");
        assert!(!scene.path("ran").exists(), "nothing runs unasked");
        running.types(answer);
        let ran = running.finish().expect(code);
        assert_eq!(ran.stderr.contains("\nnothing was run"), code == 1, "{}", ran.stderr);
        assert_eq!(scene.path("ran-too").exists(), code == 0, "{answer:?}");
    }
    assert_eq!(scene.events_of_type("TasksPlanned").len(), 1, "what is refused leaves no plan");
}

#[test]
fn an_empty_list_says_so_to_people_with_and_without_a_terminal() {
    let scene = Scene::with_repository();
    scene.run(&["init", "--no-hosts"]).expect(0);
    for (command, says) in [
        (&["inbox"] as &[&str], "nothing waits for you"),
        (&["status"], "nothing waits for you"),
        (&["agents"], "no agents are here"),
        (&["leases"], "no agent has a lease"),
        (&["leases", "--conflicts"], "there are no conflicts"),
        (&["ls"], "there is no plan yet"),
        (&["stats"], "there is no project with plans yet"),
        (&["groups", "ls"], "there are no groups"),
        (&["serve", "tokens"], "there are no tokens"),
    ] {
        let mut running = Running::start_on_terminal(&mut scene.crewlog(command));
        running.stderr.until(says);
        running.finish().expect(0);
        let ran = scene.run(command).expect(0);
        assert!(ran.stdout.is_empty() && ran.stderr.starts_with(says), "{command:?}: {ran:?}");
        for quiet in [&["-q"] as &[&str], &["-o", "json"], &["-o", "jsonl"]] {
            assert_eq!(scene.run(&[command, quiet].concat()).expect(0).stderr, "", "{command:?} {quiet:?}");
        }
    }
}

#[test]
fn questions_are_asked_on_the_terminal_once_each() {
    let scene = Scene::new();
    let text = "1. Which colour is it?\n2. Which size is it?\n3. Run `echo \"$CREWLOG_ANSWER_1, $CREWLOG_ANSWER_2\"`\n   - depends on: 1, 2\n";
    scene.write("plan.md", text);
    let mut running = Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md", "--yes"]));
    running.stderr.until("q1 Which colour is it");
    running.stderr.until("> ");
    running.types("blue");
    running.stderr.until("q2 Which size is it");
    running.stderr.until("> ");
    running.types("large");
    let ran = running.finish().expect(0);
    assert!(!ran.stderr.contains("q1 Which") && !ran.stderr.contains("q2 Which"), "asked again:\n{}", ran.stderr);
    let plan = ran.stdout.trim();
    assert_eq!(scene.show(plan)["tasks"][2]["result"], "blue, large");
}

#[test]
fn a_question_answered_elsewhere_is_dropped_and_input_goes_to_the_next_one() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Which colour is it?\n2. Which size is it?\n");
    let mut running = Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md", "--yes"]));
    running.stdout.until("\n");
    running.stderr.until("q1 Which colour is it");
    let plan =
        scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    running.stderr.until("q2 Which size is it");
    running.stderr.until("> ");
    running.types("large");
    running.finish().expect(0);
    assert_eq!(scene.show(&plan)["questions"][1]["answer"], "large");
}

#[test]
fn an_invalid_answer_is_requested_again() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Run `exit 3`\n2. Run `echo second`\n");
    let mut running =
        Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md", "--yes", "--set", "on-failure=ask"]));
    running.stderr.until("q1 Task 1 failed");
    running.stderr.until("> ");
    running.types("perhaps");
    running.stderr.until("accepts only these answers: retry, done, skip, continue, stop");
    running.stderr.until("q1 Task 1 failed");
    running.stderr.until("> ");
    running.types("continue");
    let ran = running.finish().expect(100);
    let shown = scene.show(ran.stdout.trim());
    assert_eq!((&shown["tasks"][0]["state"], &shown["tasks"][1]["state"]), (&"failed".into(), &"done".into()));
}

#[test]
fn a_second_empty_answer_leaves_the_question_open_and_the_run_continues() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    let go = super::scene::named_pipe(&scene, "go");
    let wait = format!("{}; read line < go; echo waited", Gate::pass("gate"));
    scene.write("plan.md", format!("- [P] Which colour is it?\n- [P] Run `{wait}`\n"));
    let mut running = Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md", "--yes"]));
    running.stderr.until("q1 Which colour is it");
    running.stderr.until("> ");
    gate.wait();
    running.types("");
    running.stderr.until("no answer was typed (Enter again: answer later; Ctrl-C: stop the run)");
    running.stderr.until("q1 Which colour is it");
    running.stderr.until("> ");
    running.types("");
    running.stderr.until("q1 stays open; to answer it later: crewlog answer ");
    running.stdout.until("\n");
    let plan =
        scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    std::fs::write(go, "go\n").expect("the command reads it");
    running.finish().expect(5).says(&[&format!("crewlog answer {plan}/q1")]);
    let shown = scene.show(&plan);
    assert_eq!(
        (&shown["tasks"][1]["result"], &shown["questions"][0]["answer"]),
        (&"waited".into(), &serde_json::Value::Null)
    );
    assert_eq!(scene.events_of_type("TaskReleased").len(), 0, "the command was not stopped");
}

#[test]
fn a_question_with_a_default_says_when_it_applies() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Which licence? (default: MIT after 3h)\n");
    let mut running = Running::start_on_terminal(scene.crewlog(&["run", "plan.md", "--yes"]).env("TZ", "UTC0"));
    running.stderr.until("q1 Which licence? (waits ");
    running.stderr.until(" for an answer, then MIT)");
    running.stderr.until("> ");
    running.types("BSD");
    running.finish().expect(0);
    // Without a terminal a run says it before it waits.
    let mut running = scene.start(&["run", "plan.md", "--yes"]);
    running.stderr.until("q1: Which licence? (waits until ");
    running.stderr.until(" for an answer, then MIT)");
    running.signal(rustix::process::Signal::INT);
    running.finish().expect(130);
}

#[test]
fn no_input_asks_nothing_even_on_a_terminal() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Which colour is it?\n2. Run `echo second`\n");
    Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md", "--no-input"])).finish().expect(1);
    let ran = Running::start_on_terminal(&mut scene.crewlog(&["run", "plan.md", "--no-input", "--yes"])).finish();
    ran.expect(5).says(&["crewlog answer"]);
}

#[test]
fn colours_are_used_on_terminals_or_on_request() {
    let scene = Scene::new();
    scene.write("plan.md", "Run `echo ok`");
    let shows_colour = |words: &[&str], env: Option<&str>| {
        let mut command = scene.crewlog(words);
        command.envs(env.map(|name| (name, "1"))).env("CI", "1");
        Running::start_on_terminal(&mut command).finish().expect(0).stderr.contains("\u{1b}[32m")
    };
    let run = &["run", "plan.md", "--yes"] as &[&str];
    assert!(shows_colour(run, None));
    assert!(!shows_colour(run, Some("NO_COLOR")));
    assert!(!shows_colour(&["run", "plan.md", "--yes", "--color", "never"], None));
    assert!(!scene.run(run).expect(0).stderr.contains('\u{1b}'));
    assert!(scene.run(&["run", "plan.md", "--yes", "--color", "always"]).expect(0).stderr.contains("\u{1b}[32m"));
}
