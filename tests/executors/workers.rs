//! Workers on one plan: no task runs twice, each worker stops when it should, and another continues its tasks.

use crewlog_executors::claiming::claim_of;
use crewlog_mq::{Append, Cause, Expected, NewEvent, Position, Query};
use crewlog_planner::claim::{Claim, Ending, TaskCommand, TaskEvent};
use crewlog_planner::event::{self, Command, Event, Outcome, PlannerConfig, Setting, TaskStatus, Usage};
use crewlog_planner::plan::{FailurePolicy, NodeKind, TaskId, TaskPlan};
use crewlog_planner::view::PlanView;

use super::rig::{PLAN, Rig, blocking, executor, first_line, rest, step, tags, task_query};

fn side_by_side(parallelism: usize) -> PlannerConfig {
    PlannerConfig { parallelism, ..PlannerConfig::default() }
}

fn types(events: &[TaskEvent]) -> Vec<&'static str> {
    events.iter().map(crewlog_mq::Event::event_type).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_run_every_task_once() {
    let n_tasks = 20;
    let tasks = (1..=n_tasks).map(|n| step(n, "echo $CREWLOG_TASK >> ran", if n > 10 { &[1, 2] } else { &[] }));
    let rig = Rig::with_plan(tasks.collect(), side_by_side(6)).await;
    let (hosts, workers) = ([rig.host(), rig.host()], [rig.worker(3), rig.worker(3)]);
    rig.end().await;
    for worker in workers {
        worker.stop().await;
    }
    for host in hosts {
        host.abort();
    }
    let mut ran = rig.text("ran").lines().map(|line| line.parse::<u64>().unwrap()).collect::<Vec<_>>();
    ran.sort_unstable();
    assert_eq!(ran, (1..=n_tasks).collect::<Vec<_>>());
    for task in 1..=n_tasks {
        assert_eq!(types(&rig.task_events(task).await), ["TaskClaimed", "TaskCompleted"]);
    }
}

/// Two tasks wait for each other, and each worker has one slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_single_slot_workers_run_mutually_waiting_tasks() {
    let tasks = vec![step(1, "echo a > pipe", &[]), step(2, "cat pipe", &[])];
    let rig = Rig::with_plan(tasks, side_by_side(2)).await;
    rig.pipe("pipe");
    let (host, workers) = (rig.host(), [rig.worker(1), rig.worker(1)]);
    rig.end().await;
    for worker in workers {
        worker.stop().await;
    }
    host.abort();
}

/// A command that holds `pipe` open, with a child, until both have ended.
const HOLDS_PIPE: &str = "exec 9> pipe; echo up >&9; sleep 1000 & wait";

#[tokio::test]
async fn a_task_cancelled_while_running_is_stopped_and_leaves_no_process() {
    let rig = Rig::with_plan(vec![step(1, HOLDS_PIPE, &[]), step(2, "true", &[1])], side_by_side(2)).await;
    let pipe = rig.pipe("pipe");
    let (host, worker) = (rig.host(), rig.worker(1));
    let (line, pipe) = first_line(pipe).await;
    assert_eq!(line, "up\n");
    rig.order(Command::Cancel { task: Some(TaskId(1)), reason: "not wanted".into() }).await;
    let events = rig.until(1, |event| matches!(event, TaskEvent::TaskStopped { .. })).await;
    assert_eq!(types(&events), ["TaskClaimed", "TaskStopped"]);
    assert_eq!(rest(pipe).await, "");
    let ended = rig.end().await.pop();
    assert!(matches!(ended, Some(Event::PlanningCompleted { outcome: Outcome::Failed, .. })), "{ended:?}");
    worker.stop().await;
    host.abort();
    assert_eq!(rig.task_events(2).await, [], "what depends on it never began");
}

