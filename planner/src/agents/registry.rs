//! The registry of tools: which type of agent plans with which, what each means as a task, and which agents answer what.
//!
//! It is data, and always in order: one that is not cannot be made. No tool is ever used here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::PlanError;
use crate::plan::NodeKind;
use crate::protocol::{Abilities, AgentType, usual_abilities};

/// The most tools of a registry.
pub const TOOLS_MAX: usize = 200;
/// The most characters of a tool's name.
pub const TOOL_NAME_CHARS_MAX: usize = 64;
/// The most bytes of a tool's description.
pub const TOOL_DESCRIPTION_BYTES_MAX: usize = 1 << 10;
/// The most bytes of a tool's command.
pub const TOOL_COMMAND_BYTES_MAX: usize = 4 << 10;

/// A tool, and what a step that uses it means as a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Small letters and digits in at least two parts, joined by `_`, `-` or `.`, so that it is no plain word: `edit_code`.
    pub name: String,
    /// What it is for; agents are told.
    pub description: String,
    /// What sort of work its tasks are.
    pub kind: NodeKind,
    /// The line for the shell; what a step gives it is added, quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether each step brings a line for the shell of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_command: bool,
    /// The executor to which its tasks are assigned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Which type of agent plans with which tools, and answers what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct ToolRegistry {
    tools: BTreeMap<String, Tool>,
    by_agent: BTreeMap<AgentType, BTreeSet<String>>,
    abilities: Abilities,
}

/// A registry as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// The tools.
    pub tools: Vec<Tool>,
    /// By type of agent: the names of those that it plans with.
    pub by_agent: BTreeMap<AgentType, BTreeSet<String>>,
    /// What each answers.
    pub abilities: Abilities,
}

/// Why a registry is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// A name could be taken for a plain word, or is none at all.
    #[error(
        "{name:?} is no name of a tool: small letters and digits in at least two parts, joined by _, - or ., at most {max} of them (edit_code)"
    )]
    Name {
        /// As written.
        name: String,
        /// The most characters.
        max: usize,
    },
    /// Two tools have one name.
    #[error("the tool {name} is there twice")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// An agent is given a tool that is not there.
    #[error("{agent} agents are given the tool {name:?}, which nobody has described")]
    Unknown {
        /// The type of agent.
        agent: AgentType,
        /// As written.
        name: String,
    },
    /// Something is too long, or there is too much of it.
    #[error("{what} is {value}, and may be at most {max}")]
    TooMuch {
        /// Of what.
        what: &'static str,
        /// How much there is.
        value: usize,
        /// How much there may be.
        max: usize,
    },
    /// A command is empty, or there are two.
    #[error("the tool {name} has a command that is empty, or one of its own beside one of each step")]
    Command {
        /// The tool.
        name: String,
    },
}

