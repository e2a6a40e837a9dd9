//! The planner's host: it follows what executors and people append, and feeds it to the pure planner.
//!
//! Any number of processes may host the planner of one plan, or of all plans. The ids of new events derive from their cause, so
//! a report that is handled twice, by two hosts or after a crash, changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crewlog_mq::{
    Backoff, Cause, Envelope, Error, EventStore, ExecuteError, Position, Query, Range, Recorded, Runner, Start,
    Timestamp, retrying,
};
use crewlog_planner::claim::{self, TaskCommand};
use crewlog_planner::event::{self, Command, Event, Timer, plan_tag};
use crewlog_planner::listing::ListedPlan;
use crewlog_planner::plan_event::{PlanEvent, plan_of};
use crewlog_planner::planner::Planner;
use crewlog_planner::state::Phase;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::watch;

use crate::claiming::claim_of;
use crate::plans::{planner_of, read_plan, warn_of_item};
use crate::projecting::list_plans;
use crate::propagation::{Unreadable, follow_parent, propagate};
use crate::subplans::family;

/// The name under which the planner reacts.
const PROCESS: &str = "planner";

/// Planners that are kept warm by one host.
const WARM_MAX: usize = 512;
/// Events that are handled together, and plans that are handled side by side.
const TOGETHER_MAX: usize = 256;
/// The name under which the planner fires timers.
const TIMERS: &str = "timers";
/// How often a host that waits for a due time reads log time, which may leap.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The most timers of one plan set and fired in a row.
const TIMERS_MAX: usize = 10_000;

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
    let (mut planner, reported) = tokio::try_join!(planner, unhandled(store, plan))?;
    take_in(&mut planner, &reported).await?;
    let withdrawn = withdraw_unstarted(store, plan, &planner).await?;
    take_in(&mut planner, &withdrawn).await?;
    Ok(planner)
}

/// The reports from the newest one on that the planner has reacted to, or a few more: each host handles them in order.
async fn unhandled(store: &EventStore, plan: &str) -> Result<Vec<TaskReport>, Error> {
    let mut reported = Vec::new();
    let mut newest_first = std::pin::pin!(store.records(&task_events(plan), Range::default().backwards()));
    while let Some(recorded) = newest_first.try_next().await? {
        let event_id = recorded.event_id;
        let Some(report) = TaskReport::of(&Envelope::of(recorded)?) else { continue };
        let reaction = Query { causation_id: Some(event_id), ..Query::aggregate(event::STREAM, plan) };
        reported.push(report);
        if reported.len().is_power_of_two() && !store.read(&reaction, Range::default(), 1).await?.events.is_empty() {
            break;
        }
    }
    reported.reverse();
    Ok(reported)
}

/// Withdraws the dispatched tasks of a stopped plan that have not started. Returns the new reports of its tasks.
async fn withdraw_unstarted(
    store: &EventStore,
    plan: &str,
    planner: &Runner<Planner>,
) -> Result<Vec<TaskReport>, Error> {
    let state = planner.handler().state();
    if state.stopped_by.is_none() {
        return Ok(Vec::new());
    }
    let head = store.head().await?;
    for task in state.dispatched() {
        let mut claim = claim_of(store, plan, task.plan.id, planner.tags().to_vec());
        let command = TaskCommand::Withdraw { attempt: task.attempts };
        let cause = Cause::request().keeping(command.recorded());
        match claim.execute(command, &cause).await {
            // Another process started it or ended it first.
            Ok(_) | Err(ExecuteError::Refused(_) | ExecuteError::Contended { .. }) => {}
            Err(ExecuteError::Store(error)) => return Err(error),
        }
    }
    let envelopes = store.records(&task_events(plan), Range::after(head)).map(|recorded| Envelope::of(recorded?));
    envelopes.try_filter_map(async |envelope| Ok(TaskReport::of(&envelope))).try_collect().await
}

/// [`withdraw_unstarted`], retried. The subscription delivers the new events.
async fn withdraw_with_retry(store: &EventStore, plan: &str, planner: &Runner<Planner>) {
    let _ = retrying(|| withdraw_unstarted(store, plan, planner)).await;
}

/// Hosts the planner of a plan, and those of its sub-plans, until it is dropped. `taken_in` receives the position reached.
///
/// # Errors
/// A fault of the log while the open plans are first read, or one that ends its use.
pub async fn host(store: EventStore, plan: String, taken_in: watch::Sender<Position>) -> Result<(), Error> {
    host_matching(store, family("", &plan), taken_in).await
}

