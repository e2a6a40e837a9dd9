//! The crew as one process sees it: the handlers of a project, kept up to date, and who calls them.

use std::pin::pin;
use std::sync::Arc;

use crewlog_mq::{Append, CellChange, Error, Event, EventStore, Handler, Position, Query, Range, Snapshot, Timestamp};
use crewlog_planner::claim::{self, Executor};
use crewlog_planner::crew::agents::{self, Agents, Profile, Wish};
use crewlog_planner::crew::asks::{self, Asks};
use crewlog_planner::crew::leases::{self, LeaseHolder, Leases};
use crewlog_planner::crew::messages::{self, Messages};
use crewlog_planner::event;
use futures::TryStreamExt;
use tokio::sync::Mutex;

use super::board::Board;
use super::shared::{Read, Shared, runner};
use super::signs::{self, Hears};
use super::warm::Handled;
use crate::liveness::LivenessLock;
use crate::roster::Roster;
use crate::signs::Signs;

/// The space of the cells with the last runs of hooks.
const HOOKS: &str = "hooks";

/// The crew of a project.
pub struct Crew {
    pub(super) store: EventStore,
    pub(super) project: String,
    pub(super) life: Arc<LivenessLock>,
    roster: Option<Roster>,
    pub(super) agents: Shared<Agents>,
    pub(super) leases: Shared<Leases>,
    pub(super) messages: Shared<Messages>,
    pub(super) asks: Shared<Asks>,
    pub(super) board: Mutex<Board>,
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
    pub(super) fn executor(&self) -> Executor {
        let host = self.worktree.split_once(':').map_or(self.worktree.as_str(), |(host, _)| host).to_owned();
        Executor { name: self.agent.clone(), host, worker: format!("session {}", self.epoch) }
    }
}

/// A session that joins.
#[derive(Debug, Clone)]
pub struct Join {
    /// The wanted name, and the agent that started it.
    pub wish: Wish,
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

    /// Reads the decisions about what may run, and the rate limits, that are not known yet.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn catch_up_decisions(&self) -> Result<(), Error> {
        if let Some(roster) = self.roster() { roster.catch_up().await } else { Ok(()) }
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

    /// True if a process is proven dead.
    #[must_use]
    pub fn has_died(&self, process: &Executor) -> bool {
        self.life.is_dead(process)
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

    /// The agents, leases, messages or questions by the events so far, and the position up to which they were read.
    pub async fn newest<H>(&self) -> Result<(H, Position), Error>
    where
        H: Handler + Snapshot + Clone,
        H::Command: Clone,
        H::Event: Event,
    {
        let mut now = runner::<H>(&self.store, &self.project);
        now.catch_up().await?;
        Ok((now.handler().clone(), now.position()))
    }

    /// The agents, leases, messages or questions by the events up to a position, or so far.
    pub async fn at<H>(&self, position: Option<Position>) -> Result<H, Error>
    where
        H: Handler + Snapshot + Clone,
        H::Command: Clone,
        H::Event: Event,
    {
        let Some(position) = position else { return Ok(self.newest().await?.0) };
        let mut handler = H::default();
        let mut records = pin!(self.store.records(&Query::aggregate(H::FOLD, &self.project), Range::up_to(position)));
        while let Some(recorded) = records.try_next().await? {
            handler.apply(&recorded.decode()?);
            handler.placed(recorded.position);
        }
        Ok(handler)
    }

    /// The newest state, as kept in memory, with the signs of life of the agents.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn told<H: Hears + Clone>(&self, newest: Arc<Handled<H>>) -> Result<Arc<Handled<H>>, Error> {
        if !H::HEARS {
            return Ok(newest);
        }
        let mut told = newest.0.clone();
        told.hear(&Signs::read(&self.store, &signs::space(&self.project)).await?);
        Ok(Arc::new(Handled(told)))
    }

    /// Records the run of a program's hook at most once a minute, in a cell since nothing depends on it.
    pub async fn hook_ran(&self, program: &str) -> Result<(), Error> {
        let now = self.store.now();
        if self.last_hook(program).await?.is_some_and(|last| now.since(last) < agents::SEEN_EVERY) {
            return Ok(());
        }
        let cell = CellChange::set(HOOKS, &self.cell_of(program), now.0.to_string());
        self.store.append(Append::default().cell(cell)).await?;
        Ok(())
    }

    /// The last run of a program's hook in this project, to the minute.
    pub async fn last_hook(&self, program: &str) -> Result<Option<Timestamp>, Error> {
        let cell = self.store.cell(HOOKS, &self.cell_of(program)).await?;
        Ok(cell.and_then(|cell| cell.value.parse().ok()).map(Timestamp))
    }
}
