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
    #[error("task {task} uses a tool or asks an agent, and the plan was not checked as one of an agent with that tool")]
    NotOfAgent {
        /// The task.
        task: TaskId,
    },
    /// Too many plans stand above the plan.
    #[error("{depth} plans stand above this one, and sub_plan_depth_max is {max}: plan the work in fewer levels")]
    TooDeep {
        /// How many do.
        depth: u32,
        /// How many may.
        max: u32,
    },
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
    #[error("the plan has no task {task}")]
    UnknownTask {
        /// The number given.
        task: TaskId,
    },
    /// The plan has no such question.
    #[error("the plan has no question {question}")]
    UnknownQuestion {
        /// The number given.
        question: QuestionId,
    },
    /// The question has its answer.
    #[error("{question} is closed: {}", answer.as_deref().map_or("its task has ended".to_owned(), |answer| format!("it was answered {answer:?}")))]
    QuestionClosed {
        /// The question.
        question: QuestionId,
        /// Its answer; unset when its task ended first.
        answer: Option<String>,
    },
    /// The answer is too long.
    #[error(
        "the answer to {question} has {value} bytes, and answer_bytes_max is {max}: put it into a file and name that"
    )]
    AnswerTooLong {
        /// The question.
        question: QuestionId,
        /// Its length.
        value: usize,
        /// The limit.
        max: usize,
    },
    /// The question wants one of a few words.
    #[error("{question} wants one of these answers: {allowed}")]
    AnswerNotUnderstood {
        /// The question.
        question: QuestionId,
        /// The words.
        allowed: &'static str,
    },
    /// The task has not ended, or has completed.
    #[error("task {task} is {}: only one that failed, timed out, or was cancelled or skipped can be retried", status.as_str())]
    NotRetryable {
        /// The task.
        task: TaskId,
        /// Where it stands.
        status: TaskStatus,
    },
    /// The history goes through too many plans already.
    #[error("this is a fork of a fork and so on, and fork_depth_max is {max}: fork a plan that is nearer to the first")]
    TooManyForks {
        /// The limit.
        max: usize,
    },
    /// A name that no point of a history can have.
    #[error(
        "{name:?} cannot be the name of a checkpoint: take at most 64 letters, digits, dashes, dots and underscores that \
         are not a number"
    )]
    CheckpointName {
        /// What was given.
        name: String,
    },
    /// Another point of the history has the name.
    #[error("the plan has a checkpoint {name:?} already: give this one another name")]
    CheckpointTaken {
        /// The name.
        name: String,
    },
    /// Too many points of the history have names.
    #[error("the plan has as many checkpoints as it can have: checkpoints_max is {max}")]
    TooManyCheckpoints {
        /// The limit.
        max: usize,
    },
    /// The task does not wait out a delay.
    #[error("task {task} is {} and waits for no moment: only a task that waits before its next try can be tried now", status.as_str())]
    NotDelayed {
        /// The task.
        task: TaskId,
        /// Where it stands.
        status: TaskStatus,
    },
    /// The plan cannot go on without an answer to the question.
    #[error("{question} cannot be withdrawn, since the plan cannot go on without its answer: answer one of {allowed}")]
    NotWithdrawable {
        /// The question.
        question: QuestionId,
        /// The words.
        allowed: &'static str,
    },
    /// Nothing can be asked of the task.
    #[error("nothing can be asked of task {task}, which is {}: only of one that has not been started, or waits for an answer to go on", status.as_str())]
    NotAskable {
        /// The task.
        task: TaskId,
        /// Where it stands.
        status: TaskStatus,
    },
    /// The question is too long.
    #[error(
        "the question, or its default, has {value} bytes, and question_bytes_max is {max}: put it into a file and name that"
    )]
    QuestionTooLong {
        /// Its length.
        value: usize,
        /// The limit.
        max: usize,
    },
    /// Too many questions are open.
    #[error("{max} questions are open, and questions_open_max is {max}: answer some of them first")]
    TooManyQuestions {
        /// The limit.
        max: usize,
    },
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
    #[error("task {task} is {}: to change it, cancel it, or let it end and retry it", status.as_str())]
    TaskUnderWay {
        /// The task.
        task: TaskId,
        /// Where it stands.
        status: TaskStatus,
    },
    /// The task has ended.
    #[error("task {task} is {}: it can only be retried, or be given other tasks to wait for", status.as_str())]
    TaskEnded {
        /// The task.
        task: TaskId,
        /// Where it stands.
        status: TaskStatus,
    },
    /// Another task is called so.
    #[error("task {task} is called {label} already: give one of the two another id")]
    LabelTaken {
        /// The name.
        label: String,
        /// The task that has it.
        task: TaskId,
    },
    /// A name that no task can be given.
    #[error(
        "{label:?} cannot be the name of a task: take at most 64 letters, digits, dashes, dots, colons, slashes and underscores"
    )]
    LabelName {
        /// What was given.
        label: String,
    },
    /// A task needs a description.
    #[error("task {task} would have no description: say in a few words what is to be done")]
    NoDescription {
        /// The task.
        task: TaskId,
    },
    /// The texts of a task are too long.
    #[error(
        "the texts of task {task} have {value} bytes, and task_bytes_max is {max}: put them into a file and name that"
    )]
    TaskTooLong {
        /// The task.
        task: TaskId,
        /// Their length.
        value: usize,
        /// The limit.
        max: usize,
    },
    /// An order asks for too much at once.
    #[error("{value} {what} are more than {max}: give them in several orders")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there are.
        value: usize,
        /// How many there may be.
        max: usize,
    },
    /// Questions are asked as soon as they can be.
    #[error("questions take no place from tasks: limit the tasks of another kind")]
    QuestionsHaveNoLimit,
}

impl PlannerError {
    /// The task that is in the way, where the refusal names one by its number.
    #[must_use]
    pub const fn task(&self) -> Option<TaskId> {
        match self {
            Self::NotOfAgent { task }
            | Self::NotRetryable { task, .. }
            | Self::NotDelayed { task, .. }
            | Self::NotAskable { task, .. }
            | Self::TaskUnderWay { task, .. }
            | Self::TaskEnded { task, .. }
            | Self::LabelTaken { task, .. }
            | Self::NoDescription { task }
            | Self::TaskTooLong { task, .. } => Some(*task),
            Self::Parse(_)
            | Self::TooDeep { .. }
            | Self::AlreadyPlanned
            | Self::NotPlanned
            | Self::PlanEnded
            | Self::PlanPaused
            | Self::BeingUndone
            | Self::UnknownTask { .. }
            | Self::UnknownQuestion { .. }
            | Self::QuestionClosed { .. }
            | Self::AnswerTooLong { .. }
            | Self::AnswerNotUnderstood { .. }
            | Self::TooManyForks { .. }
            | Self::CheckpointName { .. }
            | Self::CheckpointTaken { .. }
            | Self::TooManyCheckpoints { .. }
            | Self::NotWithdrawable { .. }
            | Self::QuestionTooLong { .. }
            | Self::TooManyQuestions { .. }
            | Self::Setting { .. }
            | Self::LabelName { .. }
            | Self::TooMany { .. }
            | Self::QuestionsHaveNoLimit => None,
        }
    }
}
