//! The plans of a worker, each as one up-to-date view, and the choice of the task that starts next.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::pin::pin;
use std::sync::OnceLock;

use crewlog_mq::{Cause, Error, EventStore, FromRecorded, Position, Query, Range, Recorded};
use crewlog_planner::claim::Holder;
use crewlog_planner::event::{About, Budget, Event, PlannerCmd, RetryClass, RetryPolicy, TaskInput};
use crewlog_planner::plan::{NodeKind, TaskId};
use crewlog_planner::plan_event::{PlanEvent, plan_of};
use crewlog_planner::sealed::{is_task_undecryptable, key_of};
use crewlog_planner::view::PlanView;
use futures::TryStreamExt;

use crate::budgets::left_for_run;
use crate::history::History;
use crate::prompts::Rendered;

/// A task among all plans.
pub(crate) type TaskKey = (String, TaskId);

/// A dispatched task.
#[derive(Debug, Clone)]
pub(crate) struct Dispatch {
    pub(crate) plan: String,
    pub(crate) tags: Vec<String>,
    pub(crate) position: Position,
    /// Up to here its plan was read when the task could start.
    pub(crate) seen: Position,
    pub(crate) task: TaskId,
    /// The name of the task, which nobody can change while it is dispatched.
    pub(crate) name: String,
    pub(crate) attempt: u32,
    pub(crate) kind: NodeKind,
    pub(crate) parameters: TaskInput,
    /// The waits of its plan for rate limits.
    pub(crate) limits: RetryPolicy,
    pub(crate) cause: Cause,
}

impl Dispatch {
    pub(crate) fn key(&self) -> TaskKey {
        (self.plan.clone(), self.task)
    }

    /// The task as agents and people name it.
    pub(crate) fn target(&self) -> String {
        format!("{}/{}", self.plan, self.name)
    }

    /// Nothing for an event that dispatches no task, or a question, which is for people. `parameters` come from the fold.
    fn of(event: &PlanEvent, recorded: &Recorded) -> Option<Self> {
        let PlanEvent::Plan(Event::TaskDispatched { task_id, attempt, command }) = event else { return None };
        let PlannerCmd::ExecuteTask { kind, .. } = command else { return None };
        Some(Self {
            plan: recorded.aggregate_id.clone(),
            tags: recorded.tags.clone(),
            position: recorded.position,
            seen: recorded.position,
            task: *task_id,
            name: task_id.to_string(),
            attempt: *attempt,
            kind: *kind,
            parameters: TaskInput::default(),
            limits: RetryClass::RateLimited.policy(),
            cause: Cause::event(recorded),
        })
    }
}

/// A plan that is worked for.
#[derive(Debug, Default)]
struct Worked {
    view: PlanView,
    /// The tags of its events.
    tags: Vec<String>,
    /// The last dispatch of each task that has not ended.
    dispatched: BTreeMap<TaskId, Dispatch>,
    /// The tasks that may start, in order; unset when they have to be determined again.
    startable: OnceLock<Vec<TaskId>>,
}

impl Worked {
    /// A plan as of a position.
    async fn load(store: &EventStore, plan: &str, up_to: Position) -> Result<Self, Error> {
        let history = History::of(store, plan).await?;
        let mut worked = Self::default();
        let mut records = pin!(history.records(store, &Query::all(), Range::up_to(up_to)));
        let mut dispatched: HashMap<TaskId, Dispatch> = HashMap::new();
        while let Some(recorded) = records.try_next().await? {
            if recorded.aggregate_id == plan && worked.tags.is_empty() {
                worked.tags.clone_from(&recorded.tags);
            }
            match PlanEvent::from_recorded(&recorded) {
                Err(error) => tracing::warn!(%error, "skipped an unreadable event of a plan"),
                Ok(event) => {
                    worked.view.take(&event, &recorded);
                    // Dispatches of the plan that it was forked from do not count.
                    let dispatch = Dispatch::of(&event, &recorded).filter(|dispatch| dispatch.plan == plan);
                    dispatched.extend(dispatch.map(|dispatch| (dispatch.task, dispatch)));
                }
            }
        }
        dispatched.retain(|task, dispatch| is_running(&worked.view, *task, dispatch.attempt));
        dispatched.into_values().for_each(|dispatch| worked.insert(dispatch));
        Ok(worked)
    }

