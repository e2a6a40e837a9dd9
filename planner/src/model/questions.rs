//! Clarifying questions: what a person has to decide before tasks can be done. They become tasks of their own.

use serde::Deserialize;
use serde_json::Value;

use super::answer::{self, AnswerError};
use super::request::{list, object, text};
use crate::plan::{Dependency, NodeKind, Strength, TaskId, TaskPlan};
use crate::validity::validate;

/// The most questions that are asked of a plan.
pub(super) const QUESTIONS_MAX: usize = 5;
/// The most characters of a question.
const QUESTION_CHARS_MAX: usize = 1_000;

/// A question as an answer has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenQuestion {
    question: String,
    #[serde(default)]
    blocks: Vec<String>,
}

/// The schema of the questions in an answer.
pub(super) fn schema() -> Value {
    list(&object(&[("question", text()), ("blocks", list(&text()))]))
}

/// Adds each question as a task that the tasks it blocks wait for.
///
/// # Errors
/// When there are too many, one is empty, or one blocks a task that it would have to wait for.
pub(super) fn ask(
    tasks: &mut Vec<TaskPlan>,
    written: Vec<WrittenQuestion>,
    task_named: impl Fn(&str) -> Result<TaskId, AnswerError>,
) -> Result<(), AnswerError> {
    if written.len() > QUESTIONS_MAX {
        return Err(AnswerError::TooManyQuestions(written.len()));
    }
    for (n, WrittenQuestion { question, blocks }) in written.into_iter().enumerate() {
        let question = answer::checked(&question, "text", || format!("question {}", n + 1), QUESTION_CHARS_MAX)?;
        let blocks = blocks.iter().map(|id| task_named(id)).collect::<Result<Vec<_>, _>>()?;
        let id = TaskId(tasks.iter().map(|task| task.id.0).max().unwrap_or(0) + 1);
        for task in tasks.iter_mut().filter(|task| blocks.contains(&task.id)) {
            task.depends_on.push(Dependency { task: id, strength: Strength::Hard });
        }
        tasks.push(TaskPlan::new(id, NodeKind::Clarification, question));
    }
    Ok(validate(tasks)?)
}
