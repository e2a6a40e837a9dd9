//! Commands and events of the planner, and the reports of executors.

mod amending;
mod command;
mod config;
mod executor;
mod failure;
mod task;
mod timer;

use crewlog_mq::{Event as MqEvent, Position, Timestamp};
use serde::{Deserialize, Serialize};

use crate::plan::{Attachment, DefaultAnswer, Origin, TaskId, TaskPlan};
pub use amending::{Amendment, Edit, RetrySetting, Setting};
pub use command::Command;
pub use config::{Budget, ExcerptProfile, Order, PlanFile, PlannerConfig, Usage};
pub use executor::{Answered, Covered, Parameters, PlannerCmd, TaskInput};
pub use failure::{FailureClass, RetryClass, RetryPolicy};
pub use task::{Executor, LateOutcome, LateReport, OutputFile, PromptDigest, RunDetails, TaskEvent, TaskProgress};
pub use timer::{QuestionId, Timer};

/// The stream of all plans; a plan's aggregate is its id.
pub const STREAM: &str = "planner";

/// The tag on every event of a plan and of its tasks.
pub fn plan_tag(plan: &str) -> String {
    format!("plan:{plan}")
}

/// The tag on every event of a plan and of its tasks, one for each ancestor.
pub fn ancestor_tag(plan: &str) -> String {
    format!("ancestor:{plan}")
}

/// The tags of a sub-plan: its own, and those of its parent plan except for the parent's own tag.
pub fn sub_plan_tags(plan: &str, parent: &str, tags: &[String]) -> Vec<String> {
    let parent_tag = plan_tag(parent);
    let kept = tags.iter().filter(|tag| **tag != parent_tag).cloned();
    [plan_tag(plan), ancestor_tag(parent)].into_iter().chain(kept).collect()
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum TaskStatus {
    /// Not dispatched yet.
    #[default]
    Planned,
    /// Dispatched; the task's own aggregate has its holder.
    #[strum(serialize = "under way")]
    Running,
    /// Waits for an answer.
    #[strum(serialize = "waiting for an answer")]
    NeedsClarification,
    /// Ended with a result.
    #[strum(serialize = "done")]
    Completed,
    /// Ended with an error.
    Failed,
    /// Stopped at its time limit or deadline.
    #[strum(serialize = "timed out")]
    TimedOut,
    /// Ended by a person.
    Cancelled,
    /// Ended without having been dispatched.
    Skipped,
}

impl TaskStatus {
    /// The word for it in texts for people and agents.
    pub fn words(self) -> &'static str {
        self.into()
    }

    /// True when only a retry can change it.
    pub const fn is_end(self) -> bool {
        match self {
            Self::Planned | Self::Running | Self::NeedsClarification => false,
            Self::Completed | Self::Failed | Self::TimedOut | Self::Cancelled | Self::Skipped => true,
        }
    }

    /// True if a task with the status `before` fails with it. It fails once, even if a person is asked what to do then.
    pub fn is_failure_after(self, before: Self) -> bool {
        self == Self::TimedOut || (before == Self::Running && !matches!(self, Self::Cancelled | Self::Skipped))
    }
}

/// The outcome of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Every task completed, or was skipped as planned.
    Completed,
    /// A task failed, timed out or was cancelled, or was skipped because of such a task.
    Failed,
    /// A person cancelled the plan.
    Cancelled,
}

/// The purpose of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// The task is the question; the answer is its result.
    Task,
    /// An executor needs the answer to continue the task.
    Executor,
    /// The answer decides the task's condition: yes or no.
    Condition,
    /// The answer decides what follows the task's failure: retry, done, skip, continue or stop.
    Failure,
}

