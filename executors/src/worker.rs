//! A worker: it follows the dispatched tasks of a plan, or of all plans, claims those that it can carry out, and appends
//! how they ended.
//!
//! It learns of a task from its subscription alone. A task runs beside the subscription, so a long one delays no other;
//! a task that the plan ends meanwhile is stopped. It never decides what comes next, not even whether a task that was
//! cut off is run again, unless it was told to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{Cause, Envelope, Error, EventStore, ExecuteError, Query, Range, Runner, Start};
use crewlog_planner::claim::{Ending, TaskClaim, TaskCommand};
use crewlog_planner::event::{self, Event, FailureClass, Usage};
use crewlog_planner::prompt::Prompt;
use crewlog_planner::sealed::is_task_withheld;
use futures::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::agents::{Agents, PlansByModel};
use crate::attachments;
use crate::backoff::Backoff;
use crate::claiming::Claiming;
use crate::dispatched::{Change, Dispatch, Key, change, still_open};
use crate::human::claim_of;
use crate::links::Links;
use crate::liveness::SignOfLife;
use crate::prompts;
use crate::roster::{Actor, Roster};
use crate::run::{Job, Stop, wanted};
use crate::subplans::{SubPlanRun, family};

/// How often a holder says that it is alive.
const RENEW_INTERVAL: Duration = Duration::from_secs(60);

/// Whose tasks a worker takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Those of one plan, and of the plans below it.
    Plan(String),
    /// Those of every plan in the log.
    All,
}

/// What becomes of a task whose holder was lost while it ran, so that it may have done all, some or nothing of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutOff {
    /// It is run again: somebody wants that.
    RunAgain,
    /// It is reported to the planner as of unknown outcome.
    Report,
}

/// What a worker works with.
pub struct Worker {
    store: EventStore,
    roster: Roster,
    claiming: Claiming,
    cut_off: CutOff,
    /// Who plans what another plan carries out.
    agents: Agents,
    /// What looks whether links answer, where that is wanted.
    links: Option<Links>,
}

impl Worker {
    /// A worker that runs at most `jobs` tasks at once.
    #[must_use]
    pub fn new(store: EventStore, roster: Roster, life: SignOfLife, jobs: usize, cut_off: CutOff) -> Self {
        let claiming = Claiming::new(store.clone(), life, jobs, &roster.agents);
        let agents = Agents::new(roster.registry.clone().unwrap_or_default());
        Self { store, roster, claiming, cut_off, agents, links: None }
    }

    /// The same, whose agents plan by a model what plans of their own carry out.
    #[must_use]
    pub fn planning_by(self, model: PlansByModel) -> Self {
        Self { agents: self.agents.with_model(model), ..self }
    }

    /// The same, which looks before a task begins whether the links that it reads answer.
    #[must_use]
    pub fn checking_links(self, links: Links) -> Self {
        Self { links: Some(links), ..self }
    }

