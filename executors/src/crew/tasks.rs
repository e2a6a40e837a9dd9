//! Tasks for agents: claim and leases in one append, progress, end.

use std::collections::BTreeSet;
use std::time::Duration;

use crewlog_mq::{
    Append, Cause, Error, Event, EventStore, ExecuteError, Expected, Handler, NewEvent, Query, Range, Runner, Write,
};
use crewlog_planner::claim::{self, Ending, TaskCommand, TaskError, TaskLease, TaskProgress};
use crewlog_planner::crew::CrewError;
use crewlog_planner::crew::leases::{Lease, LeaseCommand, Request, Turn, Which};
use crewlog_planner::crew::target::{Target, TargetError};
use crewlog_planner::event::{self, Amendment, Command, PlannerConfig, TaskInput, plan_tag};
use crewlog_planner::lifecycle::{self, Observed, State, Taker, Wait};
use crewlog_planner::plan::{Dependency, Proposal, Strength, TaskId, TaskPlan};
use crewlog_planner::planner::PARALLELISM_MAX;
use crewlog_planner::sealed;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::MutexGuard;

use super::board::{Board, TaskDetails, TaskSummary, names_of, summaries, summary};
use super::leases::{granted, released_by};
use super::state::{Caller, Crew};
use super::{Holders, Refusal};
use crate::caller;
use crate::claiming::claim_of;
use crate::planning;
use crate::plans::planner_of;
use crate::queue::Dispatch;
use crate::signs::check_expired;

/// The standing plan of tasks created by agents.
pub const STANDING_PLAN: &str = "backlog";
/// The most tasks that one call tries to claim.
const TRIED_MAX: usize = 20;
/// The lines of an output that an agent gets.
const OUTPUT_LINES_MAX: usize = 40;
/// The attempts at a claim under concurrent writes.
const ATTEMPTS_MAX: usize = 8;
/// The open tasks of a standing plan up to which agents may add more; people may always.
const OPEN_TASKS_MAX: usize = 1_000;

/// A task that an agent has claimed.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The plan and the task.
    pub id: String,
    /// The work.
    pub input: Box<TaskInput>,
    /// The progress of an earlier agent.
    pub progress: Option<TaskProgress>,
    /// The leases on its files, by number.
    pub leases: Vec<(u64, Lease)>,
    /// True if the agent already held it.
    pub is_own: bool,
}

/// The request to lease the files of a task with it.
#[derive(Clone, Copy)]
pub struct Reserve<'a> {
    /// The duration of the leases.
    pub ttl: Duration,
    /// Resolves a file of the task to a target.
    pub target: &'a (dyn Fn(&str) -> Result<Target, TargetError> + Sync),
}

/// A task created by an agent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct NewTask {
    /// The name by which other new tasks refer to it.
    pub key: String,
    /// The work, in one line.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// As in plan files: `P1`, `high`.
    pub priority: Option<String>,
    /// The paths and patterns that it works on.
    pub files: Vec<String>,
    /// Keys of new tasks, or tasks of the standing plan.
    pub depends_on: Vec<String>,
}

