//! The queue of waiting requests. A request is granted when no lease and no older request is in its way.
//!
//! An older request is never in the way of an agent that it waits for, directly or through others: that agent could not finish.
//! Nor is it in the way of an edit of a free file. A holder can be asked to release. Agents that wait for each other's leases
//! in a ring are named once, in the append that closes the ring.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crewlog_mq::{Handler, Timestamp};

use super::event::{Deadlock, ReleaseAnswer, RingPart, Turn};
use super::{BLOCKED_MAX, Blocked, By, Lease, LeaseEvent, Leases, MergeRisk, Request, WAITING_MAX, Waiting, excludes};
use crate::crew::CrewError;
use crate::crew::names::is_below;
use crate::crew::target::Target;

/// How long a request waits after the time by which its holders were asked to answer.
const AFTER_DEADLINE: Duration = Duration::from_secs(3_600);
/// In a ring of at most this many agents the one with the oldest lease should release; in a longer one the first by name.
const SHORT_RING: usize = 3;

impl Leases {
    /// The obstacles to a request: live leases, and requests that have waited longer.
    #[must_use]
    pub fn blocked(&self, request: &Request, waiting: Option<u64>, now: Timestamp) -> Vec<Blocked> {
        let mut blocked = self.leases_in_the_way(request, now);
        let mut earlier = self.earlier(request, waiting, now).peekable();
        let waiters = earlier.peek().map(|_| self.waiters_for(&request.holder.agent, now)).unwrap_or_default();
        for (number, Waiting { request: theirs, until, .. }) in
            earlier.filter(|(_, earlier)| !waiters.contains(earlier.request.holder.agent.as_str()))
        {
            let meets = meeting(request, theirs);
            for asked in &request.targets {
                if let Some(target) = theirs.targets.iter().find(|target| meets(target, asked)) {
                    blocked.push(Blocked {
                        asked: asked.clone(),
                        by: By::Waiting(*number),
                        holder: theirs.holder.clone(),
                        target: target.clone(),
                        is_exclusive: theirs.is_exclusive,
                        until: *until,
                        task: theirs.task.clone(),
                    });
                }
            }
        }
        blocked.truncate(BLOCKED_MAX);
        blocked
    }

    /// The leases in the way of a request.
    #[must_use]
    pub fn leases_in_the_way(&self, request: &Request, now: Timestamp) -> Vec<Blocked> {
        self.in_the_way(&request.holder, &request.targets, request.is_exclusive, request.is_strict, now)
    }

    /// The live requests before a waiting one, or before a new one, that exclude it.
    fn earlier(
        &self,
        request: &Request,
        waiting: Option<u64>,
        now: Timestamp,
    ) -> impl Iterator<Item = &(u64, Waiting)> {
        let before = self.waiting.iter().take_while(move |(number, _)| Some(*number) != waiting);
        before.filter(move |(_, earlier)| {
            let theirs = &earlier.request;
            let meets = meeting(request, theirs);
            now <= earlier.until
                && excludes(&request.holder, &theirs.holder, theirs.is_exclusive || request.is_exclusive)
                && theirs.targets.iter().any(|target| request.targets.iter().any(|asked| meets(target, asked)))
        })
    }

    /// The agents that wait for an agent or its family, directly or through others.
    fn waiters_for(&self, agent: &str, now: Timestamp) -> BTreeSet<&str> {
        let is_it = |other: &str| is_below(agent, other) || is_below(other, agent);
        let mut found = BTreeSet::new();
        // Most agents that ask hold nothing and wait for nothing yet.
        if !self.by_agent.keys().any(|other| is_it(other)) && !self.waits(is_it) {
            return found;
        }
        loop {
            let n_before = found.len();
            for (number, Waiting { request, .. }) in &self.waiting {
                let is_awaited = |other: &str| is_it(other) || found.contains(other);
                let holder = request.holder.agent.as_str();
                if holder == agent || found.contains(holder) {
                    continue;
                }
                let by_lease = self.leases_in_the_way(request, now).iter().any(|by| is_awaited(&by.holder.agent));
                let mut earlier = self.earlier(request, Some(*number), now);
                if by_lease || earlier.any(|(_, earlier)| is_awaited(&earlier.request.holder.agent)) {
                    found.insert(holder);
                }
            }
            if found.len() == n_before {
                return found;
            }
        }
    }

