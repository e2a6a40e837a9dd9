//! Model requests with the log as memory: the resulting events, and when no request is sent any more.

use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::keys::{Keys, make_operator_key};
use crewlog_executors::model::{Asker, ModelError, NoAnswer, Reply, hash};
use crewlog_mq::{EventStore, Query, Range};
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::event::{RetryPolicy, Usage};
use crewlog_planner::model::{self, AnswerError, CallEvent, Fault, ModelAnswer, agent_plan_request, request_tag};
use crewlog_planner::protocol::AgentType;
use crewlog_planner::verify::{Decided, Verifier};
use tokio::time::Instant;

use super::rig::{Scripted, parameters, question, reply};
use crewlog_stage::backends::logs;

type Replies = Vec<Result<Reply, ModelError>>;

fn asker(store: &EventStore, plan: &str, replies: Replies) -> (Asker, Arc<Scripted>) {
    let scripted = Arc::new(Scripted::new(replies));
    let retry_policy = RetryPolicy { count: 2, first_ms: 1_000, longest_ms: 60_000, jitter_percent: 0 };
    let tags = vec![format!("plan:{plan}")];
    (Asker::new(scripted.clone(), retry_policy, store.clone(), plan, tags), scripted)
}

async fn recorded(store: &EventStore) -> Vec<CallEvent> {
    let loaded = store.load::<CallEvent>(&Query::stream(model::STREAM), Range::default()).await;
    loaded.expect("they can be read").into_iter().map(|envelope| envelope.event).collect()
}

fn failed(events: &[CallEvent]) -> Vec<(Fault, String)> {
    let failed = events.iter().filter_map(|event| match event {
        CallEvent::ModelFailed { class, error, .. } => Some((*class, error.clone())),
        CallEvent::ModelAsked { .. } | CallEvent::ModelAnswered { .. } => None,
    });
    failed.collect()
}

#[tokio::test]
async fn a_request_and_its_answer_are_recorded_with_usage_and_duration() {
    for (store, _on) in logs().await {
        let (asker, _) = asker(&store, "door-1", vec![Ok(reply("It is red."))]);
        let request = question("Which colour?");
        asker.ask(&request).await.unwrap();
        let loaded = store.load::<CallEvent>(&Query::stream(model::STREAM), Range::default()).await.unwrap();
        let [asked, answered] = &loaded[..] else { panic!("{loaded:?}") };
        let CallEvent::ModelAsked { request: asked_hash, asked: kept } = &asked.event else { panic!("{asked:?}") };
        assert_eq!((asked_hash, &**kept), (&hash(&request), &request));
        let CallEvent::ModelAnswered { request: of, answer } = &answered.event else { panic!("{answered:?}") };
        let ModelAnswer { text, usage } = answer;
        assert_eq!((of, text.as_str(), usage.cost_micros), (asked_hash, "It is red.", 66));
        assert_eq!((usage.input_tokens, usage.output_tokens), (7, 3));
        assert_eq!(answered.metadata.causation_id, Some(asked.recorded.event_id));
        assert_eq!(answered.recorded.aggregate_id, "door-1");
        for tag in ["plan:door-1".to_owned(), request_tag(asked_hash)] {
            assert!(answered.recorded.tags.contains(&tag), "{:?}", answered.recorded.tags);
        }
    }
}

#[tokio::test]
async fn the_first_readable_answer_of_several_counts() {
    for (store, _on) in logs().await {
        let folder = tempfile::tempdir().unwrap();
        let operator = folder.path().join("operator.key");
        make_operator_key(&operator).unwrap();
        let keys = |operator| Arc::new(Keys::open(folder.path().join("keys"), operator).unwrap());
        let log = store;
        let (sealed, _) = asker(&log.clone().veiled(keys(Some(&operator))), "a", vec![Ok(reply("sealed"))]);
        sealed.ask(&question("Really?")).await.unwrap();
        let store = log.veiled(keys(None));
        let (open, _) = asker(&store, "b", vec![Ok(reply("open"))]);
        assert!(!open.ask(&question("Really?")).await.unwrap().from_log, "a sealed answer is none without its key");
        let (again, _) = asker(&store, "c", vec![]);
        let answered = again.ask(&question("Really?")).await.unwrap();
        assert_eq!((answered.answer.text.as_str(), answered.from_log), ("open", true));
    }
}

