//! Requests between agents: the rules, the answer, the time, and what comes late. The other agent is played here.

use std::collections::BTreeSet;

use crewlog_mq::{Event as _, Handler, Timestamp};
use crewlog_planner::agents::requests::{
    LATE_ANSWERS_MAX, Request, RequestCommand, RequestEvent, RequestRefused, Standing, request_id,
};
use crewlog_planner::plan::{ParentTask, TaskId};
use crewlog_planner::protocol::{
    Ability, AgentRequest, AgentResponse, AgentType, Asking, CrossAgentStep, REQUEST_BYTES_MAX, REQUEST_TIMEOUT_MS_MAX,
    RESPONSE_BYTES_MAX, RequestError, usual_abilities,
};
use proptest::prelude::*;

fn at(ms: u64) -> Timestamp {
    Timestamp(1_700_000_000_000_000).plus(std::time::Duration::from_millis(ms))
}

fn task() -> ParentTask {
    ParentTask { plan: "p".into(), task: TaskId(2), attempt: 1 }
}

fn locate() -> AgentRequest {
    AgentRequest::Locate { entity: "struct User".into() }
}

fn ask_of(from: AgentType, target_agent: AgentType, request: AgentRequest, timeout_ms: u64) -> RequestCommand {
    let asking = Asking { from, step: CrossAgentStep { target_agent, request, timeout_ms } };
    let answers = usual_abilities().remove(&target_agent).unwrap();
    RequestCommand::Ask { task: task(), asking, answers, now: at(0) }
}

fn ask() -> RequestCommand {
    ask_of(AgentType::Tactical, AgentType::Perception, locate(), 100)
}

fn said(text: &str) -> AgentResponse {
    AgentResponse::Answer { text: text.into() }
}

fn answer(text: &str, ms: u64) -> RequestCommand {
    RequestCommand::Answer { response: said(text), now: at(ms) }
}

fn types(events: &[RequestEvent]) -> Vec<&'static str> {
    events.iter().map(crewlog_mq::Event::event_type).collect()
}

