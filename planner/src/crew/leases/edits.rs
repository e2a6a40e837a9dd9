//! Records edits that no lease of their author covers.

use crewlog_mq::Timestamp;

use super::{Commit, CommittedFile, CommittedLease, ForeignEdit, GitChange, Lease, LeaseEvent, Leases};
use crate::crew::names::is_below;
use crate::crew::target::Target;

impl Leases {
    /// Records an edit without a lease. A watcher does not know the agent, which may be the holder.
    pub(super) fn see(
        &self,
        worktree: String,
        path: Target,
        agent: Option<String>,
        now: Timestamp,
    ) -> Option<LeaseEvent> {
        let here = self.overlapping(&path, now).filter(|(_, lease)| lease.holder.worktree == worktree);
        let mut lease = None;
        for (number, found) in here {
            if agent.as_ref().is_none_or(|agent| is_below(agent, &found.holder.agent)) {
                return None;
            }
            lease = lease.or(found.is_exclusive.then_some(number));
        }
        Some(LeaseEvent::UnleasedEdit { worktree, path: path.path, agent, lease, is_at_risk: false, at: now })
    }

    /// Records an edit under the lease of another, unless the lease has ended in between.
    pub(super) fn see_foreign(&self, edit: ForeignEdit, now: Timestamp) -> Option<LeaseEvent> {
        let ForeignEdit { worktree, path, agent, lease, is_at_risk } = edit;
        let held = self.overlapping(&path, now).find(|(number, _)| *number == lease)?.1;
        let is_own = |held: &Lease| agent.as_ref().is_some_and(|agent| is_below(agent, &held.holder.agent));
        let (is_foreign, path) = (held.holder.worktree == worktree && !is_own(held), path.path);
        let edit = LeaseEvent::UnleasedEdit { worktree, path, agent, lease: Some(lease), is_at_risk, at: now };
        is_foreign.then_some(edit)
    }

    /// Records a commit of an agent or of leased files. Of another command of git, only the files that another leases count.
    pub(super) fn see_commit(&self, commit: Commit, paths: &[Target], now: Timestamp) -> Option<LeaseEvent> {
        let over = |path: &Target| {
            let here =
                self.overlapping(path, now).filter(|(_, it)| it.is_exclusive && it.holder.worktree == commit.worktree);
            let first = here.min_by_key(|(_, it)| commit.is_by(&it.holder.agent));
            first.map(|(lease, Lease { holder, token, task, .. })| CommittedLease {
                lease,
                token: *token,
                holder: holder.agent.clone(),
                task: task.clone(),
            })
        };
        let mut files: Vec<_> =
            paths.iter().map(|path| CommittedFile { path: path.path.clone(), lease: over(path) }).collect();
        if commit.how != GitChange::Commit {
            files.retain(|file| file.foreign(&commit).is_some());
        }
        let is_recorded =
            if commit.agent.is_some() { !files.is_empty() } else { files.iter().any(|it| it.lease.is_some()) };
        is_recorded.then_some(LeaseEvent::FilesCommitted { commit, files, at: now })
    }
}

impl Commit {
    /// True if a holder's lease covers what the commit's agent does.
    fn is_by(&self, holder: &str) -> bool {
        self.agent.as_ref().is_some_and(|agent| is_below(agent, holder))
    }
}

impl CommittedFile {
    /// The lease of another than the commit's agent.
    #[must_use]
    pub fn foreign(&self, commit: &Commit) -> Option<&CommittedLease> {
        self.lease.as_ref().filter(|lease| !commit.is_by(&lease.holder))
    }
}
