//! Forks plans at a position of their history, and names positions. The caller has folded that history.

use crewlog_mq::{Handler, Position};

use crate::error::PlannerError;
use crate::event::{Amendment, Event, Purpose};
use crate::plan::TaskId;
use crate::planner::{CHECKPOINTS_MAX, FORK_DEPTH_MAX, FORK_PAUSE, Planner};
use crate::state::Phase;
use crate::validity::is_checkpoint_name;

impl Planner {
    pub(super) fn fork(
        &self,
        parent: String,
        at: Position,
        reason: String,
        pauses: bool,
        amendments: Vec<Amendment>,
    ) -> Result<Vec<Event>, PlannerError> {
        if self.state.phase == Phase::Empty {
            return Err(PlannerError::NotPlanned);
        }
        // If the history already includes this fork, there is nothing to fork.
        if self.state.parent.as_ref().is_some_and(|known| known.plan == parent && known.at == at) {
            return Err(PlannerError::AlreadyPlanned);
        }
        if self.state.n_ancestors >= FORK_DEPTH_MAX {
            return Err(PlannerError::TooManyForks(FORK_DEPTH_MAX));
        }
        let paused = pauses.then(|| Event::PlanPaused { reason: FORK_PAUSE.to_owned(), from_parent: false });
        // The fork keeps the open questions of executors, so that the next run need not ask again. Other questions come
        // with their tasks, and those of undo tasks stay with the parent.
        let is_undoing = |id: TaskId| self.state.task(id).is_some_and(|task| task.plan.compensates.is_some());
        let asked = self.state.open_questions().filter(|question| question.purpose == Purpose::Executor);
        let asked = asked.filter(|question| !is_undoing(question.task));
        let asked = asked.zip(0..).map(|(question, nth)| {
            self.ask(question.task, question.question.clone(), Purpose::Executor, question.default.clone(), nth)
        });
        let forked = Event::PlanForked { parent, at, reason: reason.clone(), is_draft: pauses };
        let mut events = [forked].into_iter().chain(paused).chain(asked).collect::<Vec<_>>();
        if !amendments.is_empty() {
            // They apply to the fork before any of its tasks begins.
            let mut fork = self.clone();
            events.iter().for_each(|event| fork.apply(event));
            events.extend(fork.amend(amendments, reason)?);
        }
        Ok(events)
    }

    pub(super) fn name_checkpoint(&self, name: String) -> Result<Vec<Event>, PlannerError> {
        if !is_checkpoint_name(&name) {
            return Err(PlannerError::CheckpointName(name));
        }
        if self.state.checkpoints.contains(&name) {
            return Err(PlannerError::CheckpointTaken(name));
        }
        if self.state.checkpoints.len() >= CHECKPOINTS_MAX {
            return Err(PlannerError::TooManyCheckpoints(CHECKPOINTS_MAX));
        }
        Ok(vec![Event::CheckpointNamed { name }])
    }
}
