//! What of a plan under way can be made otherwise: its tasks, and its settings.

use serde::{Deserialize, Serialize};

use crate::event::{Budget, Order, Summaries};
use crate::plan::{Attachment, DefaultAnswer, FailurePolicy, NodeKind, TaskId, TaskPlan};

/// One change to the tasks of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Amendment {
    /// New tasks, as a text that is read like that of a plan. They are numbered on from all that the plan has had.
    Add {
        /// The text.
        text: String,
        /// What those of them wait for that begin the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        after: Vec<TaskId>,
        /// What waits for those of them that end the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        before: Vec<TaskId>,
    },
    /// Another definition of a task that is planned and does not run.
    Edit {
        /// The task.
        task: TaskId,
        /// The changes.
        edits: Vec<Edit>,
    },
    /// A task is left out, and holds up what depends on it no more. One that runs is stopped.
    Skip {
        /// The task.
        task: TaskId,
        /// Whether its dependents inherit its unfinished dependencies.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_order: bool,
    },
    /// A task waits for these and for no others.
    Reorder {
        /// The task.
        task: TaskId,
        /// What it waits for.
        after: Vec<TaskId>,
    },
    /// A person has done a task that has not begun.
    Done {
        /// The task.
        task: TaskId,
    },
    /// The plan's file has another text, from which the other amendments follow.
    Source {
        /// The text.
        text: String,
    },
    /// Whole definitions, as another program proposes them; a number above all others is a new task.
    Define {
        /// The definitions.
        tasks: Vec<TaskPlan>,
    },
}

/// One field of a task to change; an unset value removes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edit {
    /// The plain text of the step.
    Description(String),
    /// What sort of work it is.
    Kind(NodeKind),
    /// The shell command.
    Command(Option<String>),
    /// The id by which people name it.
    Label(Option<String>),
    /// Constraints and remarks.
    Notes(Vec<String>),
    /// How urgent it is, in a word.
    Priority(Option<String>),
    /// Who is to do it.
    Assignee(Option<String>),
    /// How many times it is tried again.
    Retry(Option<u32>),
    /// Milliseconds after which a run of it is stopped.
    TimeoutMs(Option<u64>),
    /// Milliseconds after its first dispatch by which it must have ended.
    DeadlineMs(Option<u64>),
    /// How long it is expected to take, in milliseconds.
    EstimateMs(Option<u64>),
    /// What its failure means for the rest.
    OnFailure(Option<FailurePolicy>),
    /// The paths and globs that it works on.
    Files(Vec<String>),
    /// Whether a run that was cut off may simply be run again.
    RerunSafe(bool),
    /// The shell command that undoes what it did.
    Compensate(Option<String>),
    /// Of a question: what counts when nobody answers in time.
    DefaultAnswer(Option<DefaultAnswer>),
    /// What it refers to.
    Attachments(Vec<Attachment>),
}

/// One setting of a plan to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Setting {
    /// Tasks that may run at once.
    Parallelism(usize),
    /// Tasks of a kind that may run at once; no limit of its own when unset.
    ParallelismOfKind(NodeKind, Option<usize>),
    /// Tasks of an assignee that may run at once; no limit of its own when unset.
    ParallelismOfExecutor(String, Option<usize>),
    /// What a failure means for the rest.
    OnFailure(FailurePolicy),
    /// How often a failure to start, a time-out or a rate limit is tried again.
    RetriesMax(u32),
    /// Which of the tasks that could start does.
    Order(Order),
    /// The most that the plan may use up.
    Budget(Budget),
    /// Milliseconds, from now on, by which the plan must have ended.
    DeadlineMs(Option<u64>),
    /// Tokens that an agent may be told.
    TokenBudget(usize),
    /// Whether a plan that failed or was cancelled undoes what it did.
    Compensate(bool),
    /// Who writes the summary of what has happened.
    Summaries(Summaries),
    /// Whether the plan stays open when all its tasks have ended.
    Standing(bool),
}
