//! Plans that agents make from words by rule: the parser finds the steps, role and registry choose agent and tool.

use std::collections::BTreeMap;

use crate::agents::compile::kind_of;
use crate::agents::registry::{Tool, ToolRegistry};
use crate::agents::role::FormPart;
use crate::agents::schema::is_id;
use crate::agents::{AgentPlan, Constraint, Goal, PlanError, Role, STEP_TIMEOUT_MS_MAX, Step};
use crate::parse::{self, ParsedPlan, ReadOptions};
use crate::plan::{Mark, NodeKind, RETRIES_MAX, TaskId, TaskPlan};
use crate::protocol::{AgentRequest, AgentType};
use crate::validity::InvalidPlan;

/// The valid plan that an agent of this type makes from words, with its own tools only.
///
/// # Errors
/// [`PlanError`] when the words are not a plan, or when the agent has no tool for a step.
pub fn plan_words(agent: AgentType, words: &str, registry: &ToolRegistry) -> Result<AgentPlan, PlanError> {
    let parsed = read_words(words)?;
    let planner = WordPlanner { role: Role::of(agent), registry };
    let plan = planner.plan(&parsed, words)?;
    plan.compile(agent, registry)?;
    Ok(plan)
}

/// Reads words that were left to an agent. Words without a step by the rules of plan files are one step.
///
/// # Errors
/// As [`parse::read`].
pub fn read_words(words: &str) -> Result<ParsedPlan, InvalidPlan> {
    parse::read(&parse::as_step(words), ReadOptions::default())
}

/// The plan by which an agent answers a request: one step, with its first tool for such work.
///
/// # Errors
/// [`PlanError`] when it has none, or when the request names a foreign tool.
pub fn plan_answer(agent: AgentType, request: &AgentRequest, registry: &ToolRegistry) -> Result<AgentPlan, PlanError> {
    let (ability, text) = request.subject();
    let kind = kind_of(ability);
    let tool = registry.tools_of(agent).find(|tool| tool.kind == kind && !tool.takes_command);
    let tool = tool.ok_or_else(|| no_tool(agent, kind, "answer"))?;
    let args = tool.command.iter().map(|_| text.to_owned()).collect();
    let (id, description, tool) = ("answer".to_owned(), request.instruction(), Some(tool.name.clone()));
    let step = Step { id, description, tool, args, ..Step::default() };
    let plan = AgentPlan { steps: vec![step], ..AgentPlan::default() };
    plan.compile(agent, registry)?;
    Ok(plan)
}

struct WordPlanner<'a> {
    role: &'static Role,
    registry: &'a ToolRegistry,
}

