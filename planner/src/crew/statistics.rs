//! Statistics of each project: numbers of ended tasks by outcome and executor, and their durations.
//!
//! A dispatched task that is not a question counts each time its plan records an end: a failed task that is retried and
//! completes counts once as failed and once as completed. Undo tasks do not count, nor do delegated tasks: the tasks of
//! the sub-plan count instead.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{Error, Event as MqEvent, FromRecorded, Recorded, Snapshot, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Emitted, Projection, Reactor, project_of, project_tag};
use crate::claim::{self, TaskEvent};
use crate::event::{Event, Outcome, PlannerCmd, TaskStatus};
use crate::plan_event::PlanEvent;

/// The stream of statistics.
pub const STREAM: &str = "statistics";

/// The most active executor of a project without ended tasks.
const UNKNOWN: &str = "unknown";
/// Between the ends of plans, statistics are appended once for this many ended tasks.
pub const TASKS_PER_PROJECTION: u64 = 50;

/// Statistics in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StatisticsEvent {
    /// The statistics of a project as of the cause.
    StatisticsProjected(Figures),
}

impl MqEvent for StatisticsEvent {}

/// The statistics of a project. Means have two decimals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Tasks that completed.
    pub completed: u64,
    /// Tasks that failed or timed out.
    pub failed: u64,
    /// Tasks that executors hold now.
    pub active: u64,
    /// Percentage of completed among ended tasks; 0 without any.
    pub success_rate: f64,
    /// Mean time of completed tasks from the first claim to the end, in milliseconds; 0 without any.
    pub mean_duration_ms: u64,
    /// Mean number of tasks in completed plans.
    pub mean_steps: f64,
    /// Mean number of claimed dispatches of completed tasks.
    pub mean_iterations: f64,
    /// The executor with the most ended tasks, on a tie the first by name; `unknown` without any.
    pub most_active_executor: String,
}

impl Default for Figures {
    fn default() -> Self {
        Sums::default().figures()
    }
}

/// The statistics projector.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    projects: BTreeMap<String, ProjectStatistics>,
    /// Projects with changes since the last call of [`Reactor::emit`].
    touched: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ProjectStatistics {
    sums: Sums,
    /// Dispatched tasks that have not ended, by the task's aggregate.
    tasks: BTreeMap<String, TaskRecord>,
    projected: Figures,
    n_ended_since: u64,
    has_ended_plan: bool,
}

/// The exact numbers behind the statistics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    completed: u64,
    failed: u64,
    active: u64,
    /// Completed tasks that were claimed, and their total duration.
    n_timed: u64,
    duration_us: u128,
    /// Claimed dispatches of completed tasks.
    iterations: u64,
    /// Completed plans, and their number of tasks.
    plans: u64,
    steps: u64,
    by_executor: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct TaskRecord {
    first_claim: Option<Timestamp>,
    executor: Option<String>,
    /// The last claimed dispatch, and the number of claimed dispatches.
    attempt: u32,
    iterations: u64,
    is_running: bool,
    is_held: bool,
}

impl Snapshot for Statistics {
    const FOLD: &'static str = "statistics";
    const VERSION: u32 = 4;
}

impl Projection for Statistics {
    fn handle(&mut self, recorded: &Recorded) -> Result<(), Error> {
        let name = project_of(recorded);
        match (PlanEvent::from_recorded(recorded)?, self.projects.get_mut(name)) {
            (PlanEvent::Plan(event), Some(project)) => project.take_of_plan(&event, recorded),
            (PlanEvent::Plan(event), None) => {
                self.projects.entry(name.to_owned()).or_default().take_of_plan(&event, recorded);
            }
            (PlanEvent::Task(_, event), Some(project)) => project.take_of_task(&event, recorded),
            (PlanEvent::Task(..), None) | (PlanEvent::Other, _) => return Ok(()),
        }
        if !self.touched.contains(name) {
            self.touched.insert(name.to_owned());
        }
        Ok(())
    }

    fn end_append(&mut self) {
        drop(self.emit());
    }
}

impl Reactor for Statistics {
    type Event = StatisticsEvent;
    const NAME: &'static str = "statistics";
    const STREAM: &'static str = STREAM;

    fn emit(&mut self) -> Vec<Emitted<StatisticsEvent>> {
        let mut emitted = Vec::new();
        for name in std::mem::take(&mut self.touched) {
            let Some(project) = self.projects.get_mut(&name) else { continue };
            let is_due = std::mem::take(&mut project.has_ended_plan) || project.n_ended_since >= TASKS_PER_PROJECTION;
            let figures = project.sums.figures();
            if is_due && figures != project.projected {
                project.projected = figures.clone();
                project.n_ended_since = 0;
                let tags = project_tag(&name).into_iter().collect();
                emitted.push(Emitted { project: name, event: StatisticsEvent::StatisticsProjected(figures), tags });
            }
        }
        emitted
    }
}

