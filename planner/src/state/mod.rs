//! The fold of a plan's events: tasks with their history, open questions, and the tasks that may run.

mod admission;
pub(crate) mod budget;
mod changes;
mod graph;
mod history;
mod indexing;
mod input;
mod questions;
mod summary;
mod timers;

use std::collections::{BTreeMap, BTreeSet};

use crewlog_mq::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::{Event, Outcome, PlannerConfig, Purpose, QuestionId, RetryClass, TaskStatus, Timer};
use crate::plan::{Attachment, NodeKind, Origin, Parent, TaskId};
pub use crate::task::{Question, Task};
use budget::Spending;
pub use budget::{Measure, Shortage};
pub(crate) use graph::{ConcurrencyGroup, ConditionStatus, Lane, Priority, Running};
use graph::{Conditions, Graph};
use summary::Summary;
pub(crate) use summary::{Entry, LINE_CHARS_MAX, NAME_CHARS_MAX, OUTCOME_CHARS_MAX, SUBJECT_CHARS_MAX};

/// The phase of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::EnumIs, Serialize, Deserialize)]
pub enum Phase {
    /// Nothing is planned.
    #[default]
    Empty,
    /// Tasks are started as they become ready.
    Active,
    /// Nothing is started.
    Paused,
    /// Over.
    Ended(Outcome),
}

/// The state of a plan.
#[serde_with::serde_as]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlannerState {
    /// The tasks, in the order of planning.
    pub tasks: Vec<Task>,
    /// All questions, in the order they were asked.
    pub questions: Vec<Question>,
    /// By task: the indexes of its questions, in the order they were asked.
    asked: BTreeMap<TaskId, Vec<usize>>,
    /// By index of an ended or answered task: answered questions of it and its ancestors, for its dependents.
    inherited_answers: BTreeMap<usize, BTreeSet<usize>>,
    /// The indexes of the questions that wait for an answer.
    pub(crate) open: BTreeSet<usize>,
    /// The phase of the plan.
    pub phase: Phase,
    /// The text's first heading.
    pub title: Option<String>,
    /// The text.
    pub source: String,
    /// The settings.
    pub config: PlannerConfig,
    /// Text that belongs to no task.
    pub context: Vec<String>,
    /// Attachments that no task mentions.
    pub attachments: Vec<Attachment>,
    pub(crate) summary: Summary,
    /// The number of events in its history, including those of the plans it was forked from.
    pub n_events: u64,
    /// True if it was cancelled; its undo tasks may still run.
    pub is_cancelled: bool,
    /// True if the last pause came from the parent plan.
    pub(crate) paused_from_parent: bool,
    /// The reason for the last pause.
    pause_reason: String,
    /// The origin of the plan.
    pub origin: Origin,
    /// The plan that a fork was made from.
    pub parent: Option<Parent>,
    /// The number of plans in its history before this one.
    pub(crate) n_ancestors: usize,
    /// The task whose failure stopped the plan: no more tasks start, and none is retried.
    pub stopped_by: Option<TaskId>,
    /// True if the plan has passed its deadline.
    pub(crate) is_late: bool,
    /// True for a fork that nobody has resumed yet.
    pub(crate) is_draft: bool,
    /// The running timers, each with its due time in log time once it has one.
    #[serde_as(as = "Vec<(_, _)>")]
    timers: BTreeMap<Timer, Option<Timestamp>>,
    /// The timers by due time; those without one come first.
    pub(crate) by_due: BTreeSet<(Option<Timestamp>, Timer)>,
    pub(crate) spending: Spending,
    /// Names of positions of its history, in the order in which they were given.
    pub checkpoints: Vec<String>,
    #[serde_as(as = "Vec<(_, _)>")]
    pub(crate) conditions: Conditions,
    /// By label, in small letters: its task.
    pub(crate) labels: BTreeMap<String, TaskId>,
    /// Rebuilt when a state is read.
    #[serde(skip)]
    pub(crate) graph: Graph,
}

