//! The timers of a plan. Due times come with events; no clock is read.

use crewlog_mq::Timestamp;

use crate::event::Timer;
use crate::plan::{TaskId, TaskPlan};
use crate::state::PlannerState;

impl PlannerState {
    /// The timer that needs a command next: `SetTimers` without a due time, else `FireTimer` when that has passed.
    pub fn next_timer(&self) -> Option<(Option<Timestamp>, Timer)> {
        self.by_due.first().copied()
    }

    /// The due time of a timer in log time, if it is set.
    pub fn due(&self, timer: Timer) -> Option<Timestamp> {
        self.timers.get(&timer).copied().flatten()
    }

    /// True while a timer runs, even before it has a due time.
    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.timers.contains_key(&timer)
    }

    /// Milliseconds until the deadline of a task or of its plan, whichever is earlier.
    pub fn time_left(&self, task: TaskId, now: Timestamp) -> Option<u64> {
        let left = |timer: Timer| match self.due(timer) {
            Some(due) => u64::try_from(due.since(now).as_millis()).ok(),
            None => self.delay_of(timer),
        };
        [Timer::Task(task), Timer::Plan].into_iter().filter_map(left).min()
    }

    /// The delay of a timer from the moment it is set, in milliseconds.
    pub(crate) fn delay_of(&self, timer: Timer) -> Option<u64> {
        match timer {
            Timer::Retry(id) => self.task(id)?.retry_ms,
            Timer::Plan => self.config.deadline_ms,
            Timer::Task(id) => self.task(id)?.plan.deadline_ms,
            Timer::Question(id) => Some(self.question(id)?.default.as_ref()?.after_ms),
        }
    }

    /// Starts a timer that has a delay, unless it is already running. Its due time comes with a later event.
    pub(super) fn start_timer(&mut self, timer: Timer, delay_ms: Option<u64>) {
        if delay_ms.is_some() && !self.timers.contains_key(&timer) {
            self.set_timer(timer, None);
        }
    }

    pub(super) fn set_timer(&mut self, timer: Timer, due: Option<Timestamp>) {
        self.drop_timer(timer);
        self.timers.insert(timer, due);
        self.by_due.insert((due, timer));
    }

    pub(super) fn drop_timer(&mut self, timer: Timer) {
        if let Some(due) = self.timers.remove(&timer) {
            self.by_due.remove(&(due, timer));
        }
    }

    pub(super) fn drop_timers(&mut self) {
        self.timers.clear();
        self.by_due.clear();
    }

    /// Drops the timers of a task and of its questions.
    pub(super) fn drop_timers_of(&mut self, task: TaskId) {
        if self.timers.is_empty() {
            return;
        }
        let questions = self.questions_of(task).map(|question| Timer::Question(question.id));
        let timers = questions.chain([Timer::Task(task), Timer::Retry(task)]).collect::<Vec<_>>();
        timers.into_iter().for_each(|timer| self.drop_timer(timer));
    }

    /// Restarts the timer of a task that gets another deadline.
    pub(super) fn retime_task(&mut self, plan: &TaskPlan) {
        // Compensation starts only after the plan's deadline.
        if plan.compensates.is_some() {
            self.drop_timer(Timer::Plan);
        }
        let Some(task) = self.task(plan.id).filter(|task| task.plan.deadline_ms != plan.deadline_ms) else { return };
        // The deadline of a task that has ended does not change.
        let has_begun = task.attempts > 0;
        self.drop_timer(Timer::Task(plan.id));
        self.start_timer(Timer::Task(plan.id), plan.deadline_ms.filter(|_| has_begun));
    }
}
