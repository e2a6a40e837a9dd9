//! What a plan that has not ended waits for, by name. It looks and decides nothing.

use crewlog_mq::Timestamp;

use crate::event::{QuestionId, TaskStatus, Timer};
use crate::plan::TaskId;
use crate::state::{Phase, PlannerState};

/// Something that a plan waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The end of a task that was dispatched.
    Task(TaskId),
    /// An answer.
    Question(QuestionId),
    /// That the plan is resumed.
    PausedPlan,
    /// That a task is resumed.
    PausedTask(TaskId),
    /// A timer, with its due time in log time once it is set.
    Timer(Timer, Option<Timestamp>),
    /// That a standing plan is given something to do.
    Work,
}

impl PlannerState {
    /// What the plan waits for; nothing when it has ended or was never made, and never nothing else.
    #[must_use]
    pub fn waits_for(&self) -> Vec<Wait> {
        if matches!(self.phase, Phase::Empty | Phase::Ended(_)) {
            return Vec::new();
        }
        let mut waits = Vec::new();
        if self.phase == Phase::Paused {
            waits.push(Wait::PausedPlan);
        }
        for task in self.graph.open.iter().map(|index| &self.tasks[*index]) {
            match task.status {
                TaskStatus::Running => waits.push(Wait::Task(task.plan.id)),
                TaskStatus::Planned if task.is_paused => waits.push(Wait::PausedTask(task.plan.id)),
                TaskStatus::Planned
                | TaskStatus::NeedsClarification
                | TaskStatus::Completed
                | TaskStatus::Failed
                | TaskStatus::TimedOut
                | TaskStatus::Cancelled
                | TaskStatus::Skipped => {}
            }
        }
        waits.extend(self.open_questions().map(|question| Wait::Question(question.id)));
        let is_ahead = |timer: &Timer| match timer {
            Timer::Plan => !self.graph.open.is_empty(),
            Timer::Task(task) | Timer::Retry(task) => self.task(*task).is_some_and(|task| !task.status.is_end()),
            Timer::Question(question) => self.question(*question).is_some_and(|question| question.is_open()),
        };
        let set = self.timers.iter().map(|(timer, due)| (*timer, Some(*due)));
        let unset = self.unset.iter().filter(|timer| matches!(timer, Timer::Retry(_))).map(|timer| (*timer, None));
        let ahead = set.chain(unset).filter(|(timer, _)| is_ahead(timer));
        waits.extend(ahead.map(|(timer, due)| Wait::Timer(timer, due)));
        if self.graph.open.is_empty() {
            waits.push(Wait::Work);
        }
        waits
    }
}
