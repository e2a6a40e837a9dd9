//! One word names a plan, or a task or question of it.

use super::scene::Scene;

/// Plans whose names are alike, by short names for tables.
pub struct Alike {
    pub scene: Scene,
    ids: Vec<(&'static str, String)>,
}

impl Alike {
    pub fn new() -> Self {
        let scene = Scene::new();
        let plan = |text: &str| scene.plan(text).0;
        let fork = |of: &str| scene.run(&["fork", of]).expect(0).stdout.trim().to_owned();
        let parent = plan("# Ship it\n- Paint it\n");
        let first = fork(&parent);
        let second = fork(&first);
        let (old, new) = (plan("# Release\n- Run `true`\n"), plan("# Release\n- Which colour is it?\n"));
        let other = plan("# Reship\n- Paint it\n");
        let done = plan("# Memo\n- Run `true`\n");
        let again = fork(&done);
        let ids = [parent, first, second, old, new, other, done, again];
        let names = ["ship", "fork", "fork 2", "old", "new", "reship", "done", "fork of done"];
        Self { scene, ids: names.into_iter().zip(ids).collect() }
    }

    /// The id of a plan.
    pub fn id(&self, name: &str) -> &str {
        let found = self.ids.iter().find(|(known, _)| *known == name);
        found.map_or_else(|| panic!("no plan is called {name}"), |(_, id)| id)
    }
}

/// A typed name: the plan that it means to `show`, to `plan checkpoint` and to `retry`, if any; and all that fit.
pub type Typed = (&'static str, [Option<&'static str>; 3], &'static [&'static str]);

pub const NAMES: [Typed; 12] = [
    ("ship-it", [Some("ship"); 3], &[]),
    ("ship-it-fork", [Some("fork"); 3], &[]),
    ("ship-it-fork-2", [Some("fork 2"); 3], &[]),
    ("ship", [Some("ship"), None, None], &["ship", "fork", "fork 2", "reship"]),
    ("ship-i", [Some("ship"), None, None], &["ship", "fork", "fork 2"]),
    ("eship", [Some("reship"); 3], &[]),
    ("hip", [None; 3], &["ship", "fork", "fork 2", "reship"]),
    ("release", [Some("new"), Some("new"), None], &["old", "new"]),
    ("rel", [Some("new"), Some("new"), None], &["old", "new"]),
    ("memo", [Some("done"); 3], &[]),
    ("mem", [Some("done"), None, None], &["done", "fork of done"]),
    ("hop", [None; 3], &[]),
];

#[test]
fn a_name_means_one_plan_or_is_refused_with_the_commands_to_choose_from() {
    let plans = Alike::new();
    let n_events = plans.scene.events().len();
    for (n, (typed, meant, fit)) in NAMES.into_iter().enumerate() {
        let checkpoint = format!("c{n}");
        let (show, name) = (["show", typed], ["plan", "checkpoint", typed, &checkpoint]);
        for (words, meant) in [&show[..], &name, &["retry", typed, "--quiet"]].into_iter().zip(meant) {
            let ran = plans.scene.run(&[words, &["-o", "json"]].concat());
            let Some(meant) = meant else {
                let ran = ran.expect(4);
                let fitting = fit.iter().filter(|name| words[0] == "retry" || typed == "hip" || **name != "reship");
                for fitting in fitting.map(|name| plans.id(name)) {
                    let words = words.iter().map(|word| if *word == typed { fitting } else { word });
                    let command = words.chain(["-o", "json"]).collect::<Vec<_>>().join(" ");
                    ran.says(&[&format!("several plans fit {typed:?}: "), &format!("\n  hint: crewlog {command}\n")]);
                }
                continue;
            };
            assert_eq!(ran.expect(0).json()["plan"], plans.id(meant), "{words:?}");
        }
    }
    assert_eq!(plans.scene.events_of_type("CheckpointNamed").len(), plans.scene.events().len() - n_events);
}

