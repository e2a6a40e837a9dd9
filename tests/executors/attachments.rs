//! Files that a task reads exist before it starts, or a person is asked for them.

use crewlog_executors::attachments::{GO_ON, check};
use crewlog_mq::Handler;
use crewlog_planner::event::{Answered, Command, Event, PlannerCmd, PlannerConfig, TaskInput};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use tempfile::TempDir;

/// The prompt of the only task of a text, in a folder.
fn told(text: &str, folder: &TempDir) -> TaskInput {
    task_inputs(text, folder).remove(0)
}

fn task_inputs(text: &str, folder: &TempDir) -> Vec<TaskInput> {
    let folder = folder.path().to_str().map(str::to_owned);
    let config = PlannerConfig { folder, parallelism: 9, ..PlannerConfig::default() };
    let user_input = text.to_owned();
    let mut planner = Planner::default();
    let events = planner.process(Command::of_text(user_input, config, true).unwrap()).unwrap();
    let is_for_executor =
        |event: &&Event| matches!(event, Event::TaskDispatched { command: PlannerCmd::ExecuteTask { .. }, .. });
    let state = planner.state();
    let dispatched = events.iter().filter(is_for_executor).filter_map(|event| match event {
        Event::TaskDispatched { task_id, .. } => state.task(*task_id),
        _another => None,
    });
    dispatched.map(|task| state.input(task)).collect()
}

fn answer(parameters: &mut TaskInput, answer: &str) -> String {
    let question = check(parameters).unwrap_err();
    let answered = Answered { task: TaskId(1), label: None, question: question.clone(), answer: answer.into() };
    parameters.answers.push(answered);
    question
}

#[test]
fn a_missing_file_is_asked_for_until_it_exists_or_a_person_skips_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut parameters = told("1. Analyze docs/data.csv\n", &folder);
    assert_eq!(parameters.needs, ["docs/data.csv"]);
    let question = answer(&mut parameters, "other.csv");
    assert!(question.starts_with("docs/data.csv is not there. "), "{question}");
    let question = answer(&mut parameters, "third.csv");
    assert!(question.starts_with("other.csv is not there. "), "{question}");
    std::fs::write(folder.path().join("third.csv"), "1").unwrap();
    assert_eq!(check(&parameters), Ok(()), "the answer is in the prompt");
    std::fs::remove_file(folder.path().join("third.csv")).unwrap();
    // The same names again lead to the same question, without a loop.
    answer(&mut parameters, "docs/data.csv");
    assert!(check(&parameters).is_err());
    // A text that starts like this is not a file name.
    let mut other = parameters.clone();
    answer(&mut other, "Go on without it, please");
    assert!(check(&other).is_ok());
    for name in ["go online.csv", "go-on.csv", "go one.csv"] {
        let mut named = parameters.clone();
        answer(&mut named, name);
        assert!(check(&named).unwrap_err().starts_with(&format!("{name} is not there.")), "{name} is a file");
    }
    answer(&mut parameters, GO_ON);
    assert_eq!(check(&parameters), Ok(()));
}

#[test]
fn an_existing_file_raises_no_question_and_links_are_checked_only_by_syntax() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.csv"), "1").unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let parameters = |needs: &str| TaskInput { needs: vec![needs.into()], ..told("1. Paint it\n", &folder) };
    let absolute = format!("file://{}/data.csv", folder.path().display());
    for there in ["data.csv", "src/", "./data.csv", absolute.as_str(), "https://example.org/a?b", "http://localhost:1"]
    {
        assert!(check(&parameters(there)).is_ok(), "{there}");
    }
    let missing = format!("file://{}/none.csv", folder.path().display());
    for not_there in ["none.csv", missing.as_str(), "https://", "http:///a", "https://:80/", "https://a b"] {
        assert!(check(&parameters(not_there)).is_err(), "{not_there}");
    }
}

#[test]
fn a_file_to_create_or_named_by_an_earlier_task_raises_no_question() {
    let folder = tempfile::tempdir().unwrap();
    let needs = |text: &str| task_inputs(text, &folder).into_iter().map(|told| told.needs).collect::<Vec<_>>();
    assert_eq!(needs("1. Implement src/new.rs\n"), [Vec::<String>::new()]);
    assert_eq!(needs("1. Run `cat none.txt`\n"), [Vec::<String>::new()]);
    assert_eq!(needs("- Write report.md\n- Review report.md\n"), [Vec::<String>::new(), Vec::new()]);
    assert_eq!(needs("- Review report.md\n- Review src/*.rs\n"), [vec!["report.md".to_owned()], Vec::new()]);
}