impl ToolRegistry {
    /// A registry of these parts.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn new(parts: Parts) -> Result<Self, RegistryError> {
        let Parts { tools: given, by_agent, abilities } = parts;
        check_at_most("the number of tools", given.len(), TOOLS_MAX)?;
        let mut tools = BTreeMap::new();
        for tool in given {
            tool.check()?;
            if tools.contains_key(&tool.name) {
                return Err(RegistryError::Duplicate { name: tool.name });
            }
            tools.insert(tool.name.clone(), tool);
        }
        for (agent, names) in &by_agent {
            if let Some(name) = names.iter().find(|name| !tools.contains_key(*name)) {
                return Err(RegistryError::Unknown { agent: *agent, name: name.clone() });
            }
        }
        Ok(Self { tools, by_agent, abilities })
    }

    /// A tool by its name, whoever has it.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// The tools that a type of agent plans with, by name. Nothing else of the registry is to be told to it.
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

    /// What each type of agent answers.
    #[must_use]
    pub fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// The tool of this name, if the agent has it.
    pub(super) fn usable(&self, agent: AgentType, name: &str, at: &str) -> Result<&Tool, PlanError> {
        let is_own = self.by_agent.get(&agent).is_some_and(|names| names.contains(name));
        match self.tools.get(name) {
            Some(tool) if is_own => Ok(tool),
            Some(_) => Err(self.foreign(agent, name, at)),
            None => {
                let known = self.tools_of(agent).map(|tool| tool.name.clone()).collect();
                Err(PlanError::UnknownTool { tool: name.to_owned(), agent, at: at.to_owned(), known })
            }
        }
    }

    /// Refuses a plan that names a tool which its agent has not, wherever in it, in whichever case.
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
        let (tool, owners) = (name.to_owned(), self.owners(name));
        PlanError::ForeignTool { tool, owners, agent, at: at.to_owned() }
    }

    /// The tools of crews that write code.
    #[must_use]
    pub fn coding() -> Self {
        let tool = |name: &str, kind, description: &str| Tool {
            name: name.into(),
            description: description.into(),
            kind,
            command: None,
            takes_command: name == RUN_COMMAND,
            agent: None,
        };
        let of = |agent, tools: &[Tool]| {
            let names = tools.iter().map(|tool| tool.name.as_str()).chain([ASK_PERSON]);
            (agent, names.map(str::to_owned).collect())
        };
        let strategic = [
            tool("weigh_options", NodeKind::Analysis, "compare ways to a goal, and choose one"),
            tool("review_outcome", NodeKind::Analysis, "judge whether a milestone is reached"),
        ];
        let tactical = [
            tool("edit_code", NodeKind::CodeImplementation, "write or change code"),
            tool("refactor_code", NodeKind::Refactor, "change the form of code and not what it does"),
            tool("write_tests", NodeKind::UnitTest, "write or run tests"),
            tool("review_code", NodeKind::Analysis, "look into code and judge it"),
            tool("look_up", NodeKind::Retrieval, "find or fetch something that a step needs"),
            tool("do_step", NodeKind::Processing, "what no other tool fits"),
            tool(RUN_COMMAND, NodeKind::ToolCall, "run a line in the shell"),
        ];
        let perception = [
            tool("survey_files", NodeKind::Retrieval, "list what is there"),
            tool("search_code", NodeKind::Retrieval, "find where something is said"),
            tool("read_code", NodeKind::Analysis, "read something and say what it is"),
            tool("record_finding", NodeKind::Processing, "write down what was found"),
        ];
        let orchestrator = [tool("review_progress", NodeKind::Analysis, "judge where all work stands")];
        let ask_person = tool(ASK_PERSON, NodeKind::Clarification, "ask a person, and wait for the answer");
        let by_agent = BTreeMap::from([
            of(AgentType::Strategic, &strategic),
            of(AgentType::Tactical, &tactical),
            of(AgentType::Perception, &perception),
            of(AgentType::Orchestrator, &orchestrator),
        ]);
        let tools = strategic.into_iter().chain(tactical).chain(perception).chain(orchestrator).chain([ask_person]);
        let parts = Parts { tools: tools.collect(), by_agent, abilities: usual_abilities() };
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
/// The tool whose steps bring a line for the shell.
pub const RUN_COMMAND: &str = "run_command";

impl TryFrom<Parts> for ToolRegistry {
    type Error = RegistryError;

    fn try_from(parts: Parts) -> Result<Self, RegistryError> {
        Self::new(parts)
    }
}

impl From<ToolRegistry> for Parts {
    fn from(registry: ToolRegistry) -> Self {
        let ToolRegistry { tools, by_agent, abilities } = registry;
        Self { tools: tools.into_values().collect(), by_agent, abilities }
    }
}

impl Tool {
    fn check(&self) -> Result<(), RegistryError> {
        let is_part = |part: &str| {
            !part.is_empty() && part.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit())
        };
        let n_parts = self.name.split(['_', '-', '.']).count();
        let is_name = self.name.split(['_', '-', '.']).all(is_part) && n_parts > 1;
        if !is_name || self.name.len() > TOOL_NAME_CHARS_MAX {
            return Err(RegistryError::Name { name: self.name.clone(), max: TOOL_NAME_CHARS_MAX });
        }
        check_at_most("the length of a tool's description", self.description.len(), TOOL_DESCRIPTION_BYTES_MAX)?;
        let command = self.command.as_deref();
        check_at_most("the length of a tool's command", command.map_or(0, str::len), TOOL_COMMAND_BYTES_MAX)?;
        let is_empty = command.is_some_and(|line| line.trim().is_empty() || line.contains('\0'));
        if is_empty || (self.takes_command && command.is_some()) {
            return Err(RegistryError::Command { name: self.name.clone() });
        }
        Ok(())
    }
}

fn check_at_most(what: &'static str, value: usize, max: usize) -> Result<(), RegistryError> {
    if value <= max { Ok(()) } else { Err(RegistryError::TooMuch { what, value, max }) }
}

/// The first of these names in a plan, and the place of it.
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

/// A name is a word of its own: a path or a longer name that holds it is another word.
fn named_in_text<'a>(names: &BTreeSet<&'a str>, text: &str) -> Option<&'a str> {
    let words = text.split(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/')));
    let mut words = words.map(|word| word.trim_matches(['.', '-', '/']).to_ascii_lowercase());
    words.find_map(|word| names.get(word.as_str()).copied())
}
