//! The settings of a plan.

use serde::{Deserialize, Serialize};

use crate::plan::FailurePolicy;

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
