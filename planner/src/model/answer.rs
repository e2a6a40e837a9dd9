//! How the text of an answer is read: strictly, as one JSON object of a known form. What it says is judged elsewhere.

use serde::de::DeserializeOwned;

use super::questions::QUESTIONS_MAX;
use crate::agents::PlanError;
use crate::json;
use crate::plan::{TaskId, TaskPlan};
use crate::validity::InvalidPlan;

/// Why an answer is refused. Tasks are named as in the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is not JSON, or JSON of another form.
    #[error("{0}")]
    Form(String),
    /// Its tasks are not a plan.
    #[error("{}", without_place(.0))]
    Plan(#[from] InvalidPlan),
    /// It is not a plan of its agent.
    #[error(transparent)]
    AgentPlan(#[from] PlanError),
    /// No task has this id.
    #[error("no task is called {0:?}; name one of those that were given")]
    UnknownTask(String),
    /// It leaves a task out.
    #[error("nothing is said of task {0}; say something of every task, once")]
    Missing(String),
    /// It names a task twice.
    #[error("task {0} is named twice; say something of every task, once")]
    Twice(String),
    /// A text is empty or too long: which, its characters, and how many are allowed.
    #[error("the {0} has {1} characters; it needs 1 to {2}")]
    Length(String, usize, usize),
    /// The text does not have this command of a task.
    #[error("the command {1:?} of task {0} does not stand in the text as code; copy one that does, or leave it out")]
    InventedCommand(String, String),
    /// The text does not have this argument of a tool's command.
    #[error("the argument {1:?} of task {0} does not stand in the text; copy one that does, or leave it out")]
    InventedArgument(String, String),
    /// No task is the step for which the text has settings.
    #[error("the text sets {1} for the step {0:?}, and no task of the answer is that step; add it")]
    LostStep(String, String),
    /// So many questions are more than anybody answers.
    #[error("{0} questions are more than {QUESTIONS_MAX}; ask only the most important")]
    TooManyQuestions(usize),
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
        return Err(AnswerError::Form("the answer is empty".into()));
    }
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text = fenced.map_or(text, |inside| inside.strip_prefix("json").unwrap_or(inside));
    json::read(text).map_err(|error| AnswerError::Form(format!("it is not JSON: {error}")))?;
    let of_form = |error| AnswerError::Form(format!("the JSON is not of the form asked for: {error}"));
    serde_json::from_str(text).map_err(of_form)
}

/// The same text without white space around it, if its length is allowed.
pub(super) fn checked(text: &str, what: &str, of: impl FnOnce() -> String, max: usize) -> Result<String, AnswerError> {
    let text = text.trim();
    let n_chars = text.chars().count();
    if n_chars == 0 || n_chars > max {
        return Err(AnswerError::Length(format!("{what} of {}", of()), n_chars, max));
    }
    Ok(text.to_owned())
}

/// The task that people, and so models, call by this name.
pub(super) fn task_named(tasks: &[TaskPlan], id: &str) -> Result<TaskId, AnswerError> {
    let id = id.trim();
    let found = tasks.iter().find(|task| task.name().eq_ignore_ascii_case(id));
    found.map(|task| task.id).ok_or_else(|| AnswerError::UnknownTask(id.to_owned()))
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
