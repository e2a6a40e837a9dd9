//! Hosts fire timers by log time: when due, after a restart, and several at once. Also usage reported by
//! holders, and retries that a person starts early.

use std::time::Duration;

use crewlog_executors::planning;
use crewlog_mq::Position;
use crewlog_planner::claim::TaskEvent;
use crewlog_planner::event::{Budget, Command, Event, PlannerConfig, TaskStatus, Timer, Usage};
use crewlog_planner::plan::{DefaultAnswer, NodeKind, TaskId, TaskPlan};

use tokio::sync::watch;

use super::rig::{Rig, Scripted, step};
use crate::retries::retries_after;

fn question() -> TaskPlan {
    let default_answer = Some(DefaultAnswer { answer: "blue".into(), after_ms: 600_000 });
    TaskPlan { default_answer, ..TaskPlan::new(TaskId(1), NodeKind::Clarification, "What colour?") }
}

fn is_deadline(event: &Event) -> bool {
    matches!(event, Event::TimerSet { .. })
}

fn answers(events: &[Event]) -> Vec<(&str, bool)> {
    let answers = events.iter().filter_map(|event| match event {
        Event::ClarificationReceived { answer, is_default, .. } => Some((answer.as_str(), *is_default)),
        _another => None,
    });
    answers.collect()
}

#[tokio::test]
async fn a_task_is_stopped_when_log_time_passes_its_deadline() {
    let clock = Scripted::default();
    let late = TaskPlan { deadline_ms: Some(60_000), ..step(1, "sleep 1000", &[]) };
    let rig = Rig::timed(&clock, vec![late], PlannerConfig::default()).await;
    let (host, worker) = (rig.host(), rig.worker(1));
    rig.until(1, |event| matches!(event, TaskEvent::TaskClaimed { .. })).await;
    let set = rig.until_plan(is_deadline).await;
    assert!(matches!(set.last(), Some(Event::TimerSet { timer: Timer::Task(TaskId(1)), .. })));
    clock.pass(Duration::from_secs(61));
    let events = rig.end().await;
    let ended = |event: &Event| matches!(event, Event::TaskStatusUpdated { status: TaskStatus::TimedOut, .. });
    assert!(events.iter().any(ended), "{events:?}");
    let told = rig.until(1, |event| matches!(event, TaskEvent::TaskStopped { .. })).await;
    assert!(matches!(told.last(), Some(TaskEvent::TaskStopped { reason, .. }) if reason.contains("its deadline")));
    worker.stop().await;
    host.abort();
}

#[tokio::test]
async fn a_timer_that_expired_without_a_host_fires_with_the_next_host() {
    for hosts_all in [false, true] {
        let clock = Scripted::default();
        let rig = Rig::timed(&clock, vec![question()], PlannerConfig::default()).await;
        let begin = || if hosts_all { rig.host_all() } else { rig.host() };
        let host = begin();
        rig.until_plan(is_deadline).await;
        host.abort();
        clock.pass(Duration::from_secs(3_600));
        let host = begin();
        assert_eq!(answers(&rig.end().await), [("blue", true)]);
        host.abort();
    }
}

#[tokio::test]
async fn a_new_host_of_all_plans_keeps_their_timers_when_a_task_is_claimed() {
    let clock = Scripted::default();
    let late = TaskPlan { deadline_ms: Some(60_000), ..step(1, "sleep 1000", &[]) };
    let rig = Rig::timed(&clock, vec![late], PlannerConfig::default()).await;
    let first = rig.host_all();
    rig.until_plan(is_deadline).await;
    first.abort();
    let (taken_in, mut is_read) = watch::channel(Position(0));
    let host = tokio::spawn(planning::host_all(rig.store.clone(), taken_in));
    is_read.changed().await.unwrap();
    let worker = rig.worker(1);
    rig.until(1, |event| matches!(event, TaskEvent::TaskClaimed { .. })).await;
    clock.pass(Duration::from_secs(61));
    rig.end().await;
    worker.stop().await;
    host.abort();
}

#[tokio::test]
async fn several_hosts_set_and_fire_a_deadline_once() {
    let clock = Scripted::default();
    let rig = Rig::timed(&clock, vec![question()], PlannerConfig::default()).await;
    let hosts = [rig.host(), rig.host(), rig.host_all(), rig.host_all()];
    rig.until_plan(is_deadline).await;
    clock.pass(Duration::from_secs(3_600));
    let events = rig.end().await;
    assert_eq!(answers(&events), [("blue", true)]);
    assert_eq!(events.iter().filter(|event| is_deadline(event)).count(), 1, "{events:?}");
    for host in hosts {
        host.abort();
    }
}

