//! The planner's words: what it is asked, what it decides, and what executors are told and report.

use crewlog_mq::Event as MqEvent;
use serde::{Deserialize, Serialize};

use crate::plan::{Attachment, FailurePolicy, NodeKind, TaskId, TaskPlan};

/// The stream of all plans; a plan's aggregate is its id.
pub const STREAM: &str = "planner";

/// The tag that every event of a plan bears, those of its tasks included.
#[must_use]
pub fn plan_tag(plan: &str) -> String {
    format!("plan:{plan}")
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskStatus {
    /// Known, and not dispatched.
    Planned,
    /// Dispatched; who holds it, if anybody, is told by its own aggregate.
    Running,
    /// Waits for an answer.
    NeedsClarification,
    /// Ended with a result.
    Completed,
    /// Ended with an error.
    Failed,
    /// Ended because it ran too long.
    TimedOut,
    /// Ended by a person.
    Cancelled,
    /// Ended without having been dispatched.
    Skipped,
}

impl TaskStatus {
    /// The name as written in events and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "Planned",
            Self::Running => "Running",
            Self::NeedsClarification => "NeedsClarification",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::TimedOut => "TimedOut",
            Self::Cancelled => "Cancelled",
            Self::Skipped => "Skipped",
        }
    }

    /// True when only a retry can change it.
    #[must_use]
    pub const fn is_end(self) -> bool {
        match self {
            Self::Planned | Self::Running | Self::NeedsClarification => false,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Cancelled | Self::Skipped => true,
        }
    }
}

/// How a plan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Every task completed, or was left out as the text wanted.
    Completed,
    /// A task failed, timed out, or was cancelled or skipped for such a one.
    Failed,
    /// A person cancelled the plan.
    Cancelled,
}

/// The number of a question in its plan: 1, 2, 3 ...
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub u64);

impl std::fmt::Display for QuestionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "q{}", self.0)
    }
}

/// What an answer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// The task is the question; the answer is its result.
    Task,
    /// An executor needs it to go on with the task.
    Executor,
    /// Whether the task's condition holds: yes or no.
    Condition,
    /// What to do about the task's failure: retry, done, skip, continue or stop.
    Failure,
}

/// A question that was answered, as an executor is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The task that asked.
    pub task: TaskId,
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: String,
}

/// What came of a task, as an executor of one that depends on it is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    /// The task.
    pub task: TaskId,
    /// The plain text of its step.
    pub description: String,
    /// What came of it; shortened where the token budget wants it.
    pub result: String,
}

/// What an executor is told of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// The plain text of the step.
    pub description: String,
    /// The shell command, when it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Constraints and remarks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the task refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Answers to its own questions and to those of all that it waited for, near and far, in the order of the questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answered>,
    /// What came of the tasks that it depends on; only for tasks without a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<TaskResult>,
    /// What the plan is about and what has been done so far; only for tasks without a command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// What models are told first; only for tasks without a command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system_prompt: String,
    /// Who is to do it, as written, without the `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// The paths and globs that it says it works on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether a run that was cut off may simply be run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rerun_safe: bool,
    /// Milliseconds after which a run is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Where commands run; where the worker is, when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// What the planner asks of executors. It occurs only inside [`Event::TaskDispatched`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlannerCmd {
    /// Carry out a task.
    ExecuteTask {
        /// The task.
        node_id: TaskId,
        /// By which executors choose.
        kind: NodeKind,
        /// What to do.
        parameters: Box<Parameters>,
    },
    /// Ask a person or an agent.
    RequestClarification {
        /// The task that is the question.
        node_id: TaskId,
        /// What to ask.
        question: String,
    },
}

/// What sort of failure, which decides whether it is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureClass {
    /// The task itself failed: tried again only where the text says so.
    Task,
    /// It could not be started: tried again.
    NotStarted,
    /// It ran too long: tried again.
    TimedOut,
    /// Somebody asked for patience: tried again.
    RateLimited,
    /// It was cut off while it ran, and may have done all, some or nothing of its work: a person is asked, unless the
    /// text says that it may simply be run again.
    OutcomeUnknown,
}

/// What executors and people report. `attempt` is that of the dispatch which they answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutorEvent {
    /// The task is done.
    TaskCompleted {
        /// The task.
        node_id: TaskId,
        /// The dispatch.
        attempt: u32,
        /// What came of it.
        result: String,
    },
    /// The task could not be done.
    TaskFailed {
        /// The task.
        node_id: TaskId,
        /// The dispatch.
        attempt: u32,
        /// Why.
        error: String,
        /// What sort of failure.
        class: FailureClass,
    },
    /// The executor cannot go on without an answer.
    NeedsClarification {
        /// The task.
        node_id: TaskId,
        /// The dispatch.
        attempt: u32,
        /// What it asks.
        question: String,
    },
    /// A question was answered.
    ClarificationProvided {
        /// The task whose question it is.
        node_id: TaskId,
        /// The question.
        question_id: QuestionId,
        /// The answer.
        answer: String,
    },
}

