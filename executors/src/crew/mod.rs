//! The crew of a project on its log: agents join, lease files, take tasks, exchange messages and ask the person.
//!
//! A [`Crew`] runs the pure handlers of [`crewlog_planner::crew`] for all callers of a process: MCP sessions, hooks and
//! the command line. Each handler stays warm behind a lock of its own, so decisions about one aggregate are made one after
//! another. It decides nothing itself.
//!
//! Every call of an agent goes through [`Crew::present`]: it checks that the session still holds the name, and renews the
//! agent's leases and claims. The log records that once a minute at most.

mod board;
mod mail;
mod needs;
mod presence;
mod refusal;
mod tasks;
mod timers;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{
    Append, Cause, CellChange, Error, Event, EventStore, ExecuteError, Executed, Handler, Position, Query, Range,
    Runner, Snapshot, Timestamp,
};
use crewlog_planner::claim::{self, Executor};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::{self, Agents, Profile};
use crewlog_planner::crew::asks::{self, Answer, Ask, AskCommand, Asks};
use crewlog_planner::crew::leases::{self, Holder, Lease, LeaseCommand, LeaseEvent, Leases, Request, Which};
use crewlog_planner::crew::messages::{self, Messages};
use crewlog_planner::crew::target::Target;
use crewlog_planner::event;
use futures::TryStreamExt;
use tokio::sync::{Mutex, MutexGuard};

pub use self::board::{TaskState, TaskSummary};
pub use self::mail::{Delivered, Draft, Mail};
pub use self::needs::{Kind, Need, NeedsYou, needs_you};
pub use self::refusal::Refusal;
pub use self::tasks::{NewTask, STANDING_PLAN, Taken, TaskUpdate};
pub use self::timers::host;

use self::board::Board;
use crate::liveness::LivenessLock;

/// The space of the cells that tell when hooks ran.
const HOOKS: &str = "hooks";

/// The crew of a project.
pub struct Crew {
    store: EventStore,
    project: String,
    life: Arc<LivenessLock>,
    agents: Mutex<Runner<Agents>>,
    leases: Mutex<Runner<Leases>>,
    messages: Mutex<Runner<Messages>>,
    asks: Mutex<Runner<Asks>>,
    board: Mutex<Board>,
}

/// An agent that makes a call: a session that has joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its name.
    pub agent: String,
    /// The number of its session; an older one is refused.
    pub epoch: u64,
    /// The worktree that its paths are in: its machine and its path.
    pub worktree: String,
}

impl Caller {
    fn holder(&self) -> Holder {
        Holder { agent: self.agent.clone(), worktree: self.worktree.clone() }
    }

    /// As whom it claims tasks: the agent, whatever its process. A worktree is written as `HOST:PATH`.
    fn executor(&self) -> Executor {
        let host = self.worktree.split_once(':').map_or(self.worktree.as_str(), |(host, _)| host).to_owned();
        Executor { name: self.agent.clone(), host, worker: format!("session {}", self.epoch) }
    }
}

/// A session that joins.
#[derive(Debug, Clone)]
pub struct Join {
    /// The wanted name; a free one is made of the program's if unset.
    pub name: Option<String>,
    /// The agent that started it.
    pub parent: Option<String>,
    /// The same for each call of one session, and for its hooks.
    pub session: String,
    /// Who it is.
    pub profile: Profile,
}

/// An agent that has joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// As whom it makes its calls.
    pub caller: Caller,
    /// Whether the session held the name already.
    pub is_resumed: bool,
    /// The position of the log, as the agent sees it.
    pub position: Position,
}

/// A request for leases.
#[derive(Debug, Clone)]
pub struct Reserve {
    /// The files.
    pub targets: Vec<Target>,
    /// Whether no other lease may overlap them.
    pub is_exclusive: bool,
    /// How long the leases last without a call.
    pub ttl: Duration,
    /// Why.
    pub reason: String,
    /// The task that it is for: `<plan>/<number>`.
    pub task: Option<String>,
    /// Whether leases in other worktrees count too.
    pub is_strict: bool,
    /// For how long the request waits in the queue.
    pub wait: Option<Duration>,
}

