//! The timers of a plan: which have a due time, and which still need one. Due times come with events: no clock is read.

use crewlog_mq::Timestamp;

use crate::event::{Event, PlannerConfig, Purpose, QuestionId, Timer};
use crate::plan::{TaskId, TaskPlan};
use crate::state::{Phase, PlannerState};

impl PlannerState {
    /// The timer that fires next, with its due time in log time. When that has passed, the planner needs a
    /// [`crate::event::Command::FireTimer`].
    #[must_use]
    pub fn next_timer(&self) -> Option<(Timestamp, Timer)> {
        self.by_due.first().copied()
    }

    /// True when a timer has no due time yet: then the planner needs a [`crate::event::Command::SetTimers`].
    #[must_use]
    pub fn has_unset_timers(&self) -> bool {
        !self.unset.is_empty()
    }

    /// True while a failed task waits for its next try.
    #[must_use]
    pub fn awaits_retry(&self) -> bool {
        let is_retry = |timer: &Timer| matches!(timer, Timer::Retry(_));
        self.unset.iter().chain(self.timers.keys()).any(is_retry)
    }

    /// True while a question is open that has a default answer.
    #[must_use]
    pub fn awaits_default(&self) -> bool {
        let is_question = |of: &Timer| matches!(of, Timer::Question(_));
        self.unset.iter().chain(self.timers.keys()).any(is_question)
    }

    /// Milliseconds until a task, and the plan that has it, must have ended, if they must.
    #[must_use]
    pub fn time_left(&self, task: TaskId, now: Timestamp) -> Option<u64> {
        let left = |of: Timer| match self.timers.get(&of) {
            Some(at) => u64::try_from(at.since(now).as_millis()).ok(),
            None => self.delay_of(of),
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

    /// Updates the timers, before the rest of the event is applied. A timer whose subject has ended is dropped.
    pub(super) fn apply_to_timers(&mut self, event: &Event) {
        match event {
            Event::TasksPlanned { config, .. } => self.time(Timer::Plan, config.deadline_ms),
            Event::TaskDispatched { task_id, .. } => {
                self.forget_time(Timer::Retry(*task_id));
                let time = self.task(*task_id).and_then(|task| task.plan.deadline_ms);
                self.time(Timer::Task(*task_id), time);
            }
            Event::TaskStatusUpdated { task_id, status, .. } if status.is_end() => self.forget_times_of(*task_id),
            Event::ClarificationRequested { task_id, question_id, purpose, default, .. } => {
                // While a person is asked what to do about a failure, no time runs; a retry has all of it again.
                if *purpose == Purpose::Failure {
                    self.forget_time(Timer::Task(*task_id));
                }
                self.time(Timer::Question(*question_id), default.as_ref().map(|default| default.after_ms));
            }
            Event::ClarificationReceived { question_id, .. } | Event::ClarificationWithdrawn { question_id, .. } => {
                self.forget_time(Timer::Question(*question_id));
            }
            Event::TimerSet { timer, due } => {
                self.forget_time(*timer);
                self.timers.insert(*timer, *due);
                self.by_due.insert((*due, *timer));
            }
            Event::TimerFired { timer, .. } => self.forget_time(*timer),
            Event::RetryScheduled { task_id, delay_ms } => self.time(Timer::Retry(*task_id), Some(*delay_ms)),
            Event::RetryHastened { task_id } => self.forget_time(Timer::Retry(*task_id)),
            Event::TasksAmended { tasks, .. } => {
                tasks.iter().for_each(|task| self.retime_task(task));
                // What is opened again has all its time again, as with a retry.
                if self.goes_on_with(tasks) {
                    self.time(Timer::Plan, self.config.deadline_ms);
                }
            }
            Event::SettingsChanged { config, .. } => self.retime_plan(config),
            Event::TasksReopened { task_ids } => {
                task_ids.iter().for_each(|id| self.forget_times_of(*id));
                self.time(Timer::Plan, self.config.deadline_ms);
            }
            // A fork has all its time from its own beginning on; what it starts again is timed then.
            Event::PlanForked { .. } => {
                self.forget_all_times();
                self.time(Timer::Plan, self.config.deadline_ms);
            }
            Event::PlanningCompleted { .. } => self.forget_all_times(),
            Event::TaskStatusUpdated { .. }
            | Event::TaskPaused { .. }
            | Event::TaskResumed { .. }
            | Event::UsageRecorded { .. }
            | Event::CheckpointNamed { .. }
            | Event::CompactionRequested { .. }
            | Event::ContextCompacted { .. }
            | Event::PlanPaused { .. }
            | Event::PlanResumed {}
            | Event::PlanStopped { .. }
            | Event::PlanCancelled { .. } => {}
        }
    }

    /// From now on something has so much time, unless its time runs already.
    fn time(&mut self, of: Timer, time: Option<u64>) {
        if time.is_some() && !self.timers.contains_key(&of) {
            self.unset.insert(of);
        }
    }

    fn forget_time(&mut self, of: Timer) {
        self.unset.remove(&of);
        if let Some(at) = self.timers.remove(&of) {
            self.by_due.remove(&(at, of));
        }
    }

    fn forget_all_times(&mut self) {
        self.unset.clear();
        self.timers.clear();
        self.by_due.clear();
    }

    fn forget_times_of(&mut self, task: TaskId) {
        self.forget_time(Timer::Task(task));
        self.forget_time(Timer::Retry(task));
        if self.unset.is_empty() && self.timers.is_empty() {
            return;
        }
        let asked = self.questions_of(task).map(|question| question.id).collect::<Vec<QuestionId>>();
        for question in asked {
            self.forget_time(Timer::Question(question));
        }
    }

    /// A task that is given another time has all of it from that moment on.
    fn retime_task(&mut self, plan: &TaskPlan) {
        // What is undone has no deadline: the plan's has done its work.
        if plan.compensates.is_some() {
            self.forget_time(Timer::Plan);
        }
        let Some(task) = self.task(plan.id) else { return };
        if task.plan.deadline_ms == plan.deadline_ms {
            return;
        }
        let is_under_way = task.attempts > 0 && !task.status.is_end();
        self.forget_time(Timer::Task(plan.id));
        self.time(Timer::Task(plan.id), plan.deadline_ms.filter(|_| is_under_way));
    }

    fn retime_plan(&mut self, config: &PlannerConfig) {
        if self.config.deadline_ms == config.deadline_ms {
            return;
        }
        let is_on = matches!(self.phase, Phase::Active | Phase::Paused);
        self.forget_time(Timer::Plan);
        self.time(Timer::Plan, config.deadline_ms.filter(|_| is_on));
    }
}
