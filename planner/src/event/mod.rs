//! Commands and events of the planner, and the reports of executors.

mod amending;
mod command;
mod config;
mod executor;

use crewlog_mq::{Event as MqEvent, Position, Timestamp};
use serde::{Deserialize, Serialize};

use crate::plan::{Attachment, DefaultAnswer, Origin, TaskId, TaskPlan};
pub use amending::{Amendment, Edit, Setting};
pub use command::Command;
pub use config::{Budget, Order, PlanFile, PlannerConfig, Profile, Summaries, Usage, money};
pub use executor::{Answered, Covered, ExecutorEvent, FailureClass, PlannerCmd, TaskInput};

/// The stream of all plans; a plan's aggregate is its id.
pub const STREAM: &str = "planner";

/// The tag on every event of a plan and of its tasks.
#[must_use]
pub fn plan_tag(plan: &str) -> String {
    format!("plan:{plan}")
}

/// The tag on every event of a plan and of its tasks, one for each ancestor.
#[must_use]
pub fn ancestor_tag(plan: &str) -> String {
    format!("ancestor:{plan}")
}

/// The tags of a plan that carries a task of another out: its own, and what the other's say of what it belongs to.
#[must_use]
pub fn sub_plan_tags(plan: &str, parent: &str, tags: &[String]) -> Vec<String> {
    let of_parent = plan_tag(parent);
    let kept = tags.iter().filter(|tag| **tag != of_parent).cloned();
    [plan_tag(plan), ancestor_tag(parent)].into_iter().chain(kept).collect()
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskStatus {
    /// Known, and not dispatched.
    Planned,
    /// Dispatched; its holder is in the task's own aggregate.
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

/// A timer of a plan. Its due time is in the log, and so is that it fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Timer {
    /// The plan's deadline.
    Plan,
    /// A task's deadline.
    Task(TaskId),
    /// When the default answer of a question counts.
    Question(QuestionId),
    /// When a failed task is tried again.
    Retry(TaskId),
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
        config: Box<PlannerConfig>,
        /// What of the text is no task: goals, overview.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        context: Vec<String>,
        /// Attachments that no task mentions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Where it came from, when not from a text alone.
        #[serde(default, skip_serializing_if = "Origin::is_text")]
        origin: Origin,
    },
    /// The plan goes on from a point of another plan's history, which is its own up to there.
    PlanForked {
        /// The other plan.
        parent: String,
        /// The last position of the history that they share.
        at: Position,
        /// Why.
        reason: String,
    },
    /// Tasks are redefined, or are new.
    TasksAmended {
        /// Their whole definitions; a number that is not known yet is a new task.
        tasks: Vec<TaskPlan>,
        /// Why.
        reason: String,
        /// The text of the plan's file, when it changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// The plan has other settings.
    SettingsChanged {
        /// All of them.
        config: Box<PlannerConfig>,
        /// Why.
        reason: String,
    },
    /// A task is not started until it is resumed.
    TaskPaused {
        /// The task.
        task_id: TaskId,
        /// Why.
        reason: String,
    },
    /// A task may be started again.
    TaskResumed {
        /// The task.
        task_id: TaskId,
    },
    /// A timer has its due time.
    TimerSet {
        /// The timer.
        timer: Timer,
        /// When it fires, in log time.
        due: Timestamp,
    },
    /// The due time of a timer has passed.
    TimerFired {
        /// The timer.
        timer: Timer,
        /// When it was due, in log time.
        due: Timestamp,
    },
    /// A failed task is tried again after a delay.
    RetryScheduled {
        /// The task.
        task_id: TaskId,
        /// The delay, in milliseconds.
        delay_ms: u64,
    },
    /// A person skipped the delay of a retry.
    RetryHastened {
        /// The task.
        task_id: TaskId,
    },
    /// An executor has used something up.
    UsageRecorded {
        /// The task.
        task_id: TaskId,
        /// The dispatch.
        attempt: u32,
        /// How much.
        usage: Usage,
    },
    /// A question is no longer asked.
    ClarificationWithdrawn {
        /// The task.
        task_id: TaskId,
        /// The question's number.
        question_id: QuestionId,
        /// Why.
        reason: String,
    },
    /// This point of the plan's history has a name.
    CheckpointNamed {
        /// The name.
        name: String,
    },
    /// The context is long, and a summary is wanted from a model.
    CompactionRequested {
        /// The tasks whose lines the summary is to replace.
        task_ids: Vec<TaskId>,
        /// The most tokens of the summary.
        max_tokens: usize,
    },
    /// A task may start.
    TaskDispatched {
        /// The task.
        task_id: TaskId,
        /// 1 for the first dispatch of the task, and so on.
        attempt: u32,
        /// What to do.
        command: PlannerCmd,
    },
    /// A task has another status.
    TaskStatusUpdated {
        /// The task.
        task_id: TaskId,
        /// The new status.
        status: TaskStatus,
        /// Its outcome.
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
        /// What counts when nobody answers in time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<DefaultAnswer>,
    },
    /// A question is closed.
    ClarificationReceived {
        /// The task.
        task_id: TaskId,
        /// The question's number.
        question_id: QuestionId,
        /// The answer.
        answer: String,
        /// True when nobody gave it in time, and it counts by default.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_default: bool,
    },
    /// The context is shorter. Nothing was deleted.
    ContextCompacted {
        /// The summary.
        summary: String,
        /// The tasks whose lines it replaces, beside those that the summary before it stood for.
        removed_task_ids: Vec<TaskId>,
        /// The events of the plan that it stands for, beside those that the summary before it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covers: Option<Covered>,
    },
    /// Nothing more is started.
    PlanPaused {
        /// Why.
        reason: String,
        /// True when it is because the parent plan is paused; then it goes on when that one does.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_parent: bool,
    },
    /// Tasks are started again.
    PlanResumed {},
    /// A failure stopped the plan: no more tasks start, and none is retried.
    PlanStopped {
        /// The task that failed.
        because: TaskId,
    },
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
        /// How many tasks it has, those that undo others apart.
        n_tasks: u64,
    },
}

