//! Signals from outside: to the supervisor of a worker, and to a command together with its worker.

use std::path::Path;

use crewlog_planner::claim::TaskEvent;
use crewlog_planner::event::{FailureClass, PlannerConfig};
use crewlog_planner::plan::TaskPlan;

use super::rig::{Rig, soon, step};
use super::rig::{first_line, rest};
use crate::retries::retries;

#[tokio::test]
async fn a_stopped_supervisor_is_killed_with_all_its_children() {
    let command = "exec 9> pipe; echo up >&9; kill -STOP $PPID; sleep 1000 & wait";
    let task = TaskPlan { timeout_ms: Some(300), ..step(1, command, &[]) };
    let rig = Rig::with_plan(vec![task], PlannerConfig { retry: retries(0), ..PlannerConfig::default() }).await;
    let pipe = rig.pipe("pipe");
    let (host, worker) = (rig.host(), rig.worker(1));
    let (line, pipe) = first_line(pipe).await;
    assert_eq!(line, "up\n");
    rig.end().await;
    assert_eq!(rest(pipe).await, "", "no child of it is left");
    worker.stop().await;
    host.abort();
    let last = rig.task_events(1).await.pop();
    let Some(TaskEvent::TaskFailed { class, error, .. }) = last else { panic!("{last:?}") };
    assert_eq!((class, error.as_str()), (FailureClass::TimedOut, "stopped after 300 ms, its time-out"));
}

#[tokio::test]
async fn a_task_signalled_together_with_its_worker_is_released() {
    let command = "if test -e begun; then echo finished; else touch begun; echo $$ > pipe; kill $$; fi";
    let rig = Rig::with_plan(vec![step(1, command, &[])], PlannerConfig::default()).await;
    let pipe = rig.pipe("pipe");
    let (host, first) = (rig.host(), rig.worker(1));
    let command = Path::new("/proc").join(first_line(pipe).await.0.trim());
    // It is gone once its supervisor has waited for it, and the report is under way before the worker's own signal.
    let gone = async {
        while command.exists() {
            tokio::task::yield_now().await;
        }
    };
    soon(gone).await;
    first.stop().await;
    let last = rig.task_events(1).await.pop();
    assert!(matches!(last, Some(TaskEvent::TaskReleased { .. })), "{last:?}");

    let second = rig.worker(1);
    rig.end().await;
    second.stop().await;
    host.abort();
    let last = rig.task_events(1).await.pop();
    let Some(TaskEvent::TaskCompleted { epoch: 2, result, .. }) = last else { panic!("{last:?}") };
    assert_eq!(result, "finished");
}