#[tokio::test]
async fn an_interrupted_worker_releases_its_task_and_another_finishes_it() {
    let command = "if test -e begun; then echo finished; else touch begun; echo up > pipe; sleep 1000; fi";
    let rig = Rig::with_plan(vec![step(1, command, &[])], side_by_side(1)).await;
    let pipe = rig.pipe("pipe");
    let (host, first) = (rig.host(), rig.worker(1));
    assert_eq!(first_line(pipe).await.0, "up\n");
    first.stop().await;
    assert_eq!(types(&rig.task_events(1).await), ["TaskClaimed", "TaskReleased"]);

    let second = rig.worker(1);
    let ended = rig.end().await.pop();
    assert!(matches!(ended, Some(Event::PlanningCompleted { outcome: Outcome::Completed, .. })), "{ended:?}");
    second.stop().await;
    host.abort();
    let Some(TaskEvent::TaskCompleted { epoch: 2, result, .. }) = rig.task_events(1).await.pop() else {
        panic!("the second claim completes it")
    };
    assert_eq!(result, "finished");
}

#[tokio::test]
async fn a_task_cancelled_before_its_turn_never_starts() {
    let tasks = vec![step(1, "echo up > pipe; cat gate", &[]), step(2, "touch ran", &[])];
    let rig = Rig::with_plan(tasks, side_by_side(2)).await;
    let (pipe, gate) = (rig.pipe("pipe"), rig.pipe("gate"));
    let (host, worker) = (rig.host(), rig.worker(1));
    assert_eq!(first_line(pipe).await.0, "up\n");
    rig.order(Command::Cancel { task: Some(TaskId(2)), reason: "not wanted".into() }).await;
    blocking(move || std::fs::write(gate, "go").unwrap()).await;
    rig.end().await;
    worker.stop().await;
    host.abort();
    assert!(!rig.path("ran").exists());
}

#[tokio::test]
async fn a_retried_task_runs_again_as_the_next_attempt() {
    let rig = Rig::with_plan(vec![step(1, "test $CREWLOG_ATTEMPT = 2", &[])], side_by_side(1)).await;
    let (host, worker) = (rig.host(), rig.worker(1));
    rig.end().await;
    rig.order(Command::Retry { task: None }).await;
    rig.until(1, |event| matches!(event, TaskEvent::TaskCompleted { attempt: 2, epoch: 2, .. })).await;
    worker.stop().await;
    host.abort();
}

/// The position of the first event of this type among those of a plan, or of a task.
async fn position(rig: &Rig, query: &Query, event_type: &str) -> Position {
    let events = rig.recorded(query).await;
    events.iter().find(|event| event.event_type == event_type).unwrap().position
}

#[tokio::test]
async fn a_task_dispatched_before_a_pause_of_its_plan_starts_only_after_the_resume() {
    let tasks = vec![step(1, "cat pipe", &[]), step(2, "true", &[])];
    let rig = Rig::with_plan(tasks, side_by_side(2)).await;
    let pipe = rig.pipe("pipe");
    let (host, worker) = (rig.host(), rig.worker(1));
    rig.until(1, |event| matches!(event, TaskEvent::TaskClaimed { .. })).await;
    rig.order(Command::Pause { reason: "lunch".into() }).await;
    // The running task finishes and leaves its slot free.
    blocking(move || std::fs::write(pipe, "go on").unwrap()).await;
    rig.until(1, |event| matches!(event, TaskEvent::TaskCompleted { .. })).await;
    worker.stop().await;
    // A worker that starts later has not seen the pause arrive.
    let worker = rig.worker(1);
    rig.until_plan(|event| {
        matches!(event, Event::TaskStatusUpdated { task_id: TaskId(1), status: TaskStatus::Completed, .. })
    })
    .await;
    rig.order(Command::Resume).await;
    rig.end().await;
    worker.stop().await;
    host.abort();
    let resumed = position(&rig, &Query::aggregate(event::STREAM, PLAN), "PlanResumed").await;
    assert!(position(&rig, &task_query(2), "TaskClaimed").await > resumed);
}

