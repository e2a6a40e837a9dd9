//! Leases of an agent: requested, extended, released, or ended by a person.

use std::time::Duration;

use crewlog_mq::{Executed, Timestamp};
use crewlog_planner::crew::leases::{
    Lease, LeaseCommand, LeaseEvent, Leases, MergeRisk, ReleaseAnswer, Request, Turn, Which,
};

use super::Refusal;
use super::state::{Caller, Crew};

/// Granted leases.
#[derive(Debug, Clone, PartialEq)]
pub struct Granted {
    /// The leases on the requested targets, by number.
    pub leases: Vec<(u64, Lease)>,
    /// Live leases of other worktrees that overlap.
    pub merge_risks: Vec<MergeRisk>,
}

impl Crew {
    /// Requests leases, all or none. Returns `None` while the request waits in the queue.
    ///
    /// # Errors
    /// [`CrewError::Held`](crewlog_planner::crew::CrewError::Held) if others hold leases and it does not wait, or a
    /// request beyond a limit.
    pub async fn reserve(&self, caller: &Caller, request: Request, turn: Turn) -> Result<Option<Granted>, Refusal> {
        let now = self.store.now();
        match self
            .granted_by(caller, &request, LeaseCommand::Reserve { request: request.clone(), turn, now }, now)
            .await?
        {
            // Another call of the same agent released them before this one looked.
            None if !matches!(turn, Turn::Wait(_)) => Err(Refusal::Busy),
            granted => Ok(granted),
        }
    }

    /// Requests leases that others hold, and asks them to release by a deadline. Returns the leases if they are free, or else
    /// the number of the waiting request and the holders that were asked, now or before.
    ///
    /// # Errors
    /// A request beyond a limit.
    pub async fn request_release(
        &self,
        caller: &Caller,
        request: Request,
        deadline: Duration,
    ) -> Result<Result<Granted, (u64, Vec<String>)>, Refusal> {
        let now = self.store.now();
        let command = LeaseCommand::RequestRelease { request: request.clone(), deadline: now.plus(deadline), now };
        if let Some(granted) = self.granted_by(caller, &request, command, now).await? {
            return Ok(Ok(granted));
        }
        let leases = self.leases().await?;
        let (number, waiting) = leases.waits_as(&request, now).ok_or(Refusal::Busy)?;
        Ok(Err((*number, waiting.asked.keys().cloned().collect())))
    }

    async fn granted_by(
        &self,
        caller: &Caller,
        request: &Request,
        command: LeaseCommand,
        now: Timestamp,
    ) -> Result<Option<Granted>, Refusal> {
        self.present(caller).await?;
        let request = request.clone();
        let look = move |leases: &Leases, executed: Executed<LeaseEvent>| {
            let own = granted(leases, &request, now);
            let is_granted = request.targets.iter().all(|target| own.iter().any(|(_, lease)| lease.target == *target));
            let merge_risks = executed.events.into_iter().find_map(|event| match event {
                LeaseEvent::LeasesGranted { merge_risks, .. } => Some(merge_risks),
                _another => None,
            });
            is_granted.then(|| Granted { leases: own, merge_risks: merge_risks.unwrap_or_default() })
        };
        self.leases.execute(command, look).await
    }

    /// A holder answers a waiting request.
    ///
    /// # Errors
    /// A request that waits for none of its leases, or that also waits for others when they are handed over.
    pub async fn answer_release(
        &self,
        caller: &Caller,
        waiting: u64,
        answer: ReleaseAnswer,
        note: String,
    ) -> Result<Vec<u64>, Refusal> {
        self.present(caller).await?;
        let (agent, now) = (caller.agent.clone(), self.store.now());
        let command = LeaseCommand::AnswerRelease { agent, waiting, answer, note, now };
        self.leases.execute(command, |_, executed| released_by(&executed)).await
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
}

pub(super) fn released_by(executed: &Executed<LeaseEvent>) -> Vec<u64> {
    let mut released = Vec::new();
    for event in &executed.events {
        if let LeaseEvent::LeasesReleased { leases, .. } | LeaseEvent::LeasesForced { leases, .. } = event {
            released.extend(leases);
        }
    }
    released
}

/// A holder's live leases on the targets of its request that are at least as exclusive.
pub(super) fn granted(leases: &Leases, request: &Request, now: Timestamp) -> Vec<(u64, Lease)> {
    let is_meant = |(_, lease): &(u64, &Lease)| {
        lease.holder == request.holder
            && request.targets.contains(&lease.target)
            && (lease.is_exclusive || !request.is_exclusive)
            && now <= lease.until
    };
    let own = leases.of_agent(&request.holder.agent).filter(is_meant);
    own.map(|(number, lease)| (number, lease.clone())).collect()
}