    /// Carries out tasks until `stop` is set, then stops what runs, gives it back, and returns.
    ///
    /// # Errors
    /// A fault of the log while the plans are first read.
    pub async fn run(self, scope: Scope, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let worker = Arc::new(self);
        let query = match &scope {
            Scope::Plan(plan) => family(event::STREAM, plan),
            Scope::All => Query::stream(event::STREAM),
        };
        let mut running: HashMap<Key, watch::Sender<Option<Stop>>> = HashMap::new();
        let mut jobs = JoinSet::new();
        let (history, mut position) = still_open(&worker.store, &query).await?;
        let mut take = |envelope: Envelope<Event>, jobs: &mut JoinSet<()>| match change(&envelope) {
            Some(Change::Dispatched(dispatch)) => {
                let (sender, receiver) = watch::channel(None);
                // A dispatch that still waits out its delay is not wanted beside a newer one.
                if let Some(older) = running.insert((dispatch.plan.clone(), dispatch.task), sender) {
                    older.send_replace(Some(Stop::Cancelled { reason: "dispatched anew".into() }));
                }
                jobs.spawn(Arc::clone(&worker).carry_out(*dispatch, receiver));
            }
            Some(Change::Ended { task, reason }) => {
                if let Some(stop) = running.remove(&task) {
                    stop.send_replace(Some(Stop::Cancelled { reason }));
                }
                // Another may take its place.
                worker.claiming.look_again();
            }
            Some(Change::Resumed) => worker.claiming.look_again(),
            None => {}
        };
        for envelope in history {
            take(envelope, &mut jobs);
        }
        let mut events = worker.store.subscribe_from::<Event>(&query, Start::After(position))?;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(envelope)) => {
                        position = envelope.recorded.position;
                        take(envelope, &mut jobs);
                    }
                    Some(Err(error)) => tracing::warn!(%error, "an event of the plan is passed over"),
                    None => break,
                },
                Some(ended) = jobs.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a job of the worker failed");
                    }
                },
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
        // What the plan has ended meanwhile is stopped for that reason, and not given back.
        for envelope in worker.store.load::<Event>(&query, Range::after(position)).await.unwrap_or_default() {
            if let Some(Change::Ended { task, reason }) = change(&envelope)
                && let Some(stop) = running.remove(&task)
            {
                stop.send_replace(Some(Stop::Cancelled { reason }));
            }
        }
        for stop in running.values() {
            stop.send_replace(Some(Stop::Interrupted));
        }
        while jobs.join_next().await.is_some() {}
        Ok(())
    }

    async fn carry_out(self: Arc<Self>, dispatch: Dispatch, mut stop: watch::Receiver<Option<Stop>>) {
        let Some(actor) = self.roster.actor(dispatch.kind, &dispatch.parameters) else { return };
        if is_task_withheld(&dispatch.parameters) {
            tracing::warn!(plan = dispatch.plan, task = %dispatch.task, "what is to be done is sealed; it is left to others");
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(dispatch.delay) => {}
            _ = wanted(&mut stop) => return,
        }
        let mut claim = claim_of(&self.store, &dispatch.plan, dispatch.task, dispatch.tags.clone());
        let Some((_places, epoch)) = self.claiming.win(actor, &mut claim, &dispatch, &mut stop).await else { return };
        let unwanted = stop.borrow().clone();
        let (ending, usage) = match unwanted {
            Some(stop) => (stop.ending(), Usage::default()),
            None if claim.handler().is_cut_off() && self.cut_off == CutOff::Report && !actor.only_waits() => {
                let (error, class) = ("its worker was lost while it ran".into(), FailureClass::OutcomeUnknown);
                (Ending::Failed { error, class, run: None }, Usage::default())
            }
            None => match self.prepared(actor, &dispatch).await {
                Err(ending) => (ending, Usage::default()),
                Ok(prompt) => {
                    let start = TaskCommand::Start { epoch, prompt: prompt.as_ref().map(prompts::digest) };
                    if !append(&mut claim, start, &dispatch.cause).await {
                        return;
                    }
                    let began = Instant::now();
                    let (ending, mut usage) = self.act(actor, &dispatch, prompt, &mut claim, epoch, stop).await;
                    // How long it ran is told where it counts, or where something else is told anyway; of a plan within the
                    // plan its own tasks tell it.
                    let is_told = dispatch.parameters.is_timed || !usage.is_nothing();
                    if is_told && !actor.only_waits() {
                        usage.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    }
                    (ending, usage)
                }
            },
        };
        append(&mut claim, TaskCommand::End { epoch, usage, ending }, &dispatch.cause).await;
    }

    /// What an agent is asked, once the attachments of the task exist; otherwise how the task ends.
    async fn prepared(&self, actor: Actor<'_>, dispatch: &Dispatch) -> Result<Option<Prompt>, Ending> {
        let checked = attachments::checked(&dispatch.parameters, self.links.clone()).await;
        checked.map_err(|question| Ending::Asked { question, default: None })?;
        match actor {
            Actor::Agent(..) => {
                let rendered = prompts::rendered(&self.store, &dispatch.plan, dispatch.task, dispatch.position).await;
                rendered.map(Some).map_err(|error| {
                    let class = FailureClass::NotStarted;
                    Ending::Failed { error: format!("its prompt cannot be rendered: {error}"), class, run: None }
                })
            }
            Actor::Shell(_) | Actor::SubPlan(_) => Ok(None),
        }
    }

    /// Lets the actor act, and renews the lease meanwhile.
    async fn act(
        &self,
        actor: Actor<'_>,
        dispatch: &Dispatch,
        prompt: Option<Prompt>,
        claim: &mut Runner<TaskClaim>,
        epoch: u64,
        mut plan_stop: watch::Receiver<Option<Stop>>,
    ) -> (Ending, Usage) {
        let (stop, mut run_stop) = watch::channel(None);
        let job = Job {
            plan: &dispatch.plan,
            task: dispatch.task,
            attempt: dispatch.attempt,
            epoch,
            parameters: &dispatch.parameters,
            lock: self.claiming.life().lock_path(),
        };
        let run = async {
            match actor {
                Actor::SubPlan(sub_plan) => {
                    let (store, agents, tags, cause) = (&self.store, &self.agents, &*dispatch.tags, &dispatch.cause);
                    SubPlanRun { store, agents, job: &job, sub_plan, tags, cause }.run(&mut run_stop).await
                }
                Actor::Shell(shell) => shell.run(job, &mut run_stop).await,
                Actor::Agent(agent, shell) => agent.run(shell, job, prompt.unwrap_or_default(), &mut run_stop).await,
            }
        };
        tokio::pin!(run);
        let acting = async {
            loop {
                tokio::select! {
                    ending = &mut run => return ending,
                    wanted = wanted(&mut plan_stop), if stop.borrow().is_none() => {
                        stop.send_replace(Some(wanted));
                    }
                }
            }
        };
        // Beside the run, so that a slow log delays neither its time-out nor its stop. A renewal that is dropped on its
        // way leaves a runner that reads anew, and one that is appended all the same comes before the end.
        let renewing = async {
            let mut renewals = renewals(Instant::now());
            loop {
                renewals.tick().await;
                let renewal = TaskCommand::Renew { epoch, now: self.store.now() };
                let cause = dispatch.cause.clone().keeping(renewal.recorded());
                match claim.execute(renewal, &cause).await {
                    Ok(_) => {}
                    Err(ExecuteError::Refused(refusal)) => {
                        tracing::warn!(%refusal, task = %dispatch.task, "the task went to another worker");
                        stop.send_replace(Some(Stop::Lost));
                        return std::future::pending().await;
                    }
                    Err(error) => tracing::warn!(%error, task = %dispatch.task, "a lease was not renewed"),
                }
            }
        };
        tokio::select! {
            ending = acting => ending,
            ending = renewing => ending,
        }
    }
}

