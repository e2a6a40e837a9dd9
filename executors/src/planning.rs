//! The planner's host: it follows what executors and people append, and feeds it to the pure planner.
//!
//! Any number of processes may host the planner of one plan, or of all plans. The ids of what it appends are derived from the cause, so
//! a report that is handled twice, by two hosts or after a crash, changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crewlog_mq::{
    Cause, Error, EventStore, ExecuteError, Followed, Position, Query, Range, Recorded, Runner, Start, Timestamp,
};
use crewlog_planner::claim::{self, TaskCommand, TaskEvent};
use crewlog_planner::event::{self, Command, Event, ExecutorEvent, Timer, ancestor_tag, plan_tag};
use crewlog_planner::listing::ListedPlan;
use crewlog_planner::planner::{Planner, PlannerError};
use crewlog_planner::state::Phase;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::watch;

use crate::backoff::Backoff;
use crate::claiming::claim_of;
use crate::plans::{plan_of, planner_of, read_plan, retrying, wait_to_retry};
use crate::projecting::list_plans;
use crate::propagation::{Unreadable, follow_parent, propagate};

/// The name under which the planner reacts.
const PROCESS: &str = "planner";

/// Planners that are kept warm by one host.
const WARM_MAX: usize = 64;
/// The name under which the planner fires timers.
const TIMERS: &str = "timers";
/// How often a host that waits for a due time reads log time, which may leap.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The most timers of one plan set and fired in a row.
const TIMERS_MAX: usize = 10_000;
/// The events of a plan that its sub-plans follow.
const STEPS: [&str; 3] = [PAUSED, "PlanResumed", "PlanningCompleted"];
/// After this event a sub-plan that was paused with its parent checks the parent again.
const PAUSED: &str = "PlanPaused";

/// The events of a plan's tasks.
fn task_events(plan: &str) -> Query {
    Query { stream_id: claim::STREAM.into(), tags: vec![plan_tag(plan)], ..Query::default() }
}

/// Handles all reports of a plan up to now, and returns its planner.
///
/// # Errors
/// A fault of the log.
pub async fn catch_up(store: &EventStore, plan: &str, tags: Vec<String>) -> Result<Runner<Planner>, Error> {
    let planner = async {
        let mut planner = planner_of(store, plan, tags).await?;
        planner.catch_up().await.map(|()| planner)
    };
    let reported = store.records(&task_events(plan), Range::default()).try_collect::<Vec<_>>();
    let (mut planner, reported) = tokio::try_join!(planner, reported)?;
    for recorded in &reported {
        if let Some(report) = report_of(recorded)? {
            take_in(&mut planner, recorded, report).await?;
        }
    }
    for recorded in withdraw_unstarted(store, plan, &planner).await? {
        if let Some(report) = report_of(&recorded)? {
            take_in(&mut planner, &recorded, report).await?;
        }
    }
    Ok(planner)
}

/// Withdraws the dispatched tasks of a stopped plan that have not started. Returns the new events of its tasks.
async fn withdraw_unstarted(store: &EventStore, plan: &str, planner: &Runner<Planner>) -> Result<Vec<Recorded>, Error> {
    let state = planner.handler().state();
    if state.stopped_by.is_none() {
        return Ok(Vec::new());
    }
    let head = store.head().await?;
    for task in state.dispatched() {
        let mut claim = claim_of(store, plan, task.plan.id, planner.tags().to_vec());
        let command = TaskCommand::Withdraw { attempt: task.attempts, now: store.now() };
        let cause = Cause::request().keeping(command.recorded());
        match claim.execute(command, &cause).await {
            // Another process started it or ended it first.
            Ok(_) | Err(ExecuteError::Refused(_) | ExecuteError::Contended { .. }) => {}
            Err(ExecuteError::Store(error)) => return Err(error),
        }
    }
    store.records(&task_events(plan), Range::after(head)).try_collect().await
}

/// [`withdraw_unstarted`], retried. The subscription delivers the new events.
async fn withdraw_with_retry(store: &EventStore, plan: &str, planner: &Runner<Planner>) {
    let _ = retrying(|| withdraw_unstarted(store, plan, planner)).await;
}

