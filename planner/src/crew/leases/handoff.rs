//! Handoffs: an agent offers its tasks and leases to another one, which accepts or refuses.

use crewlog_mq::Timestamp;

use super::event::Handoff;
use super::{Lease, LeaseEvent, LeaseHolder, Leases, REASON_BYTES_MAX, TARGETS_MAX};
use crate::crew::CrewError;
use crate::crew::refusal::check_length;

/// The most open offers.
const OFFERS_MAX: usize = 200;

impl Leases {
    /// The open offers by number.
    pub fn handoffs(&self) -> impl Iterator<Item = (u64, &Handoff)> {
        self.handoffs.iter().map(|(number, offer)| (*number, offer))
    }

    /// The number of an open offer with this content.
    #[must_use]
    pub fn handoff_like(&self, offer: &Handoff) -> Option<u64> {
        let is_like = |known: &Handoff| *known == Handoff { until: known.until, ..offer.clone() };
        self.handoffs().find(|(_, known)| is_like(known)).map(|(number, _)| number)
    }

    pub(super) fn offer_handoff(&self, offer: Handoff, now: Timestamp) -> Result<Vec<LeaseEvent>, CrewError> {
        if offer.from == offer.to {
            return Err(CrewError::Invalid("a handoff is for another agent".to_owned()));
        }
        if offer.tasks.is_empty() && offer.leases.is_empty() {
            return Err(CrewError::Missing("you hold no task and no lease that you could hand over".to_owned()));
        }
        check_length("a next step", offer.next_step.len(), REASON_BYTES_MAX)?;
        check_length("a note", offer.note.len(), REASON_BYTES_MAX)?;
        check_length("a handoff", offer.leases.len() + offer.tasks.len(), TARGETS_MAX)?;
        self.moved(&offer, now)?;
        if self.handoff_like(&offer).is_some() {
            return Ok(Vec::new());
        }
        if self.handoffs.len() >= OFFERS_MAX {
            return Err(CrewError::Full(format!("{OFFERS_MAX} handoffs are already offered: try again later")));
        }
        Ok(vec![LeaseEvent::HandoffOffered { handoff: self.n_handoffs + 1, offer, at: now }])
    }

    /// The answer of its recipient, with the leases that are still live; or its end by the agent that offered it.
    pub(super) fn answer_handoff(
        &self,
        handoff: u64,
        agent: String,
        accepts: bool,
        note: String,
        now: Timestamp,
    ) -> Result<Vec<LeaseEvent>, CrewError> {
        check_length("a note", note.len(), REASON_BYTES_MAX)?;
        let offer = self.handoffs.get(&handoff).filter(|offer| now <= offer.until);
        let is_party = |offer: &&Handoff| agent == offer.to || (!accepts && agent == offer.from);
        let offer = offer.filter(is_party).ok_or_else(|| no_offer(handoff))?;
        let leases = if accepts { self.moved(offer, now)? } else { Vec::new() };
        if accepts && leases.is_empty() && offer.tasks.is_empty() {
            return Err(CrewError::Closed(format!(
                "{} holds none of the leases of handoff {handoff} any more",
                offer.from
            )));
        }
        let (to, first) = (agent.clone(), self.n_leases + 1);
        let transferred = (!leases.is_empty()).then_some(LeaseEvent::LeasesTransferred { leases, first, to, at: now });
        let answered = LeaseEvent::HandoffAnswered { handoff, agent, is_accepted: accepts, note };
        Ok([answered].into_iter().chain(transferred).collect())
    }

    /// The leases that an offer moves: those that it names, and those that its tasks have by now.
    #[must_use]
    pub fn offered(&self, offer: &Handoff) -> Vec<u64> {
        let is_of_task = |lease: &Lease| lease.task.as_ref().is_some_and(|task| offer.tasks.contains(task));
        let own = self.of_agent(&offer.from);
        let own = own.filter(|(number, lease)| offer.leases.contains(number) || is_of_task(lease));
        own.map(|(number, _)| number).collect()
    }

    /// The offered leases that are live. None may overlap with one that does not move.
    fn moved(&self, offer: &Handoff, now: Timestamp) -> Result<Vec<u64>, CrewError> {
        let live = |number: &u64| self.live.get(number).filter(|lease| now <= lease.until);
        let moved: Vec<_> = self.offered(offer).into_iter().filter(|number| live(number).is_some()).collect();
        for lease in moved.iter().filter_map(live) {
            let holder = LeaseHolder { agent: offer.to.clone(), worktree: lease.holder.worktree.clone() };
            let targets = std::slice::from_ref(&lease.target);
            let mut blocked = self.in_the_way(&holder, targets, lease.is_exclusive, lease.is_strict, now);
            blocked.retain(|by| by.lease().is_none_or(|number| !moved.contains(&number)));
            if !blocked.is_empty() {
                return Err(CrewError::Held(blocked));
            }
        }
        Ok(moved)
    }

    /// The open offers of an agent, and to it.
    pub(super) fn handoffs_of(&self, agent: &str) -> Vec<u64> {
        let own = self.handoffs().filter(|(_, offer)| offer.from == agent || offer.to == agent);
        own.map(|(number, _)| number).collect()
    }
}

pub(super) fn no_offer(handoff: u64) -> CrewError {
    CrewError::Missing(format!("handoff {handoff} is not offered to you, or has ended"))
}