#[test]
fn cancel_retry_and_fork_never_guess() {
    let plans = Alike::new();
    let n_events = plans.scene.events().len();
    for (words, command) in [
        (&["cancel", "ship/1", "--reason", "not now"][..], "cancel ID/1 --reason 'not now'"),
        (&["cancel", "--compensate", "ship"], "cancel --compensate ID"),
        (&["-q", "retry", "ship"], "-q retry ID"),
        (&["fork", "ship", "--at", "before:1"], "fork ID --at before:1"),
    ] {
        let refused = plans.scene.run(words).expect(4);
        for name in ["ship", "fork", "fork 2"] {
            let command = command.replace("ID", plans.id(name));
            refused.says(&[&format!("\n  hint: crewlog {command}\n")]);
        }
    }
    let states =
        ["ship (waiting for you)", "fork (fork, paused)", "done (done)", "old (done)", "new (waiting for you)"];
    for state in states {
        let (name, state) = state.split_once(' ').expect("a name and a state");
        let typed = &plans.id(name)[..3];
        plans.scene.run(&["cancel", typed]).expect(4).says(&[&format!("{} {state}", plans.id(name))]);
    }
    assert_eq!(plans.scene.events().len(), n_events);
    // The names mean these plans.
    let plan = plans.id("ship");
    assert_eq!(plans.scene.run(&["cancel", "ship-it"]).expect(0).stdout, format!("{plan} is cancelled\n"));
    let diff = plans.scene.run(&["diff", &format!("ship@{}", n_events - 1), "ship", "-o", "json"]).expect(0).json();
    assert_eq!((&diff["from"]["plan"], &diff["to"]["plan"]), (&plan.into(), &plan.into()));
}

#[test]
fn a_mistyped_name_is_refused_with_the_nearest_one() {
    let scene = Scene::new();
    scene.write("crewlog.toml", "[executors.poet]\ncommand = ['true']\n");
    let (plan, _) = scene.plan("# Nightly\n- [ ] T001 Which colour is it?\n- [ ] T002 Run `true`\n");
    scene.run(&["plan", "checkpoint", &plan, "tested"]).expect(0);
    let plan_and =
        |words: &str| vec![format!("did you mean {plan}?"), format!("crewlog {}", words.replace("ID", &plan))];
    let only = |name: &str| vec![format!("did you mean {name}?")];
    for (words, hints) in [
        (&["show", "nightli"][..], plan_and("show ID")),
        (&["cancel", "Nigthly/T002", "--reason", "no"], plan_and("cancel ID/T002 --reason no")),
        (&["diff", "nigthly@3", "nigthly"], plan_and("diff ID@3 ID")),
        (&["task", "add", "Sing", "--plan=nightyl"], plan_and("task add Sing --plan=ID")),
        (&["cancel", "nightly/T01"], only("T001")),
        (&["show", "nightly/q2"], only("q1")),
        (&["answer", "nightly/q2", "red"], only("q1")),
        (&["answer", "nightly/T010", "red"], only("T001")),
        (&["show", "nightly", "--at", "testde"], only("tested")),
        (&["why", "nightli"], only(&plan)),
    ] {
        let refused = scene.run(words).expect(4);
        for hint in hints {
            refused.says(&[&format!("\n  hint: {hint}\n")]);
        }
        assert!(!refused.stderr.contains("restored"), "{}", refused.stderr);
    }
    scene.run(&["work", "--only", "peot"]).expect(1).says(&["hint: did you mean poet?"]);
}

#[test]
fn a_mistyped_address_is_refused_with_what_there_is() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("- A: Which colour is it?\n- B: Which size? (after A)\n");
    let shows = format!("crewlog show {plan}");
    scene.run(&["show", &format!("{plan}/C")]).expect(4).says(&["has no task \"C\"; its tasks are A, B", &shows]);
    scene
        .run(&["answer", &format!("{plan}/q7"), "x"])
        .expect(4)
        .says(&["no question \"q7\"", &format!("open are {plan}/q1")]);
    scene.run(&["show", &format!("{plan}/q7")]).expect(4).says(&["has no question q7"]);
    scene.run(&["task", "done", &plan]).expect(2).says(&["names no task or question", &format!("crewlog show {plan}")]);
    scene.run(&["task", "skip", "/A"]).expect(2).says(&["crewlog ls"]);
    scene
        .run(&["plan", "set", &format!("{plan}/A"), "retry.transient.count=1"])
        .expect(4)
        .says(&["takes a plan alone"]);
    scene.run(&["retry", &plan, "--now"]).expect(1).says(&["write PLAN/TASK"]);
    scene.run(&["cancel", &format!("{plan}/A"), "--compensate"]).expect(1).says(&["this is a task"]);
    scene.run(&["resume", &format!("{plan}/A"), "--sync"]).expect(1).says(&["are for plans"]);
    scene.run(&["diff", &format!("{plan}@1"), &plan, "--outcomes"]).expect(1).says(&["write them without @"]);
    scene.run(&["fork", &plan, "--at", "before:"]).expect(2).says(&["before:TASK"]);
}