impl WordPlanner<'_> {
    fn plan(&self, parsed: &ParsedPlan, words: &str) -> Result<AgentPlan, PlanError> {
        let is_open = |task: &&TaskPlan| matches!(task.mark, Mark::Open | Mark::InProgress);
        let open = || parsed.tasks.iter().filter(is_open);
        let ids = open().map(|task| (task.id, id_of(task))).collect::<BTreeMap<TaskId, String>>();
        let mut plan = AgentPlan::default();
        if self.role.has(FormPart::Goals) {
            let first_line = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            let description = parsed.title.as_deref().unwrap_or(first_line.trim_start_matches(['#', ' '])).to_owned();
            plan.goals.push(Goal { id: GOAL.into(), description, done_when: None });
        }
        if self.role.has(FormPart::Constraints) {
            let context = parsed.context.iter().filter(|text| !text.trim().is_empty()).cloned();
            plan.constraints = context.map(|description| Constraint { description, goals: Vec::new() }).collect();
        }
        for (task, id) in open().zip(ids.values()) {
            let before = task.depends_on.iter().filter_map(|before| ids.get(&before.task).cloned());
            let before = before.collect::<Vec<_>>();
            if !before.is_empty() {
                plan.dependencies.insert(id.clone(), before);
            }
            if !task.files.is_empty() && self.role.has(FormPart::Resources) {
                plan.resources.get_or_insert_default().files.insert(id.clone(), task.files.clone());
            }
            plan.steps.push(self.step(task, id)?);
        }
        let recorder = self.first_tool(|tool| tool.kind == NodeKind::Processing);
        if let Some(recorder) = recorder.filter(|_| self.role.has(FormPart::Updates) && !plan.steps.is_empty()) {
            let mut id = "found".to_owned();
            while ids.values().any(|taken| taken.eq_ignore_ascii_case(&id)) {
                id.push('-');
            }
            plan.dependencies.insert(id.clone(), ids.into_values().collect());
            let (tool, description) = (Some(recorder.name.clone()), RECORD.to_owned());
            plan.updates.push(Step { id, description, tool, ..Step::default() });
        }
        Ok(plan)
    }

    fn step(&self, task: &TaskPlan, id: &str) -> Result<Step, PlanError> {
        let agent = self.role.hands_to.filter(|_| task.kind != NodeKind::Clarification);
        let agent = agent.map(|(looks, works)| if task.kind == NodeKind::Retrieval { looks } else { works });
        let tool = if agent.is_none() { Some(self.tool_for(task, id)?) } else { None };
        let undo = task.compensate.clone().filter(|_| self.first_tool(|tool| tool.takes_command).is_some());
        Ok(Step {
            id: id.to_owned(),
            description: if agent.is_some() { for_another(task) } else { full_text(task) },
            goals: if self.role.has(FormPart::Goals) { vec![GOAL.into()] } else { Vec::new() },
            command: task.command.clone().filter(|_| tool.is_some()),
            tool,
            agent,
            timeout_ms: task.timeout_ms.map(|ms| ms.clamp(1, STEP_TIMEOUT_MS_MAX)),
            retry: task.retry.map(|n| n.min(RETRIES_MAX)),
            deadline_ms: task.deadline_ms.map(|ms| ms.clamp(1, STEP_TIMEOUT_MS_MAX)),
            undo,
            ..Step::default()
        })
    }

    /// The agent's first tool for such a task, else one for work of no special kind.
    fn tool_for(&self, task: &TaskPlan, step: &str) -> Result<String, PlanError> {
        use NodeKind::{
            Analysis, Clarification, CodeImplementation, Processing, Refactor, Retrieval, ToolCall, UnitTest,
        };
        let is_read_only = self.role.is_read_only;
        let general = (!is_read_only).then_some(Processing);
        let kinds = match task.kind {
            Clarification => [Some(Clarification), None],
            Retrieval | Analysis | ToolCall => [Some(task.kind), general],
            // A read-only agent's tool for `Processing` records findings; such a step may be something to look for.
            Processing if is_read_only => [Some(Retrieval), None],
            Processing | UnitTest | Refactor | CodeImplementation => [general.map(|_| task.kind), general],
        };
        let is_for = |tool: &Tool, kind: NodeKind| match task.command {
            Some(_) => tool.takes_command,
            None => !tool.takes_command && tool.command.is_none() && tool.kind == kind,
        };
        let found = kinds.into_iter().flatten().find_map(|kind| self.first_tool(|tool| is_for(tool, kind)));
        found.map(|tool| tool.name.clone()).ok_or_else(|| no_tool(self.role.agent, task.kind, step))
    }

    fn first_tool(&self, is_wanted: impl Fn(&Tool) -> bool) -> Option<&Tool> {
        self.registry.tools_of(self.role.agent).find(|tool| is_wanted(tool))
    }
}

fn no_tool(agent: AgentType, kind: NodeKind, step: &str) -> PlanError {
    let kind = kind.as_str();
    let rule = format!("a {agent} agent has no tool for {kind}; give it one under [agents.{agent}] in crewlog.toml");
    PlanError::NoTool(step.to_owned(), rule)
}

/// The id of the only goal of words.
const GOAL: &str = "goal";
/// The step that records what a read-only agent has found.
const RECORD: &str = "Record the findings, with paths and lines";

/// The label of a task where it can be an id, else its number.
fn id_of(task: &TaskPlan) -> String {
    task.label.clone().filter(|label| is_id(label)).unwrap_or_else(|| format!("step-{}", task.id))
}

/// The text of a task for another agent, which parses it again: constraints stay below the step, so that they do not
/// become steps.
fn for_another(task: &TaskPlan) -> String {
    let text = full_text(task);
    match text.split_once('\n') {
        Some((step, notes)) => format!("1. {step}\n   - {}", notes.replace('\n', "\n   - ")),
        None => text,
    }
}

/// The text of a task with its condition and its constraints.
fn full_text(task: &TaskPlan) -> String {
    let condition = task.condition.as_ref().map(|condition| {
        let unless = if condition.negated { "Only if this does not hold" } else { "Only if this holds" };
        format!("{unless}: {}", condition.text)
    });
    let lines = std::iter::once(task.description.clone()).chain(condition).chain(task.notes.iter().cloned());
    lines.collect::<Vec<_>>().join("\n")
}
