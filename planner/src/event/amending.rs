//! Changes to the tasks and the settings of an open plan.

use serde::{Deserialize, Serialize};

use crate::event::{Budget, Order, RetryClass};
use crate::plan::{FailurePolicy, NodeKind, TaskId, TaskPlan};

/// One change to the tasks of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum Amendment {
    /// Add the tasks of a text, which is parsed like a plan file. Their numbers follow the highest number used so far.
    Add {
        text: String,
        /// Dependencies of the text's first tasks.
        after: Vec<TaskId>,
        /// Dependents of the text's last tasks.
        before: Vec<TaskId>,
    },
    /// Change fields of a task that does not run.
    Edit { task: TaskId, edits: Vec<Edit> },
    /// Skip a task so that its dependents no longer wait for it. A running task is stopped.
    Skip {
        task: TaskId,
        /// True if its dependents inherit its unfinished dependencies.
        keeps_order: bool,
    },
    /// Replace the dependencies of a task.
    Reorder { task: TaskId, after: Vec<TaskId> },
    /// Mark a task as done by a person before it started.
    Done { task: TaskId },
    /// Replace the text of the plan's file, the source of the other amendments.
    Source { text: String },
    /// Set whole definitions that another program proposes; a number above all others is a new task.
    Define { tasks: Vec<TaskPlan> },
}

/// A new value for one field of a [`TaskPlan`]; an unset value removes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are the fields of a task's plan")]
pub enum Edit {
    Description(String),
    Kind(NodeKind),
    Command(Option<String>),
    Label(Option<String>),
    Notes(Vec<String>),
    Priority(Option<String>),
    Assignee(Option<String>),
    Retry(Option<u32>),
    TimeoutMs(Option<u64>),
    EstimateMs(Option<u64>),
    OnFailure(Option<FailurePolicy>),
    Files(Vec<String>),
}

/// A new value for one field of a [`RetryPolicy`](crate::event::RetryPolicy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "they are its fields")]
pub enum RetrySetting {
    Count(u32),
    FirstMs(u64),
    LongestMs(u64),
    JitterPercent(u32),
}

/// A new value for one setting of a [`PlannerConfig`](crate::event::PlannerConfig).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the others are the fields of the settings")]
pub enum Setting {
    Parallelism(usize),
    /// No separate limit when unset.
    ParallelismOfKind(NodeKind, Option<usize>),
    /// No separate limit when unset.
    ParallelismOfExecutor(String, Option<usize>),
    OnFailure(FailurePolicy),
    Retry(RetryClass, RetrySetting),
    Order(Order),
    Budget(Budget),
    /// Milliseconds from now.
    DeadlineMs(Option<u64>),
    TokenBudget(usize),
    Compensate(bool),
    Standing(bool),
    Sessions(bool),
    /// The working folder of the commands.
    Folder(String),
}
