//! Checks an agent's plan against its role, and compiles its steps to tasks.

use std::collections::{BTreeSet, HashMap};

use serde_json::json;

use crate::agents::registry::{Tool, ToolRegistry};
use crate::agents::{AgentPlan, Goal, PlanError, Role, Step, schema};
use crate::plan::{AgentOrigin, Dependency, NodeKind, Origin, Proposal, Strength, SubPlan, TaskId, TaskPlan};
use crate::protocol::{Ability, AgentType, CrossAgentStep};
use crate::validity::validate;

impl AgentPlan {
    /// Checks the plan by the rules of its agent's role and compiles it to tasks. Its source is the plan as JSON.
    ///
    /// # Errors
    /// The first rule it breaks, with the place in the plan.
    pub fn compile(&self, agent: AgentType, registry: &ToolRegistry) -> Result<Proposal, PlanError> {
        let role = Role::of(agent);
        let value = serde_json::to_value(self).expect("texts, numbers and lists can always be written as JSON");
        registry.check_tool_names(agent, &value)?;
        schema::check(agent, &value, &schema::schema(agent, registry), "")?;
        let tasks = Compiler { registry, plan: self }.tasks()?;
        validate(&tasks)?;
        let goals = self.goals.iter().map(Goal::text);
        let resolution = self.resolution.iter().map(|resolution| resolution.text());
        let capacities = self.resources.iter().flat_map(|resources| &resources.capacities);
        let capacities = capacities.map(|(name, amount)| format!("needs {amount} of {name}"));
        let tools = registry.tools_of(agent).map(|tool| tool.name.clone()).collect();
        let origin = AgentOrigin { agent, version: role.version, tools };
        Ok(Proposal {
            tasks,
            title: self.goals.first().map(|goal| goal.description.trim().to_owned()),
            source: self.json(),
            context: goals.chain(resolution).chain(capacities).collect(),
            origin: Origin { agent: Some(origin), ..Origin::default() },
        })
    }
}

/// A plan during its compilation.
struct Compiler<'a> {
    registry: &'a ToolRegistry,
    plan: &'a AgentPlan,
}

/// The index of each id in its list.
type Indexes = HashMap<String, usize>;

impl Compiler<'_> {
    fn tasks(&self) -> Result<Vec<TaskPlan>, PlanError> {
        let plan = self.plan;
        let steps = places("/steps", &plan.steps).chain(places("/updates", &plan.updates)).collect::<Vec<_>>();
        let ids = index(steps.iter().map(|(at, step)| (at.clone(), &*step.id)))?;
        let goals = index(places("/goals", &plan.goals).map(|(at, goal)| (at, &*goal.id)))?;
        let constraints = places("/constraints", &plan.constraints).map(|(at, one)| (at, &one.goals));
        for (at, named) in constraints.chain(steps.iter().map(|(at, step)| (at.clone(), &step.goals))) {
            let at = format!("{at}/goals");
            named.iter().try_for_each(|id| find(&goals, id, &at).map(drop))?;
        }
        let mut before = vec![BTreeSet::new(); steps.len()];
        for (id, others) in &plan.dependencies {
            let at = format!("/dependencies/{id}");
            let step = find(&ids, id, &at)?;
            for other in others {
                before[step].insert(find(&ids, other, &at)?);
            }
        }
        // Each update follows the one before it.
        for (n, before) in before.iter_mut().enumerate().skip(plan.steps.len() + 1) {
            before.insert(n - 1);
        }
        let mut files = vec![Vec::new(); steps.len()];
        for (id, paths) in plan.resources.iter().flat_map(|resources| &resources.files) {
            files[find(&ids, id, &format!("/resources/files/{id}"))?].clone_from(paths);
        }
        let mut tasks = Vec::with_capacity(steps.len());
        for (n, ((at, step), (before, files))) in steps.iter().zip(before.into_iter().zip(files)).enumerate() {
            let mut task = TaskPlan::new(number(n), NodeKind::Processing, step.description.trim());
            let depends_on = before.into_iter().map(|n| Dependency { task: number(n), strength: Strength::Hard });
            (task.depends_on, task.files) = (depends_on.collect(), files);
            self.fill_in(&mut task, step, at)?;
            tasks.push(task);
        }
        Ok(tasks)
    }

    fn fill_in(&self, task: &mut TaskPlan, step: &Step, at: &str) -> Result<(), PlanError> {
        (task.label, task.notes) = (Some(step.id.clone()), self.notes(step));
        (task.timeout_ms, task.deadline_ms, task.retry) = (step.timeout_ms, step.deadline_ms, step.retry);
        task.compensate.clone_from(&step.undo);
        match (&step.tool, step.agent, &step.request) {
            (Some(tool), None, None) => self.use_tool(tool, step, at, task)?,
            (None, Some(to), None) => {
                let text = delegated(&task.description, &task.notes);
                task.sub_plan = Some(SubPlan { text, agent: Some(to.as_str().to_owned()), request: None });
            }
            (None, None, Some(request)) => self.ask(request, step, at, task)?,
            (None | Some(_), None | Some(_), None | Some(_)) => {
                return Err(broken(at, "name exactly one of tool, agent and request"));
            }
        }
        if step.tool.is_none() && (step.command.is_some() || !step.args.is_empty()) {
            return Err(broken(at, "a command or an argument needs a tool: name one"));
        }
        Ok(())
    }

    /// The goals and constraints of a step, for its executor.
    fn notes(&self, step: &Step) -> Vec<String> {
        let is_its = |id: &String| step.goals.iter().any(|goal| goal.eq_ignore_ascii_case(id));
        let goals = self.plan.goals.iter().filter(|goal| is_its(&goal.id)).map(Goal::text);
        let constraints =
            self.plan.constraints.iter().filter(|one| one.goals.is_empty() || one.goals.iter().any(is_its));
        let constraints = constraints.map(|one| format!("constraint: {}", one.description.trim()));
        let resolution = self.plan.resolution.iter().map(|resolution| resolution.text());
        goals.chain(constraints).chain(resolution).collect()
    }

    fn use_tool(&self, name: &str, step: &Step, at: &str, task: &mut TaskPlan) -> Result<(), PlanError> {
        let Some(Tool { name, kind, command, takes_command, agent, .. }) = self.registry.tool(name) else {
            return Err(broken(at, format!("unknown tool {name:?}")));
        };
        (task.tool, task.kind) = (Some(name.clone()), *kind);
        task.assignee.clone_from(agent);
        task.command = match (command, &step.command) {
            (Some(_), Some(_)) => return Err(broken(at, "the tool has its own command and does not accept another")),
            (Some(line), None) => Some(with_args(line, &step.args)),
            (None, Some(line)) if *takes_command => Some(line.clone()),
            (None, Some(_)) => return Err(broken(at, "the tool does not accept a command")),
            (None, None) if *takes_command => return Err(broken(at, "the tool needs a command")),
            (None, None) => None,
        };
        if command.is_none() && !step.args.is_empty() {
            return Err(broken(at, "the tool does not accept arguments"));
        }
        Ok(())
    }

    /// A request is a sub-plan of the other agent, with a time limit.
    fn ask(&self, ask: &CrossAgentStep, step: &Step, at: &str, task: &mut TaskPlan) -> Result<(), PlanError> {
        let CrossAgentStep { target_agent: to, request, timeout_ms } = ask;
        if step.retry.is_some() || step.undo.is_some() || step.timeout_ms.is_some() {
            return Err(broken(at, "a request has its own time-out and cannot have a retry or an undo command"));
        }
        let (ability, _) = request.subject();
        let answers = self.registry.answers(*to);
        if !answers.contains(&ability) {
            let rule = format!("a {to} agent does not answer {}: it answers {}", json!(ability), json!(answers));
            return Err(broken(&format!("{at}/request"), rule));
        }
        task.kind = kind_of(ability);
        (task.timeout_ms, task.retry) = (Some(*timeout_ms), Some(0));
        let (text, agent) = (request.instruction(), Some(to.as_str().to_owned()));
        task.sub_plan = Some(SubPlan { text, agent, request: Some(request.clone()) });
        Ok(())
    }
}