    /// The event for a request that is not granted at once.
    pub(super) fn queue(
        &self,
        request: Request,
        turn: Turn,
        blocked: Vec<Blocked>,
        now: Timestamp,
    ) -> Result<LeaseEvent, CrewError> {
        match turn {
            Turn::Wait(until) if until > now => {
                if self.waiting.len() >= WAITING_MAX {
                    let says = format!("{WAITING_MAX} requests are already waiting (waiting_max): try again later");
                    return Err(CrewError::Full(says));
                }
                Ok(LeaseEvent::LeasesQueued { waiting: self.n_waiting + 1, request, until })
            }
            Turn::Wait(_) | Turn::Behind | Turn::Edit => Err(CrewError::Held(blocked)),
        }
    }

    pub(super) fn grant(&self, request: Request, waited: Option<u64>, now: Timestamp) -> LeaseEvent {
        let risks = request.targets.iter().flat_map(|target| {
            self.overlapping(target, now).filter(|(_, lease)| {
                excludes(&request.holder, &lease.holder, lease.is_exclusive || request.is_exclusive)
                    && lease.holder.worktree != request.holder.worktree
            })
        });
        let risk = |(lease, theirs): (u64, &Lease)| MergeRisk {
            lease,
            holder: theirs.holder.clone(),
            target: theirs.target.clone(),
        };
        let merge_risks = risks.map(risk).take(BLOCKED_MAX).collect();
        LeaseEvent::LeasesGranted {
            first: self.n_leases + 1,
            until: now.plus(request.ttl),
            request,
            waited,
            merge_risks,
        }
    }

