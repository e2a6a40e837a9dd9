//! Forks plans at a position of their history, and names positions. The caller has folded that history.

use crewlog_mq::{Handler, Position};

use crate::error::PlannerError;
use crate::event::{Amendment, Event, Purpose};
use crate::plan::TaskId;
use crate::planner::Planner;
use crate::state::Phase;

/// The reason of the pause with which a fork begins.
pub(crate) const FORK_PAUSE: &str = "a fork begins paused";
/// The most plans that the history of a plan goes through: a fork of a fork of a fork, and so on.
pub const FORK_DEPTH_MAX: usize = 64;
/// The most named positions in a plan's history.
pub const CHECKPOINTS_MAX: usize = 1_000;
/// The most characters of such a name.
pub const CHECKPOINT_CHARS_MAX: usize = 64;

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
        let forked = Event::PlanForked { parent, at, reason: reason.clone() };
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

/// True for at most [`CHECKPOINT_CHARS_MAX`] letters, digits, dashes, dots and underscores that are not a number.
pub fn is_checkpoint_name(name: &str) -> bool {
    let is_short = (1..=CHECKPOINT_CHARS_MAX).contains(&name.chars().count());
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let is_number = name.trim_start_matches('-').chars().all(|c| c.is_ascii_digit());
    is_short && is_plain && !is_number
}
