//! Sets and fires timers. Commands bring the time, since nothing here reads a clock.

use std::time::Duration;

use crewlog_mq::Timestamp;

use crate::error::PlannerError;
use crate::event::{Event, QuestionId, TaskStatus, Timer};
use crate::plan::{FailurePolicy, TaskId};
use crate::planner::{Planner, end};
use crate::state::Task;
use crate::text::duration;

impl Planner {
    /// Gives a due time to each timer without one.
    pub(super) fn set_timers(&self, now: Timestamp) -> Vec<Event> {
        let unset = self.state.by_due.iter().take_while(|(due, _)| due.is_none());
        let delays = unset.filter_map(|(_, timer)| Some((*timer, self.state.delay_of(*timer)?)));
        delays.map(|(timer, ms)| Event::TimerSet { timer, due: now.plus(Duration::from_millis(ms)) }).collect()
    }

    /// Fires a timer if it is set to this due time.
    pub(super) fn fire_timer(&self, timer: Timer, due: Timestamp) -> Vec<Event> {
        if self.state.due(timer) != Some(due) {
            return Vec::new();
        }
        let follows = match timer {
            Timer::Plan => self.end_late_plan(),
            Timer::Task(id) => self.end_late_task(id),
            Timer::Question(id) => self.answer_by_default(id),
            // The task is ready again.
            Timer::Retry(_) => Vec::new(),
        };
        [vec![Event::TimerFired { timer, due }], follows].concat()
    }

    /// Ends every open task; a plan without open tasks ends itself.
    fn end_late_plan(&self) -> Vec<Event> {
        let time = self.state.config.deadline_ms.unwrap_or_default();
        let late = format!("the plan passed its deadline, {} after its start", duration(time));
        let open = self.state.graph.open.iter().map(|index| {
            let task = &self.state.tasks[*index];
            let (status, error) = if task.status == TaskStatus::Planned && task.attempts == 0 {
                (TaskStatus::Skipped, format!("not started: {late}"))
            } else if self.state.is_asked_what_to_do_about(task.plan.id) {
                // The task did run, so its failure stays recorded.
                (TaskStatus::Failed, task.error.clone().unwrap_or_else(|| late.clone()))
            } else {
                (TaskStatus::TimedOut, late.clone())
            };
            end(task.plan.id, status, None, Some(error), false)
        });
        let open = open.collect::<Vec<_>>();
        if open.is_empty() { vec![self.complete()] } else { open }
    }

    fn end_late_task(&self, id: TaskId) -> Vec<Event> {
        let Some(task) = self.state.task(id).filter(|task| !task.status.is_end()) else { return Vec::new() };
        let time = task.plan.deadline_ms.unwrap_or_default();
        let withdrawn = self.state.questions_of(id).filter(|question| question.is_open());
        let reason = "its task passed its deadline".to_owned();
        let withdrawn = withdrawn.map(|question| Event::ClarificationWithdrawn {
            task_id: id,
            question_id: question.id,
            reason: reason.clone(),
        });
        let error = format!("passed its deadline, {} after its start", duration(time));
        withdrawn.chain(self.end_by_policy(task, TaskStatus::TimedOut, error)).collect()
    }

    fn answer_by_default(&self, id: QuestionId) -> Vec<Event> {
        let Some(question) = self.state.question(id).filter(|question| question.is_open()) else { return Vec::new() };
        let (Some(default), Some(task)) = (&question.default, self.state.task(question.task)) else {
            return Vec::new();
        };
        let follows: Result<_, PlannerError> = self.follow_answer(question, task, &default.answer);
        let received = Event::ClarificationReceived {
            task_id: question.task,
            question_id: id,
            answer: default.answer.clone(),
            is_default: true,
        };
        // A default that is not a valid answer to its question never takes effect.
        follows.map_or_else(|_| Vec::new(), |follows| [vec![received], follows].concat())
    }

    /// Ends a task by its failure policy, which may ask a person.
    pub(super) fn end_by_policy(&self, task: &Task, status: TaskStatus, error: String) -> Vec<Event> {
        match task.plan.on_failure.unwrap_or(self.state.config.on_failure) {
            FailurePolicy::Ask => {
                let said = format!("Task {} failed", task.plan.name());
                self.ask_what_to_do(task, &said, error)
            }
            policy @ (FailurePolicy::SkipDependants | FailurePolicy::Continue | FailurePolicy::Stop) => {
                self.give_up(task, status, error, policy)
            }
        }
    }
}
