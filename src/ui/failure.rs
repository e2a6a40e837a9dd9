//! How the program ends: exit codes, and errors that say what to do next.

use std::fmt::Display;
use std::process::ExitCode;

use crewlog_mq::{Error, ExecuteError};
use crewlog_planner::claim::TaskError;
use crewlog_planner::planner::PlannerError;
use crewlog_planner::validity::InvalidPlan;

use crate::ui::text::visible;
use crewlog_executors::crew::similar::similar;

#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub enum Code {
    Done = 0,
    /// An error that the user can mend.
    User = 1,
    /// The text is not a plan.
    Parse = 3,
    /// No plan, task, question or event matched.
    Nothing = 4,
    /// A person has to answer, or to do something.
    Waiting = 5,
    Paused = 6,
    /// The plan is paused because its budget does not suffice.
    Budget = 7,
    TimedOut = 8,
    /// Another writer was faster.
    Conflict = 9,
    /// Replay produced different events.
    Differs = 10,
    /// Only a person may do it.
    Forbidden = 11,
    /// A task failed, timed out or was cancelled.
    TaskFailed = 100,
    /// Ended by a signal; the plan can be resumed.
    Interrupted = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub message: String,
    pub hints: Vec<String>,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Why {
    #[default]
    Refused,
    Unconsented,
    /// The person said no: not an error.
    Declined,
    /// The log failed; a retry may succeed.
    Fault,
    /// The log went back: a program that keeps state may start over.
    WentBack,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hints: Vec::new(), why: Why::Refused }
    }

    pub fn user(message: impl Into<String>) -> Self {
        Self::new(Code::User, message)
    }

    /// Standard output could not be written. That its reader closed it is no error.
    #[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
    pub fn output(error: std::io::Error) -> Self {
        let code = if error.kind() == std::io::ErrorKind::BrokenPipe { Code::Done } else { Code::User };
        Self::new(code, format!("the output could not be written: {error}"))
    }

    /// Ignores that the reader closed standard output: the work continues.
    pub fn unless_closed(self) -> Result<(), Self> {
        if self.code == Code::Done { Ok(()) } else { Err(self) }
    }

    /// Standard input or the terminal could not be read.
    #[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
    pub fn input(error: std::io::Error) -> Self {
        Self::user(format!("the input could not be read: {error}")).hint("type or send UTF-8 text")
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the known names that are nearest to a mistyped one.
    pub fn did_you_mean<'a>(self, typed: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match &similar(typed, known)[..] {
            [] => self,
            names => self.hint(format!("did you mean {}?", names.join(" or "))),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = if self.why == Why::Declined { "" } else { "error: " };
        write!(f, "{error}{}", visible(&self.message))?;
        for hint in &self.hints {
            write!(f, "\n  hint: {}", visible(hint))?;
        }
        Ok(())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::SequenceMismatch { .. }
            | Error::IdReused { .. }
            | Error::PartlyKnown { .. }
            | Error::MatchFound { .. }
            | Error::CellMismatch { .. }
            | Error::OtherLog { .. }
            | Error::Forked { .. } => Self::new(Code::Conflict, message),
            Error::NoLog { .. } => {
                Self::user(message).hint("`crewlog init` makes one, and so does `crewlog run FILE`")
            }
            Error::NoLogIn { .. } => Self::user(message)
                .hint("a log is copied with `crewlog export` and `crewlog import`, or with all its files")
                .hint("`crewlog init` makes a new log in an empty file"),
            Error::WentBack { .. } => Self { why: Why::WentBack, ..Self::user(message) }.hint(
                "`crewlog ls` shows the plans that are left: run the command again, or `crewlog run FILE` for a lost plan",
            ),
            _ => Self { why: Why::Fault, ..Self::user(message) },
        }
    }
}

impl From<InvalidPlan> for Failure {
    fn from(error: InvalidPlan) -> Self {
        Self::new(Code::Parse, format!("{error} [{}]", error.name()))
            .hint("`crewlog plan check FILE` shows how a file is read, `crewlog plan check -` how standard input is")
    }
}

impl<E: std::error::Error + Into<Self>> From<ExecuteError<E>> for Failure {
    fn from(error: ExecuteError<E>) -> Self {
        match error {
            ExecuteError::Refused(refusal) => refusal.into(),
            ExecuteError::Contended { .. } => Self::new(Code::Conflict, error.to_string()),
            ExecuteError::Store(error) => error.into(),
        }
    }
}

impl From<TaskError> for Failure {
    fn from(refusal: TaskError) -> Self {
        Self::new(Code::Conflict, refusal.to_string())
    }
}

impl From<PlannerError> for Failure {
    fn from(refusal: PlannerError) -> Self {
        let code = match &refusal {
            PlannerError::Parse(error) => return error.clone().into(),
            PlannerError::NotPlanned | PlannerError::UnknownTask(..) | PlannerError::UnknownQuestion(..) => {
                Code::Nothing
            }
            PlannerError::AlreadyPlanned
            | PlannerError::QuestionClosed(..)
            | PlannerError::CheckpointTaken(..)
            | PlannerError::BeingUndone
            | PlannerError::PlanEnded
            | PlannerError::TaskUnderWay(..)
            | PlannerError::TaskEnded(..)
            | PlannerError::NotRetryable(..)
            | PlannerError::NotAskable(..)
            | PlannerError::NotDelayed(..)
            | PlannerError::Blocked(..)
            | PlannerError::PlanPaused => Code::Conflict,
            PlannerError::NotOfAgent(..) | PlannerError::TooDeep(..) => Code::Parse,
            PlannerError::LabelTaken(..)
            | PlannerError::LabelName(..)
            | PlannerError::NoDescription(..)
            | PlannerError::TaskTooLong(..)
            | PlannerError::TooMany(..)
            | PlannerError::QuestionsHaveNoLimit
            | PlannerError::TooManyForks(..)
            | PlannerError::CheckpointName(..)
            | PlannerError::TooManyCheckpoints(..)
            | PlannerError::NotWithdrawable(..)
            | PlannerError::QuestionTooLong(..)
            | PlannerError::TooManyQuestions(..)
            | PlannerError::AnswerNotUnderstood(..)
            | PlannerError::AnswerTooLong(..)
            | PlannerError::Setting { .. } => Code::User,
        };
        Self::new(code, refusal.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::user(format!("a value cannot be written or read as JSON: {error}"))
    }
}

#[cfg(test)]
mod tests;
