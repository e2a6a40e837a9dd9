//! A worker: it follows the dispatched tasks of a plan, claims those that it can carry out, and appends how they ended.
//!
//! It learns of a task from its subscription alone. A task runs beside the subscription, so a long one delays no other;
//! a task that the plan ends meanwhile is stopped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{Cause, Envelope, Error, EventStore, ExecuteError, Position, Query, Range, Runner, Start};
use crewlog_planner::claim::{Ending, TaskClaim, TaskCommand, TaskError};
use crewlog_planner::event::{self, Event, Parameters, PlannerCmd, TaskStatus};
use crewlog_planner::plan::TaskId;
use futures::StreamExt;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinSet;

use crate::human::claim_of;
use crate::liveness::SignOfLife;
use crate::shell::{Job, Shell, Stop, wanted};

/// The name of the executor of commands.
pub const SHELL: &str = "shell";

/// How often a holder says that it is alive.
const RENEW_INTERVAL: Duration = Duration::from_secs(60);
/// How often a worker looks whether the holder of a task that it wants has died.
const HOLDER_INTERVAL: Duration = Duration::from_millis(100);
/// How often that is done before somebody is told.
const HELD_SILENTLY_MAX: u32 = 50;
/// The waits after a failed append grow from the first to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// What a worker works with.
pub struct Worker {
    store: EventStore,
    shell: Shell,
    life: SignOfLife,
    places: Semaphore,
}

/// A dispatched task on its way to an executor.
struct Dispatch {
    plan: String,
    tags: Vec<String>,
    task: TaskId,
    attempt: u32,
    delay: Duration,
    parameters: Parameters,
    cause: Cause,
}

impl Worker {
    /// A worker that runs at most `jobs` commands at once.
    #[must_use]
    pub fn new(store: EventStore, shell: Shell, life: SignOfLife, jobs: usize) -> Self {
        Self { store, shell, life, places: Semaphore::new(jobs) }
    }

