//! `compare`: two plans that share a history, where they part and the outcome of each. It appends and executes
//! nothing.

use std::collections::BTreeMap;
use std::io::Write;

use crewlog_executors::history::History;
use crewlog_mq::{EventStore, Position, Query, Range, Timestamp};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::event::{self, Event, TaskStatus, Usage, money, plan_tag};
use crewlog_planner::plan::TaskId;
use crewlog_planner::state::{Measure, Phase, Task};
use crewlog_planner::view::PlanView;
use futures::TryStreamExt;
use serde::Serialize;

use crate::changes::{Change, changes};
use crate::cli::Compare;
use crate::diff::print_changes;
use crate::failure::{Code, Failure};
use crate::queries::find_plan;
use crate::session::Session;
use crate::text::{count, visible};

/// `compare` as JSON.
#[derive(Serialize)]
struct ComparedJson<'a> {
    parted: PartedJson,
    one: SideJson<'a>,
    other: SideJson<'a>,
    changes: &'a [Change],
}

/// The last event that both share.
#[derive(Serialize)]
struct PartedJson {
    plan: String,
    at: Position,
    event_type: String,
}

/// The outcome of one of them.
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
    /// When what comes behind the point began: what was under way there goes on from it.
    began_at: Option<Timestamp>,
    last_at: Option<Timestamp>,
    work_ms: u64,
    n_failures: u32,
    usage: Usage,
}

impl Side {
    async fn load(store: &EventStore, history: &History, plan: String, parted: Parted) -> Result<Self, Failure> {
        let Parted { at, moment } = parted;
        let mut side = Self {
            plan,
            view: PlanView::default(),
            began_at: moment,
            last_at: None,
            work_ms: 0,
            n_failures: 0,
            usage: Usage::default(),
        };
        let mut held = BTreeMap::new();
        let mut records = std::pin::pin!(history.records(store, &Query::all(), Range::default()));
        while let Some(recorded) = records.try_next().await? {
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
                    | TaskEvent::TaskWithdrawn { .. }
                    | TaskEvent::TimerFired { .. } => None,
                };
                side.work_ms = side.work_ms.saturating_add(since.map_or(0, |since| ms(now, since)));
            }
        }
        Ok(side)
    }

    /// Takes in an event of the plan behind the point, before its view does.
    fn take(&mut self, event: &Event, at: Timestamp) {
        // A fork may be made long after: nothing of it was under way before.
        if let (Event::PlanForked { .. }, None) = (event, self.last_at) {
            self.began_at = Some(at);
        }
        self.last_at = Some(at);
        match event {
            Event::UsageRecorded { usage, .. } => self.usage.add(usage),
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
}

fn ms(later: Timestamp, earlier: Timestamp) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}

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
    let changes = changes(&other.view, &one.view)?;
    let parted = PartedJson { plan: shared, at, event_type };
    let compared = ComparedJson { parted, one: one.json(), other: other.json(), changes: &changes };
    session.print(&compared, |to| print(to, &compared))
}

fn print(mut to: impl Write, compared: &ComparedJson<'_>) -> std::io::Result<()> {
    let ComparedJson { parted, one, other, changes } = compared;
    let PartedJson { plan, at, event_type } = parted;
    writeln!(to, "they part behind position {at} of {}, {}", visible(plan), visible(event_type))?;
    for side in [one, other] {
        let took = side.duration_ms.map_or_else(String::new, |took| format!("  in {}", time(took)));
        let (worked, failures) = (time(side.work_ms), count(side.failures as usize, "failure"));
        let said = format!("{took}, worked on for {worked}, {failures}{}", used(&side.usage));
        writeln!(to, "{}  {}{said}", visible(side.plan), side.status)?;
    }
    writeln!(to, "what {} has otherwise than {}:", visible(one.plan), visible(other.plan))?;
    print_changes(to, changes)
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
