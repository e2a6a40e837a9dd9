//! `compare`: two plans that share a history, where they part and what came of each after that. It appends and executes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};

use crewlog_executors::history::History;
use crewlog_mq::{EventStore, Position, Query, Range, Timestamp};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::event::{self, Event, TaskStatus, Usage, money, plan_tag};
use crewlog_planner::plan::TaskId;
use crewlog_planner::state::{Measure, Phase, Task};
use crewlog_planner::view::PlanView;
use futures::TryStreamExt;
use serde::Serialize;

use crate::cli::{Compare, Output};
use crate::failure::{Code, Failure};
use crate::json::{print_line, print_pretty};
use crate::look::find_plan;
use crate::session::Session;
use crate::text::{count, one_line, visible};

/// The most characters of a result or an error in the text for a person.
const TEXT_CHARS_MAX: usize = 80;

/// `compare` as JSON.
#[derive(Serialize)]
struct ComparedJson<'a> {
    parted: PartedJson,
    one: SideJson<'a>,
    other: SideJson<'a>,
    tasks: Vec<TaskJson<'a>>,
}

/// The last event that both share.
#[derive(Serialize)]
struct PartedJson {
    plan: String,
    at: Position,
    event_type: String,
}

/// What came of one of them.
#[derive(Serialize)]
struct SideJson<'a> {
    plan: &'a str,
    status: &'static str,
    /// From the point, or of a fork from when it was made, to its end; unset before that.
    duration_ms: Option<u64>,
    /// How long its tasks were held behind the point, together: what it took without the time that nobody worked on it.
    work_ms: u64,
    /// How often a task failed or ran out of time behind the point, tries that were made good included.
    failures: u32,
    /// What was used up behind the point.
    usage: Usage,
}

/// A task in both; unset in the one that does not have it.
#[derive(Serialize)]
struct TaskJson<'a> {
    id: String,
    description: &'a str,
    differs: bool,
    one: Option<TaskSideJson<'a>>,
    other: Option<TaskSideJson<'a>>,
}

#[derive(Serialize)]
struct TaskSideJson<'a> {
    status: &'static str,
    attempts: u32,
    result: Option<&'a str>,
    error: Option<&'a str>,
    /// From its first claim to its end.
    duration_ms: Option<u64>,
    /// What was used up behind the point.
    usage: Usage,
}

impl TaskSideJson<'_> {
    /// What came of the task; how long that took is never the same twice.
    fn outcome(&self) -> (&str, u32, Option<&str>, Option<&str>, Usage) {
        (self.status, self.attempts, self.result, self.error, Usage { duration_ms: 0, ..self.usage })
    }
}

/// Where they part, and when that was.
#[derive(Clone, Copy)]
struct Parted {
    at: Position,
    moment: Option<Timestamp>,
}

/// A plan, and what happened to it behind the point at which it parts from another.
struct Side {
    plan: String,
    view: PlanView,
    /// The tasks that both had where they part; what was added behind it is each side's own, whatever its number is.
    shared: BTreeSet<TaskId>,
    /// When what comes behind the point began: what was under way there goes on from it.
    began_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
    work_ms: u64,
    n_failures: u32,
    usage: Usage,
    usage_by_task: BTreeMap<TaskId, Usage>,
}

impl Side {
    async fn load(store: &EventStore, history: &History, plan: String, parted: Parted) -> Result<Self, Failure> {
        let Parted { at, moment } = parted;
        let mut shared = None;
        let mut side = Self {
            plan,
            view: PlanView::default(),
            shared: BTreeSet::new(),
            began_at: moment,
            last_at: None,
            work_ms: 0,
            n_failures: 0,
            usage: Usage::default(),
            usage_by_task: BTreeMap::new(),
        };
        let mut held = BTreeMap::new();
        let mut records = std::pin::pin!(history.records(store, &Query::all(), Range::default()));
        while let Some(recorded) = records.try_next().await? {
            if recorded.position > at {
                shared.get_or_insert_with(|| side.ids());
            }
            if recorded.position > at && recorded.stream_id == event::STREAM {
                side.take(&recorded.decode()?, recorded.created_at);
            }
            side.view.apply(&recorded)?;
            if recorded.stream_id == claim::STREAM {
                let now = moment.map_or(recorded.created_at, |moment| moment.max(recorded.created_at));
                let since = match recorded.decode()? {
                    TaskEvent::TaskClaimed { .. } => held.insert(recorded.aggregate_id.clone(), now),
                    TaskEvent::TaskReleased { .. }
                    | TaskEvent::TaskStopped { .. }
                    | TaskEvent::TaskCompleted { .. }
                    | TaskEvent::TaskFailed { .. }
                    | TaskEvent::NeedsClarification { .. } => held.remove(&recorded.aggregate_id),
                    TaskEvent::TaskStarted { .. }
                    | TaskEvent::LeaseRenewed { .. }
                    | TaskEvent::UsageReported { .. }
                    | TaskEvent::ClarificationProvided { .. } => None,
                };
                side.work_ms = side.work_ms.saturating_add(since.map_or(0, |since| ms(now, since)));
            }
        }
        side.shared = shared.unwrap_or_else(|| side.ids());
        Ok(side)
    }

