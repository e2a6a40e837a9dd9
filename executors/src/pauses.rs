//! Whether a task that was dispatched is to be begun as the log stands: neither it nor its plan is paused, and no more run
//! than the settings allow by now. It waits for nothing, and appends nothing.

use std::collections::BTreeMap;
use std::pin::pin;

use crewlog_mq::{Envelope, Error, EventStore, Position, Query, Range};
use crewlog_planner::event::{self, Event};
use crewlog_planner::plan::TaskId;
use crewlog_planner::state::Phase;
use crewlog_planner::view::PlanView;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::Mutex;

use crate::history::History;

/// What tells whether a plan is paused: the newest of them counts.
const OF_PLANS: [&str; 4] = ["PlanPaused", "PlanResumed", "PlanCancelled", "PlanningCompleted"];
/// What tells it of a task.
const OF_TASKS: [&str; 2] = ["TaskPaused", "TaskResumed"];

/// Why a task is not to be begun that was dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// It or its plan is paused; an event of the plan tells when that is over.
    Paused,
    /// Others come first; that they have given way may be told by an event of their own alone.
    NoRoom,
}

/// What holds tasks back that were dispatched.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    /// The plans whose settings were changed while tasks of them were dispatched, as far as they were read. One that has
    /// ended is forgotten.
    plans: Mutex<BTreeMap<String, PlanView>>,
}

impl Holds {
    /// Why nothing of the plan, or not this task, is to be begun now. What was dispatched behind the last change of the
    /// settings keeps to them already.
    pub(crate) async fn back(
        &self,
        store: &EventStore,
        plan: &str,
        task: TaskId,
        dispatched: Position,
    ) -> Result<Option<Held>, Error> {
        if is_paused(store, plan, task).await? {
            return Ok(Some(Held::Paused));
        }
        let changes = Query::aggregate(event::STREAM, plan).of_type("SettingsChanged");
        let changed = store.read(&changes, Range::default().backwards(), 1).await?.events.into_iter().next();
        if changed.is_none_or(|changed| changed.position < dispatched) {
            return Ok(None);
        }
        let mut plans = self.plans.lock().await;
        let mut view = plans.remove(plan).unwrap_or_default();
        let history = History::of(store, plan).await?;
        let mut news = pin!(history.records(store, &Query::all(), Range::after(view.at())));
        while let Some(recorded) = news.try_next().await? {
            // It would be in the way each time.
            if let Err(error) = view.apply(&recorded) {
                tracing::warn!(%error, "an event of a plan is passed over");
            }
        }
        let may_begin = view.may_begin(task);
        if !matches!(view.state().phase(), Phase::Ended(_)) {
            plans.insert(plan.to_owned(), view);
        }
        Ok((!may_begin).then_some(Held::NoRoom))
    }
}

async fn is_paused(store: &EventStore, plan: &str, task: TaskId) -> Result<bool, Error> {
    let of_plan = Query::aggregate(event::STREAM, plan);
    let newest = store.read(&of_plan.clone().of_types(OF_PLANS), Range::default().backwards(), 1).await?;
    if newest.events.first().is_some_and(|newest| newest.event_type == OF_PLANS[0]) {
        return Ok(true);
    }
    let mut told = pin!(store.records(&of_plan.of_types(OF_TASKS), Range::default().backwards()));
    while let Some(told) = told.next().await {
        match Envelope::of(told?).map(|envelope| envelope.event) {
            Ok(Event::TaskPaused { task_id, .. }) if task_id == task => return Ok(true),
            Ok(Event::TaskResumed { task_id }) if task_id == task => return Ok(false),
            Ok(_of_another) => {}
            Err(error) => tracing::warn!(%error, "an event of a plan is passed over"),
        }
    }
    Ok(false)
}
