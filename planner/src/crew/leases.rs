//! Leases on files: permission for an agent to change files of a repository for a limited time.
//!
//! The leases of all worktrees of a repository are one aggregate, so of any number of overlapping requests from one worktree
//! exactly one wins. Files of another worktree are other files until they are merged: an overlap there is granted and
//! reported as a merge risk, unless the request or the lease is strict.
//!
//! A subagent may work under the leases of its parents; siblings block each other.
//!
//! A lease ends when its holder releases it, when it expires, when its holder is proven dead, or when a person ends it. Time
//! is log time; a lease is live up to and including its last moment. A call of its holder renews it, which no event says: so the
//! end of one that expired is in the log before another one is granted in its place.

mod edits;
mod event;
mod handoff;
pub mod news;
mod queue;
mod renewal;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crewlog_mq::{Handler, Position, Snapshot, Timestamp};
use serde::{Deserialize, Serialize};

pub use self::event::{
    Asked, Commit, CommittedFile, CommittedLease, Deadlock, ForeignEdit, GitChange, Handoff, LeaseCommand, LeaseEvent,
    LeaseNews, MergeRisk, News, ReleaseAnswer, Request, RingPart, Turn, Which,
};
pub use super::names::LeaseHolder;
pub use super::refusal::{Blocked, By};

use self::event::REASON_BYTES_MAX;
use super::CrewError;
use super::globs::Pattern;
use super::names::is_below;
use super::target::Target;

/// The stream of leases. An aggregate of it is a project.
pub const STREAM: &str = "leases";
/// How long a lease stays live without a call from its holder.
pub const TTL: Duration = Duration::from_secs(3_600);
/// The shortest and the longest TTL of a request.
pub const TTL_RANGE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(86_400));
/// The most targets of a request.
pub const TARGETS_MAX: usize = 200;
/// The most live leases of a repository.
pub const LEASES_MAX: usize = 100_000;
/// The most waiting requests.
pub const WAITING_MAX: usize = 1_000;
/// The most leases that a refusal names.
pub const BLOCKED_MAX: usize = 20;
/// The longest time between two renewals; half of the shortest TTL if that is less.
pub const RENEWAL: Duration = Duration::from_secs(60);

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The holder.
    pub holder: LeaseHolder,
    /// The leased files.
    pub target: Target,
    /// True if it excludes overlapping leases of others.
    pub is_exclusive: bool,
    /// True if those in other worktrees count, too.
    pub is_strict: bool,
    /// How long a renewal keeps it live.
    pub ttl: Duration,
    /// When it ends, unless it is renewed.
    #[serde(skip)]
    pub until: Timestamp,
    /// The same by the events alone.
    ends: Timestamp,
    /// When it was granted, or handed over.
    pub since: Timestamp,
    /// The reason for it.
    pub reason: String,
    /// Its task.
    pub task: Option<String>,
    /// The fencing token: the log position of the grant. Every later grant has a higher one.
    pub token: Position,
    /// Made from the target.
    #[serde(skip)]
    pattern: Pattern,
}

/// A waiting request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The request.
    pub request: Request,
    /// When it stops waiting.
    pub until: Timestamp,
    /// The holders that were asked to release.
    #[serde(default)]
    pub asked: BTreeMap<String, Asked>,
}

/// The leases of a repository.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Leases {
    live: BTreeMap<u64, Lease>,
    waiting: VecDeque<(u64, Waiting)>,
    /// The numbers of leases by the stem of their target: a file, or the folder that a pattern is in.
    #[serde(skip)]
    by_stem: BTreeMap<String, BTreeSet<u64>>,
    #[serde(skip)]
    by_agent: BTreeMap<String, BTreeSet<u64>>,
    #[serde(skip)]
    by_end: BTreeSet<(Timestamp, u64)>,
    /// The last renewal of each holder, which no event says.
    #[serde(skip)]
    renewed: BTreeMap<String, Timestamp>,
    /// Recorded refusals of edits, kept while the lease is live so that none is recorded twice.
    refused: BTreeSet<(u64, LeaseHolder, Target)>,
    n_leases: u64,
    /// The latest time in any event. An older command is decided as of this time, so that it cannot revive an ended lease.
    latest: Timestamp,
    n_waiting: u64,
    /// Deadlocks that have not been resolved.
    deadlocks: Vec<Deadlock>,
    /// Open offers by number.
    handoffs: BTreeMap<u64, Handoff>,
    n_handoffs: u64,
    news: VecDeque<News>,
    n_news: u64,
    /// The leases of each event, until its position is known.
    #[serde(skip)]
    unplaced: VecDeque<Vec<u64>>,
}

