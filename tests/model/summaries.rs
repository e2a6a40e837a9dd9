//! Summaries written by a model: when one is requested, its effect, and the fallback.

use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::model::{Model, ModelError, Reply, RetryPolicy};
use crewlog_executors::plans::planner_of;
use crewlog_executors::summaries::{self, Summarizer};
use crewlog_executors::worker::Scope;
use crewlog_mq::{Cause, EventStore, Handler, Query, Runner};
use crewlog_planner::event::{self, Command, Event, ExecutorEvent, FailureClass, PlannerConfig, QuestionId, Summaries};
use crewlog_planner::model::ModelRequest;
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use crewlog_planner::prompt::history;
use futures::StreamExt;
use futures::future::BoxFuture;

use super::rig::{Scripted, parameters, reply};

const PLAN: &str = "house-1";

/// A plan of tasks for agents, starting with a question, with a long history after a few of them.
fn begin() -> Command {
    let steps = (1..=9).map(|n| format!("- S{n}: Build part {n}\n")).collect::<String>();
    let config =
        PlannerConfig { token_budget: 400, parallelism: 20, summaries: Summaries::Model, ..PlannerConfig::default() };
    let user_input = format!("- Q: Which colour?\n{steps}");
    Command::Initialize { user_input, attachments: Vec::new(), config, parallel: true }
}

fn answered() -> Command {
    answered_by("Red, as ever")
}

fn answered_by(answer: &str) -> Command {
    Command::Answer { question: QuestionId(1), answer: answer.to_owned() }
}

fn done(task: u64) -> Command {
    let result = format!("part {task} stands in parts/{task}.rs, {}", "well made ".repeat(20));
    Command::HandleExecutorEvent(ExecutorEvent::TaskCompleted { node_id: TaskId(task), attempt: 1, result })
}

fn wanted(events: &[Event]) -> Option<(&[TaskId], usize)> {
    events.iter().find_map(|event| match event {
        Event::CompactionRequested { task_ids, max_tokens } => Some((&task_ids[..], *max_tokens)),
        _another => None,
    })
}

fn compacted(events: &[Event]) -> Option<(&str, &[TaskId])> {
    events.iter().find_map(|event| match event {
        Event::ContextCompacted { summary, removed_task_ids, .. } => Some((&summary[..], &removed_task_ids[..])),
        _another => None,
    })
}

/// A planner whose history has just become long enough for a summary, and the tasks to summarise.
fn waiting() -> (Planner, Vec<TaskId>) {
    let mut planner = Planner::default();
    planner.process(begin()).expect("it is decided");
    planner.process(answered()).expect("it is decided");
    for task in 2..=10 {
        let events = planner.process(done(task)).expect("it is decided");
        if let Some((task_ids, max_tokens)) = wanted(&events) {
            assert_eq!(max_tokens, 140);
            return (planner, task_ids.to_vec());
        }
        assert_eq!(compacted(&events), None, "not before a model was asked");
    }
    panic!("no summary was wanted");
}

#[test]
fn a_summary_is_requested_once_and_replaces_its_tasks_but_no_decisions() {
    let (mut planner, task_ids) = waiting();
    let last = task_ids.last().unwrap().0;
    let more = planner.process(done(last + 1)).unwrap();
    assert_eq!((wanted(&more), compacted(&more)), (None, None), "it is wanted already");
    let summarise = Command::Summarise { summary: "Some parts stand.".into(), task_ids: task_ids.clone() };
    let events = planner.process(summarise.clone()).unwrap();
    let (summary, removed) = compacted(&events).unwrap();
    assert_eq!(summary, "Decided in Q: Which colour? -> Red, as ever\nSome parts stand.");
    assert_eq!(removed, task_ids);
    let past = history(planner.state());
    assert!(past.contains(&format!("part {} stands", last + 1)), "{past}");
    assert!(!past.contains(&format!("part {last} stands")), "{past}");
    assert_eq!(planner.process(summarise), Ok(Vec::new()), "what comes again is not wanted any more");
}