impl PlannerState {
    /// A task by its number.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.index(id).map(|index| &self.tasks[index])
    }

    /// The name of a task for people and agents: its label, or its number if it has none.
    pub fn name(&self, id: TaskId) -> String {
        self.task(id).map_or_else(|| id.to_string(), |task| task.plan.name())
    }

    /// A task of this plan as a target: `PLAN/NAME`.
    pub fn target(&self, plan: &str, id: TaskId) -> String {
        format!("{plan}/{}", self.name(id))
    }

    /// A task by its label, in letters of any case, or by its number.
    pub fn task_named(&self, name: &str) -> Option<&Task> {
        self.task(self.id_named(name)?)
    }

    /// The task with this name in a text added to the plan: its label in any case, or its number.
    pub fn id_named(&self, name: &str) -> Option<TaskId> {
        let labelled = self.labels.get(&name.to_lowercase()).copied();
        let numbered = || self.task(TaskId(name.parse().ok()?)).filter(|task| task.plan.label.is_none());
        labelled.or_else(|| Some(numbered()?.plan.id))
    }

    /// The questions that wait for an answer.
    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        self.open.iter().map(|place| &self.questions[*place])
    }

    /// True if a task waits, directly or through other tasks, for an open question.
    pub fn waits_for_question(&self, task: TaskId) -> bool {
        let (mut waits_for, mut seen) = (vec![task], BTreeSet::new());
        while let Some(task) = waits_for.pop().and_then(|id| self.task(id)) {
            if task.plan.kind == NodeKind::Clarification && !task.status.is_end() {
                return true;
            }
            waits_for.extend(task.plan.depends_on.iter().map(|on| on.task).filter(|on| seen.insert(*on)));
        }
        false
    }

    /// The tasks that have not ended.
    pub(crate) fn open_tasks(&self) -> impl Iterator<Item = &Task> {
        self.graph.open.iter().map(|index| &self.tasks[*index])
    }

    /// True if the state of the plan also depends on its executors or on the time.
    pub(crate) fn depends_on_outside(&self) -> bool {
        let awaits_retry = || self.timers.keys().any(|timer| matches!(timer, Timer::Retry(_)));
        self.graph.running.count(|group| group.lane != Lane::Questions) > 0 || awaits_retry()
    }

    /// True if no dependency keeps a task from starting.
    pub fn has_met_dependencies(&self, task: TaskId) -> bool {
        self.index(task).is_some_and(|index| self.graph.unmet[index] == 0)
    }

    /// True for a plan that is paused because its parent is.
    pub fn is_paused_from_parent(&self) -> bool {
        self.phase == Phase::Paused && self.paused_from_parent
    }

    /// The reason for the pause, if the plan is paused.
    pub fn pause_reason(&self) -> Option<&str> {
        (self.phase == Phase::Paused).then_some(&self.pause_reason)
    }

    /// True for a standing plan with nothing left to do.
    pub fn waits_for_work(&self) -> bool {
        self.phase == Phase::Active && self.graph.open.is_empty() && self.open.is_empty()
    }

    /// The summary of results that prompts no longer show in full.
    pub fn context_summary(&self) -> &str {
        &self.summary.text
    }

    /// The number of the next planned task.
    pub fn next_id(&self) -> u64 {
        self.tasks.last().map_or(1, |task| task.plan.id.0 + 1)
    }

    pub(crate) fn index(&self, id: TaskId) -> Option<usize> {
        // Tasks are numbered 1, 2, 3 ..., but a log may deviate.
        let place = usize::try_from(id.0).ok()?.wrapping_sub(1);
        match self.tasks.get(place) {
            Some(task) if task.plan.id == id => Some(place),
            Some(_) | None => self.tasks.binary_search_by_key(&id, |task| task.plan.id).ok(),
        }
    }

    /// True while a person is asked what to do about a failure of the task.
    pub(crate) fn is_asked_what_to_do_about(&self, id: TaskId) -> bool {
        self.questions_of(id).any(|question| question.purpose == Purpose::Failure && question.is_open())
    }

    /// The questions that a task asked, in the order they were asked.
    pub(crate) fn questions_of(&self, task: TaskId) -> impl Iterator<Item = &Question> {
        self.asked.get(&task).into_iter().flatten().map(|place| &self.questions[*place])
    }

    pub(crate) fn question(&self, id: QuestionId) -> Option<&Question> {
        self.questions.get(id.index())
    }

    /// Applies one event. It trusts the log: events that the planner did not decide are ignored.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.n_events += 1;
        match event {
            Event::TasksPlanned { tasks, title, source, config, context, attachments, origin } => {
                self.tasks = tasks.iter().map(|plan| Task::planned(plan.clone())).collect();
                self.title.clone_from(title);
                self.source.clone_from(source);
                self.config.clone_from(config);
                self.context.clone_from(context);
                self.attachments.clone_from(attachments);
                self.origin.clone_from(origin);
                self.phase = Phase::Active;
                let labelled = tasks.iter().filter_map(|task| Some((task.label.as_ref()?.to_lowercase(), task.id)));
                self.labels = labelled.collect();
                self.index_graph();
                self.start_timer(Timer::Plan, config.deadline_ms);
            }
            Event::TaskDispatched { task_id, attempt, .. } => self.begin(*task_id, *attempt),
            Event::TaskStatusUpdated { task_id, .. } => self.update(*task_id, event),
            Event::ClarificationRequested { task_id, question_id, question, purpose, default } => {
                // The deadline does not run while a person decides about a failure; a retry gets its full time.
                if *purpose == Purpose::Failure {
                    self.drop_timer(Timer::Task(*task_id));
                }
                self.start_timer(Timer::Question(*question_id), default.as_ref().map(|default| default.after_ms));
                self.ask(Question {
                    id: *question_id,
                    task: *task_id,
                    question: question.clone(),
                    purpose: *purpose,
                    condition: None,
                    default: default.clone(),
                    answer: None,
                    is_by_default: false,
                    is_withdrawn: false,
                });
            }
            Event::ClarificationReceived { question_id, answer, is_default, .. } => {
                self.close_question(*question_id, answer, *is_default);
            }
            Event::ContextCompacted { summary, removed_task_ids, covers } => {
                let covered = covers.map_or(self.n_events - 1, |covered| covered.to);
                self.summarize(summary, removed_task_ids, covered);
            }
            Event::PlanForked { parent, at, reason, is_draft } => {
                self.fork(Parent { plan: parent.clone(), at: *at, reason: reason.clone() }, *is_draft);
            }
            Event::TasksAmended { tasks, source, .. } => self.amend(tasks, source.as_deref()),
            Event::SettingsChanged { config, .. } => self.configure(config),
            Event::TimerSet { timer, due } => self.set_timer(*timer, Some(*due)),
            Event::TimerFired { timer, .. } => self.fire(*timer),
            Event::TaskPaused { task_id, .. } => self.change(*task_id, |task| task.is_paused = true),
            Event::TaskResumed { task_id } => self.change(*task_id, |task| task.is_paused = false),
            Event::LimitReached { task_id, error, delay_ms } => self.limit(*task_id, error, *delay_ms),
            Event::RetryHastened { task_id } => self.fire(Timer::Retry(*task_id)),
            Event::RetryScheduled { task_id, class, delay_ms } => self.retry_after(*task_id, *class, *delay_ms),
            Event::UsageRecorded { task_id, epoch, usage, .. } => self.spend(*task_id, *epoch, usage),
            Event::ClarificationWithdrawn { question_id, .. } => self.withdraw(question_id.index()),
            Event::CheckpointNamed { name } => self.checkpoints.push(name.clone()),
            Event::PlanPaused { .. } if self.phase == Phase::Empty => {}
            Event::PlanPaused { reason, from_parent } => {
                (self.phase, self.paused_from_parent) = (Phase::Paused, *from_parent);
                self.pause_reason.clone_from(reason);
            }
            Event::PlanResumed {} => (self.phase, self.is_draft) = (Phase::Active, false),
            Event::PlanStopped { because } => self.stopped_by = Some(*because),
            Event::PlanCancelled { .. } => self.is_cancelled = true,
            Event::TasksReopened { task_ids } => self.reopen(task_ids),
            Event::PlanningCompleted { outcome, .. } => {
                (self.phase, self.is_late) = (Phase::Ended(*outcome), false);
                self.drop_timers();
            }
        }
    }

    fn fire(&mut self, timer: Timer) {
        self.drop_timer(timer);
        match timer {
            Timer::Plan => self.is_late = true,
            Timer::Retry(task) => self.change(task, |task| task.retry_ms = None),
            Timer::Task(_) | Timer::Question(_) => {}
        }
    }

    fn limit(&mut self, id: TaskId, error: &str, delay_ms: u64) {
        self.end_spending(id, TaskStatus::Planned);
        self.change(id, |task| {
            (task.status, task.result, task.error) = (TaskStatus::Planned, None, Some(error.to_owned()));
        });
        self.retry_after(id, RetryClass::RateLimited, delay_ms);
    }

    fn retry_after(&mut self, id: TaskId, class: RetryClass, delay_ms: u64) {
        self.change(id, |task| {
            task.retry_ms = (delay_ms > 0).then_some(delay_ms);
            let n = task.retries.entry(class).or_default();
            *n = n.saturating_add(1);
        });
        if delay_ms > 0 {
            self.start_timer(Timer::Retry(id), Some(delay_ms));
        }
    }

    fn update(&mut self, id: TaskId, event: &Event) {
        let Event::TaskStatusUpdated { status, result, error, unblocks, .. } = event else { return };
        self.end_spending(id, *status);
        let stopped = self.stopped_by.filter(|_| !unblocks);
        self.change(id, |task| {
            let is_stopped = *status == TaskStatus::Skipped || (status.is_end() && task.retry_ms.is_some());
            (task.stopped_by, task.retry_ms) = (stopped.filter(|_| is_stopped), None);
            if let (TaskStatus::Running, Some(error)) = (task.status, error) {
                let ended = if status.is_end() { *status } else { TaskStatus::Failed };
                task.record_failure(ended, error);
            }
            task.status = *status;
            task.retries.remove(&RetryClass::RateLimited);
            task.result.clone_from(result);
            task.error.clone_from(error);
            task.unblocks = *unblocks;
            task.is_paused &= !status.is_end();
        });
        // An answer also ends the wait for a retry.
        self.drop_timer(Timer::Retry(id));
        if status.is_end() {
            self.drop_timers_of(id);
            let asked = self.asked.get(&id).cloned().unwrap_or_default();
            asked.into_iter().for_each(|place| self.withdraw(place));
        }
    }

    fn begin(&mut self, id: TaskId, attempt: u32) {
        let first_question = Some(QuestionId(self.questions.len() as u64 + 1));
        self.change(id, |task| {
            (task.attempts, task.retry_ms, task.first_question) = (attempt, None, first_question);
            task.is_inherited = false;
            task.status = TaskStatus::Running;
        });
        self.drop_timer(Timer::Retry(id));
        self.start_timer(Timer::Task(id), self.task(id).and_then(|task| task.plan.deadline_ms));
    }

    fn reopen(&mut self, ids: &[TaskId]) {
        let known = ids.iter().filter_map(|id| self.index(*id));
        self.retract(&known.filter(|index| self.tasks[*index].status.is_end()).collect());
        for id in ids {
            self.drop_timers_of(*id);
            let Some(index) = self.index(*id) else { continue };
            let task = &mut self.tasks[index];
            // The old answer would exclude the task again, so ask the condition again, unless its question is open.
            if let (true, TaskStatus::Skipped, Some(condition)) =
                (task.unblocks, task.status, task.plan.condition_key())
                && let Some(Some(_)) = self.conditions.get(&condition)
            {
                self.conditions.remove(&condition);
            }
            let (attempts, usage_epoch) = (task.attempts, task.usage_epoch);
            let failed_attempts = std::mem::take(&mut task.failed_attempts);
            *task = Task { attempts, usage_epoch, failed_attempts, ..Task::planned(task.plan.clone()) };
        }
        if let Phase::Ended(_) = self.phase {
            self.phase = Phase::Active;
        }
        let goes_forward = |id: &TaskId| self.task(*id).is_some_and(|task| task.plan.compensates.is_none());
        if ids.iter().any(goes_forward) {
            (self.is_cancelled, self.stopped_by) = (false, None);
        }
        self.index_graph();
        self.start_timer(Timer::Plan, self.config.deadline_ms);
    }
}
