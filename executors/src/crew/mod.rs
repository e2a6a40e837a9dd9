//! The crew of a project on its log: agents join, lease files, take tasks, exchange messages and ask the person.
//!
//! A [`Crew`] runs the pure handlers of [`crewlog_planner::crew`] for all callers of a process: MCP sessions, hooks and
//! the command line. Each handler stays in memory behind its own lock, so decisions about one aggregate are made one
//! after another. All decisions are the handlers'.
//!
//! Every call of an agent goes through [`Crew::present`], which checks that the session still holds the name, and
//! renews the agent's leases and claims. The log records this at most once a minute.
//!
//! Each call can fail with a fault of the log, and each call of an agent like [`Crew::present`]; the docs of a call
//! name only its other errors.

mod actions;
mod board;
mod holders;
mod mail;
mod needs;
mod presence;
pub mod process;
mod refusal;
mod shared;
mod tasks;
mod timers;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::{
    Append, CellChange, Error, Event, EventStore, Executed, Handler, Position, Query, Range, Snapshot, Timestamp,
};
use crewlog_planner::claim::{self, Executor};
use crewlog_planner::crew::agents::{self, Agents, Profile};
use crewlog_planner::crew::asks::{self, Answer, Ask, AskCommand, AskEvent, Asks};
use crewlog_planner::crew::leases::{
    self, Lease, LeaseCommand, LeaseEvent, LeaseHolder, Leases, MergeRisk, Request, Which,
};
use crewlog_planner::crew::messages::{self, Messages};
use crewlog_planner::event;
use futures::TryStreamExt;
use tokio::sync::Mutex;

pub use self::actions::{NeedAction, OWN_WORDS};
pub use self::board::{TaskSummary, summaries};
pub use self::holders::Holders;
pub use self::mail::Mail;
pub use self::needs::{Facts, Kind, Need, OpenPlan, begins, needs_you, question_text};
pub use self::refusal::Refusal;
pub use self::shared::Read;
pub use self::tasks::{Claimed, NewTask, Reserve, STANDING_PLAN, standing_plan};
pub use self::timers::host;

use self::board::Board;
use self::shared::{Shared, runner};
use crate::liveness::LivenessLock;
use crate::roster::Roster;

/// The space of the cells with the last runs of hooks.
const HOOKS: &str = "hooks";

/// The crew of a project.
pub struct Crew {
    store: EventStore,
    project: String,
    life: Arc<LivenessLock>,
    roster: Option<Roster>,
    agents: Shared<Agents>,
    leases: Shared<Leases>,
    messages: Shared<Messages>,
    asks: Shared<Asks>,
    board: Mutex<Board>,
}

/// An agent that makes a call, from a session that has joined.
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
    /// The agent as a holder of leases.
    #[must_use]
    pub fn holder(&self) -> LeaseHolder {
        LeaseHolder { agent: self.agent.clone(), worktree: self.worktree.clone() }
    }

    /// The agent as an executor that claims tasks, in any of its processes. A worktree is written as `HOST:PATH`.
    fn executor(&self) -> Executor {
        let host = self.worktree.split_once(':').map_or(self.worktree.as_str(), |(host, _)| host).to_owned();
        Executor { name: self.agent.clone(), host, worker: format!("session {}", self.epoch) }
    }
}

/// A session that joins.
#[derive(Debug, Clone)]
pub struct Join {
    /// The wanted name; when unset, a free one made from the program's.
    pub name: Option<String>,
    /// The agent that started it.
    pub parent: Option<String>,
    /// The same for all calls and hooks of one session.
    pub session: String,
    /// Its profile.
    pub profile: Profile,
}

/// An agent that has joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Its identity for calls.
    pub caller: Caller,
    /// True if the session already held the name.
    pub is_resumed: bool,
    /// The position of the log, as the agent sees it.
    pub position: Position,
}

/// Granted leases.
#[derive(Debug, Clone, PartialEq)]
pub struct Granted {
    /// The leases on the requested targets, by number.
    pub leases: Vec<(u64, Lease)>,
    /// Live leases of other worktrees that overlap.
    pub merge_risks: Vec<MergeRisk>,
}

