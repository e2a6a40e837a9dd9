//! Plans changed from any terminal while they wait or run.

use super::scene::{Scene, named_pipe};

/// A plan whose first task waits for a person, so the rest of it can be changed.
const TEXT: &str =
    "- A: Paint the door\n- B: Run `echo b > b.txt` (depends on A)\n- C: Run `echo c > c.txt` (depends on B)\n";

fn waiting(scene: &Scene) -> String {
    scene.write("plan.md", TEXT);
    scene.run(&["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned()
}

fn status(shown: &serde_json::Value, place: usize) -> &str {
    shown["tasks"][place]["state"].as_str().expect("a status")
}

#[test]
fn an_amended_plan_runs_in_its_new_form() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    let added =
        scene.run(&["task", "add", "- Run `echo d > d.txt`", "--plan", &plan, "--after", "B", "--yes"]).expect(0);
    assert_eq!(added.stdout, format!("added {plan}/4: Run `echo d > d.txt` (after B)\n"));
    let args = ["task", "edit", &format!("{plan}/B"), "command=echo other > b.txt", "priority=high"];
    scene.run(&args).expect(1).says(&["echo other > b.txt", "nothing was run", "with --yes"]);
    scene.run(&[&args[..], &["--yes"]].concat()).expect(0);
    // Unchanged commands need no new consent.
    let edited = scene.run(&["task", "edit", &format!("{plan}/B"), "note=soon", "note=and well"]).expect(0);
    assert_eq!((edited.stdout.as_str(), edited.stderr.as_str()), ("changed B\n", ""), "nothing can start");
    let skipped =
        scene.run(&["task", "skip", &format!("{plan}/C"), "--reason", "not needed", "-o", "json"]).expect(0).json();
    assert_eq!(skipped["tasks"], serde_json::json!([]));
    scene.run(&["task", "done", &format!("{plan}/A")]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
    let shown = scene.show(&plan);
    assert_eq!([0, 1, 2, 3].map(|place| status(&shown, place)), ["done", "done", "skipped", "done"]);
    assert_eq!((&shown["tasks"][1]["priority"], &shown["tasks"][2]["error"]), (&"high".into(), &"not needed".into()));
    assert_eq!(scene.read("b.txt"), "other\n");
    assert_eq!(scene.read("d.txt"), "d\n");
    let replayed = scene.run(&["replay", &plan]).expect(0).stdout;
    assert!(replayed.contains("task B priority: high"), "{replayed}");
    assert!(replayed.contains("task 4 is new: Run `echo d > d.txt`"), "{replayed}");
}

#[test]
fn an_impossible_amendment_is_refused_with_a_hint() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    let check = |words: &[&str], task: &str, more: &[&str], code: i32, says: &str| {
        let refused = scene.run(&[&["task"], words, &[&format!("{plan}/{task}")], more].concat()).expect(code);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    };
    check(&["edit"], "B", &[], 2, "required");
    check(&["move"], "B", &["--after", "C"], 3, "dependency cycle: B -> C -> B");
    check(&["edit"], "A", &["text=x"], 9, "task A is under way: to change it, cancel it");
    check(&["edit"], "B", &["colour=red"], 2, "a task has no field \"colour\": text, command, kind");
    check(&["edit"], "B", &["kind=none"], 2, "a task always has a kind");
    check(&["edit"], "B", &["label"], 2, "write KEY=VALUE");
    check(&["edit"], "B", &["priority=weird"], 2, "unknown priority \"weird\": use one of p0, critical, urgent");
    check(&["skip"], "Z", &[], 4, "has no task \"Z\"");
    scene.run(&["task", "skip", &plan]).expect(2).says(&[&format!("write {plan}/NAME")]);
    scene.run(&["task", "add", "Run `echo x`", "--plan", &plan]).expect(1).says(&["with --yes"]);
    let (other, _) = scene.plan("- A: Paint the wall\n");
    check(&["skip"], "B", &[&format!("{other}/A")], 1, "these are tasks of several plans");
    scene.run(&["cancel", &plan]).expect(0);
    check(&["skip"], "B", &[], 9, "continue the plan in a fork");
}

#[test]
fn a_paused_task_waits_until_it_is_resumed() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    scene.run(&["pause", &format!("{plan}/B")]).expect(0);
    scene.run(&["task", "done", &format!("{plan}/A")]).expect(0);
    let waits = scene.run(&["resume", &plan]).expect(5);
    assert!(waits.stderr.contains("task B is paused"), "{}", waits.stderr);
    let shown = scene.show(&plan);
    assert_eq!((status(&shown, 1), &shown["tasks"][1]["is_paused"]), ("paused", &true.into()));
    assert!(scene.run(&["show", &plan]).expect(0).stdout.contains("paused"));
    scene.run(&["resume", &format!("{plan}/B")]).expect(0);
    assert_eq!(status(&scene.show(&plan), 1), "ready", "it is dispatched, and nothing here carried it out");
    scene.run(&["resume", &plan]).expect(0);
    let replayed = scene.run(&["replay", &plan]).expect(0).stdout;
    assert!(replayed.contains("task B is paused: yes"), "{replayed}");
}

