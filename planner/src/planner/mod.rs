//! The planner: a pure handler that decides what happens next in a plan.
//!
//! Each command is decided against the current state; then everything that can start is scheduled. The planner has no
//! effects: executors start from `TaskDispatched`.

mod amending;
mod clarifying;
mod compensation;
mod forking;
mod initialize;
mod orders;
pub(crate) mod reports;
mod schedule;
mod settings;
mod timing;

use crewlog_mq::{Handler, Snapshot};
use serde::{Deserialize, Deserializer, Serialize};

pub use crate::error::PlannerError;
use crate::event::{Command, Event, TaskStatus};
use crate::plan::TaskId;
use crate::prompt;
use crate::state::{Phase, PlannerState};
pub use crate::validity::{CHECKPOINT_CHARS_MAX, is_checkpoint_name};

/// The most tasks that a plan may run at once.
pub const PARALLELISM_MAX: usize = 1_000;
/// The most amendments, or changed settings, of one order.
pub const AMENDMENTS_MAX: usize = 1_000;
/// The most assignees whose tasks a plan may limit.
pub const LIMITED_MAX: usize = 1_000;

/// The greatest length of an answer, in bytes. Commands find answers in their environment, which has a limit too.
pub const ANSWER_BYTES_MAX: usize = 8 << 10;

/// The greatest length of a question from people or programs, in bytes; that of an answer, since it may have a default.
pub const QUESTION_BYTES_MAX: usize = ANSWER_BYTES_MAX;
/// The most open questions of a plan; beyond it people and programs cannot ask another.
pub const QUESTIONS_OPEN_MAX: usize = 1_000;
/// How often the executors of one task may ask before it fails.
pub const QUESTIONS_OF_TASK_MAX: usize = 20;

/// The reason of the pause with which a fork begins.
pub(crate) const FORK_PAUSE: &str = "a fork begins paused";
/// The most plans that the history of a plan goes through: a fork of a fork of a fork, and so on.
pub const FORK_DEPTH_MAX: usize = 64;
/// The most named positions in a plan's history.
pub const CHECKPOINTS_MAX: usize = 1_000;

/// The planner of one plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Planner {
    #[serde(deserialize_with = "with_graph")]
    state: PlannerState,
}

impl Snapshot for Planner {
    const FOLD: &'static str = "planner";
    const VERSION: u32 = 4;
}

fn with_graph<'de, D: Deserializer<'de>>(from: D) -> Result<PlannerState, D::Error> {
    let mut state = PlannerState::deserialize(from)?;
    state.index_graph();
    Ok(state)
}

impl Planner {
    /// The state of the plan.
    pub fn state(&self) -> &PlannerState {
        &self.state
    }
}

impl Handler for Planner {
    type Command = Command;
    type Event = Event;
    type Error = PlannerError;

    fn decide(&self, command: Command) -> Result<Vec<Event>, PlannerError> {
        match command {
            Command::Initialize { proposal, attachments, config } => self.initialize(*proposal, attachments, config),
            Command::Fork { parent, at, reason, pauses, amendments } => {
                self.fork(parent, at, reason, pauses, amendments)
            }
            _ if self.state.phase == Phase::Empty => Err(PlannerError::NotPlanned),
            Command::NameCheckpoint { name } => self.name_checkpoint(name),
            Command::HandleExecutorEvent { task, event } => self.handle(task, event),
            Command::Continue => Ok(Vec::new()),
            Command::SetTimers { now } => Ok(self.set_timers(now)),
            Command::FireTimer { timer, due } => Ok(self.fire_timer(timer, due)),
            Command::CompactContext { max_tokens } => {
                Ok(prompt::compact(&self.state, max_tokens).into_iter().collect())
            }
            Command::Cancel { task: Some(task), reason } => self.cancel_task(task, &reason),
            Command::Cancel { task: None, reason } => Ok(self.cancel_plan(&reason)),
            Command::Pause { reason } => self.pause(reason),
            Command::Resume if self.state.phase == Phase::Paused => Ok(vec![Event::PlanResumed {}]),
            Command::PauseFromParent { reason } if self.state.phase == Phase::Active => {
                Ok(vec![Event::PlanPaused { reason, from_parent: true }])
            }
            // Only a pause that came from the parent ends with the parent's.
            Command::ResumeFromParent if self.state.is_paused_from_parent() => Ok(vec![Event::PlanResumed {}]),
            // A plan that is already cancelled may continue to undo its tasks.
            Command::CancelFromParent { reason } if !self.state.is_cancelled => Ok(self.cancel_plan(&reason)),
            Command::Resume
            | Command::PauseFromParent { .. }
            | Command::ResumeFromParent
            | Command::CancelFromParent { .. } => Ok(Vec::new()),
            Command::Retry { task } => self.retry(task),
            Command::RetryNow { task } => self.retry_now(task),
            Command::CancelAndUndo { reason } => Ok(self.cancel_and_undo(&reason)),
            Command::Answer { question, answer } => self.answer(question, answer, None),
            Command::Withdraw { question, reason } => self.withdraw(question, &reason),
            Command::Ask { task, question, default } => self.ask_of(task, question, default),
            Command::AnswerAndAsk { question, answer, further } => self.answer(question, answer, Some(further)),
            Command::Amend { amendments, reason } => self.amend(amendments, reason),
            Command::Configure { changes, reason } => self.configure(changes, reason),
            Command::PauseTask { task, reason } => self.pause_task(task, reason),
            Command::ResumeTask { task } => self.resume_task(task),
        }
    }

    fn follow(&self, _: &[Event]) -> Vec<Event> {
        // Tasks dispatched next get the compacted history in their prompts.
        let next = prompt::due(&self.state).map_or_else(|| self.schedule(), |compacted| vec![compacted]);
        debug_assert!(
            !next.is_empty() || prompt::is_within_budget(&self.state),
            "the history is compacted before it is too long"
        );
        next
    }

    fn apply(&mut self, event: &Event) {
        self.state.apply(event);
    }
}

/// A change of status, usually an end.
fn end(task_id: TaskId, status: TaskStatus, result: Option<String>, error: Option<String>, unblocks: bool) -> Event {
    Event::TaskStatusUpdated { task_id, status, result, error, unblocks }
}
