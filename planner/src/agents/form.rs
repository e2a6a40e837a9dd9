//! The form of an agent's plan. The names of earlier designs are accepted as aliases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::agents::{PLAN_BYTES_MAX, PlanError};
use crate::protocol::{AgentType, CrossAgentStep};

/// The plan of an agent. Its role says which parts it may use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentPlan {
    /// The goals, the most important first.
    #[serde(alias = "narrative_goals", skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<Goal>,
    /// The constraints on all steps, or on those of some goals.
    #[serde(alias = "thematic_elements", skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// The steps in order; each becomes a task.
    #[serde(alias = "milestones", alias = "dramatic_beats", alias = "execution_steps", alias = "extraction_patterns")]
    pub steps: Vec<Step>,
    /// Steps that record findings, run one after another.
    #[serde(alias = "state_update_sequence", skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Step>,
    /// By step: the steps it waits for.
    #[serde(deserialize_with = "unique", skip_serializing_if = "BTreeMap::is_empty")]
    pub dependencies: BTreeMap<String, Vec<String>>,
    /// The files, agents and capacities that the steps need.
    #[serde(alias = "resource_requirements", skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// How names map to files and symbols.
    #[serde(alias = "entity_resolution_strategy", skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
}

/// A goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The name that steps and constraints use.
    pub id: String,
    /// The goal in words.
    pub description: String,
    /// The sign that it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_when: Option<String>,
}

/// A constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// The constraint in words.
    pub description: String,
    /// The goals whose steps it applies to; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<String>,
}

/// A step. It names exactly one of `tool`, `agent` and `request`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The name that the rest of the plan uses.
    pub id: String,
    /// The work, the milestone or the finding, in words.
    pub description: String,
    /// The goals it serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<String>,
    /// The agent's own tool that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Arguments for a tool with a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The shell command, for a tool that takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The agent that makes a sub-plan for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentType>,
    /// The request to another agent that answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<CrossAgentStep>,
    /// Milliseconds after which a run of it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How often it is retried after a failure of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<u32>,
    /// Milliseconds from its first start to its deadline, retries included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The shell command that undoes it; only for agents with a tool that takes commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

/// The requirements of the steps of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// By step: the paths and globs it works on.
    #[serde(deserialize_with = "unique", skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Vec<String>>,
    /// The other types of agent that the steps use.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub agent_types: BTreeSet<AgentType>,
    /// Amounts of anything else that is limited.
    #[serde(deserialize_with = "unique", skip_serializing_if = "BTreeMap::is_empty")]
    pub capacities: BTreeMap<String, u64>,
}

/// How names map to files and symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// The ways to look a name up, in order: `path`, `symbol`, `text`.
    pub by: Vec<String>,
    /// Which of several matches count: `all`, `first`, or `ask` a person; all when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    #[must_use]
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
        format!("look names up by {}; of several matches: {ambiguous}", self.by.join(", then "))
    }
}

/// Reads a map and refuses a key that repeats, where `serde_json` would keep the last one.
fn unique<'de, D: Deserializer<'de>, T: Deserialize<'de>>(json: D) -> Result<BTreeMap<String, T>, D::Error> {
    struct Unique<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Unique<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = entries.next_entry::<String, T>()? {
                if map.contains_key(&key) {
                    return Err(A::Error::custom(format_args!("duplicate field {key:?}")));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }
    json.deserialize_map(Unique(PhantomData))
}
