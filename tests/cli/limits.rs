//! Deadlines, budgets, compensation and questions, on the command line.

use serde_json::Value;

use super::scene::Scene;

/// An agent that reports this many tokens.
fn agent(scene: &Scene, tokens: u32) {
    let said = format!("cat > /dev/null\necho done\necho 'USAGE: {{\"input_tokens\": {tokens}, \"cost\": 0.5}}'\n");
    scene.write("worker.sh", said);
    scene.write("crewlog.toml", "[executors.worker]\ncommand = [\"sh\", \"worker.sh\"]\n");
}

#[test]
fn a_plan_over_its_budget_exits_with_7_and_says_how_to_raise_it() {
    let scene = Scene::new();
    agent(&scene, 1_000);
    scene.write("plan.md", "1. Paint the door\n2. Paint the wall\n");
    let ran =
        scene.run(&["run", "plan.md", "--yes", "--set", "budget.tokens=1000", "--set", "budget.cost=2.50"]).expect(7);
    let plan = ran.stdout.trim();
    ran.says(&[
        "the budget of 1000 tokens is used up: 1000 tokens spent",
        &format!("crewlog plan set {plan} budget.tokens=..."),
        &format!("crewlog resume {plan}"),
    ]);
    let shown = scene.show(plan);
    assert_eq!((&shown["status"], &shown["spent"]["input_tokens"]), (&"paused".into(), &1_000.into()));
    assert_eq!((&shown["budget"]["tokens"], &shown["budget"]["cost_micros"]), (&1_000.into(), &2_500_000.into()));
    let told = scene.run(&["show", plan]).expect(0).stdout;
    assert!(told.contains("used up: 1000 tokens of 1000 tokens, a cost of 0.500000 of a cost of 2.500000"), "{told}");
    scene.run(&["resume", plan, "--yes"]).expect(7);
}

#[test]
fn an_agent_gets_the_replacement_a_person_names_for_a_missing_file() {
    let scene = Scene::new();
    scene.write("worker.sh", "cat > told\necho fine\n");
    scene.write("crewlog.toml", "[executors.worker]\ncommand = [\"sh\", \"worker.sh\"]\n");
    let (plan, ran) = scene.plan("1. Review docs/guide.md\n");
    ran.expect(5).says(&["q1 asks: docs/guide.md is not there."]);
    assert_eq!(scene.read_if_any("told"), None, "it has not begun");
    scene.write("guide.md", "how to");
    scene.run(&["answer", &format!("{plan}/q1"), "guide.md"]).expect(0);
    scene.run(&["resume", &plan, "--yes"]).expect(0);
    let answered = "## Answers from people\n\n- docs/guide.md is not there. ";
    assert!(scene.read("told").contains(answered) && scene.read("told").contains("\n  -> guide.md\n"));
}

#[test]
fn a_plan_past_its_deadline_ends_and_stops_its_running_tasks() {
    let scene = Scene::new();
    scene.write("plan.md", "1. Run `sleep 1000`\n2. Run `true`\n");
    let ran = scene.run(&["run", "plan.md", "--yes", "--set", "deadline=300ms"]).expect(100);
    let shown = scene.show(ran.stdout.trim());
    assert_eq!((&shown["tasks"][0]["state"], &shown["tasks"][1]["state"]), (&"failed".into(), &"skipped".into()));
    assert_eq!(shown["tasks"][0]["error"], "the plan passed its deadline, 300 ms after its start");
    assert_eq!(shown["deadline"], serde_json::Value::Null, "it is over");
}

#[test]
fn a_run_waits_for_a_question_until_its_default_answer_applies() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Which colour is it? (default: blue after 200ms)\n2. Run `echo $CREWLOG_ANSWER`\n");
    ran.expect(0).says(&["DEFAULT", "q1: blue"]);
    let shown = scene.show(&plan);
    let question = &shown["questions"][0];
    assert_eq!((&question["answer"], &question["is_by_default"]), (&"blue".into(), &true.into()));
    assert_eq!(shown["tasks"][1]["result"], "blue");
    assert!(scene.run(&["show", &plan]).expect(0).stdout.contains("blue (by default)"));
}

