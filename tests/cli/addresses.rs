//! One word names a plan, or a task or question of it.

use super::scene::Scene;

#[test]
fn any_unambiguous_part_of_an_id_names_a_plan() {
    let scene = Scene::new();
    let (one, _) = scene.plan("# Ship it\n- Paint it\n");
    let (other, _) = scene.plan("# Reship\n- Paint it\n");
    let shown = |typed: &str| scene.run(&["show", typed, "-o", "json"]).expect(0).json()["plan"].clone();
    assert_eq!(shown(&one), one.as_str());
    assert_eq!(shown("ship"), one.as_str(), "what begins an id comes before what is within one");
    assert_eq!((shown("eship"), shown("ip-it")), (other.as_str().into(), one.as_str().into()));
    let ambiguous = scene.run(&["show", "hip"]).expect(4);
    ambiguous.says(&["several plans have \"hip\" in their ids", &one, &other, "write more of the id"]);
    scene.run(&["show", "hop"]).expect(4).says(&["no plan has \"hop\" in its id", &one, &other]);
    scene.run(&["task", "done", "ship/1"]).expect(0);
    assert_eq!(scene.show(&one)["status"], "done");
}

#[test]
fn a_short_name_means_the_only_open_plan_of_several() {
    let scene = Scene::new();
    let (ended, _) = scene.plan("# Release\n- Which colour is it?\n");
    scene.run(&["cancel", &ended]).expect(0);
    let (open, _) = scene.plan("# Release\n- Which colour is it?\n");
    assert_eq!(scene.run(&["show", "release", "-o", "json"]).expect(0).json()["plan"], open.as_str());
    let fork = scene.run(&["fork", &open]).expect(0).stdout;
    let states = [
        format!("{open} (waiting for you)"),
        format!("{ended} (cancelled)"),
        format!("{} (fork, paused)", fork.trim()),
    ];
    scene.run(&["answer", "release", "red"]).expect(4).says(&states.each_ref().map(String::as_str));
    scene.run(&["cancel", fork.trim()]).expect(0);
    scene.run(&["answer", "release", "red"]).expect(0);
}

#[test]
fn a_mistyped_address_is_refused_with_what_there_is() {
    let scene = Scene::new();
    let (plan, _) = scene.plan("- A: Which colour is it?\n- B: Which size? (after A)\n");
    let shows = format!("crewlog show {plan}");
    scene.run(&["show", &format!("{plan}/C")]).expect(4).says(&["has no task \"C\"; it has A, B", &shows]);
    scene
        .run(&["answer", &format!("{plan}/q7"), "x"])
        .expect(4)
        .says(&["no question \"q7\"", &format!("open are {plan}/q1")]);
    scene.run(&["show", &format!("{plan}/q7")]).expect(4).says(&["has no question q7"]);
    scene.run(&["task", "done", &plan]).expect(2).says(&["names no task or question", &format!("crewlog show {plan}")]);
    scene.run(&["task", "skip", "/A"]).expect(2).says(&["crewlog ls"]);
    scene.run(&["plan", "set", &format!("{plan}/A"), "retries=1"]).expect(4).says(&["takes a plan alone"]);
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
    assert!(text.starts_with("A  Completed\n") && text.contains("  result: so\n"), "{text}");
    let claimed = scene.events().into_iter().find(|event| event["event_type"] == "TaskClaimed").expect("it ran");
    let at = claimed["position"].to_string();
    let before = scene.run(&["show", &format!("{plan}/A"), "--at", &at, "-o", "json"]).expect(0).json();
    assert_eq!(before["task"]["result"], serde_json::Value::Null);
}
