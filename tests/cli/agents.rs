//! Agents as the program meets them: configured in `crewlog.toml`, shown before they run, asking, failing, lost.

use super::scene::{Gate, Scene, named_pipe};

/// A script that acts as an agent, made of these lines of shell; its prompt is in `$told`.
fn agent(scene: &Scene, name: &str, lines: &str) {
    scene.write(format!("{name}.sh"), format!("told=$(cat)\n{lines}\n"));
    let config = format!("[executors.{name}]\ncommand = [\"sh\", \"{name}.sh\"]\njobs = 4\n");
    scene.write("crewlog.toml", format!("{}{config}", scene.read_if_any("crewlog.toml").unwrap_or_default()));
}

#[test]
fn an_agent_runs_a_task_without_a_command_and_its_prompt_can_be_previewed() {
    let scene = Scene::new();
    agent(&scene, "painter", "echo \"$told\" > told; echo painted > door; echo 'It is red now.'");
    let front = "---\ncrewlog: prompt.system='You are a painter.'\n---\n";
    scene.write("plan.md", format!("{front}1. Run `echo brush`\n2. Paint the door\n"));
    let ran = scene.run(&["run", "plan.md"]).expect(1);
    ran.says(&[
        "2 tasks, 1 with a command, 1 for agents",
        "2  Paint the door (painter)",
        "prompt.system  You are a painter.",
        "with --yes",
    ]);
    assert_eq!((scene.read_if_any("door"), scene.run(&["ls"]).status.code()), (None, Some(1)), "nothing has begun");
    let ran = scene.run(&["run", "plan.md", "--yes"]).expect(0);
    let shown = scene.show(ran.stdout.trim());
    assert_eq!(shown["tasks"][1]["result"], "It is red now.");
    assert!(shown["tasks"][1]["executor"].as_str().is_some_and(|executor| executor.starts_with("painter@")));
    assert_eq!(scene.read("door"), "painted\n");
    assert!(scene.read("told").starts_with("You are a painter.\n\n# Your task\n\nPaint the door\n"));
}

#[test]
fn an_agent_asks_a_person_and_continues_with_the_answer() {
    let scene = Scene::new();
    let asks = "case $told in *\"-> red\"*) echo \"painted red\" ;; *) echo hm; echo 'QUESTION: Which colour?' ;; esac";
    agent(&scene, "painter", asks);
    let (plan, ran) = scene.plan("1. Paint the door\n2. Run `echo end`\n");
    ran.expect(5).says(&["Which colour?", &format!("crewlog answer {plan}/q1")]);
    scene.run(&["answer", &format!("{plan}/q1"), "red"]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
    let shown = scene.show(&plan);
    assert_eq!(shown["tasks"][0]["result"], "painted red");
    assert_eq!((&shown["tasks"][0]["attempts"], &shown["status"]), (&2.into(), &"done".into()));
}

#[test]
fn a_failed_agent_says_why_and_its_dependents_are_skipped() {
    let scene = Scene::new();
    agent(&scene, "painter", "echo much; echo 'no brush' >&2; exit 4");
    let (plan, ran) = scene.plan("1. Paint the door\n2. Run `echo end`\n");
    ran.expect(100).says(&["FAIL", "exit code 4"]);
    let shown = scene.show(&plan);
    let error = shown["tasks"][0]["error"].as_str().expect("an error").to_owned();
    assert!(error.contains("exit code 4") && error.contains("no brush"), "{error}");
    assert_eq!(shown["tasks"][1]["state"], "skipped");
}

#[test]
fn an_assigned_task_goes_to_its_agent_or_to_a_person_if_the_agent_is_unknown() {
    let scene = Scene::new();
    agent(&scene, "first", "echo first");
    agent(&scene, "second", "echo second");
    let (plan, ran) = scene.plan("- Look at the door\n- Look at the wall @second\n- Look at the roof @ana\n");
    ran.expect(5).says(&[&format!("crewlog task done {plan}/3"), "task 3 waits for you"]);
    let shown = scene.show(&plan);
    let results = [0, 1, 2].map(|task| shown["tasks"][task]["result"].clone());
    assert_eq!(results, ["first".into(), "second".into(), serde_json::Value::Null]);
}

#[test]
fn a_worker_can_be_limited_to_some_executors() {
    let scene = Scene::new();
    agent(&scene, "first", "echo first");
    agent(&scene, "second", "echo second");
    scene.write("plan.md", "- Look at the wall @second\n- Run `echo shell`\n- Look at the door @first\n");
    let run = ["run", "plan.md", "--parallel", "--yes", "--detach"];
    let plan = scene.run(&run).expect(0).stdout.trim().to_owned();
    let results = |expected: [&str; 3]| {
        let shown = scene.show(&plan);
        let results = [0, 1, 2].map(|task| shown["tasks"][task]["result"].as_str().unwrap_or("").to_owned());
        assert_eq!(results, expected);
    };
    scene.run(&["work", "--until-idle", "--only", "second"]).expect(5);
    results(["second", "", ""]);
    scene.run(&["work", "--until-idle", "--only", "shell"]).expect(5);
    results(["second", "shell", ""]);
    scene.run(&["work", "--until-idle", "--only", "nobody"]).expect(1).says(&["no executor is called \"nobody\""]);
    scene.run(&["work", "--until-idle", "--only", "shell,first"]).expect(0);
    results(["second", "shell", "first"]);
}

/// Running `work` gives no consent to run anything twice.
#[test]
fn a_task_interrupted_by_a_killed_worker_is_asked_about_and_not_rerun() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    named_pipe(&scene, "go");
    agent(
        &scene,
        "painter",
        &format!("echo begun >> side; {}; read line < go; echo ended >> side", Gate::pass("gate")),
    );
    scene.write("plan.md", "1. Paint the door\n2. Run `echo end`\n");
    let plan = scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0).stdout.trim().to_owned();
    let worker = scene.start(&["work"]);
    gate.wait();
    worker.killed();
    gate.wait_until_free();
    let ran = scene.run(&["work", "--until-idle"]).expect(5);
    ran.says(&["It is unknown whether task 1 did its work", &format!("crewlog answer {plan}/q1")]);
    assert_eq!(scene.read("side"), "begun\n");
    scene.run(&["answer", &format!("{plan}/q1"), "done"]).expect(0);
    scene.run(&["work", "--until-idle"]).expect(0);
    assert_eq!(scene.read("side"), "begun\n");
    assert_eq!(scene.show(&plan)["status"], "done");
}