/// What a request for leases led to.
#[derive(Debug, Clone, PartialEq)]
pub enum Reserved {
    /// All of it: the agent's leases on the targets, by number, and the overlaps with other worktrees.
    Granted {
        /// The leases on the requested targets.
        leases: Vec<(u64, Lease)>,
        /// Live leases of other worktrees that overlap.
        merge_risks: Vec<leases::MergeRisk>,
    },
    /// It waits for others, as this number.
    Queued {
        /// Its number.
        waiting: u64,
    },
    /// Nothing of it.
    Denied {
        /// What is in the way.
        blocked: Vec<leases::Blocked>,
    },
}

impl Crew {
    /// The crew of a project on a log. `life` proves to others that this process lives.
    #[must_use]
    pub fn new(store: &EventStore, project: &str, life: Arc<LivenessLock>) -> Self {
        Self {
            agents: Mutex::new(runner(store, project)),
            leases: Mutex::new(runner(store, project)),
            messages: Mutex::new(runner(store, project)),
            asks: Mutex::new(runner(store, project)),
            board: Mutex::new(Board::default()),
            store: store.clone(),
            project: project.to_owned(),
            life,
        }
    }

    /// The log.
    #[must_use]
    pub fn store(&self) -> &EventStore {
        &self.store
    }

    /// The project.
    #[must_use]
    pub fn project(&self) -> &str {
        &self.project
    }

    /// The process as an executor: what an agent of it records, so that its death can be proven.
    #[must_use]
    pub fn process(&self, name: &str) -> Executor {
        self.life.executor(name)
    }

    /// The same for another process, `process:HOST:NAMESPACE:PID:STARTTIME`.
    #[must_use]
    pub fn process_of(&self, name: &str, process: &str) -> Executor {
        self.life.executor_of(name, process)
    }

    /// Everything that the agents of the project, their leases, messages, questions and tasks write.
    #[must_use]
    pub fn news(&self) -> Query {
        let of = |stream| Query::aggregate(stream, &self.project);
        let own = [leases::STREAM, messages::STREAM, asks::STREAM].into_iter().map(of);
        let plans = [event::STREAM, claim::STREAM].into_iter().map(Query::stream);
        own.chain(plans).fold(of(agents::STREAM), Query::or)
    }