#[test]
fn the_hash_of_a_request_is_the_same_in_every_build() {
    // Changing it would repeat every request in every log.
    assert_eq!(hash(&question("Really?")), "869b444bd49d67ada1236de36c185bfb17b17da8744562bfe659475d68f2f071");
    let asked = agent_plan_request(&parameters(), AgentType::Tactical, "words", "", &ToolRegistry::coding()).unwrap();
    let schema = asked.system.lines().last().unwrap();
    let keys = schema.match_indices("\"additionalProperties\":false,\"properties\":{").count();
    assert!(keys > 1 && schema.starts_with("{\"additionalProperties\""), "keys stand in order: {schema}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreported_tokens_are_estimated_from_characters() {
    for (store, _on) in logs().await {
        let silent = Reply { usage: Usage::default(), ..reply("It is red.") };
        let partly = Usage { output_tokens: 7, ..Usage::default() };
        let replies = vec![Ok(silent), Ok(Reply { usage: partly, ..reply("It is red.") })];
        let (asker, _) = asker(&store, "door-1", replies);
        for text in ["Which colour has the door?", "And the roof?"] {
            asker.ask(&question(text)).await.unwrap();
        }
        let used = recorded(&store).await.into_iter().filter_map(|event| match event {
            CallEvent::ModelAnswered { answer: ModelAnswer { usage, .. }, .. } => {
                Some((usage.input_tokens, usage.output_tokens, usage.estimated_tokens))
            }
            CallEvent::ModelAsked { .. } | CallEvent::ModelFailed { .. } => None,
        });
        // "Be brief." has 9 characters, the requests 26 and 13, the answer 10.
        assert_eq!(used.collect::<Vec<_>>(), [(3 + 7, 3, 13), (3 + 4, 7, 7)]);
    }
}

#[tokio::test]
async fn an_answer_in_the_log_is_reused_by_every_plan() {
    for (store, _on) in logs().await {
        let (first, _) = asker(&store, "a", vec![Ok(reply("yes"))]);
        let known = first.ask(&question("Really?")).await.unwrap();
        let n_events = recorded(&store).await.len();
        for plan in ["a", "b"] {
            let (again, _) = asker(&store, plan, vec![]);
            let answered = again.ask(&question("Really?")).await.unwrap();
            assert_eq!((&answered.answer, answered.from_log), (&known.answer, true));
        }
        assert_eq!(recorded(&store).await.len(), n_events, "nothing was added");
        let (other, scripted) = asker(&store, "a", vec![Ok(reply("no"))]);
        assert_eq!(other.ask(&question("Really, really?")).await.unwrap().answer.text, "no");
        assert_eq!(scripted.n_left(), 0, "another question is asked");
    }
}

#[tokio::test(start_paused = true)]
async fn each_failure_is_recorded_and_the_requested_wait_is_respected() {
    let store = EventStore::in_memory().await.unwrap();
    let limited = ModelError::RateLimited { retry_after: Some(Duration::from_secs(30)), message: "slowly".into() };
    let overloaded = ModelError::Overloaded { retry_after: None, message: "busy".into() };
    let (patient, _) = asker(&store, "a", vec![Err(limited), Err(overloaded), Ok(reply("at last"))]);
    let began = Instant::now();
    assert_eq!(patient.ask(&question("Now?")).await.unwrap().answer.text, "at last");
    assert!(began.elapsed() >= Duration::from_secs(32), "30 s as asked, 2 s by itself: {:?}", began.elapsed());
    let events = recorded(&store).await;
    assert_eq!(
        failed(&events).iter().map(|(class, _)| *class).collect::<Vec<_>>(),
        [Fault::RateLimited, Fault::Overloaded]
    );
    assert_eq!(events.len(), 4, "asked once, failed twice, answered");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_keeps_failing_is_abandoned_and_sent_again_next_time() {
    let store = EventStore::in_memory().await.unwrap();
    let server = || Err(ModelError::Server { status: 500, message: "broken".into() });
    let (patient, scripted) = asker(&store, "a", vec![server(), server(), server()]);
    assert!(patient.ask(&question("Now?")).await.is_err());
    assert_eq!((scripted.n_left(), failed(&recorded(&store).await).len()), (0, 3));
    let refused = ModelError::Refused { message: "no".into() };
    let (second, scripted) = asker(&store, "a", vec![Err(refused), Ok(reply("unasked"))]);
    assert!(second.ask(&question("Now?")).await.is_err());
    assert_eq!(scripted.n_left(), 1, "what was refused would be refused again");
    let (third, _) = asker(&store, "a", vec![Ok(reply("yes"))]);
    assert_eq!(third.ask(&question("Now?")).await.unwrap().answer.text, "yes");
}

#[tokio::test]
async fn a_request_interrupted_by_a_crash_is_sent_again_and_recorded_once() {
    for (store, _on) in logs().await {
        let (lost, _) = asker(&store, "a", vec![]);
        // The script is empty: a caller would panic.
        let crashed = tokio::spawn(async move { lost.ask(&question("Now?")).await.map(|_| ()) }).await;
        assert!(crashed.is_err(), "it died while it waited for the answer");
        let (again, _) = asker(&store, "a", vec![Ok(reply("yes"))]);
        assert_eq!(again.ask(&question("Now?")).await.unwrap().answer.text, "yes");
        let events = recorded(&store).await;
        assert!(matches!(&events[..], [CallEvent::ModelAsked { .. }, CallEvent::ModelAnswered { .. }]), "{events:?}");
    }
}

#[tokio::test]
async fn two_callers_with_the_same_request_share_one_answer() {
    for (store, _on) in logs().await {
        let (first, _) = asker(&store, "a", vec![Ok(reply("red"))]);
        let (second, _) = asker(&store, "a", vec![Ok(reply("blue"))]);
        let request = question("Which colour?");
        let (one, other) = futures::join!(first.ask(&request), second.ask(&request));
        assert_eq!(one.unwrap().answer.text, other.unwrap().answer.text);
    }
}

fn number(text: &str) -> Result<u32, AnswerError> {
    text.parse().map_err(|_| AnswerError::Form(format!("{text:?} is no number")))
}

#[tokio::test]
async fn a_refused_answer_gets_one_repair_turn_that_quotes_the_reason() {
    for (store, _on) in logs().await {
        let (once, _) = asker(&store, "a", vec![Ok(reply("many")), Ok(reply("12"))]);
        let read = once.read(question("How many?"), number).await.unwrap();
        assert_eq!(read.value, 12);
        let events = recorded(&store).await;
        assert_eq!(failed(&events), [(Fault::NotUnderstood, "\"many\" is no number".to_owned())]);
        let prompts = events.iter().filter_map(|event| match event {
            CallEvent::ModelAsked { asked, .. } => {
                Some(asked.messages.iter().map(|one| one.text.clone()).collect::<Vec<_>>())
            }
            CallEvent::ModelAnswered { .. } | CallEvent::ModelFailed { .. } => None,
        });
        let prompts = prompts.collect::<Vec<_>>();
        assert_eq!(prompts.len(), 2);
        assert_eq!(prompts[1][..2], ["How many?", "many"]);
        assert!(prompts[1][2].contains("That answer was refused: \"many\" is no number."), "{prompts:?}");
        // The log now has all of it.
        let (replayed, _) = asker(&store, "b", vec![]);
        let again = replayed.read(question("How many?"), number).await.unwrap();
        assert_eq!((again.value, again.answered.from_log), (12, true));
        assert_eq!(recorded(&store).await.len(), events.len());
    }
}

#[tokio::test]
async fn an_answer_refused_twice_counts_as_none() {
    for (store, _on) in logs().await {
        let (twice, _) = asker(&store, "a", vec![Ok(reply("many")), Ok(reply("lots"))]);
        let refused = twice.read(question("How many?"), number).await.expect_err("it is no number");
        assert!(matches!(&refused, NoAnswer::NotUnderstood(_)), "{refused:?}");
        assert_eq!(refused.to_string(), "the model's answer was refused twice: \"lots\" is no number");
    }
}

#[tokio::test]
async fn model_requests_are_replayed_from_the_log_alone() {
    for (store, _on) in logs().await {
        let (once, _) = asker(&store, "a", vec![Ok(reply("many")), Ok(reply("12"))]);
        once.read(question("How many?"), number).await.unwrap();
        let page = store.read(&Query::stream(model::STREAM), Range::default(), 100).await.unwrap();
        let mut verifier = Verifier::default();
        let mut decided = Vec::new();
        for recorded in &page.events {
            decided.extend(verifier.verify(std::slice::from_ref(recorded)).unwrap());
        }
        let names = decided.iter().map(Decided::name).collect::<Vec<_>>();
        assert_eq!(names, ["ModelAsked", "ModelAnswered", "ModelFailed", "ModelAsked", "ModelAnswered"]);
        // An answer without a request is refused.
        let unasked = Verifier::default().verify(&page.events[1..2]).expect_err("nobody asked");
        assert!(unasked.to_string().contains("this version refuses it: the request"), "{unasked}");
    }
}
