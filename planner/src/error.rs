//! The refusals of the planner.

use crate::event::{QuestionId, TaskStatus};
use crate::plan::TaskId;
use crate::validity::InvalidPlan;

/// The reason why the planner refuses a command; the plan is unchanged. Tasks of the plan are given by their names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PlannerError {
    #[error(transparent)]
    Parse(#[from] InvalidPlan),
    #[error("task {0} uses a tool or asks an agent, and the plan was not checked as one of an agent with that tool")]
    NotOfAgent(String),
    #[error("this plan would have {0} ancestors, and sub_plan_depth_max is {1}: plan the work in fewer levels")]
    TooDeep(u32, u32),
    #[error("this plan has been made already: give the new one another id")]
    AlreadyPlanned,
    #[error("there is no such plan")]
    NotPlanned,
    #[error("the plan has ended: retry a task to open it again")]
    PlanEnded,
    #[error("the plan is paused: resume it first")]
    PlanPaused,
    #[error("the plan is being undone: wait until that has ended, or cancel the plan, and then retry")]
    BeingUndone,
    #[error("the plan has no task {0}")]
    UnknownTask(TaskId),
    #[error("the plan has no question {0}")]
    UnknownQuestion(QuestionId),
    #[error("{0} is closed: {why}", why = .1.as_deref().map_or("its task has ended".to_owned(), |answer| format!("it was answered {answer:?}")))]
    QuestionClosed(QuestionId, Option<String>),
    #[error("the answer to {0} has {1} bytes, and answer_bytes_max is {2}: put it into a file and name that")]
    AnswerTooLong(QuestionId, usize, usize),
    #[error("{0} wants one of these answers: {1}")]
    AnswerNotUnderstood(QuestionId, &'static str),
    #[error("task {0} is {status}: only one that failed, timed out, or was cancelled or skipped can be retried", status = .1.as_str())]
    NotRetryable(String, TaskStatus),
    #[error("task {0} cannot start because task {1} is {status}: retry task {1} first", status = .2.as_str())]
    Blocked(String, String, TaskStatus),
    #[error("this is a fork of a fork and so on, and fork_depth_max is {0}: fork a plan that is nearer to the first")]
    TooManyForks(usize),
    #[error(
        "{0:?} cannot be the name of a checkpoint: take at most 64 letters, digits, dashes, dots and underscores that \
         are not a number"
    )]
    CheckpointName(String),
    #[error("the plan has a checkpoint {0:?} already: give this one another name")]
    CheckpointTaken(String),
    #[error("the plan has as many checkpoints as it can have: checkpoints_max is {0}")]
    TooManyCheckpoints(usize),
    #[error("task {0} is {status}: only a task that waits for its retry delay can be retried now", status = .1.as_str())]
    NotDelayed(String, TaskStatus),
    #[error("{0} cannot be withdrawn, since the plan cannot go on without its answer: answer one of {1}")]
    NotWithdrawable(QuestionId, &'static str),
    #[error("task {0} is {status}: questions can be added only before its start, or while it waits for an answer", status = .1.as_str())]
    NotAskable(String, TaskStatus),
    #[error(
        "the question, or its default, has {0} bytes, and question_bytes_max is {1}: put it into a file and name that"
    )]
    QuestionTooLong(usize, usize),
    #[error("{0} questions are open, and questions_open_max is {0}: answer some of them first")]
    TooManyQuestions(usize),
    #[error("{setting} is {value}, and must be from {min} to {max}")]
    Setting { setting: &'static str, value: usize, min: usize, max: usize },
    #[error("task {0} is {status}: to change it, cancel it, or let it end and retry it", status = .1.as_str())]
    TaskUnderWay(String, TaskStatus),
    #[error("task {0} is {status}: it can only be retried, or be given other tasks to wait for", status = .1.as_str())]
    TaskEnded(String, TaskStatus),
    #[error("task {1} is called {0} already: give one of the two another id")]
    LabelTaken(String, String),
    #[error(
        "{0:?} cannot be the name of a task: take at most 64 letters, digits, dashes, dots, colons, slashes and underscores"
    )]
    LabelName(String),
    #[error("task {0} would have no description: say in a few words what is to be done")]
    NoDescription(String),
    #[error("the texts of task {0} have {1} bytes, and task_bytes_max is {2}: put them into a file and name that")]
    TaskTooLong(String, usize, usize),
    #[error("{1} {0} are more than {2}: give them in several orders")]
    TooMany(&'static str, usize, usize),
    #[error("questions have no limit: limit the tasks of another kind")]
    QuestionsHaveNoLimit,
}
