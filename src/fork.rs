//! Time travel: `fork`, `checkpoint`, `checkpoints`. A fork appends events of its own and changes none.

use crewlog_executors::history::{ForkPoint, History};
use crewlog_executors::planning;
use crewlog_executors::plans;
use crewlog_executors::worker::InterruptedTask;
use crewlog_mq::{EventStore, Handler, Position, Query, Range, Runner};
use crewlog_planner::event::{self, Command, Event, Setting, TaskStatus};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::Planner;
use futures::TryStreamExt;
use futures::future::OptionFuture;
use serde_json::json;

use crate::amend::consent_to_edits;
use crate::checkpoints::position_of;
use crate::cli::{Fork, Output};
use crate::failure::{Code, Failure};
use crate::order::{order, short_id};
use crate::place::slug;
use crate::queries::{self, find_plan};
use crate::run_session::RunSession;
use crate::runtime::{self, Signals};
use crate::session::Session;
use crate::text::{count, visible};
use crate::views::{CheckpointJson, checkpoints_of};

/// Separator between the name of a plan and the rest of a fork's id.
const FORK: &str = "-fork";

pub async fn fork(session: &Session, fork: Fork) -> Result<Code, Failure> {
    let roster = runtime::roster(session, fork.run_args.task_timeout, &[])?;
    let store = session.place.open().await?;
    let signals = Signals::new()?;
    let point = point_of(session, &store, &fork).await?;
    session.place.check_key(&point.parent, &queries::tags_of(&store, &point.parent).await?)?;
    let (plan, planner) = make_fork(session, &store, &point, &fork).await?;
    let ForkPoint { parent, at, .. } = &point;
    if session.output == Output::Text || !fork.run {
        session.print_begun(&plan, &json!({ "plan": plan, "parent": parent, "at": at, "reason": fork.reason }))?;
    }
    let tasks = &planner.handler().state().tasks;
    let n_ended = tasks.iter().filter(|task| task.status.is_end()).count();
    let rest = count(tasks.len() - n_ended, "task");
    session.remark(&format!("forked from {parent} at position {at}: {n_ended} ended, {rest} to go"));
    if !fork.run {
        let retry = || planner.handler().clone().process(Command::Retry { task: None });
        let command = if n_ended < tasks.len() {
            session.command_on("resume", &plan)
        } else if retry().is_ok_and(|events| !events.is_empty()) {
            session.command_on("retry", &plan)
        } else {
            format!("{} --add \"...\"", session.command_on("fork", parent))
        };
        session.suggest(&format!("to go on: {command}"));
        return Ok(Code::Done);
    }
    let interrupted = InterruptedTask::Report;
    RunSession::new(session, store, plan, Position(0), &fork.run_args, roster, interrupted).await?.run(signals).await
}

async fn make_fork(
    session: &Session,
    store: &EventStore,
    point: &ForkPoint,
    typed: &Fork,
) -> Result<(String, Runner<Planner>), Failure> {
    let plan = format!("{}-{}", fork_name(&point.parent), short_id());
    let mut planner = plans::planner_of_fork(store, point, &plan, session.tags_of_new(&plan)?);
    planner.catch_up().await?;
    if planner.sequence() > 0 {
        return Err(Failure::new(Code::Conflict, format!("the id {plan} is taken: try again")));
    }
    let ForkPoint { parent, at, .. } = point;
    let state = planner.handler().state();
    let amendments = typed.changes.clone().amendments(session, parent, state)?;
    let mut config = state.config.clone();
    let changes = typed.parallelism.map(Setting::Parallelism).into_iter().chain(typed.settings.changes(config.budget));
    changes.for_each(|change| config.set(change));
    // One append makes the fork together with its changes, so no unchanged task can start.
    let (reason, config) = (typed.reason.clone(), Some(Box::new(config)));
    let command = Command::Fork { parent: parent.clone(), at: *at, reason, config, amendments };
    if typed.changes.edit.is_some() {
        consent_to_edits(session, planner.handler(), command.clone())?;
    }
    order(&mut planner, command).await?;
    Ok((plan, planner))
}

/// The readable part of a fork's id: that of the first plan of its line.
fn fork_name(parent: &str) -> String {
    let stem = parent.rsplit_once('-').map_or(parent, |(stem, _)| stem);
    let stem = slug(stem.strip_suffix(FORK).unwrap_or(stem));
    if stem.is_empty() { "plan-fork".to_owned() } else { format!("{stem}{FORK}") }
}

