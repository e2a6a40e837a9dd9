//! Tasks that a plan of its own carries out: the plan is made, followed to its end, and its results become the task's.
//!
//! The id of such a plan follows from the task and the dispatch, so it is made once however often the task is taken up,
//! and a worker that takes it up again goes on where another left off. The plan's own tasks are carried out by any worker
//! in whose scope they are; nothing here carries one out, and nothing here decides what the plan does next.

use std::time::Duration;

use crewlog_mq::{Cause, Error, EventStore, ExecuteError, Handler, Query, Runner, Start, Timestamp};
use crewlog_planner::agents::registry::ToolRegistry;
use crewlog_planner::agents::requests::request_id;
use crewlog_planner::claim::Ending;
use crewlog_planner::event::{
    self, Command, Event, FailureClass, Outcome, TaskStatus, Undone, Usage, plan_tag, sub_plan_tags, under_tag,
};
use crewlog_planner::plan::{Origin, ParentTask, SUB_PLAN_DEPTH_MAX, SubPlan, TaskId, sub_plan_id};
use crewlog_planner::planner::{Planner, PlannerError};
use crewlog_planner::protocol::{AgentType, CrossAgentStep};
use crewlog_planner::state::{Phase, PlannerState, Task};
use crewlog_planner::text::truncate;
use futures::StreamExt;
use tokio::sync::watch;

use crate::agents::{Agents, PlanningError, SharedContext, record_failure};
use crate::backoff::Backoff;
use crate::planning::{is_for_ever, planner_of, wait_out};
use crate::run::{Job, Stop, wanted};

/// The name under which such tasks are claimed.
pub const SUB_PLANS: &str = "subplans";
/// The most characters of what a plan reports to the task that it carries out.
pub const RESULT_CHARS_MAX: usize = 60_000;
/// The most plans that stand above one that is to be made: the deepest that there may be, and those above it.
const ABOVE_MAX: usize = SUB_PLAN_DEPTH_MAX as usize + 1;
/// Of how many failed tasks a plan reports the errors.
const ERRORS_MAX: usize = 5;

/// The events of a plan, and of all that stand below it, in a stream that is about plans.
#[must_use]
pub fn family(stream: &str, plan: &str) -> Query {
    let of = |tag| Query { stream_id: stream.to_owned(), tags: vec![tag], ..Query::default() };
    Query { or: vec![of(under_tag(plan))], ..of(plan_tag(plan)) }
}

/// What a plan is wanted for.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// To do what these words say.
    Work(&'a SubPlan),
    /// To answer a request.
    Answer(&'a CrossAgentStep),
}

/// A task on its way to a plan of its own.
#[derive(Clone, Copy)]
pub(crate) struct Outer<'a> {
    pub(crate) store: &'a EventStore,
    pub(crate) registry: &'a ToolRegistry,
    pub(crate) agents: &'a Agents,
    pub(crate) job: &'a Job<'a>,
    /// Of the events of the plan that has the task.
    pub(crate) tags: &'a [String],
    /// The dispatch.
    pub(crate) cause: &'a Cause,
}

