//! The timers of a plan, and the numbers of its questions.

use serde::{Deserialize, Serialize};

use crate::plan::TaskId;

/// The number of a question in its plan: 1, 2, 3 ...
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub u64);

impl std::fmt::Display for QuestionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "q{}", self.0)
    }
}

impl QuestionId {
    /// Its place in the list of a plan's questions: no question has the number 0.
    pub(crate) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(0).wrapping_sub(1)
    }
}

/// A timer of a plan. The log records its due time and when it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Timer {
    /// The plan's deadline.
    Plan,
    /// A task's deadline.
    Task(TaskId),
    /// The default answer of a question takes effect.
    Question(QuestionId),
    /// A failed task is retried.
    Retry(TaskId),
}
