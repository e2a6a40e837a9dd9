//! The timers of a crew: silent agents and their tasks, expired leases, and agents that are proven dead.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crewlog_mq::Cause;
use crewlog_planner::claim::TaskCommand;
use crewlog_planner::crew::agents::{Agent, AgentCommand, Liveness};
use crewlog_planner::crew::leases::LeaseCommand;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::tasks::execute;
use super::{Crew, Refusal};
use crate::claiming::claim_of;
use crate::liveness::LeaderLock;
use crate::run::is_set;

/// How often it looks.
const TICK: Duration = Duration::from_secs(1);
/// The name of the leader lock: one host a machine acts.
const NAME: &str = "crew";

/// Fires the timers of a crew until `stop` is set. Of all hosts with the same folder one is active; any of them may take over.
///
/// # Errors
/// When the folder of leader locks cannot be written.
pub async fn host(crew: Arc<Crew>, folder: &Path, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lock = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = is_set(&mut stop) => return Ok(()),
        }
        if lock.is_none() {
            lock = LeaderLock::take(folder, NAME)?;
        }
        if lock.is_none() {
            continue;
        }
        match crew.fire_timers().await {
            Ok(()) => {}
            Err(Refusal::Store(error)) if error.is_final() => return Ok(()),
            // What is due stays due.
            Err(error) => tracing::warn!(%error, "the timers of the crew failed and are tried again"),
        }
    }
}

impl Crew {
    /// Records what has become due.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn fire_timers(&self) -> Result<(), Refusal> {
        let now = self.store.now();
        let cause = Cause::request();
        for agent in self.dead_agents().await? {
            let command = LeaseCommand::Abandon { agent: agent.clone(), now };
            self.leases.lock().await.execute(command, &cause).await?;
            // Last: until it is recorded, the next host does the rest again.
            self.agents.lock().await.execute(AgentCommand::Bury { agent, now }, &cause).await?;
        }
        let mut agents = self.agents.lock().await;
        if agents.handler().next_due().is_some_and(|due| due <= now) {
            agents.execute(AgentCommand::FireTimer { now }, &cause).await?;
        }
        drop(agents);
        for (dispatch, held) in self.claims(None).await? {
            if self.is_gone(&held.executor.name).await? {
                let mut claim = claim_of(&self.store, &dispatch.plan, dispatch.task, dispatch.tags);
                execute(&mut claim, TaskCommand::FireTimer { epoch: held.epoch, now, is_dead: true }).await?;
            }
        }
        let mut leases = self.leases.lock().await;
        leases.catch_up().await?;
        if leases.handler().next_end().is_some_and(|end| end < now) {
            leases.execute(LeaseCommand::Expire { now }, &cause).await?;
        }
        Ok(())
    }

    /// The agents whose process on this machine is gone.
    async fn dead_agents(&self) -> Result<Vec<String>, Refusal> {
        let agents = self.agents().await?;
        let alive = agents.iter().filter(|(_, agent)| matches!(agent.liveness, Liveness::Alive | Liveness::Stuck));
        Ok(alive.filter(|(_, agent)| self.is_dead(agent)).map(|(name, _)| name.to_owned()).collect())
    }

    /// Whether an agent holds its tasks no longer: it left, was silent for too long, or is proven dead.
    pub(super) async fn is_gone(&self, agent: &str) -> Result<bool, Refusal> {
        let (agents, now) = (self.agents().await?, self.store.now());
        Ok(agents.get(agent).is_none_or(|agent| agent.is_gone(now) || self.is_dead(agent)))
    }

    fn is_dead(&self, agent: &Agent) -> bool {
        agent.profile.process.as_ref().is_some_and(|process| self.life.is_dead(process))
    }
}
