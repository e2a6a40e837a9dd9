//! The runtime of a process: worker, planner host, reacting processes, signals.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crewlog_executors::crew::{self, Crew, reacting};
use crewlog_executors::model::ModelError;
use crewlog_executors::planning;
use crewlog_executors::roster::Roster;
use crewlog_executors::worker::{InterruptedTask, Scope, Worker};
use crewlog_mq::{Error, EventStore, Position, Recorded};
use crewlog_planner::crew::conflicts::Conflicts;
use crewlog_planner::crew::statistics::Statistics;
use crewlog_planner::planner::PARALLELISM_MAX;
use futures::future::{OptionFuture, join, join_all};
use futures::{Stream, StreamExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::cli::typed::{duration, jobs};
use crate::context::config::ModelConfig;
use crate::context::{self, Session};
use crate::run::by_model::{self, unknown_model};
use crate::run::notices;
use crate::run::progress::Progress;
use crate::ui::failure::Failure;
use crate::ui::signals::Signals;
use crate::ui::terminal::say;
use crate::views::queries;

const TASK_TIMEOUT: &str = "1h";
/// Tasks of all plans at once, unless the command line says otherwise.
const JOBS: usize = 4;
/// How long a worker may take to stop what runs and to say so.
const STOP_WAIT: Duration = Duration::from_secs(15);

/// How a process runs tasks.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The most tasks that this process runs at once [default: what the plan allows; for `work` 4]
    #[arg(short, long, value_name = "N", value_parser = jobs())]
    pub jobs: Option<usize>,
    /// Stop after this long and exit with 8; the plan can be resumed (30s, 10m, 2h)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Stop a task after this long, unless it or its executor sets a timeout
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = TASK_TIMEOUT)]
    pub task_timeout: Duration,
    /// Let the configured model plan; when it fails, the text is parsed
    #[arg(long, conflicts_with = "no_model")]
    model: bool,
    /// Ask no model, whatever is configured
    #[arg(long)]
    no_model: bool,
}

impl RunArgs {
    /// The defaults, without asking a model.
    pub fn without_model() -> Self {
        let task_timeout = duration(TASK_TIMEOUT).expect("it is a duration");
        Self { jobs: None, timeout: None, task_timeout, model: false, no_model: true }
    }

    /// True if a model plans; the configuration decides when unset.
    pub fn by_model(&self) -> Option<bool> {
        (self.model || self.no_model).then_some(self.model)
    }
}

/// The worker, planner host and processes that run inside this program.
pub struct Runtime {
    worker: JoinHandle<Result<(), Error>>,
    host: JoinHandle<Result<(), Error>>,
    /// The crew of the working directory, whose timers run here.
    pub crew: Arc<Crew>,
    /// The position up to which the planner has handled reports.
    pub taken_in: watch::Receiver<Position>,
    /// The processes over all plans, and the timers of agents, if this process has their leader locks.
    reacting: [JoinHandle<io::Result<()>>; 3],
    notices: JoinHandle<io::Result<()>>,
    stop: watch::Sender<bool>,
    stop_reacting: watch::Sender<bool>,
    deadline: Option<Instant>,
    signals: Signals,
}

/// The next input of a process that runs tasks.
pub enum Next {
    Event(Box<Recorded>),
    /// The planner has handled more reports, or the log could not be read.
    Check,
    TimedOut,
    Interrupted,
}

