//! Joins, resumes, checks and ends sessions of agents. An agent's claims and leases follow its session.

use crewlog_mq::{Executed, Handler};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::{Agent, AgentCommand, AgentEvent, Agents, LeaveOutcome, Liveness, Report};
use crewlog_planner::crew::asks::{AskCommand, Withdrawn};
use crewlog_planner::crew::leases::{LeaseCommand, Which};

use super::Refusal;
use super::leases::released_by;
use super::signs::space;
use super::state::{Caller, Crew, Join, Joined};
use crate::caller::account;
use crate::signs::Signs;

impl Crew {
    /// A session joins, or resumes, and keeps the tasks that are claimed under its name. It takes the name of an agent
    /// whose program has ended, or continues as this session.
    ///
    /// # Errors
    /// A refusal by [`Agents`], and the name of this account.
    pub async fn join(&self, join: Join) -> Result<Joined, Refusal> {
        let Join { mut wish, session, profile } = join;
        let (worktree, program) = (profile.worktree.clone(), profile.program.clone());
        if let Some(name) = wish.full_name() {
            if name.eq_ignore_ascii_case(&account()) {
                return Err(CrewError::Invalid(format!("{name:?} is not for agents: choose another name")).into());
            }
            let agents = self.agents().await?;
            let held = agents.get(&name).filter(|held| held.session != session);
            let goes_on = |held: &Agent| {
                let program = &profile.program_process;
                program.is_some() && *program == held.profile.program_process
            };
            wish.over = held.filter(|held| self.is_dead(held) || goes_on(held)).map(|held| held.session.clone());
        }
        let (wanted, known) = (wish.clone(), session.clone());
        let command = AgentCommand::Join { wish, session, profile: Box::new(profile), now: self.store.now() };
        let joined = move |agents: &Agents, executed: Executed<AgentEvent>| {
            let is_joined = |event: &AgentEvent| matches!(event, AgentEvent::AgentJoined { .. });
            let is_resumed = !executed.events.iter().any(is_joined);
            let agent = match executed.events.first().and_then(AgentEvent::of_agent) {
                Some((agent, _)) => agent.to_owned(),
                // It keeps its name.
                None => agents.name_for(&wanted, &known, &program)?,
            };
            // Another session may have joined under the name in the same append.
            let found = agents.get(&agent).filter(|found| found.session == known);
            let epoch = found.ok_or_else(|| CrewError::Superseded(agent.clone()))?.epoch;
            Ok(Joined { caller: Caller { agent, epoch, worktree }, is_resumed, position: executed.position })
        };
        let joined: Result<_, CrewError> = self.agents.execute(command, joined).await?;
        let joined = joined?;
        if joined.is_resumed {
            self.present(&joined.caller).await?;
        } else {
            Signs::put(&self.store, &space(&self.project), &joined.caller.agent).await?;
        }
        Ok(joined)
    }

    /// A joined agent, for a process that acts for it: a hook, or a command that it runs.
    ///
    /// # Errors
    /// [`CrewError::Unknown`] or [`CrewError::Left`].
    pub async fn caller(&self, agent: &str) -> Result<Caller, Refusal> {
        let agents = self.agents().await?;
        let epoch = agents.get(agent).map_or(0, |found| found.epoch);
        let worktree = agents.check(agent, epoch)?.profile.worktree.clone();
        Ok(Caller { agent: agent.to_owned(), epoch, worktree })
    }

    /// Records a call: checks that the session still holds its name, and renews the agent's leases and claims.
    ///
    /// # Errors
    /// [`CrewError::Superseded`] or [`CrewError::Left`].
    pub async fn present(&self, caller: &Caller) -> Result<(), Refusal> {
        let (agent, now) = (caller.agent.clone(), self.store.now());
        let (was_seen, is_alive, shown) = {
            let agents = self.agents().await?;
            let found = agents.check(&agent, caller.epoch)?;
            (found.was_seen(now), found.liveness == Liveness::Alive, found.observed().clone())
        };
        if !was_seen || self.leases().await?.renewal_is_due(&agent, now) {
            Signs::put_with(&self.store, &space(&self.project), &agent, &shown).await?;
        }
        if !is_alive {
            let (seen, epoch) = (agent.clone(), caller.epoch);
            // It may have been superseded meanwhile.
            let is_it = move |agents: &Agents, _| agents.check(&seen, epoch).map(drop);
            self.agents.execute(AgentCommand::See { agent, now }, is_it).await??;
        }
        Ok(())
    }

    /// An agent reports on its work.
    ///
    /// # Errors
    /// A text that is too long.
    pub async fn report(&self, caller: &Caller, report: Report) -> Result<(), Refusal> {
        self.present(caller).await?;
        let command = AgentCommand::Report { agent: caller.agent.clone(), report, now: self.store.now() };
        self.agents.execute(command, |_, _| ()).await
    }

    /// An agent leaves, and its subagents with it: their tasks are returned, their leases and waiting requests end, and
    /// their questions are withdrawn. Returns the numbers of the leases and the names of the tasks.
    ///
    /// # Errors
    /// A text that is too long.
    pub async fn leave(
        &self,
        caller: &Caller,
        outcome: LeaveOutcome,
        note: String,
        next_step: String,
    ) -> Result<(Vec<u64>, Vec<String>), Refusal> {
        self.present(caller).await?;
        let leaving = |agent: String| {
            let (note, next_step) = (note.clone(), next_step.clone());
            AgentCommand::Leave { agent, outcome, note, next_step, now: self.store.now() }
        };
        let agents = self.agents().await?;
        // A refused text must change nothing.
        agents.clone().process(leaving(caller.agent.clone()))?;
        let below: Vec<_> = agents.present_below(&caller.agent).map(str::to_owned).collect();
        drop(agents);
        let (mut released, mut tasks) = (Vec::new(), Vec::new());
        for agent in &below {
            tasks.extend(self.return_tasks(agent, &note).await?);
            let (agent, now) = (agent.clone(), self.store.now());
            let release = LeaseCommand::Release { agent: agent.clone(), which: Which::All, now };
            released.extend(self.leases.execute(release, |_, executed| released_by(&executed)).await?);
            let withdraw =
                AskCommand::Withdraw { reason: format!("{agent} has left"), agent, which: Withdrawn::All, now };
            self.asks.execute(withdraw, |_, _| ()).await?;
        }
        // Last: until this is recorded, an interrupted call can be repeated.
        for agent in below {
            self.agents.execute(leaving(agent), |_, _| ()).await?;
        }
        Ok((released, tasks))
    }
}