#[tokio::test]
async fn a_host_applies_default_answers_to_questions_of_other_hosts() {
    let clock = Scripted::default();
    let rig = Rig::timed(&clock, vec![step(1, "true", &[]), step(2, "true", &[1])], PlannerConfig::default()).await;
    let (host, all) = (rig.host(), rig.host_all());
    let default = Some(DefaultAnswer { answer: "three".into(), after_ms: 60_000 });
    rig.order(Command::Ask { task: TaskId(2), question: "How many?".into(), default }).await;
    rig.until_plan(is_deadline).await;
    clock.pass(Duration::from_secs(60));
    let events = rig.until_plan(|event| matches!(event, Event::ClarificationReceived { .. })).await;
    assert_eq!(answers(&events), [("three", true)]);
    host.abort();
    all.abort();
}

#[tokio::test]
async fn usage_reported_by_a_command_is_recorded_before_its_end_and_counts() {
    let says = "echo done; echo 'USAGE: {\"input_tokens\": 70, \"output_tokens\": 5, \"cost\": 0.25}'";
    let rig = Rig::with_plan(vec![step(1, says, &[])], PlannerConfig::default()).await;
    let (host, worker) = (rig.host(), rig.worker(1));
    let events = rig.end().await;
    let recorded = events.iter().find_map(|event| match event {
        Event::UsageRecorded { usage, attempt: 1, .. } => Some(Usage { duration_ms: 0, ..*usage }),
        _another => None,
    });
    let used = Usage { input_tokens: 70, output_tokens: 5, cost_micros: 250_000, ..Usage::default() };
    assert_eq!(recorded, Some(used));
    let told = rig.task_events(1).await;
    let [.., TaskEvent::UsageReported { .. }, TaskEvent::TaskCompleted { result, .. }] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(result, "done");
    worker.stop().await;
    host.abort();
}

#[tokio::test]
async fn the_duration_of_a_command_is_recorded_only_for_a_plan_with_a_time_budget() {
    let budget = Budget { duration_ms: Some(3_600_000), ..Budget::default() };
    for (budget, is_told) in [(budget, true), (Budget::default(), false)] {
        let config = PlannerConfig { budget, ..PlannerConfig::default() };
        let rig = Rig::with_plan(vec![step(1, "sleep 0.01", &[])], config).await;
        let (host, worker) = (rig.host(), rig.worker(1));
        let events = rig.end().await;
        let ran = |event: &Event| matches!(event, Event::UsageRecorded { usage, .. } if usage.duration_ms >= 10);
        assert_eq!(events.iter().any(ran), is_told, "{events:?}");
        worker.stop().await;
        host.abort();
    }
}

#[tokio::test]
async fn a_task_waiting_an_hour_for_its_retry_can_be_retried_now() {
    let config = PlannerConfig { retry: retries_after(3_600_000), ..PlannerConfig::default() };
    let rig = Rig::with_plan(vec![TaskPlan { retry: Some(5), ..step(1, "test -e ok", &[]) }], config).await;
    let (host, worker) = (rig.host(), rig.worker(1));
    rig.until_plan(|event| matches!(event, Event::TimerSet { timer: Timer::Retry(_), .. })).await;
    std::fs::write(rig.path("ok"), "").unwrap();
    rig.order(Command::RetryNow { task: TaskId(1) }).await;
    let events = rig.end().await;
    assert!(events.iter().any(|event| matches!(event, Event::TaskDispatched { attempt: 2, .. })));
    let told = rig.task_events(1).await;
    assert!(matches!(told.last(), Some(TaskEvent::TaskCompleted { attempt: 2, .. })), "{told:?}");
    worker.stop().await;
    host.abort();
}

#[tokio::test]
async fn a_retry_keeps_its_due_time_when_its_host_and_worker_are_replaced() {
    for hosts_all in [false, true] {
        let clock = Scripted::default();
        let config = PlannerConfig { retry: retries_after(60_000), ..PlannerConfig::default() };
        let flaky = TaskPlan { retry: Some(5), ..step(1, "echo ran >> ran; exit 1", &[]) };
        let rig = Rig::timed(&clock, vec![flaky], config).await;
        let begin = || if hosts_all { rig.host_all() } else { rig.host() };
        let (host, worker) = (begin(), rig.worker(1));
        let is_set = |event: &Event| matches!(event, Event::TimerSet { timer: Timer::Retry(_), .. });
        let events = rig.until_plan(is_set).await;
        let Some(Event::TimerSet { due, .. }) = events.last() else { panic!("{events:?}") };
        worker.stop().await;
        host.abort();
        clock.pass(Duration::from_secs(59));
        let hosts = [begin(), begin()];
        clock.pass(Duration::from_secs(3_600));
        let events = rig.until_plan(|event| matches!(event, Event::TaskDispatched { attempt: 2, .. })).await;
        let fired = events.iter().filter(|event| matches!(event, Event::TimerFired { .. })).collect::<Vec<_>>();
        assert_eq!(fired, [&Event::TimerFired { timer: Timer::Retry(TaskId(1)), due: *due }], "{events:?}");
        hosts.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
