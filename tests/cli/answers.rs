//! Answers from outside: one answer counts, an invalid one is refused, and a plan keeps its tags.

use std::path::Path;

use serde_json::Value;

use super::scene::{Ran, Running, Scene};

/// How often two answers race.
const N_ROUNDS: usize = 8;
/// The greatest length of an answer.
const ANSWER_BYTES_MAX: usize = 8 << 10;

#[test]
fn of_two_concurrent_answers_one_counts_and_the_other_is_refused() {
    let scene = Scene::new();
    for round in 0..N_ROUNDS {
        let (plan, ran) = scene.plan("1. Which colour is it?\n");
        ran.expect(5);
        let answers = ["red", "blue"].map(|answer| (answer, scene.start(&["answer", &format!("{plan}/q1"), answer])));
        let (mut taken, mut late) = (Vec::new(), Vec::new());
        for (answer, running) in answers {
            let ran = running.finish();
            if ran.status.code() == Some(0) { taken.push(answer) } else { late.push(ran.expect(9)) }
        }
        assert_eq!((taken.len(), late.len()), (1, 1), "round {round}: {taken:?} {late:?}");
        late[0].says(&["answered", taken[0]]);
        assert_eq!(scene.show(&plan)["questions"][0]["answer"], taken[0], "round {round}");
    }
}

#[test]
fn an_empty_or_overlong_answer_is_refused_and_the_question_stays_open() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Which colour is it?\n2. Run `printf %s \"$CREWLOG_ANSWER\" | wc -c`\n");
    ran.expect(5);
    let too_long = "é".repeat(ANSWER_BYTES_MAX / 2) + "a";
    let n_events = scene.events().len();
    for (answer, says) in [("", "is empty"), (" \t\n", "is empty"), (&too_long, "answer_bytes_max is 8192")] {
        let ran = scene.run(&["answer", &format!("{plan}/q1"), answer]).expect(1);
        ran.says(&["error: ", says]);
        assert_eq!(ran.stdout, "");
        let question = &scene.show(&plan)["questions"][0];
        assert_eq!(question["answer"], Value::Null, "{question}");
    }
    assert_eq!(scene.events().len(), n_events, "nothing is on the log");
    scene.run(&["answer", &format!("{plan}/q1"), too_long.trim_end_matches('a')]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
    assert_eq!(scene.show(&plan)["tasks"][1]["result"], ANSWER_BYTES_MAX.to_string());
}

#[test]
fn inherited_answer_variables_do_not_reach_a_task() {
    let scene = Scene::new().with_env("CREWLOG_ANSWER", "outer").with_env("CREWLOG_ANSWER_7", "outer");
    let say = "Run `echo \"[${CREWLOG_ANSWER-}] [${CREWLOG_ANSWER_1-}] [${CREWLOG_ANSWER_7-}]\"`";
    let text = format!("1. [P] Which colour is it?\n2. [P] Run `true`\n3. {say} (after 1)\n4. {say} (after 2)\n");
    let (plan, ran) = scene.plan(&text);
    ran.expect(5);
    scene.run(&["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    scene.run(&["resume", &plan]).expect(0);
    let shown = scene.show(&plan);
    assert_eq!(shown["tasks"][2]["result"], "[blue] [blue] []");
    assert_eq!(shown["tasks"][3]["result"], "[] [] []");
}

#[test]
fn events_of_a_plan_have_its_tags_whichever_folder_the_command_runs_in() {
    let scene = Scene::with_repository();
    let store = scene.around().join("shared.db");
    let elsewhere = scene.around().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder can be made");
    let run_in = |folder: &Path, words: &[&str]| -> Ran {
        let store = store.to_str().expect("it is text");
        Running::start(&mut scene.crewlog_in(folder, &[&["--store", store], words].concat())).finish()
    };
    scene.write("plan.md", "1. Which colour is it?\n2. Write the page\n3. Run `test -e fixed`\n4. Run `echo ok`\n");
    let plan = run_in(scene.folder(), &["run", "plan.md", "--yes"]).expect(5).stdout.trim().to_owned();
    run_in(&elsewhere, &["answer", &format!("{plan}/q1"), "blue"]).expect(0);
    run_in(&elsewhere, &["task", "done", &format!("{plan}/2")]).expect(0);
    run_in(&elsewhere, &["resume", &plan]).expect(100);
    scene.write("fixed", "");
    run_in(&elsewhere, &["retry", &plan]).expect(0);
    run_in(&elsewhere, &["pause", &plan]).expect(0);
    run_in(&elsewhere, &["resume", &plan]).expect(0);
    let events = run_in(&elsewhere, &["events", "-o", "jsonl"]).expect(0).stdout;
    let events_of_plan = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let events_of_plan =
        events_of_plan.filter(|event| event["stream_id"] != "statistics" && event["stream_id"] != "consent");
    let mut tags = events_of_plan.map(|event| event["tags"].clone()).collect::<Vec<_>>();
    assert!(tags.len() > 20, "{events}");
    tags.dedup();
    let project = format!("project:{}", scene.read(".git/crewlog/project"));
    assert_eq!(tags, [serde_json::json!([format!("plan:{plan}"), project])]);
}

#[test]
fn an_answer_or_a_task_may_start_with_a_dash() {
    let scene = Scene::new();
    for answer in ["-5", "- the first"] {
        let (plan, _) = scene.plan("1. How many are there?\n");
        scene.run(&["answer", &format!("{plan}/q1"), answer]).expect(0);
        assert_eq!(scene.show(&plan)["questions"][0]["answer"], answer);
    }
    let (plan, _) = scene.plan("1. How many are there?\n");
    scene.run(&["answer", &format!("{plan}/q1"), "-5", "--ask", "And of what?", "-q"]).expect(0);
    scene.run(&["task", "add", "- [ ] Paint the door", "--yes"]).expect(0);
    assert_eq!(scene.show("backlog")["tasks"][0]["description"], "Paint the door");
}

#[test]
fn a_task_with_two_open_questions_is_an_ambiguous_answer_target() {
    let scene = Scene::new();
    let (plan, ran) = scene.plan("1. Which colour is it?\n");
    ran.expect(5);
    scene.run(&["task", "ask", &format!("{plan}/1"), "How many are there?"]).expect(0);
    scene
        .run(&["answer", &format!("{plan}/1"), "yes"])
        .expect(4)
        .says(&[&format!("several open questions: {plan}/q1, {plan}/q2"), "hint: say which"]);
    for question in ["q1", "q2"] {
        scene.run(&["answer", &format!("{plan}/{question}"), "yes"]).expect(0);
    }
}
