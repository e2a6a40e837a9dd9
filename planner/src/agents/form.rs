//! The form of an agent's plan. The names of earlier designs are accepted as aliases.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_with::rust::maps_duplicate_key_is_error as unique;

use crate::agents::PlanError;
use crate::is_default;
use crate::protocol::{AgentType, CrossAgentStep};

/// The greatest length of an agent's plan as JSON, in bytes.
pub const PLAN_BYTES_MAX: usize = 1 << 20;
/// The most entries of any list in an agent's plan.
pub const STEPS_MAX: usize = 1_000;
/// The longest time a step may be given, in milliseconds: almost fifty days.
pub const STEP_TIMEOUT_MS_MAX: u64 = u32::MAX as u64;
/// The greatest length of a step's id.
pub const ID_CHARS_MAX: usize = 64;

/// The plan of an agent. Its role says which parts it may use.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPlan {
    /// The goals, the most important first.
    #[serde(alias = "narrative_goals")]
    pub goals: Vec<Goal>,
    /// The constraints on all steps, or on those of some goals.
    #[serde(alias = "thematic_elements")]
    pub constraints: Vec<Constraint>,
    /// The steps in order; each becomes a task.
    #[serde_with(skip_apply)]
    #[serde(
        default,
        alias = "milestones",
        alias = "dramatic_beats",
        alias = "execution_steps",
        alias = "extraction_patterns"
    )]
    pub steps: Vec<Step>,
    /// Steps that record findings, run one after another.
    #[serde(alias = "state_update_sequence")]
    pub updates: Vec<Step>,
    /// By step: the steps it waits for.
    #[serde(deserialize_with = "unique::deserialize")]
    pub dependencies: BTreeMap<String, Vec<String>>,
    /// The files, agents and capacities that the steps need.
    #[serde(alias = "resource_requirements")]
    pub resources: Option<Resources>,
    /// How names map to files and symbols.
    #[serde(alias = "entity_resolution_strategy")]
    pub resolution: Option<Resolution>,
}

/// A goal.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The name that steps and constraints use.
    #[serde_with(skip_apply)]
    pub id: String,
    /// The goal in words.
    #[serde_with(skip_apply)]
    pub description: String,
    /// The sign that it is reached.
    pub done_when: Option<String>,
}

/// A constraint.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// The constraint in words.
    #[serde_with(skip_apply)]
    pub description: String,
    /// The goals whose steps it applies to; empty for all.
    pub goals: Vec<String>,
}

/// A step. It names exactly one of `tool`, `agent` and `request`.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The name that the rest of the plan uses.
    #[serde_with(skip_apply)]
    pub id: String,
    /// The work, the milestone or the finding, in words.
    #[serde_with(skip_apply)]
    pub description: String,
    /// The goals it serves.
    pub goals: Vec<String>,
    /// The agent's own tool that does it.
    pub tool: Option<String>,
    /// Arguments for a tool with a command.
    pub args: Vec<String>,
    /// The shell command, for a tool that takes one.
    pub command: Option<String>,
    /// The agent that makes a sub-plan for it.
    pub agent: Option<AgentType>,
    /// The request to another agent that answers it.
    pub request: Option<CrossAgentStep>,
    /// Milliseconds after which a run of it is stopped.
    pub timeout_ms: Option<u64>,
    /// How often it is retried after a failure of its own.
    pub retry: Option<u32>,
    /// Milliseconds from its first start to its deadline, retries included.
    pub deadline_ms: Option<u64>,
    /// The shell command that undoes it; only for agents with a tool that takes commands.
    pub undo: Option<String>,
}

/// The requirements of the steps of a plan.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// By step: the paths and globs it works on.
    #[serde(deserialize_with = "unique::deserialize")]
    pub files: BTreeMap<String, Vec<String>>,
    /// The other types of agent that the steps use.
    pub agent_types: BTreeSet<AgentType>,
    /// Amounts of anything else that is limited.
    #[serde(deserialize_with = "unique::deserialize")]
    pub capacities: BTreeMap<String, u64>,
}

/// How names map to files and symbols.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// The ways to look a name up, in order: `path`, `symbol`, `text`.
    #[serde_with(skip_apply)]
    pub by: Vec<String>,
    /// The choice among several matches: `all`, `first`, or `ask` a person; all when unset.
    pub ambiguous: Option<String>,
}

impl AgentPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// [`PlanError::Form`] when it is too long or not JSON of this form.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        if text.len() > PLAN_BYTES_MAX {
            let n_bytes = text.len();
            let reason =
                format!("it has {n_bytes} bytes, and plan_bytes_max is {PLAN_BYTES_MAX}: split it into several plans");
            return Err(PlanError::Form(reason));
        }
        let text = text.trim_start_matches('\u{feff}');
        serde_json::from_str(text).map_err(|error| PlanError::Form(error.to_string()))
    }

    /// The plan as JSON, as [`AgentPlan::read`] reads it.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("texts, numbers and lists can always be written as JSON")
    }
}

impl Goal {
    pub(super) fn text(&self) -> String {
        let done_when = self.done_when.as_deref().map(|when| format!(" (done when {})", when.trim()));
        format!("goal: {}{}", self.description.trim(), done_when.unwrap_or_default())
    }
}

impl Resolution {
    pub(super) fn text(&self) -> String {
        let ambiguous = self.ambiguous.as_deref().unwrap_or("all");
        format!("resolve names by {}; if several match: {ambiguous}", self.by.join(", then "))
    }
}
