//! Requests and answers as a fold: both laws, and replayable commands.

use crewlog_mq::Handler;
use crewlog_planner::event::Usage;
use crewlog_planner::model::{CallError, CallEvent, Fault, ModelAnswer, ModelCalls};
use proptest::prelude::*;

use super::rig::question;

fn ask(hash: &str) -> CallEvent {
    CallEvent::ModelAsked { request: hash.into(), asked: Box::new(question(hash)) }
}

fn answer(hash: &str, text: &str) -> CallEvent {
    let usage = Usage { input_tokens: 7, cost_micros: 66, duration_ms: 5, ..Usage::default() };
    let answer = ModelAnswer { text: text.into(), usage };
    CallEvent::ModelAnswered { request: hash.into(), answer }
}

fn fail(hash: &str, class: Fault) -> CallEvent {
    CallEvent::ModelFailed { request: hash.into(), class, error: "it was busy".into() }
}

fn commands() -> impl Strategy<Value = CallEvent> {
    let hash = || prop::sample::select(vec!["a", "b", "c"]);
    prop_oneof![
        hash().prop_map(ask),
        (hash(), "[xy]").prop_map(|(hash, text)| answer(hash, &text)),
        (hash(), prop::sample::select(vec![Fault::Overloaded, Fault::NotUnderstood]))
            .prop_map(|(hash, class)| fail(hash, class)),
    ]
}

proptest! {
    #[test]
    fn model_calls_keep_both_laws_and_every_command_can_be_restored(
        commands in prop::collection::vec(commands(), 0..30)
    ) {
        let (mut calls, mut history) = (ModelCalls::default(), Vec::<CallEvent>::new());
        for command in commands {
            let before = calls.clone();
            match calls.process(command.clone()) {
                Ok(events) => {
                    history.extend(events.iter().cloned());
                    prop_assert_eq!(&calls, &ModelCalls::fold(&history));
                    if !events.is_empty() {
                        let restored = CallEvent::restore(&command.recorded(), &events).expect("it was kept");
                        prop_assert_eq!(restored, command);
                    }
                }
                Err(_) => prop_assert_eq!(&calls, &before),
            }
        }
    }
}

#[test]
fn the_first_answer_counts_and_a_late_failure_is_ignored() {
    let mut calls = ModelCalls::default();
    assert_eq!(calls.process(answer("a", "x")), Err(CallError::NotAsked("a".into())));
    let n_events = |calls: &mut ModelCalls, command| calls.process(command).map(|events| events.len());
    assert_eq!(n_events(&mut calls, ask("a")), Ok(1));
    assert_eq!(n_events(&mut calls, ask("a")), Ok(0), "what was asked before a crash is asked still");
    assert_eq!(n_events(&mut calls, fail("a", Fault::Overloaded)), Ok(1));
    assert_eq!(n_events(&mut calls, answer("a", "x")), Ok(1));
    assert_eq!(n_events(&mut calls, answer("a", "y")), Ok(0));
    assert_eq!(n_events(&mut calls, fail("a", Fault::TimedOut)), Ok(0));
    assert_eq!(calls.answer("a").map(|answer| answer.text.as_str()), Some("x"));
}

#[test]
fn a_command_is_not_restored_from_the_events_of_another() {
    let mut calls = ModelCalls::default();
    let asked = calls.process(ask("a")).unwrap();
    for kept in [answer("a", "x").recorded(), fail("a", Fault::Server).recorded(), serde_json::json!({ "Guess": {} })] {
        assert!(CallEvent::restore(&kept, &asked).is_err(), "{kept}");
    }
    assert!(CallEvent::restore(&ask("a").recorded(), &[]).is_err());
}
