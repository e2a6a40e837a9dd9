//! The classes of failures, and their retries.

use serde::{Deserialize, Serialize};

/// The class of a failure, which decides whether the task is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureClass {
    /// The task itself failed: retried only if the text asks for it.
    Task,
    /// It could not be started: retried.
    NotStarted,
    /// It ran too long: retried.
    TimedOut,
    /// Rate limited: it waits, and is retried.
    RateLimited {
        /// The time until the limit resets, if it is known.
        retry_after_ms: Option<u64>,
    },
    /// It was stopped because a budget was used up: it fails if that is its own, else it waits with its plan.
    OverBudget,
    /// A person must act first, such as log its program in: a person is asked.
    ForPerson,
    /// It was interrupted, with unknown effects: a person is asked, unless it is marked `rerun: safe`.
    OutcomeUnknown,
}

/// A class of failures that are retried alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum RetryClass {
    /// The task could not be started, or ran too long.
    Transient,
    /// Its executor is at a rate limit.
    RateLimited,
    /// The task itself failed.
    Permanent,
    /// A person must act first: log its program in.
    ForPerson,
    /// It was interrupted, with unknown effects, and may run again.
    Unknown,
}

impl RetryClass {
    /// All of them.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Its retries unless a plan sets others.
    pub const fn policy(self) -> RetryPolicy {
        let policy = RetryPolicy { count: 2, first_ms: 500, longest_ms: 60_000, jitter_percent: 25 };
        match self {
            Self::Transient | Self::Unknown => policy,
            // After that many in a row its program may only look rate limited.
            Self::RateLimited => RetryPolicy { count: 200, first_ms: 60_000, longest_ms: 1_800_000, ..policy },
            Self::Permanent | Self::ForPerson => RetryPolicy { count: 0, ..policy },
        }
    }
}

impl From<FailureClass> for RetryClass {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::Task => Self::Permanent,
            FailureClass::NotStarted | FailureClass::TimedOut | FailureClass::OverBudget => Self::Transient,
            FailureClass::RateLimited { .. } => Self::RateLimited,
            FailureClass::ForPerson => Self::ForPerson,
            FailureClass::OutcomeUnknown => Self::Unknown,
        }
    }
}

/// The retries of failures, and the waits before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The most retries.
    pub count: u32,
    /// The wait before the first, in milliseconds; it doubles from one to the next.
    pub first_ms: u64,
    /// The longest wait, in milliseconds.
    pub longest_ms: u64,
    /// By how much a wait may be shortened, so that retries spread out.
    pub jitter_percent: u32,
}

impl RetryPolicy {
    /// The wait before the next retry, in milliseconds: exponential backoff.
    pub fn wait_ms(&self, n_before: u32) -> u64 {
        self.first_ms.saturating_mul(1 << n_before.min(20)).min(self.longest_ms)
    }
}
