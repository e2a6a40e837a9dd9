//! The input of executors and their reports.

use serde::{Deserialize, Serialize};

use crate::event::{Budget, Usage};
use crate::plan::{Attachment, DefaultAnswer, NodeKind, SubPlan, TaskId};

/// Events of a plan's history, by their places in it: 1, 2, 3 ... Of a plan that is no fork these are the sequences of its
/// events; the history of a fork begins with that of the plan that it goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

/// A question with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The task that asked.
    pub task: TaskId,
    /// What people call that task, unless by its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: String,
}

/// What an executor without the plan's fold needs for a task. An agent's prompt is rendered from the fold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskInput {
    /// What people call the task, unless by its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
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
    /// Who is to do it, as written, without the `@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// The paths and globs that it says it works on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether it changes none of its files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_only: bool,
    /// Whether a run that was cut off may simply be run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rerun_safe: bool,
    /// Milliseconds after which a run is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Paths and links of what it reads, which must be there before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Whether the plan counts how long it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_timed: bool,
    /// When another plan carries it out, or answers it: the most that it may use up.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// Whether the plan counts what tokens are used, so that they are estimated when nobody says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_tokens: bool,
    /// Where commands run; where the worker is, when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// When another plan carries it out: what that one is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_plan: Option<SubPlan>,
}

/// What the planner asks of executors. It occurs only inside [`TaskDispatched`](crate::event::Event::TaskDispatched).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlannerCmd {
    /// Carry out a task.
    ExecuteTask {
        /// The task.
        node_id: TaskId,
        /// By which executors choose.
        kind: NodeKind,
        /// What to do.
        parameters: Box<TaskInput>,
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
    /// Rate limited: tried again.
    RateLimited,
    /// It was cut off while it ran, and may have done all, some or nothing of its work: a person is asked, unless the
    /// text says that it may simply be run again.
    OutcomeUnknown,
}

/// What executors and people report. `attempt` is that of the dispatch which they answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ExecutorEvent {
    /// The task is done.
    TaskCompleted {
        /// The task.
        node_id: TaskId,
        /// The dispatch.
        attempt: u32,
        /// Its outcome.
        #[serde(skip)]
        result: String,
    },
    /// The task could not be done.
    TaskFailed {
        /// The task.
        node_id: TaskId,
        /// The dispatch.
        attempt: u32,
        /// Why.
        #[serde(skip)]
        error: String,
        /// What sort of failure.
        class: FailureClass,
    },
    /// The executor has used something up.
    UsageReported {
        /// The task.
        node_id: TaskId,
        /// The dispatch.
        attempt: u32,
        /// How much.
        usage: Usage,
    },
    /// The executor cannot go on without an answer.
    NeedsClarification {
        /// The task.
        node_id: TaskId,
        /// The dispatch.
        attempt: u32,
        /// What it asks.
        #[serde(skip)]
        question: String,
        /// What counts when nobody answers in time.
        #[serde(skip)]
        default: Option<DefaultAnswer>,
    },
    /// The task had not started when its plan stopped, and was withdrawn.
    TaskWithdrawn {
        /// The task.
        node_id: TaskId,
        /// The dispatch.
        attempt: u32,
    },
}
