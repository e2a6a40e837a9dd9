//! The breakers of this host's executors, as the log has them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crewlog_mq::{Cause, Error, EventStore, ExecuteError, Handler, Position, Query, Range, Runner, Timestamp};
use crewlog_planner::crew::breaker::{self, Breaker, BreakerCommand};
use crewlog_planner::event::RetryPolicy;
use crewlog_planner::text::{millis, money};
use futures::TryStreamExt;

use crate::agent::Agent;
use crate::caller::{account, host, request};

/// The answer to a task that wants to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearance {
    /// No limit is known.
    Free,
    /// It tries alone whether the limit is over.
    Probe,
    /// Its executor waits for a limit.
    Refused,
}

/// The budget of an agent for a day, in millionths of its unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayBudget {
    /// All of it.
    pub budget: u64,
    /// The part that is used.
    pub spent: u64,
    /// The time until the next day, by the zone of this machine.
    pub ends_in_ms: u64,
    day: String,
    tomorrow: Timestamp,
}

impl DayBudget {
    /// The rest.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.budget.saturating_sub(self.spent)
    }
}

/// True once four fifths of a budget are used.
pub(crate) fn is_nearly_used(spent: u64, budget: u64) -> bool {
    spent >= budget - budget / 5
}

/// The breakers on a log. Clones share them.
#[derive(Debug, Clone)]
pub struct Breakers {
    store: EventStore,
    /// The host and the account.
    here: Arc<(String, String)>,
    known: Arc<Mutex<(Position, BTreeMap<String, Breaker>)>>,
}

impl Breakers {
    /// Those of a log; none is known before [`Self::catch_up`].
    #[must_use]
    pub fn new(store: &EventStore) -> Self {
        Self { store: store.clone(), here: Arc::new((host(), account())), known: Arc::default() }
    }

