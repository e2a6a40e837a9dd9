//! The figures of each project: what has been done, by what, and how long it took. They count and judge nobody.
//!
//! A task counts when it was dispatched and is no question. What a later retry can open again is kept, a number or two
//! for each such task; of what was completed only the sums are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::{Error, Event as MqEvent, Recorded, Snapshot, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Reactor, Said, project_of, project_tag};
use crate::claim::{self, TaskEvent};
use crate::event::{self, Event, Outcome, PlannerCmd, TaskStatus};
use crate::plan::{NodeKind, TaskId};

/// The stream of figures.
pub const STREAM: &str = "statistics";

/// What the kind is called that has done most when nothing has been done.
const UNKNOWN: &str = "unknown";

/// What is said of a project's figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StatisticsEvent {
    /// They have changed; all of them, as they are now.
    StatisticsProjected(Figures),
}

impl MqEvent for StatisticsEvent {
    const EVENT_VERSION: &'static str = "1.0";

    fn event_type(&self) -> &'static str {
        match self {
            Self::StatisticsProjected(_) => "StatisticsProjected",
        }
    }
}

/// The figures of a project. Means have two decimals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Tasks that are completed.
    pub completed: u64,
    /// Tasks that failed or timed out, and were not opened again.
    pub failed: u64,
    /// Tasks that executors hold now.
    pub active: u64,
    /// `completed` among `completed` and `failed`, of a hundred; 0 when there is none.
    pub success_rate: f64,
    /// Of completed tasks: from the first claim to the end, in milliseconds; 0 when there is none.
    pub mean_duration_ms: u64,
    /// Of completed plans: how many tasks they have.
    pub mean_steps: f64,
    /// Of completed tasks: how often they were dispatched.
    pub mean_iterations: f64,
    /// The kind with most completed and failed tasks, the first by name of several; `unknown` when there is none.
    pub most_active_kind: String,
}

impl Default for Figures {
    fn default() -> Self {
        Sums::default().figures()
    }
}

/// The statistics projector.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    projects: BTreeMap<String, Project>,
    plans: BTreeMap<String, Plan>,
    /// Projects that something happened in since the figures were last asked for.
    touched: BTreeSet<String>,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Project {
    sums: Sums,
    said: Figures,
}

