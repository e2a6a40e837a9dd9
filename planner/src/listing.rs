//! A projection that lists all plans: which are open, and a summary of each.

use crewlog_mq::{Error, Position, Query, Recorded, Snapshot, Timestamp};
use indexmap::IndexMap;
use indexmap::map::Values;
use serde::{Deserialize, Serialize};

use crate::claim;
use crate::crew::Projection;
use crate::event::{self, Event, Outcome};
use crate::is_default;
use crate::lifecycle::{self, State};
use crate::plan::{Parent, TaskPlan};
use crate::sealed;
use crate::state::Phase;
use crate::view::PlanView;

/// The plans of a log, the oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PlanList {
    /// By id.
    plans: IndexMap<String, ListedPlan>,
}

/// A plan of the list.
#[serde_with::apply(_ => #[serde(default, skip_serializing_if = "is_default")])]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListedPlan {
    /// Its id.
    pub id: String,
    /// None for a plan that cannot be read.
    pub summary: Option<PlanSummary>,
    /// True if the summary is outdated, so that a reader must fold the plan.
    pub has_changed: bool,
    /// True if it has not ended.
    pub is_open: bool,
    /// True if its texts are sealed; the list never holds them.
    pub is_sealed: bool,
    /// The tags of its events, while it is open.
    pub tags: Vec<String>,
    /// The position of its last event or that of one of its tasks, while it is open.
    pub changed_at: Position,
}

/// The summary of a plan in lists.
#[serde_with::apply(Option => #[serde(default)], bool => #[serde(default, skip_serializing_if = "is_default")])]
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanSummary {
    /// The text's first heading, or its first task.
    pub title: String,
    /// Its state as the log alone tells it.
    pub state: State,
    /// True if the state also depends on what only a reader at the head knows: live holders, executors, sub-plans, time.
    pub is_provisional: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// The point of another plan where a fork begins.
    pub parent: Option<Parent>,
    /// True if its budget keeps tasks from starting.
    pub is_held_by_budget: bool,
    /// True if it stays open though all its tasks have ended.
    pub waits_for_work: bool,
    /// The number of its completed tasks, those left out by a condition included, and of all; without undo tasks.
    #[serde(default)]
    pub progress: (usize, usize),
}

impl PlanSummary {
    /// The summary of a plan by the log alone; none before its first event.
    pub fn of(plan: &str, view: &PlanView) -> Option<Self> {
        let state = view.state();
        let tasks = || state.tasks.iter().filter(|task| task.plan.compensates.is_none());
        let first_task = || state.tasks.first().map(|task| task.plan.description.clone());
        Some(Self {
            title: state.title.clone().or_else(first_task).unwrap_or_default(),
            state: lifecycle::of_log(plan, view),
            is_provisional: state.phase == Phase::Active && state.depends_on_outside(),
            created_at: view.created_at?,
            parent: state.parent.clone(),
            is_held_by_budget: state.held_by_budget().is_some(),
            waits_for_work: state.waits_for_work(),
            progress: (tasks().filter(|task| task.is_completed()).count(), tasks().count()),
        })
    }
}

impl Snapshot for PlanList {
    const FOLD: &'static str = "plans";
    const VERSION: u32 = 4;
}

/// The events that open and end plans: they suffice for the summary of an ended plan.
const ENDS: [&str; 5] = ["TasksPlanned", "PlanForked", "TasksReopened", "TasksAmended", "PlanningCompleted"];

impl Projection for PlanList {
    fn from_scratch() -> Query {
        Query::stream(event::STREAM).of_types(ENDS)
    }

    /// Any open plan may have changed.
    fn read_to(&mut self, at: Position) {
        self.plans.values_mut().filter(|plan| plan.is_open).for_each(|plan| plan.changed_at = at);
    }