/// What an event changes, for readers that need no more detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About<'a> {
    /// The status of these tasks, or whether they are paused.
    Tasks(&'a [TaskId]),
    /// The plan has ended.
    End,
    /// Neither.
    Rest,
}

impl Event {
    /// What it changes. Readers ask this instead of listing every event.
    #[must_use]
    pub fn about(&self) -> About<'_> {
        match self {
            Self::TasksReopened { task_ids } => About::Tasks(task_ids),
            Self::TaskDispatched { task_id, .. }
            | Self::TaskStatusUpdated { task_id, .. }
            | Self::TaskPaused { task_id, .. }
            | Self::TaskResumed { task_id } => About::Tasks(std::slice::from_ref(task_id)),
            Self::PlanningCompleted { .. } => About::End,
            Self::TasksPlanned { .. }
            | Self::PlanForked { .. }
            | Self::TasksAmended { .. }
            | Self::SettingsChanged { .. }
            | Self::PlanPaused { .. }
            | Self::PlanResumed {}
            | Self::PlanStopped { .. }
            | Self::PlanCancelled { .. }
            | Self::ClarificationRequested { .. }
            | Self::ClarificationReceived { .. }
            | Self::ClarificationWithdrawn { .. }
            | Self::TimerSet { .. }
            | Self::TimerFired { .. }
            | Self::RetryScheduled { .. }
            | Self::RetryHastened { .. }
            | Self::UsageRecorded { .. }
            | Self::CheckpointNamed { .. }
            | Self::CompactionRequested { .. }
            | Self::ContextCompacted { .. } => About::Rest,
        }
    }

    /// A plan of these tasks of which nothing else is known: the first event of a history that is made by hand.
    #[must_use]
    pub fn planned(tasks: Vec<TaskPlan>, config: PlannerConfig) -> Self {
        Self::TasksPlanned {
            tasks,
            title: None,
            source: String::new(),
            config: Box::new(config),
            context: Vec::new(),
            attachments: Vec::new(),
            origin: Origin::default(),
        }
    }
}

impl MqEvent for Event {
    const EVENT_VERSION: &'static str = "1.0";

    fn event_type(&self) -> &'static str {
        match self {
            Self::TasksPlanned { .. } => "TasksPlanned",
            Self::PlanForked { .. } => "PlanForked",
            Self::TasksAmended { .. } => "TasksAmended",
            Self::SettingsChanged { .. } => "SettingsChanged",
            Self::TaskPaused { .. } => "TaskPaused",
            Self::TaskResumed { .. } => "TaskResumed",
            Self::TimerSet { .. } => "TimerSet",
            Self::TimerFired { .. } => "TimerFired",
            Self::RetryScheduled { .. } => "RetryScheduled",
            Self::RetryHastened { .. } => "RetryHastened",
            Self::UsageRecorded { .. } => "UsageRecorded",
            Self::ClarificationWithdrawn { .. } => "ClarificationWithdrawn",
            Self::CheckpointNamed { .. } => "CheckpointNamed",
            Self::CompactionRequested { .. } => "CompactionRequested",
            Self::TaskDispatched { .. } => "TaskDispatched",
            Self::TaskStatusUpdated { .. } => "TaskStatusUpdated",
            Self::ClarificationRequested { .. } => "ClarificationRequested",
            Self::ClarificationReceived { .. } => "ClarificationReceived",
            Self::ContextCompacted { .. } => "ContextCompacted",
            Self::PlanPaused { .. } => "PlanPaused",
            Self::PlanResumed {} => "PlanResumed",
            Self::PlanStopped { .. } => "PlanStopped",
            Self::PlanCancelled { .. } => "PlanCancelled",
            Self::TasksReopened { .. } => "TasksReopened",
            Self::PlanningCompleted { .. } => "PlanningCompleted",
        }
    }
}
