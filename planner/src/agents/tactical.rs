//! The plan of a tactical agent: how a task is carried out, step by step, and what that needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::agents::lower::{
    self, CARE, Care, Does, Lowered, REQUEST, Step, VERSION, check_length, check_some, check_text, one_of,
};
use crate::agents::registry::ToolRegistry;
use crate::agents::shape::{Field, Shape, Whom, may, needed};
use crate::agents::{Form, PlanError, STEP_TIMEOUT_MS_MAX};
use crate::protocol::{AgentType, CrossAgentStep};

/// Steps, what waits for what, and what is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TacticalPlan {
    /// Of the form.
    #[serde(default = "TacticalPlan::first_version")]
    pub version: u32,
    /// In order; each becomes a task.
    pub execution_steps: Vec<TacticalStep>,
    /// What waits for what.
    #[serde(default)]
    pub dependencies: DependencyGraph,
    /// What the steps need.
    #[serde(default)]
    pub resource_requirements: ResourceMap,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TacticalStep {
    /// By which the rest of the plan names it.
    pub id: String,
    /// What is done.
    pub step: String,
    /// The tool with which the agent itself does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Further words for a tool that has a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The line for the shell, for a tool that takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What another agent is asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<CrossAgentStep>,
    /// Who makes a plan of its own for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentType>,
    /// Milliseconds after which a run of it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What is done about its failures, and about what it did.
    #[serde(default, skip_serializing_if = "Care::is_none")]
    pub care: Care,
}

/// By step: the steps that it waits for. A step that is not named waits for none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DependencyGraph(pub BTreeMap<String, Vec<String>>);

/// What the steps of a plan need.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceMap {
    /// By step: the paths and globs that it works on.
    pub files: BTreeMap<String, Vec<String>>,
    /// The other types of agent that it takes; whoever is asked, or left work to, must be among them.
    pub agent_types: BTreeSet<AgentType>,
    /// Whatever else there is a limited amount of, and how much is needed.
    pub capacities: BTreeMap<String, u64>,
}

impl TacticalPlan {
    const fn first_version() -> u32 {
        1
    }

    fn check_lists(&self) -> Result<(), PlanError> {
        let Self { version: _, execution_steps, dependencies, resource_requirements } = self;
        let ResourceMap { files, agent_types: _, capacities } = resource_requirements;
        check_some(execution_steps, "/execution_steps")?;
        check_length(execution_steps.len(), "/execution_steps")?;
        check_length(dependencies.0.len(), "/dependencies")?;
        check_length(files.len(), "/resource_requirements/files")?;
        check_length(capacities.len(), "/resource_requirements/capacities")?;
        let known = execution_steps.iter().map(|step| step.id.to_lowercase()).collect::<BTreeSet<_>>();
        let named = [(&dependencies.0, "/dependencies"), (files, "/resource_requirements/files")];
        for (named, at) in named {
            for (id, values) in named {
                let at = format!("{at}/{id}");
                check_length(values.len(), &at)?;
                if !known.contains(&id.to_lowercase()) {
                    return Err(PlanError::UnknownId { id: id.clone(), at });
                }
            }
        }
        for (id, paths) in files {
            for (n, path) in paths.iter().enumerate() {
                check_text(path, format!("/resource_requirements/files/{id}/{n}"))?;
            }
        }
        Ok(())
    }

    /// Whoever is asked must be listed.
    fn check_required(&self, step: &TacticalStep, at: &str) -> Result<(), PlanError> {
        let others = step.agent.into_iter().chain(step.request.as_ref().map(|request| request.target_agent));
        let mut missing = others.filter(|agent| !self.resource_requirements.agent_types.contains(agent));
        missing.next().map_or(Ok(()), |agent| Err(PlanError::NotRequired { agent, at: at.to_owned() }))
    }
}