    /// Queues a request, and asks the holders in its way to release, each once: the one with the newest lease first. The
    /// request is granted if nothing is in its way.
    pub(super) fn request_release(
        &self,
        request: &Request,
        deadline: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<LeaseEvent>, CrewError> {
        let until = deadline.plus(AFTER_DEADLINE);
        let known = self.waits_as(request, now);
        let (mut events, number) = match known {
            Some((number, _)) => (Vec::new(), *number),
            None => match self.reserve(request.clone(), Turn::Wait(until), now)? {
                Some(queued @ LeaseEvent::LeasesQueued { waiting, .. }) => (vec![queued], waiting),
                granted_or_held => return Ok(granted_or_held.into_iter().collect()),
            },
        };
        let asked = known.map(|(_, waiting)| &waiting.asked);
        let mut holders: BTreeMap<String, u64> = BTreeMap::new();
        for blocked in self.leases_in_the_way(request, now) {
            let newest = holders.entry(blocked.holder.agent.clone()).or_default();
            *newest = blocked.lease().max(Some(*newest)).unwrap_or_default();
        }
        holders.retain(|holder, _| !asked.is_some_and(|asked| asked.contains_key(holder)));
        let mut of: Vec<_> = holders.into_iter().collect();
        of.sort_by_key(|(_, newest)| std::cmp::Reverse(*newest));
        if !of.is_empty() {
            let of = of.into_iter().map(|(holder, _)| holder).collect();
            events.push(LeaseEvent::ReleaseRequested { waiting: number, of, deadline, until });
        }
        Ok(events)
    }

    /// A waiting request for the targets of a request that its holder does not lease.
    #[must_use]
    pub fn waits_as(&self, request: &Request, now: Timestamp) -> Option<&(u64, Waiting)> {
        self.waiting_like(&self.without_own(request.clone(), now))
    }

    /// The waiting request with this content. The log may have its reason with secrets redacted.
    pub(super) fn waiting_like(&self, request: &Request) -> Option<&(u64, Waiting)> {
        let is_like = |known: &Request| *known == Request { reason: known.reason.clone(), ..request.clone() };
        self.waiting.iter().find(|(_, waiting)| is_like(&waiting.request))
    }

    /// A holder's answer to the request for a release.
    pub(super) fn answer_release(
        &self,
        agent: String,
        waiting: u64,
        answer: ReleaseAnswer,
        note: String,
        now: Timestamp,
    ) -> Result<Vec<LeaseEvent>, CrewError> {
        let missing = |why: &str| CrewError::Missing(format!("request {waiting} {why}"));
        let found = self.waiting.iter().find(|(number, found)| *number == waiting && now <= found.until);
        let request = &found.ok_or_else(|| missing("does not wait any more"))?.1.request;
        let (own, others): (Vec<_>, Vec<_>) =
            self.leases_in_the_way(request, now).into_iter().partition(|by| by.holder.agent == agent);
        let leases: Vec<_> = own.iter().filter_map(Blocked::lease).collect::<BTreeSet<_>>().into_iter().collect();
        if leases.is_empty() {
            return Err(missing("waits for no lease of yours"));
        }
        let released = LeaseEvent::LeasesReleased { agent: agent.clone(), leases };
        let answered = LeaseEvent::ReleaseAnswered { waiting, agent, answer, note };
        Ok(match answer {
            ReleaseAnswer::Keep { .. } => vec![answered],
            ReleaseAnswer::Release => vec![answered, released],
            ReleaseAnswer::HandOver if !others.is_empty() => return Err(CrewError::Held(others)),
            ReleaseAnswer::HandOver => vec![answered, released, self.grant(request.clone(), Some(waiting), now)],
        })
    }

    /// The events with those that follow from them: the grants of waiting requests, after the ends of leases that make room for
    /// them, and deadlocks. A request can be granted once something ends, or once an older one waits for its holder.
    pub(super) fn settled(&self, mut events: Vec<LeaseEvent>, now: Timestamp) -> Vec<LeaseEvent> {
        let is_queued = |event: &LeaseEvent| matches!(event, LeaseEvent::LeasesQueued { .. });
        let moves = |event: &LeaseEvent| event.gains().is_some() || event.ends() != (&[], &[]);
        let waits = !self.waiting.is_empty() || events.iter().any(is_queued);
        if !waits || !events.iter().any(moves) {
            return events;
        }
        let mut after = self.clone();
        events.iter().for_each(|event| after.apply(event));
        let due = after.due(now);
        due.iter().for_each(|event| after.apply(event));
        let granted = after.grant_waiting(now);
        if !granted.is_empty() {
            events.extend(due.into_iter().chain(granted));
        }
        // Where a ring is resolved, its agents may be in another one.
        let resolved = self.deadlocks.iter().filter(|known| !after.deadlocks.contains(known));
        let in_it = resolved.flat_map(|known| &known.ring).map(|part| part.agent.as_str());
        let closed = after.closed_by(events.iter().filter_map(LeaseEvent::gains).chain(in_it), now);
        events.extend(closed);
        events
    }

    /// Grants the waiting requests that nothing blocks, oldest first. A request never overtakes an older one that it overlaps.
    fn grant_waiting(&mut self, now: Timestamp) -> Vec<LeaseEvent> {
        let candidates: Vec<_> = self.waiting.iter().filter(|(_, waiting)| now <= waiting.until).cloned().collect();
        let grant = |(number, Waiting { request, .. }): (u64, Waiting)| {
            // The queue is looked at only where no lease is in the way, since that takes longer.
            let is_free = self.leases_in_the_way(&request, now).is_empty()
                && self.blocked(&request, Some(number), now).is_empty();
            let granted = is_free.then(|| self.grant(request, Some(number), now));
            granted.inspect(|event| self.apply(event))
        };
        candidates.into_iter().filter_map(grant).collect()
    }

    /// True if an agent among these waits.
    fn waits(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.waiting.iter().any(|(_, waiting)| is_it(&waiting.request.holder.agent))
    }

    pub(super) fn waiting_mut(&mut self, number: u64) -> Option<&mut Waiting> {
        self.waiting.iter_mut().find(|(known, _)| *known == number).map(|(_, waiting)| waiting)
    }

    pub(super) fn waiting_of(&self, agent: &str) -> Vec<u64> {
        let own = self.waiting.iter().filter(|(_, waiting)| waiting.request.holder.agent == agent);
        own.map(|(number, _)| *number).collect()
    }

    /// The deadlocks of these agents that are not named yet.
    fn closed_by<'a>(&self, agents: impl Iterator<Item = &'a str>, now: Timestamp) -> Vec<LeaseEvent> {
        let mut found: Vec<Deadlock> = Vec::new();
        for ring in agents.filter_map(|agent| self.ring(agent, now)) {
            let agents = |ring: &[RingPart]| ring.iter().map(|part| part.agent.clone()).collect::<BTreeSet<_>>();
            let mut known = self.deadlocks.iter().chain(&found);
            if !known.any(|known| agents(&known.ring) == agents(&ring)) {
                let release = suggested(&ring);
                found.push(Deadlock { ring, release, at: now });
            }
        }
        found.into_iter().map(LeaseEvent::DeadlockDetected).collect()
    }