    /// The agents, up to date.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn agents(&self) -> Result<Read<'_, Agents>, Error> {
        Read::of(&self.agents).await
    }

    /// The leases, up to date.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn leases(&self) -> Result<Read<'_, Leases>, Error> {
        Read::of(&self.leases).await
    }

    /// The open messages, up to date.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn messages(&self) -> Result<Read<'_, Messages>, Error> {
        Read::of(&self.messages).await
    }

    /// The questions, up to date.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn asks(&self) -> Result<Read<'_, Asks>, Error> {
        Read::of(&self.asks).await
    }

    /// The agents, leases, messages or questions as of a position, or now.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn at<H>(&self, position: Option<Position>) -> Result<H, Error>
    where
        H: Handler + Snapshot + Clone,
        H::Command: Clone,
        H::Event: Event,
    {
        let Some(position) = position else {
            let mut now = runner::<H>(&self.store, &self.project);
            now.catch_up().await?;
            return Ok(now.handler().clone());
        };
        let mut handler = H::default();
        let mut records = pin!(self.store.records(&Query::aggregate(H::FOLD, &self.project), Range::up_to(position)));
        while let Some(recorded) = records.try_next().await? {
            handler.apply(&recorded.decode()?);
            handler.placed(recorded.position);
        }
        Ok(handler)
    }

    /// Requests leases: all of them or none.
    ///
    /// # Errors
    /// As for [`Crew::present`], a request past a limit, or a fault of the log. That others hold leases is no error.
    pub async fn reserve(&self, caller: &Caller, reserve: Reserve) -> Result<Reserved, Refusal> {
        self.present(caller).await?;
        let Reserve { targets, is_exclusive, ttl, reason, task, is_strict, wait } = reserve;
        let now = self.store.now();
        let request =
            Request { holder: caller.holder(), targets: targets.clone(), is_exclusive, ttl, reason, task, is_strict };
        let wait_until = wait.filter(|wait| !wait.is_zero()).map(|wait| now.plus(wait));
        let mut leases = self.leases.lock().await;
        let executed = match leases.execute(LeaseCommand::Reserve { request, wait_until, now }, &Cause::request()).await
        {
            Err(ExecuteError::Refused(CrewError::Held(blocked))) => return Ok(Reserved::Denied { blocked }),
            executed => executed?,
        };
        // The same request may be waiting already.
        let waits = |request: &Request| {
            request.holder == caller.holder() && request.targets.iter().all(|target| targets.contains(target))
        };
        let waiting =
            leases.handler().waiting().find(|(_, waiting)| waits(&waiting.request)).map(|(number, _)| *number);
        match waiting.filter(|_| executed.events.is_empty()) {
            Some(waiting) => Ok(Reserved::Queued { waiting }),
            None => Ok(reserved(leases.handler(), caller, &targets, &executed.events)),
        }
    }

    /// Extends leases: those with these numbers or targets, or all. Gives the leases that are live now.
    ///
    /// # Errors
    /// As for [`Crew::present`], and a lease that is not the agent's.
    pub async fn extend(&self, caller: &Caller, which: Which, by: Duration) -> Result<Vec<(u64, Lease)>, Refusal> {
        self.present(caller).await?;
        let command = LeaseCommand::Extend { agent: caller.agent.clone(), which, by, now: self.store.now() };
        let mut leases = self.leases.lock().await;
        leases.execute(command, &Cause::request()).await?;
        Ok(leases.handler().of_agent(&caller.agent).map(|(number, lease)| (number, lease.clone())).collect())
    }

    /// Releases leases, and gives their numbers and the agents that were waiting and have their leases now.
    ///
    /// # Errors
    /// As for [`Crew::present`], and a lease that is not the agent's.
    pub async fn release(&self, caller: &Caller, which: Which) -> Result<(Vec<u64>, Vec<String>), Refusal> {
        self.present(caller).await?;
        let command = LeaseCommand::Release { agent: caller.agent.clone(), which, now: self.store.now() };
        let executed = self.leases.lock().await.execute(command, &Cause::request()).await?;
        let mut granted = Vec::new();
        for event in &executed.events {
            if let LeaseEvent::LeasesGranted { request, .. } = event {
                granted.push(request.holder.agent.clone());
            }
        }
        Ok((released_by(&executed), granted))
    }

    /// A person ends leases.
    ///
    /// # Errors
    /// A lease that is not live, or a fault of the log.
    pub async fn force(&self, leases: Vec<u64>, by: String, reason: String) -> Result<Vec<u64>, Refusal> {
        let command = LeaseCommand::Force { leases, by, reason, now: self.store.now() };
        let executed = self.leases.lock().await.execute(command, &Cause::request()).await?;
        Ok(released_by(&executed))
    }

    /// Records that an edit was refused, or that a file was changed without a lease.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn record_edit(&self, command: impl FnOnce(Timestamp) -> LeaseCommand) -> Result<(), Refusal> {
        let command = command(self.store.now());
        self.leases.lock().await.execute(command, &Cause::request()).await?;
        Ok(())
    }

    /// Notes that a hook of a program ran, once a minute at most: beside the log, since nothing depends on it.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn hook_ran(&self, program: &str) -> Result<(), Error> {
        let now = self.store.now();
        if self.last_hook(program).await?.is_some_and(|last| now.since(last) < agents::SEEN_EVERY) {
            return Ok(());
        }
        let cell = CellChange::set(HOOKS, &self.hook_key(program), now.0.to_string());
        self.store.append(Append::default().cell(cell)).await?;
        Ok(())
    }

    /// When a hook of a program last ran in this project, to the minute.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn last_hook(&self, program: &str) -> Result<Option<Timestamp>, Error> {
        let cell = self.store.cell(HOOKS, &self.hook_key(program)).await?;
        Ok(cell.and_then(|cell| cell.value.parse().ok()).map(Timestamp))
    }

    fn hook_key(&self, program: &str) -> String {
        format!("{}:{program}", self.project)
    }

    /// An agent asks the person; gives the number of the question.
    ///
    /// # Errors
    /// As for [`Crew::present`], and a refusal by [`Asks`].
    pub async fn ask(&self, caller: &Caller, ask: Ask) -> Result<u64, Refusal> {
        self.present(caller).await?;
        let ask = Ask { agent: caller.agent.clone(), ..ask };
        let mut asks = self.asks.lock().await;
        asks.execute(AskCommand::Ask { ask: ask.clone(), now: self.store.now() }, &Cause::request()).await?;
        Ok(asks.handler().number_of(&ask).unwrap_or_default())
    }

    /// A person answers.
    ///
    /// # Errors
    /// A refusal by [`Asks`], or a fault of the log.
    pub async fn answer(&self, number: u64, answer: Answer) -> Result<(), Refusal> {
        let command = AskCommand::Answer { number, answer, now: self.store.now() };
        self.asks.lock().await.execute(command, &Cause::request()).await?;
        Ok(())
    }
}

