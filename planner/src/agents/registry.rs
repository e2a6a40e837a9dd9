//! The registry of tools: which agent plans with which, what each becomes as a task, and which requests agents answer.
//!
//! It is data, checked on construction. No tool runs here.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::agents::{PlanError, Role};
use crate::plan::NodeKind;
use crate::protocol::{Ability, AgentType};

/// Which requests each type of agent answers.
pub type Abilities = BTreeMap<AgentType, BTreeSet<Ability>>;

/// The most tools of a registry.
pub const TOOLS_MAX: usize = 200;
/// The most characters of a tool's name.
pub const TOOL_NAME_CHARS_MAX: usize = 64;
/// The most bytes of a tool's description.
pub const TOOL_DESCRIPTION_BYTES_MAX: usize = 1 << 10;
/// The most bytes of a tool's command.
pub const TOOL_COMMAND_BYTES_MAX: usize = 4 << 10;

/// A tool, and the task that a step with it becomes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Lowercase letters and digits in at least two parts, joined by `_`, `-` or `.`, to tell it from plain words: `edit_code`.
    pub name: String,
    /// The purpose; models are shown it.
    pub description: String,
    /// The kind of its tasks.
    pub kind: NodeKind,
    /// The shell command; a step's arguments are appended, quoted.
    #[serde(default)]
    pub command: Option<String>,
    /// Whether each step brings its own shell command.
    #[serde(default)]
    pub takes_command: bool,
    /// The executor to which its tasks are assigned.
    #[serde(default)]
    pub agent: Option<String>,
}

/// The checked registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRegistry {
    tools: BTreeMap<String, Tool>,
    by_agent: BTreeMap<AgentType, BTreeSet<String>>,
    abilities: Abilities,
}

/// The parts of a registry, not checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// The tools.
    pub tools: Vec<Tool>,
    /// By type of agent: the names of its tools.
    pub by_agent: BTreeMap<AgentType, BTreeSet<String>>,
    /// The requests that each answers.
    pub abilities: Abilities,
}

/// Why a registry is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RegistryError {
    /// The tool that breaks the rule; empty for a rule on all tools.
    pub tool: String,
    /// The type of agent that is given a tool without a description.
    pub agent: Option<AgentType>,
    /// The rule in words.
    pub reason: String,
}

impl ToolRegistry {
    /// A registry of these parts.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn new(parts: Parts) -> Result<Self, RegistryError> {
        let Parts { tools: given, by_agent, abilities } = parts;
        check_at_most("", "the number of tools", given.len(), TOOLS_MAX)?;
        let mut tools = BTreeMap::new();
        for tool in given {
            tool.check()?;
            if tools.contains_key(&tool.name) {
                return Err(refused(&tool.name, format!("the tool {} is there twice", tool.name)));
            }
            tools.insert(tool.name.clone(), tool);
        }
        for (agent, names) in &by_agent {
            if let Some(name) = names.iter().find(|name| !tools.contains_key(*name)) {
                let reason = format!("{agent} agents are given the tool {name:?}, which nobody has described");
                return Err(RegistryError { agent: Some(*agent), ..refused(name, reason) });
            }
        }
        Ok(Self { tools, by_agent, abilities })
    }

    /// A tool by its name, of any agent.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// The tools that a type of agent plans with, by name. It must not be shown any other.
    pub fn tools_of(&self, agent: AgentType) -> impl Iterator<Item = &Tool> {
        let names = self.by_agent.get(&agent).into_iter().flatten();
        names.filter_map(|name| self.tools.get(name))
    }

    /// The types of agent that have a tool.
    #[must_use]
    pub fn owners(&self, name: &str) -> Vec<AgentType> {
        let has = |(_, names): &(&AgentType, &BTreeSet<String>)| names.contains(name);
        self.by_agent.iter().filter(has).map(|(agent, _)| *agent).collect()
    }

    /// The requests that a type of agent answers.
    #[must_use]
    pub fn answers(&self, agent: AgentType) -> &BTreeSet<Ability> {
        const NONE: &BTreeSet<Ability> = &BTreeSet::new();
        self.abilities.get(&agent).unwrap_or(NONE)
    }

    /// Whether an agent may have shell commands of its own run.
    pub(super) fn has_shell(&self, agent: AgentType) -> bool {
        self.tools_of(agent).any(|tool| tool.takes_command)
    }

    /// The tool with this name, if the agent has it.
    pub(super) fn usable(&self, agent: AgentType, name: &str, at: &str) -> Result<&Tool, PlanError> {
        let is_own = self.by_agent.get(&agent).is_some_and(|names| names.contains(name));
        match self.tools.get(name) {
            Some(tool) if is_own => Ok(tool),
            Some(_) => Err(self.foreign(agent, name, at)),
            None => {
                let known = self.tools_of(agent).map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
                let rule = format!("no tool is called {name:?}; a {agent} agent has {known}");
                Err(PlanError::UnknownTool(at.to_owned(), rule))
            }
        }
    }

    /// Refuses a plan with the name of a foreign tool anywhere in it, in any case.
    pub(super) fn check_words(&self, agent: AgentType, plan: &Value) -> Result<(), PlanError> {
        let own = self.by_agent.get(&agent);
        let is_foreign = |name: &&String| own.is_none_or(|own| !own.contains(*name));
        let foreign = self.tools.keys().filter(is_foreign).map(String::as_str).collect::<BTreeSet<_>>();
        match named_in(&foreign, plan, "") {
            Some((name, at)) => Err(self.foreign(agent, name, &at)),
            None => Ok(()),
        }
    }

    fn foreign(&self, agent: AgentType, name: &str, at: &str) -> PlanError {
        let owners = self.owners(name).iter().map(|agent| agent.as_str()).collect::<Vec<_>>().join(" and ");
        let owners = if owners.is_empty() { "nobody".to_owned() } else { format!("{owners} agents") };
        let rule = format!("the tool {name} belongs to {owners}, and a {agent} plan may not name it");
        PlanError::ForeignTool(at.to_owned(), rule)
    }

    /// The tools of the roles' table: those of crews that write code.
    #[must_use]
    pub fn coding() -> Self {
        let tool = |(name, kind, description): (&str, NodeKind, &str)| Tool {
            name: name.into(),
            description: description.into(),
            kind,
            command: None,
            takes_command: name == RUN_COMMAND,
            agent: None,
        };
        let mut parts = Parts::default();
        parts.tools.push(tool((ASK_PERSON, NodeKind::Clarification, "ask a person, and wait for the answer")));
        for role in AgentType::ALL.map(Role::of) {
            let names = role.tools.iter().map(|(name, ..)| *name).chain([ASK_PERSON]);
            parts.by_agent.insert(role.agent, names.map(str::to_owned).collect());
            parts.abilities.insert(role.agent, role.answers.iter().copied().collect());
            parts.tools.extend(role.tools.iter().copied().map(tool));
        }
        Self::new(parts).expect("the tools that are built in are in order")
    }
}

