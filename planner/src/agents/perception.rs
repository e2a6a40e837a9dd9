//! The plan of a perception agent: what is to be found out about the repository, and in which order it is kept.

use serde::{Deserialize, Serialize};

use crate::agents::lower::{self, CARE, Care, Does, Lowered, Step, VERSION, check_length, check_some};
use crate::agents::registry::ToolRegistry;
use crate::agents::shape::{Field, Shape, may, needed};
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

const PATTERN: &[Field] = &[
    needed("id", &Shape::Id, "by which name the rest of the plan calls it", r#""entry""#),
    needed("look_for", &Shape::Text, "what is looked for", r#""entry points""#),
    may("within", &Shape::List(&Shape::Text), "in which paths and globs it is looked for", r#"["src/**"]"#),
    needed("tool", &Shape::Tool, "with which tool of the agent's own it is looked for", r#""search_code""#),
    may("args", &Shape::List(&Shape::Text), "which further words the tool's command is given", r#"["fn main"]"#),
    CARE,
];

const STRATEGY: &[Field] = &[
    may(
        "by",
        &Shape::List(&Shape::Word(&["path", "symbol", "text"])),
        "by what a name is looked up, in this order",
        r#"["path", "symbol"]"#,
    ),
    may("ambiguous", &Shape::Word(&["all", "first", "ask"]), "what a name means that fits several things", r#""all""#),
];

const UPDATE: &[Field] = &[
    needed("id", &Shape::Id, "by which name people call it", r#""map""#),
    needed("keep", &Shape::Text, "what is kept", r#""a map of the parts""#),
    may("from", &Shape::List(&Shape::Id), "from which of the rest of the plan it follows, by ids", r#"["entry"]"#),
    needed("tool", &Shape::Tool, "with which tool of the agent's own it is kept", r#""record_finding""#),
    CARE,
];

impl Form for PerceptionPlan {
    const AGENT: AgentType = AgentType::Perception;
    const VERSION: u32 = 1;
    const FIELDS: &'static [Field] = &[
        VERSION,
        needed(
            "extraction_patterns",
            &Shape::List(&Shape::Fields(PATTERN)),
            "what is looked for",
            r#"[{ "id": "entry", "look_for": "entry points", "tool": "search_code" }]"#,
        ),
        may(
            "entity_resolution_strategy",
            &Shape::Fields(STRATEGY),
            "how names map to files and symbols",
            r#"{ "by": ["path", "symbol"], "ambiguous": "all" }"#,
        ),
        may(
            "state_update_sequence",
            &Shape::List(&Shape::Fields(UPDATE)),
            "what is kept of what was found, in order",
            r#"[{ "id": "map", "keep": "a map of the parts", "from": ["entry"], "tool": "record_finding" }]"#,
        ),
    ];

    fn lower(&self, registry: &ToolRegistry) -> Result<Lowered, PlanError> {
        let Self { version: _, extraction_patterns, entity_resolution_strategy, state_update_sequence } = self;
        check_length(extraction_patterns.len(), "/extraction_patterns")?;
        check_length(state_update_sequence.len(), "/state_update_sequence")?;
        if state_update_sequence.is_empty() {
            check_some(extraction_patterns, "/extraction_patterns")?;
        }
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