/// Leases as a snapshot keeps them; the indexes are made again.
#[derive(Deserialize)]
struct Stored {
    live: BTreeMap<u64, Lease>,
    waiting: VecDeque<(u64, Waiting)>,
    refused: BTreeSet<(u64, LeaseHolder, Target)>,
    n_leases: u64,
    latest: Timestamp,
    n_waiting: u64,
    deadlocks: Vec<Deadlock>,
    handoffs: BTreeMap<u64, Handoff>,
    n_handoffs: u64,
    news: VecDeque<News>,
    n_news: u64,
}

impl From<Stored> for Leases {
    fn from(stored: Stored) -> Self {
        let Stored {
            live,
            waiting,
            refused,
            n_leases,
            latest,
            n_waiting,
            deadlocks,
            handoffs,
            n_handoffs,
            news,
            n_news,
        } = stored;
        let leases = Self { waiting, refused, n_leases, latest, n_waiting, deadlocks, ..Self::default() };
        let mut leases = Self { handoffs, n_handoffs, news, n_news, ..leases };
        for (number, lease) in live {
            leases.insert(number, Lease { pattern: lease.target.pattern(), until: lease.ends, ..lease });
        }
        leases
    }
}

impl Snapshot for Leases {
    const FOLD: &'static str = "leases";
    const VERSION: u32 = 6;
}

impl Leases {
    /// A live lease.
    #[must_use]
    pub fn get(&self, lease: u64) -> Option<&Lease> {
        self.live.get(&lease)
    }

