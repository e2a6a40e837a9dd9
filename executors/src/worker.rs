//! A worker: it keeps a view of each plan that it works for, claims the first task that may start and that it can carry
//! out, and appends how it ended.
//!
//! Tasks run concurrently with the subscription, so a long one delays no other; a task that the plan ends meanwhile is
//! stopped. The plan's state says what may start, and in which order: the worker decides nothing.

mod carrying;

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crewlog_mq::{
    Backoff, Envelope, Error, EventStore, ExecuteError, Position, Query, Range, Start, Timestamp, retrying,
};
use crewlog_planner::claim::{self, Executor, Holder, TaskCommand, TaskEvent};
use crewlog_planner::crew::{breaker, consent, leases};
use crewlog_planner::event;
use crewlog_planner::plan_event::PlanEvent;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};

use crate::agent::Agent;
use crate::agents::{Agents, PlansByModel};
use crate::claiming::claim_of;
use crate::consent::{Input, Trust};
use crate::crew::runs::Crews;
use crate::liveness::LivenessLock;
use crate::planning::open_plans;
use crate::plans::warn_of_item;
use crate::queue::{Dispatch, Plans, TaskKey};
use crate::roster::{Actor, Roster, is_followed};
use crate::run::{Stop, is_set};
use crate::seen::{Run, Seen};
use crate::shell::SHELL;
use crate::signs::{end_signs, last_seen, leave_signs};
use crate::subplans::family;

/// How often a worker checks whether holders are dead, or their leases have run out.
const LEASE_INTERVAL: Duration = Duration::from_millis(100);

/// How long a task waits for files before it asks again, unless leases change.
const BLOCKED_FOR: Duration = Duration::from_secs(5);

/// After this many runs a worker bounds the outputs that are kept.
const RUNS_OF_A_LOOK: u32 = 128;
/// Events that are taken in before tasks are started.
const EVENTS_MAX: usize = 256;

/// The plans a worker works for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Those of one plan, and of its sub-plans.
    Plan(String),
    /// Those of every plan in the log.
    All,
}

/// The handling of a task whose holder was lost while it ran: it may have done all, some or none of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterruptedTask {
    /// It is run again: somebody wants that.
    Rerun,
    /// It is reported to the planner as of unknown outcome.
    Report,
}

/// A worker's configuration.
pub struct Worker {
    store: EventStore,
    roster: Roster,
    life: Arc<LivenessLock>,
    crews: Crews,
    /// Tells its runs that the worker may have lost its tasks.
    lost: watch::Sender<()>,
    /// The most tasks at once.
    jobs: usize,
    interrupted: InterruptedTask,
    /// The planner of sub-plans.
    agents: Agents,
    /// The plans whose missing folders were reported.
    left: Mutex<HashSet<String>>,
}

impl Worker {
    /// A worker that runs at most `jobs` tasks at once.
    pub fn new(
        store: EventStore,
        mut roster: Roster,
        life: LivenessLock,
        jobs: usize,
        interrupted: InterruptedTask,
    ) -> Self {
        let agents = Agents::new(roster.registry.clone().unwrap_or_default());
        roster.shell.supervisor = roster.shell.supervisor.holding(life.lock_path());
        let life = Arc::new(life);
        let crews = Crews::new(&store, &life);
        let (left, lost) = (Mutex::default(), watch::channel(()).0);
        Self { store, roster, life, crews, jobs, interrupted, agents, left, lost }
    }

    /// Makes its agents plan their sub-plans by a model.
    pub fn planning_by(self, model: PlansByModel) -> Self {
        Self { agents: self.agents.with_model(model), ..self }
    }

