//! The view of a plan: the fold of its events and those of its tasks.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{Error, FromRecorded, Handler, Position, Recorded, Timestamp};
use serde::{Deserialize, Serialize};

use crate::claim::{Holder, LateReport, TaskEvent, TaskLease};
use crate::event::{About, Event, FailureClass, TaskStatus};
use crate::is_default;
use crate::plan::TaskId;
use crate::plan_event::PlanEvent;
use crate::planner::Planner;
use crate::planner::reports::RESULT_CHARS_KEPT;
use crate::state::{Phase, PlannerState, Task};
use crate::text::fits;

/// When a task ran, and its executors.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskTimes {
    /// The last holder whose claim has ended.
    pub past: Option<Holder>,
    /// When it was first claimed, in log time.
    pub started_at: Option<Timestamp>,
    /// When it was last claimed, in log time.
    pub claimed_at: Option<Timestamp>,
    /// When it ended, in log time.
    pub ended_at: Option<Timestamp>,
    /// The fold of its own events; without a holder if the plan has taken the task back.
    pub claim: TaskLease,
}

/// A plan as of some position.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanView {
    planner: Planner,
    times: BTreeMap<TaskId, TaskTimes>,
    /// The results that are longer than the plan's excerpts of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    long_results: BTreeMap<TaskId, String>,
    /// The tasks that have a holder.
    held: BTreeSet<TaskId>,
    /// The tasks whose reported end the planner has not handled yet; true if they failed.
    reported: BTreeMap<TaskId, bool>,
    /// The position of the last event applied.
    pub at: Position,
    /// The position of the last event of one of its tasks, which the planner may have to handle.
    pub last_report: Position,
    /// When its last event was written.
    pub changed_at: Option<Timestamp>,
    /// When the plan was made; unset before its first event.
    pub created_at: Option<Timestamp>,
}

impl PlanView {
    /// Applies one event of the plan or of its tasks, and returns it; others are ignored.
    ///
    /// # Errors
    /// [`Error::Decode`] with its position.
    pub fn apply(&mut self, recorded: &Recorded) -> Result<PlanEvent, Error> {
        let event = PlanEvent::from_recorded(recorded)?;
        self.take(&event, recorded);
        Ok(event)
    }

    /// [`PlanView::apply`] of a decoded event.
    pub fn take(&mut self, event: &PlanEvent, recorded: &Recorded) {
        match event {
            PlanEvent::Plan(event) => self.apply_to_plan(event, recorded.created_at),
            PlanEvent::Task(task, event) => {
                self.apply_to_task(*task, event, recorded.created_at);
                self.last_report = recorded.position;
            }
            PlanEvent::Other => {}
        }
        (self.at, self.changed_at) = (recorded.position, Some(recorded.created_at));
    }

    fn apply_to_plan(&mut self, event: &Event, at: Timestamp) {
        self.created_at.get_or_insert(at);
        self.planner.apply(event);
        if let Event::PlanForked { .. } = event {
            self.fork(at);
        }
        let About::Tasks(tasks) = event.about() else { return };
        let is_dispatched = matches!(event, Event::TaskDispatched { .. });
        for id in tasks {
            let Some(status) = self.planner.state().task(*id).map(|task| task.status) else { continue };
            self.reported.remove(id);
            if status != TaskStatus::Completed {
                self.long_results.remove(id);
            }
            let times = self.times.entry(*id).or_default();
            times.ended_at = if status.is_end() { times.ended_at.or(Some(at)) } else { None };
            // The plan takes precedence: a task that it ends or dispatches again has no holder.
            if (is_dispatched || status != TaskStatus::Running) && self.held.remove(id) {
                times.past = times.claim.holder.take();
            }
        }
    }

    /// The open tasks of a fork have no holder and no report yet.
    fn fork(&mut self, at: Timestamp) {
        self.created_at = Some(at);
        self.last_report = Position(0);
        self.held.clear();
        self.reported.clear();
        let state = self.planner.state();
        let is_done = |task| state.task(task).is_some_and(|task| task.status == TaskStatus::Completed);
        self.long_results.retain(|task, _| is_done(*task));
        self.times.retain(|task, times| {
            times.past = std::mem::take(&mut times.claim).holder.or(times.past.take());
            state.task(*task).is_some_and(|task| task.status.is_end())
        });
    }

