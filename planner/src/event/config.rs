//! The settings of a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::parse::{Format, ReadOptions};
use crate::plan::{FailurePolicy, NodeKind};

/// The settings of a plan. They are part of its first event, so no replay depends on the defaults of the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannerConfig {
    /// The instruction at the start of each prompt.
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
    /// The file that the plan was read from.
    #[serde(default, skip_serializing_if = "PlanFile::is_plain")]
    pub file: PlanFile,
    /// The most that the plan may use up; before more would be, it pauses.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// Milliseconds after its first start by which the plan must have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Whether a plan that failed or was cancelled undoes what it did, as far as its tasks say how.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compensate: bool,
    /// By kind: tasks that may run at once, within `parallelism`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parallelism_by_kind: BTreeMap<NodeKind, usize>,
    /// By assignee: tasks that may run at once, within `parallelism`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parallelism_by_executor: BTreeMap<String, usize>,
    /// Which of the tasks that could start does.
    #[serde(default, skip_serializing_if = "Order::is_by_place")]
    pub order: Order,
    /// Who writes the summary of what has happened.
    #[serde(default, skip_serializing_if = "Summaries::is_by_rule")]
    pub summaries: Summaries,
    /// Whether the plan stays open when all its tasks have ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standing: bool,
}

impl PlannerConfig {
    /// The settings that differ from their defaults, in words; without the instruction and the folder.
    #[must_use]
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
        say(self.on_failure != default.on_failure, format!("on failure {}", self.on_failure.as_str()));
        say(self.retries_max != default.retries_max, format!("retries {}", self.retries_max));
        say(!self.order.is_by_place(), "order by the critical path".to_owned());
        say(self.standing, "standing".to_owned());
        say(self.token_budget != default.token_budget, format!("token budget {}", self.token_budget));
        let Budget { tokens, cost_micros, duration_ms } = self.budget;
        say(tokens.is_some(), format!("at most {} tokens", tokens.unwrap_or(0)));
        say(cost_micros.is_some(), format!("at most a cost of {}", money(cost_micros.unwrap_or(0))));
        say(duration_ms.is_some(), format!("at most {} ms of work", duration_ms.unwrap_or(0)));
        say(self.deadline_ms.is_some(), format!("deadline after {} ms", self.deadline_ms.unwrap_or(0)));
        say(self.compensate, "undoes what it did".to_owned());
        say(!self.summaries.is_by_rule(), "summaries by a model".to_owned());
        words
    }
}

/// The file that a plan was read from, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanFile {
    /// Its path; unset for standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The rules it was read by.
    #[serde(default)]
    pub format: Format,
    /// The tag of a Task Master file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl PlanFile {
    /// True of plain Markdown without a path.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// How to read it.
    #[must_use]
    pub fn options(&self, parallel: bool) -> ReadOptions<'_> {
        ReadOptions { format: self.format, parallel, tag: self.tag.as_deref() }
    }
}

/// Millionths of a unit, in units: `0.600000`.
#[must_use]
pub fn money(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// What has been used up, or may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that models were told.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// Millionths of the unit in which prices are given.
    pub cost_micros: u64,
    /// Milliseconds for which tasks ran, each counted alone.
    pub duration_ms: u64,
    /// So many of the tokens were counted by nobody, and are estimated.
    #[serde(default, skip_serializing_if = "is_none")]
    pub estimated_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes what it asks about by reference")]
fn is_none(n: &u64) -> bool {
    *n == 0
}

impl Usage {
    /// True when nothing was used up.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what else was used up.
    pub fn add(&mut self, more: &Self) {
        self.estimated_tokens = self.estimated_tokens.saturating_add(more.estimated_tokens);
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cost_micros = self.cost_micros.saturating_add(more.cost_micros);
        self.duration_ms = self.duration_ms.saturating_add(more.duration_ms);
    }
}

/// The most that a plan may use up; what is unset has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens, told and written together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of the unit in which prices are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Milliseconds for which tasks run, each counted alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl Budget {
    /// True when nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Of each measure the lesser limit.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            tokens: least(self.tokens, other.tokens),
            cost_micros: least(self.cost_micros, other.cost_micros),
            duration_ms: least(self.duration_ms, other.duration_ms),
        }
    }
}

/// Which of the tasks that could start does, after the priorities that the text gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The first in the plan.
    #[default]
    Place,
    /// The one with the longest remaining critical path.
    CriticalPath,
}

impl Order {
    /// True of the order of the plan.
    #[must_use]
    pub fn is_by_place(&self) -> bool {
        *self == Self::Place
    }
}

/// Who writes the summary of what has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Summaries {
    /// The planner, by rule.
    #[default]
    Rule,
    /// A model, when it does so in time; else the planner.
    Model,
}

impl Summaries {
    /// True when no model is asked.
    #[must_use]
    pub fn is_by_rule(&self) -> bool {
        *self == Self::Rule
    }
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
            file: PlanFile::default(),
            budget: Budget::default(),
            deadline_ms: None,
            compensate: false,
            parallelism_by_kind: BTreeMap::new(),
            parallelism_by_executor: BTreeMap::new(),
            order: Order::Place,
            summaries: Summaries::Rule,
            standing: false,
        }
    }
}
