//! The settings of a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{RetryClass, RetryPolicy};
use crate::format::{Format, ReadOptions};
use crate::is_default;
use crate::plan::{FailurePolicy, NodeKind};
use crate::text::{duration, money};

/// The settings of a plan. They are part of its first event, so no replay depends on the defaults of the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerConfig {
    /// The instruction at the start of each prompt.
    pub system_prompt: String,
    /// Selects the details that compaction keeps.
    pub profile: ExcerptProfile,
    /// The most tokens of a prompt, the task and its context together.
    pub token_budget: usize,
    /// The most characters of an error that the plan keeps.
    pub error_char_limit: usize,
    /// The most tasks that run at once, separately for tasks with and without a command.
    pub parallelism: usize,
    /// The policy for tasks without one of their own.
    pub on_failure: FailurePolicy,
    /// By class of failure: its retries.
    pub retry: BTreeMap<RetryClass, RetryPolicy>,
    /// The working folder of the plan's commands.
    pub folder: Option<String>,
    /// The file that the plan was read from.
    pub file: PlanFile,
    /// The plan pauses before it would exceed it.
    pub budget: Budget,
    /// Milliseconds from its first start to its end.
    pub deadline_ms: Option<u64>,
    /// True if a failed or cancelled plan runs the undo commands of its completed tasks.
    pub compensate: bool,
    /// By kind: the most tasks that run at once, within `parallelism`.
    pub parallelism_by_kind: BTreeMap<NodeKind, usize>,
    /// By assignee: the most tasks that run at once, within `parallelism`.
    pub parallelism_by_executor: BTreeMap<String, usize>,
    /// The order in which startable tasks start.
    pub order: Order,
    /// True if the plan stays open when all its tasks have ended.
    pub standing: bool,
    /// True if open sessions are offered the steps of configured executors too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sessions: bool,
}

impl PlannerConfig {
    /// The retries of a class of failures.
    pub fn retry_of(&self, class: RetryClass) -> RetryPolicy {
        self.retry.get(&class).copied().unwrap_or_else(|| class.policy())
    }

    /// The settings that differ from their defaults, in words; without the instruction and the folder.
    pub fn words(&self) -> Vec<String> {
        let default = Self::default();
        let mut words = Vec::new();
        let mut say = |is_other: bool, said: String| words.extend(is_other.then_some(said));
        say(self.parallelism != default.parallelism, format!("parallelism {}", self.parallelism));
        for (kind, n) in &self.parallelism_by_kind {
            say(true, format!("parallelism of {} {n}", kind.as_str()));
        }
        for (name, n) in &self.parallelism_by_executor {
            say(true, format!("parallelism of @{name} {n}"));
        }
        say(self.on_failure != default.on_failure, format!("on failure {}", <&str>::from(self.on_failure)));
        for class in RetryClass::ALL.iter().copied() {
            let policy = self.retry_of(class);
            let RetryPolicy { count, first_ms, longest_ms, .. } = policy;
            let waits = format!("{} to {}", duration(first_ms), duration(longest_ms));
            let said = format!("{count} retries of {} failures after {waits}", <&str>::from(class));
            say(policy != class.policy(), said);
        }
        say(self.order == Order::CriticalPath, "order by the critical path".to_owned());
        say(self.standing, "standing".to_owned());
        say(self.sessions, "offered to open sessions".to_owned());
        say(self.token_budget != default.token_budget, format!("token budget {}", self.token_budget));
        let limits = [
            self.budget.tokens.map(|tokens| format!("at most {tokens} tokens")),
            self.budget.cost_micros.map(|micros| format!("at most a cost of {}", money(micros))),
            self.budget.duration_ms.map(|ms| format!("at most {ms} ms of work")),
            self.deadline_ms.map(|ms| format!("deadline after {ms} ms")),
        ];
        limits.into_iter().flatten().for_each(|limit| say(true, limit));
        say(self.compensate, "undoes what it did".to_owned());
        words
    }
}

/// The source file of a plan, and its format.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanFile {
    /// Its path; unset for standard input.
    pub path: Option<String>,
    /// The format that it was read as.
    pub format: Format,
    /// The tag of a Task Master file.
    pub tag: Option<String>,
}

impl PlanFile {
    /// The options for reading it.
    pub fn options(&self, parallel: bool) -> ReadOptions<'_> {
        ReadOptions { format: self.format, parallel, tag: self.tag.as_deref() }
    }
}

/// Resources that were used, or may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// Millionths of the unit in which prices are given.
    pub cost_micros: u64,
    /// Milliseconds that tasks ran, summed over tasks.
    pub duration_ms: u64,
    /// The number of the tokens that were estimated, because no provider reported them.
    pub estimated_tokens: u64,
    /// The runs of agents whose tokens nobody reported, and those whose cost nobody did.
    #[serde(default, skip_serializing_if = "is_default")]
    pub n_without_tokens: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    #[expect(missing_docs, reason = "the comment above is for both")]
    pub n_without_cost: u64,
}

impl Usage {
    /// True when nothing was used.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Adds further usage.
    pub fn add(&mut self, more: &Self) {
        self.estimated_tokens = self.estimated_tokens.saturating_add(more.estimated_tokens);
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cost_micros = self.cost_micros.saturating_add(more.cost_micros);
        self.duration_ms = self.duration_ms.saturating_add(more.duration_ms);
        self.n_without_tokens = self.n_without_tokens.saturating_add(more.n_without_tokens);
        self.n_without_cost = self.n_without_cost.saturating_add(more.n_without_cost);
    }
}

/// The most that a plan may use; an unset measure has no limit.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens, read and written together.
    pub tokens: Option<u64>,
    /// Millionths of the unit in which prices are given.
    pub cost_micros: Option<u64>,
    /// Milliseconds that tasks run, summed over tasks.
    pub duration_ms: Option<u64>,
}

impl Budget {
    /// True when nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The lesser limit of each measure.
    pub fn least(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            tokens: least(self.tokens, other.tokens),
            cost_micros: least(self.cost_micros, other.cost_micros),
            duration_ms: least(self.duration_ms, other.duration_ms),
        }
    }
}

/// The order of startable tasks, after the priorities that the text gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The first in the plan.
    #[default]
    Place,
    /// The one with the longest remaining critical path.
    CriticalPath,
}

/// Selects the details that compaction keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExcerptProfile {
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
            profile: ExcerptProfile::Coding,
            token_budget: 8_000,
            error_char_limit: 2_000,
            parallelism: 4,
            on_failure: FailurePolicy::SkipDependants,
            retry: RetryClass::ALL.iter().map(|class| (*class, class.policy())).collect(),
            folder: None,
            file: PlanFile::default(),
            budget: Budget::default(),
            deadline_ms: None,
            compensate: false,
            parallelism_by_kind: BTreeMap::new(),
            parallelism_by_executor: BTreeMap::new(),
            order: Order::Place,
            standing: false,
            sessions: false,
        }
    }
}
