//! The dispatches and claims that a worker has seen. After the log went back, the tasks of those that are lost may have run:
//! they are interrupted in the log as it is now, and none runs again unasked.

use std::collections::{BTreeSet, VecDeque};

use crewlog_mq::{
    Append, Backoff, Cause, Envelope, Error, EventStore, ExecuteError, Expected, NewEvent, Position, Query, Range,
    new_event_id,
};
use crewlog_planner::claim::{Executor, TaskCommand, TaskEvent};
use crewlog_planner::crew::losses::{self, LossEvent};
use crewlog_planner::event::Event;
use crewlog_planner::plan::TaskId;
use crewlog_planner::plan_event::{PlanEvent, plan_of};
use uuid::Uuid;

use crate::claiming::claim_of;
use crate::queue::{Dispatch, Plans};

/// The most that are kept: a fail-over loses the last seconds of a log.
const SEEN_MAX: usize = 20_000;

/// A dispatch, or a claim.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    plan: String,
    task: TaskId,
    tags: Vec<String>,
    attempt: u32,
    /// 1 for a dispatch: an executor may have claimed it before that was seen.
    epoch: u64,
    /// That of a claim.
    executor: Executor,
    /// The event of a dispatch, or of a claim that was followed.
    event: Option<(Position, Uuid)>,
}

/// Those that were followed, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Seen(VecDeque<Run>);

impl Seen {
    pub(crate) fn take(&mut self, Envelope { event, recorded, .. }: &Envelope<PlanEvent>) {
        let (task, attempt, epoch, executor) = match event {
            PlanEvent::Plan(Event::TaskDispatched { task_id, attempt, .. }) => {
                (*task_id, *attempt, 1, Executor::default())
            }
            PlanEvent::Task(task, TaskEvent::TaskClaimed { attempt, executor, epoch, only_reports: false, .. }) => {
                (*task, *attempt, *epoch, executor.clone())
            }
            _that_lets_no_task_run => return,
        };
        if self.0.len() == SEEN_MAX {
            self.0.pop_front();
        }
        let Some(plan) = plan_of(recorded).map(str::to_owned) else { return };
        let (tags, event) = (recorded.tags.clone(), Some((recorded.position, recorded.event_id)));
        self.0.push_back(Run { plan, task, tags, attempt, epoch, executor, event });
    }

    /// Records that the log went back, and interrupts the tasks whose dispatch or claim is lost: of those that were followed, of
    /// the open `plans` as they were, and of the worker's `own`.
    pub(crate) async fn interrupt(
        self,
        store: &EventStore,
        host: &str,
        (plans, own): (&Plans, Vec<Run>),
        went: (Position, Position),
    ) {
        let (mut backoff, mut interrupted) = (Backoff::new(), BTreeSet::new());
        let runs = (&self, plans, own.as_slice());
        while let Err(error) = try_to_interrupt(&store.current(), host, runs, &mut interrupted, went).await {
            match error {
                // Once more.
                Error::WentBack { .. } => tokio::time::sleep(backoff.pause()).await,
                error if !backoff.wait_to_retry(&error).await => {
                    tracing::error!(%error, "tasks that ran in the lost part of the log may run again");
                    return;
                }
                _retried => {}
            }
        }
    }

    /// Those that the log has lost, the newest first, and the last position that is known to be left. Only the last events of
    /// a log can be lost.
    async fn lost(&self, store: &EventStore) -> Result<(Vec<&Run>, Position), Error> {
        let mut lost = Vec::new();
        for run in self.0.iter().rev() {
            let Some((position, event_id)) = run.event else { continue };
            if is_there(store, event_id).await? {
                return Ok((lost, position));
            }
            lost.push(run);
        }
        Ok((lost, Position(0)))
    }
}

async fn is_there(store: &EventStore, event_id: Uuid) -> Result<bool, Error> {
    Ok(!store.read(&Query::event(event_id), Range::default(), 1).await?.events.is_empty())
}

impl Run {
    pub(crate) fn of(dispatch: &Dispatch, epoch: u64, executor: Executor) -> Self {
        let Dispatch { plan, task, tags, attempt, .. } = dispatch;
        Self { plan: plan.clone(), task: *task, tags: tags.clone(), attempt: *attempt, epoch, executor, event: None }
    }

    /// The claims and dispatches of the plans that have changed since a position.
    fn all(plans: &Plans, after: Position) -> Vec<Self> {
        let mut runs = Vec::new();
        for (plan, tags, view) in plans.views().filter(|(_, _, view)| view.at > after) {
            for task in view.state().tasks.iter().filter(|task| task.attempts > 0) {
                let (task, times) = (task.plan.id, view.times(task.plan.id));
                let executor = times.claim.holder.as_ref().or(times.past.as_ref()).map(|run| run.executor.clone());
                let (attempt, epoch) = (times.claim.attempt(), times.claim.epoch);
                let (plan, tags) = (plan.to_owned(), tags.to_vec());
                runs.extend(executor.map(|executor| Self { plan, task, tags, attempt, epoch, executor, event: None }));
            }
        }
        let dispatches = plans.dispatches().map(|dispatch| {
            let event = dispatch.cause.metadata().causation_id.map(|event_id| (dispatch.position, event_id));
            Self { event, ..Self::of(dispatch, 1, Executor::default()) }
        });
        runs.extend(dispatches.filter(|run| run.event.is_some_and(|(position, _)| position > after)));
        runs
    }
}

/// Claims first: they say more than dispatches.
async fn try_to_interrupt(
    store: &EventStore,
    host: &str,
    (seen, plans, own): (&Seen, &Plans, &[Run]),
    interrupted: &mut BTreeSet<(String, TaskId)>,
    (known, head): (Position, Position),
) -> Result<(), Error> {
    let (lost, left) = seen.lost(store).await?;
    let of_plans = Run::all(plans, left);
    for Run { plan, task, tags, attempt, epoch, executor, event } in own.iter().chain(lost).chain(&of_plans) {
        if let Some((_, event_id)) = event
            && is_there(store, *event_id).await?
        {
            continue;
        }
        let mut claim = claim_of(store, plan, *task, tags.clone());
        let command = TaskCommand::Interrupt { attempt: *attempt, epoch: *epoch, executor: executor.clone() };
        let cause = Cause::request().keeping(command.recorded());
        loop {
            match claim.execute(command.clone(), &cause).await {
                Ok(executed) if executed.events.is_empty() => {}
                Ok(_) => _ = interrupted.insert((plan.clone(), *task)),
                Err(ExecuteError::Contended { .. }) => continue,
                Err(ExecuteError::Refused(_)) => {}
                Err(ExecuteError::Store(error)) => return Err(error),
            }
            break;
        }
    }
    let n_tasks = interrupted.len() as u64;
    tracing::warn!(
        "the log went back from position {known} to {head}: {n_tasks} tasks may have run and are interrupted"
    );
    let lost = LossEvent::LogWentBack { known, head, n_tasks, at: store.now() };
    let lost = NewEvent::of(&lost, Cause::request().metadata())?.with_id(new_event_id());
    store.append(Append::to(losses::STREAM, host, Expected::Any, vec![lost])).await.map(drop)
}