/// When a lease is to be renewed that was given at `start`. After a log that stood still the next renewal is an interval away: those that were
/// missed would say nothing new.
fn renewals(start: Instant) -> Interval {
    let mut renewals = tokio::time::interval_at(start + RENEW_INTERVAL, RENEW_INTERVAL);
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    renewals
}

/// Appends what the holder says, however long the log takes; false when the holder has lost the task.
async fn append(claim: &mut Runner<TaskClaim>, command: TaskCommand, cause: &Cause) -> bool {
    let cause = cause.clone().keeping(command.recorded());
    let mut backoff = Backoff::new();
    loop {
        match claim.execute(command.clone(), &cause).await {
            Ok(_) => return true,
            Err(ExecuteError::Refused(refusal)) => {
                tracing::warn!(%refusal, "what a worker reports comes too late");
                return false;
            }
            Err(error @ (ExecuteError::Contended { .. } | ExecuteError::Store(_))) => {
                tracing::warn!(%error, "a report could not be appended and is tried again");
                backoff.wait().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn after_a_log_that_stood_still_a_lease_is_renewed_once_and_not_for_each_interval() {
        let mut renewals = renewals(Instant::now() - RENEW_INTERVAL * 3);
        assert!(renewals.tick().now_or_never().is_some(), "one is due");
        assert!(renewals.tick().now_or_never().is_none(), "those that were missed are not made up for");
    }
}
