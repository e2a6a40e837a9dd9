//! The tools of planning agents, and the requests that they answer; by default those of a crew that writes code.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_planner::agents::registry::{Abilities, RegistryError, Tool, ToolNames, ToolRegistry};
use crewlog_planner::protocol::{Ability, AgentType};
use serde::Deserialize;
use toml::Spanned;

use super::values::Fault;

/// A type of agent as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypeToml {
    tools: Option<Spanned<BTreeSet<String>>>,
    answers: Option<BTreeSet<Ability>>,
}

/// The registry of a file. A tool of a name that is built in takes its place, and a list of tools that of the type.
pub(super) fn registry(tools: &[Spanned<Tool>], types: BTreeMap<AgentType, TypeToml>) -> Result<ToolRegistry, Fault> {
    let place_of =
        |name: &str| tools.iter().rev().find(|own| own.get_ref().name == name).map_or(0, |own| own.span().start);
    let (mut lists, mut names, mut abilities) = (BTreeMap::new(), ToolNames::new(), Abilities::new());
    for (agent, TypeToml { tools, answers }) in types {
        if let Some(tools) = tools {
            lists.insert(agent, tools.span().start);
            names.insert(agent, tools.into_inner());
        }
        abilities.extend(answers.map(|answers| (agent, answers)));
    }
    let refused = |error: RegistryError| {
        let (at, help) = match error.agent {
            Some(agent) => (lists.get(&agent).copied().unwrap_or(0), "describe it under [[tools]], or leave it out"),
            None => (place_of(&error.tool), "each tool is described once, under [[tools]], with short texts"),
        };
        Fault::new(at, format!("{error}: {help}"))
    };
    let tools = tools.iter().map(|tool| tool.get_ref().clone()).collect();
    ToolRegistry::coding().with(tools, names, abilities).map_err(refused)
}
