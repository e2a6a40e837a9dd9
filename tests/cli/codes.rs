//! Every exit code that a command returns, with its message.

use super::scene::{Gate, Scene, named_pipe};

#[test]
fn a_completed_plan_exits_with_0_and_prints_only_its_id() {
    let scene = Scene::new();
    scene.write("plan.md", "# Ship it\n1. Run `echo built`\n2. Run `echo packed`\n");
    let ran = scene.run(&["run", "plan.md", "--yes"]).expect(0);
    let plan = ran.stdout.trim();
    assert!(plan.starts_with("ship-it-") && ran.stdout == format!("{plan}\n"), "{}", ran.stdout);
    ran.says(&["2 tasks, 2 with a command", "  1  echo built\n  2  echo packed\n", "2 tasks: 2 done"]);
    let lines = ran.stderr.lines().filter(|line| line.contains("START") || line.contains("DONE"));
    let columns = lines.map(|line| line.find(']')).collect::<Vec<_>>();
    assert_eq!(columns, [Some(19); 4], "{}", ran.stderr);
    scene.run(&["resume", plan]).expect(0);
}

#[test]
fn quiet_prints_only_the_id() {
    let scene = Scene::new();
    scene.write("plan.md", "Run `echo built`");
    let ran = scene.run(&["run", "plan.md", "--yes", "-q"]).expect(0);
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""));
}

#[test]
fn an_error_the_user_can_fix_exits_with_1() {
    let scene = Scene::new();
    scene.write("plan.md", "Run `touch ran`");
    scene.run(&["run", "nowhere.md"]).expect(1).says(&["nowhere.md cannot be read", "hint: "]);
    scene.run(&["ls"]).expect(1).says(&["there is no log at", "crewlog init"]);
    let ran = scene.run(&["run", "plan.md"]).expect(1);
    ran.says(&["  1  touch ran", "nothing was run", "with --yes"]);
    assert!(!scene.path("ran").exists() && !scene.path(".crewlog").exists(), "nothing is half done");
}

#[test]
fn a_usage_error_exits_with_2() {
    let scene = Scene::new();
    for words in [
        &["run"] as &[&str],
        &["nonsense"],
        &["show", "p", "--at", "0"],
        &["run", "plan.md", "--jobs", "0"],
        &["run", "plan.md", "--timeout", "0s"],
        &["run", "plan.md", "--set", "order=sideways"],
        &["ls", "-o", "xml"],
    ] {
        let ran = scene.run(words).expect(2);
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{words:?}: {ran:?}");
    }
    assert!(scene.run(&["--help"]).expect(0).stdout.contains("Exit codes: 0 done"));
    assert!(scene.run(&["--version"]).expect(0).stdout.starts_with("crewlog "));
}

#[test]
fn a_plan_keeps_the_token_budget_it_was_given() {
    let scene = Scene::new();
    scene.write("plan.md", "Run `echo ok`\n");
    scene.run(&["run", "plan.md", "--yes", "--set", "prompt.tokens=300"]).expect(0);
    scene.run(&["run", "plan.md", "--yes"]).expect(0);
    let planned = scene.events_of_type("TasksPlanned");
    let budgets = planned.iter().map(|event| &event["config"]["token_budget"]).collect::<Vec<_>>();
    assert_eq!(budgets, [300, 8_000]);
}

#[test]
fn an_invalid_plan_exits_with_3_and_creates_no_log() {
    let scene = Scene::new();
    scene.write("empty.md", "");
    scene.write("blank.md", " \n\t\n");
    scene.write("circle.md", "- A: Run `echo ok` (depends on B)\n- B: Run `echo ok` (depends on A)\n");
    scene.write("unknown.md", "1. Run `echo ok`\n   - depends on: 77\n");
    scene.write("binary.md", b"1. Run `echo ok`\n\xff\xfe\x00\x01");
    for (file, says) in [
        ("empty.md", "the plan has no tasks"),
        ("blank.md", "the plan has no tasks"),
        ("circle.md", "A -> B -> A (line 1, column 1)"),
        ("unknown.md", "no task is called 77 (line 2"),
        ("binary.md", "byte 17, in line 2, is not UTF-8"),
    ] {
        for words in [&["plan", "check", file] as &[&str], &["run", file, "--yes"]] {
            let ran = scene.run(words).expect(3);
            ran.says(&[says]);
            assert!(ran.stdout.is_empty(), "{words:?}: {ran:?}");
        }
    }
    assert!(!scene.path(".crewlog").exists(), "no plan, no log");
}

