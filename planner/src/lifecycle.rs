//! The state of a task and of a plan in one word. Every list, view and exit code derives from it.
//!
//! It follows from the fold of the plan ([`PlanView`]) and from the knowledge of a reader ([`Observed`]): live holders,
//! executors, and the states of sub-plans. `docs/states.md` explains each state.

use crewlog_mq::Timestamp;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::event::{Outcome, QuestionId, TaskStatus, Timer};
use crate::plan::{NodeKind, TaskId, TaskPlan};
use crate::state::{Phase, PlannerState, Question, Task};
use crate::view::PlanView;

/// The state of a task or a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// A task before it is not done.
    #[default]
    Planned,
    /// It can start, and nobody has taken it.
    Ready,
    /// A live worker or agent holds it.
    Running,
    /// Only a person can move it.
    WaitingForYou,
    /// It continues by itself: [`Situation::wait`] has the reason for the wait.
    Waiting,
    /// Its worker or agent died.
    Interrupted,
    /// Paused by a person, by a budget or with its parent plan.
    Paused,
    /// It ended with a result.
    Done,
    /// It ended with an error.
    Failed,
    /// It ended without having started.
    Skipped,
    /// A person ended it.
    Cancelled,
}

impl State {
    /// All states.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;

    /// The name as written in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The name for people.
    pub fn words(self) -> &'static str {
        if self == Self::WaitingForYou { "waiting for you" } else { self.as_str() }
    }

    /// True when only a retry can change it.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Skipped | Self::Cancelled)
    }

    /// The state of an ended plan.
    pub const fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Done,
            Outcome::Failed => Self::Failed,
            Outcome::Cancelled => Self::Cancelled,
        }
    }

    /// The state of a task that has ended, by the status of an event.
    pub const fn of_end(status: TaskStatus) -> Option<Self> {
        match status {
            TaskStatus::Completed => Some(Self::Done),
            TaskStatus::Failed | TaskStatus::TimedOut => Some(Self::Failed),
            TaskStatus::Cancelled => Some(Self::Cancelled),
            TaskStatus::Skipped => Some(Self::Skipped),
            TaskStatus::Planned | TaskStatus::Running | TaskStatus::NeedsClarification => None,
        }
    }

    /// The state that decides over a plan comes first.
    const fn rank(self) -> u8 {
        match self {
            Self::Running => 0,
            Self::Interrupted => 1,
            Self::Ready => 2,
            Self::WaitingForYou | Self::Paused => 3,
            Self::Waiting => 4,
            Self::Planned | Self::Done | Self::Failed | Self::Skipped | Self::Cancelled => 5,
        }
    }
}

/// The reason for a wait, with its end in log time where that is known.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
#[expect(missing_docs, reason = "names and types say what the fields hold")]
pub enum Wait {
    /// The next attempt after a failure; no time until a host sets the timer.
    Retry { until: Option<Timestamp> },
    /// The end of a rate limit of its executor; no time until a host sets the timer.
    Limit { until: Option<Timestamp> },
    /// The answer to a question.
    Answer { question: QuestionId },
    /// The answer to a question, or its default answer.
    Default { question: QuestionId, until: Option<Timestamp> },
    /// A person's work: no executor and no agent takes the task.
    Work,
    /// A person's permission: too many agents were lost with the task.
    Unpark,
    /// The retry of the task whose failure stopped the plan.
    Stopped { by: TaskId },
    /// A place among the tasks that run at once.
    Place,
    /// The end of a lease on its files.
    Files { lease: String },
    /// The end of a running task, which may use less of the budget than is reserved for it.
    Budget,
    /// Its sub-plan.
    SubPlan { plan: String },
    /// An agent of the crew: no worker takes the task.
    Agent,
    /// More tasks: a standing plan stays open.
    Tasks,
}

/// A state, and the reason for a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Situation {
    /// The state.
    pub state: State,
    /// For [`State::Waiting`] and [`State::WaitingForYou`], and for a ready task that only an agent takes.
    pub wait: Option<Wait>,
}

impl Situation {
    /// The lease that keeps the task from its files.
    #[must_use]
    pub fn lease(&self) -> Option<&str> {
        if let Some(Wait::Files { lease }) = &self.wait { Some(lease) } else { None }
    }
}

impl From<State> for Situation {
    fn from(state: State) -> Self {
        Self { state, wait: None }
    }
}

/// The party that takes a dispatched task without a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    /// An executor of a worker.
    Worker,
    /// An executor of a worker that waits for a rate limit until then.
    Limited(Timestamp),
    /// An agent of the crew.
    Agent,
    /// Nobody, so it is a person's.
    Nobody,
}