async fn point_of(session: &Session, store: &EventStore, fork: &Fork) -> Result<ForkPoint, Failure> {
    let plan = find_plan(store, &fork.plan).await?;
    let history = History::of(store, &plan).await?;
    let at = match (&fork.at, &fork.before, &fork.before_failure) {
        (at @ Some(_), _, _) => position_of(session, store, &plan, at.as_ref(), Position(0)).await?,
        (None, Some(task), _) => {
            let id = task_of(session, store, &plan, task).await?;
            let is_dispatch = |event: &Event| matches!(event, Event::TaskDispatched { task_id, .. } if *task_id == id);
            let Some((_, end)) = first_append(store, &history, is_dispatch).await? else {
                let failure = Failure::new(Code::Nothing, format!("task {task} of {plan} has not begun yet"));
                return Err(failure.hint(format!("to fork it as it stands now: {}", session.command_on("fork", &plan))));
            };
            end
        }
        (None, None, Some(task)) => {
            let id = task.as_ref().map(|task| task_of(session, store, &plan, task));
            let id = OptionFuture::from(id).await.transpose()?;
            let Some((start, _)) = first_append(store, &history, |event| is_failure(event, id)).await? else {
                let message = match task {
                    Some(task) => format!("task {task} of {plan} has not failed"),
                    None => format!("no task of {plan} has failed"),
                };
                return Err(Failure::new(Code::Nothing, message).hint(session.command_on("show", &plan)));
            };
            Position(start.0 - 1)
        }
        (None, None, None) => store.head().await?,
    };
    history.fork_point(store, at).await?.ok_or_else(|| {
        let message = format!("{plan} did not exist yet at position {at}");
        Failure::new(Code::Nothing, message).hint(session.command_on("events", &plan))
    })
}

/// Whether a task failed for good, or a person is asked about its failure.
fn is_failure(event: &Event, of: Option<TaskId>) -> bool {
    let Event::TaskStatusUpdated { task_id, status, error, .. } = event else { return false };
    let has_failed = match status {
        TaskStatus::Failed | TaskStatus::TimedOut => true,
        TaskStatus::NeedsClarification => error.is_some(),
        TaskStatus::Planned
        | TaskStatus::Running
        | TaskStatus::Completed
        | TaskStatus::Cancelled
        | TaskStatus::Skipped => false,
    };
    has_failed && of.is_none_or(|of| of == *task_id)
}

async fn task_of(session: &Session, store: &EventStore, plan: &str, name: &str) -> Result<TaskId, Failure> {
    let view = queries::load_view(store, plan, Range::default()).await?;
    let state = view.state();
    state.task_named(name).map(|task| task.plan.id).ok_or_else(|| crate::queries::no_task(session, plan, state, name))
}

/// The first and the last position of the first append in which an event of the plan matches.
async fn first_append(
    store: &EventStore,
    history: &History,
    is_wanted: impl Fn(&Event) -> bool,
) -> Result<Option<(Position, Position)>, Failure> {
    let mut records = std::pin::pin!(history.records(store, &Query::all(), Range::default()));
    let mut found = None;
    while let Some(recorded) = records.try_next().await? {
        let start = recorded.append_start;
        match found {
            Some((first, _)) if first != start => break,
            None if recorded.stream_id != event::STREAM || !is_wanted(&recorded.decode()?) => {}
            Some(_) | None => found = Some((start, recorded.position)),
        }
    }
    Ok(found)
}

pub async fn checkpoint(session: &Session, plan: &str, name: String) -> Result<Code, Failure> {
    let (store, plan) = queries::open_plan(session, plan).await?;
    let mut planner = planning::catch_up(&store, &plan, queries::tags_of(&store, &plan).await?).await?;
    let at = order(&mut planner, Command::NameCheckpoint { name: name.clone() }).await?.position;
    session.print_done(&format!("{name} is position {at} of {plan}"), &json!({ "plan": plan, "name": name, "at": at }))
}

pub async fn checkpoints(session: &Session, plan: &str) -> Result<Code, Failure> {
    let (store, plan) = queries::open_plan(session, plan).await?;
    let checkpoints = checkpoints_of(&store, &plan).await?;
    session.print_list(
        "checkpoints",
        json!({ "plan": plan }),
        &checkpoints,
        |checkpoint| checkpoint,
        |to, CheckpointJson { name, at, created_at, .. }| writeln!(to, "{at:>6}  {created_at}  {}", visible(name)),
    )
}
