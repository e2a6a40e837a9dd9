//! The reasons for refusing a call of an agent or a person.

use crewlog_mq::{Error, ExecuteError};
use crewlog_planner::claim::TaskError;
use crewlog_planner::crew::CrewError;
use crewlog_planner::lifecycle::State;

/// The reason why a call is refused. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// By the agents of the project, its leases, messages or questions.
    #[error(transparent)]
    Crew(#[from] CrewError),
    /// By a task.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The task cannot be started now.
    #[error("the task cannot be started: it is {}", .0.words())]
    NotReady(State),
    /// The task does not exist, or the agent does not hold it.
    #[error("{0}")]
    NoTask(String),
    /// The recipient is unknown.
    #[error("there is no agent or role {0:?}; `get_status` lists the agents")]
    NoRecipient(String),
    /// There were conflicts with other writers on each attempt.
    #[error("the log is busy: try again")]
    Busy,
    /// The log refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl<E: Into<Self>> From<ExecuteError<E>> for Refusal {
    fn from(error: ExecuteError<E>) -> Self {
        match error {
            ExecuteError::Refused(refusal) => refusal.into(),
            ExecuteError::Contended { .. } => Self::Busy,
            ExecuteError::Store(error) => Self::Store(error),
        }
    }
}
