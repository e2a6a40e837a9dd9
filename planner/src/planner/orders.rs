//! Decides on the orders of people: cancel, pause, resume, retry.

use crate::error::PlannerError;
use crate::event::{Event, TaskStatus};
use crate::plan::{Condition, TaskId};
use crate::planner::{Planner, end};
use crate::state::{Phase, Task};

impl Planner {
    pub(super) fn cancel_task(&self, id: TaskId, reason: &str) -> Result<Vec<Event>, PlannerError> {
        let task = self.state.task(id).ok_or(PlannerError::UnknownTask(id))?;
        if task.status.is_end() {
            return Ok(Vec::new());
        }
        // The remaining undo tasks still run.
        let unblocks = task.plan.compensates.is_some();
        Ok(vec![end(id, TaskStatus::Cancelled, None, Some(reason.to_owned()), unblocks)])
    }

    pub(super) fn cancel_plan(&self, reason: &str) -> Vec<Event> {
        if let Phase::Ended(_) = self.state.phase {
            return Vec::new();
        }
        let open = self.state.tasks.iter().filter(|task| !task.status.is_end());
        let cancelled = open.map(|task| end(task.plan.id, TaskStatus::Cancelled, None, Some(reason.to_owned()), false));
        [Event::PlanCancelled { reason: reason.to_owned() }].into_iter().chain(cancelled).collect()
    }

    pub(super) fn pause(&self, reason: String) -> Result<Vec<Event>, PlannerError> {
        match self.state.phase {
            // A plan that a person paused must not resume with its parent.
            Phase::Paused if !self.state.paused_from_parent => Ok(Vec::new()),
            Phase::Active | Phase::Paused => Ok(vec![Event::PlanPaused { reason, from_parent: false }]),
            Phase::Empty => Ok(Vec::new()),
            Phase::Ended(_) => Err(PlannerError::PlanEnded),
        }
    }

    /// True while there are open undo tasks.
    pub(super) fn is_being_undone(&self) -> bool {
        self.state.graph.n_undoing > 0
    }

    pub(super) fn pause_task(&self, id: TaskId, reason: String) -> Result<Vec<Event>, PlannerError> {
        let task = self.state.task(id).ok_or(PlannerError::UnknownTask(id))?;
        if task.status.is_end() {
            return Err(PlannerError::TaskEnded(task.plan.name(), task.status));
        }
        Ok(if task.is_paused { Vec::new() } else { vec![Event::TaskPaused { task_id: id, reason }] })
    }

    pub(super) fn resume_task(&self, id: TaskId) -> Result<Vec<Event>, PlannerError> {
        let task = self.state.task(id).ok_or(PlannerError::UnknownTask(id))?;
        Ok(if task.is_paused { vec![Event::TaskResumed { task_id: id }] } else { Vec::new() })
    }

    pub(super) fn retry(&self, task: Option<TaskId>) -> Result<Vec<Event>, PlannerError> {
        let is_retryable = |status| {
            matches!(status, TaskStatus::Failed | TaskStatus::TimedOut | TaskStatus::Cancelled | TaskStatus::Skipped)
        };
        if let Some(id) = task {
            let task = self.state.task(id).ok_or(PlannerError::UnknownTask(id))?;
            if !is_retryable(task.status) {
                return Err(PlannerError::NotRetryable(task.plan.name(), task.status));
            }
        }
        let is_asked = |other: &Task| match task {
            Some(id) => other.plan.id == id || other.stopped_by == Some(id),
            None => is_retryable(other.status) && !other.is_left_out() && other.plan.compensates.is_none(),
        };
        let mut reopened = self.state.tasks.iter().map(is_asked).collect::<Vec<_>>();
        // Undone tasks must run again before the failed ones are retried.
        let goes_on =
            self.state.tasks.iter().zip(&reopened).any(|(task, is_open)| *is_open && task.plan.compensates.is_none());
        if goes_on && self.is_being_undone() {
            return Err(PlannerError::BeingUndone);
        }
        for (index, task) in self.state.tasks.iter().enumerate() {
            reopened[index] |= goes_on && task.is_compensated && task.status == TaskStatus::Completed;
        }
        self.reopen_dependants(&mut reopened);
        if let Some(task) = task.and_then(|id| self.state.task(id)) {
            let is_closed = |task: &&Task| self.state.index(task.plan.id).is_some_and(|index| !reopened[index]);
            let blocker_of = |task: &&Task| self.state.failed_blockers(&task.plan).find(is_closed);
            if let Some(blocker) = std::iter::successors(Some(task), blocker_of).skip(1).last() {
                return Err(PlannerError::Blocked(task.plan.name(), blocker.plan.name(), blocker.status));
            }
        }
        let ids = self.state.tasks.iter().zip(reopened).filter(|(_, is_reopened)| *is_reopened);
        let task_ids = ids.map(|(task, _)| task.plan.id).collect::<Vec<_>>();
        Ok(if task_ids.is_empty() { Vec::new() } else { vec![Event::TasksReopened { task_ids }] })
    }

    /// Reopens the tasks that were skipped because of a reopened task, or of a condition that it decides again.
    pub(super) fn reopen_dependants(&self, reopened: &mut [bool]) {
        let mut to_follow = (0..reopened.len()).filter(|index| reopened[*index]).collect::<Vec<_>>();
        while let Some(index) = to_follow.pop() {
            for dependant in &self.state.graph.dependants[index] {
                let task = &self.state.tasks[*dependant];
                let decides = |condition: &Condition| condition.outcome_of.contains(&self.state.tasks[index].plan.id);
                let is_undecided = task.plan.condition.as_ref().is_some_and(decides);
                if !reopened[*dependant] && task.status == TaskStatus::Skipped && (!task.unblocks || is_undecided) {
                    reopened[*dependant] = true;
                    to_follow.push(*dependant);
                }
            }
        }
    }

    /// Retries now a task that waits for its retry delay.
    pub(super) fn retry_now(&self, id: TaskId) -> Result<Vec<Event>, PlannerError> {
        let task = self.state.task(id).ok_or(PlannerError::UnknownTask(id))?;
        if self.state.phase == Phase::Paused {
            return Err(PlannerError::PlanPaused);
        }
        if task.retry_ms.is_none() {
            return Err(PlannerError::NotDelayed(task.plan.name(), task.status));
        }
        Ok(vec![Event::RetryHastened { task_id: id }])
    }
}