/// What figures are made of.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    completed: u64,
    failed: u64,
    active: u64,
    /// Completed tasks that were claimed, and how long they took together.
    n_timed: u64,
    duration_us: u128,
    /// Dispatches of completed tasks.
    iterations: u64,
    /// Completed plans, and their tasks.
    plans: u64,
    steps: u64,
    by_kind: BTreeMap<NodeKind, u64>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Plan {
    project: String,
    n_tasks: u64,
    /// The number of its last task.
    last: u64,
    is_completed: bool,
    /// Those that were dispatched and are not completed.
    tasks: BTreeMap<TaskId, Task>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Task {
    kind: NodeKind,
    attempts: u32,
    first_claim: Option<Timestamp>,
    is_running: bool,
    is_held: bool,
    has_failed: bool,
}

impl Snapshot for Statistics {
    const FOLD: &'static str = "statistics";
    const VERSION: u32 = 2;
}

impl Reactor for Statistics {
    type Event = StatisticsEvent;
    const NAME: &'static str = "statistics";
    const STREAM: &'static str = STREAM;

    fn take(&mut self, recorded: &Recorded) -> Result<(), Error> {
        if recorded.stream_id == event::STREAM {
            let event = recorded.decode::<Event>()?;
            if let Event::TasksPlanned { tasks, .. } = &event {
                self.plan(recorded, (tasks.len() as u64, tasks.last().map_or(0, |task| task.id.0)));
            }
            // What was done before it was a plan of its own is counted with the other.
            if let Event::PlanForked { parent, .. } = &event {
                self.plan(recorded, self.plans.get(parent).map_or((0, 0), |parent| (parent.n_tasks, parent.last)));
            }
            if let Some((plan, sums)) = self.at(&recorded.aggregate_id) {
                plan.take(&event, recorded.created_at, sums);
            }
        } else if recorded.stream_id == claim::STREAM
            && let Some((plan, task)) = claim::split_aggregate_id(&recorded.aggregate_id)
        {
            let event = recorded.decode::<TaskEvent>()?;
            if let Some((plan, sums)) = self.at(plan)
                && let Some(task) = plan.tasks.get_mut(&task)
            {
                task.take(&event, recorded.created_at, sums);
            }
        }
        Ok(())
    }

    fn due(&mut self) -> Vec<Said<StatisticsEvent>> {
        let mut said = Vec::new();
        for name in std::mem::take(&mut self.touched) {
            let Some(project) = self.projects.get_mut(&name) else { continue };
            let figures = project.sums.figures();
            if figures != project.said {
                project.said = figures.clone();
                let tags = project_tag(&name).into_iter().collect();
                said.push(Said { project: name, event: StatisticsEvent::StatisticsProjected(figures), tags });
            }
        }
        said
    }
}

impl Statistics {
    /// The figures of every project that has plans, by name.
    pub fn figures(&self) -> impl Iterator<Item = (&str, Figures)> {
        self.projects.iter().map(|(name, project)| (name.as_str(), project.sums.figures()))
    }

    fn plan(&mut self, recorded: &Recorded, (n_tasks, last): (u64, u64)) {
        let project = project_of(recorded).to_owned();
        self.projects.entry(project.clone()).or_default();
        let plan = Plan { project, n_tasks, last, is_completed: false, tasks: BTreeMap::new() };
        self.plans.entry(recorded.aggregate_id.clone()).or_insert(plan);
    }

    /// A plan with the sums of its project.
    fn at(&mut self, plan: &str) -> Option<(&mut Plan, &mut Sums)> {
        let plan = self.plans.get_mut(plan)?;
        if !self.touched.contains(&plan.project) {
            self.touched.insert(plan.project.clone());
        }
        let project = self.projects.get_mut(&plan.project)?;
        Some((plan, &mut project.sums))
    }
}

impl Plan {
    fn take(&mut self, event: &Event, now: Timestamp, sums: &mut Sums) {
        match event {
            Event::TaskDispatched { task_id, attempt, command, .. } => {
                let kind = match command {
                    PlannerCmd::ExecuteTask { kind, .. } => *kind,
                    PlannerCmd::RequestClarification { .. } => NodeKind::Clarification,
                };
                let task = self.tasks.entry(*task_id).or_insert_with(|| Task::new(kind));
                task.reopen(sums);
                task.attempts = *attempt;
                task.is_running = true;
            }
            Event::TaskStatusUpdated { task_id, status, .. } => self.update(*task_id, *status, now, sums),
            Event::TasksReopened { task_ids } => {
                for task in task_ids {
                    if let Some(task) = self.tasks.get_mut(task) {
                        task.reopen(sums);
                    }
                }
                self.go_on(sums);
            }
            Event::TasksAmended { tasks, .. } => {
                // A standing plan that had ended goes on.
                self.go_on(sums);
                for task in tasks {
                    if task.id.0 > self.last {
                        self.n_tasks += 1;
                        self.last = task.id.0;
                    }
                }
            }
            Event::PlanningCompleted { outcome, .. } => {
                if *outcome == Outcome::Completed && !std::mem::replace(&mut self.is_completed, true) {
                    sums.plans += 1;
                    sums.steps += self.n_tasks;
                }
            }
            Event::TasksPlanned { .. }
            | Event::ClarificationRequested { .. }
            | Event::ClarificationReceived { .. }
            | Event::ContextCompacted { .. }
            | Event::PlanForked { .. }
            | Event::SettingsChanged { .. }
            | Event::TaskPaused { .. }
            | Event::TaskResumed { .. }
            | Event::DeadlineSet { .. }
            | Event::UsageRecorded { .. }
            | Event::ClarificationWithdrawn { .. }
            | Event::CheckpointNamed { .. }
            | Event::CompactionRequested { .. }
            | Event::PlanPaused { .. }
            | Event::PlanResumed {}
            | Event::PlanCancelled { .. } => {}
        }
    }

    fn go_on(&mut self, sums: &mut Sums) {
        if std::mem::take(&mut self.is_completed) {
            sums.plans -= 1;
            sums.steps -= self.n_tasks;
        }
    }

    fn update(&mut self, id: TaskId, status: TaskStatus, now: Timestamp, sums: &mut Sums) {
        // What was never dispatched has done nothing, whatever its box says.
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.reopen(sums);
        if status != TaskStatus::Running {
            task.is_running = false;
            task.let_go(sums);
        }
        match status {
            TaskStatus::Completed => {
                task.complete(now, sums);
                self.tasks.remove(&id);
            }
            TaskStatus::Failed | TaskStatus::TimedOut => task.fail(sums),
            TaskStatus::Planned
            | TaskStatus::Running
            | TaskStatus::NeedsClarification
            | TaskStatus::Cancelled
            | TaskStatus::Skipped => {}
        }
    }
}

impl Task {
    fn new(kind: NodeKind) -> Self {
        Self { kind, attempts: 0, first_claim: None, is_running: false, is_held: false, has_failed: false }
    }

    fn take(&mut self, event: &TaskEvent, now: Timestamp, sums: &mut Sums) {
        match event {
            TaskEvent::TaskClaimed { .. } => {
                self.first_claim.get_or_insert(now);
                if self.is_running && !std::mem::replace(&mut self.is_held, true) {
                    sums.active += 1;
                }
            }
            TaskEvent::TaskReleased { .. }
            | TaskEvent::TaskStopped { .. }
            | TaskEvent::TaskCompleted { .. }
            | TaskEvent::TaskFailed { .. }
            | TaskEvent::NeedsClarification { .. } => self.let_go(sums),
            TaskEvent::TaskStarted { .. }
            | TaskEvent::LeaseRenewed { .. }
            | TaskEvent::UsageReported { .. }
            | TaskEvent::ClarificationProvided { .. } => {}
        }
    }

    fn let_go(&mut self, sums: &mut Sums) {
        if std::mem::take(&mut self.is_held) {
            sums.active -= 1;
        }
    }

    fn complete(&self, now: Timestamp, sums: &mut Sums) {
        if self.kind == NodeKind::Clarification {
            return;
        }
        sums.completed += 1;
        sums.iterations += u64::from(self.attempts);
        *sums.by_kind.entry(self.kind).or_default() += 1;
        if let Some(claimed) = self.first_claim {
            sums.n_timed += 1;
            sums.duration_us += now.since(claimed).as_micros();
        }
    }

    fn fail(&mut self, sums: &mut Sums) {
        if self.kind != NodeKind::Clarification {
            self.has_failed = true;
            sums.failed += 1;
            *sums.by_kind.entry(self.kind).or_default() += 1;
        }
    }

    /// Takes its failure back, if it has failed.
    fn reopen(&mut self, sums: &mut Sums) {
        if std::mem::take(&mut self.has_failed) {
            sums.failed -= 1;
            if let Some(n) = sums.by_kind.get_mut(&self.kind) {
                *n -= 1;
            }
        }
    }
}

impl Sums {
    fn figures(&self) -> Figures {
        let by_kind = self.by_kind.iter().filter(|(_, n)| **n > 0);
        let most = by_kind.max_by_key(|(kind, n)| (**n, Reverse(kind.as_str())));
        Figures {
            completed: self.completed,
            failed: self.failed,
            active: self.active,
            success_rate: ratio(self.completed * 100, self.completed + self.failed),
            mean_duration_ms: mean_ms(self.duration_us, self.n_timed),
            mean_steps: ratio(self.steps, self.plans),
            mean_iterations: ratio(self.iterations, self.completed),
            most_active_kind: most.map_or(UNKNOWN, |(kind, _)| kind.as_str()).to_owned(),
        }
    }
}

/// `whole / parts` to two decimals, halves away from zero; 0 of no parts. The same on every machine, since only
/// the last step leaves the integers.
fn ratio(whole: u64, parts: u64) -> f64 {
    let hundredths = rounded(u128::from(whole) * 100, u128::from(parts));
    // A u32 is exact as an f64, and a mean above the greatest is of no use to anybody.
    f64::from(u32::try_from(hundredths).unwrap_or(u32::MAX)) / 100.0
}

fn mean_ms(whole_us: u128, parts: u64) -> u64 {
    u64::try_from(rounded(whole_us, u128::from(parts) * 1_000)).unwrap_or(u64::MAX)
}

fn rounded(whole: u128, parts: u128) -> u128 {
    (whole * 2 + parts).checked_div(parts * 2).unwrap_or(0)
}
