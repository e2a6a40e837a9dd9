//! Tasks with a sub-plan: creates the sub-plan, follows it to its end, and returns its results as the task's. A request
//! to another agent is such a task: its sub-plan is that agent's answer.
//!
//! The id of a sub-plan derives from the dispatch of its task, so it is created only once, however often the task is
//! taken over. Any worker may run its tasks, and its own planner decides on them.

use std::collections::BTreeSet;
use std::time::Duration;

use crewlog_mq::{Cause, Error, EventStore, Handler, Query, Runner, Start, Timestamp};
use crewlog_planner::claim::Ending;
use crewlog_planner::crew::consent::{Agreement, ConsentEvent, Means};
use crewlog_planner::event::{self, Command, Event, FailureClass, Usage, ancestor_tag, plan_tag, sub_plan_tags};
use crewlog_planner::nesting;
use crewlog_planner::plan::{ParentTask, SubPlan, TaskPlan, sub_plan_id};
use crewlog_planner::planner::{Planner, PlannerError};
use crewlog_planner::protocol::AgentType;
use crewlog_planner::state::{Phase, PlannerState};
use crewlog_planner::text::{duration, millis};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;

use crate::agents::{Agents, PlanningError, record_failure};
use crate::caller::account;
use crate::consent::{Trust, decide, inputs};
use crate::plans::{execute_retrying, read_plan};
use crate::run::{Executor, Job, Report, Sink, Stop, wanted};

/// The name under which such tasks are claimed.
pub const SUB_PLANS: &str = "subplans";

/// The events of a plan and of all its sub-plans, in a stream about plans.
pub fn family(stream: &str, plan: &str) -> Query {
    let of = |tag| Query { stream_id: stream.to_owned(), tags: vec![tag], ..Query::default() };
    Query { or: vec![of(ancestor_tag(plan))], ..of(plan_tag(plan)) }
}

/// Creates and follows the sub-plan of a task.
#[derive(Clone, Copy)]
pub(crate) struct SubPlans<'a> {
    pub(crate) store: &'a EventStore,
    pub(crate) agents: &'a Agents,
    pub(crate) sub_plan: &'a SubPlan,
    /// The tags of the events of the task's plan.
    pub(crate) tags: &'a [String],
    /// The dispatch.
    pub(crate) cause: &'a Cause,
    /// The decisions about what may run.
    pub(crate) trust: Option<&'a Trust>,
    /// True if a person knows the commands of tools.
    pub(crate) knows_tools: bool,
}

impl Executor for SubPlans<'_> {
    /// Until the sub-plan ends, its time is up, or `stop` is set. Its usage is the task's.
    fn run<'a>(
        &'a self,
        job: Job<'a>,
        _: &'a Sink,
        stop: &'a mut watch::Receiver<Option<Stop>>,
    ) -> BoxFuture<'a, Report> {
        async move {
            let run = SubPlanRun { by: *self, job: &job };
            let ending = run.ending(stop).await;
            let usage = if let Ending::Released { .. } = ending { Usage::default() } else { run.usage().await };
            Report { ending, usage }
        }
        .boxed()
    }
}

/// A task whose sub-plan is created and followed.
#[derive(Clone, Copy)]
struct SubPlanRun<'a> {
    by: SubPlans<'a>,
    job: &'a Job<'a>,
}

