//! Why the planner refuses a command. It only names what was wrong; deciding is the planner's.

use crate::event::{QuestionId, TaskStatus};
use crate::plan::TaskId;
use crate::validity::InvalidPlan;

/// Why the planner refuses a command; the plan is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlannerError {
    /// The text is no plan.
    #[error(transparent)]
    Parse(#[from] InvalidPlan),
    /// A plan has what only an agent's may have, and is not proposed as one.
    #[error("task {0} uses a tool or asks an agent, and the plan was not checked as one of an agent with that tool")]
    NotOfAgent(TaskId),
    /// Too many plans stand above the plan: how many, and the limit.
    #[error("{0} plans stand above this one, and sub_plan_depth_max is {1}: plan the work in fewer levels")]
    TooDeep(u32, u32),
    /// The plan exists already.
    #[error("this plan has been made already: give the new one another id")]
    AlreadyPlanned,
    /// There is no such plan.
    #[error("there is no such plan")]
    NotPlanned,
    /// The plan has ended.
    #[error("the plan has ended: retry a task to open it again")]
    PlanEnded,
    /// The plan is paused.
    #[error("the plan is paused: resume it first")]
    PlanPaused,
    /// What the plan did is being undone.
    #[error("what the plan did is being undone: wait until that has ended, or cancel the plan, and then retry")]
    BeingUndone,
    /// The plan has no such task.
    #[error("the plan has no task {0}")]
    UnknownTask(TaskId),
    /// The plan has no such question.
    #[error("the plan has no question {0}")]
    UnknownQuestion(QuestionId),
    /// The question has this answer, or its task ended before it had one.
    #[error("{0} is closed: {why}", why = .1.as_deref().map_or("its task has ended".to_owned(), |answer| format!("it was answered {answer:?}")))]
    QuestionClosed(QuestionId, Option<String>),
    /// The answer is too long: its bytes, and the limit.
    #[error("the answer to {0} has {1} bytes, and answer_bytes_max is {2}: put it into a file and name that")]
    AnswerTooLong(QuestionId, usize, usize),
    /// The question takes only these answers.
    #[error("{0} wants one of these answers: {1}")]
    AnswerNotUnderstood(QuestionId, &'static str),
    /// The task has not ended, or has completed.
    #[error("task {0} is {status}: only one that failed, timed out, or was cancelled or skipped can be retried", status = .1.as_str())]
    NotRetryable(TaskId, TaskStatus),
    /// The history goes through too many plans already.
    #[error("this is a fork of a fork and so on, and fork_depth_max is {0}: fork a plan that is nearer to the first")]
    TooManyForks(usize),
    /// A name that no point of a history can have.
    #[error(
        "{0:?} cannot be the name of a checkpoint: take at most 64 letters, digits, dashes, dots and underscores that \
         are not a number"
    )]
    CheckpointName(String),
    /// Another point of the history has the name.
    #[error("the plan has a checkpoint {0:?} already: give this one another name")]
    CheckpointTaken(String),
    /// Too many points of the history have names.
    #[error("the plan has as many checkpoints as it can have: checkpoints_max is {0}")]
    TooManyCheckpoints(usize),
    /// The task does not wait out a delay.
    #[error("task {0} is {status} and waits for no moment: only a task that waits before its next try can be tried now", status = .1.as_str())]
    NotDelayed(TaskId, TaskStatus),
    /// The plan cannot go on without one of these answers to the question.
    #[error("{0} cannot be withdrawn, since the plan cannot go on without its answer: answer one of {1}")]
    NotWithdrawable(QuestionId, &'static str),
    /// Nothing can be asked of the task.
    #[error("nothing can be asked of task {0}, which is {status}: only of one that has not been started, or waits for an answer to go on", status = .1.as_str())]
    NotAskable(TaskId, TaskStatus),
    /// The question is too long: its bytes, and the limit.
    #[error(
        "the question, or its default, has {0} bytes, and question_bytes_max is {1}: put it into a file and name that"
    )]
    QuestionTooLong(usize, usize),
    /// Too many questions are open.
    #[error("{0} questions are open, and questions_open_max is {0}: answer some of them first")]
    TooManyQuestions(usize),
    /// A setting is out of its limits.
    #[error("{setting} is {value}, and must be from {min} to {max}")]
    Setting {
        /// The name of the setting.
        setting: &'static str,
        /// What was given.
        value: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// The task cannot be changed while it is at work.
    #[error("task {0} is {status}: to change it, cancel it, or let it end and retry it", status = .1.as_str())]
    TaskUnderWay(TaskId, TaskStatus),
    /// The task has ended.
    #[error("task {0} is {status}: it can only be retried, or be given other tasks to wait for", status = .1.as_str())]
    TaskEnded(TaskId, TaskStatus),
    /// The label belongs to this task.
    #[error("task {1} is called {0} already: give one of the two another id")]
    LabelTaken(String, TaskId),
    /// A name that no task can be given.
    #[error(
        "{0:?} cannot be the name of a task: take at most 64 letters, digits, dashes, dots, colons, slashes and underscores"
    )]
    LabelName(String),
    /// A task needs a description.
    #[error("task {0} would have no description: say in a few words what is to be done")]
    NoDescription(TaskId),
    /// The texts of a task are too long: their bytes, and the limit.
    #[error("the texts of task {0} have {1} bytes, and task_bytes_max is {2}: put them into a file and name that")]
    TaskTooLong(TaskId, usize, usize),
    /// An order asks for too much at once: of what, how much, and the limit.
    #[error("{1} {0} are more than {2}: give them in several orders")]
    TooMany(&'static str, usize, usize),
    /// Questions are asked as soon as they can be.
    #[error("questions take no place from tasks: limit the tasks of another kind")]
    QuestionsHaveNoLimit,
}

impl PlannerError {
    /// The task that is in the way, where the refusal names one by its number.
    #[must_use]
    pub const fn task(&self) -> Option<TaskId> {
        match self {
            Self::NotOfAgent(task)
            | Self::NotRetryable(task, _)
            | Self::NotDelayed(task, _)
            | Self::NotAskable(task, _)
            | Self::TaskUnderWay(task, _)
            | Self::TaskEnded(task, _)
            | Self::LabelTaken(_, task)
            | Self::NoDescription(task)
            | Self::TaskTooLong(task, ..) => Some(*task),
            Self::Parse(_)
            | Self::TooDeep(..)
            | Self::AlreadyPlanned
            | Self::NotPlanned
            | Self::PlanEnded
            | Self::PlanPaused
            | Self::BeingUndone
            | Self::UnknownTask(..)
            | Self::UnknownQuestion(..)
            | Self::QuestionClosed(..)
            | Self::AnswerTooLong(..)
            | Self::AnswerNotUnderstood(..)
            | Self::TooManyForks(..)
            | Self::CheckpointName(..)
            | Self::CheckpointTaken(..)
            | Self::TooManyCheckpoints(..)
            | Self::NotWithdrawable(..)
            | Self::QuestionTooLong(..)
            | Self::TooManyQuestions(..)
            | Self::Setting { .. }
            | Self::LabelName(..)
            | Self::TooMany(..)
            | Self::QuestionsHaveNoLimit => None,
        }
    }
}