    /// Carries out a plan's tasks until `stop` is set, then stops what runs, gives it back, and returns.
    ///
    /// # Errors
    /// A fault of the log while the plan is first read.
    pub async fn run(self, plan: String, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let worker = Arc::new(self);
        let query = Query::aggregate(event::STREAM, &plan);
        let mut running: HashMap<TaskId, watch::Sender<Option<Stop>>> = HashMap::new();
        let mut jobs = JoinSet::new();
        let (history, mut position) = worker.history(&query).await?;
        let mut take = |envelope: Envelope<Event>, jobs: &mut JoinSet<TaskId>| match change(&envelope) {
            Some(Change::Dispatched(dispatch)) => {
                let (sender, receiver) = watch::channel(None);
                running.insert(dispatch.task, sender);
                jobs.spawn(Arc::clone(&worker).carry_out(*dispatch, receiver));
            }
            Some(Change::Ended { task, reason }) => {
                if let Some(stop) = running.remove(&task) {
                    stop.send_replace(Some(Stop::Cancelled { reason }));
                }
            }
            None => {}
        };
        for envelope in history {
            take(envelope, &mut jobs);
        }
        let mut events = worker.store.subscribe_from::<Event>(&query, Start::After(position))?;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(envelope)) => {
                        position = envelope.recorded.position;
                        take(envelope, &mut jobs);
                    }
                    Some(Err(error)) => tracing::warn!(%error, "an event of the plan is passed over"),
                    None => break,
                },
                Some(ended) = jobs.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a job of the worker failed");
                    }
                },
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
        // What the plan has ended meanwhile is stopped for that reason, and not given back.
        for envelope in worker.store.load::<Event>(&query, Range::after(position)).await.unwrap_or_default() {
            if let Some(Change::Ended { task, reason }) = change(&envelope)
                && let Some(stop) = running.remove(&task)
            {
                stop.send_replace(Some(Stop::Cancelled { reason }));
            }
        }
        for stop in running.values() {
            stop.send_replace(Some(Stop::Interrupted));
        }
        while jobs.join_next().await.is_some() {}
        Ok(())
    }

    /// What still stands of the plan's history: the last dispatch of each task that has not ended.
    async fn history(&self, query: &Query) -> Result<(Vec<Envelope<Event>>, Position), Error> {
        let mut open: HashMap<TaskId, Envelope<Event>> = HashMap::new();
        let mut position = Position(0);
        for envelope in self.store.load::<Event>(query, Range::default()).await? {
            position = envelope.recorded.position;
            match change(&envelope) {
                Some(Change::Dispatched(dispatch)) => {
                    open.insert(dispatch.task, envelope);
                }
                Some(Change::Ended { task, .. }) => {
                    open.remove(&task);
                }
                None => {}
            }
        }
        let mut open = open.into_values().collect::<Vec<_>>();
        open.sort_by_key(|envelope| envelope.recorded.position);
        Ok((open, position))
    }

    async fn carry_out(self: Arc<Self>, dispatch: Dispatch, mut stop: watch::Receiver<Option<Stop>>) -> TaskId {
        let task = dispatch.task;
        let Some(command) = dispatch.parameters.command.clone() else { return task };
        tokio::select! {
            () = tokio::time::sleep(dispatch.delay) => {}
            _ = wanted(&mut stop) => return task,
        }
        let mut claim = claim_of(&self.store, &dispatch.plan, task, dispatch.tags.clone());
        let Some((_place, epoch)) = self.claim(&mut claim, &dispatch, &mut stop).await else { return task };
        let unwanted = stop.borrow().clone();
        if let Some(stop) = unwanted {
            append(&mut claim, TaskCommand::End { epoch, ending: stop.ending() }, &dispatch.cause).await;
            return task;
        }
        if !append(&mut claim, TaskCommand::Start { epoch }, &dispatch.cause).await {
            return task;
        }
        let ending = self.act(&dispatch, &command, &mut claim, epoch, stop).await;
        append(&mut claim, TaskCommand::End { epoch, ending }, &dispatch.cause).await;
        task
    }

    /// Wins the task with a place to run it in, sooner or later; `None` when it is no longer to be had. No place is
    /// kept while somebody else holds the task, and no claim is left behind half made.
    async fn claim(
        &self,
        claim: &mut Runner<TaskClaim>,
        dispatch: &Dispatch,
        stop: &mut watch::Receiver<Option<Stop>>,
    ) -> Option<(SemaphorePermit<'_>, u64)> {
        let mut dead_epoch = None;
        let mut backoff = BACKOFF.0;
        let mut n_held = 0_u32;
        loop {
            let place = tokio::select! {
                place = self.places.acquire() => place.ok()?,
                _ = wanted(stop) => return None,
            };
            let command = TaskCommand::Claim {
                attempt: dispatch.attempt,
                executor: self.life.executor(SHELL),
                now: self.store.now(),
                dead_epoch,
            };
            let pause = match claim.execute(command, &dispatch.cause).await {
                Ok(_) => return Some((place, claim.handler().epoch())),
                Err(ExecuteError::Refused(TaskError::Held { executor, epoch, .. })) => {
                    if self.life.is_dead(&executor) {
                        dead_epoch = Some(epoch);
                        continue;
                    }
                    n_held += 1;
                    if n_held == HELD_SILENTLY_MAX {
                        tracing::warn!(task = %dispatch.task, holder = %executor, "waiting for another worker's task");
                    }
                    HOLDER_INTERVAL
                }
                Err(ExecuteError::Refused(TaskError::AttemptEnded { .. } | TaskError::StaleEpoch { .. })) => {
                    return None;
                }
                Err(error @ (ExecuteError::Contended { .. } | ExecuteError::Store(_))) => {
                    tracing::warn!(%error, task = %dispatch.task, "a claim failed and is tried again");
                    let pause = backoff;
                    backoff = (backoff * 2).min(BACKOFF.1);
                    pause
                }
            };
            drop(place);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = wanted(stop) => return None,
            }
        }
    }

    /// Runs the command, and renews the lease meanwhile.
    async fn act(
        &self,
        dispatch: &Dispatch,
        command: &str,
        claim: &mut Runner<TaskClaim>,
        epoch: u64,
        mut plan_stop: watch::Receiver<Option<Stop>>,
    ) -> Ending {
        let (stop, mut run_stop) = watch::channel(None);
        let job = Job {
            plan: &dispatch.plan,
            task: dispatch.task,
            attempt: dispatch.attempt,
            epoch,
            parameters: &dispatch.parameters,
            command,
            lock: self.life.lock_path(),
        };
        let run = self.shell.run(job, &mut run_stop);
        tokio::pin!(run);
        let mut renewals = tokio::time::interval(RENEW_INTERVAL);
        renewals.tick().await;
        loop {
            tokio::select! {
                ending = &mut run => return ending,
                wanted = wanted(&mut plan_stop), if stop.borrow().is_none() => {
                    stop.send_replace(Some(wanted));
                }
                _ = renewals.tick() => {
                    let renewal = TaskCommand::Renew { epoch, now: self.store.now() };
                    match claim.execute(renewal, &dispatch.cause).await {
                        Ok(_) => {}
                        Err(ExecuteError::Refused(refusal)) => {
                            tracing::warn!(%refusal, task = %dispatch.task, "the task went to another worker");
                            stop.send_replace(Some(Stop::Lost));
                        }
                        Err(error) => tracing::warn!(%error, task = %dispatch.task, "a lease was not renewed"),
                    }
                }
            }
        }
    }
}