#[test]
fn a_summary_is_corrected_when_one_of_its_tasks_is_reopened() {
    let (mut planner, task_ids) = waiting();
    let failed = task_ids.last().unwrap().0 + 1;
    let error = "it broke, ".repeat(30);
    let (node_id, class) = (TaskId(failed), FailureClass::Task);
    let report = ExecutorEvent::TaskFailed { node_id, attempt: 1, error, class };
    planner.process(Command::HandleExecutorEvent(report)).unwrap();
    // A summary of these tasks is pending: it is requested again, without outdated tasks.
    planner.process(Command::CompactContext { max_tokens: 100 }).unwrap();
    let before = history(planner.state());
    assert!(before.contains(&format!("S{} failed", failed - 1)), "{before}");
    planner.process(Command::Retry { task: Some(TaskId(failed)) }).unwrap();
    let after = history(planner.state());
    assert!(!after.contains(&format!("S{} failed", failed - 1)), "{after}");
    assert!(
        after.contains(&format!("ignore the above for: S{})", failed - 1)),
        "a model may have said it otherwise: {after}"
    );
    assert!(after.contains("Red, as ever"), "all else stays: {after}");
}

#[test]
fn a_summary_of_a_task_reopened_in_the_meantime_is_ignored() {
    let mut planner = Planner::default();
    planner.process(begin()).unwrap();
    planner.process(answered()).unwrap();
    let error = "it broke, ".repeat(30);
    let report = ExecutorEvent::TaskFailed { node_id: TaskId(2), attempt: 1, error, class: FailureClass::Task };
    planner.process(Command::HandleExecutorEvent(report)).unwrap();
    let mut done = (3..=10).map(|task| planner.process(done(task)).unwrap());
    let task_ids = done.find_map(|events| wanted(&events).map(|(task_ids, _)| task_ids.to_vec())).unwrap();
    drop(done);
    assert!(task_ids.contains(&TaskId(2)), "{task_ids:?}");
    planner.process(Command::Retry { task: Some(TaskId(2)) }).unwrap();
    let late = Command::Summarise { summary: "Part 1 failed.".into(), task_ids };
    let events = planner.process(late).unwrap();
    assert_eq!(compacted(&events), None, "it says what holds no more");
}

#[test]
fn a_late_answer_to_an_earlier_summary_request_is_ignored() {
    let (mut planner, task_ids) = waiting();
    let mut earlier = task_ids.clone();
    earlier.pop();
    let late = Command::Summarise { summary: "Fewer parts stand.".into(), task_ids: earlier };
    assert_eq!(planner.process(late), Ok(Vec::new()));
    assert!(planner.state().wants_summary());
}

#[test]
fn shortening_a_long_summary_keeps_every_decision_and_replays_identically() {
    let (mut planner, task_ids) = waiting();
    let mut again = planner.clone();
    let decision = "Decided in Q: Which colour? -> Red, as ever";
    let summary = format!("{}{decision}{}", "early ".repeat(60), " late".repeat(60));
    let events = planner.process(Command::Summarise { summary, task_ids: task_ids.clone() }).expect("it is decided");
    let (stored, _) = compacted(&events).expect("it is compacted");
    assert!(stored.contains(decision) && stored.chars().count() <= 560, "{stored}");
    let kept = Command::Summarise { summary: stored.to_owned(), task_ids };
    assert_eq!(again.process(kept), Ok(events));
}

#[test]
fn history_without_a_summary_in_time_is_compacted_by_rule() {
    let (mut planner, task_ids) = waiting();
    let mut compactions = 0;
    for task in task_ids.last().unwrap().0 + 1..=10 {
        compactions += usize::from(compacted(&planner.process(done(task)).unwrap()).is_some());
        assert!(planner.state().history_chars() <= 4 * 360);
    }
    assert_eq!(compactions, 1);
}

#[test]
fn an_overlong_summary_is_shortened_to_its_budget() {
    let (mut planner, task_ids) = waiting();
    let summary = "long ".repeat(1_000);
    let events = planner.process(Command::Summarise { summary, task_ids }).unwrap();
    let (summary, _) = compacted(&events).unwrap();
    assert!(summary.chars().count() <= 560 && summary.starts_with("Decided in Q"), "{summary}");
}

