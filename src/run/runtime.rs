//! The runtime of a process: worker, planner host, reacting processes, signals.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crewlog_executors::links::{LINK_TIME_MAX, Links};
use crewlog_executors::model::{Client, ModelError};
use crewlog_executors::roster::Roster;
use crewlog_executors::summaries::Summarizer;
use crewlog_executors::worker::{InterruptedTask, Scope, Worker};
use crewlog_executors::{planning, reacting, summaries};
use crewlog_mq::{Error, EventStore, Position, Recorded};
use crewlog_planner::crew::conflicts::Conflicts;
use crewlog_planner::crew::statistics::Statistics;
use crewlog_planner::lifecycle::{Observed, State, States, Taker};
use crewlog_planner::plan::TaskPlan;
use crewlog_planner::sealed::is_plan_undecryptable;
use crewlog_planner::state::{Phase, Task};
use crewlog_planner::view::PlanView;
use futures::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::context::Session;
use crate::context::config::ModelConfig;
use crate::run::progress::Progress;
use crate::ui::failure::Failure;
use crate::ui::signals::Signals;
use crate::ui::terminal::say;

/// How long a worker may take to stop what runs and to say so.
const STOP_WAIT: Duration = Duration::from_secs(15);

/// The worker, planner host and processes that run inside this program.
pub struct Runtime {
    worker: JoinHandle<Result<(), Error>>,
    host: JoinHandle<Result<(), Error>>,
    /// The position up to which the planner has handled reports.
    pub taken_in: watch::Receiver<Position>,
    /// The processes over all plans whose leader locks this process has.
    reacting: [JoinHandle<io::Result<()>>; 2],
    /// Writes summaries, when a model is configured for that.
    summaries: Option<JoinHandle<Result<(), Error>>>,
    stop: watch::Sender<bool>,
    stop_reacting: watch::Sender<bool>,
}

pub struct RuntimeOptions {
    pub roster: Roster,
    /// The plans whose tasks it takes and whose planners it hosts.
    pub scope: Scope,
    pub interrupted: InterruptedTask,
    pub jobs: usize,
    /// The model for planning by agents; unset to plan by rule.
    pub model: Option<ModelConfig>,
}

/// True while these executors can advance a plan. `all` are its possible sub-plans.
pub fn is_busy(roster: &Roster, plan: &str, view: &PlanView, all: &BTreeMap<String, PlanView>) -> bool {
    let state = view.state();
    if is_plan_undecryptable(state) {
        return false;
    }
    let is_run = |task| state.task(task).is_some_and(|task| roster.takes(&task.plan));
    // The host withdraws the dispatched tasks of a stopped plan.
    let is_free = |task: &Task| view.holder(task.plan.id).is_none();
    let is_withdrawn = state.phase == Phase::Active && state.stopped_by.is_some() && state.dispatched().any(is_free);
    view.has_unhandled_report() || is_withdrawn || states(roster, plan, view, all).go_on(is_run)
}

/// The states of a plan that these executors run. `all` are its possible sub-plans.
pub fn states(roster: &Roster, plan: &str, view: &PlanView, all: &BTreeMap<String, PlanView>) -> States {
    let taker = |task: &TaskPlan| if roster.takes(task) { Taker::Worker } else { Taker::Nobody };
    let sub_plan = |below: &str| {
        let view = all.get(below).filter(|view| view.state().phase != Phase::Empty)?;
        let state = states(roster, below, view, all).plan.state;
        let goes_on = !state.is_end() && is_busy(roster, below, view, all);
        Some(if goes_on { State::Waiting } else { state })
    };
    States::of(plan, view, &Observed { taker: &taker, sub_plan: &sub_plan, ..Observed::default() })
}

