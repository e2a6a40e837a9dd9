//! The `shell` executor: a task's command in `sh`, under a supervisor, with bounded output and a time-out.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crewlog_planner::claim::{Ending, RunDetails};
use crewlog_planner::event::{FailureClass, Parameters};
use crewlog_planner::plan::TaskId;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{oneshot, watch};

use crate::supervisor::{Exit, Spec, Supervised, SupervisorProgram};

/// The most of a command's output that is kept: half of it from the beginning, half from the end.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Between asking a command to end and killing it.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How long after a command that was signalled its worker may learn that it is to stop too.
const SIGNAL_GRACE: Duration = Duration::from_millis(500);
/// How long output may still come after the command is gone. What left its session may hold the pipes for ever.
const OUTPUT_GRACE: Duration = Duration::from_secs(1);

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
}

impl Stop {
    /// How a run ends that is stopped for this.
    pub(crate) fn ending(self) -> Ending {
        match self {
            Self::Cancelled { reason } => Ending::Stopped { reason },
            Self::Interrupted | Self::Lost => Ending::Released { reason: "the worker was interrupted".into() },
        }
    }
}

/// How commands are run.
#[derive(Debug, Clone)]
pub struct Shell {
    /// What supervises them.
    pub supervisor: SupervisorProgram,
    /// What they find in their environment, besides what tells of the task.
    pub env: Vec<(String, String)>,
    /// When a run is stopped unless its task says otherwise.
    pub timeout: Duration,
}

/// One run of a command.
#[derive(Debug)]
pub struct Job<'a> {
    /// The plan.
    pub plan: &'a str,
    /// The task.
    pub task: TaskId,
    /// The dispatch.
    pub attempt: u32,
    /// The claim; above 1 the command may have run before.
    pub epoch: u64,
    /// What to do.
    pub parameters: &'a Parameters,
    /// The command.
    pub command: &'a str,
    /// The worker's sign of life.
    pub lock: PathBuf,
}

impl Shell {
    /// Runs a command to its end, or until `stop` says otherwise. No child of it is left when this returns.
    pub async fn run(&self, job: Job<'_>, stop: &mut watch::Receiver<Option<Stop>>) -> Ending {
        let spec = Spec {
            command: job.command.to_owned(),
            cwd: job.parameters.folder.as_ref().map(PathBuf::from),
            env: self.environment(&job),
            lock: Some(job.lock),
        };
        let started = Instant::now();
        let mut supervised = match Supervised::spawn(&self.supervisor, &spec).await {
            Ok(supervised) => supervised,
            Err(error) => {
                let error = format!("the command could not be started: {error}");
                return Ending::Failed { error, class: FailureClass::NotStarted, run: None };
            }
        };
        let (stdout, stderr) = supervised.take_output();
        let (gone, is_gone) = oneshot::channel::<()>();
        let collecting = tokio::spawn(collect(stdout, stderr, is_gone));
        let timeout = job.parameters.timeout_ms.map_or(self.timeout, Duration::from_millis);
        let (exit, cut_short) = tokio::select! {
            // A command that has ended is not said to have been stopped.
            biased;
            exit = supervised.wait() => (exit, None),
            () = tokio::time::sleep(timeout) => (supervised.stop(STOP_GRACE).await, Some(CutShort::TimedOut)),
            stop = wanted(stop) => (supervised.stop(STOP_GRACE).await, Some(CutShort::Stopped(stop))),
        };
        let cut_short = match cut_short {
            // Whoever ends a whole service signals the command and its worker in the same moment.
            None if was_signalled(&exit) => {
                let stop = tokio::time::timeout(SIGNAL_GRACE, wanted(stop)).await;
                stop.ok().map(CutShort::Stopped)
            }
            cut_short => cut_short,
        };
        drop(gone);
        let output = collecting.await.unwrap_or_default();
        ending(exit, cut_short, &output, started.elapsed(), timeout)
    }

    fn environment(&self, job: &Job<'_>) -> Vec<(String, String)> {
        let mut env = self.env.clone();
        // The answers of an outer plan are none of this one's.
        let outer = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        env.extend(outer.filter(|name| name.starts_with("CREWLOG_ANSWER")).map(|name| (name, String::new())));
        let mut set = |name: &str, value: String| env.push((name.to_owned(), value.replace('\0', "")));
        set("CREWLOG_PLAN", job.plan.to_owned());
        set("CREWLOG_TASK", job.task.to_string());
        set("CREWLOG_ATTEMPT", job.attempt.to_string());
        set("CREWLOG_EPOCH", job.epoch.to_string());
        for answered in &job.parameters.answers {
            set(&format!("CREWLOG_ANSWER_{}", answered.task), answered.answer.clone());
            set("CREWLOG_ANSWER", answered.answer.clone());
        }
        env
    }
}

/// True when a command did not end by itself.
fn was_signalled(exit: &std::io::Result<Exit>) -> bool {
    match exit {
        Ok(Exit::Signal(_)) | Err(_) => true,
        Ok(Exit::Code(_) | Exit::NotStarted { .. }) => false,
    }
}

enum CutShort {
    TimedOut,
    Stopped(Stop),
}

