//! One run of a program under a supervisor: its output, its time-out, its stop, its end. The executor judges the exit code.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crewlog_planner::claim::{Ending, OutputFile, RunDetails};
use crewlog_planner::event::{FailureClass, TaskInput, Usage};
use crewlog_planner::plan::TaskId;
use crewlog_planner::text::{duration, millis};
use futures::future::BoxFuture;
use tokio::sync::watch;

use crate::output::{Outputs, Written, shortened};
use crate::runs::OutputTo;
use crate::supervisor::{Ended, Exit, Spec, Supervisor};

/// Between asking a program to end and killing it, unless the configuration sets another time.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long after its program was signalled a worker may still receive its own stop signal.
const SIGNAL_GRACE: Duration = Duration::from_millis(500);

/// How long the news that a program has ended may take to its worker.
const IN_FLIGHT: Duration = Duration::from_millis(200);

/// Why a run is to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The plan no longer wants it.
    Cancelled {
        /// Why.
        reason: String,
    },
    /// The worker ends; another may take the task.
    Interrupted,
    /// The worker lost the task to another.
    Lost,
    /// A budget is used up; that of a day for so long.
    OverBudget {
        /// The budget, and the usage.
        error: String,
        /// Until the budget of the day begins again.
        wait_ms: Option<u64>,
    },
}

impl Report {
    /// Without any usage.
    pub(crate) fn of(ending: Ending) -> Self {
        Self { ending, usage: Usage::default() }
    }
}

impl Stop {
    /// The ending of a run that is stopped for this reason.
    pub(crate) fn ending(self, is_running: bool) -> Ending {
        match self {
            Self::Cancelled { reason } => Ending::Stopped { reason },
            Self::OverBudget { error, wait_ms } => {
                let retry_after_ms = wait_ms;
                let class = wait_ms.map_or(FailureClass::OverBudget, |_| FailureClass::RateLimited { retry_after_ms });
                Ending::Failed { error, class, run: None }
            }
            Self::Interrupted | Self::Lost => {
                Ending::Released { reason: "the worker was interrupted".into(), cut_off: is_running }
            }
        }
    }
}

/// How a run ended, and its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// All of its usage that is known.
    pub usage: Usage,
}

/// The facts about a run before its end, as far as its program tells them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SoFar {
    /// The id of its session.
    pub session: Option<String>,
    /// Its usage so far.
    pub used: Usage,
    /// True once its program has told its end: it exits with its result, and no budget stops it any more.
    pub has_ended: bool,
}

/// Takes the facts about a run as they come. Its output goes to the file of the job.
pub type Sink = watch::Sender<SoFar>;

/// Carries out tasks.
pub trait Executor: Sync {
    /// Carries a task out until it ends or `stop` asks to stop it. No child process is left when this returns.
    fn run<'a>(
        &'a self,
        job: Job<'a>,
        sink: &'a Sink,
        stop: &'a mut watch::Receiver<Option<Stop>>,
    ) -> BoxFuture<'a, Report>;
}

/// One run of a task.
#[derive(Debug)]
pub struct Job<'a> {
    /// The plan.
    pub plan: &'a str,
    /// The task.
    pub task: TaskId,
    /// The dispatch.
    pub attempt: u32,
    /// The claim; above 1 the task may have been run before.
    pub epoch: u64,
    /// The task's description.
    pub parameters: &'a TaskInput,
    /// The prompt of an agent.
    pub prompt: String,
    /// The file that keeps its output, if one does.
    pub output: Option<OutputTo>,
    /// The session of its program that an earlier run began here.
    pub session: Option<String>,
    /// The variables by which its program is an agent of the crew.
    pub variables: Vec<(String, String)>,
}

impl Job<'_> {
    /// The program as it is started: in the plan's folder, with variables that describe the task.
    pub(crate) fn spec(self, argv: Vec<String>, input: Option<String>, mut env: Vec<(String, String)>) -> Spec {
        // The answers of an outer plan are none of this one's.
        let outer = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        env.extend(self.variables);
        env.extend(outer.filter(|name| name.starts_with("CREWLOG_ANSWER")).map(|name| (name, String::new())));
        let mut set = |name: &str, value: String| env.push((name.to_owned(), value.replace('\0', "")));
        set("CREWLOG_PLAN", self.plan.to_owned());
        let name = |task: TaskId, label: &Option<String>| label.clone().unwrap_or_else(|| task.to_string());
        set("CREWLOG_TASK", name(self.task, &self.parameters.label));
        set("CREWLOG_ATTEMPT", self.attempt.to_string());
        set("CREWLOG_EPOCH", self.epoch.to_string());
        for answered in &self.parameters.answers {
            let variable = name(answered.task, &answered.label).replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            set(&format!("CREWLOG_ANSWER_{variable}"), answered.answer.clone());
            set("CREWLOG_ANSWER", answered.answer.clone());
        }
        let cwd = self.parameters.folder.as_ref().map(PathBuf::from);
        Spec { argv, input, cwd, env, passes: None, ends_all: false, output: self.output }
    }
}

/// A run that came to its own end, with an exit code.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) written: Written,
    pub(crate) details: RunDetails,
}

impl Finished {
    /// The reason why it failed, if it did: its exit code, or what its output says.
    pub(crate) fn failure(&self, said: Option<&str>) -> Option<String> {
        match (self.code, said) {
            (0, None) => None,
            (0, Some(said)) => Some(format!("its output says that it failed: {said}")),
            (code, None) => Some(format!("exit code {code}")),
            (code, Some(said)) => Some(format!("exit code {code}: {said}")),
        }
    }