    /// Carries out tasks until `stop` is set, then stops what runs, gives it back, and returns.
    ///
    /// # Errors
    /// A fault of the log while the plans are first read, or one that ends its use.
    pub async fn run(self, scope: Scope, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let query = match &scope {
            Scope::Plan(plan) => family("", plan),
            Scope::All => Query::stream(event::STREAM).or(Query::stream(claim::STREAM)),
        };
        let query = query.or(Query::stream(consent::STREAM)).or(Query::stream(breaker::STREAM));
        let query = query.or(Query::stream(leases::STREAM));
        let at = self.store.head().await?;
        let of_plans = match &scope {
            Scope::Plan(plan) => family(event::STREAM, plan),
            Scope::All => Query::stream(event::STREAM),
        };
        let open = open_plans(&self.store, &of_plans, at).await?.into_keys();
        let plans = Plans::load(&self.store, open, at).await?;
        let store = self.store.clone();
        let events = store.subscribe_from::<PlanEvent>(&query, Start::After(at))?;
        let mut chunks = pin!(events.ready_chunks(EVENTS_MAX));
        // The decisions and limits since it was opened, up to where the events begin.
        self.roster.catch_up().await?;
        self.make_room().await?;
        let me = self.life.executor("worker");
        let mut signing = JoinSet::new();
        signing.spawn(leave_signs(store.clone(), me.clone(), self.lost.clone()));
        let mut crew = WorkerLoop::new(Arc::new(self), plans, at);
        let mut fault = None;
        // An interval, since a steady stream of events would restart a sleep for ever.
        let mut looks = tokio::time::interval(LEASE_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            crew.start();
            tokio::select! {
                chunk = chunks.next() => {
                    let Some(chunk) = chunk else { break };
                    for event in chunk {
                        match event {
                            Ok(envelope) => crew.take(&envelope).await,
                            Err(error) if error.is_final() => fault = Some(error),
                            Err(error) => warn_of_item(&error),
                        }
                    }
                    if fault.is_some() {
                        break;
                    }
                }
                Some(ended) = crew.jobs.join_next() => {
                    crew.end(ended);
                    if crew.n_ended.is_multiple_of(RUNS_OF_A_LOOK) {
                        crew.worker.make_room().await.unwrap_or_else(|error| error.warn("no room for outputs"));
                    }
                }
                _ = looks.tick(), if crew.is_restless => crew.look_at_leases().await,
                () = is_set(&mut stop) => break,
            }
        }
        fault = crew.after_loss(fault, &me.host).await;
        // A task that the plan ended meanwhile is stopped for that reason, and not given back.
        let rest = crew.worker.store.records(&query, Range::after(crew.position)).try_collect::<Vec<_>>().await;
        for envelope in rest.unwrap_or_default().into_iter().filter_map(|recorded| Envelope::of(recorded).ok()) {
            crew.take(&envelope).await;
        }
        for running in crew.running.values() {
            running.stop_for(Stop::Interrupted);
        }
        while crew.jobs.join_next().await.is_some() {}
        crew.worker.roster.shell.supervisor.close().await;
        signing.shutdown().await;
        match fault {
            Some(error) => Err(error),
            None => {
                end_signs(&store, &me).await.unwrap_or_else(|error| error.warn("the last sign of this worker stays"));
                Ok(())
            }
        }
    }

    /// Bounds the outputs that are kept.
    async fn make_room(&self) -> Result<(), Error> {
        let Some(outputs) = &self.roster.outputs else { return Ok(()) };
        let open = async {
            let at = self.store.head().await?;
            let open = open_plans(&self.store, &Query::stream(event::STREAM), at).await?;
            Ok(open.into_keys().collect())
        };
        outputs.make_room(open).await
    }

    /// True if a person whose decisions count here has agreed to what a task runs, and to its program.
    fn may_run(&self, Dispatch { plan, task, parameters, kind, .. }: &Dispatch) -> bool {
        let Some(actor) = self.roster.actor(*kind, parameters).filter(Actor::may_start) else { return false };
        let basis = |trust: &Trust| trust.basis(&Input::of_dispatch(plan, *task, parameters), actor.name());
        if let Some(Err(why)) = parameters.folder.as_ref().map(|folder| self.roster.find(folder)) {
            if self.left.lock().unwrap_or_else(PoisonError::into_inner).insert(plan.clone()) {
                tracing::warn!(
                    "{plan} is left to other workers: {why}; to run it here: crewlog resume {plan} --in FOLDER"
                );
            }
            return false;
        }
        self.roster.trust.as_ref().is_none_or(|trust| basis(trust).is_some())
    }
}