    /// Those of a log as they are now.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn open(store: EventStore) -> Result<Self, Error> {
        let breakers = Self::new(&store);
        breakers.catch_up().await.map(|()| breakers)
    }

    /// Reads the events that are not known yet.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn catch_up(&self) -> Result<(), Error> {
        let at = self.known().0;
        let mut records = std::pin::pin!(self.store.records(&Query::stream(breaker::STREAM), Range::after(at)));
        while let Some(recorded) = records.try_next().await? {
            let mut known = self.known();
            if recorded.position <= known.0 {
                continue;
            }
            known.0 = recorded.position;
            match recorded.decode() {
                Ok(event) => known.1.entry(recorded.aggregate_id.clone()).or_default().apply(&event),
                Err(error) => tracing::warn!(%error, "skipped an unreadable event of an executor"),
            }
        }
        Ok(())
    }

    /// The end of the wait of an executor for a limit.
    #[must_use]
    pub fn waits_until(&self, executor: &str) -> Option<Timestamp> {
        self.of(executor, |breaker| breaker.waits_until(self.store.now())).flatten()
    }

    /// True while an executor may start nothing: it waits, or another task tries.
    #[must_use]
    pub fn holds(&self, executor: &str) -> bool {
        self.of(executor, |breaker| breaker.holds(self.store.now())) == Some(true)
    }

    /// True from the first limit of an executor until a task met none.
    #[must_use]
    pub fn is_open(&self, executor: &str) -> bool {
        self.of(executor, Breaker::is_open) == Some(true)
    }

    /// Lets a task start unless its executor waits for a limit. A fault of the log stops nothing.
    pub async fn start(&self, executor: &str, task: &str, cause: &Cause) -> Clearance {
        if !self.is_open(executor) {
            return Clearance::Free;
        }
        let start = || BreakerCommand::Start { task: task.to_owned(), now: self.store.now() };
        match self.decide(executor, start, cause).await {
            Ok(false) => Clearance::Refused,
            Ok(true) if self.is_open(executor) => Clearance::Probe,
            Ok(true) | Err(_) => Clearance::Free,
        }
    }

    /// A task met a limit, which may have named the time until it ends; else the waits of its plan count.
    pub async fn met_limit(
        &self,
        executor: &str,
        task: &str,
        (after, policy): (Option<Duration>, RetryPolicy),
        cause: &Cause,
    ) {
        let open = || BreakerCommand::Open { task: task.to_owned(), after, policy, now: self.store.now() };
        warn_of(self.decide(executor, open, cause).await.map(drop));
    }

    /// The task that tried has ended: it met no limit, or it did not run.
    pub async fn end_probe(&self, executor: &str, task: &str, has_run: bool, cause: &Cause) {
        let end = || {
            let (task, now) = (task.to_owned(), self.store.now());
            if has_run { BreakerCommand::Pass { task, now } } else { BreakerCommand::Release { task, now } }
        };
        warn_of(self.decide(executor, end, cause).await.map(drop));
    }

    /// The budget of an agent for today, if it has one.
    #[must_use]
    pub fn left_today(&self, agent: &Agent) -> Option<DayBudget> {
        let (budget, now) = (agent.budget_per_day?, self.store.now());
        let (day, tomorrow) = today(now)?;
        let spent = self.of(&agent.name, |breaker| breaker.spent_on(&day)).unwrap_or_default();
        let ends_in_ms = millis(tomorrow.since(now));
        Some(DayBudget { budget, spent, ends_in_ms, day, tomorrow })
    }

    /// Counts the cost of a run towards the budget of the day, and says when four fifths of it are used.
    pub async fn spend(&self, agent: &Agent, task: &str, cost_micros: u64, cause: &Cause) {
        let today = self.left_today(agent).filter(|_| cost_micros > 0);
        let Some(DayBudget { budget, spent, day, tomorrow, .. }) = today else { return };
        let spend = || {
            let (task, day, now) = (task.to_owned(), day.clone(), self.store.now());
            BreakerCommand::Spend { task, day, cost_micros, budget, tomorrow, now }
        };
        warn_of(self.decide(&agent.name, spend, cause).await.map(drop));
        let after = spent.saturating_add(cost_micros);
        if is_nearly_used(after, budget) && !is_nearly_used(spent, budget) {
            let (after, budget) = (money(after), money(budget));
            tracing::warn!("{} has used {after} of its budget of {budget} for today", agent.name);
        }
    }

    /// A person ends the wait of an agent. Returns false if it does not wait.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn end_wait(&self, agent: Option<&Agent>) -> Result<bool, Error> {
        self.catch_up().await?;
        let Some(Agent { name, .. }) = agent.filter(|agent| self.is_open(&agent.name)) else { return Ok(false) };
        let close = || BreakerCommand::Close { by: account(), now: self.store.now() };
        self.decide(name, close, &request()).await
    }

    fn of<T>(&self, executor: &str, read: impl FnOnce(&Breaker) -> T) -> Option<T> {
        let known = self.known();
        if known.1.is_empty() { None } else { known.1.get(&self.key(executor)).map(read) }
    }

    fn key(&self, executor: &str) -> String {
        let (host, account) = &*self.here;
        breaker::aggregate_id(executor, host, account)
    }

    /// False if the breaker refuses the command.
    async fn decide(&self, executor: &str, command: impl Fn() -> BreakerCommand, cause: &Cause) -> Result<bool, Error> {
        let (store, key) = (self.store.clone(), self.key(executor));
        let mut breaker: Runner<Breaker> = Runner::new(store, breaker::STREAM, &key, Vec::new()).with_snapshots();
        loop {
            let is_accepted = match breaker.execute(command(), cause).await {
                Ok(_) => true,
                Err(ExecuteError::Refused(_)) => false,
                // Another process appended first.
                Err(ExecuteError::Contended { .. }) => continue,
                Err(ExecuteError::Store(error)) => return Err(error),
            };
            return self.catch_up().await.map(|()| is_accepted);
        }
    }

    fn known(&self) -> MutexGuard<'_, (Position, BTreeMap<String, Breaker>)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The date in the zone of this machine, and the start of the next.
fn today(now: Timestamp) -> Option<(String, Timestamp)> {
    let now = jiff::Timestamp::from_microsecond(now.0).ok()?.to_zoned(jiff::tz::TimeZone::system());
    let tomorrow = now.tomorrow().ok()?.start_of_day().ok()?;
    Some((now.date().to_string(), Timestamp(tomorrow.timestamp().as_microsecond())))
}

fn warn_of(done: Result<(), Error>) {
    done.unwrap_or_else(|error| error.warn("a rate limit was not recorded"));
}