    fn apply_to_task(&mut self, task: TaskId, event: &TaskEvent, at: Timestamp) {
        if let TaskEvent::TaskCompleted { attempt, .. }
        | TaskEvent::TaskFailed { attempt, .. }
        | TaskEvent::TaskWithdrawn { attempt } = event
            && self.planner.state().task(task).is_some_and(|task| task.runs(*attempt))
        {
            self.reported.insert(task, matches!(event, TaskEvent::TaskFailed { .. }));
            self.long_results.remove(&task);
            if let TaskEvent::TaskCompleted { result, .. } = event
                && !fits(result, RESULT_CHARS_KEPT)
            {
                self.long_results.insert(task, result.clone());
            }
        }
        let times = self.times.entry(task).or_default();
        // A worker that reports the loss of another one did not run the task.
        let is_loss = matches!(event, TaskEvent::TaskFailed { class: FailureClass::OutcomeUnknown, .. })
            && times.claim.holder.as_ref().is_some_and(|holder| !holder.has_started);
        let ends_hold = event.ends_hold() || matches!(event, TaskEvent::TaskClaimed { .. });
        if ends_hold && times.claim.holder.is_some() && !is_loss {
            times.past.clone_from(&times.claim.holder);
        }
        times.claim.apply(event);
        match times.claim.holder {
            Some(_) => self.held.insert(task),
            None => self.held.remove(&task),
        };
        if let TaskEvent::TaskClaimed { .. } = event {
            times.started_at.get_or_insert(at);
            times.claimed_at = Some(at);
        }
    }

    /// The planner; a command can be tried on a clone of it.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// The planner's state.
    pub fn state(&self) -> &PlannerState {
        self.planner.state()
    }

    /// The whole result of a task that has one.
    pub fn result<'a>(&'a self, task: &'a Task) -> Option<&'a str> {
        let kept = task.result.as_deref()?;
        Some(self.long_results.get(&task.plan.id).map_or(kept, String::as_str))
    }

    /// When a task ran, and its executors.
    pub fn times(&self, task: TaskId) -> TaskTimes {
        self.times.get(&task).cloned().unwrap_or_default()
    }

    /// True while an executor holds one of its tasks.
    pub fn is_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// The dispatched tasks that may start now, the most urgent first; `is_held` excludes claimed ones. No task starts
    /// between a failure and the plan's reaction to it, nor after its own end is reported.
    pub fn startable(&self, is_held: impl Fn(TaskId, Option<&Holder>) -> bool) -> Vec<TaskId> {
        if self.reported.values().any(|is_failure| *is_failure) {
            return Vec::new();
        }
        let startable = self.state().startable(|task| is_held(task, self.holder(task)));
        startable.into_iter().filter(|task| !self.reported.contains_key(task)).collect()
    }

    /// True between the reported end of a task and the plan's reaction to it.
    pub fn has_unhandled_report(&self) -> bool {
        !self.reported.is_empty()
    }

    /// True between the reported end of this task and the plan's reaction to it.
    pub fn is_reported(&self, task: TaskId) -> bool {
        self.reported.contains_key(&task)
    }

    /// The dispatched tasks that may start now and have no holder.
    pub fn free(&self) -> Vec<TaskId> {
        self.startable(|_, holder| holder.is_some())
    }

    /// The holder of a task, if it has one.
    pub fn holder(&self, task: TaskId) -> Option<&Holder> {
        self.times.get(&task)?.claim.holder.as_ref()
    }

    /// True if the log went back to before a run of a task that is not dispatched again yet.
    pub fn has_lost_run(&self, task: &Task) -> bool {
        let of_next = |claim: &TaskLease| claim.cut_short(task.attempts + 1).is_some();
        task.status == TaskStatus::Planned && self.claim(task.plan.id).is_some_and(of_next)
    }

    /// The last holder of a task whose claim has ended.
    pub fn past_holder(&self, task: TaskId) -> Option<&Holder> {
        self.times.get(&task)?.past.as_ref()
    }

    /// The last report on a task that came after its executor had lost it.
    pub fn late_report(&self, task: TaskId) -> Option<&LateReport> {
        self.times.get(&task)?.claim.late.as_ref()
    }

    /// The fold of a task's own events.
    pub(crate) fn claim(&self, task: TaskId) -> Option<&TaskLease> {
        self.times.get(&task).map(|times| &times.claim)
    }

    /// True if a dispatched task without a holder may start now: it is one of [`PlanView::free`].
    pub(crate) fn may_start(&self, task: &Task) -> bool {
        let (state, id) = (self.state(), task.plan.id);
        let is_open = state.phase == Phase::Active && state.stopped_by.is_none() && !task.is_paused;
        let has_failed = self.reported.values().any(|is_failure| *is_failure);
        is_open && !has_failed && !self.is_reported(id) && state.has_place(&task.plan, self.held.iter().copied())
    }
}

impl TaskTimes {
    /// The executor that holds the task, or the last one that did.
    pub fn executor(&self) -> Option<String> {
        self.claim.holder.as_ref().or(self.past.as_ref()).map(|holder| holder.executor.to_string())
    }
}