/// A plan on a log that needs a summary.
async fn plan_that_waits(store: &EventStore, plan: &str, tags: Vec<String>, answer: &str) {
    let mut planner: Runner<Planner> = planner_of(store, plan, tags).await.expect("it goes on");
    for command in [begin(), answered_by(answer)].into_iter().chain((2..=10).map(done)) {
        let executed = planner.execute(command, &Cause::request()).await.expect("it goes on");
        if executed.events.iter().any(|event| matches!(event, Event::CompactionRequested { .. })) {
            break;
        }
    }
}

/// The compaction of a plan when a model writes summaries for the first plan and its sub-plans.
async fn compacted_by(store: &EventStore, plan: &str, model: Arc<dyn Model>) -> String {
    let mut compactions = store
        .subscribe::<Event>(&Query::aggregate(event::STREAM, plan).of_type("ContextCompacted"))
        .expect("it goes on");
    let retry_policy = RetryPolicy { retries_max: 0, first: Duration::ZERO, longest: Duration::ZERO };
    let summarizer = Summarizer { model, retry_policy, parameters: parameters() };
    let host = tokio::spawn(summaries::host(store.clone(), Scope::Plan(PLAN.into()), summarizer));
    let compacted = tokio::time::timeout(Duration::from_secs(60), compactions.next()).await.expect("in time");
    host.abort();
    let Event::ContextCompacted { summary, .. } = compacted.expect("it goes on").expect("it goes on").event else {
        panic!("another event")
    };
    summary
}

/// The same for one plan, with a model with these replies.
async fn hosted(replies: Vec<Result<Reply, ModelError>>) -> String {
    let store = EventStore::in_memory().await.expect("it goes on");
    plan_that_waits(&store, PLAN, vec![event::plan_tag(PLAN)], "Red, as ever").await;
    compacted_by(&store, PLAN, Arc::new(Scripted::new(replies))).await
}

/// A model that never answers requests about red things.
struct Slow;

impl Model for Slow {
    fn ask<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Result<Reply, ModelError>> {
        if request.messages.iter().any(|message| message.text.contains("Red, as ever")) {
            return Box::pin(std::future::pending());
        }
        Box::pin(async { Ok(reply("Parts stand in parts/.")) })
    }
}

#[tokio::test]
async fn sub_plans_are_summarised_too_and_a_slow_answer_delays_no_other_plan() {
    let store = EventStore::in_memory().await.expect("it goes on");
    plan_that_waits(&store, PLAN, vec![event::plan_tag(PLAN)], "Red, as ever").await;
    let below = "house-1.2-1";
    plan_that_waits(&store, below, vec![event::plan_tag(below), event::ancestor_tag(PLAN)], "Blue").await;
    let summary = compacted_by(&store, below, Arc::new(Slow)).await;
    assert_eq!(summary, "Decided in Q: Which colour? -> Blue\nParts stand in parts/.");
}

#[tokio::test]
async fn a_configured_model_writes_the_summary() {
    assert_eq!(
        hosted(vec![Ok(reply("Parts 1 to 3 stand in parts/."))]).await,
        "Decided in Q: Which colour? -> Red, as ever\nParts 1 to 3 stand in parts/."
    );
}

#[tokio::test]
async fn an_unusable_summary_is_requested_again_and_then_made_by_rule() {
    let second = hosted(vec![Ok(reply("")), Ok(reply("Some parts stand."))]).await;
    assert_eq!(second, "Decided in Q: Which colour? -> Red, as ever\nSome parts stand.");
    let by_rule = hosted(vec![Ok(reply("")), Ok(reply(&"long ".repeat(1_000)))]).await;
    assert!(by_rule.contains("Decided in Q") && by_rule.contains("S6 done: Build part 6"), "{by_rule}");
}

#[tokio::test]
async fn a_failing_model_leaves_the_summary_to_the_rule() {
    let by_rule = hosted(vec![Err(ModelError::NotConfigured { message: "no key".into() })]).await;
    assert!(by_rule.contains("S6 done: Build part 6"), "{by_rule}");
}