#[test]
fn changed_settings_take_effect_and_are_shown() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    let args =
        ["plan", "set", &plan, "parallelism=2", "on-failure=stop", "parallelism.analysis=1", "parallelism.@ann=3"];
    let said = scene.run(&args).expect(0).stdout;
    let settings = "settings: parallelism 2, parallelism of Analysis 1, parallelism of @ann 3, on failure stop";
    assert!(said.contains(settings), "{said}");
    assert!(scene.run(&["show", &plan]).expect(0).stdout.contains(settings));
    assert_eq!(scene.show(&plan)["settings"][0], "parallelism 2");
    scene.run(&["plan", "set", &plan, "parallelism.@ann=none", "parallelism=none"]).expect(0);
    let diff = scene.run(&["diff", &format!("{plan}@1"), &plan]).expect(0).stdout;
    assert!(diff.contains("plan settings: parallelism of Analysis 1, on failure stop"), "{diff}");
    assert!(scene.run(&["plan", "set", &plan, "parallelism=0"]).expect(1).stderr.contains("must be from 1 to 1000"));
    // Costs are printed in the unit in which they were given.
    let said = scene.run(&["plan", "set", &plan, "budget.cost=2.5"]).expect(0).stdout;
    assert!(said.contains("at most a cost of 2.500000"), "{said}");
    scene.run(&["plan", "set", &plan]).expect(2);
    scene.run(&["plan", "set", &plan, "parallelism.dancing=1"]).expect(2).says(&["unknown kind \"dancing\""]);
    scene.run(&["plan", "set", &plan, "colour=red"]).expect(2).says(&["no setting \"colour\": parallelism, "]);
    scene.run(&["plan", "set", &plan, "prompt.system=x"]).expect(1).says(&["are set when a plan is made"]);
}

#[test]
fn tasks_added_without_a_plan_go_to_the_backlog_which_never_ends() {
    let scene = Scene::new();
    assert_eq!(
        scene.run(&["task", "add", "Run `echo a > a.txt`", "--yes"]).expect(0).stdout,
        "added backlog/1: Run `echo a > a.txt`\n"
    );
    assert!(scene.run(&["resume", "backlog"]).expect(0).stderr.contains("all tasks are done"));
    assert_eq!(
        scene.run(&["task", "add", "Run `echo b`", "--yes"]).expect(0).stdout,
        "added backlog/2: Run `echo b`\n"
    );
    let args = ["task", "add", "Run `echo c > c.txt`", "--after", "2", "--plan", "backlog", "--yes", "-o", "json"];
    let added = scene.run(&args).expect(0).json();
    assert_eq!(
        added,
        serde_json::json!({"plan": "backlog", "tasks": ["3"], "settings": ["parallelism 1000", "standing"]})
    );
    scene.run(&["work", "--until-idle"]).expect(0);
    let shown = scene.show("backlog");
    assert_eq!((status(&shown, 1), status(&shown, 2)), ("done", "done"));
    assert_eq!((scene.read("a.txt").as_str(), scene.read("c.txt").as_str()), ("a\n", "c\n"));
    scene.run(&["task", "add", "Run `echo d`", "--after", "9", "--yes"]).expect(4);
}

#[test]
fn a_standing_plan_reports_failures_and_says_when_it_is_reopened() {
    let scene = Scene::new();
    scene.run(&["task", "add", "Run `false`", "--yes"]).expect(0);
    let failed = scene.run(&["resume", "backlog"]).expect(100);
    failed.says(&["1 task failed", "crewlog retry backlog"]);
    assert!(!failed.stderr.contains("all tasks are done"), "{}", failed.stderr);
    let listed = scene.run(&["ls", "-o", "json"]).expect(0).json();
    assert_eq!(listed["plans"][0]["waits_for_work"], true);
    assert!(scene.run(&["ls"]).expect(0).stdout.contains("stays open for more"));
    scene.run(&["cancel", "backlog"]).expect(0);
    scene.run(&["task", "add", "Run `echo again`", "--yes"]).expect(0).says(&["had ended, and is open again"]);
}