/// The settings of a plan. They are part of its first event, so no replay depends on the defaults of the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerConfig {
    /// What models and compactors are told first.
    pub system_prompt: String,
    /// What compaction keeps.
    pub profile: Profile,
    /// Tokens that an agent may be told, the task and its context together.
    pub token_budget: usize,
    /// Characters of an error that the plan keeps.
    pub error_char_limit: usize,
    /// Tasks that may run at once: of those with a command, and again of those without.
    pub parallelism: usize,
    /// What a failure means for the rest.
    pub on_failure: FailurePolicy,
    /// How often a failure to start, a time-out or a rate limit is tried again.
    pub retries_max: u32,
    /// The wait before the first of these, in milliseconds; it doubles from one to the next.
    pub backoff_ms: u64,
    /// The longest such wait, in milliseconds.
    pub backoff_ms_max: u64,
    /// Where the plan's commands run.
    pub folder: Option<String>,
}

/// What compaction keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Paths, signatures, errors.
    #[default]
    Coding,
    /// Findings, figures, sources.
    Analysis,
}

impl Default for PlannerConfig {
    fn default() -> Self {
        Self {
            system_prompt: String::new(),
            profile: Profile::Coding,
            token_budget: 8_000,
            error_char_limit: 2_000,
            parallelism: 4,
            on_failure: FailurePolicy::SkipDependants,
            retries_max: 2,
            backoff_ms: 500,
            backoff_ms_max: 60_000,
            folder: None,
        }
    }
}

/// What the planner is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Plan a text.
    Initialize {
        /// The text.
        user_input: String,
        /// What comes with it.
        attachments: Vec<Attachment>,
        /// The settings.
        config: PlannerConfig,
        /// Whether the mere order of the text binds.
        relax_order: bool,
    },
    /// Take in what an executor or a person reported.
    HandleExecutorEvent(ExecutorEvent),
    /// Go on from the present state.
    Continue,
    /// Compact the context to at most so many tokens.
    CompactContext {
        /// The most tokens of the summary.
        max_tokens: usize,
    },
    /// End a task, or the whole plan.
    Cancel {
        /// The task; the plan when unset.
        task: Option<TaskId>,
        /// Why.
        reason: String,
    },
    /// Start nothing more until resumed.
    Pause {
        /// Why.
        reason: String,
    },
    /// Go on after a pause.
    Resume,
    /// Open an ended task again, with what was skipped because of it.
    Retry {
        /// The task; all that failed, timed out or were cancelled when unset.
        task: Option<TaskId>,
    },
}

/// What happened to a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The whole plan.
    TasksPlanned {
        /// In the order of planning.
        tasks: Vec<TaskPlan>,
        /// The first heading of the text, if any.
        title: Option<String>,
        /// The text.
        source: String,
        /// The settings.
        config: PlannerConfig,
        /// What of the text is no task: goals, overview.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<String>,
        /// Attachments that no task mentions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A task may start.
    TaskDispatched {
        /// The task.
        task_id: TaskId,
        /// 1 for the first dispatch of the task, and so on.
        attempt: u32,
        /// How long to wait first, in milliseconds.
        #[serde(default)]
        delay_ms: u64,
        /// What to do.
        command: PlannerCmd,
    },
    /// A task has another status.
    TaskStatusUpdated {
        /// The task.
        task_id: TaskId,
        /// The new status.
        status: TaskStatus,
        /// What came of it.
        result: Option<String>,
        /// Why it failed, or ended otherwise.
        error: Option<String>,
        /// At an end: whether what depends on it may run.
        #[serde(default)]
        unblocks: bool,
    },
    /// A task waits for an answer.
    ClarificationRequested {
        /// The task.
        task_id: TaskId,
        /// The question's number.
        question_id: QuestionId,
        /// What is asked.
        question: String,
        /// What the answer is for.
        purpose: Purpose,
    },
    /// A question is closed.
    ClarificationReceived {
        /// The task.
        task_id: TaskId,
        /// The question's number.
        question_id: QuestionId,
        /// The answer.
        answer: String,
    },
    /// The context is shorter. Nothing was deleted.
    ContextCompacted {
        /// What stands for it now.
        summary: String,
        /// The tasks whose lines it replaces, beside those that the summary before it stood for.
        removed_task_ids: Vec<TaskId>,
    },
    /// Nothing more is started.
    PlanPaused {
        /// Why.
        reason: String,
    },
    /// Tasks are started again.
    PlanResumed {},
    /// A person ended the plan.
    PlanCancelled {
        /// Why.
        reason: String,
    },
    /// Ended tasks are open again.
    TasksReopened {
        /// Which.
        task_ids: Vec<TaskId>,
    },
    /// The plan has ended.
    PlanningCompleted {
        /// In a sentence.
        summary: String,
        /// How.
        outcome: Outcome,
    },
}

impl MqEvent for Event {
    const EVENT_VERSION: &'static str = "1.0";

    fn event_type(&self) -> &'static str {
        match self {
            Self::TasksPlanned { .. } => "TasksPlanned",
            Self::TaskDispatched { .. } => "TaskDispatched",
            Self::TaskStatusUpdated { .. } => "TaskStatusUpdated",
            Self::ClarificationRequested { .. } => "ClarificationRequested",
            Self::ClarificationReceived { .. } => "ClarificationReceived",
            Self::ContextCompacted { .. } => "ContextCompacted",
            Self::PlanPaused { .. } => "PlanPaused",
            Self::PlanResumed {} => "PlanResumed",
            Self::PlanCancelled { .. } => "PlanCancelled",
            Self::TasksReopened { .. } => "TasksReopened",
            Self::PlanningCompleted { .. } => "PlanningCompleted",
        }
    }
}
