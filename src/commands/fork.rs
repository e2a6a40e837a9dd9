//! `fork`: makes a plan that continues from a point of another. A fork appends events of its own and changes none.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use crewlog_executors::caller::request;
use crewlog_executors::history::{ForkPoint, History};
use crewlog_executors::plans;
use crewlog_executors::roster::Roster;
use crewlog_mq::{EventStore, Handler, Position, Query, Range};
use crewlog_planner::crew::consent::Means;
use crewlog_planner::event::{self, Command, Event, TaskStatus};
use crewlog_planner::lifecycle::State;
use crewlog_planner::state::PlannerState;
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::cli::typed::{BY_PERSON, ForkAt, by_person};
use crate::consent::{consent, of_plan};
use crate::context::{Session, roster};
use crate::target::order;
use crate::ui::failure::{Code, Failure, Why};
use crate::ui::text::count;
use crate::views::at::position_of;
use crate::views::names::{Choice, find_plan};
use crate::views::queries::{self, load_view, no_task};
use crewlog_executors::plan_ids::{fork_slug, new_id};

#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The plan to continue
    pub plan: String,
    /// Where it continues: POSITION, CHECKPOINT, failure or before:TASK [default: its present state]
    ///
    /// A position of the log, or the name of a checkpoint of the plan; `failure`, right before the first failure of a task; or
    /// `before:TASK`, from where this task was first about to start.
    #[arg(long, value_name = "POINT")]
    #[schema(value_type = Option<String>)]
    pub at: Option<ForkAt>,
    /// Why
    #[arg(long, default_value = BY_PERSON)]
    #[serde(default = "by_person")]
    pub reason: String,
}

pub async fn fork(session: &Session, fork: Fork) -> Result<Code, Failure> {
    let store = session.place.open().await?;
    let point = point_of(session, &store, &fork).await?;
    let ForkPoint { parent, at, .. } = &point;
    session.place.check_key(parent, &queries::tags_of(&store, parent).await?)?;
    let plan = new_id(&fork_slug(parent));
    let mut planner = plans::planner_of_fork(&store, &point, &plan, session.tags_of_new(&plan)?);
    planner.catch_up().await?;
    if planner.sequence() > 0 {
        return Err(Failure::new(Code::Conflict, format!("the id {plan} is taken: try again")));
    }
    consent_to_fork(session, &store, (parent, &plan), planner.handler().state()).await?;
    // It is paused by the append that makes it: no task starts before a person resumes it.
    let (reason, amendments) = (fork.reason.clone(), Vec::new());
    order(&mut planner, Command::Fork { parent: parent.clone(), at: *at, reason, pauses: true, amendments }).await?;
    session.print_begun(&plan, &json!({ "plan": plan, "parent": parent, "at": at, "reason": fork.reason }))?;
    let tasks = &planner.handler().state().tasks;
    let n_ended = tasks.iter().filter(|task| task.status.is_end()).count();
    let rest = count(tasks.len() - n_ended, "task");
    session.remark(&format!("forked from {parent} at position {at}: {n_ended} ended, {rest} to go"));
    let retry = || planner.handler().clone().process(Command::Retry { task: None });
    session.suggest(&if n_ended < tasks.len() {
        format!("it is paused; change it, then: {}", session.command_on("resume", &plan))
    } else if retry().is_ok_and(|events| !events.is_empty()) {
        let (retry, resume) = (session.command_on("retry", &plan), session.command_on("resume", &plan));
        format!("it is paused; to continue: {retry}, then: {resume}")
    } else {
        format!("to continue: {}", session.command_on("task add \"...\" --plan", &plan))
    });
    Ok(Code::Done)
}

/// A fork runs what its plan ran: a person who makes one has agreed to what the person remembers, and is asked about the rest.
async fn consent_to_fork(
    session: &Session,
    store: &EventStore,
    (parent, plan): (&str, &str),
    state: &PlannerState,
) -> Result<(), Failure> {
    let roster = roster::roster(session, Duration::MAX, &[])?;
    let open = state.tasks.iter().filter(|task| !task.status.is_end()).map(|task| task.plan.clone());
    let config = (state.config.system_prompt.as_str(), state.config.folder.as_deref());
    match consent(session, &open.collect::<Vec<_>>(), &roster, config).await {
        Ok(mut agreed) => {
            if agreed.how == Some(Means::Order) {
                // Nothing was shown: what waits in its plan waits here, too.
                let roster = Roster { trust: session.trust(&[]).await?, ..roster };
                let waiting =
                    roster.unagreed(parent, state).into_iter().map(|waits| waits.task).collect::<BTreeSet<_>>();
                agreed.shown.retain(|task| !waiting.contains(task));
            }
            agreed.record(store, &session.tags_of_project()?, plan, of_plan(state), u64::MAX, &request()).await?;
            Ok(())
        }
        // The fork is there, and its tasks wait.
        Err(failure) if matches!(failure.why, Why::Declined | Why::Unconsented) => {
            session.remark(&format!("its tasks run once you agree: {}", session.command_on("agree", plan)));
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

async fn point_of(session: &Session, store: &EventStore, fork: &Fork) -> Result<ForkPoint, Failure> {
    let plan = find_plan(session, store, &fork.plan, Choice::Sole).await?;
    let history = History::of(store, &plan).await?;
    let nothing = |message: String, hint: String| Failure::new(Code::Nothing, message).hint(hint);
    let at = match &fork.at {
        None => store.head().await?,
        Some(ForkAt::At(at)) => position_of(session, store, &plan, Some(at), Position(0)).await?,
        Some(ForkAt::Before(task)) => {
            let view = load_view(store, &plan, Range::default()).await?;
            let found = view.state().task_named(task);
            let id = found.ok_or_else(|| no_task(session, &plan, view.state(), task))?.plan.id;
            let is_dispatch = |event: &Event| matches!(event, Event::TaskDispatched { task_id, .. } if *task_id == id);
            let now = || format!("to fork it as it is now: {}", session.command_on("fork", &plan));
            let refused = || nothing(format!("task {task} of {plan} has not begun yet"), now());
            first_append(store, &history, is_dispatch).await?.ok_or_else(refused)?.1
        }
        Some(ForkAt::Failure) => {
            let refused = || nothing(format!("no task of {plan} has failed"), session.command_on("show", &plan));
            Position(first_append(store, &history, is_failure).await?.ok_or_else(refused)?.0.0 - 1)
        }
    };
    let refused = || nothing(format!("{plan} did not exist yet at position {at}"), session.command_on("events", &plan));
    history.fork_point(store, at).await?.ok_or_else(refused)
}

/// True if a task failed for good, or a person is asked about its failure.
fn is_failure(event: &Event) -> bool {
    let Event::TaskStatusUpdated { status, error, .. } = event else { return false };
    let has_failed = State::of_end(*status) == Some(State::Failed);
    has_failed || *status == TaskStatus::NeedsClarification && error.is_some()
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
