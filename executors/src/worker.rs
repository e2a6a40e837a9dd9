//! A worker: it keeps a view of each plan that it works for, claims the first task that may start and that it can carry
//! out, and appends how it ended.
//!
//! Tasks run concurrently with the subscription, so a long one delays no other; a task that the plan ends meanwhile is
//! stopped. The plan's state says what may start, and in which order: the worker decides nothing.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crewlog_mq::{
    Backoff, Error, EventStore, ExecuteError, Position, Query, Range, Recorded, Runner, Start, Timestamp, retrying,
};
use crewlog_planner::claim::{self, Ending, Executor, Holder, TaskCommand, TaskEvent, TaskLease};
use crewlog_planner::crew::{breaker, consent};
use crewlog_planner::event::{self, FailureClass, Usage};
use crewlog_planner::sealed::key_of;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};

use crate::agent::Agent;
use crate::agents::{Agents, PlansByModel};
use crate::attachments;
use crate::breakers::Clearance;
use crate::caller::host;
use crate::claiming::{ClaimOutcome, append, claim_of, claim_task, keep_session};
use crate::consent::{Input, Trust};
use crate::liveness::LivenessLock;
use crate::metering::{Meter, Sight, Watched, greater};
use crate::planning::open_plans;
use crate::prompts::Rendered;
use crate::queue::{Dispatch, Plans, TaskKey};
use crate::roster::{Actor, Roster, is_followed};
use crate::run::{Job, Stop, is_set, wanted};
use crate::signs::{end_signs, last_sign, leave_signs};
use crate::subplans::{SubPlanRun, family};