#[test]
fn a_reference_without_a_match_exits_with_4() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Run `echo ok`\n2. Which one is it?\n");
    let resume_hint = format!("the newest are {plan}");
    for words in [&["show", "nope"] as &[&str], &["events", ""], &["resume", "nope"], &["events", "nope"]] {
        scene.run(words).expect(4).says(&["in its id", &resume_hint]);
    }
    scene
        .run(&["task", "done", &format!("{plan}/9")])
        .expect(4)
        .says(&["has no task \"9\"", &format!("crewlog show {plan}")]);
    scene.run(&["cancel", &format!("{plan}/9")]).expect(4);
    scene.run(&["answer", &format!("{plan}/q7"), "x"]).expect(4).says(&["has no question \"q7\""]);
    scene.run(&["events", "--type", "Nonsense"]).expect(4);
    scene.run(&["events", "--after", "1000"]).expect(4);
    assert_eq!(
        scene.run(&["events", "--after", "1000", "-o", "json"]).expect(4).json()["events"].as_array().map(Vec::len),
        Some(0)
    );
    let (other, _) = scene.plan("Run `echo ok`");
    scene.run(&["show", &other, "--at", "1"]).expect(4).says(&["did not exist yet at position 1"]);
    let common = &plan[..3];
    assert!(other.starts_with(common), "both are named after the file");
    scene.run(&["cancel", &plan]).expect(0);
    scene.run(&["show", common]).expect(4).says(&[
        "several plans fit ",
        &format!("crewlog show {plan}"),
        &format!("crewlog show {other}"),
    ]);
}

#[test]
fn a_plan_that_needs_a_person_exits_with_5_and_names_the_command() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Which colour is it?\n2. Paint the wall\n3. Run `echo dry`\n");
    ran.expect(5).says(&[&format!("crewlog answer {plan}/q1"), &format!("crewlog resume {plan}")]);
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    let ran = scene.run(&["resume", &plan]).expect(5);
    ran.says(&["[executors.claude]\n    command = [\"claude\", \"-p\"]", "crewlog.toml"]);
    ran.says(&["task 2 waits for you", &format!("crewlog task done {plan}/2"), &format!("crewlog task fail {plan}/2")]);
    scene.run(&["task", "done", &format!("{plan}/2"), "it is blue now"]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
    let shown = scene.show(&plan);
    let results = shown["tasks"].as_array().expect("tasks").iter().map(|task| task["result"].clone());
    assert_eq!(results.collect::<Vec<_>>(), ["blue", "it is blue now", "dry"]);
}

#[test]
fn a_paused_plan_exits_with_6_and_resume_continues_it() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    let wait = format!("{}; read line < go", Gate::pass("gate"));
    let go = named_pipe(&scene, "go");
    scene.write("plan.md", format!("1. Run `{wait}`\n2. Run `echo second`\n"));
    let running = scene.start(&["run", "plan.md", "--yes"]);
    gate.wait();
    let plan =
        scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    scene.run(&["pause", &plan]).expect(0);
    std::fs::write(go, "go\n").expect("the command reads it");
    running.finish().expect(6).says(&["the plan is paused", &format!("crewlog resume {plan}")]);
    assert_eq!(scene.show(&plan)["status"], "paused");
    scene.run(&["resume", &plan]).expect(0);
}

#[test]
fn a_run_past_its_time_limit_exits_with_8_and_leaves_nothing_running() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    scene.write("plan.md", format!("Run `{}; exec sleep 1000`", Gate::pass("gate")));
    let ran = scene.run(&["run", "plan.md", "--yes", "--timeout", "1s"]).expect(8);
    ran.says(&["stopped after its --timeout", "crewlog resume"]);
    gate.wait();
    gate.wait_until_free();
    assert_eq!(scene.events_of_type("TaskReleased").len(), 1);
}

#[test]
fn a_late_conflicting_command_exits_with_9() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Which colour is it?\n2. Paint the wall\n3. Clean the brush\n");
    scene
        .run(&["task", "done", &format!("{plan}/3")])
        .expect(9)
        .says(&["task 3 is planned", "the tasks that it waits for have to end first"]);
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    let n_events = scene.events().len();
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    scene.run(&["answer", &format!("{plan}/q1"), "red"]).expect(9).says(&["it was answered \"blue\""]);
    assert_eq!(scene.events().len(), n_events, "neither is appended");
    scene.run(&["task", "done", &format!("{plan}/2")]).expect(0);
    scene.run(&["task", "done", &format!("{plan}/2")]).expect(9).says(&["task 2 is done", "it is already done"]);
    scene.run(&["task", "fail", &format!("{plan}/2"), "no"]).expect(9);
}