/// The position of the last event of a task.
fn last_report(events: &[Envelope<PlanEvent>]) -> Option<Position> {
    let mut of_tasks = events.iter().filter(|envelope| matches!(envelope.event, PlanEvent::Task(..)));
    of_tasks.next_back().map(|envelope| envelope.recorded.position)
}

/// Handles new events of a plan and its tasks.
async fn handle(store: &EventStore, plan: &str, planner: &mut Runner<Planner>, events: &[Envelope<PlanEvent>]) {
    let of_plan = || {
        events.iter().filter_map(|envelope| match &envelope.event {
            PlanEvent::Plan(event) => Some((event, envelope.recorded.position)),
            _of_a_task => None,
        })
    };
    let is_followed = |event: &Event| {
        matches!(event, Event::PlanPaused { .. } | Event::PlanResumed {} | Event::PlanningCompleted { .. })
    };
    if of_plan().any(|(event, _)| is_followed(event)) {
        propagate_with_retry(store, plan).await;
    }
    take_in_with_retry(planner, events).await;
    if of_plan().next_back().is_some_and(|(_, position)| position > planner.position()) {
        look(planner).await;
    }
    withdraw_with_retry(store, plan, planner).await;
    // The parent plan may have been paused or ended while this one was made, or resumed while this one was paused.
    let may_differ = |event: &Event| match event {
        Event::TasksPlanned { .. } => true,
        Event::PlanPaused { .. } => planner.handler().state().is_paused_from_parent(),
        _another => false,
    };
    if of_plan().any(|(event, _)| may_differ(event)) {
        follow_with_retry(store, plan, planner).await;
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
    let mut chunks =
        std::pin::pin!(store.subscribe_from::<PlanEvent>(&query, Start::After(head))?.ready_chunks(TOGETHER_MAX));
    loop {
        let next = hosted.next_due();
        tokio::select! {
            chunk = chunks.next() => {
                let Some(chunk) = chunk else { return Ok(()) };
                let mut events = Vec::with_capacity(chunk.len());
                for event in chunk {
                    match event {
                        Ok(envelope) => events.push(envelope),
                        Err(error) if error.is_final() => return Err(error),
                        Err(error) => warn_of_item(&error),
                    }
                }
                let last = last_report(&events);
                hosted.take(events).await;
                if let Some(position) = last {
                    taken_in.send_replace(position);
                }
            }
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
            // Any of them; all at once would be read again at once.
            let any = self.warm.keys().next().cloned();
            any.map(|any| self.warm.remove(&any));
        }
        self.warm.insert(plan.to_owned(), planner);
    }

    /// Handles new events, those of different plans side by side.
    async fn take(&mut self, events: Vec<Envelope<PlanEvent>>) {
        let mut by_plan: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for envelope in events {
            if let Some(plan) = plan_of(&envelope.recorded).map(str::to_owned) {
                by_plan.entry(plan).or_default().push(envelope);
            }
        }
        // The events of a task have the tags of its plan.
        let of_plans = by_plan.into_iter().map(|(plan, events)| (plan, events[0].recorded.tags.clone(), events));
        self.with_planners(of_plans.collect(), async |store, plan, planner, events| {
            handle(store, plan, planner, &events).await;
        })
        .await;
    }

    /// Acts on planners, side by side, and fires their timers that are due.
    async fn with_planners<T>(
        &mut self,
        plans: Vec<(String, Vec<String>, T)>,
        act: impl AsyncFn(&EventStore, &str, &mut Runner<Planner>, T),
    ) {
        let (store, act) = (&self.store, &act);
        let work = plans.into_iter().map(|(plan, tags, with)| {
            let warm = self.warm.remove(&plan);
            async move {
                let planner = match warm {
                    Some(planner) => Ok(planner),
                    None => read_plan(store, &plan, tags.clone()).await,
                };
                // An error: it can never be read.
                let acted = match planner {
                    Err(_) => None,
                    Ok(mut planner) => {
                        act(store, &plan, &mut planner, with).await;
                        let keeps_time = run_timers(store, &mut planner).await;
                        Some((planner, keeps_time))
                    }
                };
                (plan, tags, acted)
            }
        });
        let acted: Vec<_> =
            futures::stream::iter(work.collect::<Vec<_>>()).buffer_unordered(TOGETHER_MAX).collect().await;
        for (plan, tags, acted) in acted {
            match acted {
                Some((planner, keeps_time)) => self.keep(&plan, tags, planner, keeps_time),
                None => self.note_due(&plan, tags, None),
            }
        }
    }

    async fn run_due(&mut self) {
        let now = self.store.now();
        let due =
            self.due.iter().filter(|(_, (at, _))| *at <= now).map(|(plan, (_, tags))| (plan.clone(), tags.clone()));
        let due = due.map(|(plan, tags)| (plan, tags, ())).collect();
        self.with_planners(due, async |_, _, planner, ()| _ = look(planner).await).await;
    }
}

/// Ends, pauses and resumes the sub-plans of a plan with it, however long the log takes.
async fn propagate_with_retry(store: &EventStore, plan: &str) {
    let Ok(left) = retrying(|| propagate(store, plan)).await else {
        tracing::warn!(plan, "its sub-plans may continue without it");
        return;
    };
    for Unreadable { plan, error } in left {
        tracing::warn!(plan, %error, "a sub-plan cannot be read; it is left unchanged");
    }
}

/// Ends, pauses or resumes a sub-plan with its parent plan, however long the log takes.
async fn follow_with_retry(store: &EventStore, plan: &str, planner: &mut Runner<Planner>) {
    let mut backoff = Backoff::new();
    while let Err(error) = follow_parent(store, plan, planner).await {
        if !backoff.wait_to_retry(&error).await {
            return tracing::warn!(plan, "it may continue without its parent plan");
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
        if !backoff.wait_to_retry(&error).await {
            return false;
        }
    }
    true
}

/// Sets and fires the due timers of a planner. Returns false if no timer can be set or fired now: do not call it again before
/// a new event.
async fn run_timers(store: &EventStore, planner: &mut Runner<Planner>) -> bool {
    let (mut backoff, mut set) = (Backoff::new(), SetTimers::default());
    for _ in 0..TIMERS_MAX {
        if due_at(planner).is_none_or(|due| due > store.now()) {
            return true;
        }
        // After a failed append the planner's state is the default: read it again before it is asked for its timers.
        if let Err(error) = run_timer(store, planner, &mut set).await
            && !(backoff.wait_to_retry(&error).await && look(planner).await)
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
            tracing::info!(%refusal, "timer refused");
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

/// Retries while the log cannot be written, so no report is dropped. An error that a retry cannot cure blocks this plan alone.
async fn take_in_with_retry(planner: &mut Runner<Planner>, events: &[Envelope<PlanEvent>]) {
    let reports = events.iter().filter_map(TaskReport::of).collect::<Vec<_>>();
    let mut backoff = Backoff::new();
    while let Err(error) = take_in(planner, &reports).await
        && backoff.wait_to_retry(&error).await
    {}
}

/// None when the plan can never be read.
async fn catch_up_with_retry(store: &EventStore, plan: &str, tags: Vec<String>) -> Option<Runner<Planner>> {
    let caught_up = || async {
        let mut planner = catch_up(store, plan, tags.clone()).await?;
        follow_parent(store, plan, &mut planner).await.map(|()| planner)
    };
    retrying(caught_up).await.ok()
}

/// A task's report, as a command to the planner.
#[derive(Clone)]
struct TaskReport {
    position: Position,
    command: Command,
    cause: Cause,
}

impl TaskReport {
    /// Nothing for an event that does not concern the planner.
    fn of(Envelope { event, recorded, .. }: &Envelope<PlanEvent>) -> Option<Self> {
        let PlanEvent::Task(task, event) = event else { return None };
        let command = event.is_report().then(|| Command::HandleExecutorEvent { task: *task, event: event.clone() })?;
        Some(Self { position: recorded.position, command, cause: Cause::reaction(PROCESS, recorded) })
    }
}

/// Takes in reports, in one append as far as no other host was faster.
async fn take_in(planner: &mut Runner<Planner>, reports: &[TaskReport]) -> Result<(), Error> {
    for some in reports.chunks(TOGETHER_MAX) {
        let commands = some.iter().map(|report| (report.command.clone(), report.cause.clone())).collect();
        match planner.execute_all(commands).await {
            Ok(executed) => some.iter().zip(executed).for_each(|(report, executed)| {
                if let Err(refusal) = executed {
                    tracing::info!(position = %report.position, %refusal, "report refused");
                }
            }),
            // Another host has taken in some of them.
            Err(ExecuteError::Store(Error::PartlyKnown { .. } | Error::IdReused { .. })) if some.len() > 1 => {
                for one in some.chunks(1) {
                    Box::pin(take_in(planner, one)).await?;
                }
            }
            // Each conflict means that another process made progress.
            Err(ExecuteError::Contended { .. }) => Box::pin(take_in(planner, some)).await?,
            Err(ExecuteError::Refused(_)) => {}
            Err(ExecuteError::Store(error)) => return Err(error),
        }
    }
    Ok(())
}