    fn handle(&mut self, recorded: &Recorded) -> Result<(), Error> {
        if recorded.stream_id == event::STREAM {
            self.take_of_plan(recorded);
        } else if recorded.stream_id == claim::STREAM
            && let Some((plan, _)) = claim::split_aggregate_id(&recorded.aggregate_id)
            && let Some(plan) = self.plans.get_mut(plan)
        {
            // The task may have another holder now.
            plan.has_changed |= plan.is_open;
            plan.changed_at = recorded.position;
        }
        Ok(())
    }
}

impl PlanList {
    /// All plans, the oldest first.
    pub fn plans(&self) -> Values<'_, String, ListedPlan> {
        self.plans.values()
    }

    /// The plans that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &ListedPlan> {
        self.plans().filter(|plan| plan.is_open)
    }

    /// Keeps the summary of a plan that a reader has folded, unless its texts are sealed.
    pub fn summarize(&mut self, plan: &str, summary: PlanSummary) {
        if let Some(listed) = self.plans.get_mut(plan).filter(|listed| !listed.is_sealed) {
            (listed.summary, listed.has_changed) = (Some(summary), false);
        }
    }

    /// A plan that cannot be decoded is listed too: a reader that folds it gets the error.
    fn take_of_plan(&mut self, recorded: &Recorded) {
        let event = ENDS.contains(&recorded.event_type.as_str()).then(|| recorded.decode::<Event>().ok()).flatten();
        let title = match &event {
            Some(Event::PlanForked { parent, .. }) => {
                let parent = self.plans.get(parent).and_then(|parent| parent.summary.as_ref());
                parent.map(|parent| parent.title.clone())
            }
            Some(Event::TasksPlanned { title, tasks, .. }) => title.clone().or_else(|| first_of(tasks)),
            Some(Event::TasksAmended { tasks, .. }) => first_of(tasks),
            _other => None,
        };
        let id = &recorded.aggregate_id;
        let new = || ListedPlan { id: id.clone(), has_changed: true, ..ListedPlan::default() };
        let plan = self.plans.entry(id.clone()).or_insert_with(new);
        plan.take(event.as_ref(), title.unwrap_or_default(), recorded);
    }
}

fn first_of(tasks: &[TaskPlan]) -> Option<String> {
    tasks.first().map(|task| task.description.clone())
}

impl ListedPlan {
    fn take(&mut self, event: Option<&Event>, title: String, recorded: &Recorded) {
        self.is_sealed |= sealed::key_of(&recorded.tags).is_some();
        self.changed_at = recorded.position;
        if let Some(Event::PlanningCompleted { outcome, n_tasks, .. }) = event {
            (self.is_open, self.tags) = (false, Vec::new());
            // The event does not say how many tasks of another outcome are completed.
            self.has_changed = self.is_sealed || self.summary.is_none() || *outcome != Outcome::Completed;
            if let Some(summary) = &mut self.summary {
                (summary.state, summary.is_provisional) = (State::of_outcome(*outcome), false);
                if *outcome == Outcome::Completed {
                    let n_tasks = usize::try_from(*n_tasks).unwrap_or(usize::MAX);
                    summary.progress = (n_tasks, n_tasks);
                }
                (summary.is_held_by_budget, summary.waits_for_work) = (false, false);
            }
            return;
        }
        // A changed source text alone does not reopen a plan.
        let opens = !matches!(event, Some(Event::TasksAmended { tasks, .. }) if tasks.is_empty());
        if opens && ENDS.contains(&recorded.event_type.as_str()) {
            self.is_open = true;
            self.tags.clone_from(&recorded.tags);
        }
        self.has_changed |= self.is_open;
        if event.is_none() {
            return;
        }
        let created_at = recorded.created_at;
        let summary = self.summary.get_or_insert_with(|| PlanSummary { created_at, ..PlanSummary::default() });
        if summary.title.is_empty() {
            summary.title = title;
        }
        if let Some(Event::PlanForked { parent, at, reason, .. }) = event {
            summary.parent = Some(Parent { plan: parent.clone(), at: *at, reason: reason.clone() });
        }
    }
}
