//! Facts about leases that an agent should hear once.

use std::collections::BTreeMap;

use crewlog_mq::Timestamp;

use super::event::{Commit, CommittedLease, Deadlock, Handoff, LeaseNews, News, ReleaseAnswer};
use super::{Lease, LeaseEvent, Leases, Waiting};

/// The most past facts that are kept.
const NEWS_MAX: usize = 256;

/// Something that an agent should hear once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice<'a> {
    /// A request waits for its lease.
    Awaited(u64, &'a Waiting, &'a Lease),
    /// A request waits for its lease, and asks for an answer by this time.
    Asked(u64, &'a Waiting, &'a Lease, Timestamp),
    /// An agent offers its work.
    Offered(u64, &'a Handoff),
    /// It waits in a ring.
    Deadlocked(&'a Deadlock),
    /// A past fact.
    Past(&'a News),
}

impl Notice<'_> {
    /// The same for the same fact, and different for others.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Awaited(waiting, ..) => format!("awaited {waiting}"),
            Self::Asked(waiting, ..) => format!("asked {waiting}"),
            Self::Offered(handoff, _) => format!("offered {handoff}"),
            Self::Deadlocked(Deadlock { ring, at, .. }) => {
                format!("deadlock {} {}", ring.first().map_or(0, |part| part.waiting), at.0)
            }
            Self::Past(news) => format!("news {}", news.number),
        }
    }
}

impl Leases {
    /// The notices for an agent, as far as they still hold, the oldest facts first.
    #[must_use]
    pub fn notices(&self, agent: &str, now: Timestamp) -> Vec<Notice<'_>> {
        let past = self.news.iter().filter(|news| news.agent == agent).map(Notice::Past);
        let in_ring = |deadlock: &&Deadlock| deadlock.ring.iter().any(|part| part.agent == agent);
        let offered = self.handoffs.iter().filter(|(_, offer)| offer.to == agent && now <= offer.until);
        let mut notices: Vec<_> = past.collect();
        notices.extend(offered.map(|(number, offer)| Notice::Offered(*number, offer)));
        if self.by_agent.contains_key(agent) {
            for (number, waiting) in self.waiting.iter().filter(|(_, waiting)| now <= waiting.until) {
                let blocking = self.leases_in_the_way(&waiting.request, now);
                let own = blocking.iter().filter(|by| by.holder.agent == agent);
                let Some(lease) = own.filter_map(|by| by.lease()).find_map(|lease| self.live.get(&lease)) else {
                    continue;
                };
                notices.push(match waiting.asked.get(agent) {
                    Some(asked) if !asked.keeps => Notice::Asked(*number, waiting, lease, asked.until),
                    Some(_) | None => Notice::Awaited(*number, waiting, lease),
                });
            }
        }
        notices.extend(self.deadlocks.iter().filter(in_ring).map(Notice::Deadlocked));
        notices
    }

    /// The files that an agent was refused because of leases that are still live, and their holders.
    pub fn refused_to(&self, agent: &str) -> impl Iterator<Item = (String, String)> {
        let own = self.refused.iter().filter(move |(_, holder, _)| holder.agent == agent);
        own.filter_map(|(lease, _, target)| Some((target.path.clone(), self.live.get(lease)?.holder.agent.clone())))
    }

    /// Changes of others under live leases that the person should see, each with its lease: edits that may have destroyed work of
    /// the holder, and commits of other agents.
    pub fn at_risk(&self) -> impl Iterator<Item = (&News, u64)> {
        self.news.iter().filter_map(|news| match &news.fact {
            LeaseNews::Edited { lease, is_at_risk: true, .. }
            | LeaseNews::Committed { lease, commit: Commit { agent: Some(_), .. }, .. } => {
                self.live.contains_key(lease).then_some((news, *lease))
            }
            _another => None,
        })
    }

    /// Keeps the facts of an event that agents should hear, before it is applied.
    pub(super) fn keep_news(&mut self, event: &LeaseEvent) {
        let lost = |leases: &[u64], by: &Option<String>| {
            let live = leases.iter().filter_map(|number| self.live.get(number).map(|lease| (*number, lease)));
            let lost = |(lease, found): (u64, &Lease)| {
                (found.holder.agent.clone(), LeaseNews::Lost { lease, target: found.target.clone(), by: by.clone() })
            };
            live.map(lost).collect::<Vec<_>>()
        };
        let found = match event {
            LeaseEvent::LeasesGranted { request, waited: Some(_), .. } => {
                vec![(request.holder.agent.clone(), LeaseNews::Granted { targets: request.targets.clone() })]
            }
            LeaseEvent::LeasesExpired { leases, .. } => lost(leases, &None),
            LeaseEvent::LeasesForced { leases, by, .. } => lost(leases, &Some(by.clone())),
            LeaseEvent::ReleaseAnswered { waiting, agent, answer: ReleaseAnswer::Keep { until }, note } => {
                let asker = self.waiting.iter().find(|(number, _)| number == waiting);
                let kept = LeaseNews::Kept { by: agent.clone(), until: *until, note: note.clone() };
                asker.map(|(_, asker)| (asker.request.holder.agent.clone(), kept)).into_iter().collect()
            }
            LeaseEvent::HandoffAnswered { handoff, agent, is_accepted, note } => {
                let offer = self.handoffs.get(handoff).filter(|offer| offer.from != *agent);
                let (handoff, by, is_accepted, note) = (*handoff, agent.clone(), *is_accepted, note.clone());
                let answered = LeaseNews::Answered { handoff, by, is_accepted, note };
                offer.map(|offer| (offer.from.clone(), answered)).into_iter().collect()
            }
            LeaseEvent::UnleasedEdit { path, agent, lease: Some(lease), is_at_risk, .. } => {
                let holder = self.live.get(lease).map(|lease| lease.holder.agent.clone());
                let (path, by, is_at_risk) = (path.clone(), agent.clone(), *is_at_risk);
                let edited = LeaseNews::Edited { lease: *lease, path, by, is_at_risk };
                holder.map(|holder| (holder, edited)).into_iter().collect()
            }
            LeaseEvent::FilesCommitted { commit, files, .. } => {
                let mut by_lease: BTreeMap<_, Vec<String>> = BTreeMap::new();
                for (file, CommittedLease { lease, holder, .. }) in
                    files.iter().filter_map(|file| Some((file, file.foreign(commit)?)))
                {
                    by_lease.entry((holder.clone(), *lease)).or_default().push(file.path.clone());
                }
                let news =
                    |((holder, lease), paths)| (holder, LeaseNews::Committed { lease, paths, commit: commit.clone() });
                by_lease.into_iter().map(news).collect()
            }
            _another => return,
        };
        for (agent, fact) in found {
            self.n_news += 1;
            self.news.push_back(News { number: self.n_news, agent, fact });
            (self.news.len() > NEWS_MAX).then(|| self.news.pop_front());
        }
    }
}