impl Default for ToolRegistry {
    fn default() -> Self {
        Self::coding()
    }
}

/// The tool that asks a person, of every type of agent.
pub const ASK_PERSON: &str = "ask_person";
/// The tool whose steps bring a shell command.
pub const RUN_COMMAND: &str = "run_command";

impl From<ToolRegistry> for Parts {
    fn from(registry: ToolRegistry) -> Self {
        let ToolRegistry { tools, by_agent, abilities } = registry;
        Self { tools: tools.into_values().collect(), by_agent, abilities }
    }
}

impl Tool {
    fn check(&self) -> Result<(), RegistryError> {
        let Self { name, description, command, takes_command, .. } = self;
        let is_part = |part: &str| {
            !part.is_empty() && part.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit())
        };
        let is_name = name.split(['_', '-', '.']).all(is_part) && name.contains(['_', '-', '.']);
        if !is_name || name.len() > TOOL_NAME_CHARS_MAX {
            let reason = format!(
                "{name:?} is no name of a tool: small letters and digits in at least two parts, joined by _, - or ., at \
                 most {TOOL_NAME_CHARS_MAX} of them (edit_code)"
            );
            return Err(refused(name, reason));
        }
        check_at_most(name, "the length of a tool's description", description.len(), TOOL_DESCRIPTION_BYTES_MAX)?;
        let command = command.as_deref();
        check_at_most(name, "the length of a tool's command", command.map_or(0, str::len), TOOL_COMMAND_BYTES_MAX)?;
        let is_empty = command.is_some_and(|line| line.trim().is_empty() || line.contains('\0'));
        if is_empty || (*takes_command && command.is_some()) {
            let reason =
                format!("the tool {name} has a command that is empty, or one of its own beside one of each step");
            return Err(refused(name, reason));
        }
        Ok(())
    }
}

fn refused(tool: &str, reason: String) -> RegistryError {
    RegistryError { tool: tool.to_owned(), agent: None, reason }
}

fn check_at_most(tool: &str, what: &str, value: usize, max: usize) -> Result<(), RegistryError> {
    if value <= max { Ok(()) } else { Err(refused(tool, format!("{what} is {value}, and may be at most {max}"))) }
}

/// The first of these names in a plan, and its place.
fn named_in<'a>(names: &BTreeSet<&'a str>, plan: &Value, at: &str) -> Option<(&'a str, String)> {
    match plan {
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
        Value::String(text) => named_in_text(names, text).map(|name| (name, at.to_owned())),
        Value::Array(values) => {
            let mut values = values.iter().enumerate();
            values.find_map(|(index, value)| named_in(names, value, &format!("{at}/{index}")))
        }
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let at = format!("{at}/{key}");
            named_in_text(names, key).map(|name| (name, at.clone())).or_else(|| named_in(names, value, &at))
        }),
    }
}

/// A name counts as a whole word only: not as part of a path or of a longer name.
fn named_in_text<'a>(names: &BTreeSet<&'a str>, text: &str) -> Option<&'a str> {
    let words = text.split(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/')));
    let mut words = words.map(|word| word.trim_matches(['.', '-', '/']).to_ascii_lowercase());
    words.find_map(|word| names.get(word.as_str()).copied())
}
