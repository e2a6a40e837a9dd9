//! What of a history a fork goes on with: what had ended, and what is known. Whatever was under way belongs to the other
//! plan.

use crewlog_mq::Position;

use crate::state::{Phase, PlannerState};
use crate::task::Task;

impl PlannerState {
    /// Another plan goes on from here. What has not ended is pending, as if it had never been begun; open questions are
    /// asked anew when their tasks are.
    pub(super) fn fork(&mut self, parent: &str, at: Position, reason: &str) {
        self.parent = Some((parent.to_owned(), at));
        reason.clone_into(&mut self.fork_reason);
        self.n_ancestors += 1;
        // Without the history that it goes on from there is no plan.
        if self.phase == Phase::Empty {
            return;
        }
        self.phase = Phase::Active;
        self.cancelled = false;
        for task in self.tasks.iter_mut().filter(|task| !task.status.is_end()) {
            *task = Task { is_paused: task.is_paused, ..Task::planned(task.plan.clone()) };
        }
        for place in std::mem::take(&mut self.open) {
            self.questions[place].is_withdrawn = true;
        }
        self.conditions.retain(|_, holds| holds.is_some());
        self.past.is_compaction_requested = false;
        self.index_graph();
    }
}
