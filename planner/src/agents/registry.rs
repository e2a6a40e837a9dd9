//! The registry of tools: the tools and abilities of each agent, as data that is checked on construction.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::agents::role::{ASK_PERSON, RUN_COMMAND};
use crate::agents::{PlanError, Role};
use crate::plan::NodeKind;
use crate::protocol::{Ability, AgentType};

/// The requests that each type of agent answers.
pub type Abilities = BTreeMap<AgentType, BTreeSet<Ability>>;
/// The names of the tools of each type of agent.
pub type ToolNames = BTreeMap<AgentType, BTreeSet<String>>;

/// The most tools of a registry.
pub const TOOLS_MAX: usize = 200;
/// The most characters of a tool's name.
pub const TOOL_NAME_CHARS_MAX: usize = 64;
/// The most bytes of a tool's description.
pub const TOOL_DESCRIPTION_BYTES_MAX: usize = 1 << 10;
/// The most characters of a tool's command.
pub const TOOL_COMMAND_CHARS_MAX: usize = 4 << 10;

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
    /// True if each step provides its own shell command.
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
    by_agent: ToolNames,
    abilities: Abilities,
}

/// The reason why a registry is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RegistryError {
    /// The tool that breaks the rule; empty for a rule on all tools.
    pub tool: String,
    /// The type of agent with a tool that is not described.
    pub agent: Option<AgentType>,
    /// The rule in words.
    pub reason: String,
}

impl ToolRegistry {
    /// Adds tools, lists of tools and abilities; each replaces the previous one of its name or type of agent.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn with(mut self, tools: Vec<Tool>, by_agent: ToolNames, abilities: Abilities) -> Result<Self, RegistryError> {
        let mut names = BTreeSet::new();
        for tool in tools {
            tool.check()?;
            if !names.insert(tool.name.clone()) {
                return Err(refused(&tool.name, format!("the tool {} is defined twice", tool.name)));
            }
            self.tools.insert(tool.name.clone(), tool);
        }
        check_at_most("", "the number of tools", self.tools.len(), TOOLS_MAX)?;
        for (agent, names) in &by_agent {
            if let Some(name) = names.iter().find(|name| !self.tools.contains_key(*name)) {
                let reason = format!("{agent} agents have the undefined tool {name:?}");
                return Err(RegistryError { agent: Some(*agent), ..refused(name, reason) });
            }
        }
        self.by_agent.extend(by_agent);
        self.abilities.extend(abilities);
        Ok(self)
    }

    /// A tool by its name, of any agent.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// The tools that a type of agent plans with, by name. Show it no others.
    pub fn tools_of(&self, agent: AgentType) -> impl Iterator<Item = &Tool> {
        let names = self.by_agent.get(&agent).into_iter().flatten();
        names.filter_map(|name| self.tools.get(name))
    }

    /// The types of agent that have a tool.
    pub fn owners(&self, name: &str) -> Vec<AgentType> {
        let has = |(_, names): &(&AgentType, &BTreeSet<String>)| names.contains(name);
        self.by_agent.iter().filter(has).map(|(agent, _)| *agent).collect()
    }

    /// The requests that a type of agent answers.
    pub fn answers(&self, agent: AgentType) -> &BTreeSet<Ability> {
        const NONE: &BTreeSet<Ability> = &BTreeSet::new();
        self.abilities.get(&agent).unwrap_or(NONE)
    }

    /// Refuses a plan with the name of a foreign tool anywhere in it, in any case.
    pub(super) fn check_tool_names(&self, agent: AgentType, plan: &Value) -> Result<(), PlanError> {
        let own = self.by_agent.get(&agent);
        let is_foreign = |name: &str| self.tools.contains_key(name) && own.is_none_or(|own| !own.contains(name));
        let Some((name, at)) = find_word(plan, "", &is_foreign) else { return Ok(()) };
        let owners = self.owners(&name).iter().map(|agent| agent.as_str()).collect::<Vec<_>>().join(" and ");
        let owners = if owners.is_empty() { "nobody".to_owned() } else { format!("{owners} agents") };
        let rule = format!("the tool {name} belongs to {owners}: a {agent} plan cannot use it");
        Err(PlanError::ForeignTool(at, rule))
    }

    /// The tools of the roles' table: those of crews that write code.
    pub fn coding() -> Self {
        let tool = |(name, kind, description): (&str, NodeKind, &str)| Tool {
            name: name.into(),
            description: description.into(),
            kind,
            command: None,
            takes_command: name == RUN_COMMAND,
            agent: None,
        };
        let ask_person = tool((ASK_PERSON, NodeKind::Clarification, "ask a person, and wait for the answer"));
        let roles = || AgentType::ALL.into_iter().map(Role::of);
        let tools = roles().flat_map(|role| role.tools.iter().copied().map(tool)).chain([ask_person]);
        let names =
            |role: &Role| role.tools.iter().map(|(name, ..)| *name).chain([ASK_PERSON]).map(str::to_owned).collect();
        Self {
            tools: tools.map(|tool| (tool.name.clone(), tool)).collect(),
            by_agent: roles().map(|role| (role.agent, names(role))).collect(),
            abilities: roles().map(|role| (role.agent, role.answers.iter().copied().collect())).collect(),
        }
    }
}

impl Default for ToolRegistry {
    fn default() -> Self {
        Self::coding()
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
                "{name:?} is not a valid tool name: use at least two parts of lowercase letters and \
         digits, joined by _, - or ., up to {TOOL_NAME_CHARS_MAX} characters (edit_code)"
            );
            return Err(refused(name, reason));
        }
        check_at_most(name, "the length of a tool's description", description.len(), TOOL_DESCRIPTION_BYTES_MAX)?;
        let Some(line) = command else { return Ok(()) };
        check_at_most(name, "the length of a tool's command", line.chars().count(), TOOL_COMMAND_CHARS_MAX)?;
        if line.trim().is_empty() || line.contains('\0') || *takes_command {
            let reason = format!("the command of the tool {name} is empty, or each step has its own");
            return Err(refused(name, reason));
        }
        Ok(())
    }
}

fn refused(tool: &str, reason: String) -> RegistryError {
    RegistryError { tool: tool.to_owned(), agent: None, reason }
}

fn check_at_most(tool: &str, what: &str, value: usize, max: usize) -> Result<(), RegistryError> {
    if value <= max { Ok(()) } else { Err(refused(tool, format!("{what} is {value}, over the maximum of {max}"))) }
}

/// The first word of a plan, in its texts and the names of its fields, that is foreign, and its place.
fn find_word(plan: &Value, at: &str, is_foreign: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
    // A name counts as a whole word only: not as part of a path or of a longer name.
    let in_text = |text: &str, at: &str| {
        let words = text.split(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/')));
        let mut words = words.map(|word| word.trim_matches(['.', '-', '/']).to_ascii_lowercase());
        words.find(|word| is_foreign(word)).map(|word| (word, at.to_owned()))
    };
    match plan {
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
        Value::String(text) => in_text(text, at),
        Value::Array(values) => {
            let mut values = values.iter().enumerate();
            values.find_map(|(index, value)| find_word(value, &format!("{at}/{index}"), is_foreign))
        }
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let at = format!("{at}/{key}");
            in_text(key, &at).or_else(|| find_word(value, &at, is_foreign))
        }),
    }
}