/// A job of a worker that has ended.
struct Ran {
    key: TaskKey,
    /// The last position of the task that it knows.
    position: Position,
    /// True if it never began, since others lease its files.
    is_blocked: bool,
}

/// A task that runs in this worker.
struct Running {
    job: tokio::task::Id,
    attempt: u32,
    /// The epoch of its claim; 0 before that.
    epoch: Arc<AtomicU64>,
    stop: watch::Sender<Option<Stop>>,
    /// The agent whose place it takes.
    agent: Option<String>,
    /// True if it uses one of the worker's slots. A task waiting for its sub-plan uses none.
    takes_place: bool,
}

impl Running {
    /// Stops it, unless it is being stopped already.
    fn stop_for(&self, why: Stop) {
        self.stop.send_if_modified(|stop| {
            let is_first = stop.is_none();
            stop.get_or_insert(why);
            is_first
        });
    }
}

/// A worker at work.
struct WorkerLoop {
    worker: Arc<Worker>,
    plans: Plans,
    position: Position,
    running: HashMap<TaskKey, Running>,
    /// Tasks whose claim was refused since the last event of their plan; the next event shows why.
    refused: HashSet<TaskKey>,
    /// By plan: the position of the last end of a task here. No more of its tasks start before the view has reached it.
    read_to: HashMap<String, Position>,
    jobs: JoinSet<Ran>,
    /// The tasks whose files others lease, until when they wait at the most.
    blocked: HashMap<TaskKey, Instant>,
    /// True while a lease may have to be watched, or a refused claim may be tried again.
    is_restless: bool,
    n_ended: u32,
    /// The last known signs of workers whose leases have run out.
    heard: HashMap<Executor, Timestamp>,
    seen: Seen,
}

impl WorkerLoop {
    fn new(worker: Arc<Worker>, plans: Plans, position: Position) -> Self {
        let (running, refused) = (HashMap::new(), HashSet::new());
        let (read_to, jobs) = (HashMap::new(), JoinSet::new());
        let (is_restless, n_ended, heard, blocked) = (true, 0, HashMap::new(), HashMap::new());
        let seen = Seen::default();
        Self { worker, plans, position, running, refused, read_to, jobs, blocked, is_restless, n_ended, heard, seen }
    }

    /// Starts tasks while there are free places.
    fn start(&mut self) {
        while let Some(mut dispatch) = self.next() {
            let key = dispatch.key();
            let Some(actor) = self.worker.roster.actor(dispatch.kind, &dispatch.parameters) else { return };
            let takes_place = !actor.only_waits();
            let agent = actor.jobs().map(|_| actor.name().to_owned());
            let prompt = agent.as_ref().and_then(|_| self.plans.prompt(&key.0, key.1));
            if agent.is_some() {
                dispatch.parameters.budget = self.plans.left_for(&key.0, key.1);
            }
            let (stop, receiver) = watch::channel(None);
            let (attempt, epoch) = (dispatch.attempt, Arc::default());
            self.plans.changed(&key.0);
            let job = Arc::clone(&self.worker).carry_out(dispatch, prompt, Arc::clone(&epoch), receiver);
            let job = self.jobs.spawn(job).id();
            self.running.insert(key, Running { job, attempt, epoch, stop, agent, takes_place });
        }
    }