impl Crew {
    /// The crew of a project on a log. `life` proves to others that this process is alive.
    #[must_use]
    pub fn new(store: &EventStore, project: &str, life: Arc<LivenessLock>) -> Self {
        Self {
            agents: Shared::new(store, project),
            leases: Shared::new(store, project),
            messages: Shared::new(store, project),
            asks: Shared::new(store, project),
            board: Mutex::new(Board::default()),
            store: store.clone(),
            project: project.to_owned(),
            life,
            roster: None,
        }
    }

    /// Adds the executors that workers on this machine would run tasks with.
    #[must_use]
    pub fn with_roster(self, roster: Option<Roster>) -> Self {
        Self { roster, ..self }
    }

    /// The executors that workers on this machine would run tasks with, if they are configured.
    #[must_use]
    pub fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
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

    /// This process as an executor, for the profile of an agent, so that its death can be proven.
    #[must_use]
    pub fn process(&self, name: &str) -> Executor {
        self.life.executor(name)
    }

    /// Everything written for the project's agents, leases, messages, questions and tasks.
    #[must_use]
    pub fn news(&self) -> Query {
        let of = |stream| Query::aggregate(stream, &self.project);
        let own = [leases::STREAM, messages::STREAM, asks::STREAM].into_iter().map(of);
        let plans = [event::STREAM, claim::STREAM].into_iter().map(Query::stream);
        own.chain(plans).fold(of(agents::STREAM), Query::or)
    }

