//! The planner's host: a report is processed once, however often and in however many places it is read.

use std::collections::HashSet;

use crewlog_executors::claiming::claim_of;
use crewlog_executors::crew::human;
use crewlog_executors::planning;
use crewlog_mq::{Cause, Query, Recorded};
use crewlog_planner::claim::{self, Claim, Ending, TaskCommand};
use crewlog_planner::event::{self, PlannerConfig, TaskStatus, Usage};
use crewlog_planner::plan::TaskId;
use crewlog_planner::verify::{Decided, Verifier};

use super::rig::{PLAN, Rig, step, tags};
use crewlog_stage::counting::counted;

/// Reports as a person that the first attempt of a task is done.
async fn done(rig: &Rig, task: u64) {
    let mut claim = claim_of(&rig.store, PLAN, TaskId(task), tags());
    let ending = Ending::Completed { result: format!("{task} is done"), run: None };
    human::report(&mut claim, 1, &rig.store, &rig.life(), ending).await.unwrap();
}

/// Reports it as a worker with a usage.
async fn done_with_usage(rig: &Rig, task: u64) {
    let mut claim = claim_of(&rig.store, PLAN, TaskId(task), tags());
    let (executor, now) = (rig.life().executor("shell"), rig.store.now());
    let usage = Usage { input_tokens: 5, ..Usage::default() };
    let ending = Ending::Completed { result: format!("{task} is done"), run: None };
    for command in [
        TaskCommand::Claim(Claim { attempt: 1, executor, now, ..Claim::default() }),
        TaskCommand::End { epoch: 1, usage, ending },
    ] {
        claim.execute(command, &Cause::request()).await.unwrap();
    }
}

async fn plan_events(rig: &Rig) -> Vec<String> {
    let recorded = rig.recorded(&Query::aggregate(event::STREAM, PLAN)).await;
    recorded.into_iter().map(|recorded| recorded.event_type).collect()
}

#[tokio::test]
async fn a_report_read_twice_counts_once() {
    let rig = Rig::with_plan(vec![step(1, "a", &[]), step(2, "b", &[1])], PlannerConfig::default()).await;
    done(&rig, 1).await;
    for _ in 0..3 {
        let planner = planning::catch_up(&rig.store, PLAN, tags()).await.unwrap();
        assert_eq!(planner.handler().state().tasks[1].status, TaskStatus::Running);
    }
    let expected = ["TasksPlanned", "TaskDispatched", "TaskStatusUpdated", "TaskDispatched"];
    assert_eq!(plan_events(&rig).await, expected);
}

#[tokio::test]
async fn several_reports_are_taken_in_by_one_append_that_replays() {
    let tasks = vec![step(1, "a", &[]), step(2, "b", &[]), step(3, "c", &[1]), step(4, "d", &[2])];
    let rig = Rig::with_plan(tasks, PlannerConfig { parallelism: 20, ..PlannerConfig::default() }).await;
    done(&rig, 1).await;
    done(&rig, 2).await;
    let before = rig.store.head().await.unwrap();
    planning::catch_up(&rig.store, PLAN, tags()).await.unwrap();

    let all = rig.recorded(&Query::all()).await;
    let new: Vec<_> = all.iter().filter(|recorded| recorded.position > before).collect();
    let types: Vec<_> = new.iter().map(|recorded| &*recorded.event_type).collect();
    assert_eq!(types, ["TaskStatusUpdated", "TaskDispatched", "TaskStatusUpdated", "TaskDispatched"]);
    assert!(new.iter().all(|recorded| recorded.append_start == new[0].position), "one append");
    let mut verifier = Verifier::default();
    let mut appends = all.chunk_by(|one, other| one.append_start == other.append_start);
    // The rig planned it.
    verifier.trust(appends.next().unwrap()).unwrap();
    let decided = appends.map(|append| verifier.verify(append).unwrap()).last().unwrap();
    assert_eq!(decided, [Decided::Reaction, Decided::Reaction]);
}