    fn next(&self) -> Option<Dispatch> {
        let Self { worker, plans, running, refused, read_to, blocked, .. } = self;
        let n_places = running.values().filter(|running| running.takes_place).count();
        let has_place = |actor: Actor<'_>| {
            let n_of_actor = || running.values().filter(|one| one.agent.as_deref() == Some(actor.name())).count();
            actor.only_waits() || (n_places < worker.jobs && actor.jobs().is_none_or(|max| n_of_actor() < max))
        };
        let is_wanted = |dispatch: &Dispatch| {
            let is_possible = n_places < worker.jobs || dispatch.parameters.sub_plan.is_some();
            let actor = || worker.roster.actor(dispatch.kind, &dispatch.parameters);
            is_possible
                && !read_to.contains_key(&dispatch.plan)
                && !refused.contains(&dispatch.key())
                && blocked.get(&dispatch.key()).is_none_or(|until| *until <= Instant::now())
                && actor().is_some_and(|actor| {
                    has_place(actor) && worker.roster.limits.as_ref().is_none_or(|limits| !limits.holds(actor.name()))
                })
        };
        let is_busy = |plan: &str, task| running.contains_key(&(plan.to_owned(), task));
        plans.next(is_wanted, |dispatch| worker.may_run(dispatch), is_busy)
    }

    /// Takes in an event, and stops what its plan has ended.
    async fn take(&mut self, envelope: &Envelope<PlanEvent>) {
        let Envelope { event, recorded, .. } = envelope;
        (self.position, self.is_restless) = (recorded.position, true);
        self.seen.take(envelope);
        if recorded.stream_id == leases::STREAM {
            self.blocked.clear();
            return;
        }
        if is_followed(recorded) {
            let _ = retrying(|| self.worker.roster.catch_up()).await;
            return;
        }
        let mut backoff = Backoff::new();
        let plan = loop {
            match self.plans.apply(&self.worker.store, (event, recorded)).await {
                Ok(Some(plan)) => break plan,
                Err(error) if backoff.wait_to_retry(&error).await => {}
                Ok(None) | Err(_) => return,
            }
        };
        self.refused.retain(|(refused, _)| *refused != plan);
        if self.read_to.get(&plan).is_some_and(|read_to| *read_to <= recorded.position) {
            self.read_to.remove(&plan);
        }
        let taken = epoch_taken(event);
        for (key, running) in self.running.iter().filter(|((running, _), _)| *running == plan) {
            let epoch = running.epoch.load(Ordering::Relaxed);
            if epoch != 0 && taken > epoch && recorded.aggregate_id == claim::aggregate_id(&key.0, key.1) {
                tracing::warn!(task = recorded.aggregate_id, "stopped: the task went to another worker");
                running.stop_for(Stop::Lost);
            }
            if let Some(reason) = self.plans.ended(key, running.attempt) {
                running.stop_for(Stop::Cancelled { reason });
            }
        }
        self.plans.drop_if_ended(&plan);
    }

    fn end(&mut self, ended: Result<Ran, JoinError>) {
        (self.is_restless, self.n_ended) = (true, self.n_ended.wrapping_add(1));
        match ended {
            Ok(Ran { key, is_blocked: true, .. }) => {
                self.running.remove(&key);
                self.plans.changed(&key.0);
                self.blocked.insert(key, Instant::now() + BLOCKED_FOR);
            }
            Ok(Ran { key, position, .. }) => {
                self.running.remove(&key);
                self.plans.changed(&key.0);
                if position > self.position {
                    let read_to = self.read_to.entry(key.0.clone()).or_default();
                    *read_to = position.max(*read_to);
                }
                // Retried once the view has the event of the end, or of the other claim.
                self.refused.insert(key);
            }
            Err(error) => {
                tracing::error!(%error, "a job of the worker failed");
                // Its lease is ended with those of dead workers.
                let failed = self.running.extract_if(|_, running| running.job == error.id());
                failed.for_each(|((plan, _), _)| self.plans.changed(&plan));
            }
        }
    }

    /// Stops all runs and interrupts what the log may have lost, if it went back. The loop may have ended for another reason while
    /// another part of the program saw that.
    async fn after_loss(&mut self, fault: Option<Error>, host: &str) -> Option<Error> {
        let store = self.worker.store.clone();
        let fault = match fault {
            None => store.head().await.err().filter(|error| matches!(error, Error::WentBack { .. })),
            fault => fault,
        };
        if let Some(Error::WentBack { known, head }) = &fault {
            self.running.values().for_each(|running| running.stop_for(Stop::Lost));
            let (own, seen) = (self.own_runs(), std::mem::take(&mut self.seen));
            seen.interrupt(&store, host, (&self.plans, own), (*known, *head)).await;
        }
        fault
    }

    /// The claims of this worker.
    fn own_runs(&self) -> Vec<Run> {
        let claims = self.running.iter().filter_map(|((plan, task), running)| {
            let (epoch, dispatch) = (running.epoch.load(Ordering::Relaxed), self.plans.dispatch(plan, *task)?);
            let executor = self.worker.life.executor(running.agent.as_deref().unwrap_or(SHELL));
            (epoch > 0 && running.takes_place).then(|| Run::of(dispatch, epoch, executor))
        });
        claims.collect()
    }

    /// The leases that no job of this worker holds.
    fn foreign_leases(&self) -> impl Iterator<Item = (&Dispatch, &Holder)> {
        let has_job = |dispatch: &Dispatch| {
            self.running.contains_key(&dispatch.key()) || self.read_to.contains_key(&dispatch.plan)
        };
        let is_own = |lease: &Holder| self.worker.life.is_own(&lease.executor);
        self.plans.leases().filter(move |(dispatch, lease)| !is_own(lease) || !has_job(dispatch))
    }

    /// Ends the leases that have run out, unless their holder is proven to live, and those of dead holders: workers that
    /// are gone, and jobs of this one that failed.
    async fn look_at_leases(&mut self) {
        let roster = &self.worker.roster;
        let is_open = |agent: &Agent| roster.limits.as_ref().is_some_and(|limits| limits.is_open(&agent.name));
        let waits = roster.agents.iter().any(is_open);
        self.blocked.retain(|_, until| *until > Instant::now());
        self.is_restless =
            waits || !self.refused.is_empty() || !self.blocked.is_empty() || self.foreign_leases().next().is_some();
        self.refused.clear();
        let life = &self.worker.life;
        let now = self.worker.store.now();
        let seen = |executor| self.heard.get(executor).is_some_and(|seen| now.since(*seen) < claim::LEASE);
        let over = self.foreign_leases().filter_map(|(dispatch, lease)| {
            let is_dead = life.is_own(&lease.executor) || life.is_dead(&lease.executor);
            let is_over = || lease.has_expired(now) && !seen(&lease.executor);
            (is_dead || is_over()).then(|| (dispatch.clone(), lease.clone(), is_dead))
        });
        for (dispatch, Holder { executor, epoch, .. }, is_dead) in over.collect::<Vec<_>>() {
            if !is_dead {
                match last_seen(&self.worker.store, life, &executor, now).await {
                    Ok(Some(seen)) if now.since(seen) < claim::LEASE => {
                        self.heard.insert(executor, seen);
                        continue;
                    }
                    Ok(_) => {}
                    Err(error) => {
                        error.warn("the sign of a worker cannot be read yet");
                        continue;
                    }
                }
            }
            let mut claim = claim_of(&self.worker.store, &dispatch.plan, dispatch.task, dispatch.tags.clone());
            let command = TaskCommand::FireTimer { epoch, now, is_dead };
            let cause = dispatch.cause.clone().keeping(command.recorded());
            if let Err(ExecuteError::Store(error)) = claim.execute(command, &cause).await {
                error.warn("the end of a lease could not be appended");
            }
        }
    }
}

/// The epoch from which on others hold a task, if an event gives it to one, or takes it from its holder; else 0.
fn epoch_taken(event: &PlanEvent) -> u64 {
    match event {
        PlanEvent::Task(_, TaskEvent::TaskClaimed { epoch, .. }) => *epoch,
        PlanEvent::Task(_, TaskEvent::TimerFired { epoch, .. } | TaskEvent::TaskInterrupted { epoch, .. }) => epoch + 1,
        _other => 0,
    }
}
