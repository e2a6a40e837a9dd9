//! How the steps of an agent's plan become tasks. It knows steps, tools and requests, and no form of plan.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::agents::registry::{TOOL_COMMAND_BYTES_MAX, ToolRegistry};
use crate::agents::shape::{Field, Shape, Whom, may, needed};
use crate::agents::{ID_CHARS_MAX, PlanError, STEP_TIMEOUT_MS_MAX, STEPS_MAX};
use crate::plan::{Dependency, NodeKind, Strength, SubPlan, TaskId, TaskPlan};
use crate::planner::RETRIES_MAX;
use crate::protocol::{Ability, AgentType, Asking, CrossAgentStep, REQUEST_TIMEOUT_MS_MAX, check_request};

/// The version of a form, in every one.
pub(super) const VERSION: Field = may("version", &Shape::Amount, "of which version the form is", "1");

/// A [`Care`], in every step.
pub(super) const CARE: Field = may(
    "care",
    &Shape::Fields(&[
        may("retry", &Shape::Tries, "how often it is tried again after a failure of its own", "2"),
        may(
            "deadline_ms",
            &Shape::Millis(STEP_TIMEOUT_MS_MAX),
            "within how many milliseconds of its first start it must have ended, tries included",
            "3600000",
        ),
        may("undo", &Shape::Line, "which line for the shell undoes what it did", r#""git checkout src""#),
    ]),
    "what is done about its failures",
    r#"{ "retry": 2 }"#,
);

/// A [`CrossAgentStep`], in every step of those who may ask.
pub(super) const REQUEST: Field = may(
    "request",
    &Shape::Fields(&[
        needed("target_agent", &Shape::Agent(Whom::Asked), "which agent is asked", r#""perception""#),
        needed(
            "request",
            &Shape::OneOf(&[
                needed(
                    "analyse",
                    &Shape::Fields(&[needed("text", &Shape::Text, "what is to be judged", r#""the last run""#)]),
                    "what is to be judged",
                    r#"{ "text": "the last run" }"#,
                ),
                needed(
                    "extract",
                    &Shape::Fields(&[needed("context", &Shape::Text, "where to look", r#""src/parse/**""#)]),
                    "of which context the files and symbols are to be named",
                    r#"{ "context": "src/parse/**" }"#,
                ),
                needed(
                    "locate",
                    &Shape::Fields(&[needed("entity", &Shape::Text, "what is to be found", r#""struct User""#)]),
                    "what is to be found",
                    r#"{ "entity": "struct User" }"#,
                ),
            ]),
            "what it is asked",
            r#"{ "locate": { "entity": "struct User" } }"#,
        ),
        needed(
            "timeout_ms",
            &Shape::Millis(REQUEST_TIMEOUT_MS_MAX),
            "within how many milliseconds an answer counts",
            "60000",
        ),
    ]),
    "what another agent is asked for it",
    r#"{ "target_agent": "perception", "request": { "locate": { "entity": "struct User" } }, "timeout_ms": 60000 }"#,
);

/// What is done about the failures of a step, and about what it did when its plan comes to nothing. It is the same in every
/// form.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Care {
    /// How many times it is tried again after a failure of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<u32>,
    /// Milliseconds after its first start by which it must have ended, tries included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The line for the shell that undoes what it did; of an agent that has a tool which takes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

impl Care {
    /// True when nothing is said.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// What a text says of a task, as far as the agent may say it.
    pub(super) fn of(task: &TaskPlan, agent: AgentType, registry: &ToolRegistry) -> Self {
        let undo = task.compensate.clone().filter(|_| has_shell(agent, registry));
        let deadline_ms = task.deadline_ms.map(|ms| ms.clamp(1, STEP_TIMEOUT_MS_MAX));
        Self { retry: task.retry.map(|n| n.min(RETRIES_MAX)), deadline_ms, undo }
    }

    /// Says it of a task, if it may be said.
    fn give_to(
        &self,
        task: &mut TaskPlan,
        agent: AgentType,
        registry: &ToolRegistry,
        at: &str,
    ) -> Result<(), PlanError> {
        let Self { retry, deadline_ms, undo } = self;
        if let Some(value) = retry.filter(|value| *value > RETRIES_MAX) {
            return Err(PlanError::Retry { at: format!("{at}/care/retry"), value, max: RETRIES_MAX });
        }
        check_time(*deadline_ms, at, "care/deadline_ms")?;
        let refused = |why| PlanError::Care { at: format!("{at}/care"), why };
        if task.request.is_some() && (retry.is_some() || undo.is_some()) {
            return Err(refused("a request is made once and changes nothing: it has no retry and no undo"));
        }
        if let Some(line) = undo {
            if !has_shell(agent, registry) {
                return Err(refused("an undo is a command, and its agent has no tool that takes one"));
            }
            let wants = "an undo is a command that is not empty, holds no NUL and is not longer than command_bytes_max";
            task.compensate = Some(checked_line(line).ok_or_else(|| refused(wants))?);
        }
        task.retry = task.retry.or(*retry);
        task.deadline_ms = *deadline_ms;
        Ok(())
    }
}

/// Whether an agent may have lines of its own executed.
fn has_shell(agent: AgentType, registry: &ToolRegistry) -> bool {
    registry.tools_of(agent).any(|tool| tool.takes_command)
}

/// What a plan means.
pub(super) struct Lowered {
    pub(super) tasks: Vec<TaskPlan>,
    pub(super) title: Option<String>,
    pub(super) context: Vec<String>,
}

/// A step on its way to become a task.
pub(super) struct Step<'a> {
    pub(super) id: &'a str,
    pub(super) text: &'a str,
    pub(super) does: Does<'a>,
    pub(super) after: Vec<&'a str>,
    pub(super) notes: Vec<String>,
    pub(super) files: Vec<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) care: Care,
    /// Where it stands in the plan, and where what it waits for does.
    pub(super) at: String,
    pub(super) after_at: String,
}

impl<'a> Step<'a> {
    pub(super) fn new(id: &'a str, text: &'a str, does: Does<'a>, at: String) -> Self {
        let after_at = format!("{at}/after");
        let (after, notes, files, care) = (Vec::new(), Vec::new(), Vec::new(), Care::default());
        Self { id, text, does, after, notes, files, timeout_ms: None, care, at, after_at }
    }
}

/// Who does a step, and how.
pub(super) enum Does<'a> {
    /// The agent, with a tool of its own.
    Tool { name: &'a str, args: &'a [String], command: Option<&'a str> },
    /// Another agent answers.
    Ask(&'a CrossAgentStep),
    /// Another agent makes a plan of its own for it.
    Delegate { to: AgentType, text: String },
}

/// Exactly one way to do a step.
pub(super) fn one_of<'a>(
    ways: impl IntoIterator<Item = Option<Does<'a>>>,
    at: &str,
    allowed: &'static str,
) -> Result<Does<'a>, PlanError> {
    let mut ways = ways.into_iter().flatten();
    match (ways.next(), ways.next()) {
        (Some(does), None) => Ok(does),
        (None | Some(_), _) => Err(PlanError::OneOf { at: at.to_owned(), allowed }),
    }
}

/// Holds a list to its limit.
pub(super) fn check_length(n: usize, at: &str) -> Result<(), PlanError> {
    if n <= STEPS_MAX { Ok(()) } else { Err(PlanError::TooMany { at: at.to_owned(), value: n, max: STEPS_MAX }) }
}

/// Refuses a plan in which nothing is to be done.
pub(super) fn check_some<T>(steps: &[T], at: &str) -> Result<(), PlanError> {
    if steps.is_empty() { Err(PlanError::NoSteps { at: at.to_owned() }) } else { Ok(()) }
}

/// Refuses a text that says nothing.
pub(super) fn check_text(text: &str, at: impl Into<String>) -> Result<(), PlanError> {
    if text.trim().is_empty() { Err(PlanError::Empty { at: at.into() }) } else { Ok(()) }
}

/// The places of ids in their list, each id once.
pub(super) fn places<'a>(ids: impl Iterator<Item = (&'a str, String)>) -> Result<HashMap<String, usize>, PlanError> {
    let mut places = HashMap::new();
    for (place, (id, at)) in ids.enumerate() {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
        if id.is_empty() || id.len() > ID_CHARS_MAX || !id.chars().all(is_plain) {
            return Err(PlanError::BadId { id: id.to_owned(), at, max: ID_CHARS_MAX });
        }
        // People name tasks without regard to capitals.
        if places.insert(id.to_lowercase(), place).is_some() {
            return Err(PlanError::DuplicateId { id: id.to_owned(), at });
        }
    }
    Ok(places)
}

/// The place of an id.
pub(super) fn place(places: &HashMap<String, usize>, id: &str, at: &str) -> Result<usize, PlanError> {
    let unknown = || PlanError::UnknownId { id: id.to_owned(), at: at.to_owned() };
    places.get(&id.to_lowercase()).copied().ok_or_else(unknown)
}

/// The tasks that steps mean, in their order.
pub(super) fn tasks(
    agent: AgentType,
    registry: &ToolRegistry,
    steps: Vec<Step<'_>>,
) -> Result<Vec<TaskPlan>, PlanError> {
    let places = places(steps.iter().map(|step| (step.id, format!("{}/id", step.at))))?;
    let mut before = Vec::with_capacity(steps.len());
    for step in &steps {
        let after = step.after.iter().map(|id| place(&places, id, &step.after_at));
        let mut after = after.collect::<Result<Vec<_>, _>>()?;
        after.sort_unstable();
        after.dedup();
        before.push(after);
    }
    if let Some(circle) = circle(&before) {
        let cycle = circle.iter().map(|place| steps[*place].id.to_owned()).collect();
        return Err(PlanError::Cycle { cycle, at: steps[circle[0]].after_at.clone() });
    }
    let tasks = steps.into_iter().zip(before).enumerate();
    tasks.map(|(place, (step, before))| task(agent, registry, place, step, &before)).collect()
}

fn task(
    agent: AgentType,
    registry: &ToolRegistry,
    place: usize,
    step: Step<'_>,
    before: &[usize],
) -> Result<TaskPlan, PlanError> {
    let Step { id, text, does, notes, files, timeout_ms, care, at, .. } = step;
    check_text(text, at.clone())?;
    check_time(timeout_ms, &at, "timeout_ms")?;
    let mut task = TaskPlan::new(number(place), NodeKind::Processing, text.trim());
    task.label = Some(id.to_owned());
    task.depends_on =
        before.iter().map(|place| Dependency { task: number(*place), strength: Strength::Hard }).collect();
    (task.notes, task.files, task.timeout_ms) = (notes, files, timeout_ms);
    match does {
        Does::Tool { name, args, command } => {
            let tool = registry.usable(agent, name, &format!("{at}/tool"))?;
            let wants = |wants| PlanError::Use { at: at.clone(), tool: tool.name.clone(), wants };
            task.kind = tool.kind;
            task.tool = Some(tool.name.clone());
            task.assignee.clone_from(&tool.agent);
            task.command = match (&tool.command, command) {
                (Some(_), Some(_)) => return Err(wants("has a command of its own, and takes none from a step")),
                (Some(line), None) => Some(with_args(line, args).ok_or_else(|| wants("takes no NUL"))?),
                (None, Some(line)) if tool.takes_command => Some(checked_line(line).ok_or_else(|| {
                    wants("wants a command that is not empty, holds no NUL and is not longer than command_bytes_max")
                })?),
                (None, Some(_)) => return Err(wants("takes no command")),
                (None, None) if tool.takes_command => return Err(wants("wants a command")),
                (None, None) => None,
            };
            if tool.command.is_none() && !args.is_empty() {
                return Err(wants("takes no arguments"));
            }
        }
        Does::Ask(step) => {
            let at = format!("{at}/request");
            check_request(agent, step, registry.abilities()).map_err(|error| PlanError::Request { at, error })?;
            task.kind = match step.request.ability() {
                Ability::Analyse => NodeKind::Analysis,
                Ability::Extract | Ability::Locate => NodeKind::Retrieval,
            };
            task.request = Some(Asking { from: agent, step: step.clone() });
            // Its time is for one answer; what comes later no longer counts.
            task.retry = Some(0);
        }
        Does::Delegate { to, text } => {
            if !agent.may_delegate_to(to) {
                return Err(PlanError::MayNotDelegate { agent, to, at });
            }
            task.sub_plan = Some(SubPlan { text, agent: Some(to.as_str().to_owned()) });
        }
    }
    care.give_to(&mut task, agent, registry, &at)?;
    Ok(task)
}

/// Holds a time to what a step may be given.
fn check_time(ms: Option<u64>, at: &str, field: &str) -> Result<(), PlanError> {
    match ms.filter(|value| !(1..=STEP_TIMEOUT_MS_MAX).contains(value)) {
        None => Ok(()),
        Some(value) => Err(PlanError::Timeout { at: format!("{at}/{field}"), value, max: STEP_TIMEOUT_MS_MAX }),
    }
}

fn number(place: usize) -> TaskId {
    TaskId(place as u64 + 1)
}

/// A line with further words, each one word for the shell whatever it holds.
fn with_args(line: &str, args: &[String]) -> Option<String> {
    let quoted = args.iter().map(|arg| (!arg.contains('\0')).then(|| format!(" '{}'", arg.replace('\'', r"'\''"))));
    let quoted = quoted.collect::<Option<String>>()?;
    Some(format!("{line}{quoted}"))
}

fn checked_line(line: &str) -> Option<String> {
    let is_line = !line.trim().is_empty() && !line.contains('\0') && line.len() <= TOOL_COMMAND_BYTES_MAX;
    is_line.then(|| line.to_owned())
}

/// The places of some that wait for each other in a circle, the first again at the end.
fn circle(before: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut n_before = before.iter().map(Vec::len).collect::<Vec<_>>();
    let mut behind = vec![Vec::new(); before.len()];
    for (place, before) in before.iter().enumerate() {
        before.iter().for_each(|one| behind[*one].push(place));
    }
    let mut free = (0..before.len()).filter(|place| n_before[*place] == 0).collect::<Vec<_>>();
    while let Some(done) = free.pop() {
        for place in &behind[done] {
            n_before[*place] -= 1;
            if n_before[*place] == 0 {
                free.push(*place);
            }
        }
    }
    // Each that is left waits for another that is left, so following them comes back to one of them.
    let mut way = vec![n_before.iter().position(|n| *n > 0)?];
    loop {
        let last = way[way.len() - 1];
        let next = before[last].iter().copied().find(|place| n_before[*place] > 0)?;
        if let Some(start) = way.iter().position(|place| *place == next) {
            way.push(next);
            return Some(way.split_off(start));
        }
        way.push(next);
    }
}
