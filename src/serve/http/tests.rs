//! An action of a need is the same action on every face.

use clap::Parser;
use crewlog_executors::crew::{NeedAction, OWN_WORDS};
use serde_json::{Value, json};

use super::forms::command_of;
use crate::action::{Action, of_need};
use crate::commands::resume::ResumeTarget;
use crate::commands::{Agree, Cli, Command, Plan, Task};
use crate::ui::text::words;

const WORDS: &str = "2h";

/// The digest of an input.
const SEEN: &str = "2b2470e603ddd69ae41fd6b1db59c4fb";

/// One of each kind, with and without the person's own words, and with names that a shell or a form could break.
fn actions() -> Vec<NeedAction> {
    let own = || OWN_WORDS.to_owned();
    let plan = || "it's a-plan".to_owned();
    let in_plan = || "it's/1 2".to_owned();
    vec![
        NeedAction::Answer { question: "a6".into(), text: "allow".into() },
        NeedAction::Answer { question: "a6".into(), text: "deny".into() },
        NeedAction::Answer { question: "it's/q1".into(), text: own() },
        NeedAction::Answer { question: "it's/q1".into(), text: "--no &=; \u{e4}".into() },
        NeedAction::Resume { target: plan() },
        NeedAction::Resume { target: in_plan() },
        NeedAction::Agree { target: in_plan(), seen: vec![SEEN.into()] },
        NeedAction::Retry { target: in_plan() },
        NeedAction::TaskDone { task: in_plan(), result: own() },
        NeedAction::TaskFail { task: in_plan(), error: own() },
        NeedAction::Cancel { target: in_plan() },
        NeedAction::PlanSet { plan: plan(), settings: vec!["budget.time=...".into()] },
        NeedAction::Send { to: vec!["ann".into(), "it's".into()], subject: own() },
    ]
}

/// The action of a command line.
fn of_line(line: &str) -> Action {
    let typed =
        words(&line.replace("\"...\"", WORDS).replace("=...", &format!("={WORDS}"))).expect("its quotes are closed");
    // A name or a text that begins with a dash comes after the options.
    let cli =
        Cli::try_parse_from(["crewlog".to_owned()].into_iter().chain(typed)).unwrap_or_else(|error| panic!("{error}"));
    match cli.command {
        Command::Answer(answer) => Action::Answer(answer),
        // A command line shows it first.
        Command::Agree(agree) => Action::Agree(Agree { seen: vec![SEEN.into()], ..agree }),
        Command::Resume(resume) => Action::Resume(ResumeTarget { target: resume.target.expect("it is typed") }),
        Command::Retry(retry) => Action::Retry(retry),
        Command::Cancel(cancel) => Action::Cancel(cancel),
        Command::Send(send) => Action::Send(send),
        Command::Plan(Plan::Set(set)) => Action::PlanSet(set),
        Command::Task(Task::Done(done)) => Action::TaskDone(done),
        Command::Task(Task::Fail(fail)) => Action::TaskFail(fail),
        other => panic!("{other:?} settles nothing"),
    }
}

/// The action that a form sends: each field as text, a list as several fields.
fn of_form(order: &Value) -> Action {
    let mut fields = Vec::new();
    for (name, value) in order.as_object().expect("it is an object") {
        let items = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        fields.extend(
            items.iter().map(|item| (name.clone(), item.as_str().expect("it is text").replace(OWN_WORDS, WORDS))),
        );
    }
    serde_json::from_value(command_of(&fields).into()).unwrap_or_else(|error| panic!("{fields:?}: {error}"))
}

#[test]
fn an_action_of_a_need_is_the_same_on_every_face() {
    for action in actions() {
        let order = json!(action);
        let executed = of_need(&order, WORDS).unwrap_or_else(|failure| panic!("{order}: {failure}"));
        assert_eq!(of_line(&action.words()), executed, "{}", action.words());
        assert_eq!(of_form(&order), executed, "{order}");
        let sent: Action = serde_json::from_value(json!(executed)).unwrap_or_else(|error| panic!("{order}: {error}"));
        assert_eq!(sent, executed, "as JSON");
    }
}
