//! The settings of a plan: their limits, and changes while the plan runs.

use crate::error::PlannerError;
use crate::event::{Event, PlannerConfig, RetrySetting, Setting};
use crate::plan::NodeKind;
use crate::planner::{AMENDMENTS_MAX, LIMITED_MAX, PARALLELISM_MAX, Planner};
use crate::prompt::{TOKEN_BUDGET_MAX, TOKEN_BUDGET_MIN};
use crate::state::Phase;

/// The most retries of a class of failures.
const RETRY_COUNT_MAX: usize = 1_000;

impl Planner {
    pub(super) fn configure(&self, changes: Vec<Setting>, reason: String) -> Result<Vec<Event>, PlannerError> {
        if let Phase::Ended(_) = self.state.phase {
            return Err(PlannerError::PlanEnded);
        }
        check_count("settings", changes.len(), AMENDMENTS_MAX)?;
        let mut config = self.state.config.clone();
        changes.into_iter().for_each(|change| config.set(change));
        check_config(&config)?;
        let is_other = config != self.state.config;
        Ok(is_other.then(|| Event::SettingsChanged { config: Box::new(config), reason }).into_iter().collect())
    }
}

/// Checks the settings of a new or a running plan.
pub(super) fn check_config(config: &PlannerConfig) -> Result<(), PlannerError> {
    check_setting("parallelism", config.parallelism, 1, PARALLELISM_MAX)?;
    let (by_kind, by_executor) = (&config.parallelism_by_kind, &config.parallelism_by_executor);
    for max in by_kind.values().chain(by_executor.values()) {
        check_setting("parallelism of a kind or an assignee", *max, 1, PARALLELISM_MAX)?;
    }
    check_setting("number of limited assignees", by_executor.len(), 0, LIMITED_MAX)?;
    if by_kind.contains_key(&NodeKind::Clarification) {
        return Err(PlannerError::QuestionsHaveNoLimit);
    }
    for policy in config.retry.values() {
        check_setting("retry.CLASS.count", policy.count as usize, 0, RETRY_COUNT_MAX)?;
        check_setting("retry.CLASS.jitter", policy.jitter_percent as usize, 0, 100)?;
    }
    check_setting("prompt.tokens", config.token_budget, TOKEN_BUDGET_MIN, TOKEN_BUDGET_MAX)
}

pub(super) fn check_count(what: &'static str, value: usize, max: usize) -> Result<(), PlannerError> {
    if value > max { Err(PlannerError::TooMany(what, value, max)) } else { Ok(()) }
}

impl PlannerConfig {
    /// Changes one setting.
    pub fn set(&mut self, change: Setting) {
        match change {
            Setting::Parallelism(n) => self.parallelism = n,
            Setting::ParallelismOfKind(kind, Some(n)) => {
                self.parallelism_by_kind.insert(kind, n);
            }
            Setting::ParallelismOfKind(kind, None) => {
                self.parallelism_by_kind.remove(&kind);
            }
            Setting::ParallelismOfExecutor(name, n) => {
                // Names match in any case.
                self.parallelism_by_executor.retain(|known, _| known.to_lowercase() != name.to_lowercase());
                self.parallelism_by_executor.extend(n.map(|n| (name, n)));
            }
            Setting::OnFailure(policy) => self.on_failure = policy,
            Setting::Retry(class, setting) => {
                let mut policy = self.retry_of(class);
                match setting {
                    RetrySetting::Count(n) => policy.count = n,
                    RetrySetting::FirstMs(ms) => policy.first_ms = ms,
                    RetrySetting::LongestMs(ms) => policy.longest_ms = ms,
                    RetrySetting::JitterPercent(n) => policy.jitter_percent = n,
                }
                self.retry.insert(class, policy);
            }
            Setting::Order(order) => self.order = order,
            Setting::Budget(budget) => self.budget = budget,
            Setting::DeadlineMs(deadline_ms) => self.deadline_ms = deadline_ms,
            Setting::TokenBudget(n) => self.token_budget = n,
            Setting::Compensate(compensate) => self.compensate = compensate,
            Setting::Standing(standing) => self.standing = standing,
            Setting::Sessions(sessions) => self.sessions = sessions,
            Setting::Folder(folder) => self.folder = Some(folder),
        }
    }
}

fn check_setting(setting: &'static str, value: usize, min: usize, max: usize) -> Result<(), PlannerError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(PlannerError::Setting { setting, value, min, max }) }
}
