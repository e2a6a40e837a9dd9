//! The timers of a crew: silent and dead agents with their tasks, and expired leases.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crewlog_planner::claim::TaskCommand;
use crewlog_planner::crew::agents::{Agent, AgentCommand, Agents, Liveness};
use crewlog_planner::crew::leases::LeaseCommand;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::Refusal;
use super::holders::{is_dead, is_gone, is_proven};
use super::signs::space;
use super::state::Crew;
use super::tasks::execute;
use crate::claiming::claim_of;
use crate::liveness::LeaderLock;
use crate::run::is_set;
use crate::signs::Signs;

/// The interval between checks.
const TICK: Duration = Duration::from_secs(1);

/// Fires the timers of a crew until `stop` is set. Of all hosts with the same folder one is active; others may take
/// over.
///
/// # Errors
/// If the folder of leader locks is not writable.
pub async fn host(crew: Arc<Crew>, folder: PathBuf, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let name = crew.leader("crew");
    let mut lock = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = is_set(&mut stop) => return Ok(()),
        }
        if lock.is_none() {
            lock = LeaderLock::take(&folder, &name)?;
        }
        if lock.is_none() {
            continue;
        }
        match crew.fire_timers().await {
            Ok(()) => {}
            Err(Refusal::Store(error)) if error.is_final() => return Ok(()),
            // Due timers stay due.
            Err(Refusal::Store(error)) => error.warn("timers of agents failed; retrying"),
            Err(error) => tracing::warn!(%error, "timers of agents failed; retrying"),
        }
    }
}

impl Crew {
    /// The name of the leader of a kind: one process per machine acts for a project. It is hashed, because a project's name may
    /// contain slashes.
    #[must_use]
    pub fn leader(&self, kind: &str) -> String {
        format!("{kind}-{}", uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, self.project.as_bytes()))
    }

    /// Records everything that is due.
    pub async fn fire_timers(&self) -> Result<(), Refusal> {
        let now = self.store.now();
        self.bury().await?;
        let agents = self.agents().await?;
        let is_proven = |name: &&str| is_proven(self.life.locks(), &agents, name);
        let proven: BTreeSet<_> = agents.silent(now).filter(is_proven).map(str::to_owned).collect();
        let mut present: BTreeSet<_> = agents.present().map(str::to_owned).collect();
        let left = agents.iter().filter(|(_, agent)| agent.liveness == Liveness::Left);
        let left: BTreeSet<_> = left.map(|(name, _)| name.to_owned()).collect();
        let (is_empty, due) = (agents.iter().next().is_none(), agents.next_due(&proven));
        let is_news = agents.is_health_news(now);
        drop(agents);
        present.extend(self.leases().await?.holders().into_iter().map(str::to_owned));
        Signs::begin(&self.store, &space(&self.project), &present, &left).await?;
        if is_news || due.is_some_and(|due| due <= now) {
            self.agents.execute(AgentCommand::FireTimer { now, proven }, |_, _| ()).await?;
        }
        // Without agents nobody's claims can end, and the plans need not be read.
        let mut claims = if is_empty { Vec::new() } else { self.claims(None).await? };
        let agents = self.agents().await?;
        claims.retain(|(_, held)| self.is_gone_of(&agents, &held.executor.name));
        drop(agents);
        for (dispatch, held) in claims {
            let mut claim = claim_of(&self.store, &dispatch.plan, dispatch.task, dispatch.tags);
            execute(&mut claim, TaskCommand::FireTimer { epoch: held.epoch, now, is_dead: true }).await?;
        }
        let is_due = self.leases().await?.next_end().is_some_and(|end| end < now);
        if is_due {
            self.leases.execute(LeaseCommand::Expire { now }, |_, _| ()).await?;
        }
        Ok(())
    }

    /// Ends the leases of agents that are proven dead or have left. False if there are none, so a retry would be
    /// useless.
    pub async fn bury(&self) -> Result<bool, Refusal> {
        let now = self.store.now();
        let leases = self.leases().await?;
        let (up_to, holders) = (leases.newest(), leases.holders().into_iter().map(str::to_owned).collect::<Vec<_>>());
        drop(leases);
        let agents = self.agents().await?;
        let is_dead = |agent: &Agent| agent.liveness != Liveness::Left && self.is_dead(agent);
        let dead = agents.iter().filter(|(_, agent)| is_dead(agent));
        let dead = dead.filter_map(|(name, agent)| Some((name.to_owned(), agent.profile.process.clone()?)));
        let dead: Vec<_> = dead.collect();
        let has_left = |name: &String| agents.get(name).is_some_and(|agent| agent.liveness == Liveness::Left);
        let left: Vec<_> = holders.into_iter().filter(has_left).collect();
        drop(agents);
        let is_news = !(dead.is_empty() && left.is_empty());
        // Leases of a resumed session are newer, and stay.
        for agent in dead.iter().map(|(name, _)| name.clone()).chain(left) {
            self.leases.execute(LeaseCommand::Abandon { agent, up_to, now }, |_, _| ()).await?;
        }
        // Last: until this is recorded, the next host repeats the rest.
        for (agent, process) in dead {
            self.agents.execute(AgentCommand::Bury { agent, process, now }, |_, _| ()).await?;
        }
        Ok(is_news)
    }

    /// True if an agent has lost its tasks.
    pub(super) async fn is_gone(&self, agent: &str) -> Result<bool, Refusal> {
        Ok(self.is_gone_of(&*self.agents().await?, agent))
    }

    fn is_gone_of(&self, agents: &Agents, agent: &str) -> bool {
        is_gone(self.life.locks(), agents, agent, self.store.now())
    }

    /// True if the recorded process of an agent is proven dead.
    pub fn is_dead(&self, agent: &Agent) -> bool {
        is_dead(self.life.locks(), agent)
    }
}
