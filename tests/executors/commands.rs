//! The result of a command: its output, exit code, duration and environment.

use crewlog_executors::output::OUTPUT_BYTES_MAX;
use crewlog_planner::claim::{RunDetails, TaskEvent};
use crewlog_planner::event::{Event, FailureClass, PlannerConfig, TaskStatus};
use crewlog_planner::plan::{TaskId, TaskPlan};

use super::rig::{Rig, soon, step};
use crate::retries::retries;

/// Settings for runs in which each failure is final.
fn once() -> PlannerConfig {
    PlannerConfig { retry: retries(0), ..PlannerConfig::default() }
}

/// The last event of a task that runs alone.
async fn run(task: TaskPlan) -> TaskEvent {
    let rig = Rig::with_plan(vec![task], once()).await;
    run_in(&rig).await
}

async fn run_in(rig: &Rig) -> TaskEvent {
    let (host, worker) = (rig.host(), rig.worker(1));
    rig.end().await;
    worker.stop().await;
    host.abort();
    rig.task_events(1).await.pop().unwrap()
}

async fn completed(command: &str) -> (String, RunDetails) {
    match run(step(1, command, &[])).await {
        TaskEvent::TaskCompleted { result, run, .. } => (result, run.unwrap()),
        other => panic!("{other:?}"),
    }
}

async fn failed(task: TaskPlan) -> (String, FailureClass, Option<RunDetails>) {
    match run(task).await {
        TaskEvent::TaskFailed { error, class, run, .. } => (error, class, run),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn output_exit_code_and_duration_are_recorded() {
    let line = "for i in 1 2 3; do echo out$i; echo err$i >&2; done; printf '\\377\\n'";
    let (result, run) = completed(line).await;
    assert_eq!(result, "out1\nerr1\nout2\nerr2\nout3\nerr3\n\u{fffd}", "in order, and what is not UTF-8 is replaced");
    assert_eq!((run.exit_code, run.signal, run.output_bytes, run.output_is_cut), (Some(0), None, 32, false));

    let (error, class, run) = failed(step(1, "echo why; exit 7", &[])).await;
    assert_eq!((error.as_str(), class), ("exit code 7\nwhy", FailureClass::Task));
    assert_eq!(run.unwrap().exit_code, Some(7));

    let (error, _, run) = failed(step(1, "kill -9 $$", &[])).await;
    assert_eq!(error, "ended by signal 9");
    assert_eq!(run.unwrap().signal, Some(9));
}

#[tokio::test]
async fn long_output_keeps_its_start_and_end() {
    let (result, run) = completed("echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last").await;
    assert!(result.starts_with("first\nx") && result.ends_with("x\nlast"));
    assert!(result.contains("bytes dropped") && result.len() < OUTPUT_BYTES_MAX + 100);
    assert!(run.output_is_cut);
    assert_eq!(run.output_bytes, 1_000_000 + "first\n\nlast\n".len() as u64);
}

#[tokio::test]
async fn a_leftover_process_in_another_session_does_not_delay_the_result() {
    let command = "echo kept; setsid sh -c 'echo > left; exec cat < pipe' & read line < left";
    let rig = Rig::with_plan(vec![step(1, command, &[])], once()).await;
    let pipe = rig.pipe("pipe");
    rig.pipe("left");
    // Opened for both, so that neither side waits for the other; the stray ends when it is dropped.
    let held = std::fs::File::options().read(true).write(true).open(pipe).unwrap();
    let TaskEvent::TaskCompleted { result, run, .. } = run_in(&rig).await else { panic!("it does not fail") };
    assert_eq!((result.as_str(), run.unwrap().output_bytes), ("kept", 5));
    drop(held);
}

#[tokio::test]
async fn a_command_past_its_timeout_is_stopped_and_keeps_its_output() {
    let task = TaskPlan { timeout_ms: Some(300), ..step(1, "echo begun; sleep 1000", &[]) };
    let (error, class, run) = failed(task).await;
    assert_eq!((error.as_str(), class), ("stopped after 300 ms, its time-out\nbegun", FailureClass::TimedOut));
    assert!(run.unwrap().duration_ms >= 300);
}

#[tokio::test]
async fn a_final_timeout_gives_the_status_timed_out() {
    let task = TaskPlan { timeout_ms: Some(1), ..step(1, "sleep 1000", &[]) };
    let rig = Rig::with_plan(vec![task], once()).await;
    run_in(&rig).await;
    let timed_out = rig
        .end()
        .await
        .into_iter()
        .any(|event| matches!(event, Event::TaskStatusUpdated { status, .. } if status == TaskStatus::TimedOut));
    assert!(timed_out);
}

#[tokio::test]
async fn a_command_that_cannot_start_is_retried_and_then_fails() {
    let config = PlannerConfig { retry: retries(1), ..PlannerConfig::default() };
    let rig = Rig::with_plan(vec![step(1, "true\0", &[])], config).await;
    run_in(&rig).await;
    let failures = rig.task_events(1).await.into_iter().filter_map(|event| match event {
        TaskEvent::TaskFailed { attempt, class, .. } => Some((attempt, class)),
        _other => None,
    });
    let not_started = FailureClass::NotStarted;
    assert_eq!(failures.collect::<Vec<_>>(), [(1, not_started), (2, not_started)]);
}

#[tokio::test]
async fn a_command_gets_plan_task_attempt_and_answers_in_its_environment() {
    use crewlog_planner::event::{Command, QuestionId};
    use crewlog_planner::plan::NodeKind;

    let question = TaskPlan::new(TaskId(1), NodeKind::Clarification, "What colour?");
    let question = TaskPlan { label: Some("2.1/question".into()), ..question };
    let say =
        "echo $CREWLOG_PLAN $CREWLOG_TASK $CREWLOG_ATTEMPT $CREWLOG_ANSWER_2_1_question $CREWLOG_ANSWER $EXTRA; pwd";
    let asked = TaskPlan { label: Some("2.1".into()), ..step(2, say, &[1]) };
    let rig = Rig::with_plan(vec![question, asked], once()).await;
    let (host, worker) = (rig.host(), rig.worker_with(1, vec![("EXTRA".into(), "more".into())]));
    rig.order(Command::Answer { question: QuestionId(1), answer: "sky blue".into() }).await;
    rig.end().await;
    soon(worker.stop()).await;
    host.abort();
    let TaskEvent::TaskCompleted { result, .. } = rig.task_events(2).await.pop().unwrap() else { panic!("it fails") };
    let folder = rig.folder.path().canonicalize().unwrap();
    assert_eq!(result, format!("p 2.1 1 sky blue sky blue more\n{}", folder.display()));
}
