//! Handoffs of tasks and leases between agents. The acceptance moves all of them in one append.

use std::time::Duration;

use crewlog_mq::{Error, ExecuteError, Handler, Write};
use crewlog_planner::claim::{self, TaskCommand, TaskProgress};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::agents::Liveness;
use crewlog_planner::crew::leases::{Handoff, LeaseCommand, LeaseEvent, Leases};

use super::Refusal;
use super::state::{Caller, Crew};
use super::tasks::write_of;
use crate::caller;

/// The attempts under concurrent writes.
const ATTEMPTS_MAX: usize = 8;

impl Crew {
    /// Offers work to another agent for a time. Without tasks and leases it offers all that the agent holds. Returns the offer
    /// with its number.
    ///
    /// # Errors
    /// A recipient that is not present, and work that the agent does not hold.
    pub async fn offer_handoff(
        &self,
        caller: &Caller,
        offer: Handoff,
        lapse: Duration,
    ) -> Result<(u64, Handoff), Refusal> {
        self.present(caller).await?;
        let mut offer = Handoff { until: self.store.now().plus(lapse), ..offer };
        if !self.agents().await?.get(&offer.to).is_some_and(|found| found.liveness != Liveness::Left) {
            return Err(Refusal::NoRecipient(offer.to));
        }
        if offer.tasks.is_empty() && offer.leases.is_empty() {
            offer.tasks = self.tasks_of(&caller.agent).await?;
            offer.leases = self.leases().await?.of_agent(&caller.agent).map(|(number, _)| number).collect();
        }
        for task in &mut offer.tasks {
            *task = self.claim_by(caller, task).await?.1;
        }
        let command = LeaseCommand::OfferHandoff { offer: offer.clone(), now: self.store.now() };
        let asked = offer.clone();
        let look = move |leases: &Leases, _| Some((leases.handoff_like(&asked)?, leases.offered(&asked)));
        let (number, leases) = self.leases.execute(command, look).await?.ok_or(Refusal::Busy)?;
        Ok((number, Handoff { leases, ..offer }))
    }

    /// The recipient accepts or refuses an offer, or the agent that made it withdraws it. Returns the offer, with the numbers
    /// of the leases as they are now.
    ///
    /// # Errors
    /// An offer that has ended, or a task that the other agent no longer holds.
    pub async fn answer_handoff(
        &self,
        caller: &Caller,
        handoff: u64,
        accepts: bool,
        note: String,
    ) -> Result<Handoff, Refusal> {
        self.present(caller).await?;
        for _ in 0..ATTEMPTS_MAX {
            let found =
                self.leases().await?.handoffs().find(|(number, _)| *number == handoff).map(|(_, offer)| offer.clone());
            let missing = || CrewError::Missing(format!("there is no open handoff {handoff}"));
            let mut offer = found.ok_or_else(missing)?;
            let mut writes = Vec::new();
            if accepts && offer.to == caller.agent {
                for task in &offer.tasks {
                    writes.extend(self.handed_over(caller, &offer, task).await?);
                }
            }
            let (agent, note, now) = (caller.agent.clone(), note.clone(), self.store.now());
            let command = LeaseCommand::AnswerHandoff { handoff, agent, accepts, note, now };
            let mut leases = self.leases().await?;
            match leases.runner().execute_with(command, &caller::request(), &writes).await {
                // The task has changed meanwhile.
                Err(ExecuteError::Store(Error::SequenceMismatch { .. })) => {}
                executed => {
                    offer.leases = executed?.events.iter().flat_map(transferred).collect();
                    return Ok(offer);
                }
            }
        }
        Err(Refusal::Busy)
    }

    /// The events by which a task goes to the caller.
    async fn handed_over(&self, caller: &Caller, offer: &Handoff, task: &str) -> Result<Option<Write>, Refusal> {
        let from = self.caller(&offer.from).await?;
        let (claim, _) = self.claim_by(&from, task).await?;
        let known = claim.handler().progress.clone().unwrap_or_default();
        let or = |text: &str, known: Option<String>| Some(text.to_owned()).filter(|text| !text.is_empty()).or(known);
        let progress = TaskProgress {
            next_step: or(&offer.next_step, known.next_step),
            note: or(&offer.note, known.note),
            ..TaskProgress { step: known.step, ..TaskProgress::default() }
        };
        let command = TaskCommand::HandOver { epoch: claim.handler().epoch, executor: caller.executor(), progress };
        let events = claim.handler().clone().process(command.clone())?;
        Ok(write_of(&claim, claim::STREAM, &command.recorded(), &events, &caller::request())?)
    }
}

/// The numbers of the leases that an event has moved.
fn transferred(event: &LeaseEvent) -> Vec<u64> {
    match event {
        LeaseEvent::LeasesTransferred { leases, first, .. } => (*first..).take(leases.len()).collect(),
        _another => Vec::new(),
    }
}
