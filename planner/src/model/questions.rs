//! Clarifying questions: what a person has to decide before tasks can be done. They become tasks of their own.

use serde::Deserialize;

use super::answer::{self, AnswerError};
use crate::plan::{Dependency, NodeKind, Strength, TaskId, TaskPlan};
use crate::validity::validate;

/// The most questions that are asked of a plan.
pub const QUESTIONS_MAX: usize = 5;
/// The most characters of a question.
pub(super) const QUESTION_CHARS_MAX: usize = 1_000;

/// The schema of the questions in an answer with a plan.
macro_rules! schema {
    () => {
        r#"{
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "question": {"type": "string"},
          "blocks": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["question", "blocks"],
        "additionalProperties": false
      }
    }"#
    };
}
pub(super) use schema;

/// A question as an answer has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenQuestion {
    pub(super) question: String,
    #[serde(default)]
    pub(super) blocks: Vec<String>,
}

/// A question that a model wants to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedQuestion {
    /// What.
    pub question: String,
    /// The tasks that wait for the answer; sorted.
    pub blocks: Vec<TaskId>,
}

/// The questions, if there are not too many and each says something.
pub(super) fn checked(
    written: Vec<WrittenQuestion>,
    task_named: impl Fn(&str) -> Result<TaskId, AnswerError>,
) -> Result<Vec<AskedQuestion>, AnswerError> {
    if written.len() > QUESTIONS_MAX {
        return Err(AnswerError::TooManyQuestions { n_questions: written.len() });
    }
    let question = |(n, written): (usize, WrittenQuestion)| {
        let of = || format!("question {}", n + 1);
        let question = answer::checked(&written.question, "text", of, QUESTION_CHARS_MAX)?;
        let mut blocks = written.blocks.iter().map(|id| task_named(id)).collect::<Result<Vec<_>, _>>()?;
        blocks.sort_unstable();
        blocks.dedup();
        Ok(AskedQuestion { question, blocks })
    };
    written.into_iter().enumerate().map(question).collect()
}

/// The tasks with each question as a task that what it blocks waits for.
///
/// # Errors
/// When a question blocks a task that it would have to wait for; the graph is checked as that of any plan.
pub fn with_questions(mut tasks: Vec<TaskPlan>, questions: Vec<AskedQuestion>) -> Result<Vec<TaskPlan>, AnswerError> {
    let mut next = tasks.iter().map(|task| task.id.0).max().unwrap_or(0);
    for AskedQuestion { question, blocks } in questions {
        next += 1;
        let asks = Dependency { task: TaskId(next), strength: Strength::Hard };
        for task in tasks.iter_mut().filter(|task| blocks.contains(&task.id)) {
            task.depends_on.push(asks);
        }
        tasks.push(TaskPlan::new(TaskId(next), NodeKind::Clarification, question));
    }
    validate(&tasks)?;
    Ok(tasks)
}
