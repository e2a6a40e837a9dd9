//! The stable JSON of the command line, as `docs/json.md` describes it. All keys are always there; absent values are
//! null or empty.

use std::borrow::Cow;
use std::io::{self, Write};

use crewlog_executors::agent::{Agent, PromptBy};
use crewlog_mq::{LogIdentity, Position, Recorded};
use crewlog_planner::crew::conflicts::{ConflictEvent, Holder, Moment};
use crewlog_planner::crew::statistics::Figures;
use crewlog_planner::event::{Budget, Timer};
use crewlog_planner::listing::{Parent, PlanSummary};
use crewlog_planner::plan::{Condition, TaskId, TaskPlan};
use crewlog_planner::view::PlanView;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::text::rfc3339;

/// The keys of a task in both `plan check` and `show`.
fn task_json(task: &TaskPlan, status: &str, name_of: impl Fn(TaskId) -> Option<String>, more: Value) -> Value {
    let depends_on = task.depends_on.iter().map(|dependency| name_of(dependency.task).unwrap_or_default());
    let json = json!({
        "id": task.name(),
        "description": task.description,
        "kind": task.kind.as_str(),
        "status": status,
        "depends_on": depends_on.collect::<Vec<_>>(),
        "command": task.command,
        "condition": task.condition.as_ref().map(condition_text),
        "priority": task.priority,
        "assignee": task.assignee,
        "notes": task.notes,
        "files": task.files,
    });
    [json, more].into_iter().filter_map(object).flatten().collect()
}

fn object(json: Value) -> Option<Map<String, Value>> {
    if let Value::Object(fields) = json { Some(fields) } else { None }
}

pub fn condition_text(condition: &Condition) -> String {
    if condition.negated { format!("not: {}", condition.text) } else { condition.text.clone() }
}

/// A plan of `ls`.
#[derive(Serialize)]
pub struct ListedJson {
    pub plan: String,
    /// The text's first heading, or its first task.
    pub title: String,
    pub status: &'static str,
    pub created_at: String,
    /// Of a fork: what it goes on from.
    pub parent: Option<Parent>,
    /// Whether nothing more is started because of its budget.
    pub is_held_by_budget: bool,
    /// True of a standing plan with nothing left to do.
    pub waits_for_work: bool,
}

/// A fork of a plan.
#[derive(Serialize)]
pub struct ForkJson {
    pub plan: String,
    /// The last position that they share.
    pub at: Position,
    pub reason: String,
}

impl ListedJson {
    pub fn of(plan: &str, summary: PlanSummary) -> Self {
        let PlanSummary { title, status, created_at, parent, is_held_by_budget, waits_for_work } = summary;
        let (plan, status, created_at) = (plan.to_owned(), status.as_str(), rfc3339(created_at));
        Self { plan, title, status, created_at, parent, is_held_by_budget, waits_for_work }
    }
}

/// An agent of `executors`. Of the environment only the names: the values may be secret.
pub fn executor_json(agent: &Agent) -> Value {
    json!({
        "name": agent.name,
        "kinds": agent.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(),
        "command": agent.program.argv(None),
        "prompt": match agent.prompt {
            PromptBy::Stdin => "stdin",
            PromptBy::Argument => "argument",
        },
        "env": agent.env.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "timeout_ms": agent.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        "jobs": agent.jobs,
        "rate_limited": agent.rate_limited,
    })
}

/// `show`: a plan as of a position.
pub fn shown_json(plan: &str, at: Position, view: &PlanView) -> Value {
    shown_tasks_json(plan, at, view, |_| true)
}

/// The same with some of its tasks and their questions only.
pub fn shown_tasks_json(plan: &str, at: Position, view: &PlanView, is_shown: impl Fn(TaskId) -> bool) -> Value {
    let state = view.state();
    let name_of = |id: TaskId| state.task(id).map(|task| task.plan.name());
    let due = |of: Timer| state.due(of).map(rfc3339);
    let tasks = state.tasks().iter().filter(|task| is_shown(task.plan.id)).map(|task| {
        let times = view.times(task.plan.id);
        let mut more = json!({
            "is_paused": task.is_paused,
            "attempts": task.attempts,
            "result": task.result,
            "error": task.error,
            "executor": times.executor,
            "started_at": times.started_at.map(rfc3339),
            "ended_at": times.ended_at.map(rfc3339),
            "deadline": due(Timer::Task(task.plan.id)),
            "retry_at": due(Timer::Retry(task.plan.id)),
            "compensates": task.plan.compensates.and_then(name_of),
        });
        if let Some(sub_plan) = task.sub_plan_id(plan) {
            more["plan"] = sub_plan.into();
        }
        task_json(&task.plan, task.status.as_str(), name_of, more)
    });
    let questions = state.questions().iter().filter(|question| is_shown(question.task)).map(|question| {
        json!({
            "id": question.id.to_string(),
            "task": name_of(question.task),
            "question": question.question,
            "answer": question.answer,
            "default": question.default.as_ref().map(|default| &default.answer),
            "is_by_default": question.is_by_default,
            "is_withdrawn": question.is_withdrawn,
            "deadline": due(Timer::Question(question.id)),
        })
    });
    let Budget { tokens, cost_micros, duration_ms } = state.config().budget;
    json!({
        "plan": plan,
        "title": state.title(),
        "status": view.status().as_str(),
        "at": at,
        "parent": Parent::of(state),
        "tasks": tasks.collect::<Vec<_>>(),
        "questions": questions.collect::<Vec<_>>(),
        "deadline": due(Timer::Plan),
        "stopped_by": state.stopped_by().and_then(name_of),
        "spent": state.spent(),
        "budget": { "tokens": tokens, "cost_micros": cost_micros, "duration_ms": duration_ms },
        "context_summary": state.context_summary(),
        "settings": state.config().words(),
    })
}