    /// Its end as a failure: the class and the message.
    pub(crate) fn failed(self, how: &str, said: &str, class: FailureClass) -> Ending {
        Ending::Failed { error: shortened(format!("{how}\n{said}").trim_end()), class, run: Some(self.details) }
    }
}

/// Runs a program until it ends or `stop` asks to stop it: then, and when it could not start, ran too long or was
/// ended by a signal, the error is the task's ending with the output so far. No child process is left when this returns.
pub(crate) async fn run(
    supervisor: &Supervisor,
    spec: Spec,
    outputs: Outputs,
    (timeout, grace): (Duration, Duration),
    stop: &mut watch::Receiver<Option<Stop>>,
) -> Result<Finished, Box<(Ending, Written)>> {
    let (started, output) = (Instant::now(), spec.output.clone());
    let supervised = supervisor.start(spec, outputs).await;
    let mut supervised = supervised.map_err(|error| Box::new((not_started(&error.to_string()), Written::default())))?;
    let (ended, cut_short) = tokio::select! {
        // A program that has ended is not reported as stopped.
        biased;
        ended = supervised.wait() => (ended, None),
        () = tokio::time::sleep(timeout) => (supervised.stop(grace).await, Some(CutShort::TimedOut)),
        stop = wanted(stop) => {
            // The end of a run whose task went to another worker is worth a report, and may be on its way.
            let is_lost = stop == Stop::Lost;
            let in_flight = if is_lost { tokio::time::timeout(IN_FLIGHT, supervised.wait()).await.ok() } else { None };
            match in_flight {
                Some(ended) => (ended, None),
                None => (supervised.stop(grace).await, Some(CutShort::Stopped(stop))),
            }
        }
    };
    let cut_short = match cut_short {
        // Stopping a service signals the program and its worker at the same moment.
        None if was_signalled(&ended) => {
            tokio::time::timeout(SIGNAL_GRACE, wanted(stop)).await.ok().map(CutShort::Stopped)
        }
        cut_short => cut_short,
    };
    let ran_for = started.elapsed();
    let file = output.and_then(|to| to.kept().and_then(|kept| kept.record()).ok()).map(Box::new);
    match (ended, cut_short) {
        (ended, Some(CutShort::Stopped(stop))) => Err(Box::new((stop.ending(true), written_of(ended)))),
        (ended, Some(CutShort::TimedOut)) => {
            let run = ended.as_ref().ok().map(|ended| details(ended, ran_for, file));
            let written = written_of(ended);
            let error = format!("stopped after {}, its time-out\n{}", duration(millis(timeout)), written.text());
            let error = error.trim_end().to_owned();
            Err(Box::new((Ending::Failed { error, class: FailureClass::TimedOut, run }, written)))
        }
        (Ok(ended), None) => finished(ended, ran_for, file),
        (Err(error), None) => {
            let ending = unknown(format!("its supervisor was lost, and with it the outcome of the command: {error}"));
            Err(Box::new((ending, Written::default())))
        }
    }
}

fn written_of(ended: std::io::Result<Ended>) -> Written {
    ended.map(|ended| ended.written).unwrap_or_default()
}

/// Returns when the flag is set or its sender is gone.
pub(crate) async fn is_set(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|is_set| *is_set).await;
}

/// Resolves when a stop is requested; never if all senders are gone.
pub(crate) async fn wanted(stop: &mut watch::Receiver<Option<Stop>>) -> Stop {
    let wanted = stop.wait_for(Option::is_some).await.ok().and_then(|stop| stop.clone());
    match wanted {
        Some(stop) => stop,
        None => std::future::pending().await,
    }
}

/// True when a program did not end by itself.
fn was_signalled(ended: &std::io::Result<Ended>) -> bool {
    match ended.as_ref().map(|ended| &ended.exit) {
        Ok(Exit::Signal(_)) | Err(_) => true,
        Ok(Exit::Code(_) | Exit::NotStarted { .. } | Exit::Lost { .. }) => false,
    }
}

enum CutShort {
    TimedOut,
    Stopped(Stop),
}

fn finished(
    ended: Ended,
    ran_for: Duration,
    file: Option<Box<OutputFile>>,
) -> Result<Finished, Box<(Ending, Written)>> {
    let (details, written) = (details(&ended, ran_for, file), ended.written);
    let ending = match ended.exit {
        Exit::Code(code) => return Ok(Finished { code, written, details }),
        Exit::Signal(signal) => {
            let error = format!("ended by signal {signal}\n{}", written.text()).trim_end().to_owned();
            Ending::Failed { error, class: FailureClass::Task, run: Some(details) }
        }
        Exit::NotStarted { reason } => not_started(&reason),
        Exit::Lost { reason } => unknown(format!("the outcome of the command is unknown: {reason}")),
    };
    Err(Box::new((ending, written)))
}

/// It may have done all, some or none of its work.
fn unknown(error: String) -> Ending {
    Ending::Failed { error, class: FailureClass::OutcomeUnknown, run: None }
}

fn not_started(reason: &str) -> Ending {
    let error = format!("the command could not be started: {reason}");
    Ending::Failed { error, class: FailureClass::NotStarted, run: None }
}

fn details(Ended { exit, written }: &Ended, ran_for: Duration, output: Option<Box<OutputFile>>) -> RunDetails {
    let (exit_code, signal) = match exit {
        Exit::Code(code) => (Some(*code), None),
        Exit::Signal(signal) => (None, Some(*signal)),
        Exit::NotStarted { .. } | Exit::Lost { .. } => (None, None),
    };
    RunDetails {
        exit_code,
        signal,
        duration_ms: u64::try_from(ran_for.as_millis()).unwrap_or(u64::MAX),
        output_bytes: written.n_bytes(),
        output_is_cut: written.is_cut(),
        output,
    }
}
