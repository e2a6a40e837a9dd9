//! The tools that a plan may name: only those of its agent, anywhere in the plan.

use std::collections::BTreeSet;

use crewlog_planner::agents::AgentPlan;
use crewlog_planner::agents::PlanError;
use crewlog_planner::agents::registry::{Abilities, RegistryError, TOOLS_MAX, Tool, ToolNames, ToolRegistry};
use crewlog_planner::plan::NodeKind;
use crewlog_planner::protocol::AgentType;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::plans::{compiled, plan_of, plans};

/// All pairs of a type of agent and a tool it does not have.
fn foreign() -> Vec<(AgentType, String)> {
    let registry = ToolRegistry::coding();
    let own = |agent| registry.tools_of(agent).map(|tool| tool.name.clone()).collect::<BTreeSet<_>>();
    let all = AgentType::ALL.into_iter().flat_map(own).collect::<BTreeSet<_>>();
    AgentType::ALL
        .into_iter()
        .flat_map(|agent| all.difference(&own(agent)).map(move |tool| (agent, tool.clone())).collect::<Vec<_>>())
        .collect()
}

/// The locations of tool names in a plan, and those of free text.
fn places(agent: AgentType) -> (&'static str, &'static [&'static str]) {
    match agent {
        AgentType::Strategic => (
            "/steps/3/tool",
            &[
                "/steps/0/description",
                "/goals/1/description",
                "/goals/0/done_when",
                "/constraints/0/description",
                "/steps/2/request/request/locate/entity",
            ],
        ),
        AgentType::Tactical => (
            "/steps/0/tool",
            &[
                "/steps/0/description",
                "/steps/1/command",
                "/steps/2/request/request/analyse/text",
                "/resources/files/edit/0",
            ],
        ),
        AgentType::Perception => {
            ("/steps/0/tool", &["/steps/0/description", "/resources/files/entry/0", "/updates/0/description"])
        }
        AgentType::Orchestrator => ("/steps/2/tool", &["/steps/0/description"]),
    }
}

fn refusal(agent: AgentType, plan: &Value) -> PlanError {
    compiled(agent, plan).unwrap_err()
}

#[test]
fn every_foreign_tool_is_refused_with_its_owner_and_location_in_the_plan() {
    let pairs = foreign();
    assert!(pairs.len() > 30, "{}", pairs.len());
    let registry = ToolRegistry::coding();
    for (agent, tool) in pairs {
        let (of_tool, of_text) = places(agent);
        let owners = registry.owners(&tool);
        assert!(!owners.is_empty() && !owners.contains(&agent));
        let text = |tool: &str| json!(format!("Do it, with `{}`.", tool.to_uppercase()));
        let named = of_text.iter().map(|at| (*at, text(&tool))).chain([(of_tool, json!(tool))]);
        for (at, value) in named {
            let mut plan = plan_of(agent);
            *plan.pointer_mut(at).unwrap() = value;
            let owners = owners.iter().map(|owner| owner.as_str()).collect::<Vec<_>>().join(" and ");
            let rule = format!("the tool {tool} belongs to {owners} agents: a {agent} plan cannot use it");
            assert_eq!(refusal(agent, &plan), PlanError::ForeignTool(at.to_owned(), rule));
        }
    }
}

#[test]
fn the_refusal_of_a_foreign_tool_has_the_expected_text() {
    let mut plan = plan_of(AgentType::Strategic);
    *plan.pointer_mut("/steps/3/tool").unwrap() = json!("edit_code");
    let said = refusal(AgentType::Strategic, &plan).to_string();
    assert_eq!(said, "/steps/3/tool: the tool edit_code belongs to tactical agents: a strategic plan cannot use it");
}

#[test]
fn an_unknown_tool_is_refused_with_the_available_ones() {
    for agent in AgentType::ALL {
        let (at, _) = places(agent);
        let mut plan = plan_of(agent);
        *plan.pointer_mut(at).unwrap() = json!("make_coffee");
        let registry = ToolRegistry::coding();
        let known = registry.tools_of(agent).map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
        let rule = format!("\"make_coffee\" is not one of {known}");
        assert_eq!(refusal(agent, &plan), PlanError::Rule(at.into(), rule));
    }
}

#[test]
fn a_word_that_merely_contains_a_tool_name_is_allowed() {
    for text in ["see scripts/edit_code.sh", "the function edit_code_twice", "re_edit_code"] {
        let mut plan = plan_of(AgentType::Strategic);
        *plan.pointer_mut("/steps/0/description").unwrap() = json!(text);
        assert!(compiled(AgentType::Strategic, &plan).is_ok(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_accepted_plan_names_a_foreign_tool(
        n_agent in 0_usize..4, n_place in 0_usize..8, words in prop::collection::vec(0_usize..24, 0..6),
        joint in "[ ,.;:()`\"/-]{1,2}",
    ) {
        let registry = ToolRegistry::coding();
        let all = AgentType::ALL.into_iter().flat_map(|agent| registry.tools_of(agent).map(|tool| tool.name.clone()));
        let all = all.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        let (agent, mut plan) = plans()[n_agent].clone();
        let (of_tool, of_text) = places(agent);
        let at = of_text.get(n_place).copied().unwrap_or(of_tool);
        let text = words.iter().map(|n| all.get(*n).map_or("word", String::as_str)).collect::<Vec<_>>().join(&joint);
        *plan.pointer_mut(at).unwrap() = json!(text);
        if let Ok(proposal) = compiled(agent, &plan) {
            let foreign = all.iter().filter(|name| !registry.owners(name).contains(&agent));
            let written = serde_json::to_string(&proposal.tasks).unwrap();
            let written = written.replace(|char: char| !(char.is_alphanumeric() || "_./-".contains(char)), " ");
            for tool in foreign {
                prop_assert!(!written.split(' ').any(|word| word.trim_matches(['.', '-', '/']) == tool), "{tool} in {plan}");
            }
        }
    }

    #[test]
    fn any_input_is_read_or_refused_without_a_panic(text in "\\PC{0,80}", agent in 0_usize..4) {
        let agent = AgentType::ALL[agent];
        if let Ok(plan) = AgentPlan::read(&text) {
            let _ = plan.compile(agent, &ToolRegistry::coding());
        }
    }
}

fn tool(name: &str) -> Tool {
    let (name, description, kind) = (name.to_owned(), String::new(), NodeKind::Analysis);
    Tool { name, description, kind, command: None, takes_command: false, agent: None }
}

#[test]
fn an_invalid_tool_registry_is_refused() {
    let of = |tools: Vec<Tool>| with(tools, ToolNames::new()).reason;
    for name in ["", "edit", "Edit_code", "edit__code", "_edit", "edit code", "é_b"] {
        assert!(of(vec![tool(name)]).contains("is not a valid tool name"), "{name:?}");
    }
    assert_eq!(of(vec![tool("a_b"), tool("a_b")]), "the tool a_b is defined twice");
    let command = "the command of the tool a_b is empty, or each step has its own";
    assert_eq!(of(vec![Tool { command: Some(" ".into()), ..tool("a_b") }]), command);
    assert_eq!(of(vec![Tool { command: Some("x".into()), takes_command: true, ..tool("a_b") }]), command);
    let many = (0..=TOOLS_MAX).map(|n| tool(&format!("a_{n}"))).collect();
    assert!(of(many).ends_with(", over the maximum of 200"));
    let unknown = with(Vec::new(), [(AgentType::Tactical, BTreeSet::from(["a_b".to_owned()]))].into());
    assert_eq!((&*unknown.tool, unknown.agent), ("a_b", Some(AgentType::Tactical)));
}

fn with(tools: Vec<Tool>, names: ToolNames) -> RegistryError {
    ToolRegistry::coding().with(tools, names, Abilities::new()).unwrap_err()
}