impl Crew {
    /// The open plans, up to date.
    pub(super) async fn board(&self) -> Result<MutexGuard<'_, Board>, Error> {
        let mut board = self.board.lock().await;
        board.catch_up(&self.store, &self.project).await?;
        Ok(board)
    }

    /// The tasks of the open plans in this state, or all.
    pub async fn tasks(&self, state: Option<State>) -> Result<Vec<TaskSummary>, Refusal> {
        let (holders, board) = (self.holders().await?, self.board().await?);
        let all = board.views(&self.project);
        let all = all.flat_map(|(plan, view)| observing(&holders, |observed| summaries(plan, view, observed)));
        Ok(all.filter(|task| state.is_none_or(|state| task.state == state)).collect())
    }

    /// A task of an open plan.
    ///
    /// # Errors
    /// [`Refusal::NoTask`].
    pub async fn task(&self, id: &str) -> Result<TaskDetails, Refusal> {
        let (holders, board) = (self.holders().await?, self.board().await?);
        let (plan, task) = self.find(&board, id)?;
        let (_, view) = board.views(&self.project).find(|(known, _)| **known == plan).ok_or(Refusal::Busy)?;
        let found = view.state().task(task).ok_or(Refusal::Busy)?;
        let outputs = self.roster().and_then(|roster| roster.outputs.as_ref());
        Ok(TaskDetails {
            summary: observing(&holders, |observed| summary(&plan, view, found, observed)),
            command: found.plan.command.clone(),
            notes: found.plan.notes.clone(),
            attempts: found.attempts,
            result: view.result(found).map(str::to_owned),
            error: found.error.clone(),
            output: outputs.and_then(|files| files.last_lines(&plan, task, found.attempts, OUTPUT_LINES_MAX)),
        })
    }

    /// True if the texts of a task are sealed, or may be because the task can no longer be claimed.
    ///
    /// # Errors
    /// [`Refusal::NoTask`].
    pub async fn is_sealed(&self, id: &str) -> Result<bool, Refusal> {
        let board = self.board().await?;
        let (plan, task) = self.find(&board, id)?;
        Ok(board.dispatched(&plan, task).is_none_or(|dispatch| sealed::key_of(&dispatch.tags).is_some()))
    }

    /// Claims the next ready task, with leases on its files if requested, atomically. Returns skipped tasks with
    /// reasons.
    pub async fn next_task(
        &self,
        caller: &Caller,
        reserve: Option<Reserve<'_>>,
    ) -> Result<(Option<Claimed>, Vec<(String, Refusal)>), Refusal> {
        self.present(caller).await?;
        let names = self.names_of(&caller.agent).await?;
        let mut passed: Vec<(String, Refusal)> = Vec::new();
        while let Some(next) = self.next_free(caller, &names, reserve, &mut passed).await? {
            match self.take(caller, &next, reserve).await {
                Ok(claimed) => return Ok((Some(claimed), passed)),
                Err(error @ (Refusal::Store(_) | Refusal::Busy)) => return Err(error),
                Err(refusal) => passed.push((next.target(), refusal)),
            }
        }
        Ok((None, passed))
    }

    /// The same; if there is none, once more after the tasks and leases of dead agents are free.
    pub async fn next_task_of_all(
        &self,
        caller: &Caller,
        reserve: Option<Reserve<'_>>,
    ) -> Result<(Option<Claimed>, Vec<(String, Refusal)>), Refusal> {
        let found = self.next_task(caller, reserve).await?;
        if found.0.is_some() {
            return Ok(found);
        }
        self.fire_timers().await?;
        self.next_task(caller, reserve).await
    }

    /// The names by which tasks are assigned to an agent.
    pub(super) async fn names_of(&self, agent: &str) -> Result<Vec<String>, Error> {
        let names = self.agents().await?.get(agent).map(|found| names_of(agent, &found.profile));
        Ok(names.unwrap_or_else(|| vec![agent.to_owned()]))
    }

    /// The next task whose files nobody else leases; skips those before it. Reads the plans once and the leases once.
    async fn next_free(
        &self,
        caller: &Caller,
        names: &[String],
        reserve: Option<Reserve<'_>>,
        passed: &mut Vec<(String, Refusal)>,
    ) -> Result<Option<Dispatch>, Refusal> {
        let (board, mut candidates) = (self.board().await?, Vec::new());
        let mut known: Vec<_> = passed.iter().map(|(id, _)| id.clone()).collect();
        while known.len() < TRIED_MAX {
            let is_known = |id: &str| known.iter().any(|known| known == id);
            let Some(next) = board.next(&self.project, names, self.roster(), is_known) else { break };
            known.push(next.target());
            candidates.push(next);
        }
        drop(board); // Do not wait for one lock while holding another.
        let (leases, holder, now) = (self.leases().await?, caller.holder(), self.store.now());
        for next in candidates {
            let writes = !next.parameters.reads_only;
            let refusal = match targets_of(&next.parameters, reserve) {
                Ok(targets) => match leases.in_the_way(&holder, &targets, writes, false, now) {
                    free if free.is_empty() => return Ok(Some(next)),
                    blocked => CrewError::Held(blocked),
                },
                Err(refusal) => refusal,
            };
            passed.push((next.target(), refusal.into()));
        }
        Ok(None)
    }

    /// Claims a task, with leases on its files if requested, atomically.
    ///
    /// # Errors
    /// The holder of the task, the leases in the way, or the reason why the task cannot start.
    pub async fn claim(&self, caller: &Caller, id: &str, reserve: Option<Reserve<'_>>) -> Result<Claimed, Refusal> {
        self.present(caller).await?;
        let (holders, board) = (self.holders().await?, self.board().await?);
        let (plan, task) = self.find(&board, id)?;
        let dispatched = board.dispatched(&plan, task);
        let found = board.view(&plan).and_then(|view| Some((view, view.state().task(task)?)));
        let now = found.map(|(view, task)| observing(&holders, |it| lifecycle::of_task(&plan, view, task, it)));
        drop(board);
        let Some(now) = now else { return Err(Refusal::NotReady(State::Done)) };
        let is_open = matches!(now.state, State::Ready | State::Running | State::Interrupted);
        match dispatched.filter(|_| is_open || now.wait == Some(Wait::Unpark)) {
            Some(dispatched) => self.take(caller, &dispatched, reserve).await,
            None => Err(Refusal::NotReady(now.state)),
        }
    }

    pub(super) fn find(&self, board: &Board, id: &str) -> Result<(String, TaskId), Refusal> {
        let missing = || Refusal::NoTask(format!("there is no open task {id:?}; `list_tasks` lists them"));
        let (plan, name) = id.split_once('/').ok_or_else(missing)?;
        let (_, view) = board.views(&self.project).find(|(known, _)| *known == plan).ok_or_else(missing)?;
        let task = view.state().id_named(name).ok_or_else(missing)?;
        Ok((plan.to_owned(), task))
    }

    async fn take(
        &self,
        caller: &Caller,
        dispatch: &Dispatch,
        reserve: Option<Reserve<'_>>,
    ) -> Result<Claimed, Refusal> {
        let (input, id) = (&dispatch.parameters, dispatch.target());
        let targets = targets_of(input, reserve)?;
        let request = reserve.map(|Reserve { ttl, .. }| Request {
            holder: caller.holder(),
            targets,
            is_exclusive: !input.reads_only,
            ttl,
            reason: format!("task {id}"),
            task: Some(id.clone()),
            is_strict: false,
        });
        let request = request.filter(|request| !request.targets.is_empty());
        let mut claim = claim_of(&self.store, &dispatch.plan, dispatch.task, dispatch.tags.clone());
        for _ in 0..ATTEMPTS_MAX {
            claim.catch_up().await?;
            let now = self.store.now();
            let command = TaskCommand::ClaimForAgent { attempt: dispatch.attempt, executor: caller.executor(), now };
            let may_decide = check_expired(&self.store, &self.life, claim.handler(), now).await?;
            let decided = may_decide.and_then(|()| claim.handler().clone().process(command.clone()));
            let is_of_agent = claim.handler().holder.as_ref().is_some_and(claim::Holder::is_agent);
            let (events, is_own) = match decided {
                Ok(events) => (events, false),
                Err(TaskError::Held { executor, .. }) if is_of_agent && executor.name == caller.agent => {
                    (Vec::new(), true)
                }
                Err(TaskError::Held { executor, epoch }) => {
                    let is_dead = match is_of_agent {
                        true => self.is_gone(&executor.name).await?,
                        false => self.life.is_dead(&executor),
                    };
                    if !is_dead {
                        return Err(TaskError::Held { executor, epoch }.into());
                    }
                    execute(&mut claim, TaskCommand::FireTimer { epoch, now, is_dead }).await?;
                    continue;
                }
                Err(refusal) => return Err(refusal.into()),
            };
            let write = write_of(&claim, claim::STREAM, &command.recorded(), &events, &dispatch.cause)?;
            let command = match request.clone() {
                Some(request) => LeaseCommand::Reserve { request, turn: Turn::Behind, now },
                // The claim still goes through the leases, so that it is always appended in the same way.
                None => LeaseCommand::Expire { now },
            };
            let mut leases = self.leases().await?;
            match leases.runner().execute_with(command, &caller::request(), write.as_slice()).await {
                // Somebody else claimed the task first.
                Err(ExecuteError::Store(Error::SequenceMismatch { .. })) => continue,
                executed => _ = executed?,
            }
            let leases = request.map(|request| granted(&leases, &request, now)).unwrap_or_default();
            let progress = claim.handler().progress.clone();
            return Ok(Claimed { id, input: Box::new(input.clone()), progress, leases, is_own });
        }
        Err(Refusal::Busy)
    }

    /// An agent reports progress or the end of its task. An end releases the leases taken for it, and returns their
    /// numbers.
    ///
    /// # Errors
    /// [`Refusal::NoTask`] if the agent does not hold the task.
    pub async fn update_task(
        &self,
        caller: &Caller,
        id: &str,
        progress: TaskProgress,
        ending: Option<Ending>,
    ) -> Result<Vec<u64>, Refusal> {
        self.present(caller).await?;
        let (mut claim, id) = self.claim_by(caller, id).await?;
        let epoch = claim.handler().epoch;
        // An empty report does not replace an earlier one.
        if progress != TaskProgress::default() {
            execute(&mut claim, TaskCommand::Progress { epoch, progress }).await?;
        }
        let Some(ending) = ending else { return Ok(Vec::new()) };
        execute(&mut claim, TaskCommand::End { epoch, usage: Default::default(), ending }).await?;
        let (agent, now) = (caller.agent.clone(), self.store.now());
        let release = LeaseCommand::Release { agent, which: Which::OfTask(id.clone()), now };
        let numbers = self.leases.execute(release, |_, executed| released_by(&executed)).await?;
        // Makes the plan continue even without a host. A failure does not undo the end of the task.
        if let Some((plan, _)) = id.split_once('/')
            && let Err(error) = planning::catch_up(&self.store, plan, claim.tags().to_vec()).await
        {
            tracing::warn!(%error, plan, "the plan could not be continued yet");
        }
        Ok(numbers)
    }

    /// The claim of an agent on a task, and the task's id.
    pub(super) async fn claim_by(&self, caller: &Caller, id: &str) -> Result<(Runner<TaskLease>, String), Refusal> {
        let board = self.board().await?;
        let (plan, task) = self.find(&board, id)?;
        let dispatched = board.dispatched(&plan, task);
        // A claim of an earlier attempt has ended: the plan has taken the task back.
        let holder = board.view(&plan).and_then(|view| view.holder(task).cloned());
        let id = board.target(&plan, task);
        drop(board);
        let tags = dispatched.map(|dispatch| dispatch.tags).unwrap_or_default();
        let mut claim = claim_of(&self.store, &plan, task, tags);
        claim.catch_up().await?;
        match holder {
            Some(holder) if holder.is_agent() && holder.executor.name == caller.agent => Ok((claim, id)),
            Some(holder) => Err(Refusal::NoTask(format!("{id} is claimed by {}", holder.executor.name))),
            None => Err(Refusal::NoTask(format!("you have not claimed {id}: stop working on it, or claim it first"))),
        }
    }

    /// The claims of the project's agents, or of one agent.
    pub(super) async fn claims(&self, agent: Option<&str>) -> Result<Vec<(Dispatch, claim::Holder)>, Refusal> {
        let board = self.board().await?;
        let is_meant = |held: &claim::Holder| agent.is_none_or(|agent| held.executor.name == agent);
        let claims = board.claims(&self.project).filter(|(_, held)| is_meant(held));
        Ok(claims.map(|(dispatch, held)| (dispatch.clone(), held.clone())).collect())
    }

    /// The name of a task, given by its aggregate, if its plan is open.
    pub async fn task_name(&self, aggregate_id: &str) -> Result<Option<String>, Refusal> {
        let board = self.board().await?;
        let task = claim::split_aggregate_id(aggregate_id);
        Ok(task.filter(|(plan, _)| board.view(plan).is_some()).map(|(plan, task)| board.target(plan, task)))
    }

    /// The tasks that an agent holds, by name.
    pub async fn tasks_of(&self, agent: &str) -> Result<Vec<String>, Refusal> {
        let claims = self.claims(Some(agent)).await?;
        Ok(claims.into_iter().map(|(dispatch, _)| dispatch.target()).collect())
    }

    /// Returns the tasks of an agent.
    pub(super) async fn return_tasks(&self, agent: &str, reason: &str) -> Result<Vec<String>, Refusal> {
        let mut returned = Vec::new();
        for (dispatch, claim::Holder { epoch, .. }) in self.claims(Some(agent)).await? {
            let mut claim = claim_of(&self.store, &dispatch.plan, dispatch.task, dispatch.tags.clone());
            let ending = Ending::Released { reason: reason.to_owned(), cut_off: false };
            match execute(&mut claim, TaskCommand::End { epoch, usage: Default::default(), ending }).await {
                Ok(()) => returned.push(dispatch.target()),
                // The task has ended meanwhile, or belongs to another agent.
                Err(Refusal::Task(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(returned)
    }

    /// Adds tasks to the standing plan, all or none. Returns each key with the id of its task.
    ///
    /// # Errors
    /// A task that the planner refuses.
    pub async fn create_tasks(&self, caller: &Caller, tasks: Vec<NewTask>) -> Result<Vec<(String, String)>, Refusal> {
        self.present(caller).await?;
        let plan = standing_plan(&self.store, &self.project, STANDING_PLAN).await?;
        let tags = vec![plan_tag(&plan), format!("project:{}", self.project)];
        let mut planner = planner_of(&self.store, &plan, tags).await?;
        for _ in 0..ATTEMPTS_MAX {
            planner.catch_up().await?;
            let state = planner.handler().state();
            let n_open = state.tasks.iter().filter(|task| !task.status.is_end()).count();
            if n_open + tasks.len() > OPEN_TASKS_MAX {
                let says = format!(
                    "agents may make tasks while {plan} has at most {OPEN_TASKS_MAX} open ones; it has {n_open}"
                );
                return Err(CrewError::Full(says).into());
            }
            let first = state.next_id();
            let planned =
                planned(&tasks, first, |name| state.id_named(name.strip_prefix(&format!("{plan}/")).unwrap_or(name)))?;
            let numbers: Vec<_> =
                tasks.iter().map(|task| task.key.clone()).zip(planned.iter().map(|task| task.id)).collect();
            let reason = format!("made by {}", caller.agent);
            let command = match state.tasks.is_empty() {
                true => Command::Initialize {
                    proposal: Box::new(Proposal {
                        tasks: planned,
                        title: Some(STANDING_PLAN.to_owned()),
                        ..Proposal::default()
                    }),
                    attachments: Vec::new(),
                    config: PlannerConfig { standing: true, parallelism: PARALLELISM_MAX, ..PlannerConfig::default() },
                },
                false => Command::Amend { amendments: vec![Amendment::Define { tasks: planned }], reason },
            };
            // The runner cannot do this: after a conflict it would reuse the numbers, which now belong to other tasks.
            let (kept, cause) = (command.recorded(), caller::request());
            let mut changed = planner.handler().clone();
            let events = changed.process(command);
            let events = events.map_err(|refusal| Refusal::NoTask(refusal.to_string()))?;
            let write = write_of(&planner, event::STREAM, &kept, &events, &cause)?;
            let ids = numbers.into_iter().map(|(key, task)| (key, changed.state().target(&plan, task))).collect();
            let Some(Write { stream_id, aggregate_id, expected, events }) = write else { return Ok(ids) };
            match self.store.append(Append::to(&stream_id, &aggregate_id, expected, events)).await {
                Ok(_) => return Ok(ids),
                Err(Error::SequenceMismatch { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Refusal::Busy)
    }
}

/// The id of a project's standing plan: its name, unless another project of the log has a plan with that name.
pub async fn standing_plan(store: &EventStore, project: &str, name: &str) -> Result<String, Error> {
    let first = store.read(&Query::aggregate(event::STREAM, name), Range::default(), 1).await?;
    let own = format!("project:{project}");
    let is_free = first.events.first().is_none_or(|recorded| recorded.tags.contains(&own));
    Ok(if is_free { name.to_owned() } else { format!("{name}-{project}") })
}

/// The point of view of agents: any of them may take a task that has no command.
pub(super) fn observing<T>(holders: &Holders, judge: impl FnOnce(&Observed<'_>) -> T) -> T {
    judge(&Observed {
        now: None,
        is_live: &|holder| holders.is_live(holder),
        taker: &|_| Taker::Agent,
        ..Observed::default()
    })
}

/// The files of a task that are leased with it.
fn targets_of(input: &TaskInput, reserve: Option<Reserve<'_>>) -> Result<Vec<Target>, CrewError> {
    let Some(Reserve { target, .. }) = reserve else { return Ok(Vec::new()) };
    let targets = input.files.iter().map(|file| target(file)).collect::<Result<_, _>>();
    targets.map_err(|why| {
        CrewError::Invalid(format!("invalid file of the task: {why}; claim the task with reserve false"))
    })
}

fn planned(tasks: &[NewTask], first: u64, known: impl Fn(&str) -> Option<TaskId>) -> Result<Vec<TaskPlan>, Refusal> {
    let number = |index: usize| TaskId(first + index as u64);
    let find = |name: &str| {
        let own = tasks.iter().position(|task| task.key == name).map(number);
        own.or_else(|| known(name)).ok_or_else(|| Refusal::NoTask(format!("there is no task {name:?} to depend on")))
    };
    let mut planned = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let mut depends_on = BTreeSet::new();
        for name in &task.depends_on {
            depends_on.insert(find(name)?);
        }
        planned.push(TaskPlan {
            id: number(index),
            description: task.title.trim().to_owned(),
            priority: task.priority.clone(),
            files: task.files.clone(),
            notes: task.description.iter().cloned().collect(),
            depends_on: depends_on.into_iter().map(|task| Dependency { task, strength: Strength::Hard }).collect(),
            ..TaskPlan::default()
        });
    }
    Ok(planned)
}

pub(super) async fn execute(claim: &mut Runner<TaskLease>, command: TaskCommand) -> Result<(), Refusal> {
    let cause = caller::request().keeping(command.recorded());
    claim.execute(command, &cause).await?;
    Ok(())
}

/// The events of a claim as a write; `None` if there are none.
pub(super) fn write_of<H: Handler>(
    runner: &Runner<H>,
    stream: &str,
    command: &Value,
    events: &[H::Event],
    cause: &Cause,
) -> Result<Option<Write>, Error>
where
    H::Command: Clone,
    H::Event: Event,
{
    let cause = cause.clone().keeping(command.clone());
    let written = events
        .iter()
        .enumerate()
        .map(|(index, event)| Ok(NewEvent::of(event, &cause.metadata_of(index))?.with_tags(runner.tags().to_vec())));
    let events = written.collect::<Result<Vec<_>, Error>>()?;
    let expected = Expected::Sequence(runner.sequence());
    let (stream_id, aggregate_id) = (stream.to_owned(), runner.aggregate_id().to_owned());
    Ok((!events.is_empty()).then_some(Write { stream_id, aggregate_id, expected, events }))
}
