//! The planner's host: it follows what executors and people append, and feeds it to the pure planner.
//!
//! Any number of processes may host the planner of one plan, or of all plans. The ids of what it appends are derived from the cause, so
//! a report that is taken in twice, in two places or after a crash, changes nothing.

use std::collections::{BTreeMap, HashMap};

use crewlog_mq::{Cause, Envelope, Error, EventStore, ExecuteError, Position, Query, Range, Recorded, Runner, Start};
use crewlog_planner::claim::{self, TaskEvent};
use crewlog_planner::event::{self, Command, Event, plan_tag};
use crewlog_planner::plan::TaskId;
use crewlog_planner::planner::{Planner, PlannerError};
use crewlog_planner::state::Phase;
use futures::StreamExt;
use tokio::sync::watch;

use crate::backoff::Backoff;

/// The name under which the planner reacts.
const PROCESS: &str = "planner";

/// Planners that are kept warm by one host.
const WARM_MAX: usize = 64;
/// How many events are read at a time.
const PAGE: usize = 1000;

/// The planner of a plan on a log.
#[must_use]
pub fn planner_of(store: &EventStore, plan: &str, tags: Vec<String>) -> Runner<Planner> {
    Runner::new(store.clone(), event::STREAM, plan, tags)
}

/// The events of a plan's tasks.
fn task_events(plan: &str) -> Query {
    Query { stream_id: claim::STREAM.into(), tags: vec![plan_tag(plan)], ..Query::default() }
}

/// Takes in all that is reported of a plan up to now, and returns the planner as it then stands.
///
/// # Errors
/// A fault of the log.
pub async fn catch_up(store: &EventStore, plan: &str, tags: Vec<String>) -> Result<Runner<Planner>, Error> {
    let mut planner = planner_of(store, plan, tags);
    for reported in store.load::<TaskEvent>(&task_events(plan), Range::default()).await? {
        take_in(&mut planner, reported).await?;
    }
    planner.catch_up().await?;
    Ok(planner)
}

/// Hosts the planner of a plan: takes in what is reported, from the beginning on, for ever. Drop it to end it. `taken_in`
/// is told how far.
///
/// # Errors
/// Only when the log refuses to be followed.
pub async fn host(
    store: EventStore,
    plan: String,
    tags: Vec<String>,
    taken_in: watch::Sender<Position>,
) -> Result<(), Error> {
    let mut planner = planner_of(&store, &plan, tags);
    let mut reports = store.subscribe::<TaskEvent>(&task_events(&plan))?;
    while let Some(reported) = reports.next().await {
        match reported {
            Ok(reported) => {
                let position = reported.recorded.position;
                take_in_until_done(&mut planner, reported).await;
                taken_in.send_replace(position);
            }
            Err(error) => tracing::warn!(%error, "an event of a task is passed over"),
        }
    }
    Ok(())
}

/// Hosts the planner of every plan in the log, for ever. Drop it to end it. `taken_in` is told how far.
///
/// # Errors
/// A fault of the log while the open plans are first read.
pub async fn host_all(store: EventStore, taken_in: watch::Sender<Position>) -> Result<(), Error> {
    let head = store.head().await?;
    // What was reported of a plan that is over could no longer change it.
    for (plan, tags) in open_plans(&store, head).await? {
        catch_up_until_done(&store, &plan, tags).await;
    }
    taken_in.send_replace(head);
    let mut warm: HashMap<String, Runner<Planner>> = HashMap::new();
    let mut reports = store.subscribe_from::<TaskEvent>(&Query::stream(claim::STREAM), Start::After(head))?;
    while let Some(reported) = reports.next().await {
        let reported = match reported {
            Ok(reported) => reported,
            Err(error) => {
                tracing::warn!(%error, "an event of a task is passed over");
                continue;
            }
        };
        let Some((plan, _)) = claim::split_aggregate_id(&reported.recorded.aggregate_id) else { continue };
        let plan = plan.to_owned();
        if warm.len() >= WARM_MAX && !warm.contains_key(&plan) {
            warm.clear();
        }
        // The events of a task bear the tags of its plan.
        let tags = || reported.recorded.tags.clone();
        let planner = warm.entry(plan.clone()).or_insert_with(|| planner_of(&store, &plan, tags()));
        let position = reported.recorded.position;
        take_in_until_done(planner, reported).await;
        taken_in.send_replace(position);
        if let Phase::Ended(_) = planner.handler().state().phase() {
            warm.remove(&plan);
        }
    }
    Ok(())
}