    /// The shortest ring of waits from an agent back to itself.
    fn ring(&self, first: &str, now: Timestamp) -> Option<Vec<RingPart>> {
        // How the search got to an agent: the agent before it, that one's waiting request, and the lease of this one.
        let mut by: BTreeMap<String, RingPart> = BTreeMap::new();
        let mut next = VecDeque::from([first.to_owned()]);
        while let Some(agent) = next.pop_front() {
            let is_own = |(_, waiting): &&(u64, Waiting)| waiting.request.holder.agent == agent && now <= waiting.until;
            for (waiting, Waiting { request, .. }) in self.waiting.iter().filter(is_own) {
                for blocked in self.leases_in_the_way(request, now) {
                    let (holder, Some(lease)) = (blocked.holder.agent.clone(), blocked.lease()) else { continue };
                    let part = RingPart { agent: agent.clone(), waiting: *waiting, lease };
                    if holder == first {
                        return Some(round(part, &by, first));
                    }
                    if !by.contains_key(&holder) {
                        by.insert(holder.clone(), part);
                        next.push_back(holder);
                    }
                }
            }
        }
        None
    }

    /// The deadlocks that have not been resolved.
    #[must_use]
    pub fn deadlocks(&self) -> &[Deadlock] {
        &self.deadlocks
    }

    /// True if a request of an agent waits for a lease of another one, by the events alone.
    fn waits_for(&self, agent: &str, other: &str) -> bool {
        let waiting = self.waiting.iter().filter(|(_, waiting)| waiting.request.holder.agent == agent);
        let asked: Vec<_> = waiting.flat_map(|(_, waiting)| &waiting.request.targets).collect();
        self.of_agent(other).any(|(_, lease)| asked.iter().any(|asked| asked.overlaps(&lease.target)))
    }

    /// Forgets the deadlocks in which someone no longer waits for the next.
    pub(super) fn end_deadlocks(&mut self) {
        let mut deadlocks = std::mem::take(&mut self.deadlocks);
        deadlocks.retain(|Deadlock { ring, .. }| {
            let next = ring.iter().cycle().skip(1);
            ring.iter().zip(next).all(|(part, next)| self.waits_for(&part.agent, &next.agent))
        });
        self.deadlocks = deadlocks;
    }
}

/// Decides on targets of two requests: those of other worktrees meet if one is strict, or if they are things.
fn meeting(one: &Request, other: &Request) -> impl Fn(&Target, &Target) -> bool {
    let are_near = one.holder.worktree == other.holder.worktree || one.is_strict || other.is_strict;
    move |one, other| (are_near || other.is_thing()) && one.overlaps(other)
}

/// The ring that the last part closes, from the first agent by name.
fn round(last: RingPart, by: &BTreeMap<String, RingPart>, first: &str) -> Vec<RingPart> {
    let mut ring = vec![last];
    while let Some(part) = ring.last().filter(|part| part.agent != first).and_then(|part| by.get(&part.agent)) {
        ring.push(part.clone());
    }
    ring.reverse();
    let least = ring.iter().enumerate().min_by_key(|(_, part)| &part.agent).map_or(0, |(index, _)| index);
    ring.rotate_left(least);
    ring
}

/// The lease whose release resolves a ring.
fn suggested(ring: &[RingPart]) -> u64 {
    let oldest = ring.iter().map(|part| part.lease).min();
    // The lease of the first agent by name is the one that the last waits for.
    let of_first = ring.last().map(|part| part.lease);
    if ring.len() <= SHORT_RING { oldest } else { of_first }.unwrap_or_default()
}