impl Outer<'_> {
    /// Carries the task out by a plan of its own, or until `stop` says otherwise. All that the plan used up is the task's.
    pub(crate) async fn run(self, sub_plan: &SubPlan, stop: &mut watch::Receiver<Option<Stop>>) -> (Ending, Usage) {
        let ending = self.carry_out(sub_plan, stop).await;
        self.with_usage(ending).await
    }

    async fn carry_out(self, sub_plan: &SubPlan, stop: &mut watch::Receiver<Option<Stop>>) -> Ending {
        // A model may take its time. What was appended all the same is ended with the task.
        let made = tokio::select! {
            biased;
            made = self.make(Wanted::Work(sub_plan), &[]) => made,
            stop = wanted(stop) => return self.stopped(stop).await,
        };
        let plan = match made {
            Ok(plan) => plan,
            Err(ending) => return ending,
        };
        let timeout = self.job.parameters.timeout_ms.map(Duration::from_millis);
        tokio::select! {
            ending = follow(self.store, &plan, timeout) => match ending {
                Ok(Some(ending)) => self.unless_stopped(ending).await,
                Ok(None) => {
                    self.cancel("the task that it carries out ran out of time").await;
                    let limit = timeout.unwrap_or_default();
                    let error = format!("its plan {plan} had not ended after {} s, the task's time-out", limit.as_secs_f64());
                    Ending::Failed { error, class: FailureClass::TimedOut, run: None }
                }
                Err(error) => unreadable(&plan, &error),
            },
            stop = wanted(stop) => self.stopped(stop).await,
        }
    }

    /// The same, unless the task was ended and its plan with it: then the task has been stopped, whichever of the two is
    /// heard of first.
    async fn unless_stopped(self, ending: Ending) -> Ending {
        let Ending::Failed { .. } = ending else { return ending };
        let Ok(above) = read_plan(self.store, self.job.plan, Vec::new()).await else { return ending };
        match above.handler().state().task(self.job.task) {
            Some(task) if task.status.is_end() || task.attempts > self.job.attempt => {
                Ending::Stopped { reason: task.error.clone().unwrap_or_default() }
            }
            Some(_) | None => ending,
        }
    }

    /// Ends the plan with the task, as far as there is one.
    async fn stopped(self, stop: Stop) -> Ending {
        if let Stop::Cancelled { reason } = &stop {
            self.cancel(&format!("the task that it carries out has ended: {reason}")).await;
        }
        match (&stop, self.what_is_lacking().await) {
            (Stop::Interrupted, Some(reason)) => Ending::Released { reason },
            (Stop::Interrupted | Stop::Cancelled { .. } | Stop::Lost, _) => stop.ending(),
        }
    }

    /// For what its plan waits, if that is why nothing goes on.
    async fn what_is_lacking(self) -> Option<String> {
        let plan = sub_plan_id(&self.task());
        let mut planner = planner_of(self.store, &plan, Vec::new()).await.ok()?;
        planner.catch_up().await.ok()?;
        let state = planner.handler().state();
        match (state.phase(), state.shortage()) {
            (Phase::Paused, Some(shortage)) => Some(format!("its plan {plan} is paused: {shortage}")),
            (Phase::Paused, None) => Some(format!("its plan {plan} is paused")),
            (Phase::Active, _) if state.open_questions().next().is_some() => {
                Some(format!("it waits for an answer in {plan}"))
            }
            (Phase::Active | Phase::Empty | Phase::Ended(_), _) => None,
        }
    }

    /// With what the plan has used up, which is told once: by whoever says how the task ended.
    pub(crate) async fn with_usage(self, ending: Ending) -> (Ending, Usage) {
        if let Ending::Released { .. } = ending {
            return (ending, Usage::default());
        }
        let plan = sub_plan_id(&self.task());
        let usage = match read_plan(self.store, &plan, Vec::new()).await {
            Ok(planner) if self.owns(planner.handler().state()) => planner.handler().state().spent(),
            Ok(_) => Usage::default(),
            Err(error) => {
                tracing::warn!(%error, plan, "what a plan used up is not counted");
                Usage::default()
            }
        };
        (ending, usage)
    }

    /// True of the plan that was made for this dispatch of the task, and of no other that bears its id.
    fn owns(self, state: &PlannerState) -> bool {
        state.origin().parent == Some(self.task())
    }

    /// The task that is carried out.
    pub(crate) fn task(self) -> ParentTask {
        ParentTask { plan: self.job.plan.to_owned(), task: self.job.task, attempt: self.job.attempt }
    }

    /// Makes the plan, unless it is there. It is never left half made: it is one append.
    pub(crate) async fn make(self, wanted: Wanted<'_>, more_tags: &[&str]) -> Result<String, Ending> {
        let parent = self.task();
        let plan = sub_plan_id(&parent);
        let refused = |why: String| Ending::Failed { error: why, class: FailureClass::Task, run: None };
        let mut tags = sub_plan_tags(&plan, self.job.plan, self.tags);
        tags.extend(more_tags.iter().map(|tag| (*tag).to_owned()));
        let mut planner = read_plan(self.store, &plan, tags).await.map_err(|error| unreadable(&plan, &error))?;
        if planner.handler().state().phase() != Phase::Empty {
            return self.made(plan, planner.handler().state());
        }
        let above = above(self.store, &parent).await.map_err(|error| unreadable(&parent.plan, &error))?;
        if above.len() > ABOVE_MAX {
            return Err(refused(format!(
                "plan {plan} would have more than {ABOVE_MAX} plans above it, or they go in a circle"
            )));
        }
        if let Wanted::Work(sub_plan) = wanted
            && above.iter().any(|above| above.words.as_ref() == Some(sub_plan))
        {
            let error = format!("plan {plan} would contain itself: a plan above it is made of the same words");
            return Err(refused(error));
        }
        let Some(directly) = above.first() else { return Err(refused(format!("there is no plan {}", parent.plan))) };
        let depth = directly.state.origin().depth.saturating_add(1);
        let planned_by = match wanted {
            Wanted::Work(_) => None,
            Wanted::Answer(_) => Some(format!("request {}", request_id(&parent))),
        };
        let origin = Origin { planned_by, parent: Some(parent), depth, agent: None };
        let config = self.config(&directly.state);
        let command = match self.command(wanted, origin, config).await {
            Ok(command) => command,
            Err(error) => {
                self.note_failure(wanted, &error).await;
                return Err(refused(format!("no plan could be made for it: {error}")));
            }
        };
        let cause = self.cause.clone().keeping(command.recorded());
        let mut backoff = Backoff::new();
        loop {
            match planner.execute(command.clone(), &cause).await {
                // Whoever was faster made the same plan.
                Ok(_) | Err(ExecuteError::Refused(PlannerError::AlreadyPlanned)) => {
                    return self.made(plan, planner.handler().state());
                }
                Err(ExecuteError::Refused(refusal)) => {
                    return Err(refused(format!("the plan that was made for it is refused: {refusal}")));
                }
                Err(ExecuteError::Contended { .. }) => {}
                Err(ExecuteError::Store(error)) => {
                    if !wait_out(&error, &mut backoff).await {
                        return Err(unreadable(&plan, &error));
                    }
                }
            }
        }
    }

    /// The id of the plan, if the plan that bears it is that of the task.
    fn made(self, plan: String, state: &PlannerState) -> Result<String, Ending> {
        if self.owns(state) {
            return Ok(plan);
        }
        let error = format!(
            "there is a plan {plan} already, and it is not of this task: somebody else made it; when the task is tried \
             again, its plan has another id"
        );
        Err(Ending::Failed { error, class: FailureClass::Task, run: None })
    }

    /// The settings of the plan: those of the plan above, within what is left of its budget and of its time.
    fn config(self, above: &PlannerState) -> event::PlannerConfig {
        event::PlannerConfig {
            // Less may be left by now than when the task was dispatched.
            budget: self.job.parameters.budget.least(above.left_for_plans()),
            deadline_ms: above.time_left(self.job.task, self.store.now()),
            standing: false,
            ..above.config().clone()
        }
    }

    /// Has the plan made. Its agent is told of the plan above, and of no other.
    async fn command(
        self,
        wanted: Wanted<'_>,
        origin: Origin,
        config: event::PlannerConfig,
    ) -> Result<Command, PlanningError> {
        match wanted {
            Wanted::Work(sub_plan) => {
                let context = context_of(self.store, self.job.plan).await;
                self.agents.proposal(sub_plan, &context, origin, config).await
            }
            Wanted::Answer(step) => self.agents.answering(step, origin, config),
        }
    }

    /// What an agent could not plan is counted. That it is not, when the log takes nothing, must not stop the plan.
    async fn note_failure(self, wanted: Wanted<'_>, error: &PlanningError) {
        let agent = match wanted {
            Wanted::Work(sub_plan) => sub_plan.agent.as_deref().and_then(AgentType::named),
            Wanted::Answer(step) => Some(step.target_agent),
        };
        let (Some(agent), PlanningError::Plan(error)) = (agent, error) else { return };
        if let Err(fault) = record_failure(self.store, agent, error, self.tags.to_vec(), self.cause).await {
            tracing::warn!(%fault, %agent, "a failure to plan was not recorded");
        }
    }

    /// Ends the plan, if there is one, and has it undone where the plan above is to be.
    pub(crate) async fn cancel(self, reason: &str) {
        let plan = sub_plan_id(&self.task());
        let tags = sub_plan_tags(&plan, self.job.plan, self.tags);
        let read = async {
            let above = read_plan(self.store, self.job.plan, Vec::new()).await?;
            Ok((above.handler().state().config().compensate, read_plan(self.store, &plan, tags).await?))
        };
        match read.await {
            Ok((undoes, mut planner)) if self.owns(planner.handler().state()) => {
                if let Err(error) = put(&mut planner, end_of(undoes, reason), self.cause).await {
                    tracing::warn!(%error, plan, "a plan could not be ended");
                }
            }
            Ok(_) => {}
            Err::<_, Error>(error) => tracing::warn!(%error, plan, "a plan cannot be read, and is not ended"),
        }
    }

    /// Undoes what the plans did that carried a task out, the last first, or until `stop` says otherwise. A worker that
    /// takes it up again goes on where another left off.
    pub(crate) async fn undo(self, stop: &mut watch::Receiver<Option<Stop>>) -> Ending {
        let failed = |error: String| Ending::Failed { error, class: FailureClass::Task, run: None };
        let Some(Undone { task, attempt, n_earlier }) = self.job.parameters.undoes else {
            return failed("it is not said what is to be undone".into());
        };
        let earliest = attempt.saturating_sub(n_earlier).max(1);
        let (mut told, mut is_all) = (Vec::new(), true);
        for attempt in (earliest..=attempt).rev() {
            match self.undo_one(task, attempt, stop).await {
                Ok(Undoing::Done(said)) => told.push(said),
                Ok(Undoing::Left(said)) => {
                    told.push(said);
                    is_all = false;
                }
                Ok(Undoing::NotThere) => {}
                Err(ending) => return ending,
            }
        }
        if n_earlier > 0 && earliest > 1 {
            told.push(format!("what the plans before attempt {earliest} did is not undone"));
            is_all = false;
        }
        if told.is_empty() {
            return match read_plan(self.store, self.job.plan, Vec::new()).await {
                Ok(above)
                    if above.handler().state().task(task).is_some_and(|task| task.status != TaskStatus::Completed) =>
                {
                    Ending::Completed {
                        result: format!("no plan was made for task {task}: nothing is undone"),
                        run: None,
                    }
                }
                Ok(_) => failed(format!("the plan of task {task} is not there, so that nothing of it can be undone")),
                Err(error) => unreadable(self.job.plan, &error),
            };
        }
        let told = told.join("; ");
        if is_all { Ending::Completed { result: told, run: None } } else { failed(told) }
    }

    /// Undoes what one plan did; an ending when that cannot be known, or somebody stops it.
    async fn undo_one(
        self,
        task: TaskId,
        attempt: u32,
        stop: &mut watch::Receiver<Option<Stop>>,
    ) -> Result<Undoing, Ending> {
        let parent = ParentTask { plan: self.job.plan.to_owned(), task, attempt };
        let plan = sub_plan_id(&parent);
        let planner = read_plan(self.store, &plan, sub_plan_tags(&plan, self.job.plan, self.tags)).await;
        let mut planner = planner.map_err(|error| unreadable(&plan, &error))?;
        if planner.handler().state().origin().parent.as_ref() != Some(&parent) {
            return Ok(Undoing::NotThere);
        }
        let undo = Command::Undo { reason: format!("plan {} is undone", self.job.plan) };
        put(&mut planner, undo, self.cause).await.map_err(|error| unreadable(&plan, &error))?;
        tokio::select! {
            ended = until_ended(self.store, &plan, &mut planner) => {
                ended.map_err(|error| unreadable(&plan, &error))?;
                Ok(undoing(&plan, planner.handler()))
            }
            stop = wanted(stop) => {
                if let Stop::Cancelled { reason } = &stop
                    && let Err(error) = put(&mut planner, end_of(false, reason), self.cause).await
                {
                    tracing::warn!(%error, plan, "the undoing of a plan could not be ended");
                }
                Err(stop.ending())
            }
        }
    }
}