    /// All leases by number, until their end is recorded.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Lease)> {
        self.live.iter().map(|(number, lease)| (*number, lease))
    }

    /// The leases of an agent.
    pub fn of_agent(&self, agent: &str) -> impl Iterator<Item = (u64, &Lease)> {
        let numbers = self.by_agent.get(agent).into_iter().flatten();
        numbers.filter_map(|number| self.live.get(number).map(|lease| (*number, lease)))
    }

    /// The agents that hold leases, wait for them, or have open offers.
    #[must_use]
    pub fn holders(&self) -> BTreeSet<&str> {
        let waiting = self.waiting.iter().map(|(_, waiting)| &waiting.request.holder.agent);
        let offered = self.handoffs.values().flat_map(|offer| [&offer.from, &offer.to]);
        self.by_agent.keys().chain(waiting).chain(offered).map(String::as_str).collect()
    }

    /// The number of the newest lease.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.n_leases
    }

    /// Waiting requests, the oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = &(u64, Waiting)> {
        self.waiting.iter()
    }

    /// When the next lease, waiting request or offer ends.
    #[must_use]
    pub fn next_end(&self) -> Option<Timestamp> {
        let lease = self.by_end.first().map(|(until, _)| *until);
        let waiting = self.waiting.iter().map(|(_, waiting)| waiting.until).min();
        let handoff = self.handoffs.values().map(|offer| offer.until).min();
        lease.into_iter().chain(waiting).chain(handoff).min()
    }

    /// The live leases of others that keep an agent from writing, or from reading unless it `writes`. Those of other worktrees
    /// count only if they or the request are strict.
    #[must_use]
    pub fn in_the_way(
        &self,
        holder: &LeaseHolder,
        targets: &[Target],
        writes: bool,
        strict: bool,
        now: Timestamp,
    ) -> Vec<Blocked> {
        let mut blocked = Vec::new();
        for target in targets {
            let others = self.overlapping(target, now).filter(|(_, lease)| {
                excludes(holder, &lease.holder, writes || lease.is_exclusive)
                    && (strict || lease.is_strict || lease.holder.worktree == holder.worktree || target.is_thing())
            });
            blocked.extend(others.map(|(number, lease)| Blocked {
                asked: target.clone(),
                by: By::Lease(number),
                holder: lease.holder.clone(),
                target: lease.target.clone(),
                is_exclusive: lease.is_exclusive,
                until: lease.until,
                task: lease.task.clone(),
            }));
        }
        blocked
    }

    /// The live leases that overlap a target, by number.
    pub fn overlapping<'a>(&'a self, target: &Target, now: Timestamp) -> impl Iterator<Item = (u64, &'a Lease)> {
        let (stem, pattern, thing) = (target.stem(), target.pattern(), target.is_thing());
        let folders = stem.match_indices('/').map(|(slash, _)| &stem[..slash]);
        let above = folders.chain([stem]).filter(|folder| !folder.is_empty()).chain([""]);
        let mut numbers: BTreeSet<u64> =
            above.filter_map(|folder| self.by_stem.get(folder)).flatten().copied().collect();
        // '0' follows '/' in ASCII, so this range is everything below the folder.
        let below = match stem {
            "" => self.by_stem.range(String::new()..),
            stem => self.by_stem.range(format!("{stem}/")..format!("{stem}0")),
        };
        numbers.extend(below.flat_map(|(_, numbers)| numbers));
        let leases = numbers.into_iter().filter_map(|number| self.live.get(&number).map(|lease| (number, lease)));
        leases.filter(move |(_, it)| now <= it.until && it.target.is_thing() == thing && pattern.overlaps(&it.pattern))
    }

    /// The events of a command as of `now`, before waiting requests are granted.
    fn decide_as_of(&self, command: LeaseCommand, now: Timestamp) -> Result<Vec<LeaseEvent>, CrewError> {
        Ok(match command {
            LeaseCommand::Reserve { request, turn, .. } => self.reserve(request, turn, now)?.into_iter().collect(),
            LeaseCommand::RequestRelease { request, deadline, .. } => self.request_release(&request, deadline, now)?,
            LeaseCommand::AnswerRelease { agent, waiting, answer, note, .. } => {
                self.answer_release(agent, waiting, answer, note, now)?
            }
            LeaseCommand::OfferHandoff { offer, .. } => self.offer_handoff(offer, now)?,
            LeaseCommand::AnswerHandoff { handoff, agent, accepts, note, .. } => {
                self.answer_handoff(handoff, agent, accepts, note, now)?
            }
            LeaseCommand::Extend { agent, which, by, .. } => {
                let (leases, until) = (self.own(&agent, &which, now)?, now.plus(by.clamp(TTL_RANGE.0, TTL_RANGE.1)));
                (!leases.is_empty()).then_some(LeaseEvent::LeasesExtended { leases, until }).into_iter().collect()
            }
            LeaseCommand::Release { agent, which, .. } => {
                let leases = self.own(&agent, &which, now)?;
                let waiting = if which == Which::All { self.waiting_of(&agent) } else { Vec::new() };
                ended(waiting, Vec::new(), leases, |leases| LeaseEvent::LeasesReleased { agent, leases })
            }
            LeaseCommand::Abandon { agent, up_to, .. } => {
                let leases =
                    self.of_agent(&agent).map(|(number, _)| number).filter(|number| *number <= up_to).collect();
                let (waiting, handoffs) = (self.waiting_of(&agent), self.handoffs_of(&agent));
                ended(waiting, handoffs, leases, |leases| LeaseEvent::LeasesAbandoned { agent, leases })
            }
            LeaseCommand::Force { leases, by, reason, .. } => {
                if let Some(missing) = leases.iter().find(|lease| !self.live.contains_key(lease)) {
                    return Err(no_lease(*missing));
                }
                ended(Vec::new(), Vec::new(), leases, |leases| LeaseEvent::LeasesForced { leases, by, reason })
            }
            LeaseCommand::Expire { .. } => self.due(now),
            LeaseCommand::RefuseEdit { holder, target, lease, .. } => {
                let known = (lease, holder, target);
                if !self.live.contains_key(&lease) || self.refused.contains(&known) {
                    return Ok(Vec::new());
                }
                let (lease, holder, target) = known;
                vec![LeaseEvent::EditRefused { holder, target, lease, at: now }]
            }
            LeaseCommand::SeeEdit { worktree, path, agent, .. } => {
                self.see(worktree, path, agent, now).into_iter().collect()
            }
            LeaseCommand::SeeForeignEdit { edit, .. } => self.see_foreign(edit, now).into_iter().collect(),
            LeaseCommand::SeeCommit { commit, paths, .. } => self.see_commit(commit, &paths, now).into_iter().collect(),
        })
    }

    fn reserve(&self, request: Request, turn: Turn, now: Timestamp) -> Result<Option<LeaseEvent>, CrewError> {
        if request.targets.is_empty() || request.targets.len() > TARGETS_MAX {
            let says = format!("a request has 1 to {TARGETS_MAX} paths, not {}", request.targets.len());
            return Err(CrewError::Invalid(says));
        }
        if request.ttl < TTL_RANGE.0 || request.ttl > TTL_RANGE.1 {
            let says = format!("a lease lasts from 60 to 86400 s, not {} s", request.ttl.as_secs());
            return Err(CrewError::Invalid(says));
        }
        request.check_texts()?;
        let request = self.without_own(request, now);
        // The holder has all of it already, or waits for it.
        let may_wait = matches!(turn, Turn::Wait(_));
        if request.targets.is_empty() || (may_wait && self.waiting_like(&request).is_some()) {
            return Ok(None);
        }
        if self.live.len() + request.targets.len() > LEASES_MAX {
            let says = format!("the repository has {LEASES_MAX} live leases (leases_max): release some");
            return Err(CrewError::Full(says));
        }
        let blocked = match turn {
            Turn::Edit => self.leases_in_the_way(&request, now),
            Turn::Behind | Turn::Wait(_) => self.blocked(&request, None, now),
        };
        match blocked.is_empty() {
            true => Ok(Some(self.grant(request, None, now))),
            false => self.queue(request, turn, blocked, now).map(Some),
        }
    }

    /// The request without targets that its holder already leases, in this worktree and at least as exclusively.
    fn without_own(&self, mut request: Request, now: Timestamp) -> Request {
        let own: BTreeSet<_> = self
            .of_agent(&request.holder.agent)
            .filter(|(_, lease)| now <= lease.until && lease.holder == request.holder)
            .filter(|(_, lease)| lease.is_exclusive >= request.is_exclusive && lease.is_strict >= request.is_strict)
            .map(|(_, lease)| lease.target.clone())
            .collect();
        let mut asked = BTreeSet::new();
        request.targets.retain(|target| !own.contains(target) && asked.insert(target.clone()));
        request
    }

    /// Ends leases, waiting requests and offers whose time is up.
    fn due(&self, now: Timestamp) -> Vec<LeaseEvent> {
        let leases: Vec<_> =
            self.by_end.iter().take_while(|(until, _)| *until < now).map(|(_, number)| *number).collect();
        let is_over = |(_, waiting): &&(u64, Waiting)| waiting.until < now;
        let waiting: Vec<_> = self.waiting.iter().filter(is_over).map(|(number, _)| *number).collect();
        let handoffs = self.handoffs().filter(|(_, offer)| offer.until < now).map(|(number, _)| number).collect();
        ended(waiting, handoffs, leases, |leases| LeaseEvent::LeasesExpired { leases, at: now })
    }

    /// The selected live leases of an agent. A lease of another agent is refused.
    fn own(&self, agent: &str, which: &Which, now: Timestamp) -> Result<Vec<u64>, CrewError> {
        let live = |lease: &Lease| now <= lease.until;
        let those = |is_meant: &dyn Fn(&Lease) -> bool| {
            let those = self.of_agent(agent).filter(|(_, lease)| live(lease) && is_meant(lease));
            those.map(|(number, _)| number).collect()
        };
        match which {
            Which::All => Ok(those(&|_| true)),
            Which::OfTask(task) => Ok(those(&|lease| lease.task.as_ref() == Some(task))),
            Which::Numbers(numbers) => {
                for number in numbers {
                    let lease = self.live.get(number).filter(|lease| live(lease)).ok_or_else(|| no_lease(*number))?;
                    if lease.holder.agent != agent {
                        let holder = lease.holder.agent.clone();
                        return Err(CrewError::NotYours { lease: *number, holder });
                    }
                }
                Ok(numbers.iter().copied().collect::<BTreeSet<_>>().into_iter().collect())
            }
        }
    }

    fn add(&mut self, first: u64, request: &Request, (since, until): (Timestamp, Timestamp)) {
        for (number, target) in (first..).zip(&request.targets) {
            let lease = Lease {
                holder: request.holder.clone(),
                target: target.clone(),
                is_exclusive: request.is_exclusive,
                is_strict: request.is_strict,
                ttl: request.ttl,
                until,
                ends: until,
                since,
                reason: request.reason.clone(),
                task: request.task.clone(),
                token: Position(0),
                pattern: target.pattern(),
            };
            self.insert(number, lease);
            self.n_leases = number;
        }
        if let Some(unplaced) = self.unplaced.back_mut() {
            *unplaced = (first..=self.n_leases).collect();
        }
    }

    /// Ends leases, and makes the same for another agent; each is live for its TTL from then.
    fn transfer(&mut self, leases: &[u64], first: u64, to: &str, at: Timestamp) {
        let old: Vec<_> = leases.iter().filter_map(|number| self.live.get(number).cloned()).collect();
        self.end(leases);
        for (number, mut lease) in (first..).zip(old) {
            to.clone_into(&mut lease.holder.agent);
            (lease.until, lease.ends, lease.token) = (at.plus(lease.ttl), at.plus(lease.ttl), Position(0));
            lease.since = at;
            self.insert(number, lease);
            self.n_leases = number;
            self.unplaced.back_mut().into_iter().for_each(|unplaced| unplaced.push(number));
        }
    }

    fn insert(&mut self, number: u64, lease: Lease) {
        self.by_stem.entry(lease.target.stem().to_owned()).or_default().insert(number);
        self.by_agent.entry(lease.holder.agent.clone()).or_default().insert(number);
        self.by_end.insert((lease.until, number));
        self.live.insert(number, lease);
    }

    fn end(&mut self, leases: &[u64]) {
        for number in leases {
            let Some(lease) = self.live.remove(number) else { continue };
            self.by_end.remove(&(lease.until, *number));
            drop_from(&mut self.by_stem, lease.target.stem(), *number);
            drop_from(&mut self.by_agent, &lease.holder.agent, *number);
            if !self.by_agent.contains_key(&lease.holder.agent) {
                self.renewed.remove(&lease.holder.agent);
            }
        }
        let live = &self.live;
        self.refused.retain(|(number, ..)| live.contains_key(number));
    }

    fn set_end(&mut self, number: u64, until: impl FnOnce(&Lease) -> Timestamp) {
        let Some(lease) = self.live.get_mut(&number) else { return };
        let until = until(lease).max(lease.until);
        self.by_end.remove(&(lease.until, number));
        lease.until = until;
        self.by_end.insert((until, number));
    }
}

