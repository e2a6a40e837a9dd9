//! Sealed texts, from the library's side: the contents of the log, and the keys that open them.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, also outside of its own function")]

mod fields;
mod keys;
mod snapshots;
mod texts;
mod tracer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crewlog_executors::keys::{Keys, make_operator_key};
use crewlog_mq::{Append, EventStore, Expected, Metadata, NewEvent, PAGE_EVENTS_MAX, Query, Range, Recorded};
use crewlog_planner::claim::TaskEvent;
use crewlog_planner::event::{Event, PlannerConfig, QuestionId, TaskStatus, plan_tag};
use crewlog_planner::plan::{NodeKind, Origin, TaskId, TaskPlan};
use serde_json::json;
use tempfile::TempDir;

/// Occurs in every free text, and nowhere else.
const MARK: &str = "xyzzy";

/// A folder with the keys of operators and plans.
struct Ring {
    folder: TempDir,
}

impl Ring {
    /// With the operator's keys `a` and `b`.
    fn new() -> Self {
        let ring = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["a", "b"] {
            make_operator_key(&ring.operator(name)).unwrap();
        }
        ring
    }

    fn operator(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn plans(&self) -> PathBuf {
        self.folder.path().join("plans")
    }

    fn keys(&self, operator: Option<&str>) -> Keys {
        let operator = operator.map(|name| self.operator(name));
        Keys::open(self.plans(), operator.as_deref()).unwrap()
    }

    /// The log for a reader with the keys of plans, and optionally an operator's.
    fn veil(&self, store: &EventStore, operator: Option<&str>) -> EventStore {
        store.clone().veiled(Arc::new(self.keys(operator)))
    }
}

fn marked(what: &str) -> String {
    format!("{MARK} \"{what}\"\n\\ é")
}

/// A plan of one task with marks in all its texts.
fn planned() -> Event {
    let task = TaskPlan {
        command: Some(marked("command")),
        notes: vec![marked("note"), marked("other note")],
        files: vec!["src/a.rs".into()],
        ..TaskPlan::new(TaskId(1), NodeKind::ToolCall, marked("description"))
    };
    Event::TasksPlanned {
        tasks: vec![task],
        title: Some(marked("title")),
        source: marked("source"),
        config: Box::new(PlannerConfig { system_prompt: marked("system"), ..PlannerConfig::default() }),
        context: vec![marked("context")],
        attachments: Vec::new(),
        origin: Origin::default(),
    }
}

/// Later events of the plan.
fn happened() -> Vec<Event> {
    let (task_id, question_id) = (TaskId(1), QuestionId(1));
    let update = |status, result, error| Event::TaskStatusUpdated { task_id, status, result, error, unblocks: false };
    vec![
        update(TaskStatus::Failed, None, Some(marked("error"))),
        update(TaskStatus::Completed, Some(marked("result")), None),
        Event::ClarificationReceived { task_id, question_id, answer: marked("answer"), is_default: false },
        Event::PlanPaused { reason: marked("reason"), from_parent: false },
        Event::PlanResumed {},
    ]
}

/// The reports of its task.
fn reported() -> Vec<TaskEvent> {
    use crewlog_planner::event::FailureClass;
    vec![
        TaskEvent::TaskFailed {
            attempt: 1,
            epoch: 1,
            error: marked("task error"),
            class: FailureClass::Task,
            run: None,
        },
        TaskEvent::TaskCompleted { attempt: 2, epoch: 2, result: marked("task result"), run: None },
        TaskEvent::NeedsClarification { attempt: 3, epoch: 3, question: marked("question"), default: None },
        TaskEvent::TaskReleased { epoch: 4, reason: marked("released"), cut_off: true },
        TaskEvent::TaskReportedLate(crewlog_planner::claim::LateReport {
            text: marked("too late"),
            ..Default::default()
        }),
    ]
}

/// Metadata with a recorded command and a marked text.
fn kept() -> Metadata {
    let command = json!({ "command": { "Cancel": { "task": 1, "reason": marked("kept reason") } } });
    Metadata { correlation_id: Some(crewlog_mq::new_event_id()), causation_id: None, extra: Some(command) }
}

fn new_event(event: &impl crewlog_mq::Event, plan: &str) -> NewEvent {
    NewEvent::of(event, &kept()).unwrap().with_tags([plan_tag(plan)])
}

/// A whole plan with its task, in one append.
fn whole_plan(plan: &str) -> Append {
    let of_plan = [planned()].into_iter().chain(happened()).map(|event| new_event(&event, plan)).collect();
    let of_task = reported().iter().map(|event| new_event(event, plan)).collect();
    Append::to("planner", plan, Expected::NoStream, of_plan).and(
        "task",
        &format!("{plan}/1"),
        Expected::NoStream,
        of_task,
    )
}

/// A reason given to a plan.
fn pause(plan: &str, reason: &str) -> Append {
    let event = new_event(&Event::PlanPaused { reason: reason.into(), from_parent: false }, plan);
    Append::to("planner", plan, Expected::Any, vec![event])
}

async fn everything(store: &EventStore) -> Vec<Recorded> {
    let page = store.read(&Query::all(), Range::default(), PAGE_EVENTS_MAX).await.unwrap();
    assert!(!page.more);
    page.events
}

async fn of_plan(store: &EventStore, plan: &str) -> Vec<Recorded> {
    store.read(&Query::aggregate("planner", plan), Range::default(), 1_000).await.unwrap().events
}

/// The reason of the last event of a plan.
async fn last_reason(store: &EventStore, plan: &str) -> String {
    match of_plan(store, plan).await.last().unwrap().decode().unwrap() {
        Event::PlanPaused { reason, .. } => reason,
        other => panic!("{other:?} gives no reason"),
    }
}

fn holds_mark(recorded: &Recorded) -> bool {
    recorded.data.contains(MARK) || recorded.metadata.contains(MARK)
}

/// The files below a folder that contain the mark.
fn marked_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(marked_files(&path));
        } else if std::fs::read(&path).unwrap().windows(MARK.len()).any(|bytes| bytes == MARK.as_bytes()) {
            found.push(path);
        }
    }
    found
}