impl Runtime {
    /// Starts to act. The tags are those of the events of a plan, when the scope is one.
    pub fn start(
        session: &Session,
        store: &EventStore,
        options: RuntimeOptions,
        tags: Vec<String>,
    ) -> Result<Self, Failure> {
        let life = session.place.liveness_lock()?;
        let mut worker = Worker::new(store.clone(), options.roster, life, options.jobs, options.interrupted);
        // It asks on behalf of new plans.
        let planner = options.model.and_then(|model| {
            or_warning(model.planner(store, "", tags), "no model plans for agents", "they plan by rule")
        });
        if let Some(planner) = planner {
            worker = worker.planning_by(planner);
        }
        if session.config()?.check_links {
            worker = worker.checking_links(Links::new(LINK_TIME_MAX).map_err(|error| {
                Failure::user(format!("links cannot be checked: {error}")).hint("set check_links = false")
            })?);
        }
        let (taking_in, taken_in) = watch::channel(Position(0));
        let host = match options.scope.clone() {
            Scope::Plan(plan) => tokio::spawn(planning::host(store.clone(), plan, taking_in)),
            Scope::All => tokio::spawn(planning::host_all(store.clone(), taking_in)),
        };
        let summaries = summarizer(session)?.map(|summarizer| {
            let (store, scope) = (store.clone(), options.scope.clone());
            tokio::spawn(async move { summaries::host(store, scope, summarizer).await })
        });
        let (stop_reacting, is_stopped) = watch::channel(false);
        let folder = session.place.workers_folder();
        let reacting = [
            tokio::spawn(reacting::host::<Conflicts>(store.clone(), folder.clone(), is_stopped.clone())),
            tokio::spawn(reacting::host::<Statistics>(store.clone(), folder, is_stopped)),
        ];
        let (stop, is_stopped) = watch::channel(false);
        let worker = tokio::spawn(worker.run(options.scope, is_stopped));
        Ok(Self { worker, host, taken_in, reacting, summaries, stop, stop_reacting })
    }

    /// Resolves only when a part that never ends by itself has ended.
    pub async fn fault(&mut self) -> Failure {
        tokio::select! {
            ended = &mut self.worker => ended_early("the worker", ended),
            ended = &mut self.host => ended_early("the planner", ended),
        }
    }

    /// The next event, if it could be read. Ends the worker with its tasks, and the planner, if the log was replaced or went back.
    pub fn event(
        &self,
        event: Option<Result<Recorded, Error>>,
        progress: &Progress,
    ) -> Result<Option<Recorded>, Failure> {
        match event {
            Some(Ok(recorded)) => return Ok(Some(recorded)),
            // Nothing done here would reach the log any more.
            Some(Err(error)) if error.is_final() => {
                self.worker.abort();
                self.host.abort();
                return Err(error.into());
            }
            Some(Err(error)) => progress.note(&format!("the log could not be read: {error}")),
            None => return Err(Failure::user("the log can no longer be followed")),
        }
        Ok(None)
    }

    /// Stops the worker and waits until it has recorded that, another signal comes, or it takes too long.
    pub async fn stop(&mut self, signals: &mut Signals, note: impl Fn(&str)) {
        self.stop.send_replace(true);
        if !self.worker.is_finished() {
            tokio::select! {
                _ = &mut self.worker => {}
                () = signals.next() => {}
                // Without its worker a command ends too; only how it ended is not in the log.
                () = tokio::time::sleep(STOP_WAIT) => {
                    note("the worker did not stop in time, so the log does not show how its tasks ended");
                }
            }
        }
        self.host.abort();
        self.summaries.iter().for_each(JoinHandle::abort);
        // They process the log up to now; if they cannot, a later host does.
        self.stop_reacting.send_replace(true);
        let reacting = join_all(&mut self.reacting);
        tokio::select! {
            ended = reacting => for ended in ended {
                match ended {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => note(&format!("conflicts and statistics are out of date: {error}")),
                    Err(error) => note(&format!("the process for conflicts and statistics failed: {error}")),
                }
            },
            () = signals.next() => {}
        }
    }
}

/// The model that writes summaries, if one is configured for that and can be asked.
fn summarizer(session: &Session) -> Result<Option<Summarizer>, Failure> {
    let Some(config) = session.config()?.model.clone().filter(|model| model.summaries) else { return Ok(None) };
    let ModelConfig { parameters, settings, retry_policy, .. } = config;
    let client = or_warning(Client::new(settings), "no model writes summaries", "they are made by rule");
    Ok(client.map(|client| Summarizer { model: Arc::new(client), retry_policy, parameters }))
}

fn or_warning<T>(made: Result<T, ModelError>, what: &str, instead: &str) -> Option<T> {
    made.inspect_err(|error| say(&format!("warning: {what}: {error}; {instead}"))).ok()
}

fn ended_early(part: &str, ended: Result<Result<(), Error>, tokio::task::JoinError>) -> Failure {
    match ended {
        Ok(Ok(())) => Failure::user(format!("{part} stopped: the log can no longer be followed")),
        Ok(Err(error)) => error.into(),
        Err(error) => Failure::user(format!("{part} stopped: {error}")),
    }
}
