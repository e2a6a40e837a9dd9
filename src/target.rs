//! Commands of a person to a plan, which take effect even when no worker runs: `answer`, `ask`, `withdraw`, `done`, `fail`,
//! `cancel`, `pause`, `retry`; and making a plan.

use std::time::Duration;

use crewlog_executors::caller::request;
use crewlog_executors::propagation::Unreadable;
use crewlog_executors::{planning, plans, propagation};
use crewlog_mq::{EventStore, ExecuteError, Executed, Handler, Range, Runner};
use crewlog_planner::event::{Command, Event, QuestionId};
use crewlog_planner::lifecycle::State;
use crewlog_planner::nesting;
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::{Planner, PlannerError};
use crewlog_planner::state::{PlannerState, Task};
use serde_json::json;

use crate::cli::typed::Address;
use crate::context::{Session, roster};
use crate::ui::failure::{Code, Failure};
use crate::ui::terminal::{Output, say};
use crate::views::names::{Choice, open_plan};
use crate::views::queries;
use crate::views::queries::no_task;
use crate::views::views;
use crewlog_executors::plan_ids::{new_id, slug_of};

/// How often another plan id is tried when one is taken.
const ID_ATTEMPTS_MAX: usize = 8;

pub struct Target {
    pub store: EventStore,
    pub plan: String,
    pub tags: Vec<String>,
    /// Its planner, up to date.
    pub planner: Runner<Planner>,
}

/// Ends, pauses and resumes the sub-plans of a plan with it, and warns of unreadable ones.
pub async fn propagate(store: &EventStore, plan: &str) -> Result<(), Failure> {
    for Unreadable { plan, error } in propagation::propagate(store, plan).await? {
        say(&queries::unreadable_plan(&plan, &error));
    }
    Ok(())
}

impl Target {
    /// The plan that a name means.
    pub async fn find(session: &Session, typed: &str, choice: Choice) -> Result<Self, Failure> {
        let (store, plan) = open_plan(session, typed, choice).await?;
        let tags = queries::tags_of(&store, &plan).await?;
        Self::of(store, plan, tags).await
    }

    /// Finds a plan, and refuses it if its texts cannot be sealed because its key is missing or destroyed.
    pub async fn find_to_tell(session: &Session, typed: &str) -> Result<Self, Failure> {
        let target = Self::find(session, typed, Choice::Changed).await?;
        session.place.check_key(&target.plan, &target.tags)?;
        Ok(target)
    }

    /// A plan, also one that is not there yet.
    pub async fn of(store: EventStore, plan: String, tags: Vec<String>) -> Result<Self, Failure> {
        let planner = planning::catch_up(&store, &plan, tags.clone()).await?;
        Ok(Self { store, plan, tags, planner })
    }

    pub fn id(&self, session: &Session, name: &str) -> Result<TaskId, Failure> {
        Ok(self.task(session, name)?.plan.id)
    }

    pub fn ids(&self, session: &Session, names: &[String]) -> Result<Vec<TaskId>, Failure> {
        names.iter().map(|name| self.id(session, name)).collect()
    }

    pub fn name(&self, task: TaskId) -> String {
        self.state().name(task)
    }

    pub fn state(&self) -> &PlannerState {
        self.planner.handler().state()
    }

    /// A task by its label or number.
    pub fn task(&self, session: &Session, name: &str) -> Result<&Task, Failure> {
        self.state().task_named(name).ok_or_else(|| no_task(session, &self.plan, self.state(), name))
    }

    /// Refuses to open a sub-plan again whose parent's task has ended: it would be cancelled at once.
    pub async fn check_parent(&self, session: &Session, command: &Command) -> Result<(), Failure> {
        let Some(parent) = nesting::parent_task(&self.plan, self.state()) else { return Ok(()) };
        let mut planner = self.planner.handler().clone();
        // A refusal is reported by the order itself.
        if planner.process(command.clone()).is_err() {
            return Ok(());
        }
        let view = queries::load_view(&self.store, &parent.plan, Range::default()).await?;
        let Some(Command::CancelFromParent { reason }) = nesting::follow(&self.plan, planner.state(), view.state())
        else {
            return Ok(());
        };
        let name = view.state().task(parent.task).map_or_else(|| parent.task.to_string(), |task| task.plan.name());
        let retry = session.command_in("retry", &parent.plan, &name);
        Err(Failure::new(Code::Conflict, format!("{} is the sub-plan of a task that has ended: {reason}", self.plan))
            .hint(retry))
    }

    /// Prints the result and the state of the plan.
    pub async fn say(self, session: &Session, said: &str) -> Result<Code, Failure> {
        let status = match session.output {
            Output::Text => None,
            Output::Json | Output::Jsonl => Some(state_now(session, &self.plan).await?),
        };
        session.print_done(said, &json!({ "plan": self.plan, "status": status }))?;
        if !self.state().phase.is_ended() {
            self.suggest_resume(session);
        }
        Ok(Code::Done)
    }

