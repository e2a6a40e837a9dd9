//! Questions of agents to the person.

use super::*;

fn ask(agent: &str, text: &str, wanted: Wanted) -> AskCommand {
    let ask = Ask { agent: agent.into(), wanted, text: text.into(), choices: Vec::new(), task: None, call: None };
    AskCommand::Ask { ask, now: Timestamp(0) }
}

fn answer(number: u64, text: &str, is_granted: Option<bool>) -> AskCommand {
    AskCommand::Answer { number, answer: Answer { by: "eve".into(), text: text.into(), is_granted }, now: Timestamp(1) }
}

#[test]
fn a_question_is_open_until_a_person_answers_it() {
    let mut asks = Asks::default();
    let mut history = asks.process(ask("ada", "Which?", Wanted::Answer)).unwrap();
    assert_eq!(asks.process(ask("ada", "Which?", Wanted::Answer)), Ok(vec![]), "it is asked once");
    history.extend(asks.process(ask("bob", "Which?", Wanted::Answer)).unwrap());
    history.extend(asks.process(ask("bob", "May I push?", Wanted::Permission)).unwrap());
    assert_eq!(asks.open().map(|(number, _)| number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(
        asks.process(answer(3, "go on", None)),
        Err(CrewError::Invalid("3 is a permission: say allow or deny".into()))
    );
    history.extend(asks.process(answer(3, "go on", Some(true))).unwrap());
    history.extend(asks.process(answer(1, "this one", None)).unwrap());
    assert_eq!(
        asks.process(answer(1, "that one", None)),
        Err(CrewError::Closed("a1 is answered or withdrawn already".into()))
    );
    assert_eq!(asks.answer(1).map(|(_, answer)| answer.text.as_str()), Some("this one"));
    let withdrawn = AskCommand::Withdraw {
        agent: "bob".into(),
        which: Withdrawn::All,
        reason: "it left".into(),
        now: Timestamp(2),
    };
    history.extend(asks.process(withdrawn).unwrap());
    assert_eq!(asks.open().count(), 0);
    assert_eq!(asks, Asks::fold(&history));
}

#[test]
fn questions_past_a_limit_are_refused() {
    let mut asks = Asks::default();
    let refused = |asks: &mut Asks, command| asks.process(command).unwrap_err().to_string();
    assert!(refused(&mut asks, ask("ada", " ", Wanted::Answer)).contains("needs a text"));
    assert!(refused(&mut asks, ask("ada", &"x".repeat(8_193), Wanted::Answer)).contains("at most 8192"));
    for n in 0..OPEN_MAX {
        asks.process(ask("ada", &n.to_string(), Wanted::Answer)).unwrap();
    }
    assert!(refused(&mut asks, ask("ada", "one more", Wanted::Answer)).contains("20 answers"));
    assert!(asks.process(ask("bob", "one more", Wanted::Answer)).is_ok());
}