/// The plans that have not ended, with their tags.
async fn open_plans(store: &EventStore, head: Position) -> Result<BTreeMap<String, Vec<String>>, Error> {
    let mut open = BTreeMap::new();
    let mut range = Range::up_to(head);
    loop {
        let page = store.read(&Query::stream(event::STREAM), range, PAGE).await?;
        for recorded in page.events {
            match recorded.decode::<Event>() {
                Ok(Event::TasksPlanned { .. } | Event::TasksReopened { .. }) => {
                    open.insert(recorded.aggregate_id, recorded.tags);
                }
                Ok(Event::PlanningCompleted { .. }) => {
                    open.remove(&recorded.aggregate_id);
                }
                Ok(
                    Event::TaskDispatched { .. }
                    | Event::TaskStatusUpdated { .. }
                    | Event::ClarificationRequested { .. }
                    | Event::ClarificationReceived { .. }
                    | Event::ContextCompacted { .. }
                    | Event::PlanForked { .. }
                    | Event::TasksAmended { .. }
                    | Event::SettingsChanged { .. }
                    | Event::TaskPaused { .. }
                    | Event::TaskResumed { .. }
                    | Event::DeadlineSet { .. }
                    | Event::UsageRecorded { .. }
                    | Event::ClarificationWithdrawn { .. }
                    | Event::CheckpointNamed { .. }
                    | Event::CompactionRequested { .. }
                    | Event::PlanPaused { .. }
                    | Event::PlanResumed {}
                    | Event::PlanCancelled { .. },
                )
                | Err(_) => {}
            }
        }
        if !page.more {
            return Ok(open);
        }
        range.after = page.next;
    }
}

/// A report is never dropped because the log could not be written just now. What can never be done is passed over, so that
/// one plan stands still and not all.
async fn take_in_until_done(planner: &mut Runner<Planner>, reported: Envelope<TaskEvent>) {
    let mut backoff = Backoff::new();
    while let Err(error) = take_in(planner, reported.clone()).await {
        if !wait_out(&error, &mut backoff).await {
            return;
        }
    }
}

async fn catch_up_until_done(store: &EventStore, plan: &str, tags: Vec<String>) {
    let mut backoff = Backoff::new();
    while let Err(error) = catch_up(store, plan, tags.clone()).await {
        if !wait_out(&error, &mut backoff).await {
            return;
        }
    }
}

/// Waits before another try; false when another would fail alike.
async fn wait_out(error: &Error, backoff: &mut Backoff) -> bool {
    let is_for_ever = matches!(
        error,
        Error::Decode { .. }
            | Error::Encode { .. }
            | Error::LimitPassed { .. }
            | Error::InvalidAppend { .. }
            | Error::Veil(_)
    );
    if is_for_ever {
        tracing::warn!(%error, "a plan cannot go on and stands still");
        return false;
    }
    tracing::warn!(%error, "the planner could not append and tries again");
    backoff.wait().await;
    true
}

async fn take_in(planner: &mut Runner<Planner>, reported: Envelope<TaskEvent>) -> Result<(), Error> {
    let Envelope { event, recorded, .. } = reported;
    let Some(task) = task_of(&recorded) else { return Ok(()) };
    let Some(report) = event.report(task) else { return Ok(()) };
    let cause = Cause::reaction(PROCESS, &recorded);
    loop {
        match planner.execute(Command::HandleExecutorEvent(report.clone()), &cause).await {
            Ok(_) => return Ok(()),
            Err(ExecuteError::Refused(refusal)) => {
                log_refusal(&recorded, &refusal);
                return Ok(());
            }
            // Each time another got ahead, so the plan as a whole goes on.
            Err(ExecuteError::Contended { .. }) => {}
            Err(ExecuteError::Store(error)) => return Err(error),
        }
    }
}

fn task_of(recorded: &Recorded) -> Option<TaskId> {
    Some(claim::split_aggregate_id(&recorded.aggregate_id)?.1)
}

fn log_refusal(recorded: &Recorded, refusal: &PlannerError) {
    tracing::info!(position = %recorded.position, %refusal, "the planner passes a report over");
}
