//! What the events of plans mean to those who carry tasks out: what was dispatched, what has ended, what may go on. It reads
//! them, and does nothing about them.

use std::collections::HashMap;
use std::time::Duration;

use crewlog_mq::{Cause, Envelope, Error, EventStore, Position, Query, Range};
use crewlog_planner::event::{Event, PlannerCmd, TaskInput, TaskStatus};
use crewlog_planner::plan::{NodeKind, TaskId};

/// How many events are read at a time.
const PAGE: usize = 1000;

/// A task among all plans.
pub(crate) type Key = (String, TaskId);

/// A dispatched task on its way to an executor.
pub(crate) struct Dispatch {
    pub(crate) plan: String,
    pub(crate) tags: Vec<String>,
    pub(crate) position: Position,
    pub(crate) task: TaskId,
    pub(crate) attempt: u32,
    pub(crate) delay: Duration,
    pub(crate) kind: NodeKind,
    pub(crate) parameters: TaskInput,
    pub(crate) cause: Cause,
}

/// What an event of the plan means to a worker.
pub(crate) enum Change {
    Dispatched(Box<Dispatch>),
    Ended {
        task: Key,
        reason: String,
    },
    /// What was paused may go on.
    Resumed,
}

/// What an event means; nothing when it is of no account.
pub(crate) fn change(envelope: &Envelope<Event>) -> Option<Change> {
    match &envelope.event {
        Event::TaskDispatched { task_id, attempt, delay_ms, command } => match command {
            PlannerCmd::ExecuteTask { kind, parameters, .. } => Some(Change::Dispatched(Box::new(Dispatch {
                plan: envelope.recorded.aggregate_id.clone(),
                tags: envelope.recorded.tags.clone(),
                position: envelope.recorded.position,
                task: *task_id,
                attempt: *attempt,
                delay: Duration::from_millis(*delay_ms),
                kind: *kind,
                parameters: (**parameters).clone(),
                cause: Cause::event(&envelope.recorded),
            }))),
            PlannerCmd::RequestClarification { .. } => None,
        },
        Event::TaskStatusUpdated { task_id, status, error, .. } if *status != TaskStatus::Running => {
            let task = (envelope.recorded.aggregate_id.clone(), *task_id);
            Some(Change::Ended { task, reason: error.clone().unwrap_or_default() })
        }
        // What is paused gives way, and settings may allow more.
        Event::TaskPaused { .. }
        | Event::SettingsChanged { .. }
        | Event::TaskResumed { .. }
        | Event::PlanResumed {}
        | Event::PlanCancelled { .. }
        | Event::PlanningCompleted { .. } => Some(Change::Resumed),
        Event::ClarificationRequested { .. }
        | Event::TaskStatusUpdated { .. }
        | Event::TasksPlanned { .. }
        | Event::ClarificationReceived { .. }
        | Event::ContextCompacted { .. }
        | Event::PlanForked { .. }
        | Event::TasksAmended { .. }
        | Event::DeadlineSet { .. }
        | Event::UsageRecorded { .. }
        | Event::ClarificationWithdrawn { .. }
        | Event::CheckpointNamed { .. }
        | Event::CompactionRequested { .. }
        | Event::PlanPaused { .. }
        | Event::TasksReopened { .. } => None,
    }
}

/// What still stands of the history: the last dispatch of each task that has not ended.
pub(crate) async fn still_open(store: &EventStore, query: &Query) -> Result<(Vec<Envelope<Event>>, Position), Error> {
    let mut open: HashMap<Key, Envelope<Event>> = HashMap::new();
    let mut range = Range::default();
    loop {
        let page = store.read(query, range, PAGE).await?;
        for recorded in page.events {
            let envelope = match Envelope::of(recorded) {
                Ok(envelope) => envelope,
                Err(error) => {
                    tracing::warn!(%error, "an event of a plan is passed over");
                    continue;
                }
            };
            match change(&envelope) {
                Some(Change::Dispatched(dispatch)) => {
                    open.insert((dispatch.plan, dispatch.task), envelope);
                }
                Some(Change::Ended { task, .. }) => {
                    open.remove(&task);
                }
                Some(Change::Resumed) | None => {}
            }
        }
        range.after = page.next;
        if !page.more {
            break;
        }
    }
    let mut open = open.into_values().collect::<Vec<_>>();
    open.sort_by_key(|envelope| envelope.recorded.position);
    Ok((open, range.after))
}
