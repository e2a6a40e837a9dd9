//! How a worker claims a dispatched task in competition with others.

use crewlog_mq::{Backoff, Cause, EventStore, ExecuteError, PAGE_EVENTS_MAX, Query, Range, Recorded, Runner};
use crewlog_planner::claim::{
    self, Claim, Ending, Executor, LateOutcome, LateReport, PromptDigest, TaskCommand, TaskError, TaskLease,
    TaskProgress,
};
use crewlog_planner::event;
use crewlog_planner::plan::TaskId;
use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::liveness::LivenessLock;
use crate::plans::tasks_of;
use crate::queue::Dispatch;
use crate::run::{Stop, wanted};
use crate::signs::check_expired;

/// Events of a plan that can hold back a task that might have started before; those of a task only that one.
const HOLDING: [&str; 5] = ["PlanPaused", "PlanStopped", "TaskPaused", "SettingsChanged", "TaskStatusUpdated"];

/// A task's aggregate on a log.
pub fn claim_of(store: &EventStore, plan: &str, task: TaskId, tags: Vec<String>) -> Runner<TaskLease> {
    Runner::new(store.clone(), claim::STREAM, &claim::aggregate_id(plan, task), tags)
}

/// Appends a claim together with other events.
pub(crate) trait Joint: Send + Sync {
    /// Decides a command on a task as read.
    fn append<'a>(
        &'a self,
        claim: &'a mut Runner<TaskLease>,
        command: TaskCommand,
        cause: &'a Cause,
    ) -> BoxFuture<'a, Result<(), ExecuteError<TaskError>>>;
}

/// A claim of a worker.
pub(crate) struct Bid<'a> {
    /// The name of the executor.
    pub(crate) name: &'a str,
    pub(crate) dispatch: &'a Dispatch,
    /// The other events of its append.
    pub(crate) with: Option<&'a dyn Joint>,
}

/// Decides a command on a task as it is; [`TaskError::Held`] if its holder is known to live though its lease has run out.
pub(crate) async fn execute_unless_proven(
    store: &EventStore,
    claim: &mut Runner<TaskLease>,
    life: &LivenessLock,
    command: impl FnOnce(&TaskLease) -> TaskCommand,
    with: Option<&dyn Joint>,
    cause: &Cause,
) -> Result<(), ExecuteError<TaskError>> {
    claim.catch_up().await?;
    check_expired(store, life, claim.handler(), store.now()).await?.map_err(ExecuteError::Refused)?;
    let command = command(claim.handler());
    match with {
        Some(others) => others.append(claim, command, cause).await,
        None => {
            let cause = cause.clone().keeping(command.recorded());
            claim.execute_as_read(command, &cause).await.map(drop)
        }
    }
}

/// The result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimOutcome {
    /// The task is held, with this epoch.
    Won(u64),
    /// Somebody else holds it.
    Held,
    /// Somebody else leases its files.
    Blocked,
    /// The plan has changed since it was read: ask again whether the task may start.
    Stale,
    /// This dispatch can no longer be claimed.
    Gone,
}