/// The events that end waiting requests, offers and leases; none for an empty list.
fn ended(
    waiting: Vec<u64>,
    handoffs: Vec<u64>,
    leases: Vec<u64>,
    event: impl FnOnce(Vec<u64>) -> LeaseEvent,
) -> Vec<LeaseEvent> {
    let waiting = (!waiting.is_empty()).then_some(LeaseEvent::WaitingEnded { waiting });
    let handoffs = (!handoffs.is_empty()).then_some(LeaseEvent::HandoffsEnded { handoffs });
    let leases = (!leases.is_empty()).then(|| event(leases));
    waiting.into_iter().chain(handoffs).chain(leases).collect()
}

fn no_lease(lease: u64) -> CrewError {
    CrewError::Missing(format!("lease {lease} does not exist or has ended"))
}

fn drop_from(index: &mut BTreeMap<String, BTreeSet<u64>>, key: &str, number: u64) {
    if let Some(numbers) = index.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            index.remove(key);
        }
    }
}

/// True if another holder's lease excludes an overlapping one: one of the two is exclusive, and the holder is no
/// parent.
fn excludes(holder: &LeaseHolder, other: &LeaseHolder, one_is_exclusive: bool) -> bool {
    one_is_exclusive && !is_below(&holder.agent, &other.agent)
}