    fn ids(&self) -> BTreeSet<TaskId> {
        self.view.state().tasks().iter().map(|task| task.plan.id).collect()
    }

    /// By what a task is known in both.
    fn key<'a>(&self, task: &'a Task) -> (TaskId, Option<&'a str>) {
        let id = task.plan.id;
        (id, (!self.shared.contains(&id)).then_some(&*task.plan.description))
    }

    fn task_of(&self, key: (TaskId, Option<&str>)) -> Option<&Task> {
        self.task(key.0).filter(|task| self.key(task) == key)
    }

    /// Takes in an event of the plan behind the point, before its view does.
    fn take(&mut self, event: &Event, at: Timestamp) {
        // A fork may be made long after: nothing of it was under way before.
        if let (Event::PlanForked { .. }, None) = (event, self.last_at) {
            self.began_at = Some(at);
        }
        self.last_at = Some(at);
        match event {
            Event::UsageRecorded { task_id, usage, .. } => {
                self.usage.add(usage);
                self.usage_by_task.entry(*task_id).or_default().add(usage);
            }
            Event::TaskStatusUpdated { task_id, status, error: Some(_), .. } => {
                // Of one about which a person was asked the failure was told before.
                let ran = self.task(*task_id).is_some_and(|task| task.status == TaskStatus::Running);
                let has_failed = match status {
                    TaskStatus::Cancelled | TaskStatus::Skipped => false,
                    TaskStatus::TimedOut => true,
                    TaskStatus::Planned
                    | TaskStatus::Running
                    | TaskStatus::NeedsClarification
                    | TaskStatus::Completed
                    | TaskStatus::Failed => ran,
                };
                self.n_failures = self.n_failures.saturating_add(has_failed.into());
            }
            _another_event => {}
        }
    }

    fn json(&self) -> SideJson<'_> {
        let has_ended = matches!(self.view.state().phase(), Phase::Ended(_));
        let took = self.last_at.zip(self.began_at).filter(|_| has_ended);
        SideJson {
            plan: &self.plan,
            status: self.view.status().as_str(),
            duration_ms: took.map(|(last, began)| ms(last, began)),
            work_ms: self.work_ms,
            failures: self.n_failures,
            usage: self.usage,
        }
    }

    fn task(&self, id: TaskId) -> Option<&Task> {
        self.view.state().task(id)
    }

    fn task_json(&self, key: (TaskId, Option<&str>)) -> Option<TaskSideJson<'_>> {
        let task = self.task_of(key)?;
        let id = task.plan.id;
        let times = self.view.times(id);
        Some(TaskSideJson {
            status: task.status.as_str(),
            attempts: task.attempts,
            result: task.result.as_deref(),
            error: task.error.as_deref(),
            duration_ms: times.ended_at.zip(times.started_at).map(|(ended, started)| ms(ended, started)),
            usage: self.usage_by_task.get(&id).copied().unwrap_or_default(),
        })
    }
}

fn ms(later: Timestamp, earlier: Timestamp) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}

