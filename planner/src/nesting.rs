//! Policy for sub-plans: how one follows its parent plan, and how its end becomes the end of its task.

use crewlog_mq::Timestamp;

use crate::claim::Ending;
use crate::event::{Budget, Command, FailureClass, Outcome, PlannerConfig, TaskStatus};
use crate::plan::{Origin, ParentTask, SubPlan, TaskId, sub_plan_id};
use crate::state::{Phase, PlannerState};
use crate::text::{single_line, truncate};

/// The greatest length of the result or error that a sub-plan reports to its task, in characters.
pub const RESULT_CHARS_MAX: usize = 60_000;
/// The most failed tasks of a sub-plan whose errors are reported.
pub const ERRORS_MAX: usize = 5;
/// The most open tasks, and the most results, of the parent plan that the agent of a sub-plan is shown.
pub const CONTEXT_TASKS_MAX: usize = 100;
/// The greatest length of each of them, in characters.
const CONTEXT_LINE_CHARS_MAX: usize = 600;

/// The task that a plan carries out. A fork of a sub-plan has its parent's origin, and carries out nothing.
pub fn parent_task<'a>(plan: &str, state: &'a PlannerState) -> Option<&'a ParentTask> {
    state.origin.parent.as_ref().filter(|parent| sub_plan_id(parent) == plan)
}

/// The origin of the sub-plan that carries out a task of this plan.
pub fn origin(task: ParentTask, parent_plan: &PlannerState, sub_plan: &SubPlan) -> Origin {
    let request = sub_plan.request.as_ref();
    let planned_by = request.map(|_| format!("request {}", parent_plan.target(&task.plan, task.task)));
    Origin { planned_by, parent: Some(task), depth: parent_plan.origin.depth.saturating_add(1), agent: None }
}

/// The settings of a sub-plan: those of its parent plan, with the budget of its task and the time that is left for it.
pub fn config(parent_plan: &PlannerState, task: TaskId, budget: Budget, now: Timestamp) -> PlannerConfig {
    let deadline_ms = parent_plan.time_left(task, now);
    // The budget of the parent plan may have been lowered since the dispatch.
    let budget = budget.least(parent_plan.left_for_plans());
    PlannerConfig { budget, deadline_ms, standing: false, ..parent_plan.config.clone() }
}

/// The command that brings a sub-plan in line with its parent plan: cancel, pause or resume; none when it is in line.
///
/// A sub-plan that answers a request continues after the request's time limit: late answers are recorded.
pub fn follow(plan: &str, state: &PlannerState, parent_plan: &PlannerState) -> Option<Command> {
    let parent = parent_task(plan, state).filter(|_| matches!(state.phase, Phase::Active | Phase::Paused))?;
    let task = parent_plan.task(parent.task)?;
    let is_awaited_late =
        task.plan.request().is_some() && task.status == TaskStatus::TimedOut && !parent_plan.phase.is_ended();
    let is_over = task.status.is_end() || task.attempts > parent.attempt;
    match parent_plan.phase {
        _ if is_over && !is_awaited_late => (!state.is_cancelled).then(|| Command::CancelFromParent {
            reason: format!("task {} has ended", parent_plan.target(&parent.plan, parent.task)),
        }),
        Phase::Paused if state.phase == Phase::Active => {
            Some(Command::PauseFromParent { reason: format!("plan {} is paused", parent.plan) })
        }
        Phase::Active if state.is_paused_from_parent() => Some(Command::ResumeFromParent),
        Phase::Empty | Phase::Active | Phase::Paused | Phase::Ended(_) => None,
    }
}

/// The end of a task when its sub-plan has ended: the results of the sub-plan's last tasks, or its errors.
pub fn ending(plan: &str, state: &PlannerState, summary: &str, outcome: Outcome) -> Ending {
    let summary = format!("{plan}: {summary}");
    let how = match outcome {
        Outcome::Completed => {
            let is_waited_for = |id| state.tasks.iter().any(|task| task.plan.depends_on.iter().any(|on| on.task == id));
            let last = state.tasks.iter().filter(|task| !is_waited_for(task.plan.id));
            let results = last.filter_map(|task| {
                let result = task.result.as_deref().map(str::trim).filter(|result| !result.is_empty())?;
                Some(format!("{} ({}):\n{result}", task.plan.name(), task.plan.description.lines().next()?))
            });
            let result = std::iter::once(summary).chain(results).collect::<Vec<_>>().join("\n\n");
            return Ending::Completed { result: truncate(&result, RESULT_CHARS_MAX), run: None };
        }
        Outcome::Failed => "it failed",
        Outcome::Cancelled => "it was cancelled",
    };
    let has_failed = |status| matches!(status, TaskStatus::Failed | TaskStatus::TimedOut | TaskStatus::Cancelled);
    let failed = state.tasks.iter().filter(|task| has_failed(task.status));
    let errors = failed.filter_map(|task| Some(format!("task {}: {}", task.plan.name(), task.error.as_deref()?)));
    let error = std::iter::once(format!("{summary}; {how}")).chain(errors.take(ERRORS_MAX)).collect::<Vec<_>>();
    let error = truncate(&error.join("\n"), RESULT_CHARS_MAX);
    Ending::Failed { error, class: FailureClass::Task, run: None }
}

/// The reason why a sub-plan cannot continue without help, if it cannot.
pub fn waits_for(plan: &str, state: &PlannerState) -> Option<String> {
    match (state.phase, state.shortage()) {
        (Phase::Paused, Some(shortage)) => Some(format!("its plan {plan} is paused: {shortage}")),
        (Phase::Paused, None) => Some(format!("its plan {plan} is paused")),
        (Phase::Active, _) if state.open_questions().next().is_some() => {
            Some(format!("it waits for an answer in {plan}"))
        }
        (Phase::Active | Phase::Empty | Phase::Ended(_), _) => None,
    }
}

/// The error of a task that has ended, or was dispatched again, since this attempt.
pub fn ended_meanwhile(parent_plan: &PlannerState, task: TaskId, attempt: u32) -> Option<String> {
    let task = parent_plan.task(task).filter(|task| task.status.is_end() || task.attempts > attempt)?;
    Some(task.error.clone().unwrap_or_default())
}

/// The excerpt of the parent plan for the agent of a sub-plan: its title, its open tasks and its results.
pub fn context(plan: &str, parent_plan: &PlannerState) -> String {
    let line = |text: &str| single_line(text, CONTEXT_LINE_CHARS_MAX);
    let open = parent_plan.tasks.iter().filter(|task| !task.status.is_end()).take(CONTEXT_TASKS_MAX);
    let open = open.map(|task| format!("- open: {}", line(&task.plan.description)));
    let done = parent_plan.tasks.iter().filter_map(|task| {
        let result = task.result.as_deref().filter(|result| !result.trim().is_empty())?;
        let is_done = task.status == TaskStatus::Completed;
        is_done.then(|| format!("- done: {}: {}", line(&task.plan.description), line(result)))
    });
    let mut done = done.rev().take(CONTEXT_TASKS_MAX).collect::<Vec<_>>();
    done.reverse();
    let title = format!("{plan}: {}", parent_plan.title.as_deref().unwrap_or("no title"));
    std::iter::once(title).chain(open).chain(done).collect::<Vec<_>>().join("\n")
}
