//! Records edits that no lease of their author covers.

use crewlog_mq::Timestamp;

use super::{ForeignEdit, Lease, LeaseEvent, Leases};
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
}
