//! The input of executors.

use serde::{Deserialize, Serialize};

use crate::event::Budget;
use crate::is_default;
use crate::plan::{Attachment, NodeKind, SubPlan, TaskId};

/// A range of events of a plan's history, counted from 1; the history of a fork begins with that of its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

/// A question with its answer.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub struct Answered {
    /// The task that asked.
    pub task: TaskId,
    /// The label of that task.
    pub label: Option<String>,
    pub question: String,
    pub answer: String,
}

/// The part of a task that its dispatch repeats, for those who act on dispatches without the fold of the plan.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the other fields are those of the task's plan")]
pub struct Parameters {
    #[serde_with(skip_apply)]
    pub description: String,
    pub command: Option<String>,
    pub assignee: Option<String>,
    /// The working folder of commands; the worker's own when unset.
    pub folder: Option<String>,
    /// The files that the task declares.
    pub files: Vec<String>,
    /// If it declares none, those that its texts mention.
    pub mentions: Vec<String>,
    /// True if it changes none of them.
    pub reads_only: bool,
    /// True if a sub-plan carries it out.
    pub is_delegated: bool,
    /// The task whose effects it undoes.
    pub compensates: Option<TaskId>,
}

/// The input of a task's executor, by the fold of its plan. An agent's prompt is rendered from the fold too.
#[serde_with::apply(_ => #[serde(skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[expect(missing_docs, reason = "the other fields are those of the task's plan")]
pub struct TaskInput {
    pub label: Option<String>,
    #[serde_with(skip_apply)]
    pub description: String,
    pub command: Option<String>,
    pub notes: Vec<String>,
    pub attachments: Vec<Attachment>,
    /// Answers to its own questions and those of all its dependencies, direct or not, in the order of the questions.
    pub answers: Vec<Answered>,
    pub assignee: Option<String>,
    pub files: Vec<String>,
    pub reads_only: bool,
    pub rerun_safe: bool,
    pub timeout_ms: Option<u64>,
    /// Paths and links of its input, which must exist before it begins.
    pub needs: Vec<String>,
    /// True if the plan limits the total time of its tasks.
    pub is_timed: bool,
    /// The most that its sub-plan may use; for a run of an agent, the rest of the budgets.
    pub budget: Budget,
    /// True if the plan limits tokens, so that they are estimated if no provider reports them.
    pub counts_tokens: bool,
    /// The working folder of commands; the worker's own when unset.
    pub folder: Option<String>,
    pub sub_plan: Option<SubPlan>,
    /// The task whose effects it undoes.
    pub compensates: Option<TaskId>,
}

/// A request to executors, inside [`TaskDispatched`](crate::event::Event::TaskDispatched).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "names and types say what the other fields hold")]
pub enum PlannerCmd {
    /// Run a task.
    ExecuteTask {
        node_id: TaskId,
        /// Executors select tasks by kind.
        kind: NodeKind,
        parameters: Box<Parameters>,
    },
    /// Ask a person or an agent: the task is a question.
    RequestClarification { node_id: TaskId, question: String },
}
