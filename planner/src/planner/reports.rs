//! Decides on the reports of executors and people.

use std::time::Duration;

use crate::crew::breaker;
use crate::error::PlannerError;
use crate::event::{Event, FailureClass, Purpose, QuestionId, RetryClass, RetryPolicy, TaskEvent, TaskStatus};
use crate::plan::{DefaultAnswer, FailurePolicy, RETRIES_MAX, TaskId};
use crate::planner::{ANSWER_BYTES_MAX, Planner, QUESTIONS_OF_TASK_MAX, end};
use crate::prompt::{Content, excerpt};
use crate::state::{Measure, Question, Task};
use crate::task::is_yes;
use crate::text::{millis, money};

/// The most characters of a result that the plan keeps for its prompts.
pub(crate) const RESULT_CHARS_KEPT: usize = 8_000;

/// Tasks that wait for the same limit continue within this time.
const LIMIT_SPREAD_MS: u64 = 5_000;

impl Planner {
    /// Late and repeated reports change nothing.
    pub(super) fn handle(&self, id: TaskId, event: TaskEvent) -> Result<Vec<Event>, PlannerError> {
        let task = self.state.task(id).ok_or(PlannerError::UnknownTask(id))?;
        Ok(match event {
            // Usage counts once, even after the task or the plan has ended.
            TaskEvent::UsageReported { attempt, epoch, usage } => {
                let is_new = (1..=task.attempts).contains(&attempt) && epoch > task.usage_epoch && !usage.is_nothing();
                is_new.then_some(Event::UsageRecorded { task_id: id, attempt, epoch, usage }).into_iter().collect()
            }
            TaskEvent::TaskCompleted { attempt, result, .. } if task.runs(attempt) => {
                // The report has all of it.
                let kept = excerpt(&result, RESULT_CHARS_KEPT, Content::Result(self.state.config.profile)).into_owned();
                vec![end(id, TaskStatus::Completed, Some(kept), None, true)]
            }
            TaskEvent::TaskFailed { attempt, error, class, .. } if task.runs(attempt) => {
                let error = excerpt(&error, self.state.config.error_char_limit, Content::Error).into_owned();
                self.fail(task, error, class)
            }
            TaskEvent::NeedsClarification { attempt, question, default, .. } if task.runs(attempt) => {
                self.ask_for_executor(task, question, default)
            }
            TaskEvent::TaskWithdrawn { attempt } if task.runs(attempt) => vec![self.withdrawn(id)],
            _late_or_no_report => Vec::new(),
        })
    }

    /// Asks a person, or fails a task whose executors ask too often.
    fn ask_for_executor(&self, task: &Task, question: String, default: Option<DefaultAnswer>) -> Vec<Event> {
        let id = task.plan.id;
        let asked = self.state.questions_of(id).filter(|known| known.purpose == Purpose::Executor);
        if asked.count() < QUESTIONS_OF_TASK_MAX {
            return vec![self.ask(id, question, Purpose::Executor, default, 0)];
        }
        let error = format!(
            "its executor asks again after {QUESTIONS_OF_TASK_MAX} questions, and questions_of_task_max is \
             {QUESTIONS_OF_TASK_MAX}: add the missing facts to the task"
        );
        self.fail(task, error, FailureClass::Task)
    }

    /// The new status of a withdrawn task: skipped, unless the plan was resumed meanwhile.
    fn withdrawn(&self, id: TaskId) -> Event {
        match self.state.stopped_by {
            Some(because) => end(id, TaskStatus::Skipped, None, Some(self.not_started(because)), false),
            None => end(id, TaskStatus::Planned, None, None, false),
        }
    }

    fn not_started(&self, because: TaskId) -> String {
        format!("not started: the plan stopped when task {} failed", self.state.name(because))
    }