/// Hosts the planner of a plan, and those of its sub-plans: takes in what is reported, from the beginning on, for
/// ever. Drop it to end it. `taken_in` receives the position reached in the plan itself.
///
/// # Errors
/// Only when the log refuses to be followed.
pub async fn host(
    store: EventStore,
    plan: String,
    tags: Vec<String>,
    taken_in: watch::Sender<Position>,
) -> Result<(), Error> {
    let sub_plans = Query::tag(ancestor_tag(&plan));
    let sub_plans = host_matching(store.clone(), sub_plans, watch::channel(Position(0)).0);
    tokio::try_join!(host_one(store, plan, tags, taken_in), sub_plans).map(drop)
}

async fn host_one(
    store: EventStore,
    plan: String,
    tags: Vec<String>,
    taken_in: watch::Sender<Position>,
) -> Result<(), Error> {
    let query = Query::tag(plan_tag(&plan));
    let mut planner = planner_of(&store, &plan, tags).await?;
    let mut events = std::pin::pin!(store.follow_marked(&query, Start::Beginning));
    // Until the history is read, act on nothing: events that are long past must not be acted on one by one.
    let (mut is_live, mut keeps_time) = (false, true);
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(Followed::Event(recorded))) => {
                    let position = recorded.position;
                    let moves_sub_plans = is_live && STEPS.contains(&recorded.event_type.as_str());
                    let pauses = is_live && recorded.event_type == PAUSED;
                    let is_report = recorded.stream_id == claim::STREAM;
                    if is_report {
                        take_in_with_retry(&mut planner, &recorded).await;
                    }
                    if is_live && position > planner.position() {
                        look(&mut planner).await;
                    }
                    if is_live {
                        withdraw_with_retry(&store, &plan, &planner).await;
                    }
                    if pauses && planner.handler().state().is_paused_from_parent() {
                        follow_with_retry(&store, &plan, &mut planner).await;
                    }
                    if moves_sub_plans {
                        propagate_with_retry(&store, &plan).await;
                    }
                    if is_report {
                        taken_in.send_replace(position);
                    }
                }
                Some(Ok(Followed::CaughtUp(_))) => {
                    is_live = true;
                    look(&mut planner).await;
                    withdraw_with_retry(&store, &plan, &planner).await;
                }
                Some(Err(error)) if error.is_final() || matches!(error, Error::LimitPassed { .. }) => return Err(error),
                Some(Err(error)) => tracing::warn!(%error, "an event of a plan is passed over"),
                None => return Ok(()),
            },
            () = wait_until(&store, due_at(&planner)), if is_live && keeps_time => {}
        }
        if is_live {
            keeps_time = run_timers(&store, &mut planner).await;
        }
    }
}

/// Hosts the planner of every plan in the log, until it is dropped. `taken_in` receives the position reached.
///
/// # Errors
/// A fault of the log while the open plans are first read.
pub async fn host_all(store: EventStore, taken_in: watch::Sender<Position>) -> Result<(), Error> {
    host_matching(store, Query::all(), taken_in).await
}

/// Hosts the planner of every plan whose events match.
async fn host_matching(store: EventStore, query: Query, taken_in: watch::Sender<Position>) -> Result<(), Error> {
    let head = store.head().await?;
    let mut hosted = Hosted { store, warm: HashMap::new(), due: BTreeMap::new() };
    // Reports cannot change a plan that has ended.
    let plans = Query { stream_id: event::STREAM.into(), ..query.clone() };
    for (plan, tags) in open_plans(&hosted.store, &plans, head).await? {
        if let Some(mut planner) = catch_up_with_retry(&hosted.store, &plan, tags.clone()).await {
            let keeps_time = run_timers(&hosted.store, &mut planner).await;
            hosted.note_due(&plan, tags, due_at(&planner).filter(|_| keeps_time));
        }
    }
    taken_in.send_replace(head);
    let store = hosted.store.clone();
    let mut events = std::pin::pin!(store.follow(&query, Start::After(head)));
    loop {
        let next = hosted.next_due();
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(recorded)) => {
                    let position = recorded.position;
                    let is_report = recorded.stream_id == claim::STREAM;
                    hosted.take(recorded).await;
                    if is_report {
                        taken_in.send_replace(position);
                    }
                }
                Some(Err(error)) if error.is_final() => return Err(error),
                Some(Err(error)) => tracing::warn!(%error, "an event of a task is passed over"),
                None => return Ok(()),
            },
            () = wait_until(&store, next) => hosted.run_due().await,
        }
    }
}