/// The knowledge of a reader besides the events of the plan.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// The log time of the head; unset at a past position, where no timer is overdue.
    pub now: Option<Timestamp>,
    /// True for a holder that is alive. At a past position each holder is, until the event that ends its claim.
    pub is_live: &'a dyn Fn(&Holder) -> bool,
    /// The taker of a task that has no command and no sub-plan.
    pub taker: &'a dyn Fn(&TaskPlan) -> Taker,
    /// The state of a sub-plan; unset if there is no such plan.
    pub sub_plan: &'a dyn Fn(&str) -> Option<State>,
    /// The lease of another that keeps a task of a plan from its files.
    pub lease: &'a dyn Fn(&PlannerState, &TaskPlan) -> Option<String>,
}

impl Default for Observed<'_> {
    /// Nothing but the log: holders are alive, and tasks without a command are for people.
    fn default() -> Self {
        Self { now: None, is_live: &|_| true, taker: &|_| Taker::Nobody, sub_plan: &|_| None, lease: &|_, _| None }
    }
}

/// The states of a plan and of all its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct States {
    /// Of the plan.
    pub plan: Situation,
    /// Of its tasks, in the order of planning.
    pub tasks: Vec<(TaskId, Situation)>,
}

impl States {
    /// The states of a plan and its tasks. `plan` is its id.
    pub fn of(plan: &str, view: &PlanView, observed: &Observed<'_>) -> Self {
        let tasks = view.state().tasks.iter().map(|task| (task.plan.id, of_task(plan, view, task, observed)));
        let tasks: Vec<_> = tasks.collect();
        let plan = of_tasks(view.state(), tasks.iter().map(|(_, task)| task.clone()), observed.now);
        Self { plan, tasks }
    }

    /// The state of a task; planned for one that the plan does not have.
    pub fn task(&self, id: TaskId) -> Situation {
        let place = self.tasks.binary_search_by_key(&id, |(task, _)| *task).ok();
        place.map_or_else(|| State::Planned.into(), |place| self.tasks[place].1.clone())
    }

    /// True while workers can advance the plan without a person; `runs` says which tasks they run.
    pub fn go_on(&self, runs: impl Fn(TaskId) -> bool) -> bool {
        self.tasks.iter().any(|(task, Situation { state, wait })| match (state, wait) {
            (State::Running | State::Interrupted | State::Ready, _) => runs(*task),
            (State::Waiting, Some(Wait::Retry { .. } | Wait::Limit { .. } | Wait::SubPlan { .. })) => runs(*task),
            (State::WaitingForYou, Some(wait)) => matches!(wait, Wait::Default { .. }),
            (State::Waiting | State::WaitingForYou | State::Planned | State::Paused, _) => false,
            (State::Done | State::Failed | State::Skipped | State::Cancelled, _) => false,
        })
    }
}

/// The state of a plan by the log alone. `plan` is its id.
pub fn of_log(plan: &str, view: &PlanView) -> State {
    let (state, observed) = (view.state(), Observed::default());
    of_tasks(state, state.open_tasks().map(|task| of_task(plan, view, task, &observed)), None).state
}

fn of_tasks(state: &PlannerState, tasks: impl Iterator<Item = Situation>, now: Option<Timestamp>) -> Situation {
    match state.phase {
        Phase::Ended(outcome) => return State::of_outcome(outcome).into(),
        Phase::Empty => return State::Planned.into(),
        Phase::Paused => return State::Paused.into(),
        Phase::Active => {}
    }
    // A retry that is due and not started: the plan can continue, and nobody runs it.
    let is_overdue = |task: &Situation| match (&task.wait, now) {
        (Some(Wait::Retry { until } | Wait::Limit { until }), Some(now)) => until.is_none_or(|until| until <= now),
        _not_at_the_head => false,
    };
    let tasks = tasks.map(|task| if is_overdue(&task) { State::Ready.into() } else { task });
    let first = tasks.filter(|task| !task.state.is_end()).min_by_key(|task| (task.state.rank(), task.wait.is_some()));
    match (first, held_by_plan(state)) {
        (Some(task), _) if task.state.rank() <= State::Interrupted.rank() => task,
        (_, Some(stopped)) => stopped,
        (None, None) if state.waits_for_work() => Situation { state: State::Waiting, wait: Some(Wait::Tasks) },
        // Nothing runs and nothing is paused: the planner has yet to act.
        (None, None) => State::Ready.into(),
        (Some(task), None) => match task.state {
            State::Planned => State::Ready.into(),
            State::Paused => State::WaitingForYou.into(),
            _as_the_task => task,
        },
    }
}

/// The state of a task. `plan` is the id of its plan.
pub fn of_task(plan: &str, view: &PlanView, task: &Task, observed: &Observed<'_>) -> Situation {
    match task.status {
        TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::TimedOut
        | TaskStatus::Cancelled
        | TaskStatus::Skipped => State::of_end(task.status).unwrap_or_default().into(),
        TaskStatus::NeedsClarification => waits_for_answers(view.state(), view.state().questions_of(task.plan.id)),
        TaskStatus::Planned => of_planned(view.state(), task),
        TaskStatus::Running => of_dispatched(plan, view, task, observed),
    }
}