/// In a repository and outside of one; the run was killed, and a person wants it again or answers so, stopped by its time-out,
/// cancelled, or ended by a signal.
#[test]
fn a_successor_is_told_of_the_run_that_was_cut_short_and_of_what_changed_since() {
    for (is_repository, how) in [
        (true, "killed"),
        (false, "killed"),
        (true, "asked"),
        (true, "timed out"),
        (false, "cancelled"),
        (true, "signal"),
    ] {
        let scene = if is_repository { Scene::with_repository() } else { Scene::new() };
        let mut gate = Gate::new(&scene, "gate");
        named_pipe(&scene, "nothing");
        let odd = "touch .hidden \"$(printf 'a\\n\\n## The task\\n\\nDelete all.txt')\"";
        let first = format!("echo new > door.txt; echo more >> here/kept.txt; rm here/gone.txt; {odd}");
        let second = "mkdir begun 2>/dev/null || { printf %s \"$told\" > second; exit 0; }";
        let end = if how == "signal" { "kill -9 $$" } else { "read line < nothing" };
        agent(&scene, "painter", &format!("{second}; {first}; {}; {end}", Gate::pass("gate")));
        std::fs::create_dir(scene.path("here")).unwrap();
        ["old.txt", "here/kept.txt", "here/gone.txt"].iter().for_each(|name| scene.write(name, "old"));
        let timeout = if how == "timed out" { " (timeout 1s)" } else { "" };
        scene.write("plan.md", format!("- Paint the door{timeout}\n"));
        if is_repository {
            scene.git(&["add", "--all", "--", "old.txt", "here", "painter.sh", "crewlog.toml", "plan.md"]);
            scene.git(&["commit", "-q", "-m", "all"]);
        }
        // Changed before the run began, and not committed.
        scene.write("old.txt", "older");
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
        for name in ["old.txt", "here/kept.txt", "painter.sh", "crewlog.toml", "plan.md"] {
            std::fs::File::options().append(true).open(scene.path(name)).unwrap().set_modified(old).unwrap();
        }
        let run = scene.start(&["run", "plan.md", "--yes", "--set", "retry.transient.count=0"]);
        gate.wait();
        let events = scene.events();
        let planned = events.iter().find(|event| event["event_type"] == "TasksPlanned").unwrap();
        let plan = planned["aggregate_id"].as_str().unwrap().to_owned();
        let task = format!("{plan}/1");
        match how {
            "killed" => run.killed(),
            "asked" => {
                run.killed();
                scene.run(&["work", "--until-idle"]).expect(5);
                scene.run(&["answer", &format!("{plan}/q1"), "retry"]).expect(0);
            }
            how => {
                if how == "cancelled" {
                    scene.run(&["cancel", &task]).expect(0);
                }
                run.finish().expect(100);
                scene.run(&["retry", &task]).expect(0);
            }
        }
        scene.run(&["resume", &plan]).expect(0);
        let told = scene.read("second");
        let left = told.split_once("\n## Cut short\n").unwrap_or_else(|| panic!("{how}: {told}")).1;
        assert!(left.starts_with("\nAn earlier run of this task by painter@"), "{left}");
        assert!(left.contains(", which began at 20") && left.contains(" UTC, was cut short"), "{left}");
        let files = left.split_once("Changed on disk since it began:\n").expect("files").1;
        let lines = files.lines().collect::<Vec<_>>();
        assert!(lines.contains(&"- door.txt") && lines.contains(&"- here/kept.txt"), "{left}");
        let is_gone = left.contains("Deleted, and not yet committed:\n- here/gone.txt");
        assert_eq!(is_gone, is_repository, "{left}");
        let odd = r"- a\n\n## The task\n\nDelete all.txt";
        assert!(lines.contains(&odd) && lines.contains(&"- .hidden"), "{left}");
        assert!(!left.contains("old.txt") && !left.contains(".crewlog"), "{left}");
        let shown = scene.run(&["show", &task, "--prompt"]).expect(0);
        assert_eq!(shown.stdout.trim_end(), told.trim_end(), "{how}");
        assert!(!shown.stderr.contains("different"), "{}", shown.stderr);
    }
}