/// The warm planners of plans, and when each has its next timer.
struct Hosted {
    store: EventStore,
    warm: HashMap<String, Runner<Planner>>,
    /// By plan: the due time, and the tags of its events.
    due: BTreeMap<String, (Timestamp, Vec<String>)>,
}

impl Hosted {
    fn next_due(&self) -> Option<Timestamp> {
        self.due.values().map(|(at, _)| *at).min()
    }

    fn note_due(&mut self, plan: &str, tags: Vec<String>, at: Option<Timestamp>) {
        match at {
            Some(at) => drop(self.due.insert(plan.to_owned(), (at, tags))),
            None => drop(self.due.remove(plan)),
        }
    }

    /// A planner that has been read. None when the plan can never be read.
    async fn planner(&mut self, plan: &str, tags: &[String]) -> Option<Runner<Planner>> {
        match self.warm.remove(plan) {
            Some(planner) => Some(planner),
            None => read_plan(&self.store, plan, tags.to_vec()).await.ok(),
        }
    }

    /// Keeps a planner warm, unless its plan has ended.
    fn keep(&mut self, plan: &str, tags: Vec<String>, planner: Runner<Planner>, keeps_time: bool) {
        let phase = planner.handler().state().phase;
        // After an append that failed for good the state is the default, and does not know the timers.
        if phase != Phase::Empty || !keeps_time {
            self.note_due(plan, tags, due_at(&planner).filter(|_| keeps_time));
        }
        if let Phase::Empty | Phase::Ended(_) = phase {
            return;
        }
        if self.warm.len() >= WARM_MAX {
            self.warm.clear();
        }
        self.warm.insert(plan.to_owned(), planner);
    }

    async fn take(&mut self, recorded: Recorded) {
        let Some(plan) = plan_of(&recorded).map(str::to_owned) else { return };
        if STEPS.contains(&recorded.event_type.as_str()) {
            propagate_with_retry(&self.store, &plan).await;
        }
        // The events of a task bear the tags of its plan.
        let tags = recorded.tags.clone();
        let begins = recorded.stream_id == event::STREAM && recorded.event_type == "TasksPlanned";
        let pauses = recorded.event_type == PAUSED;
        let Some(mut planner) = self.planner(&plan, &tags).await else { return };
        if recorded.stream_id == claim::STREAM {
            take_in_with_retry(&mut planner, &recorded).await;
        } else if recorded.position > planner.position() {
            look(&mut planner).await;
        }
        withdraw_with_retry(&self.store, &plan, &planner).await;
        // The parent plan may have been paused or ended while this one was made, or resumed while this one was paused.
        if begins || (pauses && planner.handler().state().is_paused_from_parent()) {
            follow_with_retry(&self.store, &plan, &mut planner).await;
        }
        let keeps_time = run_timers(&self.store, &mut planner).await;
        self.keep(&plan, tags, planner, keeps_time);
    }

    async fn run_due(&mut self) {
        let now = self.store.now();
        let due =
            self.due.iter().filter(|(_, (at, _))| *at <= now).map(|(plan, (_, tags))| (plan.clone(), tags.clone()));
        for (plan, tags) in due.collect::<Vec<_>>() {
            let Some(mut planner) = self.planner(&plan, &tags).await else {
                self.due.remove(&plan);
                continue;
            };
            look(&mut planner).await;
            let keeps_time = run_timers(&self.store, &mut planner).await;
            self.keep(&plan, tags, planner, keeps_time);
        }
    }
}

