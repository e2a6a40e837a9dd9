//! How the text of an answer is read: strictly, as one JSON object of a known form. What it says is judged elsewhere.

use serde::de::DeserializeOwned;

use super::questions::QUESTIONS_MAX;
use crate::agents::PlanError;
use crate::json;
use crate::plan::{TaskId, TaskPlan};
use crate::validity::InvalidPlan;

/// Why an answer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is no JSON, or JSON of another form.
    #[error("{reason}")]
    Form {
        /// What is wrong, with line and column in the answer.
        reason: String,
    },
    /// Its tasks are no plan.
    #[error("{}", without_place(.0))]
    Plan(#[from] InvalidPlan),
    /// It is no plan of its agent.
    #[error(transparent)]
    AgentPlan(#[from] PlanError),
    /// It names a task that is not there.
    #[error("no task is called {id:?}; name one of those that were given")]
    UnknownTask {
        /// As written.
        id: String,
    },
    /// It says nothing of a task.
    #[error("nothing is said of task {id}; say something of every task, once")]
    Missing {
        /// The task.
        id: String,
    },
    /// It says something of a task twice.
    #[error("task {id} is named twice; say something of every task, once")]
    Twice {
        /// The task.
        id: String,
    },
    /// A text is empty or too long.
    #[error("the {what} of {of} has {n_chars} characters; it needs 1 to {max}")]
    Length {
        /// Which text.
        what: &'static str,
        /// Of which task or question.
        of: String,
        /// How long it is.
        n_chars: usize,
        /// How long it may be.
        max: usize,
    },
    /// A command that the text does not have.
    #[error(
        "the command {command:?} of task {id} does not stand in the text as code; copy one that does, or leave it out"
    )]
    InventedCommand {
        /// The task.
        id: String,
        /// As written.
        command: String,
    },
    /// An argument of a tool's command that the text does not have.
    #[error("the argument {argument:?} of task {id} does not stand in the text; copy one that does, or leave it out")]
    InventedArgument {
        /// The task.
        id: String,
        /// As written.
        argument: String,
    },
    /// A step is not there for which the text sets something.
    #[error("the text sets {settings} for the step {step:?}, and no task of the answer is that step; add it")]
    LostStep {
        /// The step, as the parser has it.
        step: String,
        /// What is set.
        settings: String,
    },
    /// More questions than anybody answers.
    #[error("{n_questions} questions are more than {QUESTIONS_MAX}; ask only the most important")]
    TooManyQuestions {
        /// How many.
        n_questions: usize,
    },
}

/// An answer has no lines of a source, and a plan that a model proposes none either.
fn without_place(error: &InvalidPlan) -> String {
    let said = error.to_string().replace(" (line 0, column 0)", "").replace(", on line 0 and again", "");
    format!("{said} [{}]", error.name())
}

/// Reads one JSON object; white space and a Markdown fence around it do not count.
pub(super) fn read<T: DeserializeOwned>(answer: &str) -> Result<T, AnswerError> {
    let text = answer.trim();
    if text.is_empty() {
        return Err(AnswerError::Form { reason: "the answer is empty".into() });
    }
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text = fenced.map_or(text, |inside| inside.strip_prefix("json").unwrap_or(inside));
    let of_form = |error: serde_json::Error| AnswerError::Form {
        reason: format!("the JSON is not of the form asked for: {error}"),
    };
    json::read(text).map_err(|error| AnswerError::Form { reason: format!("it is not JSON: {error}") })?;
    serde_json::from_str(text).map_err(of_form)
}

/// The same text without white space around it, if its length is allowed.
pub(super) fn checked(
    text: &str,
    what: &'static str,
    of: impl FnOnce() -> String,
    max: usize,
) -> Result<String, AnswerError> {
    let text = text.trim();
    let n_chars = text.chars().count();
    if n_chars == 0 || n_chars > max {
        return Err(AnswerError::Length { what, of: of(), n_chars, max });
    }
    Ok(text.to_owned())
}

/// The task that people, and so models, call by this name.
pub(super) fn task_named(tasks: &[TaskPlan], id: &str) -> Result<TaskId, AnswerError> {
    let id = id.trim();
    let found = tasks.iter().find(|task| task.name().eq_ignore_ascii_case(id));
    found.map(|task| task.id).ok_or_else(|| AnswerError::UnknownTask { id: id.to_owned() })
}

/// The tasks as a prompt lists them: one a line, by the name that the model must use.
pub(super) fn told(tasks: &[TaskPlan]) -> String {
    let names = tasks.iter().map(|task| (task.id, task.name())).collect::<std::collections::BTreeMap<_, _>>();
    let line = |task: &TaskPlan| {
        let after = task.depends_on.iter().map(|one| names.get(&one.task).cloned().unwrap_or_default());
        let after = after.collect::<Vec<_>>().join(", ");
        let after = if after.is_empty() { String::new() } else { format!(" (after {after})") };
        format!("{}: {}{after}", task.name(), task.description.replace('\n', " "))
    };
    tasks.iter().map(line).collect::<Vec<_>>().join("\n")
}