    fn apply(&mut self, event: &PlanEvent, recorded: &Recorded) {
        if recorded.position <= self.view.at {
            return;
        }
        self.startable.take();
        self.view.take(event, recorded);
        match Dispatch::of(event, recorded) {
            Some(dispatch) => self.insert(dispatch),
            None if matches!(event, PlanEvent::Plan(_)) => self.drop_ended(),
            None => {}
        }
    }

    fn insert(&mut self, mut dispatch: Dispatch) {
        let Some(task) = self.view.state().task(dispatch.task) else { return };
        (dispatch.name, dispatch.parameters) = (task.plan.name(), self.view.state().input(task));
        dispatch.limits = self.view.state().config.retry_of(RetryClass::RateLimited);
        if key_of(&dispatch.tags).is_some() && is_task_undecryptable(&dispatch.parameters) {
            tracing::warn!(task = dispatch.target(), "skipped: the task's text is sealed, and no key is given");
            return;
        }
        self.dispatched.insert(dispatch.task, dispatch);
    }

    fn drop_ended(&mut self) {
        let Self { view, dispatched, .. } = self;
        dispatched.retain(|task, dispatch| is_running(view, *task, dispatch.attempt));
        // A person may have moved the plan.
        dispatched.values_mut().for_each(|one| one.parameters.folder.clone_from(&view.state().config.folder));
    }
}

fn is_running(view: &PlanView, task: TaskId, attempt: u32) -> bool {
    view.state().task(task).is_some_and(|task| task.runs(attempt))
}

/// The plans that a worker works for.
#[derive(Debug, Default)]
pub(crate) struct Plans(BTreeMap<String, Worked>);