/// A handler that was just read. Its lock is held, so keep it for a moment only.
pub struct Read<'a, H: Handler>(MutexGuard<'a, Runner<H>>);

impl<'a, H: Handler> Read<'a, H>
where
    H::Command: Clone,
    H::Event: Event,
{
    async fn of(runner: &'a Mutex<Runner<H>>) -> Result<Self, Error> {
        let mut runner = runner.lock().await;
        runner.catch_up().await?;
        Ok(Self(runner))
    }

    /// Up to where it was read.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.position()
    }
}

impl<H: Handler> std::ops::Deref for Read<'_, H>
where
    H::Command: Clone,
    H::Event: Event,
{
    type Target = H;

    fn deref(&self) -> &H {
        self.0.handler()
    }
}

/// A handler of the project. Its fold has the name of its stream.
fn runner<H>(store: &EventStore, project: &str) -> Runner<H>
where
    H: Handler + Snapshot,
    H::Command: Clone,
    H::Event: Event,
{
    Runner::new(store.clone(), H::FOLD, project, vec![format!("project:{project}")]).with_snapshots()
}

fn released_by(executed: &Executed<LeaseEvent>) -> Vec<u64> {
    let mut released = Vec::new();
    for event in &executed.events {
        if let LeaseEvent::LeasesReleased { leases, .. } | LeaseEvent::LeasesForced { leases, .. } = event {
            released.extend(leases);
        }
    }
    released
}

fn reserved(leases: &Leases, caller: &Caller, targets: &[Target], events: &[LeaseEvent]) -> Reserved {
    let mut risks = Vec::new();
    for event in events {
        if let LeaseEvent::LeasesQueued { waiting, .. } = event {
            return Reserved::Queued { waiting: *waiting };
        }
        if let LeaseEvent::LeasesGranted { merge_risks, .. } = event {
            risks.clone_from(merge_risks);
        }
    }
    let of_request =
        |(_, lease): &(u64, &Lease)| lease.holder.worktree == caller.worktree && targets.contains(&lease.target);
    let own = leases.of_agent(&caller.agent).filter(of_request);
    Reserved::Granted { leases: own.map(|(number, lease)| (number, lease.clone())).collect(), merge_risks: risks }
}