    pub(super) fn fail(&self, task: &Task, error: String, class: FailureClass) -> Vec<Event> {
        let id = task.plan.id;
        let of = |class: RetryClass| {
            (class, self.state.config.retry_of(class), task.retries.get(&class).copied().unwrap_or_default())
        };
        let (mut kind, mut policy, mut n_before) = of(class.into());
        if let FailureClass::RateLimited { retry_after_ms } = class {
            if self.state.stopped_by.is_none() && n_before < policy.count {
                let named = retry_after_ms.map(Duration::from_millis);
                let wait_ms = millis(breaker::wait(policy, n_before, named).min(breaker::WAIT_MAX));
                let delay_ms = match named {
                    Some(_) => wait_ms.saturating_add(mixed(task) % LIMIT_SPREAD_MS),
                    None => spread(task, wait_ms, policy),
                };
                return vec![Event::LimitReached { task_id: id, error, delay_ms: delay_ms.max(1) }];
            }
            // Its program may only look rate limited.
            (kind, policy, n_before) = of(RetryClass::Permanent);
        }
        let own = task.plan.budget_micros.filter(|budget| task.spent.cost_micros >= *budget);
        let is_short = |measure: Measure| {
            let limit = measure.limit(&self.state.config.budget);
            limit.is_some_and(|limit| measure.of(&self.state.spent()) >= limit)
        };
        let waits = class == FailureClass::OverBudget && own.is_none() && Measure::ALL.into_iter().any(is_short);
        if waits && self.state.stopped_by.is_none() {
            return vec![end(id, TaskStatus::Planned, None, Some(error), false)];
        }
        let count = match kind {
            _ if own.is_some() => 0,
            RetryClass::Unknown if !task.plan.rerun_safe => 0,
            // These are not its own failures, so the count in the text does not apply.
            RetryClass::Unknown | RetryClass::ForPerson => policy.count,
            RetryClass::Permanent | RetryClass::Transient | RetryClass::RateLimited => {
                task.plan.retry.map_or(policy.count, |n| n.min(RETRIES_MAX))
            }
        };
        if n_before < count && self.state.stopped_by.is_none() {
            let again = end(id, TaskStatus::Planned, None, Some(error), false);
            let delay_ms = spread(task, policy.wait_ms(n_before), policy);
            return vec![again, Event::RetryScheduled { task_id: id, class: kind, delay_ms }];
        }
        if kind == RetryClass::ForPerson && self.state.stopped_by.is_none() {
            let said = format!("Task {} needs a person first", task.plan.name());
            return self.ask_what_to_do(task, &said, error);
        }
        if class == FailureClass::OutcomeUnknown {
            // Even in a paused or stopped plan: asking starts nothing, and only a person knows if the work was done.
            let said = format!("It is unknown whether task {} did its work", task.plan.name());
            return self.ask_what_to_do(task, &said, error);
        }
        let error = match own.filter(|_| class != FailureClass::OverBudget) {
            Some(budget) => format!("{error}\nnot tried again: its budget of {} is used up", money(budget)),
            None => error,
        };
        let status = if class == FailureClass::TimedOut { TaskStatus::TimedOut } else { TaskStatus::Failed };
        self.end_by_policy(task, status, error)
    }

    pub(super) fn ask_what_to_do(&self, task: &Task, said: &str, error: String) -> Vec<Event> {
        let id = task.plan.id;
        let question = format!("{said}: {error}. Retry, done, skip, continue or stop?");
        let failed = end(id, TaskStatus::NeedsClarification, None, Some(error), false);
        vec![failed, self.ask(id, question, Purpose::Failure, None, 0)]
    }

    /// A final failure, by any policy except `Ask`.
    pub(super) fn give_up(&self, task: &Task, status: TaskStatus, error: String, policy: FailurePolicy) -> Vec<Event> {
        let unblocks = policy == FailurePolicy::Continue;
        let mut events = vec![end(task.plan.id, status, None, Some(error), unblocks)];
        if policy == FailurePolicy::Stop {
            let reason = self.not_started(task.plan.id);
            if self.state.stopped_by.is_none() {
                events.push(Event::PlanStopped { because: task.plan.id });
            }
            let rest = self.state.tasks.iter().filter(|other| other.plan.id != task.plan.id);
            let waiting =
                rest.filter(|other| matches!(other.status, TaskStatus::Planned | TaskStatus::NeedsClarification));
            events.extend(waiting.map(|other| match &other.error {
                // The task did start, so its failure stays recorded.
                Some(error)
                    if (other.retry_ms.is_some() && !other.waits_for_limit())
                        || self.state.is_asked_what_to_do_about(other.plan.id) =>
                {
                    end(other.plan.id, TaskStatus::Failed, None, Some(error.clone()), false)
                }
                Some(_) | None => end(other.plan.id, TaskStatus::Skipped, None, Some(reason.clone()), false),
            }));
        }
        events
    }