/// How often a worker checks whether holders are dead, or their leases have run out.
const LEASE_INTERVAL: Duration = Duration::from_millis(100);

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
    life: LivenessLock,
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
        Self { store, roster, life, jobs, interrupted, agents, left: Mutex::default() }
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
        let at = self.store.head().await?;
        let of_plans = match &scope {
            Scope::Plan(plan) => family(event::STREAM, plan),
            Scope::All => Query::stream(event::STREAM),
        };
        let open = open_plans(&self.store, &of_plans, at).await?.into_keys();
        let plans = Plans::load(&self.store, open, at).await?;
        let store = self.store.clone();
        let mut chunks = pin!(store.follow(&query, Start::After(at)).ready_chunks(EVENTS_MAX));
        // The decisions and limits since it was opened, up to where the events begin.
        self.roster.catch_up().await?;
        self.make_room().await?;
        let me = self.life.executor("worker");
        let mut signs = pin!(leave_signs(&store, &me));
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
                            Ok(recorded) => crew.take(&recorded).await,
                            Err(error) if error.is_final() => fault = Some(error),
                            Err(error) => error.warn("an event cannot be read yet"),
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
                () = &mut signs => {
                    tracing::warn!("the log is out of reach, and the leases of this worker end: what it runs is stopped");
                    crew.running.values().for_each(|running| running.stop_for(Stop::Lost));
                    signs.set(leave_signs(&store, &me));
                }
                () = is_set(&mut stop) => break,
            }
        }
        // A task that the plan ended meanwhile is stopped for that reason, and not given back.
        let rest = crew.worker.store.records(&query, Range::after(crew.position)).try_collect::<Vec<_>>().await;
        for recorded in rest.unwrap_or_default() {
            crew.take(&recorded).await;
        }
        for running in crew.running.values() {
            running.stop_for(Stop::Interrupted);
        }
        while crew.jobs.join_next().await.is_some() {}
        crew.worker.roster.shell.supervisor.close().await;
        end_signs(&store, &me).await.unwrap_or_else(|error| error.warn("the last sign of this worker stays"));
        fault.map_or(Ok(()), Err)
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

    /// Carries a task out from the claim to its end.
    async fn carry_out(
        self: Arc<Self>,
        mut dispatch: Dispatch,
        prompt: Option<Rendered>,
        held: Arc<AtomicU64>,
        mut stop: watch::Receiver<Option<Stop>>,
    ) -> (TaskKey, Position) {
        let key = dispatch.key();
        let Some(actor) = self.roster.actor(dispatch.kind, &dispatch.parameters) else { return (key, dispatch.seen) };
        if let Some(trust) = &self.roster.trust {
            let input = Input::of_dispatch(&dispatch.plan, dispatch.task, &dispatch.parameters);
            if !trust.agrees(&input, actor.name(), &dispatch.cause).await {
                return (key, dispatch.seen);
            }
        }
        if let Some(kept) = &dispatch.parameters.folder {
            let Ok(folder) = self.roster.find(kept) else { return (key, dispatch.seen) };
            dispatch.parameters.folder = Some(folder.to_string_lossy().into_owned());
        }
        let Some(actor) = self.roster.actor(dispatch.kind, &dispatch.parameters) else { return (key, dispatch.seen) };
        let limits = self.roster.limits.as_ref().filter(|_| matches!(actor, Actor::Agent(..)));
        let start = match limits {
            Some(limits) => limits.start(actor.name(), &dispatch.target(), &dispatch.cause).await,
            None => Clearance::Free,
        };
        if start == Clearance::Refused {
            return (key, dispatch.seen);
        }
        let mut claim = claim_of(&self.store, &dispatch.plan, dispatch.task, dispatch.tags.clone());
        let checked = attachments::checked(&dispatch.parameters).await;
        let reports = self.interrupted == InterruptedTask::Report && !actor.only_waits();
        // An agent's prompt depends on the claim: an earlier run may have been cut off.
        let begin = |lost: Option<&Executor>| {
            let is_ready = checked.is_ok() && (lost.is_none() || !reports);
            is_ready.then(|| prompt.as_ref().map(|prompt| prompt.after(lost.is_some()).digest()))
        };
        let mut has_passed = false;
        let claimed = claim_task(&self.store, &self.life, actor.name(), &mut claim, &dispatch, begin, &mut stop).await;
        if let ClaimOutcome::Won(epoch) = claimed {
            held.store(epoch, Ordering::Relaxed);
            let lost = claim.handler().interrupted.clone();
            let ready = match (checked, lost) {
                (Err(question), _) => Err(Ending::Asked { question, default: None }),
                (Ok(()), Some(executor)) if reports => Err(Ending::cut_short(&executor)),
                (Ok(()), lost) => Ok(prompt.map(|prompt| prompt.after(lost.is_some()).text)),
            };
            has_passed = self.carry_out_held(actor, &dispatch, &mut claim, epoch, ready, stop).await;
        }
        if let Some(limits) = limits.filter(|_| start == Clearance::Probe) {
            limits.end_probe(actor.name(), &dispatch.target(), has_passed, &dispatch.cause).await;
        }
        (key, claim.position())
    }

    /// Returns true if a program ran and met no rate limit.
    async fn carry_out_held(
        &self,
        actor: Actor<'_>,
        dispatch: &Dispatch,
        claim: &mut Runner<TaskLease>,
        epoch: u64,
        ready: Result<Option<String>, Ending>,
        stop: watch::Receiver<Option<Stop>>,
    ) -> bool {
        let unwanted = stop.borrow().clone();
        let ready = unwanted.map_or(ready, |stop| Err(stop.ending(false)));
        let has_run = ready.is_ok();
        let (ending, usage) = match ready {
            Err(ending) => (ending, Usage::default()),
            Ok(prompt) => {
                let began = Instant::now();
                let (ending, mut usage) =
                    self.act(actor, dispatch, prompt.unwrap_or_default(), claim, epoch, stop).await;
                // Running time is reported where it counts, or together with other usage. The tasks of a sub-plan report
                // their own.
                let is_reported = dispatch.parameters.is_timed || !usage.is_nothing();
                if is_reported && !actor.only_waits() {
                    usage.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                }
                (ending, usage)
            }
        };
        let limits = self.roster.limits.as_ref().filter(|_| matches!(actor, Actor::Agent(..)));
        if let (Some(limits), Actor::Agent(agent, _)) = (limits, actor) {
            limits.spend(agent, &dispatch.target(), usage.cost_micros, &dispatch.cause).await;
        }
        if let (Some(limits), Ending::Failed { class: FailureClass::RateLimited { retry_after_ms }, .. }) =
            (limits, &ending)
        {
            // Before the report, so that nothing else starts meanwhile.
            let after = retry_after_ms.map(Duration::from_millis);
            limits.met_limit(actor.name(), &dispatch.target(), after, &dispatch.cause).await;
        }
        let has_passed = match &ending {
            Ending::Completed { .. } | Ending::Asked { .. } => has_run,
            Ending::Failed { class: FailureClass::Task | FailureClass::TimedOut, run, .. } => run.is_some(),
            _says_nothing_of_limits => false,
        };
        append(claim, TaskCommand::End { epoch, usage, ending }, &dispatch.cause).await;
        has_passed
    }

    /// Lets the actor act.
    async fn act(
        &self,
        actor: Actor<'_>,
        dispatch: &Dispatch,
        prompt: String,
        claim: &mut Runner<TaskLease>,
        epoch: u64,
        mut plan_stop: watch::Receiver<Option<Stop>>,
    ) -> (Ending, Usage) {
        let (stop, mut run_stop) = watch::channel(None);
        let Dispatch { plan, task, attempt, parameters, tags, cause, .. } = dispatch;
        let files = self.roster.outputs.as_ref().filter(|_| key_of(tags).is_none());
        let file = files.map(|files| files.file(plan, *task, *attempt, epoch));
        let is_of_it = |(executor, _): &&(Executor, String)| executor.name == actor.name() && executor.host == host();
        let session = claim.handler().session.as_ref().filter(is_of_it).map(|(_, id)| id.clone());
        let session = session.filter(|id| !id.is_empty());
        let (task, attempt, output, is_resumed) = (*task, *attempt, file.clone(), session.is_some());
        let job = Job { plan, task, attempt, epoch, parameters, output, session };
        let run = async {
            match actor {
                Actor::SubPlan(sub_plan) => {
                    let (store, agents) = (&self.store, &self.agents);
                    let (trust, knows_tools) = (self.roster.trust.as_ref(), self.roster.knows_tools);
                    let run = SubPlanRun { store, agents, job: &job, sub_plan, tags, cause, trust, knows_tools };
                    run.run(&mut run_stop).await
                }
                Actor::Shell(shell) => shell.run(job, &mut run_stop).await,
                Actor::Agent(agent, shell) => agent.run(shell, job, prompt, &mut run_stop).await,
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
        let mut meter = file.filter(|_| matches!(actor, Actor::Agent(..))).map(Meter::new);
        let watching = async {
            if let (Some(meter), Actor::Agent(agent, _)) = (&mut meter, actor) {
                stop.send_replace(Some(self.watch(agent, dispatch, meter, epoch).await));
            }
            std::future::pending().await
        };
        let ended = tokio::select! {
            ending = acting => ending,
            ending = watching => ending,
        };
        // After the last look. A session that could not be continued is not tried again.
        let used = meter.as_mut().map(Meter::usage).unwrap_or_default();
        let is_dead = is_resumed && matches!(ended.0, Ending::Failed { .. });
        if let Some(id) = meter.as_ref().and_then(Meter::session).or(is_dead.then_some("")) {
            keep_session(claim, epoch, id, cause).await;
        }
        (ended.0, greater(ended.1, &used))
    }

    /// Records the session of a run. Returns when the run has used up a budget.
    async fn watch(&self, agent: &Agent, dispatch: &Dispatch, meter: &mut Meter, epoch: u64) -> Stop {
        let Dispatch { plan, task, tags, cause, .. } = dispatch;
        let mut watched = Watched::new(&self.roster, agent, &dispatch.parameters.budget, dispatch.target());
        loop {
            match watched.next(meter).await {
                Sight::OverBudget(stop) => return stop,
                Sight::Session(id) => {
                    keep_session(&mut claim_of(&self.store, plan, *task, tags.clone()), epoch, &id, cause).await;
                }
            }
        }
    }
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
    jobs: JoinSet<(TaskKey, Position)>,
    /// True while a lease may have to be watched, or a refused claim may be tried again.
    is_restless: bool,
    n_ended: u32,
    /// The last known signs of workers whose leases have run out.
    heard: HashMap<Executor, Timestamp>,
}

impl WorkerLoop {
    fn new(worker: Arc<Worker>, plans: Plans, position: Position) -> Self {
        let (running, refused) = (HashMap::new(), HashSet::new());
        let (read_to, jobs) = (HashMap::new(), JoinSet::new());
        let (is_restless, n_ended, heard) = (true, 0, HashMap::new());
        Self { worker, plans, position, running, refused, read_to, jobs, is_restless, n_ended, heard }
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
        let Self { worker, plans, running, refused, read_to, .. } = self;
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
                && actor().is_some_and(|actor| {
                    has_place(actor) && worker.roster.limits.as_ref().is_none_or(|limits| !limits.holds(actor.name()))
                })
                && worker.may_run(dispatch)
        };
        let is_busy = |plan: &str, task| running.contains_key(&(plan.to_owned(), task));
        plans.next(is_wanted, is_busy)
    }

    /// Takes in an event, and stops what its plan has ended.
    async fn take(&mut self, recorded: &Recorded) {
        (self.position, self.is_restless) = (recorded.position, true);
        if is_followed(recorded) {
            let _ = retrying(|| self.worker.roster.catch_up()).await;
            return;
        }
        let mut backoff = Backoff::new();
        let plan = loop {
            match self.plans.apply(&self.worker.store, recorded).await {
                Ok(plan) => break plan,
                Err(error) if !backoff.wait_to_retry(&error).await => return,
                Err(_) => {}
            }
        };
        let Some(plan) = plan else { return };
        self.refused.retain(|(refused, _)| *refused != plan);
        if self.read_to.get(&plan).is_some_and(|read_to| *read_to <= recorded.position) {
            self.read_to.remove(&plan);
        }
        let taken = epoch_taken(recorded).unwrap_or_default();
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

    fn end(&mut self, ended: Result<(TaskKey, Position), JoinError>) {
        (self.is_restless, self.n_ended) = (true, self.n_ended.wrapping_add(1));
        match ended {
            Ok((key, position)) => {
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
        self.is_restless = waits || !self.refused.is_empty() || self.foreign_leases().next().is_some();
        self.refused.clear();
        let life = &self.worker.life;
        let now = self.worker.store.now();
        let seen = |executor| self.heard.get(executor).is_some_and(|seen| now.since(*seen) < claim::LEASE);
        let over = self.foreign_leases().filter_map(|(dispatch, lease)| {
            let is_dead = life.is_own(&lease.executor) || life.is_dead(&lease.executor);
            let is_over = || lease.has_expired(now) && !seen(&lease.executor) && !life.proves(lease);
            (is_dead || is_over()).then(|| (dispatch.clone(), lease.clone(), is_dead))
        });
        for (dispatch, Holder { executor, epoch, .. }, is_dead) in over.collect::<Vec<_>>() {
            if !is_dead {
                match last_sign(&self.worker.store, &executor).await {
                    Ok(seen) if now.since(seen) < claim::LEASE => {
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

/// The epoch from which on others hold a task, if an event gives it to one, or takes it from its holder.
fn epoch_taken(recorded: &Recorded) -> Option<u64> {
    let is_meant =
        recorded.stream_id == claim::STREAM && ["TaskClaimed", "TimerFired"].contains(&&*recorded.event_type);
    match is_meant.then(|| recorded.decode().ok())?? {
        TaskEvent::TaskClaimed { epoch, .. } => Some(epoch),
        TaskEvent::TimerFired { epoch, .. } => Some(epoch + 1),
        _other => None,
    }
}