/// An event as one line of `events`, with `data` and `metadata` as the writer's bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventJson<'a> {
    pub position: Position,
    pub event_id: Cow<'a, str>,
    pub stream_id: Cow<'a, str>,
    pub aggregate_id: Cow<'a, str>,
    pub sequence: i64,
    pub event_type: Cow<'a, str>,
    pub event_version: Cow<'a, str>,
    pub data: Cow<'a, RawValue>,
    pub metadata: Cow<'a, RawValue>,
    pub tags: Cow<'a, [String]>,
    pub created_at: String,
    /// In exports only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_start: Option<Position>,
}

impl<'a> EventJson<'a> {
    pub fn of(recorded: &'a Recorded) -> Result<Self, serde_json::Error> {
        Ok(Self {
            position: recorded.position,
            event_id: recorded.event_id.to_string().into(),
            stream_id: (&recorded.stream_id).into(),
            aggregate_id: (&recorded.aggregate_id).into(),
            sequence: recorded.sequence,
            event_type: (&recorded.event_type).into(),
            event_version: (&recorded.event_version).into(),
            data: Cow::Borrowed(serde_json::from_str(&recorded.data)?),
            metadata: Cow::Borrowed(serde_json::from_str(&recorded.metadata)?),
            tags: (&recorded.tags).into(),
            created_at: rfc3339(recorded.created_at),
            append_start: None,
        })
    }

    /// With the key that only an import needs.
    #[must_use]
    pub fn for_export(self, append_start: Position) -> Self {
        Self { append_start: Some(append_start), ..self }
    }
}

/// The version of the form of exports.
pub const EXPORT: u32 = 1;

/// The first line of an export.
#[derive(Serialize, Deserialize)]
pub struct ExportHeader {
    pub export: u32,
    pub log: String,
    pub format: i64,
    pub created_at: String,
    pub head: Position,
}

impl ExportHeader {
    /// Of a log, up to `head`.
    pub fn of(info: &LogIdentity, head: Position) -> Self {
        let (log, created_at) = (info.id.to_string(), rfc3339(info.created_at));
        Self { export: EXPORT, log, format: info.format, created_at, head }
    }
}

/// A project of `stats`.
#[derive(Serialize)]
pub struct ProjectJson {
    pub project: String,
    /// Its figures, key by key.
    #[serde(flatten)]
    pub figures: Figures,
}

/// A conflict of `conflicts`.
#[derive(Serialize)]
pub struct ConflictJson {
    pub project: String,
    /// Its number in the project.
    pub conflict: u64,
    /// The position from which on it is there.
    pub position: Position,
    /// The time from which on it is there.
    pub since: String,
    /// What both touch.
    pub pattern: String,
    /// The newcomer first.
    pub holders: Vec<HolderJson>,
    /// How many there are.
    pub n_holders: u64,
    /// How it ended, if it has.
    pub resolved: Option<ResolvedJson>,
}

/// A task in a conflict.
#[derive(Serialize)]
pub struct HolderJson {
    plan: String,
    task: String,
    executor: String,
    patterns: Vec<String>,
}

#[derive(Serialize)]
pub struct ResolvedJson {
    /// The position from which on it is gone.
    pub position: Position,
    /// The time from which on it is gone.
    pub since: String,
    /// The plan of the task whose end resolved it.
    pub plan: String,
    pub task: String,
    pub resolution: &'static str,
}

impl ConflictJson {
    /// Of a conflict that was detected; none of another event.
    pub fn of(project: &str, detected: &ConflictEvent, Moment { position, at }: Moment) -> Option<Self> {
        let ConflictEvent::ConflictDetected { conflict, pattern, holders, n_holders } = detected else { return None };
        let (project, pattern, since) = (project.to_owned(), pattern.clone(), rfc3339(at));
        let holders = holders.iter().cloned().map(HolderJson::of).collect();
        let (conflict, n_holders) = (*conflict, *n_holders);
        Some(Self { project, conflict, position, since, pattern, holders, n_holders, resolved: None })
    }
}

impl HolderJson {
    pub fn of(holder: Holder) -> Self {
        let Holder { plan, task, executor, patterns } = holder;
        Self { plan, task: task.to_string(), executor: executor.to_string(), patterns }
    }

    pub fn line(&self) -> String {
        format!("{} task {} by {}: {}", self.plan, self.task, self.executor, self.patterns.join(", "))
    }
}

/// One document in several lines.
pub fn print_pretty(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut to, value)?;
    writeln!(to)
}

/// One document in one line.
pub fn print_line(mut to: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut to, value)?;
    writeln!(to)
}