impl Handler for Leases {
    type Command = LeaseCommand;
    type Event = LeaseEvent;
    type Error = CrewError;

    fn decide(&self, command: LeaseCommand) -> Result<Vec<LeaseEvent>, CrewError> {
        let now = command.now().max(self.latest);
        let own = self.decide_as_of(command, now)?;
        // A lease that makes room for another can never be renewed: its end comes first.
        let is_granted = own.iter().any(|event| matches!(event, LeaseEvent::LeasesGranted { .. }));
        let mut events = if is_granted { self.due(now) } else { Vec::new() };
        events.extend(own);
        Ok(self.settled(events, now))
    }

    fn apply(&mut self, event: &LeaseEvent) {
        self.unplaced.push_back(Vec::new());
        self.latest = self.latest.max(event.at().unwrap_or_default());
        self.keep_news(event);
        match event {
            LeaseEvent::LeasesGranted { first, request, until, waited, .. } => {
                self.waiting.retain(|(number, _)| Some(*number) != *waited);
                self.add(*first, request, (event.at().unwrap_or_default(), *until));
            }
            LeaseEvent::LeasesQueued { waiting, request, until } => {
                self.n_waiting = *waiting;
                let (request, until, asked) = (request.clone(), *until, BTreeMap::new());
                self.waiting.push_back((*waiting, Waiting { request, until, asked }));
            }
            LeaseEvent::ReleaseRequested { waiting, of, deadline, until } => {
                if let Some(found) = self.waiting_mut(*waiting) {
                    found.until = found.until.max(*until);
                    let asked = of.iter().map(|holder| (holder.clone(), Asked { until: *deadline, keeps: false }));
                    found.asked.extend(asked);
                }
            }
            LeaseEvent::ReleaseAnswered { waiting, agent, answer: ReleaseAnswer::Keep { until }, .. } => {
                if let Some(found) = self.waiting_mut(*waiting) {
                    found.until = found.until.max(*until);
                    found.asked.insert(agent.clone(), Asked { until: *until, keeps: true });
                }
            }
            LeaseEvent::DeadlockDetected(deadlock) => self.deadlocks.push(deadlock.clone()),
            LeaseEvent::HandoffOffered { handoff, offer, .. } => {
                self.n_handoffs = *handoff;
                self.handoffs.insert(*handoff, offer.clone());
            }
            LeaseEvent::HandoffAnswered { handoff, .. } => drop(self.handoffs.remove(handoff)),
            LeaseEvent::HandoffsEnded { handoffs } => self.handoffs.retain(|number, _| !handoffs.contains(number)),
            LeaseEvent::LeasesTransferred { leases, first, to, at } => self.transfer(leases, *first, to, *at),
            LeaseEvent::WaitingEnded { waiting } => self.waiting.retain(|(number, _)| !waiting.contains(number)),
            LeaseEvent::LeasesExtended { leases, until } => {
                for number in leases {
                    self.live.get_mut(number).into_iter().for_each(|lease| lease.ends = lease.ends.max(*until));
                    self.set_end(*number, |_| *until);
                }
            }
            LeaseEvent::LeasesReleased { leases, .. }
            | LeaseEvent::LeasesExpired { leases, .. }
            | LeaseEvent::LeasesAbandoned { leases, .. }
            | LeaseEvent::LeasesForced { leases, .. } => self.end(leases),
            LeaseEvent::EditRefused { holder, target, lease, .. } => {
                self.refused.insert((*lease, holder.clone(), target.clone()));
            }
            LeaseEvent::UnleasedEdit { .. }
            | LeaseEvent::FilesCommitted { .. }
            | LeaseEvent::ReleaseAnswered { .. } => {}
        }
        if !self.deadlocks.is_empty() {
            self.end_deadlocks();
        }
    }

    fn placed(&mut self, position: Position) {
        for number in self.unplaced.pop_front().into_iter().flatten() {
            if let Some(lease) = self.live.get_mut(&number) {
                lease.token = position;
            }
        }
    }
}

#[cfg(test)]
mod tests;