    /// The agents, up to date.
    pub async fn agents(&self) -> Result<Read<'_, Agents>, Error> {
        self.agents.read().await
    }

    /// The leases, up to date.
    pub async fn leases(&self) -> Result<Read<'_, Leases>, Error> {
        self.leases.read().await
    }

    /// The open messages, up to date.
    pub async fn messages(&self) -> Result<Read<'_, Messages>, Error> {
        self.messages.read().await
    }

    /// The questions, up to date.
    pub async fn asks(&self) -> Result<Read<'_, Asks>, Error> {
        self.asks.read().await
    }

    /// The agents, leases, messages or questions as of a position, or now.
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

    /// Requests leases, all or none. Returns `None` while the request waits in the queue, for at most `wait`.
    ///
    /// # Errors
    /// [`CrewError::Held`](crewlog_planner::crew::CrewError::Held) if others hold leases and it does not wait, or a
    /// request beyond a limit.
    pub async fn reserve(
        &self,
        caller: &Caller,
        request: Request,
        wait: Option<Duration>,
    ) -> Result<Option<Granted>, Refusal> {
        self.present(caller).await?;
        let now = self.store.now();
        let wait_until = wait.map(|wait| now.plus(wait));
        let command = LeaseCommand::Reserve { request: request.clone(), wait_until, now };
        let look = move |leases: &Leases, executed: Executed<LeaseEvent>| {
            let own = granted(leases, &request, now);
            let is_granted = request.targets.iter().all(|target| own.iter().any(|(_, lease)| lease.target == *target));
            let merge_risks = executed.events.into_iter().find_map(|event| match event {
                LeaseEvent::LeasesGranted { merge_risks, .. } => Some(merge_risks),
                _another => None,
            });
            is_granted.then(|| Granted { leases: own, merge_risks: merge_risks.unwrap_or_default() })
        };
        match self.leases.execute(command, look).await? {
            // Another call of the same agent released them before this one looked.
            None if wait.is_none() => Err(Refusal::Busy),
            granted => Ok(granted),
        }
    }

    /// Extends leases: those with these numbers or targets, or all. Returns the leases that are live now.
    ///
    /// # Errors
    /// A lease that is not the agent's.
    pub async fn extend(&self, caller: &Caller, which: Which, by: Duration) -> Result<Vec<(u64, Lease)>, Refusal> {
        self.present(caller).await?;
        let (agent, now) = (caller.agent.clone(), self.store.now());
        let command = LeaseCommand::Extend { agent: agent.clone(), which, by, now };
        let own =
            move |leases: &Leases, _| leases.of_agent(&agent).map(|(number, lease)| (number, lease.clone())).collect();
        self.leases.execute(command, own).await
    }

    /// Releases leases. Returns their numbers, and the waiting agents that have now got their leases.
    ///
    /// # Errors
    /// A lease that is not the agent's.
    pub async fn release(&self, caller: &Caller, which: Which) -> Result<(Vec<u64>, Vec<String>), Refusal> {
        self.present(caller).await?;
        let command = LeaseCommand::Release { agent: caller.agent.clone(), which, now: self.store.now() };
        let executed = self.leases.execute(command, |_, executed| executed).await?;
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
    /// A lease that is not live.
    pub async fn force(&self, leases: Vec<u64>, by: String, reason: String) -> Result<Vec<u64>, Refusal> {
        let command = LeaseCommand::Force { leases, by, reason, now: self.store.now() };
        self.leases.execute(command, |_, executed| released_by(&executed)).await
    }

    /// Records that an edit was refused, or that a file was changed without a lease.
    pub async fn record_edit(&self, command: impl FnOnce(Timestamp) -> LeaseCommand) -> Result<(), Refusal> {
        let command = command(self.store.now());
        self.leases.execute(command, |_, _| ()).await
    }

    /// Records the run of a program's hook at most once a minute, in a cell since nothing depends on it.
    pub async fn hook_ran(&self, program: &str) -> Result<(), Error> {
        let now = self.store.now();
        if self.last_hook(program).await?.is_some_and(|last| now.since(last) < agents::SEEN_EVERY) {
            return Ok(());
        }
        let cell = CellChange::set(HOOKS, &self.hook_key(program), now.0.to_string());
        self.store.append(Append::default().cell(cell)).await?;
        Ok(())
    }

    /// The last run of a program's hook in this project, to the minute.
    pub async fn last_hook(&self, program: &str) -> Result<Option<Timestamp>, Error> {
        let cell = self.store.cell(HOOKS, &self.hook_key(program)).await?;
        Ok(cell.and_then(|cell| cell.value.parse().ok()).map(Timestamp))
    }

    fn hook_key(&self, program: &str) -> String {
        format!("{}:{program}", self.project)
    }

    /// An agent asks the person; returns the number of the question.
    ///
    /// # Errors
    /// A refusal by [`Asks`].
    pub async fn ask(&self, caller: &Caller, ask: Ask) -> Result<u64, Refusal> {
        self.present(caller).await?;
        let ask = Ask { agent: caller.agent.clone(), ..ask };
        let command = AskCommand::Ask { ask: ask.clone(), now: self.store.now() };
        // The log has the question with its secrets redacted, so it cannot be found by its text.
        let number = move |asks: &Asks, executed: Executed<AskEvent>| match executed.events.first() {
            Some(AskEvent::PersonAsked { number, .. }) => *number,
            _it_is_open_already => asks.number_of(&ask).unwrap_or_default(),
        };
        self.asks.execute(command, number).await
    }

    /// A person answers.
    ///
    /// # Errors
    /// A refusal by [`Asks`].
    pub async fn answer(&self, number: u64, answer: Answer) -> Result<(), Refusal> {
        let command = AskCommand::Answer { number, answer, now: self.store.now() };
        self.asks.execute(command, |_, _| ()).await
    }
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

/// A holder's live leases on the targets of its request that are at least as exclusive.
fn granted(leases: &Leases, request: &Request, now: Timestamp) -> Vec<(u64, Lease)> {
    let is_meant = |(_, lease): &(u64, &Lease)| {
        lease.holder == request.holder
            && request.targets.contains(&lease.target)
            && (lease.is_exclusive || !request.is_exclusive)
            && now <= lease.until
    };
    let own = leases.of_agent(&request.holder.agent).filter(is_meant);
    own.map(|(number, lease)| (number, lease.clone())).collect()
}