/// `compare`.
pub async fn compare(session: &Session, compare: &Compare) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let (one, other) = (find_plan(&store, &compare.one).await?, find_plan(&store, &compare.other).await?);
    let (of_one, of_other) = (History::of(&store, &one).await?, History::of(&store, &other).await?);
    let (shared, at) = match of_one.shared_with(&of_other) {
        Some((shared, Some(at))) => (shared.to_owned(), at),
        Some((_, None)) => return Err(Failure::user("this is one plan: name two that share a history")),
        None => {
            let diff = session.command(&format!("diff {} {}", visible(&one), visible(&other)));
            let message =
                format!("{one} and {other} share no history: neither was forked from the other, or from one plan");
            return Err(Failure::new(Code::Nothing, message).hint(format!("any two plans are held together by {diff}")));
        }
    };
    let last = Range::up_to(at).backwards();
    let last = store.read(&Query::tag(plan_tag(&shared)), last, 1).await?.events.into_iter().next();
    let moment = last.as_ref().map(|last| last.created_at);
    let (at, event_type) = last.map_or((at, String::new()), |last| (last.position, last.event_type));
    let parted = Parted { at, moment };
    let one = Side::load(&store, &of_one, one, parted).await?;
    let other = Side::load(&store, &of_other, other, parted).await?;
    let compared = compared(PartedJson { plan: shared, at, event_type }, &one, &other);
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    match session.output {
        Output::Json => print_pretty(&mut stdout, &compared)?,
        Output::Jsonl => print_line(&mut stdout, &compared)?,
        Output::Text => print(&mut stdout, &compared)?,
    }
    stdout.flush()?;
    Ok(Code::Done)
}

fn compared<'a>(parted: PartedJson, one: &'a Side, other: &'a Side) -> ComparedJson<'a> {
    let mut tasks: BTreeMap<(TaskId, Option<&str>), &Task> = BTreeMap::new();
    for side in [other, one] {
        tasks.extend(side.view.state().tasks().iter().map(|task| (side.key(task), task)));
    }
    let tasks = tasks.into_iter().map(|(key, task)| {
        let (in_one, in_other) = (one.task_json(key), other.task_json(key));
        let is_the_same = one.task_of(key).map(|task| &task.plan) == other.task_of(key).map(|task| &task.plan);
        TaskJson {
            id: task.plan.name(),
            description: &task.plan.description,
            differs: !is_the_same
                || in_one.as_ref().map(TaskSideJson::outcome) != in_other.as_ref().map(TaskSideJson::outcome),
            one: in_one,
            other: in_other,
        }
    });
    let tasks = tasks.collect();
    ComparedJson { parted, one: one.json(), other: other.json(), tasks }
}

fn print(mut to: impl Write, compared: &ComparedJson<'_>) -> std::io::Result<()> {
    let ComparedJson { parted, one, other, tasks } = compared;
    let PartedJson { plan, at, event_type } = parted;
    writeln!(to, "they part behind position {at} of {}, {}", visible(plan), visible(event_type))?;
    for side in [one, other] {
        let took = side.duration_ms.map_or_else(String::new, |took| format!("  in {}", time(took)));
        let (worked, failures) = (time(side.work_ms), count(side.failures as usize, "failure"));
        let said = format!("{took}, worked on for {worked}, {failures}{}", used(&side.usage));
        writeln!(to, "{}  {}{said}", visible(side.plan), side.status)?;
    }
    let mut n_same = 0;
    for task in tasks {
        if !task.differs {
            n_same += 1;
            continue;
        }
        writeln!(to, "{}  {}", visible(&task.id), one_line(task.description, TEXT_CHARS_MAX))?;
        for (plan, side) in [(one.plan, &task.one), (other.plan, &task.other)] {
            let said = side.as_ref().map_or_else(|| "is not in it".to_owned(), said);
            writeln!(to, "    {}: {said}", visible(plan))?;
        }
    }
    if n_same > 0 {
        writeln!(to, "{n_same} of {} tasks are the same in both", tasks.len())?;
    }
    Ok(())
}

fn said(task: &TaskSideJson<'_>) -> String {
    let mut said = format!("{}, attempts: {}", task.status, task.attempts);
    if let Some(took) = task.duration_ms {
        said.push_str(&format!(", in {}", time(took)));
    }
    said.push_str(&used(&task.usage));
    if let Some(text) = task.result.or(task.error).filter(|text| !text.is_empty()) {
        said.push_str(&format!(": {}", one_line(text, TEXT_CHARS_MAX)));
    }
    said
}

/// A time in words.
fn time(ms: u64) -> String {
    Measure::Duration.words(ms)
}

fn used(usage: &Usage) -> String {
    let Usage { input_tokens, output_tokens, cost_micros, estimated_tokens, .. } = usage;
    if *usage == Usage::default() {
        return String::new();
    }
    let estimated =
        if *estimated_tokens > 0 { format!(" ({estimated_tokens} of them estimated)") } else { String::new() };
    format!(", {input_tokens} tokens told, {output_tokens} written{estimated}, a cost of {}", money(*cost_micros))
}