const STEP: &[Field] = &[
    needed("id", &Shape::Id, "by which name the rest of the plan calls the step", r#""edit""#),
    needed("step", &Shape::Text, "what is done", r#""Write the parser""#),
    may("tool", &Shape::Tool, "with which tool of the agent's own it is done", r#""edit_code""#),
    may("args", &Shape::List(&Shape::Text), "which further words the tool's command is given", r#"["src/lib.rs"]"#),
    may("command", &Shape::Text, "which line the tool has the shell run", r#""cargo test""#),
    REQUEST,
    may("agent", &Shape::Agent(Whom::Below), "which agent makes a plan of its own for it", r#""perception""#),
    may(
        "timeout_ms",
        &Shape::Millis(STEP_TIMEOUT_MS_MAX),
        "after how many milliseconds a run of it is stopped",
        "60000",
    ),
    CARE,
];

const RESOURCES: &[Field] = &[
    may(
        "files",
        &Shape::ByName(&Shape::List(&Shape::Text)),
        "by the id of a step, which paths and globs it works on",
        r#"{ "edit": ["src/**"] }"#,
    ),
    may(
        "agent_types",
        &Shape::List(&Shape::Agent(Whom::Any)),
        "which other types of agent the steps need",
        r#"["perception"]"#,
    ),
    may(
        "capacities",
        &Shape::ByName(&Shape::Amount),
        "of what else there is a limited amount, and how much of it is needed",
        r#"{ "cores": 2 }"#,
    ),
];

impl Form for TacticalPlan {
    const AGENT: AgentType = AgentType::Tactical;
    const VERSION: u32 = 1;
    const FIELDS: &'static [Field] = &[
        VERSION,
        needed(
            "execution_steps",
            &Shape::List(&Shape::Fields(STEP)),
            "which steps there are, in order",
            r#"[{ "id": "edit", "step": "Write the parser", "tool": "edit_code" }]"#,
        ),
        may(
            "dependencies",
            &Shape::ByName(&Shape::List(&Shape::Text)),
            "by the id of a step, which steps it waits for",
            r#"{ "run": ["edit"] }"#,
        ),
        may(
            "resource_requirements",
            &Shape::Fields(RESOURCES),
            "what the steps need",
            r#"{ "agent_types": ["perception"] }"#,
        ),
    ];

    fn lower(&self, registry: &ToolRegistry) -> Result<Lowered, PlanError> {
        self.check_lists()?;
        let of = |named: &BTreeMap<String, Vec<String>>, id: &str| {
            let found = named.iter().filter(|(named, _)| named.eq_ignore_ascii_case(id));
            found.flat_map(|(_, values)| values.clone()).collect::<Vec<_>>()
        };
        let before = self.execution_steps.iter().map(|step| of(&self.dependencies.0, &step.id)).collect::<Vec<_>>();
        let mut steps = Vec::new();
        for (n, (step, before)) in self.execution_steps.iter().zip(&before).enumerate() {
            let at = format!("/execution_steps/{n}");
            let tool = |name| Does::Tool { name, args: &step.args, command: step.command.as_deref() };
            let ways = [
                step.tool.as_deref().map(tool),
                step.request.as_ref().map(Does::Ask),
                step.agent.map(|to| Does::Delegate { to, text: step.step.trim().to_owned() }),
            ];
            let does = one_of(ways, &at, "tool, request and agent")?;
            if step.tool.is_none() && (step.command.is_some() || !step.args.is_empty()) {
                return Err(PlanError::OneOf { at, allowed: "tool, when there is a command or an argument" });
            }
            self.check_required(step, &at)?;
            steps.push(Step {
                after: before.iter().map(String::as_str).collect(),
                files: of(&self.resource_requirements.files, &step.id),
                timeout_ms: step.timeout_ms,
                care: step.care.clone(),
                after_at: format!("/dependencies/{}", step.id),
                ..Step::new(&step.id, &step.step, does, at)
            });
        }
        let tasks = lower::tasks(Self::AGENT, registry, steps)?;
        let capacities = self.resource_requirements.capacities.iter();
        let context = capacities.map(|(what, how_much)| format!("needs {how_much} of {what}")).collect();
        Ok(Lowered { tasks, title: None, context })
    }
}
