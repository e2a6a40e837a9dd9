//! Live holders of tasks at the head of the log, and the tasks that present agents take.

use std::collections::BTreeSet;

use crewlog_mq::{Error, Timestamp};
use crewlog_planner::claim::Holder;
use crewlog_planner::crew::agents::{Agent, Agents, Liveness};
use crewlog_planner::plan::TaskPlan;

use super::process;
use super::state::Crew;
use crate::liveness::{Life, Locks};
use crate::signs::Signs;

/// The holders of tasks as seen from this host.
#[derive(Debug, Clone)]
pub struct Holders {
    locks: Locks,
    now: Timestamp,
    /// The signs of the workers on other hosts.
    signs: Signs,
    /// The agents that have lost their tasks.
    gone: BTreeSet<String>,
    /// The names under which tasks are assigned to the other agents.
    present: BTreeSet<String>,
}

impl Holders {
    /// True unless the holder is known to be dead: by its lock on this host, by its signs elsewhere, and for an agent by
    /// its presence. A lock that is held here counts even after the lease has run out.
    #[must_use]
    pub fn is_live(&self, holder: &Holder) -> bool {
        if holder.is_agent() {
            return !self.gone.contains(&holder.executor.name);
        }
        match self.locks.life(&holder.executor) {
            Life::Live => true,
            Life::Dead => false,
            Life::Unknown => self.signs.keep(holder, self.now),
        }
    }

    /// True if a task is assigned to an agent that is present.
    #[must_use]
    pub fn agent_takes(&self, task: &TaskPlan) -> bool {
        task.assignee.as_ref().is_some_and(|assignee| self.present.contains(assignee))
    }
}

impl Crew {
    /// The holders of tasks at the head of the log.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn holders(&self) -> Result<Holders, Error> {
        self.holders_among(&*self.agents().await?).await
    }

    /// The holders of tasks at the head of the log, by the agents of that moment.
    ///
    /// # Errors
    /// A fault of the log.
    pub async fn holders_among(&self, agents: &Agents) -> Result<Holders, Error> {
        let signs = Signs::of_workers(&self.store).await?;
        let (gone, present) = self.presence_of(agents);
        Ok(Holders { locks: self.life.locks().clone(), now: self.store.now(), signs, gone, present })
    }

    /// The agents that have lost their tasks, and the names under which tasks are assigned to the others.
    pub(super) fn presence_of(&self, agents: &Agents) -> (BTreeSet<String>, BTreeSet<String>) {
        let (locks, now) = (self.life.locks(), self.store.now());
        let (mut gone, mut present) = (BTreeSet::new(), BTreeSet::new());
        for (name, agent) in agents.iter() {
            if is_gone(locks, agents, name, now) {
                gone.insert(name.to_owned());
            } else if !agent.is_run() {
                let names = agent.profile.capabilities.iter().chain([&agent.profile.program]).cloned();
                present.extend(names.chain([name.to_owned()]));
            }
        }
        (gone, present)
    }
}

/// True if an agent has lost its tasks: it left, was silent for too long and is not proven to live, or is proven dead.
pub(super) fn is_gone(locks: &Locks, agents: &Agents, name: &str, now: Timestamp) -> bool {
    agents.get(name).is_none_or(|agent| {
        let is_over = matches!(agent.liveness, Liveness::Lost | Liveness::Left);
        is_dead(locks, agent) || (agent.is_gone(now) && (is_over || !is_proven(locks, agents, name)))
    })
}

/// True if the recorded process of an agent is proven dead.
pub(super) fn is_dead(locks: &Locks, agent: &Agent) -> bool {
    life(locks, agent) == Life::Dead
}

/// True if an agent is proven to live, although it makes no calls. Its program proves that for the newest of its
/// sessions only, and for no subagent: these end while it runs.
pub(super) fn is_proven(locks: &Locks, agents: &Agents, name: &str) -> bool {
    let is_session = |name: &str| !name.contains('/');
    let Some(agent) = agents.get(name).filter(|_| is_session(name)) else { return false };
    let worker = agent.profile.process.as_ref().map(|process| &process.worker);
    let program = &agent.profile.program_process;
    let is_same = |Agent { profile, .. }: &Agent| {
        profile.process.as_ref().map(|process| &process.worker) == worker
            || (program.is_some() && profile.program_process == *program)
    };
    let is_newer = |(other, found): (&str, &Agent)| {
        is_session(other) && found.epoch > agent.epoch && found.liveness != Liveness::Left && is_same(found)
    };
    life(locks, agent) == Life::Live && !agents.iter().any(is_newer)
}

/// The life of the recorded process of an agent.
fn life(locks: &Locks, agent: &Agent) -> Life {
    let process = agent.profile.process.as_ref();
    process.map_or(Life::Unknown, |it| process::life(&it.worker).unwrap_or_else(|| locks.life(it)))
}