#[test]
fn every_request_comes_back_from_json_as_it_went() {
    let requests = [
        (AgentRequest::Analyse { text: "a \"b\"\n".into() }, r#"{"analyse":{"text":"a \"b\"\n"}}"#),
        (AgentRequest::Extract { context: "src".into() }, r#"{"extract":{"context":"src"}}"#),
        (locate(), r#"{"locate":{"entity":"struct User"}}"#),
    ];
    for (request, written) in requests {
        assert_eq!(serde_json::to_string(&request).unwrap(), written);
        assert_eq!(serde_json::from_str::<AgentRequest>(written).unwrap(), request);
    }
    let without_time = r#"{"target_agent":"perception","request":{"locate":{"entity":"x"}}}"#;
    assert!(serde_json::from_str::<CrossAgentStep>(without_time).unwrap_err().to_string().contains("timeout_ms"));
}

#[test]
fn a_question_and_its_answer_bear_one_correlation() {
    let mut request = Request::default();
    let mut events = request.process(ask()).unwrap();
    events.extend(request.process(answer("src/user.rs:3", 99)).unwrap());
    assert_eq!(types(&events), ["AgentRequested", "AgentAnswered"]);
    let RequestEvent::AgentRequested { correlation, until, asking, .. } = &events[0] else { panic!() };
    assert_eq!((correlation.as_str(), *until), ("p/2/1", at(100)));
    assert_eq!(asking.step.request, locate());
    assert_eq!(
        events[1],
        RequestEvent::AgentAnswered { correlation: request_id(&task()), response: said("src/user.rs:3") }
    );
    assert_eq!(request.asked().unwrap().standing, Standing::Answered(said("src/user.rs:3")));
}

#[test]
fn what_breaks_a_rule_is_refused_before_anybody_is_told() {
    use AgentType::{Orchestrator, Perception, Strategic, Tactical};
    let extract = AgentRequest::Extract { context: "x".into() };
    let long = AgentRequest::Analyse { text: "x".repeat(REQUEST_BYTES_MAX + 1) };
    let max = REQUEST_TIMEOUT_MS_MAX;
    let cases = [
        (
            ask_of(Tactical, Perception, AgentRequest::Locate { entity: " ".into() }, 1),
            RequestError::Empty { target: Perception, ability: Ability::Locate },
        ),
        (
            ask_of(Tactical, Perception, long, 1),
            RequestError::TooLong { value: REQUEST_BYTES_MAX + 1, max: REQUEST_BYTES_MAX },
        ),
        (ask_of(Tactical, Perception, locate(), 0), RequestError::Timeout { value: 0, max }),
        (ask_of(Tactical, Perception, locate(), max + 1), RequestError::Timeout { value: max + 1, max }),
        (
            ask_of(Perception, Tactical, extract.clone(), 1),
            RequestError::NotAllowed { from: Perception, target: Tactical },
        ),
        (
            ask_of(Strategic, Tactical, extract.clone(), 1),
            RequestError::NotAble {
                target: Tactical,
                ability: Ability::Extract,
                answers: BTreeSet::from([Ability::Analyse]),
            },
        ),
        (ask_of(Tactical, Orchestrator, extract, 1), RequestError::NotAllowed { from: Tactical, target: Orchestrator }),
    ];
    for (command, expected) in cases {
        let mut request = Request::default();
        assert_eq!(request.process(command).unwrap_err(), RequestRefused::Rule(expected));
        assert_eq!(request, Request::default());
    }
}

#[test]
fn who_may_ask_whom_is_settled_for_every_pair() {
    let may =
        |from: AgentType| AgentType::ALL.into_iter().filter(move |other| from.may_ask(*other)).collect::<Vec<_>>();
    use AgentType::{Orchestrator, Perception, Strategic, Tactical};
    assert_eq!(may(Strategic), [Tactical, Perception]);
    assert_eq!(may(Tactical), [Strategic, Perception]);
    assert_eq!(may(Perception), []);
    assert_eq!(may(Orchestrator), [Strategic, Tactical, Perception]);
}

#[test]
fn a_request_without_an_answer_times_out_at_its_moment_and_not_before() {
    let mut request = Request::default();
    request.process(ask()).unwrap();
    assert_eq!(request.process(RequestCommand::Tick { now: at(99) }).unwrap(), []);
    let events = request.process(RequestCommand::Tick { now: at(100) }).unwrap();
    assert_eq!(types(&events), ["RequestTimedOut"]);
    assert_eq!(request.process(RequestCommand::Tick { now: at(101) }).unwrap(), [], "once");
}

#[test]
fn a_late_answer_is_recorded_and_changes_nothing() {
    for is_noticed in [true, false] {
        let mut request = Request::default();
        request.process(ask()).unwrap();
        let mut events = Vec::new();
        if is_noticed {
            events.extend(request.process(RequestCommand::Tick { now: at(100) }).unwrap());
        }
        events.extend(request.process(answer("too late", 100)).unwrap());
        assert_eq!(types(&events), ["RequestTimedOut", "LateAnswer"]);
        let asked = request.asked().unwrap();
        assert_eq!((&asked.standing, asked.late()), (&Standing::TimedOut, &[said("too late")][..]));
        assert_eq!(request.process(answer("too late", 200)).unwrap(), [], "said twice");
    }
}

#[test]
fn late_answers_are_recorded_up_to_a_limit() {
    let mut request = Request::default();
    request.process(ask()).unwrap();
    let late = (0..LATE_ANSWERS_MAX as u64 + 5).map(|n| request.process(answer(&n.to_string(), 200 + n)).unwrap());
    let events = late.flatten().filter(|event| event.event_type() == "LateAnswer").count();
    assert_eq!(events, LATE_ANSWERS_MAX);
}

#[test]
fn asking_again_changes_nothing_and_asking_otherwise_is_refused() {
    let mut request = Request::default();
    request.process(ask()).unwrap();
    assert_eq!(request.process(ask()).unwrap(), []);
    let other = ask_of(AgentType::Tactical, AgentType::Perception, locate(), 101);
    assert_eq!(request.process(other).unwrap_err(), RequestRefused::AskedOtherwise);
    let unasked = Request::default().process(answer("x", 1)).unwrap_err();
    assert_eq!(unasked, RequestRefused::NotAsked);
}

#[test]
fn an_answer_that_is_no_longer_wanted_is_recorded_as_late() {
    let mut request = Request::default();
    request.process(ask()).unwrap();
    let withdrawn = request.process(RequestCommand::Withdraw { reason: "the task was cancelled".into() }).unwrap();
    assert_eq!(types(&withdrawn), ["RequestWithdrawn"]);
    assert_eq!(types(&request.process(answer("x", 1)).unwrap()), ["LateAnswer"]);
    let long = answer(&"x".repeat(RESPONSE_BYTES_MAX + 1), 1);
    assert!(matches!(request.process(long).unwrap_err(), RequestRefused::AnswerTooLong { .. }));
}

fn commands() -> impl Strategy<Value = RequestCommand> {
    prop_oneof![
        Just(ask()),
        Just(ask_of(AgentType::Perception, AgentType::Tactical, locate(), 5)),
        (0_u64..3, 0_u64..200).prop_map(|(n, ms)| answer(&n.to_string(), ms)),
        (0_u64..200).prop_map(|ms| RequestCommand::Tick { now: at(ms) }),
        Just(RequestCommand::Withdraw { reason: "why".into() }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn requests_keep_both_laws_and_can_be_decided_again(commands in prop::collection::vec(commands(), 0..20)) {
        let (mut request, mut history) = (Request::default(), Vec::new());
        for command in commands {
            let before = request.clone();
            let kept = serde_json::from_value::<RequestCommand>(command.recorded()).unwrap();
            match request.process(command) {
                Ok(events) => {
                    prop_assert_eq!(before.clone().process(kept).unwrap(), events.clone());
                    for event in &events {
                        let data = event.encode().unwrap();
                        prop_assert_eq!(&RequestEvent::decode(event.event_type(), RequestEvent::EVENT_VERSION, &data).unwrap(), event);
                    }
                    history.extend(events);
                    prop_assert_eq!(&request, &Request::fold(&history));
                }
                Err(_) => prop_assert_eq!(&request, &before),
            }
        }
    }
}
