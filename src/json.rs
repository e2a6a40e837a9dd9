//! The stable JSON of the command line, as `docs/json.md` describes it. All keys are always there; absent values are
//! null or empty.

use std::borrow::Cow;
use std::io::{self, Write};

use crewlog_executors::agent::Agent;
use crewlog_mq::{LogIdentity, Position, Recorded};
use crewlog_planner::crew::statistics::Figures;
use crewlog_planner::event::{Budget, Timer};
use crewlog_planner::listing::PlanSummary;
use crewlog_planner::plan::{Condition, Parent, TaskId};
use crewlog_planner::view::PlanView;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::text::rfc3339;

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
        "prompt": agent.prompt,
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
    let tasks = state.tasks.iter().filter(|task| is_shown(task.plan.id)).map(|task| {
        let (times, step) = (view.times(task.plan.id), &task.plan);
        let depends_on = step.depends_on.iter().map(|one| name_of(one.task).unwrap_or_default());
        let mut json = json!({
            "id": step.name(),
            "description": step.description,
            "kind": step.kind.as_str(),
            "status": task.status.as_str(),
            "depends_on": depends_on.collect::<Vec<_>>(),
            "command": step.command,
            "condition": step.condition.as_ref().map(Condition::words),
            "priority": step.priority,
            "assignee": step.assignee,
            "notes": step.notes,
            "files": step.files,
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
            json["plan"] = sub_plan.into();
        }
        json
    });
    let questions = state.questions.iter().filter(|question| is_shown(question.task)).map(|question| {
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
    let Budget { tokens, cost_micros, duration_ms } = state.config.budget;
    json!({
        "plan": plan,
        "title": state.title.as_deref(),
        "status": view.status().as_str(),
        "at": at,
        "parent": state.parent,
        "tasks": tasks.collect::<Vec<_>>(),
        "questions": questions.collect::<Vec<_>>(),
        "deadline": due(Timer::Plan),
        "stopped_by": state.stopped_by.and_then(name_of),
        "spent": state.spent(),
        "budget": { "tokens": tokens, "cost_micros": cost_micros, "duration_ms": duration_ms },
        "context_summary": state.context_summary(),
        "settings": state.config.words(),
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
    /// Set in exports: only an import needs it.
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
    #[serde(flatten)]
    pub figures: Figures,
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