    /// A question, the `nth` of the same decision.
    pub(super) fn ask(
        &self,
        task_id: TaskId,
        question: String,
        purpose: Purpose,
        default: Option<DefaultAnswer>,
        nth: u64,
    ) -> Event {
        let question_id = QuestionId(self.state.questions.len() as u64 + 1 + nth);
        // A default that is too long for an answer is dropped.
        let default = default.filter(|default| default.answer.len() <= ANSWER_BYTES_MAX);
        Event::ClarificationRequested { task_id, question_id, question, purpose, default }
    }

    /// Handles an answer. With `further`, it also asks another question, and the task waits for both answers.
    pub(super) fn answer(
        &self,
        id: QuestionId,
        answer: String,
        further: Option<String>,
    ) -> Result<Vec<Event>, PlannerError> {
        let question = self.state.question(id).ok_or(PlannerError::UnknownQuestion(id))?;
        if further.is_none() && question.answer.as_ref() == Some(&answer) {
            return Ok(Vec::new());
        }
        if answer.len() > ANSWER_BYTES_MAX {
            return Err(PlannerError::AnswerTooLong(id, answer.len(), ANSWER_BYTES_MAX));
        }
        if !question.is_open() {
            return Err(PlannerError::QuestionClosed(id, question.answer.clone()));
        }
        let task = self.state.task(question.task).ok_or(PlannerError::UnknownTask(question.task))?;
        let asked = further.map(|further| self.ask_of(task.plan.id, further, None)).transpose()?;
        // The further question keeps the status of the task. Only the answer to a condition must still be understood.
        let follows = match asked.is_some() && question.purpose != Purpose::Condition {
            true => Vec::new(),
            false => self.follow_answer(question, task, &answer)?,
        };
        let received =
            Event::ClarificationReceived { task_id: question.task, question_id: id, answer, is_default: false };
        Ok([asked.unwrap_or_default(), vec![received], follows].concat())
    }

    pub(super) fn follow_answer(
        &self,
        question: &Question,
        task: &Task,
        answer: &str,
    ) -> Result<Vec<Event>, PlannerError> {
        let not_understood = |allowed| PlannerError::AnswerNotUnderstood(question.id, allowed);
        match question.purpose {
            // It waits for other answers, too.
            Purpose::Task | Purpose::Executor if self.is_asked_more(task.plan.id, question.id) => Ok(Vec::new()),
            Purpose::Task => {
                let result = self.answers_of(task, Some(answer));
                Ok(vec![end(task.plan.id, TaskStatus::Completed, result, None, true)])
            }
            // Back to planned: it is dispatched again with the answer when there is room.
            Purpose::Executor => Ok(vec![end(task.plan.id, TaskStatus::Planned, None, None, false)]),
            Purpose::Condition => is_yes(answer).map(|_| Vec::new()).ok_or_else(|| not_understood("yes, no")),
            Purpose::Failure => {
                let error = task.error.clone().unwrap_or_default();
                let policy = match answer.trim().to_lowercase().as_str() {
                    "retry" => {
                        return Ok(vec![end(task.plan.id, TaskStatus::Planned, None, task.error.clone(), false)]);
                    }
                    "done" => {
                        let result = Some("a person answered that it is done".to_owned());
                        return Ok(vec![end(task.plan.id, TaskStatus::Completed, result, None, true)]);
                    }
                    "skip" => FailurePolicy::SkipDependants,
                    "continue" => FailurePolicy::Continue,
                    "stop" => FailurePolicy::Stop,
                    _ => return Err(not_understood("retry, done, skip, continue, stop")),
                };
                Ok(self.give_up(task, TaskStatus::Failed, error, policy))
            }
        }
    }
}

/// A delay, less a part that is derived from the task, so that retries spread out and a replay gives the same delay.
fn spread(task: &Task, delay_ms: u64, policy: RetryPolicy) -> u64 {
    let most = u128::from(delay_ms) * u128::from(policy.jitter_percent.min(100)) / 100;
    delay_ms - mixed(task) % u64::try_from(most).unwrap_or(delay_ms).saturating_add(1)
}

/// A number derived from a task and its attempt.
fn mixed(task: &Task) -> u64 {
    (task.plan.id.0 ^ (u64::from(task.attempts) << 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33
}
