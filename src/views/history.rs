//! The history of a file: who held leases on it, and which commits changed it.

use std::collections::BTreeMap;
use std::pin::pin;

use crewlog_mq::{Error, Position, Query, Range, Timestamp};
use crewlog_planner::crew::leases::{self, Commit, CommittedLease, GitChange, LeaseEvent, Request};
use crewlog_planner::crew::target::Target;
use futures::TryStreamExt;

use super::{AsOf, PastView};
use crate::ui::text::rfc3339;

/// The most events that are read back.
const READ_MAX: usize = 20_000;
const TYPES: [&str; 7] = [
    "LeasesGranted",
    "LeasesTransferred",
    "LeasesReleased",
    "LeasesExpired",
    "LeasesAbandoned",
    "LeasesForced",
    "FilesCommitted",
];

/// The past of a file, newest first.
#[derive(Debug, Default)]
pub struct FileHistory {
    pub held: Vec<PastLease>,
    pub commits: Vec<PastCommit>,
}

/// A lease on a file, live or not.
#[derive(Debug, Clone)]
pub struct PastLease {
    pub lease: u64,
    pub agent: String,
    pub worktree: String,
    pub task: Option<String>,
    reason: String,
    from: Timestamp,
    /// Unset while it is live.
    until: Option<Timestamp>,
    position: Position,
}

/// A commit of a file.
#[derive(Debug)]
pub struct PastCommit {
    pub commit: Commit,
    pub lease: Option<CommittedLease>,
    at: Timestamp,
    position: Position,
}

impl FileHistory {
    /// The lease at a time, in any worktree: a commit does not say where it was made.
    pub fn held_at(&self, at: Timestamp) -> Option<&PastLease> {
        self.held.iter().find(|held| held.from <= at && held.until.is_none_or(|until| at <= until))
    }

    /// The last lease in a worktree, live or not.
    pub fn held_last(&self, worktree: &str) -> Option<&PastLease> {
        self.held.iter().find(|held| held.worktree == worktree)
    }

    /// The commit with an id of git.
    pub fn commit(&self, id: &str) -> Option<&PastCommit> {
        self.commits.iter().find(|past| past.commit.id == id && past.commit.how == GitChange::Commit)
    }

    /// All of it, newest first.
    pub fn past(&self) -> Vec<PastView> {
        let held = self.held.iter().map(|held| PastView {
            event: "LeasesGranted",
            agent: Some(held.agent.clone()),
            task: held.task.clone(),
            lease: Some(held.lease),
            commit: None,
            reason: held.reason.clone(),
            position: held.position,
            at: rfc3339(held.from),
            until: held.until.map(rfc3339),
        });
        let commits = self.commits.iter().map(|PastCommit { commit, lease, at, position }| PastView {
            event: "FilesCommitted",
            agent: commit.agent.clone(),
            task: commit.task.clone().or_else(|| lease.as_ref()?.task.clone()),
            lease: lease.as_ref().map(|lease| lease.lease),
            commit: Some(commit.id.clone()),
            reason: String::new(),
            position: *position,
            at: rfc3339(*at),
            until: None,
        });
        let mut past: Vec<_> = held.chain(commits).collect();
        past.sort_by_key(|view| std::cmp::Reverse(view.position));
        past
    }
}

impl AsOf {
    /// The history of a file or a pattern, as far as it is read back.
    pub async fn history(&self, of: &Target) -> Result<FileHistory, Error> {
        let query = Query::aggregate(leases::STREAM, self.project()).of_types(TYPES);
        let mut records = pin!(self.store().records(&query, Range::up_to(self.at).backwards()));
        let (mut history, mut ends) = (FileHistory::default(), BTreeMap::new());
        // The next holder of a transferred lease, with the time and the number.
        let mut next = BTreeMap::new();
        for _ in 0..READ_MAX {
            let Some(recorded) = records.try_next().await? else { break };
            let (position, now) = (recorded.position, recorded.created_at);
            match recorded.decode()? {
                LeaseEvent::LeasesGranted { first, request, until, .. } => {
                    let Request { holder, targets, reason, task, ttl, .. } = request;
                    let ttl = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX);
                    let granted = Timestamp(until.0.saturating_sub(ttl));
                    for (lease, _) in (first..).zip(&targets).filter(|(_, target)| of.overlaps(target)) {
                        let mut past = PastLease {
                            lease,
                            agent: holder.agent.clone(),
                            worktree: holder.worktree.clone(),
                            task: task.clone(),
                            reason: reason.clone(),
                            from: granted,
                            until: ends.get(&lease).copied(),
                            position,
                        };
                        let mut chain = vec![past.clone()];
                        while let Some((lease, agent, from, position)) = next.get(&past.lease).cloned() {
                            past = PastLease { lease, agent, from, until: ends.get(&lease).copied(), position, ..past };
                            chain.push(past.clone());
                        }
                        history.held.extend(chain.into_iter().rev());
                    }
                }
                LeaseEvent::LeasesTransferred { leases, first, to, .. } => {
                    for (lease, old) in (first..).zip(leases) {
                        ends.insert(old, now);
                        next.insert(old, (lease, to.clone(), now, position));
                    }
                }
                LeaseEvent::LeasesReleased { leases, .. }
                | LeaseEvent::LeasesExpired { leases, .. }
                | LeaseEvent::LeasesAbandoned { leases, .. }
                | LeaseEvent::LeasesForced { leases, .. } => ends.extend(leases.into_iter().map(|lease| (lease, now))),
                LeaseEvent::FilesCommitted { commit, files, at } => {
                    let overlaps = |path: &str| Target::literal(path).is_ok_and(|path| of.overlaps(&path));
                    if let Some(file) = files.into_iter().find(|file| overlaps(&file.path)) {
                        history.commits.push(PastCommit { commit, lease: file.lease, at, position });
                    }
                }
                // The query selects no other types.
                _another => {}
            }
        }
        Ok(history)
    }
}