#[test]
fn a_failed_task_exits_with_100_and_retry_reopens_it() {
    let scene = Scene::new();
    let text = "1. Run `test -e fixed || { echo it is broken; exit 7; }`\n2. Run `echo second`\n";
    let (plan, ran) = scene.plan(text);
    let ran = ran.expect(100);
    ran.says(&["exit code 7\n         it is broken", "1 failed, 1 skipped", &format!("crewlog retry {plan}")]);
    assert_eq!(scene.show(&plan)["tasks"][1]["state"], "skipped");
    scene.run(&["resume", &plan]).expect(100).says(&["the plan has ended", &format!("crewlog retry {plan}")]);
    scene.write("fixed", "");
    scene.run(&["retry", &plan]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
    assert_eq!(scene.show(&plan)["status"], "done");
    scene.run(&["retry", &format!("{plan}/1")]).expect(9).says(&["task 1 is done"]);
    scene.run(&["pause", &plan]).expect(9).says(&["the plan has ended"]);
    assert_eq!(scene.run(&["retry", &plan]).expect(0).stdout, "nothing to change\n");
}

#[test]
fn a_cancelled_plan_exits_with_100() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Which colour is it?\n2. Run `echo never > ran`\n");
    scene.run(&["cancel", &plan, "--reason", "no longer wanted"]).expect(0);
    scene.run(&["resume", &plan]).expect(100);
    assert_eq!(scene.show(&plan)["status"], "cancelled");
    assert_eq!(scene.show(&plan)["tasks"][1]["error"], "no longer wanted");
    assert!(!scene.path("ran").exists());
    let cancelled = scene.run(&["cancel", &plan]).expect(0).stdout;
    assert_eq!(cancelled, format!("{plan} is cancelled: nothing to cancel\n"));
}

#[test]
fn arguments_without_effect_get_a_clear_message() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("1. Run `echo a`\n");
    scene.run(&["events", "--type", "Nope"]).expect(4).says(&["no event of this log matches"]);
    assert_eq!(scene.run(&["events", "--type", "Nope", "-q"]).expect(4).stderr, "");
    scene.run(&["events", "--since", "yesterday"]).expect(2).says(&["use RFC 3339, such as 2026-11-21T10:00:00Z"]);
    let beyond = format!("{plan}@99999");
    scene.run(&["diff", &beyond, &plan]).expect(4).says(&["the log does not reach position 99999"]);
    scene.run(&["fork", &plan, "--at", "99999"]).expect(4).says(&["the log does not reach position 99999"]);
    std::fs::set_permissions(scene.path("plan.md"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .expect("it can be");
    let wrong = scene.run(&["--key-file", "plan.md", "ls"]).expect(1);
    wrong.says(&["plan.md is not an operator key"]);
    assert!(!wrong.stderr.contains("chmod"), "{}", wrong.stderr);
}

#[test]
fn an_empty_environment_variable_counts_as_unset() {
    let empty = ["CREWLOG_STORE", "CREWLOG_CONFIG", "CREWLOG_KEY_FILE", "CREWLOG_KEYS"];
    let scene = empty.into_iter().fold(Scene::new(), |scene, name| scene.with_env(name, ""));
    let (plan, _) = scene.plan("1. Run `echo a`\n");
    assert!(scene.path(".crewlog/log.db").is_file());
    scene.run(&["show", &plan]).expect(0);
    scene.run(&["--key-file", "", "show", &plan]).expect(2);
}

#[test]
fn plan_check_shows_ended_steps_and_undo_commands() {
    let scene = Scene::new();
    scene.write("plan.md", "- [x] Build the door\n- [-] Buy the door\n- [ ] Run `mkdir door` (undo: `rmdir door`)\n");
    let said = scene.run(&["plan", "check", "plan.md"]).expect(0).stdout;
    assert!(
        ["status: Completed", "status: Cancelled", "undone by: rmdir door"].iter().all(|part| said.contains(part)),
        "{said}"
    );
}
