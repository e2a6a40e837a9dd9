//! Reads the text of an answer strictly, as one JSON object of a known form.

use std::collections::HashMap;

use serde::de::DeserializeOwned;

use crate::agents::PlanError;
use crate::lines::At;
use crate::plan::TaskId;
use crate::validity::InvalidPlan;

/// The reason why an answer is refused. Tasks are named as in the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is not JSON, or JSON of another form.
    #[error("{0}")]
    Form(String),
    /// Its tasks are not a plan.
    #[error("{0} [{name}]", name = .0.name())]
    Plan(#[from] InvalidPlan),
    /// It breaks a rule of its agent's plans.
    #[error(transparent)]
    AgentPlan(#[from] PlanError),
    /// It leaves a task out or repeats it.
    #[error("the answer needs task {0} exactly once")]
    NotOnce(String),
    /// A text is empty or too long: its name, its length in characters, and the maximum.
    #[error("the {0} has {1} characters; it needs 1 to {2}")]
    Length(String, usize, usize),
    /// The text does not have this command of a task.
    #[error("the command {1:?} of task {0} is not in the text as code; copy one that is, or leave it out")]
    InventedCommand(String, String),
    /// The text does not have this argument of a tool's command.
    #[error("the argument {1:?} of task {0} is not in the text; copy one that is, or leave it out")]
    InventedArgument(String, String),
    /// A step with settings has no matching task in the answer.
    #[error("the text has settings for the step {0:?}, but no task matches it; add that task")]
    LostStep(String),
}

/// Reads one JSON object; white space and a Markdown fence around it do not count.
pub(super) fn read<T: DeserializeOwned>(answer: &str) -> Result<T, AnswerError> {
    serde_json::from_str(without_fence(answer)).map_err(|error| {
        let reason = if error.is_data() { "the JSON does not follow the schema" } else { "it is not JSON" };
        AnswerError::Form(format!("{reason}: {error}"))
    })
}

pub(super) fn without_fence(answer: &str) -> &str {
    let text = answer.trim();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    fenced.map_or(text, |inside| inside.strip_prefix("json").unwrap_or(inside)).trim()
}

/// The trimmed text, if its length is allowed.
pub(super) fn checked(text: &str, name: &str, of: &str, max: usize) -> Result<String, AnswerError> {
    let text = text.trim();
    let n_chars = text.chars().count();
    if n_chars == 0 || n_chars > max {
        return Err(AnswerError::Length(format!("{name} of {of}"), n_chars, max));
    }
    Ok(text.to_owned())
}

/// Task numbers by the ids that people and models use.
pub(super) struct Ids(HashMap<String, TaskId>);

impl Ids {
    pub(super) fn of<'a>(ids: impl IntoIterator<Item = (&'a str, TaskId)>) -> Result<Self, AnswerError> {
        let mut numbers = HashMap::new();
        for (id, number) in ids {
            if numbers.insert(id.trim().to_lowercase(), number).is_some() {
                return Err(InvalidPlan::DuplicateId(id.trim().to_owned(), At::default(), At::default()).into());
            }
        }
        Ok(Self(numbers))
    }

    pub(super) fn find(&self, id: &str) -> Result<TaskId, AnswerError> {
        let unknown = || InvalidPlan::UnknownId(id.trim().to_owned(), At::default());
        Ok(self.0.get(&id.trim().to_lowercase()).copied().ok_or_else(unknown)?)
    }
}