/// Resolves when a stop is wanted; never if nobody is left to want one.
pub(crate) async fn wanted(stop: &mut watch::Receiver<Option<Stop>>) -> Stop {
    let wanted = stop.wait_for(Option::is_some).await.ok().and_then(|stop| stop.clone());
    match wanted {
        Some(stop) => stop,
        None => std::future::pending().await,
    }
}

fn ending(
    exit: std::io::Result<Exit>,
    cut_short: Option<CutShort>,
    output: &Output,
    ran_for: Duration,
    timeout: Duration,
) -> Ending {
    let exit = match (exit, cut_short) {
        (_, Some(CutShort::Stopped(stop))) => return stop.ending(),
        (exit, Some(CutShort::TimedOut)) => {
            let error = format!("stopped after {} s, its time-out\n{}", timeout.as_secs_f64(), output.text());
            let run = exit.ok().map(|exit| details(&exit, output, ran_for));
            return Ending::Failed { error: error.trim_end().to_owned(), class: FailureClass::TimedOut, run };
        }
        (Ok(exit), None) => exit,
        (Err(error), None) => {
            let error = format!("its supervisor was lost, and with it what became of the command: {error}");
            return Ending::Failed { error, class: FailureClass::Task, run: None };
        }
    };
    let run = Some(details(&exit, output, ran_for));
    match exit {
        Exit::Code(0) => Ending::Completed { result: output.text(), run },
        Exit::Code(code) => failed(&format!("exit code {code}"), output, run),
        Exit::Signal(signal) => failed(&format!("ended by signal {signal}"), output, run),
        Exit::NotStarted { reason } => {
            let error = format!("the command could not be started: {reason}");
            Ending::Failed { error, class: FailureClass::NotStarted, run: None }
        }
    }
}

fn failed(how: &str, output: &Output, run: Option<RunDetails>) -> Ending {
    let error = format!("{how}\n{}", output.text());
    Ending::Failed { error: error.trim_end().to_owned(), class: FailureClass::Task, run }
}

fn details(exit: &Exit, output: &Output, ran_for: Duration) -> RunDetails {
    let (exit_code, signal) = match exit {
        Exit::Code(code) => (Some(*code), None),
        Exit::Signal(signal) => (None, Some(*signal)),
        Exit::NotStarted { .. } => (None, None),
    };
    RunDetails {
        exit_code,
        signal,
        duration_ms: u64::try_from(ran_for.as_millis()).unwrap_or(u64::MAX),
        output_bytes: output.n_bytes,
        output_is_cut: output.is_cut(),
    }
}

/// What a command wrote to both of its outputs, as it came; the middle of too much of it is dropped.
#[derive(Debug, Default)]
struct Output {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    n_bytes: u64,
}

impl Output {
    fn take(&mut self, bytes: &[u8]) {
        self.n_bytes += bytes.len() as u64;
        let room = (OUTPUT_BYTES_MAX / 2).saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(OUTPUT_BYTES_MAX / 2);
        self.tail.drain(..excess);
    }

    fn is_cut(&self) -> bool {
        self.n_bytes > (self.head.len() + self.tail.len()) as u64
    }

    /// As text: what is not UTF-8 is replaced, and white space at the end is dropped.
    fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.is_cut() {
            let n_dropped = self.n_bytes - (self.head.len() + self.tail.len()) as u64;
            bytes.extend_from_slice(format!("\n... {n_dropped} bytes dropped ...\n").as_bytes());
        }
        bytes.extend(&self.tail);
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }
}

/// Reads both to their ends, or for a while after the command `is_gone`.
async fn collect(
    mut stdout: impl AsyncRead + Unpin,
    mut stderr: impl AsyncRead + Unpin,
    is_gone: oneshot::Receiver<()>,
) -> Output {
    let given_up = async {
        // It is gone when the sender is.
        let _ = is_gone.await;
        tokio::time::sleep(OUTPUT_GRACE).await;
    };
    tokio::pin!(given_up);
    let mut output = Output::default();
    let (mut out, mut err) = ([0; 8192], [0; 8192]);
    let (mut out_is_open, mut err_is_open) = (true, true);
    while out_is_open || err_is_open {
        tokio::select! {
            n_read = stdout.read(&mut out), if out_is_open => match n_read {
                Ok(0) | Err(_) => out_is_open = false,
                Ok(n_read) => output.take(&out[..n_read]),
            },
            n_read = stderr.read(&mut err), if err_is_open => match n_read {
                Ok(0) | Err(_) => err_is_open = false,
                Ok(n_read) => output.take(&err[..n_read]),
            },
            () = &mut given_up => break,
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_output_loses_its_middle_and_says_so() {
        let mut output = Output::default();
        for n in 0..100_000 {
            output.take(format!("line {n}\n").as_bytes());
        }
        let text = output.text();
        assert!(text.starts_with("line 0\n") && text.ends_with("line 99999"));
        assert!(text.contains("bytes dropped"));
        assert!(text.len() < OUTPUT_BYTES_MAX + 64);
        assert_eq!(output.n_bytes, (0..100_000).map(|n| format!("line {n}\n").len() as u64).sum::<u64>());
    }

    #[test]
    fn output_that_is_no_text_becomes_text() {
        let mut output = Output::default();
        output.take(b"\xff\x00ok\n\n");
        assert_eq!(output.text(), "\u{fffd}\0ok");
        assert!(!output.is_cut());
    }
}