impl Plans {
    /// The plans that are open at a position.
    ///
    /// # Errors
    /// A fault of the log.
    pub(crate) async fn load(
        store: &EventStore,
        open: impl IntoIterator<Item = String>,
        at: Position,
    ) -> Result<Self, Error> {
        let mut plans = BTreeMap::new();
        for plan in open {
            match Worked::load(store, &plan, at).await {
                Ok(worked) => _ = plans.insert(plan, worked),
                Err(error @ Error::Decode { .. }) => {
                    tracing::warn!(plan, %error, "skipped a plan that cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self(plans))
    }

    /// Takes in an event of a plan or of a task, and gives the plan that it is of. A plan that was not known is read.
    pub(crate) async fn apply(
        &mut self,
        store: &EventStore,
        (event, recorded): (&PlanEvent, &Recorded),
    ) -> Result<Option<String>, Error> {
        let Some(plan) = plan_of(recorded) else { return Ok(None) };
        match (self.0.get_mut(plan), event) {
            (Some(worked), _) => worked.apply(event, recorded),
            // A plan begins with an event of its own.
            (None, PlanEvent::Plan(event)) if event.about() != About::End => {
                let worked = Worked::load(store, plan, recorded.position).await?;
                self.0.insert(plan.to_owned(), worked);
            }
            (None, _) => return Ok(None),
        }
        Ok(Some(plan.to_owned()))
    }

    /// Drops a plan that has ended.
    pub(crate) fn drop_if_ended(&mut self, plan: &str) {
        if self.0.get(plan).is_some_and(|worked| worked.view.state().phase.is_ended()) {
            self.0.remove(plan);
        }
    }

    /// Why a running task must stop: the error of its end, or an empty text when it was dispatched again.
    pub(crate) fn ended(&self, (plan, task): &TaskKey, attempt: u32) -> Option<String> {
        let Some(worked) = self.0.get(plan) else { return Some("the plan has ended".to_owned()) };
        let error = || worked.view.state().task(*task).and_then(|task| task.error.clone()).unwrap_or_default();
        (!is_running(&worked.view, *task, attempt)).then(error)
    }

    /// The task to start next: the most urgent of all plans, then the first dispatched; within a plan in the plan's order. `is_wanted`
    /// says which dispatches could start here, `is_busy` which are being started: call [`Plans::changed`] after a change of that.
    /// `may_run` costs more, and is asked about few.
    pub(crate) fn next(
        &self,
        is_wanted: impl Fn(&Dispatch) -> bool,
        may_run: impl Fn(&Dispatch) -> bool,
        is_busy: impl Fn(&str, TaskId) -> bool,
    ) -> Option<Dispatch> {
        let next_of = |plan: &str, worked: &Worked, n_passed: usize| {
            let Worked { view, dispatched, startable, .. } = worked;
            let is_held = |task, lease: Option<&Holder>| lease.is_some() || is_busy(plan, task);
            let startable = startable.get_or_init(|| view.startable(is_held)).iter().enumerate().skip(n_passed);
            let mut wanted = startable.filter_map(|(index, task)| Some((index, dispatched.get(task)?)));
            let (index, dispatch) = wanted.find(|(_, dispatch)| is_wanted(dispatch))?;
            Some(Reverse(((view.state().urgency(dispatch.task), dispatch.position), index, dispatch.key())))
        };
        let waiting = self.0.iter().filter(|(_, worked)| !worked.dispatched.is_empty());
        let mut heads: BinaryHeap<_> = waiting.filter_map(|(plan, worked)| next_of(plan, worked, 0)).collect();
        while let Some(Reverse((_, index, (plan, task)))) = heads.pop() {
            let worked = self.0.get(&plan)?;
            let dispatch = worked.dispatched.get(&task)?;
            if may_run(dispatch) {
                return Some(Dispatch { seen: worked.view.at, ..dispatch.clone() });
            }
            heads.extend(next_of(&plan, worked, index + 1));
        }
        None
    }

    /// The tasks of a plan that are being started have changed.
    pub(crate) fn changed(&mut self, plan: &str) {
        self.0.get_mut(plan).into_iter().for_each(|worked| _ = worked.startable.take());
    }

    /// The rest of the budgets for a run of a task.
    pub(crate) fn left_for(&self, plan: &str, task: TaskId) -> Budget {
        let state = self.0.get(plan).map(|worked| worked.view.state());
        state.and_then(|state| Some(left_for_run(state, state.task(task)?))).unwrap_or_default()
    }

    /// The prompt of a dispatched task as of now.
    pub(crate) fn prompt(&self, plan: &str, task: TaskId) -> Option<Rendered> {
        Rendered::of(self.0.get(plan)?.view.state(), task)
    }

    /// The plans, with the tags of their events.
    pub(crate) fn views(&self) -> impl Iterator<Item = (&str, &[String], &PlanView)> {
        self.0.iter().map(|(plan, worked)| (plan.as_str(), worked.tags.as_slice(), &worked.view))
    }

    /// The dispatch of a task that runs or waits to be claimed.
    pub(crate) fn dispatch(&self, plan: &str, task: TaskId) -> Option<&Dispatch> {
        self.0.get(plan)?.dispatched.get(&task)
    }

    /// The dispatched tasks.
    pub(crate) fn dispatches(&self) -> impl Iterator<Item = &Dispatch> {
        self.0.values().flat_map(|worked| worked.dispatched.values())
    }

    /// The leases that others hold on dispatched tasks.
    pub(crate) fn leases(&self) -> impl Iterator<Item = (&Dispatch, &Holder)> {
        self.dispatches().filter_map(|dispatch| {
            let holder = self.0.get(&dispatch.plan)?.view.holder(dispatch.task)?;
            Some((dispatch, holder))
        })
    }
}