#[tokio::test]
async fn a_paused_dispatched_task_lets_others_go_first() {
    let tasks = vec![step(1, "cat pipe", &[]), step(2, "true", &[]), step(3, "true", &[])];
    let rig = Rig::with_plan(tasks, side_by_side(3)).await;
    let pipe = rig.pipe("pipe");
    let (host, worker) = (rig.host(), rig.worker(1));
    rig.until(1, |event| matches!(event, TaskEvent::TaskClaimed { .. })).await;
    rig.order(Command::PauseTask { task: TaskId(2), reason: "not yet".into() }).await;
    blocking(move || std::fs::write(pipe, "go on").unwrap()).await;
    rig.until(3, |event| matches!(event, TaskEvent::TaskCompleted { .. })).await;
    assert_eq!(types(&rig.task_events(2).await), Vec::<&str>::new());
    rig.order(Command::ResumeTask { task: TaskId(2) }).await;
    rig.end().await;
    worker.stop().await;
    host.abort();
}

fn at_once(n: usize) -> Command {
    Command::Configure { changes: vec![Setting::Parallelism(n)], reason: "less".into() }
}

#[tokio::test]
async fn dispatched_tasks_start_only_within_the_lowered_parallelism() {
    let tasks = vec![step(1, "cat pipe", &[]), step(2, "true", &[]), step(3, "true", &[])];
    let rig = Rig::with_plan(tasks, side_by_side(3)).await;
    let pipe = rig.pipe("pipe");
    rig.order(at_once(1)).await;
    let (host, worker) = (rig.host(), rig.worker(3));
    rig.until(1, |event| matches!(event, TaskEvent::TaskClaimed { .. })).await;
    blocking(move || std::fs::write(pipe, "go on").unwrap()).await;
    rig.end().await;
    worker.stop().await;
    host.abort();
    for (before, task) in [(1, 2), (2, 3)] {
        let completed = position(&rig, &task_query(before), "TaskCompleted").await;
        assert!(position(&rig, &task_query(task), "TaskClaimed").await > completed, "task {task}");
    }
}

async fn view(rig: &Rig) -> PlanView {
    let mut view = PlanView::default();
    for recorded in rig.recorded(&Query::all()).await {
        view.apply(&recorded).unwrap();
    }
    view
}

#[tokio::test]
async fn a_task_with_a_reported_end_is_not_startable_before_the_plan_handles_it() {
    let rig = Rig::with_plan(vec![step(1, "true", &[]), step(2, "true", &[])], side_by_side(2)).await;
    assert_eq!(view(&rig).await.free(), [TaskId(1), TaskId(2)]);
    let worker = rig.worker(1);
    for task in [1, 2] {
        rig.until(task, |event| matches!(event, TaskEvent::TaskCompleted { .. })).await;
    }
    worker.stop().await;
    let reported = view(&rig).await;
    assert_eq!((reported.free(), reported.has_unhandled_report()), (Vec::new(), true));
    let host = rig.host();
    rig.end().await;
    host.abort();
    assert!(!view(&rig).await.has_unhandled_report());
}

#[tokio::test]
async fn a_held_back_task_starts_when_the_parallelism_is_raised() {
    let tasks = vec![step(1, "cat pipe", &[]), step(2, "true", &[])];
    let rig = Rig::with_plan(tasks, side_by_side(2)).await;
    let pipe = rig.pipe("pipe");
    rig.order(at_once(1)).await;
    let (host, worker) = (rig.host(), rig.worker(2));
    rig.until(1, |event| matches!(event, TaskEvent::TaskClaimed { .. })).await;
    rig.order(at_once(2)).await;
    // While the first is still running.
    rig.until(2, |event| matches!(event, TaskEvent::TaskCompleted { .. })).await;
    blocking(move || std::fs::write(pipe, "go on").unwrap()).await;
    rig.end().await;
    worker.stop().await;
    host.abort();
}

fn at_once_of_tests(n: usize) -> Command {
    let changes = vec![Setting::ParallelismOfKind(NodeKind::UnitTest, Some(n))];
    Command::Configure { changes, reason: "less".into() }
}

fn test_of(id: u64) -> TaskPlan {
    TaskPlan { kind: NodeKind::UnitTest, ..step(id, "true", &[]) }
}

