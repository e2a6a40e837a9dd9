//! A task and a question of a plan, with their history.

use crate::event::{Purpose, QuestionId, TaskStatus};
use crate::plan::{ConditionKey, DefaultAnswer, ParentTask, TaskId, TaskPlan, sub_plan_id};

/// A task as planned, and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// As planned.
    pub plan: TaskPlan,
    /// Where it stands.
    pub status: TaskStatus,
    /// How often it was dispatched.
    pub attempts: u32,
    /// How often it failed since it was planned or reopened.
    pub failures: u32,
    /// Its outcome.
    pub result: Option<String>,
    /// Why it failed, or ended otherwise; of the last failure while it is tried again.
    pub error: Option<String>,
    /// Whether it is not started until it is resumed.
    pub is_paused: bool,
    /// At an end: whether what depends on it may run.
    pub unblocks: bool,
    /// Whether there is a task that undoes what it did.
    pub is_compensated: bool,
    /// Whether what happened to it happened in the plan that this one goes on from.
    pub is_inherited: bool,
    /// The number that a question of its last dispatch would have; only later ones are about that.
    pub first_question: Option<QuestionId>,
    /// The delay of the scheduled retry, in milliseconds.
    pub retry_ms: Option<u64>,
    /// The task whose failure stopped the plan, when that is why this one was skipped.
    pub stopped_by: Option<TaskId>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The dispatch.
    pub attempt: u32,
    /// How it ended.
    pub status: TaskStatus,
    /// Why.
    pub error: String,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its number.
    pub id: QuestionId,
    /// The task that asks.
    pub task: TaskId,
    /// What is asked.
    pub question: String,
    /// What the answer is for.
    pub purpose: Purpose,
    /// The condition that it asks for.
    pub condition: Option<ConditionKey>,
    /// What counts when nobody answers in time.
    pub default: Option<DefaultAnswer>,
    /// Set when it is closed.
    pub answer: Option<String>,
    /// Whether nobody gave the answer in time, and it counts by default.
    pub is_by_default: bool,
    /// Set when its task ended without an answer.
    pub is_withdrawn: bool,
}

impl Question {
    /// True while an answer is awaited.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.answer.is_none() && !self.is_withdrawn
    }
}

impl Task {
    pub(crate) fn planned(plan: TaskPlan) -> Self {
        Self {
            plan,
            status: TaskStatus::Planned,
            attempts: 0,
            failures: 0,
            result: None,
            error: None,
            is_paused: false,
            unblocks: false,
            is_compensated: false,
            is_inherited: false,
            first_question: None,
            retry_ms: None,
            stopped_by: None,
            usage_epoch: 0,
            ended_by: 0,
            failed_attempts: Vec::new(),
        }
    }

    /// Keeps why the current attempt failed, for the prompt of the next one. A command has no prompt.
    pub(crate) fn record_failure(&mut self, status: TaskStatus, error: &str) {
        if self.plan.command.is_some() || self.attempts == 0 {
            return;
        }
        if self.failed_attempts.len() == FAILED_ATTEMPTS_MAX {
            self.failed_attempts.remove(0);
        }
        self.failed_attempts.push(FailedAttempt { attempt: self.attempts, status, error: error.to_owned() });
    }

    /// The plan that carries it out, or answers it, since it was last dispatched, when it is one for another plan. `plan` is
    /// the one that has the task.
    #[must_use]
    pub fn sub_plan_id(&self, plan: &str) -> Option<String> {
        let (plan, attempt) = (plan.to_owned(), self.attempts);
        (self.plan.is_delegated() && attempt > 0)
            .then(|| sub_plan_id(&ParentTask { plan, task: self.plan.id, attempt }))
    }
}
