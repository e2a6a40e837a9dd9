//! A plan with its tasks and questions, as `show` prints it. All keys are present; absent values are null or empty.

use crewlog_mq::Position;
use crewlog_planner::event::{Budget, Timer, Usage};
use crewlog_planner::lifecycle::{Situation, State, States};
use crewlog_planner::plan::{Condition, Parent, TaskId};
use crewlog_planner::state::{Question, Task};
use crewlog_planner::view::PlanView;
use serde::Serialize;
use utoipa::ToSchema;

use super::AsOf;
use super::points::ForkJson;
use crate::ui::text::rfc3339;

/// A plan as of a position.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PlanShown {
    pub plan: String,
    pub title: Option<String>,
    #[schema(value_type = String)]
    pub status: State,
    #[schema(value_type = i64)]
    pub at: Position,
    /// For a fork: its parent, the position and the reason.
    #[schema(value_type = Option<Object>)]
    pub parent: Option<Parent>,
    pub tasks: Vec<TaskShown>,
    pub questions: Vec<QuestionShown>,
    pub deadline: Option<String>,
    /// The task whose failure stopped it.
    pub stopped_by: Option<String>,
    /// The usage of its tasks.
    #[schema(value_type = Object)]
    pub spent: Usage,
    pub budget: BudgetShown,
    pub context_summary: String,
    /// The settings that differ from the defaults.
    pub settings: Vec<String>,
    /// The plans that were forked from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forks: Vec<ForkJson>,
}

/// The limits of a plan; null for no limit.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BudgetShown {
    pub tokens: Option<u64>,
    /// In millionths of the unit in which agents report costs.
    pub cost_micros: Option<u64>,
    pub duration_ms: Option<u64>,
}

/// A task of a plan.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TaskShown {
    /// Its label, or its number.
    pub id: String,
    pub description: String,
    pub kind: &'static str,
    #[schema(value_type = String)]
    pub state: State,
    pub depends_on: Vec<String>,
    pub command: Option<String>,
    pub condition: Option<String>,
    pub priority: Option<String>,
    pub assignee: Option<String>,
    pub notes: Vec<String>,
    pub files: Vec<String>,
    pub is_paused: bool,
    pub attempts: u32,
    pub result: Option<String>,
    pub error: Option<String>,
    /// The last executor that held it.
    pub executor: Option<String>,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    /// While it runs on this machine: the last line that its program printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_output: Option<LineShown>,
    pub deadline: Option<String>,
    pub retry_at: Option<String>,
    /// The lease of another that keeps it from its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// The task that it undoes.
    pub compensates: Option<String>,
    /// The sub-plan that carries it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// A line of an output.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LineShown {
    pub line: String,
    pub at: String,
}

/// A question of a plan.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct QuestionShown {
    pub id: String,
    pub task: Option<String>,
    pub question: String,
    pub answer: Option<String>,
    pub default: Option<String>,
    pub is_by_default: bool,
    pub is_withdrawn: bool,
    pub deadline: Option<String>,
}

impl PlanShown {
    /// A plan as of a position, without its forks.
    pub fn of(plan: &str, at: Position, view: &PlanView, states: &States) -> Self {
        Self::of_tasks(plan, at, view, states, |_| true)
    }

    /// The same with only some tasks and their questions.
    pub fn of_tasks(
        plan: &str,
        at: Position,
        view: &PlanView,
        states: &States,
        is_shown: impl Fn(TaskId) -> bool,
    ) -> Self {
        let state = view.state();
        let Budget { tokens, cost_micros, duration_ms } = state.config.budget;
        let tasks = state.tasks.iter().filter(|task| is_shown(task.plan.id));
        let questions = state.questions.iter().filter(|question| is_shown(question.task));
        Self {
            plan: plan.to_owned(),
            title: state.title.clone(),
            status: states.plan.state,
            at,
            parent: state.parent.clone(),
            tasks: tasks.map(|task| TaskShown::of(plan, view, task, &states.task(task.plan.id))).collect(),
            questions: questions.map(|question| QuestionShown::of(view, question)).collect(),
            deadline: state.due(Timer::Plan).map(rfc3339),
            stopped_by: state.stopped_by.and_then(|task| name_of(view, task)),
            spent: state.spent(),
            budget: BudgetShown { tokens, cost_micros, duration_ms },
            context_summary: state.context_summary().to_owned(),
            settings: state.config.words(),
            forks: Vec::new(),
        }
    }
}

impl AsOf {
    /// Adds to a plan as of now what its running tasks printed last.
    pub fn with_outputs(&self, mut plan: PlanShown, view: &PlanView) -> PlanShown {
        let Some(files) = self.crew().roster().and_then(|roster| roster.outputs.as_ref()) else { return plan };
        let running = plan.tasks.iter_mut().zip(&view.state().tasks).filter(|(shown, _)| shown.state == State::Running);
        for (shown, task) in running.filter(|_| !self.is_past) {
            let last = files.last_lines(&plan.plan, task.plan.id, task.attempts, 1);
            shown.last_output = last.map(|last| LineShown { line: last.lines, at: rfc3339(last.at) });
        }
        plan
    }
}

/// The label of a task, or its number.
pub fn name_of(view: &PlanView, task: TaskId) -> Option<String> {
    view.state().task(task).map(|task| task.plan.name())
}

impl TaskShown {
    fn of(plan: &str, view: &PlanView, task: &Task, now: &Situation) -> Self {
        let (state, step) = (view.state(), &task.plan);
        let times = view.times(step.id);
        let depends_on = step.depends_on.iter().map(|one| name_of(view, one.task).unwrap_or_default());
        Self {
            id: step.name(),
            description: step.description.clone(),
            kind: step.kind.as_str(),
            state: now.state,
            depends_on: depends_on.collect(),
            command: step.command.clone(),
            condition: step.condition.as_ref().map(Condition::words),
            priority: step.priority.clone(),
            assignee: step.assignee.clone(),
            notes: step.notes.clone(),
            files: step.files.clone(),
            is_paused: task.is_paused,
            attempts: task.attempts,
            result: view.result(task).map(str::to_owned),
            error: task.error.clone(),
            executor: times.executor(),
            started_at: times.started_at.map(rfc3339),
            ended_at: times.ended_at.map(rfc3339),
            last_output: None,
            deadline: state.due(Timer::Task(step.id)).map(rfc3339),
            retry_at: state.due(Timer::Retry(step.id)).map(rfc3339),
            waits_for: now.lease().map(str::to_owned),
            compensates: step.compensates.and_then(|task| name_of(view, task)),
            plan: task.sub_plan_id(plan),
        }
    }
}

impl QuestionShown {
    fn of(view: &PlanView, question: &Question) -> Self {
        Self {
            id: question.id.to_string(),
            task: name_of(view, question.task),
            question: question.question.clone(),
            answer: question.answer.clone(),
            default: question.default.as_ref().map(|default| default.answer.clone()),
            is_by_default: question.is_by_default,
            is_withdrawn: question.is_withdrawn,
            deadline: view.state().due(Timer::Question(question.id)).map(rfc3339),
        }
    }
}