/// The plan has no event for a released task.
#[tokio::test]
async fn a_held_back_task_starts_when_the_task_in_its_slot_is_released() {
    let rig = Rig::with_plan(vec![test_of(1), test_of(2), step(3, "true", &[])], side_by_side(3)).await;
    let mut held = claim_of(&rig.store, PLAN, TaskId(2), tags());
    let now = rig.store.now();
    let claim = TaskCommand::Claim(Claim { attempt: 1, executor: executor("another"), now, ..Claim::default() });
    held.execute(claim, &Cause::request()).await.unwrap();
    rig.order(at_once_of_tests(1)).await;
    let worker = rig.worker(3);
    // By then it has looked at the first task, which has to wait.
    rig.until(3, |event| matches!(event, TaskEvent::TaskCompleted { .. })).await;
    assert_eq!(rig.task_events(1).await, []);
    let ending = Ending::Released { reason: "the worker was interrupted".into(), cut_off: false };
    let end = TaskCommand::End { epoch: held.handler().epoch, usage: Usage::default(), ending };
    held.execute(end, &Cause::request()).await.unwrap();
    rig.until(1, |event| matches!(event, TaskEvent::TaskCompleted { .. })).await;
    worker.stop().await;
}

#[tokio::test]
async fn an_event_that_this_version_cannot_read_blocks_no_task() {
    let rig = Rig::with_plan(vec![step(1, "true", &[]), step(2, "true", &[])], side_by_side(2)).await;
    rig.order(at_once(1)).await;
    let request = Cause::request();
    let unknown = NewEvent::from_json("TaskPondered", "1", "{}".into(), request.metadata()).unwrap().with_tags(tags());
    let unreadable = crewlog_planner::claim::aggregate_id(PLAN, TaskId(9));
    let append = Append::to(crewlog_planner::claim::STREAM, &unreadable, Expected::Any, vec![unknown]);
    rig.store.append(append).await.unwrap();
    let (host, worker) = (rig.host(), rig.worker(2));
    rig.end().await;
    worker.stop().await;
    host.abort();
}

#[tokio::test]
async fn a_worker_with_fewer_slots_than_the_plan_starts_the_most_urgent_first() {
    let echo = |id: u64, priority: Option<&str>| TaskPlan {
        priority: priority.map(str::to_owned),
        ..step(id, "echo $CREWLOG_TASK >> order", &[])
    };
    let tasks = vec![echo(1, Some("low")), echo(2, None), echo(3, None), echo(4, Some("urgent"))];
    let rig = Rig::with_plan(tasks, side_by_side(4)).await;
    let (host, worker) = (rig.host(), rig.worker(1));
    rig.end().await;
    worker.stop().await;
    host.abort();
    assert_eq!(rig.text("order"), "4\n2\n3\n1\n");
}

#[tokio::test]
async fn a_stopping_plan_withdraws_unclaimed_tasks() {
    let tasks = [1, 2, 3, 4].map(|id| step(id, "echo $CREWLOG_TASK >> ran; exit 1", &[]));
    let config = PlannerConfig { on_failure: FailurePolicy::Stop, ..side_by_side(4) };
    let rig = Rig::with_plan(tasks.to_vec(), config).await;
    let (host, worker) = (rig.host_all(), rig.worker(1));
    let events = rig.end().await;
    worker.stop().await;
    host.abort();
    assert_eq!(rig.text("ran"), "1\n");
    assert!(events.contains(&Event::PlanStopped { because: TaskId(1) }), "{events:?}");
    for task in 2..=4 {
        assert_eq!(types(&rig.task_events(task).await), ["TaskWithdrawn"]);
    }
}

#[tokio::test]
async fn a_task_paused_and_cancelled_runs_when_retried() {
    let rig = Rig::with_plan(vec![step(1, "echo ran >> ran", &[])], side_by_side(1)).await;
    rig.order(Command::PauseTask { task: TaskId(1), reason: "not yet".into() }).await;
    rig.order(Command::Cancel { task: Some(TaskId(1)), reason: "not wanted".into() }).await;
    rig.order(Command::Retry { task: Some(TaskId(1)) }).await;
    let (host, worker) = (rig.host(), rig.worker(1));
    rig.until(1, |event| matches!(event, TaskEvent::TaskCompleted { .. })).await;
    worker.stop().await;
    host.abort();
    assert_eq!(rig.text("ran"), "ran\n");
}