/// What an event of the plan means to a worker.
enum Change {
    Dispatched(Box<Dispatch>),
    Ended { task: TaskId, reason: String },
}

fn change(envelope: &Envelope<Event>) -> Option<Change> {
    match &envelope.event {
        Event::TaskDispatched { task_id, attempt, delay_ms, command } => match command {
            PlannerCmd::ExecuteTask { parameters, .. } => Some(Change::Dispatched(Box::new(Dispatch {
                plan: envelope.recorded.aggregate_id.clone(),
                tags: envelope.recorded.tags.clone(),
                task: *task_id,
                attempt: *attempt,
                delay: Duration::from_millis(*delay_ms),
                parameters: (**parameters).clone(),
                cause: Cause::event(&envelope.recorded),
            }))),
            PlannerCmd::RequestClarification { .. } => None,
        },
        Event::TaskStatusUpdated { task_id, status, error, .. } if *status != TaskStatus::Running => {
            Some(Change::Ended { task: *task_id, reason: error.clone().unwrap_or_default() })
        }
        Event::ClarificationRequested { .. }
        | Event::TaskStatusUpdated { .. }
        | Event::TasksPlanned { .. }
        | Event::ClarificationReceived { .. }
        | Event::ContextCompacted { .. }
        | Event::PlanPaused { .. }
        | Event::PlanResumed {}
        | Event::PlanCancelled { .. }
        | Event::TasksReopened { .. }
        | Event::PlanningCompleted { .. } => None,
    }
}

/// Appends what the holder says, however long the log takes; false when the holder has lost the task.
async fn append(claim: &mut Runner<TaskClaim>, command: TaskCommand, cause: &Cause) -> bool {
    let mut backoff = BACKOFF.0;
    loop {
        match claim.execute(command.clone(), cause).await {
            Ok(_) => return true,
            Err(ExecuteError::Refused(refusal)) => {
                tracing::warn!(%refusal, "what a worker reports comes too late");
                return false;
            }
            Err(error @ (ExecuteError::Contended { .. } | ExecuteError::Store(_))) => {
                tracing::warn!(%error, "a report could not be appended and is tried again");
                tokio::time::sleep(backoff).await;
                backoff = (backoff * 2).min(BACKOFF.1);
            }
        }
    }
}