#[test]
fn a_failed_or_cancelled_plan_with_compensation_undoes_completed_tasks() {
    let scene = Scene::new();
    let text =
        "1. Run `echo a >> log` (undo: `echo undo-a >> log`)\n2. Run `echo b >> log` (undo: `echo undo-b >> log`)\n";
    scene.write("plan.md", format!("{text}3. Run `false`\n"));
    let ran = scene.run(&["run", "plan.md", "--yes", "--set", "compensate=true"]).expect(100);
    assert_eq!(scene.read("log"), "a\nb\nundo-b\nundo-a\n");
    let shown = scene.show(ran.stdout.trim());
    assert_eq!((&shown["tasks"][3]["compensates"], &shown["tasks"][4]["compensates"]), (&"2".into(), &"1".into()));
    scene.write("log", "");
    let (plan, ran) = scene.plan(&format!("{text}3. Which colour is it?\n"));
    ran.expect(5);
    scene.run(&["cancel", &plan, "--compensate"]).expect(0);
    scene.run(&["resume", &plan, "--yes"]).expect(100);
    assert_eq!(scene.read("log"), "a\nb\nundo-b\nundo-a\n");
    assert_eq!(scene.show(&plan)["status"], "cancelled");
}

#[test]
fn a_run_waits_for_questions_of_people_unless_withdrawn() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Which colour is it?\n2. Run `echo $CREWLOG_ANSWER`\n");
    ran.expect(5);
    scene.run(&["task", "ask", &format!("{plan}/2"), "How many?"]).expect(0);
    scene.run(&["answer", &format!("{plan}/q1"), "blue", "--ask", "Light or dark?"]).expect(0);
    scene.run(&["resume", &plan, "--yes"]).expect(5).says(&["q2 asks: How many?", "q3 asks: Light or dark?"]);
    scene.run(&["task", "withdraw", &format!("{plan}/q3"), "--reason", "no matter"]).expect(0);
    scene.run(&["answer", &format!("{plan}/1"), "green"]).expect(9).says(&["q3 is closed"]);
    scene.run(&["task", "withdraw", &format!("{plan}/q1")]).expect(9);
    scene
        .run(&["task", "ask", &format!("{plan}/1"), "Sure?"])
        .expect(9)
        .says(&["questions can be added only before its start"]);
    scene.run(&["answer", &format!("{plan}/q2"), "three"]).expect(0);
    scene.run(&["resume", &plan, "--yes"]).expect(0);
    let shown = scene.show(&plan);
    assert_eq!((&shown["tasks"][0]["result"], &shown["tasks"][1]["result"]), (&"blue".into(), &"three".into()));
    assert_eq!(shown["questions"][2]["is_withdrawn"], true);
    scene
        .run(&["retry", &format!("{plan}/2"), "--now"])
        .expect(9)
        .says(&["only a task that waits for its retry delay"]);
    let (plan, _) = scene.plan("1. Which colour is it?\n");
    scene
        .run(&["retry", &format!("{plan}/1"), "--now"])
        .expect(9)
        .says(&["only a task that waits for its retry delay"]);
}

