//! The measures that a budget limits, the usage so far, and reservations.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::event::{Budget, Usage};
use crate::plan::TaskId;
use crate::state::graph::N_LANES;
use crate::text::{duration, money};

/// A quantity that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Tokens read and written.
    Tokens,
    /// Millionths of the unit in which prices are given.
    Cost,
    /// Milliseconds that tasks run.
    Duration,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tokens, Self::Cost, Self::Duration];

    /// Its amount in a usage.
    pub fn of(self, usage: &Usage) -> u64 {
        match self {
            Self::Tokens => usage.input_tokens.saturating_add(usage.output_tokens),
            Self::Cost => usage.cost_micros,
            Self::Duration => usage.duration_ms,
        }
    }

    /// Its limit in a budget, if there is one.
    pub fn limit(self, budget: &Budget) -> Option<u64> {
        match self {
            Self::Tokens => budget.tokens,
            Self::Cost => budget.cost_micros,
            Self::Duration => budget.duration_ms,
        }
    }

    /// An amount in words.
    pub fn words(self, amount: u64) -> String {
        match self {
            Self::Tokens => format!("{amount} tokens"),
            Self::Cost => format!("a cost of {}", money(amount)),
            Self::Duration => duration(amount),
        }
    }

    /// The setting of the limit.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tokens => "budget.tokens",
            Self::Cost => "budget.cost",
            Self::Duration => "budget.time",
        }
    }
}

/// An exhausted measure of the budget: used up, or reserved for running tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// The measure.
    pub measure: Measure,
    /// The budget.
    pub limit: u64,
    /// Used up so far.
    pub spent: u64,
    /// The expected usage of the running tasks.
    pub reserved: u64,
}

impl Shortage {
    /// The shortage in words, without a remedy.
    pub fn words(&self) -> String {
        let Self { measure, limit, spent, reserved } = *self;
        let (limit, spent) = (measure.words(limit), measure.words(spent));
        match reserved {
            0 => format!("the budget of {limit} is used up: {spent} spent"),
            _ => {
                let reserved = measure.words(reserved);
                format!(
                    "the budget of {limit} is fully reserved: {spent} spent, {reserved} reserved for running \
         tasks"
                )
            }
        }
    }
}

impl std::fmt::Display for Shortage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (words, key) = (self.words(), self.measure.key());
        write!(f, "{words}; raise it with `crewlog plan set PLAN {key}=...`, then `crewlog resume PLAN`")
    }
}

/// The usage so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Spending {
    pub(crate) total: Usage,
    pub(super) by_lane: [LaneUse; N_LANES],
    /// The tasks whose current run has a known usage.
    pub(super) known: BTreeSet<TaskId>,
}

/// Usage of the tasks of one lane, without sub-plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct LaneUse {
    pub(super) total: Usage,
    /// The number of runs that have ended.
    pub(super) n_ended: u64,
}

/// Reservations while tasks are admitted.
#[derive(Default)]
pub(crate) struct Ledger {
    /// By measure: the expected usage of the running tasks.
    pub(super) reserved: [u64; Measure::ALL.len()],
    /// The reason why the first task was refused.
    pub(super) shortage: Option<Shortage>,
}
