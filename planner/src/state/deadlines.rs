//! By when what has to happen: which deadlines are set, and which are not yet. It knows no clock: moments come with events.

use crewlog_mq::Timestamp;

use crate::event::{Deadline, Event, PlannerConfig, Purpose, QuestionId};
use crate::plan::{TaskId, TaskPlan};
use crate::state::{Phase, PlannerState};

impl PlannerState {
    /// When something is next due, in log time: then the planner wants a [`crate::event::Command::Tick`].
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.by_moment.first().map(|(at, _)| *at)
    }

    /// True when something has a deadline that is not set yet: then the planner wants a [`crate::event::Command::Tick`] now.
    #[must_use]
    pub fn wants_tick(&self) -> bool {
        !self.undated.is_empty()
    }

    /// True while a question is open that is answered by itself when nobody does in time.
    #[must_use]
    pub fn awaits_default(&self) -> bool {
        let is_question = |of: &Deadline| matches!(of, Deadline::Question(_));
        self.undated.iter().chain(self.deadlines.keys()).any(is_question)
    }

    /// Milliseconds until a task, and the plan that has it, must have ended, if they must.
    #[must_use]
    pub fn time_left(&self, task: TaskId, now: Timestamp) -> Option<u64> {
        let left = |of: Deadline| match self.deadlines.get(&of) {
            Some(at) => u64::try_from(at.since(now).as_millis()).ok(),
            None => self.time_for(of),
        };
        [Deadline::Task(task), Deadline::Plan].into_iter().filter_map(left).min()
    }

    /// Milliseconds that something is given, if it is.
    pub(crate) fn time_for(&self, of: Deadline) -> Option<u64> {
        match of {
            Deadline::Plan => self.config.deadline_ms,
            Deadline::Task(id) => self.task(id)?.plan.deadline_ms,
            Deadline::Question(id) => Some(self.question(id)?.default.as_ref()?.after_ms),
        }
    }

    /// Takes in what an event means for deadlines, before the rest of it. A deadline whose subject has ended is forgotten.
    pub(super) fn keep_time(&mut self, event: &Event) {
        match event {
            Event::TasksPlanned { config, .. } => self.time(Deadline::Plan, config.deadline_ms),
            Event::TaskDispatched { task_id, .. } => {
                let time = self.task(*task_id).and_then(|task| task.plan.deadline_ms);
                self.time(Deadline::Task(*task_id), time);
            }
            Event::TaskStatusUpdated { task_id, status, .. } if status.is_end() => self.forget_times_of(*task_id),
            Event::ClarificationRequested { task_id, question_id, purpose, default, .. } => {
                // While a person is asked what to do about a failure, no time runs; a retry has all of it again.
                if *purpose == Purpose::Failure {
                    self.forget_time(Deadline::Task(*task_id));
                }
                self.time(Deadline::Question(*question_id), default.as_ref().map(|default| default.after_ms));
            }
            Event::ClarificationReceived { question_id, .. } | Event::ClarificationWithdrawn { question_id, .. } => {
                self.forget_time(Deadline::Question(*question_id));
            }
            Event::DeadlineSet { of, at } => {
                self.forget_time(*of);
                self.deadlines.insert(*of, *at);
                self.by_moment.insert((*at, *of));
            }
            Event::TasksAmended { tasks, .. } => {
                tasks.iter().for_each(|task| self.retime_task(task));
                // What is opened again has all its time again, as with a retry.
                if self.goes_on_with(tasks) {
                    self.time(Deadline::Plan, self.config.deadline_ms);
                }
            }
            Event::SettingsChanged { config, .. } => self.retime_plan(config),
            Event::TasksReopened { task_ids } => {
                task_ids.iter().for_each(|id| self.forget_times_of(*id));
                self.time(Deadline::Plan, self.config.deadline_ms);
            }
            // A fork has all its time from its own beginning on; what it begins anew is timed when it does.
            Event::PlanForked { .. } => {
                self.forget_all_times();
                self.time(Deadline::Plan, self.config.deadline_ms);
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
            | Event::PlanCancelled { .. } => {}
        }
    }

    /// From now on something has so much time, unless its time runs already.
    fn time(&mut self, of: Deadline, time: Option<u64>) {
        if time.is_some() && !self.deadlines.contains_key(&of) {
            self.undated.insert(of);
        }
    }

    fn forget_time(&mut self, of: Deadline) {
        self.undated.remove(&of);
        if let Some(at) = self.deadlines.remove(&of) {
            self.by_moment.remove(&(at, of));
        }
    }

    fn forget_all_times(&mut self) {
        self.undated.clear();
        self.deadlines.clear();
        self.by_moment.clear();
    }

    fn forget_times_of(&mut self, task: TaskId) {
        self.forget_time(Deadline::Task(task));
        if self.undated.is_empty() && self.deadlines.is_empty() {
            return;
        }
        let asked = self.questions_of(task).map(|question| question.id).collect::<Vec<QuestionId>>();
        for question in asked {
            self.forget_time(Deadline::Question(question));
        }
    }

    /// A task that is given another time has all of it from that moment on.
    fn retime_task(&mut self, plan: &TaskPlan) {
        // What is undone has no deadline: the plan's has done its work.
        if plan.compensates.is_some() {
            self.forget_time(Deadline::Plan);
        }
        let Some(task) = self.task(plan.id) else { return };
        if task.plan.deadline_ms == plan.deadline_ms {
            return;
        }
        let is_under_way = task.attempts > 0 && !task.status.is_end();
        self.forget_time(Deadline::Task(plan.id));
        self.time(Deadline::Task(plan.id), plan.deadline_ms.filter(|_| is_under_way));
    }

    fn retime_plan(&mut self, config: &PlannerConfig) {
        if self.config.deadline_ms == config.deadline_ms {
            return;
        }
        let is_on = matches!(self.phase, Phase::Active | Phase::Paused);
        self.forget_time(Deadline::Plan);
        self.time(Deadline::Plan, config.deadline_ms.filter(|_| is_on));
    }
}