#[tokio::test]
async fn a_resumed_planner_does_not_reread_processed_events() {
    let n_reads = async |n_tasks| {
        let tasks = (1..=n_tasks).map(|n| step(n, "a", &[])).collect();
        let rig = Rig::with_plan(tasks, PlannerConfig { parallelism: 20, ..PlannerConfig::default() }).await;
        for task in 1..n_tasks {
            done_with_usage(&rig, task).await;
        }
        planning::catch_up(&rig.store, PLAN, tags()).await.unwrap();
        let head = rig.store.head().await.unwrap();
        let (store, counts) = counted(&rig.store);
        let planner = planning::catch_up(&store, PLAN, tags()).await.unwrap();
        assert_eq!(planner.handler().state().tasks.last().unwrap().status, TaskStatus::Running);
        assert_eq!((counts.take_appends(), rig.store.head().await.unwrap()), (0, head));
        counts.take_reads()
    };
    assert_eq!(n_reads(3).await, n_reads(20).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_hosts_append_the_same_as_one() {
    let n_tasks = 12;
    let tasks = (1..=n_tasks).map(|n| step(n, "a", if n == 1 { &[] } else { &[1] })).collect();
    let config = PlannerConfig { parallelism: 20, ..PlannerConfig::default() };
    let rig = Rig::with_plan(tasks, config).await;
    let hosts = (0..4).map(|_| rig.host()).collect::<Vec<_>>();
    for task in 1..=n_tasks {
        done(&rig, task).await;
    }
    rig.end().await;
    for _ in 0..2 {
        planning::catch_up(&rig.store, PLAN, tags()).await.unwrap();
    }
    for host in hosts {
        host.abort();
    }
    let events = plan_events(&rig).await;
    let count = |name: &str| events.iter().filter(|event| *event == name).count();
    assert_eq!(count("TaskDispatched"), 12);
    assert_eq!(count("TaskStatusUpdated"), 12);
    assert_eq!(count("PlanningCompleted"), 1);
    assert_eq!(events.len(), 26);
}

#[tokio::test]
async fn every_event_names_its_cause_and_its_request() {
    let tasks = vec![step(1, "echo a", &[]), step(2, "exit 3", &[1]), step(3, "echo c", &[2])];
    let rig = Rig::with_plan(tasks, PlannerConfig::default()).await;
    let (host, worker) = (rig.host(), rig.worker(2));
    rig.end().await;
    worker.stop().await;
    host.abort();

    let all = rig.recorded(&Query::tag(event::plan_tag(PLAN))).await;
    assert_eq!(all.len(), rig.recorded(&Query::all()).await.len(), "every event bears the tag of its plan");
    let correlations = all.iter().map(|recorded| recorded.metadata().unwrap().correlation_id).collect::<HashSet<_>>();
    assert_eq!(correlations.len(), 1, "one request, one correlation");
    assert!(!correlations.contains(&None));
    for recorded in &all[1..] {
        let id = recorded.metadata().unwrap().causation_id.expect("all but the first have a cause");
        let cause = all.iter().find(|cause| cause.event_id == id).expect("the cause is in the log");
        assert!(cause.position < recorded.position);
        assert_eq!(expected_cause(recorded), cause.event_type, "{recorded:?}");
        if recorded.event_type == "TaskStatusUpdated" && recorded.data.contains("Completed") {
            assert_eq!(cause.aggregate_id, claim::aggregate_id(PLAN, TaskId(1)));
        }
    }
}

/// The type of the cause of an event of that run.
fn expected_cause(recorded: &Recorded) -> &'static str {
    match (recorded.event_type.as_str(), recorded.data.as_str()) {
        ("TaskClaimed" | "TaskCompleted" | "TaskFailed", _) => "TaskDispatched",
        ("TaskDispatched", data) if data.starts_with("{\"task_id\":1,") => "TasksPlanned",
        ("TaskDispatched", _) => "TaskCompleted",
        ("TaskStatusUpdated", data) if data.contains("Completed") => "TaskCompleted",
        ("TaskStatusUpdated" | "PlanningCompleted", _) => "TaskFailed",
        (other, _) => panic!("{other} does not occur"),
    }
}