/// How the undoing of a plan has ended.
enum Undoing {
    /// All of it, or there was nothing to undo.
    Done(String),
    /// Not all of it.
    Left(String),
    /// There is no such plan.
    NotThere,
}

fn undoing(plan: &str, planner: &Planner) -> Undoing {
    let did = |task: &Task| {
        task.status == TaskStatus::Completed
            && task.attempts > 0
            && !task.is_inherited
            && task.plan.compensates.is_none()
    };
    match planner.n_undone() {
        (0, 0) if !planner.state().tasks().iter().any(did) => Undoing::Done(format!("{plan}: nothing was done")),
        (0, 0) => Undoing::Left(format!(
            "no task of plan {plan} says how it is undone: look at what it did with `crewlog show {plan}`"
        )),
        (n_undone, 0) => Undoing::Done(format!("{plan}: {n_undone} undone")),
        (n_undone, n_left) => Undoing::Left(format!("{plan}: {n_undone} undone, {n_left} could not be undone")),
    }
}

/// A plan that stands above another.
struct Above {
    state: PlannerState,
    /// What it was made of: the words of the task that it carries out, or its own text.
    words: Option<SubPlan>,
}

/// The plans above, the nearest first; one more than there may be, where a log has more.
async fn above(store: &EventStore, task: &ParentTask) -> Result<Vec<Above>, Error> {
    let mut found: Vec<Above> = Vec::new();
    let mut next = Some(task.clone());
    while let Some(task) = next {
        let planner = read_plan(store, &task.plan, Vec::new()).await?;
        let state = planner.handler().state().clone();
        if state.phase() == Phase::Empty {
            break;
        }
        if let Some(below) = found.last_mut() {
            below.words = state.task(task.task).and_then(|task| task.plan.sub_plan.clone());
        }
        next = state.origin().parent.clone().filter(|_| found.len() < ABOVE_MAX);
        let words = Some(SubPlan { text: state.source().to_owned(), agent: None });
        found.push(Above { state, words });
    }
    Ok(found)
}