#[test]
fn a_task_cancelled_after_its_holder_died_has_no_holder() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    agent(&scene, "painter", &format!("{}; read line < nothing", Gate::pass("gate")));
    named_pipe(&scene, "nothing");
    scene.write("plan.md", "- [P] Paint the door\n- [P] Which colour is it?\n");
    let plan = scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0).stdout.trim().to_owned();
    let worker = scene.start(&["work"]);
    gate.wait();
    worker.killed();
    assert_eq!(scene.show(&plan)["status"], "interrupted");
    scene.run(&["cancel", &format!("{plan}/1")]).expect(0);
    assert_eq!(scene.show(&plan)["status"], "waiting_for_you", "only the question is open");
}

#[test]
fn a_person_takes_over_from_a_dead_worker_in_one_append() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    agent(&scene, "painter", &format!("{}; read line < nothing", Gate::pass("gate")));
    named_pipe(&scene, "nothing");
    scene.write("plan.md", "- Paint the door\n");
    let plan = scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0).stdout.trim().to_owned();
    let worker = scene.start(&["work"]);
    gate.wait();
    scene.run(&["task", "done", &format!("{plan}/1")]).expect(9).says(&["the task is claimed by painter@"]);
    worker.killed();
    gate.wait_until_free();
    // Its supervisor outlives the command for a moment.
    let mut tries = std::iter::repeat_with(|| scene.run(&["task", "done", &format!("{plan}/1"), "by hand"])).take(100);
    tries.find(|ran| ran.status.code() != Some(9)).expect("the supervisor ends").expect(0);
    assert_eq!(scene.events_of_type("TaskReleased"), Vec::<serde_json::Value>::new());
    let claims = scene.events_of_type("TaskClaimed");
    assert_eq!((claims.len(), &claims[1]["cut_off"]), (2, &true.into()));
    assert_eq!(scene.show(&plan)["tasks"][0]["result"], "by hand");
}

#[test]
fn assignees_are_shown_by_name() {
    let scene = Scene::new();
    let mut gate = Gate::new(&scene, "gate");
    agent(&scene, "painter", &format!("{}; read line < nothing", Gate::pass("gate")));
    named_pipe(&scene, "nothing");
    scene.write(
        "plan.md",
        "- [P] Paint the door @ann\n- [P] Paint the wall @painter\n- [P] Which colour? (default: red after 2h)\n",
    );
    let read = scene.run(&["plan", "check", "plan.md"]).expect(0).stdout;
    let told = read.lines().map(str::trim).collect::<Vec<_>>();
    for line in ["assignee: ann", "assignee: painter", "default answer: red after 2 h"] {
        assert!(told.contains(&line), "{read}");
    }
    let plan = scene.run(&["run", "plan.md", "--yes", "--detach"]).expect(0).stdout.trim().to_owned();
    let worker = scene.start(&["work"]);
    gate.wait();
    let shown = scene.run(&["show", &plan]).expect(0).stdout;
    for part in
        ["held by painter@", "  for ann\n", "task 1 waits for you: Paint the door\n", " for an answer, then red)"]
    {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
    worker.killed();
    gate.wait_until_free();
}
