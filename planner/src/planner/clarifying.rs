//! Decides on changes to questions: one is withdrawn, another is asked, an answer opens the next.

use crate::error::PlannerError;
use crate::event::{Event, Purpose, QuestionId, TaskStatus};
use crate::plan::{DefaultAnswer, NodeKind, TaskId};
use crate::planner::{Planner, QUESTION_BYTES_MAX, QUESTIONS_OPEN_MAX, end};
use crate::state::{Question, Task};

impl Planner {
    /// Withdraws a question. A task that is the question is skipped and unblocks its dependents; one whose executor
    /// asked starts again.
    pub(super) fn withdraw(&self, id: QuestionId, reason: &str) -> Result<Vec<Event>, PlannerError> {
        let question = self.state.question(id).ok_or(PlannerError::UnknownQuestion(id))?;
        if question.is_withdrawn {
            return Ok(Vec::new());
        }
        if question.answer.is_some() {
            return Err(PlannerError::QuestionClosed(id, question.answer.clone()));
        }
        let task = self.state.task(question.task).ok_or(PlannerError::UnknownTask(question.task))?;
        let follows = match question.purpose {
            Purpose::Task | Purpose::Executor if self.is_asked_more(task.plan.id, id) => Vec::new(),
            Purpose::Task => match self.answers_of(task, None) {
                Some(result) => vec![end(task.plan.id, TaskStatus::Completed, Some(result), None, true)],
                None => vec![end(task.plan.id, TaskStatus::Skipped, None, Some(reason.to_owned()), true)],
            },
            Purpose::Executor => vec![end(task.plan.id, TaskStatus::Planned, None, None, false)],
            Purpose::Condition => return Err(PlannerError::NotWithdrawable(id, "yes, no")),
            Purpose::Failure => {
                return Err(PlannerError::NotWithdrawable(id, "retry, done, skip, continue, stop"));
            }
        };
        let withdrawn =
            Event::ClarificationWithdrawn { task_id: task.plan.id, question_id: id, reason: reason.to_owned() };
        Ok([vec![withdrawn], follows].concat())
    }

    /// Asks a question about a task that has not started or already waits for an answer. The task then waits for this one.
    pub(super) fn ask_of(
        &self,
        id: TaskId,
        question: String,
        default: Option<DefaultAnswer>,
    ) -> Result<Vec<Event>, PlannerError> {
        let task = self.state.task(id).ok_or(PlannerError::UnknownTask(id))?;
        let value = question.len().max(default.as_ref().map_or(0, |default| default.answer.len()));
        if value > QUESTION_BYTES_MAX {
            return Err(PlannerError::QuestionTooLong(value, QUESTION_BYTES_MAX));
        }
        if self.state.open.len() >= QUESTIONS_OPEN_MAX {
            return Err(PlannerError::TooManyQuestions(QUESTIONS_OPEN_MAX));
        }
        let is_waiting = matches!(task.status, TaskStatus::Planned | TaskStatus::NeedsClarification);
        let may_be_asked = is_waiting && !self.state.is_asked_what_to_do_about(id);
        if !may_be_asked {
            return Err(PlannerError::NotAskable(task.plan.name(), task.status));
        }
        let is_question = task.plan.kind == NodeKind::Clarification && task.status == TaskStatus::NeedsClarification;
        let is_its_own =
            is_question && self.state.questions_of(id).any(|open| open.is_open() && open.purpose == Purpose::Task);
        let purpose = if is_its_own { Purpose::Task } else { Purpose::Executor };
        Ok(vec![self.ask(id, question, purpose, default, 0)])
    }

    /// True while a task waits for the answer to another question.
    pub(super) fn is_asked_more(&self, task: TaskId, than: QuestionId) -> bool {
        let waits_for = |question: &Question| match question.purpose {
            Purpose::Task | Purpose::Executor => question.is_open() && question.id != than,
            Purpose::Condition | Purpose::Failure => false,
        };
        self.state.questions_of(task).any(waits_for)
    }

    /// All answers to a question task, including the last one; `None` if there are none.
    pub(super) fn answers_of(&self, task: &Task, last: Option<&str>) -> Option<String> {
        let is_of_dispatch =
            |known: &&Question| known.purpose == Purpose::Task && Some(known.id) >= task.first_question;
        let known = self.state.questions_of(task.plan.id).filter(is_of_dispatch);
        let answers = known.filter_map(|known| known.answer.as_deref()).chain(last).collect::<Vec<_>>();
        (!answers.is_empty()).then(|| answers.join("\n"))
    }
}
