//! A plan as the views need it: its state, and the history of its tasks.

use std::collections::{BTreeMap, BTreeSet};

use crewlog_executors::crew::begins;
use crewlog_executors::plans::plan_of;
use crewlog_mq::{Error, Position, Recorded, Timestamp};
use crewlog_planner::claim;
use crewlog_planner::event::{self, TaskStatus, Timer};
use crewlog_planner::plan::{NodeKind, TaskId};
use crewlog_planner::state::Task;
use crewlog_planner::view::PlanView;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::warm::{Fold, every_other};

/// The most stored changes of the counts; beyond it every other one is dropped.
const COUNTS_MAX: usize = 4_000;
/// The most stored bars of a task, the newest.
const BARS_MAX: usize = 64;
/// The number of stages.
pub const N_STAGES: usize = 8;

/// The stage of a task.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Stage {
    /// It completed.
    Done,
    /// It failed or timed out.
    Failed,
    /// It was skipped or cancelled.
    Skipped,
    /// An executor holds it.
    Running,
    /// It failed and waits for its next attempt.
    Retrying,
    /// It may start, and no executor holds it.
    Queued,
    /// It waits for a person.
    Waiting,
    /// Its turn has not come.
    Planned,
}

impl Stage {
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The stage of a task of a plan.
    pub fn of(view: &PlanView, task: &Task) -> Self {
        let id = task.plan.id;
        let is_held = view.holder(id).is_some();
        match task.status {
            TaskStatus::Completed => Self::Done,
            TaskStatus::Failed | TaskStatus::TimedOut => Self::Failed,
            TaskStatus::Cancelled | TaskStatus::Skipped => Self::Skipped,
            TaskStatus::NeedsClarification => Self::Waiting,
            _open if !is_held && view.state().due(Timer::Retry(id)).is_some() => Self::Retrying,
            TaskStatus::Planned => Self::Planned,
            TaskStatus::Running if is_held || view.is_reported(id) => Self::Running,
            TaskStatus::Running if task.plan.kind == NodeKind::Clarification => Self::Waiting,
            TaskStatus::Running if view.times(id).claim.is_parked() => Self::Waiting,
            TaskStatus::Running => Self::Queued,
        }
    }
}

/// How many tasks are in each stage, in the order of [`Stage::ALL`].
pub type Counts = [u32; N_STAGES];

/// A point of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub position: Position,
    pub at: Timestamp,
}

/// The time that a task spent in one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    pub stage: Stage,
    /// Its holder, as the log names executors.
    pub executor: Option<String>,
    pub from: Point,
    /// The end of the stage, and the next stage.
    pub ended: Option<(Point, Stage)>,
}

/// A plan's history for the views.
#[derive(Clone, Default)]
pub struct Track {
    pub view: PlanView,
    stages: BTreeMap<TaskId, Stage>,
    bars: BTreeMap<TaskId, Vec<Bar>>,
    counts: Counts,
    counted: Vec<(Point, Counts)>,
    /// The start of each wait for a person, by the id of its item.
    pub since: BTreeMap<String, Timestamp>,
    /// The tasks added after the plan was created, with their positions.
    pub added: BTreeMap<TaskId, Position>,
    /// The number of its events.
    pub n_events: usize,
}

impl Fold for Track {
    fn take(&mut self, recorded: &Recorded) -> Result<(), Error> {
        let n_tasks = self.view.state().tasks.len();
        self.view.apply(recorded)?;
        self.n_events += 1;
        let point = Point { position: recorded.position, at: recorded.created_at };
        if let Some(plan) = plan_of(recorded)
            && let Some(item) = begins(plan, recorded)
        {
            self.since.insert(item, recorded.created_at);
        }
        let before = self.counts;
        match tasks_of(recorded) {
            Some(tasks) => tasks.into_iter().for_each(|task| self.update(task, point)),
            None => {
                let tasks: Vec<_> = self.view.state().tasks.iter().map(|task| task.plan.id).collect();
                if recorded.event_type == "TasksAmended" {
                    self.added.extend(tasks.iter().skip(n_tasks).map(|task| (*task, recorded.position)));
                }
                tasks.into_iter().for_each(|task| self.update(task, point));
            }
        }
        if self.counts != before {
            self.counted.push((point, self.counts));
            if self.counted.len() > COUNTS_MAX {
                let mut is_second = every_other();
                self.counted.retain(|_| is_second());
            }
        }
        Ok(())
    }
}

impl Track {
    fn update(&mut self, id: TaskId, point: Point) {
        let Some(task) = self.view.state().task(id) else { return };
        let stage = Stage::of(&self.view, task);
        let executor = self.view.holder(id).map(|holder| holder.executor.to_string());
        let before = self.stages.insert(id, stage);
        if before != Some(stage) {
            if let Some(before) = before {
                self.counts[before as usize] -= 1;
            }
            self.counts[stage as usize] += 1;
        }
        let bars = self.bars.entry(id).or_default();
        if let Some(open) = bars.last_mut().filter(|bar| bar.ended.is_none()) {
            // The executor that reported the end counts as the holder until the plan handles the report.
            let is_reported = stage == Stage::Running && executor.is_none();
            if open.stage == stage && (is_reported || open.executor == executor) {
                return;
            }
            open.ended = Some((point, stage));
        }
        if matches!(stage, Stage::Running | Stage::Retrying | Stage::Queued | Stage::Waiting) {
            if bars.len() == BARS_MAX {
                bars.remove(0);
            }
            bars.push(Bar { stage, executor, from: point, ended: None });
        }
    }

    /// The bars of a task, the oldest first.
    pub fn bars(&self, task: TaskId) -> &[Bar] {
        self.bars.get(&task).map_or(&[], Vec::as_slice)
    }

    /// The stage of a task.
    pub fn stage(&self, task: TaskId) -> Stage {
        self.stages.get(&task).copied().unwrap_or(Stage::Planned)
    }

    /// The number of tasks in each stage.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The counts at a position.
    pub fn counts_at(&self, position: Position) -> Counts {
        let n = self.counted.partition_point(|(point, _)| point.position <= position);
        n.checked_sub(1).map_or([0; N_STAGES], |last| self.counted[last].1)
    }

    /// The first change of the counts.
    pub fn begins(&self) -> Option<Point> {
        self.counted.first().map(|(point, _)| *point)
    }
}

/// The tasks that an event can change; `None` means all.
pub fn tasks_of(recorded: &Recorded) -> Option<BTreeSet<TaskId>> {
    if recorded.stream_id != event::STREAM {
        let task = claim::split_aggregate_id(&recorded.aggregate_id).filter(|_| recorded.stream_id == claim::STREAM);
        return Some(task.map(|(_, task)| task).into_iter().collect());
    }
    match recorded.event_type.as_str() {
        "TasksPlanned" | "TasksAmended" | "PlanForked" => None,
        _of_named_tasks => {
            let data: Value = serde_json::from_str(&recorded.data).unwrap_or_default();
            let many = data["task_ids"].as_array().into_iter().flatten();
            Some(many.chain([&data["task_id"]]).filter_map(Value::as_u64).map(TaskId).collect())
        }
    }
}