/// Ends, pauses and resumes the sub-plans of a plan with it, however long the log takes.
async fn propagate_with_retry(store: &EventStore, plan: &str) {
    let Ok(left) = retrying(|| propagate(store, plan)).await else {
        tracing::warn!(plan, "its sub-plans may go on");
        return;
    };
    for Unreadable { plan, error } in left {
        tracing::warn!(plan, %error, "a sub-plan cannot be read, and stays as it is");
    }
}

/// Ends, pauses or resumes a sub-plan with its parent plan, however long the log takes.
async fn follow_with_retry(store: &EventStore, plan: &str, planner: &mut Runner<Planner>) {
    let mut backoff = Backoff::new();
    while let Err(error) = follow_parent(store, plan, planner).await {
        if !wait_to_retry(&error, &mut backoff).await {
            tracing::warn!(plan, "it may go on without its parent plan");
            return;
        }
    }
}

/// When a timer of a planner is due; at once when one has no due time yet.
fn due_at(planner: &Runner<Planner>) -> Option<Timestamp> {
    planner.handler().state().next_timer().map(|(due, _)| due.unwrap_or(Timestamp(i64::MIN)))
}

/// Returns when log time reaches a moment; never without one. Log time may leap, so it is read now
/// and again.
async fn wait_until(store: &EventStore, moment: Option<Timestamp>) {
    let Some(moment) = moment else { return std::future::pending().await };
    loop {
        let left = moment.since(store.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK_INTERVAL)).await;
    }
}

/// Reads what others have appended, however long the log takes. A planner that cannot be read has no state to act on.
async fn look(planner: &mut Runner<Planner>) -> bool {
    let mut backoff = Backoff::new();
    while let Err(error) = planner.catch_up().await {
        if !wait_to_retry(&error, &mut backoff).await {
            return false;
        }
    }
    true
}

/// Sets and fires the timers of a planner that are due. False when that helps nothing until something else happens: then
/// the plan is blocked, and its host must not retry forever.
async fn run_timers(store: &EventStore, planner: &mut Runner<Planner>) -> bool {
    let (mut backoff, mut set) = (Backoff::new(), SetTimers::default());
    for _ in 0..TIMERS_MAX {
        if due_at(planner).is_none_or(|due| due > store.now()) {
            return true;
        }
        // After a failed append the planner's state is the default: read it again before it is asked for its timers.
        if let Err(error) = run_timer(store, planner, &mut set).await
            && !(wait_to_retry(&error, &mut backoff).await && look(planner).await)
        {
            return false;
        }
    }
    false
}

/// Sets the timers that have no due time, or fires the one that is due. The ids of the resulting events derive from the event
/// that set the timer.
async fn run_timer(store: &EventStore, planner: &mut Runner<Planner>, set: &mut SetTimers) -> Result<(), Error> {
    let state = planner.handler().state();
    let (command, cause) = match state.next_timer() {
        Some((Some(due), timer)) => {
            let cause = set.by(store, planner.aggregate_id(), timer, due).await?;
            let cause = cause.map_or_else(Cause::request, |recorded| Cause::reaction(TIMERS, recorded));
            (Command::FireTimer { timer, due }, cause)
        }
        Some((None, _)) | None => {
            // The new events are newer than those in the cache.
            *set = SetTimers::default();
            (Command::SetTimers { now: store.now() }, Cause::request())
        }
    };
    let cause = cause.keeping(command.recorded());
    match planner.execute(command, &cause).await {
        Ok(_) => Ok(()),
        Err(ExecuteError::Refused(refusal)) => {
            tracing::info!(%refusal, "the planner passes a timer over");
            Ok(())
        }
        // Each conflict means that another process made progress.
        Err(ExecuteError::Contended { .. }) => Ok(()),
        Err(ExecuteError::Store(error)) => Err(error),
    }
}

/// A cache of the events that set a plan's timers, read backwards on demand, so that many timers due at once cost one scan.
#[derive(Default)]
struct SetTimers {
    events: BTreeMap<(Timer, Timestamp), Recorded>,
    /// The oldest position read so far.
    read_from: Option<Position>,
}