/// The kind of the task that answers a request.
pub(super) fn kind_of(ability: Ability) -> NodeKind {
    match ability {
        Ability::Analyse => NodeKind::Analysis,
        Ability::Extract | Ability::Locate => NodeKind::Retrieval,
    }
}

fn places<'a, T>(list: &'static str, items: &'a [T]) -> impl Iterator<Item = (String, &'a T)> {
    items.iter().enumerate().map(move |(n, item)| (format!("{list}/{n}"), item))
}

fn number(index: usize) -> TaskId {
    TaskId(index as u64 + 1)
}

/// A step as a text for the agent it is delegated to. Goals and constraints go into a section without steps.
fn delegated(step: &str, notes: &[String]) -> String {
    if notes.is_empty() {
        return step.to_owned();
    }
    let is_item = |line: &str| {
        let line = line.trim_start();
        let rest = line.trim_start_matches(|char: char| char.is_ascii_digit());
        line.starts_with(['-', '*', '+', '#', '|'])
            || rest.len() < line.len() && (rest.starts_with(". ") || rest.starts_with(") "))
    };
    // Next to a list of notes, plain prose would be read as its introduction.
    let is_list = step.lines().any(is_item);
    let step = if is_list { step.to_owned() } else { format!("- {}", step.replace('\n', "\n  ")) };
    let notes = notes.iter().map(|note| format!("- {}", note.replace('\n', " "))).collect::<Vec<_>>();
    format!("## Background\n\n{}\n\n## Tasks\n\n{step}\n", notes.join("\n"))
}

fn broken(at: &str, rule: impl Into<String>) -> PlanError {
    PlanError::Rule(at.to_owned(), rule.into())
}

/// A command with arguments, each a single word for the shell.
fn with_args(line: &str, args: &[String]) -> String {
    let quoted = args.iter().map(|arg| format!(" '{}'", arg.replace('\'', r"'\''")));
    format!("{line}{}", quoted.collect::<String>())
}

/// Indexes ids without regard to case, as people name tasks.
fn index<'a>(ids: impl Iterator<Item = (String, &'a str)>) -> Result<Indexes, PlanError> {
    let mut indexed = Indexes::new();
    for (index, (at, id)) in ids.enumerate() {
        if indexed.insert(id.to_lowercase(), index).is_some() {
            return Err(broken(&format!("{at}/id"), format!("the id {id:?} is used twice")));
        }
    }
    Ok(indexed)
}

fn find(ids: &Indexes, id: &str, at: &str) -> Result<usize, PlanError> {
    ids.get(&id.to_lowercase()).copied().ok_or_else(|| broken(at, format!("the plan has no id {id:?}")))
}