/// Claims a task under a name, unless its plan has changed since it was read. `prompt` gets the executor whose run was cut short,
/// if there was one, and gives the prompt of an agent; or nothing, if the task does not start. A lease whose holder is proven
/// dead is taken over. Faults of the log are retried.
pub(crate) async fn claim_task(
    store: &EventStore,
    life: &LivenessLock,
    claim: &mut Runner<TaskLease>,
    Bid { name, dispatch, with }: Bid<'_>,
    prompt: impl Fn(Option<&Executor>) -> Option<Option<PromptDigest>>,
    stop: &mut watch::Receiver<Option<Stop>>,
) -> ClaimOutcome {
    let mut backoff = Backoff::new();
    let mut dead_epoch = None;
    loop {
        let changes = Query::aggregate(event::STREAM, &dispatch.plan).of_types(HOLDING);
        let holds = |event: &Recorded| tasks_of(event).is_none_or(|of| of.is_empty() || of.contains(&dispatch.task));
        let error = match store.read(&changes, Range::after(dispatch.seen), PAGE_EVENTS_MAX).await {
            Ok(page) if page.events.iter().any(holds) => return ClaimOutcome::Stale,
            Ok(_) => {
                let (executor, attempt, now) = (life.executor(name), dispatch.attempt, store.now());
                let command = |task: &TaskLease| {
                    // The answer to an own claim may have been lost.
                    let is_own = task.holder.as_ref().is_some_and(|held| held.executor == executor);
                    let start = prompt(task.cut_short(attempt).filter(|_| !is_own));
                    let (only_reports, prompt) = (start.is_none(), start.flatten());
                    TaskCommand::Claim(Claim { attempt, executor, now, dead_epoch, only_reports, prompt })
                };
                match execute_unless_proven(store, claim, life, command, with, &dispatch.cause).await {
                    Ok(()) => return ClaimOutcome::Won(claim.handler().epoch),
                    Err(ExecuteError::Refused(TaskError::Held { executor, epoch, .. })) => {
                        if dead_epoch == Some(epoch) || !life.is_dead(&executor) {
                            return ClaimOutcome::Held;
                        }
                        dead_epoch = Some(epoch);
                        continue;
                    }
                    Err(ExecuteError::Refused(TaskError::Blocked(_))) => return ClaimOutcome::Blocked,
                    Err(ExecuteError::Refused(
                        TaskError::AttemptEnded(_) | TaskError::StaleEpoch(_) | TaskError::Parked,
                    )) => return ClaimOutcome::Gone,
                    // Another process appended first; decide again.
                    Err(ExecuteError::Contended { .. }) => continue,
                    Err(ExecuteError::Store(error)) => error,
                }
            }
            Err(error) => error,
        };
        // Never cancel an append in flight: it may already be committed, and the task would count as interrupted.
        let goes_on = tokio::select! {
            goes_on = backoff.wait_to_retry(&error) => goes_on,
            _ = wanted(stop) => false,
        };
        if !goes_on {
            return ClaimOutcome::Gone;
        }
    }
}

/// Records the session of a program, once; an empty one if it could not be continued.
pub(crate) async fn keep_session(claim: &mut Runner<TaskLease>, epoch: u64, id: &str, cause: &Cause) {
    let progress = TaskProgress { session: Some(id.to_owned()), ..TaskProgress::default() };
    append(claim, TaskCommand::Progress { epoch, progress }, cause).await;
}

/// Keeps the report of a run that had lost its task by then, in the log as it is now. A fault loses it.
pub(crate) async fn report_late(
    store: &EventStore,
    dispatch: &Dispatch,
    (epoch, executor): (u64, Executor),
    ending: Ending,
) {
    let (outcome, text) = match ending {
        Ending::Completed { result, .. } => (LateOutcome::Completed, result),
        Ending::Failed { error, .. } => (LateOutcome::Failed, error),
        Ending::Asked { question, .. } => (LateOutcome::Asked, question),
        Ending::Stopped { .. } | Ending::Released { .. } => return,
    };
    let late = LateReport { attempt: dispatch.attempt, epoch, executor, outcome, text };
    let command = TaskCommand::ReportLate { late };
    let mut claim = claim_of(&store.current(), &dispatch.plan, dispatch.task, dispatch.tags.clone());
    let cause = Cause::request().keeping(command.recorded());
    if let Err(ExecuteError::Store(error)) = claim.execute(command, &cause).await {
        error.warn("a report that came too late is lost");
    }
}

/// Appends what the holder says, however long the log takes; false when the holder has lost the task.
pub(crate) async fn append(claim: &mut Runner<TaskLease>, command: TaskCommand, cause: &Cause) -> bool {
    let cause = cause.clone().keeping(command.recorded());
    let mut backoff = Backoff::new();
    loop {
        match claim.execute(command.clone(), &cause).await {
            Ok(_) => return true,
            Err(ExecuteError::Refused(refusal)) => {
                tracing::warn!(%refusal, "report refused: the lease was lost");
                return false;
            }
            Err(ExecuteError::Store(error)) if error.is_final() => {
                tracing::warn!(%error, "permanent log error: a report was not appended");
                return false;
            }
            Err(ExecuteError::Contended { .. }) => tokio::time::sleep(backoff.pause()).await,
            Err(ExecuteError::Store(error)) => backoff.wait(&error).await,
        }
    }
}

#[cfg(test)]
mod tests;
