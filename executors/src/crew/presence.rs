//! Joining, resuming, calling and leaving: what an agent holds follows its session.

use crewlog_mq::{Cause, Handler};
use crewlog_planner::crew::agents::{AgentCommand, AgentEvent, Outcome, Report};
use crewlog_planner::crew::asks::AskCommand;
use crewlog_planner::crew::leases::{LeaseCommand, Which};

use super::{Caller, Crew, Join, Joined, Refusal, released_by};

impl Crew {
    /// A session joins, or resumes, and keeps the tasks that are claimed under its name.
    ///
    /// # Errors
    /// A refusal by [`Agents`](crewlog_planner::crew::agents::Agents).
    pub async fn join(&self, join: Join) -> Result<Joined, Refusal> {
        let Join { name, parent, session, profile } = join;
        let (worktree, program) = (profile.worktree.clone(), profile.program.clone());
        let mut agents = self.agents.lock().await;
        let (wanted, below, known) = (name.clone(), parent.clone(), session.clone());
        let command = AgentCommand::Join { name, parent, session, profile, now: self.store.now() };
        let executed = agents.execute(command, &Cause::request()).await?;
        let is_joined = |event: &AgentEvent| matches!(event, AgentEvent::AgentJoined { .. });
        let is_resumed = !executed.events.iter().any(is_joined);
        let agent = match executed.events.first().and_then(AgentEvent::of_agent) {
            Some((agent, _)) => agent.to_owned(),
            // It is as it was.
            None => agents.handler().name_for(wanted, below.as_deref(), &known, &program)?,
        };
        let epoch = agents.handler().get(&agent).map_or(0, |found| found.epoch);
        drop(agents);
        let caller = Caller { agent, epoch, worktree };
        self.present(&caller).await?;
        Ok(Joined { caller, is_resumed, position: executed.position })
    }

    /// An agent as it has joined, for a process that acts for it: a hook, or a command that it runs.
    ///
    /// # Errors
    /// [`CrewError::Unknown`](crewlog_planner::crew::CrewError::Unknown) or
    /// [`CrewError::Left`](crewlog_planner::crew::CrewError::Left).
    pub async fn caller(&self, agent: &str) -> Result<Caller, Refusal> {
        let agents = self.agents().await?;
        let epoch = agents.get(agent).map_or(0, |found| found.epoch);
        let worktree = agents.check(agent, epoch)?.profile.worktree.clone();
        Ok(Caller { agent: agent.to_owned(), epoch, worktree })
    }

    /// Takes note of a call: the session must still hold its name, and what the agent holds is renewed.
    ///
    /// # Errors
    /// [`CrewError::Superseded`](crewlog_planner::crew::CrewError::Superseded) or
    /// [`CrewError::Left`](crewlog_planner::crew::CrewError::Left).
    pub async fn present(&self, caller: &Caller) -> Result<(), Refusal> {
        let (agent, now) = (caller.agent.clone(), self.store.now());
        let mut agents = self.agents.lock().await;
        agents.catch_up().await?;
        agents.handler().check(&agent, caller.epoch)?;
        agents.execute_as_read(AgentCommand::See { agent: agent.clone(), now }, &Cause::request()).await?;
        // It may have been superseded meanwhile.
        agents.handler().check(&agent, caller.epoch)?;
        drop(agents);
        let mut leases = self.leases.lock().await;
        leases.catch_up().await?;
        if leases.handler().renewal_is_due(&agent, now) {
            leases.execute_as_read(LeaseCommand::Renew { agent, now }, &Cause::request()).await?;
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
        self.agents.lock().await.execute(command, &Cause::request()).await?;
        Ok(())
    }

    /// An agent leaves, and its subagents with it: their tasks are returned, their leases and waiting requests end, and their
    /// questions are withdrawn. Gives the numbers of the leases and the names of the tasks.
    ///
    /// # Errors
    /// A text that is too long.
    pub async fn leave(
        &self,
        caller: &Caller,
        outcome: Outcome,
        note: String,
        next_step: String,
    ) -> Result<(Vec<u64>, Vec<String>), Refusal> {
        self.present(caller).await?;
        let leaving = |agent: String| {
            let (note, next_step) = (note.clone(), next_step.clone());
            AgentCommand::Leave { agent, outcome, note, next_step, now: self.store.now() }
        };
        let agents = self.agents().await?;
        // A text that is refused changes nothing.
        agents.clone().process(leaving(caller.agent.clone()))?;
        let below: Vec<_> = agents.present_below(&caller.agent).map(str::to_owned).collect();
        drop(agents);
        let (mut released, mut tasks, cause) = (Vec::new(), Vec::new(), Cause::request());
        for agent in &below {
            tasks.extend(self.return_tasks(agent, &note).await?);
            let (agent, now) = (agent.clone(), self.store.now());
            let release = LeaseCommand::Release { agent: agent.clone(), which: Which::All, now };
            released.extend(released_by(&self.leases.lock().await.execute(release, &cause).await?));
            let withdraw = AskCommand::Withdraw { reason: format!("{agent} has left"), agent, now };
            self.asks.lock().await.execute(withdraw, &cause).await?;
        }
        // Last: until it is recorded, a call that broke off can be repeated.
        for agent in below {
            self.agents.lock().await.execute(leaving(agent), &cause).await?;
        }
        Ok((released, tasks))
    }
}