impl Statistics {
    /// The statistics of every project that has plans, by name.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Figures)> {
        self.projects.iter().map(|(name, project)| (name.as_str(), project.sums.figures()))
    }

    /// The statistics of a project; zeros if it has no plans.
    pub fn of(&self, project: &str) -> Figures {
        self.projects.get(project).map(|project| project.sums.figures()).unwrap_or_default()
    }
}

impl ProjectStatistics {
    fn take_of_plan(&mut self, event: &Event, recorded: &Recorded) {
        let plan = &recorded.aggregate_id;
        if let Event::TaskDispatched { task_id, command: PlannerCmd::ExecuteTask { parameters, .. }, .. } = event
            && !parameters.is_delegated
            && parameters.compensates.is_none()
        {
            let task = self.tasks.entry(claim::aggregate_id(plan, *task_id)).or_default();
            task.is_running = true;
        } else if let Event::TaskStatusUpdated { task_id, status, .. } = event {
            self.update(&claim::aggregate_id(plan, *task_id), *status, recorded.created_at);
        } else if let Event::PlanningCompleted { outcome, n_tasks, .. } = event {
            self.has_ended_plan = true;
            if *outcome == Outcome::Completed {
                self.sums.plans += 1;
                self.sums.steps += n_tasks;
            }
        }
    }

    /// Tasks that were never dispatched do not count, even if their boxes are ticked.
    fn update(&mut self, aggregate_id: &str, status: TaskStatus, now: Timestamp) {
        let Some(task) = self.tasks.get_mut(aggregate_id) else { return };
        if status == TaskStatus::Running {
            return;
        }
        task.is_running = false;
        task.let_go(&mut self.sums);
        if status.is_end()
            && let Some(task) = self.tasks.remove(aggregate_id)
        {
            self.n_ended_since += 1;
            self.sums.end(&task, status, now);
        }
    }

    fn take_of_task(&mut self, event: &TaskEvent, recorded: &Recorded) {
        let Some(task) = self.tasks.get_mut(&recorded.aggregate_id) else { return };
        if event.ends_hold() {
            task.let_go(&mut self.sums);
        } else if let TaskEvent::TaskClaimed { attempt, executor, .. } = event
            && task.is_running
        {
            task.first_claim.get_or_insert(recorded.created_at);
            task.executor = Some(executor.name.clone());
            task.iterations += u64::from(task.attempt != *attempt);
            task.attempt = *attempt;
            self.sums.active += u64::from(!std::mem::replace(&mut task.is_held, true));
        }
    }
}

impl TaskRecord {
    fn let_go(&mut self, sums: &mut Sums) {
        sums.active -= u64::from(std::mem::take(&mut self.is_held));
    }
}

impl Sums {
    fn end(&mut self, task: &TaskRecord, status: TaskStatus, now: Timestamp) {
        match status {
            TaskStatus::Completed => {
                self.completed += 1;
                self.iterations += task.iterations;
                if let Some(claimed) = task.first_claim {
                    self.n_timed += 1;
                    self.duration_us += now.since(claimed).as_micros();
                }
            }
            TaskStatus::Failed | TaskStatus::TimedOut => self.failed += 1,
            TaskStatus::Planned
            | TaskStatus::Running
            | TaskStatus::NeedsClarification
            | TaskStatus::Cancelled
            | TaskStatus::Skipped => return,
        }
        if let Some(executor) = &task.executor {
            *self.by_executor.entry(executor.clone()).or_default() += 1;
        }
    }

    fn figures(&self) -> Figures {
        let most = self.by_executor.iter().max_by_key(|(name, n)| (**n, Reverse(name.as_str())));
        Figures {
            completed: self.completed,
            failed: self.failed,
            active: self.active,
            success_rate: ratio(self.completed * 100, self.completed + self.failed),
            mean_duration_ms: mean_ms(self.duration_us, self.n_timed),
            mean_steps: ratio(self.steps, self.plans),
            mean_iterations: ratio(self.iterations, self.completed),
            most_active_executor: most.map_or(UNKNOWN, |(name, _)| name).to_owned(),
        }
    }
}

/// `whole / parts` with two decimals, rounded half away from zero; 0 if there are no parts. Integer arithmetic up to
/// the last step makes the result the same on every machine.
fn ratio(whole: u64, parts: u64) -> f64 {
    let hundredths = rounded(u128::from(whole) * 100, u128::from(parts));
    // A u32 converts to f64 exactly, and larger means are meaningless.
    f64::from(u32::try_from(hundredths).unwrap_or(u32::MAX)) / 100.0
}

fn mean_ms(whole_us: u128, parts: u64) -> u64 {
    u64::try_from(rounded(whole_us, u128::from(parts) * 1_000)).unwrap_or(u64::MAX)
}

fn rounded(whole: u128, parts: u128) -> u128 {
    (whole * 2 + parts).checked_div(parts * 2).unwrap_or(0)
}