    pub fn suggest_resume(&self, session: &Session) {
        let roster = roster::roster(session, Duration::MAX, &[]).ok();
        let is_run = |task: &Task| roster.as_ref().is_some_and(|roster| roster.takes(&task.plan));
        if self.state().phase.is_paused() || self.state().dispatched().any(is_run) {
            let resume = session.command_on("resume", &self.plan);
            let unless = if self.state().phase.is_paused() { "" } else { ", unless it already runs" };
            session.suggest(&format!("to continue{unless}: {resume}"));
        }
    }
}

/// The question named `q1`, or the open question of a task, or of the plan when no name is given. If a task has no open
/// question, returns its last one; the planner refuses the answer.
pub fn find_question(target: &Target, session: &Session, typed: Option<&str>) -> Result<QuestionId, Failure> {
    let (questions, state) = (&target.state().questions, target.state());
    let number = typed.and_then(|typed| typed.strip_prefix('q')?.parse().ok());
    if let Some(question) = questions.iter().find(|question| Some(question.id.0) == number) {
        return Ok(question.id);
    }
    let task = typed.and_then(|typed| state.task_named(typed)).map(|task| task.plan.id);
    let open = state.open_questions().filter(|question| typed.is_none() || Some(question.task) == task);
    let open = open.map(|question| question.id).collect::<Vec<_>>();
    let last = || questions.iter().rfind(|question| Some(question.task) == task).map(|question| question.id);
    let plan = &target.plan;
    match open.as_slice() {
        [question] => Ok(*question),
        [] => last().filter(|_| typed.is_some()).ok_or_else(|| {
            let message = match typed {
                Some(typed) => format!("{plan} has no question {typed:?}"),
                None => format!("{plan} has no open question"),
            };
            let all = state.open_questions().map(|question| format!("{plan}/{}", question.id)).collect::<Vec<_>>();
            let ids = questions.iter().map(|question| question.id.to_string());
            let tasks = questions.iter().filter_map(|question| Some(state.task(question.task)?.plan.name()));
            let known = ids.chain(tasks).collect::<Vec<_>>();
            let failure = Failure::new(Code::Nothing, message)
                .did_you_mean(typed.unwrap_or_default(), known.iter().map(String::as_str))
                .hint(session.command_on("show", plan));
            if all.is_empty() { failure } else { failure.hint(format!("open are {}", all.join(", "))) }
        }),
        several => {
            let open = several.iter().map(|question| format!("{plan}/{question}")).collect::<Vec<_>>().join(", ");
            let message = format!("{} has several open questions: {open}", typed.unwrap_or(plan));
            Err(Failure::new(Code::Nothing, message).hint("say which of them"))
        }
    }
}

pub async fn state_now(session: &Session, plan: &str) -> Result<State, Failure> {
    Ok(views(session).await?.as_of(None).await?.states(plan).await?.plan.state)
}

pub async fn decide(session: &Session, mut target: Target, command: Command, said: &str) -> Result<Code, Failure> {
    let cancels = match &command {
        Command::Cancel { task, .. } => Some(*task),
        Command::CancelAndUndo { .. } => Some(None),
        _another => None,
    };
    let executed = order(&mut target.planner, command).await?;
    propagate(&target.store, &target.plan).await?;
    let mut said = said.to_owned();
    for event in &executed.events {
        if let Event::TasksReopened { task_ids } = event {
            let names = task_ids.iter().map(|task| target.name(*task)).collect::<Vec<_>>();
            said.push_str(&names.join(", "));
        }
    }
    if executed.events.is_empty() {
        said = match cancels.map(|task| task.and_then(|task| target.state().task(task))) {
            Some(Some(task)) => format!("task {} is {}: nothing to cancel", task.plan.name(), task.status.words()),
            Some(None) => {
                let state = state_now(session, &target.plan).await?.words();
                format!("{} is {state}: nothing to cancel", target.plan)
            }
            None => "nothing to change".to_owned(),
        };
    }
    target.say(session, &said).await
}

/// Makes a plan; another id is tried when one is taken.
pub async fn make_plan(
    session: &Session,
    store: &EventStore,
    mut plan: String,
    begin: Command,
) -> Result<String, Failure> {
    for _ in 0..ID_ATTEMPTS_MAX {
        let mut planner = plans::planner_of(store, &plan, session.tags_of_new(&plan)?).await?;
        match order(&mut planner, begin.clone()).await {
            Ok(_) => return Ok(plan),
            Err(ExecuteError::Refused(PlannerError::AlreadyPlanned)) => {}
            Err(error) => return Err(error.into()),
        }
        plan = new_id(slug_of(&plan));
    }
    Err(Failure::new(Code::Conflict, "no free id for the plan was found: try again"))
}

/// Executes a command on a plan and records it with the events.
pub async fn order(
    planner: &mut Runner<Planner>,
    command: Command,
) -> Result<Executed<Event>, ExecuteError<PlannerError>> {
    let cause = request().keeping(command.recorded());
    planner.execute(command, &cause).await
}

/// A plan, and one of its tasks where the address names one.
pub async fn find_part(
    session: &Session,
    address: &Address,
    choice: Choice,
) -> Result<(Target, Option<TaskId>), Failure> {
    let target = Target::find(session, &address.plan, choice).await?;
    let task = address.part.as_deref().map(|name| target.id(session, name)).transpose()?;
    Ok((target, task))
}
