//! Plans of agents made of words by rule: the parser says what the steps are, the agent's own registry with what they are
//! done. The same words and tools give the same plan.

use std::collections::BTreeMap;

use crate::agents::registry::{Tool, ToolRegistry};
use crate::agents::{
    AgentPlan, Assignment, Care, DependencyGraph, DramaticBeat, ExtractionPattern, ID_CHARS_MAX, NarrativeGoal,
    OrchestrationPlan, PerceptionPlan, PlanError, ResolutionStrategy, ResourceMap, StateUpdate, StrategicPlan,
    TacticalPlan, TacticalStep, Theme,
};
use crate::parse::{self, ParsedPlan, ReadOptions};
use crate::plan::{Mark, NodeKind, TaskId, TaskPlan};
use crate::protocol::{Ability, AgentType, CrossAgentStep};
use crate::validity::InvalidPlan;

/// The plan that an agent of this type makes of words, with its own tools alone; it is validated.
///
/// # Errors
/// [`PlanError`] when the words are no plan, or when the agent has no tool for a step of it.
pub fn plan_words(agent: AgentType, words: &str, registry: &ToolRegistry) -> Result<AgentPlan, PlanError> {
    let parsed = read_words(words).map_err(|error| PlanError::Words { error })?;
    let wording = Wording::of(agent, parsed, registry);
    let plan = match agent {
        AgentType::Strategic => AgentPlan::Strategic(wording.strategic(words)?),
        AgentType::Tactical => AgentPlan::Tactical(wording.tactical()?),
        AgentType::Perception => AgentPlan::Perception(wording.perception()?),
        AgentType::Orchestrator => AgentPlan::Orchestration(wording.orchestration()?),
    };
    plan.validate(registry)?;
    Ok(plan)
}

/// Reads what somebody left to an agent. Words without a step by the rules of plan files are one step.
///
/// # Errors
/// As [`parse::read`].
pub fn read_words(words: &str) -> Result<ParsedPlan, InvalidPlan> {
    parse::read(&parse::as_step(words), ReadOptions::default())
}

/// What the parser made of the words, on its way to a form.
struct Wording<'a> {
    agent: AgentType,
    registry: &'a ToolRegistry,
    parsed: ParsedPlan,
    /// By task: the id of its step. Those that are done or given up have none.
    ids: BTreeMap<TaskId, String>,
}

impl<'a> Wording<'a> {
    fn of(agent: AgentType, parsed: ParsedPlan, registry: &'a ToolRegistry) -> Self {
        let is_open = |task: &&TaskPlan| matches!(task.mark, Mark::Open | Mark::InProgress);
        let ids = parsed.tasks.iter().filter(is_open).map(|task| (task.id, id_of(task))).collect();
        Self { agent, registry, parsed, ids }
    }

    /// The steps: their ids, their tasks, and what they wait for.
    fn steps(&self) -> impl Iterator<Item = (String, &TaskPlan, Vec<String>)> {
        self.parsed.tasks.iter().filter_map(|task| {
            let after = task.depends_on.iter().filter_map(|before| self.ids.get(&before.task).cloned());
            Some((self.ids.get(&task.id)?.clone(), task, after.collect()))
        })
    }

    fn strategic(&self, words: &str) -> Result<StrategicPlan, PlanError> {
        let first_line = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let goal = self.parsed.title.clone().unwrap_or_else(|| first_line.trim_start_matches(['#', ' ']).to_owned());
        let goal = NarrativeGoal { id: "goal".into(), goal, reached_when: None };
        let themes = self.parsed.context.iter().filter(|text| !text.trim().is_empty());
        let beats = self.steps().map(|(id, task, after)| {
            let asks = task.kind == NodeKind::Clarification;
            let tool = if asks { Some(self.tool_for(task, &id)?) } else { None };
            let (agent, goals) = ((!asks).then_some(AgentType::Tactical), vec!["goal".to_owned()]);
            let care = self.care(task);
            Ok(DramaticBeat { id, milestone: left(task), goals, after, agent, tool, request: None, care })
        });
        Ok(StrategicPlan {
            version: 1,
            narrative_goals: vec![goal],
            thematic_elements: themes.map(|text| Theme { constraint: text.clone(), goals: Vec::new() }).collect(),
            dramatic_beats: beats.collect::<Result<_, _>>()?,
        })
    }

