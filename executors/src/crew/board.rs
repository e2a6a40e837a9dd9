//! The tasks of a project as its agents see them: all open plans, kept up to date.

use crewlog_mq::{Error, EventStore, FromRecorded, Position, Query, Range};
use crewlog_planner::claim::{self, Holder};
use crewlog_planner::crew::agents::Profile;
use crewlog_planner::event::{self, PlannerConfig};
use crewlog_planner::lifecycle::{self, Observed, State};
use crewlog_planner::plan::{NodeKind, TaskId, TaskPlan};
use crewlog_planner::plan_event::PlanEvent;
use crewlog_planner::state::{Phase, Task};
use crewlog_planner::text::truncate;
use crewlog_planner::view::PlanView;
use serde::Serialize;

use crate::agent::Agent;
use crate::plans::warn_of_item;
use crate::projecting::list_plans;
use crate::queue::{Dispatch, Plans};
use crate::roster::Roster;
use crate::runs::LastOutput;

/// Events read at a time.
const PAGE: usize = 500;
/// The longest title of a task, in characters.
const TITLE_CHARS_MAX: usize = 200;

/// The open plans of a log.
#[derive(Debug, Default)]
pub(super) struct Board {
    /// The plans, and the pinned log that they were read from.
    plans: Option<(Plans, EventStore)>,
    read_to: Position,
}

/// A task of the board.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskSummary {
    /// The plan and the task: `backlog/3`.
    pub id: String,
    /// Its text, shortened.
    pub title: String,
    /// Its state.
    pub state: State,
    /// The agent that works on it, or is meant to.
    pub assignee: Option<String>,
    /// As written.
    pub priority: Option<String>,
    /// The paths and patterns that it works on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The tasks that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The last reported step.
    pub step: Option<String>,
    /// The next step, for a successor.
    pub next_step: Option<String>,
}

/// A task with its texts.
#[derive(Debug, Clone, Serialize)]
pub struct TaskDetails {
    /// The rest of it.
    #[serde(flatten)]
    pub summary: TaskSummary,
    /// The command that carries it out.
    pub command: Option<String>,
    /// Its notes.
    pub notes: Vec<String>,
    /// The number of its dispatches.
    pub attempts: u32,
    /// Its result, whole.
    pub result: Option<String>,
    /// The reason why it failed or ended early.
    pub error: Option<String>,
    /// The last lines that its last run has printed on this machine.
    #[serde(skip)]
    pub output: Option<LastOutput>,
}

impl Board {
    /// Reads new events. After the log went back everything is read again.
    pub(super) async fn catch_up(&mut self, store: &EventStore, project: &str) -> Result<(), Error> {
        match self.read_on(store, project).await {
            Err(Error::WentBack { .. }) if self.plans.is_some() => {
                *self = Self::default();
                self.read_on(store, project).await
            }
            read => read,
        }
    }

    /// The plans with a tag that were open at a position.
    async fn at(log: &EventStore, tag: &str, position: Position) -> Result<Self, Error> {
        let list = list_plans(log, Some(position)).await?;
        let own = list.open().filter(|plan| plan.tags.iter().any(|known| known == tag));
        let open: Vec<_> = own.map(|plan| plan.id.clone()).collect();
        Ok(Self { plans: Some((Plans::load(log, open, position).await?, log.clone())), read_to: position })
    }

    async fn read_on(&mut self, store: &EventStore, project: &str) -> Result<(), Error> {
        let tag = format!("project:{project}");
        let Some((plans, log)) = &mut self.plans else {
            let log = store.pinned();
            *self = Self::at(&log, &tag, log.head().await?).await?;
            return Ok(());
        };
        let query = Query::stream(event::STREAM).or(Query::stream(claim::STREAM));
        let mut rest = Some(Range::after(self.read_to));
        while let Some(range) = rest {
            let page = log.read(&query, range, PAGE).await?;
            for recorded in page.events.iter().filter(|recorded| recorded.tags.contains(&tag)) {
                match PlanEvent::from_recorded(recorded) {
                    Ok(event) => {
                        let plan = plans.apply(log, (&event, recorded)).await?;
                        plan.into_iter().for_each(|plan| plans.drop_if_ended(&plan));
                    }
                    Err(error) => warn_of_item(&error),
                }
                self.read_to = recorded.position;
            }
            self.read_to = self.read_to.max(page.next);
            rest = range.rest(&page);
        }
        Ok(())
    }