/// An event of a plan.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum Event {
    /// The plan was made.
    TasksPlanned {
        /// In the order of planning.
        tasks: Vec<TaskPlan>,
        /// The first heading of the text, if any.
        title: Option<String>,
        source: String,
        config: Box<PlannerConfig>,
        /// Text without tasks: goals, overview.
        context: Vec<String>,
        /// Attachments that no task mentions.
        attachments: Vec<Attachment>,
        origin: Origin,
    },
    /// The plan continues the history of another plan up to a position as its own.
    PlanForked {
        parent: String,
        /// The last position of the shared history.
        at: Position,
        reason: String,
        /// It stays open for changes until it is resumed.
        #[serde(default)]
        is_draft: bool,
    },
    /// Tasks were redefined or added.
    TasksAmended {
        /// Whole definitions; an unknown id is a new task.
        tasks: Vec<TaskPlan>,
        reason: String,
        /// The text of the plan's file, when it changed.
        source: Option<String>,
    },
    /// The settings changed.
    SettingsChanged {
        /// All of them.
        config: Box<PlannerConfig>,
        reason: String,
    },
    /// A task is not started until it is resumed.
    TaskPaused { task_id: TaskId, reason: String },
    /// A task may be started again.
    TaskResumed { task_id: TaskId },
    /// A timer has its due time, in log time.
    TimerSet { timer: Timer, due: Timestamp },
    /// The due time of a timer has passed.
    TimerFired { timer: Timer, due: Timestamp },
    /// A failed task is retried after a delay, which may be 0.
    RetryScheduled { task_id: TaskId, class: RetryClass, delay_ms: u64 },
    /// The executor of a task is at its rate limit: the task waits, which is no failure.
    LimitReached { task_id: TaskId, error: String, delay_ms: u64 },
    /// A person skipped the delay of a retry.
    RetryHastened { task_id: TaskId },
    /// An executor reported its usage; each epoch counts once.
    UsageRecorded { task_id: TaskId, attempt: u32, epoch: u64, usage: Usage },
    /// A question was closed without an answer.
    ClarificationWithdrawn { task_id: TaskId, question_id: QuestionId, reason: String },
    /// Names this position of the plan's history.
    CheckpointNamed { name: String },
    /// A task may start.
    TaskDispatched {
        task_id: TaskId,
        /// Counts the dispatches of the task, from 1.
        attempt: u32,
        command: PlannerCmd,
    },
    /// The status of a task changed.
    TaskStatusUpdated {
        task_id: TaskId,
        status: TaskStatus,
        result: Option<String>,
        /// The reason, if it failed or was ended early.
        error: Option<String>,
        /// At an end: true if its dependents may run.
        #[serde(default)]
        unblocks: bool,
    },
    /// A task waits for an answer.
    ClarificationRequested {
        task_id: TaskId,
        question_id: QuestionId,
        question: String,
        purpose: Purpose,
        default: Option<DefaultAnswer>,
    },
    /// A question was answered.
    ClarificationReceived {
        task_id: TaskId,
        question_id: QuestionId,
        answer: String,
        /// True for the default answer, which counts when none came in time.
        is_default: bool,
    },
    /// The context is shorter. Nothing was deleted.
    ContextCompacted {
        summary: String,
        /// The tasks whose lines it replaces, in addition to those of the last summary.
        removed_task_ids: Vec<TaskId>,
        /// The events of the plan that it covers, in addition to those of the last summary.
        covers: Option<Covered>,
    },
    /// No task is started until the plan is resumed.
    PlanPaused {
        reason: String,
        /// True when the parent plan was paused; the plan is resumed with it.
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
    PlanCancelled { reason: String },
    /// Ended tasks are open again.
    TasksReopened { task_ids: Vec<TaskId> },
    /// The plan ended.
    PlanningCompleted {
        /// One sentence.
        summary: String,
        outcome: Outcome,
        /// Without the tasks that undo others.
        n_tasks: u64,
    },
}

/// The part of the state that an event changes, for readers that need no more detail.
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
    /// The part of the state that the event changes. Readers use it instead of matching every event.
    pub fn about(&self) -> About<'_> {
        match self {
            Self::TasksReopened { task_ids } => About::Tasks(task_ids),
            Self::TaskDispatched { task_id, .. }
            | Self::TaskStatusUpdated { task_id, .. }
            | Self::LimitReached { task_id, .. }
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
            | Self::ContextCompacted { .. } => About::Rest,
        }
    }

    /// The first event of a plan that has only tasks and settings.
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

impl MqEvent for Event {}
