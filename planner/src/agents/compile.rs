//! Checks an agent's plan against its role, and compiles its steps to tasks.

use std::collections::{BTreeMap, HashMap};

use crate::agents::registry::{TOOL_COMMAND_BYTES_MAX, Tool, ToolRegistry};
use crate::agents::{
    AgentPlan, Constraint, Goal, ID_CHARS_MAX, Part, PlanError, Resources, Role, STEP_TIMEOUT_MS_MAX, STEPS_MAX, Step,
};
use crate::plan::{
    AgentOrigin, Dependency, NodeKind, Origin, Proposal, RETRIES_MAX, Strength, SubPlan, TaskId, TaskPlan,
};
use crate::protocol::{Ability, AgentType, CrossAgentStep, REQUEST_BYTES_MAX, REQUEST_TIMEOUT_MS_MAX};
use crate::validity::validate;

impl AgentPlan {
    /// Checks the plan by the rules of its agent's role and compiles it to tasks. Its source is the plan as JSON.
    ///
    /// # Errors
    /// The first rule it breaks, with the place in the plan.
    pub fn compile(&self, agent: AgentType, registry: &ToolRegistry) -> Result<Proposal, PlanError> {
        let role = Role::of(agent);
        self.check_parts(role)?;
        let value = serde_json::to_value(self).expect("texts, numbers and lists can always be written as JSON");
        registry.check_words(agent, &value)?;
        let goals = index(self.goals.iter().enumerate().map(|(n, goal)| (&*goal.id, format!("/goals/{n}/id"))))?;
        let steps = places("/steps", &self.steps).chain(places("/updates", &self.updates)).collect::<Vec<_>>();
        let ids = index(steps.iter().map(|(at, step)| (&*step.id, format!("{at}/id"))))?;
        let compiler = Compiler { role, registry, plan: self, goals, ids };
        let tasks = compiler.tasks(&steps)?;
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

    /// Checks that every part belongs to the role, says something and keeps to its limit.
    fn check_parts(&self, role: &Role) -> Result<(), PlanError> {
        let Self { goals, constraints, steps, updates, dependencies, resources, resolution } = self;
        let parts = [
            (Part::Goals, !goals.is_empty(), "/goals"),
            (Part::Constraints, !constraints.is_empty(), "/constraints"),
            (Part::Updates, !updates.is_empty(), "/updates"),
            (Part::Resources, resources.is_some(), "/resources"),
            (Part::Resolution, resolution.is_some(), "/resolution"),
        ];
        if let Some((_, _, at)) = parts.into_iter().find(|(part, is_there, _)| *is_there && !role.has(*part)) {
            return Err(broken(at, format!("a {} plan has no such part", role.agent)));
        }
        let n_lists = |lists: &BTreeMap<String, Vec<String>>| lists.values().map(Vec::len).max().unwrap_or(0);
        let no_resources = Resources::default();
        let Resources { files, agent_types: _, capacities } = resources.as_ref().unwrap_or(&no_resources);
        let lengths = [
            (goals.len(), "/goals"),
            (constraints.len(), "/constraints"),
            (steps.len(), "/steps"),
            (updates.len(), "/updates"),
            (dependencies.len().max(n_lists(dependencies)), "/dependencies"),
            (files.len().max(n_lists(files)), "/resources/files"),
            (capacities.len(), "/resources/capacities"),
        ];
        for (length, at) in lengths {
            check_range(length as u64, 0, STEPS_MAX as u64, at)?;
        }
        check_not_empty(resolution.as_ref().is_some_and(|resolution| resolution.by.is_empty()), "/resolution/by")?;
        for (n, Goal { description, .. }) in goals.iter().enumerate() {
            check_text(description, &format!("/goals/{n}/description"))?;
        }
        for (n, Constraint { description, .. }) in constraints.iter().enumerate() {
            check_text(description, &format!("/constraints/{n}/description"))?;
        }
        let mut paths = files.iter().flat_map(|(id, paths)| paths.iter().map(move |path| (id, path)));
        paths.try_for_each(|(id, path)| check_text(path, &format!("/resources/files/{id}")))
    }
}

/// One plan on its way to tasks.
struct Compiler<'a> {
    role: &'static Role,
    registry: &'a ToolRegistry,
    plan: &'a AgentPlan,
    goals: Ids,
    ids: Ids,
}

/// The index of each id in its list.
type Ids = HashMap<String, usize>;

