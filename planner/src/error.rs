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
    #[error("task {0} uses a tool or a request that is not allowed to the agent of its plan")]
    NotOfAgent(String),
    #[error("this plan would have {0} ancestors, and sub_plan_depth_max is {1}: plan the work in fewer levels")]
    TooDeep(u32, u32),
    #[error("the plan exists already: use another id")]
    AlreadyPlanned,
    #[error("there is no such plan")]
    NotPlanned,
    #[error("the plan has ended: retry a task that failed, or continue the plan in a fork")]
    PlanEnded,
    #[error("the plan is paused: resume it first")]
    PlanPaused,
    #[error("the plan is being undone: wait for its undo tasks, or cancel the plan, then retry")]
    BeingUndone,
    #[error("the plan has no task {0}")]
    UnknownTask(TaskId),
    #[error("the plan has no question {0}")]
    UnknownQuestion(QuestionId),
    #[error("{0} is closed: {why}", why = .1.as_deref().map_or("its task has ended".to_owned(), |answer| format!("it was answered {answer:?}")))]
    QuestionClosed(QuestionId, Option<String>),
    #[error("the answer to {0} has {1} bytes, and answer_bytes_max is {2}: put it in a file and answer with its path")]
    AnswerTooLong(QuestionId, usize, usize),
    #[error("{0} accepts only these answers: {1}")]
    AnswerNotUnderstood(QuestionId, &'static str),
    #[error("task {0} is {status}: only one that failed, timed out, or was cancelled or skipped can be retried", status = .1.words())]
    NotRetryable(String, TaskStatus),
    #[error("task {0} cannot start because task {1} is {status}: retry task {1} first", status = .2.words())]
    Blocked(String, String, TaskStatus),
    #[error("the plan already has {0} ancestors, and fork_depth_max is {0}: fork an earlier plan")]
    TooManyForks(usize),
    #[error(
        "{0:?} is not a valid checkpoint name: use up to 64 letters, digits, dashes, dots and \
         underscores, not only digits"
    )]
    CheckpointName(String),
    #[error("the plan already has a checkpoint {0:?}: use another name")]
    CheckpointTaken(String),
    #[error("the plan already has {0} checkpoints, and checkpoints_max is {0}")]
    TooManyCheckpoints(usize),
    #[error("task {0} is {status}: only a task that waits for its retry delay can be retried now", status = .1.words())]
    NotDelayed(String, TaskStatus),
    #[error("{0} cannot be withdrawn, because the plan needs its answer: answer one of {1}")]
    NotWithdrawable(QuestionId, &'static str),
    #[error("task {0} is {status}: questions can be added only before its start, or while it waits for an answer", status = .1.words())]
    NotAskable(String, TaskStatus),
    #[error(
        "the question, or its default, has {0} bytes, and question_bytes_max is {1}: put it in a file and give its path"
    )]
    QuestionTooLong(usize, usize),
    #[error("{0} questions are open, and questions_open_max is {0}: answer some of them first")]
    TooManyQuestions(usize),
    #[error("{setting} is {value}: it must be from {min} to {max}")]
    Setting { setting: &'static str, value: usize, min: usize, max: usize },
    #[error("task {0} is {status}: to change it, cancel it, or let it end and retry it", status = .1.words())]
    TaskUnderWay(String, TaskStatus),
    #[error("task {0} is {status}: only its dependencies can be changed; one that is not done can be retried", status = .1.words())]
    TaskEnded(String, TaskStatus),
    #[error("the id {0} belongs to task {1}: use another id")]
    LabelTaken(String, String),
    #[error(
        "{0:?} is not a valid task id: use up to 64 letters, digits, dashes, dots, colons, \
         slashes and underscores"
    )]
    LabelName(String),
    #[error("task {0} needs a description: state the work in a few words")]
    NoDescription(String),
    #[error("the texts of task {0} have {1} bytes, and task_bytes_max is {2}: put them in a file and give its path")]
    TaskTooLong(String, usize, usize),
    #[error("{1} {0} are more than {2}: split them into several commands")]
    TooMany(&'static str, usize, usize),
    #[error("parallelism of questions cannot be limited: choose another kind")]
    QuestionsHaveNoLimit,
}