    fn tactical(&self) -> Result<TacticalPlan, PlanError> {
        let mut plan = TacticalPlan {
            version: 1,
            execution_steps: Vec::new(),
            dependencies: DependencyGraph::default(),
            resource_requirements: ResourceMap::default(),
        };
        for (id, task, after) in self.steps() {
            let tool = Some(self.tool_for(task, &id)?);
            if !after.is_empty() {
                plan.dependencies.0.insert(id.clone(), after);
            }
            if !task.files.is_empty() {
                plan.resource_requirements.files.insert(id.clone(), task.files.clone());
            }
            let (step, command, timeout_ms) = (said(task), task.command.clone(), task.timeout_ms);
            let (args, request, agent, care) = (Vec::new(), None, None, self.care(task));
            let step = TacticalStep { id, step, tool, args, command, request, agent, timeout_ms, care };
            plan.execution_steps.push(step);
        }
        Ok(plan)
    }

    fn perception(&self) -> Result<PerceptionPlan, PlanError> {
        let patterns = self.steps().map(|(id, task, _)| {
            let (look_for, within, args, care) = (said(task), task.files.clone(), Vec::new(), self.care(task));
            Ok(ExtractionPattern { tool: self.tool_for(task, &id)?, id, look_for, within, args, care })
        });
        let extraction_patterns = patterns.collect::<Result<Vec<_>, PlanError>>()?;
        let keeper = self.first_tool(|tool| tool.kind == NodeKind::Processing).map(|tool| tool.name.clone());
        let id = free_id("found", &self.ids);
        let from = extraction_patterns.iter().map(|pattern| pattern.id.clone()).collect::<Vec<_>>();
        let keep = keeper.filter(|_| !from.is_empty()).map(|tool| StateUpdate {
            id,
            keep: "Write down what was found, with paths and lines".into(),
            from,
            tool,
            care: Care::default(),
        });
        let entity_resolution_strategy = ResolutionStrategy::default();
        let state_update_sequence = keep.into_iter().collect();
        Ok(PerceptionPlan { version: 1, extraction_patterns, entity_resolution_strategy, state_update_sequence })
    }

    fn orchestration(&self) -> Result<OrchestrationPlan, PlanError> {
        let assignments = self.steps().map(|(id, task, after)| {
            let agent = match task.kind {
                NodeKind::Clarification => None,
                NodeKind::Retrieval => Some(AgentType::Perception),
                NodeKind::ToolCall
                | NodeKind::Processing
                | NodeKind::UnitTest
                | NodeKind::Analysis
                | NodeKind::Refactor
                | NodeKind::CodeImplementation => Some(AgentType::Tactical),
            };
            let tool = if agent.is_none() { Some(self.tool_for(task, &id)?) } else { None };
            let (work, timeout_ms, care) = (left(task), task.timeout_ms, self.care(task));
            Ok(Assignment { id, work, agent, tool, request: None, after, timeout_ms, care })
        });
        Ok(OrchestrationPlan { version: 1, assignments: assignments.collect::<Result<_, PlanError>>()? })
    }

    /// What the text says of a task's failures, and of undoing it, as far as the agent may say it.
    fn care(&self, task: &TaskPlan) -> Care {
        Care::of(task, self.agent, self.registry)
    }

    /// The agent's first tool for such a task; for what is no question, else one for work of no special kind.
    fn tool_for(&self, task: &TaskPlan, step: &str) -> Result<String, PlanError> {
        let is_for = |kind: NodeKind| {
            move |tool: &Tool| {
                let runs = tool.takes_command || tool.command.is_some();
                if task.command.is_some() { tool.takes_command } else { !runs && tool.kind == kind }
            }
        };
        let found = self.first_tool(is_for(task.kind)).filter(|_| !self.only_looks() || looks(task.kind));
        let found = found.or_else(|| match task.kind {
            NodeKind::Clarification => None,
            // What is of no special kind may be something to look for.
            NodeKind::Processing if self.only_looks() => self.first_tool(is_for(NodeKind::Retrieval)),
            NodeKind::ToolCall
            | NodeKind::Processing
            | NodeKind::UnitTest
            | NodeKind::Retrieval
            | NodeKind::Analysis
            | NodeKind::Refactor
            | NodeKind::CodeImplementation => {
                self.first_tool(is_for(NodeKind::Processing)).filter(|_| !self.only_looks())
            }
        });
        let none = || PlanError::NoTool { agent: self.agent, kind: task.kind.as_str(), step: step.to_owned() };
        found.map(|tool| tool.name.clone()).ok_or_else(none)
    }

    /// A perception agent changes nothing; its tool for work of no special kind is for what it has found.
    fn only_looks(&self) -> bool {
        self.agent == AgentType::Perception
    }

