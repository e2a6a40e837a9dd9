//! A task and a question of a plan, with their history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Purpose, QuestionId, RetryClass, TaskStatus, Usage};
use crate::is_default;
use crate::plan::{ConditionKey, DefaultAnswer, ParentTask, TaskId, TaskPlan, sub_plan_id};

/// A task as planned, with its history.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Task {
    /// As planned.
    pub plan: TaskPlan,
    /// Its status.
    pub status: TaskStatus,
    /// The number of its dispatches.
    pub attempts: u32,
    /// Its retries since it was planned or reopened; those of rate limits in a row.
    pub retries: BTreeMap<RetryClass, u32>,
    /// Its result.
    pub result: Option<String>,
    /// The reason why it failed, was cancelled or was skipped; during retries, the last failure.
    pub error: Option<String>,
    /// True if it must be resumed before it starts.
    pub is_paused: bool,
    /// At an end: true if its dependents may run.
    pub unblocks: bool,
    /// True if another task undoes it.
    pub is_compensated: bool,
    /// True if its history is that of the parent of a fork.
    pub is_inherited: bool,
    /// The id that the first question of its last dispatch would have.
    pub first_question: Option<QuestionId>,
    /// The delay of the scheduled retry, in milliseconds.
    pub retry_ms: Option<u64>,
    /// The task whose failure stopped the plan, if this one was skipped for that.
    pub stopped_by: Option<TaskId>,
    /// The usage of its attempts since it was planned or reopened.
    pub spent: Usage,
    /// The last claim whose usage is recorded.
    pub usage_epoch: u64,
    /// The event by which it ended, counted in the plan's history; 0 before.
    pub ended_by: u64,
    /// Its last failed attempts, the oldest first, unless it is a command.
    pub failed_attempts: Vec<FailedAttempt>,
}

/// The most failed attempts that a task keeps.
pub const FAILED_ATTEMPTS_MAX: usize = 10;

/// An attempt that failed, timed out or was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// The dispatch.
    pub attempt: u32,
    /// How it ended.
    pub status: TaskStatus,
    /// The error.
    pub error: String,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its number.
    pub id: QuestionId,
    /// The task that asks.
    pub task: TaskId,
    /// Its text.
    pub question: String,
    /// The planner's use of the answer.
    pub purpose: Purpose,
    /// The condition that the answer decides.
    pub condition: Option<ConditionKey>,
    /// The answer that takes effect if there is no other in time.
    pub default: Option<DefaultAnswer>,
    /// Set when it is closed.
    pub answer: Option<String>,
    /// True if the answer is the default.
    pub is_by_default: bool,
    /// Set when its task ended without an answer.
    pub is_withdrawn: bool,
}

impl Question {
    /// True while the question waits for an answer.
    pub fn is_open(&self) -> bool {
        self.answer.is_none() && !self.is_withdrawn
    }
}

impl Task {
    /// True while it waits for the rate limit of its executor.
    pub fn waits_for_limit(&self) -> bool {
        self.retries.contains_key(&RetryClass::RateLimited) && self.retry_ms.is_some()
    }

    pub(crate) fn planned(plan: TaskPlan) -> Self {
        Self { plan, ..Self::default() }
    }

    /// True if it is done, or left out with the effect of a done one.
    pub fn is_completed(&self) -> bool {
        self.status == TaskStatus::Completed || self.is_left_out()
    }

    /// True if the text, or an answer, excluded it.
    pub(crate) fn is_left_out(&self) -> bool {
        self.unblocks && matches!(self.status, TaskStatus::Skipped | TaskStatus::Cancelled)
    }

    /// True while this dispatch is under way, from its event to the planner's reaction to its end.
    pub fn runs(&self, attempt: u32) -> bool {
        self.status == TaskStatus::Running && self.attempts == attempt
    }

    /// Records the failure of the current attempt for the prompt of the next one. A command has no prompt.
    pub(crate) fn record_failure(&mut self, status: TaskStatus, error: &str) {
        if self.plan.command.is_some() || self.attempts == 0 {
            return;
        }
        if self.failed_attempts.len() == FAILED_ATTEMPTS_MAX {
            self.failed_attempts.remove(0);
        }
        self.failed_attempts.push(FailedAttempt { attempt: self.attempts, status, error: error.to_owned() });
    }

    /// The id of the sub-plan of its last dispatch, if it has one. `plan` is the plan of the task.
    pub fn sub_plan_id(&self, plan: &str) -> Option<String> {
        let (plan, attempt) = (plan.to_owned(), self.attempts);
        (self.plan.is_delegated() && attempt > 0)
            .then(|| sub_plan_id(&ParentTask { plan, task: self.plan.id, attempt }))
    }
}

/// The meaning of an answer to a yes-or-no question; `None` if it is neither.
pub(crate) fn is_yes(answer: &str) -> Option<bool> {
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" | "true" | "ja" | "oui" | "si" | "sí" | "是" => Some(true),
        "n" | "no" | "false" | "nein" | "non" | "否" => Some(false),
        _ => None,
    }
}