    /// The open plans of a project.
    pub(super) fn views<'a>(&'a self, project: &'a str) -> impl Iterator<Item = (&'a str, &'a PlanView)> {
        let is_own = move |tags: &[String]| tags.iter().any(|tag| tag.strip_prefix("project:") == Some(project));
        let views = self.known().flat_map(Plans::views);
        views.filter(move |(_, tags, _)| is_own(tags)).map(|(plan, _, view)| (plan, view))
    }

    /// The next task for an agent with these names: the most urgent of all plans for which `is_passed` is false.
    pub(super) fn next(
        &self,
        project: &str,
        names: &[String],
        roster: Option<&Roster>,
        is_passed: impl Fn(&str) -> bool,
    ) -> Option<Dispatch> {
        let tag = format!("project:{project}");
        let is_free = |view: &PlanView, id| {
            let is_meant = |task: &Task| is_offered(roster, &view.state().config, &task.plan);
            view.state().task(id).is_some_and(is_meant) && !view.times(id).claim.is_parked()
        };
        let is_wanted = |dispatch: &Dispatch| {
            dispatch.tags.contains(&tag)
                && is_assigned(&dispatch.parameters.assignee, names)
                && !is_passed(&dispatch.target())
                && self.view(&dispatch.plan).is_some_and(|view| is_free(view, dispatch.task))
        };
        let plans = self.known().next()?;
        plans.next(is_wanted, |_| true, |_, _| false)
    }

    pub(super) fn view(&self, plan: &str) -> Option<&PlanView> {
        self.known().flat_map(Plans::views).find(|(known, _, _)| *known == plan).map(|(_, _, view)| view)
    }

    /// A task of a plan as agents name it.
    pub(super) fn target(&self, plan: &str, task: TaskId) -> String {
        self.view(plan).map_or_else(|| claim::aggregate_id(plan, task), |view| view.state().target(plan, task))
    }

    fn known(&self) -> impl Iterator<Item = &Plans> {
        self.plans.iter().map(|(plans, _)| plans)
    }

    /// The dispatch of a task that can be claimed or is claimed.
    pub(super) fn dispatched(&self, plan: &str, task: TaskId) -> Option<Dispatch> {
        is_for_agents(&self.view(plan)?.state().task(task)?.plan).then_some(())?;
        self.known().next()?.dispatch(plan, task).cloned()
    }

    /// The claims that agents of a project hold.
    pub(super) fn claims(&self, project: &str) -> impl Iterator<Item = (&Dispatch, &Holder)> {
        let tag = format!("project:{project}");
        let is_own = move |(dispatch, lease): &(&Dispatch, &Holder)| dispatch.tags.contains(&tag) && lease.is_agent();
        self.known().flat_map(Plans::leases).filter(is_own)
    }
}

/// A session that a person has opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// Its name.
    pub name: String,
    /// Its program.
    pub program: String,
    /// The names by which tasks are assigned to it.
    pub names: Vec<String>,
}

/// The names by which tasks are assigned to an agent.
pub(super) fn names_of(name: &str, profile: &Profile) -> Vec<String> {
    profile.capabilities.iter().chain([&profile.program]).cloned().chain([name.to_owned()]).collect()
}

/// True if sessions may be offered a task of a plan with these settings: no executor that may start takes it, or its plan is
/// given to sessions.
pub fn is_offered(roster: Option<&Roster>, config: &PlannerConfig, task: &TaskPlan) -> bool {
    let is_taken = |roster: &Roster| roster.agent_for(task).is_some_and(Agent::may_start);
    is_for_agents(task) && (config.sessions || config.standing || !roster.is_some_and(is_taken))
}

/// The number of dispatched steps of a plan that these sessions are offered or work on.
pub fn n_for_sessions(roster: &Roster, view: &PlanView, sessions: &[OpenSession]) -> usize {
    let state = view.state();
    let goes_on = state.phase == Phase::Active && state.stopped_by.is_none();
    let is_for = |task: &Task, session: &OpenSession| match view.holder(task.plan.id) {
        Some(holder) => holder.is_agent() && holder.executor.name == session.name,
        None => is_assigned(&task.plan.assignee, &session.names) && !view.times(task.plan.id).claim.is_parked(),
    };
    let is_meant = |task: &&Task| {
        sessions.iter().any(|session| is_for(task, session)) && is_offered(Some(roster), &state.config, &task.plan)
    };
    if goes_on { state.dispatched().filter(is_meant).count() } else { 0 }
}

/// True if a task is assigned to nobody, or to one of these names, in letters of any case.
fn is_assigned(assignee: &Option<String>, names: &[String]) -> bool {
    let is_it = |assignee: &String| names.iter().any(|name| name.to_lowercase() == assignee.to_lowercase());
    assignee.as_ref().is_none_or(is_it)
}

/// Tasks with a command are for workers, and questions are for people.
fn is_for_agents(task: &TaskPlan) -> bool {
    task.command.is_none() && task.sub_plan.is_none() && task.kind != NodeKind::Clarification
}

/// The tasks of a plan that agents can work on.
pub fn summaries(plan: &str, view: &PlanView, observed: &Observed<'_>) -> Vec<TaskSummary> {
    let state = view.state();
    let summary = |task| summary(plan, view, task, observed);
    state.tasks.iter().filter(|task| is_for_agents(&task.plan)).map(summary).collect()
}

/// A task of a plan.
pub fn summary(plan: &str, view: &PlanView, task: &Task, observed: &Observed<'_>) -> TaskSummary {
    let state = view.state();
    let (id, times) = (task.plan.id, view.times(task.plan.id));
    let holder = times.claim.holder.as_ref().map(|lease| lease.executor.name.clone());
    let waits = task.plan.depends_on.iter().filter_map(|dependency| state.task(dependency.task));
    let waits = waits.filter(|on| !on.status.is_end()).map(|on| state.target(plan, on.plan.id));
    let progress = times.claim.progress.unwrap_or_default();
    TaskSummary {
        id: state.target(plan, id),
        title: truncate(&task.plan.description, TITLE_CHARS_MAX),
        state: lifecycle::of_task(plan, view, task, observed).state,
        assignee: holder.or_else(|| task.plan.assignee.clone()),
        priority: task.plan.priority.clone(),
        files: task.plan.files.clone(),
        depends_on: waits.collect(),
        step: progress.step,
        next_step: progress.next_step,
    }
}