impl Compiler<'_> {
    fn tasks(&self, steps: &[(String, &Step)]) -> Result<Vec<TaskPlan>, PlanError> {
        let mut before = self.of_steps(&self.plan.dependencies, "/dependencies", |id, at| find(&self.ids, id, at))?;
        // Each update follows the one before it.
        for (index, before) in before.iter_mut().enumerate().skip(self.plan.steps.len() + 1) {
            before.push(index - 1);
        }
        for list in &mut before {
            list.sort_unstable();
            list.dedup();
        }
        let no_files = BTreeMap::new();
        let files = self.plan.resources.as_ref().map_or(&no_files, |resources| &resources.files);
        let files = self.of_steps(files, "/resources/files", |path, _| Ok(path.to_owned()))?;
        self.check_goals()?;
        let given = steps.iter().zip(before.iter().zip(files)).enumerate();
        given.map(|(index, ((at, step), (before, files)))| self.task(index, at, step, before, files)).collect()
    }

    /// Lists by step, in the order of the steps.
    fn of_steps<T>(
        &self,
        lists: &BTreeMap<String, Vec<String>>,
        at: &str,
        read: impl Fn(&str, &str) -> Result<T, PlanError>,
    ) -> Result<Vec<Vec<T>>, PlanError> {
        let mut by_step = (0..self.ids.len()).map(|_| Vec::new()).collect::<Vec<_>>();
        for (id, values) in lists {
            let at = format!("{at}/{id}");
            let step = find(&self.ids, id, &at)?;
            for value in values {
                by_step[step].push(read(value, &at)?);
            }
        }
        Ok(by_step)
    }

    fn check_goals(&self) -> Result<(), PlanError> {
        let constraints = self.plan.constraints.iter().enumerate();
        let constraints = constraints.map(|(n, one)| (format!("/constraints/{n}/goals"), &one.goals));
        let steps = places("/steps", &self.plan.steps).chain(places("/updates", &self.plan.updates));
        let steps = steps.map(|(at, step)| (format!("{at}/goals"), &step.goals));
        constraints.chain(steps).try_for_each(|(at, ids)| {
            ids.iter().enumerate().try_for_each(|(n, id)| find(&self.goals, id, &format!("{at}/{n}")).map(drop))
        })
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

    fn task(
        &self,
        index: usize,
        at: &str,
        step: &Step,
        before: &[usize],
        files: Vec<String>,
    ) -> Result<TaskPlan, PlanError> {
        check_text(&step.description, &format!("{at}/description"))?;
        check_times(step, at)?;
        let mut task = TaskPlan::new(number(index), NodeKind::Processing, step.description.trim());
        task.label = Some(step.id.clone());
        let depends_on = before.iter().map(|index| Dependency { task: number(*index), strength: Strength::Hard });
        task.depends_on = depends_on.collect();
        (task.notes, task.files) = (self.notes(step), files);
        (task.timeout_ms, task.deadline_ms, task.retry) = (step.timeout_ms, step.deadline_ms, step.retry);
        match (&step.tool, step.agent, &step.request) {
            (Some(tool), None, None) => self.use_tool(tool, step, at, &mut task)?,
            (None, Some(to), None) => {
                if !self.role.delegates_to.contains(&to) {
                    return Err(self.not_allowed("delegate to", to, at));
                }
                self.check_listed(to, at)?;
                let text = delegated(&task.description, &task.notes);
                task.sub_plan = Some(SubPlan { text, agent: Some(to.as_str().to_owned()), request: None });
            }
            (None, None, Some(request)) => self.ask(request, step, at, &mut task)?,
            (None | Some(_), None | Some(_), None | Some(_)) => {
                return Err(broken(at, "name exactly one of tool, agent and request"));
            }
        }
        if step.tool.is_none() && (step.command.is_some() || !step.args.is_empty()) {
            return Err(broken(at, "a command or an argument is for a tool: name one"));
        }
        if let Some(line) = &step.undo {
            if !self.registry.has_shell(self.role.agent) {
                return Err(broken(at, "undo is a command, and the agent has no tool that takes one"));
            }
            task.compensate = Some(command(line, &format!("{at}/undo"))?);
        }
        Ok(task)
    }

    fn use_tool(&self, name: &str, step: &Step, at: &str, task: &mut TaskPlan) -> Result<(), PlanError> {
        let tool = self.registry.usable(self.role.agent, name, &format!("{at}/tool"))?;
        let Tool { name, kind, command: line, takes_command, agent, .. } = tool;
        (task.tool, task.kind) = (Some(name.clone()), *kind);
        task.assignee.clone_from(agent);
        task.command = match (line, &step.command) {
            (Some(_), Some(_)) => return Err(broken(at, "the tool has a command of its own, and takes none")),
            (Some(line), None) => Some(with_args(line, &step.args, at)?),
            (None, Some(line)) if *takes_command => Some(command(line, &format!("{at}/command"))?),
            (None, Some(_)) => return Err(broken(at, "the tool takes no command")),
            (None, None) if *takes_command => return Err(broken(at, "the tool needs a command")),
            (None, None) => None,
        };
        if line.is_none() && !step.args.is_empty() {
            return Err(broken(at, "the tool takes no arguments"));
        }
        Ok(())
    }

    /// A request is a sub-plan of the other agent, with a time limit.
    fn ask(&self, ask: &CrossAgentStep, step: &Step, at: &str, task: &mut TaskPlan) -> Result<(), PlanError> {
        let CrossAgentStep { target_agent: to, request, timeout_ms } = ask;
        if step.retry.is_some() || step.undo.is_some() || step.timeout_ms.is_some() {
            return Err(broken(at, "a request has its own time-out, and no retry and no undo: it is made once"));
        }
        let place = format!("{at}/request");
        check_text(request.text(), &format!("{place}/request"))?;
        check_range(request.text().len() as u64, 1, REQUEST_BYTES_MAX as u64, &format!("{place}/request"))?;
        check_range(*timeout_ms, 1, REQUEST_TIMEOUT_MS_MAX, &format!("{place}/timeout_ms"))?;
        if !self.role.asks.contains(to) {
            return Err(self.not_allowed("ask", *to, &place));
        }
        let (ability, answers) = (request.ability(), self.registry.answers(*to));
        if !answers.contains(&ability) {
            let answers = answers.iter().map(|ability| ability.as_str()).collect::<Vec<_>>();
            let answers = if answers.is_empty() { "nothing".to_owned() } else { answers.join(", ") };
            let rule = format!("a {to} agent does not {}: it answers {answers}", ability.as_str());
            return Err(PlanError::NotAllowed(place, rule));
        }
        self.check_listed(*to, at)?;
        task.kind = kind_of(ability);
        (task.timeout_ms, task.retry) = (Some(*timeout_ms), Some(0));
        let (text, agent) = (request.words(), Some(to.as_str().to_owned()));
        task.sub_plan = Some(SubPlan { text, agent, request: Some(request.clone()) });
        Ok(())
    }

    fn not_allowed(&self, verb: &str, to: AgentType, at: &str) -> PlanError {
        PlanError::NotAllowed(at.to_owned(), format!("a {} agent may not {verb} a {to} agent", self.role.agent))
    }

    /// A role with resources lists the agents that its steps use.
    fn check_listed(&self, agent: AgentType, at: &str) -> Result<(), PlanError> {
        let listed = self.plan.resources.as_ref().map(|resources| &resources.agent_types);
        if self.role.has(Part::Resources) && !listed.is_some_and(|listed| listed.contains(&agent)) {
            let rule = format!("the step needs a {agent} agent, which /resources/agent_types does not list");
            return Err(broken(at, rule));
        }
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

fn places<'a>(list: &'static str, steps: &'a [Step]) -> impl Iterator<Item = (String, &'a Step)> {
    steps.iter().enumerate().map(move |(n, step)| (format!("{list}/{n}"), step))
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

fn check_range(value: u64, min: u64, max: u64, at: &str) -> Result<(), PlanError> {
    let is_in = (min..=max).contains(&value);
    if is_in { Ok(()) } else { Err(broken(at, format!("{value} is not allowed: {min} to {max}"))) }
}

fn check_not_empty(is_empty: bool, at: &str) -> Result<(), PlanError> {
    if is_empty { Err(broken(at, "this is empty")) } else { Ok(()) }
}

fn check_text(text: &str, at: &str) -> Result<(), PlanError> {
    check_not_empty(text.trim().is_empty(), at)
}

fn check_times(step: &Step, at: &str) -> Result<(), PlanError> {
    for (ms, field) in [(step.timeout_ms, "timeout_ms"), (step.deadline_ms, "deadline_ms")] {
        check_range(ms.unwrap_or(1), 1, STEP_TIMEOUT_MS_MAX, &format!("{at}/{field}"))?;
    }
    check_range(step.retry.unwrap_or(0).into(), 0, RETRIES_MAX.into(), &format!("{at}/retry"))
}

/// A shell command that is not empty, holds no NUL and keeps to its limit.
fn command(line: &str, at: &str) -> Result<String, PlanError> {
    check_text(line, at)?;
    check_range(line.len() as u64, 1, TOOL_COMMAND_BYTES_MAX as u64, at)?;
    if line.contains('\0') { Err(broken(at, "a command holds no NUL")) } else { Ok(line.to_owned()) }
}

/// A command with arguments, each a single word for the shell.
fn with_args(line: &str, args: &[String], at: &str) -> Result<String, PlanError> {
    if args.iter().any(|arg| arg.contains('\0')) {
        return Err(broken(at, "an argument holds no NUL"));
    }
    let quoted = args.iter().map(|arg| format!(" '{}'", arg.replace('\'', r"'\''")));
    Ok(format!("{line}{}", quoted.collect::<String>()))
}

/// Indexes ids without regard to case, as people name tasks.
fn index<'a>(ids: impl Iterator<Item = (&'a str, String)>) -> Result<Ids, PlanError> {
    let mut indexed = Ids::new();
    for (index, (id, at)) in ids.enumerate() {
        if !is_id(id) {
            return Err(broken(&at, format!("{id:?} is not an id: 1 to {ID_CHARS_MAX} letters, digits, - and _")));
        }
        if indexed.insert(id.to_lowercase(), index).is_some() {
            return Err(broken(&at, format!("the id {id:?} is used twice")));
        }
    }
    Ok(indexed)
}

pub(super) fn is_id(id: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    (1..=ID_CHARS_MAX).contains(&id.len()) && id.chars().all(is_plain)
}

fn find(ids: &Ids, id: &str, at: &str) -> Result<usize, PlanError> {
    ids.get(&id.to_lowercase()).copied().ok_or_else(|| broken(at, format!("nothing in the plan has the id {id:?}")))
}