impl SubPlanRun<'_> {
    async fn ending(self, stop: &mut watch::Receiver<Option<Stop>>) -> Ending {
        let plan = self.plan();
        // A model may be slow. A sub-plan that is appended nevertheless is ended with the task.
        let made = tokio::select! {
            biased;
            made = self.make() => made,
            stop = wanted(stop) => return self.stopped(stop).await,
        };
        if let Err(ending) = made {
            return ending;
        }
        let timeout = self.job.parameters.timeout_ms.map(Duration::from_millis);
        tokio::select! {
            ending = until_ended(self.by.store, &plan, timeout) => match ending {
                Ok(Some(ending)) => self.unless_stopped(ending).await,
                Ok(None) => self.timed_out(timeout.unwrap_or_default()).await,
                Err(error) => unreadable(&plan, &error),
            },
            stop = wanted(stop) => self.stopped(stop).await,
        }
    }

    /// The sub-plan that answers a request keeps running: a late answer is recorded.
    async fn timed_out(self, timeout: Duration) -> Ending {
        if self.by.sub_plan.request.is_none() {
            self.cancel("its task timed out").await;
        }
        let (plan, after) = (self.plan(), duration(millis(timeout)));
        let error = format!("timed out: plan {plan} had not ended after {after}, the task's time-out");
        Ending::Failed { error, class: FailureClass::TimedOut, run: None }
    }

    /// If a sub-plan ended because its task did, the task counts as stopped, whichever end is seen first.
    async fn unless_stopped(self, ending: Ending) -> Ending {
        let Ending::Failed { .. } = ending else { return ending };
        let Ok(parent_plan) = read_plan(self.by.store, self.job.plan, Vec::new()).await else { return ending };
        match nesting::ended_meanwhile(parent_plan.handler().state(), self.job.task, self.job.attempt) {
            Some(reason) => Ending::Stopped { reason },
            None => ending,
        }
    }

    async fn stopped(self, stop: Stop) -> Ending {
        match &stop {
            Stop::Cancelled { reason } => {
                self.cancel(&format!("its task has ended: {reason}")).await;
            }
            Stop::Interrupted => {
                let plan = self.plan();
                let read = read_plan(self.by.store, &plan, Vec::new()).await;
                if let Some(reason) = read.ok().and_then(|it| nesting::waits_for(&plan, it.handler().state())) {
                    return Ending::Released { reason, cut_off: false };
                }
            }
            Stop::Lost | Stop::OverBudget { .. } => {}
        }
        stop.ending(false)
    }

    /// The usage of the sub-plan.
    async fn usage(self) -> Usage {
        let plan = self.plan();
        match read_plan(self.by.store, &plan, Vec::new()).await {
            Ok(planner) if self.owns(planner.handler().state()) => planner.handler().state().spent(),
            Ok(_) => Usage::default(),
            Err(error) => {
                tracing::warn!(%error, plan, "the usage of a sub-plan was not recorded");
                Usage::default()
            }
        }
    }

    fn task(self) -> ParentTask {
        ParentTask { plan: self.job.plan.to_owned(), task: self.job.task, attempt: self.job.attempt }
    }

    fn plan(self) -> String {
        sub_plan_id(&self.task())
    }

    /// True for the plan created for this dispatch, false for any other with its id.
    fn owns(self, state: &PlannerState) -> bool {
        state.origin.parent == Some(self.task())
    }

    async fn planner(self) -> Result<Runner<Planner>, Error> {
        let plan = self.plan();
        read_plan(self.by.store, &plan, sub_plan_tags(&plan, self.job.plan, self.by.tags)).await
    }

    /// Creates the sub-plan if it is missing, in one append.
    async fn make(self) -> Result<(), Ending> {
        let (plan, parent_plan) = (self.plan(), self.job.plan);
        let mut planner = self.planner().await.map_err(|error| unreadable(&plan, &error))?;
        if planner.handler().state().phase != Phase::Empty {
            return self.made(planner.handler().state());
        }
        let parent_plan =
            read_plan(self.by.store, parent_plan, Vec::new()).await.map_err(|error| unreadable(parent_plan, &error))?;
        let parent_plan = parent_plan.handler().state();
        let origin = nesting::origin(self.task(), parent_plan, self.by.sub_plan);
        let context = nesting::context(self.job.plan, parent_plan);
        let proposal = match self.by.agents.proposal(self.by.sub_plan, &context, origin).await {
            Ok(proposal) => Box::new(proposal),
            Err(error) => {
                self.record(&error).await;
                return Err(failed(format!("planning its sub-plan failed: {error}")));
            }
        };
        let config =
            nesting::config(parent_plan, self.job.task, parent_plan.left_for_plan(self.job.task), self.by.store.now());
        // The command of a tool comes from the configuration.
        let is_of_text = |task: &&TaskPlan| self.by.knows_tools || task.tool.is_none() || task.command.is_none();
        let of_text = proposal.tasks.iter().filter(is_of_text);
        let tasks = of_text.flat_map(|task| inputs(&plan, task, config.folder.as_deref()));
        let tasks = tasks.map(|input| input.agreement).collect();
        self.agree(tasks).await;
        let command = Command::Initialize { proposal, attachments: Vec::new(), config };
        match execute_retrying(&mut planner, command, self.by.cause).await {
            // A faster process created the same plan.
            Ok(None | Some(PlannerError::AlreadyPlanned)) => self.made(planner.handler().state()),
            Ok(Some(refusal)) => Err(failed(format!("its sub-plan was refused: {refusal}"))),
            Err(error) => Err(unreadable(&plan, &error)),
        }
    }

    /// Its text was agreed to, and with it the plan that is read from it by rule. A plan by a model waits.
    async fn agree(self, tasks: Vec<Agreement>) {
        let Some(trust) = self.by.trust.filter(|_| !self.by.agents.plans_by_model(self.by.sub_plan)) else { return };
        trust.agree_here(tasks.iter().cloned());
        let (by, how, at) = (account(), Means::Parent, self.by.store.now());
        let agreed = ConsentEvent::Agreed { by, how, grant: None, tasks, remembered: BTreeSet::new(), at };
        if let Err(error) = decide(self.by.store, self.by.tags, agreed, self.by.cause).await {
            tracing::warn!(%error, plan = self.plan(), "the consent to a sub-plan was not recorded");
        }
    }

    fn made(self, state: &PlannerState) -> Result<(), Ending> {
        if self.owns(state) {
            return Ok(());
        }
        let plan = self.plan();
        Err(failed(format!("plan id {plan} is taken by an unrelated plan; retry the task to use a new id")))
    }

    /// Failures to plan are recorded. A log that refuses this must not stop the parent plan.
    async fn record(self, error: &PlanningError) {
        let agent = self.by.sub_plan.agent.as_deref().and_then(AgentType::named);
        let (Some(agent), PlanningError::Plan(error)) = (agent, error) else { return };
        if let Err(fault) = record_failure(self.by.store, agent, error, self.by.tags.to_vec(), self.by.cause).await {
            tracing::warn!(%fault, %agent, "a planning failure was not recorded");
        }
    }

    async fn cancel(self, reason: &str) {
        let command = Command::CancelFromParent { reason: reason.to_owned() };
        let cancelled = async {
            let mut planner = self.planner().await?;
            if self.owns(planner.handler().state()) {
                execute_retrying(&mut planner, command, self.by.cause).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = cancelled.await {
            tracing::warn!(%error, plan = self.plan(), "a sub-plan could not be cancelled");
        }
    }
}

/// The end of a sub-plan for its task; `None` if it has not ended within this time after its creation.
async fn until_ended(store: &EventStore, plan: &str, timeout: Option<Duration>) -> Result<Option<Ending>, Error> {
    let mut planner = Planner::default();
    let mut events = store.subscribe_from::<Event>(&Query::aggregate(event::STREAM, plan), Start::Beginning)?;
    let mut until: Option<Timestamp> = None;
    loop {
        let time_is_up = async {
            match until {
                Some(until) => tokio::time::sleep(until.since(store.now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            envelope = events.next() => match envelope {
                Some(Ok(envelope)) => {
                    until = until.or_else(|| timeout.map(|timeout| envelope.recorded.created_at.plus(timeout)));
                    planner.apply(&envelope.event);
                    if let Event::PlanningCompleted { summary, outcome, .. } = &envelope.event {
                        return Ok(Some(nesting::ending(plan, planner.state(), summary, *outcome)));
                    }
                }
                Some(Err(error)) if error.is_permanent() => return Err(error),
                Some(Err(error)) => error.warn("a sub-plan cannot be read yet"),
                None => return Err(Error::Closed),
            },
            () = time_is_up => return Ok(None),
        }
    }
}

fn failed(error: String) -> Ending {
    Ending::Failed { error, class: FailureClass::Task, run: None }
}

fn unreadable(plan: &str, error: &Error) -> Ending {
    failed(format!("plan {plan} cannot be read: {error}"))
}