#[test]
fn settings_given_on_the_command_line_are_recorded_with_the_plan() {
    let scene = Scene::new();
    scene.write("plan.md", "- Look into the sales\n");
    let words = ["run", "plan.md", "--detach", "--set", "prompt.profile=analysis", "--set", "order=critical-path"];
    scene.run(&[&words[..], &["--set", "prompt.system=You count."]].concat()).expect(0);
    let planned = scene.events_of_type("TasksPlanned");
    let config = &planned[0]["config"];
    assert_eq!((&config["profile"], &config["order"]), (&"analysis".into(), &"critical_path".into()), "{config}");
    assert_eq!(config["system_prompt"], "You count.");
    // The command line wins over the file, and the file over the configuration.
    scene.write("crewlog.toml", "[plan]\nparallelism = 5\nretry.transient.count = 5\nretry.rate-limited.first = \"5m\"\nbudget.cost = 2.5\n\"parallelism.@ann\" = 1\n");
    let front = "---\ntitle: x\ncrewlog: retry.transient.count=4 order=critical-path prompt.system=\"Be brief.\" budget.cost=none\n---\n";
    scene.write("plan.md", format!("{front}- Look into the sales\n"));
    scene.run(&["plan", "check", "plan.md"]).expect(0);
    scene.run(&["run", "plan.md", "--detach", "--set", "order=place"]).expect(0);
    let config = scene.events_of_type("TasksPlanned")[1]["config"].clone();
    assert_eq!((&config["parallelism"], &config["retry"]["transient"]["count"]), (&5.into(), &4.into()), "{config}");
    assert_eq!(config["retry"]["rate-limited"]["first_ms"], 300_000, "{config}");
    assert_eq!((&config["order"], &config["system_prompt"]), (&"place".into(), &"Be brief.".into()), "{config}");
    assert_eq!(
        (&config["budget"]["cost_micros"], &config["parallelism_by_executor"]["ann"]),
        (&serde_json::Value::Null, &1.into())
    );
    scene.write("plan.md", "---\ncrewlog: retry.transient.count=many\n---\n- Look into the sales\n");
    for words in [&["plan", "check", "plan.md"] as &[&str], &["run", "plan.md"]] {
        scene
            .run(words)
            .expect(3)
            .says(&["plan.md:2: retry.transient.count=many: \"many\" is not a whole number from 0 to 1000"]);
    }
    for (front, says) in [
        ("title: x\n  crewlog: retry.transient.count=4", "plan.md:3: write one line without indentation"),
        ("crewlog:\n  retries: 4", "plan.md:2: write one line"),
        ("crewlog: prompt.system=\"Be brief", "plan.md:2: a quote is not closed"),
    ] {
        scene.write("plan.md", format!("---\n{front}\n---\n- Look into the sales\n"));
        scene.run(&["plan", "check", "plan.md"]).expect(3).says(&[says]);
    }
    scene.write("crewlog.toml", "[plan]\nbudget.tokens = true\n");
    scene.run(&["run", "plan.md"]).expect(1).says(&["crewlog.toml:2:1: budget.tokens: \"true\" is not a whole number"]);
    scene.run(&["run", "plan.md", "--set", "prompt.profile=poetry"]).expect(2).says(&["poetry", "coding", "analysis"]);
}

#[test]
fn a_question_of_a_new_plan_is_shown_with_its_default_answer() {
    let scene = Scene::new();
    let (_, ran) =
        scene.plan("1. [P] Which colour? (default: red after 1s)\n2. [P] How big? (default: very big after 1s)\n");
    let ran = ran.expect(0);
    let asked = ran.stderr.lines().filter(|line| line.contains(" ASK ")).collect::<Vec<_>>();
    assert_eq!(asked.len(), 2, "{}", ran.stderr);
    assert!(asked[0].contains("q1: Which colour? (waits until "), "{}", asked[0]);
    assert!(asked[0].ends_with(" for an answer, then red)"), "{}", asked[0]);
    assert!(asked[1].contains("q2: How big? (waits until "), "{}", asked[1]);
    assert!(asked[1].ends_with(" for an answer, then very big)"), "{}", asked[1]);
}