    fn first_tool(&self, is_wanted: impl Fn(&Tool) -> bool) -> Option<&Tool> {
        self.registry.tools_of(self.agent).find(|tool| is_wanted(tool))
    }
}

fn looks(kind: NodeKind) -> bool {
    match kind {
        NodeKind::Retrieval | NodeKind::Analysis | NodeKind::Clarification | NodeKind::ToolCall => true,
        NodeKind::Processing | NodeKind::UnitTest | NodeKind::Refactor | NodeKind::CodeImplementation => false,
    }
}

/// The plan by which an agent answers a request: one step, with its first tool for such work.
///
/// # Errors
/// [`PlanError`] when it has none, or when the request names a tool of others.
pub fn plan_answer(step: &CrossAgentStep, registry: &ToolRegistry) -> Result<AgentPlan, PlanError> {
    let agent = step.target_agent;
    let kind = match step.request.ability() {
        Ability::Analyse => NodeKind::Analysis,
        Ability::Extract | Ability::Locate => NodeKind::Retrieval,
    };
    let tool = registry.tools_of(agent).find(|tool| tool.kind == kind && !tool.takes_command);
    let none = || PlanError::NoTool { agent, kind: kind.as_str(), step: "answer".into() };
    let tool = tool.ok_or_else(none)?;
    let (id, words) = ("answer".to_owned(), step.request.words());
    let args = tool.command.iter().map(|_| step.request.text().to_owned()).collect::<Vec<_>>();
    let tool = tool.name.clone();
    let plan = match agent {
        AgentType::Strategic => AgentPlan::Strategic(StrategicPlan {
            version: 1,
            narrative_goals: Vec::new(),
            thematic_elements: Vec::new(),
            dramatic_beats: vec![DramaticBeat {
                id,
                milestone: words,
                goals: Vec::new(),
                after: Vec::new(),
                agent: None,
                tool: Some(tool),
                request: None,
                care: Care::default(),
            }],
        }),
        AgentType::Tactical => {
            let (tool, step, timeout_ms, command) = (Some(tool), words, None, None);
            let (request, agent, care) = (None, None, Care::default());
            let only = TacticalStep { id, step, tool, args, command, request, agent, timeout_ms, care };
            AgentPlan::Tactical(TacticalPlan {
                version: 1,
                execution_steps: vec![only],
                dependencies: DependencyGraph::default(),
                resource_requirements: ResourceMap::default(),
            })
        }
        AgentType::Perception => AgentPlan::Perception(PerceptionPlan {
            version: 1,
            extraction_patterns: vec![ExtractionPattern {
                id,
                look_for: words,
                within: Vec::new(),
                tool,
                args,
                care: Care::default(),
            }],
            entity_resolution_strategy: ResolutionStrategy::default(),
            state_update_sequence: Vec::new(),
        }),
        AgentType::Orchestrator => {
            let (work, tool, after, care) = (words, Some(tool), Vec::new(), Care::default());
            let only = Assignment { id, work, agent: None, tool, request: None, after, timeout_ms: None, care };
            AgentPlan::Orchestration(OrchestrationPlan { version: 1, assignments: vec![only] })
        }
    };
    plan.validate(registry)?;
    Ok(plan)
}

/// The label of a task where it can be an id, else its number.
fn id_of(task: &TaskPlan) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    let is_id = |label: &&String| !label.is_empty() && label.len() <= ID_CHARS_MAX && label.chars().all(is_plain);
    task.label.as_ref().filter(is_id).cloned().unwrap_or_else(|| format!("step-{}", task.id))
}

fn free_id(wanted: &str, taken: &BTreeMap<TaskId, String>) -> String {
    let is_free = |id: &String| !taken.values().any(|taken| taken.eq_ignore_ascii_case(id));
    let numbered = (2_u32..).map(|n| format!("{wanted}-{n}"));
    std::iter::once(wanted.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// The words of a task for another agent, which reads them again: what limits the task is below it, so that none of it
/// becomes a step.
fn left(task: &TaskPlan) -> String {
    let said = said(task);
    match said.split_once('\n') {
        Some((step, limits)) => format!("1. {step}\n   - {}", limits.replace('\n', "\n   - ")),
        None => said,
    }
}

/// The words of a task, with what limits it.
fn said(task: &TaskPlan) -> String {
    let condition = task.condition.as_ref().map(|condition| {
        let unless = if condition.negated { "only if it is not so" } else { "only if it is so" };
        format!("{unless}: {}", condition.text)
    });
    let lines = std::iter::once(task.description.clone()).chain(condition).chain(task.notes.iter().cloned());
    lines.collect::<Vec<_>>().join("\n")
}