impl SetTimers {
    /// The event that set a timer.
    async fn by(
        &mut self,
        store: &EventStore,
        plan: &str,
        timer: Timer,
        due: Timestamp,
    ) -> Result<Option<&Recorded>, Error> {
        let set = Query::aggregate(event::STREAM, plan).of_type("TimerSet");
        let up_to = self.read_from.map(|position| Position(position.0 - 1));
        let mut older = std::pin::pin!(store.records(&set, Range { up_to, ..Range::default().backwards() }));
        while !self.events.contains_key(&(timer, due))
            && let Some(recorded) = older.try_next().await?
        {
            self.read_from = Some(recorded.position);
            if let Event::TimerSet { timer, due } = recorded.decode()? {
                // Of two events that set one timer, the newer counts.
                self.events.entry((timer, due)).or_insert(recorded);
            }
        }
        Ok(self.events.get(&(timer, due)))
    }
}

/// Sets and fires due timers of a plan, for commands that act on a plan without a host.
///
/// # Errors
/// A fault of the log.
pub async fn keep_time(planner: &mut Runner<Planner>, store: &EventStore) -> Result<(), Error> {
    planner.catch_up().await?;
    if due_at(planner).is_some_and(|due| due <= store.now()) {
        run_timer(store, planner, &mut SetTimers::default()).await
    } else {
        Ok(())
    }
}

/// The plans that have not ended, with their tags. Of the query its tags count.
pub(crate) async fn open_plans(
    store: &EventStore,
    plans: &Query,
    head: Position,
) -> Result<BTreeMap<String, Vec<String>>, Error> {
    let list = list_plans(store, Some(head)).await?;
    let matches = |plan: &&ListedPlan| {
        let mut queries = plans.or.iter().chain([plans]);
        queries.any(|query| query.tags.iter().all(|tag| plan.tags.contains(tag)))
    };
    Ok(list.open().filter(matches).map(|plan| (plan.id.clone(), plan.tags.clone())).collect())
}

/// A report is never dropped because the log could not be written just now. What can never be done is passed over, so that
/// one plan is blocked and not all.
async fn take_in_with_retry(planner: &mut Runner<Planner>, recorded: &Recorded) {
    let report = match report_of(recorded) {
        Ok(Some(report)) => report,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(%error, "an event of a task is passed over");
            return;
        }
    };
    let mut backoff = Backoff::new();
    while let Err(error) = take_in(planner, recorded, report.clone()).await {
        if !wait_to_retry(&error, &mut backoff).await {
            return;
        }
    }
}

/// None when the plan can never be read.
async fn catch_up_with_retry(store: &EventStore, plan: &str, tags: Vec<String>) -> Option<Runner<Planner>> {
    let caught_up = || async {
        let mut planner = catch_up(store, plan, tags.clone()).await?;
        follow_parent(store, plan, &mut planner).await.map(|()| planner)
    };
    retrying(caught_up).await.ok()
}

async fn take_in(planner: &mut Runner<Planner>, recorded: &Recorded, report: ExecutorEvent) -> Result<(), Error> {
    let cause = Cause::reaction(PROCESS, recorded);
    loop {
        let report = Command::HandleExecutorEvent(report.clone());
        // Most events before the planner's position are handled already: do not read them again.
        let taken_in = if recorded.position <= planner.position() {
            planner.execute_as_read(report, &cause).await
        } else {
            planner.execute(report, &cause).await
        };
        match taken_in {
            Ok(_) => return Ok(()),
            Err(ExecuteError::Refused(refusal)) => {
                log_refusal(recorded, &refusal);
                return Ok(());
            }
            // Each conflict means that another process made progress.
            Err(ExecuteError::Contended { .. }) => {}
            Err(ExecuteError::Store(error)) => return Err(error),
        }
    }
}

/// Converts a task event to a report to the planner, if it is one.
fn report_of(recorded: &Recorded) -> Result<Option<ExecutorEvent>, Error> {
    let Some((_, task)) = claim::split_aggregate_id(&recorded.aggregate_id) else { return Ok(None) };
    Ok(recorded.decode::<TaskEvent>()?.report(task))
}

fn log_refusal(recorded: &Recorded, refusal: &PlannerError) {
    tracing::info!(position = %recorded.position, %refusal, "the planner passes a report over");
}