impl Runtime {
    /// Takes the tasks of the plans in the scope, and hosts their planners.
    pub async fn start(
        session: &Session,
        store: &EventStore,
        roster: Roster,
        scope: Scope,
        interrupted: InterruptedTask,
        run_args: &RunArgs,
        signals: Signals,
    ) -> Result<Self, Failure> {
        let model = by_model::wanted(session, run_args.by_model())?;
        let unknown = session.config()?.model.as_ref().filter(|model| !model.may_be_asked());
        if let Some(model) = unknown.filter(|model| model.plan) {
            let agree = session.command("agree");
            say(&format!("warning: {}: it is asked nothing until a person agrees: {agree}", unknown_model(model)));
        }
        let model = model.filter(ModelConfig::may_be_asked);
        let life = session.place.liveness_lock()?;
        let (jobs, tags) = match &scope {
            // The limit of the plan may change while it runs; the planner applies it.
            Scope::Plan(plan) => (2 * PARALLELISM_MAX, queries::tags_of(store, plan).await?),
            Scope::All => (JOBS, Vec::new()),
        };
        let mut worker = Worker::new(store.clone(), roster, life, run_args.jobs.unwrap_or(jobs), interrupted);
        // It asks on behalf of new plans.
        let planner = model.map(|model| model.planner(store, "", tags));
        let made = planner.and_then(|made| or_warning(made, "no model plans for agents", "they plan by rule"));
        if let Some(planner) = made {
            worker = worker.planning_by(planner);
        }
        let (taking_in, taken_in) = watch::channel(Position(0));
        let host = match scope.clone() {
            Scope::Plan(plan) => tokio::spawn(planning::host(store.clone(), plan, taking_in)),
            Scope::All => tokio::spawn(planning::host_all(store.clone(), taking_in)),
        };
        let (stop_reacting, is_stopped) = watch::channel(false);
        let (crew, folder) = (context::crew::on(session, store)?, session.place.workers_folder());
        let reacting = [
            tokio::spawn(reacting::host::<Conflicts>(store.clone(), folder.clone(), is_stopped.clone())),
            tokio::spawn(reacting::host::<Statistics>(store.clone(), folder.clone(), is_stopped.clone())),
            tokio::spawn(crew::host(crew.clone(), folder, is_stopped.clone())),
        ];
        let notices = tokio::spawn(notices::host(session.clone(), crew.clone(), is_stopped));
        let (stop, is_stopped) = watch::channel(false);
        let worker = tokio::spawn(worker.run(scope, is_stopped));
        let deadline = run_args.timeout.map(|timeout| Instant::now() + timeout);
        Ok(Self { worker, host, crew, taken_in, reacting, notices, stop, stop_reacting, deadline, signals })
    }

    /// Waits for the next event, or for a reason to check the plans again or to stop. Ends the worker with its tasks, and the
    /// planner, if the log was replaced or went back.
    pub async fn next(
        &mut self,
        events: &mut (impl Stream<Item = Result<Recorded, Error>> + Unpin),
        progress: &Progress,
    ) -> Result<Next, Failure> {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(recorded)) => return Ok(Next::Event(Box::new(recorded))),
                // Nothing done here would reach the log any more.
                Some(Err(error)) if error.is_final() => {
                    self.end().await;
                    return Err(error.into());
                }
                Some(Err(error)) if error.is_outage() => {}
                Some(Err(error)) => progress.note(&format!("the log could not be read: {error}")),
                None => return Err(Failure::user("the log can no longer be followed")),
            },
            Ok(()) = self.taken_in.changed() => {}
            Some(()) = OptionFuture::from(self.deadline.map(sleep_until)) => return Ok(Next::TimedOut),
            () = self.signals.next() => return Ok(Next::Interrupted),
            // These never end by themselves.
            ended = &mut self.worker => return Err(ended_early("the worker", ended)),
            ended = &mut self.host => {
                self.end().await;
                return Err(ended_early("the planner", ended));
            }
        }
        Ok(Next::Check)
    }

    /// Ends with the log. The worker sees that too, and interrupts tasks after the log went back, however long that takes.
    async fn end(&mut self) {
        self.host.abort();
        self.stop.send_replace(true);
        if !self.worker.is_finished() {
            tokio::select! {
                _ = &mut self.worker => {}
                () = self.signals.next() => self.worker.abort(),
            }
        }
    }

    /// Stops the worker and waits until it has recorded that, another signal comes, or it takes too long.
    pub async fn stop(&mut self, progress: &Progress, is_interrupted: bool) {
        progress.pause();
        if is_interrupted {
            progress.note("interrupted: stopping the running tasks (interrupt again to end at once)");
            // The person who interrupts needs no notice of a plan that nobody runs.
            self.notices.abort();
        }
        self.stop.send_replace(true);
        if !self.worker.is_finished() {
            tokio::select! {
                _ = &mut self.worker => {}
                () = self.signals.next() => {}
                // Without its worker a command ends too; only how it ended is not in the log.
                () = tokio::time::sleep(STOP_WAIT) => {
                    progress.note("the worker did not stop in time, so the log does not show how its tasks ended");
                }
            }
        }
        self.host.abort();
        // They process the log up to now; if they cannot, a later host does.
        self.stop_reacting.send_replace(true);
        let reacting = join_all(&mut self.reacting);
        tokio::select! {
            (ended, _notices) = join(reacting, &mut self.notices) => for ended in ended {
                match ended {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => progress.note(&format!("conflicts and statistics are out of date: {error}")),
                    Err(error) => progress.note(&format!("the process for conflicts and statistics failed: {error}")),
                }
            },
            () = self.signals.next() => {}
        }
    }
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
