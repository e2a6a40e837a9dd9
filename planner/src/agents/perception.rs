//! The plan of a perception agent: what is to be found out about the repository, and in which order it is kept.

use serde::{Deserialize, Serialize};

use crate::agents::lower::{self, Care, Does, Lowered, Step, check_length};
use crate::agents::registry::ToolRegistry;
use crate::agents::{Form, PlanError};
use crate::protocol::AgentType;

/// What to look for, how names are understood, and what is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerceptionPlan {
    /// Of the form.
    #[serde(default = "PerceptionPlan::first_version")]
    pub version: u32,
    /// What to look for; each becomes a task, and they may run side by side.
    pub extraction_patterns: Vec<ExtractionPattern>,
    /// How names map to files and symbols.
    #[serde(default)]
    pub entity_resolution_strategy: ResolutionStrategy,
    /// What is kept of it; each becomes a task, one after another.
    #[serde(default)]
    pub state_update_sequence: Vec<StateUpdate>,
}

/// Something to look for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractionPattern {
    /// By which the rest of the plan names it.
    pub id: String,
    /// What is looked for, in words.
    pub look_for: String,
    /// The paths and globs to look in; everywhere, if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<String>,
    /// The tool with which.
    pub tool: String,
    /// Further words for a tool that has a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// What is done about its failures, and about what it did.
    #[serde(default, skip_serializing_if = "Care::is_none")]
    pub care: Care,
}

/// How names map to files and symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResolutionStrategy {
    /// What is tried, in this order.
    pub by: Vec<ResolveBy>,
    /// What a name that fits several things means.
    pub ambiguous: Ambiguity,
}

impl Default for ResolutionStrategy {
    fn default() -> Self {
        Self { by: vec![ResolveBy::Path, ResolveBy::Symbol, ResolveBy::Text], ambiguous: Ambiguity::All }
    }
}

/// A way to find what a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResolveBy {
    /// It is a path, or the end of one.
    Path,
    /// It is the name of a symbol.
    Symbol,
    /// It stands in a file.
    Text,
}

impl ResolveBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Symbol => "symbol",
            Self::Text => "text",
        }
    }
}

/// What a name that fits several things means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ambiguity {
    /// All of them.
    #[default]
    All,
    /// The first that is found.
    First,
    /// A person is asked.
    Ask,
}

impl Ambiguity {
    const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all of them",
            Self::First => "the first",
            Self::Ask => "a question to a person",
        }
    }
}

/// Something to keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateUpdate {
    /// By which people name it.
    pub id: String,
    /// What is kept, in words.
    pub keep: String,
    /// What it follows from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// The tool with which.
    pub tool: String,
    /// What is done about its failures, and about what it did.
    #[serde(default, skip_serializing_if = "Care::is_none")]
    pub care: Care,
}

impl PerceptionPlan {
    const fn first_version() -> u32 {
        1
    }
}

impl ResolutionStrategy {
    fn said(&self) -> String {
        let by = self.by.iter().map(|by| by.as_str()).collect::<Vec<_>>().join(", then ");
        format!("a name is looked up by {by}; one that fits several things means {}", self.ambiguous.as_str())
    }
}

impl Form for PerceptionPlan {
    const AGENT: AgentType = AgentType::Perception;
    const VERSION: u32 = 1;

    fn lower(&self, registry: &ToolRegistry) -> Result<Lowered, PlanError> {
        let Self { version: _, extraction_patterns, entity_resolution_strategy, state_update_sequence } = self;
        check_length(extraction_patterns.len(), "/extraction_patterns")?;
        check_length(state_update_sequence.len(), "/state_update_sequence")?;
        if entity_resolution_strategy.by.is_empty() {
            return Err(PlanError::Empty { at: "/entity_resolution_strategy/by".into() });
        }
        let resolution = entity_resolution_strategy.said();
        let mut steps = Vec::new();
        for (n, pattern) in extraction_patterns.iter().enumerate() {
            let does = Does::Tool { name: &pattern.tool, args: &pattern.args, command: None };
            let step = Step::new(&pattern.id, &pattern.look_for, does, format!("/extraction_patterns/{n}"));
            let within = pattern.within.iter().map(|path| format!("look in {path}"));
            let notes = within.chain([resolution.clone()]).collect();
            steps.push(Step { notes, files: pattern.within.clone(), care: pattern.care.clone(), ..step });
        }
        let mut previous: Option<&StateUpdate> = None;
        for (n, update) in state_update_sequence.iter().enumerate() {
            let at = format!("/state_update_sequence/{n}");
            let does = Does::Tool { name: &update.tool, args: &[], command: None };
            let after = update.from.iter().chain(previous.map(|previous| &previous.id)).map(String::as_str).collect();
            let after_at = format!("{at}/from");
            let care = update.care.clone();
            steps.push(Step { after, after_at, care, ..Step::new(&update.id, &update.keep, does, at) });
            previous = Some(update);
        }
        let tasks = lower::tasks(Self::AGENT, registry, steps)?;
        Ok(Lowered { tasks, title: None, context: vec![resolution] })
    }
}