/// The task continues once all its questions have answers.
fn waits_for_answers<'a>(state: &PlannerState, questions: impl Iterator<Item = &'a Question>) -> Situation {
    let open = questions.filter(|question| question.is_open());
    let waits = open.map(|question| match Timer::Question(question.id) {
        timer if state.is_set(timer) => (true, state.due(timer), question.id),
        _without_default => (false, None, question.id),
    });
    let wait = waits.max_by_key(|(is_default, until, _)| (!is_default, *until));
    let wait = wait.map(|(is_default, until, question)| match is_default {
        true => Wait::Default { question, until },
        false => Wait::Answer { question },
    });
    Situation { state: State::WaitingForYou, wait }
}

fn of_planned(state: &PlannerState, task: &Task) -> Situation {
    let id = task.plan.id;
    if task.is_paused {
        return State::Paused.into();
    }
    if !state.has_met_dependencies(id) {
        return State::Planned.into();
    }
    let asked = task
        .plan
        .condition_key()
        .and_then(|key| state.open_questions().find(|question| question.condition.as_ref() == Some(&key)));
    if let Some(question) = asked {
        return waits_for_answers(state, std::iter::once(question));
    }
    let waiting = |wait| Situation { state: State::Waiting, wait: Some(wait) };
    held_by_plan(state).unwrap_or_else(|| match task.retry_ms {
        Some(_) if task.waits_for_limit() => waiting(Wait::Limit { until: state.due(Timer::Retry(id)) }),
        Some(_) => waiting(Wait::Retry { until: state.due(Timer::Retry(id)) }),
        None if !state.has_room(&task.plan) => waiting(Wait::Place),
        // Inside an append: its dispatch follows.
        None if state.config.budget.is_unlimited() => State::Ready.into(),
        None => waiting(Wait::Budget),
    })
}

/// A paused or stopped plan starts nothing.
fn held_by_plan(state: &PlannerState) -> Option<Situation> {
    let stopped = |by| Situation { state: State::WaitingForYou, wait: Some(Wait::Stopped { by }) };
    if state.phase == Phase::Paused { Some(State::Paused.into()) } else { state.stopped_by.map(stopped) }
}

fn of_dispatched(plan: &str, view: &PlanView, task: &Task, observed: &Observed<'_>) -> Situation {
    let (state, id) = (view.state(), task.plan.id);
    let is_dead = |holder: &Holder| !(observed.is_live)(holder);
    if view.is_reported(id) {
        // The host that handles the report runs in the process that made it.
        let is_dead = view.past_holder(id).is_some_and(is_dead);
        return if is_dead { State::Interrupted } else { State::Running }.into();
    }
    let holder = view.holder(id);
    let sub_plan = task.sub_plan_id(plan).and_then(|below| Some(((observed.sub_plan)(&below)?, below)));
    if let Some((below, sub_plan)) = sub_plan {
        let wait = Some(Wait::SubPlan { plan: sub_plan });
        match below {
            State::Running | State::Interrupted => return below.into(),
            State::Paused if state.phase == Phase::Paused => return State::Paused.into(),
            State::WaitingForYou | State::Paused => return Situation { state: State::WaitingForYou, wait },
            State::Waiting => return Situation { state: State::Waiting, wait },
            // Its worker makes it, runs it or reports its end.
            State::Planned | State::Ready | State::Done | State::Failed | State::Skipped | State::Cancelled => {}
        }
    }
    let claim = view.claim(id);
    match holder {
        Some(holder) => return if is_dead(holder) { State::Interrupted } else { State::Running }.into(),
        None if task.plan.kind == NodeKind::Clarification => {
            return waits_for_answers(state, state.questions_of(id));
        }
        None if claim.is_some_and(|claim| claim.is_parked()) => {
            return Situation { state: State::WaitingForYou, wait: Some(Wait::Unpark) };
        }
        None if task.is_paused => return State::Paused.into(),
        None => {}
    }
    if let Some(held) = held_by_plan(state) {
        return held;
    }
    let taker = match &task.plan {
        it if it.command.is_some() || it.is_delegated() => Taker::Worker,
        _of_standing_plan if state.config.standing => Taker::Agent,
        it => (observed.taker)(it),
    };
    match taker {
        Taker::Worker | Taker::Limited(_) if claim.is_some_and(|claim| claim.cut_short(task.attempts).is_some()) => {
            State::Interrupted.into()
        }
        _ if !view.may_start(task) => Situation { state: State::Waiting, wait: Some(Wait::Place) },
        Taker::Worker => {
            let wait = (observed.lease)(state, &task.plan).map(|lease| Wait::Files { lease });
            Situation { state: if wait.is_some() { State::Waiting } else { State::Ready }, wait }
        }
        Taker::Limited(until) => Situation { state: State::Waiting, wait: Some(Wait::Limit { until: Some(until) }) },
        Taker::Agent => Situation { state: State::Ready, wait: Some(Wait::Agent) },
        Taker::Nobody => Situation { state: State::WaitingForYou, wait: Some(Wait::Work) },
    }
}