#[test]
fn a_question_is_answered_by_its_name_its_task_or_its_plan() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("- A: Which colour is it?\n- B: Which size? (after A)\n- C: Which shape? (after B)\n");
    scene.run(&["answer", &plan, "red"]).expect(0);
    scene.run(&["answer", &format!("{plan}/B"), "small"]).expect(0);
    scene.run(&["answer", &format!("{plan}/q3"), "round"]).expect(0);
    scene.run(&["answer", &plan, "x"]).expect(4).says(&["has no open question"]);
    let answers = scene.show(&plan)["questions"].as_array().expect("a list").clone();
    let answers = answers.iter().map(|question| question["answer"].clone()).collect::<Vec<_>>();
    assert_eq!(answers, ["red", "small", "round"]);
}

#[test]
fn show_and_resume_without_a_name_choose_the_only_open_plan() {
    let scene = Scene::new();
    scene.run(&["init", "--no-hosts"]).expect(0);
    scene.run(&["show"]).expect(4).says(&["there is no plan yet", "crewlog run FILE"]);
    scene.run(&["resume"]).expect(4).says(&["no plan can be resumed"]);
    let shown = || scene.run(&["show", "-o", "json"]).expect(0).json()["plan"].clone();
    let (open, _) = scene.plan("- Paint it\n");
    let (ended, _) = scene.plan("- Run `true`\n");
    assert_eq!(shown(), open.as_str());
    scene.run(&["task", "add", "Run `true`", "--yes"]).expect(0);
    scene.run(&["resume", "backlog"]).expect(0);
    assert_eq!(shown(), open.as_str(), "a backlog with nothing left to do does not count");
    scene.run(&["resume"]).expect(5).says(&[&open]);
    let (second, _) = scene.plan("- Paint that\n");
    scene.run(&["resume"]).expect(4).says(&["several plans can be resumed", &open, &second]);
    assert_eq!(shown(), second.as_str(), "of several the newest");
    scene.run(&["cancel", &open]).expect(0);
    scene.run(&["cancel", &second]).expect(0);
    scene.run(&["resume"]).expect(4).says(&["none is open"]);
    assert_ne!(shown(), ended.as_str());
}

#[test]
fn show_prints_a_task_or_a_question_alone() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("- A: Run `echo so`\n- B: Which colour is it? (after A)\n");
    let shown = |part: &str| scene.run(&["show", &format!("{plan}/{part}"), "-o", "json"]).expect(0).json();
    assert_eq!(
        (&shown("A")["task"]["result"], &shown("A")["task"]["questions"]),
        (&"so".into(), &serde_json::json!([]))
    );
    assert_eq!(shown("B")["task"]["questions"][0]["id"], "q1");
    assert_eq!(shown("q1")["question"]["question"], "Which colour is it?");
    let text = scene.run(&["show", &format!("{plan}/A")]).expect(0).stdout;
    assert!(text.starts_with("A  done\n") && text.contains("  result: so\n"), "{text}");
    let claimed = scene.events().into_iter().find(|event| event["event_type"] == "TaskClaimed").expect("it ran");
    let at = claimed["position"].to_string();
    let before = scene.run(&["show", &format!("{plan}/A"), "--at", &at, "-o", "json"]).expect(0).json();
    assert_eq!(before["task"]["result"], serde_json::Value::Null);
}