/// What the agents of a plan below are told of it, however long the log takes; nothing when it cannot be read.
async fn context_of(store: &EventStore, plan: &str) -> SharedContext {
    let mut backoff = Backoff::new();
    loop {
        match SharedContext::read(store, &plan_tag(plan)).await {
            Ok(context) => return context,
            Err(error) if !wait_out(&error, &mut backoff).await => return SharedContext::default(),
            Err(_) => {}
        }
    }
}

/// Reads a plan as it stands, however long the log takes.
pub(crate) async fn read_plan(store: &EventStore, plan: &str, tags: Vec<String>) -> Result<Runner<Planner>, Error> {
    let mut backoff = Backoff::new();
    loop {
        let read = async {
            let mut planner = planner_of(store, plan, tags.clone()).await?;
            planner.catch_up().await.map(|()| planner)
        };
        match read.await {
            Ok(planner) => return Ok(planner),
            Err(error) if !wait_out(&error, &mut backoff).await => return Err(error),
            Err(_) => {}
        }
    }
}

/// How a plan ends, for the task that it carries out; nothing when it has not ended so long after it was made.
async fn follow(store: &EventStore, plan: &str, timeout: Option<Duration>) -> Result<Option<Ending>, Error> {
    let mut planner = Planner::new();
    let mut events = store.subscribe_from::<Event>(&Query::aggregate(event::STREAM, plan), Start::Beginning)?;
    let mut until: Option<Timestamp> = None;
    loop {
        let time_is_up = async {
            match until {
                Some(until) => tokio::time::sleep(until.since(store.now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            envelope = events.next() => match envelope {
                Some(Ok(envelope)) => {
                    until = until.or_else(|| timeout.map(|timeout| envelope.recorded.created_at.plus(timeout)));
                    planner.apply(&envelope.event);
                    if let Event::PlanningCompleted { summary, outcome, .. } = &envelope.event {
                        return Ok(Some(ending(plan, planner.state(), summary, *outcome)));
                    }
                }
                Some(Err(error)) if is_for_ever(&error) => return Err(error),
                Some(Err(error)) => tracing::warn!(%error, plan, "a plan could not be read and is read again"),
                None => return Ok(None),
            },
            () = time_is_up => return Ok(None),
        }
    }
}

/// What a plan that has ended is to the task that it carries out: the results of its last tasks, or what went wrong.
pub(crate) fn ending(plan: &str, state: &PlannerState, summary: &str, outcome: Outcome) -> Ending {
    let said = format!("{plan}: {summary}");
    match outcome {
        Outcome::Completed => {
            let is_waited_for =
                |id| state.tasks().iter().any(|task| task.plan.depends_on.iter().any(|on| on.task == id));
            let last = state.tasks().iter().filter(|task| !is_waited_for(task.plan.id));
            let results = last.filter_map(|task| {
                let result = task.result.as_deref().map(str::trim).filter(|result| !result.is_empty())?;
                Some(format!("{} ({}):\n{result}", task.plan.name(), task.plan.description.lines().next()?))
            });
            let result = std::iter::once(said).chain(results).collect::<Vec<_>>().join("\n\n");
            Ending::Completed { result: truncate(&result, RESULT_CHARS_MAX), run: None }
        }
        Outcome::Failed | Outcome::Cancelled => {
            let is_bad = |status| matches!(status, TaskStatus::Failed | TaskStatus::TimedOut | TaskStatus::Cancelled);
            let bad = state.tasks().iter().filter(|task| is_bad(task.status));
            let errors = bad.filter_map(|task| Some(format!("task {}: {}", task.plan.name(), task.error.as_deref()?)));
            let how =
                if outcome == Outcome::Cancelled { "it was cancelled".to_owned() } else { "it failed".to_owned() };
            let error = [format!("{said}; {how}")].into_iter().chain(errors.take(ERRORS_MAX)).collect::<Vec<_>>();
            let error = truncate(&error.join("\n"), RESULT_CHARS_MAX);
            Ending::Failed { error, class: FailureClass::Task, run: None }
        }
    }
}

/// Waits until a plan has ended, as far as its planner does not know it yet.
async fn until_ended(store: &EventStore, plan: &str, planner: &mut Runner<Planner>) -> Result<(), Error> {
    let known = Start::After(planner.position());
    let mut events = store.subscribe_from::<Event>(&Query::aggregate(event::STREAM, plan), known)?;
    let mut backoff = Backoff::new();
    while !matches!(planner.handler().state().phase(), Phase::Ended(_)) {
        if events.next().await.is_none() {
            return Ok(());
        }
        while let Err(error) = planner.catch_up().await {
            if !wait_out(&error, &mut backoff).await {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// The command that ends a plan with the task that it carries out.
pub(crate) fn end_of(undoes: bool, reason: &str) -> Command {
    let reason = reason.to_owned();
    // Where it is being undone already, on behalf of the plan above, another command to cancel it would end that.
    if undoes { Command::Undo { reason } } else { Command::Cancel { task: None, reason } }
}

/// Gives a plan a command, however long the log takes. What it refuses changes nothing of it.
pub(crate) async fn put(planner: &mut Runner<Planner>, command: Command, cause: &Cause) -> Result<(), Error> {
    let cause = cause.clone().keeping(command.recorded());
    let mut backoff = Backoff::new();
    loop {
        match planner.execute(command.clone(), &cause).await {
            Ok(_) | Err(ExecuteError::Refused(_)) => return Ok(()),
            Err(ExecuteError::Contended { .. }) => {}
            Err(ExecuteError::Store(error)) => {
                if !wait_out(&error, &mut backoff).await {
                    return Err(error);
                }
            }
        }
    }
}

fn unreadable(plan: &str, error: &Error) -> Ending {
    Ending::Failed { error: format!("plan {plan} cannot be read: {error}"), class: FailureClass::Task, run: None }
}