#[test]
fn a_plan_over_its_budget_says_so_even_while_waiting_for_a_person() {
    let scene = Scene::new();
    let agent = "[executors.poet]\ncommand = ['sh', '-c', 'echo done; echo \"USAGE: $(cat usage)\"']\n";
    scene.write("crewlog.toml", format!("{agent}kinds = [\"Processing\"]\n"));
    scene.write("usage", r#"{"input_tokens": 900, "output_tokens": 100}"#);
    let begin = |text: &str, words: &[&str]| {
        scene.write("plan.md", text);
        let ran = scene.run(&[&["run", "plan.md", "--yes"], words].concat());
        (ran.stdout.trim().to_owned(), ran)
    };
    let (plan, ran) = begin(
        "- Review the design\n- Write poem one\n- Write poem two\n",
        &["--parallel", "--set", "budget.tokens=1500"],
    );
    ran.expect(5).says(&["task 1 waits for you", "no more tasks start: the budget of 1500 tokens is fully reserved"]);
    assert!(scene.run(&["ls"]).expect(0).stdout.contains("(held back by its budget)"));
    assert_eq!(scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["is_held_by_budget"], true);
    scene.run(&["cancel", &plan]).expect(0);
    // The task dispatched before the budget was set is known to use too much.
    let text = "- A: Review the design\n- B: Write poem one\n- C: Write poem two (depends on B)\n";
    let (plan, _) = begin(text, &["--parallel", "--detach"]);
    scene.run(&["plan", "set", &plan, "budget.tokens=1500"]).expect(0);
    scene.run(&["work", "--until-idle"]).expect(5);
    let shown = scene.run(&["show", &plan]).expect(0).stdout;
    let short = "the budget of 1500 tokens is fully reserved: 1000 tokens spent, 1000 tokens reserved for running tasks\n  crewlog plan set";
    assert!(shown.contains(&format!("no more tasks start: {short} {plan} budget.tokens=...")), "{shown}");
}

#[test]
fn a_plan_names_its_paused_sub_plan() {
    let scene = Scene::new();
    scene.write("team.json", r#"{"steps": [{"id": "a", "description": "Write the alpha", "agent": "tactical"}]}"#);
    scene.run(&["plan", "propose", "team.json", "--agent", "orchestrator", "--yes"]).expect(0);
    let plan =
        scene.run(&["ls", "-o", "json"]).expect(0).json()["plans"][0]["plan"].as_str().expect("an id").to_owned();
    let within = format!("{plan}.1-1");
    scene.run(&["resume", &plan]).expect(5);
    scene.run(&["pause", &within, "--reason", "why"]).expect(0);
    let resume = format!("plan {within} is paused: why\n  crewlog resume {within}");
    scene.run(&["resume", &plan]).expect(5).says(&[&resume]);
    assert!(scene.run(&["show", &plan]).expect(0).stdout.contains(&resume));
}

#[test]
fn a_plan_keeps_an_excerpt_of_a_long_error_and_the_log_all_of_it() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("- Run `seq 1 1500 >&2; exit 3`\n");
    let kept = scene.show(&plan)["tasks"][0]["error"].as_str().unwrap().to_owned();
    let failed = scene.events_of_type("TaskFailed");
    let whole = failed[0]["error"].as_str().unwrap();
    assert_eq!((kept.chars().count() <= 2_000, kept.contains("\n700\n")), (true, false), "{kept}");
    assert!((1..=1_500).all(|n| whole.lines().any(|line| line == n.to_string())), "{whole}");
}

#[test]
fn a_task_is_released_with_the_reason_why_its_sub_plan_waits() {
    let scene = Scene::new();
    let begin = |work: &str| {
        let assigned = serde_json::json!({"steps": [{"id": "a", "description": work, "agent": "tactical"}]});
        scene.write("team.json", assigned.to_string());
        let proposed = scene.run(&["plan", "propose", "team.json", "--agent", "orchestrator", "--yes"]).expect(0);
        proposed.stdout.trim().to_owned()
    };
    let reason = || scene.events_of_type("TaskReleased").last().map(|released| released["reason"].to_string());
    let plan = begin("1. Which colour is it?\n2. Paint the door");
    scene.run(&["resume", &plan]).expect(5);
    assert_eq!(reason(), Some(format!("\"it waits for an answer in {plan}.1-1\"")));

    let agent = "[executors.poet]\ncommand = ['sh', '-c', 'echo done; echo \"USAGE: $(cat usage)\"']\n";
    scene.write("crewlog.toml", agent);
    scene.write("usage", r#"{"input_tokens": 900, "output_tokens": 100}"#);
    let plan = begin("1. Write poem one\n2. Then write poem two\n3. Then write poem three");
    scene.run(&["plan", "set", &plan, "budget.tokens=2000"]).expect(0);
    scene.run(&["resume", &plan, "--yes"]).expect(7);
    let short = format!("its plan {plan}.1-1 is paused: the budget of 2000 tokens is used up");
    assert!(reason().is_some_and(|reason| reason.contains(&short)), "{:?}", reason());
}

#[test]
fn every_limit_can_be_removed_again() {
    let scene = Scene::new();
    agent(&scene, 1_000);
    scene.write("plan.md", "1. Paint the door\n2. Paint the wall\n");
    let limits = ["budget.tokens=1000", "budget.cost=9", "budget.time=1h", "deadline=1h", "compensate=true"];
    let set = limits.iter().flat_map(|limit| ["--set", limit]).collect::<Vec<_>>();
    let ran = scene.run(&[&["run", "plan.md", "--yes"], &set[..]].concat()).expect(7);
    let plan = ran.stdout.trim();
    let unset = limits.map(|limit| format!("{}=none", limit.split_once('=').expect("a key").0));
    let unset = unset.iter().map(String::as_str).collect::<Vec<_>>();
    scene.run(&[&["plan", "set", plan], &unset[..]].concat()).expect(0);
    let shown = scene.show(plan);
    assert_eq!((&shown["budget"]["tokens"], &shown["deadline"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert_eq!(shown["settings"], serde_json::json!([]));
    scene.run(&["resume", plan, "--yes"]).expect(0);
}

/// An agent whose first attempt reports a cost of 1.50 and does not end; the second reports 0.25.
fn spender(scene: &Scene, more: &str) {
    let step = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"tool-calls","cost":1.5,"tokens":{"input":10,"output":5}}}"#;
    let end = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop","cost":0.25,"tokens":{"input":1,"output":1}}}"#;
    scene.write("step", format!("{step}\n"));
    scene.write("end", format!("{end}\n"));
    scene.write("worker.sh", "cat > /dev/null\ntest $CREWLOG_ATTEMPT != 1 || { cat step; sleep 1000; }\ncat end\n");
    scene.write("crewlog.toml", format!("[executors.worker]\ncommand = [\"sh\", \"worker.sh\"]\n{more}"));
}

#[test]
fn a_task_is_stopped_when_its_budget_is_used_up_and_not_tried_again() {
    let scene = Scene::new();
    spender(&scene, "");
    scene.write("plan.md", "1. Paint the door (budget: 1.20, retry 3)\n2. Run `true` (depends on 1)\n");
    let ran = scene.run(&["run", "plan.md", "--yes", "-q"]).expect(100);
    let shown = scene.show(ran.stdout.trim());
    let error = "stopped: it has used a cost of 1.500000 of a cost of 1.200000 that were left";
    assert_eq!((&shown["tasks"][0]["state"], &shown["tasks"][0]["error"]), (&"failed".into(), &error.into()));
    assert_eq!((&shown["tasks"][0]["attempts"], &shown["spent"]["cost_micros"]), (&1.into(), &1_500_000.into()));
    // A person may let it go on, with its budget again.
    scene.run(&["retry", ran.stdout.trim()]).expect(0);
    scene.run(&["resume", ran.stdout.trim(), "-q"]).expect(0);
    assert_eq!(scene.show(ran.stdout.trim())["spent"]["cost_micros"], 1_750_000);
}

#[test]
fn a_running_task_is_stopped_when_the_budget_of_its_plan_is_used_up_and_goes_on_once_it_is_raised() {
    let scene = Scene::new();
    spender(&scene, "");
    scene.write("plan.md", "1. Paint the door\n");
    let ran = scene.run(&["run", "plan.md", "--yes", "--set", "budget.cost=1.40"]).expect(7);
    let plan = ran.stdout.lines().next().expect("a plan").to_owned();
    ran.says(&["the budget of a cost of 1.400000 is used up: a cost of 1.500000 spent"]);
    let shown = scene.show(&plan);
    assert_eq!((&shown["status"], &shown["tasks"][0]["attempts"]), (&"paused".into(), &1.into()), "{shown}");
    scene.run(&["plan", "set", &plan, "budget.cost=2"]).expect(0);
    scene.run(&["resume", &plan, "-q"]).expect(0);
    let shown = scene.show(&plan);
    assert_eq!((&shown["tasks"][0]["attempts"], &shown["spent"]["cost_micros"]), (&2.into(), &1_750_000.into()));
    assert_eq!(scene.run(&["inbox", "-o", "json"]).json()["items"], serde_json::json!([]), "it has ended");
}

#[test]
fn a_run_that_reports_its_cost_at_its_end_keeps_its_result() {
    let scene = Scene::new();
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":2.0}"#;
    scene.write("end", format!("{end}\n"));
    scene.write("worker.sh", "cat > /dev/null\ncat end\nsleep 2.5\n");
    scene.write("crewlog.toml", "[executors.worker]\ncommand = [\"sh\", \"worker.sh\"]\n");
    let (plan, ran) = scene.plan("1. Paint the door (budget: 1.20)\n");
    ran.expect(0);
    let shown = scene.show(&plan);
    assert_eq!((&shown["tasks"][0]["result"], &shown["spent"]["cost_micros"]), (&"done".into(), &2_000_000.into()));
}

#[test]
fn the_budget_of_a_day_stops_an_executor_until_the_next() {
    let scene = Scene::new();
    agent(&scene, 10);
    scene.write("crewlog.toml", "[executors.worker]\ncommand = [\"sh\", \"worker.sh\"]\nbudget_per_day = 1.2\n");
    scene.write("plan.md", "1. Paint a\n2. Paint b\n3. Paint c\n4. Paint d\n");
    let ran = scene.run(&["run", "plan.md", "--yes", "--set", "parallelism=1"]).expect(5);
    let plan = ran.stdout.lines().next().expect("a plan").to_owned();
    ran.says(&["worker has used 1.000000 of its budget of 1.200000 for today"]);
    let shown = scene.show(&plan);
    let states = [0, 1, 2, 3].map(|n| shown["tasks"][n]["state"].clone());
    assert_eq!(states, ["done", "done", "done", "waiting"].map(serde_json::Value::from), "1.50 are used");
    let items = scene.run(&["inbox", "-o", "json"]).json()["items"].clone();
    let text = "worker has used 1.500000 of its budget of 1.200000 for today";
    assert_eq!((&items[0]["kind"], &items[0]["text"]), (&"budget".into(), &text.into()), "{items}");
    let spent = scene.events_of_type("DaySpent");
    assert_eq!(spent.iter().map(|spent| spent["cost_micros"].as_u64()).collect::<Vec<_>>(), [Some(500_000); 3]);
    // A person can let it run nevertheless, as long as it takes.
    scene.write("worker.sh", "cat > /dev/null\nsleep 2.5\necho done\n");
    scene.run(&["retry", &format!("{plan}/4"), "--now"]).expect(0);
    scene.run(&["resume", &plan, "-q"]).expect(0);
}

#[test]
fn usage_that_nobody_reports_is_unknown_and_not_0() {
    let scene = Scene::new();
    let usage = r#"USAGE: {"input_tokens": 7, "cost": 0.5}"#;
    let report = format!("test $CREWLOG_TASK != 3 || echo '{usage}'");
    scene.write("worker.sh", format!("cat > /dev/null\necho done\n{report}\n"));
    scene.write("crewlog.toml", "[executors.worker]\ncommand = [\"sh\", \"worker.sh\"]\n");
    for (text, n_unknown, told) in [
        ("1. Paint a\n2. Paint b\n", 2, "used up: an unknown number of tokens in 2 runs, an unknown cost in 2 runs"),
        (
            "1. Paint a\n2. Run `true`\n3. Paint c\n",
            1,
            "used up: 7 tokens and an unknown number of tokens in 1 run, a cost of 0.500000 and an unknown cost in 1 run",
        ),
    ] {
        let (plan, ran) = scene.plan(text);
        ran.expect(0);
        let spent = scene.show(&plan)["spent"].clone();
        assert_eq!(
            [&spent["n_without_tokens"], &spent["n_without_cost"]],
            [&Value::from(n_unknown), &Value::from(n_unknown)],
            "{spent}"
        );
        let shown = scene.run(&["show", &plan]).expect(0).stdout;
        assert!(shown.contains(told), "{shown}");
    }
}