#[test]
fn each_change_says_what_happened() {
    let scene = Scene::new();
    let text = "- Paint it (parallel)\n- A: Run `exit 1` (parallel)\n- B: Run `true` (after A)\n- Dry it (after 1)\n- Wax it (after 1)\n";
    let (plan, _) = scene.plan(text);
    let says = |words: &[&str], stdout: &str| {
        let words = words.iter().map(|word| word.replace("PLAN", &plan)).collect::<Vec<_>>();
        let ran = scene.run(&words.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
        assert_eq!(ran.stdout, format!("{}\n", stdout.replace("PLAN", &plan)), "{words:?}");
        ran
    };
    says(&["task", "move", "PLAN/5", "--after", "4"], "moved 5 (after 4)");
    says(&["task", "skip", "PLAN/4", "--reason", "rain"], "changed 5\nskipped 4: rain");
    says(&["cancel", "PLAN/4"], "task 4 is skipped: nothing to cancel");
    let opened = says(&["retry", "PLAN"], "open again: A, B");
    opened.says(&[&format!("crewlog resume {plan}")]);
    says(&["pause", "PLAN/B"], "task B is paused; if it runs, it continues until it ends")
        .says(&[&format!("crewlog resume {plan}/B")]);
    scene.run(&["task", "add", "Paint it", "--after", "1"]).expect(4).says(&["no task \"1\"", "--plan PLAN"]);
}

#[test]
fn a_mistyped_plan_name_creates_no_standing_plan() {
    let scene = Scene::new();
    let add = |words: &[&str]| scene.run(&[&["task", "add", "- Paint the door"], words].concat());
    add(&["--plan", "chores"]).expect(4).says(&["no plan has \"chores\" in its id", "--plan chores --new"]);
    assert_eq!(add(&["--plan", "chores", "--new"]).expect(0).stdout, "added chores/1: Paint the door\n");
    assert_eq!(add(&["--plan", "chores"]).expect(0).stdout, "added chores/2: Paint the door\n");
    // A prefix of an id is enough, as everywhere.
    assert_eq!(add(&["--plan", "cho"]).expect(0).stdout, "added chores/3: Paint the door\n");
    add(&["--plan", "chroes"]).expect(4).says(&["did you mean chores?", "--plan chroes --new"]);
    add(&["--plan", "chores", "--new"]).expect(9).says(&["there is a plan chores already"]);
    for name in ["../../etc", "a b/c", "17", "", "-x", ".x"] {
        let name = format!("--plan={name}");
        add(&[&name, "--new"]).expect(1).says(&["invalid plan name", "letters, digits, dashes"]);
        let refused = add(&[&name]).expect(4);
        assert!(!refused.stderr.contains("--new"), "{}", refused.stderr);
    }
    assert_eq!(scene.run(&["ls", "-o", "jsonl"]).expect(0).stdout.lines().count(), 1);
}

#[test]
fn a_run_follows_tasks_that_are_added_and_skipped() {
    let scene = Scene::new();
    named_pipe(&scene, "go");
    named_pipe(&scene, "never");
    scene.write("plan.md", "- [P] A: Run `read line < go`\n- [P] B: Run `read line < never`\n");
    let mut running = scene.start(&["run", "plan.md", "--yes", "--jobs", "2"]);
    running.stdout.until("\n");
    let listed = scene.run(&["ls", "-o", "json"]).expect(0).json();
    let plan = listed["plans"][0]["plan"].as_str().expect("an id").to_owned();
    scene.run(&["task", "add", "Run `echo later > later.txt`", "--plan", &plan, "--after", "A,B", "--yes"]).expect(0);
    running.stderr.until("the plan has new or changed tasks: 3");
    scene.run(&["task", "skip", &format!("{plan}/B")]).expect(0);
    std::fs::write(scene.path("go"), "go\n").expect("the command reads it");
    let ran = running.finish().expect(0);
    assert!(ran.stderr.contains("2 done, 1 skipped"), "{}", ran.stderr);
    assert_eq!(scene.read("later.txt"), "later\n");
    let ends = scene.events_of_type("TaskStopped");
    assert_eq!(ends.len(), 1, "what was skipped while it ran was stopped: {ends:?}");
}

#[test]
fn a_lower_limit_counts_claimed_tasks_alone() {
    let scene = Scene::new();
    scene.write("crewlog.toml", "[executors.reviewer]\ncommand = ['sh', '-c', 'echo seen']\nkinds = [\"Analysis\"]\n");
    scene.write("plan.md", "- Paint the door\n- Review the design\n- Run `echo a`\n- Run `echo b`\n");
    let run = ["run", "plan.md", "--parallel", "--yes", "--detach"];
    let plan = scene.run(&run).expect(0).stdout.trim().to_owned();
    scene.run(&["plan", "set", &plan, "parallelism=1"]).expect(0);
    let idle = scene.run(&["work", "--until-idle"]).expect(5);
    idle.says(&["task 1 waits for you"]);
    let shown = scene.show(&plan);
    let expected = ["waiting_for_you", "done", "done", "done"];
    assert_eq!([0, 1, 2, 3].map(|place| status(&shown, place)), expected, "a task that nobody took holds up no other");
    assert_eq!(scene.events_of_type("TaskClaimed").len(), 3);
    scene.run(&["task", "done", &format!("{plan}/1")]).expect(0);
    scene.run(&["work", "--until-idle"]).expect(0);
}

#[test]
fn changing_the_description_of_a_task_warns_that_its_command_stays() {
    let scene = Scene::new();
    let plan = waiting(&scene);
    let edit = ["task", "edit", &format!("{plan}/B"), "text=Paint it red", "--yes"];
    scene
        .run(&edit)
        .expect(0)
        .says(&["task B still runs its command: echo b > b.txt", &format!("crewlog task edit {plan}/B command=...")]);
    let both = scene.run(&[&edit[..], &["command=echo red"]].concat()).expect(0);
    assert!(!both.stderr.contains("still runs"), "{}", both.stderr);
}
